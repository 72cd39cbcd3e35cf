"""Base kernels: numbers only. A new one is a file here and a line in ``BASE_KERNELS``."""

from collections.abc import Mapping
from types import MappingProxyType

from autokernel.kernels.base import BaseKernel, ExponentialKernel, Pairs, PlainKernel
from autokernel.kernels.lin import Linear
from autokernel.kernels.per import Periodic
from autokernel.kernels.rq import RationalQuadratic
from autokernel.kernels.se import SquaredExponential

BASE_KERNELS: Mapping[str, BaseKernel] = MappingProxyType(
    {
        kernel.name: kernel
        for kernel in (SquaredExponential(), Linear(), Periodic(), RationalQuadratic())
    }
)

__all__ = ["BASE_KERNELS", "BaseKernel", "ExponentialKernel", "Pairs", "PlainKernel"]
