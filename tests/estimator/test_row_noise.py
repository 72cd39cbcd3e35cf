"""Weights and known errors of rows, from ``fit`` to predictions, copies and words."""

import pickle
import re

import numpy as np
import pytest
import sklearn
from scipy.stats import norm
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.model_selection import KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from autokernel import AutoKernelGPRegressor
from autokernel.data import RowNoise
from autokernel.data.target import resolution_of
from autokernel.evidence import CRITERIA
from tests.fits import PLAIN, count_evaluations, counted, small, through_json, wave

X, Y = wave(24, n_features=2)
X1 = X[:, :1]  # of which Y is a function
RNG = np.random.default_rng(0)
COUNTS = RNG.integers(0, 4, 24)
RELATIVE = COUNTS / COUNTS[COUNTS > 0].mean()
STD = RNG.choice([0.0, 0.1, 0.6], 24)


# a search of two kernels and noise alone, in the first column
FEW = {"n_iter": 0, "max_leaves": 1, "averaging": None}


def refitted(kernel="SE[0]", data=(X, Y), *, settings=None, **row_noise):
    model = AutoKernelGPRegressor(**{**PLAIN, "averaging": None, **(settings or {})})
    return model.refit(*data, kernel, **row_noise)


@pytest.mark.parametrize(
    ("criterion", "target_scale"), [("laplace", "log"), ("bic", None), ("importance", None)]
)
def test_a_weighted_row_is_as_many_rows_and_one_of_weight_zero_is_none(criterion, target_scale):
    settings = {"criterion": criterion, "target_scale": target_scale, **FEW}
    y = np.exp(Y)
    weighted = small(**settings).fit(X1, y, sample_weight=COUNTS)
    copies = small(**settings).fit(np.repeat(X1, COUNTS, axis=0), np.repeat(y, COUNTS))
    kernels = [list(one.search_history_["kernel"]) for one in (weighted, copies)]
    assert kernels[0] == kernels[1]
    # likelihoods agree to rounding, which differences and runs amplify up to their tolerances
    scores = [one.search_history_["score"] for one in (weighted, copies)]
    np.testing.assert_allclose(*scores, rtol=0, atol=1e-3)
    assert weighted.best_expression_ == copies.best_expression_
    assert weighted.noise_variance_ == pytest.approx(copies.noise_variance_, rel=1e-3)
    both = [one.predict(X1, return_std=True) for one in (weighted, copies)]
    np.testing.assert_allclose(both[0], both[1], rtol=1e-3, atol=1e-4)
    np.testing.assert_array_equal(weighted.X_train_, X1[COUNTS > 0])


def test_copies_of_rows_do_not_say_that_there_is_no_noise():
    """Otherwise a function that follows each row has infinite density where the noise vanishes."""
    rng = np.random.default_rng(0)
    x = rng.uniform(0, 6, (80, 1))
    y = np.sin(x[:, 0]) + 0.5 * rng.normal(size=80)
    rows = np.append(np.arange(80), np.arange(8))
    model = small(n_iter=5).fit(x[rows], y[rows])
    # the relative error of a standard deviation of 80 rows is 8 %
    assert model.noise_variance_**0.5 == pytest.approx(0.5, rel=0.2)
    assert model.left_out_["row"].tolist() == [*range(80)]  # copies are held out together


def test_readings_that_are_repeated_often_are_evidence_of_little_noise():
    x = np.repeat([[0.0], [1.0]], 20, axis=0)
    mean, std = small(n_iter=2).fit(x, x[:, 0]).predict(x, return_std=True)
    np.testing.assert_allclose(mean, x[:, 0], atol=0.05)
    assert std.max() < 0.2  # two readings would leave 0.4


def test_equal_readings_of_the_same_inputs_are_readings():
    rng = np.random.default_rng(0)
    x = np.repeat(rng.uniform(0, 6, (10, 1)), 40, axis=0)
    y = np.round(20 * np.sin(x[:, 0]) + 6 * rng.normal(size=400)) / 20
    model = small().refit(x, y, "SE[0]")
    assert model.noise_variance_**0.5 == pytest.approx(0.3, rel=0.15)  # 4 standard errors of 4 %


def test_noise_on_a_scale_that_is_vertical_at_a_target_is_finite():
    noise = RowNoise(np.ones(3), errors=0.1, rounding=0.2).on_scale(np.array([-800.0, 0.0, 800.0]))
    variance = noise.variance(0.5)
    np.testing.assert_allclose(variance[:2], [0.5, 0.8], rtol=1e-15)
    assert 1e250 < variance[2] < np.inf


def test_rows_are_counted_as_the_user_does_where_some_have_no_weight():
    weights, y = np.r_[np.zeros(5), np.ones(19)], np.exp(Y)
    y[10] = -1.0
    log = small(target_scale="log")
    with pytest.raises(ValueError, match="got -1 in row 10"):
        log.fit(X, y, sample_weight=weights)
    gaps = X + 1.0
    gaps[:8, 0], gaps[12, 0] = np.nan, -3.0
    with pytest.raises(ValueError, match="got -3 in row 12"):
        small(column_scales={0: "log"}).fit(gaps, Y, sample_weight=weights)
    x = np.linspace(0, 6, 40)[:, None]
    wave, some = np.sin(x[:, 0]) + 0.05 * np.cos(37 * x[:, 0]), np.r_[np.zeros(6), np.ones(34)]
    wave[30] += 3.0
    model = small().refit(x, wave, "SE[0]", sample_weight=some)
    assert "Row 30 is an outlier" in model.describe()


@pytest.mark.parametrize("total", [1.0, 0.01, 12.0, "largest is one"])
def test_weights_of_at_most_one_reading_in_every_row_are_relative(total):
    relative = np.random.default_rng(0).uniform(0.5, 1.5, 24)
    total = relative.sum() / relative.max() if isinstance(total, str) else total
    by_mean = small().refit(X, Y, "SE[0]", sample_weight=relative / relative.mean())
    with pytest.warns(UserWarning, match="sample_weight is at most one in every row, and not"):
        model = small().refit(X, Y, "SE[0]", sample_weight=total * relative / relative.sum())
    np.testing.assert_allclose(model.predict(X), by_mean.predict(X), rtol=1e-9)
    assert model.noise_variance_ == pytest.approx(by_mean.noise_variance_, rel=1e-6)
    with pytest.raises(ValueError, match=r"must add up to at least 2 readings, got 1\.73"):
        small().refit(X, Y, "SE[0]", sample_weight=np.r_[1.5, np.full(23, 0.01)])


@pytest.fixture(scope="module")
def fitted():
    """A fitted model, which no test may change."""
    return refitted()


@pytest.mark.parametrize(
    ("row_noise", "message"),
    [
        ({"sample_weight": np.r_[1, -2, np.ones(22)]}, "sample_weight must hold .*got -2 in row 1"),
        ({"sample_weight": np.r_[np.nan, np.ones(23)]}, "sample_weight .*got nan in row 0: leave"),
        ({"sample_weight": np.zeros(24)}, "sample_weight must not be zero in all rows but 0: give"),
        ({"sample_weight": np.ones((24, 1))}, r"sample_weight must be one number.*shape \(24, 1\)"),
        ({"sample_weight": ["a"] * 24}, "sample_weight must hold a number for each row: could"),
        ({"noise_std": -0.1}, "noise_std must hold numbers from zero .*got -0.1 in row 0: leave"),
        ({"noise_std": np.r_[np.ones(23), np.inf]}, "noise_std .*got inf in row 23"),
        ({"noise_std": np.ones(25)}, r"noise_std must be one number.*24 rows.*shape \(25,\)"),
    ],
)
def test_numbers_that_are_no_weights_or_errors_are_refused(fitted, row_noise, message):
    before = fitted.predict(X)
    for method in (fitted.fit, fitted.refit):
        with pytest.raises(ValueError, match=message):
            method(X, Y, **row_noise)
    np.testing.assert_array_equal(fitted.predict(X), before)


def test_one_kernel_predicts_as_scikit_learn_with_more_noise_on_the_diagonal():
    w = RNG.uniform(0.3, 3, 24)
    model = refitted("SE[0] + LIN[1]", sample_weight=w, noise_std=STD)
    scaling = model._fitted.target
    alpha = (model.noise_variance_ * (1 / w - 1) + STD**2) / scaling.width**2
    gpr = GaussianProcessRegressor(model.best_kernel_, optimizer=None, alpha=alpha)
    expected = gpr.fit(X, scaling.forward(Y)).predict(X + 0.05, return_std=True)
    mean, std = model.predict(X + 0.05, return_std=True)
    np.testing.assert_allclose((mean - scaling.shift) / scaling.width, expected[0], rtol=1e-6)
    np.testing.assert_allclose(std / scaling.width, expected[1], rtol=1e-6)


def test_left_out_rows_are_predicted_with_the_noise_of_their_own():
    w = RNG.uniform(0.3, 3, 24)
    model = refitted(sample_weight=w, noise_std=STD)
    probability, errors = model._fitted.mixture.leave_one_out()
    (one,) = model._fitted.mixture.components
    data = model._fitted.mixture.data
    for row in (0, 7, 23):
        others = np.delete(np.arange(24), row)
        predictor = model._fitted.mixture.make_predictor(
            one.expression, one.theta, data.take(others)
        )
        mean, variance = predictor.mean_and_variance(data.X[[row]])
        variance += data.noise.variance(np.exp(one.theta[-1]))[row] - np.exp(one.theta[-1])
        assert errors[row] == pytest.approx(data.y[row] - mean[0], rel=1e-6)
        expected = norm.cdf(errors[row] / np.sqrt(variance[0]))
        assert probability[row] == pytest.approx(expected, rel=1e-6)
    assert "noise" in model.describe()


@pytest.mark.parametrize("criterion", sorted(CRITERIA))
def test_every_criterion_takes_weights_and_known_errors(criterion):
    settings = {"settings": {"criterion": criterion}}
    model = refitted(**settings, sample_weight=RELATIVE, noise_std=STD)
    assert np.isfinite(model.best_score_)
    assert model.best_score_ != refitted(**settings).best_score_
    assert np.corrcoef(model.predict(X), np.sin(6 * X[:, 0]))[0, 1] > 0.9


@pytest.mark.parametrize("approximation", ["neighbours", "inducing"])
def test_many_rows_with_known_errors_are_fitted_as_exactly_as_without(approximation):
    rng = np.random.default_rng(1)
    inputs, errors = rng.uniform(size=(300, 1)), rng.choice([0.02, 2.0], 300)
    truth = np.sin(9 * inputs[:, 0])
    target = truth + 0.1 * rng.normal(size=300) + errors * rng.normal(size=300)
    settings = {"approximation": approximation, "n_inducing": 30}
    model = refitted("SE[0]", (inputs, target), settings=settings, noise_std=errors)
    assert np.sqrt(np.mean((model.predict(inputs) - truth) ** 2)) < 0.05  # without them .3
    assert np.sqrt(model.noise_variance_) == pytest.approx(0.1, rel=0.15)  # n = 150 precise rows


def test_bounds_of_rows_with_weights_and_errors_close_around_the_exact_score():
    settings = {"base_kernels": ["SE"], **FEW}
    bounds, exact = (
        small(strategy=strategy, **settings)
        .fit(X1, Y, sample_weight=RELATIVE, noise_std=STD)
        .search_history_
        for strategy in ("skc", "greedy")
    )
    n = len(exact["kernel"])  # after which the best are scored exactly
    assert list(bounds["kernel"][:n]) == list(exact["kernel"])
    np.testing.assert_allclose(bounds["score"][:n], exact["score"], rtol=0, atol=0.01)
    np.testing.assert_allclose(bounds["upper_bound"][:n], exact["score"], rtol=0, atol=0.1)


def test_a_warm_start_begins_anew_with_other_weights_or_errors():
    evaluated = count_evaluations()
    model = counted(warm_start=True, **FEW).fit(X1, Y, sample_weight=COUNTS)
    n_first = len(evaluated)
    model.fit(X1, Y, sample_weight=COUNTS)
    assert len(evaluated) == n_first
    model.fit(X1, Y, sample_weight=COUNTS, noise_std=STD)
    assert len(evaluated) == 2 * n_first


def test_metadata_is_routed_through_pipelines_and_cross_validation():
    given = {"sample_weight": COUNTS, "noise_std": STD}
    with sklearn.config_context(enable_metadata_routing=True):
        last = small(**FEW).set_fit_request(sample_weight=True, noise_std=True)
        last.set_score_request(sample_weight=False)
        scaler = StandardScaler().set_fit_request(sample_weight=False)
        pipeline = make_pipeline(scaler, last).fit(X1, Y, **given)
        scaled = pipeline[0].transform(X1)
        by_hand = small(**FEW).fit(scaled, Y, **given)
        np.testing.assert_array_equal(pipeline.predict(X1), by_hand.predict(scaled))
        scores = cross_val_score(last, X1, Y, cv=KFold(2), params=given, error_score="raise")
    expected = [
        small(**FEW)
        .fit(X1[train], Y[train], **{name: values[train] for name, values in given.items()})
        .score(X1[test], Y[test])
        for train, test in KFold(2).split(X1)
    ]
    np.testing.assert_array_equal(scores, expected)


def test_known_errors_on_a_scale_of_the_target_are_those_of_the_delta_method():
    target = np.exp(Y)
    model = refitted("log(y) ~ SE[0]", (X, target), noise_std=0.2 * target)
    on_log = refitted("SE[0]", (X, Y), noise_std=0.2)
    assert re.match(r"log\(y\)", model.best_expression_)
    found = model.predict_quantiles(X, [0.5])[:, 0]
    # the weights that standardise the target are those of its errors before the logarithm: the
    # unit in which priors are meant differs by some percent, and predictions by a part of that
    np.testing.assert_allclose(np.log(found), on_log.predict(X), atol=0.02)


def test_intervals_hold_their_share_of_rows_in_every_third_of_the_noise():
    inside = []
    for seed in range(5):
        rng = np.random.default_rng(seed)
        inputs, errors = rng.uniform(0, 10, size=(350, 1)), rng.uniform(0.02, 1.0, 350)
        clean = np.sin(inputs[:, 0]) + 0.3 * inputs[:, 0]
        target = clean + np.sqrt(0.15**2 + errors**2) * rng.normal(size=350)
        train, test = np.arange(50), np.arange(50, 350)
        model = refitted("SE[0] + LIN[0]", (inputs[train], target[train]), noise_std=errors[train])
        mean, std = model.predict(inputs[test], return_std=True)
        std = np.sqrt(std**2 + errors[test] ** 2)  # of new readings with known errors
        within = np.abs(target[test] - mean) < norm.isf(0.025) * std
        inside.append([part.mean() for part in np.array_split(within[np.argsort(errors[test])], 3)])
    coverage = np.mean(inside, axis=0)
    # 5 * 100 readings: a standard error of .01, and parameters are uncertain
    assert np.all((coverage > 0.92) & (coverage < 0.98)), coverage


# Targets that are rounded


def rounded_table(n_samples=60, *, step=1.0, noise=0.2):
    """Rows that repeat, whose targets agree when they are rounded."""
    rng = np.random.default_rng(3)
    inputs = np.repeat(rng.uniform(size=(n_samples // 3, 2)), 3, axis=0)
    target = 12 + 4 * np.sin(5 * inputs[:, 0]) + noise * rng.normal(size=len(inputs))
    return inputs, np.round(target / step) * step


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([1, 2, 3], 1.0),
        ([-50, 0, 100], 50.0),
        ([0.1, 0.2, 0.5], 0.1),
        ([20.2, 20.6, 21.0], 0.2),
        ([0.25, 0.5, 1.75], 0.25),
        ([1e6 + 0.1, 1e6 + 0.7, 1e6 + 1.3], 0.1),
        ([0, 1e6, 1e6 + 1e-3], 0.0),  # two values, which differ by less than single precision
        ([5, 5, 5], 0.0),  # a constant does not show how it was recorded
        ([0, 1], 0.0),  # nor do the names of two cases
        (np.sqrt([2, 3, 5, 7]), 0.0),
        (np.linspace(0, 1, 30) * 2, 0.0),
        (np.float32([0.1, 0.7, 12.3]), 0.1),
        (100 * np.arange(30) + 0.002 * np.cos(np.arange(30.0)), 0.0),
    ],
)
def test_the_resolution_is_the_largest_round_step_of_all_targets(values, expected):
    assert resolution_of(np.asarray(values, dtype=float)) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(("step", "kernel"), [(0.5, "log(y) ~ SE[0]"), (2.0, "SE[0]")])
def test_rounded_targets_of_equal_rows_do_not_let_the_noise_collapse(step, kernel):
    inputs, target = rounded_table(step=step, noise=0.02)
    target += 40 * step  # positive
    model = refitted(kernel, (inputs, target), settings={"averaging": "posterior"})
    assert model.resolution_ == step
    _, std = model.predict(inputs, return_std=True)
    assert std.min() > 0.95 * step / np.sqrt(12)
    _, of_function = model.predict(inputs, return_std="function")
    # the standard deviation of rounding is known, up to the slope of the scale nearby
    assert np.sqrt(std**2 - of_function**2).min() > 0.95 * step / np.sqrt(12)


def test_a_known_error_of_rounding_changes_predictions_as_noise_std_does():
    inputs, target = rounded_table()
    rounded = refitted(data=(inputs, target))
    shifted = target + 1e-3 * np.sqrt(2)  # as far as a fit knows, not rounded
    known = refitted(data=(inputs, shifted), noise_std=1 / np.sqrt(12))
    assert known.resolution_ == 0.0
    assert rounded.noise_variance_ == pytest.approx(known.noise_variance_ + 1 / 12, rel=1e-3)
    (mean, std), (other, without) = (
        one.predict(inputs, return_std=True) for one in (rounded, known)
    )
    np.testing.assert_allclose(mean + 1e-3 * np.sqrt(2), other, atol=1e-3)
    np.testing.assert_allclose(std**2, without**2 + 1 / 12, rtol=1e-3)  # new rows are rounded too


def test_one_kernel_of_a_rounded_target_predicts_as_scikit_learn():
    inputs, target = rounded_table()
    model = refitted("SE[0]", (inputs, target))
    gpr = GaussianProcessRegressor(model.best_kernel_, optimizer=None, normalize_y=True, alpha=0)
    expected = gpr.fit(inputs, target).predict(inputs + 0.01, return_std=True)
    np.testing.assert_allclose(model.predict(inputs + 0.01, return_std=True), expected, rtol=1e-6)
    model = refitted("log(y) ~ SE[0]", (inputs, target))
    # on a scale, the rounding of each row is that at its target
    alpha = model.resolution_**2 / 12 / target**2 / np.log(target).std() ** 2
    gpr = gpr.set_params(kernel=model.best_kernel_, alpha=alpha)
    median = np.exp(gpr.fit(inputs, np.log(target)).predict(inputs + 0.01))
    found = model.predict_quantiles(inputs + 0.01, [0.5])[:, 0]
    np.testing.assert_allclose(found, median, rtol=1e-6)


def test_an_exact_line_of_whole_numbers_has_sensible_intervals():
    x = np.arange(30.0)[:, None]
    model = refitted("LIN[0]", (x, 3 * x[:, 0] + 1))
    low, high = model.predict_interval([[10.5], [30.0]]).T
    assert np.all((high - low > 0.5) & (high - low < 3))
    assert small(n_iter=0).fit(x, np.full(30, 7.0)).predict(x, return_std=True)[1].max() < 1e-9


def test_copies_know_of_rounding_and_say_so_where_it_matters():
    inputs, target = rounded_table()
    settings = {"averaging": "posterior"}
    model = refitted("log(y) ~ SE[0]", (inputs, target), settings=settings)
    text, new = model.describe(units={"y": "kg"}), inputs + 0.1
    assert "recorded to the nearest 1 kg" in text
    assert model.decompose().noise_std == pytest.approx(np.sqrt(model.noise_variance_))
    for twin in (pickle.loads(pickle.dumps(model)), through_json(model)):
        assert twin.resolution_ == 1.0
        np.testing.assert_array_equal(twin.predict_interval(new), model.predict_interval(new))
        assert twin.noise_variance_ == model.noise_variance_
        assert repr(twin.best_kernel_) == repr(model.best_kernel_)
        assert twin.describe(units={"y": "kg"}) == text
    noisy = target + np.round(30 * np.random.default_rng(0).normal(size=len(target)))
    assert "recorded" not in refitted(data=(inputs, noisy)).describe()
