"""The target: its standardisation, and the scales on which its kernel may act."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from autokernel.data.noise import RowNoise
from autokernel.data.scales import (
    MIN_SHARE,
    SCALES,
    Identity,
    Scale,
    mean_and_variance,
    target_offset,
)
from autokernel.expression import IDENTITY, TARGET_SCALES, Expression
from autokernel.typing import FloatArray

MIN_SPREAD = 1e-100  # of numbers, so that its square does not vanish
ROUNDING = 1e-15  # of the shift, within which a target is zero
_ROUNDS = 20  # of weights and the spread that they give


@dataclass(frozen=True, slots=True)
class Target:
    """The standardisation ``u = (y - shift) / width`` of the target, and its scales ``t(u)``.

    On each of ``scales``, one of which is the identity, the training targets have zero mean and
    unit variance. Where positive targets cover many decades, the shift is zero, so that the
    smallest ones keep their digits.
    """

    shift: float
    width: float  # positive
    scales: Mapping[str, Scale]  # by name

    @classmethod
    def of(cls, y: FloatArray, noise: RowNoise, *, log_offset: float = 0.0) -> "Target":
        """Standardise targets (n_samples,), and find the scales that have at least two of them.

        The standardisation is that of ``GaussianProcessRegressor(normalize_y=True)``, except for a
        constant, whose width is the rounding of its value, so that no unit makes it vary. Rows with
        known errors count less. The ``log_offset`` is added before a logarithm is taken.
        """
        weights = _standardising_weights(y, noise)
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
            t = SCALES[name].function(y[has] + offset)
            if len(t) > 1 and np.ptp(t) > 0:
                centre, variance = mean_and_variance(t, weights[has])
                spread = float(np.sqrt(variance))
                origin = (shift + offset) / width
                found[name] = Scale(name, origin, width, centre, spread, offset)
        return cls(shift, width, found)

    @classmethod
    def raw(cls, y: FloatArray) -> "Target":
        """Return the target of numbers (n_samples,) that are used as they come."""
        others = {name: Scale(name) for name in TARGET_SCALES}
        offset = target_offset(y)
        others["log"] = Scale("log", offset, offset=offset)
        return cls(0.0, 1.0, {IDENTITY: Identity(IDENTITY), **others})

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

    def scale_of(self, expression: Expression) -> Scale:
        """Return the scale on which a kernel acts."""
        return self.scales[expression.target]


def _standardising_weights(y: FloatArray, noise: RowNoise) -> FloatArray:
    """Weight rows (n,) less, the larger their known error is, compared with the spread of all."""
    found = noise.weights
    for _ in range(_ROUNDS if noise.errors.any() else 0):
        _, variance = mean_and_variance(y, found)
        found = noise.multiplied(1 / max(variance, MIN_SPREAD**2)).influence
    return found


def _rounding(value: float) -> float:
    """Return the distance to the next number, or more where its square would vanish."""
    return max(float(np.spacing(abs(value))), MIN_SPREAD)
