from collections.abc import Callable

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
from autokernel.typing import FloatArray
from tests.batteries import EPS

# the packed form of even and of odd orders differs
every_order = pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 8, 13, 30, 31])


def symmetric(n: int) -> FloatArray:
    matrix = np.random.default_rng(n).standard_normal((n, n))
    return matrix + matrix.T


def positive_definite(n: int) -> FloatArray:
    """Eigenvalues between 1 and about 5, so that nothing below is ill conditioned."""
    factor = np.random.default_rng(n).standard_normal((n, n)) / np.sqrt(n)
    return factor @ factor.T + np.eye(n)


def with_jitter(K: FloatArray) -> tuple[PackedCholesky, float]:
    """Factorise with the smallest jitter that suffices, and say which."""

    def factorise(jitter: float) -> PackedCholesky:
        return PackedCholesky(pack(K + jitter * np.eye(len(K))), len(K))

    return factorise_with_jitter(factorise, scale=float(np.mean(np.diag(K))))


def smallest_jitter(K: FloatArray) -> float:
    return with_jitter(K)[1]


@every_order
def test_unpack_is_the_inverse_of_pack(n: int) -> None:
    matrix = symmetric(n)
    packed = pack(matrix)
    assert packed.shape == (n * (n + 1) // 2,)
    np.testing.assert_array_equal(unpack(packed, n), matrix)
    np.testing.assert_array_equal(pack(unpack(packed, n)), packed)


@every_order
def test_pack_reads_the_lower_triangle_only(n: int) -> None:
    matrix = symmetric(n)
    above = np.triu(np.ones((n, n)), 1)
    np.testing.assert_array_equal(pack(matrix + above), pack(matrix))


@every_order
def test_packed_diagonal_says_where_the_diagonal_stands(n: int) -> None:
    matrix = symmetric(n)
    np.testing.assert_array_equal(
        np.sort(pack(matrix)[packed_diagonal(n)]), np.sort(np.diag(matrix))
    )
    assert len(packed_diagonal(n)) == n


@pytest.mark.parametrize("n", range(1, 13))
def test_packed_diagonal_is_where_the_identity_has_its_ones(n: int) -> None:
    np.testing.assert_array_equal(packed_diagonal(n), np.flatnonzero(pack(np.eye(n))))


@every_order
@pytest.mark.parametrize("k", [1, 2, 3])
def test_packed_gram_is_the_gram_matrix(n: int, k: int) -> None:
    features = np.random.default_rng(n).standard_normal((n, k))
    # sums of k terms of size up to 16
    np.testing.assert_allclose(
        unpack(packed_gram(features), n), features @ features.T, rtol=0, atol=16 * k * EPS
    )


@every_order
def test_log_determinant_equals_that_of_the_full_matrix(n: int) -> None:
    K = positive_definite(n)
    sign, expected = np.linalg.slogdet(K)
    assert sign == 1
    # n logs of numbers of size 1
    assert PackedCholesky(pack(K), n).log_determinant() == pytest.approx(expected, abs=10 * n * EPS)


@every_order
def test_solve_equals_that_of_the_full_matrix(n: int) -> None:
    K, y = positive_definite(n), np.random.default_rng(n).standard_normal(n)
    # backward error n EPS times a condition number of about 5
    np.testing.assert_allclose(
        PackedCholesky(pack(K), n).solve(y), np.linalg.solve(K, y), rtol=0, atol=20 * n * EPS
    )


def test_solve_leaves_the_right_hand_side_and_can_be_repeated() -> None:
    cholesky, y = PackedCholesky(pack(positive_definite(6)), 6), np.arange(6.0)
    first = cholesky.solve(y)
    np.testing.assert_array_equal(y, np.arange(6.0))
    np.testing.assert_array_equal(cholesky.solve(y), first)


@every_order
def test_evidence_adjoint_is_the_derivative_in_the_lower_triangle(n: int) -> None:
    K, alpha = positive_definite(n), np.random.default_rng(n).standard_normal(n)
    full = np.outer(alpha, alpha) - np.linalg.inv(K)
    expected = pack(full - 0.5 * np.diag(np.diag(full)))
    np.testing.assert_allclose(
        PackedCholesky(pack(K), n).evidence_adjoint(alpha), expected, rtol=0, atol=20 * n * EPS
    )


@pytest.mark.parametrize(
    ("matrix", "minor"),
    [
        (np.array([[-1.0]]), 1),
        (np.array([[1.0, 1.0], [1.0, 1.0]]), 2),
        (np.diag([1.0, 2.0, 0.0, 3.0]), 3),
        (np.diag([1.0, 2.0, 3.0, 4.0, -1e-9]), 5),
    ],
)
def test_a_matrix_that_is_not_positive_definite_is_refused(matrix: FloatArray, minor: int) -> None:
    with pytest.raises(LinAlgError, match=f"the leading minor of order {minor} is not positive"):
        PackedCholesky(pack(matrix), len(matrix))


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_no_jitter_is_added_where_none_is_needed(scale: float) -> None:
    assert smallest_jitter(scale * positive_definite(7)) == 0
    assert smallest_jitter(scale * np.diag([1.0, 1e-30])) == 0


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize("decade", range(-13, 1))
def test_jitter_is_the_smallest_decade_of_the_mean_diagonal_that_suffices(
    scale: float, decade: int
) -> None:
    # the lowest eigenvalue lies between two decades, and the mean of the diagonal is scale
    lowest = -0.5 * 10.0**decade
    K = scale * np.diag([1.0, 2.0 - lowest, lowest])
    assert smallest_jitter(K) == pytest.approx(scale * 10.0**decade, rel=1e-12)


def test_jitter_makes_a_singular_covariance_factorise() -> None:
    X = np.linspace(0, 1, 40)
    K = np.exp(-((X[:, None] - X) ** 2))
    with pytest.raises(LinAlgError):
        np.linalg.cholesky(K)
    cholesky, jitter = with_jitter(K)
    assert 0 < jitter <= 1e-12  # rounding makes the lowest eigenvalue about -40 EPS
    L = cholesky.lower()
    # the backward error, 40 EPS of each entry of at most 1
    np.testing.assert_allclose(L @ L.T, K + jitter * np.eye(40), rtol=0, atol=40 * EPS)
    np.linalg.cholesky(K + jitter * np.eye(40))


def test_a_matrix_far_from_positive_definite_is_refused() -> None:
    with pytest.raises(LinAlgError, match="not positive definite, even with its mean added"):
        smallest_jitter(np.array([[1.0, 3.0], [3.0, 1.0]]))


def test_the_search_of_the_jitter_leaves_the_matrix_as_it_is() -> None:
    K = np.ones((3, 3))
    assert smallest_jitter(K) > 0
    np.testing.assert_array_equal(K, np.ones((3, 3)))


def test_jitter_is_tried_from_none_by_decades_to_the_mean_of_the_diagonal() -> None:
    tried = []

    def refuse(jitter: float) -> PackedCholesky:
        tried.append(jitter)
        raise LinAlgError

    with pytest.raises(LinAlgError, match="even with its mean added"):
        factorise_with_jitter(refuse, scale=3.0)
    np.testing.assert_allclose(tried, [0.0, *3.0 * 10.0 ** np.arange(-14, 1)], rtol=1e-15)


def test_an_error_that_is_not_of_the_matrix_ends_the_search_of_the_jitter() -> None:
    def interrupted(jitter: float) -> PackedCholesky:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        factorise_with_jitter(interrupted, scale=1.0)


def test_a_matrix_that_is_not_finite_is_refused() -> None:
    K = np.eye(3)
    K[2, 1] = K[1, 2] = np.nan
    with pytest.raises(LinAlgError, match="not finite"):
        PackedCholesky(pack(K), 3)
    with pytest.raises(LinAlgError, match="not positive definite"):
        smallest_jitter(K)


@every_order
def test_lower_is_the_cholesky_factor(n: int) -> None:
    K = positive_definite(n)
    np.testing.assert_allclose(
        PackedCholesky(pack(K), n).lower(), np.linalg.cholesky(K), rtol=0, atol=20 * n * EPS
    )


@every_order
def test_inverse_diagonal_is_that_of_the_inverse_in_its_order(n: int) -> None:
    K = positive_definite(n)
    np.testing.assert_allclose(
        PackedCholesky(pack(K), n).inverse_diagonal(),
        np.diag(np.linalg.inv(K)),
        rtol=0,
        atol=20 * n * EPS,
    )


@pytest.mark.parametrize("n", range(1, 13))
def test_inverse_diagonal_runs_from_the_first_row_to_the_last(n: int) -> None:
    diagonal = np.arange(1.0, n + 1)
    # a square root and two divisions
    np.testing.assert_allclose(
        PackedCholesky(pack(np.diag(diagonal)), n).inverse_diagonal(), 1 / diagonal, rtol=4 * EPS
    )


@every_order
@pytest.mark.parametrize("m", [1, 2, 7])
@pytest.mark.parametrize("order", ["C", "F"])
def test_half_solve_equals_that_with_the_full_factor(n: int, m: int, order: str) -> None:
    K = positive_definite(n)
    B = np.array(np.random.default_rng(n + m).standard_normal((n, m)), order=order)
    given = B.copy()
    cholesky = PackedCholesky(pack(K), n)
    expected = solve_triangular(np.linalg.cholesky(K), B, lower=True)
    # backward error n EPS times a condition number of about 3
    np.testing.assert_allclose(cholesky.half_solve(B), expected, rtol=0, atol=20 * n * EPS)
    np.testing.assert_array_equal(B, given)


OVERWRITE = {
    "evidence_adjoint": lambda cholesky, y: cholesky.evidence_adjoint(y),
    "inverse_diagonal": lambda cholesky, y: cholesky.inverse_diagonal(),
}
NEED_THE_FACTOR = {
    "solve": lambda cholesky, y: cholesky.solve(y),
    "lower": lambda cholesky, y: cholesky.lower(),
    "half_solve": lambda cholesky, y: cholesky.half_solve(y[:, None]),
    "factor": lambda cholesky, y: cholesky.factor,
    **OVERWRITE,
}


@pytest.mark.parametrize("refused", NEED_THE_FACTOR.values(), ids=NEED_THE_FACTOR)
@pytest.mark.parametrize("overwrite", OVERWRITE.values(), ids=OVERWRITE)
def test_nothing_is_computed_from_a_factor_that_the_inverse_has_overwritten(
    overwrite: Callable[[PackedCholesky, FloatArray], object],
    refused: Callable[[PackedCholesky, FloatArray], object],
) -> None:
    y = np.ones(5)
    cholesky = PackedCholesky(pack(positive_definite(5)), 5)
    refused(PackedCholesky(pack(positive_definite(5)), 5), y)  # it is there at first
    log_determinant = cholesky.log_determinant()
    overwrite(cholesky, y)
    for _ in range(2):
        with pytest.raises(RuntimeError, match="the inverse has overwritten the factor"):
            refused(cholesky, y)
    assert cholesky.log_determinant() == log_determinant
