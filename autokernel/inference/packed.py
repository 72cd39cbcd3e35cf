"""Symmetric matrices in rectangular full packed form, and their Cholesky factors."""

from collections.abc import Callable
from copy import copy
from functools import lru_cache
from math import isqrt

import numpy as np
from scipy.linalg import LinAlgError
from scipy.linalg.lapack import dpftrf, dpftri, dpftrs, dsfrk, dtfsm, dtfttr, dtrttf

from autokernel.typing import FloatArray, IntArray


@lru_cache(maxsize=16)
def packed_diagonal(n: int) -> IntArray:
    """Return the indices (n,) of the diagonal in packed matrices of order ``n``, ascending."""
    return np.sort(diagonal_by_row(n))


@lru_cache(maxsize=16)
def diagonal_by_row(n: int) -> IntArray:
    """Return the indices (n,) of the diagonal entries from the first row to the last.

    The packed form is a matrix stored column by column. It holds the first half of the columns of
    the lower triangle. The corner above them holds the triangle of the second half, transposed.
    """
    n_first = (n + 1) // 2
    is_odd = n % 2
    n_rows = n + 1 - is_odd  # rows of the packed matrix
    first, second = np.arange(n_first), np.arange(n - n_first)
    of_second = (second + is_odd) * n_rows + second
    return np.concatenate([first * n_rows + first + 1 - is_odd, of_second])


def pack(matrix: FloatArray) -> FloatArray:
    """Store the lower triangle of a square matrix in packed form."""
    return dtrttf(np.asfortranarray(matrix), uplo="L")[0]


def unpack(packed: FloatArray, n: int) -> FloatArray:
    """Restore the full symmetric matrix of order ``n``."""
    lower = np.tril(dtfttr(n, packed, uplo="L")[0])
    return lower + np.tril(lower, -1).T


def packed_gram(features: FloatArray) -> FloatArray:
    """Compute ``F F^T`` in packed form, for features ``F`` of shape (n, k)."""
    n, k = features.shape
    return dsfrk(n, k, 1.0, features, 0.0, np.empty(n * (n + 1) // 2), uplo="L", overwrite_c=1)


class PackedCholesky:
    """Cholesky factor of a packed positive definite matrix, which is overwritten. O(n^3 / 3).

    Methods that need the inverse of the matrix overwrite the factor with it. The object then has
    no factor, and later calls that need it raise an error. A ``LinAlgError`` is raised if the
    matrix is not positive definite to machine precision.
    """

    def __init__(self, packed: FloatArray) -> None:
        self.n = isqrt(2 * len(packed))
        self.factor, info = dpftrf(self.n, packed, uplo="L", overwrite_a=1)
        if info != 0:
            raise LinAlgError(f"the leading minor of order {info} is not positive definite")
        diagonal = self.factor[packed_diagonal(self.n)]
        if not np.isfinite(diagonal).all():  # LAPACK does not report NaN
            raise LinAlgError("the matrix has entries that are not finite")

    def extended(self, cross: FloatArray, corner: FloatArray) -> "PackedCholesky":
        """Return the factor of the matrix with m more rows and columns. O(n^2 m).

        They are ``cross`` (n, m) above ``corner`` (m, m). A ``LinAlgError`` is raised if the larger
        matrix is not positive definite to machine precision.
        """
        n, m = cross.shape
        V = self.half_solve(cross.copy())
        block = PackedCholesky(pack(corner - V.T @ V))  # of the Schur complement
        L = np.zeros((n + m, n + m), order="F")
        L[:n, :n] = dtfttr(n, self.factor, uplo="L")[0]
        L[n:, :n] = V.T
        L[n:, n:] = dtfttr(m, block.factor, uplo="L")[0]
        other = copy(self)
        other.n, other.factor = n + m, pack(L)
        return other

    def log_determinant(self) -> float:
        return float(2.0 * np.log(self.factor[packed_diagonal(self.n)]).sum())

    def solve(self, y: FloatArray) -> FloatArray:
        """Solve for one right-hand side (n,). O(n^2)."""
        return dpftrs(self.n, self.factor, y[:, None], uplo="L")[0][:, 0]

    def half_solve(self, B: FloatArray) -> FloatArray:
        """Compute ``L^-1 B`` for right-hand sides (n, m), in their place if possible. O(n^2 m)."""
        return dtfsm(1.0, self.factor, np.asfortranarray(B), uplo="L", overwrite_b=1)

    def inverse_diagonal(self) -> FloatArray:
        """Compute the diagonal (n,) of the inverse and overwrite the factor. O(2 n^3 / 3)."""
        return self._invert()[diagonal_by_row(self.n)]

    def inverse(self) -> FloatArray:
        """Compute the inverse (n, n) and overwrite the factor. O(2 n^3 / 3)."""
        return unpack(self._invert(), self.n)

    def evidence_adjoint(self, alpha: FloatArray) -> FloatArray:
        """Compute ``alpha alpha^T - K^-1``, packed, with its diagonal halved; overwrite the factor.

        This is the derivative of the log likelihood with respect to the entries of the lower
        triangle: the factor one half of R&W eq. 5.9, once for each of the two symmetric entries.
        O(2 n^3 / 3).
        """
        inverse = self._invert()
        adjoint = dsfrk(self.n, 1, 1.0, alpha[:, None], -1.0, inverse, uplo="L", overwrite_c=1)
        adjoint[packed_diagonal(self.n)] *= 0.5
        return adjoint

    def _invert(self) -> FloatArray:
        """Overwrite the factor with the packed inverse and return it."""
        inverse = dpftri(self.n, self.factor, uplo="L", overwrite_a=1)[0]
        del self.factor
        return inverse


class DiagonalCholesky:
    """Cholesky factor of a diagonal matrix, with what a likelihood needs of a factor. O(n)."""

    def __init__(self, variances: FloatArray) -> None:
        if not np.all((variances > 0) & np.isfinite(variances)):
            raise LinAlgError("the diagonal has entries that are not positive and finite")
        self._variances = variances

    def log_determinant(self) -> float:
        return float(np.log(self._variances).sum())

    def solve(self, y: FloatArray) -> FloatArray:
        return y / self._variances

    def inverse_diagonal(self) -> FloatArray:
        return 1 / self._variances

    def inverse(self) -> FloatArray:
        return np.diag(1 / self._variances)

    def evidence_adjoint(self, alpha: FloatArray) -> FloatArray:
        """Compute the diagonal (n,) of ``alpha alpha^T - K^-1``, halved (R&W eq. 5.9)."""
        return 0.5 * (alpha**2 - 1 / self._variances)


Cholesky = PackedCholesky | DiagonalCholesky


def factorise_with_jitter(
    matrix: Callable[[float], FloatArray], *, magnitude: float
) -> tuple[PackedCholesky, float]:
    """Factorise without jitter, or else with the smallest decade of jitter that suffices.

    ``matrix`` computes the packed matrix with a given jitter added to its diagonal. The largest
    jitter that is tried is the ``magnitude``, the mean of the diagonal. A ``LinAlgError`` is raised
    if even that does not suffice.
    """
    if not np.isfinite(magnitude):
        raise LinAlgError("K has entries that are not finite")
    for jitter in (0.0, *(magnitude * 10.0**k for k in range(-14, 1))):
        try:
            return PackedCholesky(matrix(jitter)), jitter
        except LinAlgError:
            continue
    raise LinAlgError("K is not positive definite, even with its mean added to its diagonal")
