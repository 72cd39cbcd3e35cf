"""The estimator as its users meet it."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from autokernel import SOT, AutoKernelGPRegressor, parse_expression
from autokernel.datasets import load_airline
from tests.fits import assert_predicts_as_its_kernel
from tests.processes import outputs_under_two_hash_seeds

TIME_COLUMNS = {"fit_seconds", "proposal_seconds", "elapsed"}


def wave(n_samples=25, *, n_features=1, seed=0):
    """A smooth function of the first column with a little noise."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(n_samples, n_features))
    return X, np.sin(6 * X[:, 0]) + 0.1 * rng.normal(size=n_samples)


def quick(**parameters):
    """An estimator that is done in a second."""
    return AutoKernelGPRegressor(**{"n_iter": 1, "random_state": 0, **parameters})


@pytest.mark.parametrize("n_features", [1, 3])
@pytest.mark.parametrize("x_unit", [(0.0, 1.0), (1949.0, 12.0), (0.0, 1e9), (0.0, 1e-9)])
@pytest.mark.parametrize("y_unit", [(0.0, 1.0), (-1e6, 1e3)])
def test_best_kernel_in_a_gpr_predicts_what_the_model_predicts(n_features, x_unit, y_unit):
    X, y = wave(n_features=n_features)
    X, y = X * x_unit[1] + x_unit[0], y * y_unit[1] + y_unit[0]
    model = quick(n_iter=0, base_kernels=["SE", "LIN"], averaging=None).fit(X, y)
    gpr = assert_predicts_as_its_kernel(model, X, y, X + 0.05 * x_unit[1])
    # the same kernel and data as in the search, so that the units were turned back rightly
    assert model.best_score_ == max(model.search_history_["score"])
    assert gpr.log_marginal_likelihood_value_ == pytest.approx(
        model._fitted.evaluation.log_likelihood, rel=1e-6
    )


@pytest.mark.parametrize("n_features", [1, 3])
@pytest.mark.parametrize("name", ["MAT32", "MAT52"])
def test_rough_kernels_in_a_gpr_predict_what_the_model_predicts(name, n_features):
    X, y = wave(n_features=n_features)
    X, y = X * 12.0 + 1949.0, y * 1e3 - 1e2
    model = quick(base_kernels=(name,), averaging=None).fit(X, y)
    assert name in model.best_expression_
    gpr = assert_predicts_as_its_kernel(model, X, y, X + 0.6)
    assert gpr.log_marginal_likelihood_value_ == pytest.approx(
        model._fitted.evaluation.log_likelihood, rel=1e-6
    )


def test_the_search_may_maximise_the_evidence_by_importance_sampling():
    X, y = wave()
    model = quick(criterion="importance", base_kernels=["SE", "LIN"]).fit(X, y)
    history = model.search_history_
    assert set(history["status"]) == {"ok"}
    assert np.all(history["standard_error"] > 0)
    assert np.all(np.isfinite(history["pareto_k"]))
    best = np.argmax(history["score"])
    assert model.best_score_ == history["score"][best]
    assert model.best_expression_ == history["kernel"][best]
    other = quick(base_kernels=["SE", "LIN"]).fit(X, y).search_history_
    assert np.isnan(other["standard_error"]).all()
    # the same posterior: skewness and mirror images move the evidence, by a nat or so
    same = dict(zip(other["kernel"], other["score"], strict=True))
    shared = [same.get(kernel, np.nan) for kernel in history["kernel"]]
    assert np.nanmax(np.abs(history["score"] - shared)) < 2


def test_predictive_covariance_holds_the_noise_and_agrees_with_the_standard_deviation():
    X, y = wave()
    model = quick().fit(X, y)
    mean, std = model.predict(X, return_std=True)
    other_mean, covariance = model.predict(X, return_cov=True)
    np.testing.assert_array_equal(mean, other_mean)
    # two ways to sum the same products
    np.testing.assert_allclose(np.sqrt(np.diag(covariance)), std, rtol=1e-9)
    assert std.min() ** 2 > model.noise_variance_


def test_draws_have_the_predictive_mean_and_deviation():
    X, y = wave()
    model = quick().fit(X, y)
    X_new = np.linspace(0, 1, 5)[:, None]
    draws = model.sample_y(X_new, n_samples=4000, random_state=1)
    mean, std = model.predict(X_new, return_std=True)
    assert draws.shape == (5, 4000)
    # four standard errors of a mean of 4000 draws, and of a standard deviation
    assert np.all(np.abs(draws.mean(axis=1) - mean) < 4 * std / np.sqrt(4000))
    assert np.all(np.abs(draws.std(axis=1) / std - 1) < 4 / np.sqrt(2 * 4000))


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
    model = quick(n_iter=3).fit(X, y)
    history = model.search_history_
    assert len({len(column) for column in history.values()}) == 1
    assert list(history["phase"]).count("search") == model.n_iter_ == 3
    assert model.stop_reason_ == "n_iter"
    np.testing.assert_array_equal(history["best_score"], np.maximum.accumulate(history["score"]))
    np.testing.assert_array_equal(history["score_per_sample"], history["score"] / 25)
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


def test_draws_far_outside_the_data_come_without_a_warning():
    X, y = wave()
    model = quick(n_iter=0, base_kernels=["LIN"]).fit(X, y)
    assert np.isfinite(model.sample_y([[1e4], [-1e4], [2e4]])).all()


def test_the_kernels_that_a_person_would_try_first_are_tried():
    X, y = wave(n_features=3)
    kernels = {
        parse_expression(text).canonical for text in quick().fit(X, y).search_history_["kernel"]
    }
    assert {
        "SE[0] * SE[1] * SE[2]",
        "SE[0] + SE[1] + SE[2]",
        "LIN[0] + LIN[1] + LIN[2]",
    } <= kernels
    X, y = wave()
    kernels = {
        parse_expression(text).canonical for text in quick().fit(X, y).search_history_["kernel"]
    }
    assert "LIN[0] + PER[0] * SE[0] + SE[0]" in kernels


def test_column_names_of_a_frame_appear_in_the_expressions():
    pandas = pytest.importorskip("pandas")
    X, y = wave(n_features=2)
    frame = pandas.DataFrame(X, columns=["day of year", "3"])
    model = quick(base_kernels=["SE"], n_iter=0).fit(frame, y)
    assert set(model.search_history_["kernel"]) >= {"SE[day of year]", 'SE["3"]'}
    names = list(model.feature_names_in_)
    assert parse_expression(model.best_expression_, names).to_text(names) == model.best_expression_
    assert model.predict(frame).shape == (25,)
    assert len(pandas.DataFrame(model.search_history_)) == len(model.search_history_["kernel"])


_HISTORY_SCRIPT = """
import numpy as np
from autokernel import AutoKernelGPRegressor
rng = np.random.default_rng(0)
X = rng.uniform(size=(20, 2))
model = AutoKernelGPRegressor(n_iter=3, random_state=7).fit(X, np.sin(6 * X[:, 0]) + X[:, 1])
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
    first, second = (quick(n_iter=4, random_state=seed).fit(X, y) for seed in (0, 1))
    assert list(first.search_history_["kernel"]) != list(second.search_history_["kernel"])


def test_pipeline_and_cross_validation_and_grid_search_and_pickle_work():
    X, y = wave(30, n_features=2)
    small = quick(n_iter=0, base_kernels=["SE"])
    pipeline = make_pipeline(StandardScaler(), small)
    assert cross_val_score(pipeline, X, y, cv=2).min() > 0.5
    grid = GridSearchCV(
        clone(small).set_params(strategy=SOT(), n_iter=1),
        {"max_leaves": [1, 2], "strategy__population_size": [10]},
        cv=2,
    ).fit(X, y)
    assert grid.best_estimator_.strategy.population_size == 10
    copy = pickle.loads(pickle.dumps(grid.best_estimator_))
    np.testing.assert_array_equal(copy.predict(X), grid.predict(X))


def test_verbose_prints_a_line_per_improvement_or_per_kernel(capsys):
    X, y = wave()
    model = quick().fit(X, y)
    assert capsys.readouterr().out == ""
    n_improved = len(np.unique(model.search_history_["best_score"]))
    n_kernels = len(model.search_history_["kernel"])
    quick(verbose=1).fit(X, y)
    assert capsys.readouterr().out.count("\n") == n_improved
    quick(verbose=2).fit(X, y)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == n_kernels
    assert "SE[0]" in lines[0]
