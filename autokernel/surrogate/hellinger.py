"""Expected squared Hellinger distances between the priors over functions that kernels stand for."""

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

_N_INPUTS = 20  # as in BOMS, section 4.4
_SEED = 0
_MEMORY = 2**27  # bytes of covariances that are kept: some 800 expressions at 100 samples
_MOST_TEXTS = 2048  # whose distances are kept: at most 32 MB
_MATRICES = 800  # to factorise at a time: few calls, and little more than the cache holds


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
        Rows.
    others : sequence of m Expression, optional
        Columns, by default the rows again.
    X : array-like of shape (n_inputs, n_features)
        Inputs, of which 20 at random are taken where there are more.
    priors : {"default", "paper"} or mapping of str to (shape, rate)
        Priors of the hyperparameters.
    n_samples : int
        Number of Sobol points over which the expectation is taken.
    rng : int, numpy.random.Generator or None
        Draws the inputs and scrambles the Sobol points; None is a fixed seed.

    Returns
    -------
    ndarray of shape (n, m)
        Distances between 0 and 1; 0 for expressions with one canonical text.

    Raises
    ------
    ValueError
        If an expression uses a column that ``X`` does not have, its covariances overflow,
        ``n_samples`` is not positive, or ``X`` or ``priors`` are invalid.
    TypeError
        If one is a text.

    See Also
    --------
    HellingerDistances : Keeps what it has computed.

    Notes
    -----
    BOMS eqs. 6 and 7 with zero means, for the latent function with a noise of variance 0.01.
    Parameter i of an expression, with sums and products in canonical order, is the quantile of its
    prior at dimension i of the Sobol points, which are the same for all expressions. For one
    sample, the distance is half the squared L2 distance of the roots of two densities; so the mean
    over shared samples is a squared Hilbert distance, too. Hence it is symmetric and zero between
    equals, and ``exp(-d / (2 l^2))`` is positive semi-definite.
    """
    require_expressions((*expressions, *(others or ())))
    nodes = [node for e in (*expressions, *(others or ())) for node in e.nodes]
    parameters = [p for one in (*BASE_KERNELS.values(), *nodes) for p in one.parameters]
    checked = check_priors(priors, parameters=parameters)
    return HellingerDistances(X, checked, n_samples=n_samples, rng=rng)(expressions, others)


class HellingerDistances:
    """Computes distances between expressions on one data set, each of them once.

    Parameters
    ----------
    X, priors, n_samples, rng
        As for :func:`hellinger_distances`.
    deadline : Deadline
        After it, calls that have distances to compute raise an ``OutOfTimeError``.

    Notes
    -----
    A distance takes O(n_samples n_inputs^3) and the covariances of an expression are computed once,
    unless so many others are used in between that memory would grow beyond some 170 MB. Several
    threads need one each.
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
        """Distances (n, m) between expressions and others, by default the same.

        Raises
        ------
        ValueError
            If an expression uses a column that the inputs do not have, or its covariances overflow.
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
        """Begin without any expression."""
        self._known: dict[str, int] = {}  # indices by canonical texts
        self._trees: list[Expression] = []  # by indices
        self._table = np.empty((0, 0))  # distances by indices, NaN where unknown
        self._kept: OrderedDict[int, PriorCovariances] = (
            OrderedDict()
        )  # by indices, the latest last

    def _learn(self, expressions: Sequence[Expression]) -> None:
        """Give expressions that are new an index in the table."""
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
        """Make room; the indices of what stays are others then."""
        indices = np.array([self._known[text] for text in sorted(texts)], dtype=np.intp)
        trees, table = self._trees, self._table
        self._forget()
        self._known = {text: index for index, text in enumerate(sorted(texts))}
        self._trees = [trees[index] for index in indices]
        self._table = table[np.ix_(indices, indices)]

    def _indices(self, expressions: Sequence[Expression]) -> IntArray:
        """Places of expressions in the table."""
        return np.array([self._known[e.canonical] for e in expressions], dtype=np.intp)

    def _unknown(self, rows: IntArray, columns: IntArray) -> IntArray:
        """Pairs (n_pairs, 2) without a distance, each once, in blocks that the memory holds."""
        i, j = np.nonzero(np.isnan(self._table[np.ix_(rows, columns)]))
        low, high = np.minimum(rows[i], columns[j]), np.maximum(rows[i], columns[j])
        block = high // (self._most_kept // 2)
        return np.unique(np.stack([block, low, high], axis=1), axis=0)[:, 1:]

    def _compute(self, low: IntArray, high: IntArray) -> FloatArray:
        """Distances of pairs (n_pairs,), given the indices of both sides."""
        means = np.empty((self._sampler.n_entries, len(low), self._n_samples))
        log_affinity = np.empty((len(low), self._n_samples))
        for k in range(len(low)):
            one, other = self._covariances_of(low[k]), self._covariances_of(high[k])
            np.add(one.half, other.half, out=means[:, k])
            np.add(one.log_determinants, other.log_determinants, out=log_affinity[k])
        log_affinity *= 0.25
        packed = means.reshape(len(means), -1)
        log_affinity -= 0.5 * log_determinants(packed).reshape(log_affinity.shape)
        # two priors that differ by rounding alone may come out closer than equal ones
        return np.maximum(-np.expm1(log_affinity).mean(axis=1), 0.0)

    def _covariances_of(self, index: int) -> PriorCovariances:
        """Prior of the expression at an index, computed unless it is kept."""
        if index not in self._kept:
            self._kept[index] = self._sampler(self._trees[index])
            if len(self._kept) > self._most_kept:
                self._kept.popitem(last=False)
        self._kept.move_to_end(index)
        return self._kept[index]
