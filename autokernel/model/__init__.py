"""Models that predict with a fitted expression, and scikit-learn kernels made of one."""

from autokernel.model.exact import Conditioned, condition
from autokernel.model.feature_kernel import FeatureKernel
from autokernel.model.sklearn_export import to_sklearn

__all__ = ["Conditioned", "FeatureKernel", "condition", "to_sklearn"]
