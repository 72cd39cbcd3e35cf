"""Base kernels of time series: RW, IRW, IOU and MAT12, whose functions wander, and SAT.

Each but MAT12 starts at the first row. The offset is the variance there, so that what happened
before the data does not matter. On both sides of the first row it is a walk.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
from sklearn.gaussian_process.kernels import Matern

from autokernel.kernels.base import BaseKernel, DistanceKernel, Exponent, WeightedTerms
from autokernel.kernels.pairs import Pairs
from autokernel.kernels.parameters import LENGTHSCALE, OFFSET, SLOPE_VARIANCE
from autokernel.typing import FloatArray


class RandomWalk(WeightedTerms):
    """``v min(x, x') + c``, a level whose steps are independent; R&W section 4.2.1.

    ``v`` is the variance of the change from the first row to the last.
    """

    name = "RW"
    parameters = (SLOPE_VARIANCE, OFFSET)
    formula = r"\left(<variance>\,\frac{\min(<x><from>, <x'><from>)}{<scale>} + <offset>\right)"
    has_few_modes = True

    def terms(self, pairs: Pairs) -> Sequence[FloatArray]:
        return [pairs.overlap]


class IntegratedWalk(WeightedTerms):
    """``v m^2 (m + 3 |x - x'| / 2) + s x x' + c`` with ``m = min(x, x')``: a slope that wanders.

    The integral of a random walk, a local linear trend (Wahba 1978). ``s`` is the variance of the
    slope at the first row, and ``v`` the variance that its wandering adds at the last row.
    """

    name = "IRW"
    parameters = (SLOPE_VARIANCE, replace(SLOPE_VARIANCE, name="slope_variance"), OFFSET)
    formula = (
        r"\left(<variance>\,m^2 \left(m + \frac{3 |<x> - <x'>|}{2 \cdot <scale>}\right)"
        r" + <slope_variance>\,\frac{<x><from>}{<scale>} \cdot \frac{<x'><from>}{<scale>}"
        r" + <offset>\right)_{m = \min(<x><from>, <x'><from>) / <scale>}"
    )
    has_few_modes = True

    def terms(self, pairs: Pairs) -> Sequence[FloatArray]:
        overlap = pairs.overlap
        return [overlap**2 * (overlap + 1.5 * pairs.difference), pairs.product]


class DampedTrend(BaseKernel):
    """The integral of an Ornstein-Uhlenbeck process, a slope that is forgotten; plus ``c``.

    With ``h(z) = z - 1 + exp(-z)`` it is ``v (h(x / l) + h(x' / l) - h(|x - x'| / l)) / (2 h(1 /
    l)) + c``: ``v`` is the variance of the change from the first row to the last. It is between a
    random walk, where ``l`` is small, and a straight line, where it is large.
    """

    name = "IOU"
    parameters = (LENGTHSCALE, SLOPE_VARIANCE, OFFSET)
    formula = (
        r"\left(<variance>\,\frac{h(<x><from>) + h(<x'><from>) - h(<x> - <x'>)}{2 h(<scale>)}"
        r" + <offset>\right)_{h(d) = |d| / <lengthscale> - 1 + \exp(-|d| / <lengthscale>)}"
    )
    broadcasts = True
    has_few_modes = True
    limits = (RandomWalk(),)

    def value(self, params: FloatArray, pairs: Pairs) -> FloatArray:
        lengthscale, variance, offset = params
        walked = variance * _from_first_row(mean_reversion, lengthscale, pairs)
        return walked / (2 * mean_reversion(1 / lengthscale)) + offset

    def gradient(self, params: FloatArray, pairs: Pairs, adjoint: FloatArray) -> FloatArray:
        lengthscale, variance, offset = params
        whole = mean_reversion(1 / lengthscale)
        share, slope = (
            variance / (2 * whole) * (adjoint * _from_first_row(h, lengthscale, pairs)).sum()
            for h in (mean_reversion, _mean_reversion_slope)
        )
        slope -= share * _mean_reversion_slope(1 / lengthscale) / whole
        return np.array([slope, share, offset * adjoint.sum()])


class Saturating(BaseKernel):
    """``v h(x) h(x') + c`` with ``h(x) = (1 - exp(-x / l)) / (1 - exp(-1 / l))``: it levels off.

    A line that flattens to a ceiling, on the log scale the growth of Gompertz (1825). ``v`` is the
    variance of the change from the first row to the last.
    """

    name = "SAT"
    parameters = (LENGTHSCALE, SLOPE_VARIANCE, OFFSET)
    formula = (
        r"\left(<variance>\,\frac{h(<x><from>)\, h(<x'><from>)}{h(<scale>)^2}"
        r" + <offset>\right)_{h(d) = 1 - \exp(-d / <lengthscale>)}"
    )
    broadcasts = True
    has_few_modes = True

    def value(self, params: FloatArray, pairs: Pairs) -> FloatArray:
        lengthscale, variance, offset = params
        return variance * pairs.outer(lambda x: _saturated(x, lengthscale)) + offset

    def gradient(self, params: FloatArray, pairs: Pairs, adjoint: FloatArray) -> FloatArray:
        lengthscale, variance, offset = params

        def moved(x: FloatArray, by: float) -> FloatArray:
            """Change the function along its slope in the log of the lengthscale."""
            level, end = _saturated(x, lengthscale), np.exp(-1 / lengthscale) / lengthscale
            slope = level * end - x / lengthscale * np.exp(-x / lengthscale)
            return level - by * slope / np.expm1(-1 / lengthscale)

        level, above, below = (
            (adjoint * pairs.outer(partial(moved, by=by))).sum() for by in (0.0, 1.0, -1.0)
        )
        return np.array([variance * (above - below) / 2, variance * level, offset * adjoint.sum()])


def _saturated(x: FloatArray, lengthscale: float | FloatArray) -> FloatArray:
    return np.expm1(-x / lengthscale) / np.expm1(-1 / lengthscale)


def _from_first_row(
    function: Callable[[FloatArray], FloatArray], lengthscale: float | FloatArray, pairs: Pairs
) -> FloatArray:
    """Compute ``f(x / l) + f(x' / l) - f(|x - x'| / l)`` for distances from the first row."""
    apart = pairs.sum(lambda x: function(np.abs(x) / lengthscale))
    return apart - function(pairs.difference / lengthscale)


def mean_reversion(z: FloatArray) -> FloatArray:
    """Compute ``z - 1 + exp(-z)``."""
    return np.expm1(-z) + z


def _mean_reversion_slope(z: FloatArray) -> FloatArray:
    """Differentiate :func:`mean_reversion` of ``d / l`` with respect to ``log l``."""
    return z * np.expm1(-z)


class Matern12(DistanceKernel):
    """``v exp(-|x-x'| / l)``, a level that wanders and returns; R&W eq. 4.18."""

    name = "MAT12"
    formula = r"<variance>\,\exp\left(-\frac{|<x> - <x'>|}{<lengthscale>}\right)"
    has_few_modes = True
    sklearn_kernel = staticmethod(partial(Matern, nu=0.5))
    closed_under_products = True  # 1 / l add up, variances multiply

    def exponent(self, params: FloatArray, pairs: Pairs) -> FloatArray:
        return pairs.difference / -params[0]

    def exponent_gradient(self, at: Exponent, weights: FloatArray) -> FloatArray:
        return np.array([-(weights @ at.values), 0.0])
