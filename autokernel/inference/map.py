"""The MAP point of one kernel: short runs from many points, long ones from the best."""

from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize

from autokernel.inference.posterior import LogPosterior
from autokernel.typing import FloatArray

_FAR_BELOW = 1e6  # nats: what a point without a factor lies below the best, for the line search


@dataclass(frozen=True, slots=True, eq=False)  # eq=False: theta is an array
class Mode:
    """A local maximum of the log posterior."""

    theta: FloatArray  # (n_params,)
    log_posterior: float  # nats, -inf where no point could be factorised


def climb(posterior: LogPosterior, theta: FloatArray, *, max_iterations: int) -> Mode:
    """Maximise the log posterior from one point by L-BFGS-B.

    A point where the covariance has no factor shortens the step. Where L-BFGS-B ends below the best
    point that it has met, as it may after several such points, it starts once more from there.
    """
    best = Mode(theta, -np.inf)

    def objective(theta: FloatArray) -> tuple[float, FloatArray]:
        nonlocal best
        point = posterior.value_and_gradient(theta)
        if not np.isfinite(point.value):
            return _FAR_BELOW - best.log_posterior, np.zeros(len(theta))
        if point.value > best.log_posterior:
            best = Mode(theta.copy(), point.value)
        return -point.value, -point.gradient

    def run(start: FloatArray) -> float:
        result = minimize(
            objective,
            start,
            jac=True,
            method="L-BFGS-B",
            bounds=np.stack([posterior.lower, posterior.upper], axis=1),
            options={"maxiter": max_iterations, "ftol": 1e-10, "gtol": 1e-4, "maxcor": 12},
        )
        return -float(result.fun)

    if run(theta) < best.log_posterior - 1e-6:
        run(best.theta)
    return best


def find_map(
    posterior: LogPosterior,
    starts: FloatArray,
    *,
    short_iterations: int = 15,
    n_polished: int = 4,
) -> Mode:
    """Search the highest mode of the log posterior.

    Parameters
    ----------
    posterior : LogPosterior
        What to maximise.
    starts : ndarray of shape (n_starts, n_params)
        Where to begin.
    short_iterations : int
        Steps from each start.
    n_polished : int
        How many of the best distinct ends are followed to their top.
    """
    ends = sorted(
        (climb(posterior, start, max_iterations=short_iterations) for start in starts),
        key=lambda mode: -mode.log_posterior,
    )
    modes = [
        climb(posterior, end.theta, max_iterations=300)
        for end in _distinct(ends)[:n_polished]
        if np.isfinite(end.log_posterior)
    ]
    return max(modes, key=lambda mode: mode.log_posterior, default=ends[0])


def _distinct(modes: list[Mode]) -> list[Mode]:
    """Drop every mode that stands where a better one stands; the best come first."""
    kept: list[Mode] = []
    for mode in modes:
        if all(np.abs(mode.theta - other.theta).max() > 0.1 for other in kept):
            kept.append(mode)
    return kept
