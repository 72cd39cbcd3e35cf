"""Bayesian optimisation with symbolical optimal transport."""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import TypeVar

import numpy as np
from scipy.spatial.distance import cdist
from scipy.special import expit

from autokernel.expression import Expression, Operation, require_expressions
from autokernel.search.bayesian import EvolvingStrategy
from autokernel.search.strategy import Task
from autokernel.search.surrogate import LOG_BOUNDS, KernelKernel, require_columns
from autokernel.typing import FloatArray

MAX_CACHED_TREES = 8192
MAX_CACHED_TABLES = 4  # a search compares many generations with the same evaluated expressions

Frequencies = Mapping[Hashable, float]
Features = tuple[Frequencies, Frequencies, Frequencies]
"""Frequencies of the base kernels, the paths and the subtrees of one expression."""

ElementTable = tuple[Mapping[Hashable, int], FloatArray]
"""Index of each element, and the frequencies (n, n_elements) of the elements of n expressions."""

Element = TypeVar("Element", bound=Hashable)


class SOT(EvolvingStrategy):
    """Bayesian optimisation over expressions with the SOT kernel.

    Parameters
    ----------
    acquisition : {"ei", "ei_per_second", "ucb", "thompson"} or Acquisition, default="ei"
        What to maximise: the expected improvement, the same per second of evaluation, an upper
        confidence bound, or a draw from the posterior; or an object such as
        ``UpperConfidenceBound(kappa=3)``.
    population_size : int, default=100
        Number of expressions in a generation of the evolution that maximises the acquisition
        function.
    n_offspring : int, default=4
        Number of offspring of each survivor; ``population_size / (n_offspring + 1)`` survive.
    n_generations : int or "auto", default="auto"
        Number of generations; ``"auto"`` is 6 for one column and 10 for more.
    local_steps : bool or "auto", default="auto"
        Whether every second proposal is a neighbour of the best kernel: of eight that are drawn,
        that with the highest acquisition value; ``"auto"`` is True unless the estimator has
        ``structure_prior=None``.
    initial_design : {"default", "paper"}, default="default"
        Initial design. ``"paper"`` is every base kernel on every column, and two random operations
        from each.
        ``"default"`` adds the kernels that a person would try first and holds at most 60 kernels.

    Notes
    -----
    Bitzer, Meister and Zimmer (2022), *Structural kernel search via Bayesian optimization and
    symbolical optimal transport*, algorithms 1 and 2. The first generation holds random walks from
    the base kernels and neighbours of the best kernels so far.
    """

    def kernel_kernel(self, task: Task) -> KernelKernel:
        """Build the kernel that compares the building blocks of expressions."""
        return SOTKernel(n_features=task.n_features)


class SOTKernel(KernelKernel):
    """The kernel ``exp(-d / l^2)``, d a weighted mean of the three SOT distances (SOT eq. 4, A.5).

    The parameters are the log of the squared lengthscale and the logits of the weights. The
    features of each tree are cached.

    Parameters
    ----------
    n_features : int
        Number of input columns.
    """

    bounds = (LOG_BOUNDS,) * 4

    def __init__(self, *, n_features: int) -> None:
        self._n_features = n_features
        self._features = lru_cache(MAX_CACHED_TREES)(tree_features)
        self._tables_of = lru_cache(MAX_CACHED_TABLES)(self._make_tables)

    def distances(
        self, expressions: Sequence[Expression], others: Sequence[Expression] | None = None
    ) -> FloatArray:
        """Compute the distances (3, n, m) of :func:`sot_distances`."""
        require_expressions((*expressions, *(others or ())))
        used, tables = self._tables_of(tuple(expressions if others is None else others))
        features = [self._features(expression) for expression in expressions]
        distances = np.stack(
            [_total_variation([f[kind] for f in features], tables[kind]) for kind in range(3)]
        )
        # A column that only one side uses adds NULL: half of the L1 distance in that column.
        distances[0] += 0.5 * cdist(self._used(expressions), used, metric="cityblock")
        return distances

    def weights(self, params: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Divide the sigmoids by their sum and by the squared lengthscale."""
        sigmoid = expit(params[1:])
        shares = sigmoid / sigmoid.sum()
        values = shares * np.exp(-params[0])
        by_logit = values[:, None] * (np.eye(3) - shares) * (1 - sigmoid)
        return values, np.column_stack([-values, by_logit])

    def _make_tables(
        self, expressions: tuple[Expression, ...]
    ) -> tuple[FloatArray, list[ElementTable]]:
        """Collect the features of the expressions in the columns of the distance matrix."""
        features = [self._features(expression) for expression in expressions]
        return self._used(expressions), [_table([f[kind] for f in features]) for kind in range(3)]

    def _used(self, expressions: Sequence[Expression]) -> FloatArray:
        """Mark the columns (n, n_features) that each expression uses; the others hold NULL."""
        used = np.zeros((len(expressions), self._n_features))
        for row, expression in enumerate(expressions):
            require_columns(expression, self._n_features)
            used[row, [leaf.column for leaf in expression.leaves]] = 1.0
        return used


def _table(lists: Sequence[Frequencies]) -> ElementTable:
    indices: dict[Hashable, int] = {}
    for frequencies in lists:
        for element in frequencies:
            indices.setdefault(element, len(indices))
    return indices, _dense(lists, indices)[0]


def _total_variation(rows: Sequence[Frequencies], table: ElementTable) -> FloatArray:
    """Compute half the L1 distances (n, m) of two lists of frequencies.

    The dense arrays hold only elements of the table. The frequencies of all other elements add to
    the distance in full.
    """
    indices, columns = table
    dense, foreign = _dense(rows, indices)
    return 0.5 * (cdist(dense, columns, metric="cityblock") + foreign[:, None])


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


def tree_features(expression: Expression) -> Features:
    """Compute the frequencies of the base kernels, paths and subtrees of one tree.

    Paths and subtrees sum to one each. Base kernels sum to one within every column that is used;
    the caller must treat unused columns.
    """
    paths: list[str] = []
    keys: list[str] = []
    _list_paths(expression, "", paths)
    _list_subtrees(expression, keys)
    return _base_frequencies(expression), _frequencies(paths), _frequencies(keys)


def _list_paths(expression: Expression, above: str, found: list[str]) -> None:
    """Append the paths to the leaves (SOT, appendix A.1).

    A run of the same commuting operator counts once. An operator that does not commute is written
    with the number of the operand.
    """
    if not isinstance(expression, Operation):
        found.append(above + expression.canonical)
        return
    label = _operator_text(expression)
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
        key = f"({_operator_text(expression).join(keys)})"
    found.append(key)
    return key


def _operator_text(operation: Operation) -> str:
    """Return the symbol of an operator, with its column if it has one."""
    column = operation.column
    return operation.operator.symbol + ("" if column is None else f"[{column}]")


def _base_frequencies(expression: Expression) -> Frequencies:
    per_column = _count([leaf.column for leaf in expression.leaves])
    counts = _count([(leaf.canonical, leaf.column) for leaf in expression.leaves])
    return {element: count / per_column[element[1]] for element, count in counts.items()}


def _frequencies(elements: Sequence[str]) -> Frequencies:
    total = len(elements)
    return {element: count / total for element, count in _count(elements).items()}


def _count(elements: Iterable[Element]) -> dict[Element, int]:
    """Count the elements of a multiset; short lists take a third of the time of a Counter."""
    counts: dict[Element, int] = {}
    for element in elements:
        counts[element] = counts.get(element, 0) + 1
    return counts
