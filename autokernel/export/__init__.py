"""Kernels and models of other libraries from fitted expressions."""

from autokernel.export.conditioning import Conditioned, condition
from autokernel.export.feature_kernel import FeatureKernel
from autokernel.export.to_sklearn import Scaling, to_sklearn
from autokernel.export.units import standardise, target_scale, unit_scaling, varying_columns

__all__ = [
    "Conditioned",
    "FeatureKernel",
    "Scaling",
    "condition",
    "standardise",
    "target_scale",
    "to_sklearn",
    "unit_scaling",
    "varying_columns",
]
