"""Columns of categories: their kernel, their levels in any form, and what is said of them."""

import matplotlib as mpl
import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.model_selection import cross_val_predict

from autokernel import AutoKernelGPRegressor, parse_expression
from autokernel.displays import DecompositionDisplay, ForecastDisplay
from autokernel.export import write_report
from tests.fits import PLAIN, small

mpl.use("Agg")

SHOPS = ["A", "B", "C", "D"]
LEVELS = {"A": 0.0, "B": 2.0, "C": -1.0, "D": 3.0}


def sales(n=120, noise=0.2, seed=0, phase=1.0, level=1.0):
    """A trend, a level for each shop, and a season that begins later from shop to shop."""
    rng = np.random.default_rng(seed)
    time, shop = rng.uniform(0, 10, n), rng.choice(SHOPS, n)
    later = phase * np.array([SHOPS.index(one) for one in shop])
    y = 0.3 * time + level * np.array([LEVELS[one] for one in shop]) + np.sin(2 * time + later)
    return pd.DataFrame({"time": time, "shop": shop}), y + noise * rng.normal(size=n)


X, Y = sales()
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
    return small().refit(X, Y, KERNEL)


def test_categories_in_any_form_have_the_same_levels():
    plain = small(averaging=None).refit(X, Y, "CAT[1] + LIN[0]")
    for form, table in FORMS.items():
        model = small(averaging=None).refit(table, Y, "CAT[1] + LIN[0]")
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
    model = small(n_iter=0).fit(TRUTHS[form], y)
    assert model.categories_[0].values == (False, True)
    assert model.best_expression_ == "CAT[is_open]"
    assert "where is_open is True, the target is higher by 1.99" in model.describe()


@pytest.mark.slow
def test_the_search_finds_what_the_shops_share():
    settings = {"base_kernels": ["LIN", "PER"], "n_iter": 8, "averaging": None, **PLAIN}
    model = AutoKernelGPRegressor(**settings).fit(X, Y)
    assert model.best_score_ >= clone(model).refit(X, Y, KERNEL).best_score_
    np.testing.assert_allclose(model.inclusion_probabilities_["depends"], 1.0, rtol=1e-9)
    same_X, same_y = sales(phase=0.0)
    same = AutoKernelGPRegressor(**settings).fit(same_X, same_y)
    assert set(same.best_expression_.split(" + ")) == {"CAT[shop]", "PER[time]", "LIN[time]"}


def test_columns_of_categories_have_no_other_kernel_and_columns_of_numbers_not_theirs():
    model = small(n_iter=0, max_leaves=1, averaging=None).fit(X[:40], Y[:40])
    kernels = set(model.search_history_["kernel"])
    assert {one for one in kernels if "shop" in one} == {"CAT[shop]"}
    assert "CAT[time]" not in kernels
    ordered = small(n_iter=0, max_leaves=1, averaging=None)
    ordered.fit(FORMS["ordered categories"][:40], Y[:40])
    assert {"CAT[shop]", "LIN[shop]", "SE[shop]"} <= set(ordered.search_history_["kernel"])
    chosen = small(n_iter=0, max_leaves=1, base_kernels=["SE"]).fit(X[:40], Y[:40])
    assert set(chosen.search_history_["kernel"]) == {"SE[time]", "CAT[shop]", "NOISE"}
    without = small(n_iter=0, base_kernels={"shop": ()}).fit(X[:40], Y[:40])
    assert not any("shop" in one for one in without.search_history_["kernel"])


def test_numbers_are_categories_if_the_user_says_so():
    numbers = pd.DataFrame({"time": X["time"], "shop": X["shop"].map(SHOPS.index)})
    for chosen in (["shop"], [1], [False, True]):
        model = small(categorical_features=chosen).refit(numbers, Y, "CAT[shop]")
        assert model.categories_[1].values == (0, 1, 2, 3)
    assert small().refit(numbers, Y, "SE[shop]").categories_ == {}


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


def test_a_new_level_is_another_draw_from_the_same_prior(fitted):
    new = pd.DataFrame({"time": [5.0, 5.0, 5.0], "shop": ["A", "new", "newer"]})
    mean, covariance = fitted.predict(new, return_cov=True)
    std = np.sqrt(np.diag(covariance))
    assert (mean[1], std[1]) == pytest.approx((mean[2], std[2]), rel=1e-9)
    assert std[1] > 3 * std[0]
    assert covariance[1, 2] < 0.5 * covariance[1, 1]
    repeated = pd.DataFrame({"time": [5.0, 5.0], "shop": ["new", "new"]})
    _, same = fitted.predict(repeated, return_cov=True)
    # new observations of one new shop share its level, and differ by their noise
    assert same[0, 1] == pytest.approx(same[0, 0] - fitted.noise_variance_, rel=0.05)


def test_a_refit_knows_the_levels_that_it_meets_first():
    few = X["shop"] != "D"
    model = small().refit(X[few], Y[few], "CAT[shop]")
    model.refit(X, Y, "CAT[shop] + SE[time]")
    assert model.categories_[1].values == tuple(SHOPS)
    assert "D +" in model.describe()
    DecompositionDisplay.from_estimator(model).figure_.canvas.draw()


def test_levels_without_a_place_in_an_order_are_missing():
    kind = pd.CategoricalDtype(SHOPS, ordered=True)
    codes = X["shop"].map(SHOPS.index)
    y = codes + 0.2 * Y
    model = small().refit(X.astype({"shop": kind}), y, "LIN[shop] + SE[time]")
    rows = pd.DataFrame({"time": [5.0] * 3, "shop": [None, "new", "B"]})
    mean, std = model.predict(rows, return_std=True)
    assert (mean[0], std[0]) == pytest.approx((mean[1], std[1]), rel=1e-9)
    assert std[0] > 2 * std[2]
    assert 0 < mean[0] < codes.max() + 0.2 * Y.max()
    gaps = X.assign(shop=X["shop"].where(X["shop"] != "C")).astype({"shop": kind})
    again = small().refit(gaps, y, "LIN[shop] + SE[time]")
    assert again.categories_[1].is_ordered
    assert np.isnan(again.X_train_).any()


def test_change_points_are_not_tried_on_categories_and_gaps():
    table = X.assign(price=np.where(np.arange(len(X)) % 9, 1.0 + np.arange(len(X)), np.nan))
    settings = {"operators": ("+", "cp"), "strategy": "random", "averaging": None}
    model = small(n_iter=6, max_leaves=4, **settings).fit(table[:40], Y[:40])
    kernels = " ".join(model.search_history_["kernel"])
    assert "CP[shop]" not in kernels
    assert "CP[price]" not in kernels
    assert "CP[time]" in kernels
    for column in ("shop", "price"):
        with pytest.raises(ValueError, match=r"start_kernel must have .*, got CP\["):
            small(start_kernel=f"CP[{column}](SE[time], LIN[time])", operators=("+", "cp")).fit(
                table, Y
            )


def test_a_missing_value_is_neither_before_nor_after_a_change_point():
    model = small(operators=("+", "cp")).refit(X, Y, "CP[time](SE[time], CAT[shop])")
    rows = X[:2].assign(time=[1.0, np.nan])
    with pytest.raises(ValueError, match=r"column 'time' must have no missing values.* row 1:"):
        model.predict(rows)


def test_missing_values_are_a_level():
    gaps = X.assign(shop=X["shop"].where(X["shop"] != "D"))
    kernel = "CAT[shop] + SE[time]"
    whole = small(averaging=None).refit(X, Y, kernel)
    for missing in (np.nan, None, pd.NA):
        frame = gaps.assign(shop=gaps["shop"].astype(object).where(gaps["shop"].notna(), missing))
        model = small(averaging=None).refit(frame, Y, kernel)
        assert model.categories_[1].values == ("A", "B", "C", None)
        np.testing.assert_allclose(model.predict(frame), whole.predict(X), rtol=1e-6)
    assert "missing" in model.describe()


def test_levels_that_a_type_declares_keep_their_numbers_without_rows():
    kind = pd.CategoricalDtype(["Z", *SHOPS, "E"])
    model = small(averaging=None).refit(X.astype({"shop": kind}), Y, "CAT[shop]")
    assert model.categories_[1].values == ("Z", *SHOPS, "E")
    assert set(model.X_train_[:, 1]) == {1.0, 2.0, 3.0, 4.0}


def test_skc_searches_categories():
    model = small(strategy="skc", n_iter=0, max_leaves=1, averaging=None).fit(X, Y)
    assert "CAT[shop]" in model.best_expression_


def test_sentences_name_levels_and_how_curves_differ(fitted):
    text = fitted.describe()
    assert "differs between the four levels of shop, " in text
    assert "Where shop is" in text
    model = small(averaging=None).refit(*sales(phase=0.0), "CAT[shop] + PER[time] + LIN[time]")
    levels = model.describe()
    assert "difference between levels of shop" in levels
    assert levels.index("D +") < levels.index("B +") < levels.index("C -")
    claims = model.claims_
    of_levels = dict(zip(claims["subject"], claims["value"], strict=True))
    apart = of_levels["shop=D"] - of_levels["shop=C"]
    assert apart == pytest.approx(4.0, abs=0.3)  # five standard errors of a mean of twenty
    assert sum(of_levels[f"shop={shop}"] for shop in SHOPS) == pytest.approx(0.0, abs=1e-6)


def test_curves_are_those_of_the_most_frequent_level():
    often = pd.concat([X, X[X["shop"] == "D"]])  # now the most frequent one
    y = np.concatenate([Y, Y[X["shop"] == "D"] + 0.1])
    assert often["shop"].value_counts().idxmax() == "D"
    assert "Where shop is D, " in small(averaging=None).refit(often, y, KERNEL).describe()


def test_categories_that_interact_are_a_joint_effect():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"day": rng.choice(["mon", "sat"], 90), "shop": rng.choice(SHOPS, 90)})
    on_saturday = (frame["day"] == "sat") & (frame["shop"] == "B")
    y = 2.0 * on_saturday + 0.2 * rng.normal(size=90)
    text = AutoKernelGPRegressor(n_iter=3, **PLAIN).fit(frame, y).describe()
    assert "A joint effect of day and shop. Where shop is " in text
    assert "Where day is " in text


def test_an_order_of_levels_makes_a_line_of_them():
    sizes = pd.Categorical(["S", "M", "L", "XL"] * 20, ["S", "M", "L", "XL"], ordered=True)
    y = sizes.codes + 0.2 * np.random.default_rng(0).normal(size=80)
    model = AutoKernelGPRegressor(n_iter=0, **PLAIN).fit(pd.DataFrame({"size": sizes}), y)
    assert model.best_expression_ == "LIN[size]"
    assert "rises by 1.0" in model.describe()
    assert " per level" in model.describe()
    assert "Beyond" not in model.describe()


def test_amounts_of_levels_are_factors_on_the_log_scale():
    y = np.exp(Y / 3)
    text = small().refit(X, y, "log(y) ~ CAT[shop] + SE[time]").describe()
    assert "as factors of their average: D 1." in text


def test_pictures_have_a_point_or_a_curve_for_each_level(fitted):
    display = DecompositionDisplay.from_estimator(fitted)
    display.figure_.canvas.draw()
    (panel,) = (one for one in display.panels if one.levels)
    assert list(panel.levels) == SHOPS
    assert panel.mean.shape == (4, len(panel.axes[1]))
    points = DecompositionDisplay.from_estimator(small().refit(X, Y, "CAT[shop] + SE[time]"))
    points.figure_.canvas.draw()
    (ax,) = (one for one in points.axes_ if one.get_xlabel() == "shop")
    assert [label.get_text() for label in ax.get_xticklabels()] == SHOPS
    (panel,) = (one for one in points.panels if one.levels)
    np.testing.assert_allclose(panel.mean.mean(), 0.0, atol=1e-9)  # around their average


def test_a_picture_has_at_most_ten_curves():
    rng = np.random.default_rng(0)
    shop = np.array([f"s{n}" for n in range(14)])[np.r_[np.arange(14), rng.integers(0, 12, 100)]]
    time = rng.uniform(0, 1, len(shop))
    frame = pd.DataFrame({"time": time, "shop": shop})
    y = time * rng.normal(size=14)[frame["shop"].str[1:].astype(int)] + 0.1 * rng.normal(
        size=len(shop)
    )
    model = small().refit(frame, y, "CAT[shop] * LIN[time]")
    (panel,) = DecompositionDisplay.from_estimator(model).panels
    assert len(panel.levels) == len(panel.mean) == 10
    assert not {"s12", "s13"} & set(panel.levels)  # with one row each


def test_numbers_with_a_kernel_of_categories_are_shown_as_numbers():
    numbers = pd.DataFrame({"time": X["time"], "shop": X["shop"].map(SHOPS.index) + 1})
    model = small(averaging=None, base_kernels={"shop": ("CAT",)}).refit(numbers, Y, KERNEL)
    panels = DecompositionDisplay.from_estimator(model).panels
    assert [list(panel.levels) for panel in panels if panel.levels] == [["1", "2", "3", "4"]]
    assert "levels of shop" in model.describe()


def test_a_forecast_is_no_picture_of_categories(tmp_path):
    model = small().refit(X[["shop"]], Y, "CAT[shop]")
    with pytest.raises(ValueError, match="DecompositionDisplay"):
        ForecastDisplay.from_estimator(model)
    assert "levels of shop" in write_report(model, tmp_path / "report.html").read_text()


def test_reports_and_cross_validation_know_levels(fitted, tmp_path):
    text = write_report(fitted, tmp_path / "report.html").read_text()
    assert "levels of shop" in text
    predicted = cross_val_predict(small(n_iter=0, max_leaves=1), X, Y, cv=3)
    assert np.isfinite(predicted).all()


def test_the_kernel_of_scikit_learn_predicts_the_same_of_the_numbers_of_levels():
    model = small(averaging=None).refit(X, Y, "CAT[shop] * LIN[time]")
    regressor = GaussianProcessRegressor(
        model.best_kernel_, optimizer=None, normalize_y=True, alpha=0
    ).fit(model.X_train_, Y)
    np.testing.assert_allclose(
        regressor.predict(model.X_train_), model.predict(X), rtol=1e-8, atol=1e-8
    )


def test_a_warm_start_begins_again_if_a_column_becomes_a_category():
    numbers = pd.DataFrame({"time": X["time"], "shop": X["shop"].map(SHOPS.index)})
    model = small(n_iter=0, max_leaves=1, warm_start=True).fit(numbers, Y)
    assert "SE[shop]" in model.search_history_["kernel"]
    model.set_params(categorical_features=["shop"]).fit(numbers, Y)
    assert "SE[shop]" not in model.search_history_["kernel"]


def test_equal_categories_twice_are_one():
    for text in ("CAT[0] * CAT[0]", "CAT[0] + CAT[0]"):
        model = small(n_iter=0, start_kernel=text, max_leaves=2, averaging=None).fit(
            X[["shop"]][:40], Y[:40]
        )
        assert text not in model.search_history_["kernel"]
    assert parse_expression("CAT[0]").leaves[0].kernel.is_categorical


def frame_with(shop):
    return pd.DataFrame({"time": np.arange(len(shop), dtype=float), "shop": shop})


WRONG = {
    "mixed": (frame_with(["a", 3.0, "b"]), {}, "levels of one kind in column 'shop', got 'a'"),
    "all missing": (
        frame_with(pd.Categorical([None, None, None])),
        {},
        "a level in column 'shop', got only missing values",
    ),
    "no level": (
        frame_with([{1}, {2}, {3}]),
        {"categorical_features": ["shop"]},
        "texts, truth values or numbers as levels of column 'shop', got .*, which is of type set",
    ),
    "texts without categories": (
        frame_with(["a", "b", "c"]),
        {"categorical_features": None},
        "got text such as 'a': name the column in categorical_features",
    ),
    "texts that are not chosen": (
        frame_with(["a", "b", "c"]),
        {"categorical_features": ["time"]},
        "in column 'shop', got text such as 'a'",
    ),
    "unknown name": (
        frame_with(["a", "b", "c"]),
        {"categorical_features": ["shops"]},
        "out of .*'shop'.* got 'shops'; did you mean 'shop'",
    ),
    "unknown index": (
        frame_with(["a", "b", "c"]),
        {"categorical_features": [2]},
        "indices below 2, got 2",
    ),
    "short mask": (
        frame_with(["a", "b", "c"]),
        {"categorical_features": [True]},
        "a mask of 2 columns, got 1",
    ),
    "a number": (frame_with(["a", "b", "c"]), {"categorical_features": 3}, "categorical_features"),
    "a text": (frame_with(["a", "b", "c"]), {"categorical_features": "shop"}, "categorical_feat"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_categories_are_refused_with_what_is_wrong(name):
    frame, settings, message = WRONG[name]
    with pytest.raises(ValueError, match=message):
        small(**settings).fit(frame, [1.0, 2.0, 3.0])


def test_new_rows_must_have_levels_of_the_kind_of_the_fit(fitted):
    with pytest.raises(ValueError, match="levels such as 'A' in column 'shop', as in fit, got 3"):
        fitted.predict(frame_with([3, 4]))
    with pytest.raises(ValueError, match="feature names should match"):
        fitted.predict(X[["shop", "time"]])
    numbers = small().refit(X[["time"]], Y, "SE[time]")
    with pytest.raises(ValueError, match="of the fit, in which it held no texts"):
        numbers.predict(pd.DataFrame({"time": ["a", "b"]}))
