"""The linear base kernel, and the kernel of noise alone."""

from dataclasses import replace
from typing import ClassVar

import numpy as np
from sklearn.gaussian_process.kernels import ConstantKernel, DotProduct, Kernel

from autokernel.kernels.base import BaseKernel, Declared, Sources
from autokernel.kernels.pairs import Pairs
from autokernel.kernels.parameters import OFFSET, VARIANCE
from autokernel.kernels.stationary import around
from autokernel.typing import FloatArray

SLOPE_VARIANCE = replace(VARIANCE, prior=(1.0, 0.25))
"""A line from edge to edge has a squared slope of twelve, see docs/theory.md."""


class Linear(BaseKernel):
    """``v x x' + c``; SOT appendix A.4, item 3, but for the prior of v."""

    name = "LIN"
    parameters = (SLOPE_VARIANCE, OFFSET)
    words = "linear"
    noun = "straight line"
    formula = (
        r"\left(<variance>\,\frac{<x><from>}{<scale>} \cdot \frac{<x>'<from>}{<scale>}"
        r" + <offset>\right)"
    )
    sources = Sources(
        gpytorch=(
            "(valued(Linear(active_dims=[{column}]), variance={variance}) "
            "+ valued(ConstantKernel(active_dims=[{column}]), constant={offset}))"
        ),
        gpflow=(
            "(kernels.Linear({variance}, active_dims=[{column}]) "
            "+ kernels.Constant({offset}, active_dims=[{column}]))"
        ),
    )
    broadcasts = True
    closed_under_sums = True  # variances and offsets add up
    is_linear = True

    def value(self, params: FloatArray, pairs: Pairs) -> FloatArray:
        """Compute the kernel values, elementwise over the pairs."""
        variance, offset = params
        value = pairs.product * variance
        value += offset
        return value

    def gradient(self, params: FloatArray, pairs: Pairs, adjoint: FloatArray) -> FloatArray:
        """Compute the gradient (n_params,) of ``sum(adjoint * value)`` in the log parameters."""
        variance, offset = params
        return np.array([variance * (adjoint @ pairs.product), offset * adjoint.sum()])

    def to_sklearn(self, params: FloatArray, *, scale: float) -> Kernel:
        """Build ``ConstantKernel * DotProduct``: ``v x x' + c = v (x x' + c / v)``."""
        variance, offset = params
        slope = variance / scale**2
        sigma_0 = scale * np.sqrt(offset / variance)
        return ConstantKernel(slope, around(slope)) * DotProduct(sigma_0, around(sigma_0))


class NullKernel(Declared):
    """The kernel whose values are zero; it acts on no column and has no parameters.

    It is no base kernel, as it cannot be joined with others. Its name is reserved for it.
    """

    name: ClassVar[str] = "NOISE"
    has_many_modes: ClassVar[bool] = False
    broadcasts: ClassVar[bool] = True

    @property
    def label(self) -> str:
        """The name in expressions."""
        return self.name


NULL_KERNEL = NullKernel()


def check_not_reserved(argument: str, name: str) -> None:
    """Raise a ``ValueError`` if a kernel or operator of the user has the name of the null model."""
    if name == NULL_KERNEL.name:
        raise ValueError(
            f"{argument} must not hold the name {name!r}, which means noise alone: "
            "give it another name"
        )
