"""The Gaussian process over expressions: a surrogate for their scores (SOT, section 3.1, A.5)."""

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass

import numpy as np
from scipy.linalg import LinAlgError, cho_solve, cholesky, solve_triangular
from scipy.optimize import minimize
from scipy.special import expit

from autokernel.surrogate.sot import sot_kernel
from autokernel.typing import FloatArray

# log variance, log lengthscale^2, three weight logits, log noise, mean; targets standardised
_START = np.array([0.0, 0.0, 0.0, 0.0, 0.0, np.log(0.01), 0.0])
_LOWER = np.array([-4.0, -4.0, -4.0, -4.0, -4.0, np.log(1e-5), -3.0])
_UPPER = np.array([4.0, 4.0, 4.0, 4.0, 4.0, 0.0, 3.0])
_WEIGHTS = slice(2, 5)


@dataclass(frozen=True, slots=True, eq=False)  # eq=False: the fields are arrays
class Prediction:
    """Predicted scores."""

    mean: FloatArray  # (n,), in the unit of the targets
    std: FloatArray  # (n,), of the noise-free score


def distance_weights(logits: FloatArray) -> FloatArray:
    """Weights of the distances, ``sigmoid(t_i) / sum_j sigmoid(t_j)`` (SOT, A.5)."""
    sigmoid = expit(logits)
    return sigmoid / sigmoid.sum()


class SurrogateGP:
    """Constant mean, K_SOT and noise, fitted by maximum marginal likelihood.

    Parameters
    ----------
    distances : ndarray of shape (3, n, n)
        SOT distances between the evaluated expressions.
    targets : ndarray of shape (n,)
        Their scores, finite.
    """

    def __init__(self, distances: FloatArray, targets: FloatArray) -> None:
        self._shift = float(targets.mean())
        self._scale = float(targets.std()) or 1.0
        y: FloatArray = (targets - self._shift) / self._scale
        result = minimize(
            _negative_log_likelihood(distances, y),
            _START,
            jac=True,
            method="L-BFGS-B",
            bounds=np.stack([_LOWER, _UPPER], axis=1),
            options={"maxiter": 60, "ftol": 1e-7},
        )
        self._theta = result.x
        self._condition(distances, y)

    def believing(self, distances: FloatArray) -> "SurrogateGP":
        """Take its own predictions for the last expressions as their scores, too.

        Parameters
        ----------
        distances : ndarray of shape (3, m, m)
            Between the expressions known so far and then those to predict.

        Notes
        -----
        Kriging believer: the hyperparameters stay, the mean stays too, and what is left of the
        uncertainty near the new expressions is that of the noise. O(m^3).
        """
        n = len(self._y)
        cross = self._covariance(distances[:, n:, :n])
        other = copy(self)
        other._condition(distances, np.append(self._y, self._theta[6] + cross @ self._alpha))
        return other

    def _condition(self, distances: FloatArray, y: FloatArray) -> None:
        """Condition on standardised targets at the fitted hyperparameters (R&W alg. 2.1)."""
        self._y = y
        noise = np.exp(self._theta[5])
        self._L = cholesky(self._covariance(distances) + noise * np.eye(len(y)), lower=True)
        self._alpha = cho_solve((self._L, True), y - self._theta[6])

    @property
    def weights(self) -> FloatArray:
        """Learned weights (3,) of the distances of base kernels, paths and subtrees."""
        return distance_weights(self._theta[_WEIGHTS])

    def predict(self, distances: FloatArray) -> Prediction:
        """Predict from distances (3, n_new, n) to the evaluated expressions (R&W alg. 2.1)."""
        cross = self._covariance(distances)
        v = solve_triangular(self._L, cross.T, lower=True, check_finite=False)
        variance = np.exp(self._theta[0]) - np.einsum("ij,ij->j", v, v)
        return Prediction(
            mean=self._shift + self._scale * (self._theta[6] + cross @ self._alpha),
            std=self._scale * np.sqrt(np.maximum(variance, 0.0)),
        )

    def _covariance(self, distances: FloatArray) -> FloatArray:
        """Noise-free covariance at the fitted hyperparameters."""
        lengthscale = np.exp(0.5 * self._theta[1])
        return np.exp(self._theta[0]) * sot_kernel(distances, self.weights, lengthscale=lengthscale)


def _negative_log_likelihood(
    distances: FloatArray, y: FloatArray
) -> Callable[[FloatArray], tuple[float, FloatArray]]:
    """Build the objective of the hyperparameters, with its gradient. O(n^3) a call."""
    n = len(y)
    identity = np.eye(n)

    def objective(theta: FloatArray) -> tuple[float, FloatArray]:
        sigmoid = expit(theta[_WEIGHTS])
        weights = sigmoid / sigmoid.sum()
        precision = np.exp(-theta[1])
        K = np.exp(theta[0]) * sot_kernel(distances, weights, lengthscale=np.exp(0.5 * theta[1]))
        noise = np.exp(theta[5])
        try:
            L = cholesky(K + noise * identity, lower=True, check_finite=False)
        except LinAlgError:
            return 1e12, np.zeros(len(theta))
        residual = y - theta[6]
        inverse = cho_solve((L, True), identity, check_finite=False)
        alpha = inverse @ residual
        adjoint = 0.5 * (np.outer(alpha, alpha) - inverse)
        by_kernel = adjoint * K
        # d log K / d weight_i = -D_i / l^2
        per_weight = -precision * np.einsum("ij,kij->k", by_kernel, distances)
        centred = per_weight - weights @ per_weight
        gradient = np.array(
            [
                by_kernel.sum(),
                -(weights @ per_weight),
                *(centred * weights * (1 - sigmoid)),
                noise * np.trace(adjoint),
                alpha.sum(),
            ]
        )
        value = -0.5 * residual @ alpha - np.log(np.diag(L)).sum() - 0.5 * n * np.log(2 * np.pi)
        return -float(value), -gradient

    return objective
