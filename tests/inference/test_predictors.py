"""Exact and approximate predictors, against the formulas of the textbook."""

import tracemalloc
from functools import partial

import numpy as np
import pytest
from scipy.linalg import LinAlgError

from autokernel import BaseKernel, parse_expression
from autokernel.data import RowNoise
from autokernel.expression import NOISE, Leaf
from autokernel.inference import (
    ExactLikelihood,
    ExactPredictor,
    InducingPredictor,
    NeighbourPredictor,
    TrainingData,
    diagonal_covariance,
)
from autokernel.inference.base import MAX_KEPT_BYTES
from autokernel.kernels import BASE_KERNELS, VARIANCE
from tests.model.cases import dense_covariance, dense_predictions, random_case
from tests.own_kernels import OrnsteinUhlenbeck

SEEDS = range(3)
# With all rows as points or neighbours the approximations are exact. Inducing points are added
# until less than 1e-6 of the noise variance is left to explain, which is a deviation of 1e-3.
PREDICTORS = {
    "exact": (ExactPredictor, 1e-9),
    "inducing": (partial(InducingPredictor, n_inducing=25), 1e-3),
    "neighbours": (partial(NeighbourPredictor, n_neighbours=25), 1e-9),
}
every_predictor = pytest.mark.parametrize(
    ("make", "tolerance"), PREDICTORS.values(), ids=PREDICTORS
)


def new_rows(n_rows, *, n_features, seed=100):
    """Inputs within the training data and around them."""
    return np.random.default_rng(seed).uniform(-0.2, 1.2, size=(n_rows, n_features))


@every_predictor
@pytest.mark.parametrize("n_features", [1, 3])
@pytest.mark.parametrize("seed", SEEDS)
def test_predictions_are_those_of_the_textbook(seed, n_features, make, tolerance):
    expression, theta, X, y, _ = random_case(seed, n_features=n_features)
    predictor = make(expression, theta, TrainingData(X, y))
    X_new = new_rows(9, n_features=n_features)
    X_new[1] = X_new[0]  # two observations at one input share all but their noise
    mean, covariance = dense_predictions(expression, theta, X, y, X_new)
    variance = np.diag(covariance)
    assert predictor.jitter == 0
    assert predictor.noise_variance == np.exp(theta[-1])
    # rounding times the condition number, which is below 1e6 here: noise is 0.01 or more; on the
    # scale of the target, which is 1, and of the deviations
    same = {"rtol": tolerance, "atol": tolerance}
    np.testing.assert_allclose(predictor.mean(X_new), mean, **same)
    for found in (predictor.mean_and_variance(X_new), predictor.mean_and_covariance(X_new)):
        np.testing.assert_allclose(found[0], mean, **same)
    np.testing.assert_allclose(predictor.mean_and_variance(X_new)[1], variance, rtol=tolerance)
    error = predictor.mean_and_covariance(X_new)[1] - covariance
    assert np.max(np.abs(error) / np.sqrt(np.outer(variance, variance))) < tolerance


@pytest.mark.parametrize("n_features", [1, 3])
@pytest.mark.parametrize("seed", range(6))
def test_a_predictor_of_the_first_rows_is_extended_to_all(seed, n_features):
    expression, theta, X, y, _ = random_case(seed, n_features=n_features)
    X[[3, 20], 0] = np.nan
    weights = np.random.default_rng(seed).integers(1, 4, len(y)).astype(float)
    data = TrainingData(X, y, RowNoise(weights, errors=0.01, rounding=0.001))
    first = ExactPredictor(expression, theta, data.take(np.arange(18)))
    found = ExactPredictor(expression, theta, data, first=first)
    expected = ExactPredictor(expression, theta, data)
    X_new = new_rows(9, n_features=n_features)
    for one, other in zip(
        found.mean_and_covariance(X_new), expected.mean_and_covariance(X_new), strict=True
    ):
        np.testing.assert_allclose(one, other, rtol=1e-8, atol=1e-9)
    likelihoods = (ExactLikelihood(expression, rows) for rows in (data, data.take(np.arange(18))))
    gain = np.subtract(*(one.value(theta) for one in likelihoods))
    new = data.take(np.arange(18, 25))
    moments = first.mean_and_covariance(new.X)
    assert first.log_density(new, moments) == pytest.approx(gain, rel=1e-8)


def test_rows_that_need_more_jitter_are_conditioned_on_anew():
    X = np.linspace(0, 1, 8)[:, None]
    X = np.concatenate([X, X])  # without noise no row has a second one
    data, theta = TrainingData(X, np.sin(6 * X[:, 0])), np.log([0.1, 1.0, 1e-30])
    first = ExactPredictor(parse_expression("SE[0]"), theta, data.take(np.arange(8)))
    assert first.jitter == 0
    found = ExactPredictor(parse_expression("SE[0]"), theta, data, first=first)
    expected = ExactPredictor(parse_expression("SE[0]"), theta, data)
    assert found.jitter == expected.jitter > 0
    np.testing.assert_array_equal(found.mean(X), expected.mean(X))


WHOLE = parse_expression("LIN[0] + SE[0] * SE[1]")
THETA = np.log([1.0, 0.7, 0.3, 0.8, 0.6, 1.2, 0.05])  # v, offset; l, v; l, v; noise


def table(n_samples, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(n_samples, 2))
    return TrainingData(X, X[:, 0] + np.sin(5 * X[:, 1]) + 0.2 * rng.normal(size=n_samples))


@every_predictor
def test_new_observations_of_a_rounded_target_are_rounded_too(make, tolerance):
    data, X_new, rounding = table(25), new_rows(9, n_features=2), 0.04
    noise = RowNoise(np.ones(25), rounding=rounding)
    rounded = make(WHOLE, THETA, TrainingData(data.X, data.y, noise))
    theta = np.append(THETA[:-1], np.log(np.exp(THETA[-1]) + rounding))
    noisier = make(WHOLE, theta, data)
    same = {"rtol": max(tolerance, 1e-9), "atol": max(tolerance, 1e-9)}
    for moments in ("mean_and_variance", "mean_and_covariance"):
        for ours, theirs in zip(
            getattr(rounded, moments)(X_new), getattr(noisier, moments)(X_new), strict=True
        ):
            np.testing.assert_allclose(ours, theirs, **same)
    assert rounded.noise_variance == pytest.approx(np.exp(THETA[-1]), rel=1e-12)


def test_on_a_scale_a_new_observation_has_the_rounding_of_targets_nearby():
    X = np.linspace(0, 1, 30)[:, None]
    data = TrainingData(
        X, np.round(np.exp(3 * X[:, 0])), RowNoise(np.ones(len(X)), rounding=1 / 12)
    )
    predictor = ExactPredictor(parse_expression("SE[0]").on("log"), np.log([0.5, 9, 1e-3]), data)
    mean, _ = predictor.mean_and_variance(X)
    of_rounding = predictor.noise_at(X, mean) - predictor.noise_variance
    # the delta method at the target, between that of the targets around it
    np.testing.assert_allclose(of_rounding[5:], 1 / 12 / np.exp(2 * mean[5:]), rtol=0.3)
    far = predictor.noise_at(X[:2], np.array([-50.0, 50.0])) - predictor.noise_variance
    np.testing.assert_allclose(far, 1 / 12 / np.array([1.0, data.y.max()]) ** 2, rtol=1e-9)


class Counting(OrnsteinUhlenbeck):
    """Notes of how many covariances its values are computed."""

    def __init__(self):
        super().__init__("COUNTING")
        self._computed = []

    def value(self, params, pairs):
        self._computed.append(np.prod(pairs.shape))
        return super().value(params, pairs)


@pytest.mark.parametrize("name", ["exact", "inducing"])
def test_partial_dependence_computes_no_term_again_that_does_not_change(name):
    make, _ = PREDICTORS[name]
    first, second = Counting(), Counting()
    expression = Leaf(first, 0) + Leaf(second, 1)
    theta, data = np.log([0.3, 0.8, 0.6, 1.2, 0.05]), table(30)
    predictor, others = (make(expression, theta, data) for _ in range(2))
    X, grid = new_rows(25, n_features=2), np.linspace(0, 1, 10)
    predictor.mean(X)
    for computed in (first._computed, second._computed):
        computed.clear()
    averages = []
    for value in grid:
        X[:, 0] = value
        averages.append(predictor.mean(X).mean())
    assert len(first._computed) == len(grid)  # of one row each: all are the same in this column
    assert max(first._computed) <= 30
    assert not second._computed
    for value, average in zip(grid, averages, strict=True):
        rows = [others.mean(np.array([[value, row[1]]])) for row in X]
        np.testing.assert_allclose(average, np.mean(rows), rtol=1e-9)  # as for the textbook
    X[:, 1] += 0.1  # in place: predictions are of the numbers that are there now
    np.testing.assert_allclose(predictor.mean(X), others.mean_and_variance(X)[0], rtol=1e-9)


@pytest.mark.parametrize(("n_rows", "n_terms"), [(10_000, 12), (100_000, 2)])
def test_the_means_that_are_kept_take_a_bounded_number_of_bytes(n_rows, n_terms):
    expression = parse_expression(" + ".join(["LIN[0]", "LIN[1]"] * n_terms))
    data = table(10)
    predictor = PREDICTORS["exact"][0](expression, np.zeros(4 * n_terms + 1), data)
    X = new_rows(n_rows, n_features=2)
    predictor.mean(X[:1])
    tracemalloc.start()
    try:
        for shift in (0.0, 1.0, 2.0):
            predictor.mean(X + shift)
        assert tracemalloc.get_traced_memory()[0] < 1.1 * MAX_KEPT_BYTES
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("name", ["exact", "inducing"])
def test_functionals_of_the_function_have_the_moments_of_the_textbook(name):
    make, tolerance = PREDICTORS[name]
    data, X = table(25), new_rows(5, n_features=2)
    predictor, params = make(WHOLE, THETA, data), np.exp(THETA[:-1])
    K = dense_covariance(WHOLE, params, data.X, data.X) + np.exp(THETA[-1]) * np.eye(25)
    cross = dense_covariance(WHOLE, params, X, data.X)
    posterior = dense_covariance(WHOLE, params, X, X) - cross @ np.linalg.solve(K, cross.T)
    contrasts = np.random.default_rng(2).normal(size=(3, 5))
    knots = predictor.knots.values
    mean, covariance = predictor.conditioned(
        contrasts @ dense_covariance(WHOLE, params, X, knots),
        contrasts @ dense_covariance(WHOLE, params, X, X) @ contrasts.T,
    )
    same = {"rtol": max(tolerance, 1e-8), "atol": max(tolerance, 1e-8)}
    of_function = cross @ np.linalg.solve(K, data.y)
    np.testing.assert_allclose(mean, contrasts @ of_function, **same)
    np.testing.assert_allclose(covariance, contrasts @ posterior @ contrasts.T, **same)
    mean, variance = predictor.function(X)
    np.testing.assert_allclose(mean, of_function, **same)
    np.testing.assert_allclose(variance, np.diag(posterior), **same)


@pytest.mark.parametrize(
    ("make", "n_rows"),
    [
        (ExactPredictor, 1000),
        (partial(InducingPredictor, n_inducing=100), 12_000),
        (partial(NeighbourPredictor, n_neighbours=40), 1000),
    ],
    ids=PREDICTORS,
)
def test_predictions_of_a_row_do_not_depend_on_the_rows_that_come_with_it(make, n_rows):
    """There are several blocks of rows; a product of another shape is summed in another order."""
    predictor, X = make(WHOLE, THETA, table(300)), new_rows(n_rows, n_features=2)
    some = slice(3, None, n_rows // 20)
    np.testing.assert_allclose(predictor.mean(X)[some], predictor.mean(X[some]), atol=1e-10)
    for all_rows, few in zip(
        predictor.mean_and_variance(X), predictor.mean_and_variance(X[some]), strict=True
    ):
        np.testing.assert_allclose(all_rows[some], few, rtol=1e-9, atol=1e-10)


def test_predictions_from_more_rows_than_are_factorised_as_in_the_likelihood():
    data, X_new = table(2005), new_rows(5, n_features=2)
    predictor = ExactPredictor(WHOLE, THETA, data)
    mean, covariance = dense_predictions(WHOLE, THETA, data.X, data.y, X_new)
    np.testing.assert_allclose(predictor.mean(X_new), mean, rtol=1e-9, atol=1e-9)
    found = predictor.mean_and_variance(X_new)[1]
    np.testing.assert_allclose(found, np.diag(covariance), rtol=1e-9)
    # without noise they get jitter, as fewer rows do
    X, theta = np.linspace(0, 1, 2001)[:, None], np.log([0.5, 2.0, 1e-30])
    y = np.sin(6 * X[:, 0])
    predictor = ExactPredictor(parse_expression("SE[0]"), theta, TrainingData(X, y))
    assert 0 < predictor.jitter < 1e-9
    # noise of that variance moves the mean of so smooth a function by less than its deviation
    np.testing.assert_allclose(predictor.mean(X), y, atol=3e-5)


@every_predictor
def test_samples_have_the_moments_of_the_predictions(make, tolerance):
    predictor, X = make(WHOLE, THETA, table(25)), new_rows(10, n_features=2)
    draws = predictor.samples(X, 4000, np.random.RandomState(0))
    mean, variance = predictor.mean_and_variance(X)
    assert np.max(np.abs(draws.mean(axis=1) - mean) / np.sqrt(variance / 4000)) < 4.5
    np.testing.assert_allclose(draws.var(axis=1), variance, rtol=5 * np.sqrt(2 / 4000))


def test_many_new_rows_share_fewer_neighbours_in_a_joint_distribution():
    rows = np.random.default_rng(2).uniform(size=(200, 2))
    predictor = NeighbourPredictor(WHOLE, THETA, table(3000), n_neighbours=40)
    mean, covariance = predictor.mean_and_covariance(rows)
    np.testing.assert_allclose(np.diag(covariance), predictor.mean_and_variance(rows)[1])
    assert np.linalg.eigvalsh(covariance)[0] > 0
    assert np.sqrt(np.mean((mean - predictor.mean(rows)) ** 2)) < 0.3


def test_a_variance_is_never_below_the_noise():
    # with 1e-10 of noise, what the data explain is the prior variance but for rounding
    X = np.linspace(0, 1, 40)[:, None]
    data, theta = TrainingData(X, np.sin(6 * X[:, 0])), np.log([0.9, 1e6, 1e-4])
    predictor = ExactPredictor(parse_expression("SE[0]"), theta, data)
    assert predictor.mean_and_variance(X)[1].min() >= predictor.noise_variance


class SlightlyIndefinite(BaseKernel):
    """No covariance but for rounding: all eigenvalues but one are -3e-9."""

    name = "ODD"
    parameters = (VARIANCE,)

    def value(self, params, pairs):
        return params[0] * np.where(pairs.difference == 0, 1.0, 1 + 3e-9)


def test_rows_that_are_added_get_the_jitter_of_the_first():
    X, y = np.linspace(0, 1, 12)[:, None], np.random.default_rng(0).normal(size=12)
    errors = np.repeat([0.0, 1e-7], [8, 4])  # with which the others need no jitter
    data = TrainingData(X, y, RowNoise(np.ones(12), errors))
    expression, theta = Leaf(SlightlyIndefinite(), 0), np.log([2.0, 1e-30])
    first = ExactPredictor(expression, theta, data.take(np.arange(8)))
    assert 1e-9 < first.jitter < 1e-7
    found = ExactPredictor(expression, theta, data, first=first)
    assert found.jitter == first.jitter
    K = np.where(np.eye(12) == 1, 2.0, 2.0 * (1 + 3e-9)) + np.diag(errors + first.jitter)
    # the condition number is 2e9
    np.testing.assert_allclose(found.weights, np.linalg.solve(K, y), rtol=1e-5)
    new = data.take(np.arange(8, 12))
    _, covariance = first.errors(new, first.mean_and_covariance(new.X))
    expected = np.linalg.inv(np.linalg.inv(K)[8:, 8:])
    np.testing.assert_allclose(np.diag(covariance), np.diag(expected), rtol=1e-5)


@pytest.mark.parametrize(
    ("kernel", "params", "smallest"),
    [(SlightlyIndefinite(), [2.0], 1e-8), (BASE_KERNELS["SE"], [0.5, 2.0], 1e-14)],
    ids=["slightly indefinite", "rank ten"],
)
def test_jitter_that_a_factorisation_needs_is_counted_in_the_noise(kernel, params, smallest):
    expression, theta = Leaf(kernel, 0), np.log([*params, 1e-30])
    X = np.linspace(0, 1, 10)[:, None]
    if kernel.name == "SE":
        X = np.repeat(X, 3, axis=0)
    data = TrainingData(X, np.sin(6 * X[:, 0]))
    likelihood = ExactLikelihood(expression, data)
    variance = diagonal_covariance(expression, data.inputs).forward(np.exp(theta[:-1]))
    scale = np.exp(theta[-1]) + variance.mean()
    for jitter in (0.0, *(scale * 10.0**k for k in range(-14, round(np.log10(smallest))))):
        with pytest.raises(LinAlgError):
            likelihood.factorise(likelihood.matrix(theta, jitter))
    predictor = ExactPredictor(expression, theta, data)
    assert predictor.jitter == pytest.approx(smallest * scale, rel=1e-12)  # the next decade
    assert predictor.noise_variance == np.exp(theta[-1]) + predictor.jitter
    # as a model whose noise is that large; 1e-4 for rounding times the condition number
    theta[-1] = np.log(predictor.noise_variance)
    honest = ExactPredictor(expression, theta, data)
    assert honest.jitter == 0
    X_new = new_rows(5, n_features=1)
    if smallest > 1e-10:
        np.testing.assert_allclose(predictor.mean(X_new), honest.mean(X_new), rtol=1e-4)
        variances = [one.mean_and_variance(X_new)[1] for one in (predictor, honest)]
        np.testing.assert_allclose(*variances, rtol=1e-4)


def test_noise_alone_predicts_zero_from_any_number_of_rows():
    rng = np.random.default_rng(0)
    data = TrainingData(rng.uniform(size=(10**5, 1)), rng.normal(size=10**5))
    tracemalloc.start()
    try:
        predictor = ExactPredictor(NOISE, np.log([0.4]), data)
        mean, variance = predictor.mean_and_variance(data.X[:1000])
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < data.y.nbytes  # a matrix takes a hundred thousand times as much
    np.testing.assert_array_equal(mean, np.zeros(1000))
    np.testing.assert_allclose(variance, 0.4, rtol=1e-14)
    mean, covariance = predictor.mean_and_covariance(data.X[:4])
    np.testing.assert_array_equal(mean, np.zeros(4))
    np.testing.assert_allclose(covariance, 0.4 * np.eye(4), rtol=1e-14)
    draws = predictor.samples(data.X[:3], 20_000, np.random.RandomState(0))
    limit = 5 * 0.4 * np.sqrt(2 / 20_000)  # five standard errors of a variance, 2 s^2 / n
    np.testing.assert_allclose(np.cov(draws), 0.4 * np.eye(3), atol=limit)
