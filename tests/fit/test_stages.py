"""One search of a fit in stages: few rows and then all, and what the best kernels show of them."""

import time

import numpy as np
import pytest

from autokernel.fit import space
from tests.fits import At, interrupt, rows, small, tiny

N = 320  # of which 250 are the first stage


def table(n, *, noise=0.1, seed=0):
    """A smooth function of two columns, and a part that varies between rows that are few."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(n, 2))
    return X, np.sin(5 * X[:, 0]) + X[:, 1] + noise * rng.normal(size=n)


def of_row_sets(model):
    """The kernels and phases of each set of rows."""
    history = model.search_history_
    every = range(history["row_set"].max() + 1)
    return [
        (history["kernel"][own].tolist(), history["phase"][own].tolist(), history["score"][own])
        for own in (history["row_set"] == number for number in every)
    ]


def test_a_climb_begins_on_few_rows_and_ends_on_all():
    X, y = table(N)
    model = small(n_iter=2, base_kernels=["LIN"], averaging=None).fit(X, y)
    (kernels, phases, _), (later, phases_later, scores) = of_row_sets(model)
    assert phases[0] == "initial"
    assert "initial" not in phases_later
    n = phases_later.count("rescoring")
    assert phases_later[:n] == ["rescoring"] * n
    assert later[0] in kernels
    assert len(set(later)) == len(later)
    n_rows = np.where(model.search_history_["row_set"] == 0, 250, N)
    np.testing.assert_allclose(
        model.search_history_["score_per_sample"] * n_rows, model.search_history_["score"]
    )
    assert model.best_score_ == scores.max()
    again = small(base_kernels=["LIN"]).refit(X, y, model.best_expression_)
    assert model.best_score_ == pytest.approx(again.best_score_, abs=0.05)  # other starts
    assert len(model.X_train_) == N
    assert model.approximation_ == "exact"


def test_what_few_rows_take_for_noise_is_found_on_all():
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(N, 2))
    centres, weights = rng.uniform(size=(120, 2)), rng.normal(size=120)
    distances = ((X[:, None] - centres) ** 2).sum(axis=2)
    y = np.sin(5 * X[:, 0]) + 0.5 * np.exp(-distances / (2 * 0.05**2)) @ weights
    settings = {"n_iter": 0, "base_kernels": ["SE"], "operators": ["+", "*"], "max_leaves": 6}
    model = small(**settings, averaging=None).fit(X, y)
    _, (later, phases, _) = of_row_sets(model)
    rescored = [one for one, phase in zip(later, phases, strict=True) if phase == "rescoring"]
    assert any(one.count("SE[0] * SE[1]") + one.count("SE[1] * SE[0]") == 2 for one in rescored)


def test_a_search_that_is_ended_on_few_rows_leaves_a_fit_to_all_and_can_be_prolonged():
    (X, y), n_ended, whole = table(N), 2, tiny(base_kernels=["LIN"]).fit(*table(N))
    model = (
        tiny(base_kernels=["LIN"], warm_start=True)
        .set_callbacks(At(lambda: True, ended=n_ended))
        .fit(X, y)
    )
    assert model.stop_reason_ == "callback"
    history = model.search_history_
    assert history["row_set"].tolist() == [0] * n_ended + [1]
    assert model.best_score_ == history["score"][-1]
    model.set_callbacks().fit(X, y)
    assert model.search_history_["kernel"].tolist() == whole.search_history_["kernel"].tolist()
    model.set_params(warm_start=False)
    with pytest.raises(KeyboardInterrupt), pytest.warns(UserWarning, match="interrupted"):
        model.set_callbacks(At(interrupt, begun=n_ended + 1)).fit(X, y)
    assert (model.stop_reason_, model.approximation_) == ("interrupted", "exact")
    assert len(model.X_train_) == N


def varying(seed):
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(120, 3))
    return X, np.sin(5 * X[:, 0]) + 0.02 * 100 ** X[:, 1] * rng.normal(size=120)


def test_noise_that_varies_costs_new_scores_of_a_few_kernels_and_no_other_search():
    began = time.perf_counter()
    model = small(n_iter=3, noise="auto", averaging=None).fit(*varying(1))
    assert model.search_history_["elapsed"].max() < time.perf_counter() - began
    assert "noise grows with x1" in str(model.describe())
    first, *others = of_row_sets(model)
    assert others
    for kernels, phases, _ in others:
        assert "initial" not in phases
        assert phases[0] == "rescoring"
        assert len(set(kernels)) == len(kernels)
    assert model.n_iter_ <= 3
    assert "search" not in first[1]  # it is judged after the design


def test_the_noise_of_one_column_is_judged_when_the_search_ends():
    rng = np.random.default_rng(1)
    x = rng.uniform(size=100)
    y = np.sin(5 * x) + 0.02 * 100**x * rng.normal(size=100)
    first, *others = of_row_sets(small(n_iter=1, noise="auto", averaging=None).fit(x[:, None], y))
    assert others
    assert "search" in first[1]


def test_a_search_in_stages_can_be_repeated_and_prolonged():
    X, y = varying(0)
    settings = {"averaging": None, "base_kernels": ["SE"], "noise": "auto"}
    whole = small(n_iter=1, **settings).fit(X, y)
    again = small(n_iter=0, warm_start=True, **settings).fit(X, y)
    again.set_params(n_iter=1).fit(X, y)
    assert len(of_row_sets(whole)) > 1
    assert rows(again) == rows(whole)


def test_a_season_that_few_rows_show_stays(monkeypatch):
    found = iter([[1]])
    monkeypatch.setattr(space, "columns_with_season", lambda *_: next(found, []))
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(N, 2))
    y = X[:, 0] + np.sin(2 * np.pi * X[:, 1] / 0.15) + 0.1 * rng.normal(size=N)
    settings = {"n_iter": 0, "base_kernels": {1: "auto", "*": ["LIN"]}, "averaging": None}
    model = small(**settings, max_leaves=2, start_kernel="LIN[0] + PER[1]").fit(X, y)
    assert len(of_row_sets(model)) > 1
    assert "PER[1]" in model.best_expression_


def test_stages_without_proposals_keep_the_reason_for_which_the_search_ended():
    settings = {"strategy": "random", "tol": 5.0, "n_iter": 100, "noise": "auto"}
    model = small(**settings).fit(*varying(1))
    assert len(of_row_sets(model)) > 1
    assert model.stop_reason_ == "converged"
