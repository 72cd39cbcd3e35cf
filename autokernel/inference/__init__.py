"""From a kernel to its evidence: MAP point, Hessian, criterion."""

from autokernel.inference.criteria import CRITERIA, Criterion, Importance, Laplace, check_criterion
from autokernel.inference.evaluate import Evaluator, Job, check_expression, evaluate_kernel
from autokernel.inference.evaluation import Evaluation, Parameter

__all__ = [
    "CRITERIA",
    "Criterion",
    "Evaluation",
    "Evaluator",
    "Importance",
    "Job",
    "Laplace",
    "Parameter",
    "check_criterion",
    "check_expression",
    "evaluate_kernel",
]
