"""Covariances of expressions on a few inputs, at many parameters drawn from their priors."""

from typing import NamedTuple

import numpy as np
from scipy.special import gammaincinv
from scipy.stats import qmc

from autokernel.expression import Expression
from autokernel.kernels import BroadcastPairs, KernelParameter, Pairs, Priors
from autokernel.likelihood import Covariance
from autokernel.typing import FloatArray

NOISE = 1e-2
"""Variance that is added to the diagonal of every covariance, for a target of variance one.

A smooth kernel has variances of rounding size in most of the 20 dimensions. With no more than a
factorisation needs, two kernels differ there by many orders of magnitude, almost all distances are
one and nothing is learned from one kernel about another. This is the prior mean of the noise
variance in SOT: smaller differences, which no data would show, do not count.
"""

JITTER = 1e-9
"""Added to it, as a fraction of the mean of the diagonal: large covariances have no factor else."""

_N_DIMENSIONS = 256  # of the Sobol points: parameters beyond them take the dimensions anew
_LEAST_DRAW = 1e-50  # and one over it the largest: squares and products of a few stay finite


class PriorCovariances(NamedTuple):
    """Covariances of one expression at all draws of its parameters."""

    half: FloatArray  # (n_entries, n_samples), half the covariances, packed column by column
    log_determinants: FloatArray  # (n_samples,)


class PriorSampler:
    """Computes the covariances of expressions on fixed inputs at fixed points of the unit cube.

    Parameters
    ----------
    X : ndarray of shape (n_inputs, n_features)
        Inputs.
    priors : mapping
        What :func:`check_priors` returns.
    points : ndarray of shape (n_samples, n_dimensions)
        Points of the unit cube, as :func:`sobol_points` makes them.
    """

    def __init__(self, X: FloatArray, priors: Priors, points: FloatArray) -> None:
        self._X, self._priors, self._points = X, priors, points
        self._columns, self._rows = np.triu_indices(len(X))
        self.n_entries = len(self._rows)
        self.n_bytes = self.n_entries * len(points) * 8
        self._pairs: dict[int, Pairs] = {}
        self._draws: dict[tuple[float, float, int], FloatArray] = {}

    def __call__(self, expression: Expression) -> PriorCovariances:
        """Compute the covariances of an arranged expression.

        Raises
        ------
        ValueError
            If they overflow.
        """
        with np.errstate(over="ignore", invalid="ignore"):  # an error says so
            K = self._covariances(expression)
        if not np.isfinite(K).all():
            raise ValueError(
                f"X must be of a size at which the covariances of {expression} do not overflow: "
                "scale it to the unit interval"
            )
        diagonal = self._rows == self._columns
        K[diagonal] += NOISE + JITTER * K[diagonal].mean(axis=0)
        return PriorCovariances(0.5 * K, log_determinants(K))

    def _covariances(self, expression: Expression) -> FloatArray:
        """Covariances (n_entries, n_samples), in one sweep where all of the kernel broadcasts."""
        covariance = Covariance(expression, self._pairs_of)
        draws = [self._draw(p, dimension) for dimension, p in enumerate(covariance.parameters)]
        params = np.array(draws)[:, None]
        if all(node.broadcasts for node in expression.subtrees()):
            return covariance.forward(params)
        n_samples = params.shape[2]
        sweeps = [covariance.forward(params[:, 0, sample]) for sample in range(n_samples)]
        return np.concatenate(sweeps, axis=1)

    def _draw(self, parameter: KernelParameter, dimension: int) -> FloatArray:
        """Draw a parameter (n_samples,) by inverse transform sampling."""
        shape, rate = parameter.prior_in(self._priors)
        key = (shape, rate, dimension % _N_DIMENSIONS)
        if key not in self._draws:
            draws = gammaincinv(shape, self._points[:, key[2]]) / rate
            self._draws[key] = np.clip(draws, _LEAST_DRAW, 1 / _LEAST_DRAW)
        return self._draws[key]

    def _pairs_of(self, column: int) -> Pairs:
        """Return the pairs (n_entries, 1) of a column, against which parameters broadcast."""
        if column not in self._pairs:
            x = self._X[:, column, None]
            self._pairs[column] = BroadcastPairs(x[self._rows], x[self._columns])
        return self._pairs[column]


def sobol_points(n_samples: int, rng: np.random.Generator) -> FloatArray:
    """Scrambled Sobol points (n_samples, _N_DIMENSIONS) in the open unit cube."""
    sequence = qmc.Sobol(_N_DIMENSIONS, rng=rng)
    points = sequence.random_base2(int(n_samples - 1).bit_length())[:n_samples]
    return np.clip(points, 1e-6, 1 - 1e-6)


def log_determinants(packed: FloatArray) -> FloatArray:
    """Log determinants (n_matrices,) of matrices (n_entries, n_matrices), which are overwritten.

    Cholesky factors by columns, for all matrices at once: with 20 rows it takes three fifths of the
    time of numpy's, which takes the matrices one by one.
    """
    n = int(np.sqrt(2 * len(packed)))  # of n (n + 1) / 2 entries
    L = np.empty((n, n, packed.shape[1]))  # transposed: the column comes first
    pivots = np.empty((n, packed.shape[1]))
    for j, column in enumerate(np.split(packed, np.cumsum(np.arange(n, 1, -1)))):
        column -= np.einsum("kib,kb->ib", L[:j, j:], L[:j, j])
        pivots[j] = column[0]
        np.multiply(column, 1.0 / np.sqrt(column[0]), out=L[j, j:])
    return np.log(pivots).sum(axis=0)
