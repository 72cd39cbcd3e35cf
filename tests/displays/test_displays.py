"""Pictures: what they hold, and that they draw it."""

import sys
from itertools import pairwise

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm

from autokernel.displays import CalibrationDisplay, EffectsDisplay, ForecastDisplay
from autokernel.export import from_dict, to_dict
from autokernel.expression import parse_expression
from tests.explain.models import refitted, with_kernel
from tests.fits import small, wave


@pytest.fixture(scope="module")
def model():
    return small(n_iter=1).fit(*wave(30))


@pytest.fixture(scope="module")
def several():
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(40, 6))
    y = X[:, 0] + np.sin(6 * X[:, 1]) * X[:, 2] + X[:, 4] * X[:, 5] + 0.1 * rng.normal(size=40)
    kernel = parse_expression("LIN[0] + SE[1] * SE[2] + SE[3] * SE[4] * SE[5]")
    return with_kernel(X, y, kernel, np.log(np.full(12, 0.5)))


@pytest.fixture(scope="module")
def panels_of_several(several):
    return EffectsDisplay.from_estimator(several)


@pytest.fixture(autouse=True)
def close():
    yield
    plt.close("all")


def test_a_forecast_goes_beyond_the_data_and_its_bands_hold_them(model):
    X, y = wave(30)
    display = ForecastDisplay.from_estimator(model, beyond=0.5, y_name="height")
    assert display.x[-1] == pytest.approx(X.max() + 0.5 * np.ptp(X))
    low, lower, upper, high = display.quantiles.T
    assert np.all((low < lower) & (lower < display.mean) & (display.mean < upper) & (upper < high))
    np.testing.assert_allclose(display.mean, model.predict(display.x[:, None]))
    inside = np.interp(X[:, 0], display.x, low) < y
    assert inside.mean() > 0.9
    assert display.ax_.get_ylabel() == "height"
    display.figure_.canvas.draw()


def test_a_forecast_is_at_given_inputs_and_on_given_axes_of_one_column(model, several):
    _, ax = plt.subplots()
    display = ForecastDisplay.from_estimator(model, [[0.5], [0.1]], ax=ax)
    assert display.ax_ is ax
    assert display.x.tolist() == [0.1, 0.5]
    with pytest.raises(ValueError, match="EffectsDisplay shows several columns"):
        ForecastDisplay.from_estimator(several)


def of_shops(n=60):
    """Days of two shops, with a price: the table of a forecast with other columns."""
    day = np.tile(pd.date_range("2024-01-01", periods=n), 2)
    X = pd.DataFrame({"day": day, "shop": np.repeat(["north", "south"], n)})
    X["price"] = np.random.default_rng(0).uniform(1, 2, 2 * n)
    week = np.sin(2 * np.pi * np.tile(np.arange(n), 2) / 7)
    return X, week + 3 * (X["shop"] == "south") - X["price"]


def test_a_forecast_along_time_has_the_other_columns_of_one_group():
    X, y = of_shops()
    model = refitted("PER7[day] + CAT[shop] + LIN[price]", X, y, periods={"day": 7})
    future = X[X["shop"] == "south"].assign(day=lambda one: one["day"] + pd.Timedelta("60D"))[:5]
    display = ForecastDisplay.from_estimator(model, future)
    last = y[X["shop"] == "south"].to_numpy()[-len(display.y_train) :]
    np.testing.assert_allclose(display.y_train, last)
    assert 21 <= len(last) < 30  # three cycles, and not the whole past
    np.testing.assert_allclose(display.mean[-5:], model.predict(future), rtol=1e-9)
    np.testing.assert_allclose(display.mean[:-5], last, atol=0.1)  # the fit to the past
    assert np.all(display.x[1:] > display.x[:-1])
    with pytest.raises(ValueError, match=r"X must have rows of one group.*got 2 groups by shop"):
        ForecastDisplay.from_estimator(model)
    one = ForecastDisplay.from_estimator(model, X[X["shop"] == "north"])
    np.testing.assert_allclose(one.y_train, y[X["shop"] == "north"])


def test_a_season_of_many_cycles_and_curves_along_dates_can_be_read():
    X, y = of_shops(120)
    X["wind"] = np.random.default_rng(1).uniform(0, 9, len(X))
    days = (X["day"] - X["day"].min()).dt.days
    y = y + 0.02 * days * X["wind"]
    kernel = "PER7[day] + CAT[shop] + LIN[price] + LIN[day] * LIN[wind]"
    model = refitted(kernel, X, y, periods={"day": 7})
    panels = EffectsDisplay.from_estimator(model).panels
    (season,) = (one for one in panels if "weekly season" in one.title)
    shown = np.ptp(season.axes[0]) / np.timedelta64(1, "D")
    assert shown == pytest.approx(14, rel=0.01)  # days, of 120
    assert 10 < len(season.rows[0]) == len(season.residuals) < 40
    (pair,) = (one for one in panels if len(one.names) == 2)
    assert pair.names == ["wind", "day"]
    np.testing.assert_allclose(
        pair.axes[0].astype(float), np.quantile(X["wind"], [0.1, 0.5, 0.9]), atol=0.1
    )
    day, known = pair.axes[1].astype("datetime64[D]").astype(float), np.isfinite(pair.mean)
    slopes = [
        np.polyfit(day[own], one[own], 1)[0] for one, own in zip(pair.mean, known, strict=True)
    ]
    steps = 0.02 * np.diff(pair.axes[0].astype(float))
    np.testing.assert_allclose(np.diff(slopes), steps, rtol=0.15)


def test_each_effect_has_a_panel_with_its_sentence_and_at_most_two_columns(
    several, panels_of_several
):
    described = several.describe()
    for panel in panels_of_several.panels:
        # how the effect of a column depends on another one is seen, and need not be said
        assert len(panel.names) > 1 or panel.title.removesuffix(".") in described
    by_names = {tuple(panel.names): panel for panel in panels_of_several.panels}
    shared = {one.columns: one.share for one in several.decompose().components}
    assert {names for names, share in shared.items() if names and share >= 0.01} <= {*by_names}
    line, pair = by_names["x0",], by_names["x1", "x2"]
    assert pair.mean.shape == tuple(map(len, pair.axes))
    # a line is a line in its panel
    np.testing.assert_allclose(np.diff(line.mean, 2), 0, atol=1e-8)


def test_effects_are_zero_on_average_and_partial_residuals_add_the_residual(
    several, panels_of_several
):
    found = {one.columns: one.mean for one in several.decompose().components}
    residuals = several.y_train_ - several.predict(several.X_train_)
    for panel in panels_of_several.panels:
        if len(panel.names) > 1:
            assert not len(panel.residuals)
            continue
        (x,), (rows,) = panel.axes, panel.rows
        # curves are interpolated between 600 points
        np.testing.assert_allclose(np.interp(rows, x, panel.mean).mean(), 0, atol=1e-4)
        column = several.X_train_[:, int(panel.names[0][1:])]
        effect = found[tuple(panel.names)]
        expected = (effect - effect.mean() + residuals)[np.argsort(column)]
        np.testing.assert_allclose(panel.residuals[np.argsort(rows)], expected, atol=1e-9)
    without = EffectsDisplay.from_estimator(several, partial_residuals=False)
    assert not any(len(panel.residuals) for panel in without.panels)


def test_a_map_is_empty_where_there_are_no_rows(rng):
    X = rng.uniform(size=(60, 1)) + rng.uniform(0, 0.1, size=(60, 2))  # along the diagonal
    y = X[:, 0] * X[:, 1] + 0.01 * rng.normal(size=60)
    model = refitted("LIN[0] * LIN[1]", X, y)
    (panel,) = (one for one in EffectsDisplay.from_estimator(model).panels if len(one.axes) == 2)
    assert np.isnan(panel.mean[[0, -1], [-1, 0]]).all()  # the corners off the diagonal
    assert np.isfinite(np.diag(panel.mean)).all()


@pytest.fixture(scope="module")
def with_outliers():
    """A line with three rows that are excluded, two of them very far off."""
    rng = np.random.default_rng(0)
    X = np.linspace(0, 1, 40)[:, None]
    y = 3 * X[:, 0] + 0.1 * rng.normal(size=40)
    y[[5, 20, 30]] += [1e4, -1e4, 1.5]
    model = refitted("LIN[0]", X, y, outliers="auto")
    assert model.outliers_.tolist() == [5, 20, 30]
    return model, X, y


def crosses(ax):
    (found,) = (line for line in ax.lines if line.get_label() == "excluded")
    return found.get_xdata(), found.get_ydata()


@pytest.mark.parametrize("duplicate", [lambda model: model, lambda m: from_dict(to_dict(m))])
def test_excluded_rows_are_crosses_those_far_off_at_the_edge(with_outliers, duplicate):
    model, X, y = with_outliers
    model = duplicate(model)
    forecast = ForecastDisplay.from_estimator(model)
    np.testing.assert_array_equal(forecast.X_excluded, X[[5, 20, 30], 0])
    np.testing.assert_array_equal(forecast.y_excluded, y[[5, 20, 30]])
    (panel,) = (effects := EffectsDisplay.from_estimator(model)).panels
    assert panel.is_excluded.sum() == 3
    (at,) = np.flatnonzero(panel.rows[0] == X[30, 0])  # the nearest one is where it is
    error = y[30] - model.predict(X[[30]])[0]
    assert panel.residuals[at] == pytest.approx(
        np.interp(X[30, 0], panel.axes[0], panel.mean) + error, abs=1e-3
    )
    for ax in (forecast.ax_, effects.axes_[0]):
        x, places = crosses(ax)
        assert sorted(x) == X[[5, 20, 30], 0].tolist()
        low, high = ax.get_ylim()
        assert low < places.min() < places.max() < high
        assert high - low < 20  # a line of height three can be seen
        assert "excluded" in [one.get_text() for one in ax.get_legend().get_texts()]


def test_a_row_where_the_scale_of_the_target_ends_is_at_the_lower_edge():
    X = np.linspace(0, 1, 30)[:, None]
    y = np.exp(X[:, 0] + 0.05 * np.random.default_rng(0).normal(size=30))
    y[12] = 0.0
    model = refitted("log(y) ~ LIN[0]", X, y, outliers="auto")
    assert model.outliers_.tolist() == [12]
    display = EffectsDisplay.from_estimator(model)
    _, (factor,) = crosses(display.axes_[0])
    assert 0 < factor < min(display.panels[0].band.min(), np.exp(-0.5))


def boxes(artists):
    return [one.get_window_extent() for one in artists if one.get_text()]


@pytest.mark.parametrize(
    "dates",
    [
        pd.date_range("2014-01-01", periods=30, freq="h"),
        pd.date_range("2014-01-01", periods=30),
        pd.date_range("2014-01-30", periods=60, freq="W"),
        pd.date_range("1999-05-01", periods=60, freq="YS"),
    ],
)
def test_ticks_of_dates_do_not_touch(dates):
    y = np.arange(len(dates)) + np.random.default_rng(0).normal(size=len(dates))
    model = refitted("LIN[day]", pd.DataFrame({"day": dates}), y)
    figure, axes = plt.subplots(2, figsize=(4.5, 6), layout="constrained")
    EffectsDisplay.from_estimator(model, axes=axes[:1])
    ForecastDisplay.from_estimator(model, ax=axes[1])
    figure.draw_without_rendering()
    for ax in axes:
        found = boxes(ax.get_xticklabels())
        assert len(found) > 2
        assert all(a.x1 < b.x0 for a, b in pairwise(found))


def test_legends_are_outside_of_the_axes(several, model, panels_of_several, rng):
    frame = pd.DataFrame({"dose": rng.uniform(size=40), "drug": list("ab") * 20})
    y = frame["dose"] * np.where(frame["drug"] == "a", 1, -1) + 0.1 * rng.normal(size=40)
    by_level = EffectsDisplay.from_estimator(refitted("CAT[drug] * LIN[dose]", frame, y))
    displays = [by_level, panels_of_several.plot(), CalibrationDisplay.from_estimator(model)]
    forecast = ForecastDisplay.from_estimator(model)
    n_legends = 0
    for figure in [*(one.figure_ for one in displays), forecast.figure_]:
        figure.draw_without_rendering()
        for ax in figure.axes:
            if legend := ax.get_legend():
                box, own = legend.get_window_extent(), ax.get_window_extent()
                assert box.y0 >= own.y1 - 1 or box.x0 >= own.x1 - 1  # pixels
                assert not ax.get_title("left") or box.y1 <= ax._left_title.get_window_extent().y0
                n_legends += 1
    assert n_legends == 5


def test_many_levels_with_long_names_are_sorted_and_ten_are_named(rng):
    names = [f"a rather long name of level number {n:02d}" for n in range(23)]
    frame = pd.DataFrame({"level": np.repeat(names, 3)})
    y = np.repeat(rng.normal(size=23), 3) + 0.1 * rng.normal(size=69)
    display = EffectsDisplay.from_estimator(refitted("CAT[level]", frame, y))
    (panel,), (ax,) = display.panels, display.axes_
    assert sorted(panel.axes[0]) == names
    assert np.all(np.diff(panel.mean) >= 0)
    display.figure_.draw_without_rendering()
    labels = boxes(ax.get_yticklabels())
    assert len(labels) == len({one.get_text() for one in ax.get_yticklabels()}) == 10
    assert all(a.y1 < b.y0 for a, b in pairwise(labels))
    assert ax.get_window_extent().x0 < 0.4 * display.figure_.bbox.x1


def test_dates_and_ordered_levels_are_drawn_in_their_order(rng):
    sizes = pd.Categorical(rng.choice([*"SML"], 60), [*"SML"], ordered=True)
    days = pd.to_datetime(rng.choice(["2020-01-01", "2020-07-01"], 60))
    frame = pd.DataFrame({"day": days, "size": sizes, "drug": rng.choice([*"abc"], 60)})
    of_size = frame["size"].map({"S": 2.0, "M": 0.0, "L": 1.0}).astype(float)
    of_drug = frame["drug"].map({"a": 2.0, "b": 0.0, "c": 1.0})
    y = of_size + of_drug * (1 + (days.month == 1)) + 0.1 * rng.normal(size=60)
    model = refitted("SE[size] + CAT[drug] * SE[day]", frame, y, base_kernels=["SE", "CAT"])
    panels = EffectsDisplay.from_estimator(model).panels
    assert sorted(len(one.names) for one in panels) == [1, 1, 1, 2]
    order = {"day": ["2020-01-01", "2020-07-01"], "size": [*"SML"], "drug": [*"bca"]}
    for one in panels:
        assert [axis.tolist() for axis in one.axes] == [order[name] for name in one.names]


def test_maps_of_two_categories_are_empty_where_there_are_no_rows(rng):
    frame = pd.DataFrame({"day": rng.choice(["mon", "sat"], 60), "shop": rng.choice([*"ABC"], 60)})
    frame = frame[(frame["day"] != "mon") | (frame["shop"] != "A")]
    y = 2.0 * ((frame["day"] == "sat") & (frame["shop"] == "B")) + 0.2 * rng.normal(size=len(frame))
    display = EffectsDisplay.from_estimator(refitted("CAT[day] * CAT[shop]", frame, y))
    (panel,) = (one for one in display.panels if len(one.names) == 2)
    assert panel.names == ["shop", "day"]
    found = pd.DataFrame(panel.mean, panel.axes[0], panel.axes[1])
    assert found.isna().to_numpy().sum() == 1
    assert np.isnan(found.loc["A", "mon"])
    assert found.stack().idxmax() == ("B", "sat")
    display.figure_.canvas.draw()


def test_small_effects_can_be_left_out(several, panels_of_several):
    least = np.mean([one.share for one in several.decompose().components[:2]])
    display = EffectsDisplay.from_estimator(several, least_share=least)
    largest, *_ = panels_of_several.panels
    assert [panel.names for panel in display.panels] == [largest.names]
    with pytest.raises(ValueError, match="there is no effect to show"):
        EffectsDisplay.from_estimator(several, least_share=1.5)
    with pytest.raises(ValueError, match="axes must be 1, one an effect, got 2"):
        display.plot([None, None])


def test_titles_and_the_legend_end_within_a_narrow_figure(panels_of_several):
    n = len(panels_of_several.panels)
    figure, axes = plt.subplots(n, figsize=(4.2, 2.5 * n), layout="constrained")
    panels_of_several.plot(axes)
    figure.draw_without_rendering()
    (legend,) = (ax.get_legend() for ax in axes if ax.get_legend())
    assert legend.get_window_extent().x1 <= figure.bbox.x1
    for ax in axes:
        assert ax._left_title.get_window_extent().x1 <= figure.bbox.x1
        assert ax.get_title("left").count("\n") < 2


def test_calibration_of_a_right_model_is_on_the_diagonal(model, rng):
    X = rng.uniform(0.1, 0.9, size=(400, 1))
    mean, std = model.predict(X, return_std=True)
    right = CalibrationDisplay.from_estimator(model, X, mean + std * rng.normal(size=400))
    # the standard error of a fraction of 400 is 0.025
    np.testing.assert_allclose(right.coverage([0.5, 0.9]), [0.5, 0.9], atol=0.075)
    too_near = mean[:50] + 0.1 * std[:50] * rng.normal(size=50)
    wide = CalibrationDisplay.from_estimator(model, X[:50], too_near)
    assert wide.coverage([0.5])[0] > 0.95


def test_without_matplotlib_the_message_says_what_to_install(model, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"pip install 'autokernel-gp\[plot\]'"):
        CalibrationDisplay.from_estimator(model)


def test_calibration_is_that_of_the_rows_left_out():
    X, y = wave(25)
    model = refitted("SE[0]", X, y, averaging=None)
    display = CalibrationDisplay.from_estimator(model)
    below, shares = model.left_out_["probability"], model._fitted.mixture.law.shares
    expected = sum(
        share * norm.cdf(norm.ppf(below) / factor)
        for share, factor in zip(shares, (1, 3, 10), strict=True)
    )
    np.testing.assert_allclose(display.pit, expected, rtol=1e-9)
    with pytest.raises(ValueError, match="the fit has left out none"):
        CalibrationDisplay.from_estimator(refitted("SE[0]", X[:9], y[:9]))
    with pytest.raises(ValueError, match="X and y must both be given, or neither"):
        CalibrationDisplay.from_estimator(model, X)


def test_axes_have_the_name_of_the_target():
    X, y = wave(20)
    model = refitted("SE[0]", X, pd.Series(y, name="$ of sales"))
    for display, label in ((ForecastDisplay, ""), (EffectsDisplay, "effect on ")):
        (ax, *_) = display.from_estimator(model).figure_.axes
        assert ax.get_ylabel() == rf"{label}\$ of sales"


def test_factors_over_the_log_of_a_column_have_logarithmic_axes_with_plain_numbers(rng):
    X = pd.DataFrame({"age": np.exp(rng.uniform(0, 6, 60)), "water": rng.uniform(size=60)})
    y = np.exp(0.4 * np.log(X["age"]) + X["water"] + 0.1 * rng.normal(size=60))
    model = refitted("log(y) ~ LIN[log(age)] + LIN[water]", X, y)
    display = EffectsDisplay.from_estimator(model)
    over_age, over_water = display.axes_
    assert (over_age.get_xscale(), over_water.get_xscale()) == ("log", "linear")
    places, factors = over_age.lines[0].get_data()
    # evenly spaced on the scale of the column, along which a power is a line
    np.testing.assert_allclose(np.diff(np.log(places), 2), 0, atol=1e-8)
    np.testing.assert_allclose(np.diff(np.log(factors), 2), 0, atol=1e-8)
    inputs = pd.DataFrame({"age": places, "water": X["water"].median()})
    np.testing.assert_allclose(factors, model.decompose(inputs).components[0].mean)
    assert {one.get_ylabel() for one in display.axes_} == {"factor"}
    display.figure_.canvas.draw()
    assert {"1", "10", "100"} < {one.get_text() for one in over_age.get_xticklabels()}
    model.refit(X, y, "log(y) ~ LIN[log(age)] * LIN[water]")
    *_, surface = EffectsDisplay.from_estimator(model).axes_
    assert sorted((surface.get_xscale(), surface.get_yscale())) == ["linear", "log"]
    model.refit(X, y, "sqrt(y) ~ LIN[sqrt(age)] + LIN[water]")
    display = EffectsDisplay.from_estimator(model, y_name="height")
    assert display.axes_[0].get_xscale() == "linear"
    assert display.axes_[0].get_ylabel() == "effect on height"
    of_age, middle = display.panels[0], np.sqrt(y).mean()
    ends = pd.DataFrame({"age": of_age.axes[0][[0, -1]], "water": X["water"].median()})
    roots = model.decompose(ends).components[0].mean  # changes from the average root
    expected = (middle + roots) ** 2 - middle**2
    np.testing.assert_allclose(of_age.mean[[0, -1]], expected, rtol=1e-6)
