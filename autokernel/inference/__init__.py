"""From a kernel to its evidence: MAP point, Hessian, criterion."""

from autokernel.inference.criteria import CRITERIA, Importance, Laplace, check_criterion
from autokernel.inference.criterion import Criterion, Score
from autokernel.inference.evaluate import Evaluator, Job, check_expression, evaluate_kernel
from autokernel.inference.evaluation import Evaluation, Parameter
from autokernel.inference.information import AIC, BIC
from autokernel.inference.predictive import CrossValidation, LeaveOneOut

__all__ = [
    "AIC",
    "BIC",
    "CRITERIA",
    "Criterion",
    "CrossValidation",
    "Evaluation",
    "Evaluator",
    "Importance",
    "Job",
    "Laplace",
    "LeaveOneOut",
    "Parameter",
    "Score",
    "check_criterion",
    "check_expression",
    "evaluate_kernel",
]
