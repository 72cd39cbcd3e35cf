"""The exact Gaussian likelihood: an expression compiled against a data set."""

from autokernel.likelihood.exact import LogLikelihood, TrainingData, ValueAndGradient
from autokernel.likelihood.linalg import smallest_jitter

__all__ = ["LogLikelihood", "TrainingData", "ValueAndGradient", "smallest_jitter"]
