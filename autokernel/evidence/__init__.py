"""The posterior of one kernel: its maximum, its scores, the record of an evaluation."""

from autokernel.evidence.criteria import (
    BIC,
    CRITERIA,
    Criterion,
    Importance,
    KernelFit,
    Laplace,
    LeaveOneOut,
    Score,
)
from autokernel.evidence.evaluation import Estimate, Evaluation
from autokernel.evidence.evaluator import (
    Evaluator,
    Job,
    check_expression,
    evaluate_kernel,
    parameters_of,
)
from autokernel.evidence.outliers import find_outliers, new_outliers, update_outliers
from autokernel.evidence.varying_noise import FittedNoise, update_noise
