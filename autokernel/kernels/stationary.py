"""Stationary base kernels: SE, RQ, MAT32 and MAT52."""

import numpy as np
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Kernel, Matern
from sklearn.gaussian_process.kernels import RationalQuadratic as SklearnRationalQuadratic

from autokernel.kernels.base import BaseKernel, Exponent, ExponentialKernel, Sources
from autokernel.kernels.pairs import Pairs
from autokernel.kernels.parameters import ALPHA, LENGTHSCALE, VARIANCE
from autokernel.typing import FloatArray


def around(value: float) -> tuple[float, float]:
    """Return bounds five decades to either side, like scikit-learn's default bounds around 1."""
    return (value * 1e-5, value * 1e5)


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
