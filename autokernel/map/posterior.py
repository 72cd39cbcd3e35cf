"""The log posterior of one kernel's parameters, as a density of their logarithms."""

import numpy as np

from autokernel.deadline import NEVER, Deadline
from autokernel.exceptions import NotAMaximumError
from autokernel.expression import Expression
from autokernel.kernels.priors import LogGammaPrior, Priors
from autokernel.likelihood import Calls, LogLikelihood, TrainingData, ValueAndGradient
from autokernel.map.hessian import difference_hessian
from autokernel.typing import FloatArray, IntArray

NOISE_FLOOR = 1e-8
"""Smallest noise variance, as a part of the mean square of the target.

Below it a factorisation has no correct digits left.
"""

_PART_OF_CYCLE = 0.03
_WIDEST = np.log(1e6)  # how far theta may go from the logs of the prior means


class LogPosterior:
    """``log N(y; 0, K_theta + s I) + log p(theta)``, unnormalised (design 3.2).

    Parameters
    ----------
    expression : Expression
        The kernel.
    data : TrainingData
        Inputs and targets.
    priors : mapping
        Complete, as :func:`check_priors` returns it.
    deadline : Deadline
        After it, every call raises an ``OutOfTimeError``.
    calls : Calls or None
        What counts the likelihood calls; None counts them alone.

    Attributes
    ----------
    expression : Expression
        The kernel.
    data : TrainingData
        Inputs and targets.
    parameter_names : tuple of str
        One name per entry of theta, ``noise_variance`` last.
    lower, upper : ndarray of shape (n_params,)
        Bounds of theta.
    """

    def __init__(
        self,
        expression: Expression,
        data: TrainingData,
        *,
        priors: Priors,
        deadline: Deadline = NEVER,
        calls: Calls | None = None,
    ) -> None:
        self.expression, self.data = expression, data
        self.deadline = deadline
        self._priors, self._calls = priors, Calls() if calls is None else calls
        self.likelihood = LogLikelihood(expression, data, calls=self._calls)
        self.parameter_names = self.likelihood.parameter_names
        self.prior = LogGammaPrior.of(self.parameter_names, priors=priors)
        centre = np.log(self.prior.shape / self.prior.rate)
        self.lower, self.upper = centre - _WIDEST, centre + _WIDEST
        if NOISE_FLOOR * data.mean_square > 0:
            self.lower[-1] = np.log(NOISE_FLOOR * data.mean_square)
            self.upper[-1] = max(self.upper[-1], np.log(data.mean_square))
        self._waves = np.array([name == "period" for name in self.parameter_names])
        columns = [leaf.column for leaf in expression.leaves if leaf.kernel == "PER"]
        self._extents = np.ptp(data.X[:, columns], axis=0)

    def on_rows(self, rows: IntArray) -> "LogPosterior":
        """Return that of the same kernel on these rows; calls of both count together."""
        return LogPosterior(
            self.expression,
            self.data.take(rows),
            priors=self._priors,
            deadline=self.deadline,
            calls=self._calls,
        )

    def widths(self, theta: FloatArray) -> FloatArray:
        """Guess how far the posterior reaches (n_params,) along each parameter around a point.

        A period is known to a small part of a cycle over the extent of its column: measured by
        that, climbs take half as many steps.
        """
        widths = np.ones(len(theta))
        periods = np.exp(theta[self._waves])
        widths[self._waves] = np.clip(
            _PART_OF_CYCLE * periods / np.maximum(self._extents, 1e-9), 1e-4, 1.0
        )
        return widths

    @property
    def n_evaluations(self) -> int:
        """Number of likelihood calls so far."""
        return self._calls.n

    def value(self, theta: FloatArray) -> float:
        """Log posterior in nats, ``-inf`` where the matrix has no factor: a third of the work."""
        self.deadline.check()
        return self.likelihood.value(theta) + float(self.prior.log_density(theta))

    def value_and_gradient(self, theta: FloatArray) -> ValueAndGradient:
        """Log posterior in nats and its gradient; ``-inf`` where the matrix has no factor."""
        self.deadline.check()
        likelihood = self.likelihood.value_and_gradient(theta)
        return ValueAndGradient(
            likelihood.value + float(self.prior.log_density(theta)),
            likelihood.gradient + self.prior.gradient(theta),
        )

    def leave_one_out(self, theta: FloatArray) -> FloatArray:
        """Log predictive density (n_samples,) of each target given all others, in nats."""
        self.deadline.check()
        return self.likelihood.leave_one_out(theta)

    def held_out(self, theta: FloatArray, n_given: int) -> FloatArray:
        """Log predictive density of each target after the first ``n_given``, given those."""
        self.deadline.check()
        return self.likelihood.held_out(theta, n_given)

    def hessian(self, theta: FloatArray) -> FloatArray:
        """Hessian (n_params, n_params) of the *negative* log posterior.

        Notes
        -----
        See :func:`difference_hessian`: 2 to 3 n_params likelihood calls. Its log determinant agrees
        with sixty digits to 1e-3 nats, noise at its floor included, and mostly to 1e-5.

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

        return difference_hessian(gradient, theta, waves=self._waves)
