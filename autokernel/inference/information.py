"""Information criteria: the log likelihood at the best mode, less a penalty on parameters."""

import math
from collections.abc import Sequence

import numpy as np

from autokernel.inference.criterion import Criterion, Score
from autokernel.inference.map import Mode
from autokernel.inference.posterior import LogPosterior
from autokernel.inference.summit import Summit


class BIC(Criterion):
    """Bayesian information criterion: ``log likelihood - d/2 log n``, in nats; larger is better.

    The log likelihood is that of the MAP parameters, ``d`` is their number with the noise variance,
    ``n`` that of the rows. This is the usual BIC divided by -2.
    """

    def __call__(
        self,
        posterior: LogPosterior,
        summit: Summit,
        *,
        others: Sequence[Mode],  # noqa: ARG002 - of other criteria
        rng: np.random.Generator,  # noqa: ARG002 - of other criteria
    ) -> Score:
        """Score by the height of the best mode alone."""
        penalty = 0.5 * len(summit.mode.theta) * math.log(len(posterior.data.y))
        return Score(_log_likelihood(posterior, summit.mode) - penalty)


class AIC(Criterion):
    """Akaike's information criterion: ``log likelihood - d``, in nats; larger is better.

    The log likelihood is that of the MAP parameters, ``d`` is their number with the noise variance.
    This is the usual AIC divided by -2.
    """

    def __call__(
        self,
        posterior: LogPosterior,
        summit: Summit,
        *,
        others: Sequence[Mode],  # noqa: ARG002 - of other criteria
        rng: np.random.Generator,  # noqa: ARG002 - of other criteria
    ) -> Score:
        """Score by the height of the best mode alone."""
        return Score(_log_likelihood(posterior, summit.mode) - len(summit.mode.theta))


def _log_likelihood(posterior: LogPosterior, mode: Mode) -> float:
    """Take the prior off the height of a mode."""
    return mode.log_posterior - float(posterior.prior.log_density(mode.theta))
