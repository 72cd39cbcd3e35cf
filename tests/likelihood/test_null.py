"""The likelihood and the covariance of noise alone."""

import tracemalloc

import numpy as np
import pytest
from scipy.linalg import LinAlgError
from scipy.stats import norm

from autokernel.expression import NOISE
from autokernel.inference import (
    Covariance,
    ExactLikelihood,
    TrainingData,
    cross_covariance,
    diagonal_covariance,
)
from autokernel.inference.packed import DiagonalCholesky, PackedCholesky, pack
from autokernel.kernels import NOISE_VARIANCE
from tests.batteries import EPS

VARIANCE = 0.7
THETA = np.log([VARIANCE])
NO_PARAMS = np.empty(0)


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    return TrainingData(rng.uniform(size=(12, 2)), rng.normal(size=12))


def test_the_only_parameter_is_the_noise_variance(data):
    assert ExactLikelihood(NOISE, data).parameters == (NOISE_VARIANCE,)


def test_targets_are_independent_normal_numbers(data):
    likelihood = ExactLikelihood(NOISE, data)
    expected = norm.logpdf(data.y, scale=np.sqrt(VARIANCE))
    # sums of a dozen terms of size one: rounding
    assert likelihood.value(THETA) == pytest.approx(expected.sum(), rel=1e-14)
    np.testing.assert_allclose(likelihood.leave_one_out(THETA), expected, rtol=1e-14)
    for n_given in (0, 5, 11):
        found = likelihood.held_out(THETA, n_given)
        np.testing.assert_allclose(found, expected[n_given:], rtol=1e-14)


def test_the_gradient_is_that_of_the_log_variance(data):
    found = ExactLikelihood(NOISE, data).value_and_gradient(THETA)
    assert found.value == ExactLikelihood(NOISE, data).value(THETA)
    # derivative of -n/2 log s - y'y / (2 s) in log s
    expected = 0.5 * (data.y @ data.y / VARIANCE - len(data.y))
    np.testing.assert_allclose(found.gradient, [expected], rtol=1e-13)


@pytest.mark.parametrize("theta", [-800.0, 800.0, np.nan])
def test_a_variance_that_is_not_positive_and_finite_is_minus_infinity(data, theta):
    likelihood, theta = ExactLikelihood(NOISE, data), np.array([theta])
    with np.errstate(over="ignore"):
        found = likelihood.value_and_gradient(theta)
        values = [likelihood.value(theta), found.value, *likelihood.held_out(theta, 3)]
        values += likelihood.leave_one_out(theta).tolist()
    assert set(values) == {-np.inf}
    np.testing.assert_array_equal(found.gradient, [0.0])


def test_the_covariance_is_zero_in_every_storage(data):
    Z = np.random.default_rng(1).uniform(size=(5, 2))
    for covariance, shape in (
        (cross_covariance(NOISE, data.X, Z), (12, 5)),
        (diagonal_covariance(NOISE, data.X), (12,)),
        (Covariance(NOISE, data.pairs), (12 * 13 // 2,)),
    ):
        K = covariance.forward(NO_PARAMS)
        np.testing.assert_array_equal(K, np.zeros(shape))
        assert covariance.parameters == ()
        assert covariance.backward(np.ones(shape)).shape == (0,)


def test_nothing_of_size_n_by_n_is_allocated():
    n_samples = 20_000  # half an n x n matrix is 1.6 GB
    rng = np.random.default_rng(0)
    likelihood = ExactLikelihood(
        NOISE, TrainingData(rng.uniform(size=(n_samples, 1)), rng.normal(size=n_samples))
    )
    tracemalloc.start()
    try:
        likelihood.value_and_gradient(THETA)
        likelihood.leave_one_out(THETA)
        likelihood.held_out(THETA, n_samples // 2)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 50 * 8 * n_samples


def test_a_diagonal_matrix_gives_what_it_gives_in_packed_storage():
    rng = np.random.default_rng(2)
    variances, y, B = rng.uniform(0.1, 9, size=7), rng.normal(size=7), rng.normal(size=(7, 3))

    def packed():
        return PackedCholesky(pack(np.diag(variances)), 7)

    diagonal = DiagonalCholesky(variances.copy())
    same = {"rtol": 20 * EPS, "atol": 20 * EPS}
    np.testing.assert_allclose(diagonal.log_determinant(), packed().log_determinant(), **same)
    np.testing.assert_allclose(diagonal.solve(y), packed().solve(y), **same)
    np.testing.assert_allclose(diagonal.half_solve(B), packed().half_solve(B), **same)
    np.testing.assert_allclose(diagonal.inverse_diagonal(), packed().inverse_diagonal(), **same)
    predictions = diagonal.predict_later(y, 4), packed().predict_later(y, 4)
    for mine, theirs in zip(*predictions, strict=True):
        np.testing.assert_allclose(mine, theirs, **same)
    alpha = diagonal.solve(y)
    adjoint = packed().evidence_adjoint(alpha)
    np.testing.assert_allclose(
        np.sort(diagonal.evidence_adjoint(alpha)),
        np.sort(adjoint[np.flatnonzero(pack(np.eye(7)))]),  # packed storage has another order
        **same,
    )


@pytest.mark.parametrize("wrong", [0.0, -1.0, np.nan, np.inf])
def test_a_diagonal_that_is_not_positive_and_finite_is_refused(wrong):
    with pytest.raises(LinAlgError, match="not positive and finite"):
        DiagonalCholesky(np.array([1.0, wrong]))
