"""Distances between expressions in a hierarchical parameter space (Hutter and Osborne, 2013)."""

from collections.abc import Iterator, Sequence
from functools import lru_cache

import numpy as np

from autokernel.expression import Expression, Operation, arrange, require_expressions
from autokernel.typing import FloatArray

_MOST = 8192  # number of trees whose levels are cached

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
        self._levels = lru_cache(_MOST)(self._read_levels)

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
