"""The maximum of a log posterior near one point, by the BFGS method within bounds.

A call of a posterior costs far more than the algebra of a dense Hessian. A run can begin with the
Hessian of a similar kernel, and then takes fewer calls. It may stop at a saddle or on a ridge, from
which :func:`find_maximum` goes on.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice

import numpy as np
from scipy.linalg.lapack import dposv

from autokernel.evidence.posterior import LogPosterior
from autokernel.exceptions import NotAMaximumError
from autokernel.typing import BoolArray, FloatArray, IntArray

MAX_STEPS = 300  # of a run to full precision
MIN_GAIN_OF_FAILURE = 0.5  # nats of gain by a Newton step that count as a failure
HOPELESS_NATS = 10.0  # nats below the best mode at which a point is given up

_FULL_PRECISION = 1e-11  # nats that a Newton step is expected to gain at most, at the end of a run
_MAX_GAIN_LEFT = 1e-3  # nats that a Newton step may still gain at a maximum
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


@dataclass(frozen=True, slots=True, eq=False)  # eq=False: the fields are arrays
class Maximum:
    """A maximum within the bounds, with the gradient and the Hessian there."""

    mode: Point
    hessian: FloatArray  # (n_params, n_params), Hessian of the negative log posterior
    gradient: FloatArray  # (n_params,), gradient of the log posterior
    outward: FloatArray  # (n_params,), slope of its rise beyond a bound, zero if free

    @property
    def free(self) -> BoolArray:
        """Mask (n_params,) of the parameters that are not held by a bound."""
        return self.outward <= 0

    def stands_at(self, theta: FloatArray) -> bool:
        """Return whether a point is within one standard deviation, and so the same maximum."""
        away = theta - self.mode.theta
        return bool(abs(away @ self.hessian @ away) < 1)

    def reordered(self, order: IntArray) -> "Maximum":
        """Return the same maximum with the parameters in another order."""
        mode = Point(self.mode.theta[order], self.mode.log_posterior)
        hessian = self.hessian[np.ix_(order, order)]
        return Maximum(mode, hessian, self.gradient[order], self.outward[order])


def measure_maximum(
    posterior: LogPosterior, mode: Point, hessian: FloatArray | None = None
) -> Maximum:
    """Compute the gradient and, where it is not given, the Hessian at a point, without moving it.

    A ``NotAMaximumError`` is raised if the covariance has no Cholesky factor next to the point.
    """
    theta = mode.theta
    _, gradient = posterior.value_and_gradient(theta)
    at_lower, at_upper = theta <= posterior.lower + 1e-9, theta >= posterior.upper - 1e-9
    outward = np.where(at_lower, -gradient, np.where(at_upper, gradient, 0.0))
    hessian = posterior.hessian(theta, mode.curvature) if hessian is None else hessian
    return Maximum(mode, hessian, gradient, np.maximum(outward, 0.0))


def new_maxima(
    posterior: LogPosterior,
    known: Sequence[Maximum],
    modes: Iterable[Point],
    n_tried: int | None = None,
) -> Iterator[Maximum]:
    """Yield the maxima at modes that are none of the known ones, where there is a Hessian.

    What the caller adds to the known ones on the way is known too. Each that is tried costs a
    Hessian.
    """
    new = (mode for mode in modes if not any(one.stands_at(mode.theta) for one in known))
    for mode in islice(new, n_tried):
        with suppress(NotAMaximumError):  # the draws around the others remain
            yield measure_maximum(posterior, mode)


def find_maximum(posterior: LogPosterior, mode: Point) -> Maximum:
    """Maximise on from the end of a run, until a Newton step gains almost nothing.

    A saddle is left along the direction in which the log posterior curves upwards the most. A
    saddle that could not be left is returned. A ``NotAMaximumError`` is raised if the search has
    not converged, or the covariance has no Cholesky factor next to a point.
    """
    maximum, longest = measure_maximum(posterior, mode), 1.0
    for _ in range(5):
        if not (steps := _steps_on(maximum, longest)):
            break
        thetas = (maximum.mode.theta + step for step in steps)
        starts = [Point(theta, curvature=maximum.hessian) for theta in thetas]
        ends = [maximise(posterior, start, max_iterations=MAX_STEPS) for start in starts]
        best = max(ends, key=lambda other: other.log_posterior)
        if best.log_posterior > maximum.mode.log_posterior:
            maximum = measure_maximum(posterior, best)
        elif np.any(_principal_axes(maximum)[2] <= 0):
            longest *= 0.1
        else:  # the same steps would end at the same points
            break
    if (gain := gain_left(maximum)) > MIN_GAIN_OF_FAILURE:
        raise NotAMaximumError(
            "the search of the maximum has not converged, a Newton step would still gain "
            f"{gain:.2g} nats"
        )
    return maximum


def find_best_maximum(posterior: LogPosterior, modes: Sequence[Point]) -> Maximum:
    """Return the maximum near the best mode, or near the next one within three nats of it.

    Where the covariance is nearly singular, rounding errors can make a point seem the best mode
    although the covariance has no Cholesky factor next to it. A ``NotAMaximumError``, that of the
    best mode, is raised if no mode leads to a maximum.
    """
    failures: list[NotAMaximumError] = []
    for mode in modes:
        if mode.log_posterior > modes[0].log_posterior - 3.0:
            try:
                return find_maximum(posterior, mode)
            except NotAMaximumError as error:
                failures.append(error)
    raise failures[0]


def _steps_on(maximum: Maximum, longest: float) -> list[FloatArray]:
    """List the steps (n_params,) to the starting points of the next runs, none at a maximum.

    At a saddle with the curvature -c, a step of ``1 / sqrt(c)`` gains half a nat.
    """
    directions, slopes, curvatures = _principal_axes(maximum)
    if np.any(curvatures <= 0):
        direction = directions[:, 0]
        lowest = max(-curvatures[0], 1e-9)
        step = direction * min(1 / np.sqrt(lowest), 1 / np.abs(direction).max()) * longest
        return [-step, step]
    if 0.5 * (slopes**2 / curvatures).sum() <= _MAX_GAIN_LEFT:
        return []
    return [np.zeros(len(maximum.gradient)), directions @ (slopes / curvatures)]


def gain_left(maximum: Maximum) -> float:
    """Return the nats that a Newton step would still gain, none at a saddle."""
    _, slopes, curvatures = _principal_axes(maximum)
    return 0.0 if np.any(curvatures <= 0) else float(0.5 * (slopes**2 / curvatures).sum())


def _principal_axes(maximum: Maximum) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Diagonalise the Hessian of the free parameters after scaling its diagonal to one.

    Returns the directions (n_params, n_free), the slopes of the log posterior along them, and the
    curvatures of its negative in rising order.
    """
    free = maximum.free
    hessian = maximum.hessian[np.ix_(free, free)]
    # without the scaling, a period may be 1e8 times as sharp as a variance
    std = standard_deviations(hessian)
    curvatures, vectors = np.linalg.eigh(hessian * np.outer(std, std))
    directions = np.zeros((len(free), len(std)))
    directions[free] = std[:, None] * vectors
    return directions, directions.T @ maximum.gradient, curvatures
