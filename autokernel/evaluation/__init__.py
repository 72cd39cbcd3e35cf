"""The evaluation of a kernel: its fit, its score and the record of both."""

from autokernel.evaluation.evaluator import Evaluator, Job
from autokernel.evaluation.one_kernel import check_expression, evaluate_kernel, parameters_of
from autokernel.evaluation.record import Evaluation, Parameter, name_parameters

__all__ = [
    "Evaluation",
    "Evaluator",
    "Job",
    "Parameter",
    "check_expression",
    "evaluate_kernel",
    "name_parameters",
    "parameters_of",
]
