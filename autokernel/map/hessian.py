"""The Hessian by differences of an exact gradient, with steps that fit each parameter."""

from collections.abc import Callable
from math import sqrt

import numpy as np

from autokernel.typing import BoolArray, FloatArray

_FIRST = 3e-3  # of a log parameter
_STEP = 5e-3  # of the width along an axis, where the first step is too long
_LONGEST, _LONGEST_OSCILLATING = 5e-2, 1e-2  # of the width
_ROUNDS = 8
_AGREED = 1e-3  # nats

Gradient = Callable[[FloatArray], FloatArray]


def difference_hessian(
    gradient: Gradient, theta: FloatArray, *, oscillates: BoolArray
) -> FloatArray:
    """Hessian of a function of log parameters, from its exact gradient.

    Parameters
    ----------
    gradient : callable
        Gradient (n_params,) at a point (n_params,).
    theta : ndarray of shape (n_params,)
        The point.
    oscillates : ndarray of shape (n_params,)
        Whether the function oscillates in a parameter, as in a period: its fourth derivative is
        larger then, and steps are shorter.

    Returns
    -------
    ndarray of shape (n_params, n_params)
        Symmetric.

    Notes
    -----
    Central differences, 2 n_params + 1 calls and two to four more for each sharp parameter. A step
    is short in the width ``1 / sqrt(H_ii)`` of its axis: that of a period may be a millionth.
    Differences along i and along j both give ``H_ij``, with other truncation and other rounding:
    what they disagree by, in units of the widths, is the size of the error of the log determinant.
    Above ``_AGREED`` the gradient has lost digits, and steps ten times as long are tried; the more
    symmetric answer is returned.
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
    """One row; the step shrinks until it is short in the width that it measures itself."""
    step = scale * _FIRST
    for _ in range(_ROUNDS):
        above, below = gradient(theta + step * axis), gradient(theta - step * axis)
        # both sides: far from the point one of the two may vanish by chance
        curvature = float(max(abs(axis @ (above - here)), abs(axis @ (here - below))) / step)
        row = (above - below) / (2 * step)
        if step * sqrt(curvature) <= longest:
            break
        step = scale * _STEP / sqrt(curvature)
    return row


def _disagreement(rows: FloatArray) -> float:
    """Size of the error, in nats, as the asymmetry of the rows shows it."""
    width = 1 / np.sqrt(np.maximum(np.abs(np.diag(rows)), 1.0))
    return float(np.linalg.norm((rows - rows.T) * np.outer(width, width)) / 2)
