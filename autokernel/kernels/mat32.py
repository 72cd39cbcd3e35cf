"""The Matern kernel that is once differentiable."""

import numpy as np
from sklearn.gaussian_process.kernels import ConstantKernel, Kernel, Matern

from autokernel.kernels.base import Exponent, ExponentialKernel, Sources
from autokernel.kernels.export_bounds import around
from autokernel.kernels.pairs import Pairs
from autokernel.kernels.parameters import LENGTHSCALE, VARIANCE
from autokernel.typing import FloatArray


class Matern32(ExponentialKernel):
    """``v (1 + z) exp(-z)`` with ``z = sqrt(3) |x-x'| / l``; R&W eq. 4.17."""

    name = "MAT32"
    parameters = (LENGTHSCALE, VARIANCE)
    words = "rough over {lengthscale}"
    noun = "rough function"
    formula = (
        r"<variance>\left(1 + \sqrt{3}\,\frac{|<x> - <x>'|}{<lengthscale>}\right)"
        r"\exp\left(-\sqrt{3}\,\frac{|<x> - <x>'|}{<lengthscale>}\right)"
    )
    sources = Sources(
        gpytorch=(
            "scaled({variance}, MaternKernel(nu=1.5, active_dims=[{column}]), "
            "lengthscale={lengthscale})"
        ),
        gpflow=("kernels.Matern32({variance}, {lengthscale}, active_dims=[{column}])"),
    )
    broadcasts = True
    is_stationary = True

    def exponent(self, params: FloatArray, pairs: Pairs) -> FloatArray:
        """Compute the logarithm of the kernel at unit variance, as a new array."""
        z = np.sqrt(3.0) / params[0] * pairs.difference
        return np.log1p(z) - z

    def exponent_gradient(self, at: Exponent, weights: FloatArray) -> FloatArray:
        """Compute the gradient of ``sum(weights * exponent)`` in the log parameters.

        The derivative of the exponent in the log of the lengthscale is ``z^2 / (1 + z)``.
        """
        z = np.sqrt(3.0) / at.params[0] * at.pairs.difference
        return np.array([weights @ (z**2 / (1 + z)), 0.0])

    def to_sklearn(self, params: FloatArray, *, scale: float) -> Kernel:
        """Build ``ConstantKernel * Matern``."""
        lengthscale, variance = params
        return ConstantKernel(variance, around(variance)) * Matern(
            lengthscale * scale, around(lengthscale * scale), nu=1.5
        )
