"""Predictions from neighbours and from inducing points, against the exact ones."""

import numpy as np
import pytest

from autokernel.expression import parse_expression
from autokernel.inference import TrainingData, neighbours
from autokernel.inference import inducing as inducing_module
from autokernel.inference.exact import ExactPredictor
from autokernel.inference.inducing import InducingPredictor
from autokernel.inference.neighbours import NeighbourPredictor

EXPRESSION = parse_expression("SE[0] * SE[1] + LIN[0]")
THETA = np.log([0.3, 1.0, 0.4, 1.0, 0.5, 0.3, 0.05])


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(300, 2))
    return TrainingData(X, np.sin(6 * X[:, 0]) + X[:, 1] + 0.2 * rng.normal(size=300))


@pytest.fixture(scope="module")
def new():
    return np.random.default_rng(1).uniform(size=(40, 2))


@pytest.fixture(scope="module")
def exact(data):
    return ExactPredictor(EXPRESSION, THETA, data)


@pytest.mark.parametrize(
    "make",
    [
        lambda data: NeighbourPredictor(EXPRESSION, THETA, data, n_neighbours=300),
        lambda data: InducingPredictor(EXPRESSION, THETA, data, n_inducing=300),
    ],
    ids=["neighbours", "inducing"],
)
def test_with_all_rows_predictions_are_exact(make, data, new, exact, monkeypatch):
    monkeypatch.setattr(neighbours, "_MOST_JOINT", 10**6)
    found = make(data)
    # inducing points stop once less than 1e-6 of the noise variance is left to explain
    np.testing.assert_allclose(found.mean(new), exact.mean(new), atol=1e-5)
    for one, other in zip(found.mean_and_variance(new), exact.mean_and_variance(new), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-5)
    mean, covariance = found.mean_and_covariance(new)
    np.testing.assert_allclose(mean, exact.mean(new), atol=1e-5)
    np.testing.assert_allclose(covariance, exact.mean_and_covariance(new)[1], atol=1e-5)
    assert found.noise_variance == pytest.approx(0.05)


def test_few_neighbours_are_nearly_exact_and_their_deviations_larger(data, new, exact):
    found = NeighbourPredictor(EXPRESSION, THETA, data, n_neighbours=40)
    mean, variance = found.mean_and_variance(new)
    exact_mean, exact_variance = exact.mean_and_variance(new)
    assert np.sqrt(np.mean((mean - exact_mean) ** 2)) < 0.1
    assert np.all(variance > exact_variance * (1 - 1e-9))  # less is known
    assert np.median(variance / exact_variance) < 1.1


def test_few_inducing_points_are_nearly_exact(data, new, exact):
    found = InducingPredictor(EXPRESSION, THETA, data, n_inducing=30)
    mean, variance = found.mean_and_variance(new)
    exact_mean, exact_variance = exact.mean_and_variance(new)
    assert np.sqrt(np.mean((mean - exact_mean) ** 2)) < 0.03
    np.testing.assert_allclose(variance, exact_variance, rtol=0.02)


@pytest.mark.parametrize("module", [neighbours, inducing_module], ids=["neighbours", "inducing"])
def test_blocks_of_rows_change_nothing(module, data, new, monkeypatch):
    def predict():
        if module is neighbours:
            predictor = NeighbourPredictor(EXPRESSION, THETA, data, n_neighbours=20)
        else:
            predictor = InducingPredictor(EXPRESSION, THETA, data, n_inducing=20)
        return predictor.mean_and_variance(new)

    whole = predict()
    monkeypatch.setattr(module, "_AT_ONCE" if module is inducing_module else "BLOCK_PAIRS", 500)
    for one, other in zip(predict(), whole, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9)


def test_samples_have_the_moments_of_the_predictions(data, new):
    found = NeighbourPredictor(EXPRESSION, THETA, data, n_neighbours=300)
    draws = found.samples(new, 4000, np.random.RandomState(0))
    mean, variance = found.mean_and_variance(new)
    error = np.sqrt(variance / 4000)
    assert np.max(np.abs(draws.mean(axis=1) - mean) / error) < 4.5  # of forty
    np.testing.assert_allclose(draws.var(axis=1), variance, rtol=5 * np.sqrt(2 / 4000))


def test_many_new_rows_share_fewer_neighbours_in_a_joint_distribution(data, monkeypatch):
    monkeypatch.setattr(neighbours, "_MOST_JOINT", 60)
    rows = np.random.default_rng(2).uniform(size=(50, 2))
    found = NeighbourPredictor(EXPRESSION, THETA, data, n_neighbours=40)
    mean, covariance = found.mean_and_covariance(rows)
    assert np.linalg.eigvalsh(covariance)[0] > 0
    assert np.sqrt(np.mean((mean - found.mean(rows)) ** 2)) < 0.3
