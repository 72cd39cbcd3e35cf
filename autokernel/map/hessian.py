"""The Hessian by finite differences of an exact gradient, with a step for each parameter."""

from collections.abc import Callable
from functools import cache
from math import sqrt

import numpy as np

from autokernel.typing import BoolArray, FloatArray

_ONE_SIDED = 3e-5  # one-sided step in a log parameter
_LONGEST_ONE_SIDED = 1e-3  # longest one-sided step in standard deviations
_FIRST = 3e-3  # first central step in a log parameter
_STEP = 5e-3  # central step in standard deviations along an axis, if the first step is too long
_LONGEST, _LONGEST_OSCILLATING = 5e-2, 1e-2  # longest central steps in standard deviations
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
    One-sided differences take n_params + 1 calls. A parameter along which the function oscillates,
    or that is determined sharply, has central differences instead, with two to seven calls. Their
    step is short compared with ``1 / sqrt(H_ii)``, the conditional standard deviation along the
    axis, which may be a millionth for a period. Differences along axis i and along axis j both give
    ``H_ij``, with different truncation and rounding errors. Their disagreement, in units of the
    standard deviations, estimates the error of the log determinant, except for errors of the
    diagonal alone. Above ``_AGREED`` the gradient has lost digits: central differences are tried
    along all axes, then with steps ten times as long. The most symmetric result is returned.
    """
    here = gradient(theta)
    longest = np.where(oscillates, _LONGEST_OSCILLATING, _LONGEST)
    axes = np.eye(len(theta))

    @cache
    def central_row(number: int, scale: float) -> FloatArray:
        most = scale * longest[number]
        return _central_row(gradient, theta, here, axes[number], scale=scale, longest=most)

    def quick_row(number: int) -> FloatArray:
        found = None if oscillates[number] else _one_sided_row(gradient, theta, here, axes[number])
        return central_row(number, 1.0) if found is None else found

    answers = []
    for make_row in (quick_row, lambda n: central_row(n, 1.0), lambda n: central_row(n, 10.0)):
        answers.append(np.array([make_row(number) for number in range(len(theta))]))
        if _disagreement(answers[-1]) < _AGREED:
            break
    best = min(answers, key=_disagreement)
    return (best + best.T) / 2


def _one_sided_row(
    gradient: Gradient, theta: FloatArray, here: FloatArray, axis: FloatArray
) -> FloatArray | None:
    """Compute one row by a one-sided difference; None where its step is too long."""
    row = (gradient(theta + _ONE_SIDED * axis) - here) / _ONE_SIDED
    if _ONE_SIDED * sqrt(abs(axis @ row)) > _LONGEST_ONE_SIDED:
        return None
    return row


def _central_row(
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
