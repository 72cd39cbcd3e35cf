"""Predictions from inducing points."""

import numpy as np
from scipy.linalg import solve_triangular

from autokernel.expression import Expression
from autokernel.likelihood import (
    InducingLikelihood,
    TrainingData,
    choose_inducing,
)
from autokernel.model.blockwise import BlockwisePredictor, Term
from autokernel.typing import FloatArray

_CANDIDATES = 2**13  # rows among which inducing points are chosen
_SEED = 0  # of the order of the rows, so that equal data have equal predictions
_AT_ONCE = 2**20  # covariances of new rows with inducing points that are computed at once


class InducingPredictor(BlockwisePredictor):
    """The predictive distribution of the collapsed variational bound.

    Parameters
    ----------
    expression : Expression
        Expression of the kernel.
    theta : ndarray of shape (n_params,)
        Logs of the parameters, the noise variance last.
    data : TrainingData
        Inputs and targets to condition on.
    n_inducing : int
        Most inducing points, which are chosen among the first rows in a random order.

    Raises
    ------
    scipy.linalg.LinAlgError
        If a matrix has no Cholesky factor.

    Notes
    -----
    Titsias (2009, AISTATS), eq. 6. Construction takes O(n_samples n_inducing^2); each new row takes
    O(n_inducing) for its mean and O(n_inducing^2) for its variance.
    """

    jitter = 0.0

    def __init__(
        self, expression: Expression, theta: FloatArray, data: TrainingData, n_inducing: int
    ) -> None:
        some = np.random.default_rng(_SEED).permutation(len(data.X))[:_CANDIDATES]
        points = data.X[some[choose_inducing(expression, theta, data.X[some], n_inducing)]]
        super().__init__(block=max(1, _AT_ONCE // len(points)))
        at = InducingLikelihood(expression, data, points).condition(theta)
        self._L, self._L_B, self._weights = at.L, at.L_B, at.weights
        self._whole, self._points = Term(expression, np.exp(theta[:-1])), points
        self.noise_variance = at.noise

    @property
    def text(self) -> str:
        """The number of inducing points."""
        return f"{len(self._points)} inducing points"

    @property
    def n_bytes(self) -> int:
        """Memory in bytes of the two factors."""
        return int(self._L.nbytes + self._L_B.nbytes + self._weights.nbytes)

    def mean_and_covariance(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Compute the predictive mean (n,) and covariance (n, n), noise included."""
        mean, prior_part, posterior_part = self._project(self._whole.cross(X, self._points))
        K = self._whole.cross(X, X)
        K = K - prior_part.T @ prior_part + posterior_part.T @ posterior_part
        K[np.diag_indices(len(K))] += self.noise_variance
        return mean, K

    def _mean_of_block(self, X: FloatArray) -> FloatArray:
        """Compute the predictive mean of one block of rows."""
        return self._part_mean_of_block(self._whole, X)

    def _part_mean_of_block(self, term: Term, X: FloatArray) -> FloatArray:
        """Compute the mean of a term of the function for one block of rows."""
        return term.cross(X, self._points) @ self._weights

    def _moments_of_block(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Compute the predictive mean and variance of one block of rows."""
        mean, variance = self._part_of_block(self._whole, X)
        return mean, variance + self.noise_variance

    def _part_of_block(self, term: Term, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Compute mean and variance of a term of the function for one block of rows."""
        cross = term.cross(X, self._points)
        _, prior_part, posterior_part = self._project(term.deviation(cross, self._points))
        explained = np.einsum("ij,ij->j", prior_part, prior_part)
        kept = np.einsum("ij,ij->j", posterior_part, posterior_part)
        return cross @ self._weights, np.maximum(term.variance(X) - explained, 0.0) + kept

    def _project(self, cross: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Compute the mean (n,), ``L^-1 k`` and ``L_B^-1 L^-1 k``, of shape (n_inducing, n)."""
        prior_part = solve_triangular(self._L, cross.T, lower=True, check_finite=False)
        posterior_part = solve_triangular(self._L_B, prior_part, lower=True, check_finite=False)
        return cross @ self._weights, prior_part, posterior_part
