"""Information criteria: the log likelihood at the best mode, less a penalty on parameters."""

import math

from autokernel.criteria.base import Criterion, KernelFit, Score


class BIC(Criterion):
    """Bayesian information criterion: ``log likelihood - d/2 log n``, in nats; larger is better.

    The log likelihood is taken at the MAP parameters, ``d`` is the number of parameters including
    the noise variance, and ``n`` is the number of rows. This is the usual BIC divided by -2.
    """

    def __call__(self, fit: KernelFit) -> Score:
        """Score by the log likelihood at the best mode and the numbers of parameters and rows."""
        n_params, n_samples = len(fit.maximum.mode.theta), len(fit.posterior.data.y)
        return Score(_log_likelihood(fit) - 0.5 * n_params * math.log(n_samples))

    def for_approximations(self) -> Criterion:
        """Return this criterion."""
        return self


class AIC(Criterion):
    """Akaike's information criterion: ``log likelihood - d``, in nats; larger is better.

    The log likelihood is taken at the MAP parameters, and ``d`` is the number of parameters
    including the noise variance. This is the usual AIC divided by -2.
    """

    def __call__(self, fit: KernelFit) -> Score:
        """Score by the log likelihood at the best mode and the number of parameters."""
        return Score(_log_likelihood(fit) - len(fit.maximum.mode.theta))

    def for_approximations(self) -> Criterion:
        """Return this criterion."""
        return self


def _log_likelihood(fit: KernelFit) -> float:
    """Compute the log likelihood at the best mode, in nats."""
    mode = fit.maximum.mode
    return mode.log_posterior - float(fit.posterior.prior.log_density(mode.theta))
