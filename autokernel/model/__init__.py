"""Models that predict with a fitted expression, and scikit-learn kernels made of one."""

from autokernel.model.exact import ExactPredictor
from autokernel.model.feature_kernel import FeatureKernel
from autokernel.model.fitted import FittedModel
from autokernel.model.predictor import MakePredictor, Predictor
from autokernel.model.sklearn_export import to_sklearn
from autokernel.model.wrappers import WrappedKernel, WrappedOperation

__all__ = [
    "ExactPredictor",
    "FeatureKernel",
    "FittedModel",
    "MakePredictor",
    "Predictor",
    "WrappedKernel",
    "WrappedOperation",
    "to_sklearn",
]
