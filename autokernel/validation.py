"""Checks of arguments that several layers share."""

import numpy as np
import numpy.typing as npt
from sklearn.utils import check_random_state, check_X_y

from autokernel.typing import FloatArray

_LARGEST = 1e100


def check_training_data(X: npt.ArrayLike, y: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Turn inputs and targets into finite arrays of float64.

    Raises
    ------
    ValueError
        With scikit-learn's own messages, or if a number is so large that its square overflows.
    """
    inputs, target = check_X_y(X, y, dtype=np.float64, y_numeric=True, ensure_min_samples=2)
    target = target.astype(np.float64)
    check_range(inputs, target)
    return inputs, target


def check_range(X: FloatArray, y: FloatArray) -> None:
    """Refuse numbers so large that their squares or differences overflow."""
    for name, values in (("X", X), ("y", y)):
        largest = float(np.abs(values).max())
        if largest > _LARGEST:
            raise ValueError(
                f"{name} must not hold numbers above {_LARGEST:.0e}, got {largest:.3g}: divide it "
                "by a constant"
            )


def check_seed(random_state: int | np.random.RandomState | None) -> int:
    """Turn scikit-learn's ``random_state`` into a seed, drawing from it unless it is one."""
    if isinstance(random_state, (int, np.integer)) and random_state >= 0:
        return int(random_state)
    return int(check_random_state(random_state).randint(2**31))
