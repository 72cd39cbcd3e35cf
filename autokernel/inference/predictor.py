"""How a kernel predicts, block by block of the rows."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator

import numpy as np

from autokernel.expression import Expression
from autokernel.inference.base import TrainingData
from autokernel.inference.covariance import cross_covariance, diagonal_covariance
from autokernel.typing import FloatArray


class Term:
    """A term of a function, and its average over some rows.

    Parameters
    ----------
    expression : Expression
        Kernel of the term.
    params : ndarray of shape (n_params,)
        Its parameters, not their logs.
    about : ndarray of shape (m, n_features), optional
        Rows of the average; without them the term is not compared with any.
    """

    def __init__(
        self, expression: Expression, params: FloatArray, about: FloatArray | None = None
    ) -> None:
        self.expression, self.params, self.about = expression, params, about

    def cross(self, X: FloatArray, Z: FloatArray) -> FloatArray:
        """Compute the covariances (n, m) of the term at rows X with itself at rows Z."""
        return cross_covariance(self.expression, X, Z).forward(self.params)

    def variance(self, X: FloatArray) -> FloatArray:
        """Compute the prior variance (n,) of the term, less its average, at rows X."""
        variance = diagonal_covariance(self.expression, X).forward(self.params)
        if self.about is None:
            return variance
        with_average = self.cross(X, self.about).mean(axis=1)
        return variance - 2 * with_average + self.cross(self.about, self.about).mean()

    def deviation(self, cross: FloatArray, Z: FloatArray) -> FloatArray:
        """Return the covariances (n, m) with rows Z of the term less its average."""
        return cross if self.about is None else cross - self.cross(self.about, Z).mean(axis=0)


class Predictor(ABC):
    """Predicts new observations, noise included, in the units of the search.

    Inputs must be scaled like the inputs of the fit. Predictions are of the standardised target.
    Moments are computed for one block of rows after the other, so that memory does not grow with
    the number of rows.

    Parameters
    ----------
    block : int
        Number of rows of a block.

    Attributes
    ----------
    noise_variance : float
        Variance of the noise plus the jitter.
    jitter : float
        Jitter that the factorisation needed.
    text : str
        How predictions are computed, as the user reads it.
    """

    noise_variance: float
    jitter: float

    @property
    @abstractmethod
    def text(self) -> str:
        """How predictions are computed, as the user reads it."""

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
        are given and the predictor knows it.
        """
        term = Term(expression, params, about)
        parts = [self._part_of_block(term, rows) for rows in self._blocks(X)]
        means, variances = zip(*parts, strict=True)
        return np.concatenate(means), np.concatenate(variances)

    def part_mean(self, expression: Expression, params: FloatArray, X: FloatArray) -> FloatArray:
        """Compute only the mean (n,) of a term of the function, which may take far less time."""
        term = Term(expression, params)
        return np.concatenate([self._part_mean_of_block(term, rows) for rows in self._blocks(X)])

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
    def _part_of_block(self, term: Term, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Compute mean and variance of a term of the function for one block of rows."""

    def _part_mean_of_block(self, term: Term, X: FloatArray) -> FloatArray:
        """Compute the mean of a term for one block of rows; subclasses may do without variances."""
        return self._part_of_block(term, X)[0]

    @abstractmethod
    def _moments_of_block(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Compute the predictive mean and variance of one block of rows, noise included."""

    def _blocks(self, X: FloatArray) -> Iterator[FloatArray]:
        """Yield the rows in blocks of limited size."""
        for start in range(0, len(X), self._block):
            yield X[start : start + self._block]


MakePredictor = Callable[[Expression, FloatArray, TrainingData], Predictor]
"""Function that makes the predictor of a kernel with parameters theta, conditioned on data.

It raises a ``scipy.linalg.LinAlgError`` if the covariance matrix has no Cholesky factor.
"""
