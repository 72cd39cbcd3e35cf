"""Gaussian-process regression that discovers its own kernel."""

from autokernel.estimator import AutoKernelGPRegressor
from autokernel.evidence import (
    BIC,
    Criterion,
    Evaluation,
    Importance,
    KernelFit,
    Laplace,
    LeaveOneOut,
    Score,
    evaluate_kernel,
)
from autokernel.exceptions import (
    AutoKernelError,
    EvaluationError,
    ExpressionSyntaxError,
    NotAMaximumError,
)
from autokernel.expression import Expression, parse_expression
from autokernel.kernels import BaseKernel, CallableKernel, KernelParameter, Operator
from autokernel.model import FeatureKernel, PosteriorAveraging
from autokernel.scoring import log_predictive_density_score
from autokernel.search import (
    BOMS,
    SKC,
    SOT,
    Acquisition,
    Arc,
    ExpectedImprovement,
    Greedy,
    RandomWalks,
    SeriesKernels,
    Strategy,
    ThompsonSampling,
    TreeGEP,
    UpperConfidenceBound,
)
from autokernel.version import __version__

__all__ = [
    "BIC",
    "BOMS",
    "SKC",
    "SOT",
    "Acquisition",
    "Arc",
    "AutoKernelError",
    "AutoKernelGPRegressor",
    "BaseKernel",
    "CallableKernel",
    "Criterion",
    "Evaluation",
    "EvaluationError",
    "ExpectedImprovement",
    "Expression",
    "ExpressionSyntaxError",
    "FeatureKernel",
    "Greedy",
    "Importance",
    "KernelFit",
    "KernelParameter",
    "Laplace",
    "LeaveOneOut",
    "NotAMaximumError",
    "Operator",
    "PosteriorAveraging",
    "RandomWalks",
    "Score",
    "SeriesKernels",
    "Strategy",
    "ThompsonSampling",
    "TreeGEP",
    "UpperConfidenceBound",
    "__version__",
    "evaluate_kernel",
    "log_predictive_density_score",
    "parse_expression",
]
