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
from autokernel.inference import (
    AIC,
    BIC,
    Criterion,
    CrossValidation,
    Evaluation,
    Importance,
    Laplace,
    LeaveOneOut,
    evaluate_kernel,
)
from autokernel.search import SOT, Strategy
from autokernel.version import __version__

__all__ = [
    "AIC",
    "BIC",
    "SOT",
    "AutoKernelError",
    "AutoKernelGPRegressor",
    "Criterion",
    "CrossValidation",
    "Evaluation",
    "EvaluationError",
    "Expression",
    "ExpressionSyntaxError",
    "FeatureKernel",
    "Importance",
    "Laplace",
    "LeaveOneOut",
    "NotAMaximumError",
    "Strategy",
    "__version__",
    "evaluate_kernel",
    "parse_expression",
]
