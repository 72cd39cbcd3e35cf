"""Gaussian processes over expressions.

One predicts scores (SOT, section 3.1, A.5), the other one what changes of expressions gain.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Generic, TypeVar

import numpy as np
from scipy.linalg import LinAlgError, cho_solve, cholesky, solve_triangular
from scipy.optimize import minimize
from scipy.spatial.distance import cdist
from scipy.stats import t as student

from autokernel.expression import Expression, StructurePrior, uniform_prior
from autokernel.inference.packed import PackedCholesky, pack, packed_diagonal, rows_of_diagonal
from autokernel.typing import FloatArray, IntArray

# Indices into theta: log variance, parameters of the kernel-kernel, log noise variance, mean.
_LOG_VARIANCE, _LOG_NOISE, _MEAN = 0, -2, -1
_KERNEL = slice(1, -2)
LOG_BOUNDS = (-4.0, 4.0)  # of log variances, log squared lengthscales and logits
MEAN_BOUNDS = (-3.0, 3.0)  # standard deviations of the scores
LOG_NOISE_BOUNDS = (np.log(1e-5), 0.0)
LOG_NUGGET_BOUNDS = (-5.0, 3.0)  # of gains, nats
DRAW_JITTER = 1e-9  # fraction of the variance; draws at equal expressions need it
MAX_FIT_STEPS = 60
MAX_CACHED_TREES = 8192
MAX_CACHED_TABLES = 4  # a search compares many generations with the same evaluated expressions

GAIN_SCALE = 2.0  # nats up to which gains count nearly in full, beyond it as their logarithm
TAIL_DEGREES = 4  # of freedom of Student's t, as some gains are far from what is predicted
N_NEAR = 300  # known gains, at the nearest parents, from which others are predicted
N_FITTED = 160  # of them, to which hyperparameters are fitted
REFIT_GROWTH = 1.25  # of the number of known gains since the last fit of hyperparameters
MAX_REFIT_STEPS = 10  # from the hyperparameters of before
LOG_GAIN_VARIANCE, LOG_GAIN_NUGGET, MEAN_GAIN = 2.0, -1.0, -2.0  # starting values, nats
HYPERPRIOR_WIDTH = 1.0  # standard deviation of hyperparameters about their starting values

Item = TypeVar("Item", bound=Hashable)
"""What a kernel is between: expressions, or changes of expressions."""

Frequencies = Mapping[Any, float]
"""How often each element occurs in one item; less than zero if a change removes it."""

ElementTable = tuple[Mapping[Any, int], FloatArray]
"""Index of each element, and the frequencies (n, n_elements) of the elements of n items."""


@dataclass(frozen=True, slots=True, eq=False)
class Edge:
    """A step from one expression to another, one or more operations away.

    Steps are equal if the canonical texts are.
    """

    parent: Expression
    child: Expression

    @property
    def texts(self) -> tuple[str, str]:
        """The canonical texts of both."""
        return self.parent.canonical, self.child.canonical

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Edge) and self.texts == other.texts

    def __hash__(self) -> int:
        return hash(self.texts)


class DiscreteKernel(ABC, Generic[Item]):
    """A kernel ``exp(-sum_i w_i d_i)`` between items.

    Each ``d_i`` is a distance for which ``exp(-w d_i)`` is positive semi-definite for any ``w``.
    """

    bounds: Sequence[tuple[float, float]]
    """Bounds of each parameter of the weights."""

    start_noise = 0.01
    """Starting value of the noise variance of standardised scores; parameters start at zero."""

    @abstractmethod
    def distances(self, items: Sequence[Item], others: Sequence[Item] | None = None) -> FloatArray:
        """Compute distances (n_distances, n, m); ``others`` are by default the items."""

    @abstractmethod
    def weights(self, params: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Compute weights (n_distances,) and their derivatives (n_distances, n_params)."""


KernelKernel = DiscreteKernel[Expression]
"""A kernel between expressions."""


class FrequencyKernel(DiscreteKernel[Item]):
    """A kernel whose distances are total variations between the frequencies of elements.

    Total variation is half the L1 distance. The frequencies of each item are cached.
    """

    def __init__(self) -> None:
        self._frequencies = lru_cache(MAX_CACHED_TREES)(self.frequencies)
        self._tables = lru_cache(MAX_CACHED_TABLES)(self._make_tables)

    @abstractmethod
    def frequencies(self, item: Item, /) -> Sequence[Frequencies]:
        """Compute the frequencies of the elements that each distance compares."""

    def distances(self, items: Sequence[Item], others: Sequence[Item] | None = None) -> FloatArray:
        rows = [self._frequencies(item) for item in items]
        tables = self._tables(tuple(items if others is None else others))
        found = []
        for kind, (indices, columns) in enumerate(tables):
            # elements that are not in the table add to the distance in full
            dense, foreign = _dense([one[kind] for one in rows], indices)
            found.append(0.5 * (cdist(dense, columns, metric="cityblock") + foreign[:, None]))
        return np.stack(found)

    def _make_tables(self, items: tuple[Item, ...]) -> list[ElementTable]:
        tables: list[ElementTable] = []
        for lists in zip(*map(self._frequencies, items), strict=True):
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
                foreign[row] += abs(value)
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
    packed = np.stack([pack(D) for D in distances])
    diagonal = packed_diagonal(len(y))

    def objective(theta: FloatArray) -> tuple[float, FloatArray]:
        weights, jacobian = kernel_kernel.weights(theta[_KERNEL])
        K = np.exp(theta[_LOG_VARIANCE] - weights @ packed)
        noise = np.exp(theta[_LOG_NOISE])
        noisy = K.copy()
        noisy[diagonal] += noise
        try:
            value, alpha, adjoint = _likelihood_with_adjoint(noisy, y - theta[_MEAN])
        except LinAlgError:
            return 1e12, np.zeros(len(theta))
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
        return -value, -gradient

    return objective


def _likelihood_with_adjoint(
    packed: FloatArray, residual: FloatArray
) -> tuple[float, FloatArray, FloatArray]:
    """Compute the log likelihood, ``K^-1 r``, and the derivative by the entries of a packed K."""
    factor = PackedCholesky(packed)
    alpha = factor.solve(residual)
    constant = factor.n * np.log(2 * np.pi)
    value = -0.5 * float(residual @ alpha + factor.log_determinant() + constant)
    return value, alpha, factor.evidence_adjoint(alpha)


class GainGP:
    """A Gaussian process that predicts what changes of expressions gain, in nats of score.

    It learns from gains with the standard deviations of their errors, so that estimates may come
    with fits. The covariance of two changes is the sum of two kernels. One compares only what
    changes; the other one is its product with a kernel between the parents. What a change gains
    beyond both is independent, and is part of a prediction.

    Gains y enter as ``c arsinh(y / c)``, c = :data:`GAIN_SCALE`, because it matters little whether
    a change loses 30 nats or 60. ``theta`` holds the two log variances, the parameters of the
    kernel between changes in each of the two, those of the kernel between parents, the log variance
    of what is independent, and the mean. They have normal priors about their starting values.

    Notes
    -----
    A prediction uses the ``N_NEAR`` gains at the nearest parents and takes O(N_NEAR^3). The
    hyperparameters are fitted to ``N_FITTED`` of these whenever the number of known gains has grown
    by a quarter.
    """

    def __init__(self, changes: DiscreteKernel[Edge], parents: KernelKernel) -> None:
        self._changes, self._parents = changes, parents
        self._known: dict[tuple[str, str], tuple[Edge, float, float]] = {}
        self.n_batches, self._n_at_fit = 0, 0
        n, n_of_parents = len(changes.bounds), len(parents.bounds)
        self._parts = np.cumsum([2, n, n, n_of_parents])
        bounds = [LOG_BOUNDS] * 2 + [*changes.bounds] * 2 + [*parents.bounds]
        self._bounds = [*bounds, LOG_NUGGET_BOUNDS, (-np.inf, np.inf)]
        self._start: FloatArray = np.zeros(len(self._bounds))
        self._start[:2] = LOG_GAIN_VARIANCE
        self._start[-2:] = LOG_GAIN_NUGGET, MEAN_GAIN
        self.theta = self._start

    def learn(self, changes: Sequence[Edge], gains: FloatArray, errors: FloatArray) -> None:
        """Add gains (n,), or replace those of the same changes.

        The ``errors`` (n,) are standard deviations in nats.
        """
        self.n_batches += 1
        for change, gain, error in zip(changes, gains, errors, strict=True):
            self._known[change.texts] = change, float(gain), float(error)
        if len(self._known) > REFIT_GROWTH * self._n_at_fit:
            self._n_at_fit = len(self._known)
            self._fit(*self._nearest(changes))

    def predict(self, changes: Sequence[Edge]) -> tuple[FloatArray, FloatArray]:
        """Predict the medians (n,) of gains, and the standard deviations (n,) about them, in nats.

        A deviation is half the distance between the quantiles one standard deviation to either side
        of the median, because the distributions are skew.
        """
        mean, std = self._posterior(changes)
        return _expand(mean), 0.5 * (_expand(mean + std) - _expand(mean - std))

    def chances(self, changes: Sequence[Edge], gain: float) -> FloatArray:
        """Compute the probabilities (n,) that changes gain more than ``gain`` nats."""
        mean, std = self._posterior(changes)
        return np.asarray(student.sf((_compress(np.array(gain)) - mean) / std, TAIL_DEGREES))

    def _posterior(self, changes: Sequence[Edge]) -> tuple[FloatArray, FloatArray]:
        """Compute mean and standard deviation of compressed gains (R&W alg. 2.1)."""
        variance = np.exp(self.theta[:2]).sum() + np.exp(self.theta[-2])
        if not self._known:
            return np.full(len(changes), self.theta[-1]), np.full(len(changes), np.sqrt(variance))
        known, y, noise = self._nearest(changes)
        K = np.add(*self._covariances(self.theta, *self._distances(known)))
        L = cholesky(K + np.diag(noise + np.exp(self.theta[-2])), lower=True)
        cross = np.add(*self._covariances(self.theta, *self._distances(changes, known)))
        mean = self.theta[-1] + cross @ cho_solve((L, True), y - self.theta[-1])
        v = solve_triangular(L, cross.T, lower=True, check_finite=False)
        return mean, np.sqrt(variance - np.einsum("ij,ij->j", v, v))

    def _nearest(self, changes: Sequence[Edge]) -> tuple[list[Edge], FloatArray, FloatArray]:
        """Return known changes at the nearest parents, compressed gains and noise variances.

        Of the gains at equally near parents, the latest ones come first.
        """
        latest = list(self._known.values())[::-1]
        places, parents = _distinct([change.parent for change, _, _ in latest])
        _, wanted = _distinct([change.parent for change in changes])
        distances = self._parents.distances(wanted, parents).sum(axis=0).min(axis=0)
        order = np.argsort(distances[places], kind="stable")[:N_NEAR]
        near, gains, errors = zip(*(latest[number] for number in order), strict=True)
        slopes = 1 / np.hypot(1.0, np.array(gains) / GAIN_SCALE)  # of compressed gains
        return list(near), _compress(np.array(gains)), (slopes * np.array(errors)) ** 2

    def _distances(
        self, changes: Sequence[Edge], others: Sequence[Edge] | None = None
    ) -> tuple[FloatArray, FloatArray]:
        """Compute the distances between changes, and those between their parents."""
        rows, parents = _distinct([change.parent for change in changes])
        columns, those = _distinct([change.parent for change in others or changes])
        of_parents = self._parents.distances(parents, those)[:, rows][:, :, columns]
        return self._changes.distances(changes, others), of_parents

    def _weights(self, theta: FloatArray) -> list[tuple[FloatArray, FloatArray]]:
        """Compute weights and derivatives: of changes in both kernels, and of parents."""
        of_both, of_product, of_parents = np.split(theta, self._parts)[1:4]
        return [
            self._changes.weights(of_both),
            self._changes.weights(of_product),
            self._parents.weights(of_parents),
        ]

    def _covariances(
        self, theta: FloatArray, of_changes: FloatArray, of_parents: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Compute both parts of the covariance from distances, also packed ones."""
        (alone, _), (joint, _), (parents, _) = self._weights(theta)
        exponents = (
            np.tensordot(alone, of_changes, axes=1),
            np.tensordot(joint, of_changes, axes=1) + np.tensordot(parents, of_parents, axes=1),
        )
        first, second = (np.exp(v - e) for v, e in zip(theta[:2], exponents, strict=True))
        return first, second

    def _fit(self, changes: list[Edge], y: FloatArray, noise: FloatArray) -> None:
        """Fit the hyperparameters to some changes, evenly spaced, from those of before."""
        some = np.linspace(0, len(y) - 1, min(len(y), N_FITTED)).astype(int)
        distances = self._distances([changes[number] for number in some])
        self.theta = minimize(
            self.objective(*distances, y[some], noise[some]),
            self.theta,
            jac=True,
            method="L-BFGS-B",
            bounds=self._bounds,
            options={"maxiter": MAX_REFIT_STEPS},
        ).x

    def objective(
        self, of_changes: FloatArray, of_parents: FloatArray, y: FloatArray, noise: FloatArray
    ) -> Callable[[FloatArray], tuple[float, FloatArray]]:
        """Build the negative log posterior of ``theta`` with its gradient, O(n^3) a call."""
        packed = [np.stack([pack(D) for D in distances]) for distances in (of_changes, of_parents)]
        diagonal, rows = packed_diagonal(len(y)), rows_of_diagonal(len(y))

        def negative_log_posterior(theta: FloatArray) -> tuple[float, FloatArray]:
            both, product = self._covariances(theta, *packed)
            K, nugget = both + product, np.exp(theta[-2])
            K[diagonal] += nugget + noise[rows]
            try:
                value, alpha, adjoint = _likelihood_with_adjoint(K, y - theta[-1])
            except LinAlgError:
                return 1e12, np.zeros(len(theta))
            by_both, by_product = adjoint * both, adjoint * product
            (_, alone), (_, joint), (_, parents) = self._weights(theta)
            gradient = np.concatenate(
                [
                    [by_both.sum(), by_product.sum()],
                    -(packed[0] @ by_both) @ alone,
                    -(packed[0] @ by_product) @ joint,
                    -(packed[1] @ by_product) @ parents,
                    [nugget * adjoint[diagonal].sum(), alpha.sum()],
                ]
            )
            off = (theta - self._start) / HYPERPRIOR_WIDTH
            return 0.5 * float(off @ off) - value, off / HYPERPRIOR_WIDTH - gradient

        return negative_log_posterior


def _distinct(expressions: Sequence[Expression]) -> tuple[IntArray, list[Expression]]:
    """Return indices (n,) into the distinct expressions, and these."""
    numbers: dict[str, int] = {}
    distinct: list[Expression] = []
    for expression in expressions:
        if numbers.setdefault(expression.canonical, len(distinct)) == len(distinct):
            distinct.append(expression)
    return np.array([numbers[expression.canonical] for expression in expressions]), distinct


def _compress(gains: FloatArray) -> FloatArray:
    compressed: FloatArray = GAIN_SCALE * np.arcsinh(gains / GAIN_SCALE)
    return compressed


def _expand(compressed: FloatArray) -> FloatArray:
    gains: FloatArray = GAIN_SCALE * np.sinh(compressed / GAIN_SCALE)
    return gains
