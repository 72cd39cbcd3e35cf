"""One tree for all trees that differ only by commutativity and associativity."""

from collections.abc import Sequence
from functools import reduce

from autokernel.expression.tree import OPERATORS, Expression, Operation


def arrange(expression: Expression) -> tuple[Expression, list[int]]:
    """Sort the operands of every sum and product by their canonical texts.

    Returns
    -------
    Expression
        The same for all trees with one canonical text.
    list of int
        Where each of its leaves, from left to right, stands among those of ``expression``.
    """
    if expression.n_leaves == 1:
        return expression, [0]
    operator, operands = outermost(expression)
    arranged = [arrange(operand) for operand in operands]
    starts = leaf_starts(operands)
    order = sorted(range(len(operands)), key=lambda place: operands[place].canonical)
    leaves = [starts[place] + leaf for place in order for leaf in arranged[place][1]]
    return join(operator, [arranged[place][0] for place in order]), leaves


def outermost(expression: Expression) -> tuple[str, tuple[Expression, ...]]:
    """Return the operator of an operation and its operands; of a leaf, itself as the only one."""
    operator = next((o for o in OPERATORS if len(expression.operands(o)) > 1), OPERATORS[0])
    return operator, expression.operands(operator)


def join(operator: str, operands: Sequence[Expression]) -> Expression:
    """Join one or more expressions by an operator, from the left."""
    return reduce(lambda left, right: Operation(operator, left, right), operands)


def leaf_starts(operands: Sequence[Expression]) -> list[int]:
    """Where the leaves of each operand begin among those of all."""
    starts = [0]
    for operand in operands[:-1]:
        starts.append(starts[-1] + operand.n_leaves)
    return starts
