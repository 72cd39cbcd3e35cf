"""The posterior of one kernel: its maximum, its scores, the record of an evaluation."""

from autokernel.evidence.criteria import AIC, BIC, Criterion, KernelFit, Score
from autokernel.evidence.evaluation import Evaluation, Parameter, name_parameters
from autokernel.evidence.evaluator import Evaluator, Job
from autokernel.evidence.importance import Importance
from autokernel.evidence.laplace import Laplace
from autokernel.evidence.one_kernel import check_expression, evaluate_kernel, parameters_of
from autokernel.evidence.predictive import CrossValidation, LeaveOneOut
from autokernel.evidence.registry import CRITERIA, check_criterion

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
    "KernelFit",
    "Laplace",
    "LeaveOneOut",
    "Parameter",
    "Score",
    "check_criterion",
    "check_expression",
    "evaluate_kernel",
    "name_parameters",
    "parameters_of",
]
