"""The exact Gaussian log likelihood of one kernel on one data set."""

from dataclasses import dataclass

import numpy as np
from scipy.linalg import LinAlgError, solve_triangular

from autokernel.expression import Expression
from autokernel.likelihood.covariance import Covariance
from autokernel.likelihood.linalg import PackedCholesky, packed_diagonal
from autokernel.likelihood.pairs import PackedPairs
from autokernel.typing import FloatArray, IntArray


class TrainingData:
    """Inputs, targets and what all kernels share: the pairs of each column, computed on demand.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        Inputs.
    y : ndarray of shape (n_samples,)
        Targets, of zero mean under the model.
    """

    def __init__(self, X: FloatArray, y: FloatArray) -> None:
        self.X, self.y = X, y
        self.mean_square = float(np.mean(y**2))
        self._pairs: dict[int, PackedPairs] = {}

    def take(self, rows: IntArray) -> "TrainingData":
        """Return these rows."""
        return TrainingData(self.X[rows], self.y[rows])

    def pairs(self, column: int) -> PackedPairs:
        """Return the pairs of one column."""
        if column not in self._pairs:
            self._pairs[column] = PackedPairs(np.ascontiguousarray(self.X[:, column]))
        return self._pairs[column]


@dataclass(frozen=True, slots=True, eq=False)  # eq=False: gradient is an array
class ValueAndGradient:
    """A scalar and its gradient in theta."""

    value: float
    gradient: FloatArray  # (n_params,)


@dataclass(slots=True)
class Calls:
    """Counts the calls of one likelihood, or of several together."""

    n: int = 0


class LogLikelihood:
    """``log N(y; 0, K_theta + s I)`` with theta the logs of the parameters, ``s`` the last.

    ``n_evaluations`` counts the calls, with those of other likelihoods where ``calls`` is shared. A
    matrix that cannot be factorised has the value ``-inf`` and the gradient zero.
    """

    def __init__(
        self, expression: Expression, data: TrainingData, *, calls: Calls | None = None
    ) -> None:
        self._program = Covariance(expression, data.pairs)
        self._y = data.y
        self._diagonal = packed_diagonal(len(data.y))
        self._calls = Calls() if calls is None else calls
        self.parameter_names = (*self._program.parameter_names, "noise_variance")

    @property
    def n_evaluations(self) -> int:
        """Number of calls so far, failed ones too."""
        return self._calls.n

    def value(self, theta: FloatArray) -> float:
        """Log likelihood in nats. O(n^3 / 3)."""
        try:
            cholesky = self._factorise(theta)
        except LinAlgError:
            return -np.inf
        return self._value(cholesky, cholesky.solve(self._y))

    def value_and_gradient(self, theta: FloatArray) -> ValueAndGradient:
        """Log likelihood in nats and its gradient (R&W eq. 5.9). O(n^3)."""
        nowhere = ValueAndGradient(-np.inf, np.zeros(len(theta)))
        try:
            cholesky = self._factorise(theta)
        except LinAlgError:
            return nowhere
        alpha = cholesky.solve(self._y)
        value = self._value(cholesky, alpha)
        if not np.isfinite(value):
            return nowhere
        adjoint = cholesky.evidence_adjoint(alpha)
        noise_gradient = np.exp(theta[-1]) * adjoint[self._diagonal].sum()
        return ValueAndGradient(value, np.append(self._program.backward(adjoint), noise_gradient))

    def leave_one_out(self, theta: FloatArray) -> FloatArray:
        """Log predictive density (n,) of each target given all others (R&W eq. 5.10-5.12). O(n^3).

        In nats, the noise of the target included.
        """
        try:
            cholesky = self._factorise(theta)
        except LinAlgError:
            return np.full(len(self._y), -np.inf)
        alpha = cholesky.solve(self._y)
        precision = cholesky.inverse_diagonal()
        return _log_normal(alpha / precision, variance=1 / precision)

    def held_out(self, theta: FloatArray, n_given: int) -> FloatArray:
        """Log predictive density (n - n_given,) of the targets after the first, given those.

        Each by itself, in nats, its noise included. O(n^3 / 3).

        Notes
        -----
        With ``L = [[L11, 0], [L21, L22]]`` and ``L z = y``, the later targets ``L21 z1 + L22 z2``
        have the mean ``L21 z1`` and the covariance ``L22 L22^T`` given the first (R&W eq. A.6): a
        variance is a sum of squares and stays positive.
        """
        try:
            cholesky = self._factorise(theta)
        except LinAlgError:
            return np.full(len(self._y) - n_given, -np.inf)
        L = cholesky.lower()
        z = solve_triangular(L, self._y, lower=True, check_finite=False)
        L22 = L[n_given:, n_given:]
        return _log_normal(L22 @ z[n_given:], variance=(L22**2).sum(axis=1))

    def _factorise(self, theta: FloatArray) -> PackedCholesky:
        """Factorise ``K_theta + s I``."""
        self._calls.n += 1
        params = np.exp(theta)
        K = self._program.forward(params[:-1]).copy()  # the reverse sweep needs the values
        K[self._diagonal] += params[-1]
        return PackedCholesky(K, len(self._y))

    def _value(self, cholesky: PackedCholesky, alpha: FloatArray) -> float:
        """R&W alg. 2.1, line 7."""
        n = len(self._y)
        return float(-0.5 * (self._y @ alpha + cholesky.log_determinant() + n * np.log(2 * np.pi)))


def _log_normal(residual: FloatArray, *, variance: FloatArray) -> FloatArray:
    """Log densities of independent normal numbers, in nats."""
    return -0.5 * (residual**2 / variance + np.log(2 * np.pi * variance))
