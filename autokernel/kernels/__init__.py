"""Base kernels as numerical functions; a new one needs a file and a line below."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from autokernel.kernels.base import (
    BaseKernel,
    Exponent,
    ExponentialKernel,
    Sources,
    require_base_kernels,
)
from autokernel.kernels.lin import Linear
from autokernel.kernels.mat32 import Matern32
from autokernel.kernels.mat52 import Matern52
from autokernel.kernels.null import NULL_KERNEL, NullKernel, check_not_reserved
from autokernel.kernels.pairs import BroadcastPairs, DistinctLags, LagPairs, Pairs
from autokernel.kernels.parameters import (
    ALPHA,
    CYCLE_LENGTHSCALE,
    LENGTHSCALE,
    NOISE_VARIANCE,
    OFFSET,
    PERIOD,
    VARIANCE,
    KernelParameter,
    Priors,
    Role,
    Unit,
)
from autokernel.kernels.per import Periodic
from autokernel.kernels.priors import PRESETS, LogGammaPrior, check_priors
from autokernel.kernels.rq import RationalQuadratic
from autokernel.kernels.se import SquaredExponential
from autokernel.kernels.seasonal import Seasonal, name_of_period
from autokernel.kernels.shares import AFTER, BEFORE, INSIDE, OUTSIDE, Share
from autokernel.kernels.sklearn_callable import CallableKernel

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


__all__ = [
    "AFTER",
    "ALPHA",
    "BASE_KERNELS",
    "BEFORE",
    "CYCLE_LENGTHSCALE",
    "FEW_COLUMNS",
    "INSIDE",
    "LENGTHSCALE",
    "LINEAR",
    "MANY_COLUMNS",
    "MULTI_SCALE",
    "NOISE_VARIANCE",
    "NULL_KERNEL",
    "OFFSET",
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
    "LogGammaPrior",
    "NullKernel",
    "Pairs",
    "Priors",
    "Role",
    "Seasonal",
    "Share",
    "Sources",
    "Unit",
    "check_not_reserved",
    "check_priors",
    "name_of_period",
    "require_base_kernels",
    "with_own_kernels",
]
