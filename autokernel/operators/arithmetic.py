"""The sum and the product of kernels."""

from collections.abc import Iterator, Sequence

import numpy as np

from autokernel.operators.base import Operands, Operator
from autokernel.typing import FloatArray


class Add(Operator):
    """The sum of kernels."""

    symbol = "+"
    commutes = True
    is_additive = True
    broadcasts = True
    precedence = 1

    def value(self, at: Operands) -> FloatArray:
        """Add the operands."""
        return _reduce(np.add, at.values)

    def adjoints(self, at: Operands, adjoint: FloatArray) -> Iterator[FloatArray]:
        """Yield the unchanged derivative for each operand."""
        for _ in at.values:
            yield adjoint

    def __reduce__(self) -> str:
        return "ADD"  # the object of this module: trees compare operators often


class Multiply(Operator):
    """The product of kernels."""

    symbol = "*"
    commutes = True
    broadcasts = True
    precedence = 2

    def value(self, at: Operands) -> FloatArray:
        """Multiply the operands."""
        return _reduce(np.multiply, at.values)

    def adjoints(self, at: Operands, adjoint: FloatArray) -> Iterator[FloatArray]:
        """Yield the derivative times the other factors, without division as these may be zero."""
        for number in range(len(at.values)):
            others = [*at.values[:number], *at.values[number + 1 :]]
            yield _reduce(np.multiply, [adjoint, *others])

    def __reduce__(self) -> str:
        return "MULTIPLY"


ADD, MULTIPLY = Add(), Multiply()


def _reduce(ufunc: np.ufunc, arrays: Sequence[FloatArray]) -> FloatArray:
    """Combine arrays elementwise into a new one, or return the only one."""
    if len(arrays) == 1:
        return arrays[0]
    out = ufunc(arrays[0], arrays[1])
    for array in arrays[2:]:
        ufunc(out, array, out=out)
    return out
