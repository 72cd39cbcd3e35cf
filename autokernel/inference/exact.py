"""Exact inference: the likelihood of a kernel and its predictions."""

import numpy as np
from scipy.linalg import LinAlgError

from autokernel.expression import NOISE, Expression
from autokernel.inference.base import Likelihood, TrainingData, ValueAndGradient
from autokernel.inference.covariance import Covariance, cross_covariance, diagonal_covariance
from autokernel.inference.packed import (
    Cholesky,
    DiagonalCholesky,
    PackedCholesky,
    Prediction,
    factorise_with_jitter,
    pack,
    packed_diagonal,
)
from autokernel.inference.predictor import Predictor, Term
from autokernel.typing import FloatArray, IntArray


class ExactLikelihood(Likelihood):
    """``log N(y; 0, K_theta + s I)`` where theta holds the logs of the parameters, ``s`` last.

    If the matrix cannot be factorised, the value is ``-inf`` and the gradient is zero.

    The matrix of the null model is diagonal. Only its diagonal is stored, and every cost is O(n).
    """

    def __init__(self, expression: Expression, data: TrainingData) -> None:
        super().__init__(expression, data)
        self._y = data.y
        self._is_diagonal = expression == NOISE
        self._diagonal: IntArray | slice  # where the stored matrix has its diagonal
        if self._is_diagonal:
            self._covariance = diagonal_covariance(expression, data.X)
            self._diagonal = slice(None)
        else:
            self._covariance = Covariance(expression, data.pairs)
            self._diagonal = packed_diagonal(len(data.y))

    def value(self, theta: FloatArray) -> float:
        """Compute the log likelihood in nats. O(n^3 / 3)."""
        try:
            cholesky = self.factorise(theta)
        except LinAlgError:
            return -np.inf
        return self._value(cholesky, cholesky.solve(self._y))

    def value_and_gradient(self, theta: FloatArray) -> ValueAndGradient:
        """Compute the log likelihood in nats and its gradient (R&W eq. 5.9). O(n^3)."""
        failure = ValueAndGradient(-np.inf, np.zeros(len(theta)))
        try:
            cholesky = self.factorise(theta)
        except LinAlgError:
            return failure
        alpha = cholesky.solve(self._y)
        value = self._value(cholesky, alpha)
        if not np.isfinite(value):
            return failure
        adjoint = cholesky.evidence_adjoint(alpha)
        noise_gradient = np.exp(theta[-1]) * adjoint[self._diagonal].sum()
        return ValueAndGradient(
            value, np.append(self._covariance.backward(adjoint), noise_gradient)
        )

    def leave_one_out(self, theta: FloatArray) -> FloatArray:
        """Compute the log predictive density (n,) of each target given all others. O(n^3).

        R&W eq. 5.10-5.12, in nats and including the noise of the target.
        """
        try:
            return _log_normal(*self.leave_one_out_errors(theta))
        except LinAlgError:
            return np.full(len(self._y), -np.inf)

    def leave_one_out_errors(self, theta: FloatArray, *, jitter: float = 0.0) -> Prediction:
        """Predict each target from all others, with its noise (R&W eq. 5.12). O(n^3).

        Raises
        ------
        scipy.linalg.LinAlgError
            If the matrix is not positive definite to machine precision.
        """
        cholesky = self.factorise(theta, jitter=jitter)
        alpha = cholesky.solve(self._y)
        precision = cholesky.inverse_diagonal()
        return Prediction(alpha / precision, 1 / precision)

    def held_out(self, theta: FloatArray, n_given: int) -> FloatArray:
        """Compute log predictive densities (n - n_given,) of the later targets, given the first.

        Each target is predicted by itself, in nats and including its noise. O(n^3 / 3).
        """
        try:
            cholesky = self.factorise(theta)
        except LinAlgError:
            return np.full(len(self._y) - n_given, -np.inf)
        return _log_normal(*cholesky.predict_later(self._y, n_given))

    def factorise(self, theta: FloatArray, *, jitter: float = 0.0) -> Cholesky:
        """Factorise ``K_theta + (s + jitter) I``.

        Raises
        ------
        scipy.linalg.LinAlgError
            If the matrix is not positive definite to machine precision.
        """
        params = np.exp(theta)
        K = self._covariance.forward(params[:-1]).copy()  # the reverse sweep needs the original
        K[self._diagonal] += params[-1] + jitter
        return DiagonalCholesky(K) if self._is_diagonal else PackedCholesky(K, len(self._y))

    def mean_variance(self, theta: FloatArray) -> float:
        """Compute the mean of the diagonal of ``K_theta + s I``."""
        params = np.exp(theta)
        return float(np.mean(self._covariance.forward(params[:-1])[self._diagonal]) + params[-1])

    def _value(self, cholesky: Cholesky, alpha: FloatArray) -> float:
        """Compute the log likelihood in nats from ``alpha`` (R&W alg. 2.1, line 7)."""
        n = len(self._y)
        return float(-0.5 * (self._y @ alpha + cholesky.log_determinant() + n * np.log(2 * np.pi)))


def _log_normal(residual: FloatArray, variance: FloatArray) -> FloatArray:
    """Compute the log densities of independent normal variables, in nats."""
    return -0.5 * (residual**2 / variance + np.log(2 * np.pi * variance))


_LARGE = 2000  # rows up to which the covariance is that of the likelihood, to the last bit
_BLOCK = 2**17  # largest number of covariances computed at once


class ExactPredictor(Predictor):
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
