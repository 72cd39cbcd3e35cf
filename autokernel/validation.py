"""Checks of arguments that several layers share."""

import numpy as np
import numpy.typing as npt
from sklearn.utils import check_random_state, check_X_y

from autokernel.typing import FloatArray


def check_training_data(X: npt.ArrayLike, y: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Turn inputs and targets into finite arrays of float64.

    Raises
    ------
    ValueError
        With scikit-learn's own messages.
    """
    inputs, target = check_X_y(X, y, dtype=np.float64, y_numeric=True, ensure_min_samples=2)
    return inputs, target.astype(np.float64)


def check_seed(random_state: int | np.random.RandomState | None) -> int:
    """Turn scikit-learn's ``random_state`` into a seed, drawing from it unless it is one."""
    if isinstance(random_state, (int, np.integer)) and random_state >= 0:
        return int(random_state)
    return int(check_random_state(random_state).randint(2**31))
