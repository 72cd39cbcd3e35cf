"""Distances between expressions as points of a hierarchical space (Hutter and Osborne, 2013)."""

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from autokernel.expression import Expression, Operation, arrange, require_expressions
from autokernel.typing import FloatArray

N_LEVELS = 10
"""How many levels of a tree are told apart; the last one holds all that is deeper, too."""


def arc_distances(
    expressions: Sequence[Expression],
    others: Sequence[Expression] | None = None,
    *,
    n_features: int,
) -> FloatArray:
    """Squared distances (n, m) between trees, all positions with the same weight.

    The sum over the levels of :func:`level_distances`, which says more.
    """
    return level_distances(expressions, others, n_features=n_features).sum(axis=0)


def level_distances(
    expressions: Sequence[Expression],
    others: Sequence[Expression] | None = None,
    *,
    n_features: int,
    n_levels: int = N_LEVELS,
) -> FloatArray:
    """Squared distances between the trees of expressions, position by position.

    Parameters
    ----------
    expressions : sequence of n Expression
        Rows.
    others : sequence of m Expression, optional
        Columns, by default the rows again.
    n_features : int
        Number of input columns.
    n_levels : int
        Number of levels, the root being the first; deeper positions count in the last.

    Returns
    -------
    ndarray of shape (n_levels, n, m)
        Sums over the positions of a level, whole numbers.

    Raises
    ------
    ValueError
        If an expression uses a column beyond ``n_features``, or ``n_levels`` is not positive.
    TypeError
        If one is a text.

    Notes
    -----
    The binary tree, with sums and products in canonical order, is a hierarchical space: a position
    (the root, its left child, ...) is a categorical variable whose value is an operator, or a base
    kernel with its column. It is active where the position above holds an operator. The squared
    pseudo-metric of Hutter and Osborne, section 3, with ``omega = 1``, is 0 where a position is
    inactive in both trees or equal, 1 where it is active in one, 2 where it differs. With
    ``omega_i`` the product of the ``gamma`` of the levels down to i (their eq. 6),
    ``exp(-1/2 sum_i omega_i^2 d_i)`` is their product kernel (their eq. 3), positive semi-definite.
    """
    if n_levels < 1:
        raise ValueError(f"n_levels must be at least 1, got {n_levels}")
    others = expressions if others is None else others
    require_expressions((*expressions, *others))
    rows = [_tree(e, n_levels) for e in expressions]
    columns = [_tree(e, n_levels) for e in others]
    for expression, tree in zip((*expressions, *others), (*rows, *columns), strict=True):
        if tree.highest_column >= n_features:
            raise ValueError(
                f"n_features must exceed the columns in use, got {n_features} and {expression}"
            )
    return np.stack(
        [
            _squared_distances([t.levels[i] for t in rows], [t.levels[i] for t in columns])
            for i in range(n_levels)
        ]
    )


class _Tree(NamedTuple):
    """Values of the active positions of a tree, as texts, level by level."""

    levels: tuple[tuple[str, ...], ...]
    highest_column: int


@lru_cache(maxsize=8192)
def _tree(expression: Expression, n_levels: int) -> _Tree:
    """Read the positions off the arranged tree."""
    levels: list[list[str]] = [[] for _ in range(n_levels)]
    for position, value in _positions(arrange(expression)[0], ""):
        levels[min(len(position), n_levels - 1)].append(position + value)
    highest = max(leaf.column for leaf in expression.leaves)
    return _Tree(tuple(map(tuple, levels)), highest)


def _positions(expression: Expression, position: str) -> Iterator[tuple[str, str]]:
    """Yield active positions, as the way from the root, with their values."""
    if not isinstance(expression, Operation):
        yield position, expression.canonical
        return
    yield position, expression.operator
    yield from _positions(expression.left, position + "l")
    yield from _positions(expression.right, position + "r")


def _squared_distances(
    rows: Sequence[tuple[str, ...]], columns: Sequence[tuple[str, ...]]
) -> FloatArray:
    """Squared distances (n, m): both count, less what they have in common, twice."""
    distinct = dict.fromkeys(value for values in columns for value in values)
    places = {value: place for place, value in enumerate(distinct)}
    common = _indicators(rows, places) @ _indicators(columns, places).T
    n_row, n_column = (np.array([len(v) for v in side], dtype=float) for side in (rows, columns))
    return n_row[:, None] + n_column - 2.0 * common


def _indicators(lists: Sequence[tuple[str, ...]], places: dict[str, int]) -> FloatArray:
    """One where a value is held, in rows of a matrix; the last column is for those of no place."""
    matrix = np.zeros((len(lists), len(places) + 1))
    rows = np.repeat(np.arange(len(lists)), [len(values) for values in lists])
    held = [places.get(value, len(places)) for values in lists for value in values]
    matrix[rows, held] = 1.0
    return matrix
