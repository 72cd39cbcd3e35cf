"""The Hessian by finite differences of an exact gradient, with a step for each parameter."""

from collections.abc import Callable
from math import sqrt

import numpy as np

from autokernel.typing import BoolArray, FloatArray

_FIRST = 3e-3  # first step in a log parameter
_STEP = 5e-3  # step in standard deviations along an axis, if the first step is too long
_LONGEST, _LONGEST_OSCILLATING = 5e-2, 1e-2  # longest steps in standard deviations
_ROUNDS = 8
_AGREED = 1e-3  # nats of disagreement that are accepted

Gradient = Callable[[FloatArray], FloatArray]


def difference_hessian(
    gradient: Gradient, theta: FloatArray, *, oscillates: BoolArray
) -> FloatArray:
    """Compute the Hessian of a function of log parameters from its exact gradient.

    Parameters
    ----------
    gradient : callable
        Function from a point (n_params,) to the gradient (n_params,) there.
    theta : ndarray of shape (n_params,)
        The point.
    oscillates : ndarray of shape (n_params,)
        Whether the function oscillates along a parameter, as it does along a period. Its fourth
        derivative is then larger, and the steps are shorter.

    Returns
    -------
    ndarray of shape (n_params, n_params)
        The symmetric Hessian H.

    Notes
    -----
    Central differences take 2 n_params + 1 calls, and two to four more for each sharply determined
    parameter. A step is short compared with ``1 / sqrt(H_ii)``, the conditional standard deviation
    along its axis, which may be a millionth for a period. Differences along axis i and along axis j
    both give ``H_ij``, with different truncation and rounding errors. Their disagreement, in units
    of the standard deviations, estimates the error of the log determinant. Above ``_AGREED`` the
    gradient has lost digits, and steps ten times as long are tried. The more symmetric result is
    returned.
    """
    here = gradient(theta)
    longest = np.where(oscillates, _LONGEST_OSCILLATING, _LONGEST)
    answers = []
    for scale in (1.0, 10.0):
        rows = [
            _row(gradient, theta, here, axis, scale=scale, longest=scale * most)
            for axis, most in zip(np.eye(len(theta)), longest, strict=True)
        ]
        answers.append(np.array(rows))
        if _disagreement(answers[-1]) < _AGREED:
            break
    best = min(answers, key=_disagreement)
    return (best + best.T) / 2


def _row(
    gradient: Gradient,
    theta: FloatArray,
    here: FloatArray,
    axis: FloatArray,
    *,
    scale: float,
    longest: float,
) -> FloatArray:
    """Compute one row; the step shrinks until it is short in the standard deviation found."""
    step = scale * _FIRST
    for _ in range(_ROUNDS):
        above, below = gradient(theta + step * axis), gradient(theta - step * axis)
        # The larger of both sides counts: far from the point, one may vanish by chance.
        curvature = float(max(abs(axis @ (above - here)), abs(axis @ (here - below))) / step)
        row = (above - below) / (2 * step)
        if step * sqrt(curvature) <= longest:
            break
        step = scale * _STEP / sqrt(curvature)
    return row


def _disagreement(rows: FloatArray) -> float:
    """Estimate the error, in nats, from the asymmetry of the rows."""
    std = 1 / np.sqrt(np.maximum(np.abs(np.diag(rows)), 1.0))
    return float(np.linalg.norm((rows - rows.T) * np.outer(std, std)) / 2)
