"""Diagonal covariance matrices, which the null model has: all costs are O(n)."""

import numpy as np
from scipy.linalg import LinAlgError

from autokernel.likelihood.cholesky import Prediction
from autokernel.typing import FloatArray


class DiagonalCholesky:
    """Cholesky factor of a diagonal matrix, in the interface of ``PackedCholesky``. O(n).

    Parameters
    ----------
    variances : ndarray of shape (n,)
        The diagonal of the matrix. All entries elsewhere are zero and are not stored.

    Raises
    ------
    scipy.linalg.LinAlgError
        If an entry is not positive and finite.
    """

    def __init__(self, variances: FloatArray) -> None:
        if not np.all((variances > 0) & np.isfinite(variances)):
            raise LinAlgError("the diagonal has entries that are not positive and finite")
        self._variances = variances
        self.factor = np.sqrt(variances)

    def log_determinant(self) -> float:
        """Compute the log determinant of the matrix."""
        return float(np.log(self._variances).sum())

    def solve(self, y: FloatArray) -> FloatArray:
        """Solve for one right-hand side (n,)."""
        return y / self._variances

    def half_solve(
        self,
        B: FloatArray,
        *,
        overwrite: bool = False,  # noqa: ARG002 - a division makes a new array
    ) -> FloatArray:
        """Compute ``L^-1 B`` for right-hand sides (n, m), always as a new array."""
        return B / self.factor[:, None]

    def predict_later(self, y: FloatArray, n_given: int) -> Prediction:
        """Predict each target after the first ``n_given``, which tell nothing about it."""
        return Prediction(y[n_given:], self._variances[n_given:])

    def inverse_diagonal(self) -> FloatArray:
        """Compute the diagonal (n,) of the inverse."""
        return 1 / self._variances

    def evidence_adjoint(self, alpha: FloatArray) -> FloatArray:
        """Compute the diagonal (n,) of ``alpha alpha^T - K^-1``, halved (R&W eq. 5.9)."""
        return 0.5 * (alpha**2 - 1 / self._variances)
