"""The exchanges of nodes of an expression that do not change the kernel."""

from collections.abc import Iterator
from itertools import pairwise

from autokernel.expression.canonical import arrange, node_starts, outermost_terms
from autokernel.expression.tree import Expression, Operation


def node_swaps(expression: Expression) -> list[tuple[int, ...]]:
    """List the exchanges of equal operands, as permutations of the nodes.

    Parameters
    ----------
    expression : Expression
        A kernel such as ``SE[0] + SE[0]``, whose leaves may be exchanged.

    Returns
    -------
    list of tuple of int
        For each node, in order, the index of the node that replaces it. Only exchanges of
        neighbours in canonical order are listed. Their compositions are all permutations that give
        the same kernel, of which there may be very many.
    """
    swaps = []
    for one, other in _equal_terms(expression, 0):
        taken = dict(zip(one + other, other + one, strict=True))
        swaps.append(tuple(taken.get(node, node) for node in range(len(expression.nodes))))
    return swaps


def _equal_terms(expression: Expression, start: int) -> Iterator[tuple[list[int], list[int]]]:
    """Yield the nodes of each pair of equal, exchangeable terms that are neighbours in order."""
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
