"""Criteria, which score kernels so that they can be compared."""

from autokernel.criteria.base import Criterion, KernelFit, Score
from autokernel.criteria.importance import Importance
from autokernel.criteria.information import AIC, BIC
from autokernel.criteria.laplace import Laplace
from autokernel.criteria.predictive import CrossValidation, LeaveOneOut
from autokernel.criteria.registry import CRITERIA, check_criterion

__all__ = [
    "AIC",
    "BIC",
    "CRITERIA",
    "Criterion",
    "CrossValidation",
    "Importance",
    "KernelFit",
    "Laplace",
    "LeaveOneOut",
    "Score",
    "check_criterion",
]
