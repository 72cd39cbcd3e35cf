"""The search of the estimator: history, reproducibility, progress lines."""

import numpy as np
import pytest

from autokernel import AutoKernelGPRegressor, parse_expression
from autokernel.datasets import load_airline
from tests.fits import wave
from tests.processes import outputs_under_two_hash_seeds

KEYS = {"kernel", "score", "log_prior", "score_per_sample", "best_score", "n_leaves", "n_params"}
KEYS |= {"phase", "status", "fit_seconds", "proposal_seconds", "elapsed"}
KEYS |= {"standard_error", "pareto_k", "upper_bound"}


def quick(**parameters):
    """An estimator that is done in a second."""
    fixed = {"n_iter": 1, "random_state": 0, "averaging": None}
    return AutoKernelGPRegressor(**{**fixed, **parameters})


def test_fit_on_the_airline_series_extrapolates_far_better_than_an_rbf_kernel():
    X, y = load_airline(return_X_y=True)
    model = quick(n_iter=0, averaging=None).fit(X[:129], y[:129])
    rmse = np.sqrt(np.mean((model.predict(X[129:]) - y[129:]) ** 2))
    # a hand-made trend + season kernel reaches 25, a straight line 72, an RBF kernel 200
    assert rmse < 40
    assert model.score(X[:129], y[:129]) > 0.99
    history = model.search_history_
    assert model.best_score_ - history["log_prior"][np.argmax(history["score"])] > 70


def test_history_is_one_row_per_kernel_in_the_order_of_evaluation():
    X, y = wave(n_features=3)
    model = quick(n_iter=3, base_kernels=["SE", "LIN"]).fit(X, y)
    history = model.search_history_
    assert len({len(column) for column in history.values()}) == 1
    assert list(history["phase"]).count("search") == model.n_iter_ == 3
    assert model.stop_reason_ == "n_iter"
    np.testing.assert_array_equal(history["best_score"], np.maximum.accumulate(history["score"]))
    np.testing.assert_array_equal(history["score_per_sample"], history["score"] / 20)
    assert set(history) == KEYS
    for name in ("standard_error", "pareto_k", "upper_bound"):  # of other criteria and strategies
        assert np.isnan(history[name]).all()
    texts = [parse_expression(text).canonical for text in history["kernel"]]
    assert len(set(texts)) == len(texts)
    assert list(history["n_leaves"]) == [parse_expression(t).n_leaves for t in history["kernel"]]
    best = int(np.argmax(history["score"]))
    assert model.best_expression_ == history["kernel"][best]
    assert np.all(np.diff(history["elapsed"]) > 0)


def test_order_of_the_base_kernels_does_not_matter():
    X, y = wave()
    first, second = (
        quick(base_kernels=names).fit(X, y) for names in ({"RQ", "SE"}, np.array(["SE", "RQ"]))
    )
    assert list(first.search_history_["kernel"]) == list(second.search_history_["kernel"])


def test_the_kernels_that_a_person_would_try_first_are_tried():
    X, y = wave(n_features=3)
    kernels = {
        parse_expression(text).canonical
        for text in quick(base_kernels=["SE"], n_iter=0).fit(X, y).search_history_["kernel"]
    }
    assert {"SE[0] * SE[1] * SE[2]", "SE[0] + SE[1] + SE[2]"} <= kernels


def test_column_names_of_a_frame_appear_in_the_expressions():
    pandas = pytest.importorskip("pandas")
    X, y = wave(n_features=2)
    frame = pandas.DataFrame(X, columns=["day of year", "3"])
    model = quick(base_kernels=["SE"], n_iter=0).fit(frame, y)
    assert set(model.search_history_["kernel"]) >= {"SE[day of year]", 'SE["3"]'}
    names = list(model.feature_names_in_)
    assert parse_expression(model.best_expression_, names).to_text(names) == model.best_expression_
    assert model.predict(frame).shape == (20,)
    assert len(pandas.DataFrame(model.search_history_)) == len(model.search_history_["kernel"])


_HISTORY_SCRIPT = """
import numpy as np
from autokernel import AutoKernelGPRegressor
rng = np.random.default_rng(0)
X = rng.uniform(size=(20, 2))
model = AutoKernelGPRegressor(base_kernels=["SE", "LIN"], max_leaves=3, n_iter=3, random_state=7)
model.fit(X, np.sin(6 * X[:, 0]) + X[:, 1])
for kernel, score in zip(model.search_history_["kernel"], model.search_history_["score"]):
    print(kernel, float(score).hex())
print(model.predict(X[:3]).tolist())
"""


def test_history_depends_neither_on_the_process_nor_on_the_hash_seed():
    outputs = outputs_under_two_hash_seeds(_HISTORY_SCRIPT)
    assert len(outputs) == 1
    assert outputs.pop().count("\n") > 10


def test_another_random_state_searches_elsewhere():
    X, y = wave()
    first, second = (
        quick(n_iter=4, base_kernels=["SE", "LIN"], random_state=seed).fit(X, y) for seed in (0, 1)
    )
    assert list(first.search_history_["kernel"]) != list(second.search_history_["kernel"])


def test_verbose_prints_a_line_per_improvement_or_per_kernel(capsys):
    X, y = wave()
    few = {"base_kernels": ["SE", "LIN"], "max_leaves": 2}
    model = quick(**few).fit(X, y)
    assert capsys.readouterr().out == ""
    n_improved = len(np.unique(model.search_history_["best_score"]))
    n_kernels = len(model.search_history_["kernel"])
    quick(verbose=1, **few).fit(X, y)
    assert capsys.readouterr().out.count("\n") == n_improved
    quick(verbose=2, **few).fit(X, y)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == n_kernels
    assert "SE[0]" in lines[0]


def test_a_tiny_space_is_searched_to_its_end():
    X, y = wave()
    model = quick(base_kernels=["SE", "LIN"], max_leaves=1, n_iter=10).fit(X, y)
    assert sorted(model.search_history_["kernel"]) == ["LIN[0]", "NOISE", "SE[0]"]
    assert model.stop_reason_ == "exhausted"
    assert model.n_iter_ == 0
