"""Long series of sums of series kernels, which are fitted exactly to all rows."""

import json
import os
import pickle
import warnings
from dataclasses import replace

import numpy as np
import pytest

from autokernel import parse_expression
from autokernel.evidence import Evaluator
from autokernel.evidence.laplace import laplace_log_evidence
from autokernel.evidence.posterior import LogPosterior
from autokernel.export import from_dict, to_dict
from autokernel.expression import Grammar, Leaf
from autokernel.inference import ExactLikelihood, TrainingData
from autokernel.kernels import ADD, BASE_KERNELS, PRESETS, Seasonal
from autokernel.many_rows import (
    ByStateSpace,
    ManyRows,
    approximation_of_kernels,
    latest_rows,
    rows_of_groups,
)
from autokernel.many_rows.terms import with_another_level
from autokernel.search import Task
from tests.fits import evaluation_of, small

N = 1010  # a few more than are fitted exactly, and averaged
DAY = 24.0
PRIORS = dict(PRESETS["default"])


def hours(n, *, step=0.02, seed=0):
    """A level that wanders, with the season of a day and noise."""
    rng, t = np.random.default_rng(seed), np.arange(n, dtype=float)
    level = np.cumsum(rng.normal(scale=step, size=n))
    return t[:, None], level + np.sin(2 * np.pi * t / DAY) + 0.3 * rng.normal(size=n)


def fit(table, **parameters):
    """Fit the kernels of series, a season among them."""
    series = {"strategy": "series", "base_kernels": "auto", "periods": {0: DAY}, "max_leaves": 5}
    return small(**{**series, **parameters}).fit(*table)


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """Fits with and without the memory for a covariance matrix; the second reads the search."""
    table, kept = hours(N), tmp_path_factory.mktemp("kept")
    real, page = os.sysconf, os.sysconf("SC_PAGE_SIZE")
    found = {"exact": fit(table, memory=kept)}
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings(action="error"):
        pages = {"SC_PHYS_PAGES": 10_000_000 // page}
        patch.setattr(os, "sysconf", lambda name: pages.get(name) or real(name))
        found["state space"] = fit(table, memory=kept)  # which is as good, without a warning
    return found


def test_predictions_by_states_are_the_exact_ones(models):
    X = np.concatenate([np.linspace(-30, 1100, 57), [3.0, 3.0]])[:, None]
    for name, model in models.items():
        assert model.approximation_ == name
        assert "PER24" in model.best_expression_
    exact, own = models["exact"], models["state space"]
    # the noise is a tenth of all variances together, so that the condition is below 1e5
    same = {"rtol": 1e-8, "atol": 1e-8}
    for one, other in zip(
        own.predict(X, return_std=True), exact.predict(X, return_std=True), strict=True
    ):
        np.testing.assert_allclose(one, other, **same)
    covariances = [model.predict(X, return_cov=True)[1] for model in (own, exact)]
    np.testing.assert_allclose(*covariances, **same)
    assert own.sample_y(X[:4], 3, random_state=0).shape == (4, 3)


def test_the_model_by_states_is_kept_in_pickles_and_records(models):
    model, (X, _) = models["state space"], hours(N)
    mean = model.predict(X)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict(X), mean)
    with pytest.warns(UserWarning, match="to_dict leaves out memory"):
        record = json.loads(json.dumps(to_dict(model)))
    np.testing.assert_allclose(from_dict(record).predict(X), mean, rtol=1e-10)


def test_the_score_is_the_exact_evidence_of_all_rows(models):
    model = models["exact"]
    evaluation, data = model._fitted.evaluation, model._fitted.mixture.data
    exact = LogPosterior(ExactLikelihood(evaluation.expression, data), priors=PRIORS)
    assert evaluation.log_posterior == pytest.approx(exact.value(evaluation.theta), abs=1e-6)
    expected = laplace_log_evidence(evaluation.log_posterior, exact.hessian(evaluation.theta))
    assert evaluation.log_evidence == pytest.approx(expected, abs=0.01)  # of both differences
    assert model.best_score_ == evaluation.score


def test_what_is_fitted_is_said_before_the_search(capsys):
    with pytest.warns(UserWarning, match="max_time"):
        fit(hours(N), verbose=1, max_time=1e-3)
    said = "searched on 500 of them, and the best are fitted to all, exactly, by state space"
    assert said in capsys.readouterr().out


def many_rows(X, y, n_searched):
    """Rows of which the latest are searched."""
    data = TrainingData(X / X.max(), (y - y.mean()) / y.std())
    few = data.take(latest_rows(data.inputs, 0, n_searched))
    return ManyRows(ByStateSpace(0), data, Evaluator(few, priors=PRIORS, seed=0))


def test_a_known_period_is_found_again_by_more_rows():
    """A period that is off by a twentieth of a cycle in a hundred rows is off by two in all."""
    rows = many_rows(*hours(4000), 100)
    share = DAY / 3999
    expression = Leaf(BASE_KERNELS["RW"], 0) + Leaf(Seasonal(share), 0)
    theta = np.log([1.0, 1.0, 0.5, 0.5, share * (1 + 0.05 * DAY / 100), 0.1])
    before = replace(evaluation_of(expression, theta), n_rows=100.0)
    found = rows.fit(before, thorough=True)
    assert found.status == "ok"
    assert np.exp(found.theta[4]) / share == pytest.approx(1.0, abs=1e-4)


def test_a_level_on_another_time_scale_may_win():
    """Errors that are forgotten after three rows, under a level that wanders for a thousand."""
    X, y = hours(2000, step=0.2)
    rng, error = np.random.default_rng(1), np.zeros(2000)
    for n in range(1, 2000):
        error[n] = 0.7 * error[n - 1] + rng.normal()
    rows = many_rows(X, y + error, 300)
    kernel = Leaf(BASE_KERNELS["MAT12"], 0)
    grammar = Grammar((BASE_KERNELS["MAT12"],), (ADD,), (0,), 3)
    task = Task(grammar, rows.evaluator)
    before = rows.fit(rows.evaluator(kernel))
    [start] = with_another_level(before, rows.data, task)
    assert start.expression == kernel + kernel
    assert rows.fit(start).score > before.score + 10  # nats, of 2000 rows
    narrow = Grammar((BASE_KERNELS["MAT12"],), (ADD,), (0,), 1)
    task = Task(narrow, rows.evaluator)
    assert not with_another_level(before, rows.data, task)


@pytest.mark.parametrize(
    ("name", "texts", "has"),
    [
        ("auto", ["RW[0] + IOU[0]", "MAT12[0]", "NOISE"], True),
        ("auto", ["RW[0]", "SE[0]"], False),
        ("auto", ["RW[0]", "RW[1]"], False),
        ("auto", ["NOISE"], False),
        ("neighbours", ["RW[0]"], False),
    ],
)
def test_a_state_space_is_taken_if_all_kernels_have_it(name, texts, has):
    data = TrainingData(np.random.default_rng(0).uniform(size=(9, 2)), np.arange(9.0))
    kernels = [evaluation_of(parse_expression(text), np.zeros(1)) for text in texts]
    assert (approximation_of_kernels(name, kernels, data) is not None) == has


def test_a_panel_is_searched_on_whole_groups():
    rng = np.random.default_rng(0)
    groups = rng.permutation(np.repeat(np.arange(8.0), 10))
    inputs = TrainingData(np.column_stack([np.arange(80.0), groups]), np.zeros(80)).inputs
    for seed in range(3):
        rows = rows_of_groups(inputs, (1,), 35, seed=seed)
        assert np.all(np.diff(rows) > 0)
        sizes = np.unique(groups[rows], return_counts=True)[1]
        assert sorted(sizes.tolist()) == [5, 10, 10, 10]
