"""Fitted models: averages over kernels and parameters, and the exported scikit-learn kernel."""

from autokernel.inference.exact import EXACT, ExactPredictor, Inference
from autokernel.inference.inducing import InducingPredictor
from autokernel.inference.neighbours import NeighbourPredictor
from autokernel.inference.predictor import MakePredictor, Predictor
from autokernel.model.averaging import (
    AVERAGES,
    Averaging,
    Component,
    KernelPosterior,
    PosteriorAveraging,
    Stacking,
    posterior_over_kernels,
)
from autokernel.model.fitted import FittedModel
from autokernel.model.mixture import MixturePredictor
from autokernel.model.sklearn_kernel import (
    FeatureKernel,
    WrappedKernel,
    WrappedOperation,
    to_sklearn,
)

__all__ = [
    "AVERAGES",
    "EXACT",
    "Averaging",
    "Component",
    "ExactPredictor",
    "FeatureKernel",
    "FittedModel",
    "InducingPredictor",
    "Inference",
    "KernelPosterior",
    "MakePredictor",
    "MixturePredictor",
    "NeighbourPredictor",
    "PosteriorAveraging",
    "Predictor",
    "Stacking",
    "WrappedKernel",
    "WrappedOperation",
    "posterior_over_kernels",
    "to_sklearn",
]
