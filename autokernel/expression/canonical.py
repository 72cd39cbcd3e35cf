"""One tree for all trees that differ only by commutativity and associativity."""

from collections.abc import Sequence
from functools import reduce
from typing import NamedTuple

from autokernel.expression.tree import Expression, Leaf, Operation
from autokernel.operators import Operator


class Arranged(NamedTuple):
    """The tree that stands for all that are equal to it, and where its nodes come from."""

    expression: Expression
    nodes: list[int]  # index of each of its nodes among those of the tree that was arranged


def arrange(expression: Expression) -> Arranged:
    """Sort the terms of every operator that commutes by their texts.

    The result is the same for all trees with one canonical text. The order does not depend on the
    names that base kernels go by, but where nothing else tells two terms apart.
    """
    if not isinstance(expression, Operation):
        return Arranged(expression, [0])
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
    """Canonical text with the names that the classes of the base kernels give themselves.

    Random numbers are seeded by it: a kernel that goes by another name has the same fit.
    """
    if all(leaf.kernel.name == leaf.kernel.default_name for leaf in expression.leaves):
        return expression.canonical
    return _renamed(expression).canonical


def _renamed(expression: Expression) -> Expression:
    """Replace base kernels by others of the same class with its own name."""
    if isinstance(expression, Operation):
        return expression.with_operands([_renamed(operand) for operand in expression.operands])
    (leaf,) = expression.leaves
    return Leaf(leaf.kernel.with_default_name(), leaf.column)


def outermost_terms(expression: Operation) -> tuple[Expression, ...]:
    """Return the terms of an operator that commutes, the operands of one that does not."""
    if expression.operator.commutes:
        return expression.terms(expression.operator)
    return expression.operands


def join(like: Operation, terms: Sequence[Expression]) -> Expression:
    """Join one or more terms as an operation does, from the left where its operator commutes."""
    if not like.operator.commutes:
        return like.with_operands(terms)
    return reduce(lambda left, right: Operation(like.operator, left, right), terms)


def joining_operator(*expressions: Expression) -> Operator | None:
    """Return the operator that commutes and binds least at the roots of some expressions."""
    operators = [e.operator for e in expressions if isinstance(e, Operation)]
    commuting = [operator for operator in operators if operator.commutes]
    return min(commuting, key=lambda operator: operator.precedence, default=None)


def node_starts(expression: Operation, terms: Sequence[Expression]) -> list[int]:
    """Where the nodes of each term begin among those of the whole expression."""
    starts = [1 if expression.operator.parameters else 0]
    for term in terms[:-1]:
        starts.append(starts[-1] + len(term.nodes))
    return starts
