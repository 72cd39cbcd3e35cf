"""Laplace's approximation to the evidence, and the exact evidence of the null model."""

import numpy as np
from scipy.integrate import quad
from scipy.linalg import LinAlgError, cholesky
from scipy.special import erfcx

from autokernel.evidence.maximise import Maximum, standard_deviations
from autokernel.evidence.posterior import LogPosterior
from autokernel.exceptions import NotAMaximumError
from autokernel.typing import FloatArray


def log_evidence(posterior: LogPosterior, maximum: Maximum) -> float:
    """Compute the log evidence in nats, exactly if the noise variance is the only parameter.

    Laplace's approximation integrates a parameter held by a bound from that bound. A
    ``NotAMaximumError`` is raised if the density does not decrease in all directions.
    """
    if len(maximum.mode.theta) == 1:
        return integrated_log_evidence(posterior, maximum)
    mode, hessian, free = maximum.mode, maximum.hessian, maximum.free
    found = laplace_log_evidence(mode.log_posterior, hessian[np.ix_(free, free)])
    for held in np.flatnonzero(~free):
        found += boundary_log_mass(maximum.outward[held], hessian[held, held])
    return found


def log_evidence_or_nothing(posterior: LogPosterior, maximum: Maximum) -> float:
    """Compute the log evidence of a fitted kernel in nats; ``-inf`` at a saddle."""
    try:
        return log_evidence(posterior, maximum)
    except NotAMaximumError:
        return -np.inf


def integrated_log_evidence(posterior: LogPosterior, maximum: Maximum) -> float:
    """Integrate a posterior of one parameter between its bounds, to a relative 1e-9.

    The quadrature takes 100 to 400 likelihood calls. Its variable is the distance from the mode in
    standard deviations or, at a steep bound, in inverse slopes. Its pieces are so short next to the
    mode that no rule can step over the mass there.
    """
    mode, lower, upper = maximum.mode, posterior.lower, posterior.upper
    unit = 1 / np.maximum(1 / standard_deviations(maximum.hessian), np.abs(maximum.gradient))

    def density(distance: float) -> float:
        return float(np.exp(posterior.value(mode.theta + distance * unit) - mode.log_posterior))

    low, high = ((lower - mode.theta) / unit).item(), ((upper - mode.theta) / unit).item()
    inside = [end for end in (-40.0, -8.0, 0.0, 8.0, 40.0) if low < end < high]
    options = {"points": inside or None, "epsabs": 0.0, "epsrel": 1e-9}
    # with full_output, quad returns its messages: it has some where a huge log posterior is rounded
    mass, *_ = quad(density, low, high, **options, limit=200, full_output=True)
    return mode.log_posterior + float(np.log(mass * unit.item()))


def laplace_log_evidence(log_posterior: float, hessian: FloatArray) -> float:
    """Compute ``log_posterior - 1/2 log det hessian + n_params / 2 log(2 pi)``, in nats.

    The log posterior at the MAP point is a density in theta, and ``hessian`` (n_params, n_params)
    is that of its negative. A ``NotAMaximumError`` is raised if it is not positive definite.

    SOT appendix A.3; exact if the posterior is Gaussian. O(n_params^3).
    """
    if not np.all(np.isfinite(hessian)):
        raise NotAMaximumError("hessian must be finite: the density is not finite near the point")
    try:
        L = cholesky(hessian, lower=True)
    except LinAlgError as error:
        lowest = np.linalg.eigvalsh(hessian)[0]
        raise NotAMaximumError(
            f"hessian must be positive definite, got smallest eigenvalue {lowest:.2e}: "
            "the point is a saddle, start the fit from more points"
        ) from error
    return float(log_posterior + 0.5 * len(L) * np.log(2 * np.pi) - np.log(np.diag(L)).sum())


def boundary_log_mass(slope: float, curvature: float) -> float:
    """Compute the log of the integral over a parameter whose MAP value is held by a bound.

    That is ``log int_0^inf exp(-slope t - curvature t^2 / 2) dt``, without the quadratic term if
    the curvature is not positive. The positive slope of the negative log posterior away from the
    bound, and its second derivative there, are given.

    A ``NotAMaximumError`` is raised if the posterior neither falls, by 0.1 nats per unit of the log
    parameter, nor curves down from the bound.
    """
    if curvature <= 0:
        if slope < 0.1:
            raise NotAMaximumError(f"the posterior is flat at a bound, got the slope {slope:.2e}")
        return float(-np.log(slope))
    scaled = slope / np.sqrt(2 * curvature)
    return float(np.log(erfcx(scaled)) + 0.5 * np.log(np.pi / (2 * curvature)))
