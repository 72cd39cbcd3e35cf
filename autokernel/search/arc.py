"""Bayesian optimisation with a kernel for hierarchical spaces."""

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache

import numpy as np
from scipy.special import expit

from autokernel.expression import Expression, Operation, arrange, require_expressions
from autokernel.search.bayesian import EvolvingStrategy
from autokernel.search.strategy import Task
from autokernel.search.surrogate import LOG_BOUNDS, KernelKernel, require_columns
from autokernel.typing import FloatArray

N_LEVELS = 10  # levels of a tree with a distance each; deeper positions count in the last
MAX_CACHED_TREES = 8192

Levels = tuple[tuple[str, ...], ...]
"""Positions of a tree with their values, by level."""


class Arc(EvolvingStrategy):
    """Bayesian optimisation over expressions with the kernel for hierarchical spaces.

    Each position of a tree is a categorical variable whose value is an operator, or a base kernel
    with its column. A position is active if the position above holds an operator.

    Parameters
    ----------
    acquisition, population_size, n_offspring, n_generations, local_steps, initial_design
        As for :class:`SOT`.

    Notes
    -----
    Hutter and Osborne (2013), *A kernel for hierarchical parameter spaces*, section 3, with one
    weight for each level of the tree. All but the kernel between expressions is as in
    :class:`SOT`.
    """

    def kernel_kernel(self, task: Task) -> KernelKernel:
        """Build the kernel that compares expressions position by position."""
        return ArcKernel(n_features=task.n_features)


class ArcKernel(KernelKernel):
    """The kernel ``exp(-sum_i omega_i^2 d_i / (2 l^2))`` over levels i of a tree.

    ``omega_i`` is the product of the ``gamma`` of all levels from the root down to level i. The
    parameters are the log of the squared lengthscale, which replaces the ``gamma`` of the root, and
    the logits of the other ``gamma``. The levels of each tree are cached.

    Parameters
    ----------
    n_features : int
        Number of input columns.

    Notes
    -----
    The binary tree, with sums and products in canonical order, is a hierarchical space: each
    position (the root, its left child, ...) is a variable that is active if the position above
    holds an operator. The squared pseudo-metric of Hutter and Osborne (2013), section 3, is 0 for a
    position that is equal, or inactive in both trees; 1 for one that is active in one tree; 2 for
    one whose values differ. With ``omega_i`` by their eq. 6 this is their product kernel (eq. 3),
    which is positive semi-definite.
    """

    bounds = (
        (-4.0, 8.0),
        *(LOG_BOUNDS,) * (N_LEVELS - 1),
    )  # large lengthscales, as some forty positions may differ
    start_noise = 0.3  # fits from less noise end at short lengthscales or at pure noise

    def __init__(self, *, n_features: int) -> None:
        self._n_features = n_features
        self._levels = lru_cache(MAX_CACHED_TREES)(tree_levels)

    def distances(
        self, expressions: Sequence[Expression], others: Sequence[Expression] | None = None
    ) -> FloatArray:
        """Compute squared distances (n_levels, n, m), sums over the positions of each level."""
        others = expressions if others is None else others
        require_expressions((*expressions, *others))
        for expression in (*expressions, *others):
            require_columns(expression, self._n_features)
        rows = [self._levels(expression) for expression in expressions]
        columns = [self._levels(expression) for expression in others]
        return np.stack(
            [
                _squared_distances([e[level] for e in rows], [e[level] for e in columns])
                for level in range(N_LEVELS)
            ]
        )

    def weights(self, params: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Multiply the squared gammas from the root down to each level."""
        gamma = expit(params[1:])
        squared_omega = np.cumprod(np.append(1.0, gamma**2))
        values = 0.5 * np.exp(-params[0]) * squared_omega
        above = np.tri(N_LEVELS, N_LEVELS - 1, -1)  # 1 where a level depends on a gamma
        return values, np.column_stack([-values, 2 * values[:, None] * above * (1 - gamma)])


def tree_levels(expression: Expression) -> Levels:
    """List the values of the active positions of the arranged tree, level by level."""
    levels: list[list[str]] = [[] for _ in range(N_LEVELS)]
    for path, value in _positions(arrange(expression).expression, ()):
        text = ".".join(map(str, path))
        levels[min(len(path), N_LEVELS - 1)].append(f"{text} {value}")
    return tuple(map(tuple, levels))


def _positions(
    expression: Expression, path: tuple[int, ...]
) -> Iterator[tuple[tuple[int, ...], str]]:
    """Yield the active positions, as operand numbers from the root, with their values."""
    if not isinstance(expression, Operation):
        yield path, expression.canonical
        return
    column = expression.column
    yield path, expression.operator.symbol + ("" if column is None else f"[{column}]")
    for number, operand in enumerate(expression.operands):
        yield from _positions(operand, (*path, number))


def _squared_distances(
    rows: Sequence[tuple[str, ...]], columns: Sequence[tuple[str, ...]]
) -> FloatArray:
    """Compute squared distances (n, m): the two counts, less twice the count in common."""
    distinct = dict.fromkeys(value for values in columns for value in values)
    numbers = {value: number for number, value in enumerate(distinct)}
    common = _indicators(rows, numbers) @ _indicators(columns, numbers).T
    n_row, n_column = (np.array([len(v) for v in side], dtype=float) for side in (rows, columns))
    return n_row[:, None] + n_column - 2.0 * common


def _indicators(lists: Sequence[tuple[str, ...]], numbers: Mapping[str, int]) -> FloatArray:
    """Build indicator rows of values; the last column stands for all values without a number."""
    matrix = np.zeros((len(lists), len(numbers) + 1))
    rows = np.repeat(np.arange(len(lists)), [len(values) for values in lists])
    held = [numbers.get(value, len(numbers)) for values in lists for value in values]
    matrix[rows, held] = 1.0
    return matrix
