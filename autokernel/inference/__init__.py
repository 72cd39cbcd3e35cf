"""Likelihoods and predictions of one kernel: exact, with inducing points, from neighbours."""

from autokernel.inference.base import Likelihood, TrainingData, ValueAndGradient
from autokernel.inference.covariance import Covariance, cross_covariance, diagonal_covariance
from autokernel.inference.exact import ExactLikelihood
from autokernel.inference.inducing import InducingLikelihood, choose_inducing
from autokernel.inference.neighbours import Neighbourhoods, NeighbourLikelihood, draw_neighbourhoods
from autokernel.inference.threads import one_blas_thread

__all__ = [
    "Covariance",
    "ExactLikelihood",
    "InducingLikelihood",
    "Likelihood",
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
