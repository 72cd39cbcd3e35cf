"""Searches that go on where the last one ended, and when they do not."""

import pickle

import numpy as np
import pytest

from autokernel.evidence import Importance
from tests.fits import At, Recording, count_evaluations, counted, interrupt, kernels, rows, wave

ONE = {"base_kernels": ["SE"], "max_leaves": 1, "n_iter": 0}  # and noise alone
# three kernels in the initial design, and noise alone; many more if none is redundant
TINY = {"base_kernels": ["SE"], "max_leaves": 4, "structure_prior": None}


@pytest.fixture
def evaluated():
    """Texts of the kernels that are evaluated here."""
    return count_evaluations()


@pytest.fixture(scope="module")
def whole():
    """Searches in one go, by the size of the batch."""
    return {size: counted(n_iter=5, batch_size=size, tol=0).fit(*wave()) for size in (1, 4)}


@pytest.mark.parametrize(
    ("batch_size", "n_begun", "n_ended"), [(1, 1, None), (1, None, 4), (4, None, 5)]
)
def test_a_search_interrupted_copied_and_prolonged_is_the_search_in_one_go(
    whole, evaluated, batch_size, n_begun, n_ended
):
    """The initial design has three kernels: four and five are in the first batch after it."""
    expected = rows(whole[batch_size])
    model = counted(n_iter=3, warm_start=True, batch_size=batch_size, tol=0)
    model.set_callbacks(At(interrupt, begun=n_begun, ended=n_ended))
    with pytest.raises(KeyboardInterrupt):
        model.fit(*wave())
    assert model.stop_reason_ == "interrupted"
    assert rows(model) == expected[: n_ended or 0]
    for n_iter in (3, 5):
        model = pickle.loads(pickle.dumps(model)).set_callbacks()
        model.set_params(n_iter=n_iter).fit(*wave())
        assert model.n_iter_ == n_iter
        assert model.stop_reason_ == "n_iter"
        assert rows(model)[: 3 + n_iter] == expected[: 3 + n_iter]
        assert np.all(np.diff(model.search_history_["elapsed"]) > 0)
    assert rows(model) == expected
    assert sorted(set(evaluated)) == sorted(evaluated)  # nothing twice
    # one that has been long enough evaluates nothing
    evaluated.clear()
    predictions = model.predict(wave()[0])
    model.set_params(n_iter=1).fit(*wave())
    assert rows(model) == expected
    assert model.n_iter_ == 5
    assert evaluated == []
    np.testing.assert_array_equal(model.predict(wave()[0]), predictions)


@pytest.mark.parametrize("random_state", [None, np.random.RandomState(3)])
def test_without_a_seed_a_search_goes_on_too(evaluated, random_state):
    model = counted(n_iter=1, warm_start=True, random_state=random_state, **TINY).fit(*wave())
    before = rows(model)
    evaluated.clear()
    model.set_params(n_iter=3).fit(*wave())
    assert rows(model)[: len(before)] == before
    assert model.n_iter_ == 3
    assert evaluated == kernels(model)[len(before) :]


def test_a_larger_space_keeps_what_is_known(evaluated):
    model = counted(n_iter=1, warm_start=True).fit(*wave())
    before = rows(model)
    model.set_params(n_iter=4, batch_size=2, max_leaves=5)
    evaluated.clear()
    model.fit(*wave())
    assert rows(model)[: len(before)] == before
    assert evaluated == kernels(model)[len(before) :]
    assert len(evaluated) > 2


def test_warm_start_and_memory_agree(tmp_path, whole, evaluated):
    for n_iter in (2, 5):
        model = counted(n_iter=n_iter, warm_start=True, memory=tmp_path, tol=0).fit(*wave())
    assert rows(model) == rows(whole[1])
    again = counted(n_iter=3, warm_start=True, memory=tmp_path, tol=0).fit(*wave())
    assert rows(again.set_params(n_iter=5).fit(*wave())) == rows(whole[1])
    assert len(evaluated) == len(rows(model))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({}, {"random_state": 1}),
        ({}, {"priors": "paper"}),
        ({"criterion": Importance(max_draws=100)}, {"criterion": Recording()}),
        ({}, {"structure_prior": 2.0}),
        ({}, {"structure_prior": None}),
        ({"warm_start": False}, {}),
    ],
    ids=str,
)
def test_if_scores_would_differ_a_search_begins_again(evaluated, before, after):
    model = counted(**{"warm_start": True, **ONE, **before}).fit(*wave())
    evaluated.clear()
    model.set_params(**after).fit(*wave())
    assert evaluated == kernels(model) == ["SE[0]", "NOISE"]


@pytest.mark.parametrize(
    ("data", "random_state"),
    [
        ((wave()[0], wave(seed=1)[1]), 0),
        ((wave(seed=1)[0], wave()[1]), 0),
        (tuple(part[::-1] for part in wave()), 0),
        (wave(21), None),
    ],
    ids=["targets", "inputs", "order", "number"],
)
def test_with_other_data_a_search_begins_again(evaluated, data, random_state):
    model = counted(warm_start=True, **{**ONE, "random_state": random_state}).fit(*wave())
    evaluated.clear()
    model.fit(*data)
    assert evaluated == kernels(model) == ["SE[0]", "NOISE"]


# Scores of earlier searches under the prior over structures of a later one.


def scores(model):
    """Scores and log priors by kernel."""
    history = model.search_history_
    columns = (history[name].tolist() for name in ("kernel", "score", "log_prior"))
    return {kernel: pair for kernel, *pair in zip(*columns, strict=True)}


def test_a_warm_start_with_more_base_kernels_prices_again_what_it_has(evaluated):
    model = counted(n_iter=0, warm_start=True, base_kernels=["SE"]).fit(*wave())
    before = scores(model)
    evaluated.clear()
    after = scores(model.set_params(base_kernels=["SE", "LIN"]).fit(*wave()))
    assert not set(evaluated) & set(before)  # the fits themselves hold
    assert set(before) < set(after)
    for kernel, (score, log_prior) in before.items():
        # each unit is one of two base kernels now, at half the strength of the grammar's prior
        n_units = kernel.count("SE[")
        assert after[kernel][1] == pytest.approx(log_prior - 0.5 * n_units * np.log(2), abs=1e-12)
        assert after[kernel][0] - after[kernel][1] == pytest.approx(score - log_prior, abs=1e-9)
    assert model.best_score_ == max(score for score, _ in after.values())


def test_memory_serves_fits_under_another_prior(tmp_path, evaluated):
    first, second = (
        scores(counted(structure_prior=nats, memory=tmp_path, **ONE).fit(*wave()))
        for nats in (1.0, 3.0)
    )
    assert evaluated == ["SE[0]", "NOISE"] == list(first)
    for kernel in first:
        assert second[kernel][1] == pytest.approx(3 * first[kernel][1], abs=1e-12)
        change = second[kernel][0] - first[kernel][0]
        assert change == pytest.approx(2 * first[kernel][1], abs=1e-9)
