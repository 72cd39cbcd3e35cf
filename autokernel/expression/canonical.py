"""The canonical tree of all trees that differ only by commutativity and associativity."""

from collections.abc import Sequence
from functools import reduce
from typing import NamedTuple

from autokernel.expression.tree import Expression, Leaf, Operation
from autokernel.operators import Operator


class Arranged(NamedTuple):
    """The canonical tree of an expression, and the origin of its nodes."""

    expression: Expression
    nodes: list[int]  # for each of its nodes, the index among the nodes of the original tree


def arrange(expression: Expression) -> Arranged:
    """Sort the terms of every operator that commutes by their texts.

    The result is the same for all trees with one canonical text. The order depends on the names
    that users give to base kernels only if nothing else distinguishes two terms.
    """
    if not isinstance(expression, Operation):
        return Arranged(expression, list(range(len(expression.nodes))))  # one of a leaf
    terms = outermost_terms(expression)
    arranged = [arrange(term) for term in terms]
    starts = node_starts(expression, terms)
    order = list(range(len(terms)))
    if expression.operator.commutes:
        order.sort(key=lambda number: (seed_text(terms[number]), terms[number].canonical))
    own = [0] if expression.operator.parameters else []
    nodes = [starts[number] + node for number in order for node in arranged[number].nodes]
    joined = join(expression, [arranged[number].expression for number in order])
    return Arranged(joined, [*own, *nodes])


def seed_text(expression: Expression) -> str:
    """Return the canonical text with the names that the classes of the base kernels declare.

    It seeds random numbers, so that a kernel under another name has the same fit.
    """
    if all(leaf.kernel.name == leaf.kernel.default_name for leaf in expression.leaves):
        return expression.canonical
    return _renamed(expression).canonical


def _renamed(expression: Expression) -> Expression:
    """Replace each base kernel by the same one under the name that its class declares."""
    if isinstance(expression, Operation):
        return expression.with_operands([_renamed(operand) for operand in expression.operands])
    (leaf,) = expression.leaves
    return Leaf(leaf.kernel.with_default_name(), leaf.column)


def outermost_terms(expression: Operation) -> tuple[Expression, ...]:
    """Return the terms if the operator commutes, and the operands otherwise."""
    if expression.operator.commutes:
        return expression.terms(expression.operator)
    return expression.operands


def join(like: Operation, terms: Sequence[Expression]) -> Expression:
    """Join one or more terms by the operator of ``like``, from the left if it commutes."""
    if not like.operator.commutes:
        return like.with_operands(terms)
    return reduce(lambda left, right: Operation(like.operator, left, right), terms)


def joining_operator(*expressions: Expression) -> Operator | None:
    """Return the commuting operator of lowest precedence at the roots of expressions."""
    best: Operator | None = None
    for expression in expressions:
        if isinstance(expression, Operation) and expression.operator.commutes:
            own = expression.operator
            best = own if best is None or own.precedence < best.precedence else best
    return best


def node_starts(expression: Operation, terms: Sequence[Expression]) -> list[int]:
    """Return the index of each term's first node among the nodes of the whole expression."""
    starts = [1 if expression.operator.parameters else 0]
    for term in terms[:-1]:
        starts.append(starts[-1] + len(term.nodes))
    return starts
