"""Covariances of many small sets of rows, each solved for its last row given the others."""

import numpy as np

from autokernel.expression import Expression
from autokernel.likelihood.base import ValueAndGradient
from autokernel.likelihood.covariance import paired_covariance
from autokernel.typing import FloatArray

BLOCK_PAIRS = 2**17
"""Pairs whose covariances should be computed at once, so that their arrays stay in the cache."""


class Blocks:
    """Covariance matrices of equally many rows each, stored as lower triangles.

    Parameters
    ----------
    expression : Expression
        The kernel.
    X : ndarray of shape (n_blocks, n_rows, n_features)
        Inputs of the rows of each block.

    Notes
    -----
    With ``w`` the last column of the inverse of ``K + s I``, the last target given the others is
    normal with the variance ``1 / w_last``, noise included, and has the residual ``w^T y / w_last``
    (R&W eq. 5.12).
    """

    def __init__(self, expression: Expression, X: FloatArray) -> None:
        self.shape = X.shape[:2]
        self._i, self._j = np.tril_indices(X.shape[1])
        i, j = self._i, self._j
        self._covariance = paired_covariance(
            expression, lambda column: (X[:, i, column].ravel(), X[:, j, column].ravel())
        )

    def last_columns(self, params: FloatArray) -> FloatArray:
        """Compute the last columns ``w`` (n_blocks, n_rows) of the inverses. O(n_rows^3) each.

        Raises
        ------
        numpy.linalg.LinAlgError
            If a matrix is singular.
        """
        return self.solve(params, self._unit_vectors()[..., None])[..., 0]

    def log_densities(self, params: FloatArray, y: FloatArray) -> FloatArray:
        """Compute the log density (n_blocks,) of the last of the targets (n_blocks, n_rows) each.

        It is given the other targets, and ``-inf`` where a matrix is not positive definite.
        """
        try:
            w = self.last_columns(params)
        except np.linalg.LinAlgError:
            return np.full(len(y), -np.inf)
        return _log_normal(w[:, -1], np.einsum("ij,ij->i", w, y))

    def value_and_gradient(self, params: FloatArray, y: FloatArray) -> ValueAndGradient:
        """Compute the sum of :meth:`log_densities` and its gradient in the log parameters.

        With ``u = K^-1 y`` and the residual ``r = u_last / w_last``, the derivative of the log
        density along a symmetric change D of the matrix is ``w^T D v``, where
        ``v = r u - (1 / w_last + r^2) w / 2``.
        """
        failure = ValueAndGradient(-np.inf, np.zeros(len(params)))
        try:
            solved = self.solve(params, np.stack([self._unit_vectors(), y], axis=-1))
        except np.linalg.LinAlgError:
            return failure
        w, u = solved[..., 0], solved[..., 1]
        precision, weighted = w[:, -1], u[:, -1]
        value = float(_log_normal(precision, weighted).sum())
        if not np.isfinite(value):
            return failure
        residual = (weighted / precision)[:, None]
        v = residual * u - 0.5 * (1 / precision[:, None] + residual**2) * w
        adjoint = w[:, self._i] * v[:, self._j]
        adjoint += v[:, self._i] * w[:, self._j]
        adjoint[:, self._i == self._j] *= 0.5
        noise_gradient = params[-1] * np.vdot(w, v)
        gradient = self._covariance.backward(adjoint.ravel())
        return ValueAndGradient(value, np.append(gradient, noise_gradient))

    def _unit_vectors(self) -> FloatArray:
        """Return the last unit vector (n_blocks, n_rows) for each block."""
        last = np.zeros(self.shape)
        last[:, -1] = 1.0
        return last

    def solve(self, params: FloatArray, right: FloatArray) -> FloatArray:
        """Solve each matrix for its right-hand sides (n_blocks, n_rows, n_sides)."""
        n_blocks, n_rows = self.shape
        values = self._covariance.forward(params[:-1]).reshape(n_blocks, -1)
        K = np.empty((n_blocks, n_rows, n_rows))
        K[:, self._i, self._j] = values
        K[:, self._j, self._i] = values
        numbers = np.arange(n_rows)
        K[:, numbers, numbers] += params[-1]
        # the static type of solve allows for less than double precision
        return np.linalg.solve(K, right).astype(float, copy=False)


def _log_normal(precision: FloatArray, weighted: FloatArray) -> FloatArray:
    """Compute log densities at residuals ``weighted / precision``, in nats."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        logs = 0.5 * (np.log(precision) - weighted**2 / precision - np.log(2 * np.pi))
    return np.where(np.isfinite(logs), logs, -np.inf)
