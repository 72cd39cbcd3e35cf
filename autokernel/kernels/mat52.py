"""The Matern kernel that is twice differentiable."""

import numpy as np
from sklearn.gaussian_process.kernels import ConstantKernel, Kernel, Matern

from autokernel.kernels.base import Exponent, ExponentialKernel, Sources
from autokernel.kernels.export_bounds import around
from autokernel.kernels.pairs import Pairs
from autokernel.kernels.parameters import LENGTHSCALE, VARIANCE
from autokernel.typing import FloatArray


class Matern52(ExponentialKernel):
    """``v (1 + z + z^2 / 3) exp(-z)`` with ``z = sqrt(5) |x-x'| / l``; R&W eq. 4.17."""

    name = "MAT52"
    parameters = (LENGTHSCALE, VARIANCE)
    words = "fairly smooth over {lengthscale}"
    noun = "fairly smooth function"
    formula = (
        r"<variance>\left(1 + \sqrt{5}\,\frac{|<x> - <x>'|}{<lengthscale>}"
        r" + \frac{5}{3} \cdot \frac{(<x> - <x>')^2}{<lengthscale>^2}\right)"
        r"\exp\left(-\sqrt{5}\,\frac{|<x> - <x>'|}{<lengthscale>}\right)"
    )
    sources = Sources(
        gpytorch=(
            "scaled({variance}, MaternKernel(nu=2.5, active_dims=[{column}]), "
            "lengthscale={lengthscale})"
        ),
        gpflow=("kernels.Matern52({variance}, {lengthscale}, active_dims=[{column}])"),
    )
    broadcasts = True
    is_stationary = True

    def exponent(self, params: FloatArray, pairs: Pairs) -> FloatArray:
        """Compute the logarithm of the kernel at unit variance, as a new array."""
        z = np.sqrt(5.0) / params[0] * pairs.difference
        return np.log1p(z * (1 + z / 3)) - z

    def exponent_gradient(self, at: Exponent, weights: FloatArray) -> FloatArray:
        """Compute the gradient of ``sum(weights * exponent)`` in the log parameters.

        The derivative of the exponent in the log of the lengthscale is
        ``z^2 (1 + z) / (3 + 3 z + z^2)``.
        """
        z = np.sqrt(5.0) / at.params[0] * at.pairs.difference
        return np.array([weights @ (z**2 * (1 + z) / (3 + 3 * z + z**2)), 0.0])

    def to_sklearn(self, params: FloatArray, *, scale: float) -> Kernel:
        """Build ``ConstantKernel * Matern``."""
        lengthscale, variance = params
        return ConstantKernel(variance, around(variance)) * Matern(
            lengthscale * scale, around(lengthscale * scale), nu=2.5
        )
