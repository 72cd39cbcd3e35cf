"""Likelihoods, and the covariance that they share with predictions and distances."""

from autokernel.likelihood.base import (
    Likelihood,
    MakeLikelihood,
    TrainingData,
    ValueAndGradient,
)
from autokernel.likelihood.covariance import Covariance, cross_covariance, diagonal_covariance
from autokernel.likelihood.exact import ExactLikelihood
from autokernel.likelihood.threads import one_blas_thread

__all__ = [
    "Covariance",
    "ExactLikelihood",
    "Likelihood",
    "MakeLikelihood",
    "TrainingData",
    "ValueAndGradient",
    "cross_covariance",
    "diagonal_covariance",
    "one_blas_thread",
]
