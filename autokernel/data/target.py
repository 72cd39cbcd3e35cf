"""The target: its standardisation, its scales, and the resolution to which it was recorded."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from autokernel.data.columns import Inputs
from autokernel.data.noise import RowNoise
from autokernel.data.scales import (
    MIN_SHARE,
    SCALES,
    CountScale,
    Identity,
    Scale,
    fill_rows,
    mean_and_variance,
    target_offset,
)
from autokernel.expression import COUNT_SCALES, IDENTITY, TARGET_SCALES
from autokernel.typing import FloatArray

MIN_SPREAD = 1e-100  # of numbers, so that its square does not vanish
ROUNDING = 1e-15  # of the shift, within which a target is zero
_ROUNDS = 20  # of weights and the spread that they give
_MIN_DISTINCT = 3  # values that show a resolution; two are names of two cases
_MIN_STEP = 1e-6  # of the range, below which a resolution has no effect
_TOLERANCE = 1e-4  # of a step, by which multiples of it may differ from whole numbers


@dataclass(frozen=True, slots=True)
class Target:
    """The standardisation ``u = (y - shift) / width`` of the target, and its scales ``t(u)``.

    On each of ``scales``, one of which is the identity, the training targets have zero mean and
    unit variance. Where positive targets cover many decades, the shift is zero, so that the
    smallest ones keep their digits. Counts may have an ``exposure``, or trials, in a column.
    """

    shift: float
    width: float  # positive
    scales: Mapping[str, Scale]  # by name
    exposure: int | None = None

    @classmethod
    def of(
        cls,
        y: FloatArray,
        noise: RowNoise,
        X: FloatArray | None = None,
        *,
        log_offset: float = 0.0,
        families: Sequence[str] = (),
        exposure: int | None = None,
    ) -> "Target":
        """Standardise targets (n_samples,), and find the scales that have at least two of them.

        The standardisation is that of ``GaussianProcessRegressor(normalize_y=True)``, except for a
        constant, whose width is the rounding of its value, so that no unit makes it vary. Rows with
        known errors count less, the larger these are compared with the spread of all rows. The
        ``log_offset`` is added before a logarithm is taken. Counts may be of ``families``, with the
        ``exposure`` that is a column of ``X`` (n_samples, n_features).
        """
        weights = noise.weights
        for _ in range(_ROUNDS if noise.errors.any() else 0):
            _, variance = mean_and_variance(y, weights)
            weights = noise.multiplied(1 / max(variance, MIN_SPREAD**2)).influence
        shift, width = float(y[0]), _rounding(float(y[0]))
        if np.ptp(y) > 0:
            shift, variance = mean_and_variance(y, weights)
            width = float(np.sqrt(variance))
        found: dict[str, Scale] = {IDENTITY: Identity(IDENTITY, shift=shift, width=width)}
        if 0 < y.min() <= MIN_SHARE * y.max():
            found[IDENTITY] = Identity(IDENTITY, -shift / width, shift=shift, width=width)
            shift = 0.0
        for name in TARGET_SCALES:
            offset = log_offset if name == "log" else 0.0
            has = SCALES[name].has_slope(y + offset)
            if len(t := SCALES[name].function(y[has] + offset)) > 1 and np.ptp(t) > 0:
                centre, variance = mean_and_variance(t, weights[has])
                spread = float(np.sqrt(variance))
                found[name] = Scale(name, (shift + offset) / width, width, centre, spread, offset)
        e = 1.0 if exposure is None or X is None else X[:, exposure]
        for name in families:
            found[name] = CountScale(name, shift / width, width).fitted(y, e, noise.weights)
        return cls(shift, width, found, exposure)

    @classmethod
    def raw(cls, y: FloatArray) -> "Target":
        """Return the target of numbers (n_samples,) that are used as they come."""
        others = {name: Scale.of_fields(name) for name in (*TARGET_SCALES, *COUNT_SCALES[:2])}
        offset = target_offset(y)
        others["log"] = Scale("log", offset, offset=offset)
        return cls(0.0, 1.0, {IDENTITY: Identity(IDENTITY), **others})

    def exposures(self, inputs: Inputs) -> FloatArray | float:
        """Return the exposures (n,) of rows, or the numbers of trials, one without a column."""
        return 1.0 if self.exposure is None else inputs.raw(self.exposure)

    @property
    def is_constant(self) -> bool:
        """Whether the target was the same in all rows, up to rounding."""
        return self.width <= _rounding(self.shift)

    def forward(self, y: FloatArray) -> FloatArray:
        """Standardise targets (n_samples,)."""
        return (y - self.shift) / self.width

    def inverse(self, u: FloatArray) -> FloatArray:
        """Convert standardised targets to the units of the user; what is left of rounding is 0."""
        y = self.shift + self.width * u
        return np.where(np.abs(y) <= ROUNDING * abs(self.shift), 0.0, y)


def _rounding(value: float) -> float:
    """Return the distance to the next number, or more where its square would vanish."""
    return max(float(np.spacing(abs(value))), MIN_SPREAD)


def resolution_of(y: FloatArray) -> float:
    """Return the largest round step of which all targets (n_samples,) are multiples.

    Round steps are 1, 2 or 5 times a power of ten, and 1/2, 1/4 and 1/8. It is zero if there is no
    such step above a millionth of the range, or above the precision of the numbers.
    """
    if len(values := np.unique(np.delete(y, fill_rows(y)))) < _MIN_DISTINCT:
        return 0.0
    largest, extent = float(np.abs(values).max()), float(np.ptp(values))
    least = max(_MIN_STEP * extent, np.finfo(float).eps / _TOLERANCE * largest)
    powers = 10.0 ** np.arange(np.floor(np.log10(least)), np.ceil(np.log10(extent)) + 1)
    steps = np.concatenate([np.outer(powers, (1, 2, 5)).ravel(), (0.5, 0.25, 0.125)])
    precision = 2 * float(np.finfo(np.float32).eps) * largest  # numbers may be of 32 bits
    for step in np.unique(steps[(steps >= least) & (steps <= extent)])[::-1]:
        multiples, tolerance = values / step, min(_TOLERANCE, precision / step)
        whole = np.rint(multiples)
        is_exact = np.abs(multiples - whole).max() <= tolerance
        if is_exact and len(np.unique(whole)) >= max(_MIN_DISTINCT, len(values) / 2):
            return float(step)
    return 0.0
