"""The Gaussian process over expressions that predicts their scores (SOT, section 3.1, A.5)."""

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass

import numpy as np
from scipy.linalg import LinAlgError, cho_solve, cholesky, solve_triangular
from scipy.optimize import minimize

from autokernel.expression import Expression
from autokernel.inference.packed import PackedCholesky, pack, packed_diagonal
from autokernel.search.distances import KernelKernel
from autokernel.typing import FloatArray

# Indices into theta: log variance, parameters of the kernel-kernel, log noise variance, mean.
_LOG_VARIANCE, _LOG_NOISE, _MEAN = 0, -2, -1
_KERNEL = slice(1, -2)
_VARIANCES = (-4.0, 4.0)
_SMALLEST_NOISE = np.log(1e-5)
_JITTER = 1e-9  # fraction of the variance; draws at equal expressions need it


@dataclass(frozen=True, slots=True, eq=False)  # eq=False: the fields are arrays
class Prediction:
    """Predicted scores of n expressions."""

    mean: FloatArray  # (n,), mean in the unit of the targets
    std: FloatArray  # (n,), standard deviation of the noise-free score


class SurrogateGP:
    """A Gaussian process with constant mean and noise, fitted by maximum marginal likelihood.

    Parameters
    ----------
    kernel_kernel : KernelKernel
        Kernel between expressions.
    expressions : sequence of n Expression
        Evaluated expressions.
    targets : ndarray of shape (n,)
        Finite scores of the expressions.
    offset : callable, optional
        Function that returns the part of an expression's score that is known beforehand.

    Attributes
    ----------
    theta : ndarray
        Log variance, parameters of the kernel-kernel, log noise variance and mean. All are for
        standardised scores.
    weights : ndarray of shape (n_distances,)
        Learned weights of the distances.

    Notes
    -----
    The fit takes some tens of steps of O(n^3) each.
    """

    def __init__(
        self,
        kernel_kernel: KernelKernel,
        expressions: Sequence[Expression],
        targets: FloatArray,
        offset: Callable[[Expression], float] | None = None,
    ) -> None:
        self._kernel_kernel, self._offset = kernel_kernel, offset
        targets = targets - self._offsets(expressions)
        self._shift = float(targets.mean())
        self._scale = float(targets.std()) or 1.0
        y: FloatArray = (targets - self._shift) / self._scale
        distances = kernel_kernel.distances(expressions)
        bounds = _bounds(kernel_kernel)
        start = np.zeros(len(bounds))
        start[_LOG_NOISE] = np.log(kernel_kernel.start_noise)
        self.theta: FloatArray = minimize(
            negative_log_likelihood(kernel_kernel, distances, y),
            start,
            jac=True,
            method="L-BFGS-B",
            bounds=bounds,
            options={"maxiter": 60, "ftol": 1e-7},
        ).x
        self.weights = kernel_kernel.weights(self.theta[_KERNEL]).values
        self._condition(expressions, distances, y)

    def believing(self, expressions: Sequence[Expression]) -> "SurrogateGP":
        """Condition on the predicted means of further expressions, as if they were scores.

        Notes
        -----
        This is the kriging believer. The hyperparameters and the predicted mean do not change; near
        the new expressions only the uncertainty that comes from the noise remains. O(n^3).
        """
        known = [*self._expressions, *expressions]
        mean = self.predict(expressions).mean - self._offsets(expressions)
        believed = (mean - self._shift) / self._scale
        other = copy(self)
        other._condition(known, self._kernel_kernel.distances(known), np.append(self._y, believed))
        return other

    def _condition(
        self, expressions: Sequence[Expression], distances: FloatArray, y: FloatArray
    ) -> None:
        """Condition on standardised targets at the fitted hyperparameters (R&W alg. 2.1)."""
        self._expressions, self._y = list(expressions), y
        noise = np.exp(self.theta[_LOG_NOISE])
        self._L = cholesky(self._covariance(distances) + noise * np.eye(len(y)), lower=True)
        self._alpha = cho_solve((self._L, True), y - self.theta[_MEAN])

    def predict(self, expressions: Sequence[Expression]) -> Prediction:
        """Predict the scores of expressions (R&W alg. 2.1)."""
        cross = self._covariance(self._kernel_kernel.distances(expressions, self._expressions))
        v = solve_triangular(self._L, cross.T, lower=True, check_finite=False)
        variance = np.exp(self.theta[_LOG_VARIANCE]) - np.einsum("ij,ij->j", v, v)
        mean = self._shift + self._scale * (self.theta[_MEAN] + cross @ self._alpha)
        return Prediction(
            mean=mean + self._offsets(expressions),
            std=self._scale * np.sqrt(np.maximum(variance, 0.0)),
        )

    def draw(self, rng: np.random.Generator) -> Callable[[Sequence[Expression]], FloatArray]:
        """Draw one function from the posterior.

        Returns
        -------
        callable
            Values (n,) of the function at n expressions. The callable keeps the values that it has
            drawn, so that all calls return values of the same function, to some 1e-4 of the prior
            standard deviation.
        """
        return _Draw(self, rng)

    def _offsets(self, expressions: Sequence[Expression]) -> FloatArray:
        """Compute the part of the scores (n,) that is known beforehand."""
        if self._offset is None:
            return np.zeros(len(expressions))
        return np.array([self._offset(expression) for expression in expressions])

    def _covariance(self, distances: FloatArray) -> FloatArray:
        """Compute the noise-free covariance at the fitted hyperparameters."""
        return np.exp(self.theta[_LOG_VARIANCE] - np.tensordot(self.weights, distances, axes=1))


class _Draw:
    """A function drawn from the posterior; each call adds the values at further expressions."""

    def __init__(self, surrogate: SurrogateGP, rng: np.random.Generator) -> None:
        self._surrogate, self._rng = surrogate, rng
        self._expressions = list(surrogate._expressions)
        self._L = surrogate._L
        residual = surrogate._y - surrogate.theta[_MEAN]
        self._whitened = solve_triangular(surrogate._L, residual, lower=True)

    def __call__(self, expressions: Sequence[Expression]) -> FloatArray:
        """Draw values given all earlier values, and append rows to the Cholesky factor."""
        gp = self._surrogate
        distances = gp._kernel_kernel.distances
        cross = gp._covariance(distances(expressions, self._expressions))
        own = gp._covariance(distances(expressions))
        own += _JITTER * np.exp(gp.theta[_LOG_VARIANCE]) * np.eye(len(own))
        left = solve_triangular(self._L, cross.T, lower=True, check_finite=False).T
        corner = cholesky(own - left @ left.T, lower=True)
        white = self._rng.normal(size=len(own))
        values = gp.theta[_MEAN] + left @ self._whitened + corner @ white
        self._L = np.block([[self._L, np.zeros_like(left.T)], [left, corner]])
        self._whitened = np.append(self._whitened, white)
        self._expressions += expressions
        return gp._shift + gp._scale * values + gp._offsets(expressions)


def _bounds(kernel_kernel: KernelKernel) -> list[tuple[float, float]]:
    """List the bounds of the hyperparameters."""
    return [_VARIANCES, *kernel_kernel.bounds, (_SMALLEST_NOISE, 0.0), (-3.0, 3.0)]


def negative_log_likelihood(
    kernel_kernel: KernelKernel, distances: FloatArray, y: FloatArray
) -> Callable[[FloatArray], tuple[float, FloatArray]]:
    """Build the negative log likelihood with its gradient; a call takes O(n^3)."""
    n = len(y)
    packed = np.stack([pack(D) for D in distances])
    diagonal = packed_diagonal(n)

    def objective(theta: FloatArray) -> tuple[float, FloatArray]:
        weights = kernel_kernel.weights(theta[_KERNEL])
        K = np.exp(theta[_LOG_VARIANCE] - weights.values @ packed)
        noise = np.exp(theta[_LOG_NOISE])
        noisy = K.copy()
        noisy[diagonal] += noise
        try:
            factor = PackedCholesky(noisy, n)
        except LinAlgError:
            return 1e12, np.zeros(len(theta))
        residual = y - theta[_MEAN]
        alpha = factor.solve(residual)
        value = -0.5 * (residual @ alpha + factor.log_determinant() + n * np.log(2 * np.pi))
        adjoint = factor.evidence_adjoint(alpha)
        by_kernel = adjoint * K
        per_weight = -(packed @ by_kernel)  # d log K / d weight_i = -D_i
        gradient = np.array(
            [
                by_kernel.sum(),
                *(per_weight @ weights.jacobian),
                noise * adjoint[diagonal].sum(),
                alpha.sum(),
            ]
        )
        return -float(value), -gradient

    return objective
