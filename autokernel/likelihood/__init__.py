"""The exact Gaussian likelihood: an expression compiled against a data set."""

from autokernel.likelihood.exact import Calls, LogLikelihood, TrainingData, ValueAndGradient
from autokernel.likelihood.linalg import smallest_jitter
from autokernel.likelihood.threads import one_blas_thread

__all__ = [
    "Calls",
    "LogLikelihood",
    "TrainingData",
    "ValueAndGradient",
    "one_blas_thread",
    "smallest_jitter",
]
