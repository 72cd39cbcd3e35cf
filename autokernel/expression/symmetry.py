"""Which leaves of an expression may change places without changing the kernel."""

from collections.abc import Iterator
from itertools import pairwise

from autokernel.expression.canonical import arrange, leaf_starts, outermost
from autokernel.expression.tree import Expression


def leaf_swaps(expression: Expression) -> list[tuple[int, ...]]:
    """List exchanges of equal operands, as orders of the leaves.

    Parameters
    ----------
    expression : Expression
        Such as ``SE[0] + SE[0]``, whose leaves may change places.

    Returns
    -------
    list of tuple of int
        For each leaf, from left to right, the number of the leaf that takes its place. One after
        another they make all orders that give the same kernel; as there may be very many, only the
        exchanges of neighbours in canonical order are listed.
    """
    swaps = []
    for one, other in _equal_operands(expression, 0):
        places = dict(zip(one + other, other + one, strict=True))
        swaps.append(tuple(places.get(leaf, leaf) for leaf in range(expression.n_leaves)))
    return swaps


def _equal_operands(expression: Expression, start: int) -> Iterator[tuple[list[int], list[int]]]:
    """Yield the leaves of operands that are neighbours in canonical order, and equal."""
    if expression.n_leaves == 1:
        return
    read = []
    operands = outermost(expression)[1]
    for operand, offset in zip(operands, leaf_starts(operands), strict=True):
        yield from _equal_operands(operand, start + offset)
        leaves = [start + offset + leaf for leaf in arrange(operand)[1]]
        read.append((operand.canonical, leaves))
    for (text, one), (other_text, other) in pairwise(sorted(read)):
        if text == other_text:
            yield one, other
