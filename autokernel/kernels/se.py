"""The squared-exponential kernel."""

from typing import ClassVar

import numpy as np
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Kernel

from autokernel.kernels.base import ExponentialKernel, Pairs
from autokernel.kernels.export_bounds import around
from autokernel.typing import FloatArray


class SquaredExponential(ExponentialKernel):
    """``v exp(-(x-x')^2 / (2 l^2))``; SOT appendix A.4, item 1."""

    name = "SE"
    parameter_names: ClassVar[tuple[str, ...]] = ("lengthscale", "variance")

    def exponent(self, params: FloatArray, pairs: Pairs) -> FloatArray:
        """Logarithm of the kernel at unit variance, as a new array."""
        lengthscale, _ = params
        return pairs.squared_distance * (-0.5 / lengthscale**2)

    def exponent_gradient(
        self,
        params: FloatArray,  # noqa: ARG002 - other kernels need them
        pairs: Pairs,  # noqa: ARG002 - other kernels need them
        exponent: FloatArray,
        weights: FloatArray,
    ) -> FloatArray:
        """Gradient of ``sum(weights * exponent)``: the exponent scales as l^-2."""
        return np.array([-2.0 * (weights @ exponent), 0.0])

    def describe(self, params: FloatArray, *, scale: float) -> str:
        """Say in a few words what functions with this kernel look like."""
        lengthscale, _ = params
        return f"smooth over {lengthscale * scale:.3g}"

    def to_sklearn(self, params: FloatArray, *, scale: float) -> Kernel:
        """Build ``ConstantKernel * RBF``."""
        lengthscale, variance = params
        return ConstantKernel(variance, around(variance)) * RBF(
            lengthscale * scale, around(lengthscale * scale)
        )
