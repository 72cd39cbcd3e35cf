"""Information criteria: the log likelihood at the best mode, less a penalty on parameters."""

import math
from abc import abstractmethod
from collections.abc import Sequence

import numpy as np

from autokernel.criteria.base import Criterion, Score
from autokernel.map.maximise import Mode
from autokernel.map.maximum import Maximum
from autokernel.map.posterior import LogPosterior


class InformationCriterion(Criterion):
    """The log likelihood of the MAP parameters, less a penalty."""

    @abstractmethod
    def penalty(self, n_params: int, n_samples: int) -> float:
        """Compute what is taken off, in nats, given the number of parameters and of rows."""

    def __call__(
        self,
        posterior: LogPosterior,
        summit: Maximum,
        *,
        others: Sequence[Mode],  # noqa: ARG002 - of other criteria
        rng: np.random.Generator,  # noqa: ARG002 - of other criteria
    ) -> Score:
        """Score by the height of the best mode alone."""
        mode = summit.mode
        log_likelihood = mode.log_posterior - float(posterior.prior.log_density(mode.theta))
        return Score(log_likelihood - self.penalty(len(mode.theta), len(posterior.data.y)))


class BIC(InformationCriterion):
    """Bayesian information criterion: ``log likelihood - d/2 log n``, in nats; larger is better.

    The log likelihood is that of the MAP parameters, ``d`` is their number with the noise variance,
    ``n`` that of the rows. This is the usual BIC divided by -2.
    """

    def penalty(self, n_params: int, n_samples: int) -> float:
        """Compute what is taken off, in nats."""
        return 0.5 * n_params * math.log(n_samples)


class AIC(InformationCriterion):
    """Akaike's information criterion: ``log likelihood - d``, in nats; larger is better.

    The log likelihood is that of the MAP parameters, ``d`` is their number with the noise variance.
    This is the usual AIC divided by -2.
    """

    def penalty(self, n_params: int, n_samples: int) -> float:  # noqa: ARG002 - of other criteria
        """Compute what is taken off, in nats."""
        return float(n_params)
