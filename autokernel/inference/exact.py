"""Exact inference: the likelihood of a kernel and its predictions."""

import os
from copy import copy
from functools import partial
from typing import NamedTuple

import numpy as np
from scipy.linalg import LinAlgError
from scipy.special import logsumexp
from scipy.stats import norm
from sklearn.utils import gen_batches

from autokernel.data import RowNoise
from autokernel.data.counts import Local
from autokernel.data.noise import LOG_2PI
from autokernel.data.scales import CountScale
from autokernel.expression import Expression
from autokernel.inference.base import GlobalPredictor, Likelihood, Moments, finite, log_normal
from autokernel.inference.covariance import Covariance, cross_covariance, diagonal_covariance
from autokernel.inference.data import TrainingData
from autokernel.inference.packed import (
    Cholesky,
    DiagonalCholesky,
    PackedCholesky,
    diagonal_by_row,
    factorise_with_jitter,
    pack,
    unpack,
)
from autokernel.typing import FloatArray

MAX_NEWTON_STEPS = 100  # to the mode of the function of counts
_SMALL_STEP, _SMALLEST_STEP = 1e-4, 1e-10  # the last ones, for a value and for a gradient
_SHARES = 0.5 ** np.arange(12)  # of a step
_ROUNDING = 1e-12  # of a log posterior
_STEP = 1e-4  # of the log of the dispersion, for a derivative
_N_NODES, _FARTHEST = 97, 6.0  # of sums over a function, and their deviations


def exact_work(n_samples: int, n_leaves: int) -> float:
    """Return how long an exact gradient takes, compared with others; a factor takes a third.

    The values of a leaf take the time by which a factor grows with a hundred rows more.
    """
    return n_samples**2 * (n_samples + 100 * n_leaves) if n_leaves else n_samples


class Mode(NamedTuple):
    """The mode of a function given counts, and the log likelihood by Laplace's method."""

    value: float  # nats
    f: FloatArray  # (n,)
    local: Local
    data: TrainingData  # with values and errors of rows that have the same mode
    cholesky: Cholesky  # of the covariance of these values
    alpha: FloatArray  # (n,)


def find_mode(
    K: FloatArray,
    data: TrainingData,
    log_noise: float,
    factorise: type[Cholesky],
    *,
    start: FloatArray,
    mean: FloatArray | float = 0.0,
    tolerance: float = _SMALL_STEP,
) -> Mode:
    """Find the mode of a function with the prior N(mean, K), packed or a diagonal, given counts.

    Newton's method begins at the ``start`` (n,). Steps are halved while they lower the log
    posterior of the function. The last one is shorter than the ``tolerance``, with an error of its
    square. A ``LinAlgError`` is raised if there is no end.

    R&W algorithm 3.1 and eq. 3.32, with their B as the matrix of a regression of pseudo-targets.
    """
    f, alpha, height, before = start, None, -np.inf, np.inf
    diagonal = diagonal_by_row(len(f)) if factorise is PackedCholesky else np.arange(len(f))
    local_at = data.local(log_noise)
    local = local_at(f)
    for _ in range(MAX_NEWTON_STEPS):
        A, errors = K.copy(), 1 / local.curvature
        A[diagonal] += errors
        cholesky = factorise(A)
        beta = cholesky.solve(f + errors * local.slope - mean)
        step = errors * (local.slope - beta)
        size = float(np.abs(step).max())
        if size < tolerance or (before < _SMALL_STEP and size > before / 2):
            log_sizes = cholesky.log_determinant() + np.log(local.curvature).sum()
            value = float(local.value.sum() - 0.5 * ((f - mean) @ beta + log_sizes))
            value += data.noise.correction(log_noise)
            return Mode(finite(value), f, local, data.at_mode(f, local), cholesky, beta)
        begin, old, before = f, beta if alpha is None else alpha, size
        for share in _SHARES[: 1 if alpha is None else None]:
            f, alpha = begin + share * step, old + share * (beta - old)
            local = local_at(f)
            value = float(local.value.sum() - 0.5 * (f - mean) @ alpha)
            if value >= height - _ROUNDING * abs(height):
                break
        height = value
    raise LinAlgError("Newton's method has found no mode of the function of the counts")


class ExactLikelihood(Likelihood):
    """``log N(y; 0, K_theta + s I)`` where theta holds the logs of the parameters, ``s`` last.

    With weights and known variances ``V``, the noise is ``s / w_i + V_i`` instead of ``s``. Of
    counts, it is Laplace's approximation (R&W section 3.4): at the mode of the function, each row
    has a value and a known error.

    A value takes O(n^3 / 3), and a gradient O(n^3). The matrix of noise alone is diagonal: only its
    diagonal is stored, and every cost is O(n).
    """

    def __init__(self, expression: Expression, data: TrainingData) -> None:
        super().__init__(expression, data)
        self.noise, n = self.data.noise, len(data.y)
        self._mode: Mode | None = None  # the last one that was found, of counts
        self.factorise: type[Cholesky]  # of K, which has the variance of each row at the diagonal
        if expression.leaves:
            self._covariance = Covariance(expression, data.pairs)
            self.factorise, self.diagonal = PackedCholesky, diagonal_by_row(n)
        else:
            self._covariance = diagonal_covariance(expression, data.inputs)
            self.factorise, self.diagonal = DiagonalCholesky, np.arange(n)

    @property
    def work(self) -> float:
        return exact_work(len(self.data.y), self.expression.n_leaves)

    def with_noise(self, noise: RowNoise) -> "ExactLikelihood":
        other = copy(self)
        other.noise = noise
        return other

    def _value(self, theta: FloatArray) -> float:
        return self.value_of(self._prior(theta), theta[-1])[0]

    def value_of(
        self, K: FloatArray, log_noise: float, *, tolerance: float = _SMALL_STEP
    ) -> tuple[float, Cholesky, FloatArray]:
        """Compute the log likelihood in nats given the matrix without noise, which is overwritten.

        Returns also the factor of that with its noise, and ``alpha`` (R&W alg. 2.1). A
        ``LinAlgError`` is raised if there is none, or if the value is not finite. The
        ``tolerance`` is that of the mode of counts.
        """
        if self.data.has_counts:
            start = self.data.y if self._mode is None else self._mode.f
            given = K, self.data, log_noise, self.factorise
            mode = self._mode = find_mode(*given, start=start, tolerance=tolerance)
            self.data, self.noise = mode.data, mode.data.noise
            return mode.value, mode.cholesky, mode.alpha
        K[self.diagonal] += self.noise.variance(np.exp(log_noise))
        cholesky, y, n = self.factorise(K), self.data.y, len(self.data.y)
        alpha = cholesky.solve(y)
        value = -0.5 * (y @ alpha + cholesky.log_determinant() + n * LOG_2PI)
        return finite(float(value) + self.noise.correction(log_noise)), cholesky, alpha

    def _value_and_gradient(self, theta: FloatArray) -> tuple[float, FloatArray]:
        value, of_kernel, of_rows = self.value_and_gradients(theta)
        return value, np.append(of_kernel, of_rows.sum())

    def value_and_gradients(self, theta: FloatArray) -> tuple[float, FloatArray, FloatArray]:
        """Compute the log likelihood in nats, and its gradients (R&W eq. 5.9).

        They are those in the logs of the parameters of the expression, and of the part of the
        noise variance of each row (n,) that is not known.
        """
        value, cholesky, alpha = self.value_of(
            self._prior(theta), theta[-1], tolerance=_SMALLEST_STEP
        )
        adjoint = cholesky.evidence_adjoint(alpha)
        if self.data.has_counts:
            of_rows = self._gradient_of_mode(adjoint, alpha, theta[-1])
        else:
            of_rows = self.noise.slopes_of_corrections(theta[-1])
            of_rows += np.exp(theta[-1]) * adjoint[self.diagonal] * self.noise.slope
        return value, self._covariance.backward(adjoint), of_rows

    def _gradient_of_mode(
        self, adjoint: FloatArray, alpha: FloatArray, log_noise: float
    ) -> FloatArray:
        """Add to the adjoint what the mode of counts adds (R&W eq. 5.23).

        Returns the derivatives of the rows (n,) in the log of the noise.
        """
        assert self._mode is not None
        (_, f, local, *_), n = self._mode, len(alpha)
        ends = (self.data.local(log_noise + step)(f) for step in (-_STEP, _STEP))
        by_noise = Local(*(np.diff([*ends], axis=0)[0] / (2 * _STEP)))
        variance = 1 / local.curvature  # of the function, less what the prior explains
        variance -= (alpha**2 - 2 * adjoint[self.diagonal]) * variance**2
        of_mode = 0.5 * variance * local.third
        v = of_mode
        if self.expression.leaves:
            inner = unpack(adjoint, n)  # alpha alpha' - A^-1
            inner[np.diag_indices(n)] *= 2
            v = of_mode / local.curvature
            v = alpha * (alpha @ v) - inner @ v
            both = np.outer(v, alpha)
            both[np.diag_indices(n)] *= 0.5
            adjoint += pack(both + both.T)
        moved = (of_mode - v) / local.curvature
        return by_noise.value - 0.5 * variance * by_noise.curvature + moved * by_noise.slope

    def of_rounding(self, theta: FloatArray) -> float:
        """Compute by how much the log probability of rounded targets exceeds the log likelihood.

        That is of normal errors of rounding. The ratio of both is that for each row given all
        others. A ``LinAlgError`` is raised if there is no factor.
        """
        (errors, variances), data, noise = self.leave_one_out_errors(theta), self.data, self.noise
        single = np.exp(theta[-1] + noise.log_factors)  # noise variance of one reading
        spread = np.sqrt(np.maximum(variances - noise.variance(np.exp(theta[-1])), 0.0))
        z = np.linspace(-_FARTHEST, _FARTHEST, _N_NODES)
        f = (data.y - errors)[:, None] + spread[:, None] * z
        step, weights = data.known_noise.resolution, norm.pdf(z) / norm.pdf(z).sum()
        rounded = data.scale.log_density(data.u[:, None], f, single[:, None], step=step)
        rounded = logsumexp(noise.weights[:, None] * rounded, b=weights, axis=1)
        found = rounded - log_normal(errors, variances) - noise.corrections(theta[-1])
        return float(found[noise.counts == noise.weights].sum())  # others are means

    def leave_one_out(self, theta: FloatArray) -> FloatArray:
        """Compute the log predictive density (n,) of each target given all others. O(n^3).

        R&W eq. 5.10-5.12, in nats and including the noise of the target. The density of a row
        with a weight is that of all readings that it stands for.
        """
        try:
            errors, variances = self.leave_one_out_errors(theta)
        except LinAlgError:
            return np.full(len(self.data.y), -np.inf)
        if isinstance(scale := self.data.scale, CountScale):
            scale = scale.of_rows(scale.rates.e, theta[-1])
            variances = np.maximum(variances - self.noise.known, 0.0)
            times = self.data.known_noise.weights
            return scale.log_density(self.data.u, self.data.y - errors, variances, times=times)
        return log_normal(errors, variances) + self.noise.corrections(theta[-1])

    def leave_one_out_errors(
        self, theta: FloatArray, *, jitter: float = 0.0
    ) -> tuple[FloatArray, FloatArray]:
        """Predict each target from all others, with its noise (R&W eq. 5.12). O(n^3).

        Returns the errors (n,) of the predictions, and the variances (n,) of these errors, both on
        the scale on which the kernel acts.
        """
        if self.data.has_counts:
            self._value(theta)  # at the mode
        cholesky = self.factorise(self.matrix(theta, jitter))
        alpha = cholesky.solve(self.data.y)
        precision = cholesky.inverse_diagonal()
        return alpha / precision, 1 / precision

    def matrix(self, theta: FloatArray, jitter: float = 0.0) -> FloatArray:
        """Compute ``K_theta + (s + jitter) I`` in the storage of its Cholesky factor."""
        K = self._prior(theta)
        K[self.diagonal] += self.noise.variance(np.exp(theta[-1])) + jitter
        return K

    def _prior(self, theta: FloatArray) -> FloatArray:
        # the reverse sweep needs the original
        return self._covariance.forward(np.exp(theta[:-1])).copy()


_COVARIANCES_IN_CACHE = 2**15  # so that the arrays of a block stay in the cache


class ExactPredictor(GlobalPredictor):
    """The exact predictive distribution of a Gaussian process (R&W alg. 2.1).

    Construction takes O(n_samples^3 / 3), and O(n_samples^2) for each row that is not among the
    ``first`` ones, of which there is a predictor with the same kernel and parameters. Each new row
    takes O(n_samples) for its mean and O(n_samples^2) for its variance.
    """

    text = "exact"

    def __init__(
        self,
        expression: Expression,
        theta: FloatArray,
        data: TrainingData,
        *,
        first: "ExactPredictor | None" = None,
    ) -> None:
        data = at_mode(expression, theta, data.on(expression.target))
        # without a kernel rows are independent, and one is enough
        rows = data if expression.leaves else data.take(np.arange(1))
        if first is None or not expression.leaves or data.has_counts:
            self._cholesky, jitter = _factorise(expression, theta, rows)
        else:
            self._cholesky, jitter = first._extended(expression, theta, rows)
        # at least 64 rows, as the variances of a block read the whole factor
        block = max(64, _COVARIANCES_IN_CACHE // len(rows.X))
        super().__init__(expression, theta, data, jitter=jitter, block=block)
        self.knots, self.weights = rows.inputs, self._cholesky.solve(rows.y)
        self._log_noise = theta[-1]

    def _extended(
        self, expression: Expression, theta: FloatArray, rows: TrainingData
    ) -> tuple[PackedCholesky, float]:
        """Extend the factor to rows that begin with those of this one, or factorise again."""
        if len(rows.X) == len(self.knots):
            return self._cholesky, self.jitter
        is_new = np.arange(len(rows.X)) >= len(self.knots)
        new = rows.inputs[is_new]
        corner = self._whole.cross(new, new).copy()  # the covariance keeps its values
        noise = rows.noise.take(np.flatnonzero(is_new))
        corner[np.diag_indices(len(new))] += noise.variance(np.exp(theta[-1])) + self.jitter
        try:
            return self._cholesky.extended(self._whole.cross(self.knots, new), corner), self.jitter
        except LinAlgError:
            return _factorise(expression, theta, rows)

    def precision(self) -> FloatArray:
        """Compute the inverse (n_knots, n_knots) of the covariance of the targets. O(n_knots^3)."""
        half = self._cholesky.half_solve(np.eye(len(self.knots)))
        return half.T @ half

    def _projected(self, cross: FloatArray) -> tuple[FloatArray, ...]:
        return (self._cholesky.half_solve(cross.T),)

    def log_density(self, rows: TrainingData, moments: Moments) -> float:
        on_scale, (mean, K) = rows.on(self._whole.expression.target), moments
        if not on_scale.has_counts:
            return super().log_density(rows, moments)
        if not len(mean):
            return 0.0
        how = on_scale, self._log_noise, PackedCholesky
        return find_mode(pack(K), *how, start=on_scale.y, mean=mean).value


def at_mode(expression: Expression, theta: FloatArray, data: TrainingData) -> TrainingData:
    """Return data with the values and errors of rows at the mode of the function of counts.

    Other data stay as they are.
    """
    if not data.has_counts:
        return data
    likelihood = ExactLikelihood(expression, data)
    likelihood.value(theta)
    return likelihood.data


def _factorise(
    expression: Expression, theta: FloatArray, data: TrainingData
) -> tuple[PackedCholesky, float]:
    """Factorise the covariance with the jitter it needs, of many rows by blocks to save memory."""
    n, params = len(data.X), np.exp(theta)
    noise = data.noise.variance(params[-1])
    diagonal = diagonal_covariance(expression, data.inputs).forward(params[:-1]) + noise
    magnitude = float(diagonal.mean())
    if n <= 2000:
        likelihood = ExactLikelihood(expression, data)
        return factorise_with_jitter(partial(likelihood.matrix, theta), magnitude=magnitude)

    def matrix(jitter: float) -> FloatArray:
        K = np.empty((n, n))
        for rows in gen_batches(n, max(1, _COVARIANCES_IN_CACHE // n)):
            block = cross_covariance(expression, data.inputs[rows], data.inputs)
            K[rows] = block.forward(params[:-1])
        K[np.diag_indices(n)] += noise + jitter
        return pack(K.T)  # symmetric, and in the order of LAPACK without a copy

    return factorise_with_jitter(matrix, magnitude=magnitude)


def lack_of_memory(n_samples: int, *, predicts_only: bool = False) -> str:
    """Say what an exact fit needs if it exceeds 80 % of the memory here, and nothing otherwise."""
    # packed matrices that a likelihood keeps at the same time, about; those of a predictor are at
    # its peak a full matrix, which is two, its copy, and the factor
    n_matrices = 4 if predicts_only else 12
    needed = n_matrices * 8 * n_samples * (n_samples + 1) // 2
    try:
        present = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):  # not on Windows
        return ""
    lack = f"{needed / 2**30:.0f} GiB for its matrices, and this machine has {present / 2**30:.1f}"
    return f"{lack} GiB" if needed > 0.8 * present else ""
