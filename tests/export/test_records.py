"""Estimators as plain data."""

from copy import deepcopy

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.callback import ProgressBar

from autokernel import parse_expression
from autokernel.export import from_dict, to_dict
from autokernel.search import SOT
from tests.explain.models import refitted
from tests.export.models import KERNELS, fitted, given, table
from tests.fits import small, through_json, tiny, wave
from tests.kernels.gate import GATE
from tests.own_kernels import OrnsteinUhlenbeck

MANY_ROWS = {"neighbours": 9000, "inducing": 300}  # above the rows of exact predictions


def predictions(model, X):
    return [
        *model.predict(X, return_std=True),
        model.predict_quantiles(X, [0.1, 0.9]),
        model.sample_y(X, 2, random_state=0),
    ]


@pytest.mark.parametrize(
    ("kernel", "averaging"),
    [*((kernel, None) for kernel in KERNELS), ("LIN[0] * SE[1]", "posterior")],
)
def test_predictions_are_the_same_to_the_last_bit(kernel, averaging):
    _, _, Z = table()
    model = fitted(kernel, averaging) if averaging else given(kernel)
    again = through_json(model)
    for found, expected in zip(predictions(again, Z), predictions(model, Z), strict=True):
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    "approximation", ["inducing", pytest.param("neighbours", marks=pytest.mark.slow)]
)
def test_approximate_predictions_are_the_same_too(approximation):
    X, y = wave(MANY_ROWS[approximation])
    settings = {"approximation": approximation, "n_inducing": 20}
    model = refitted("LIN[0]", X, y, averaging="posterior", **settings)
    assert model.approximation_ != "exact"
    again = through_json(model)
    assert again.approximation_ == model.approximation_
    found, expected = (one.predict(X[::50], return_std=True) for one in (again, model))
    np.testing.assert_array_equal(found, expected)


def test_all_that_a_search_has_found_is_kept():
    X = pd.DataFrame({"time": np.linspace(1950, 1960, 40)})
    y = np.sin(2 * np.pi * X["time"].to_numpy()) + 0.01 * np.arange(40)
    model = small(base_kernels=("SE", "LIN"), n_iter=2, max_time=1e9).fit(X, y)
    again = through_json(model)
    assert again.get_params() == model.get_params()
    for name in ("best_expression_", "best_score_", "noise_variance_", "n_iter_", "stop_reason_"):
        assert getattr(again, name) == getattr(model, name)
    for name in ("best_kernel_", "posterior_", "parameters_"):
        assert repr(getattr(again, name)) == repr(getattr(model, name))
    assert repr(again.inclusion_probabilities_) == repr(model.inclusion_probabilities_)
    assert repr(again.leaderboard()) == repr(model.leaderboard())
    assert again.describe() == model.describe()
    assert list(again.feature_names_in_) == ["time"]
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    for name, values in model.search_history_.items():
        np.testing.assert_array_equal(again.search_history_[name], values)
        assert again.search_history_[name].dtype == values.dtype


def test_a_model_that_was_read_can_be_fitted_again():
    X, y, _ = table()
    model = fitted("LIN[0] * LIN[1]")
    found, expected = through_json(model).refit(X, y), deepcopy(model).refit(X, y)
    np.testing.assert_array_equal(found.predict(X), expected.predict(X))
    assert not hasattr(clone(found), "best_kernel_")


def test_objects_among_the_parameters_and_callbacks_are_left_out_with_a_warning():
    model = refitted("NOISE", *wave(), strategy=SOT(population_size=5))
    model.set_callbacks(ProgressBar())
    with pytest.warns(UserWarning, match="to_dict leaves out callbacks, strategy, which a file|ot"):
        record = to_dict(model)
    assert "strategy" not in record["settings"]
    assert from_dict(record).strategy == "sot"


def test_containers_among_the_parameters_are_kept():
    X, y, _ = table()
    frame = pd.DataFrame(X[:30], columns=["a", "b"])
    settings = {
        "base_kernels": {"a": {"SE", "PER"}, "b": []},
        "periods": {0: 2.0},
        "column_scales": {0: "sqrt"},
        "start_kernel": parse_expression("SE[sqrt(0)]"),
        "categorical_features": pd.Index([]),
    }
    model = tiny(**settings).fit(frame, y[:30])
    again = through_json(model)
    assert (again.base_kernels, again.start_kernel) == (
        {"a": ("PER", "SE"), "b": ()},
        "SE[sqrt(0)]",
    )
    assert (again.periods, again.column_scales) == ({0: 2.0}, {0: "sqrt"})
    assert again.categorical_features == ()
    again.fit(frame, y[:30])
    assert set(again.search_history_["kernel"]) == set(model.search_history_["kernel"])
    model.set_params(max_leaves=np.int64(1), periods={0: np.array([2.0, 3.0])})
    again = through_json(model)
    assert (again.max_leaves, again.periods) == (1, {0: (2.0, 3.0)})


def test_custom_kernels_and_operators_are_refused():
    X, y, _ = table()
    for settings, kernel in (
        ({"base_kernels": ["LIN", OrnsteinUhlenbeck()]}, "OU[0]"),
        ({"operators": ["+", GATE]}, "GATE[0](LIN[0], LIN[0])"),
    ):
        with pytest.raises(ValueError, match="to_dict can hold the base kernels and operators"):
            to_dict(refitted(kernel, X, y, **settings))
