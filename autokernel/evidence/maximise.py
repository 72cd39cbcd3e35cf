"""The maximum of a log posterior near one point, by the BFGS method within bounds.

A call of a posterior costs far more than the algebra of a dense Hessian. A run can begin with the
Hessian of a similar kernel, and then takes fewer calls.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg.lapack import dposv

from autokernel.evidence.posterior import LogPosterior
from autokernel.typing import BoolArray, FloatArray

MAX_STEPS = 300  # of a run to full precision
HOPELESS_NATS = 10.0  # nats below the best mode at which a point is given up

_FULL_PRECISION = 1e-11  # nats that a Newton step is expected to gain at most, at the end of a run
_MAX_STEP = 3.0  # standard deviations, before a step is doubled
_MAX_FIRST_STEP = 1.0  # standard deviations, without a known curvature, and of a short step
_MAX_REAL_CURVATURE = 1e3  # in the scales of the steps; above it the estimate may be bad
_ROUNDING_GAIN = 1e-5  # nats of expected gain that rounding errors of the posterior may prevent
_MIN_CURVATURE_RATIO = 0.2  # of the curvature along a step to the expected one (Powell)
_MIN_CURVATURE = 1e-3  # along a principal axis, after scaling the diagonal to one


@dataclass(frozen=True, slots=True, eq=False)  # eq=False: the fields are arrays
class Point:
    """A point of a log posterior, where a run starts or ends."""

    theta: FloatArray  # (n_params,)
    log_posterior: float = np.nan  # nats, -inf if K has no Cholesky factor, nan if not computed
    curvature: FloatArray | None = None  # estimate of the Hessian of the negative log posterior


def distinct_points(points: Iterable[Point], distance: float) -> list[Point]:
    """Sort points, the highest first, and drop every one that is close to a higher one."""
    kept: list[Point] = []
    for point in sorted(points, key=lambda point: point.log_posterior, reverse=True):
        if all(np.abs(point.theta - other.theta).max() > distance for other in kept):
            kept.append(point)
    return kept


def maximise(
    posterior: LogPosterior,
    start: Point,
    *,
    max_iterations: int,
    tolerance: float = _FULL_PRECISION,
    known: Sequence[Point] = (),
) -> Point:
    """Maximise the log posterior from one point, and return the end of the run.

    A point beyond the bounds is moved to them. The log posterior never falls along the way. At the
    end, a Newton step is expected to gain at most ``tolerance`` nats.

    The run begins with the ``curvature`` of the start, such as that of a similar kernel. Without
    it, it begins with that of :meth:`LogPosterior.step_units`, which limit the steps in either
    case. A run that comes so near to a ``known`` end that its parabola explains the log posterior
    ends there.

    Nocedal and Wright (2006), algorithm 6.1 and section 18.3 for Powell's damping. Parameters that
    the slope holds at a bound stay there; all others take a Newton step, cut off at the bounds. If
    the covariance has no Cholesky factor at a point, the step is shortened.
    """
    theta, curvature = np.clip(start.theta, posterior.lower, posterior.upper), start.curvature
    units = posterior.step_units(theta)
    value, gradient = posterior.value_and_gradient(theta)
    if not np.isfinite(value):
        return Point(theta, -np.inf)
    is_guess, longest = curvature is None, _MAX_FIRST_STEP
    hessian = np.diag(units**-2)
    if curvature is not None:
        longest, hessian = _MAX_STEP, _positive_definite(curvature)
    for _ in range(max_iterations):
        free = _is_free(posterior, theta, gradient)
        hessian, step = _newton_step(hessian, gradient, free)
        gain, in_units = 0.5 * float(gradient @ step), gradient[free] * units[free]
        if gain <= tolerance and 0.5 * in_units @ in_units <= _MAX_REAL_CURVATURE * tolerance:
            break
        step *= min(1.0, longest / float(np.abs(step / units).max()))
        if (found := _search_along(posterior, (theta, value, gradient), step, gain=gain)) is None:
            diagonal = _diagonal(hessian)
            if gain < _ROUNDING_GAIN or np.array_equal(hessian, diagonal):
                break
            hessian = diagonal
            continue
        end, value, slopes = found
        moved, fall = end - theta, gradient - slopes
        if is_guess:  # whose curvature along the first step is now measured
            is_guess, ratio = False, float(moved @ fall) / float(moved @ hessian @ moved)
            hessian *= np.clip(ratio, 1e-2, 1e4) if ratio > 0 else 1.0
        hessian = _updated(hessian, moved, fall, shrinks=curvature is None)
        theta, gradient, longest = end, slopes, _MAX_STEP
        for mode in known:
            if _leads_to(mode, theta, value):
                return mode
    return Point(theta, value, hessian)


def _leads_to(mode: Point, theta: FloatArray, value: float) -> bool:
    """Return whether the parabola around a mode explains the log posterior at a point near it."""
    if mode.curvature is None:
        return False
    away = theta - mode.theta
    expected = 0.5 * float(away @ mode.curvature @ away)
    return expected < 2.0 and abs(mode.log_posterior - value - expected) < 0.2 * expected


def _diagonal(hessian: FloatArray) -> FloatArray:
    """Return the diagonal matrix of the absolute curvatures along the axes."""
    return np.diag(np.maximum(np.abs(np.diag(hessian)), _MIN_CURVATURE))


def _newton_step(
    hessian: FloatArray, gradient: FloatArray, free: BoolArray
) -> tuple[FloatArray, FloatArray]:
    """Return the Hessian, its diagonal if it is not definite, and a step to the parabola's top."""
    of_free = np.where(np.outer(free, free), hessian, np.eye(len(free)))
    _, step, failed = dposv(of_free, np.where(free, gradient, 0.0))
    if failed:
        hessian = _diagonal(hessian)
        step = np.where(free, gradient / np.diag(hessian), 0.0)
    return hessian, np.asarray(step)


def expected_gain(posterior: LogPosterior, end: Point) -> float:
    """Expect what a short step from the end of a run gains."""
    if end.curvature is None:
        return 0.0
    _, gradient = posterior.value_and_gradient(end.theta)
    hessian, step = _newton_step(end.curvature, gradient, _is_free(posterior, end.theta, gradient))
    in_units = float(np.abs(step / posterior.step_units(end.theta)).max())
    step *= _MAX_FIRST_STEP / max(_MAX_FIRST_STEP, in_units)
    return float(gradient @ step - 0.5 * step @ hessian @ step)


def _is_free(posterior: LogPosterior, theta: FloatArray, gradient: FloatArray) -> BoolArray:
    """Return which parameters the slope does not hold at a bound."""
    return np.where(
        gradient < 0, theta > posterior.lower, (gradient == 0) | (theta < posterior.upper)
    )


_At = tuple[FloatArray, float, FloatArray]
"""A point with its value and gradient."""


def _search_along(
    posterior: LogPosterior, start: _At, step: FloatArray, *, gain: float
) -> _At | None:
    """Return the end of a step, shortened until it gains enough; None if no length does."""
    (theta, value, gradient), fraction = start, 1.0
    for _ in range(8 if gain > _ROUNDING_GAIN else 2):
        end = np.clip(theta + fraction * step, posterior.lower, posterior.upper)
        there, slopes = posterior.value_and_gradient(end)
        gain, expected = there - value, float(gradient @ (end - theta))
        if gain > max(0.0, 1e-4 * expected):
            if fraction < 1.0:
                return end, there, slopes
            return _go_on(posterior, (end, there, slopes), end - theta, expected=expected)
        if np.isfinite(gain) and gain < expected:
            top = expected / (2 * (expected - gain))  # of the parabola through what is known
            fraction *= min(max(top, 0.1), 0.5)
        else:  # K has no factor there
            fraction *= 0.25
    return None


def _go_on(posterior: LogPosterior, start: _At, step: FloatArray, *, expected: float) -> _At:
    """Double a step, up to twice, while the log posterior rises at least half as steeply."""
    theta, value, gradient = start
    for _ in range(2):
        if gradient @ step < 0.5 * expected:
            break
        end = np.clip(theta + step, posterior.lower, posterior.upper)
        there, slopes = posterior.value_and_gradient(end)
        if not there > value:
            break
        theta, value, gradient = end, there, slopes
        step, expected = 2 * step, 2 * expected
    return theta, value, gradient


def _updated(
    hessian: FloatArray, moved: FloatArray, fall: FloatArray, *, shrinks: bool
) -> FloatArray:
    """Update an estimate of the Hessian by how much the gradient falls along a step.

    With ``shrinks``, all curvatures are reduced with the one along the step (Oren and Luenberger).
    """
    expected = hessian @ moved
    of_step, measured = float(moved @ expected), float(moved @ fall)
    if shrinks and measured < of_step:
        shrunk = max(measured / of_step, 0.01) if measured > 0 else 0.25
        hessian, expected, of_step = shrunk * hessian, shrunk * expected, shrunk * of_step
    if measured < _MIN_CURVATURE_RATIO * of_step:  # so that the Hessian stays positive definite
        weight = (1 - _MIN_CURVATURE_RATIO) * of_step / (of_step - measured)
        fall = weight * fall + (1 - weight) * expected
        measured = _MIN_CURVATURE_RATIO * of_step
    return hessian + np.outer(fall, fall) / measured - np.outer(expected, expected) / of_step


def _positive_definite(hessian: FloatArray) -> FloatArray:
    """Return a matrix like a Hessian, with the absolute value of each principal curvature."""
    std = standard_deviations(hessian)
    curvatures, axes = np.linalg.eigh(hessian * np.outer(std, std))
    return (axes * np.maximum(np.abs(curvatures), _MIN_CURVATURE)) @ axes.T / np.outer(std, std)


def standard_deviations(hessian: FloatArray) -> FloatArray:
    """Compute the conditional standard deviations (n_params,) of a Gaussian with this Hessian."""
    return 1 / np.sqrt(np.maximum(np.abs(np.diag(hessian)), _MIN_CURVATURE))
