"""New rows that join a fit: equal to conditioning on all rows, judged, and kept in a log."""

import copy
import pickle
import re
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.special import logsumexp, softmax
from sklearn.base import clone

from autokernel import AutoKernelGPRegressor
from autokernel.data import RowNoise
from autokernel.inference import ExactLikelihood, TrainingData
from autokernel.model import MixtureComponent, MixturePredictor
from tests.fits import PLAIN, small, through_json, tiny, wave

N = 28  # rows of a fit, after which six join


def table(seed=0, n=N + 6):
    """Rows of two numbers with gaps and a category, and a positive target in steps of 0.1."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(
        {
            "a": rng.uniform(0, 5, n),
            "b": rng.choice(list("xyz"), n),
            "c": np.where(rng.uniform(size=n) < 0.2, np.nan, rng.uniform(1, 9, n)),
        }
    )
    X.loc[[1, N + 1], "c"] = np.nan  # gaps of two rows, which are not equal
    y = np.exp(0.3 * X["a"] + (X["b"] == "x")) + 0.1 * X["c"].fillna(5) + rng.uniform(size=n)
    return X, y.round(1).to_numpy()


def refitted(kernel, X, y, given=None, n=N, **settings):
    """Fit a kernel to the first n rows."""
    settings = {**PLAIN, "averaging": None, **settings}
    first = {name: values[:n] for name, values in (given or {}).items()}
    return AutoKernelGPRegressor(**settings).refit(X[:n], y[:n], kernel, **first)


def gain(expression, theta, new, old):
    """By how many nats more data are more probable."""
    return np.subtract(*(ExactLikelihood(expression, data).value(theta) for data in (new, old)))


def conditioned_anew(model, X, y, given=None):
    """The mixture of a model given all rows, with weights by likelihoods, and its log density."""
    old = model._fitted.mixture
    columns, target, given = model._fitted.columns, model._fitted.target, given or {}
    inputs = columns.inputs(X, first_row=0)
    noise = RowNoise(
        given.get("sample_weight", np.ones(len(y))),
        (given.get("noise_std", np.zeros(len(y))) / target.width) ** 2,
        (model.resolution_ / target.width) ** 2 / 12,
        counts=np.ones(len(y)),  # the mean of which is known
    )
    data = TrainingData(inputs, target.forward(y), noise, target, varying=old.data.varying)
    gains = [gain(one.expression, one.theta, data, old.data) for one in old.components]
    weights = softmax(np.log(old.weights) + gains)
    components = [
        MixtureComponent(one.expression, one.theta, weight)
        for one, weight in zip(old.components, weights, strict=True)
    ]
    mixture = MixturePredictor(components, data, old.make_predictor, law=old.law)
    best = model._fitted.evaluation
    return mixture, gain(best.expression, best.theta, data, old.data)


def assert_same_predictions(found, expected, X):
    """Compare two mixtures, but for what the first has learned of errors, in unit intervals."""
    found = found.with_law(expected.law)
    for one, other in zip(found.moments(X), expected.moments(X), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-8, atol=1e-8)
    levels = np.array([0.1, 0.9])
    quantiles = found.quantiles(X, levels), expected.quantiles(X, levels)
    np.testing.assert_allclose(*quantiles, rtol=1e-7, atol=1e-7)  # the tolerance of the root


RNG = np.random.default_rng(1)
WEIGHTS = {"sample_weight": RNG.integers(1, 5, N + 6).astype(float)}
ERRORS = {"noise_std": np.where(RNG.uniform(size=N + 6) < 0.5, 0.3, 0.0)}
CASES = {
    "products": ("SE[a] * RQ[a] + MAT12[c]", {}, {}),
    "gaps and levels": ("CAT[b] * LIN[a] + MAT32[c]", {}, {}),
    "walks": ("RW[a] + IRW[a] + IOU[a]", {}, {}),
    "a change point": ("CP[a](SE[a], LIN[a])", {"operators": ("+", "*", "cp")}, {}),
    "the logarithm": ("log(y) ~ LIN[a] + CAT[b]", {"target_scale": "auto"}, WEIGHTS),
    "the root": ("sqrt(y) ~ SE[a]", {"target_scale": "auto"}, ERRORS),
    "weights and errors": ("SE[a] + CAT[b]", {}, WEIGHTS | ERRORS),
    "noise": ("NOISE", {}, WEIGHTS),
    "an average": ("LIN[a] + CAT[b]", {"averaging": "posterior"}, {}),
}


@pytest.mark.parametrize("case", CASES)
def test_update_is_conditioning_on_all_rows_at_the_parameters_of_the_fit(case):
    kernel, settings, given = CASES[case]
    X, y = table()
    model = refitted(kernel, X, y, given, **settings)
    assert model.resolution_ == 0.1
    coded = X.assign(b=X["b"].map({"x": 0, "y": 1, "z": 2})).to_numpy(dtype=float)
    expected, gain = conditioned_anew(model, coded, y, given)
    score, new = model.best_score_, {name: values[N:] for name, values in given.items()}
    assert model.update(X[N:], y[N:], **new) is model
    found = model._fitted.mixture
    assert_same_predictions(found, expected, found.data.X + 0.1)
    np.testing.assert_allclose(found.weights, expected.weights, rtol=1e-8)
    assert model.best_score_ - score == pytest.approx(gain, rel=1e-8, abs=1e-8)
    np.testing.assert_array_equal(model.X_train_, coded)
    np.testing.assert_array_equal(model.y_train_, y)


def test_noise_that_varies_keeps_its_function(rng):
    X = rng.uniform(size=(100, 1))
    y = 4 * X[:, 0] + 0.1 * 30 ** X[:, 0] * rng.normal(size=100)
    model = refitted("LIN[0]", X, y, n=90, noise="auto")
    assert model._fitted.mixture.data.varying
    expected, gain = conditioned_anew(model, X, y)
    score = model.best_score_
    model.update(X[90:], y[90:])
    assert_same_predictions(model._fitted.mixture, expected, np.linspace(0, 1.2, 9)[:, None])
    assert model.best_score_ - score == pytest.approx(gain, rel=1e-8)


@pytest.fixture(scope="module")
def searched():
    """A search of several kernels, which no test may change, and the rows after its own."""
    X, y = wave(40)
    return small(averaging="posterior").fit(X[:30], y[:30]), X[30:], y[30:]


def test_rows_may_join_one_after_the_other_or_all_at_once(searched):
    model, X, y = searched
    at_once, by_one = copy.deepcopy(model).update(X, y), copy.deepcopy(model)
    for number in range(len(y)):
        by_one.update(X[number : number + 1], y[number : number + 1])
    assert_same_predictions(by_one._fitted.mixture, at_once._fitted.mixture, X)
    found, expected = by_one.posterior_, at_once.posterior_
    np.testing.assert_array_equal(found["kernel"], expected["kernel"])
    for name in ("probability", "log_evidence"):
        np.testing.assert_allclose(found[name], expected[name], rtol=1e-8)
    assert by_one.best_score_ == pytest.approx(at_once.best_score_, rel=1e-8)
    np.testing.assert_array_equal(by_one.outcomes_["row"], np.arange(30, 40))


def test_probabilities_of_kernels_are_multiplied_by_the_densities_of_the_rows(searched):
    model, X, y = searched
    fitted = model._fitted
    old = TrainingData(fitted.mixture.data.X, fitted.mixture.data.u)
    new = TrainingData(
        np.concatenate([old.X, fitted.columns.inputs(X).values]),
        np.concatenate([old.u, fitted.target.forward(y)]),
    )
    log_p = []
    for kernel in fitted.kernels:
        best = kernel.evaluation
        own = [one for one in fitted.mixture.components if one.expression == best.expression]
        own = own or [MixtureComponent(best.expression, best.theta, 1.0)]
        gains = [gain(one.expression, one.theta, new, old) for one in own]
        weights = np.array([one.weight for one in own])
        log_p.append(np.log(kernel.probability) + logsumexp(gains, b=weights / weights.sum()))
    assert len(log_p) > 1
    updated = copy.deepcopy(model).update(X, y)
    names = [fitted.columns.text_of(one.evaluation.expression) for one in fitted.kernels]
    expected = dict(zip(names, softmax(log_p), strict=True))
    found = dict(zip(updated.posterior_["kernel"], updated.posterior_["probability"], strict=True))
    assert found == pytest.approx(expected, rel=1e-8)
    assert updated.best_expression_ == model.best_expression_


def test_the_log_has_what_was_predicted_before_the_rows_joined(searched):
    model, X, y = searched
    updated = copy.deepcopy(model)
    assert len(model.outcomes_["row"]) == 0
    assert str(model.outcomes_).endswith("update has added no row")
    mean = np.concatenate([updated.predict(X[:4]), updated.update(X[:4], y[:4]).predict(X[4:])])
    second = copy.deepcopy(updated)
    updated.update(X[4:], y[4:])
    log = updated.outcomes_
    np.testing.assert_allclose(log["mean"], mean, rtol=1e-8)
    ends = [model.predict_interval(X[:4]), second.predict_interval(X[4:])]
    np.testing.assert_allclose(
        np.stack([log["low"], log["high"]], axis=1), np.concatenate(ends), rtol=1e-6
    )
    density = [
        model.log_predictive_density(X[:4], y[:4]),
        second.log_predictive_density(X[4:], y[4:]),
    ]
    np.testing.assert_allclose(log["log_density"], np.concatenate(density), rtol=1e-8)
    np.testing.assert_array_equal(log["inside"], (log["low"] <= y) & (y <= log["high"]))
    lines = str(log).splitlines()
    assert lines[0].split() == [
        *("row", "y", "mean", "low", "high", "log_density", "inside", "outlier")
    ]
    assert lines[-1] == f"{log['inside'].sum()} of 10 within 95 %"
    assert model.leaderboard().note == ""
    assert "10 rows have been added to this kernel, to 40 rows" in updated.leaderboard().note


def monthly(n=60, seed=0):
    """A season with a drift and noise."""
    rng, t = np.random.default_rng(seed), np.arange(n)
    y = 3 * np.sin(np.pi * t / 6) + np.cumsum(0.1 * rng.normal(size=n)) + 0.3 * rng.normal(size=n)
    dates = pd.date_range("2020-01-01", periods=n, freq="MS")
    return pd.Series(y, index=dates, name="sales")


@pytest.fixture(scope="module")
def series():
    """A fit to the first four years, which no test may change."""
    settings = {**PLAIN, "outliers": "auto", "strategy": "series", "averaging": None}
    return AutoKernelGPRegressor(**settings).fit(monthly()[:48])


def test_a_series_with_dates_goes_on_after_the_rows_that_have_joined(series):
    model, y = copy.deepcopy(series), monthly()
    model.update(y[48:49]).update(y[49:])
    assert model.forecast(1)["time"][0] == np.datetime64("2025-01-01")
    assert series.forecast(1)["time"][0] == np.datetime64("2024-01-01")
    assert len(model.decompose().components[0].mean) == len(model.X_train_) == 60
    assert "48 of the 60 rows" in model.describe()
    ahead = pd.DataFrame(index=y.index[-3:] + pd.DateOffset(months=3))
    for duplicate in (pickle.loads(pickle.dumps(model)), through_json(model)):
        # the factor is computed again and not extended
        np.testing.assert_allclose(duplicate.predict(ahead), model.predict(ahead), rtol=1e-8)
        for name, column in model.outcomes_.items():
            np.testing.assert_array_equal(duplicate.outcomes_[name], column)
        assert str(duplicate.outcomes_) == str(model.outcomes_)
        duplicate.update(pd.Series([0.5], index=[pd.Timestamp("2025-01-01")]))
        assert duplicate.outcomes_["row"][-1] == 60
    assert not hasattr(clone(model), "outcomes_")
    model.refit(y)
    assert len(model.outcomes_["row"]) == 0


def test_an_outlier_is_put_aside_and_judged_again(series):
    model, y = copy.deepcopy(series), monthly()
    y = y[:53]
    y.iloc[50] += 15
    for month in range(48, 53):
        model.update(y[month : month + 1])
    np.testing.assert_array_equal(model.outliers_, [50])
    assert "Row 50 is excluded as an outlier" in model.describe()
    np.testing.assert_array_equal(np.flatnonzero(model.outcomes_["outlier"]), [2])
    without = copy.deepcopy(series).update(y.drop(y.index[50])[48:])
    np.testing.assert_allclose(
        model.predict(y[-3:].to_frame()[[]]), without.predict(y[-3:].to_frame()[[]]), rtol=1e-8
    )
    np.testing.assert_array_equal(model.y_train_, without.y_train_)
    at_once = copy.deepcopy(series).update(y[48:])
    np.testing.assert_array_equal(at_once.outliers_, [50])
    kept = copy.deepcopy(series).set_params(outliers=None).update(y[48:])
    assert len(kept.outliers_) == 0


def test_a_new_level_joins_after_a_few_rows(series):
    model, y = copy.deepcopy(series), monthly()
    y.iloc[50:] += 15
    numbers = []
    for month in range(48, 56):
        model.update(y[month : month + 1])
        numbers.append(len(model.outliers_))
    assert numbers[2] == 1  # as one row cannot show a new level
    assert max(numbers) < 5
    assert numbers[-1] == 0
    at_once = copy.deepcopy(series).update(y[48:56])
    assert len(at_once.outliers_) == 0
    assert_same_predictions(
        model._fitted.mixture, at_once._fitted.mixture, np.linspace(0.5, 1.3, 5)[:, None]
    )
    np.testing.assert_array_equal(np.sort(model._fitted.rows), np.arange(56))


def test_outliers_apart_from_each_other_stay_excluded(series):
    model, y = copy.deepcopy(series), monthly(72)
    far = [50, 57, 64]
    y.iloc[[*far, 66]] += 15
    for rows in (slice(48, 56), slice(56, 64), slice(64, 66)):
        model.update(y[rows])
    np.testing.assert_array_equal(model.outliers_, far)
    model.update(y[66:67])
    assert model.outliers_[-1] == 66
    assert model.forecast(1)["time"][0] == y.index[67]  # after the excluded row


def stream(model, X, y, *, first, step):
    """Let rows join by some at a time."""
    for k in range(first, len(y), step):
        model.update(X[k : k + step], y[k : k + step])


@pytest.mark.parametrize(
    ("kernel", "spike", "row"), [("NOISE", 15, 70), ("SE[0]", -15, 89), ("NOISE", 15, 88)]
)
def test_a_row_that_is_put_aside_stays_so_when_the_level_changes_after_it(kernel, spike, row):
    rng, x = np.random.default_rng(1), np.arange(96.0)[:, None]
    y = (kernel == "SE[0]") * np.sin(x[:, 0] / 4) + 0.3 * rng.normal(size=96) + 5 * (x[:, 0] >= 90)
    y[row] += spike
    model = refitted(kernel, x, y, n=60).set_params(outliers="auto")
    model.update(x[60:90], y[60:90])
    np.testing.assert_array_equal(model.outliers_, [row])
    for k in range(90, 96):
        model.update(x[k : k + 1], y[k : k + 1])
        assert k > 90 or len(model.outliers_) == 2  # as one row cannot show a new level
    np.testing.assert_array_equal(model.outliers_, [row])
    np.testing.assert_array_equal(np.sort(model._fitted.rows), np.delete(np.arange(96), row))


@pytest.mark.filterwarnings("ignore:the 95 % intervals")
@pytest.mark.parametrize(
    ("kernel", "row", "level"), [("LIN[x]", 70, 4), ("LIN[x] + CAT[g]", 71, 8)]
)
def test_a_new_level_of_a_group_joins_without_a_row_put_aside_before(kernel, row, level):
    rng, n = np.random.default_rng(0), 150
    X = pd.DataFrame({"x": rng.uniform(size=n), "g": [*"abc"] * (n // 3)})
    y = 2 * X["x"].to_numpy() + 0.3 * rng.normal(size=n)
    y[row] += 12  # of group b, or of group c
    y[92::3] += level  # of group c
    model = refitted(kernel, X, y, n=60).set_params(outliers="auto")
    stream(model, X, y, first=60, step=15)
    np.testing.assert_array_equal(model.outliers_, [row])


@pytest.mark.filterwarnings("ignore:the 95 % intervals")
def test_rows_that_nothing_shows_join_when_they_are_many():
    rng, x = np.random.default_rng(0), np.arange(130.0)[:, None]
    y = 0.3 * rng.normal(size=130)
    y[61::3] += 9  # which are no neighbours
    model = refitted("NOISE", x, y, n=60).set_params(outliers="auto")
    stream(model, x[:70], y[:70], first=60, step=2)
    np.testing.assert_array_equal(model.outliers_, [61, 64, 67])
    stream(model, x, y, first=70, step=6)
    assert len(model.outliers_) == 0  # 15 % of all rows


def test_other_parameters_do_not_change_how_new_rows_are_judged():
    x = np.arange(72.0)[:, None]
    y = np.sin(0.5 * x[:, 0]) + 0.1 * np.random.default_rng(0).normal(size=72)
    y[70] += 2
    model = refitted("SE[0]", x, y, n=60)
    # a prior that excludes the lengthscale of the fit
    model.set_params(outliers="auto", priors={"lengthscale": (2.0, 1e12)}).update(x[60:], y[60:])
    np.testing.assert_array_equal(model.outliers_, [70])


def test_a_new_level_joins_also_if_no_column_shows_it():
    X, y = wave(68)
    model = refitted("SE[0]", X, y, n=60)
    at_once = copy.deepcopy(model).update(X[60:], y[60:] + 9, sample_weight=2, noise_std=0.3)
    model.set_params(outliers="auto")
    for row in range(60, 68):
        new = X[row : row + 1], y[row : row + 1] + 9
        model.update(*new, sample_weight=2, noise_std=0.3)
        assert row > 61 or len(model.outliers_)
    assert len(model.outliers_) == 0
    assert_same_predictions(model._fitted.mixture, at_once._fitted.mixture, X)


def test_an_outlier_among_rows_that_are_hard_to_forecast_is_found():
    x = np.arange(72.0)
    y = np.sin(0.5 * x) + 0.05 * np.random.default_rng(0).normal(size=72)
    X = np.where(x < 60, x, x + 30)[:, None]  # so that the new rows are far from the others
    model = refitted("SE[0]", X, y, n=60)
    y[70] += 1.7
    model.set_params(outliers="auto").update(X[60:], y[60:])
    assert model.outcomes_["inside"][10]
    np.testing.assert_array_equal(model.outliers_, [70])


@pytest.mark.filterwarnings("ignore:.* rows have levels of column")
def test_a_level_that_the_fit_has_not_met_is_known_from_then_on():
    X, y = table()
    model = refitted("LIN[a] + CAT[b]", X, y)
    X.loc[N:, "b"] = "new"
    model.update(X[N:], y[N:] + 5)
    assert model.categories_[1].values == ("x", "y", "z", "new")
    rows = pd.DataFrame({"a": [1.0] * 3, "b": ["new", "other", "x"], "c": [2.0] * 3})
    for one in (model, through_json(model)):
        new, other, _ = one.predict(rows, return_std="function")[1]
        assert new < 0.5 * other


def test_levels_of_rows_that_are_excluded_are_not_those_of_later_rows():
    X, y = table()
    model = refitted("LIN[a] + CAT[b]", X, y, outliers="auto")
    model.update(X[N : N + 1].assign(b="new"), [1e4])
    assert len(model.outliers_) == 1
    assert len(model.y_train_) == N
    model.update(X[N : N + 1].assign(b="other"), y[N : N + 1])
    assert model.categories_[1].values == ("x", "y", "z", "new", "other")


def test_a_target_beyond_the_scale_is_refused_or_put_aside():
    X, y = table()
    model = refitted("log(y) ~ LIN[a]", X, y, target_scale="auto")
    with pytest.raises(ValueError, match=r"y has 0 in row 29, .*LIN\[a\].* is not defined"):
        model.update(X[N : N + 2], [3.0, 0.0])
    assert len(model.y_train_) == N
    model.set_params(outliers="auto")
    with pytest.warns(UserWarning, match="such rows are excluded"):
        model.update(X[N : N + 2], [3.0, 0.0])
    np.testing.assert_array_equal(model.outliers_, [29])
    assert model._fitted.outliers.deviations[0] == np.inf
    assert len(model.y_train_) == N + 1
    model.set_params(outliers=None).update(X[:1], y[:1])  # which says nothing of the row before
    np.testing.assert_array_equal(model.outliers_, [29])


@pytest.mark.parametrize(
    ("X", "y", "more", "message"),
    [
        ([[1.0, 2.0]], [1.0], {}, "2 features"),
        ([["x"]], [1.0], {}, "X must hold"),
        ([[np.inf]], [1.0], {}, "infinity"),
        ([[1.0]], [np.nan], {}, "NaN"),
        ([[1.0]], [1.0, 2.0], {}, "inconsistent"),
        ([[1.0]], [1e200], {}, "y must not hold numbers above"),
        ([[1.0]], [1.0], {"sample_weight": [-1.0]}, "sample_weight"),
        ([[1.0]], [1.0], {"noise_std": [1.0, 2.0]}, "noise_std"),
    ],
)
def test_bad_rows_leave_the_estimator_as_it_was(searched, X, y, more, message):
    model = copy.deepcopy(searched[0])
    before = dict(vars(model))
    with pytest.raises(ValueError, match=message):
        model.update(X, y, **more)
    assert all(vars(model)[name] is value for name, value in before.items())


def test_rows_of_weight_zero_are_counted_only(searched):
    model = copy.deepcopy(searched[0]).update([[3.0]], [1.0], sample_weight=0)
    assert len(model.outcomes_["row"]) == 0
    model.update([[0.5], [0.6]], [0.0, 0.1], sample_weight=[0, 0.5])
    np.testing.assert_array_equal(model.outcomes_["row"], [32])
    np.testing.assert_array_equal(model.outcomes_["weight"], [0.5])  # which is not relative


def test_an_approximation_is_made_again_for_all_rows():
    X, y = wave(320)
    model = refitted("SE[0]", X, y, n=300, approximation="inducing", n_inducing=20)
    assert model.approximation_ != "exact"
    mixture = model._fitted.mixture
    (component,) = mixture.components
    model.update(X[300:], y[300:])
    data = TrainingData(model._fitted.columns.inputs(X).values, model._fitted.target.forward(y))
    expected = mixture.make_predictor(component.expression, component.theta, data)
    (found,) = model._fitted.mixture.predictors
    Z = np.linspace(0, 1.1, 9)[:, None]
    for one, other in zip(found.mean_and_variance(Z), expected.mean_and_variance(Z), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-8)


SHIFTS = {  # from row 35 on, and kernels of which no term can take up a new level
    "noise": ("NOISE", lambda x, z: 4 * (x >= 35) + z, {}),
    "half of the rows": (  # 9 or 10 of 20 in turns
        "NOISE",
        lambda x, z: 6 * (x >= 35) * (x % 21 % 2 == 0) + np.clip(z, -1, 1),
        {},
    ),
    "season": (
        "PER7[0]",
        lambda x, z: np.sin(2 * np.pi * x / 7) + 4 * (x >= 35) + 0.3 * z,
        {"periods": {0: 7}},
    ),
    "constant": ("NOISE", lambda x, z: (x >= 35) * (4 + z), {}),
}


@pytest.mark.parametrize("case", SHIFTS)
def test_one_warning_says_that_rows_have_left_the_fit_behind_and_a_refit_takes_them(case):
    kernel, make, settings = SHIFTS[case]
    x = np.arange(95.0)
    y, X = 5 + make(x, np.random.default_rng(0).normal(size=95)), x[:, None]
    model = refitted(kernel, X, y, n=35, outliers="auto", **settings)
    with pytest.warns(UserWarning, match=r"held only \d of them.* model\.refit\(X, y\)") as warned:
        stream(model, X, y, first=35, step=10)
    assert len(warned) == 1
    model.refit(X, y).update(X[-28:] + 28, y[-28:])  # which is silent: a new fit begins
    assert model.predict(X[-7:] + 35).mean() == pytest.approx(y[35:].mean(), abs=2)


def test_a_second_change_warns_again_and_one_that_is_learnt_does_not():
    rng, x = np.random.default_rng(0), np.arange(160.0)[:, None]
    is_off = (x[:, 0] >= 40) & (x[:, 0] < 70) | (x[:, 0] >= 110)
    y = 0.3 * rng.normal(size=160) + 5 * is_off
    model = refitted("NOISE", x, y, n=30)
    with pytest.warns(UserWarning, match="held only") as warned:
        stream(model, x, y, first=30, step=5)
    assert re.findall(r"up to row (\d+)", str([*map(str, warned)])) == ["50", "119"]
    model.refit(x[:50], y[:50], "MAT12[0]")
    stream(model, x, y, first=50, step=2)
    assert model.outcomes_["inside"].mean() > 0.9  # two rows of 110 are at a change


@pytest.mark.parametrize("factor", [0.25, 4])
def test_intervals_follow_noise_that_changes_and_those_of_one_kernel_do_not(rng, factor):
    X = rng.uniform(-2, 2, size=(220, 1))
    noise = 0.2 * np.where(np.arange(220) < 60, 1, factor) * rng.normal(size=220)
    y = np.sin(2 * X[:, 0]) + noise
    model = refitted("SE[0]", X, y, n=60, averaging="posterior")
    plain, at = copy.deepcopy(model).set_params(averaging=None), np.zeros((1, 1))
    plain.refit(X[:60], y[:60], "SE[0]")
    stds = [one.predict(at, return_std=True)[1][0] for one in (model, plain)]
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "the 95 % intervals of the 20 rows")
        stream(model, X, y, first=60, step=20)
        stream(plain, X, y, first=60, step=20)
    grown = [one.predict(at, return_std=True)[1][0] for one in (model, plain)] / np.array(stds)
    assert 0.6 < np.log(grown[0]) / np.log(factor) < 1.2  # the function has a part of both stds
    assert 0.9 < grown[1] < 1  # only the mean is surer
    inside = model.outcomes_["inside"][-80:]
    assert inside.mean() == pytest.approx(0.95, abs=0.075)  # three errors


def test_rows_that_share_one_error_show_the_width_of_errors_once():
    X, rng = np.linspace(0, 1, 40)[:, None], np.random.default_rng(0)
    y = np.sin(6 * X[:, 0]) + 0.05 * rng.normal(size=40)
    model = refitted("SE[0]", X, y, n=40, averaging="posterior")
    at = 1.5 + 1e-3 * np.arange(10)[:, None]
    mean, std = model.predict(at, return_std=True)
    before = model._fitted.mixture.law.width
    model.update(at, mean[0] + 3 * std[0] + 0.05 * rng.normal(size=10))
    assert 0.8 < model._fitted.mixture.law.width / before < 1.2  # each by itself: more than two


def test_rows_that_exclude_a_kernel_leave_answers_of_the_others(rng):
    x = rng.uniform(size=(40, 1))
    X = np.column_stack([x, x + 0.003 * rng.normal(size=(40, 1))])  # nearly one column
    y = np.sin(6 * x[:, 0]) + 0.2 * rng.normal(size=40)
    model = tiny(base_kernels=["SE"]).fit(X[:36], y[:36])
    assert len(model.posterior_["kernel"]) == 2
    with pytest.warns(UserWarning, match="held only"):
        model.update(np.tile(X[36:], (5, 1)), np.tile(y[36:] + 1e4, 5))
    probability, scales = model.posterior_["probability"], model.scales_
    assert probability.max() == 1.0  # the ratio of two densities is less than any number
    assert probability.min() == 0.0 or len(probability) == 1
    assert (scales["probability"] > 0).all()
    for one in (model, through_json(model)):
        assert one.describe()
        assert np.isfinite(one.explain(X[:1])["contribution"]).all()
        assert np.isfinite(one.predict(X)).all()


def test_a_new_level_of_rows_without_weight_is_known_afterwards():
    X, y = table()
    model, new = refitted("LIN[a] + CAT[b]", X, y), X[N : N + 2]
    model.update(new.assign(b="new"), y[N : N + 2], sample_weight=[0.0, 0.0])
    assert len(model.X_train_) == N
    model.update(new.assign(b="newer"), y[N : N + 2])
    np.testing.assert_array_equal(model.X_train_[N:, 1], 4.0)  # "new" is 3


def test_what_each_row_adds_to_the_curvature_stays():
    X, y = wave(40)
    model = AutoKernelGPRegressor(**PLAIN, averaging=None).refit(X[:20], y[:20], "SE[0]")
    before = model._fitted.evaluation
    after = model.update(X[20:], y[20:])._fitted.evaluation
    np.testing.assert_allclose(after.hessian, 2 * before.hessian)
    assert after.n_rows == 2 * before.n_rows


def test_an_outlier_by_itself_joins_no_model_whose_noise_has_levels(rng):
    X = pd.DataFrame({"group": rng.choice(list("ab"), 120), "x": rng.uniform(size=120)})
    y = np.where(X["group"] == "a", 0.05, 1.0) * rng.normal(size=120) + 3 * X["x"]
    settings = {"noise": "auto", "outliers": "auto"}
    model = refitted("LIN[x]", X, y, n=120, **settings)
    assert model._fitted.mixture.data.varying
    model.update(pd.DataFrame({"group": ["a"], "x": [0.5]}), [1e4])
    assert list(model.outliers_) == [120]
