"""Fits of more rows than exact inference is for."""

import pickle
import re

import numpy as np
import pytest
from sklearn.base import clone

from autokernel import AutoKernelGPRegressor, evaluate_kernel
from autokernel.inference import ExactLikelihood, TrainingData, exact
from autokernel.many_rows import approximation
from autokernel.many_rows.plan import make_plan

N = 1100
NOISE = 0.1


def wave(X):
    return np.sin(9 * X[:, 0]) + X[:, 1] ** 2


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(N, 2))
    return X, wave(X) + NOISE * rng.normal(size=N)


@pytest.fixture(scope="module")
def new():
    return np.random.default_rng(1).uniform(size=(300, 2))


def fit(table, **parameters):
    model = AutoKernelGPRegressor(
        base_kernels=("SE",),
        operators=("+",),
        max_leaves=2,
        n_iter=0,
        random_state=0,
        **parameters,
    )
    return model.fit(*table)


@pytest.fixture(scope="module")
def models(table):
    found = {name: fit(table, approximation=name) for name in ("auto", "inducing")}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(approximation, "_MOST_EXACT", 0)
        found["neighbours"] = fit(table, approximation="neighbours")
        found["rivals"] = fit(table, approximation="auto")
    return found


ALL = ("auto", "inducing", "neighbours", "rivals")


@pytest.mark.parametrize("name", ALL)
def test_predictions_are_close_to_the_truth_and_deviations_right(name, models, new):
    mean, std = models[name].predict(new, return_std=True)
    of_function = models[name].predict(new, return_std="function")[1]
    # some thirty effective parameters: sqrt(30 / 1100) of the noise is 0.017
    assert np.sqrt(np.mean((mean - wave(new)) ** 2)) < 0.04
    np.testing.assert_allclose(std, NOISE, rtol=0.15)
    assert np.all(of_function < std)


def test_approximation_is_told(models):
    assert models["auto"].approximation_ == "exact"
    for name in ("inducing", "rivals"):  # this function is smooth, and needs no more
        assert re.fullmatch(r"[1-4]\d inducing points", models[name].approximation_)
    assert models["neighbours"].approximation_ in {f"{n} neighbours" for n in (32, 64, 128, 256)}


@pytest.mark.parametrize("name", ALL)
def test_the_whole_contract_holds(name, models, table, new):
    model = models[name]
    assert model.X_train_.shape == (N, 2)
    assert model.sample_y(new[:5], 3, random_state=0).shape == (5, 3)
    _, covariance = model.predict(new[:5], return_cov=True)
    _, std = model.predict(new[:5], return_std=True)
    np.testing.assert_allclose(np.sqrt(np.diag(covariance)), std, rtol=1e-6)
    intervals = model.parameters_
    assert np.all(intervals["low"] < intervals["high"])
    assert model.posterior_["probability"].sum() == pytest.approx(1.0)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_allclose(again.predict(new), model.predict(new), rtol=1e-10)
    assert model.best_kernel_(new[:4]).shape == (4, 4)


def test_the_score_is_that_of_all_rows(models):
    """The log likelihood is close to the exact one at the same parameters."""
    for name, model in models.items():
        evaluation, mixture = model._fitted.evaluation, model._fitted.mixture
        data = TrainingData(mixture._X, mixture._y)
        exact = ExactLikelihood(evaluation.expression, data).value(evaluation.theta)
        # thirty neighbours tell less of a smooth function than all rows do
        away = (evaluation.log_likelihood - exact) / N
        assert -0.001 < away < 1e-6 if name == "inducing" else abs(away) < 0.05
        assert model.best_score_ < evaluation.log_posterior


def test_the_same_seed_gives_the_same_bits(table, models, new):
    again = clone(models["inducing"]).set_params(n_jobs=2).fit(*table)
    np.testing.assert_array_equal(again.predict(new), models["inducing"].predict(new))
    assert again.best_score_ == models["inducing"].best_score_


def test_refit_uses_all_rows(models, table, new):
    model = clone(models["inducing"]).refit(*table, kernel="SE[0] + SE[1]")
    assert model.approximation_.endswith(" inducing points")
    assert model.best_expression_ == "SE[0] + SE[1]"  # nothing is added to a kernel that is named
    assert np.sqrt(np.mean((model.predict(new) - wave(new)) ** 2)) < 0.03


def test_a_rough_term_may_win_that_the_search_has_not_met():
    """A slow wave, and a rough function that 500 rows cannot tell from noise."""
    rng = np.random.default_rng(0)
    x = np.sort(rng.uniform(size=(2000, 1)), axis=0)
    apart = np.subtract.outer(x[:, 0], x[:, 0])
    rough = np.linalg.cholesky(np.exp(-0.5 * (apart / 8e-4) ** 2) + 1e-6 * np.eye(2000))
    y = np.sin(6 * x[:, 0]) + 0.5 * (rough @ rng.normal(size=2000)) + 0.1 * rng.normal(size=2000)
    model = AutoKernelGPRegressor(n_iter=0, base_kernels=("SE",), random_state=0).fit(x, y)
    assert model.best_expression_ == "SE[0] + SE[0]"
    assert np.sqrt(model.noise_variance_) == pytest.approx(0.1, rel=0.1)
    assert len(model.leaderboard(3)["kernel"]) == 3


def test_pure_noise_is_noise_with_many_rows_too(new):
    rng = np.random.default_rng(0)
    X, y = rng.uniform(size=(N, 2)), 3 + rng.normal(size=N)
    model = fit((X, y))
    assert model.best_expression_ == "NOISE"
    mean, std = model.predict(new, return_std=True)
    np.testing.assert_allclose(mean, y.mean())
    np.testing.assert_allclose(std, y.std(), rtol=0.01)


def test_a_fit_without_time_predicts_all_the_same(table, new):
    with pytest.warns(match="max_time"):
        model = fit(table, max_time=0.01)
    assert np.isfinite(model.predict(new)).all()


def test_auto_is_exact_up_to_1000_rows_and_searches_on_500():
    for n, is_exact, n_searched in (
        (10, True, 10),
        (600, True, 600),
        (601, True, 500),
        (1000, True, 500),
        (1001, False, 500),
        (10**6, False, 500),
    ):
        found = make_plan(n, approximation="auto", n_inducing=512)
        assert (found.approximation is None) == is_exact
        assert found.n_searched == n_searched
    assert make_plan(100, approximation="inducing", n_inducing=512).approximation is not None
    assert make_plan(5000, approximation="exact", n_inducing=512).searches_all


def test_a_rough_function_is_no_noise_to_the_search():
    """500 of 2500 rows are ten of its lengthscales apart, and the search finds noise."""
    rng = np.random.default_rng(0)
    x = np.sort(rng.uniform(size=(2500, 1)), axis=0)
    nearby = np.exp(-0.5 * (np.subtract.outer(x[:, 0], x[:, 0]) / 4e-4) ** 2)
    y = np.linalg.cholesky(nearby + 0.1 * np.eye(2500)) @ rng.normal(size=2500)
    model = AutoKernelGPRegressor(n_iter=0, base_kernels=("SE",), random_state=0).fit(x, y)
    assert model.best_expression_ == "SE[0]"
    noise = model.noise_variance_ / (0.1 / 1.1) / y.var()
    assert noise == pytest.approx(1.0, abs=0.3)


def test_between_600_and_1000_rows_the_best_kernels_are_fitted_to_all_rows(table, new):
    X, y = table[0][:700], table[1][:700]
    model = fit((X, y))
    assert model.approximation_ == "exact"
    assert np.sqrt(np.mean((model.predict(new) - wave(new)) ** 2)) < 0.04
    inputs = (X - X.min(axis=0)) / np.ptp(X, axis=0)
    exact = evaluate_kernel(model.best_expression_, inputs, (y - y.mean()) / y.std())
    evaluation = model._fitted.evaluation
    assert evaluation.log_evidence == pytest.approx(exact.log_evidence, abs=0.2)
    assert model.best_score_ == evaluation.log_evidence + evaluation.log_structure_prior
    history = model.search_history_["score"]
    assert history.max() < 0.8 * model.best_score_


def test_exact_inference_that_does_not_fit_into_memory_is_refused_with_the_numbers(monkeypatch):
    monkeypatch.setattr(exact, "memory_of_machine", lambda: 16.0 * 2**30)
    X, y = np.random.default_rng(0).uniform(size=(100_000, 1)), np.zeros(100_000)
    y[0] = 1.0
    model = AutoKernelGPRegressor(approximation="exact")
    with pytest.raises(ValueError, match=r"100000 rows needs about 447 GiB .* 16.0 GiB"):
        model.fit(X, y)


@pytest.mark.parametrize(
    ("parameter", "value"), [("approximation", "sparse"), ("n_inducing", 0), ("n_inducing", 1.5)]
)
def test_bad_parameters_are_refused_by_name(parameter, value):
    with pytest.raises(ValueError, match=parameter):
        AutoKernelGPRegressor(**{parameter: value}).fit([[0.0], [1.0]], [0.0, 1.0])


@pytest.mark.parametrize(("criterion", "on_all_rows"), [("bic", True), ("loo", False)])
def test_a_criterion_without_approximations_chooses_the_kernel_on_some_rows(
    table, new, criterion, on_all_rows
):
    model = fit(table, criterion=criterion)
    history = model.search_history_
    if on_all_rows:
        assert model.best_score_ > 2 * history["score"].max()
    else:
        assert model.best_score_ == history["score"].max()
        assert model.best_expression_ == history["kernel"][np.argmax(history["score"])]
    assert np.sqrt(np.mean((model.predict(new) - wave(new)) ** 2)) < 0.03
