"""Criteria: the scores by which fitted kernels are compared."""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import Interval

from autokernel.evidence.importance import MAX_DRAWS, STANDARD_ERROR, importance_sample
from autokernel.evidence.laplace import log_evidence
from autokernel.evidence.maximise import HOPELESS_NATS, Maximum, Point, new_maxima
from autokernel.evidence.posterior import LogPosterior
from autokernel.expression import node_swaps, theta_order
from autokernel.typing import FloatArray, IntArray


@dataclass(frozen=True, slots=True)
class Score:
    """The value of a criterion, where larger is better, and the estimate of its error."""

    value: float  #: nats
    standard_error: float = np.nan  #: nats; nan where the criterion draws no random numbers
    pareto_k: float = np.nan  #: above 0.7 the standard error cannot be trusted


class KernelFit:
    """A kernel at its best mode, as a criterion receives it.

    Targets are standardised and, for a kernel such as ``log(y) ~ SE[x]``, on its scale. Kernels on
    different scales can be compared only by densities of one target: add ``log_slopes`` to the log
    densities of ``y``. All other attributes are densities of the standardised target itself.

    Attributes
    ----------
    expression : Expression
        The kernel, with the terms of its sums and products sorted.
    X : ndarray of shape (n_samples, n_features)
        Inputs in the units of the search.
    y : ndarray of shape (n_samples,)
        Targets on the scale of the kernel, with the mean function zero.
    log_slopes : ndarray of shape (n_samples,)
        Logs of the slopes of this scale at the targets: the log Jacobian of each row. They are zero
        for a kernel on the target as it is.
    n_samples : float
        Number of rows, or the sum of their weights.
    theta : ndarray of shape (n_params,)
        Logs of the parameters at the best mode, the noise variance last.
    log_likelihood : float
        Log likelihood at ``theta``, in nats.
    log_posterior : float
        Log likelihood plus log prior density at ``theta``, in nats.
    hessian : ndarray of shape (n_params, n_params)
        Hessian of the negative log posterior at ``theta``.
    rng : numpy.random.Generator
        Random numbers for this kernel, the same in every process.
    """

    def __init__(
        self,
        posterior: LogPosterior,
        maximum: Maximum,
        others: Sequence[Point],
        rng: np.random.Generator,
    ) -> None:
        self._posterior, self._maximum, self._others = posterior, maximum, others
        self.expression, self.X, self.y = posterior.expression, posterior.data.X, posterior.data.y
        self.log_slopes = posterior.data.noise.log_slopes
        self.n_samples = posterior.data.noise.n_readings
        self.theta, self.log_posterior = maximum.mode.theta, maximum.mode.log_posterior
        self.log_likelihood = self.log_posterior - float(posterior.prior.log_density(self.theta))
        self.hessian, self.rng = maximum.hessian, rng

    def log_density(self, theta: FloatArray) -> float:
        """Compute the log likelihood plus the log prior density at another point, in nats.

        It is ``-inf`` where the covariance matrix has no Cholesky factor.
        """
        return self._posterior.value(theta)


class Criterion(ABC, BaseEstimator):
    """A score of a kernel at its best mode; it has parameters and no state.

    A custom criterion defines :meth:`__call__` with the attributes of :class:`KernelFit`. If it
    computes densities of ``fit.y``, it adds ``fit.log_slopes``, so that scores of kernels on
    different scales of the target can be compared.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {}

    @abstractmethod
    def __call__(self, fit: KernelFit) -> Score:
        """Score a fitted kernel.

        Raises
        ------
        NotAMaximumError
            If the kernel cannot be scored. The message becomes the status of the kernel.
        """

    def for_approximations(self) -> "Criterion | None":
        """Return the criterion of kernels fitted by an approximate likelihood, None for none.

        It may use only the value and the gradient of the likelihood.
        """
        return None


class Laplace(Criterion):
    """Log evidence by Laplace's method at the best mode; exact for the null model."""

    def __call__(self, fit: KernelFit) -> Score:
        """Score by the log posterior and its Hessian at the best mode."""
        return Score(log_evidence(fit._posterior, fit._maximum))

    def for_approximations(self) -> Criterion:
        """Return this criterion."""
        return self


class BIC(Criterion):
    """Bayesian information criterion: ``log likelihood - d/2 log n``, in nats; larger is better.

    This is the usual BIC divided by -2, at the MAP parameters. ``d`` is the number of parameters
    with the noise variance, and ``n`` is the number of rows, or the sum of their weights, at least
    one.
    """

    def __call__(self, fit: KernelFit) -> Score:
        """Score by the log likelihood and the numbers of parameters and rows."""
        n = max(1.0, fit.n_samples)
        return Score(fit.log_likelihood - 0.5 * len(fit.theta) * math.log(n))

    def for_approximations(self) -> Criterion:
        """Return this criterion."""
        return self


@dataclass(kw_only=True, eq=False, repr=False)  # for its __init__; the rest is of BaseEstimator
class Importance(Criterion):
    """Log evidence by importance sampling around the best modes found.

    It takes some 200 to 2000 likelihood calls more than Laplace's method. Equal operands, as in
    ``SE[0] + SE[0]``, may be exchanged, so each mode has mirror images. Where images overlap, a few
    hundred draws may miss some of the mass between them, and the standard error does not show it.

    Parameters
    ----------
    max_draws : int, default=2000
        Most draws for one kernel, each with one likelihood call; at least 100.
    standard_error : float, default=0.05
        Standard error in nats. Once it is reached and can be trusted, no more draws are made.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "max_draws": [Interval(Integral, 100, None, closed="left")],  # fewer weights show no tail
        "standard_error": [Interval(Real, 0, None, closed="neither")],
    }

    max_draws: int = MAX_DRAWS
    standard_error: float = STANDARD_ERROR

    def __call__(self, fit: KernelFit) -> Score:
        """Score by draws around all modes that may add to the evidence."""
        orders = [theta_order(fit.expression, swap) for swap in node_swaps(fit.expression)]
        maxima = _with_mirror_images(fit._maximum, orders)
        least = fit.log_posterior - HOPELESS_NATS
        near = (mode for mode in fit._others if mode.log_posterior > least)
        for other in new_maxima(fit._posterior, maxima, near, n_tried=5):
            maxima += _with_mirror_images(other, orders)
        sample = importance_sample(
            fit._posterior,
            maxima,
            uniforms=fit.rng.random,
            max_draws=self.max_draws,
            standard_error=self.standard_error,
        )
        return Score(sample.log_evidence, sample.standard_error, sample.pareto_k)

    def for_approximations(self) -> Criterion:
        """Return Laplace's method, which takes far fewer calls."""
        return Laplace()


def _with_mirror_images(maximum: Maximum, orders: list[IntArray]) -> list[Maximum]:
    """Return a maximum with its distinct mirror images: all 24 of up to four equal operands."""
    images = [maximum]
    for image in images:  # also those that are found on the way
        for order in orders:
            other = image.reordered(order)
            if len(images) < 24 and not any(e.stands_at(other.mode.theta) for e in images):
                images.append(other)
    return images


class LeaveOneOut(Criterion):
    """Leave-one-out log predictive density, summed over the rows, in nats; larger is better.

    Each row is predicted from all others, with its noise and the MAP parameters of all rows.

    Notes
    -----
    R&W eq. 5.10-5.12. One factorisation and its inverse, O(n_samples^3), serve all rows.
    """

    def __call__(self, fit: KernelFit) -> Score:
        """Score by the predictions at the best mode."""
        return Score(float(fit._posterior.leave_one_out(fit.theta).sum()))


CRITERIA: Mapping[str, type[Criterion]] = MappingProxyType(
    {"laplace": Laplace, "importance": Importance, "bic": BIC, "loo": LeaveOneOut}
)
