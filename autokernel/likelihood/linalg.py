"""Symmetric matrices in LAPACK's rectangular full packed form, and the one place with jitter.

The form (Gustavson et al., 2010, ACM TOMS 37(2)) keeps the lower triangle in ``n (n + 1) / 2``
numbers, so that elementwise work is halved, and factorises at level-3 speed. The order of the
entries matters only here; everything else is elementwise.
"""

from functools import lru_cache

import numpy as np
from scipy.linalg import LinAlgError, cholesky
from scipy.linalg.lapack import dpftrf, dpftri, dpftrs, dsfrk, dtfttr, dtrttf

from autokernel.typing import FloatArray, IntArray


@lru_cache(maxsize=16)
def packed_diagonal(n: int) -> IntArray:
    """Positions (n,) of the diagonal entries in packed matrices of order ``n``, unordered."""
    return np.flatnonzero(pack(np.eye(n)))


def pack(matrix: FloatArray) -> FloatArray:
    """Keep the lower triangle of a square matrix in packed form."""
    return dtrttf(np.asfortranarray(matrix), uplo="L")[0]


def unpack(packed: FloatArray, n: int) -> FloatArray:
    """Restore the full symmetric matrix of order ``n``."""
    lower = np.tril(dtfttr(n, packed, uplo="L")[0])
    return lower + np.tril(lower, -1).T


def packed_gram(features: FloatArray) -> FloatArray:
    """Packed ``F F^T`` for features of shape (n, k)."""
    n, k = features.shape
    out = np.empty(n * (n + 1) // 2)
    return dsfrk(n, k, 1.0, features, 0.0, out, uplo="L", overwrite_c=1)


class PackedCholesky:
    """Cholesky factor of a packed positive definite matrix, which is overwritten. O(n^3 / 3).

    Raises
    ------
    scipy.linalg.LinAlgError
        If the matrix is not positive definite to machine precision.
    """

    def __init__(self, packed: FloatArray, n: int) -> None:
        self.n = n
        self.factor, info = dpftrf(n, packed, uplo="L", overwrite_a=1)
        self._diagonal = self.factor[packed_diagonal(n)]
        if info != 0:
            raise LinAlgError(f"the leading minor of order {info} is not positive definite")
        if not np.isfinite(self._diagonal).all():  # LAPACK lets NaN pass
            raise LinAlgError("the matrix has entries that are not finite")

    def log_determinant(self) -> float:
        """Log determinant of the matrix."""
        return float(2.0 * np.log(self._diagonal).sum())

    def solve(self, y: FloatArray) -> FloatArray:
        """Solve for one right-hand side (n,). O(n^2)."""
        return dpftrs(self.n, self.factor, y[:, None], uplo="L")[0][:, 0]

    def lower(self) -> FloatArray:
        """Full triangular factor (n, n)."""
        return np.tril(dtfttr(self.n, self.factor, uplo="L")[0])

    def inverse_diagonal(self) -> FloatArray:
        """Diagonal (n,) of the inverse of the matrix; overwrites the factor. O(2 n^3 / 3)."""
        inverse, _ = dpftri(self.n, self.factor, uplo="L", overwrite_a=1)
        return np.diag(dtfttr(self.n, inverse, uplo="L")[0]).copy()

    def evidence_adjoint(self, alpha: FloatArray) -> FloatArray:
        """Packed ``alpha alpha^T - K^-1`` with half its diagonal; overwrites the factor.

        This is the derivative of the log likelihood in the entries of the lower triangle: half of
        R&W eq. 5.9 for each of the two symmetric entries. O(2 n^3 / 3).
        """
        inverse, _ = dpftri(self.n, self.factor, uplo="L", overwrite_a=1)
        adjoint = dsfrk(self.n, 1, 1.0, alpha[:, None], -1.0, inverse, uplo="L", overwrite_c=1)
        adjoint[packed_diagonal(self.n)] *= 0.5
        return adjoint


def smallest_jitter(K: FloatArray) -> float:
    """Smallest decade to add to the diagonal of ``K`` so that it factorises, 0 if none is needed.

    Raises
    ------
    scipy.linalg.LinAlgError
        If ``K`` is not finite, or even the mean of the diagonal does not suffice.
    """
    if not np.isfinite(K).all():
        raise LinAlgError("K has entries that are not finite")
    scale = float(np.mean(np.diag(K)))
    for jitter in (0.0, *(scale * 10.0**k for k in range(-14, 1))):
        try:
            cholesky(K + jitter * np.eye(len(K)), lower=True, check_finite=False)
        except LinAlgError:
            continue
        return jitter
    raise LinAlgError("K is not positive definite, even with its mean added to its diagonal")
