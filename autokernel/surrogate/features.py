"""The three multisets by which SOT describes a tree, as frequencies (SOT, section 3)."""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import NamedTuple, TypeVar

from autokernel.expression import Expression, Operation

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
