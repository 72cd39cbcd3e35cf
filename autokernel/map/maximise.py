"""The maximum of a log posterior near one point, by L-BFGS-B."""

from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize

from autokernel.map.posterior import LogPosterior
from autokernel.typing import FloatArray

_FAR_BELOW = 1e6  # nats below the best point, used in the line search if K has no Cholesky factor
_EXACT = 1e-10  # relative gain of the log posterior below which a run stops


@dataclass(frozen=True, slots=True, eq=False)  # eq=False: theta is an array
class Mode:
    """A point of the log posterior, usually a local maximum."""

    theta: FloatArray  # (n_params,)
    log_posterior: float  # nats, -inf if K had no Cholesky factor at any point


def maximise(
    posterior: LogPosterior,
    theta: FloatArray,
    *,
    max_iterations: int,
    tolerance: float = _EXACT,
    step_scales: FloatArray | None = None,
) -> Mode:
    """Maximise the log posterior from one point by L-BFGS-B.

    Steps are measured in ``step_scales`` (n_params,), the scale of the posterior along each
    parameter. By default they are a guess, :meth:`LogPosterior.step_scales`.

    If the covariance has no Cholesky factor at a point, the line search shortens the step. After
    several such points L-BFGS-B may end below the best point that it has evaluated. It is then
    started once more from that point.
    """
    best = Mode(theta, -np.inf)
    scales = posterior.step_scales(theta) if step_scales is None else step_scales

    def objective(scaled: FloatArray) -> tuple[float, FloatArray]:
        nonlocal best
        theta = np.clip(scaled * scales, posterior.lower, posterior.upper)
        point = posterior.value_and_gradient(theta)
        if not np.isfinite(point.value):
            return _FAR_BELOW - best.log_posterior, np.zeros(len(theta))
        if point.value > best.log_posterior:
            best = Mode(theta, point.value)
        return -point.value, -point.gradient * scales

    for _ in range(2):
        result = minimize(
            objective,
            best.theta / scales,
            jac=True,
            method="L-BFGS-B",
            bounds=np.stack([posterior.lower / scales, posterior.upper / scales], axis=1),
            options={"maxiter": max_iterations, "ftol": tolerance, "gtol": 1e-4, "maxcor": 12},
        )
        if -float(result.fun) >= best.log_posterior - 1e-6:
            break
    return best
