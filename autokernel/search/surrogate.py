"""Gaussian processes over expressions (SOT, section 3.1, A.5)."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from functools import lru_cache
from typing import Any

import numpy as np
from scipy.linalg import LinAlgError, cho_solve, cholesky, solve_triangular
from scipy.optimize import minimize
from scipy.spatial.distance import cdist

from autokernel.expression import Expression
from autokernel.inference.packed import PackedCholesky, diagonal_by_row, pack, packed_diagonal
from autokernel.typing import FloatArray

# Indices into theta: log variance, parameters of the kernel-kernel, log noise variance, mean.
_LOG_VARIANCE, _LOG_NOISE, _MEAN = 0, -2, -1
_KERNEL = slice(1, -2)
LOG_BOUNDS = (-4.0, 4.0)  # of log variances, log squared lengthscales and logits
MAX_STDS = 4.0  # of hyperparameters with a prior from its mean
DRAW_JITTER = 1e-9  # fraction of the variance; draws at equal expressions need it

Frequencies = Mapping[Any, float]
"""How often each element occurs in one expression."""


class KernelKernel(ABC):
    """A kernel ``exp(-sum_i w_i d_i)`` of distances with positive semi-definite ``exp(-w d_i)``."""

    bounds: Sequence[tuple[float, float]]
    """Bounds of each parameter of the weights."""

    start_noise = 0.01
    """Starting value of the noise variance of standardised scores; parameters start at zero."""

    @abstractmethod
    def distances(self, items: Sequence[Expression], others: Sequence[Expression]) -> FloatArray:
        """Compute distances (n_distances, n, m) between items and others."""

    @abstractmethod
    def weights(self, params: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Compute weights (n_distances,) and their derivatives (n_distances, n_params)."""


class FrequencyKernel(KernelKernel):
    """A kernel of total variations, half the L1 distances, between frequencies of elements."""

    def __init__(self) -> None:
        self._frequencies = lru_cache(8192)(self.frequencies)
        # a search compares many generations with the same evaluated expressions
        self._tables = lru_cache(4)(self._make_tables)

    @abstractmethod
    def frequencies(self, expression: Expression, /) -> Sequence[Frequencies]:
        """Compute the frequencies of the elements that each distance compares."""

    def distances(self, items: Sequence[Expression], others: Sequence[Expression]) -> FloatArray:
        rows = [self._frequencies(item) for item in items]
        tables = self._tables(tuple(others))
        found = []
        for kind, (indices, columns) in enumerate(tables):
            dense = _dense([one[kind] for one in rows], indices)
            found.append(0.5 * cdist(dense, columns, metric="cityblock"))
        return np.stack(found)

    def _make_tables(
        self, items: tuple[Expression, ...]
    ) -> list[tuple[dict[Any, int], FloatArray]]:
        """Build a table (n, n_elements) for each distance, with the indices of its elements."""
        tables = []
        for lists in zip(*map(self._frequencies, items), strict=True):
            distinct = dict.fromkeys(element for frequencies in lists for element in frequencies)
            indices = {element: index for index, element in enumerate(distinct)}
            tables.append((indices, _dense(lists, indices)))
        return tables


def _dense(lists: Sequence[Frequencies], indices: Mapping[Any, int]) -> FloatArray:
    """Build the matrix of frequencies; its last column sums those of elements without an index."""
    matrix = np.zeros((len(lists), len(indices) + 1))
    for row, frequencies in enumerate(lists):
        for element, value in frequencies.items():
            matrix[row, indices.get(element, -1)] += value
    return matrix


class SurrogateGP:
    """A Gaussian process with constant mean and noise, fitted by maximum marginal likelihood.

    The ``scores`` (n,) are finite scores of the items, and ``offset`` returns the part of a score
    that is known beforehand. ``theta`` holds the log variance, the parameters of the kernel, the
    log noise variance and the mean, for standardised scores; ``weights`` (n_distances,) are those
    of the distances.

    Few scores say little about theta. With a ``prior``, means and standard deviations of normal
    distributions of theta, scores are not standardised, and the fit maximises the posterior.
    Scores may have errors of known ``variances`` (n,) besides the noise.

    The fit takes some tens of steps of O(n^3) each.
    """

    def __init__(
        self,
        kernel: KernelKernel,
        items: Sequence[Expression],
        scores: FloatArray,
        offset: Callable[[Expression], float] = lambda _: 0.0,
        *,
        prior: tuple[FloatArray, FloatArray] | None = None,
        variances: FloatArray | float = 0.0,
    ) -> None:
        self._kernel, self._offset, self._items = kernel, offset, list(items)
        scores = scores - self._offsets(items)
        self._shift, self._scale = 0.0, 1.0
        if prior is None:
            self._shift, self._scale = float(scores.mean()), float(scores.std()) or 1.0
        y: FloatArray = (scores - self._shift) / self._scale
        distances = kernel.distances(items, items)
        bounds = [LOG_BOUNDS, *kernel.bounds, (np.log(1e-5), 0.0), (-3.0, 3.0)]
        start = np.zeros(len(bounds))
        start[_LOG_NOISE] = np.log(kernel.start_noise)
        variances = np.broadcast_to(variances, y.shape)
        flat = np.zeros(len(bounds)), np.full(len(bounds), np.inf)
        objective = negative_log_posterior(kernel, distances, y, variances, prior=prior or flat)
        if prior is not None:
            start, stds = prior
            bounds = list(zip(start - MAX_STDS * stds, start + MAX_STDS * stds, strict=True))
        limits = {"maxiter": 60, "ftol": 1e-7}
        fit = minimize(objective, start, jac=True, method="L-BFGS-B", bounds=bounds, options=limits)
        self.theta: FloatArray = fit.x
        self.weights, _ = kernel.weights(self.theta[_KERNEL])
        self._condition(distances, y, variances)

    def given(
        self, items: Sequence[Expression], scores: FloatArray, variances: FloatArray | float = 0.0
    ) -> "SurrogateGP":
        """Condition on scores of further items; the hyperparameters do not change. O(n^3).

        With the predicted means as scores (kriging believer) the predicted mean does not change.
        """
        other = copy(self)
        other._items = [*self._items, *items]
        new = (scores - self._offsets(items) - self._shift) / self._scale
        errors = np.append(self._variances, np.broadcast_to(variances, new.shape))
        distances = self._kernel.distances(other._items, other._items)
        other._condition(distances, np.append(self._y, new), errors)
        return other

    def _condition(self, distances: FloatArray, y: FloatArray, variances: FloatArray) -> None:
        """Condition on standardised scores at the fitted hyperparameters (R&W alg. 2.1)."""
        self._y, self._variances = y, variances
        noise = np.exp(self.theta[_LOG_NOISE]) + variances
        self._L = cholesky(self._covariance(distances) + np.diag(noise), lower=True)
        self._alpha = cho_solve((self._L, True), y - self.theta[_MEAN])

    def predict(self, items: Sequence[Expression]) -> tuple[FloatArray, FloatArray]:
        """Predict means (n,) and standard deviations (n,) of noise-free scores (R&W alg. 2.1)."""
        cross = self._covariance(self._kernel.distances(items, self._items))
        v = solve_triangular(self._L, cross.T, lower=True, check_finite=False)
        variance = np.exp(self.theta[_LOG_VARIANCE]) - np.einsum("ij,ij->j", v, v)
        mean = self._shift + self._scale * (self.theta[_MEAN] + cross @ self._alpha)
        return mean + self._offsets(items), self._scale * np.sqrt(np.maximum(variance, 0.0))

    def draw(self, rng: np.random.Generator) -> Callable[[Sequence[Expression]], FloatArray]:
        """Draw a function from the posterior, the same in all calls to 1e-4 prior deviations."""
        known, L = list(self._items), self._L
        whitened = solve_triangular(L, self._y - self.theta[_MEAN], lower=True)
        distances = self._kernel.distances

        def values(items: Sequence[Expression]) -> FloatArray:
            nonlocal L, whitened
            cross = self._covariance(distances(items, known))
            K = self._covariance(distances(items, items))
            K += DRAW_JITTER * np.exp(self.theta[_LOG_VARIANCE]) * np.eye(len(K))
            left = solve_triangular(L, cross.T, lower=True, check_finite=False).T
            corner = cholesky(K - left @ left.T, lower=True)
            white = rng.normal(size=len(K))
            drawn = self.theta[_MEAN] + left @ whitened + corner @ white
            L = np.block([[L, np.zeros_like(left.T)], [left, corner]])
            whitened = np.append(whitened, white)
            known.extend(items)
            return self._shift + self._scale * drawn + self._offsets(items)

        return values

    def _offsets(self, items: Sequence[Expression]) -> FloatArray:
        return np.array([self._offset(item) for item in items])

    def _covariance(self, distances: FloatArray) -> FloatArray:
        return np.exp(self.theta[_LOG_VARIANCE] - np.tensordot(self.weights, distances, axes=1))


def negative_log_posterior(
    kernel: KernelKernel,
    distances: FloatArray,
    y: FloatArray,
    variances: FloatArray | float = 0.0,
    *,
    prior: tuple[FloatArray, FloatArray],
) -> Callable[[FloatArray], tuple[float, FloatArray]]:
    """Build the negative log posterior, but for constants of its normal prior, with gradient."""
    means, stds = prior
    packed = np.stack([pack(D) for D in distances])

    def objective(theta: FloatArray) -> tuple[float, FloatArray]:
        off = (theta - means) / stds
        of_prior = 0.5 * float(off @ off)
        weights, jacobian = kernel.weights(theta[_KERNEL])
        K = np.exp(theta[_LOG_VARIANCE] - weights @ packed)
        noise = np.exp(theta[_LOG_NOISE])
        noisy = K.copy()
        noisy[diagonal_by_row(len(y))] += noise + variances
        try:
            factor = PackedCholesky(noisy)
        except LinAlgError:
            return 1e12 + of_prior, off / stds
        residual = y - theta[_MEAN]
        alpha = factor.solve(residual)
        constant = len(y) * np.log(2 * np.pi)
        value = -0.5 * float(residual @ alpha + factor.log_determinant() + constant)
        adjoint = factor.evidence_adjoint(alpha)
        by_kernel = adjoint * K
        per_weight = -(packed @ by_kernel)  # d log K / d weight_i = -D_i
        of_noise = noise * adjoint[packed_diagonal(len(y))].sum()
        gradient = [by_kernel.sum(), *(per_weight @ jacobian), of_noise, alpha.sum()]
        return of_prior - value, off / stds - np.array(gradient)

    return objective
