"""Exact predictions."""

import pickle

import numpy as np
import pytest
from scipy.linalg import LinAlgError

from autokernel import BaseKernel, parse_expression
from autokernel.expression import Leaf
from autokernel.inference import ExactLikelihood, TrainingData, exact
from autokernel.inference.exact import ExactPredictor
from autokernel.kernels import BASE_KERNELS, VARIANCE
from tests.model.cases import dense_predictions, random_case

SEEDS = range(12)


def new_rows(n_rows, *, n_features, seed=100):
    """Inputs within the training data and around them."""
    return np.random.default_rng(seed).uniform(-0.2, 1.2, size=(n_rows, n_features))


def random_predictor(seed, *, n_features):
    """A predictor of a random expression, and what it has to predict at some new rows."""
    expression, theta, X, y, _ = random_case(seed, n_features=n_features)
    X_new = new_rows(9, n_features=n_features)
    predictor = ExactPredictor(expression, theta, TrainingData(X, y))
    return predictor, X_new, *dense_predictions(expression, theta, X, y, X_new)


@pytest.mark.parametrize("n_features", [1, 3])
@pytest.mark.parametrize("seed", SEEDS)
def test_predictions_are_those_of_the_textbook(seed, n_features):
    predictor, X_new, mean, covariance = random_predictor(seed, n_features=n_features)
    assert predictor.jitter == 0
    variance = np.diag(covariance)
    # rounding times the condition number, which is below 1e6 here: noise is 0.01 or more; on the
    # scale of the target, which is 1, and of the deviations
    np.testing.assert_allclose(predictor.mean(X_new), mean, rtol=1e-9, atol=1e-9)
    for found in (predictor.mean_and_variance(X_new), predictor.mean_and_covariance(X_new)):
        np.testing.assert_allclose(found[0], mean, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(predictor.mean_and_variance(X_new)[1], variance, rtol=1e-9)
    found = predictor.mean_and_covariance(X_new)[1]
    error = np.abs(found - covariance) / np.sqrt(np.outer(variance, variance))
    assert error.max() < 1e-9


@pytest.mark.parametrize("seed", SEEDS)
def test_noise_is_counted_once_on_the_diagonal_alone(seed):
    expression, theta, X, y, _ = random_case(seed, n_features=2)
    predictor = ExactPredictor(expression, theta, TrainingData(X, y))
    assert predictor.noise_variance == np.exp(theta[-1])
    twice = np.repeat(new_rows(1, n_features=2), 2, axis=0)
    _, covariance = predictor.mean_and_covariance(twice)
    between = covariance[0, 0] - covariance[0, 1]  # two observations at one place
    assert between == pytest.approx(predictor.noise_variance, rel=1e-9)


@pytest.mark.parametrize("size", [1, 30, 101, 10**9])
def test_blocks_do_not_matter(size, monkeypatch):
    monkeypatch.setattr(exact, "_BLOCK", size)
    predictor, X_new, mean, covariance = random_predictor(5, n_features=2)
    # a product of other shapes is summed in another order
    np.testing.assert_allclose(predictor.mean(X_new), mean, rtol=1e-9, atol=1e-9)
    found_mean, found_variance = predictor.mean_and_variance(X_new)
    np.testing.assert_allclose(found_mean, mean, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(found_variance, np.diag(covariance), rtol=1e-9)
    n_blocks = len(list(predictor._blocks(X_new)))
    assert n_blocks == {1: 9, 30: 9, 101: 3, 10**9: 1}[size]  # of 25 training rows each


def test_a_variance_is_never_below_the_noise():
    # with 1e-10 of noise, what the data explain is the prior variance but for rounding
    expression = parse_expression("SE[0]")
    theta = np.log([0.9, 1e6, 1e-4])
    X = np.linspace(0, 1, 40)[:, None]
    predictor = ExactPredictor(expression, theta, TrainingData(X, np.sin(6 * X[:, 0])))
    assert predictor.mean_and_variance(X)[1].min() >= predictor.noise_variance


def large_predictor(n_samples, *, text="LIN[0] * PER[0] + SE[1]"):
    """A predictor on many rows."""
    rng = np.random.default_rng(0)
    X, y = rng.uniform(size=(n_samples, 2)), rng.normal(size=n_samples)
    theta = np.log([1.0, 0.5, 0.5, 1.0, 0.25, 0.3, 1.0, 0.1])
    return ExactPredictor(parse_expression(text), theta, TrainingData(X, y))


def test_a_pickle_holds_no_full_matrix_and_predicts_the_same():
    n_samples = 300
    predictor = large_predictor(n_samples)
    X_new = new_rows(20, n_features=2)
    before = predictor.mean_and_variance(X_new)
    for _ in range(2):  # also after it has predicted
        kept = pickle.dumps(predictor)
        assert len(kept) < 0.6 * n_samples**2 * 8
        twin = pickle.loads(kept)
        assert twin.noise_variance == predictor.noise_variance
        np.testing.assert_array_equal(twin.mean_and_variance(X_new), before)
        np.testing.assert_array_equal(
            twin.mean_and_covariance(X_new)[1], predictor.mean_and_covariance(X_new)[1]
        )


class SlightlyIndefinite(BaseKernel):
    """No covariance but for rounding: all eigenvalues but one are -3e-9."""

    name = "ODD"
    parameters = (VARIANCE,)

    def value(self, params, pairs):
        return params[0] * np.where(pairs.difference == 0, 1.0, 1 + 3e-9)


@pytest.mark.parametrize(
    ("kernel", "params", "smallest"),
    [
        (SlightlyIndefinite(), [2.0], 1e-8),
        (BASE_KERNELS["SE"], [0.5, 2.0], 1e-14),
    ],
    ids=["slightly indefinite", "rank ten"],
)
def test_jitter_that_a_factorisation_needs_is_counted_in_the_noise(kernel, params, smallest):
    expression, theta = Leaf(kernel, 0), np.log([*params, 1e-30])
    X = np.linspace(0, 1, 10)[:, None]
    if kernel.name == "SE":
        X = np.repeat(X, 3, axis=0)
    y = np.sin(6 * X[:, 0])
    likelihood = ExactLikelihood(expression, TrainingData(X, y))
    scale = likelihood.mean_variance(theta)
    for jitter in (0.0, *(scale * 10.0**k for k in range(-14, round(np.log10(smallest))))):
        with pytest.raises(LinAlgError):
            likelihood.factorise(theta, jitter=jitter)
    predictor = ExactPredictor(expression, theta, TrainingData(X, y))
    assert predictor.jitter == pytest.approx(smallest * scale, rel=1e-12)  # the next decade
    assert predictor.noise_variance == np.exp(theta[-1]) + predictor.jitter
    # as a model whose noise is that large; 1e-4 for rounding times the condition number
    theta[-1] = np.log(predictor.noise_variance)
    honest = ExactPredictor(expression, theta, TrainingData(X, y))
    assert honest.jitter == 0
    X_new = new_rows(5, n_features=1)
    if smallest > 1e-10:
        np.testing.assert_allclose(predictor.mean(X_new), honest.mean(X_new), rtol=1e-4)
        variances = [one.mean_and_variance(X_new)[1] for one in (predictor, honest)]
        np.testing.assert_allclose(*variances, rtol=1e-4)


class Indefinite(BaseKernel):
    """No covariance: the correlation of any two points is -2."""

    name = "BAD"
    parameters = (VARIANCE,)

    def value(self, params, pairs):
        return params[0] * np.where(pairs.difference == 0, 1.0, -2.0)


class Nowhere(Indefinite):
    """No numbers at all."""

    def value(self, params, pairs):
        return np.full_like(pairs.difference, np.nan)


@pytest.mark.parametrize(
    ("kernel", "message"),
    [(Indefinite(), "not positive definite"), (Nowhere(), "not finite")],
    ids=["indefinite", "nan"],
)
def test_a_matrix_that_no_jitter_helps_has_no_predictor(kernel, message):
    X, y = np.linspace(0, 1, 10)[:, None], np.zeros(10)
    with pytest.raises(LinAlgError, match=message):
        ExactPredictor(Leaf(kernel, 0), np.log([1.0, 0.1]), TrainingData(X, y))


def test_a_large_matrix_is_computed_by_blocks_of_rows(monkeypatch):
    _, X_new, mean, covariance = random_predictor(5, n_features=2)
    monkeypatch.setattr(exact, "_LARGE", 0)
    monkeypatch.setattr(exact, "_BLOCK", 60)
    predictor, *_ = random_predictor(5, n_features=2)
    np.testing.assert_allclose(predictor.mean(X_new), mean, rtol=1e-9, atol=1e-9)
    variance = predictor.mean_and_variance(X_new)[1]
    np.testing.assert_allclose(variance, np.diag(covariance), rtol=1e-9)
