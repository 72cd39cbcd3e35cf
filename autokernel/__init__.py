"""Gaussian-process regression that discovers its own kernel."""

from autokernel.estimator import AutoKernelGPRegressor
from autokernel.exceptions import (
    AutoKernelError,
    EvaluationError,
    ExpressionSyntaxError,
    NotAMaximumError,
)
from autokernel.export import FeatureKernel
from autokernel.expression import Expression, parse_expression
from autokernel.inference import Evaluation, evaluate_kernel
from autokernel.search import SOT

__version__ = "0.1.0"

__all__ = [
    "SOT",
    "AutoKernelError",
    "AutoKernelGPRegressor",
    "Evaluation",
    "EvaluationError",
    "Expression",
    "ExpressionSyntaxError",
    "FeatureKernel",
    "NotAMaximumError",
    "evaluate_kernel",
    "parse_expression",
]
