"""Exact predictions from the Cholesky factor of the likelihood."""

from collections.abc import Iterator

import numpy as np

from autokernel.expression import Expression
from autokernel.likelihood import (
    ExactLikelihood,
    TrainingData,
    cross_covariance,
    diagonal_covariance,
)
from autokernel.likelihood.linalg import factorise_with_jitter
from autokernel.typing import FloatArray

_BLOCK = 2**17  # largest number of covariances computed at once


class ExactPredictor:
    """The exact predictive distribution of a Gaussian process (R&W alg. 2.1).

    Parameters
    ----------
    expression : Expression
        Expression of the kernel.
    theta : ndarray of shape (n_params,)
        Logs of the parameters, the noise variance last.
    data : TrainingData
        Inputs and targets to condition on.

    Raises
    ------
    scipy.linalg.LinAlgError
        If the covariance matrix has no Cholesky factor, even with jitter.

    Notes
    -----
    Construction takes O(n_samples^3 / 3); each new row takes O(n_samples) for its mean and
    O(n_samples^2) for its variance. Rows are predicted in blocks, so that memory does not grow with
    their number.
    """

    def __init__(self, expression: Expression, theta: FloatArray, data: TrainingData) -> None:
        likelihood = ExactLikelihood(expression, data)
        self._cholesky, self.jitter = factorise_with_jitter(
            lambda jitter: likelihood.factorise(theta, jitter=jitter),
            scale=likelihood.mean_variance(theta),
        )
        self._expression, self._X = expression, data.X
        self._params = np.exp(theta[:-1])
        self._alpha = self._cholesky.solve(data.y)
        self.noise_variance = float(np.exp(theta[-1])) + self.jitter

    @property
    def n_bytes(self) -> int:
        """Memory in bytes of the packed Cholesky factor and of alpha."""
        return int(self._cholesky.factor.nbytes + self._alpha.nbytes)

    def mean(self, X: FloatArray) -> FloatArray:
        """Compute the predictive mean (n,) at inputs (n, n_features)."""
        return np.concatenate([self._cross(rows) @ self._alpha for rows in self._blocks(X)])

    def mean_and_variance(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Compute the predictive mean (n,) and variance (n,), noise included."""
        means, variances = zip(*map(self._moments_of_block, self._blocks(X)), strict=True)
        return np.concatenate(means), np.concatenate(variances)

    def mean_and_covariance(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Compute the predictive mean (n,) and covariance (n, n), noise included."""
        cross = self._cross(X)
        mean = cross @ self._alpha
        V = self._cholesky.half_solve(cross.T, overwrite=True)
        K = cross_covariance(self._expression, X, X).forward(self._params) - V.T @ V
        K[np.diag_indices(len(K))] += self.noise_variance
        return mean, K

    def samples(self, X: FloatArray, n_samples: int, rng: np.random.RandomState) -> FloatArray:
        """Draw new observations (n, n_samples), noise included."""
        mean, covariance = self.mean_and_covariance(X)
        # rounding may leave eigenvalues just below zero, which the user need not be told
        return rng.multivariate_normal(mean, covariance, n_samples, check_valid="ignore").T

    def _moments_of_block(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Compute the predictive mean and variance of one block of rows."""
        cross = self._cross(X)
        mean = cross @ self._alpha
        V = self._cholesky.half_solve(cross.T, overwrite=True)
        prior = diagonal_covariance(self._expression, X).forward(self._params)
        explained = np.einsum("ij,ij->j", V, V)
        return mean, np.maximum(prior - explained, 0.0) + self.noise_variance

    def _cross(self, X: FloatArray) -> FloatArray:
        """Compute the covariances (n, n_samples) of new rows with the training rows."""
        return cross_covariance(self._expression, X, self._X).forward(self._params)

    def _blocks(self, X: FloatArray) -> Iterator[FloatArray]:
        """Yield the rows in blocks of limited size."""
        size = max(1, _BLOCK // len(self._X))
        for start in range(0, len(X), size):
            yield X[start : start + size]
