"""What a predictor of one fitted kernel is."""

from collections.abc import Callable
from typing import Protocol

from autokernel.expression import Expression
from autokernel.likelihood import TrainingData
from autokernel.typing import FloatArray


class Predictor(Protocol):
    """Predicts new observations, noise included, in the units of the search.

    Inputs are scaled as those of the fit were, and the target is standardised.

    Attributes
    ----------
    noise_variance : float
        Variance of the noise, with the jitter that a factorisation has needed.
    jitter : float
        The jitter alone.
    n_bytes : int
        Memory that it holds beside the training inputs.
    """

    noise_variance: float
    jitter: float

    @property
    def n_bytes(self) -> int:
        """Memory that it holds beside the training inputs."""

    def mean(self, X: FloatArray) -> FloatArray:
        """Predictive mean (n,) at inputs (n, n_features)."""

    def mean_and_variance(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Predictive mean (n,) and variance (n,)."""

    def mean_and_covariance(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Predictive mean (n,) and covariance (n, n)."""


MakePredictor = Callable[[Expression, FloatArray, TrainingData], Predictor]
"""Makes the predictor of a kernel with its parameters theta, conditioned on data.

It raises a ``scipy.linalg.LinAlgError`` where that is not possible.
"""
