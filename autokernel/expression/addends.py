"""A kernel as a sum of products of leaves."""

from typing import NamedTuple

import numpy as np

from autokernel.expression.layout import n_kernel_params
from autokernel.expression.tree import Expression, Operation
from autokernel.operators import ADD, MULTIPLY
from autokernel.typing import IntArray


class Addend(NamedTuple):
    """A term of a sum, and the entries of the sum's theta that hold its parameters."""

    expression: Expression
    entries: IntArray  # (n_params,), without that of the noise variance


def addends(expression: Expression) -> list[Addend]:
    """Distribute the products of a kernel over its sums.

    The kernel is the sum of the addends. Each is a leaf, a product of leaves in the order of the
    kernel, or an operation by another operator than the two. Several addends of one product over a
    sum share parameters. The null model has none.
    """
    if not expression.leaves:
        return []
    return _expanded(expression, 0)


def _expanded(expression: Expression, start: int) -> list[Addend]:
    """List the addends of a subtree whose parameters begin at an entry of theta."""
    if not isinstance(expression, Operation) or expression.operator not in (ADD, MULTIPLY):
        return [Addend(expression, np.arange(start, start + n_kernel_params(expression)))]
    first, second = expression.operands
    ours, theirs = _expanded(first, start), _expanded(second, start + n_kernel_params(first))
    if expression.operator == ADD:
        return ours + theirs
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
