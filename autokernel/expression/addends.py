"""A kernel as a sum of products of leaves."""

from itertools import chain
from typing import NamedTuple

import numpy as np

from autokernel.expression.layout import n_kernel_params
from autokernel.expression.tree import Expression, Leaf, Operation
from autokernel.operators import ADD, MULTIPLY
from autokernel.typing import IntArray


class Addend(NamedTuple):
    """A term of a sum, and the entries of the sum's theta that hold its parameters."""

    expression: Expression
    entries: IntArray  # (n_params,), without that of the noise variance


def addends(expression: Expression) -> list[Addend]:
    """Distribute the products of a kernel over its sums.

    The kernel is the sum of the addends. Each is a leaf, a product of leaves in the order of the
    kernel, or a product in which an operator is neither of the two and has no shares. An operand of
    a change-point is multiplied by its share, a leaf with the parameters of the operator. Several
    addends of one product over a sum, or of one change-point, have parameters in common. The null
    model has no addends.
    """
    if not expression.leaves:
        return []
    return _expanded(expression, 0)


def _expanded(expression: Expression, start: int) -> list[Addend]:
    """List the addends of a subtree whose parameters begin at an entry of theta."""
    own = Addend(expression, np.arange(start, start + n_kernel_params(expression)))
    if not isinstance(expression, Operation):
        return [own]
    operator = expression.operator
    start += len(operator.parameters)
    below = []
    for operand in expression.operands:
        below.append(_expanded(operand, start))
        start += n_kernel_params(operand)
    if operator == ADD:
        return list(chain.from_iterable(below))
    if operator == MULTIPLY:
        return _products(*below)
    if not operator.shares or expression.column is None:
        return [own]
    entries = own.entries[: len(operator.parameters)]
    shares = [Addend(Leaf(share, expression.column), entries) for share in operator.shares]
    weighed = (
        _products([share], of_operand) for share, of_operand in zip(shares, below, strict=True)
    )
    return list(chain.from_iterable(weighed))


def _products(ours: list[Addend], theirs: list[Addend]) -> list[Addend]:
    """Multiply each of some addends by each of others."""
    return [
        Addend(_product(one.expression, other.expression), np.append(one.entries, other.entries))
        for one in ours
        for other in theirs
    ]


def _product(one: Expression, other: Expression) -> Expression:
    """Multiply two products, grouped from the left."""
    product = one
    for factor in other.terms(MULTIPLY):
        product = product * factor
    return product
