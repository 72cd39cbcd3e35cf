"""Exact predictions from the Cholesky factor of the likelihood."""

import numpy as np

from autokernel.expression import NOISE, Expression
from autokernel.likelihood import (
    ExactLikelihood,
    TrainingData,
    cross_covariance,
    diagonal_covariance,
)
from autokernel.likelihood.cholesky import Cholesky
from autokernel.likelihood.linalg import PackedCholesky, factorise_with_jitter, pack
from autokernel.model.blockwise import BlockwisePredictor, Term
from autokernel.typing import FloatArray

_LARGE = 2000  # rows up to which the covariance is that of the likelihood, to the last bit
_BLOCK = 2**17  # largest number of covariances computed at once


class ExactPredictor(BlockwisePredictor):
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

    text = "exact"

    def __init__(self, expression: Expression, theta: FloatArray, data: TrainingData) -> None:
        super().__init__(block=_BLOCK // len(data.X))
        self._cholesky, self.jitter = _factorise(expression, theta, data)
        self._whole, self._X = Term(expression, np.exp(theta[:-1])), data.X
        self._alpha = self._cholesky.solve(data.y)
        self.noise_variance = float(np.exp(theta[-1])) + self.jitter

    @property
    def n_bytes(self) -> int:
        """Memory in bytes of the packed Cholesky factor and of alpha."""
        return int(self._cholesky.factor.nbytes + self._alpha.nbytes)

    def mean_and_covariance(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Compute the predictive mean (n,) and covariance (n, n), noise included."""
        cross = self._whole.cross(X, self._X)
        mean = cross @ self._alpha
        V = self._cholesky.half_solve(cross.T, overwrite=True)
        K = self._whole.cross(X, X) - V.T @ V
        K[np.diag_indices(len(K))] += self.noise_variance
        return mean, K

    def _mean_of_block(self, X: FloatArray) -> FloatArray:
        """Compute the predictive mean of one block of rows."""
        return self._part_mean_of_block(self._whole, X)

    def _part_mean_of_block(self, term: Term, X: FloatArray) -> FloatArray:
        """Compute the mean of a term of the function for one block of rows."""
        return term.cross(X, self._X) @ self._alpha

    def _moments_of_block(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Compute the predictive mean and variance of one block of rows, noise included."""
        mean, variance = self._part_of_block(self._whole, X)
        return mean, variance + self.noise_variance

    def _part_of_block(self, term: Term, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Compute mean and variance of a term of the function for one block of rows."""
        cross = term.cross(X, self._X)
        mean = cross @ self._alpha
        V = self._cholesky.half_solve(term.deviation(cross, self._X).T, overwrite=True)
        explained = np.einsum("ij,ij->j", V, V)
        return mean, np.maximum(term.variance(X) - explained, 0.0)


def _factorise(
    expression: Expression, theta: FloatArray, data: TrainingData
) -> tuple[Cholesky, float]:
    """Factorise the covariance matrix, and return the jitter that was needed.

    A large matrix is computed by blocks of rows, without the arrays of each base kernel.
    """
    if len(data.X) <= _LARGE or expression == NOISE:
        likelihood = ExactLikelihood(expression, data)
        return factorise_with_jitter(
            lambda jitter: likelihood.factorise(theta, jitter=jitter),
            scale=likelihood.mean_variance(theta),
        )
    n, params = len(data.X), np.exp(theta)
    diagonal = diagonal_covariance(expression, data.X).forward(params[:-1]) + params[-1]

    def factorise(jitter: float) -> Cholesky:
        K = np.empty((n, n))
        for start in range(0, n, max(1, _BLOCK // n)):
            rows = slice(start, start + max(1, _BLOCK // n))
            K[rows] = cross_covariance(expression, data.X[rows], data.X).forward(params[:-1])
        K[np.diag_indices(n)] += params[-1] + jitter
        packed = pack(K.T)  # symmetric, and in the order of LAPACK without a copy
        del K
        return PackedCholesky(packed, n)

    return factorise_with_jitter(factorise, scale=float(diagonal.mean()))
