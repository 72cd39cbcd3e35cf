"""The interface of a Cholesky factor, which hides how its matrix is stored."""

from typing import NamedTuple, Protocol

from autokernel.typing import FloatArray


class Prediction(NamedTuple):
    """The errors of predictions of targets, each by itself, and the variances of these errors."""

    residual: FloatArray  # (n,)
    variance: FloatArray  # (n,)


class Cholesky(Protocol):
    """Cholesky factor of a positive definite matrix of order n, in any storage."""

    @property
    def factor(self) -> FloatArray:
        """The stored numbers of the factor."""

    def log_determinant(self) -> float:
        """Compute the log determinant of the matrix."""

    def solve(self, y: FloatArray) -> FloatArray:
        """Solve for one right-hand side (n,)."""

    def half_solve(self, B: FloatArray, *, overwrite: bool = False) -> FloatArray:
        """Compute ``L^-1 B`` for right-hand sides (n, m), in their place with ``overwrite``."""

    def predict_later(self, y: FloatArray, n_given: int) -> Prediction:
        """Predict each target after the first ``n_given`` from these, for the covariance matrix."""

    def inverse_diagonal(self) -> FloatArray:
        """Compute the diagonal (n,) of the inverse; the factor may be lost."""

    def evidence_adjoint(self, alpha: FloatArray) -> FloatArray:
        """Compute the derivative of the log likelihood in the stored entries of the matrix.

        ``alpha`` (n,) is the solution for the targets. The factor may be lost.
        """
