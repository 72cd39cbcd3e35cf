"""Pictures: what they hold, and that they draw it."""

import sys

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm
from sklearn.gaussian_process import GaussianProcessRegressor

from autokernel.displays import CalibrationDisplay, EffectsDisplay, ForecastDisplay
from autokernel.expression import parse_expression
from tests.explain.models import refitted, with_kernel
from tests.fits import small, wave

mpl.use("Agg")


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


def test_a_forecast_at_given_inputs_and_on_given_axes(model):
    _, ax = plt.subplots()
    display = ForecastDisplay.from_estimator(model, [[0.5], [0.1]], ax=ax)
    assert display.ax_ is ax
    assert display.x.tolist() == [0.1, 0.5]


def test_a_forecast_of_several_columns_is_refused(several):
    with pytest.raises(ValueError, match="EffectsDisplay shows the effects of several"):
        ForecastDisplay.from_estimator(several)


def test_each_component_has_a_panel_with_its_sentence_and_at_most_two_columns(
    several, panels_of_several
):
    found, display = several.decompose(), panels_of_several
    components = [one for one in found.components if one.columns and one.share >= 0.01]
    for panel, one in zip(display.panels, components, strict=True):
        assert panel.names == [*one.columns]
        # how the effect of a column depends on another one is seen, and need not be said
        title = one.text if len(one.columns) == 1 else one.text.split(":")[0] + "."
        assert panel.title == title
    by_names = {tuple(panel.names): panel for panel in display.panels}
    assert by_names["x0",].mean.shape == (600,)
    assert by_names["x1", "x2"].mean.shape == (40, 40)
    # a line is a line in its panel
    np.testing.assert_allclose(np.diff(by_names["x0",].mean, 2), 0, atol=1e-8)


def test_small_components_can_be_left_out(several, panels_of_several):
    least = np.mean([one.share for one in several.decompose().components[:2]])
    display = EffectsDisplay.from_estimator(several, least_share=least)
    largest, *_ = panels_of_several.panels
    assert [panel.names for panel in display.panels] == [largest.names]
    with pytest.raises(ValueError, match="there is no component to show"):
        EffectsDisplay.from_estimator(several, least_share=1.5)
    with pytest.raises(ValueError, match="axes must be 1, one a component, got 2"):
        display.plot([None, None])


def test_titles_end_within_a_narrow_figure(panels_of_several):
    n = len(panels_of_several.panels)
    figure, axes = plt.subplots(n, figsize=(4.2, 2.5 * n), layout="constrained")
    panels_of_several.plot(axes)
    figure.draw_without_rendering()
    for ax in axes:
        assert ax._left_title.get_window_extent().x1 <= figure.bbox.x1


def test_calibration_of_a_right_model_is_on_the_diagonal(model):
    rng = np.random.default_rng(0)
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


def test_calibration_leaves_out_each_row_of_the_fit():
    X, y = wave(25)
    model = refitted("SE[0]", X, y)
    display = CalibrationDisplay.from_estimator(model)
    kernel = model.best_kernel_
    scaled = (y - y.mean()) / y.std()
    for row in (0, 7):
        others = np.delete(np.arange(25), row)
        left = GaussianProcessRegressor(kernel, optimizer=None, alpha=0).fit(
            X[others], scaled[others]
        )
        mean, std = left.predict(X[[row]], return_std=True)
        assert display.pit[row] == pytest.approx(norm.cdf(scaled[row], mean[0], std[0]), abs=1e-6)
    with pytest.raises(ValueError, match="X and y must both be given, or neither"):
        CalibrationDisplay.from_estimator(model, X)


def test_axes_have_the_name_of_the_target():
    X, y = wave(20)
    model = refitted("SE[0]", X, pd.Series(y, name="$ of sales"))
    for display in (ForecastDisplay, EffectsDisplay):
        (ax, *_) = display.from_estimator(model).figure_.axes
        assert ax.get_ylabel() == r"\$ of sales"


def test_factors_over_the_log_of_a_column_have_logarithmic_axes_with_plain_numbers():
    rng = np.random.default_rng(0)
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
    shown = {one.get_text() for one in over_age.get_xticklabels()}
    assert {"1", "10", "100"} < shown
    model.refit(X, y, "log(y) ~ LIN[log(age)] * LIN[water]")
    *_, surface = EffectsDisplay.from_estimator(model).axes_
    assert sorted((surface.get_xscale(), surface.get_yscale())) == ["linear", "log"]
    model.refit(X, y, "sqrt(y) ~ LIN[sqrt(age)] + LIN[water]")
    display = EffectsDisplay.from_estimator(model, y_name="height")
    assert display.axes_[0].get_xscale() == "linear"
    assert display.axes_[0].get_ylabel() == "sqrt of height"
