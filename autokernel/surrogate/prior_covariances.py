"""Covariance matrices of expressions on a few inputs, with parameters drawn from the priors."""

from typing import NamedTuple

import numpy as np
from scipy.special import gammaincinv
from scipy.stats import qmc

from autokernel.expression import Expression
from autokernel.kernels import BASE_KERNELS, BroadcastPairs, KernelParameter, Pairs, Priors
from autokernel.likelihood import Covariance
from autokernel.operators import OPERATORS
from autokernel.typing import FloatArray

NOISE = 1e-2
"""Variance that is added to the diagonal of every covariance, for a target of variance one.

The covariance matrix of a smooth kernel has eigenvalues of rounding size in most of the 20
dimensions. With only the jitter that a factorisation needs, two kernels differ there by many orders
of magnitude, almost all distances are one, and the surrogate learns nothing from one kernel about
another. The value is the prior mean of the noise variance in SOT, so that differences too small to
show in data do not count.
"""

JITTER = 1e-9
"""Fraction of the mean diagonal added to ``NOISE``: large covariances need it to be factorised."""

_N_DIMENSIONS = 256  # dimensions of the Sobol points; further parameters reuse the first ones
_LEAST_DRAW = 1e-50  # the largest is 1 / this: products of a few draws stay finite


class PriorCovariances(NamedTuple):
    """Covariance matrices of one expression at all draws of its parameters."""

    half: FloatArray  # (n_entries, n_samples), half of each matrix, packed by columns
    log_determinants: FloatArray  # (n_samples,), log determinant of each matrix


class PriorSampler:
    """Computes covariances of expressions on fixed inputs, at fixed quantiles of the priors.

    Parameters
    ----------
    X : ndarray of shape (n_inputs, n_features)
        Inputs at which the covariances are computed.
    priors : mapping
        Gamma priors by parameter name, as :func:`check_priors` returns them.
    points : ndarray of shape (n_samples, n_dimensions)
        Quantiles in the unit cube, as :func:`sobol_points` makes them.
    """

    def __init__(self, X: FloatArray, priors: Priors, points: FloatArray) -> None:
        self._X, self._priors, self._points = X, priors, points
        self._columns, self._rows = np.triu_indices(len(X))
        self.n_entries = len(self._rows)
        self.n_bytes = self.n_entries * len(points) * 8
        self._pairs: dict[int, Pairs] = {}
        self._flat_pairs: dict[int, Pairs] = {}
        self._draws: dict[tuple[float, float, int], FloatArray] = {}

    def __call__(self, expression: Expression) -> PriorCovariances:
        """Compute the covariances of an arranged expression.

        A base kernel or an operator of the user may fail: the log determinants are nan then.

        Raises
        ------
        ValueError
            If covariances of kernels that ship overflow.
        """
        with np.errstate(all="ignore"):  # what is not finite is reported, or shows as nan
            try:
                K = self._covariances(expression)
            except Exception:  # the code of a user may raise anything
                if _ships(expression):
                    raise
                K = np.full((self.n_entries, len(self._points)), np.nan)
            if _ships(expression) and not np.isfinite(K).all():
                raise ValueError(
                    f"X must be of a size at which the covariances of {expression} do not "
                    "overflow: scale it to the unit interval"
                )
            diagonal = self._rows == self._columns
            K[diagonal] += NOISE + JITTER * K[diagonal].mean(axis=0)
            return PriorCovariances(0.5 * K, log_determinants(K))

    def _covariances(self, expression: Expression) -> FloatArray:
        """Compute covariances (n_entries, n_samples), in one sweep if every node broadcasts."""
        broadcasts = all(tree.declared.broadcasts for tree in expression.subtrees())
        pairs = self._pairs if broadcasts else self._flat_pairs
        covariance = Covariance(expression, lambda column: self._pairs_of(column, pairs))
        draws = [self._draw(p, dimension) for dimension, p in enumerate(covariance.parameters)]
        params = np.array(draws)
        if broadcasts:
            return covariance.forward(params[:, None])
        return np.stack([covariance.forward(sample).copy() for sample in params.T], axis=1)

    def _draw(self, parameter: KernelParameter, dimension: int) -> FloatArray:
        """Draw a parameter (n_samples,) by inverse transform sampling."""
        shape, rate = parameter.prior_in(self._priors)
        key = (shape, rate, dimension % _N_DIMENSIONS)
        if key not in self._draws:
            draws = gammaincinv(shape, self._points[:, key[2]]) / rate
            self._draws[key] = np.clip(draws, _LEAST_DRAW, 1 / _LEAST_DRAW)
        return self._draws[key]

    def _pairs_of(self, column: int, known: dict[int, Pairs]) -> Pairs:
        """Return the pairs of a column in the shape of ``known``: (n_entries, 1) or flat."""
        if column not in known:
            x = self._X[:, column, None] if known is self._pairs else self._X[:, column]
            known[column] = BroadcastPairs(x[self._rows], x[self._columns])
        return known[column]


def _ships(expression: Expression) -> bool:
    """Whether an expression has no base kernel and no operator of the user."""
    shipped = (*BASE_KERNELS.values(), *OPERATORS.values())
    return all(tree.declared in shipped for tree in expression.subtrees())


def sobol_points(n_samples: int, rng: np.random.Generator) -> FloatArray:
    """Draw scrambled Sobol points (n_samples, _N_DIMENSIONS) in the open unit cube."""
    sequence = qmc.Sobol(_N_DIMENSIONS, rng=rng)
    points = sequence.random_base2(int(n_samples - 1).bit_length())[:n_samples]
    return np.clip(points, 1e-6, 1 - 1e-6)


def log_determinants(packed: FloatArray) -> FloatArray:
    """Compute log determinants (n_matrices,) of packed matrices (n_entries, n_matrices).

    The matrices are overwritten. The Cholesky factorisation proceeds by columns for all matrices at
    once; with 20 rows it takes three fifths of the time of numpy's, which treats the matrices one
    by one.
    """
    n = int(np.sqrt(2 * len(packed)))  # number of rows: there are n (n + 1) / 2 entries
    L = np.empty((n, n, packed.shape[1]))  # transposed: the first index is the column
    pivots = np.empty((n, packed.shape[1]))
    for j, column in enumerate(np.split(packed, np.cumsum(np.arange(n, 1, -1)))):
        column -= np.einsum("kib,kb->ib", L[:j, j:], L[:j, j])
        pivots[j] = column[0]
        np.multiply(column, 1.0 / np.sqrt(column[0]), out=L[j, j:])
    return np.log(pivots).sum(axis=0)
