"""From where a maximise has stopped to a maximum: off a saddle, along a ridge."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from autokernel.exceptions import NotAMaximumError
from autokernel.map.maximise import Mode, maximise
from autokernel.map.posterior import LogPosterior
from autokernel.typing import BoolArray, FloatArray, IntArray

_ROUNDS = 5
_LONGEST = 1.0  # of a log parameter
_LEFT = 1e-3  # nats that a Newton step may still gain
_NOT_CONVERGED = 0.5  # nats
_AT_BOUND = 1e-9


@dataclass(frozen=True, slots=True, eq=False)  # eq=False: the fields are arrays
class Maximum:
    """A maximum within the bounds, with the shape of the log posterior around it."""

    mode: Mode
    hessian: FloatArray  # (n_params, n_params), of the negative log posterior
    gradient: FloatArray  # (n_params,), of the log posterior
    outward: FloatArray  # (n_params,), how steeply it rises beyond a bound, zero if free

    @property
    def free(self) -> BoolArray:
        """Which parameters (n_params,) no bound holds."""
        return self.outward <= 0

    @property
    def widths(self) -> FloatArray:
        """How far the log posterior reaches (n_params,) along each parameter."""
        return _widths(self.hessian)

    def stands_at(self, theta: FloatArray) -> bool:
        """Whether a point is within one width, too near to belong to another summit."""
        away = theta - self.mode.theta
        return bool(abs(away @ self.hessian @ away) < 1)

    def reordered(self, order: IntArray) -> "Maximum":
        """Return the summit of the density with its parameters in another order."""
        return Maximum(
            Mode(self.mode.theta[order], self.mode.log_posterior),
            self.hessian[np.ix_(order, order)],
            self.gradient[order],
            self.outward[order],
        )


def measure_maximum(posterior: LogPosterior, mode: Mode) -> Maximum:
    """Measure slopes and curvatures at a point, and stay there.

    Raises
    ------
    NotAMaximumError
        If the covariance has no Cholesky factor next to the point.
    """
    theta = mode.theta
    gradient = posterior.value_and_gradient(theta).gradient
    at_lower, at_upper = theta <= posterior.lower + _AT_BOUND, theta >= posterior.upper - _AT_BOUND
    outward = np.where(at_lower, -gradient, np.where(at_upper, gradient, 0.0))
    return Maximum(mode, posterior.hessian(theta), gradient, np.maximum(outward, 0.0))


def find_maximum(posterior: LogPosterior, mode: Mode) -> Maximum:
    """Climb from a saddle along its steepest way, and on where a Newton step would still gain.

    Raises
    ------
    NotAMaximumError
        If the maximise has not converged, or the covariance has no Cholesky factor next to a point. A
        saddle that could not be left is returned as it is.
    """
    summit, longest = measure_maximum(posterior, mode), _LONGEST
    for _ in range(_ROUNDS):
        starts = [summit.mode.theta + way for way in _ways_on(summit, longest)]
        if not starts:
            break
        climbed = [
            maximise(
                posterior,
                np.clip(start, posterior.lower, posterior.upper),
                max_iterations=300,
                widths=summit.widths,
            )
            for start in starts
        ]
        best = max(climbed, key=lambda other: other.log_posterior)
        if best.log_posterior > summit.mode.log_posterior:
            summit = measure_maximum(posterior, best)
        elif np.any(_principal_axes(summit).curvatures <= 0):
            longest *= 0.1
        else:  # the same steps would end the same
            break
    gain = _newton_gain(summit)
    if gain > _NOT_CONVERGED:
        raise NotAMaximumError(
            f"the maximise has not converged, a Newton step would still gain {gain:.2g} nats"
        )
    return summit


def _ways_on(summit: Maximum, longest: float) -> list[FloatArray]:
    """Find steps (n_params,) from which to maximise on, none at a maximum.

    Off a saddle, where the curvature is -c, a step of ``1 / sqrt(c)`` gains half a nat.
    """
    axes = _principal_axes(summit)
    if np.any(axes.curvatures <= 0):
        way = axes.ways[:, 0]
        lowest = max(-axes.curvatures[0], 1e-9)
        way = way * min(1 / np.sqrt(lowest), 1 / np.abs(way).max()) * longest
        return [-way, way]
    if _newton_gain(summit) <= _LEFT:
        return []
    return [np.zeros(len(summit.gradient)), axes.ways @ (axes.slopes / axes.curvatures)]


def _newton_gain(summit: Maximum) -> float:
    """Say what a Newton step would gain in nats, zero at a saddle."""
    axes = _principal_axes(summit)
    if np.any(axes.curvatures <= 0):
        return 0.0
    return float(0.5 * (axes.slopes**2 / axes.curvatures).sum())


class _Axes(NamedTuple):
    """Slopes and curvatures along the principal axes of the free parameters, lowest first."""

    ways: FloatArray  # (n_params, n_free)
    slopes: FloatArray  # (n_free,), of the log posterior
    curvatures: FloatArray  # (n_free,), of its negative


def _principal_axes(summit: Maximum) -> _Axes:
    """Diagonalise, with a diagonal of ones: a period may be 1e8 times as sharp as a variance."""
    free = summit.free
    hessian = summit.hessian[np.ix_(free, free)]
    width = _widths(hessian)
    curvatures, vectors = np.linalg.eigh(hessian * np.outer(width, width))
    ways = np.zeros((len(free), len(width)))
    ways[free] = width[:, None] * vectors
    return _Axes(ways, ways.T @ summit.gradient, curvatures)


def _widths(hessian: FloatArray) -> FloatArray:
    """How far a posterior with this Hessian reaches along each parameter."""
    return 1 / np.sqrt(np.maximum(np.abs(np.diag(hessian)), 1e-3))
