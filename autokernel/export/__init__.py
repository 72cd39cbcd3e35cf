"""Kernels of other libraries from fitted expressions."""

from autokernel.export.feature_kernel import FeatureKernel
from autokernel.export.to_sklearn import Scaling, to_sklearn

__all__ = ["FeatureKernel", "Scaling", "to_sklearn"]
