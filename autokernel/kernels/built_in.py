"""The built-in base kernels, by name; those of time series are in the module ``series``."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from types import MappingProxyType

import numpy as np
from sklearn.gaussian_process.kernels import RBF, DotProduct, ExpSineSquared, Kernel, Matern
from sklearn.gaussian_process.kernels import RationalQuadratic as SklearnRationalQuadratic

from autokernel.kernels.base import (
    BaseKernel,
    Declared,
    DistanceKernel,
    Exponent,
    ExponentialKernel,
    WeightedTerms,
    check_not_reserved,
    scaled_kernel,
)
from autokernel.kernels.operators import OPERATORS
from autokernel.kernels.pairs import Pairs
from autokernel.kernels.parameters import (
    ALPHA,
    CYCLE_LENGTHSCALE,
    LENGTHSCALE,
    OFFSET,
    PERIOD,
    SLOPE_VARIANCE,
    VARIANCE,
    KernelParameter,
)
from autokernel.kernels.series import DampedTrend, IntegratedWalk, Matern12, RandomWalk, Saturating
from autokernel.typing import FloatArray

# Shapes of the Gamma prior of a known period, and of one of the calendar: its standard deviation is
# a twentieth and a thousandth of its mean. Starting points differ by three at most.
SEASON_SHAPE, CALENDAR_SHAPE = 400.0, 1e6


class Linear(WeightedTerms):
    """``v x x' + c``; SOT appendix A.4, item 3, but for the prior of v."""

    name = "LIN"
    parameters = (SLOPE_VARIANCE, OFFSET)
    formula = (
        r"\left(<variance>\,\frac{<x><from>}{<scale>} \cdot \frac{<x'><from>}{<scale>}"
        r" + <offset>\right)"
    )
    is_linear = True
    has_few_modes = True

    def terms(self, pairs: Pairs) -> Sequence[FloatArray]:
        return [pairs.product]

    def to_sklearn(self, params: FloatArray, *, scale: float) -> Kernel:
        """Build ``ConstantKernel * DotProduct``: ``v x x' + c = v (x x' + c / v)``."""
        variance, offset = params
        sigma_0 = scale * np.sqrt(offset / variance)
        return scaled_kernel(variance / scale**2, DotProduct, sigma_0=sigma_0)


class Categorical(WeightedTerms):
    """``v 1[x = x'] + c``: what all levels of a category share, and what each has in addition.

    As a term, it is a random intercept of each level; as a factor, it makes a function common to
    all levels with the share c, and another one for each level with the share v.
    """

    name = "CAT"
    parameters = (VARIANCE, OFFSET)
    formula = r"\left(<variance>\,\mathbf{1}[<x> = <x'>] + <offset>\right)"
    closed_under_products = True  # (1 + v 1)(1 + v' 1) = 1 + (v + v' + v v') 1
    has_few_modes = True
    is_categorical = True
    is_stationary = True

    def terms(self, pairs: Pairs) -> Sequence[FloatArray]:
        return [(pairs.difference == 0).astype(float)]


class SquaredExponential(DistanceKernel):
    """``v exp(-(x-x')^2 / (2 l^2))``; SOT appendix A.4, item 1."""

    name = "SE"
    formula = r"<variance>\,\exp\left(-\frac{(<x> - <x'>)^2}{2 \cdot <lengthscale>^2}\right)"
    sklearn_kernel = RBF
    closed_under_products = True  # 1 / l^2 add up, variances multiply

    def exponent(self, params: FloatArray, pairs: Pairs) -> FloatArray:
        lengthscale, _ = params
        return pairs.squared_distance * (-0.5 / lengthscale**2)

    def exponent_gradient(self, at: Exponent, weights: FloatArray) -> FloatArray:
        return np.array([-2.0 * (weights @ at.values), 0.0])  # the exponent scales as l^-2


class RationalQuadratic(DistanceKernel):
    """``v (1 + (x-x')^2 / (2 a l^2))^-a``; SOT appendix A.4, item 4."""

    name = "RQ"
    parameters = (LENGTHSCALE, VARIANCE, ALPHA)
    formula = (
        r"<variance>\left(1 + \frac{(<x> - <x'>)^2}{2 \cdot <alpha> \cdot <lengthscale>^2}"
        r"\right)^{-<alpha>}"
    )
    sklearn_kernel = SklearnRationalQuadratic
    limits = (SquaredExponential(),)  # as alpha grows: (1 + z / a)^-a goes to exp(-z)

    def exponent(self, params: FloatArray, pairs: Pairs) -> FloatArray:
        lengthscale, _, alpha = params
        return -alpha * np.log1p(pairs.squared_distance * (0.5 / (alpha * lengthscale**2)))

    def exponent_gradient(self, at: Exponent, weights: FloatArray) -> FloatArray:
        # with z = d^2 / (2 a l^2) the exponent is -a log(1 + z)
        lengthscale, _, alpha = at.params
        distance = at.pairs.squared_distance
        ratio = distance / (distance + 2 * alpha * lengthscale**2)  # z / (1 + z)
        shared = alpha * (weights @ ratio)
        return np.array([2.0 * shared, 0.0, weights @ at.values + shared])


class Matern32(DistanceKernel):
    """``v (1 + z) exp(-z)`` with ``z = sqrt(3) |x-x'| / l``; R&W eq. 4.17."""

    name = "MAT32"
    formula = (
        r"<variance>\left(1 + \sqrt{3}\,\frac{|<x> - <x'>|}{<lengthscale>}\right)"
        r"\exp\left(-\sqrt{3}\,\frac{|<x> - <x'>|}{<lengthscale>}\right)"
    )
    sklearn_kernel = staticmethod(partial(Matern, nu=1.5))

    def exponent(self, params: FloatArray, pairs: Pairs) -> FloatArray:
        z = np.sqrt(3.0) / params[0] * pairs.difference
        return np.log1p(z) - z

    def exponent_gradient(self, at: Exponent, weights: FloatArray) -> FloatArray:
        z = np.sqrt(3.0) / at.params[0] * at.pairs.difference
        return np.array([weights @ (z**2 / (1 + z)), 0.0])


class Matern52(DistanceKernel):
    """``v (1 + z + z^2 / 3) exp(-z)`` with ``z = sqrt(5) |x-x'| / l``; R&W eq. 4.17."""

    name = "MAT52"
    formula = (
        r"<variance>\left(1 + \sqrt{5}\,\frac{|<x> - <x'>|}{<lengthscale>}"
        r" + \frac{5}{3} \cdot \frac{(<x> - <x'>)^2}{<lengthscale>^2}\right)"
        r"\exp\left(-\sqrt{5}\,\frac{|<x> - <x'>|}{<lengthscale>}\right)"
    )
    sklearn_kernel = staticmethod(partial(Matern, nu=2.5))

    def exponent(self, params: FloatArray, pairs: Pairs) -> FloatArray:
        z = np.sqrt(5.0) / params[0] * pairs.difference
        return np.log1p(z * (1 + z / 3)) - z

    def exponent_gradient(self, at: Exponent, weights: FloatArray) -> FloatArray:
        z = np.sqrt(5.0) / at.params[0] * at.pairs.difference
        return np.array([weights @ (z**2 * (1 + z) / (3 + 3 * z + z**2)), 0.0])


class Periodic(ExponentialKernel):
    """``v exp(-sin^2(pi (x-x')/p) / (2 l^2))``; SOT appendix A.4, item 2."""

    name = "PER"
    parameters: tuple[KernelParameter, ...] = (CYCLE_LENGTHSCALE, VARIANCE, PERIOD)
    formula = (
        r"<variance>\,\exp\left(-\frac{\sin^2(\pi (<x> - <x'>) / <period>)}"
        r"{2 \cdot <lengthscale>^2}\right)"
    )
    broadcasts = True
    is_stationary = True

    def exponent(self, params: FloatArray, pairs: Pairs) -> FloatArray:
        lengthscale, _, period = params
        exponent = pairs.periodic(period)
        exponent *= -0.5 / lengthscale**2
        return exponent

    def exponent_gradient(self, at: Exponent, weights: FloatArray) -> FloatArray:
        lengthscale, _, period = at.params
        slope = at.pairs.periodic_slope(period, weights)
        return np.array([-2.0 * (weights @ at.values), 0.0, -0.5 / lengthscale**2 * slope])

    def to_sklearn(self, params: FloatArray, *, scale: float) -> Kernel:
        """Build ``ConstantKernel * ExpSineSquared``, whose length scale is 2 l and has no unit."""
        lengthscale, variance, period = params
        own = {"length_scale": 2 * lengthscale, "periodicity": period * scale}
        return scaled_kernel(variance, ExpSineSquared, **own)


class Seasonal(Periodic):
    """The periodic kernel whose period is known up to about 5 percent, on dates to a thousandth.

    Parameters
    ----------
    period : float
        The period in the unit of the column.
    """

    has_few_modes = True

    def __init__(self, period: float) -> None:
        super().__init__(name_of_period(period))
        self.period = float(period)
        self.parameters = self.parameters_on(1.0, is_of_dates=False)

    def parameters_on(self, unit: float, *, is_of_dates: bool) -> tuple[KernelParameter, ...]:
        """Return the parameters, with the prior of the period in multiples of ``unit``."""
        share, shape = self.period / unit, CALENDAR_SHAPE if is_of_dates else SEASON_SHAPE
        start = ((1 - 3 * shape**-0.5) * share, (1 + 3 * shape**-0.5) * share)
        about = replace(PERIOD, prior=(shape, shape / share), start=start, keeps_prior=True)
        return CYCLE_LENGTHSCALE, VARIANCE, about

    @classmethod
    def of_name(cls, name: str) -> "Seasonal | None":
        """Return the kernel of a name such as ``PER12``, None for other names."""
        match = _NAME_OF_PERIOD.fullmatch(name)
        period = float(match[1].replace("_", ".")) if match else 0.0
        return cls(period) if period > 0 and name_of_period(period) == name else None

    def __repr__(self) -> str:
        return self.name


_NAME_OF_PERIOD = re.compile(rf"{Periodic.name}(\d+(?:_\d+)?)", re.ASCII)


def name_of_period(period: float) -> str:
    """Name the kernel of a period with all digits, such as ``PER12`` or ``PER365_2425``."""
    return Periodic.name + np.format_float_positional(period, trim="-").replace(".", "_")


RANDOM_WALK, DAMPED_TREND, RETURNING = RandomWalk(), DampedTrend(), Matern12()
GROWTH = Saturating()
SMOOTH, LINEAR, PERIODIC = SquaredExponential(), Linear(), Periodic()
MULTI_SCALE, CATEGORICAL = RationalQuadratic(), Categorical()

FEW_COLUMNS = (SMOOTH, LINEAR, PERIODIC, MULTI_SCALE)
"""The base kernels that ``base_kernels="auto"`` selects for up to two columns (SOT, section 4).

Of more columns, those with a season have them too.
"""

_OTHERS = (Matern32(), Matern52(), CATEGORICAL, RANDOM_WALK, IntegratedWalk(), DAMPED_TREND, GROWTH)
BASE_KERNELS: Mapping[str, BaseKernel] = MappingProxyType(
    {kernel.name: kernel for kernel in (*FEW_COLUMNS, *_OTHERS, RETURNING)}
)
"""The built-in base kernels by name."""

MANY_COLUMNS = (SMOOTH, LINEAR, MULTI_SCALE)
"""The base kernels that ``base_kernels="auto"`` selects for all others."""

EFFECTS = (SMOOTH, LINEAR)
"""The base kernels that ``strategy="series"`` has for columns other than that of time."""

SERIES = (LINEAR, RANDOM_WALK, DAMPED_TREND, RETURNING)
"""The base kernels that ``base_kernels="auto"`` adds for columns of dates, and for forecasts."""

WANDERING = (RANDOM_WALK, RETURNING)
"""The base kernels whose functions have independent steps, or nearly so."""

KERNEL_ALIASES = {
    "categorical": "CAT",
    "rbf": "SE",
    "squaredexponential": "SE",
    "gaussian": "SE",
    "dotproduct": "LIN",
    "linear": "LIN",
    "expsinesquared": "PER",
    "periodic": "PER",
    "rationalquadratic": "RQ",
    "matern": "MAT52",
}
"""Names of built-in base kernels in scikit-learn and elsewhere, in lower case."""


def with_custom_kernels(custom: Iterable[BaseKernel]) -> Mapping[str, BaseKernel]:
    """Return the built-in and the custom base kernels by name, which must differ."""
    known = dict(BASE_KERNELS)
    for kernel in custom:
        check_not_reserved("base_kernels", kernel.name)
        if known.setdefault(kernel.name, kernel) != kernel:
            raise ValueError(
                f"base_kernels must have different names, got {kernel!r} and "
                f"{known[kernel.name]!r}: give it another name"
            )
    return MappingProxyType(known)


def is_built_in(declared: Declared) -> bool:
    """Return whether texts of expressions stand for a base kernel or an operator."""
    known = (*BASE_KERNELS.values(), *OPERATORS.values())
    return declared in known or isinstance(declared, Seasonal)
