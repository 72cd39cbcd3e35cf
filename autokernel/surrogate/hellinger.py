"""Expected squared Hellinger distances between the GP priors of kernel expressions."""

from collections import OrderedDict
from collections.abc import Sequence, Set

import numpy as np
import numpy.typing as npt
from sklearn.utils import check_array

from autokernel.deadline import NEVER, Deadline
from autokernel.expression import Expression, arrange, require_expressions
from autokernel.kernels import BASE_KERNELS, Priors, check_priors
from autokernel.surrogate.prior_covariances import (
    PriorCovariances,
    PriorSampler,
    log_determinants,
    sobol_points,
)
from autokernel.typing import FloatArray, IntArray

_N_INPUTS = 20  # number of inputs, BOMS section 4.4
_SEED = 0
_MEMORY = 2**27  # bytes of cached covariances: some 800 expressions at 100 samples
_MOST_TEXTS = 2048  # number of expressions in the distance table: at most 32 MB
_MATRICES = 800  # matrices factorised per call: few calls, and the CPU cache nearly holds them


def hellinger_distances(
    expressions: Sequence[Expression],
    others: Sequence[Expression] | None = None,
    *,
    X: npt.ArrayLike,
    priors: str | Priors = "default",
    n_samples: int = 100,
    rng: int | np.random.Generator | None = None,
) -> FloatArray:
    """Compute the expected squared Hellinger distances between the GP priors of expressions.

    Parameters
    ----------
    expressions : sequence of n Expression
        Expressions of the rows.
    others : sequence of m Expression, optional
        Expressions of the columns, by default those of the rows.
    X : array-like of shape (n_inputs, n_features)
        Inputs at which the priors are compared. Of more than 20, a random 20 are used.
    priors : {"default", "paper"} or mapping of str to (shape, rate)
        Gamma priors of the hyperparameters.
    n_samples : int
        Number of Sobol points over which the expectation is taken.
    rng : int, numpy.random.Generator or None
        Source of the choice of inputs and the scrambling of the Sobol points; None is a fixed
        seed.

    Returns
    -------
    ndarray of shape (n, m)
        Distances between 0 and 1. Expressions with the same canonical text have distance 0.

    Raises
    ------
    ValueError
        If an expression uses a column that ``X`` does not have, if its covariances overflow, if
        ``n_samples`` is not positive, or if ``X`` or ``priors`` are invalid.
    TypeError
        If one of the expressions is a text.

    See Also
    --------
    HellingerDistances : Caches the distances of earlier calls.

    Notes
    -----
    This is BOMS eqs. 6 and 7 with zero means, for the latent function plus noise of variance 0.01.
    Parameter i of an expression, with sums and products in canonical order, is the quantile of its
    prior at dimension i of the Sobol points. All expressions share these points. For one sample,
    the distance is half the squared L2 distance between the square roots of two densities; so the
    mean over shared samples is a squared Hilbert distance as well. Hence it is symmetric, it is
    zero between equal expressions, and ``exp(-d / (2 l^2))`` is positive semi-definite.
    """
    require_expressions((*expressions, *(others or ())))
    parameters = [p for kernel in BASE_KERNELS.values() for p in kernel.parameters]
    for expression in (*expressions, *(others or ())):
        parameters += [p for node in expression.nodes for p in node.parameters]
    checked = check_priors(priors, parameters=parameters)
    return HellingerDistances(X, checked, n_samples=n_samples, rng=rng)(expressions, others)


class HellingerDistances:
    """Computes distances between expressions on one data set, and caches them.

    Parameters
    ----------
    X, priors, n_samples, rng
        As for :func:`hellinger_distances`.
    deadline : Deadline
        Moment after which calls raise an ``OutOfTimeError`` if they have distances to compute.

    Notes
    -----
    A distance takes O(n_samples n_inputs^3). Distances and covariances are cached in at most some
    170 MB; the oldest ones are dropped and computed again when needed. An instance must not be
    shared between threads.
    """

    def __init__(
        self,
        X: npt.ArrayLike,
        priors: str | Priors = "default",
        *,
        n_samples: int = 100,
        rng: int | np.random.Generator | None = None,
        deadline: Deadline = NEVER,
    ) -> None:
        if n_samples < 1:
            raise ValueError(f"n_samples must be at least 1, got {n_samples}")
        inputs: FloatArray = check_array(X, dtype=np.float64, input_name="X")
        generator = np.random.default_rng(_SEED if rng is None else rng)
        if len(inputs) > _N_INPUTS:
            inputs = inputs[generator.choice(len(inputs), _N_INPUTS, replace=False)]
        self._sampler = PriorSampler(
            inputs,
            check_priors(priors),
            sobol_points(n_samples, generator),
        )
        self._n_samples, self._deadline = n_samples, deadline
        self._n_features = inputs.shape[1]
        self._most_kept = max(4, _MEMORY // self._sampler.n_bytes)
        self._forget()

    def __call__(
        self, expressions: Sequence[Expression], others: Sequence[Expression] | None = None
    ) -> FloatArray:
        """Compute distances (n, m); ``others`` are by default the expressions.

        Raises
        ------
        ValueError
            If an expression uses a column that the inputs do not have, or if its covariances
            overflow.
        """
        asked = [*expressions, *(others or ())]
        require_expressions(asked)
        self._learn(asked)
        rows = self._indices(expressions)
        columns = rows if others is None else self._indices(others)
        pairs = self._unknown(rows, columns)
        n_pairs = max(1, _MATRICES // self._n_samples)
        for start in range(0, len(pairs), n_pairs):
            self._deadline.check()
            low, high = pairs[start : start + n_pairs].T
            self._table[low, high] = self._table[high, low] = self._compute(low, high)
        return self._table[np.ix_(rows, columns)]

    def _forget(self) -> None:
        """Empty the caches."""
        self._known: dict[str, int] = {}  # canonical text to index
        self._trees: list[Expression] = []  # arranged expressions by index
        self._table = np.empty((0, 0))  # distances between indices, NaN where unknown
        self._kept: OrderedDict[int, PriorCovariances] = (
            OrderedDict()
        )  # index to covariances, the latest used last

    def _learn(self, expressions: Sequence[Expression]) -> None:
        """Give each new expression an index in the table."""
        new = {e.canonical: e for e in expressions if e.canonical not in self._known}
        for expression in new.values():
            if expression.last_column >= self._n_features:
                raise ValueError(
                    f"X must have the columns in use, got {self._n_features} columns and "
                    f"{expression}"
                )
        if new and len(self._known) + len(new) > _MOST_TEXTS:
            self._forget_all_but({e.canonical for e in expressions} - new.keys())
        for text, expression in new.items():
            self._known[text] = len(self._trees)
            self._trees.append(arrange(expression).expression)
        n_before, n_indices = len(self._table), len(self._trees)
        if n_indices > n_before:
            size = max(n_indices, min(2 * n_indices, _MOST_TEXTS))
            table = np.full((size, size), np.nan)
            table[:n_before, :n_before] = self._table
            np.fill_diagonal(table, 0.0)
            self._table = table

    def _forget_all_but(self, texts: Set[str]) -> None:
        """Drop all expressions but these; the remaining ones get new indices."""
        indices = np.array([self._known[text] for text in sorted(texts)], dtype=np.intp)
        trees, table = self._trees, self._table
        self._forget()
        self._known = {text: index for index, text in enumerate(sorted(texts))}
        self._trees = [trees[index] for index in indices]
        self._table = table[np.ix_(indices, indices)]

    def _indices(self, expressions: Sequence[Expression]) -> IntArray:
        """Look up the indices of expressions in the table."""
        return np.array([self._known[e.canonical] for e in expressions], dtype=np.intp)

    def _unknown(self, rows: IntArray, columns: IntArray) -> IntArray:
        """List the pairs (n_pairs, 2) without a distance, in blocks that fit into the cache."""
        i, j = np.nonzero(np.isnan(self._table[np.ix_(rows, columns)]))
        low, high = np.minimum(rows[i], columns[j]), np.maximum(rows[i], columns[j])
        block = high // (self._most_kept // 2)
        return np.unique(np.stack([block, low, high], axis=1), axis=0)[:, 1:]

    def _compute(self, low: IntArray, high: IntArray) -> FloatArray:
        """Compute the distances (n_pairs,) of pairs of indices."""
        means = np.empty((self._sampler.n_entries, len(low), self._n_samples))
        log_affinity = np.empty((len(low), self._n_samples))
        for k in range(len(low)):
            one, other = self._covariances_of(low[k]), self._covariances_of(high[k])
            np.add(one.half, other.half, out=means[:, k])
            np.add(one.log_determinants, other.log_determinants, out=log_affinity[k])
        log_affinity *= 0.25
        packed = means.reshape(len(means), -1)
        with np.errstate(invalid="ignore", divide="ignore"):
            log_affinity -= 0.5 * log_determinants(packed).reshape(log_affinity.shape)
        # Rounding may give a distance just below zero.
        distances = np.maximum(-np.expm1(log_affinity).mean(axis=1), 0.0)
        # A kernel of the user whose covariances cannot be computed is far from all others.
        return np.where(np.isfinite(distances), distances, 1.0)

    def _covariances_of(self, index: int) -> PriorCovariances:
        """Return the cached covariances of the expression at an index, or compute them."""
        if index not in self._kept:
            self._kept[index] = self._sampler(self._trees[index])
            if len(self._kept) > self._most_kept:
                self._kept.popitem(last=False)
        self._kept.move_to_end(index)
        return self._kept[index]
