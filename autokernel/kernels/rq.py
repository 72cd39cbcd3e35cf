"""The rational-quadratic kernel."""

import numpy as np
from sklearn.gaussian_process.kernels import ConstantKernel, Kernel
from sklearn.gaussian_process.kernels import RationalQuadratic as SklearnRationalQuadratic

from autokernel.kernels.base import BaseKernel, Exponent, ExponentialKernel, Sources
from autokernel.kernels.export_bounds import around
from autokernel.kernels.pairs import Pairs
from autokernel.kernels.parameters import ALPHA, LENGTHSCALE, VARIANCE
from autokernel.kernels.se import SquaredExponential
from autokernel.typing import FloatArray


class RationalQuadratic(ExponentialKernel):
    """``v (1 + (x-x')^2 / (2 a l^2))^-a``; SOT appendix A.4, item 4."""

    name = "RQ"
    parameters = (LENGTHSCALE, VARIANCE, ALPHA)
    words = "smooth on several scales around {lengthscale}"
    noun = "multi-scale smooth function"
    formula = (
        r"<variance>\left(1 + \frac{(<x> - <x>')^2}{2 \cdot <alpha> \cdot <lengthscale>^2}"
        r"\right)^{-<alpha>}"
    )
    sources = Sources(
        gpytorch=(
            "scaled({variance}, RQKernel(active_dims=[{column}]), lengthscale={lengthscale}, "
            "alpha={alpha})"
        ),
        gpflow=(
            "kernels.RationalQuadratic({variance}, {lengthscale}, {alpha}, active_dims=[{column}])"
        ),
    )
    broadcasts = True
    is_stationary = True

    @property
    def limits(self) -> tuple[BaseKernel, ...]:
        """The squared exponential, as alpha grows: ``(1 + z / a)^-a`` goes to ``exp(-z)``."""
        return (SquaredExponential(),)

    def exponent(self, params: FloatArray, pairs: Pairs) -> FloatArray:
        """Compute the logarithm of the kernel at unit variance, as a new array."""
        lengthscale, _, alpha = params
        exponent = pairs.squared_distance * (0.5 / (alpha * lengthscale**2))
        np.log1p(exponent, out=exponent)
        exponent *= -alpha
        return exponent

    def exponent_gradient(self, at: Exponent, weights: FloatArray) -> FloatArray:
        """Compute the gradient of ``sum(weights * exponent)`` in the log parameters.

        With ``z = d^2 / (2 a l^2)`` the exponent is ``-a log(1 + z)``. Both derivatives use the
        weighted sum of ``z / (1 + z)``.
        """
        lengthscale, _, alpha = at.params
        distance = at.pairs.squared_distance
        ratio = distance / (distance + 2 * alpha * lengthscale**2)
        shared = alpha * (weights @ ratio)
        return np.array([2.0 * shared, 0.0, weights @ at.values + shared])

    def to_sklearn(self, params: FloatArray, *, scale: float) -> Kernel:
        """Build ``ConstantKernel * RationalQuadratic``."""
        lengthscale, variance, alpha = params
        return ConstantKernel(variance, around(variance)) * SklearnRationalQuadratic(
            lengthscale * scale, alpha, around(lengthscale * scale), around(alpha)
        )
