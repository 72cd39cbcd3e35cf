"""Rows that are left out: they are predicted by models that are fitted without them."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm
from sklearn.base import clone

from autokernel import AutoKernelGPRegressor, parse_expression
from autokernel.evidence import Evaluator
from autokernel.inference import TrainingData
from autokernel.kernels import PRESETS
from autokernel.model import refit_by
from tests.fits import small, wave


def test_rows_are_predicted_by_models_that_are_fitted_without_them():
    X, y = wave(40)
    model = small(averaging=None).refit(X, y, "SE[0]")
    found = model.left_out_
    np.testing.assert_array_equal(found["row"], np.arange(40))
    for fold in range(5):
        is_out = found["fold"] == fold
        assert is_out.sum() == 8
        other = clone(model).refit(X[~is_out], y[~is_out], "SE[0]")
        mean, std = other.predict(X[is_out], return_std=True)
        # another standardisation of the target, and eight steps of a fit
        np.testing.assert_allclose(found["mean"][is_out], mean, atol=0.03 * std.max())
        np.testing.assert_allclose(found["std"][is_out], std, rtol=0.05)
    below = norm.cdf(y, found["mean"], found["std"])
    np.testing.assert_allclose(found["probability"], below, atol=1e-9)
    errors = np.sum((y - found["mean"]) ** 2) / np.sum((y - y.mean()) ** 2)
    assert model.left_out_score_ == pytest.approx(1 - errors)


def test_kernels_are_weighed_by_the_rows_that_are_not_held_out(rng):
    X = rng.uniform(size=(80, 2))
    y = np.where(np.arange(80) < 50, np.sin(6 * X[:, 0]), np.sin(6 * X[:, 1]))
    data = TrainingData(X, y + 0.1 * rng.normal(size=80))
    evaluator = Evaluator(data, priors=PRESETS["default"], seed=0)
    first, second = (evaluator(parse_expression(kernel)) for kernel in ("SE[0]", "SE[1]"))
    lines = [evaluator(parse_expression(kernel)) for kernel in ("LIN[0]", "LIN[1]", "NOISE")]
    refit = refit_by([*lines, first, second], evaluator)
    for rows, expected in ((np.arange(50), first), (np.arange(50, 80), second)):
        mixture = refit(data.take(rows))
        best = mixture.components[int(np.argmax(mixture.weights))]
        assert best.expression == expected.expression
        assert mixture.weights.max() > 0.9
        # and fitted to them: noise is no longer what the other rows make it
        assert best.theta[-1] < expected.theta[-1] - 0.5


def test_intervals_are_as_wide_as_rows_left_out_show():
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(200, 1))
    y = X[:, 0] + 0.1 * rng.standard_t(2, size=200)
    model = small(n_iter=0, max_leaves=1, outliers=None).fit(X, y)
    plain = clone(model).set_params(averaging=None).fit(X, y)
    law = model._fitted.mixture.law
    (_, std), (_, of_plain) = (one.predict(X[:5], return_std=True) for one in (model, plain))
    np.testing.assert_allclose(std, law.deviation * of_plain, rtol=0.05)
    ends = model.predict_interval(X[:5], 0.95)
    np.testing.assert_allclose(np.ptp(ends, axis=1) / 2, 1.96 * std, rtol=0.02)


def test_of_series_the_last_rows_of_each_are_left_out():
    dates = pd.date_range("2020-01-01", periods=30, freq="D")
    X = pd.DataFrame({"date": [*dates, *dates[:20]], "shop": ["a"] * 30 + ["b"] * 20})
    y = np.arange(50.0) % 7 + np.random.default_rng(0).normal(size=50)
    model = AutoKernelGPRegressor(strategy="series", random_state=0).fit(X, y)
    np.testing.assert_array_equal(model.left_out_["row"], [*range(24, 30), *range(46, 50)])
    assert not model.left_out_["fold"].any()


def test_equal_rows_are_left_out_one_by_one():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"sex": rng.choice(["f", "m"], 300), "class": rng.choice(["1", "2"], 300)})
    p = np.where(X["sex"] == "f", 0.7, 0.2)
    y = (rng.uniform(size=300) < p).astype(float)
    model = small(base_kernels=["CAT"], n_iter=2).fit(X, y)
    assert model.left_out_["weight"].sum() == 300
    assert model.left_out_score_ == pytest.approx(p.var() / y.var(), abs=0.08)
    _, std = model.predict(X, return_std=True)
    assert std.mean() == pytest.approx(np.sqrt(np.mean(p * (1 - p))), rel=0.1)


def test_outliers_count_as_much_as_the_other_rows():
    X, y = wave(600)
    y[::100] += 20
    model = small(n_iter=0, outliers="auto", approximation="inducing").fit(X, y)
    assert len(model.outliers_) == 6
    assert len(model.left_out_["row"]) == 119
    law = model._fitted.mixture.law
    assert law.shares[-1] == pytest.approx((40 * 0.005 + 0.01 * 119) / (40 + 1.01 * 119), abs=0.005)


def test_ties_do_not_depend_on_the_order_of_rows():
    X = np.array(np.meshgrid(range(4), range(4))).reshape(2, 16).T.repeat(3, axis=0).astype(float)
    rng = np.random.default_rng(1)
    y = np.round(X[:, 0] - X[:, 1] + rng.normal(size=48))
    order = rng.permutation(48)
    scores = [
        small().refit(X[o], y[o], "SE[0] + SE[1]").left_out_score_ for o in (slice(48), order)
    ]
    assert scores[0] == pytest.approx(scores[1], abs=1e-6)


def test_known_errors_of_rows_left_out_widen_their_predictions():
    X, y = wave(30)
    errors = np.where(np.arange(30) % 2, 0.5, 0.01)
    model = small(averaging=None).refit(X, y, "SE[0]", noise_std=errors)
    std = model.left_out_["std"]
    assert std[1::2].min() > 0.5 > 0.4 > np.median(std[::2])
