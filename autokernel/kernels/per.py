"""The periodic kernel."""

import numpy as np
from sklearn.gaussian_process.kernels import ConstantKernel, ExpSineSquared, Kernel

from autokernel.kernels.base import Exponent, ExponentialKernel, Sources
from autokernel.kernels.export_bounds import around
from autokernel.kernels.pairs import Pairs
from autokernel.kernels.parameters import CYCLE_LENGTHSCALE, PERIOD, VARIANCE
from autokernel.typing import FloatArray


class Periodic(ExponentialKernel):
    """``v exp(-sin^2(pi (x-x')/p) / (2 l^2))``; SOT appendix A.4, item 2."""

    name = "PER"
    parameters = (CYCLE_LENGTHSCALE, VARIANCE, PERIOD)
    words = "repeating every {period}"
    noun = "season"
    formula = (
        r"<variance>\,\exp\left(-\frac{\sin^2(\pi (<x> - <x>') / <period>)}"
        r"{2 \cdot <lengthscale>^2}\right)"
    )
    sources = Sources(
        gpytorch=(  # its lengthscale enters without a square
            "scaled({variance}, PeriodicKernel(active_dims=[{column}]), "
            "lengthscale=4 * {lengthscale}**2, period_length={period})"
        ),
        gpflow=(
            "kernels.Periodic(kernels.SquaredExponential({variance}, {lengthscale}, "
            "active_dims=[{column}]), {period})"
        ),
    )
    broadcasts = True
    is_stationary = True

    def exponent(self, params: FloatArray, pairs: Pairs) -> FloatArray:
        """Compute the logarithm of the kernel at unit variance, as a new array."""
        lengthscale, _, period = params
        exponent = pairs.periodic(period)
        exponent *= -0.5 / lengthscale**2
        return exponent

    def exponent_gradient(self, at: Exponent, weights: FloatArray) -> FloatArray:
        """Compute the gradient of ``sum(weights * exponent)`` in the log parameters."""
        lengthscale, _, period = at.params
        slope = at.pairs.periodic_slope(period, weights)
        return np.array([-2.0 * (weights @ at.values), 0.0, -0.5 / lengthscale**2 * slope])

    def to_sklearn(self, params: FloatArray, *, scale: float) -> Kernel:
        """Build ``ConstantKernel * ExpSineSquared``, whose length scale is 2 l and has no unit."""
        lengthscale, variance, period = params
        return ConstantKernel(variance, around(variance)) * ExpSineSquared(
            2 * lengthscale, period * scale, around(2 * lengthscale), around(period * scale)
        )
