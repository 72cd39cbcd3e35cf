"""What is known of a parameter before any data: its name, prior, unit, role and range."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

Priors = Mapping[str, tuple[float, float]]
"""Shape and rate of Gamma priors by parameter name, where they differ from the declared ones."""


class Unit(StrEnum):
    """The unit that a parameter is measured in."""

    INPUT = "input"  # that of the column
    SQUARED_TARGET = "squared target"
    NONE = "none"


class Role(StrEnum):
    """What a parameter stands for, where the search of the maximum makes use of it."""

    LENGTHSCALE = "lengthscale"  # how far the kernel reaches along its column
    PERIOD = "period"  # how far apart along the column the kernel repeats itself
    CYCLE_LENGTHSCALE = "lengthscale within a cycle"  # in half radians
    VARIANCE = "variance"  # the factor of the whole kernel


@dataclass(frozen=True, slots=True)
class KernelParameter:
    """A positive parameter of a base kernel or of an operator.

    Attributes
    ----------
    name : str
        Its name; the key of ``priors``.
    prior : tuple of float
        Shape and rate of its Gamma prior, for columns in the unit interval and a standardised
        target.
    unit : Unit
        The unit that it is measured in.
    role : Role or None
        What it stands for.
    start : tuple of float or None
        Lowest and highest starting point: a multiple of the mean square of the target, of the
        extent of the column, or of nothing, by its unit. None is from the median spacing of the
        column to its extent in the unit of the column, and from the 5th to the 95th percentile of
        the prior otherwise.
    grid : tuple of float
        Values at which a scan sets the parameter, in the same multiples as ``start``. A lengthscale
        needs none: its scan follows from the spacing and the extent of its column.
    """

    name: str
    prior: tuple[float, float]
    unit: Unit = Unit.NONE
    role: Role | None = None
    start: tuple[float, float] | None = None
    grid: tuple[float, ...] = ()

    def prior_in(self, priors: Priors) -> tuple[float, float]:
        """Shape and rate in a mapping, or the declared ones where it says nothing."""
        return priors.get(self.name, self.prior)


# The priors are those of SOT, appendix A.4.

LENGTHSCALE = KernelParameter("lengthscale", (2.0, 2.0), Unit.INPUT, Role.LENGTHSCALE)
VARIANCE = KernelParameter(
    "variance",
    (2.0, 3.0),
    Unit.SQUARED_TARGET,
    Role.VARIANCE,
    start=(0.01, 3.0),
    grid=(0.01, 0.1, 1.0),
)
PERIOD = KernelParameter("period", (2.0, 2.0), Unit.INPUT, Role.PERIOD)
CYCLE_LENGTHSCALE = KernelParameter(
    "lengthscale",
    (2.0, 2.0),
    Unit.NONE,
    Role.CYCLE_LENGTHSCALE,
    start=(0.02, 3.0),
    grid=(0.03, 0.08, 0.2, 0.6, 1.5),
)
OFFSET = KernelParameter("offset", (2.0, 3.0), Unit.SQUARED_TARGET, start=(0.03, 3.0))
ALPHA = KernelParameter("alpha", (2.0, 2.0), start=(0.01, 5.0), grid=(0.005, 0.1, 2.0))
NOISE_VARIANCE = KernelParameter(
    "noise_variance",
    # an expected noise variance of half the target's instead of a hundredth: chosen by
    # benchmarks/noise_prior.py, see docs/theory.md
    (1.0, 2.0),
    Unit.SQUARED_TARGET,
    Role.VARIANCE,
    start=(1e-4, 0.5),
)
"""The variance of the noise, which every model has; the last parameter of every theta."""
