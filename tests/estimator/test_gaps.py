"""Missing values of columns: a missing value is another draw from those that are known."""

import pickle
import re

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import KFold, cross_val_score

from autokernel.displays import EffectsDisplay, ForecastDisplay
from autokernel.export import write_report
from tests.fits import small, through_json, tiny


def table(n=100, seed=0, share=0.12):
    """A wave, a line and a column without effect, of which values are missing."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(0, 1, (n, 3))
    y = np.sin(6 * X[:, 0]) + 2 * X[:, 1] + 0.1 * rng.normal(size=n)
    X[rng.uniform(size=X.shape) < share] = np.nan
    return X, y


X, Y = table()


@pytest.fixture(scope="module")
def fitted():
    return small().refit(X, Y, "SE[0] + LIN[1]")


def test_rows_with_a_gap_have_wider_bands_and_the_mean_over_the_column(fitted):
    new = np.array([[0.3, 0.5, 0.5], [np.nan, 0.5, 0.5], [np.nan, 0.5, np.nan]])
    mean, std = fitted.predict(new, return_std=True)
    # sin(6 x) has a standard deviation of 0.70 over the unit interval, and the noise is 0.1
    assert std[0] < 0.2 < 0.5 < std[1] < 0.9
    assert (mean[1], std[1]) == pytest.approx((mean[2], std[2]), rel=1e-9)
    anywhere = np.array([[x, 0.5, 0.5] for x in np.nanquantile(X[:, 0], np.linspace(0, 1, 101))])
    assert mean[1] == pytest.approx(fitted.predict(anywhere).mean(), abs=0.05)


def test_noise_and_structure_are_found_and_bands_hold_in_spite_of_gaps():
    model = tiny(max_leaves=3).fit(X, Y)
    assert np.sqrt(model.noise_variance_) == pytest.approx(0.1, abs=0.04)  # 70 known rows
    assert model.inclusion_probabilities_["depends"][:2] == pytest.approx(1.0)
    new, y = table(1000, seed=1)
    low, high = model.predict_interval(new).T
    # a standard error of 0.7 %, and the parameters are estimated from a hundred rows
    assert np.mean((low <= y) & (y <= high)) == pytest.approx(0.95, abs=0.03)


def test_columns_on_other_scales_have_gaps_too():
    x = np.exp(4 * X[:, :1])
    model = small(averaging=None).refit(x, Y, "SE[log(0)]")
    same = small(averaging=None).refit(X[:, :1], Y, "SE[0]")
    # quantiles are the same on both scales, but between two values they are interpolated
    np.testing.assert_allclose(model.predict(x), same.predict(X[:, :1]), atol=1e-4)


def test_columns_that_had_no_gaps_in_the_fit_may_have_some_later():
    full = np.random.default_rng(0).uniform(0, 1, (30, 2))
    model = small(averaging=None).refit(full, np.sin(6 * full[:, 0]) + full[:, 1], "SE[0] + LIN[1]")
    new = np.array([[0.3, 0.5], [np.nan, 0.5]])
    mean, std = model.predict(new, return_std=True)
    np.testing.assert_allclose(mean[0], model.predict(new[:1])[0], rtol=1e-9)
    assert std[1] > 3 * std[0]
    assert model.predict_interval(new).shape == (2, 2)


def test_a_constant_column_with_gaps_is_constant():
    constant = np.where(np.isnan(X[:30, 2]), np.nan, 3.0)
    model = tiny(base_kernels=["LIN"]).fit(np.column_stack([X[:30, 1], constant]), Y[:30])
    assert not any("[1]" in kernel for kernel in model.search_history_["kernel"])


def test_known_periods_and_dates_have_gaps_too():
    days = pd.date_range("2020-01-01", periods=42)
    dates = pd.Series(days).where(np.arange(42) % 9 > 0)
    y = np.sin(2 * np.pi * np.arange(42) / 7) + 0.1 * np.random.default_rng(0).normal(size=42)
    settings = {"base_kernels": ["SE", "LIN", "PER"], "max_leaves": 4, "periods": {"day": 7}}
    model = tiny(**settings, averaging=None).fit(pd.DataFrame({"day": dates}), y)
    assert "PER7[day]" in model.best_expression_
    # the design has what a person would try first, as without gaps
    assert "LIN[day] + PER7[day] * SE[day] + SE[day]" in model.search_history_["kernel"]
    assert np.isnan(model.X_train_).sum() == 5


def test_a_warm_start_goes_on_with_gaps():
    model = tiny(base_kernels=["LIN"], warm_start=True).fit(X[:30], Y[:30])
    n_before = len(model.search_history_["score"])
    model = pickle.loads(pickle.dumps(model)).set_params(n_iter=1, max_leaves=2)
    model.fit(X[:30], Y[:30])
    assert len(model.search_history_["score"]) > n_before
    assert model.search_history_["elapsed"][0] < 1e9


def test_words_pictures_and_reports_are_those_of_what_is_known(fitted, tmp_path):
    text = fitted.describe()
    assert re.search(r"x1 explains .* of the fit: the target rises by 2\.0\d* per unit", text)
    single = small(averaging=None).refit(X[:40, :1], Y[:40], "SE[0]")
    display = ForecastDisplay.from_estimator(single)
    display.figure_.canvas.draw()
    assert np.isfinite(display.x).all()
    assert "nan" not in write_report(fitted, tmp_path / "report.html").read_text().split("<svg")[0]


def test_a_gap_that_some_value_explains_is_no_outlier():
    x = np.linspace(0, 10, 30)
    y = np.sin(x)  # without noise, so that only the gap is uncertain
    x[17] = np.nan
    model = small(outliers="auto", averaging=None).refit(x[:, None], y, "PER[0]")
    assert len(model.outliers_) == 0
    spoilt = y + 30.0 * (np.arange(30) == 17)
    # the search on the other rows, none of which has a gap, still knows that there may be some
    few = {"outliers": "auto", "averaging": None, "base_kernels": ["PER"]}
    for model in (
        small(**few).refit(x[:, None], spoilt, "PER[0]"),
        tiny(**few).fit(x[:, None], spoilt),
    ):
        assert model.outliers_.tolist() == [17]
        (claim,) = (n for n, what in enumerate(model.claims_["predicate"]) if what == "excluded")
        # the wave has a standard deviation of some tenths where its place is not known; without
        # it, a row of a noise of 1e-6 would be off by 1e7
        assert 10 < model.claims_["value"][claim] < 1000
        assert np.isfinite(model.predict([[np.nan]], return_std=True)).all()


EMPTY = {  # columns with values in the last third of the rows only
    "numbers": np.r_[np.full(40, np.nan), np.linspace(0, 1, 20)],
    "objects": [None] * 40 + [1.5, 2] * 10,
    "texts": [None] * 40 + ["a", "b"] * 10,
    "decimals": [None] * 40 + ["1.5", "2.5"] * 10,
    "dates": [pd.NaT] * 40 + list(pd.date_range("2020-01-01", periods=20)),
    "texts of dates": [None] * 40 + ["2020-01-01", "2020-01-02"] * 10,
    "categories": pd.Categorical([None] * 40 + ["a", "b"] * 10),
    "truth values": pd.array([None] * 40 + [True, False] * 10, dtype="boolean"),
}


@pytest.mark.parametrize("form", EMPTY)
def test_a_column_without_a_value_is_left_out_with_a_warning(form):
    frame = pd.DataFrame({"a": np.arange(60.0) % 7, "b": EMPTY[form]})
    y = frame["a"]
    with pytest.warns(
        UserWarning, match="^column 'b' of X has no value in any row, and is left"
    ) as w:
        model = small(averaging=None).refit(frame[:40], y[:40], "LIN[a]")
    assert len(w) == 1
    assert w[0].filename == __file__
    without = small(averaging=None).refit(frame[["a"]][:40], y[:40], "LIN[a]")
    np.testing.assert_array_equal(model.predict(frame), without.predict(frame[["a"]]))
    again = model.refit(frame, y, "LIN[a]")  # which knows the column
    assert again.columns_["gaps"].tolist() == [0, 40]
    assert "no value" not in again.columns_["why"]


@pytest.mark.filterwarnings("ignore:column '[bc]' of X has no value:UserWarning")
def test_a_column_without_a_value_in_one_fold_fails_no_fold():
    frame = pd.DataFrame({"a": np.arange(60.0) % 7, "b": EMPTY["numbers"], "c": EMPTY["texts"]})
    model = tiny(base_kernels=["SE"], averaging=None)
    for columns in (["a", "b"], ["b", "a", "c"]):
        scores = cross_val_score(model, frame[columns], np.sin(frame["a"]), cv=KFold(3))
        assert scores.min() > 0.9
    read = through_json(model.fit(frame[["b", "a"]][:40], np.sin(frame["a"][:40])))
    np.testing.assert_array_equal(read.predict(frame[["b", "a"]]), model.predict(frame[["b", "a"]]))
    EffectsDisplay.from_estimator(model)
    assert "b is without a value." in model.describe()


def test_columns_without_any_value_and_infinite_values_are_refused():
    infinite = np.where(np.arange(100)[:, None] == 3, [0.0, np.inf, 0.0], X)
    with pytest.raises(ValueError, match="contains infinity: row 3, column 1"):
        small().fit(infinite, Y)
    for empty in (pd.DataFrame({"a": [np.nan] * 5, "b": [None] * 5}), np.full((5, 1), np.nan)):
        with pytest.raises(ValueError, match=r"X must have a value in one of its columns \['[ax]"):
            small().fit(empty, np.arange(5.0))


@pytest.mark.parametrize("known", [[1.0], [2.0, 2.0], [0.0, 0.5]])
def test_no_kernel_changes_along_a_column_with_gaps(known):
    column = np.append(known, np.full(9 - len(known), np.nan))
    rows = np.column_stack([np.linspace(0, 1, 9), column])
    with pytest.raises(ValueError, match="change-points on columns of numbers that are all known"):
        small().refit(rows, rows[:, 0], "CP[1](SE[0], LIN[0])")
