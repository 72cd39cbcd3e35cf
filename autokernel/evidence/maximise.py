"""The maximum of a log posterior near one point, by the BFGS method within bounds.

A call of a posterior costs far more than the algebra of a dense Hessian. A run can begin with the
Hessian of a similar kernel, and then takes fewer calls.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.linalg.lapack import dposv

from autokernel.evidence.posterior import LogPosterior
from autokernel.inference import ValueAndGradient
from autokernel.typing import BoolArray, FloatArray

_EXACT = 1e-11  # nats that a Newton step is expected to gain at most, at the end of a run
_LONGEST, _FIRST = 3.0, 1.0  # longest step before it is doubled; that without a known curvature
_ENOUGH = 1e-4  # least fraction of the gain expected by the slope with which a step is accepted
_SHORTER, _SHORTEST = 0.5, 0.1  # bounds of the factor by which a rejected step is shortened
_FAILED = 0.25  # factor for a step to a point where K has no Cholesky factor
_N_TRIED, _N_TRIED_AT_END = 8, 2  # lengths of a step that are tried, the longest first
_STEEP = 0.5  # a step is doubled where it leaves this fraction of the slope, and gains by it
_N_LONGER = 2  # times that a step is doubled
_STIFFEST = 1e3  # curvature, with steps in their scales, that may be real and not a bad estimate
_AT_END = 1e-5  # nats of expected gain that rounding errors of the posterior may prevent
_DAMPED = 0.2  # least ratio of the curvature along a step to the expected one (Powell)
_LEAST_FACTOR, _FACTOR_IN_VALLEY = 0.01, 0.25  # factors of all curvatures after one step
_LEAST_SCALE, _MOST_SCALE = 1e-2, 1e4  # bounds of the factor of all curvatures after the first step
_LEAST = 1e-3  # least curvature along a principal axis, after scaling the diagonal to one


@dataclass(frozen=True, slots=True, eq=False)  # eq=False: the fields are arrays
class Mode:
    """A point of the log posterior, usually a local maximum."""

    theta: FloatArray  # (n_params,)
    log_posterior: float  # nats, -inf if K had no Cholesky factor at any point
    curvature: FloatArray | None = None  # estimate of the Hessian of the negative log posterior

    @property
    def as_start(self) -> "Start":
        """The same point as the start of another run."""
        return Start(self.theta, self.curvature)


class Start(NamedTuple):
    """A point to run from, with what is known of the log posterior around it."""

    theta: FloatArray  # (n_params,)
    curvature: FloatArray | None = None  # estimate of the Hessian of the negative log posterior


def maximise(
    posterior: LogPosterior,
    theta: FloatArray,
    *,
    max_iterations: int,
    tolerance: float = _EXACT,
    curvature: FloatArray | None = None,
) -> Mode:
    """Maximise the log posterior from one point within its bounds.

    Parameters
    ----------
    posterior : LogPosterior
        Log posterior to maximise.
    theta : ndarray of shape (n_params,)
        The point.
    max_iterations : int
        Largest number of steps.
    tolerance : float
        Nats that a Newton step is expected to gain at most, at the end.
    curvature : ndarray of shape (n_params, n_params) or None
        Estimate of the Hessian of the negative log posterior, such as that of a similar kernel.
        Without it, the run begins with that of :meth:`LogPosterior.step_scales`, which limit the
        steps in either case.

    Returns
    -------
    Mode
        The end of the run. The log posterior never falls along the way.

    Notes
    -----
    Nocedal and Wright (2006), algorithm 6.1 and section 18.3 for Powell's damping. Parameters that
    the slope holds at a bound stay there; all others take a Newton step, cut off at the bounds. If
    the covariance has no Cholesky factor at a point, the step is shortened.
    """
    scales = posterior.step_scales(theta)
    theta = np.clip(theta, posterior.lower, posterior.upper)
    here = posterior.value_and_gradient(theta)
    if not np.isfinite(here.value):
        return Mode(theta, -np.inf)
    longest = _FIRST if curvature is None else _LONGEST
    hessian = np.diag(scales**-2) if curvature is None else _positive_definite(curvature)
    for number in range(max_iterations):
        free = ~_held(posterior, theta, here.gradient)
        step = _newton_step(hessian, here.gradient, free)
        if step is None:  # rounding errors have cost the Hessian its positive definiteness
            hessian = _diagonal(hessian)
            step = np.where(free, here.gradient / np.diag(hessian), 0.0)
        gain, in_scales = 0.5 * float(here.gradient @ step), here.gradient[free] * scales[free]
        if gain <= tolerance and 0.5 * in_scales @ in_scales <= _STIFFEST * tolerance:
            break
        step *= min(1.0, longest / float(np.abs(step / scales).max()))
        n_tried = _N_TRIED if gain > _AT_END else _N_TRIED_AT_END
        found = _search_along(posterior, theta, here, step, n_tried)
        if found is None:
            diagonal = _diagonal(hessian)
            if gain < _AT_END or np.array_equal(hessian, diagonal):
                break
            hessian = diagonal
            continue
        moved, fall = found.theta - theta, here.gradient - found.point.gradient
        if curvature is None and number == 0:
            hessian *= _measured_scale(moved, fall, hessian)
        hessian = _updated(hessian, moved, fall, shrinks=curvature is None)
        theta, here, longest = found.theta, found.point, _LONGEST
    return Mode(theta, here.value, hessian)


class _Found(NamedTuple):
    """A point that a step has reached."""

    theta: FloatArray
    point: ValueAndGradient


def _held(posterior: LogPosterior, theta: FloatArray, gradient: FloatArray) -> BoolArray:
    """Return the mask (n_params,) of the parameters that the slope holds at a bound."""
    at_lower, at_upper = theta <= posterior.lower, theta >= posterior.upper
    held: BoolArray = (at_lower & (gradient < 0)) | (at_upper & (gradient > 0))
    return held


def _diagonal(hessian: FloatArray) -> FloatArray:
    """Return the diagonal matrix of the absolute curvatures along the axes."""
    return np.diag(np.maximum(np.abs(np.diag(hessian)), _LEAST))


def _newton_step(hessian: FloatArray, gradient: FloatArray, free: BoolArray) -> FloatArray | None:
    """Compute the step (n_params,) to the top of a parabola of the free parameters.

    None if the Hessian is not positive definite.
    """
    if not free.all():
        hessian = np.where(np.outer(free, free), hessian, np.eye(len(free)))
        gradient = np.where(free, gradient, 0.0)
    _, step, failed = dposv(hessian, gradient)
    return None if failed else np.asarray(step)


def _search_along(
    posterior: LogPosterior,
    theta: FloatArray,
    here: ValueAndGradient,
    step: FloatArray,
    n_tried: int,
) -> _Found | None:
    """Shorten a step until it gains enough; None if no length that is tried does."""
    fraction = 1.0
    for _ in range(n_tried):
        end = np.clip(theta + fraction * step, posterior.lower, posterior.upper)
        point = posterior.value_and_gradient(end)
        gain, expected = point.value - here.value, float(here.gradient @ (end - theta))
        if gain > max(0.0, _ENOUGH * expected):
            found = _Found(end, point)
            return _go_on(posterior, found, end - theta, expected) if fraction == 1.0 else found
        if np.isfinite(gain) and gain < expected:
            top = expected / (2 * (expected - gain))  # of the parabola through what is known
            fraction *= min(max(top, _SHORTEST), _SHORTER)
        else:
            fraction *= _FAILED
    return None


def _go_on(posterior: LogPosterior, found: _Found, step: FloatArray, expected: float) -> _Found:
    """Double a step of an expected gain while the log posterior still rises nearly as steeply."""
    for _ in range(_N_LONGER):
        if found.point.gradient @ step < _STEEP * expected:
            break
        end = np.clip(found.theta + step, posterior.lower, posterior.upper)
        point = posterior.value_and_gradient(end)
        if not point.value > found.point.value:
            break
        found, step, expected = _Found(end, point), 2 * step, 2 * expected
    return found


def _updated(
    hessian: FloatArray, moved: FloatArray, fall: FloatArray, *, shrinks: bool
) -> FloatArray:
    """Update an estimate of the Hessian by how much the gradient falls along a step.

    With ``shrinks``, all curvatures are reduced with the one along the step (Oren and Luenberger).
    """
    expected = hessian @ moved
    of_step, measured = float(moved @ expected), float(moved @ fall)
    if shrinks and measured < of_step:
        shrunk = max(measured / of_step, _LEAST_FACTOR) if measured > 0 else _FACTOR_IN_VALLEY
        hessian, expected, of_step = shrunk * hessian, shrunk * expected, shrunk * of_step
    if measured < _DAMPED * of_step:  # so that the Hessian stays positive definite
        weight = (1 - _DAMPED) * of_step / (of_step - measured)
        fall = weight * fall + (1 - weight) * expected
        measured = _DAMPED * of_step
    updated: FloatArray = (
        hessian + np.outer(fall, fall) / measured - np.outer(expected, expected) / of_step
    )
    return updated


def _measured_scale(moved: FloatArray, fall: FloatArray, hessian: FloatArray) -> float:
    """Return the ratio of the curvature along the first step to that of the first guess."""
    ratio = float(moved @ fall) / float(moved @ hessian @ moved)
    return float(np.clip(ratio, _LEAST_SCALE, _MOST_SCALE)) if ratio > 0 else 1.0


def _positive_definite(hessian: FloatArray) -> FloatArray:
    """Return a matrix like a Hessian, with the absolute value of each principal curvature."""
    std = standard_deviations(hessian)
    curvatures, axes = np.linalg.eigh(hessian * np.outer(std, std))
    nearest = (axes * np.maximum(np.abs(curvatures), _LEAST)) @ axes.T
    return nearest / np.outer(std, std)


def standard_deviations(hessian: FloatArray) -> FloatArray:
    """Compute the conditional standard deviations (n_params,) of a Gaussian with this Hessian."""
    return 1 / np.sqrt(np.maximum(np.abs(np.diag(hessian)), _LEAST))
