"""Rows later than all of their group, predicted by what the last block of each confirms."""

import pickle

import numpy as np
import pandas as pd
import pytest

from autokernel import AutoKernelGPRegressor
from autokernel.export import from_dict, to_dict

N_GROUPS, N_TIMES, N_AHEAD, NOISE = 10, 12, 3, 0.5
LEVELS = np.random.default_rng(1).normal(20, 5, N_GROUPS)
SLOPES = np.random.default_rng(2).normal(1, 0.3, N_GROUPS)


def growth(times, seed=0):
    """Lines of groups in days, which wander by independent steps."""
    rng, days = np.random.default_rng(seed), np.arange(N_TIMES + N_AHEAD)
    steps = rng.normal(0, NOISE, (N_GROUPS, len(days))).cumsum(axis=1)
    y = LEVELS[:, None] + SLOPES[:, None] * days + steps
    names = [f"g{number}" for number in range(N_GROUPS)]
    X = pd.MultiIndex.from_product([names, days], names=["plant", "day"]).to_frame(index=False)
    chosen = X["day"].isin(times).to_numpy()
    return X[chosen].reset_index(drop=True), y.ravel()[chosen]


BEFORE, AFTER = range(N_TIMES), range(N_TIMES, N_TIMES + N_AHEAD)


@pytest.fixture(scope="module")
def model():
    return AutoKernelGPRegressor(n_iter=0, random_state=0).fit(*growth(BEFORE))


def test_groups_go_on_from_their_last_rows(model):
    X, y = growth(AFTER)
    mean, std = model.predict(X, return_std=True)
    # a walk of three steps deviates by NOISE * sqrt(3), as far as slopes are known
    assert np.sqrt(np.mean((mean - y) ** 2)) < 1.5 * NOISE * np.sqrt(N_AHEAD)
    assert np.abs(mean - y).max() < 5 * std.max()
    assert np.all(std.reshape(N_GROUPS, N_AHEAD)[:, -1] > std.reshape(N_GROUPS, N_AHEAD)[:, 0])
    kernels = " ".join(str(one.expression) for one in model._fitted.ahead.components)
    assert "CAT" in kernels
    assert "RW" in kernels


def test_only_rows_later_than_their_group_are_ahead(model):
    X = pd.DataFrame({"plant": ["g0", "g0", "g1", "new", "new"], "day": [11, 12, 0.5, 11.0, 11.5]})
    with pytest.warns(UserWarning, match="have levels of column 'plant' that no row of fit has"):
        mean = model.predict(X)
    fitted = model._fitted
    inputs = np.c_[[0, 0, 1, N_GROUPS, N_GROUPS], X["day"]]
    parts = [fitted.mixture.mean(fitted.scaled(inputs)), fitted.ahead.mean(fitted.scaled(inputs))]
    of_fit, ahead = map(fitted.target.inverse, parts)
    assert np.all(np.abs(of_fit - ahead) > 1e-9)
    expected = np.where([False, True, False, False, True], ahead, of_fit)
    np.testing.assert_allclose(mean, expected, rtol=1e-12)


def test_moments_quantiles_and_draws_agree(model):
    X = pd.concat([growth(BEFORE)[0][:4], growth(AFTER)[0][:4]])
    mean, std = model.predict(X, return_std=True)
    same, covariance = model.predict(X, return_cov=True)
    np.testing.assert_allclose(same, mean, rtol=1e-12)
    np.testing.assert_allclose(np.sqrt(np.diag(covariance)), std, rtol=1e-9)
    np.testing.assert_array_equal(covariance[:4, 4:], 0.0)
    assert np.all(covariance[:4, :4] != 0)
    draws = model.sample_y(X, 4000, random_state=0)
    error = np.sqrt(np.var(draws, axis=1) / 4000)
    assert np.all(np.abs(draws.mean(axis=1) - mean) < 5 * error)
    low, middle, high = model.predict_quantiles(X, [0.25, 0.5, 0.75]).T
    share = np.mean(draws < middle[:, None], axis=1)
    assert np.all(np.abs(share - 0.5) < 5 * 0.5 / np.sqrt(4000))
    assert np.all((low < middle) & (middle < high))


def test_copies_predict_the_same(model):
    X, _ = growth(AFTER)
    expected, bands = model.predict(X), model.predict_quantiles(X, [0.1, 0.9])
    for again in (pickle.loads(pickle.dumps(model)), from_dict(to_dict(model))):
        np.testing.assert_array_equal(again.predict(X), expected)
        np.testing.assert_array_equal(again.predict_quantiles(X, [0.1, 0.9]), bands)


def test_rows_of_updates_join_and_are_then_the_last_ones(model):
    again = pickle.loads(pickle.dumps(model))
    (first, y_first), (X, y) = growth([N_TIMES]), growth([N_TIMES + 1])
    before = np.mean((again.predict(X) - y) ** 2)
    again.update(first, y_first)
    np.testing.assert_allclose(again.outcomes_["mean"], model.predict(first), rtol=1e-9)
    assert np.mean((again.predict(X) - y) ** 2) < before
    known = again._fitted.by_time(np.c_[np.arange(N_GROUPS), np.full(N_GROUPS, N_TIMES)])
    assert [mixture is again._fitted.mixture for _, mixture in known] == [True]


def test_the_description_says_which_kernels_predict_later_rows(model):
    text = str(model.describe())
    assert "Rows later in day than all of their group are predicted by" in text


def test_without_groups_or_averages_there_is_one_mixture(model):
    X, y = growth(BEFORE)
    settings = {"n_iter": 0, "random_state": 0}
    curve = AutoKernelGPRegressor(**settings).fit(X[["day"]][:N_TIMES], y[:N_TIMES])
    best = AutoKernelGPRegressor(averaging=None, **settings).fit(X, y)
    assert curve._fitted.ahead is best._fitted.ahead is None


def test_a_row_that_no_scale_of_later_rows_has_leaves_the_mixture_of_the_search():
    rng, tables = np.random.default_rng(2), []
    for group, level in zip("abcd", (5, 5.5, 6, 6.5), strict=True):
        y = np.maximum(level - rng.gamma(1.0, 1.3, 40), 0.02 * rng.uniform(0.5, 1, 40))
        y[32:] = level * np.exp(0.12 * np.arange(1, 9) + 0.01 * rng.standard_normal(8))
        tables.append(pd.DataFrame({"time": np.arange(40.0), "group": group, "y": y}))
    table = pd.concat(tables, ignore_index=True)
    settings = {"n_iter": 0, "noise": "constant", "outliers": None, "random_state": 0}
    model = AutoKernelGPRegressor(**settings).fit(table[["time", "group"]], table["y"])
    assert "identity" not in {one.expression.target for one in model._fitted.ahead.components}
    model.update(pd.DataFrame({"time": [3.5], "group": ["a"]}), [-0.1])
    later = pd.DataFrame({"time": [41.0], "group": ["a"]})
    mean, std = model.predict(later, return_std=True)
    expected = model._fitted.mixture.mean(model._fitted.scaled(np.array([[41.0, 0.0]])))
    np.testing.assert_allclose(mean, model._fitted.target.inverse(expected))
    assert np.isfinite(std).all()
