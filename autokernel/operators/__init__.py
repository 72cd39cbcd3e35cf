"""Operators that join kernels: one file each, and a line in the registry."""

from collections.abc import Collection, Iterable, Mapping
from types import MappingProxyType

from autokernel.operators.arithmetic import Add, Multiply
from autokernel.operators.base import Operands, Operator

ADD, MULTIPLY = Add(), Multiply()

OPERATORS: Mapping[str, Operator] = MappingProxyType(
    {operator.symbol: operator for operator in (ADD, MULTIPLY)}
)
"""The operators that ship, by symbol."""


def require_operators(own: Iterable[object], *, base_kernels: Collection[str]) -> None:
    """Check operators from outside, beside base kernels of these names.

    Raises
    ------
    TypeError
        If one is no operator.
    ValueError
        If one is not valid, or its symbol stands for something else.
    """
    known = dict(OPERATORS)
    for operator in own:
        if not isinstance(operator, Operator):
            raise TypeError(f"operators must hold symbols or Operator objects, got {operator!r}")
        operator.check()
        if operator.symbol in base_kernels:
            raise ValueError(f"operators must not have the name of a base kernel, got {operator!r}")
        if known.setdefault(operator.symbol, operator) != operator:
            raise ValueError(f"operators must have different symbols, got two for {operator!r}")


__all__ = ["ADD", "MULTIPLY", "OPERATORS", "Operands", "Operator", "require_operators"]
