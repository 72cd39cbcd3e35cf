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


def varying_columns(X: FloatArray) -> BoolArray:
    """Tell which columns (n_features,) vary by more than rounding."""
    rounding = 10 * np.finfo(float).eps * np.abs(X).max(axis=0)
    return np.ptp(X, axis=0) > rounding


def unit_scaling(X: FloatArray) -> Scaling:
    """Scaling of each column to the unit interval; one that does not vary is only shifted."""
    return Scaling(X.min(axis=0), np.where(varying_columns(X), np.ptp(X, axis=0), 1.0))


def target_scale(y: FloatArray) -> float:
    """Return the standard deviation of the target, 1 where it is constant."""
    return float(np.std(y)) or 1.0


def standardise(y: FloatArray) -> FloatArray:
    """Shift and scale the target as ``GaussianProcessRegressor(normalize_y=True)`` does."""
    return (y - np.mean(y)) / target_scale(y)
