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
    Score,
    evaluate_kernel,
)
from autokernel.search import BOMS, SOT, Arc, Greedy, RandomWalks, Strategy, TreeGEP
from autokernel.surrogate import (
    Acquisition,
    ExpectedImprovement,
    ExpectedImprovementPerSecond,
    ThompsonSampling,
    UpperConfidenceBound,
)
from autokernel.version import __version__

__all__ = [
    "AIC",
    "BIC",
    "BOMS",
    "SOT",
    "Acquisition",
    "Arc",
    "AutoKernelError",
    "AutoKernelGPRegressor",
    "Criterion",
    "CrossValidation",
    "Evaluation",
    "EvaluationError",
    "ExpectedImprovement",
    "ExpectedImprovementPerSecond",
    "Expression",
    "ExpressionSyntaxError",
    "FeatureKernel",
    "Greedy",
    "Importance",
    "Laplace",
    "LeaveOneOut",
    "NotAMaximumError",
    "RandomWalks",
    "Score",
    "Strategy",
    "ThompsonSampling",
    "TreeGEP",
    "UpperConfidenceBound",
    "__version__",
    "evaluate_kernel",
    "parse_expression",
]
