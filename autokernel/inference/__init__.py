"""From a kernel to its evidence: MAP point, Hessian, criterion."""

from autokernel.inference.evaluate import Evaluation, Evaluator, Parameter, evaluate_kernel

__all__ = ["Evaluation", "Evaluator", "Parameter", "evaluate_kernel"]
