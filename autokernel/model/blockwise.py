"""Predictions in blocks of rows, so that memory does not grow with their number."""

from abc import ABC, abstractmethod
from collections.abc import Iterator

import numpy as np

from autokernel.expression import Expression
from autokernel.typing import FloatArray


class BlockwisePredictor(ABC):
    """A predictor that computes the moments of one block of rows after the other.

    Parameters
    ----------
    block : int
        Number of rows of a block.
    """

    noise_variance: float
    jitter: float

    def __init__(self, *, block: int) -> None:
        self._block = max(1, block)

    def mean(self, X: FloatArray) -> FloatArray:
        """Compute the predictive mean (n,) at inputs (n, n_features)."""
        return np.concatenate([self._mean_of_block(rows) for rows in self._blocks(X)])

    def mean_and_variance(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Compute the predictive mean (n,) and variance (n,), noise included."""
        means, variances = zip(*map(self._moments_of_block, self._blocks(X)), strict=True)
        return np.concatenate(means), np.concatenate(variances)

    def part(
        self, expression: Expression, params: FloatArray, X: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Compute mean (n,) and variance (n,) of a term of the function, without noise."""
        parts = [self._part_of_block(expression, params, rows) for rows in self._blocks(X)]
        means, variances = zip(*parts, strict=True)
        return np.concatenate(means), np.concatenate(variances)

    def samples(self, X: FloatArray, n_samples: int, rng: np.random.RandomState) -> FloatArray:
        """Draw new observations (n, n_samples), noise included."""
        mean, covariance = self.mean_and_covariance(X)
        # rounding may leave eigenvalues just below zero, which the user need not be told
        return rng.multivariate_normal(mean, covariance, n_samples, check_valid="ignore").T

    @abstractmethod
    def mean_and_covariance(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Compute the predictive mean (n,) and covariance (n, n), noise included."""

    @abstractmethod
    def _mean_of_block(self, X: FloatArray) -> FloatArray:
        """Compute the predictive mean of one block of rows."""

    @abstractmethod
    def _part_of_block(
        self, expression: Expression, params: FloatArray, X: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Compute mean and variance of a term of the function for one block of rows."""

    @abstractmethod
    def _moments_of_block(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Compute the predictive mean and variance of one block of rows, noise included."""

    def _blocks(self, X: FloatArray) -> Iterator[FloatArray]:
        """Yield the rows in blocks of limited size."""
        for start in range(0, len(X), self._block):
            yield X[start : start + self._block]
