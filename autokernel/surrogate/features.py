"""The three multisets that SOT reads off an expression tree, as frequencies (SOT, section 3)."""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple, TypeVar

from autokernel.expression import Expression, Operation

Frequencies = Mapping[Hashable, float]
Element = TypeVar("Element", bound=Hashable)


class TreeFeatures(NamedTuple):
    """Frequencies of the building blocks of one expression; each sums to one.

    Those of the base kernels sum to one for every column that is used.
    """

    base: Frequencies
    paths: Frequencies
    subtrees: Frequencies


@lru_cache(maxsize=8192)
def tree_features(expression: Expression) -> TreeFeatures:
    """Read the frequencies off a tree; unused columns are left to the caller."""
    return TreeFeatures(
        base=_base_frequencies(expression),
        paths=_frequencies(_paths(expression, "")),
        subtrees=_frequencies(_subtrees(expression)),
    )


def _base_frequencies(expression: Expression) -> Frequencies:
    """Frequencies of the base kernels within each used column."""
    per_column = _count([leaf.column for leaf in expression.leaves])
    counts = _count([(leaf.kernel, leaf.column) for leaf in expression.leaves])
    return {element: count / per_column[element[1]] for element, count in counts.items()}


# Trees of a search have most of their subtrees in common, so both are kept for each subtree.


@lru_cache(maxsize=8192)
def _paths(expression: Expression, above: str) -> tuple[str, ...]:
    """List the paths to the leaves, runs of one operator counted once (SOT, appendix A.1)."""
    if not isinstance(expression, Operation):
        return (above + expression.canonical,)
    here = above if above.endswith(expression.operator) else above + expression.operator
    return _paths(expression.left, here) + _paths(expression.right, here)


@lru_cache(maxsize=8192)
def _subtrees(expression: Expression) -> tuple[str, ...]:
    """List the keys of all subtrees, that of the whole first; left and right may swap."""
    if not isinstance(expression, Operation):
        return (expression.canonical,)
    left, right = _subtrees(expression.left), _subtrees(expression.right)
    first, second = sorted((left[0], right[0]))
    return (f"({first}{expression.operator}{second})", *left, *right)


def _frequencies(elements: Sequence[str]) -> Frequencies:
    """Turn a multiset into frequencies."""
    total = len(elements)
    return {element: count / total for element, count in _count(elements).items()}


def _count(elements: Iterable[Element]) -> dict[Element, int]:
    """Count the elements of a multiset; for a few, this takes a third of a Counter's time."""
    counts: dict[Element, int] = {}
    for element in elements:
        counts[element] = counts.get(element, 0) + 1
    return counts
