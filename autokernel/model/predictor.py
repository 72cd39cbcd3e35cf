"""The interface of the predictor of one fitted kernel."""

from collections.abc import Callable
from typing import Protocol

import numpy as np

from autokernel.expression import Expression
from autokernel.likelihood import TrainingData
from autokernel.typing import FloatArray


class Predictor(Protocol):
    """Predicts new observations, noise included, in the units of the search.

    Inputs must be scaled like the inputs of the fit. Predictions are of the standardised target.

    Attributes
    ----------
    noise_variance : float
        Variance of the noise plus the jitter.
    jitter : float
        Jitter that the factorisation needed.
    n_bytes : int
        Memory in bytes, without the training inputs.
    text : str
        How predictions are computed, as the user reads it.
    """

    noise_variance: float
    jitter: float

    @property
    def text(self) -> str:
        """How predictions are computed, as the user reads it."""

    @property
    def n_bytes(self) -> int:
        """Memory in bytes, without the training inputs."""

    def mean(self, X: FloatArray) -> FloatArray:
        """Compute the predictive mean (n,) at inputs (n, n_features)."""

    def part(
        self,
        expression: Expression,
        params: FloatArray,
        X: FloatArray,
        *,
        about: FloatArray | None = None,
    ) -> tuple[FloatArray, FloatArray]:
        """Compute mean (n,) and variance (n,) of a term of the function, without noise.

        The kernel of the function is the sum of the kernels of its terms, one of which is this
        expression with its parameters (n_params,), not their logs. The variance is that of the
        difference from the average of the term over the rows ``about`` (m, n_features), if they
        are given and the predictor can tell.
        """

    def part_mean(self, expression: Expression, params: FloatArray, X: FloatArray) -> FloatArray:
        """Compute the mean (n,) of a term of the function alone, which may take far less time."""

    def mean_and_variance(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Compute the predictive mean (n,) and variance (n,)."""

    def mean_and_covariance(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Compute the predictive mean (n,) and covariance (n, n)."""

    def samples(self, X: FloatArray, n_samples: int, rng: np.random.RandomState) -> FloatArray:
        """Draw new observations (n, n_samples)."""


MakePredictor = Callable[[Expression, FloatArray, TrainingData], Predictor]
"""Function that makes the predictor of a kernel with parameters theta, conditioned on data.

It raises a ``scipy.linalg.LinAlgError`` if the covariance matrix has no Cholesky factor.
"""
