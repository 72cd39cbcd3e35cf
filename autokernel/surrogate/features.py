"""The three multisets by which SOT describes a tree, as frequencies (SOT, section 3)."""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple, TypeVar

from autokernel.expression import Expression, Operation

Frequencies = Mapping[Hashable, float]
Element = TypeVar("Element", bound=Hashable)

_MOST = 8192  # number of trees whose features are cached


class TreeFeatures(NamedTuple):
    """Frequencies of the building blocks of one expression.

    Paths and subtrees sum to one each. Base kernels sum to one within every column that is used.
    """

    base: Frequencies
    paths: Frequencies
    subtrees: Frequencies


class FeatureReader:
    """Computes the frequencies of trees, and caches the latest results.

    The trees of a search have most of their subtrees in common, so that each subtree is cached.
    The caller must treat unused columns.
    """

    def __init__(self) -> None:
        self._read = lru_cache(_MOST)(self._read_tree)
        self._paths = lru_cache(_MOST)(self._list_paths)
        self._subtrees = lru_cache(_MOST)(self._list_subtrees)

    def __call__(self, expression: Expression) -> TreeFeatures:
        """Return the frequencies of one tree."""
        return self._read(expression)

    def _read_tree(self, expression: Expression) -> TreeFeatures:
        """Compute the frequencies of a tree."""
        return TreeFeatures(
            base=_base_frequencies(expression),
            paths=_frequencies(self._paths(expression, "")),
            subtrees=_frequencies(self._subtrees(expression)),
        )

    def _list_paths(self, expression: Expression, above: str) -> tuple[str, ...]:
        """List the paths to the leaves (SOT, appendix A.1).

        A run of the same commuting operator counts once. An operator that does not commute is
        written with the number of the operand.
        """
        if not isinstance(expression, Operation):
            return (above + expression.canonical,)
        label = _label(expression)
        if expression.operator.commutes:
            here = above if above.endswith(label) else above + label
            ways = [here] * len(expression.operands)
        else:
            ways = [f"{above}{label}{number}:" for number in range(len(expression.operands))]
        paths = [self._paths(e, way) for e, way in zip(expression.operands, ways, strict=True)]
        return tuple(path for of_operand in paths for path in of_operand)

    def _list_subtrees(self, expression: Expression) -> tuple[str, ...]:
        """List the keys of all subtrees, the whole tree first.

        The keys do not depend on the order of the operands of a commuting operator.
        """
        if not isinstance(expression, Operation):
            return (expression.canonical,)
        below = [self._subtrees(operand) for operand in expression.operands]
        keys = [keys[0] for keys in below]
        if expression.operator.commutes:
            keys.sort()
        whole = f"({_label(expression).join(keys)})"
        return (whole, *(key for of_operand in below for key in of_operand))


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
