"""The log posterior of one kernel's parameters, as a density of their logarithms."""

import numpy as np

from autokernel.deadline import NEVER, Deadline
from autokernel.exceptions import NotAMaximumError
from autokernel.kernels import NOISE_VARIANCE, LogGammaPrior, Priors, Role
from autokernel.likelihood import Likelihood, ValueAndGradient
from autokernel.map.hessian import difference_hessian
from autokernel.typing import FloatArray, IntArray

NOISE_FLOOR = 1e-8
"""Smallest noise variance, as a fraction of the mean square of the target.

A factorisation with less noise has no correct digits.
"""

_FRACTION_OF_CYCLE = 0.03  # guess of a period's standard deviation, in cycles over the extent
_WIDEST = np.log(1e6)  # largest distance of theta from the logs of the prior means


class LogPosterior:
    """The unnormalised log posterior: the log likelihood plus the log density of the priors.

    Parameters
    ----------
    likelihood : Likelihood
        The likelihood of one kernel on one data set.
    priors : mapping
        Priors as returned by :func:`check_priors`.
    deadline : Deadline
        Time after which every call raises an ``OutOfTimeError``.

    Attributes
    ----------
    likelihood : Likelihood
        The likelihood, as given.
    prior : LogGammaPrior
        The prior of theta.
    lower, upper : ndarray of shape (n_params,)
        Bounds of theta.
    is_period : ndarray of shape (n_params,)
        Whether each parameter is a period.
    """

    def __init__(
        self, likelihood: Likelihood, *, priors: Priors, deadline: Deadline = NEVER
    ) -> None:
        self.likelihood, self.deadline = likelihood, deadline
        self.expression, self.data = likelihood.expression, likelihood.data
        self._priors = priors
        own = tuple(p for node in self.expression.nodes for p in node.parameters)
        if likelihood.parameters != (*own, NOISE_VARIANCE):
            raise ValueError(
                "parameters of a likelihood must be those of its expression and the noise "
                f"variance, got {[parameter.name for parameter in likelihood.parameters]}"
            )
        self.prior = LogGammaPrior.of(likelihood.parameters, priors=priors)
        centre = np.log(self.prior.shape / self.prior.rate)
        self.lower, self.upper = centre - _WIDEST, centre + _WIDEST
        mean_square = self.data.mean_square
        if NOISE_FLOOR * mean_square > 0:
            self.lower[-1] = np.log(NOISE_FLOOR * mean_square)
            self.upper[-1] = max(self.upper[-1], np.log(mean_square))
        self.is_period = np.array([p.role == Role.PERIOD for p in likelihood.parameters])
        columns = [
            node.column
            for node in self.expression.nodes
            for parameter in node.parameters
            if parameter.role == Role.PERIOD and node.column is not None
        ]
        self._extents = np.ptp(self.data.X[:, columns], axis=0)

    def on_rows(self, rows: IntArray) -> "LogPosterior":
        """Return the same kernel's log posterior on these rows; calls of both count together."""
        likelihood = self.likelihood.on_rows(rows)
        return LogPosterior(likelihood, priors=self._priors, deadline=self.deadline)

    def step_scales(self, theta: FloatArray) -> FloatArray:
        """Guess the scale (n_params,) of the posterior along each parameter around a point.

        The data determine a period to a small fraction of a cycle over the extent of its column.
        With steps measured in this scale, a run needs half as many of them.
        """
        scales = np.ones(len(theta))
        periods = np.exp(theta[self.is_period])
        scales[self.is_period] = np.clip(
            _FRACTION_OF_CYCLE * periods / np.maximum(self._extents, 1e-9), 1e-4, 1.0
        )
        return scales

    @property
    def n_evaluations(self) -> int:
        """Number of likelihood calls so far."""
        return self.likelihood.n_evaluations

    def value(self, theta: FloatArray) -> float:
        """Compute the log posterior in nats, ``-inf`` if K has no Cholesky factor.

        This is a third of the work of :meth:`value_and_gradient`.
        """
        self.deadline.check()
        return self.likelihood.value(theta) + float(self.prior.log_density(theta))

    def value_and_gradient(self, theta: FloatArray) -> ValueAndGradient:
        """Compute the log posterior in nats, ``-inf`` if K has no factor, and its gradient."""
        self.deadline.check()
        likelihood = self.likelihood.value_and_gradient(theta)
        return ValueAndGradient(
            likelihood.value + float(self.prior.log_density(theta)),
            likelihood.gradient + self.prior.gradient(theta),
        )

    def leave_one_out(self, theta: FloatArray) -> FloatArray:
        """Compute the log predictive density (n_samples,) of each target given all others."""
        self.deadline.check()
        return self.likelihood.leave_one_out(theta)

    def held_out(self, theta: FloatArray, n_given: int) -> FloatArray:
        """Compute log predictive densities of targets after the first ``n_given``, given these."""
        self.deadline.check()
        return self.likelihood.held_out(theta, n_given)

    def hessian(self, theta: FloatArray) -> FloatArray:
        """Compute the Hessian (n_params, n_params) of the *negative* log posterior.

        Notes
        -----
        It takes about n_params likelihood calls, see :func:`difference_hessian`. Its log
        determinant agrees with a computation in sixty digits to 1e-3 nats, even with the noise at
        its floor, and mostly to 1e-4.

        Raises
        ------
        NotAMaximumError
            If the covariance has no Cholesky factor next to the point.
        """

        def gradient(point: FloatArray) -> FloatArray:
            found = self.value_and_gradient(point)
            if not np.isfinite(found.value):
                raise NotAMaximumError("the covariance has no Cholesky factor next to the point")
            return -found.gradient

        return difference_hessian(gradient, theta, oscillates=self.is_period)
