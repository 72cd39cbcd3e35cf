"""Comparisons of rows and slopes along columns, against the moments of the predictions."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm

from tests.fits import small, tiny

# the standard error of the quantile .05 of 2000 draws is .047 deviations
HALVES = ("high", "low"), ("new_high", "new_low")
ENDS = {"rtol": 0, "atol": 4 * 0.047}


def plane(n_samples=40):
    """A plane over two columns, and a category that shifts it."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.uniform(0, 10, size=(n_samples, 2)), columns=["height", "age"])
    X["shop"] = rng.permutation(np.resize(["north", "south"], n_samples))
    y = 2 * X["height"] - X["age"] + 3 * (X["shop"] == "south")
    return X, y + 0.1 * rng.normal(size=n_samples)


@pytest.fixture(scope="module")
def of_plane():
    X, y = plane()
    return small(base_kernels="auto", n_iter=0, max_leaves=3).refit(
        X, y, kernel="LIN[height] + LIN[age] + CAT[shop]"
    )


def test_a_difference_is_that_of_the_predictions_with_the_deviation_of_their_contrast():
    rng = np.random.default_rng(1)
    X = rng.uniform(size=(30, 2))
    model = tiny(averaging=None).fit(X, np.sin(5 * X[:, 0]) + X[:, 1] + 0.1 * rng.normal(size=30))
    A, B = rng.uniform(size=(4, 2)), rng.uniform(size=(3, 2))
    table = model.compare(A, B)
    mean, covariance = model.predict(np.concatenate([A, B]), return_cov=True)
    function = covariance - model.noise_variance_ * np.eye(7)
    contrasts = np.zeros((3, 7))
    contrasts[0, :4] = contrasts[2, :4] = 1 / 4
    contrasts[1, 4:], contrasts[2, 4:] = 1 / 3, -1 / 3
    estimates, stds = contrasts @ mean, np.sqrt(np.diag(contrasts @ function @ contrasts.T))
    assert table["quantity"].tolist() == ["A", "B", "A - B"]
    np.testing.assert_allclose(table["estimate"], estimates, rtol=1e-9)
    for name, level in (("low", 0.05), ("high", 0.95)):
        np.testing.assert_allclose((table[name] - estimates) / stds, norm.ppf(level), **ENDS)
    sure = norm.cdf(abs(estimates[2]) / stds[2])
    assert table["probability"][2] == pytest.approx(sure, abs=4 * np.sqrt(0.25 / 2000))


def test_with_averaging_a_difference_is_that_of_joint_draws_of_each_kernel():
    rng = np.random.default_rng(1)
    X = rng.uniform(size=(25, 2))
    y = np.sin(5 * X[:, 0]) + X[:, 1] + 0.3 * rng.normal(size=25)
    model = small(averaging="posterior").fit(X, y)
    A, B = X[:4] + 0.5, X[:3]
    fitted, contrast = model._fitted, np.append(np.full(4, 1 / 4), np.full(3, -1 / 3))
    mixture, rows = fitted.mixture, fitted.scaled(np.concatenate([A, B]))
    assert len(mixture.weights) > 1
    (_, _, low), (_, _, high) = (model.compare(A, B)[name] for name in ("low", "high"))
    below = np.zeros(2)
    for weight, one in zip(mixture.weights, mixture.predictors, strict=True):
        mean, covariance = one.mean_and_covariance(rows)
        covariance -= np.diag(one.noise_at(rows, mean))
        std = mixture.law.deviation * np.sqrt(contrast @ covariance @ contrast)
        ends = np.array([low, high]) / fitted.target.width
        below += weight * norm.cdf(ends, contrast @ mean, std)
    # the standard error of the share of 2000 draws is .0049
    np.testing.assert_allclose(below, [0.05, 0.95], atol=4 * 0.0049)


def test_a_row_with_gaps_that_is_in_both_groups_is_the_same_in_both():
    X, y = plane()
    X.loc[::3, "age"] = np.nan
    model = small(base_kernels="auto").refit(X, y, "LIN[height] + SE[age] + CAT[shop]")
    same = {name: column[2] for name, column in model.compare(X, X).items()}
    assert (same["estimate"], same["low"], same["high"]) == (0, 0, 0)
    assert np.isnan(same["probability"])
    twice = pd.concat([X.iloc[[0, 0]]])  # two rows that look the same have two ages
    assert model.compare(X.iloc[[0]], twice)["high"][2] > 1
    A, B = X.iloc[[0]], X.iloc[[0]].assign(height=X["height"][0] + 1)
    half, whole = model.compare(pd.concat([A, B]), B), model.compare(A, B)
    width = whole["high"][2] - whole["low"][2]
    # quantiles of two samples, as above, of a deviation of 1 / 3.3 of the width
    for name in ("estimate", "low", "high"):
        assert 2 * half[name][2] == pytest.approx(
            whole[name][2], abs=np.sqrt(2) * 0.19 * width / 3.3
        )


@pytest.mark.parametrize("scale", ["log", "logit"])
def test_on_another_scale_averages_agree_with_predictions_and_on_that_of_logs_have_a_ratio(scale):
    x = np.linspace(1, 5, 30)
    y = np.exp(x + 0.05 * np.random.default_rng(2).normal(size=30))
    y = y if scale == "log" else y / (20 + y)
    model = small().refit(x[:, None], y, kernel=f"{scale}(y) ~ SE[0]")
    table = model.compare([[4.0], [4.5]], [[3.0], [3.5]])
    first, second = model.predict([[4.0], [4.5], [3.0], [3.5]]).reshape(2, 2).mean(axis=1)
    expected = {"A": first, "B": second, "A - B": first - second}
    expected |= {"A / B": first / second} if scale == "log" else {}
    assert table["quantity"].tolist() == [*expected]
    np.testing.assert_allclose(table["estimate"], [*expected.values()], rtol=1e-9)
    assert np.all((table["low"] < table["estimate"]) & (table["estimate"] < table["high"]))


def test_the_slopes_of_a_plane_are_its_coefficients(of_plane):
    for column, slope in (("height", 2.0), (1, -1.0)):
        (name,), (estimate,), (low,), (high,), (sure,) = of_plane.slopes(column).values()
        assert name == "all"
        assert low < slope < high
        assert estimate == pytest.approx(slope, abs=0.05)
        assert sure == 1


def test_slopes_by_a_category_are_those_of_its_levels():
    X, y = plane(60)
    y = y + X["age"] * (X["shop"] == "south")  # which makes age count nothing there
    model = small(base_kernels="auto").refit(
        X, y, kernel="LIN[height] + (CAT[shop] + LIN[age]) * LIN[age]"
    )
    by = model.slopes("age", by="shop")
    assert by["rows"].tolist() == ["north", "south"]
    np.testing.assert_allclose(by["estimate"], [-1, 0], atol=0.2)
    some = model.slopes("age", X[X["shop"] == "north"])
    assert some["estimate"][0] == pytest.approx(by["estimate"][0], rel=1e-6)


def test_a_column_that_no_kernel_uses_has_slopes_of_zero():
    X, y = plane()
    model = small().refit(X[["height", "age"]], y, kernel="SE[height]")
    table = model.slopes("age", by="height")
    assert len(table["rows"]) == len(X)
    for name in ("estimate", "low", "high"):
        assert np.all(table[name] == 0)
    assert np.isnan(table["probability"]).all()


def test_columns_without_names_have_those_of_the_texts():
    X, y = plane()
    X = X[["height", "age"]].to_numpy()
    model = small().refit(X, y, kernel="LIN[0] + LIN[1]")
    for name, number in (("x0", 0), ("x1", np.int64(1))):
        pd.testing.assert_frame_equal(*(pd.DataFrame(model.slopes(one)) for one in (name, number)))
    with pytest.raises(ValueError, match=r"the indices below 2, got 'x2'"):
        model.slopes("x2")


def test_slopes_by_dates_have_rows_of_dates():
    X, y = plane()
    days = pd.Timestamp("2024-02-28") + pd.to_timedelta(7 * (np.arange(len(X)) // 14), unit="D")
    model = small().refit(X[["height"]].assign(day=days), y, kernel="LIN[height] + LIN[day]")
    rows = model.slopes("height", by="day")["rows"]
    assert rows.tolist() == ["2024-02-28", "2024-03-06", "2024-03-13"]


@pytest.mark.parametrize(
    ("values", "names"),
    [
        ([1000000, 1000001, 1000002], ["1000000", "1000001", "1000002"]),
        ([0.1, 0.1000001, 2.0], ["0.1", "0.1000001", "2"]),
        ([1 / 3, 2 / 3], ["0.333333", "0.666667"]),
        (
            pd.to_datetime(["2024-01-01 06:00", "2024-01-01 18:00", "2024-03-01 00:00"]),
            ["2024-01-01T06:00:00", "2024-01-01T18:00:00", "2024-03-01T00:00:00"],
        ),
    ],
)
def test_groups_that_differ_have_names_that_differ(values, names):
    X, y = plane(42)
    X = X[["height"]].assign(group=np.resize(values, 42))
    model = small().refit(X, y, kernel="LIN[height]")
    found = model.slopes("height", by="group")["rows"].tolist()
    assert [one.removesuffix(".000000") for one in found] == names


def test_the_average_slope_is_the_mean_of_the_slopes_of_the_rows():
    """Along few values, a row has the slope between its neighbours; here these are 1, 10 and 11."""
    x = np.repeat([0.0, 1.0, 10.0], 10)
    model = small().refit(x[:, None], x**2 + 1e-3 * np.tile([-1, 1], 15), kernel="SE[0]")
    table = model.slopes(0)
    assert table["estimate"][0] == pytest.approx(np.mean(2 * x), rel=0.01)  # of the derivatives
    assert table["low"][0] < np.mean(2 * x) < table["high"][0]
    by = model.slopes(0, by=0)
    np.testing.assert_allclose(by["estimate"], [1, 10, 11], rtol=0.01)
    apart = model.compare([[10.0]], [[1.0]])  # over nine units
    width = np.ptp([apart["low"][2], apart["high"][2]]) / 9
    # the ends of both are quantiles of 2000 draws
    assert by["high"][2] - by["low"][2] == pytest.approx(width, rel=0.15)
    some = model.slopes(0, [[0.0], [0.5], [10.0], [10.0]])["estimate"][0]
    assert some == pytest.approx(np.mean([1, 1, 11, 11]), rel=0.01)


def test_derivatives_at_rows_are_those_of_the_predictions():
    rng = np.random.default_rng(3)
    X = rng.uniform(0, 6, size=(60, 2))
    y = np.sin(X[:, 0]) * X[:, 1] + 0.01 * rng.normal(size=60)
    model = small(base_kernels="auto").refit(X, y, kernel="SE[0] * SE[1]")
    at = rng.uniform(1, 5, size=(260, 2))  # more than are drawn together
    table = model.slopes(0, at=at)
    ahead, behind = (model.predict(at + np.array([step, 0.0])) for step in (1e-4, -1e-4))
    np.testing.assert_allclose(table["estimate"], (ahead - behind) / 2e-4, atol=1e-4)
    truth = np.cos(at[:, 0]) * at[:, 1]
    inside = np.mean((table["low"] < truth) & (truth < table["high"]))
    assert inside > 0.8  # of 90 % intervals at 260 places of one function
    np.testing.assert_array_equal(table["rows"], np.arange(260))
    with pytest.raises(ValueError, match="slopes takes at=rows for derivatives, or X and by"):
        model.slopes(0, at=at, by=1)


def test_groups_are_also_compared_with_all_else_equal():
    """Those with a loan are older, which hides what the loan does."""
    rng = np.random.default_rng(6)
    loan = np.repeat([0, 1], 40)
    X = pd.DataFrame({"age": rng.uniform(20, 50, 80) + 20 * loan, "loan": loan})
    y = 0.5 * X["age"] - 10 * X["loan"] + 0.5 * rng.normal(size=80)
    model = small(base_kernels="auto").refit(X, y, kernel="LIN[age] + LIN[loan]")
    A, B = X[loan == 1], X[loan == 0]
    found = pd.DataFrame(model.compare(A, B)).set_index("quantity")
    as_they_are = 0.5 * (A["age"].mean() - B["age"].mean()) - 10
    difference, only = found.loc["A - B"], found.loc["A - B, only loan"]
    assert difference["estimate"] == pytest.approx(as_they_are, abs=0.3)
    assert only["estimate"] == pytest.approx(-10, abs=0.5)
    exchanged = (model.predict(X.assign(loan=one)).mean() for one in (1, 0))
    assert only["estimate"] == pytest.approx(np.subtract(*exchanged), rel=1e-6)
    # a mean of forty new observations has the noise besides the function
    function, new = (difference[high] - difference[low] for high, low in HALVES)
    noise = 2 * norm.ppf(0.95) * np.sqrt(2 * model.noise_variance_ / 40)
    assert new == pytest.approx(np.hypot(function, noise), rel=0.1)  # by 2000 draws
    assert (
        "A - B, only loan" not in model.compare(X[:1], X[-1:].assign(age=X["age"][0]))["quantity"]
    )


def test_what_has_no_slope_is_refused_with_what_to_do(of_plane):
    with pytest.raises(ValueError, match="'shop', which holds categories: compare takes two"):
        of_plane.slopes("shop")
    with pytest.raises(ValueError, match=r"column must be a column of X.*did you mean 'height'"):
        of_plane.slopes("hight")
    with pytest.raises(ValueError, match="by must be a column of X"):
        of_plane.slopes("height", by=7)


def test_several_rows_are_explained_as_each_of_them(of_plane):
    X, _ = plane()
    several = pd.DataFrame(of_plane.explain(X.iloc[[7, 3]]))
    for number, row in enumerate((7, 3)):
        one = pd.DataFrame(of_plane.explain(X.iloc[[row]])).set_index("effect")
        own = several[several["row"] == number].drop(columns="row").set_index("effect")
        pd.testing.assert_frame_equal(own.loc[one.index], one)


@pytest.mark.parametrize("scale", ["identity", "log"])
def test_contributions_make_up_the_prediction_of_a_row(scale):
    X, y = plane()
    y = y if scale == "identity" else np.exp(y / 10)
    kernel = "LIN[height] * SE[age] + CAT[shop]"
    kernel = kernel if scale == "identity" else f"{scale}(y) ~ {kernel}"
    model = small(base_kernels="auto").refit(X, y, kernel=kernel)
    row = X.iloc[[7]]
    table = model.explain(row)
    first, *effects, last = table["effect"].tolist()
    assert (first, last) == ("constant", "median" if scale == "log" else "prediction")
    assert {"height", "age", "shop"} < {*effects}
    constant, *contributions, whole = table["contribution"]
    found = model.decompose(row)
    assert constant == pytest.approx(found.constant)
    if scale == "log":
        assert constant * np.prod(contributions) == pytest.approx(whole)
        assert whole == pytest.approx(model.predict_quantiles(row, [0.5])[0, 0], rel=1e-8)
    else:
        assert constant + np.sum(contributions) == pytest.approx(whole)
        assert whole == pytest.approx(model.predict(row)[0], rel=1e-8)
    sizes = np.abs(contributions if scale == "identity" else np.log(contributions))
    shown = sizes[: len(effects) - ("rest" in effects)]
    assert np.all(np.diff(shown) <= 0)
    by_name = dict(zip(table["effect"], zip(table["low"], table["high"], strict=True), strict=True))
    std = next(one for one in found.components if one.columns == ("shop",)).std[0]
    low, high = by_name["shop"]
    half = np.log(high / low) / 2 if scale == "log" else (high - low) / 2
    assert half == pytest.approx(norm.ppf(0.95) * std)


def test_slopes_are_those_of_functions_that_bend_within_a_small_part_of_the_column():
    age = np.exp(np.random.default_rng(4).uniform(-4, 3, 60))
    model = small(column_scales="log").refit(age[:, None], 3 * np.log(age), kernel="LIN[log(0)]")
    (slope,) = model.slopes(0)["estimate"]
    assert slope == pytest.approx(np.mean(3 / age), rel=0.01)
    t = np.sort(np.random.default_rng(5).uniform(0, 300, 200))
    model = small(periods={0: 1.0}).refit(t[:, None], np.sin(2 * np.pi * t), kernel="PER1[0]")
    (slope,) = model.slopes(0, [[100.0]])["estimate"]
    assert slope == pytest.approx(2 * np.pi, rel=0.02)


def test_missing_values_and_new_levels_have_rows_of_their_own():
    X, y = plane()
    X.loc[::5, "age"] = np.nan
    y = y.where(X["age"].notna(), 10.0)
    model = small(base_kernels="auto").refit(X, y, kernel="LIN[height] + LIN[age] + CAT[shop]")
    d = model.decompose()
    total = d.constant + sum(one.mean for one in d.components)
    np.testing.assert_allclose(total, model.predict(X), atol=1e-8 * y.std())
    by = model.slopes("height", by="age")
    assert by["rows"].tolist()[-1] == "missing"
    (low,), (high,) = (model.slopes("height")[end] for end in ("low", "high"))
    assert high - low < 3  # not that of two draws of a missing value
    new = X.head(2).assign(shop=["north", "east"])
    with pytest.warns(UserWarning, match="1 of 2 rows have levels of column 'shop'"):
        by = model.slopes("height", new, by="shop")
    assert by["rows"].tolist() == ["north", "a new level"]
