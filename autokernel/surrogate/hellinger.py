"""Expected squared Hellinger distances between the priors over functions that kernels stand for."""

from collections import OrderedDict
from collections.abc import Iterator, Sequence, Set
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import gammaincinv
from scipy.stats import qmc
from sklearn.utils import check_array

from autokernel.deadline import NEVER, Deadline
from autokernel.expression import (
    ADD,
    Expression,
    Operation,
    Slot,
    arrange,
    leaf_slots,
    require_expressions,
)
from autokernel.kernels import BASE_KERNELS, BaseKernel, ExponentialKernel, Pairs, PlainKernel
from autokernel.kernels.priors import Priors, check_priors
from autokernel.typing import FloatArray, IntArray

NOISE = 1e-2
"""Variance that is added to the diagonal of every covariance, for a target of variance one.

A smooth kernel has variances of rounding size in most of the 20 dimensions. With no more than a
factorisation needs, two kernels differ there by many orders of magnitude, almost all distances are
one and nothing is learned from one kernel about another. This is the prior mean of the noise
variance in SOT: smaller differences, which no data would show, do not count.
"""

JITTER = 1e-9
"""Added to it, as a part of the mean of the diagonal: large covariances need it for a factor."""

_N_INPUTS = 20  # as in BOMS, section 4.4
_N_DIMENSIONS = 256  # of the Sobol points: parameters beyond them take the dimensions anew
_SEED = 0
_MEMORY = 2**27  # bytes of covariances that are kept: some 800 expressions at 100 samples
_MOST_TEXTS = 2048  # whose distances are kept: at most 32 MB
_MATRICES = 800  # to factorise at a time: few calls, and little more than the cache holds
_LEAST_DRAW = 1e-50  # and one over it the largest: squares and products of a few stay finite


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
    return HellingerDistances(X, priors, n_samples=n_samples, rng=rng)(expressions, others)


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
        self._sampler = _Sampler(inputs, check_priors(priors), _points(n_samples, generator))
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
        rows = self._places(expressions)
        columns = rows if others is None else self._places(others)
        pairs = self._unknown(rows, columns)
        n_pairs = max(1, _MATRICES // self._n_samples)
        for start in range(0, len(pairs), n_pairs):
            self._deadline.check()
            low, high = pairs[start : start + n_pairs].T
            self._table[low, high] = self._table[high, low] = self._compute(low, high)
        return self._table[np.ix_(rows, columns)]

    def _forget(self) -> None:
        """Begin without any expression."""
        self._known: dict[str, int] = {}  # places by canonical texts
        self._trees: list[Expression] = []  # by places
        self._table = np.empty((0, 0))  # distances by places, NaN where unknown
        self._kept: OrderedDict[int, _Prior] = OrderedDict()  # by places, the latest last

    def _learn(self, expressions: Sequence[Expression]) -> None:
        """Give expressions that are new a place in the table."""
        new = {e.canonical: e for e in expressions if e.canonical not in self._known}
        for expression in new.values():
            highest = max(leaf.column for leaf in expression.leaves)
            if highest >= self._n_features:
                raise ValueError(
                    f"X must have the columns in use, got {self._n_features} columns and "
                    f"{expression}"
                )
        if new and len(self._known) + len(new) > _MOST_TEXTS:
            self._forget_all_but({e.canonical for e in expressions} - new.keys())
        for text, expression in new.items():
            self._known[text] = len(self._trees)
            self._trees.append(arrange(expression)[0])
        n_before, n_places = len(self._table), len(self._trees)
        if n_places > n_before:
            size = max(n_places, min(2 * n_places, _MOST_TEXTS))
            table = np.full((size, size), np.nan)
            table[:n_before, :n_before] = self._table
            np.fill_diagonal(table, 0.0)
            self._table = table

    def _forget_all_but(self, texts: Set[str]) -> None:
        """Make room; the places of what stays are others then."""
        places = np.array([self._known[text] for text in sorted(texts)], dtype=np.intp)
        trees, table = self._trees, self._table
        self._forget()
        self._known = {text: place for place, text in enumerate(sorted(texts))}
        self._trees = [trees[place] for place in places]
        self._table = table[np.ix_(places, places)]

    def _places(self, expressions: Sequence[Expression]) -> IntArray:
        """Places of expressions in the table."""
        return np.array([self._known[e.canonical] for e in expressions], dtype=np.intp)

    def _unknown(self, rows: IntArray, columns: IntArray) -> IntArray:
        """Pairs (n_pairs, 2) without a distance, each once, in blocks that the memory holds."""
        i, j = np.nonzero(np.isnan(self._table[np.ix_(rows, columns)]))
        low, high = np.minimum(rows[i], columns[j]), np.maximum(rows[i], columns[j])
        block = high // (self._most_kept // 2)
        return np.unique(np.stack([block, low, high], axis=1), axis=0)[:, 1:]

    def _compute(self, low: IntArray, high: IntArray) -> FloatArray:
        """Distances of pairs (n_pairs,), given the places of both sides."""
        means = np.empty((self._sampler.n_entries, len(low), self._n_samples))
        log_affinity = np.empty((len(low), self._n_samples))
        for k in range(len(low)):
            one, other = self._prior(low[k]), self._prior(high[k])
            np.add(one.half, other.half, out=means[:, k])
            np.add(one.log_determinants, other.log_determinants, out=log_affinity[k])
        log_affinity *= 0.25
        packed = means.reshape(len(means), -1)
        log_affinity -= 0.5 * _log_determinants(packed).reshape(log_affinity.shape)
        # two priors that differ by rounding alone may come out closer than equal ones
        return np.maximum(-np.expm1(log_affinity).mean(axis=1), 0.0)

    def _prior(self, place: int) -> "_Prior":
        """Prior of the expression at a place, computed unless it is kept."""
        if place not in self._kept:
            self._kept[place] = self._sampler(self._trees[place])
            if len(self._kept) > self._most_kept:
                self._kept.popitem(last=False)
        self._kept.move_to_end(place)
        return self._kept[place]


class _Prior(NamedTuple):
    """Covariances of one expression at all samples."""

    half: FloatArray  # (n_entries, n_samples), half the covariances, packed column by column
    log_determinants: FloatArray  # (n_samples,)


class _Sampler:
    """Computes the covariances of expressions on fixed inputs at fixed points of the unit cube."""

    def __init__(self, X: FloatArray, priors: Priors, points: FloatArray) -> None:
        self._X, self._priors, self._points = X, priors, points
        self._columns, self._rows = np.triu_indices(len(X))
        self.n_entries = len(self._rows)
        self.n_bytes = self.n_entries * len(points) * 8
        self._pairs: dict[int, _LagPairs] = {}
        self._draws: dict[tuple[str, int], FloatArray] = {}

    def __call__(self, expression: Expression) -> _Prior:
        """Compute the prior of an arranged expression."""
        parameters = (self._parameters(slot) for slot in leaf_slots(expression))
        with np.errstate(over="ignore", invalid="ignore"):  # an error says so
            K = self._covariances(expression, parameters)
        if not np.isfinite(K).all():
            raise ValueError(
                f"X must be of a size at which the covariances of {expression} do not overflow: "
                "scale it to the unit interval"
            )
        diagonal = self._rows == self._columns
        K[diagonal] += NOISE + JITTER * K[diagonal].mean(axis=0)
        return _Prior(0.5 * K, _log_determinants(K))

    def _parameters(self, slot: Slot) -> FloatArray:
        """Draw the parameters (n_params, 1, n_samples) of a leaf."""
        names = BASE_KERNELS[slot.leaf.kernel].parameter_names
        dimensions = range(slot.place.start, slot.place.stop)
        return np.array(list(map(self._draw, names, dimensions)))[:, None]

    def _draw(self, name: str, dimension: int) -> FloatArray:
        """Draw a parameter (n_samples,) by inverse transform sampling."""
        key = (name, dimension % _N_DIMENSIONS)
        if key not in self._draws:
            shape, rate = self._priors[name]
            draws = gammaincinv(shape, self._points[:, key[1]]) / rate
            self._draws[key] = np.clip(draws, _LEAST_DRAW, 1 / _LEAST_DRAW)
        return self._draws[key]

    def _covariances(self, expression: Expression, parameters: Iterator[FloatArray]) -> FloatArray:
        """Covariances (n_entries, n_samples), with parameters (n_params, 1, n_samples) by leaf."""
        if isinstance(expression, Operation):
            left = self._covariances(expression.left, parameters)
            right = self._covariances(expression.right, parameters)
            return left + right if expression.operator == ADD else left * right
        (leaf,) = expression.leaves
        if leaf.column not in self._pairs:
            x = self._X[:, leaf.column]
            self._pairs[leaf.column] = _LagPairs(x[self._rows], x[self._columns])
        return _values(BASE_KERNELS[leaf.kernel], next(parameters), self._pairs[leaf.column])


class _LagPairs(Pairs):
    """Pairs of numbers as columns (n_pairs, 1), against which many parameters broadcast."""

    def __init__(self, x: FloatArray, other: FloatArray) -> None:
        self._x, self._other = x[:, None], other[:, None]

    @cached_property
    def squared_distance(self) -> FloatArray:
        """``(x_i - x_j)^2``."""
        return (self._x - self._other) ** 2

    @cached_property
    def product(self) -> FloatArray:
        """``x_i x_j``."""
        return self._x * self._other

    def periodic(self, period: float | FloatArray) -> FloatArray:
        """``sin^2(pi (x_i - x_j) / period)``."""
        return np.sin(np.pi * (self._x - self._other) / period) ** 2

    def periodic_slope(self, period: float, weights: FloatArray) -> float:
        """Distances have no gradient."""
        raise NotImplementedError


def _values(kernel: BaseKernel, params: FloatArray, pairs: Pairs) -> FloatArray:
    """Values (n_pairs, n_samples) of a kernel at parameters (n_params, 1, n_samples)."""
    if isinstance(kernel, ExponentialKernel):
        return params[kernel.variance_index] * np.exp(kernel.exponent(params, pairs))
    assert isinstance(kernel, PlainKernel)  # there are these two kinds
    return kernel.value(params, pairs)


def _points(n_samples: int, rng: np.random.Generator) -> FloatArray:
    """Scrambled Sobol points (n_samples, _N_DIMENSIONS) in the open unit cube."""
    sequence = qmc.Sobol(_N_DIMENSIONS, rng=rng)
    points = sequence.random_base2(int(n_samples - 1).bit_length())[:n_samples]
    return np.clip(points, 1e-6, 1 - 1e-6)


def _log_determinants(packed: FloatArray) -> FloatArray:
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
