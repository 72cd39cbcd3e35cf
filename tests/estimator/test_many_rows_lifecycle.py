"""Fits of many rows that end early, go on, fail in part, or have little to find."""

import numpy as np
import pytest

from autokernel.evidence.laplace import laplace_log_evidence
from autokernel.evidence.posterior import LogPosterior
from autokernel.fit import problem
from autokernel.inference import ExactLikelihood, NeighbourLikelihood, TrainingData
from autokernel.kernels import PRESETS
from autokernel.many_rows import approximation
from autokernel.many_rows.climb import Climb
from tests.fits import At, interrupt, rows, small

N = 1200
SHORT = {"base_kernels": {0: ["SE", "LIN"], 1: []}, "max_leaves": 1, "n_iter": 0}


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(N, 2))
    return X, np.sin(9 * X[:, 0]) + 0.1 * rng.normal(size=N)


@pytest.fixture(scope="module")
def undisturbed(table):
    return small(**SHORT).fit(*table)


def test_ctrl_c_leaves_a_model_that_says_from_how_many_rows_it_predicts(table, undisturbed):
    model = small(**SHORT).set_callbacks(At(interrupt, ended=2))
    with pytest.raises(KeyboardInterrupt):
        model.fit(*table)
    assert model.stop_reason_ == "interrupted"
    assert model.approximation_ == "exact, given 500 rows"
    assert rows(model) == rows(undisturbed)[: len(rows(model))]
    again = model.set_params(warm_start=True).set_callbacks().fit(*table)
    assert rows(again) == rows(undisturbed)
    np.testing.assert_array_equal(again.predict(table[0]), undisturbed.predict(table[0]))


def test_a_folder_of_evaluations_gives_the_same_fit(table, undisturbed, tmp_path):
    for _ in range(2):
        model = small(**SHORT, memory=tmp_path).fit(*table)
        assert rows(model) == rows(undisturbed)
        assert model.best_score_ == undisturbed.best_score_


def test_scores_per_sample_are_those_of_the_rows_of_the_search(undisturbed):
    history = undisturbed.search_history_
    np.testing.assert_array_equal(history["score_per_sample"], history["score"] / 500)


@pytest.mark.parametrize("n", [2, 3, 7, 60])
@pytest.mark.parametrize("name", ["neighbours", "inducing"])
def test_few_rows_can_be_approximated_too(n, name):
    rng = np.random.default_rng(n)
    X = rng.uniform(size=(n, 2))
    model = small(n_iter=0, approximation=name).fit(X, X[:, 0] + 0.1 * rng.normal(size=n))
    mean, std = model.predict(X, return_std=True)
    assert np.all(np.isfinite(mean))
    assert np.all(std > 0)


def test_a_signal_that_only_many_rows_show_is_found():
    """The correlation of 0.087 has 2 nats of evidence in 500 rows, less than its price, and 11."""
    rng = np.random.default_rng(1)
    X = rng.uniform(size=(3000, 2))
    model = small(base_kernels=["LIN"], max_leaves=1, n_iter=0).fit(
        X, 0.3 * X[:, 0] + rng.normal(size=3000)
    )
    history = model.search_history_
    assert history["kernel"][np.argmax(history["score"])] == "NOISE"
    assert model.best_expression_ == "LIN[0]"
    rise = np.diff(model.predict([[0.0, 0.5], [1.0, 0.5]]))
    assert rise == pytest.approx(0.3, abs=3 * np.sqrt(12 / 3000))


@pytest.mark.parametrize("fails", ["race", "climb", "everything"])
def test_kernels_that_fail_on_all_rows_do_not_end_the_fit(table, monkeypatch, fails, undisturbed):
    real = NeighbourLikelihood.value_and_gradient

    def failing(self, theta):
        is_thorough = self.rows_for_each == 1
        if fails == "everything" or (is_thorough == (fails == "climb")):
            raise ZeroDivisionError("a kernel of the user's")
        return real(self, theta)

    monkeypatch.setattr(approximation, "_FEW_BLOCKS", 300)
    monkeypatch.setattr(NeighbourLikelihood, "value_and_gradient", failing)
    model = small(**SHORT).fit(*table)
    assert model.best_expression_ == undisturbed.best_expression_
    error = model.predict(table[0]) - undisturbed.predict(table[0])
    assert np.sqrt(np.mean(error**2)) < 0.05


def test_rows_held_out_for_the_choice_are_none_of_the_search(table, monkeypatch):
    held_out = []
    real = problem.Choice

    def spying(approximation, data, order, deadline):
        held_out.append(data.take(order[-N // 5 :]))
        return real(approximation, data, order, deadline)

    searched = []
    evaluator = problem._evaluator

    def spying_too(data, *arguments, **settings):
        searched.append(data)
        return evaluator(data, *arguments, **settings)

    monkeypatch.setattr(problem, "Choice", spying)
    monkeypatch.setattr(problem, "_evaluator", spying_too)
    small(**SHORT).fit(*table)
    (search,), (choice,) = searched, held_out
    assert len(search.y) == 500
    assert not set(search.X[:, 0]) & set(choice.X[:, 0])


def test_the_score_of_all_rows_is_the_evidence_by_another_way(table, undisturbed):
    """The Hessian of neighbours has the log determinant of the exact one."""
    evaluation, mixture = undisturbed._fitted.evaluation, undisturbed._fitted.mixture
    data = TrainingData(mixture._X, mixture._y)
    exact = LogPosterior(ExactLikelihood(evaluation.expression, data), priors=PRESETS["default"])
    expected = laplace_log_evidence(evaluation.log_posterior, exact.hessian(evaluation.theta))
    assert evaluation.log_evidence == pytest.approx(expected, abs=0.5)


def test_no_fit_begins_after_the_deadline(table, monkeypatch):
    """The end of the search leaves time for fits to all rows, and none for a thorough one."""
    begun = []
    real = Climb.__call__

    def slow(self, before, **options):
        begun.append(options)
        if len(begun) == 2:
            self._deadline.cancel()
        return real(self, before, **options)

    monkeypatch.setattr(Climb, "__call__", slow)
    model = small(**SHORT, max_time=60.0).fit(*table)
    # the second one in the race, the first of the rounds, noise alone
    assert len(begun) == 4
    assert model.approximation_ == "32 neighbours"
    assert np.isfinite(model.best_score_)


@pytest.mark.parametrize("seed", [3, 4])  # without the price of parameters, LIN wins in both
def test_rows_that_stand_for_many_others_find_nothing_in_noise(seed, monkeypatch):
    """Each of 60 rows stands for 658: what a kernel gains by its fit to them is no evidence."""
    monkeypatch.setattr(approximation, "_FEW_BLOCKS", 30)
    monkeypatch.setattr(approximation, "_MANY_BLOCKS", 60)
    rng = np.random.default_rng(seed)
    X, y = rng.uniform(size=(40_000, 2)), rng.normal(size=40_000)
    model = small(n_iter=0, max_leaves=2, base_kernels=["LIN"]).fit(X, y)
    assert model.best_expression_ == "NOISE"


def test_a_deadline_does_not_overturn_noise_alone(monkeypatch):
    begun = []
    real = Climb.__call__

    def cut(self, before, **options):
        begun.append(options)
        if len(begun) == 2:
            self._deadline.cancel()
        return real(self, before, **options)

    monkeypatch.setattr(Climb, "__call__", cut)
    rng = np.random.default_rng(1)
    X, y = rng.uniform(size=(N, 2)), rng.normal(size=N)
    model = small(n_iter=0, max_leaves=2, max_time=60.0).fit(X, y)
    history = model.search_history_
    assert history["kernel"][np.argmax(history["score"])] == "NOISE"
    assert model.best_expression_ == "NOISE"


def test_the_score_of_inducing_points_is_that_of_all_rows(table, monkeypatch):
    whole = small(n_iter=0, approximation="inducing").refit(*table, "SE[0] * LIN[1] + LIN[0]")
    monkeypatch.setattr(approximation, "_FEW_ROWS", 200)
    monkeypatch.setattr(approximation, "_MANY_ROWS", 400)
    some = small(n_iter=0, approximation="inducing").refit(*table, "SE[0] * LIN[1] + LIN[0]")
    assert some.best_score_ == pytest.approx(whole.best_score_, abs=0.02 * N)
