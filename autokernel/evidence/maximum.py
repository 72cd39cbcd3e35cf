"""The maximum near the end of a run, which may have stopped at a saddle or on a ridge."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice

import numpy as np

from autokernel.evidence.maximise import MAX_STEPS, Point, maximise, standard_deviations
from autokernel.evidence.posterior import LogPosterior
from autokernel.exceptions import NotAMaximumError
from autokernel.typing import BoolArray, FloatArray, IntArray

_MAX_GAIN_LEFT = 1e-3  # nats that a Newton step may still gain at a maximum
MIN_GAIN_OF_FAILURE = 0.5  # nats of gain by a Newton step that count as a failure


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
        return Maximum(
            Point(self.mode.theta[order], self.mode.log_posterior),
            self.hessian[np.ix_(order, order)],
            self.gradient[order],
            self.outward[order],
        )


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
