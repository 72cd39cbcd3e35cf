"""Operators that join kernels; a new one needs a file and a line in the registry."""

from collections.abc import Collection, Iterable, Mapping
from types import MappingProxyType

from autokernel.kernels import check_not_reserved
from autokernel.operators.arithmetic import ADD, MULTIPLY
from autokernel.operators.base import Operands, Operator
from autokernel.operators.changes import CHANGE_POINT, CHANGE_WINDOW

OPERATORS: Mapping[str, Operator] = MappingProxyType(
    {operator.symbol: operator for operator in (ADD, MULTIPLY, CHANGE_POINT, CHANGE_WINDOW)}
)
"""The built-in operators by symbol."""


def require_operators(own: Iterable[object], *, base_kernels: Collection[str]) -> list[Operator]:
    """Check operators given by the user, for use with base kernels of these names.

    Raises
    ------
    TypeError
        If one is not an operator.
    ValueError
        If one is not valid, or its symbol already has another meaning.
    """
    known = dict(OPERATORS)
    for symbol in known.keys() & set(base_kernels):
        raise ValueError(f"{symbol} is an operator and cannot be the name of a base kernel")
    checked = []
    for operator in own:
        if isinstance(operator, type) and issubclass(operator, Operator):
            raise TypeError(f"operators must hold objects, got a class: call {operator.__name__}()")
        if not isinstance(operator, Operator):
            raise TypeError(f"operators must hold symbols or Operator objects, got {operator!r}")
        operator.check()
        check_not_reserved("operators", operator.symbol)
        if operator.symbol in base_kernels:
            raise ValueError(f"operators must not have the name of a base kernel, got {operator!r}")
        if known.setdefault(operator.symbol, operator) != operator:
            raise ValueError(f"operators must have different symbols, got two for {operator!r}")
        checked.append(operator)
    return checked


__all__ = [
    "ADD",
    "CHANGE_POINT",
    "CHANGE_WINDOW",
    "MULTIPLY",
    "OPERATORS",
    "Operands",
    "Operator",
    "require_operators",
]
