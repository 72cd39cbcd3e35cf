"""The exact Gaussian log likelihood of one kernel on one data set."""

from dataclasses import dataclass

import numpy as np
from scipy.linalg import LinAlgError

from autokernel.expression import NOISE, Expression
from autokernel.kernels import NOISE_VARIANCE
from autokernel.likelihood.base import TrainingData, ValueAndGradient
from autokernel.likelihood.cholesky import Cholesky, Prediction
from autokernel.likelihood.covariance import Covariance, diagonal_covariance
from autokernel.likelihood.diagonal import DiagonalCholesky
from autokernel.likelihood.linalg import PackedCholesky, packed_diagonal
from autokernel.typing import FloatArray, IntArray


@dataclass(slots=True)
class Calls:
    """Counter of the calls of one likelihood, or of several together."""

    n: int = 0


class ExactLikelihood:
    """``log N(y; 0, K_theta + s I)`` where theta holds the logs of the parameters, ``s`` last.

    ``n_evaluations`` counts the calls, including those of other likelihoods that share ``calls``.
    If the matrix cannot be factorised, the value is ``-inf`` and the gradient is zero.

    The matrix of the null model is diagonal. Only its diagonal is stored, and every cost is O(n).
    """

    def __init__(
        self, expression: Expression, data: TrainingData, *, calls: Calls | None = None
    ) -> None:
        self.expression, self.data = expression, data
        self._y = data.y
        self._is_diagonal = expression == NOISE
        self._diagonal: IntArray | slice  # where the stored matrix has its diagonal
        if self._is_diagonal:
            self._covariance = diagonal_covariance(expression, data.X)
            self._diagonal = slice(None)
        else:
            self._covariance = Covariance(expression, data.pairs)
            self._diagonal = packed_diagonal(len(data.y))
        self._calls = Calls() if calls is None else calls
        self.parameters = (*self._covariance.parameters, NOISE_VARIANCE)

    @property
    def n_evaluations(self) -> int:
        """Number of calls so far, including failed ones."""
        return self._calls.n

    def on_rows(self, rows: IntArray) -> "ExactLikelihood":
        """Return the same kernel's likelihood on these rows; calls of both count together."""
        return type(self)(self.expression, self.data.take(rows), calls=self._calls)

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
        self._calls.n += 1
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
