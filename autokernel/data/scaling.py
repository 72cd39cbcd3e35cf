"""From the units of the user to those of the search: the unit interval and a standard target."""

from dataclasses import dataclass

import numpy as np

from autokernel.typing import BoolArray, FloatArray


@dataclass(frozen=True, slots=True, eq=False)  # eq=False: the fields are arrays
class Scaling:
    """How columns were scaled before the fit: ``(X - shift) / scale``."""

    shift: FloatArray  # (n_features,)
    scale: FloatArray  # (n_features,), positive

    def apply(self, X: FloatArray) -> FloatArray:
        """Scale the columns of X (n_samples, n_features)."""
        return (X - self.shift) / self.scale

    def of_column(self, column: int) -> tuple[float, float]:
        """Shift and scale of one column."""
        return float(self.shift[column]), float(self.scale[column])


@dataclass(frozen=True, slots=True)
class TargetScaling:
    """How the target was standardised before the fit: ``(y - shift) / scale``."""

    shift: float
    scale: float  # positive

    @classmethod
    def of(cls, y: FloatArray) -> "TargetScaling":
        """Scale as ``GaussianProcessRegressor(normalize_y=True)`` does: by 1 what is constant."""
        return cls(float(np.mean(y)), float(np.std(y)) or 1.0)

    def apply(self, y: FloatArray) -> FloatArray:
        """Standardise targets (n_samples,)."""
        return (y - self.shift) / self.scale

    def undo(self, y: FloatArray) -> FloatArray:
        """Return standardised targets to the units of the user."""
        return self.shift + self.scale * y


def varying_columns(X: FloatArray) -> BoolArray:
    """Tell which columns (n_features,) vary by more than rounding."""
    rounding = 10 * np.finfo(float).eps * np.abs(X).max(axis=0)
    return np.ptp(X, axis=0) > rounding


def unit_scaling(X: FloatArray) -> Scaling:
    """Scaling of each column to the unit interval; one that does not vary is only shifted."""
    return Scaling(X.min(axis=0), np.where(varying_columns(X), np.ptp(X, axis=0), 1.0))
