"""Distances between expressions, and the kernels over expressions that use them."""

from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence, Set
from functools import lru_cache
from typing import NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt
from scipy.spatial.distance import cdist
from scipy.special import expit, gammaincinv
from scipy.stats import qmc
from sklearn.utils import check_array

from autokernel.deadline import NEVER, Deadline
from autokernel.expression import Expression, Operation, arrange, require_expressions
from autokernel.inference import Covariance
from autokernel.kernels import (
    BASE_KERNELS,
    OPERATORS,
    BroadcastPairs,
    KernelParameter,
    Pairs,
    Priors,
    check_priors,
)
from autokernel.typing import FloatArray, IntArray

Frequencies = Mapping[Hashable, float]
Element = TypeVar("Element", bound=Hashable)


class TreeFeatures(NamedTuple):
    """Frequencies of the building blocks of one expression.

    Paths and subtrees sum to one each. Base kernels sum to one within every column that is used.
    """

    base: Frequencies
    paths: Frequencies
    subtrees: Frequencies


def tree_features(expression: Expression) -> TreeFeatures:
    """Compute the frequencies of one tree; the caller must treat unused columns."""
    paths: list[str] = []
    keys: list[str] = []
    _list_paths(expression, "", paths)
    _list_subtrees(expression, keys)
    return TreeFeatures(_base_frequencies(expression), _frequencies(paths), _frequencies(keys))


def _list_paths(expression: Expression, above: str, found: list[str]) -> None:
    """Append the paths to the leaves (SOT, appendix A.1).

    A run of the same commuting operator counts once. An operator that does not commute is written
    with the number of the operand.
    """
    if not isinstance(expression, Operation):
        found.append(above + expression.canonical)
        return
    label = _label(expression)
    if expression.operator.commutes:
        here = above if above.endswith(label) else above + label
        for operand in expression.operands:
            _list_paths(operand, here, found)
    else:
        for number, operand in enumerate(expression.operands):
            _list_paths(operand, f"{above}{label}{number}:", found)


def _list_subtrees(expression: Expression, found: list[str]) -> str:
    """Append the keys of all subtrees, and return that of the whole tree.

    The keys do not depend on the order of the operands of a commuting operator.
    """
    if not isinstance(expression, Operation):
        key = expression.canonical
    else:
        keys = [_list_subtrees(operand, found) for operand in expression.operands]
        if expression.operator.commutes:
            keys.sort()
        key = f"({_label(expression).join(keys)})"
    found.append(key)
    return key


def _label(operation: Operation) -> str:
    """Return the symbol of an operator, with its column if it has one."""
    column = operation.column
    return operation.operator.symbol + ("" if column is None else f"[{column}]")


def _base_frequencies(expression: Expression) -> Frequencies:
    """Compute the frequencies of the base kernels within each used column."""
    per_column = _count([leaf.column for leaf in expression.leaves])
    counts = _count([(leaf.canonical, leaf.column) for leaf in expression.leaves])
    return {element: count / per_column[element[1]] for element, count in counts.items()}


def _frequencies(elements: Sequence[str]) -> Frequencies:
    """Turn a multiset into frequencies."""
    total = len(elements)
    return {element: count / total for element, count in _count(elements).items()}


def _count(elements: Iterable[Element]) -> dict[Element, int]:
    """Count the elements of a multiset; short lists take a third of the time of a Counter."""
    counts: dict[Element, int] = {}
    for element in elements:
        counts[element] = counts.get(element, 0) + 1
    return counts


_MOST = 8192  # number of trees whose features are cached


def sot_distances(
    expressions: Sequence[Expression],
    others: Sequence[Expression] | None = None,
    *,
    n_features: int,
) -> FloatArray:
    """Compute total-variation distances between the building blocks of expressions.

    Parameters
    ----------
    expressions : sequence of n Expression
        Expressions of the rows.
    others : sequence of m Expression, optional
        Expressions of the columns, by default those of the rows.
    n_features : int
        Number of input columns. A column that an expression does not use holds the symbol NULL.

    Returns
    -------
    ndarray of shape (3, n, m)
        Unweighted distances of the base kernels (summed over columns), paths and subtrees.

    Raises
    ------
    ValueError
        If an expression uses a column beyond ``n_features``.
    TypeError
        If one of the expressions is a text.

    Notes
    -----
    This is SOT eqs. 2 and 3, with the symmetries of appendix A.1. With the discrete ground metric,
    optimal transport is total variation: half the L1 distance of the frequencies. Two trees with
    the same canonical text may differ in their subtrees, as in the paper.
    """
    return SOTDistances(n_features=n_features)(expressions, others)


class SOTDistances:
    """Computes the distances of :func:`sot_distances`, and caches the features of each tree.

    Parameters
    ----------
    n_features : int
        Number of input columns.
    """

    def __init__(self, *, n_features: int) -> None:
        self._n_features = n_features
        self._features = lru_cache(_MOST)(tree_features)
        # A search compares many generations with the same evaluated expressions.
        self._tabulate = lru_cache(maxsize=4)(self._make_table)

    def __call__(
        self, expressions: Sequence[Expression], others: Sequence[Expression] | None = None
    ) -> FloatArray:
        """Compute the distances (3, n, m); ``others`` are by default the expressions.

        Raises
        ------
        ValueError
            If an expression uses a column beyond ``n_features``.
        TypeError
            If one of the expressions is a text.
        """
        require_expressions((*expressions, *(others or ())))
        known = self._tabulate(tuple(expressions if others is None else others))
        features = [self._features(expression) for expression in expressions]
        # A column that only one side uses adds NULL: half of the L1 distance in that column.
        used = _used(expressions, self._n_features)
        unused = 0.5 * cdist(used, known.used, metric="cityblock")
        return np.stack(
            [
                unused + _total_variation([f.base for f in features], known.base),
                _total_variation([f.paths for f in features], known.paths),
                _total_variation([f.subtrees for f in features], known.subtrees),
            ]
        )

    def _make_table(self, expressions: tuple[Expression, ...]) -> "_Table":
        """Collect the features of the expressions in the columns of the distance matrix."""
        features = [self._features(expression) for expression in expressions]
        return _Table(
            _used(expressions, self._n_features),
            _collect([f.base for f in features]),
            _collect([f.paths for f in features]),
            _collect([f.subtrees for f in features]),
        )


class _Frequencies(NamedTuple):
    """Frequencies of the elements of some expressions."""

    indices: Mapping[Hashable, int]  # element to column of ``dense``
    dense: FloatArray  # (n, n_elements)


class _Table(NamedTuple):
    """Features of the expressions in the columns of the distance matrix."""

    used: FloatArray  # (n, n_features), one where a column is used
    base: _Frequencies
    paths: _Frequencies
    subtrees: _Frequencies


def _used(expressions: Sequence[Expression], n_features: int) -> FloatArray:
    """Mark the columns that each expression uses; the others hold the symbol NULL."""
    used = np.zeros((len(expressions), n_features))
    for row, expression in enumerate(expressions):
        columns = [leaf.column for leaf in expression.leaves]
        if expression.last_column >= n_features:
            raise ValueError(
                f"n_features must exceed the columns in use, got {n_features} and {expression}"
            )
        used[row, columns] = 1.0
    return used


def _collect(lists: Sequence[Frequencies]) -> _Frequencies:
    """Give each element an index, and build the dense frequencies."""
    indices: dict[Hashable, int] = {}
    for frequencies in lists:
        for element in frequencies:
            indices.setdefault(element, len(indices))
    return _Frequencies(indices, _dense(lists, indices)[0])


def _total_variation(rows: Sequence[Frequencies], columns: _Frequencies) -> FloatArray:
    """Compute half the L1 distances (n, m) of two lists of frequencies.

    The dense arrays hold only elements that occur in ``columns``. The frequencies of all other
    elements add to the distance in full.
    """
    dense, foreign = _dense(rows, columns.indices)
    return 0.5 * (cdist(dense, columns.dense, metric="cityblock") + foreign[:, None])


def _dense(
    lists: Sequence[Frequencies], indices: Mapping[Hashable, int]
) -> tuple[FloatArray, FloatArray]:
    """Build the matrix of frequencies, and the sums (n,) of those without an index."""
    matrix, foreign = np.zeros((len(lists), len(indices))), np.zeros(len(lists))
    for row, frequencies in enumerate(lists):
        for element, value in frequencies.items():
            index = indices.get(element)
            if index is None:
                foreign[row] += value
            else:
                matrix[row, index] = value
    return matrix, foreign


_MOST_ARC = 8192  # number of trees whose levels are cached

N_LEVELS = 10
"""Number of levels that have a distance each; deeper positions count in the last level."""


def arc_distances(
    expressions: Sequence[Expression],
    others: Sequence[Expression] | None = None,
    *,
    n_features: int,
) -> FloatArray:
    """Compute squared distances (n, m) between trees, all positions with the same weight.

    This is the sum of :func:`level_distances` over the levels; its Notes give the definition.
    """
    return level_distances(expressions, others, n_features=n_features).sum(axis=0)


def level_distances(
    expressions: Sequence[Expression],
    others: Sequence[Expression] | None = None,
    *,
    n_features: int,
    n_levels: int = N_LEVELS,
) -> FloatArray:
    """Compute squared distances between the trees of expressions, level by level.

    Parameters
    ----------
    expressions : sequence of n Expression
        Expressions of the rows.
    others : sequence of m Expression, optional
        Expressions of the columns, by default those of the rows.
    n_features : int
        Number of input columns.
    n_levels : int
        Number of levels. The root is the first; deeper positions count in the last.

    Returns
    -------
    ndarray of shape (n_levels, n, m)
        Sums over the positions of each level, which are whole numbers.

    Raises
    ------
    ValueError
        If an expression uses a column beyond ``n_features``, or ``n_levels`` is not positive.
    TypeError
        If one of the expressions is a text.

    Notes
    -----
    The binary tree, with sums and products in canonical order, is a hierarchical space. Each
    position (the root, its left child, ...) is a categorical variable whose value is an operator,
    or a base kernel with its column. A position is active where the position above holds an
    operator. The squared pseudo-metric of Hutter and Osborne, section 3, with ``omega = 1``, is 0
    for a position that is equal, or inactive in both trees; 1 for one that is active in one tree; 2
    for one whose values differ. Let ``omega_i`` be the product of the ``gamma`` of the levels down
    to i (their eq. 6). Then ``exp(-1/2 sum_i omega_i^2 d_i)`` is their product kernel (their eq.
    3), which is positive semi-definite.
    """
    return LevelDistances(n_features=n_features, n_levels=n_levels)(expressions, others)


class LevelDistances:
    """Computes the distances of :func:`level_distances`, and caches the levels of each tree.

    Parameters
    ----------
    n_features : int
        Number of input columns.
    n_levels : int
        Number of levels.
    """

    def __init__(self, *, n_features: int, n_levels: int = N_LEVELS) -> None:
        if n_levels < 1:
            raise ValueError(f"n_levels must be at least 1, got {n_levels}")
        self._n_features, self._n_levels = n_features, n_levels
        self._levels = lru_cache(_MOST_ARC)(self._read_levels)

    def __call__(
        self, expressions: Sequence[Expression], others: Sequence[Expression] | None = None
    ) -> FloatArray:
        """Compute the distances (n_levels, n, m); ``others`` are by default the expressions.

        Raises
        ------
        ValueError
            If an expression uses a column beyond ``n_features``.
        TypeError
            If one of the expressions is a text.
        """
        others = expressions if others is None else others
        require_expressions((*expressions, *others))
        for expression in (*expressions, *others):
            if expression.last_column >= self._n_features:
                raise ValueError(
                    f"n_features must exceed the columns in use, got {self._n_features} and "
                    f"{expression}"
                )
        rows = [self._levels(e) for e in expressions]
        columns = [self._levels(e) for e in others]
        return np.stack(
            [
                _squared_distances(
                    [levels[i] for levels in rows], [levels[i] for levels in columns]
                )
                for i in range(self._n_levels)
            ]
        )

    def _read_levels(self, expression: Expression) -> tuple[tuple[str, ...], ...]:
        """List the values of the active positions of the arranged tree, level by level."""
        levels: list[list[str]] = [[] for _ in range(self._n_levels)]
        for way, value in _positions(arrange(expression).expression, ()):
            text = ".".join(map(str, way))
            levels[min(len(way), self._n_levels - 1)].append(f"{text} {value}")
        return tuple(map(tuple, levels))


def _positions(
    expression: Expression, way: tuple[int, ...]
) -> Iterator[tuple[tuple[int, ...], str]]:
    """Yield the active positions, as operand numbers from the root, with their values."""
    if not isinstance(expression, Operation):
        yield way, expression.canonical
        return
    column = expression.column
    yield way, expression.operator.symbol + ("" if column is None else f"[{column}]")
    for number, operand in enumerate(expression.operands):
        yield from _positions(operand, (*way, number))


def _squared_distances(
    rows: Sequence[tuple[str, ...]], columns: Sequence[tuple[str, ...]]
) -> FloatArray:
    """Compute squared distances (n, m): the two counts, less twice the count in common."""
    distinct = dict.fromkeys(value for values in columns for value in values)
    numbers = {value: number for number, value in enumerate(distinct)}
    common = _indicators(rows, numbers) @ _indicators(columns, numbers).T
    n_row, n_column = (np.array([len(v) for v in side], dtype=float) for side in (rows, columns))
    return n_row[:, None] + n_column - 2.0 * common


def _indicators(lists: Sequence[tuple[str, ...]], numbers: dict[str, int]) -> FloatArray:
    """Build indicator rows of values; the last column stands for all values without a number."""
    matrix = np.zeros((len(lists), len(numbers) + 1))
    rows = np.repeat(np.arange(len(lists)), [len(values) for values in lists])
    held = [numbers.get(value, len(numbers)) for values in lists for value in values]
    matrix[rows, held] = 1.0
    return matrix


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


_USUAL = (-4.0, 4.0)  # bounds of log squared lengthscales and of logits


class Weights(NamedTuple):
    """Weights of the distances, with their derivatives in the parameters of the kernel."""

    values: FloatArray  # (n_distances,)
    jacobian: FloatArray  # (n_distances, n_params)


class KernelKernel(ABC):
    """A kernel ``exp(-sum_i w_i d_i)`` between expressions.

    Each ``d_i`` is a distance for which ``exp(-w d_i)`` is positive semi-definite for any ``w``.
    """

    bounds: Sequence[tuple[float, float]]
    """Bounds of each parameter of the weights."""

    start_noise = 0.01
    """Starting value of the noise variance of standardised scores; parameters start at zero."""

    @abstractmethod
    def distances(
        self, expressions: Sequence[Expression], others: Sequence[Expression] | None = None
    ) -> FloatArray:
        """Compute distances (n_distances, n, m); ``others`` are by default the expressions."""

    @abstractmethod
    def weights(self, params: FloatArray) -> Weights:
        """Compute the weights at these parameters (n_params,)."""


class SOTKernel(KernelKernel):
    """The kernel ``exp(-d / l^2)``, d a weighted mean of the three SOT distances (SOT eq. 4, A.5).

    The parameters are the log of the squared lengthscale and the logits of the weights.
    """

    bounds = (_USUAL,) * 4

    def __init__(self, *, n_features: int) -> None:
        self._distances = SOTDistances(n_features=n_features)

    def distances(
        self, expressions: Sequence[Expression], others: Sequence[Expression] | None = None
    ) -> FloatArray:
        """Compute the distances (3, n, m) of base kernels, paths and subtrees."""
        return self._distances(expressions, others)

    def weights(self, params: FloatArray) -> Weights:
        """Divide the sigmoids by their sum and by the squared lengthscale."""
        sigmoid = expit(params[1:])
        shares = sigmoid / sigmoid.sum()
        values = shares * np.exp(-params[0])
        by_logit = values[:, None] * (np.eye(3) - shares) * (1 - sigmoid)
        return Weights(values, np.column_stack([-values, by_logit]))


class HellingerKernel(KernelKernel):
    """The kernel ``exp(-d / (2 l^2))``, d the expected squared Hellinger distance (BOMS eq. 8).

    The parameter is the log of the squared lengthscale. Distances are cached.
    """

    bounds = (_USUAL,)

    def __init__(
        self,
        X: FloatArray,
        *,
        priors: str | Priors = "default",
        deadline: Deadline = NEVER,
    ) -> None:
        self._distances = HellingerDistances(X, priors=priors, deadline=deadline)

    def distances(
        self, expressions: Sequence[Expression], others: Sequence[Expression] | None = None
    ) -> FloatArray:
        """Compute the distances (1, n, m)."""
        return self._distances(expressions, others)[None]

    def weights(self, params: FloatArray) -> Weights:
        """Halve the inverse of the squared lengthscale."""
        values = 0.5 * np.exp(-params)
        return Weights(values, -values[:, None])


class ArcKernel(KernelKernel):
    """The kernel ``exp(-sum_i omega_i^2 d_i / (2 l^2))`` over levels i of a tree.

    See Hutter and Osborne (2013). ``omega_i`` is the product of the ``gamma`` of all levels
    from the root down to level i. The parameters are the log of the squared lengthscale, which
    replaces the ``gamma`` of the root, and the logits of the other ``gamma``.
    """

    bounds = (
        (-4.0, 8.0),
        *(_USUAL,) * (N_LEVELS - 1),
    )  # large lengthscales, as some forty positions may differ
    start_noise = 0.3  # fits from less noise end at short lengthscales or at pure noise

    def __init__(self, *, n_features: int) -> None:
        self._distances = LevelDistances(n_features=n_features)

    def distances(
        self, expressions: Sequence[Expression], others: Sequence[Expression] | None = None
    ) -> FloatArray:
        """Compute the distances (n_levels, n, m)."""
        return self._distances(expressions, others)

    def weights(self, params: FloatArray) -> Weights:
        """Multiply the squared gammas from the root down to each level."""
        gamma = expit(params[1:])
        squared_omega = np.cumprod(np.append(1.0, gamma**2))
        values = 0.5 * np.exp(-params[0]) * squared_omega
        above = np.tri(N_LEVELS, N_LEVELS - 1, -1)  # 1 where a level depends on a gamma
        return Weights(
            values, np.column_stack([-values, 2 * values[:, None] * above * (1 - gamma)])
        )
