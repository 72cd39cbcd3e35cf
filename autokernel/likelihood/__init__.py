"""The exact Gaussian likelihood: an expression compiled against a data set."""

from autokernel.likelihood.exact import LogLikelihood, TrainingData, ValueAndGradient

__all__ = ["LogLikelihood", "TrainingData", "ValueAndGradient"]
