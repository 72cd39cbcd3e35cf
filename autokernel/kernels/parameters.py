"""Parameters of base kernels and operators, and their Gamma priors."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property
from numbers import Real
from types import MappingProxyType
from typing import Any

import numpy as np
from scipy.special import gammainc, gammaincinv, gammaln

from autokernel.typing import FloatArray
from autokernel.validation import did_you_mean

Priors = Mapping[str, tuple[float, float]]
"""Shape and rate of the Gamma priors that replace the declared ones, by parameter name."""


def is_positive(value: Any) -> bool:
    """Whether a value is a positive, finite number, and neither a truth value nor a duration."""
    is_number = isinstance(value, Real) and not isinstance(value, (bool, np.timedelta64))
    return is_number and 0 < float(value) < np.inf


def _is_shape_and_rate(entry: Any) -> bool:
    is_pair = isinstance(entry, (tuple, list, np.ndarray)) and len(entry) == 2
    return is_pair and all(map(is_positive, entry))


class Unit(StrEnum):
    """The unit in which a parameter is measured."""

    INPUT = "input"  #: the unit of the column
    SQUARED_TARGET = "squared target"  #: the square of the unit of the target
    NONE = "none"  #: a number without a unit


class Role(StrEnum):
    """The meaning of a parameter, where the search for the maximum makes use of it."""

    LENGTHSCALE = "lengthscale"  #: distance along the column over which the kernel decays
    PERIOD = "period"  #: distance along the column after which the kernel repeats itself
    CYCLE_LENGTHSCALE = "lengthscale within a cycle"  #: measured in half radians
    VARIANCE = "variance"  #: factor of the whole kernel
    LOCATION = "location"  #: position along the column


@dataclass(frozen=True, slots=True)
class KernelParameter:
    """A positive parameter of a base kernel or of an operator.

    Attributes
    ----------
    name : str
        Name of the parameter, used as the key in ``priors``.
    prior : tuple of float
        Shape and rate of its Gamma prior, for columns in the unit interval and a standardised
        target.
    unit : Unit
        Unit in which the parameter is measured.
    role : Role or None
        Meaning of the parameter, None if the search makes no use of it.
    start : tuple of float or None
        Lowest and highest starting value. For ``unit`` INPUT they are multiples of the extent of
        the column, and None means from its median spacing to its extent. For SQUARED_TARGET they
        are multiples of the mean square of the target, and None means (0.01, 3). For NONE they are
        plain values, and None means from the 5th to the 95th percentile of the prior. A period
        with such a range is searched only within it.
    grid : tuple of float
        Values at which a coordinate scan sets the parameter, in the same multiples as ``start``. A
        lengthscale needs none, as the spacing and the extent of its column determine its scan.
    keeps_prior : bool
        Whether the prior stays as declared where ``priors`` has an entry of this name.
    """

    name: str
    prior: tuple[float, float]
    unit: Unit = Unit.NONE
    role: Role | None = None
    start: tuple[float, float] | None = None
    grid: tuple[float, ...] = ()
    keeps_prior: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name.isidentifier():
            raise ValueError(f"name must be an identifier, got {self.name!r}")
        if not _is_shape_and_rate(self.prior):
            raise ValueError(
                f"prior of {self.name} must be a pair (shape, rate) of positive numbers, "
                f"got {self.prior!r}"
            )
        if self.start is not None and not (
            _is_shape_and_rate(self.start) and self.start[0] < self.start[1]
        ):
            raise ValueError(
                f"start of {self.name} must be a pair of positive numbers that rise, "
                f"got {self.start!r}"
            )
        if not all(map(is_positive, self.grid)):
            raise ValueError(f"grid of {self.name} must hold positive numbers, got {self.grid!r}")

    def prior_in(self, priors: Priors) -> tuple[float, float]:
        """Return the shape and rate in a mapping, or the declared ones if it has no entry."""
        return self.prior if self.keeps_prior else priors.get(self.name, self.prior)

    def in_units(self, value: float, shift: float, width: float) -> float:
        """Convert a value from the scaled column, ``(x - shift) / width``, to the unit of x."""
        if self.unit != Unit.INPUT:
            return value
        return width * value + (shift if self.role == Role.LOCATION else 0.0)


def role_index(parameters: Sequence[KernelParameter], role: Role) -> int | None:
    """Return the index of the first parameter with a role, or None if there is none."""
    return next((index for index, one in enumerate(parameters) if one.role == role), None)


# The priors are taken from SOT, appendix A.4, except those of the noise and of LIN's variance.

LENGTHSCALE = KernelParameter("lengthscale", (2.0, 2.0), Unit.INPUT, Role.LENGTHSCALE)
VARIANCE = KernelParameter(
    "variance",
    (2.0, 3.0),
    Unit.SQUARED_TARGET,
    Role.VARIANCE,
    start=(0.01, 3.0),
    grid=(0.01, 0.1, 1.0),
)
SLOPE_VARIANCE = replace(VARIANCE, prior=(1.0, 0.25))
"""A line from edge to edge has a squared slope of twelve, see docs/theory.md."""

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
    # The expected noise variance is half the variance of the target, not a hundredth of it. This
    # was chosen by measurements, see docs/theory.md.
    (1.0, 2.0),
    Unit.SQUARED_TARGET,
    Role.VARIANCE,
    start=(1e-4, 0.5),
)
"""The variance of the noise, which every model has; it is the last entry of every theta."""


PRESETS: Mapping[str, Priors] = MappingProxyType(
    {
        "default": MappingProxyType({}),
        "paper": MappingProxyType(
            {NOISE_VARIANCE.name: (1.0, 100.0), VARIANCE.name: VARIANCE.prior}
        ),
    }
)
"""For each preset, the priors that replace those that the parameters declare."""


def check_priors(
    priors: str | Priors, *, parameters: Iterable[KernelParameter] | None = None
) -> Priors:
    """Return the priors that replace declared ones; without parameters, names are not checked."""
    if isinstance(priors, str) and priors in PRESETS:
        return dict(PRESETS[priors])  # a dict can be sent to other processes
    if not isinstance(priors, Mapping):
        raise ValueError(
            f"priors must be one of {sorted(PRESETS)} or a mapping such as "
            f"{{'{NOISE_VARIANCE.name}': (2, 2)}}, got {priors!r}"
        )
    known = {parameter.name for parameter in (*(parameters or ()), NOISE_VARIANCE)}
    for name, entry in priors.items():
        if parameters is not None and name not in known:
            raise ValueError(
                f"priors must have keys out of {sorted(known)}, got {name!r}"
                f"{did_you_mean(name, known)}"
            )
        if not _is_shape_and_rate(entry):
            raise ValueError(
                f"priors[{name!r}] must be a pair (shape, rate) of positive numbers, got {entry!r}"
            )
    return {name: (float(shape), float(rate)) for name, (shape, rate) in priors.items()}


@dataclass(frozen=True, eq=False)  # eq=False: the fields are arrays
class LogGammaPrior:
    """Independent Gamma priors of ``exp(theta_i)``, as a density of theta with the Jacobian."""

    shape: FloatArray  # (n_params,)
    rate: FloatArray  # (n_params,)

    @classmethod
    def of(cls, parameters: Sequence[KernelParameter], *, priors: Priors) -> "LogGammaPrior":
        """Build the prior of these parameters."""
        return cls(*np.array([one.prior_in(priors) for one in parameters], dtype=float).T)

    def log_density(self, theta: FloatArray) -> FloatArray:
        """Compute the log density at theta, summed over the last axis: (..., n_params) to (...)."""
        return self._log_constant + theta @ self.shape - np.exp(theta) @ self.rate

    @cached_property
    def _log_constant(self) -> float:
        return float(self.shape @ np.log(self.rate) - gammaln(self.shape).sum())

    def gradient(self, theta: FloatArray) -> FloatArray:
        """Compute the gradient (n_params,) of the log density."""
        return self.shape - self.rate * np.exp(theta)

    def curvature(self, theta: FloatArray) -> FloatArray:
        """Compute the diagonal (n_params,) of the Hessian of the negative log density."""
        return self.rate * np.exp(theta)

    def quantile(self, probability: FloatArray, upper: FloatArray | float = np.inf) -> FloatArray:
        """Return the log parameters at cumulative probabilities (..., n_params), given a bound."""
        below = gammainc(self.shape, self.rate * np.exp(upper))
        return np.log(gammaincinv(self.shape, probability * below) / self.rate)
