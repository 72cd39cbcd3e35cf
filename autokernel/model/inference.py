"""How functions are inferred: a likelihood, and the predictor that belongs to it."""

from dataclasses import dataclass

from autokernel.likelihood import ExactLikelihood, MakeLikelihood
from autokernel.model.exact import ExactPredictor
from autokernel.model.predictor import MakePredictor


@dataclass(frozen=True, slots=True)
class Inference:
    """A likelihood to search with, and the predictor that goes with it."""

    make_likelihood: MakeLikelihood
    make_predictor: MakePredictor


EXACT = Inference(ExactLikelihood, ExactPredictor)
"""Exact inference, O(n_samples^3)."""
