"""The Gaussian process over expressions that predicts their scores (SOT, section 3.1, A.5)."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from functools import lru_cache
from typing import Any

import numpy as np
from scipy.linalg import LinAlgError, cho_solve, cholesky, solve_triangular
from scipy.optimize import minimize
from scipy.spatial.distance import cdist

from autokernel.expression import Expression, StructurePrior, uniform_prior
from autokernel.inference.packed import PackedCholesky, pack, packed_diagonal
from autokernel.typing import FloatArray

# Indices into theta: log variance, parameters of the kernel-kernel, log noise variance, mean.
_LOG_VARIANCE, _LOG_NOISE, _MEAN = 0, -2, -1
_KERNEL = slice(1, -2)
LOG_BOUNDS = (-4.0, 4.0)  # of log variances, log squared lengthscales and logits
MEAN_BOUNDS = (-3.0, 3.0)  # standard deviations of the scores
LOG_NOISE_BOUNDS = (np.log(1e-5), 0.0)
DRAW_JITTER = 1e-9  # fraction of the variance; draws at equal expressions need it
MAX_FIT_STEPS = 60
MAX_CACHED_TREES = 8192
MAX_CACHED_TABLES = 4  # a search compares many generations with the same evaluated expressions

Frequencies = Mapping[Any, float]
"""How often each element occurs in one expression."""

ElementTable = tuple[Mapping[Any, int], FloatArray]
"""Index of each element, and the frequencies (n, n_elements) of the elements of n expressions."""


class KernelKernel(ABC):
    """A kernel ``exp(-sum_i w_i d_i)`` between expressions.

    Each ``d_i`` is a distance for which ``exp(-w d_i)`` is positive semi-definite for any ``w``.
    """

    bounds: Sequence[tuple[float, float]]
    """Bounds of each parameter of the weights."""

    start_noise = 0.01
    """Starting value of the noise variance of standardised scores; parameters start at zero."""

    @abstractmethod
    def distances(
        self, expressions: Sequence[Expression], others: Sequence[Expression] | None = None
    ) -> FloatArray:
        """Compute distances (n_distances, n, m); ``others`` are by default the expressions."""

    @abstractmethod
    def weights(self, params: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Compute weights (n_distances,) and their derivatives (n_distances, n_params)."""


class FrequencyKernel(KernelKernel):
    """A kernel whose distances are total variations between the frequencies of elements.

    Total variation is half the L1 distance. The frequencies of each expression are cached.
    """

    def __init__(self) -> None:
        self._frequencies = lru_cache(MAX_CACHED_TREES)(self.frequencies)
        self._tables = lru_cache(MAX_CACHED_TABLES)(self._make_tables)

    @abstractmethod
    def frequencies(self, expression: Expression) -> Sequence[Frequencies]:
        """Compute the frequencies of the elements that each distance compares."""

    def distances(
        self, expressions: Sequence[Expression], others: Sequence[Expression] | None = None
    ) -> FloatArray:
        rows = [self._frequencies(expression) for expression in expressions]
        tables = self._tables(tuple(expressions if others is None else others))
        found = []
        for kind, (indices, columns) in enumerate(tables):
            # elements that are not in the table add to the distance in full
            dense, foreign = _dense([one[kind] for one in rows], indices)
            found.append(0.5 * (cdist(dense, columns, metric="cityblock") + foreign[:, None]))
        return np.stack(found)

    def _make_tables(self, expressions: tuple[Expression, ...]) -> list[ElementTable]:
        tables: list[ElementTable] = []
        for lists in zip(*map(self._frequencies, expressions), strict=True):
            distinct = dict.fromkeys(element for frequencies in lists for element in frequencies)
            indices = {element: index for index, element in enumerate(distinct)}
            tables.append((indices, _dense(lists, indices)[0]))
        return tables


def _dense(
    lists: Sequence[Frequencies], indices: Mapping[Any, int]
) -> tuple[FloatArray, FloatArray]:
    """Build the matrix of frequencies, and the sums (n,) of those without an index."""
    matrix, foreign = np.zeros((len(lists), len(indices))), np.zeros(len(lists))
    for row, frequencies in enumerate(lists):
        for element, value in frequencies.items():
            index = indices.get(element)
            if index is None:
                foreign[row] += value
            else:
                matrix[row, index] = value
    return matrix, foreign


class SurrogateGP:
    """A Gaussian process with constant mean and noise, fitted by maximum marginal likelihood.

    The ``scores`` (n,) are finite scores of the expressions, and ``offset`` returns the part of a
    score that is known beforehand. ``theta`` holds the log variance, the parameters of the
    kernel-kernel, the log noise variance and the mean, all for standardised scores; ``weights``
    (n_distances,) are those of the distances.

    The fit takes some tens of steps of O(n^3) each.
    """

    def __init__(
        self,
        kernel_kernel: KernelKernel,
        expressions: Sequence[Expression],
        scores: FloatArray,
        offset: StructurePrior = uniform_prior,
    ) -> None:
        self._kernel_kernel, self._offset = kernel_kernel, offset
        scores = scores - self._offsets(expressions)
        self._shift = float(scores.mean())
        self._scale = float(scores.std()) or 1.0
        y: FloatArray = (scores - self._shift) / self._scale
        distances = kernel_kernel.distances(expressions)
        bounds = [LOG_BOUNDS, *kernel_kernel.bounds, LOG_NOISE_BOUNDS, MEAN_BOUNDS]
        start = np.zeros(len(bounds))
        start[_LOG_NOISE] = np.log(kernel_kernel.start_noise)
        self.theta: FloatArray = minimize(
            negative_log_likelihood(kernel_kernel, distances, y),
            start,
            jac=True,
            method="L-BFGS-B",
            bounds=bounds,
            options={"maxiter": MAX_FIT_STEPS, "ftol": 1e-7},
        ).x
        self.weights, _ = kernel_kernel.weights(self.theta[_KERNEL])
        self._condition(expressions, distances, y)

    def believing(self, expressions: Sequence[Expression]) -> "SurrogateGP":
        """Condition on the predicted means of further expressions, as if they were scores.

        This is the kriging believer. The hyperparameters and the predicted mean do not change; near
        the new expressions only the uncertainty that comes from the noise remains. O(n^3).
        """
        known = [*self._expressions, *expressions]
        mean, _ = self.predict(expressions)
        believed = (mean - self._offsets(expressions) - self._shift) / self._scale
        other = copy(self)
        other._condition(known, self._kernel_kernel.distances(known), np.append(self._y, believed))
        return other

    def _condition(
        self, expressions: Sequence[Expression], distances: FloatArray, y: FloatArray
    ) -> None:
        """Condition on standardised scores at the fitted hyperparameters (R&W alg. 2.1)."""
        self._expressions, self._y = list(expressions), y
        noise = np.exp(self.theta[_LOG_NOISE])
        self._L = cholesky(self._covariance(distances) + noise * np.eye(len(y)), lower=True)
        self._alpha = cho_solve((self._L, True), y - self.theta[_MEAN])

    def predict(self, expressions: Sequence[Expression]) -> tuple[FloatArray, FloatArray]:
        """Predict means (n,) and standard deviations (n,) of noise-free scores (R&W alg. 2.1)."""
        cross = self._covariance(self._kernel_kernel.distances(expressions, self._expressions))
        v = solve_triangular(self._L, cross.T, lower=True, check_finite=False)
        variance = np.exp(self.theta[_LOG_VARIANCE]) - np.einsum("ij,ij->j", v, v)
        mean = self._shift + self._scale * (self.theta[_MEAN] + cross @ self._alpha)
        std = self._scale * np.sqrt(np.maximum(variance, 0.0))
        return mean + self._offsets(expressions), std

    def draw(self, rng: np.random.Generator) -> Callable[[Sequence[Expression]], FloatArray]:
        """Draw one function from the posterior, which returns values (n,) at n expressions.

        It keeps the values that it has drawn, so that all calls return values of the same function,
        to some 1e-4 of the prior standard deviation.
        """
        known, L = list(self._expressions), self._L
        whitened = solve_triangular(L, self._y - self.theta[_MEAN], lower=True)
        distances = self._kernel_kernel.distances

        def values(expressions: Sequence[Expression]) -> FloatArray:
            nonlocal L, whitened
            cross = self._covariance(distances(expressions, known))
            K = self._covariance(distances(expressions))
            K += DRAW_JITTER * np.exp(self.theta[_LOG_VARIANCE]) * np.eye(len(K))
            left = solve_triangular(L, cross.T, lower=True, check_finite=False).T
            corner = cholesky(K - left @ left.T, lower=True)
            white = rng.normal(size=len(K))
            drawn = self.theta[_MEAN] + left @ whitened + corner @ white
            L = np.block([[L, np.zeros_like(left.T)], [left, corner]])
            whitened = np.append(whitened, white)
            known.extend(expressions)
            return self._shift + self._scale * drawn + self._offsets(expressions)

        return values

    def _offsets(self, expressions: Sequence[Expression]) -> FloatArray:
        """Compute the part of the scores (n,) that is known beforehand."""
        return np.array([self._offset(expression) for expression in expressions])

    def _covariance(self, distances: FloatArray) -> FloatArray:
        """Compute the noise-free covariance at the fitted hyperparameters."""
        return np.exp(self.theta[_LOG_VARIANCE] - np.tensordot(self.weights, distances, axes=1))


def negative_log_likelihood(
    kernel_kernel: KernelKernel, distances: FloatArray, y: FloatArray
) -> Callable[[FloatArray], tuple[float, FloatArray]]:
    """Build the negative log likelihood with its gradient; a call takes O(n^3)."""
    n = len(y)
    packed = np.stack([pack(D) for D in distances])
    diagonal = packed_diagonal(n)

    def objective(theta: FloatArray) -> tuple[float, FloatArray]:
        weights, jacobian = kernel_kernel.weights(theta[_KERNEL])
        K = np.exp(theta[_LOG_VARIANCE] - weights @ packed)
        noise = np.exp(theta[_LOG_NOISE])
        noisy = K.copy()
        noisy[diagonal] += noise
        try:
            factor = PackedCholesky(noisy)
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
                *(per_weight @ jacobian),
                noise * adjoint[diagonal].sum(),
                alpha.sum(),
            ]
        )
        return -float(value), -gradient

    return objective
