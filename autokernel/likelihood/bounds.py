"""An upper bound on the log likelihood, in which nothing of order n^3 is computed."""

import numpy as np
from scipy.linalg import LinAlgError
from scipy.sparse.linalg import LinearOperator, cg

from autokernel.likelihood.covariance import cross_covariance
from autokernel.likelihood.inducing import InducingLikelihood
from autokernel.typing import FloatArray

_KEPT = 2**26  # largest number of covariances that stay in memory between two steps
_AT_ONCE = 2**20  # covariances that are computed at once


def upper_bound(likelihood: InducingLikelihood, theta: FloatArray, *, n_steps: int = 100) -> float:
    """Compute an upper bound on the exact log likelihood in nats, ``inf`` on failure.

    Parameters
    ----------
    likelihood : InducingLikelihood
        The kernel with its data and inducing points.
    theta : ndarray of shape (n_params,)
        Log parameters, for which the lower bound is ``likelihood.value(theta)``.
    n_steps : int
        Most steps of conjugate gradients, each O(n_samples^2).

    Notes
    -----
    Kim & Teh (2018, AISTATS), section 3: with ``Q <= K`` the log determinant of ``Q + s I`` is not
    above that of ``K + s I``, and for any ``a`` the data fit ``-y^T (K + s I)^-1 y / 2`` is not
    above ``a^T (K + s I) a / 2 - a^T y``. Conjugate gradients, preconditioned by ``Q + s I``, make
    the second bound tight.
    """
    try:
        at = likelihood.condition(theta)
    except LinAlgError:
        return np.inf
    y, n, s = likelihood.data.y, len(likelihood.data.y), at.noise
    multiply = _Covariance(likelihood, theta)
    projected = likelihood.whitened(theta, at)  # (n_inducing, n), L^-1 K_mn

    def precondition(v: FloatArray) -> FloatArray:
        return (v - projected.T @ at.solve_b(projected @ v) / s) / s

    def noisy(v: FloatArray) -> FloatArray:
        return multiply(v) + s * v

    shape = (n, n)
    a, _ = cg(
        LinearOperator(shape, matvec=noisy, dtype=float),
        y,
        x0=precondition(y),
        rtol=1e-6,
        maxiter=n_steps,
        M=LinearOperator(shape, matvec=precondition, dtype=float),
    )
    data_fit = 0.5 * a @ noisy(a) - a @ y
    bound = data_fit - 0.5 * (at.log_determinant + n * np.log(2 * np.pi))
    return float(bound) if np.isfinite(bound) else np.inf


class _Covariance:
    """Products of the noise-free covariance matrix with vectors, by blocks of rows."""

    def __init__(self, likelihood: InducingLikelihood, theta: FloatArray) -> None:
        self._expression, self._X = likelihood.expression, likelihood.data.X
        self._params = np.exp(theta[:-1])
        n = len(self._X)
        step = max(1, _AT_ONCE // n)
        self._rows = [slice(first, first + step) for first in range(0, n, step)]
        self._kept = [self._block(rows) for rows in self._rows] if n**2 <= _KEPT else None

    def __call__(self, v: FloatArray) -> FloatArray:
        """Compute ``K v`` (n,)."""
        blocks = map(self._block, self._rows) if self._kept is None else self._kept
        return np.concatenate([block @ v for block in blocks])

    def _block(self, rows: slice) -> FloatArray:
        """Compute some rows of the matrix."""
        return cross_covariance(self._expression, self._X[rows], self._X).forward(self._params)
