"""Base kernels, operators, their parameters and priors."""

from collections.abc import Collection, Iterable, Mapping
from types import MappingProxyType

from autokernel.kernels.base import (
    BaseKernel,
    Exponent,
    ExponentialKernel,
    Sources,
    require_base_kernels,
)
from autokernel.kernels.custom import CallableKernel
from autokernel.kernels.linear import NULL_KERNEL, Linear, NullKernel, check_not_reserved
from autokernel.kernels.operators import (
    ADD,
    CHANGE_POINT,
    CHANGE_WINDOW,
    MULTIPLY,
    Operands,
    Operator,
)
from autokernel.kernels.pairs import BroadcastPairs, DistinctLags, LagPairs, Pairs
from autokernel.kernels.parameters import (
    ALPHA,
    CYCLE_LENGTHSCALE,
    LENGTHSCALE,
    NOISE_VARIANCE,
    OFFSET,
    PERIOD,
    PRESETS,
    VARIANCE,
    KernelParameter,
    LogGammaPrior,
    Priors,
    Role,
    Unit,
    check_priors,
)
from autokernel.kernels.periodic import Periodic, Seasonal, name_of_period
from autokernel.kernels.shares import AFTER, BEFORE, INSIDE, OUTSIDE, Share
from autokernel.kernels.stationary import Matern32, Matern52, RationalQuadratic, SquaredExponential

SMOOTH, LINEAR, PERIODIC, MULTI_SCALE = (
    SquaredExponential(),
    Linear(),
    Periodic(),
    RationalQuadratic(),
)

BASE_KERNELS: Mapping[str, BaseKernel] = MappingProxyType(
    {
        kernel.name: kernel
        for kernel in (SMOOTH, LINEAR, PERIODIC, MULTI_SCALE, Matern32(), Matern52())
    }
)
"""The built-in base kernels by name."""

FEW_COLUMNS = (SMOOTH, LINEAR, PERIODIC, MULTI_SCALE)
"""The base kernels that ``base_kernels="auto"`` selects for up to two columns (SOT, section 4)."""

MANY_COLUMNS = (SMOOTH, MULTI_SCALE)
"""The base kernels that ``base_kernels="auto"`` selects for more than two columns."""


def with_own_kernels(own: Iterable[BaseKernel]) -> Mapping[str, BaseKernel]:
    """Return the built-in base kernels and the user's own by name.

    Raises
    ------
    ValueError
        If a kernel of the user has the name of another kernel or of the null model.
    """
    known = dict(BASE_KERNELS)
    for kernel in own:
        check_not_reserved("base_kernels", kernel.name)
        if known.setdefault(kernel.name, kernel) != kernel:
            raise ValueError(
                f"base_kernels must have different names, got {kernel!r} beside "
                f"{known[kernel.name]!r}: give it another name"
            )
    return MappingProxyType(known)


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
    "AFTER",
    "ALPHA",
    "BASE_KERNELS",
    "BEFORE",
    "CHANGE_POINT",
    "CHANGE_WINDOW",
    "CYCLE_LENGTHSCALE",
    "FEW_COLUMNS",
    "INSIDE",
    "LENGTHSCALE",
    "LINEAR",
    "MANY_COLUMNS",
    "MULTIPLY",
    "MULTI_SCALE",
    "NOISE_VARIANCE",
    "NULL_KERNEL",
    "OFFSET",
    "OPERATORS",
    "OUTSIDE",
    "PERIOD",
    "PERIODIC",
    "PRESETS",
    "SMOOTH",
    "VARIANCE",
    "BaseKernel",
    "BroadcastPairs",
    "CallableKernel",
    "DistinctLags",
    "Exponent",
    "ExponentialKernel",
    "KernelParameter",
    "LagPairs",
    "Linear",
    "LogGammaPrior",
    "Matern32",
    "Matern52",
    "NullKernel",
    "Operands",
    "Operator",
    "Pairs",
    "Periodic",
    "Priors",
    "RationalQuadratic",
    "Role",
    "Seasonal",
    "Share",
    "Sources",
    "SquaredExponential",
    "Unit",
    "check_not_reserved",
    "check_priors",
    "name_of_period",
    "require_base_kernels",
    "require_operators",
    "with_own_kernels",
]
