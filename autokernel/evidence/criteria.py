"""Scores of a fitted kernel: what all of them share, BIC and AIC."""

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator

from autokernel.evidence.maximise import Mode
from autokernel.evidence.maximum import Maximum
from autokernel.evidence.posterior import LogPosterior
from autokernel.typing import FloatArray


@dataclass(frozen=True, slots=True)
class Score:
    """The value of a criterion, where larger is better, and the estimate of its error."""

    value: float  #: nats
    standard_error: float = np.nan  #: nats; nan where the criterion draws no random numbers
    pareto_k: float = np.nan  #: above 0.7 the standard error cannot be trusted


@dataclass(frozen=True, slots=True, eq=False)  # eq=False: the fields hold arrays
class KernelFit:
    """A fitted kernel, as a criterion receives it."""

    posterior: LogPosterior  #: the log posterior of the parameters
    maximum: Maximum  #: the best mode, with the gradient and the Hessian there
    others: Sequence[Mode]  #: other modes that the search found, the best first
    rng: np.random.Generator  #: random numbers for this kernel alone


class Criterion(ABC, BaseEstimator):
    """A score of a kernel from the modes of its posterior; it has parameters and no state."""

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

        It may ask the likelihood for its value and gradient alone.
        """
        return None

    def check_data(self, X: FloatArray, y: FloatArray) -> None:
        """Raise a ``ValueError`` if no kernel can be scored on these data."""


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
