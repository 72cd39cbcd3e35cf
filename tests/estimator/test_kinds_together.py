"""Kinds of data that meet: known periods with gaps, scales with texts, forecasts with weights."""

import json

import numpy as np
import pandas as pd
import pytest

from autokernel.export import from_dict, to_dict
from tests.fits import tiny

N = 40
T = np.arange(N, dtype=float)
RNG = np.random.default_rng(0)
WAVE = np.sin(2 * np.pi * T / 8) + 0.05 * T + 0.1 * RNG.normal(size=N)
SHOPS = pd.DataFrame({"shop": np.tile(["a", "b"], N // 2), "size": np.geomspace(1, 50, N)})


def months(*, has_gap):
    """A column whose values are equally spaced, and one of which may be missing."""
    return pd.DataFrame({"t": np.where((T == 5) & has_gap, np.nan, T)})


def searched(model):
    """The kernels of a search."""
    return model.search_history_["kernel"].tolist()


@pytest.mark.parametrize("has_gap", [False, True])
def test_a_start_kernel_takes_the_known_period_of_a_column(has_gap):
    model = tiny(
        base_kernels=["LIN", "PER"],
        periods={"t": 8},
        start_kernel="LIN[t] + PER[t]",
        max_leaves=2,
        target_scale=None,
    )
    model.fit(months(has_gap=has_gap), WAVE)
    assert searched(model)[0] == "LIN[t] + PER8[t]"


def test_the_design_has_the_known_period_whether_or_not_a_value_is_missing():
    settings = {"base_kernels": ["SE", "LIN", "PER"], "max_leaves": 4, "periods": {"t": 8}}
    plain, other = (
        tiny(**settings, target_scale=None, column_scales=None, outliers=None).fit(
            months(has_gap=has_gap), WAVE
        )
        for has_gap in (False, True)
    )
    assert "LIN[t] + PER8[t] * SE[t] + SE[t]" in searched(plain)
    assert sorted(searched(other)) == sorted(searched(plain))


def test_a_scale_of_all_columns_is_none_of_a_category():
    model = tiny(column_scales="log", base_kernels="auto").fit(SHOPS, WAVE)
    assert "CAT[shop]" in searched(model)
    assert not any("log(shop)" in text for text in searched(model))
    assert any("log(size)" in text for text in searched(model))
    for name in ("log", "sqrt"):
        with pytest.raises(ValueError, match=r"'shop', which holds categories: only numbers have"):
            tiny(column_scales={"shop": name}).fit(SHOPS, WAVE)
    with pytest.raises(ValueError, match="kernel has 'log' for column 'shop', which holds categ"):
        tiny().refit(SHOPS, WAVE, "CAT[log(shop)]")


def test_a_category_has_no_period():
    with pytest.raises(ValueError, match="got one of column 'shop', which holds categories"):
        tiny(periods={"shop": 12}).fit(SHOPS, WAVE)


def test_weights_that_add_up_to_less_than_two_readings_are_refused():
    shares = np.full(N, 1 / N)  # as other libraries take them
    with pytest.raises(ValueError, match=r"must add up to at least 2 readings, got 1: .*divide"):
        tiny().fit(T[:, None], WAVE, sample_weight=shares)
    same, none = (tiny().fit(T[:, None], WAVE, sample_weight=w) for w in (shares * N, None))
    np.testing.assert_allclose(same.predict(T[:, None]), none.predict(T[:, None]), rtol=1e-9)


def test_a_forecast_begins_after_rows_of_weight_zero():
    weights = np.where(T < N - 3, 1.0, 0.0)
    model = tiny().fit(T[:, None], WAVE, sample_weight=weights)
    assert model.X_train_.max() == N - 4
    assert model.forecast(2)["x0"].tolist() == [N, N + 1]
    again = from_dict(json.loads(json.dumps(to_dict(model))))
    assert again.forecast(2)["x0"].tolist() == [N, N + 1]


@pytest.mark.parametrize("column", [0, 1])
def test_the_spread_that_is_too_small_is_named(column):
    X = np.ones((N, 2))  # the other column is constant, which is allowed
    X[:, column] = 1e-120 * T
    with pytest.raises(ValueError, match=r"vary by less than 1e-100, got 3\.9e-119: multiply"):
        tiny().fit(X, WAVE)
