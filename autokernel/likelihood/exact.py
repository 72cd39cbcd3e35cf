"""The exact Gaussian log likelihood of one kernel on one data set."""

from dataclasses import dataclass

import numpy as np
from scipy.linalg import LinAlgError

from autokernel.expression import Expression
from autokernel.likelihood.compile import Program
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


class LogLikelihood:
    """``log N(y; 0, K_theta + s I)`` with theta the logs of the parameters, ``s`` the last.

    ``n_evaluations`` counts the calls. A matrix that cannot be factorised has the value ``-inf``
    and the gradient zero.
    """

    def __init__(self, expression: Expression, data: TrainingData) -> None:
        self._program = Program(expression, data.pairs)
        self._y = data.y
        self._diagonal = packed_diagonal(len(data.y))
        self.n_evaluations = 0
        self.parameter_names = (*self._program.parameter_names, "noise_variance")

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

    def _factorise(self, theta: FloatArray) -> PackedCholesky:
        """Factorise ``K_theta + s I``."""
        self.n_evaluations += 1
        params = np.exp(theta)
        K = self._program.forward(params[:-1]).copy()  # the reverse sweep needs the values
        K[self._diagonal] += params[-1]
        return PackedCholesky(K, len(self._y))

    def _value(self, cholesky: PackedCholesky, alpha: FloatArray) -> float:
        """R&W alg. 2.1, line 7."""
        n = len(self._y)
        return float(-0.5 * (self._y @ alpha + cholesky.log_determinant() + n * np.log(2 * np.pi)))
