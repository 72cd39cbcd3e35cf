"""The three multisets that SOT reads off an expression tree, as frequencies (SOT, section 3)."""

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import NamedTuple

from autokernel.expression import Expression, Operation

Frequencies = Mapping[Hashable, float]


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
    leaves = expression.leaves
    per_column = Counter(leaf.column for leaf in leaves)
    counts = Counter((leaf.kernel, leaf.column) for leaf in leaves)
    return {element: count / per_column[element[1]] for element, count in counts.items()}


def _paths(expression: Expression, above: str) -> Iterator[str]:
    """Yield the paths to the leaves, runs of one operator counted once (SOT, appendix A.1)."""
    if not isinstance(expression, Operation):
        yield above + expression.canonical
        return
    here = above if above.endswith(expression.operator) else above + expression.operator
    yield from _paths(expression.left, here)
    yield from _paths(expression.right, here)


def _subtrees(expression: Expression) -> list[str]:
    """List the keys of all subtrees, that of the whole first; left and right may swap."""
    if not isinstance(expression, Operation):
        return [expression.canonical]
    left, right = _subtrees(expression.left), _subtrees(expression.right)
    first, second = sorted((left[0], right[0]))
    return [f"({first}{expression.operator}{second})", *left, *right]


def _frequencies(elements: Iterable[str]) -> Frequencies:
    """Turn a multiset into frequencies."""
    counts = Counter(elements)
    total = counts.total()
    return {element: count / total for element, count in counts.items()}
