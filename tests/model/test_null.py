"""Predictions with noise alone, and its export."""

import tracemalloc

import numpy as np
import pytest
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import WhiteKernel

from autokernel import evaluate_kernel
from autokernel.data.scaling import TargetScaling, unit_scaling
from autokernel.expression import NOISE
from autokernel.inference import TrainingData
from autokernel.inference.exact import ExactPredictor
from autokernel.model import to_sklearn

VARIANCE = 0.4
THETA = np.log([VARIANCE])
FACTOR = {"rtol": 1e-14}  # exponentials of logs are rounded


def draw(n_samples):
    rng = np.random.default_rng(0)
    return rng.uniform(5, 9, size=(n_samples, 2)), 3e4 * rng.normal(size=n_samples) - 1e6


@pytest.fixture
def predictor():
    X, y = draw(20)
    return ExactPredictor(NOISE, THETA, TrainingData(X, TargetScaling.of(y).apply(y)))


def test_predictions_are_those_of_the_noise_wherever_they_are_made(predictor):
    X, _ = draw(20)
    X_new = np.concatenate([X[:3], X[:2] + 1])
    mean, variance = predictor.mean_and_variance(X_new)
    np.testing.assert_array_equal(mean, np.zeros(5))
    np.testing.assert_array_equal(predictor.mean(X_new), np.zeros(5))
    np.testing.assert_allclose(variance, np.full(5, VARIANCE), **FACTOR)
    mean, covariance = predictor.mean_and_covariance(X_new)
    np.testing.assert_array_equal(mean, np.zeros(5))
    np.testing.assert_allclose(covariance, VARIANCE * np.eye(5), **FACTOR)
    assert predictor.noise_variance == pytest.approx(VARIANCE, rel=1e-14)
    assert predictor.jitter == 0


def test_samples_are_independent_draws_of_the_noise(predictor):
    n_draws = 20_000
    samples = predictor.samples(draw(3)[0], n_draws, np.random.RandomState(0))
    # five standard errors of a variance, 2 s^2 / n, and of a covariance, s^2 / n
    limit = 5 * VARIANCE * np.sqrt(2 / n_draws)
    np.testing.assert_allclose(np.cov(samples), VARIANCE * np.eye(3), atol=limit)


def test_a_predictor_of_many_rows_holds_nothing_of_size_n_by_n():
    n_samples = 20_000  # half an n x n matrix is 1.6 GB
    rng = np.random.default_rng(0)
    data = TrainingData(rng.uniform(size=(n_samples, 1)), rng.normal(size=n_samples))
    tracemalloc.start()
    try:
        predictor = ExactPredictor(NOISE, THETA, data)
        predictor.mean_and_variance(data.X[:50])
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 50 * 8 * n_samples


def test_the_exported_kernel_is_a_white_kernel_with_the_jitter():
    scaling = unit_scaling(draw(5)[0])
    kernel = to_sklearn(NOISE, THETA, scaling=scaling)
    assert type(kernel) is WhiteKernel
    assert kernel.noise_level == pytest.approx(VARIANCE, rel=1e-14)
    low, high = kernel.noise_level_bounds
    assert low < VARIANCE < high
    with_jitter = to_sklearn(NOISE, THETA, scaling=scaling, noise_variance=np.exp(THETA[-1]) + 0.25)
    assert with_jitter.noise_level == pytest.approx(VARIANCE + 0.25, rel=1e-14)


def test_the_exported_kernel_predicts_what_the_predictor_does():
    X, y = draw(20)
    scaling, target = unit_scaling(X), TargetScaling.of(y)
    data = TrainingData(scaling.apply(X), target.apply(y))
    theta = evaluate_kernel(NOISE, data.X, data.y).theta
    predictor = ExactPredictor(NOISE, theta, data)
    kernel = to_sklearn(NOISE, theta, scaling=scaling, noise_variance=predictor.noise_variance)
    gpr = GaussianProcessRegressor(kernel=kernel, optimizer=None, normalize_y=True, alpha=0)
    X_new = np.concatenate([X[:3], X[:2] + 1])
    mean, std = gpr.fit(X, y).predict(X_new, return_std=True)
    np.testing.assert_allclose(mean, np.full(5, y.mean()), **FACTOR)
    found_mean, variance = predictor.mean_and_variance(scaling.apply(X_new))
    np.testing.assert_allclose(target.undo(found_mean), mean, **FACTOR)
    np.testing.assert_allclose(target.scale * np.sqrt(variance), std, rtol=1e-12)  # some products
    _, covariance = gpr.predict(X_new, return_cov=True)
    found_covariance = target.scale**2 * predictor.mean_and_covariance(scaling.apply(X_new))[1]
    np.testing.assert_allclose(found_covariance, covariance, rtol=1e-12)
    # nothing is explained, so what is left is nearly all of the variance of the target
    assert std[0] == pytest.approx(y.std(), rel=0.2)
