"""Likelihoods, and the covariance that they share with predictions and distances."""

from autokernel.likelihood.base import (
    Likelihood,
    MakeLikelihood,
    TrainingData,
    ValueAndGradient,
)
from autokernel.likelihood.covariance import Covariance, cross_covariance, diagonal_covariance
from autokernel.likelihood.exact import ExactLikelihood
from autokernel.likelihood.inducing import InducingLikelihood, choose_inducing
from autokernel.likelihood.neighbours import (
    Neighbourhoods,
    NeighbourLikelihood,
    draw_neighbourhoods,
)
from autokernel.likelihood.threads import one_blas_thread

__all__ = [
    "Covariance",
    "ExactLikelihood",
    "InducingLikelihood",
    "Likelihood",
    "MakeLikelihood",
    "NeighbourLikelihood",
    "Neighbourhoods",
    "TrainingData",
    "ValueAndGradient",
    "choose_inducing",
    "cross_covariance",
    "diagonal_covariance",
    "draw_neighbourhoods",
    "one_blas_thread",
]
