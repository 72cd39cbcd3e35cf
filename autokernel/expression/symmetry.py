"""Which nodes of an expression may change places without changing the kernel."""

from collections.abc import Iterator
from itertools import pairwise

from autokernel.expression.canonical import arrange, node_starts, outermost_terms
from autokernel.expression.tree import Expression, Operation


def node_swaps(expression: Expression) -> list[tuple[int, ...]]:
    """List exchanges of equal operands, as orders of the nodes.

    Parameters
    ----------
    expression : Expression
        Such as ``SE[0] + SE[0]``, whose leaves may change places.

    Returns
    -------
    list of tuple of int
        For each node, in their order, the number of the node that takes its place. One after
        another they make all orders that give the same kernel; as there may be very many, only the
        exchanges of neighbours in canonical order are listed.
    """
    swaps = []
    for one, other in _equal_terms(expression, 0):
        taken = dict(zip(one + other, other + one, strict=True))
        swaps.append(tuple(taken.get(node, node) for node in range(len(expression.nodes))))
    return swaps


def _equal_terms(expression: Expression, start: int) -> Iterator[tuple[list[int], list[int]]]:
    """Yield the nodes of terms that may change places, are neighbours in order, and equal."""
    if not isinstance(expression, Operation):
        return
    read = []
    terms = outermost_terms(expression)
    for term, offset in zip(terms, node_starts(expression, terms), strict=True):
        yield from _equal_terms(term, start + offset)
        read.append((term.canonical, [start + offset + node for node in arrange(term).nodes]))
    if not expression.operator.commutes:
        return
    for (text, one), (other_text, other) in pairwise(sorted(read)):
        if text == other_text:
            yield one, other
