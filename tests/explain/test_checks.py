"""Checks of residuals, and texts of numbers, where descriptions do not show every digit."""

import re

import numpy as np
import pandas as pd
import pytest

from autokernel import parse_expression
from autokernel.explain.words import level_text
from tests.explain.models import refitted, with_kernel


@pytest.mark.parametrize(
    ("value", "spread", "expected"),
    [
        (1360.6534, 0.3, "1360.65"),
        (101325.0, 500.0, "101320"),
        (1987.4, 20.0, "1987"),
        (280.3, 120.0, "280"),
        (0.0123, 0.1, "0.0123"),
    ],
)
def test_an_average_has_the_digits_that_its_spread_shows(value, spread, expected):
    assert level_text(value, spread, "") == expected


@pytest.mark.parametrize(("seed", "n_days"), [(0, 40), (1, 40), (2, 40), (3, 5)])
def test_rows_at_the_same_places_do_not_repeat(seed, n_days):
    n = 5 * n_days
    days = pd.date_range("2020-01-01", periods=n_days).repeat(5)
    y = np.random.default_rng(seed).normal(size=n) + 2.0 * (np.arange(n) // 5 % 11 == 0)
    assert "hours" not in refitted("NOISE", pd.DataFrame({"day": days}), y).describe()


@pytest.mark.parametrize(
    "y", [np.isin(np.arange(30), (3, 9)).astype(float), np.arange(30) % 2.0, np.arange(30) // 29.0]
)
def test_targets_that_are_mostly_the_same_are_described_without_a_warning(y):
    text = refitted("NOISE", np.arange(30.0)[:, None], y).describe()
    assert "No structure was found" in text


def test_a_cycle_along_a_constant_column_and_one_that_the_data_do_not_show_are_described():
    X = pd.DataFrame({"time": np.linspace(0, 300, 60), "fixed": np.ones(60)})
    kernel = parse_expression("PER[1] * LIN[1] + SE[0]")
    theta = np.log([0.5, 1.0, 0.2, 1.0, 1.0, 0.1, 1.0])
    text = with_kernel(X, np.sin(X["time"] / 50), kernel, theta).describe()
    assert "time explains 100 % of the variance of the fit: the target goes up and down" in text
    settings = {"base_kernels": ("PER",), "periods": {"time": 365}}
    model = refitted("PER365[time]", X[["time"]], np.sin(X["time"] / 58), **settings)
    text = model.describe()
    assert "cycle" not in text


def test_the_lag_at_which_residuals_depend_on_those_before_is_named():
    n, rng = 150, np.random.default_rng(0)
    e = rng.normal(size=n + 12)
    time, lagged = np.arange(float(n))[:, None], e[12:] + 0.8 * e[:-12]
    found = r"correlation with those 12 rows before is 0\.[34]\d\."  # .49 but for its error of .07
    for kernel, y in (("NOISE", lagged), ("log(y) ~ NOISE", np.exp(lagged))):
        assert re.search(found, refitted(kernel, time, y).describe())
    walk = refitted("NOISE", time, e[12:] + 0.9 * e[11:-1]).describe()
    assert re.search(r"correlation with those of the row\sbefore is 0\.[456]", walk)
    assert "before them" not in refitted("NOISE", time, e[12:]).describe()


def test_what_the_noise_and_what_scaled_residuals_do_are_two_things(rng):
    X = pd.DataFrame(rng.normal(size=(240, 4)), columns=list("abcd"))
    f = X.sum(axis=1)
    y = f + 0.3 * np.exp(f / 2.5) * rng.normal(size=240)
    text = refitted("LIN[a] + LIN[b] + LIN[c] + LIN[d]", X, y, noise="auto").describe()
    assert "The noise grows with d" in text  # two columns at most
    assert "The noise grows with the prediction" not in text
    assert "relative to the predicted deviation still grows with the prediction" in text
