"""The log posterior of one kernel's parameters, as a density of their logarithms."""

import numpy as np

from autokernel.expression import Expression
from autokernel.kernels.priors import LogGammaPrior, Priors
from autokernel.likelihood import LogLikelihood, TrainingData, ValueAndGradient
from autokernel.typing import FloatArray

NOISE_FLOOR = 1e-8
"""Smallest noise variance: below it a factorisation has no correct digits left."""

_WIDEST = (1e-6, 1e6)  # of all other parameters; the priors keep them far from there


class LogPosterior:
    """``log N(y; 0, K_theta + s I) + log p(theta)``, unnormalised (design 3.2).

    Attributes
    ----------
    parameter_names : tuple of str
        One name per entry of theta, ``noise_variance`` last.
    lower, upper : ndarray of shape (n_params,)
        Bounds of theta.
    """

    def __init__(self, expression: Expression, data: TrainingData, *, priors: Priors) -> None:
        self.likelihood = LogLikelihood(expression, data)
        self.parameter_names = self.likelihood.parameter_names
        self.prior = LogGammaPrior.of(self.parameter_names, priors=priors)
        self.lower = np.full(len(self.parameter_names), np.log(_WIDEST[0]))
        self.upper = np.full(len(self.parameter_names), np.log(_WIDEST[1]))
        self.lower[-1] = np.log(NOISE_FLOOR)

    @property
    def n_evaluations(self) -> int:
        """Number of likelihood calls so far."""
        return self.likelihood.n_evaluations

    def value_and_gradient(self, theta: FloatArray) -> ValueAndGradient:
        """Log posterior in nats and its gradient; ``-inf`` where the matrix has no factor."""
        likelihood = self.likelihood.value_and_gradient(theta)
        return ValueAndGradient(
            likelihood.value + float(self.prior.log_density(theta)),
            likelihood.gradient + self.prior.gradient(theta),
        )

    def hessian(self, theta: FloatArray) -> FloatArray:
        """Hessian (n_params, n_params) of the *negative* log posterior.

        Notes
        -----
        Central differences of the exact gradient, 3 n_params likelihood calls. Each step is a small
        fraction of the posterior's width along its parameter, measured first by a forward
        difference: the width of a period may be a thousandth of that of a variance. In units of
        that width the truncation error is the square of the step, 1e-5.
        """
        here = self.value_and_gradient(theta).gradient

        def gradient(direction: FloatArray) -> FloatArray:
            return self.value_and_gradient(theta + direction).gradient

        hessian = np.empty((len(theta), len(theta)))
        for place, axis in enumerate(np.eye(len(theta))):
            probe = 1e-5
            curvature = abs(here[place] - gradient(probe * axis)[place]) / probe
            step = 3e-3 / np.sqrt(max(1.0, curvature))
            hessian[place] = (gradient(-step * axis) - gradient(step * axis)) / (2 * step)
        return (hessian + hessian.T) / 2
