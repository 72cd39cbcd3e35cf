"""Estimators as plain data."""

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from autokernel import AutoKernelGPRegressor
from autokernel.many_rows import approximation as approximations
from autokernel.search import SOT
from tests.fits import small, wave
from tests.operators.gate import GATE
from tests.own_kernels import OrnsteinUhlenbeck
from tests.transfer.models import KERNELS, refitted, table


def through_json(model):
    """Write an estimator as JSON without what only Python reads, and read it."""
    text = json.dumps(model.to_dict(), allow_nan=False)
    return AutoKernelGPRegressor.from_dict(json.loads(text))


def predictions(model, X):
    return [
        *model.predict(X, return_std=True),
        model.predict_quantiles(X, [0.1, 0.9]),
        model.sample_y(X, 2, random_state=0),
    ]


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("averaging", [None, "posterior"])
def test_predictions_are_the_same_to_the_last_bit(kernel, averaging):
    _, _, Z = table()
    model = refitted(kernel, averaging=averaging)
    again = through_json(model)
    for found, expected in zip(predictions(again, Z), predictions(model, Z), strict=True):
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("approximation", ["neighbours", "inducing"])
def test_approximate_predictions_are_the_same_too(approximation, monkeypatch):
    monkeypatch.setattr(approximations, "_MOST_EXACT", 100)
    X, y = wave(300)
    settings = {"approximation": approximation, "n_inducing": 20, "random_state": 0}
    model = AutoKernelGPRegressor(**settings).refit(X, y, "SE[0] + PER[0]")
    assert model.approximation_ != "exact"
    again = through_json(model)
    assert again.approximation_ == model.approximation_
    for found, expected in zip(
        again.predict(X, return_std=True), model.predict(X, return_std=True), strict=True
    ):
        np.testing.assert_array_equal(found, expected)


def test_all_that_a_search_has_found_is_kept():
    X = pd.DataFrame({"time": np.linspace(1950, 1960, 40)})
    y = np.sin(2 * np.pi * X["time"].to_numpy()) + 0.01 * np.arange(40)
    model = small(base_kernels=("SE", "LIN"), max_time=1e9).fit(X, y)
    again = through_json(model)
    assert again.get_params() == model.get_params()
    for name in ("best_expression_", "best_score_", "noise_variance_", "n_iter_", "stop_reason_"):
        assert getattr(again, name) == getattr(model, name)
    for name in ("best_kernel_", "posterior_", "parameter_intervals_", "parameters_"):
        assert repr(getattr(again, name)) == repr(getattr(model, name))
    assert repr(again.inclusion_probabilities_) == repr(model.inclusion_probabilities_)
    assert repr(again.leaderboard()) == repr(model.leaderboard())
    assert again.describe() == model.describe()
    assert list(again.feature_names_in_) == ["time"]
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    for name, values in model.search_history_.items():
        np.testing.assert_array_equal(again.search_history_[name], values)
        assert again.search_history_[name].dtype == values.dtype


def test_a_model_that_was_read_can_be_fitted_anew():
    X, y, _ = table()
    again = through_json(refitted("SE[0] * SE[1]"))
    np.testing.assert_array_equal(
        again.refit(X, y).predict(X), refitted("SE[0] * SE[1]").refit(X, y).predict(X)
    )
    assert not hasattr(clone(again), "best_kernel_")


def test_objects_among_the_parameters_are_left_out():
    record = refitted("SE[0]", strategy=SOT(population_size=5)).to_dict()
    assert "strategy" not in record["settings"]
    assert AutoKernelGPRegressor.from_dict(record).strategy == "sot"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": "other"}, "with the format 'autokernel', got 'other'"),
        ({"X_train": []}, "record must be what to_dict returns, but cannot be read"),
        ({"model": None}, "record must be what to_dict returns, but cannot be read"),
        ({"settings": {"foo": 1}}, "but cannot be read: .*unexpected keyword argument 'foo'"),
        ({"version": 2}, r"record must have version 1, got 2: autokernel 0\.\S+ has written it"),
        ({"model": {}}, "record must be what to_dict returns, but has no 'scaling'"),
    ],
)
def test_other_records_are_refused(change, message):
    record = refitted("SE[0]").to_dict() | change
    with pytest.raises(ValueError, match=message):
        AutoKernelGPRegressor.from_dict(record)


def test_kernels_and_operators_of_the_user_are_refused():
    X, y, _ = table()
    model = AutoKernelGPRegressor(base_kernels=["SE", OrnsteinUhlenbeck()], random_state=0)
    model.refit(X, y, "OU[0]")
    with pytest.raises(ValueError, match="to_dict can hold the base kernels and operators that"):
        model.to_dict()
    model = AutoKernelGPRegressor(operators=["+", GATE], random_state=0)
    with pytest.raises(ValueError, match="to_dict can hold"):
        model.refit(X, y, "GATE[0](SE[0], LIN[0])").to_dict()


def test_there_is_nothing_to_write_before_a_fit():
    with pytest.raises(NotFittedError):
        AutoKernelGPRegressor().to_dict()
