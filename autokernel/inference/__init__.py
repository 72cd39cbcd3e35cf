"""From a kernel to its evidence: MAP point, Hessian, criterion."""

from autokernel.inference.criteria import CRITERIA
from autokernel.inference.evaluate import Evaluation, Evaluator, Parameter, evaluate_kernel

__all__ = ["CRITERIA", "Evaluation", "Evaluator", "Parameter", "evaluate_kernel"]
