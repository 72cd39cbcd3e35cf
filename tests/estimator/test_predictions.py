"""All that a fitted estimator predicts is of one distribution, in the units of the user."""

import pickle

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.base import clone

from autokernel import PosteriorAveraging
from tests.fits import assert_predicts_as_its_kernel, normals_of, tiny, wave

X, Y = wave(20)
X_NEW = np.linspace(-0.2, 1.3, 6)[:, None]
Y_NEW = np.array([0.1, 0.6, 0.9, 0.0, -1.0, -0.5])
LEVELS = [0.025, 0.2, 0.5, 0.9, 0.975]
PREDICTIONS = {
    "mean": lambda model, X: model.predict(X),
    "std": lambda model, X: model.predict(X, return_std=True)[1],
    "std of function": lambda model, X: model.predict(X, return_std="function")[1],
    "cov": lambda model, X: model.predict(X, return_cov=True)[1],
    "interval": lambda model, X: model.predict_interval(X),
    "quantiles": lambda model, X: model.predict_quantiles(X, LEVELS),
    "samples": lambda model, X: model.sample_y(X, 3, random_state=0),
}
# by what an affine map of the target multiplies each: a power of the factor, and the shift or none
POWERS = {"mean": (1, 1), "std": (1, 0), "std of function": (1, 0), "cov": (2, 0)}
POWERS |= dict.fromkeys(("interval", "quantiles", "samples"), (1, 1))


@pytest.fixture(scope="module")
def fitted():
    """A mixture of eight components, which no test may change."""
    return tiny().fit(X, Y)


@pytest.fixture(scope="module")
def pointwise():
    """The best kernel, without averaging."""
    return tiny(averaging=None).fit(X, Y)


@pytest.mark.parametrize(
    ("averaging", "n"), [("posterior", 8), (PosteriorAveraging(n_components=3), 3)]
)
def test_a_fit_predicts_with_a_mixture_of_eight_draws_or_as_many_as_are_wanted(averaging, n):
    model = tiny(averaging=averaging).fit(X, Y)
    assert len(model._fitted.mixture.predictors) == n
    means = np.array([one.mean(np.array([[1.5]])) for one in model._fitted.mixture.predictors])
    assert np.ptp(means) > 0.1  # which disagree where there are no data


SINGLE = {
    "narrow bump in the middle": lambda x: np.exp(-(((x - 5) / 0.4) ** 2)),
    "dip near the end": lambda x: -1 / (1 + (x - 7) ** 2),
    "step": lambda x: np.where(x < 4, 1.0, 3.0),
}


@pytest.mark.parametrize("shape", SINGLE)
def test_what_the_data_show_once_is_not_predicted_to_come_again(shape):
    rng, truth = np.random.default_rng(3), SINGLE[shape]
    x = np.sort(rng.uniform(0, 10, 60))
    y = truth(x) + 0.03 * rng.normal(size=60)
    beyond = np.array([10.5, 11, 12, 13, 14, 16, 20])
    model = tiny(base_kernels=["SE", "LIN", "PER", "RQ"]).fit(x[:, None], y)
    low, high = model.predict_interval(beyond[:, None]).T
    assert np.all((low <= truth(beyond)) & (truth(beyond) <= high))
    model.refit(x[:, None], y, "LIN[0] + PER[0]")
    (period,) = model.parameters_["value"][model.parameters_["parameter"] == "period"]
    assert period < 5.3  # half of the data, with a few percent for cycles that are not complete


@pytest.mark.parametrize(("n", "period"), [(24, 12), (40, 20), (61, 30)])
def test_a_period_that_two_cycles_show_and_one_that_is_known_continue(n, period):
    x = np.arange(float(n))[:, None]
    truth = [np.cos(2 * np.pi * (x[:, 0] + ahead) / period) for ahead in (0, n)]
    y = truth[0] + 0.1 * np.random.default_rng(0).normal(size=n)
    error = tiny().refit(x, y, "PER[0]").predict(x[:6] + n) - truth[1][:6]
    assert np.sqrt(np.mean(error**2)) < 0.4  # by its mean alone about one
    short = slice(3 * n // 4)  # one and a half cycles
    known = tiny(periods={0: period}).refit(x[short], y[short], f"PER{period}[0]")
    assert np.sqrt(np.mean((known.predict(x) - truth[0]) ** 2)) < 0.4


@pytest.mark.parametrize("model", ["fitted", "pointwise"])
def test_two_observations_at_one_place_share_only_the_function(model, request):
    model = request.getfixturevalue(model)
    _, cov = model.predict(np.repeat(X_NEW[-1:], 2, axis=0), return_cov=True)
    _, std = model.predict(X_NEW[-1:], return_std="function")
    assert cov[0, 1] == pytest.approx(std[0] ** 2, rel=1e-6)


def test_quantiles_are_in_the_order_of_their_levels_and_an_interval_is_two_of_them(fitted):
    levels = [0.9, 0.1, 0.5, 0.025, 0.975, 0.25, 0.75]
    found = fitted.predict_quantiles(X_NEW, levels)
    order = np.argsort(levels)
    expected = fitted.predict_quantiles(X_NEW, np.sort(levels))
    np.testing.assert_allclose(found[:, order], expected, rtol=1e-12, atol=1e-12)
    assert np.all(np.diff(expected, axis=1) > 0)
    for levels, given in ((slice(3, 5), {}), (slice(5, 7), {"coverage": 0.5})):
        interval = fitted.predict_interval(X_NEW, **given)
        np.testing.assert_allclose(interval, found[:, levels], rtol=1e-12, atol=1e-12)
    median = fitted.predict_quantiles(X_NEW, 0.5)
    np.testing.assert_allclose(median, found[:, [2]], rtol=1e-12, atol=1e-12)


def test_the_best_kernel_alone_has_a_normal_distribution_with_tails(pointwise):
    assert len(pointwise._fitted.mixture.predictors) == 1
    mean, std = pointwise.predict(X_NEW, return_std=True)
    shares, stds = normals_of(pointwise, std, width=Y.std())
    assert 0.5 < shares[0] < 0.95
    away = pointwise.predict_quantiles(X_NEW, LEVELS) - mean[:, None]
    below = np.einsum("k,knl->nl", shares, norm.cdf(away, scale=stds[..., None]))
    # the tolerance of the root
    np.testing.assert_allclose(below, np.broadcast_to(LEVELS, below.shape), rtol=1e-7)
    found = pointwise.log_predictive_density(X_NEW, Y_NEW)
    np.testing.assert_allclose(found, np.log(shares @ norm.pdf(Y_NEW, mean, stds)), rtol=1e-9)


def test_predictions_follow_the_units_of_the_target(fitted):
    factor, shift = 1000.0, -50.0
    other = clone(fitted).fit(X, shift + factor * Y)
    assert other.best_expression_ == fitted.best_expression_
    for name, predict in PREDICTIONS.items():
        power, with_shift = POWERS[name]
        expected = predict(fitted, X_NEW) * factor**power + shift * with_shift
        # standardised targets differ by rounding, which a fit amplifies: modes are known to 1e-5,
        # and so are draws around them
        error = np.abs(predict(other, X_NEW) - expected) / (factor**power)
        assert error.max() < 1e-3, name
    plain_density = fitted.log_predictive_density(X_NEW, Y_NEW)
    density = other.log_predictive_density(X_NEW, shift + factor * Y_NEW)
    np.testing.assert_allclose(density, plain_density - np.log(factor), atol=1e-2)
    assert other.noise_variance_ == pytest.approx(fitted.noise_variance_ * factor**2, rel=1e-3)


@pytest.mark.parametrize(
    ("base_kernels", "shift", "scale"), [(["SE"], 0.0, 1.0), (["LIN", "PER"], 1949.0, 12.0)]
)
def test_without_averaging_a_gpr_with_the_best_kernel_predicts_the_same(base_kernels, shift, scale):
    x = shift + scale * X
    model = tiny(averaging=None, base_kernels=base_kernels, max_leaves=2).fit(x, 1e3 * Y + 7)
    assert_predicts_as_its_kernel(model, x, 1e3 * Y + 7, x + 0.1 * scale)


def test_where_noise_is_best_it_predicts_alone_with_and_without_an_average():
    y = np.random.default_rng(5).normal(size=20)
    best = tiny(averaging=None).fit(X, y)
    assert_predicts_as_its_kernel(best, X, y, X_NEW)
    average = tiny(averaging=PosteriorAveraging(n_components=16)).fit(X, y)
    assert len(average._fitted.mixture.predictors) > 1  # its variance is not known either
    for model in (best, average):
        assert model.best_expression_ == "NOISE"
        np.testing.assert_allclose(model.predict(X_NEW), y.mean(), rtol=1e-12)
        np.testing.assert_array_equal(model.predict(X_NEW, return_std="function")[1], 0.0)
        assert model.predict(X_NEW, return_std=True)[1] == pytest.approx(np.std(y), rel=0.3)
        interval = model.predict_interval(X_NEW)
        np.testing.assert_allclose(interval.mean(axis=1), y.mean(), rtol=1e-9)


def test_averaging_changes_predictions_and_not_the_search(fitted, pointwise):
    for name in ("kernel", "score"):
        np.testing.assert_array_equal(fitted.search_history_[name], pointwise.search_history_[name])
    assert fitted.best_score_ == pointwise.best_score_
    assert str(fitted.posterior_) == str(pointwise.posterior_)
    assert not np.allclose(fitted.predict(X_NEW), pointwise.predict(X_NEW), rtol=1e-3)


def test_a_pickled_estimator_predicts_the_same_and_holds_no_matrix():
    X, y = wave(120)
    model = tiny(base_kernels=["SE"]).fit(X, y)
    kept = pickle.dumps(model)
    twin = pickle.loads(kept)
    for name, predict in PREDICTIONS.items():
        # draws rotate by the eigenvectors of a covariance, which rounding turns
        tolerance = 1e-5 if name == "samples" else 1e-9
        expected = predict(model, X_NEW)
        np.testing.assert_allclose(predict(twin, X_NEW), expected, rtol=1e-6, atol=tolerance)
    assert len(kept) < 8 * 120**2 / 2 * 3  # eight factors would be eight halves of a matrix
