"""The squared-exponential kernel."""

import numpy as np
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Kernel

from autokernel.kernels.base import Exponent, ExponentialKernel, Sources
from autokernel.kernels.export_bounds import around
from autokernel.kernels.pairs import Pairs
from autokernel.kernels.parameters import LENGTHSCALE, VARIANCE
from autokernel.typing import FloatArray


class SquaredExponential(ExponentialKernel):
    """``v exp(-(x-x')^2 / (2 l^2))``; SOT appendix A.4, item 1."""

    name = "SE"
    parameters = (LENGTHSCALE, VARIANCE)
    words = "smooth over {lengthscale}"
    noun = "smooth function"
    formula = r"<variance>\,\exp\left(-\frac{(<x> - <x>')^2}{2 \cdot <lengthscale>^2}\right)"
    sources = Sources(
        gpytorch=(
            "scaled({variance}, RBFKernel(active_dims=[{column}]), lengthscale={lengthscale})"
        ),
        gpflow=("kernels.SquaredExponential({variance}, {lengthscale}, active_dims=[{column}])"),
    )
    broadcasts = True
    is_stationary = True
    closed_under_products = True  # 1 / l^2 add up, variances multiply

    def exponent(self, params: FloatArray, pairs: Pairs) -> FloatArray:
        """Compute the logarithm of the kernel at unit variance, as a new array."""
        lengthscale, _ = params
        return pairs.squared_distance * (-0.5 / lengthscale**2)

    def exponent_gradient(self, at: Exponent, weights: FloatArray) -> FloatArray:
        """Compute the gradient of ``sum(weights * exponent)``; the exponent scales as l^-2."""
        return np.array([-2.0 * (weights @ at.values), 0.0])

    def to_sklearn(self, params: FloatArray, *, scale: float) -> Kernel:
        """Build ``ConstantKernel * RBF``."""
        lengthscale, variance = params
        return ConstantKernel(variance, around(variance)) * RBF(
            lengthscale * scale, around(lengthscale * scale)
        )
