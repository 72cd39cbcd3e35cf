"""Relations between kernels: removal of a term, and nodes that two kernels share."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from autokernel.expression.canonical import (
    join,
    joining_operator,
    node_starts,
    outermost_terms,
)
from autokernel.expression.tree import Expression, Operation
from autokernel.operators import Operator


class Split(NamedTuple):
    """A kernel split into one term of one of its sums, and the rest.

    The nodes of both are given by their indices among the nodes of the whole kernel.
    """

    rest: Expression
    rest_nodes: tuple[int, ...]
    term: Expression
    term_nodes: tuple[int, ...]


def splits(expression: Expression) -> Iterator[Split]:
    """Yield the splits of a kernel by each term of its sums.

    A sum is split by each of its terms, any other operation by the splits of its operands.
    """
    if not isinstance(expression, Operation):
        return
    terms = outermost_terms(expression)
    starts = node_starts(expression, terms)
    for number, (term, start) in enumerate(zip(terms, starts, strict=True)):
        before, after = terms[:number], terms[number + 1 :]
        ways: list[tuple[list[Expression], Expression, Sequence[int]]]
        if expression.operator.is_additive:
            ways = [([], term, range(len(term.nodes)))]
        else:
            ways = [([split.rest], split.term, split.term_nodes) for split in splits(term)]
        for left, taken, nodes in ways:
            taken_nodes = tuple(start + node for node in nodes)
            kept = tuple(n for n in range(len(expression.nodes)) if n not in taken_nodes)
            yield Split(join(expression, [*before, *left, *after]), kept, taken, taken_nodes)


def meeting_operator(expression: Expression, one: int, other: int) -> Operator:
    """Return the operator at the lowest common ancestor of two different nodes."""
    if not 0 <= min(one, other) < max(one, other) < len(expression.nodes):
        raise IndexError(f"two nodes must be in {expression}, got {one} and {other}")
    assert isinstance(expression, Operation)  # it has two nodes
    terms = outermost_terms(expression)
    for term, start in zip(terms, node_starts(expression, terms), strict=True):
        inside = range(start, start + len(term.nodes))
        if one in inside and other in inside:
            return meeting_operator(term, one - start, other - start)
    return expression.operator


def align(one: Expression, other: Expression) -> list[tuple[int, int]]:
    """Pair equal nodes of two kernels that have the same position in both.

    Terms of sums are matched with terms and factors of products with factors, beginning with those
    that share the most nodes. Operands of an operator that does not commute are matched in order.

    Returns
    -------
    list of (int, int)
        Indices among the nodes of ``one`` and of ``other``.
    """
    operator = joining_operator(one, other)
    if operator is not None:
        return _align_terms(_numbered(one, operator), _numbered(other, operator))
    if not isinstance(one, Operation) and not isinstance(other, Operation):
        return [(node, node) for node in range(len(one.nodes))] if one == other else []
    if isinstance(one, Operation) and isinstance(other, Operation):
        same = (one.operator, one.column) == (other.operator, other.column)
        return _align_operands(one, other) if same else []
    # One kernel is a leaf: it is matched with the operand that shares the most nodes with it.
    if isinstance(one, Operation):
        ways = [
            [(start + a, b) for a, b in align(operand, other)]
            for operand, start in _numbered_operands(one)
        ]
    else:
        assert isinstance(other, Operation)
        ways = [
            [(a, start + b) for a, b in align(one, operand)]
            for operand, start in _numbered_operands(other)
        ]
    return max(ways, key=len)


def _align_operands(one: Operation, other: Operation) -> list[tuple[int, int]]:
    """Pair the nodes of two operations with the same operator, operand by operand."""
    pairs = [(0, 0)] if one.operator.parameters else []
    operands = zip(_numbered_operands(one), _numbered_operands(other), strict=True)
    for (mine, i), (yours, k) in operands:
        pairs += [(i + a, k + b) for a, b in align(mine, yours)]
    return pairs


def _align_terms(
    ours: Sequence[tuple[Expression, int]], theirs: Sequence[tuple[Expression, int]]
) -> list[tuple[int, int]]:
    """Match terms of a commuting operator, beginning with those that share the most nodes."""
    options = [
        ([(i + a, k + b) for a, b in align(mine, yours)], i, k, mine.n_leaves + yours.n_leaves)
        for mine, i in ours
        for yours, k in theirs
    ]
    pairs: list[tuple[int, int]] = []
    matched: set[tuple[str, int]] = set()
    for found, i, k, _ in sorted(options, key=lambda option: (-len(option[0]), option[3])):
        if not matched & {("one", i), ("other", k)}:
            matched |= {("one", i), ("other", k)}
            pairs += found
    return sorted(pairs)


def _numbered(expression: Expression, operator: Operator) -> list[tuple[Expression, int]]:
    """List the terms of a commuting operator, each with the index of its first node."""
    terms = expression.terms(operator)
    if len(terms) == 1:
        return [(expression, 0)]
    assert isinstance(expression, Operation)
    return list(zip(terms, node_starts(expression, terms), strict=True))


def _numbered_operands(expression: Operation) -> list[tuple[Expression, int]]:
    """List the operands, each with the index of its first node."""
    starts = node_starts(expression, expression.operands)
    return list(zip(expression.operands, starts, strict=True))
