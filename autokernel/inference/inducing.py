"""Inference with inducing points: a bound of the likelihood, and predictions."""

from collections.abc import Iterator

import numpy as np
from scipy.linalg import LinAlgError, cholesky, solve_triangular
from scipy.sparse.linalg import LinearOperator, cg
from sklearn.utils import gen_batches

from autokernel.data import Inputs
from autokernel.data.noise import LOG_2PI
from autokernel.expression import Expression
from autokernel.inference.base import GlobalPredictor, Likelihood, finite
from autokernel.inference.covariance import (
    MAX_KEPT_LEAF_VALUES,
    Covariance,
    cross_covariance,
    diagonal_covariance,
    paired_covariance,
)
from autokernel.inference.data import TrainingData
from autokernel.inference.packed import pack, packed_diagonal, unpack
from autokernel.typing import FloatArray, IntArray

_COVARIANCES_PER_BLOCK = 2**20  # of rows with points or rows, in memory at the same time
_JITTER = 1e-8  # fraction of the mean diagonal that is added to the covariance of the points


class InducingLikelihood(Likelihood):
    """The collapsed variational bound ``log N(y; 0, Q + s I) - tr(K - Q) / (2 s)``.

    ``Q = K_nm K_mm^-1 K_mn``, where the inducing points are ``m`` points of the input space.
    With noise ``V`` that differs between rows, row i of ``K_nm`` and ``y`` is multiplied by
    ``r_i = sqrt(s / V_i)``. The noise of all rows is then s, and ``log r_i`` is added.

    The bound is that of Titsias (2009, AISTATS). With jitter in ``K_mm`` it remains a lower bound,
    that of inducing variables with noise. Rows are taken in blocks, so that memory is
    O(n_inducing^2 + n_samples). The gradient takes a second sweep over the rows.
    """

    def __init__(self, expression: Expression, data: TrainingData, points: Inputs) -> None:
        super().__init__(expression, data)
        self.points, self.differs = points, data.noise.differs
        self.between = Covariance(expression, TrainingData(points, np.zeros(len(points))).pairs)
        self.variances = diagonal_covariance(expression, data.inputs)
        n, m = len(data.y), len(points)
        # half of them, as there are gradients too
        self._rows = list(gen_batches(n, max(1, _COVARIANCES_PER_BLOCK // 2 // m)))
        keeps = n * m * expression.n_leaves <= MAX_KEPT_LEAF_VALUES
        self._kept = [self._with_points(rows) if keeps else None for rows in self._rows]

    def _value(self, theta: FloatArray) -> float:
        return finite(Conditioned(self, theta).bound + self.data.noise.correction(theta[-1]))

    def _value_and_gradient(self, theta: FloatArray) -> tuple[float, FloatArray]:
        at = Conditioned(self, theta)
        value = finite(at.bound + self.data.noise.correction(theta[-1]))
        s, roots = at.noise, at.roots
        y, known = roots * self.data.y, self.data.noise.known * roots**2 / s  # shares of noise
        inverse_B = at.solve_b(np.eye(len(self.points)))
        M = at.from_both_sides(np.eye(len(self.points)) - inverse_B) / s
        middle = np.outer(at.whitened, at.whitened) + at.B - 2 * np.eye(len(M)) + inverse_B
        of_P = -0.5 * at.from_both_sides(middle)
        of_P[np.diag_indices(len(M))] += _JITTER * np.trace(of_P) / len(M)
        packed = 2 * pack(of_P)  # the derivatives in both triangles
        packed[packed_diagonal(len(M))] *= 0.5
        gradient = self.between.backward(packed)
        gradient += self.variances.backward(roots**2 * (-0.5 / s))
        left = self.variances.forward(at.params) * roots**2 / s - 1
        square = of_errors = 0.0
        for rows, covariance, C in self.sweep(at):
            alpha = (y[rows] - C @ at.weights) / s
            square += float(alpha @ alpha)
            adjoint = C @ M
            if self.differs:
                of_rows = s * alpha**2 + left[rows] - np.einsum("ij,ij->i", adjoint, C)
                of_errors += float(of_rows @ known[rows])
                adjoint *= roots[rows, None]
            adjoint += np.outer(alpha * roots[rows], at.weights)
            gradient += covariance.backward(adjoint.ravel())
        trace = (len(y) - len(M) + np.trace(inverse_B)) / s
        of_s = 0.5 * (square - trace) + 0.5 * at.unexplained / s**2
        # log s moves the noise V of a row by V less what is known of it
        of_noise = s * of_s - 0.5 * of_errors + self.data.noise.slope_of_correction(theta[-1])
        return value, np.append(gradient, of_noise)

    def sweep(self, at: "Conditioned") -> Iterator[tuple[slice, Covariance, FloatArray]]:
        """Yield blocks of rows with ``R K_nm`` (n_rows, n_inducing), and the covariance of it."""
        for rows, kept in zip(self._rows, self._kept, strict=True):
            covariance = kept or self._with_points(rows)
            C = covariance.forward(at.params).reshape(-1, len(self.points))
            yield rows, covariance, C * at.roots[rows, None] if self.differs else C

    def _with_points(self, rows: slice) -> Covariance:
        """Build the covariance of some rows with the inducing points, row by row."""
        some, m = self.data.inputs[rows], len(self.points)
        row, point = np.divmod(np.arange(len(some) * m), m)
        return paired_covariance(self.expression, some, self.points, row, point)


class Conditioned:
    """The factors of a kernel with inducing points at parameters theta, of which all else follows.

    ``L L^T = K_mm`` and, with ``A = L^-1 K_mn R``, ``B = I + A A^T / s``. The diagonal of ``R`` are
    the ``roots``, by which the targets are multiplied too. A ``LinAlgError`` is raised if there are
    no factors.
    """

    def __init__(self, likelihood: InducingLikelihood, theta: FloatArray) -> None:
        self.params, s, data = np.exp(theta[:-1]), np.exp(theta[-1]), likelihood.data
        self.noise, self.roots = float(s), np.sqrt(s / data.noise.variance(s))
        y, n, m = self.roots * data.y, len(data.y), len(likelihood.points)
        packed = likelihood.between.forward(self.params).copy()
        diagonal = packed_diagonal(m)
        packed[diagonal] += _JITTER * packed[diagonal].mean()
        total = float(np.sum(likelihood.variances.forward(self.params) * self.roots**2))
        if not (np.isfinite(total) and np.all(np.isfinite(packed))):
            raise LinAlgError("the covariance has entries that are not finite")
        self.L = cholesky(unpack(packed, m), lower=True, overwrite_a=True)
        gram, b = np.zeros((m, m)), np.zeros(m)
        for rows, A in self.projections(likelihood):
            gram += A @ A.T
            b += A @ y[rows]
        self.B = gram / self.noise
        self.B[np.diag_indices(m)] += 1.0
        self.L_B = cholesky(self.B, lower=True)
        self.whitened = self.solve_b(b) / self.noise
        self.weights = solve_triangular(self.L, self.whitened, lower=True, trans="T")
        self.unexplained = total - float(np.trace(gram))
        self.log_determinant = float(
            2 * np.log(np.diag(self.L_B)).sum() + n * np.log(s) - 2 * np.log(self.roots).sum()
        )  # of Q and the noise
        fit = (y @ y - b @ self.whitened) / self.noise
        value = -0.5 * (fit + self.log_determinant + n * LOG_2PI)
        self.bound = float(value - 0.5 * self.unexplained / self.noise)

    def projections(self, likelihood: InducingLikelihood) -> Iterator[tuple[slice, FloatArray]]:
        """Yield blocks of rows with their columns of ``A``."""
        for rows, _, C in likelihood.sweep(self):
            yield rows, solve_triangular(self.L, C.T, lower=True, check_finite=False)

    def solve_b(self, right: FloatArray) -> FloatArray:
        """Solve ``B x = right``."""
        half = solve_triangular(self.L_B, right, lower=True, check_finite=False)
        return solve_triangular(self.L_B, half, lower=True, trans="T", check_finite=False)

    def from_both_sides(self, middle: FloatArray) -> FloatArray:
        """Compute ``L^-T middle L^-1`` for a symmetric matrix."""
        half = solve_triangular(self.L, middle, lower=True, trans="T", check_finite=False)
        return solve_triangular(self.L, half.T, lower=True, trans="T", check_finite=False)


def choose_inducing(
    expression: Expression, theta: FloatArray, X: Inputs, n_points: int
) -> IntArray:
    """Choose rows (n_chosen,) by pivoted Cholesky, until nothing but noise is left to explain.

    Each row is that of the largest variance given all rows before it. O(n_samples n_points^2).
    """
    params = np.exp(theta)
    left = diagonal_covariance(expression, X).forward(params[:-1]).copy()
    enough = 1e-6 * params[-1]
    factor = np.empty((min(n_points, len(X)), len(X)))
    chosen: list[int] = []
    for n in range(len(factor)):
        row = int(np.argmax(left))
        if left[row] <= enough:
            chosen = chosen or [row]  # a bound needs a point
            break
        (covariance,) = cross_covariance(expression, X[row : row + 1], X).forward(params[:-1])
        factor[n] = (covariance - factor[:n, row] @ factor[:n]) / np.sqrt(left[row])
        left -= factor[n] ** 2
        left[row] = -np.inf
        chosen.append(row)
    return np.array(chosen, dtype=np.intp)


def upper_bound(likelihood: InducingLikelihood, theta: FloatArray, *, n_steps: int = 100) -> float:
    """Compute an upper bound on the exact log likelihood in nats, ``inf`` on failure.

    The lower bound is ``likelihood.value(theta)``. At most ``n_steps`` steps of conjugate gradients
    are made, each O(n_samples^2).

    Kim & Teh (2018, AISTATS), section 3: with ``Q <= K`` the log determinant of ``Q + s I`` is not
    above that of ``K + s I``, and for any ``a`` the data fit ``-y^T (K + s I)^-1 y / 2`` is not
    above ``a^T (K + s I) a / 2 - a^T y``. Conjugate gradients, preconditioned by ``Q + s I``, make
    the second bound tight. Noise that differs between rows takes the place of ``s I``.
    """
    try:
        at = Conditioned(likelihood, theta)
    except LinAlgError:
        return np.inf
    data, y, n, s = likelihood.data, likelihood.data.y, len(likelihood.data.y), at.noise
    A = np.concatenate([of_rows for _, of_rows in at.projections(likelihood)], axis=1)
    noise, roots = data.noise.variance(s), at.roots

    def covariance() -> Iterator[FloatArray]:
        for rows in gen_batches(n, max(1, _COVARIANCES_PER_BLOCK // n)):
            K = cross_covariance(likelihood.expression, data.inputs[rows], data.inputs)
            yield K.forward(at.params)

    # half a gigabyte at most stays between two steps of conjugate gradients
    kept = list(covariance()) if n**2 <= 2**26 else None

    def precondition(v: FloatArray) -> FloatArray:
        v = roots * v
        return roots * (v - A.T @ at.solve_b(A @ v) / s) / s

    def noisy(v: FloatArray) -> FloatArray:
        return np.concatenate([block @ v for block in kept or covariance()]) + noise * v

    K = LinearOperator((n, n), matvec=noisy, dtype=float)
    M = LinearOperator((n, n), matvec=precondition, dtype=float)
    a, _ = cg(K, y, x0=precondition(y), rtol=1e-6, maxiter=n_steps, M=M)
    bound = 0.5 * a @ noisy(a) - a @ y - 0.5 * (at.log_determinant + n * LOG_2PI)
    bound += data.noise.correction(theta[-1])
    return float(bound) if np.isfinite(bound) else np.inf


class InducingPredictor(GlobalPredictor):
    """The predictive distribution of the collapsed variational bound.

    At most ``n_inducing`` points are chosen among the first rows in a random order.

    Titsias (2009, AISTATS), eq. 6. Construction takes O(n_samples n_inducing^2); each new row takes
    O(n_inducing) for its mean and O(n_inducing^2) for its variance.
    """

    def __init__(
        self, expression: Expression, theta: FloatArray, data: TrainingData, n_inducing: int
    ) -> None:
        # candidates for points: seeded, so that equal data have equal predictions
        some = np.random.default_rng(0).permutation(len(data.X))[: 2**13]
        chosen = choose_inducing(expression, theta, data.inputs[some], n_inducing)
        points = data.inputs[some[chosen]]
        super().__init__(expression, theta, data, block=_COVARIANCES_PER_BLOCK // len(points))
        self.text = f"{len(points)} inducing points"
        at = Conditioned(InducingLikelihood(expression, data, points), theta)
        self.knots, self._L, self._L_B, self.weights = points, at.L, at.L_B, at.weights

    def _projected(self, cross: FloatArray) -> tuple[FloatArray, ...]:
        """Compute ``L^-1 k`` and ``L_B^-1 L^-1 k``, both of shape (n_inducing, n)."""
        prior_part = solve_triangular(self._L, cross.T, lower=True, check_finite=False)
        return prior_part, solve_triangular(self._L_B, prior_part, lower=True, check_finite=False)
