"""Packed matrices and their Cholesky factors, against those of numpy."""

import numpy as np
import pytest
from scipy.linalg import LinAlgError, solve_triangular

from autokernel.inference.packed import (
    PackedCholesky,
    factorise_with_jitter,
    pack,
    packed_diagonal,
    packed_gram,
    unpack,
)
from tests.batteries import EPS

# the packed form of even and of odd orders differs
every_order = pytest.mark.parametrize("n", [1, 2, 3, 8, 13, 30])


def positive_definite(n):
    """Eigenvalues between 1 and about 5, so that nothing below is ill conditioned."""
    factor = np.random.default_rng(n).standard_normal((n, n)) / np.sqrt(n)
    return factor @ factor.T + np.eye(n)


def packed_cholesky(K):
    return PackedCholesky(pack(K))


def lower(cholesky):
    return np.tril(unpack(cholesky.factor, cholesky.n))


def with_jitter(K):
    """Factorise with the smallest jitter that suffices, and return it."""
    return factorise_with_jitter(
        lambda jitter: pack(K + jitter * np.eye(len(K))), magnitude=float(np.mean(np.diag(K)))
    )


@every_order
def test_packed_storage(n):
    matrix = positive_definite(n)
    packed = pack(matrix)
    assert packed.shape == (n * (n + 1) // 2,)
    np.testing.assert_array_equal(unpack(packed, n), matrix)
    np.testing.assert_array_equal(pack(unpack(packed, n)), packed)
    np.testing.assert_array_equal(pack(matrix + np.triu(np.ones((n, n)), 1)), packed)  # lower only
    np.testing.assert_array_equal(packed_diagonal(n), np.flatnonzero(pack(np.eye(n))))
    for k in (1, 2, 3):
        features = np.random.default_rng(n).standard_normal((n, k))
        # sums of k terms of size up to 16
        gram = unpack(packed_gram(features), n)
        np.testing.assert_allclose(gram, features @ features.T, rtol=0, atol=16 * k * EPS)


@every_order
def test_a_packed_factor_computes_what_the_full_matrix_does(n):
    K, rng = positive_definite(n), np.random.default_rng(n)
    y, L = rng.standard_normal(n), np.linalg.cholesky(K)
    # backward error n EPS times a condition number of about 5
    same = {"rtol": 0, "atol": 20 * n * EPS}
    cholesky, given = packed_cholesky(K), y.copy()
    assert cholesky.log_determinant() == pytest.approx(np.linalg.slogdet(K)[1], abs=10 * n * EPS)
    np.testing.assert_allclose(lower(cholesky), L, **same)
    for _ in range(2):  # it can be repeated
        np.testing.assert_allclose(cholesky.solve(y), np.linalg.solve(K, y), **same)
    np.testing.assert_array_equal(y, given)
    for m, order in ((1, "C"), (2, "F"), (7, "C")):
        B = np.array(rng.standard_normal((n, m)), order=order)
        expected = solve_triangular(L, B, lower=True)
        np.testing.assert_allclose(cholesky.half_solve(B), expected, **same)
    inverse = np.linalg.inv(K)
    np.testing.assert_allclose(packed_cholesky(K).inverse_diagonal(), np.diag(inverse), **same)
    full = np.outer(y, y) - inverse
    expected = pack(full - 0.5 * np.diag(np.diag(full)))
    np.testing.assert_allclose(packed_cholesky(K).evidence_adjoint(y), expected, **same)


@pytest.mark.parametrize(
    ("matrix", "minor"),
    [
        (np.array([[-1.0]]), 1),
        (np.array([[1.0, 1.0], [1.0, 1.0]]), 2),
        (np.diag([1.0, 2.0, 0.0, 3.0]), 3),
        (np.diag([1.0, 2.0, 3.0, 4.0, -1e-9]), 5),
    ],
)
def test_a_matrix_that_is_not_positive_definite_is_refused(matrix, minor):
    with pytest.raises(LinAlgError, match=f"the leading minor of order {minor} is not positive"):
        packed_cholesky(matrix)


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize("decade", [-13, -7, 0])
def test_jitter_is_the_smallest_decade_of_the_mean_diagonal_that_suffices(scale, decade):
    # the lowest eigenvalue lies between two decades, and the mean of the diagonal is scale
    lowest = -0.5 * 10.0**decade
    K = scale * np.diag([1.0, 2.0 - lowest, lowest])
    assert with_jitter(K)[1] == pytest.approx(scale * 10.0**decade, rel=1e-12)
    assert with_jitter(scale * positive_definite(7))[1] == 0
    assert with_jitter(scale * np.diag([1.0, 1e-30]))[1] == 0
    with pytest.raises(LinAlgError, match="not positive definite, even with its mean added"):
        with_jitter(scale * np.array([[1.0, 3.0], [3.0, 1.0]]))


def test_a_matrix_that_is_not_finite_is_refused():
    for make in (packed_cholesky, with_jitter):
        with pytest.raises(LinAlgError, match=r"not (finite|positive definite)"):
            make(np.where(np.eye(3)[::-1] == 1, np.nan, np.eye(3)))
