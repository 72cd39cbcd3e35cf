"""What makes an expression worth evaluating."""

import numpy as np
from scipy.special import ndtr

from autokernel.surrogate.gp import Prediction
from autokernel.typing import FloatArray


def expected_improvement(prediction: Prediction, *, best: float) -> FloatArray:
    """Compute by how much (n,) a score is expected to exceed ``best``, in its unit."""
    std = np.maximum(prediction.std, 1e-12)
    z = (prediction.mean - best) / std
    density = np.exp(-0.5 * z**2) / np.sqrt(2 * np.pi)
    return std * (z * ndtr(z) + density)
