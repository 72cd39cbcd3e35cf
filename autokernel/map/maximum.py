"""From where a run has stopped to a maximum: off a saddle, along a ridge."""

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
    def step_scales(self) -> FloatArray:
        """How far the log posterior reaches (n_params,) along each parameter."""
        return _standard_deviations(self.hessian)

    def stands_at(self, theta: FloatArray) -> bool:
        """Whether a point is within one standard deviation, too near to be another maximum."""
        away = theta - self.mode.theta
        return bool(abs(away @ self.hessian @ away) < 1)

    def reordered(self, order: IntArray) -> "Maximum":
        """Return the maximum of the density with its parameters in another order."""
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
    """Leave a saddle along its direction of steepest ascent, and go on while a Newton step gains.

    Raises
    ------
    NotAMaximumError
        If the search has not converged, or the covariance has no Cholesky factor next to a point. A
        saddle that could not be left is returned as it is.
    """
    maximum, longest = measure_maximum(posterior, mode), _LONGEST
    for _ in range(_ROUNDS):
        starts = [maximum.mode.theta + step for step in _steps_on(maximum, longest)]
        if not starts:
            break
        ends = [
            maximise(
                posterior,
                np.clip(start, posterior.lower, posterior.upper),
                max_iterations=300,
                step_scales=maximum.step_scales,
            )
            for start in starts
        ]
        best = max(ends, key=lambda other: other.log_posterior)
        if best.log_posterior > maximum.mode.log_posterior:
            maximum = measure_maximum(posterior, best)
        elif np.any(_principal_axes(maximum).curvatures <= 0):
            longest *= 0.1
        else:  # the same steps would end the same
            break
    gain = _newton_gain(maximum)
    if gain > _NOT_CONVERGED:
        raise NotAMaximumError(
            "the search of the maximum has not converged, a Newton step would still gain "
            f"{gain:.2g} nats"
        )
    return maximum


def _steps_on(maximum: Maximum, longest: float) -> list[FloatArray]:
    """Find steps (n_params,) from whose ends to go on, none at a maximum.

    Off a saddle, where the curvature is -c, a step of ``1 / sqrt(c)`` gains half a nat.
    """
    axes = _principal_axes(maximum)
    if np.any(axes.curvatures <= 0):
        direction = axes.directions[:, 0]
        lowest = max(-axes.curvatures[0], 1e-9)
        step = direction * min(1 / np.sqrt(lowest), 1 / np.abs(direction).max()) * longest
        return [-step, step]
    if _newton_gain(maximum) <= _LEFT:
        return []
    return [np.zeros(len(maximum.gradient)), axes.directions @ (axes.slopes / axes.curvatures)]


def _newton_gain(maximum: Maximum) -> float:
    """Say what a Newton step would gain in nats, zero at a saddle."""
    axes = _principal_axes(maximum)
    if np.any(axes.curvatures <= 0):
        return 0.0
    return float(0.5 * (axes.slopes**2 / axes.curvatures).sum())


class _Axes(NamedTuple):
    """Slopes and curvatures along the principal axes of the free parameters, lowest first."""

    directions: FloatArray  # (n_params, n_free)
    slopes: FloatArray  # (n_free,), of the log posterior
    curvatures: FloatArray  # (n_free,), of its negative


def _principal_axes(maximum: Maximum) -> _Axes:
    """Diagonalise, with a diagonal of ones: a period may be 1e8 times as sharp as a variance."""
    free = maximum.free
    hessian = maximum.hessian[np.ix_(free, free)]
    std = _standard_deviations(hessian)
    curvatures, vectors = np.linalg.eigh(hessian * np.outer(std, std))
    directions = np.zeros((len(free), len(std)))
    directions[free] = std[:, None] * vectors
    return _Axes(directions, directions.T @ maximum.gradient, curvatures)


def _standard_deviations(hessian: FloatArray) -> FloatArray:
    """Conditional standard deviations (n_params,) of a Gaussian with this Hessian."""
    return 1 / np.sqrt(np.maximum(np.abs(np.diag(hessian)), 1e-3))
