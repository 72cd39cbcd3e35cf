"""Exact inference: the likelihood of a kernel and its predictions."""

import os
from copy import copy
from functools import partial

import numpy as np
from scipy.linalg import LinAlgError
from sklearn.utils import gen_batches

from autokernel.data import RowNoise
from autokernel.data.noise import LOG_2PI
from autokernel.expression import Expression
from autokernel.inference.base import GlobalPredictor, Likelihood, finite, log_normal
from autokernel.inference.covariance import Covariance, cross_covariance, diagonal_covariance
from autokernel.inference.data import TrainingData
from autokernel.inference.packed import (
    Cholesky,
    DiagonalCholesky,
    PackedCholesky,
    diagonal_by_row,
    factorise_with_jitter,
    pack,
)
from autokernel.typing import FloatArray


def exact_work(n_samples: int, n_leaves: int) -> float:
    """Return how long an exact gradient takes, compared with others; a factor takes a third.

    The values of a leaf take the time by which a factor grows with a hundred rows more.
    """
    return n_samples**2 * (n_samples + 100 * n_leaves) if n_leaves else n_samples


class ExactLikelihood(Likelihood):
    """``log N(y; 0, K_theta + s I)`` where theta holds the logs of the parameters, ``s`` last.

    With weights and known variances ``V``, the noise is ``s / w_i + V_i`` instead of ``s``.

    A value takes O(n^3 / 3), and a gradient O(n^3). The matrix of noise alone is diagonal: only its
    diagonal is stored, and every cost is O(n).
    """

    def __init__(self, expression: Expression, data: TrainingData) -> None:
        super().__init__(expression, data)
        self.noise, n = self.data.noise, len(data.y)
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
        return self.value_of(self.matrix(theta), theta[-1])[0]

    def value_of(self, K: FloatArray, log_noise: float) -> tuple[float, Cholesky, FloatArray]:
        """Compute the log likelihood in nats given the matrix with its noise, which is overwritten.

        Returns also its factor and ``alpha`` (R&W alg. 2.1). A ``LinAlgError`` is raised if there
        is none, or if the value is not finite.
        """
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
        value, cholesky, alpha = self.value_of(self.matrix(theta), theta[-1])
        adjoint = cholesky.evidence_adjoint(alpha)
        of_rows = self.noise.slopes_of_corrections(theta[-1])
        of_rows += np.exp(theta[-1]) * adjoint[self.diagonal] * self.noise.slope
        return value, self._covariance.backward(adjoint), of_rows

    def leave_one_out(self, theta: FloatArray) -> FloatArray:
        """Compute the log predictive density (n,) of each target given all others. O(n^3).

        R&W eq. 5.10-5.12, in nats and including the noise of the target. The density of a row
        with a weight is that of all readings that it stands for.
        """
        try:
            errors, variances = self.leave_one_out_errors(theta)
        except LinAlgError:
            return np.full(len(self.data.y), -np.inf)
        return log_normal(errors, variances) + self.noise.corrections(theta[-1])

    def leave_one_out_errors(
        self, theta: FloatArray, *, jitter: float = 0.0
    ) -> tuple[FloatArray, FloatArray]:
        """Predict each target from all others, with its noise (R&W eq. 5.12). O(n^3).

        Returns the errors (n,) of the predictions, and the variances (n,) of these errors, both on
        the scale on which the kernel acts.
        """
        cholesky = self.factorise(self.matrix(theta, jitter))
        alpha = cholesky.solve(self.data.y)
        precision = cholesky.inverse_diagonal()
        return alpha / precision, 1 / precision

    def matrix(self, theta: FloatArray, jitter: float = 0.0) -> FloatArray:
        """Compute ``K_theta + (s + jitter) I`` in the storage of its Cholesky factor."""
        params = np.exp(theta)
        K = self._covariance.forward(params[:-1]).copy()  # the reverse sweep needs the original
        K[self.diagonal] += self.noise.variance(params[-1]) + jitter
        return K


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
        data = data.on(expression.target)
        # without a kernel rows are independent, and one is enough
        rows = data if expression.leaves else data.take(np.arange(1))
        if first is None or not expression.leaves:
            self._cholesky, jitter = _factorise(expression, theta, rows)
        else:
            self._cholesky, jitter = first._extended(expression, theta, rows)
        # at least 64 rows, as the variances of a block read the whole factor
        block = max(64, _COVARIANCES_IN_CACHE // len(rows.X))
        super().__init__(expression, theta, data, jitter=jitter, block=block)
        self.knots, self.weights = rows.inputs, self._cholesky.solve(rows.y)

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
