"""Models that predict with a fitted expression, and its export as a scikit-learn kernel."""

from autokernel.model.exact import ExactPredictor
from autokernel.model.feature_kernel import FeatureKernel
from autokernel.model.fitted import FittedModel
from autokernel.model.inducing import InducingPredictor
from autokernel.model.inference import EXACT, Inference
from autokernel.model.mixture import MixturePredictor
from autokernel.model.neighbours import NeighbourPredictor
from autokernel.model.predictor import MakePredictor, Predictor
from autokernel.model.sklearn_export import to_sklearn
from autokernel.model.wrappers import WrappedKernel, WrappedOperation

__all__ = [
    "EXACT",
    "ExactPredictor",
    "FeatureKernel",
    "FittedModel",
    "InducingPredictor",
    "Inference",
    "MakePredictor",
    "MixturePredictor",
    "NeighbourPredictor",
    "Predictor",
    "WrappedKernel",
    "WrappedOperation",
    "to_sklearn",
]
