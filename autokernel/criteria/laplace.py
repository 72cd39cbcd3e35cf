"""Laplace's approximation to the evidence."""

import numpy as np
from scipy.linalg import LinAlgError, cholesky
from scipy.special import erfcx

from autokernel.criteria.base import Criterion, KernelFit, Score
from autokernel.exceptions import NotAMaximumError
from autokernel.map.maximum import Maximum
from autokernel.typing import FloatArray

_FLAT = 0.1  # nats per unit of a log parameter, below which a slope counts as flat


class Laplace(Criterion):
    """Log evidence by Laplace's method at the best mode."""

    def __call__(self, fit: KernelFit) -> Score:
        """Score by the log posterior and its Hessian at the best mode."""
        return Score(log_evidence_at(fit.maximum))


def laplace_log_evidence(log_posterior: float, hessian: FloatArray) -> float:
    r"""Compute the Laplace approximation to the log evidence of one kernel.

    Parameters
    ----------
    log_posterior : float
        Unnormalised log posterior at the MAP point, in nats, as a density in theta.
    hessian : ndarray of shape (n_params, n_params)
        Hessian of the negative log posterior there, in the same theta.

    Returns
    -------
    float
        ``log_posterior - 1/2 log det hessian + n_params / 2 log(2 pi)``, in nats.

    Raises
    ------
    NotAMaximumError
        If ``hessian`` is not positive definite.

    Notes
    -----
    SOT appendix A.3; exact if the posterior is Gaussian. O(n_params^3).
    """
    try:
        L = cholesky(hessian, lower=True)
    except LinAlgError as error:
        lowest = np.linalg.eigvalsh(hessian)[0]
        raise NotAMaximumError(
            f"hessian must be positive definite, got smallest eigenvalue {lowest:.2e}: "
            "the point is a saddle, start the fit from more points"
        ) from error
    return float(log_posterior + 0.5 * len(L) * np.log(2 * np.pi) - np.log(np.diag(L)).sum())


def log_evidence_at(maximum: Maximum) -> float:
    """Compute the Laplace approximation to the log evidence at a maximum.

    A parameter held by a bound is integrated from that bound.

    Raises
    ------
    NotAMaximumError
        If the density does not decrease in all directions.
    """
    mode, hessian, free = maximum.mode, maximum.hessian, maximum.free
    log_evidence = laplace_log_evidence(mode.log_posterior, hessian[np.ix_(free, free)])
    for held in np.flatnonzero(~free):
        log_evidence += boundary_log_mass(maximum.outward[held], hessian[held, held])
    return log_evidence


def boundary_log_mass(slope: float, curvature: float) -> float:
    r"""Compute the log of the integral over a parameter whose MAP value is held by a bound.

    Parameters
    ----------
    slope : float
        Slope of the negative log posterior away from the bound, positive.
    curvature : float
        Second derivative of the negative log posterior at the bound.

    Returns
    -------
    float
        ``log int_0^inf exp(-slope t - curvature t^2 / 2) dt``, without the quadratic term if
        the curvature is not positive.

    Raises
    ------
    NotAMaximumError
        If the posterior neither falls nor curves down from the bound.
    """
    if curvature <= 0:
        if slope < _FLAT:
            raise NotAMaximumError(f"the posterior is flat at a bound, got the slope {slope:.2e}")
        return float(-np.log(slope))
    scaled = slope / np.sqrt(2 * curvature)
    return float(np.log(erfcx(scaled)) + 0.5 * np.log(np.pi / (2 * curvature)))
