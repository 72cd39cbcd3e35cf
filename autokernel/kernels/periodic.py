"""Periodic base kernels: PER, and one with a known period."""

import re
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from sklearn.gaussian_process.kernels import ConstantKernel, ExpSineSquared, Kernel

from autokernel.kernels.base import Exponent, ExponentialKernel, Sources
from autokernel.kernels.pairs import Pairs
from autokernel.kernels.parameters import CYCLE_LENGTHSCALE, PERIOD, VARIANCE
from autokernel.kernels.stationary import around
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


_SHAPE = 400.0  # of the Gamma prior: its standard deviation is a twentieth of its mean
_WITHIN = 0.15  # of the period: how far from it the search begins


class Seasonal(Periodic):
    """The periodic kernel whose period is known up to about 5 percent.

    Parameters
    ----------
    period : float
        The period in the unit of the column.
    scale : float
        The extent of the column: the period is searched in multiples of it.
    """

    def __init__(self, period: float, *, scale: float) -> None:
        super().__init__(name_of_period(period))
        share = period / scale
        around = replace(
            PERIOD,
            prior=(_SHAPE, _SHAPE / share),
            start=((1 - _WITHIN) * share, (1 + _WITHIN) * share),
            keeps_prior=True,
        )
        self.period, self.scale = float(period), float(scale)
        self.parameters = (CYCLE_LENGTHSCALE, VARIANCE, around)

    @property
    def record(self) -> dict[str, float]:
        """What :meth:`from_record` makes the same kernel of."""
        return {"period": self.period, "scale": self.scale}

    @classmethod
    def from_record(cls, record: Mapping[str, float | str]) -> "Seasonal":
        """Make the kernel of a record."""
        return cls(float(record["period"]), scale=float(record["scale"]))

    def __repr__(self) -> str:
        return self.name


def name_of_period(period: float) -> str:
    """Name the kernel of a period, such as ``PER12`` or ``PER365_25``."""
    return f"{Periodic.name}{re.sub(r'[^0-9a-z]', '_', f'{period:.6g}')}"
