"""Scaling of inputs to the unit interval, and standardisation of the target."""

from dataclasses import dataclass

import numpy as np

from autokernel.data.noise import RowNoise
from autokernel.data.scales import Scale, mean_and_variance
from autokernel.typing import BoolArray, FloatArray

MIN_SPREAD = 1e-100  # of a column, so that its square does not vanish
_ROUNDS = 20  # of weights and the spread that they give


@dataclass(frozen=True, slots=True, eq=False)  # eq=False: the fields are arrays
class Scaling:
    """The scaling of the columns before the fit: ``(X - shift) / scale``."""

    shift: FloatArray  # (n_features,), subtracted first
    scale: FloatArray  # (n_features,), positive

    def apply(self, X: FloatArray) -> FloatArray:
        """Scale the columns of X (n_samples, n_features)."""
        return (X - self.shift) / self.scale

    def of_column(self, column: int) -> tuple[float, float]:
        """Return the shift and the scale of one column."""
        return float(self.shift[column]), float(self.scale[column])

    def of_view(self, column: int, scale: Scale | None) -> tuple[float, float]:
        """Return the shift and the scale of one column, or of it on another scale."""
        return self.of_column(column) if scale is None else (scale.shift, scale.width)


@dataclass(frozen=True, slots=True)
class TargetScaling:
    """The standardisation of the target before the fit: ``(y - shift) / scale``."""

    shift: float
    scale: float  # positive

    @classmethod
    def of(cls, y: FloatArray, weights: FloatArray | None = None) -> "TargetScaling":
        """Standardise as ``GaussianProcessRegressor(normalize_y=True)``, except for a constant.

        The scale of a constant is the rounding of its value, so that no unit makes it vary.
        """
        if np.ptp(y) == 0:
            return cls(float(y[0]), _rounding(float(y[0])))
        mean, variance = mean_and_variance(y, weights)
        return cls(mean, float(np.sqrt(variance)))

    @property
    def is_constant(self) -> bool:
        """Whether the target was the same in all rows, up to rounding."""
        return self.scale <= _rounding(self.shift)

    def apply(self, y: FloatArray) -> FloatArray:
        """Standardise targets (n_samples,)."""
        return (y - self.shift) / self.scale

    def undo(self, y: FloatArray) -> FloatArray:
        """Convert standardised targets to the units of the user."""
        return self.shift + self.scale * y


def standardising_weights(y: FloatArray, noise: RowNoise) -> FloatArray:
    """Weight rows (n,) less, the larger their known error is, compared with the spread of all."""
    found = noise.weights
    for _ in range(_ROUNDS if noise.errors.any() else 0):
        _, variance = mean_and_variance(y, found)
        found = noise.multiplied(1 / max(variance, MIN_SPREAD**2)).influence
    return found


def _rounding(value: float) -> float:
    """Return the distance to the next number, or more where its square would vanish."""
    return max(float(np.spacing(abs(value))), MIN_SPREAD)


def varying_columns(X: FloatArray) -> BoolArray:
    """Mark the columns (n_features,) whose known values vary by more than rounding."""
    X = _with_values(X)
    rounding = 10 * np.finfo(float).eps * np.nanmax(np.abs(X), axis=0)
    return np.nanmax(X, axis=0) - np.nanmin(X, axis=0) > rounding


def unit_scaling(X: FloatArray) -> Scaling:
    """Compute the scaling to the unit interval; constant columns are only shifted."""
    X = _with_values(X)
    low, high = np.nanmin(X, axis=0), np.nanmax(X, axis=0)
    return Scaling(low, np.where(varying_columns(X), high - low, 1.0))


def _with_values(X: FloatArray) -> FloatArray:
    """Let columns without a value be zero, as all of their values may be in excluded rows."""
    return np.where(np.isnan(X).all(axis=0), 0.0, X)
