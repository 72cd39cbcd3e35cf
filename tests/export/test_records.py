"""Estimators as plain data."""

import json
from copy import deepcopy

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from autokernel import AutoKernelGPRegressor
from autokernel.export import from_dict, to_dict
from autokernel.search import SOT
from tests.explain.models import refitted
from tests.export.models import KERNELS, fitted, given, table
from tests.export.mutants import nested
from tests.fits import small, tiny, wave
from tests.kernels.gate import GATE
from tests.own_kernels import OrnsteinUhlenbeck

MANY_ROWS = {"neighbours": 9000, "inducing": 300}  # above the rows of exact predictions


def through_json(model):
    """Write an estimator as JSON without what only Python reads, and read it."""
    text = json.dumps(to_dict(model), allow_nan=False)
    return from_dict(json.loads(text))


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


def test_the_rows_are_written_once():
    X, _, _ = table()
    record = to_dict(fitted("LIN[0]"))
    assert record["X_train"] == X.tolist()
    assert record["model"]["rows_of_model"] is None


def test_objects_among_the_parameters_are_left_out_with_a_warning():
    with pytest.warns(UserWarning, match="to_dict leaves out strategy, which a file"):
        record = to_dict(refitted("NOISE", *wave(), strategy=SOT(population_size=5)))
    assert "strategy" not in record["settings"]
    assert from_dict(record).strategy == "sot"


def test_mappings_and_arrays_among_the_parameters_are_kept():
    X, y, _ = table()
    settings = {
        "base_kernels": {0: ["SE", "PER"], 1: []},
        "periods": {0: 2.0},
        "column_scales": {0: "sqrt"},
    }
    model = tiny(**settings).fit(X[:30], y[:30])
    again = through_json(model)
    assert again.base_kernels == {0: ("SE", "PER"), 1: ()}
    assert (again.periods, again.column_scales) == ({0: 2.0}, {0: "sqrt"})
    again.fit(X[:30], y[:30])
    assert again.search_history_["kernel"].tolist() == model.search_history_["kernel"].tolist()
    model.set_params(max_leaves=np.int64(1), periods={0: np.array([2.0, 3.0])})
    again = through_json(model)
    assert (again.max_leaves, again.periods) == (1, {0: (2.0, 3.0)})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": "other"}, r"record\.format must be 'autokernel', .*, got 'other'"),
        ({"X_train": []}, r"record\.X_train must be rows of columns, got \(0,\)"),
        ({"model": None}, r"record\.model must be an object, got None"),
        (
            {"settings": {"foo": 1}},
            r"record\.settings\.foo must be one of the parameters .*, got 1",
        ),
        ({"version": 7}, r"record\.version must be 14, the version that .* reads, got 7"),
        ({"version": nested(5000)}, r"record\.version must be 14, .* got list"),
        ({"model": {}}, "record.model must have the keys .*, but has no 'evaluation'"),
    ],
)
def test_other_records_are_refused(change, message):
    record = to_dict(fitted("LIN[0]")) | change
    with pytest.raises(ValueError, match=message):
        from_dict(record)


def test_custom_kernels_and_operators_are_refused():
    X, y, _ = table()
    for settings, kernel in (
        ({"base_kernels": ["LIN", OrnsteinUhlenbeck()]}, "OU[0]"),
        ({"operators": ["+", GATE]}, "GATE[0](LIN[0], LIN[0])"),
    ):
        with pytest.raises(ValueError, match="to_dict can hold the base kernels and operators"):
            to_dict(refitted(kernel, X, y, **settings))


def test_there_is_nothing_to_write_before_a_fit():
    with pytest.raises(NotFittedError):
        to_dict(AutoKernelGPRegressor())
