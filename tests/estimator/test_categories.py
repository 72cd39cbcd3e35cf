"""Columns of categories: their kernel, their levels in any form, and what is said of them."""

import re

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from autokernel import AutoKernelGPRegressor
from autokernel.displays import EffectsDisplay, ForecastDisplay
from autokernel.export import write_report
from tests.fits import PLAIN, At, interrupt, small, through_json, tiny

SHOPS = ["A", "B", "C", "D"]
LEVELS = {"A": 0.0, "B": 2.0, "C": -1.0, "D": 3.0}


def sales(n=60, noise=0.2, seed=0, phase=1.0, level=1.0):
    """A trend, a level for each shop, and a season that begins later from shop to shop."""
    rng = np.random.default_rng(seed)
    time, shop = rng.uniform(0, 10, n), rng.choice(SHOPS, n)
    later = phase * np.array([SHOPS.index(one) for one in shop])
    y = 0.3 * time + level * np.array([LEVELS[one] for one in shop]) + np.sin(2 * time + later)
    return pd.DataFrame({"time": time, "shop": shop}), y + noise * rng.normal(size=n)


X, Y = sales()
NUMBERS = X.assign(shop=X["shop"].map(SHOPS.index))
KERNEL = "CAT[shop] + CAT[shop] * PER[time] + LIN[time]"

POLARS = pl.DataFrame({name: X[name].tolist() for name in X})

FORMS = {
    "objects": X.astype({"shop": object}),
    "strings": X.astype({"shop": "string"}),
    "categories": X.astype({"shop": "category"}),
    "ordered categories": X.astype({"shop": pd.CategoricalDtype(SHOPS, ordered=True)}),
    "array": X.to_numpy(dtype=object),
    "lists": X.to_numpy(dtype=object).tolist(),
    "polars strings": POLARS,
    "polars categories": POLARS.with_columns(pl.col("shop").cast(pl.Categorical)),
    "polars enum": POLARS.with_columns(pl.col("shop").cast(pl.Enum(SHOPS))),
}


@pytest.fixture(scope="module")
def fitted():
    """Curves that differ from shop to shop, which no test may change."""
    return small(averaging=None).refit(X, Y, "CAT[shop] * SE[time]")


@pytest.fixture(scope="module")
def levels():
    """The same without curves, of rows that have the same season in all shops."""
    return small(averaging=None).refit(*sales(phase=0.0), "CAT[shop] + SE[time]")


def engines(n=80):
    """An effect of the number of cylinders that follows no curve, and one that is a line."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"cylinders": rng.choice([3, 4, 5, 6, 8], n), "weight": rng.uniform(size=n)})
    effects = X["cylinders"].map({3: 2.0, 4: -1.0, 5: 1.5, 6: -2.0, 8: 0.5})
    return X, X["weight"] + 0.2 * rng.normal(size=n), effects


def test_whole_numbers_act_as_levels_if_they_follow_no_curve():
    X, y, effects = engines()
    kernels = {"*": ["SE", "LIN"], "cylinders": ["SE", "LIN", "CAT"]}
    model = small(base_kernels=kernels, n_iter=3).fit(X, y + effects)
    assert "CAT[cylinders]" in model.best_expression_
    assert re.search(r"cylinders explains .*: 3 \+\d", model.describe())
    _, std = model.predict(X.assign(cylinders=[7] * len(X)), return_std=True)
    assert std.min() > 3 * model.predict(X, return_std=True)[1].max()  # it is no number between
    line = small(base_kernels=kernels, n_iter=3).fit(X, y + 0.5 * X["cylinders"])
    assert "CAT" not in line.best_expression_


@pytest.mark.parametrize(
    ("column", "has_levels"),
    [
        (np.tile([1.0, 2.0, 3.0], 20), True),
        (np.tile([1.0, 2.0], 30), False),
        (np.tile([1.0, 2.0, 2.5], 20), False),
        (np.tile(np.arange(12.0), 5), True),
        (np.repeat(np.arange(30.0), 2), False),
        (np.r_[np.nan, np.tile([1.0, 2.0, 3.0], 20)[1:]], True),
        (pd.to_datetime(np.tile(["2020-01-01", "2020-01-02", "2020-01-05"], 20)), False),
    ],
)
def test_which_columns_of_numbers_may_have_levels(column, has_levels):
    X, y = pd.DataFrame({"code": column}), np.random.default_rng(0).normal(size=60)
    model = small(base_kernels="auto", start_kernel="CAT[code]")
    with pytest.raises((KeyboardInterrupt, ValueError)) as caught:
        model.set_callbacks(At(interrupt, begun=1)).fit(X, y)
    refused = "start_kernel must be made of the base kernels" in str(caught.value)
    assert (caught.type is KeyboardInterrupt, refused) == (has_levels, not has_levels)


def test_categories_in_any_form_have_the_same_levels():
    plain = small(averaging=None).refit(X[:20], Y[:20], "CAT[1]")
    for form, table in FORMS.items():
        model = small(averaging=None).refit(table[:20], Y[:20], "CAT[1]")
        assert model.categories_[1].values == tuple(SHOPS)
        assert model.categories_[1].is_ordered == (form == "ordered categories")
        np.testing.assert_array_equal(model.X_train_, plain.X_train_)
        np.testing.assert_array_equal(model.predict(table), plain.predict(X))


TRUTHS = {
    "pandas": pd.DataFrame({"is_open": [True, False] * 10}),
    "nullable": pd.DataFrame({"is_open": [True, False] * 10}, dtype="boolean"),
    "objects": pd.DataFrame({"is_open": [True, False] * 10}, dtype=object),
    "polars": pl.DataFrame({"is_open": [True, False] * 10}),
}


@pytest.mark.parametrize("form", TRUTHS)
def test_truth_values_are_categories(form):
    y = np.tile([3.0, 1.0], 10) + np.linspace(0, 0.1, 20)
    model = tiny().fit(TRUTHS[form], y)
    assert model.categories_[0].values == (False, True)
    assert model.best_expression_ == "CAT[is_open]"
    assert "Where is_open is True, the target is higher by 1.99" in model.describe()


@pytest.mark.slow
def test_the_search_finds_what_the_shops_share():
    settings = {"base_kernels": ["LIN", "PER"], "n_iter": 8, "averaging": None, **PLAIN}
    X, y = sales(120)
    model = AutoKernelGPRegressor(**settings).fit(X, y)
    assert model.best_score_ >= clone(model).refit(X, y, KERNEL).best_score_
    np.testing.assert_allclose(model.inclusion_probabilities_["depends"], 1.0, rtol=1e-9)
    same_X, same_y = sales(120, phase=0.0)
    same = AutoKernelGPRegressor(**settings).fit(same_X, same_y)
    assert set(same.best_expression_.split(" + ")) == {"CAT[shop]", "PER[time]", "LIN[time]"}


def test_levels_that_differ_in_their_lines_and_seasons_are_found_to():
    rng = np.random.default_rng(34)
    shop, time = np.repeat(np.arange(4), 20), rng.uniform(0, 1, 80)
    level, slope, swing = rng.normal(0, 1.5, 4), rng.normal(1, 2, 4), rng.normal(1, 1, 4)
    y = level[shop] + slope[shop] * time + swing[shop] * np.sin(40 * time)
    X = pd.DataFrame({"time": time, "shop": pd.Categorical.from_codes(shop, list("abcd"))})
    design = {**PLAIN, "base_kernels": ["LIN", "PER"], "n_iter": 0, "averaging": None}
    model = AutoKernelGPRegressor(**design).fit(X, y + 0.3 * rng.normal(size=80))
    found = "CAT[shop] * LIN[time] + CAT[shop] * PER[time]"
    assert found in list(model.search_history_["kernel"][:12])
    on_log = AutoKernelGPRegressor(**{**design, "target_scale": "log"}).fit(X, np.exp(y))
    assert f"log(y) ~ {found}" in list(on_log.search_history_["kernel"])
    assert model.best_expression_ == found
    two = AutoKernelGPRegressor(**design).fit(X.assign(size=rng.uniform(size=80)), y)
    assert found not in set(two.search_history_["kernel"])


def test_levels_with_a_series_each_have_the_kernels_of_series(rng):
    subject, day = np.repeat(list("abcdef"), 8), np.tile(np.arange(8.0), 6)
    slopes = np.repeat(rng.normal(1.0, 1.0, 6), 8)
    y = slopes * day + 0.3 * rng.normal(size=48)
    X = pd.DataFrame({"day": day, "subject": pd.Categorical(subject)})
    kernel = "CAT[subject] * IOU[day]"
    settings = {"base_kernels": "auto", "start_kernel": kernel, "n_iter": 0}
    model = small(**settings).fit(X, y)
    assert model.search_history_["kernel"][0] == kernel
    shuffled = X.assign(day=rng.uniform(0, 8, 48))  # no series: places that no levels share
    with pytest.raises(ValueError, match="start_kernel must be made of the base kernels"):
        small(**settings).fit(shuffled, y)


def test_columns_of_categories_have_no_other_kernel_and_columns_of_numbers_not_theirs():
    def kernels(table, **settings):
        model = tiny(**settings).fit(table[:20], Y[:20])
        return set(model.search_history_["kernel"])

    assert kernels(X) == {"SE[time]", "LIN[time]", "CAT[shop]", "NOISE"}
    ordered = kernels(FORMS["ordered categories"], base_kernels="auto")
    assert {"CAT[shop]", "LIN[shop]", "SE[shop]"} <= ordered
    assert kernels(X, base_kernels={"time": ["LIN"], "shop": ()}) == {"LIN[time]", "NOISE"}
    by_itself = kernels(X, base_kernels={"time": ["LIN"], "shop": "auto"})
    assert by_itself == {"LIN[time]", "CAT[shop]", "NOISE"}


def test_numbers_are_categories_if_the_user_says_so():
    for chosen in (["shop"], [1], [False, True]):
        model = small(categorical_features=chosen).refit(NUMBERS[:20], Y[:20], "CAT[shop]")
        assert model.categories_[1].values == (0, 1, 2, 3)
    assert small().refit(NUMBERS[:20], Y[:20], "LIN[shop]").categories_ == {}


def test_a_random_intercept_has_the_shrunk_means_of_its_closed_form():
    shops = pd.DataFrame({"shop": X["shop"]})
    model = small(averaging=None).refit(shops, Y, "CAT[shop]")
    spread = Y.std()
    variance, offset = (model.parameters_["value"][n] for n in (0, 1))
    z, noise = (Y - Y.mean()) / spread, model.noise_variance_ / spread**2
    same = np.equal.outer(X["shop"].to_numpy(), X["shop"].to_numpy())
    K = variance * same + offset
    alpha = np.linalg.solve(K + noise * np.eye(len(z)), z)
    expected = Y.mean() + spread * K @ alpha
    np.testing.assert_allclose(model.predict(shops), expected, rtol=1e-9)


def test_a_new_level_is_another_draw_from_the_same_prior(levels):
    new = pd.DataFrame({"time": 5.0, "shop": ["A", "new", "newer", "new"]})
    with pytest.warns(UserWarning, match="3 of 4 rows have levels of column 'shop' .* row 1 first"):
        mean, covariance = levels.predict(new, return_cov=True)
    std = np.sqrt(np.diag(covariance))
    assert (mean[1], std[1]) == pytest.approx((mean[2], std[2]), rel=1e-9)
    assert std[1] > 3 * std[0]
    assert covariance[1, 2] < 0.5 * covariance[1, 1]
    # new observations of one new shop share its level, and differ by their noise
    expected = covariance[1, 1] - levels.noise_variance_
    assert covariance[1, 3] == pytest.approx(expected, rel=1e-6)


def test_a_refit_knows_the_levels_that_it_meets_first():
    few = X["shop"] != "D"
    model = small(averaging=None).refit(X[few], Y[few], "CAT[shop]")
    model.refit(X, Y, "CAT[shop]")
    assert model.categories_[1].values == tuple(SHOPS)
    assert "D +" in model.describe()
    (panel,) = EffectsDisplay.from_estimator(model).panels
    assert sorted(panel.axes[0]) == SHOPS
    assert np.all(np.diff(panel.mean) > 0)  # the lowest level comes first


def test_levels_without_a_place_in_an_order_are_missing():
    kind = pd.CategoricalDtype(SHOPS, ordered=True)
    y = X["shop"].map(SHOPS.index) + 0.2 * Y
    model = small(averaging=None).refit(X[["shop"]].astype(kind), y, "LIN[shop]")
    mean, std = model.predict(pd.DataFrame({"shop": [None, "new", "B"]}), return_std=True)
    assert (mean[0], std[0]) == pytest.approx((mean[1], std[1]), rel=1e-9)
    assert std[0] > 2 * std[2]
    assert 0 < mean[0] < 3 + 0.2 * Y.max()
    gaps = X["shop"].where(X["shop"] != "C").to_frame().astype(kind)
    again = small(averaging=None).refit(gaps, y, "LIN[shop]")
    assert again.categories_[0].is_ordered
    assert np.isnan(again.X_train_).any()


def test_change_points_are_not_tried_on_categories_and_gaps():
    table = X.assign(price=np.where(np.arange(len(X)) % 9, 1.0 + np.arange(len(X)), np.nan))[:20]
    settings = {"operators": ("+", "cp"), "base_kernels": {"*": ["LIN"], "shop": ["CAT"]}}
    model = small(**settings, strategy="random", n_iter=4, averaging=None).fit(table, Y[:20])
    kernels = " ".join(model.search_history_["kernel"])
    assert "CP[shop]" not in kernels
    assert "CP[price]" not in kernels
    assert "CP[time]" in kernels
    for column in ("shop", "price"):
        start = f"CP[{column}](LIN[time], LIN[time])"
        with pytest.raises(ValueError, match=r"start_kernel must have .*, got CP\["):
            small(**settings, start_kernel=start).fit(table, Y[:20])


def test_a_missing_value_is_neither_before_nor_after_a_change_point():
    model = small(operators=("+", "cp"), averaging=None)
    model.refit(X[:20], Y[:20], "CP[time](LIN[time], CAT[shop])")
    rows = X[:2].assign(time=[1.0, np.nan])
    with pytest.raises(ValueError, match=r"column 'time' must have no missing values.* row 1:"):
        model.predict(rows)


def test_missing_values_are_a_level():
    whole = small(averaging=None).refit(X, Y, "CAT[shop]")
    for missing in (np.nan, None, pd.NA):
        frame = X.assign(shop=X["shop"].astype(object).where(X["shop"] != "D", missing))
        model = small(averaging=None).refit(frame, Y, "CAT[shop]")
        assert model.categories_[1].values == ("A", "B", "C", None)
        np.testing.assert_allclose(model.predict(frame), whole.predict(X), rtol=1e-6)
    assert "missing" in model.describe()


def test_levels_that_a_type_declares_keep_their_numbers_without_rows():
    kind = pd.CategoricalDtype(["Z", *SHOPS, "E"])
    model = small(averaging=None).refit(X[:20].astype({"shop": kind}), Y[:20], "CAT[shop]")
    assert model.categories_[1].values == ("Z", *SHOPS, "E")
    assert set(model.X_train_[:, 1]) == {1.0, 2.0, 3.0, 4.0}


def test_skc_searches_categories():
    model = tiny(strategy="skc", base_kernels=["LIN"]).fit(X, Y)
    assert "CAT[shop]" in model.best_expression_


def test_sentences_name_levels_and_how_curves_differ(fitted, levels):
    text = fitted.describe()
    assert "time and shop interact" in text or "shop and time interact" in text
    assert all(re.search(f"where (shop|it) is {shop}", text) for shop in SHOPS)  # a curve of each
    text = levels.describe()
    assert "(differences from the average)" in text
    assert text.index("D +") < text.index("B +") < text.index("C -")
    claims = levels.claims_
    of_levels = dict(zip(claims["subject"], claims["value"], strict=True))
    apart = of_levels["shop=D"] - of_levels["shop=C"]
    assert apart == pytest.approx(4.0, abs=0.3)  # five standard errors of a mean of ten
    shops = np.array(levels.categories_[1].values)[levels.X_train_[:, 1].astype(int)]
    of_rows = [of_levels[f"shop={shop}"] for shop in shops]
    assert np.mean(of_rows) == pytest.approx(0.0, abs=1e-6)


def test_categories_that_interact_are_a_joint_effect(rng):
    frame = pd.DataFrame({"day": rng.choice(["mon", "sat"], 60), "shop": rng.choice(SHOPS, 60)})
    on_saturday = (frame["day"] == "sat") & (frame["shop"] == "B")
    y = 2.0 * on_saturday + 0.2 * rng.normal(size=60)
    text = small(averaging=None).refit(frame, y, "CAT[day] * CAT[shop]").describe()
    assert re.search(r"day and shop interact, which explains \S+ % of", text), text
    assert "where day is sat, the target is higher by" in text
    assert re.search(r"shop explains .*: B \+", text), text


def test_an_order_of_levels_makes_a_line_of_them():
    sizes = pd.Categorical(["S", "M", "L", "XL"] * 20, ["S", "M", "L", "XL"], ordered=True)
    y = sizes.codes + 0.2 * np.random.default_rng(0).normal(size=80)
    model = tiny().fit(pd.DataFrame({"size": sizes}), y)
    assert model.best_expression_ == "LIN[size]"
    assert "rises by 1.0" in model.describe()
    assert " per level" in model.describe()
    assert "Beyond" not in model.describe()


def test_amounts_of_levels_are_factors_on_the_log_scale():
    text = small(averaging=None).refit(X, np.exp(Y / 3), "log(y) ~ CAT[shop]").describe()
    assert re.search(
        r"of the fit: D 1\.\d+ \(1\.\d+ to \S+\), .* \(factors of the average\)", text
    ), text


def test_pictures_have_a_point_or_a_curve_for_each_level(fitted, levels):
    display = EffectsDisplay.from_estimator(fitted)
    display.figure_.canvas.draw()
    (panel,) = (one for one in display.panels if one.n_with_levels and len(one.axes) == 2)
    assert sorted(panel.axes[0]) == SHOPS
    assert panel.mean.shape == (4, len(panel.axes[1]))
    (panel,) = (one for one in EffectsDisplay.from_estimator(levels).panels if one.n_with_levels)
    assert sorted(panel.axes[0]) == SHOPS
    of_level = dict(zip(panel.axes[0], panel.mean, strict=True))
    np.testing.assert_allclose(X["shop"].map(of_level).mean(), 0.0, atol=1e-9)


def test_a_picture_has_at_most_ten_curves(rng):
    number = np.r_[np.arange(14), np.tile(np.arange(12), 3)]
    time = rng.uniform(0, 1, len(number))
    frame = pd.DataFrame({"time": time, "shop": [f"s{n}" for n in number]})
    y = time * rng.normal(size=14)[number] + 0.1 * rng.normal(size=len(number))
    model = small(averaging=None).refit(frame, y, "CAT[shop] * LIN[time]")
    panels = EffectsDisplay.from_estimator(model).panels
    (panel,) = (one for one in panels if len(one.names) == 2)
    assert len(panel.axes[0]) == len(panel.mean) == 10
    assert panel.names[0] == "shop (10 of 14)"
    assert not {"s12", "s13"} & set(panel.axes[0])  # with one row each


def test_numbers_with_a_kernel_of_categories_are_shown_as_numbers():
    numbers = NUMBERS.assign(shop=NUMBERS["shop"] + 1)
    model = small(averaging=None, base_kernels={"shop": ("CAT",)}).refit(numbers, Y, "CAT[shop]")
    panels = EffectsDisplay.from_estimator(model).panels
    assert [sorted(one.axes[0]) for one in panels if one.n_with_levels] == [["1", "2", "3", "4"]]
    assert re.search(r"shop explains .*: 4 \+\S+ \(\S+ to \S+\), ", model.describe())
    with pytest.raises(ValueError, match="EffectsDisplay"):
        ForecastDisplay.from_estimator(small().refit(X[["shop"]], Y, "CAT[shop]"))


def test_the_kernel_of_scikit_learn_predicts_the_same_of_the_numbers_of_levels():
    model = small(averaging=None).refit(X, Y, "CAT[shop] * LIN[time]")
    regressor = GaussianProcessRegressor(
        model.best_kernel_, optimizer=None, normalize_y=True, alpha=0
    ).fit(model.X_train_, Y)
    np.testing.assert_allclose(
        regressor.predict(model.X_train_), model.predict(X), rtol=1e-8, atol=1e-8
    )


def test_a_warm_start_begins_again_if_a_column_becomes_a_category():
    model = tiny(warm_start=True).fit(NUMBERS[:20], Y[:20])
    assert "SE[shop]" in model.search_history_["kernel"]
    model.set_params(categorical_features=["shop"]).fit(NUMBERS[:20], Y[:20])
    assert "SE[shop]" not in model.search_history_["kernel"]


def frame_with(shop):
    return pd.DataFrame({"time": np.arange(len(shop), dtype=float), "shop": shop})


TEXTS = ["a", "b", "c"]
NO_LEVEL = "texts, truth values or numbers, .* levels of column 'shop', got {.*} of type set"
PLACES = "'shop', which holds categories: only numbers have"
CHOSEN = "categorical_features"
WRONG = [
    (["a", 3.0, "b"], {}, "one kind .* 'shop', got 'a' of type text and 3.0 of type number: conv"),
    ([1, True, 2], {CHOSEN: ["shop"]}, "got 1 of type number and True of type truth value"),
    ([{1}, {2}, {3}], {CHOSEN: ["shop"]}, NO_LEVEL),
    (TEXTS, {CHOSEN: None}, f"got text such as 'a', .*, name it in {CHOSEN}"),
    (TEXTS, {CHOSEN: ["time"]}, "in column 'shop', got text such as 'a'"),
    (TEXTS, {CHOSEN: ["shops"]}, "out of .*'shop'.* got 'shops'; did you mean 'shop'"),
    (TEXTS, {CHOSEN: [2]}, "indices below 2, got 2"),
    (TEXTS, {CHOSEN: [True]}, "a mask of 2 columns, got 1"),
    (TEXTS, {CHOSEN: 3}, CHOSEN),
    (TEXTS, {CHOSEN: "shop"}, CHOSEN),
    (TEXTS, {"periods": {"shop": 12}}, "got one of column 'shop', which holds categories"),
    (TEXTS, {"column_scales": {"shop": "log"}}, PLACES),
    (TEXTS, {"column_scales": {"shop": "sqrt"}}, PLACES),
]


@pytest.mark.parametrize(("shop", "settings", "message"), WRONG)
def test_wrong_categories_are_refused_with_what_is_wrong(shop, settings, message):
    with pytest.raises(ValueError, match=message):
        small(**settings).fit(frame_with(shop), [1.0, 2.0, 3.0])


def test_an_array_without_the_column_of_categories_has_too_few_columns():
    rows = np.column_stack([np.linspace(0, 1, 8), np.arange(8) % 2])
    settings = {"categorical_features": [1], "averaging": None, "noise": "constant"}
    model = small(**settings).refit(rows, np.arange(8.0), "LIN[0]")
    for columns in ([0], []):
        with pytest.raises(ValueError, match=r"has \d feature|0 feature\(s\)"):
            model.predict(rows[:, columns])


def test_the_numbers_of_levels_are_those_of_each_row(rng):
    """Rows are coded by the distinct values of a column: each row is its own level again."""
    n = 60
    columns = {
        "text": rng.choice(["north", "south", "", "North"], n),
        "gaps": rng.choice(["a", "b", None], n),
        "numbers": rng.choice([1, 2.5, 0], n).astype(object),
        "truth": rng.choice([True, False], n).astype(object),
        "dates": rng.choice(np.arange("2020-01", "2020-05", dtype="M8[D]"), n).astype(object),
        "texts of dates": rng.choice(["2020-01-31", "2020-02-29", None], n),
        "texts of numbers": rng.choice(["1.5", "2", None], n),
    }
    frame = pd.DataFrame(columns)
    settings = {"averaging": None, "noise": "constant"}
    for table in (frame, pl.from_pandas(frame.drop(columns=["numbers", "truth"]))):
        model = small(**settings).refit(table, np.arange(float(n)), "NOISE")
        names, kinds = (model.columns_[name].tolist() for name in ("column", "kind"))
        for name, kind, x in zip(names, kinds, model.X_train_.T, strict=True):
            given = frame[name]
            if kind == "category":
                levels = model.categories_[names.index(name)].values
                assert [levels[int(one)] for one in x] == [
                    one if isinstance(one, str) or one == one else None for one in given
                ]
            elif kind == "date":
                days = (pd.to_datetime(given) - pd.Timestamp("1970-01-01")).dt.days
                np.testing.assert_array_equal(x, days.to_numpy(dtype=float))
            else:
                np.testing.assert_array_equal(x, given.astype(float))


def test_equal_numbers_of_two_types_count_together():
    cells = [1, 2] * 10 + [1.0, 2.0] + ["oops"] * 2  # as a spreadsheet has them
    with pytest.raises(ValueError, match="must hold numbers in column 'a', got text such as 'oop"):
        small().fit(pd.DataFrame({"a": pd.Series(cells, dtype=object)}), np.arange(24.0))


def test_new_rows_must_have_levels_of_the_kind_of_the_fit(fitted):
    with pytest.raises(ValueError, match="levels such as 'A' in column 'shop', as in fit, got 3"):
        fitted.predict(frame_with([3, 4]))
    with pytest.raises(ValueError, match="kernel has 'log' for column 'shop', which holds categ"):
        small().refit(X, Y, "CAT[log(shop)]")
    numbers = small(averaging=None).refit(X[["time"]], Y, "LIN[time]")
    message = r"numbers, as in fit, in column 'time', got text such as 'a', 'b': pandas.to_numeric"
    with pytest.raises(ValueError, match=message):
        numbers.predict(pd.DataFrame({"time": ["a", "b"]}))


N = 40
PLAIN_TEXT = [f"{one:.3f}" for one in np.sort(np.random.default_rng(3).uniform(0, 10, N))]
THOUSANDS = [f"{1e6 * float(one):,.0f}" for one in PLAIN_TEXT]
DAYS = [f"2020-{month:02d}-28" for month in range(1, 13)]
A_GAP, AS_NUMBER = "errors='coerce' makes a gap", "write them as 1234.5, .* by astype"
TO_DATETIME = "convert it by pandas.to_datetime, with dayfirst=True if"
A_DATE = "dates such as '2020-01-31'"
BAD_TEXTS = {  # what is expected, one that is named if not the first, and what to do
    "one '?'": (["?", *PLAIN_TEXT[1:]], "numbers", "?", A_GAP),
    "one 'N/A'": (["N/A", *PLAIN_TEXT[1:]], "numbers", "N/A", A_GAP),
    "two empty cells": (["", "", *PLAIN_TEXT[2:]], "numbers", "", A_GAP),
    "decimal commas": ([one.replace(".", ",") for one in PLAIN_TEXT], "numbers", None, AS_NUMBER),
    "thousands": (THOUSANDS, "numbers", None, AS_NUMBER),
    "spaces": ([one.replace(",", " ") for one in THOUSANDS], "numbers", None, AS_NUMBER),
    "points": ([f"{one.replace(',', '.')},5" for one in THOUSANDS], "numbers", None, AS_NUMBER),
    "units": ([f"{one} kg" for one in PLAIN_TEXT], "numbers", None, AS_NUMBER),
    "whole units": ([f"{one[0]} km/h" for one in PLAIN_TEXT], "numbers", None, AS_NUMBER),
    "percent": ([f"{one.replace('.', ',')}%" for one in PLAIN_TEXT], "numbers", None, AS_NUMBER),
    "currency": ([f"$ {one}.50" for one in THOUSANDS], "numbers", None, AS_NUMBER),
    "minus signs": ([f"\u2212{one} m" for one in PLAIN_TEXT], "numbers", None, AS_NUMBER),
    "limits": ([f"<{one}" for one in PLAIN_TEXT], "numbers", None, AS_NUMBER),
    "dates and a word": (["soon", *DAYS], A_DATE, "soon", A_GAP),
    "no such day": (["2020-02-31", *DAYS], A_DATE, "2020-02-31", A_GAP),
    "no such quarter": (["2020Q5", *["2020Q1", "2020Q2"] * 9], A_DATE, "2020Q5", A_GAP),
    "a date in a spreadsheet": (["2020-01-01", "soon"], A_DATE, "soon", A_GAP),
    "days first": (["13/02/2021", "14/02/2021"], "dates as datetime64", None, TO_DATETIME),
    "months first": (["01/02/2023", "01/13/2023"], "dates as datetime64", None, TO_DATETIME),
    "with a time": (["1.2.2021 08:30", None], "dates as datetime64", None, TO_DATETIME),
}


def read(table):
    """Return a model that has read a table, and nothing more."""
    y = np.arange(float(len(table)))
    return small(averaging=None, noise="constant").refit(table, y, "NOISE")


@pytest.mark.parametrize("form", BAD_TEXTS)
def test_texts_that_look_like_numbers_or_dates_are_refused_with_what_to_do(form):
    texts, expected, named, advice = BAD_TEXTS[form]
    named = texts[0] if named is None else named
    message = rf"^X must hold {expected}.* in column 'a', got text such as {re.escape(repr(named))}"
    message += rf".*: .*{advice}.*; if it holds levels, name it in categorical_features=\['a'\]$"
    for table in (pd.DataFrame({"a": texts}), pl.DataFrame({"a": texts})):
        with pytest.raises(ValueError, match=message):
            read(table)


KINDS = {
    "decimals": (PLAIN_TEXT, "number", "texts of numbers"),
    "decimals and whole numbers": (["1", "2", "2.5", "1e3"] * 10, "number", "texts of numbers"),
    "decimals with nan": (["nan", *PLAIN_TEXT[1:]], "number", "texts of numbers"),
    "labels of astype(str)": (["308", "310", "21"] * 13 + ["7"], "category", "texts of whole"),
    "codes": (["01234", "99999"] * 20, "category", "texts of whole numbers"),
    "ages": (["18-25", "26-35", "65+", "0-17"] * 10, "category", "texts"),
    "houses": (["12", "12a", "14b", "3c"] * 10, "category", "texts"),
    "half of them numbers": (["1.5", "high"] * 20, "category", "texts"),
    "words": (["True", "False"] * 20, "category", "texts"),
    "months": ([f"{d:%b %Y}" for d in pd.date_range("2000-01", periods=N, freq="MS")], "date", ""),
    "quarters": ([*map(str, pd.period_range("2000Q1", periods=N, freq="Q"))], "date", "texts of d"),
    "weeks": ([f"2023-W{week:02d}" for week in range(1, N + 1)], "date", "texts of dates"),
    "days": ([f"{day} January 2000" for day in range(1, 21)] * 2, "date", "texts of dates"),
}


@pytest.mark.parametrize("form", KINDS)
@pytest.mark.parametrize("kind", [object, "string", "str"])
def test_texts_are_numbers_dates_or_levels(form, kind):
    texts, expected, origin = KINDS[form]
    frame = pd.DataFrame({"a": pd.Series(texts, dtype=kind)})
    model = read(frame)
    assert model.columns_["kind"].tolist() == [expected]
    assert model.columns_["why"][0].startswith(origin)
    if expected == "category":
        assert model.categories_[0].values == tuple(sorted(set(texts)))
    # rows of one text are read as in the fit, whatever they would be by themselves
    np.testing.assert_array_equal(model.predict(frame[:1]), model.predict(frame)[:1])


def test_new_texts_of_a_column_of_numbers_are_numbers_or_named():
    model = small().refit(pd.DataFrame({"a": PLAIN_TEXT}), np.arange(float(N)), "LIN[a]")
    whole, text = (pd.DataFrame({"a": one}) for one in ([3.0, 4.0], ["3", "4"]))
    np.testing.assert_array_equal(model.predict(text), model.predict(whole))
    with pytest.raises(
        ValueError, match=r"numbers, as in fit, in column 'a', got text such as '\?'"
    ):
        model.predict(pd.DataFrame({"a": ["3.5", "?"]}))


@pytest.mark.parametrize(
    ("values", "advice"),
    [
        ([f"{n:05d}" for n in range(N)], "if it holds numbers, convert it by pandas.to_numeric"),
        ([f"id {n}" for n in range(N - 3)] + ["id 0"] * 3, "if it numbers or names the rows"),
        (pd.Categorical(np.arange(N)), "if it numbers or names the rows, leave it out"),
    ],
)
def test_a_category_with_nearly_as_many_levels_as_rows_warns(values, advice):
    with pytest.warns(
        UserWarning, match=rf"'a' of X is a category with \d\d levels in 40 .*{advice}"
    ):
        read(pd.DataFrame({"a": values}))


def test_the_table_of_columns_says_how_each_was_read(tmp_path, capsys, rng):
    frame = pd.DataFrame(
        {
            "size": np.where(np.arange(N) == 3, np.nan, rng.uniform(1, 99, N)),
            "day": pd.date_range("2020-01-01", periods=N),
            "shop": rng.choice(["A", "B"], N),
            "age": pd.Categorical(["young", "old"] * 20, ["young", "old"], ordered=True),
            "tree": [str(300 + n % 7) for n in range(N)],
            "price": ["2.5", "3"] * 20,
            "flat": 7.0,
            "empty": pd.Series([None] * N, dtype=object),
        }
    )
    y = np.log(frame["size"].fillna(50)) + (frame["shop"] == "A") + 0.01 * rng.normal(size=N)
    settings = {"base_kernels": {"*": ["LIN"], "shop": ["CAT"], "age": ["LIN"], "tree": ()}}
    with pytest.warns(UserWarning, match="'empty' of X has no value in any row, and is left out"):
        model = small(verbose=1, **settings, column_scales="auto", n_iter=2).fit(frame, y)
    table = model.columns_
    names = ["column", "kind", "values", "scale", "gaps", "used", "why"]
    assert list(table) == list(pd.DataFrame(table)) == names
    rows = {row[0]: row[1:] for row in zip(*table.values(), strict=True)}
    assert rows["size"][0] == "number"
    assert rows["size"][2:4] == ("log", 1)
    assert rows["shop"] == ("category", "A, B", "", 0, True, "texts")
    assert rows["age"][:2] == ("category", "young < old")
    assert rows["tree"][:2] == ("category", "300, 301, 302, 303, 304 and 2 more")
    assert rows["tree"][4:] == (False, "texts of whole numbers, no kernel of the posterior has it")
    assert rows["day"][:2] == ("date", "2020-01-01 to 2020-02-09")
    assert rows["price"][:2] == ("number", "2.5 to 3")
    assert rows["flat"] == ("number", "7", "", 0, False, "numbers, constant")
    assert rows["empty"] == ("number", "", "", N, False, "no value")
    printed = " ".join(capsys.readouterr().out.partition(" no. ")[0].split())
    assert "304 and 2 more 0 texts of whole numbers, base_kernels has none for it" in printed
    assert str(through_json(model).columns_) == str(table)
    assert "texts of whole numbers" in write_report(model, tmp_path / "report.html").read_text()


def test_a_frame_in_another_order_without_unused_columns_is_reindexed():
    frame = X.assign(other=np.arange(len(X)) % 7)
    model = small(averaging=None).refit(frame, Y, "CAT[shop] + LIN[time]")
    expected = model.predict(frame)
    some = frame[["time", "shop"]]
    with pytest.raises(
        ValueError, match=r"other\n.*X\.reindex\(columns=model\.feature_names_in_\)"
    ):
        model.predict(some)
    found = model.predict(some.reindex(columns=model.feature_names_in_))
    np.testing.assert_array_equal(found, expected)


def test_names_of_a_pipeline_are_those_of_its_last_step_with_frames():
    steps = make_pipeline(StandardScaler(), small(averaging=None, n_iter=0, base_kernels=("LIN",)))
    steps.set_output(transform="pandas").fit(X[["time"]], Y)
    assert steps[-1].feature_names_in_.tolist() == ["time"]
    assert "time" in steps[-1].describe()
