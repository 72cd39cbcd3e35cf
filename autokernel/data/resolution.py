"""The resolution to which a target was recorded, such as whole numbers or halves."""

import numpy as np

from autokernel.data.scales import fill_rows
from autokernel.typing import FloatArray

_MIN_DISTINCT = 3  # values that show a resolution; two are names of two cases
_MIN_SHARE = 1e-6  # of the range, below which a resolution has no effect
_TOLERANCE = 1e-4  # of a step, by which multiples of it may differ from whole numbers


def resolution_of(y: FloatArray) -> float:
    """Return the largest round step of which all targets (n_samples,) are multiples.

    Round steps are 1, 2 or 5 times a power of ten, and 1/2, 1/4 and 1/8. It is zero if there is no
    such step above a millionth of the range, or above the precision of the numbers.
    """
    values = np.unique(np.delete(y, fill_rows(y)))
    if len(values) < _MIN_DISTINCT:
        return 0.0
    largest, extent = float(np.abs(values).max()), float(np.ptp(values))
    least = max(_MIN_SHARE * extent, np.finfo(float).eps / _TOLERANCE * largest)
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


def variance_of_rounding(resolution: float) -> float:
    """Compute the variance of the error of a number that is rounded, if it is uniform."""
    return resolution**2 / 12


def resolution_with(variance: float) -> float:
    """Return the resolution whose rounding has this variance."""
    return float(np.sqrt(12 * variance))
