"""Searches that go on where the last one ended."""

import pickle

import numpy as np
import pytest

from autokernel.evidence import Importance
from tests.fits import At, count_evaluations, interrupt, kernels, rows, small, wave

# three kernels in the initial design, and noise alone; many more where none is redundant
TINY = {"base_kernels": ["SE"], "max_leaves": 4, "structure_prior": None}


@pytest.fixture
def evaluated():
    """Texts of the kernels that are evaluated here."""
    return count_evaluations()


@pytest.fixture(scope="module")
def whole():
    """Searches in one go, by the size of the batch."""
    return {size: small(n_iter=7, batch_size=size).fit(*wave()) for size in (1, 4)}


@pytest.mark.parametrize("batch_size", [1, 4])
@pytest.mark.parametrize("steps", [(0, 7), (2, 3, 6, 7)])
def test_a_search_in_steps_is_the_search_in_one_go(whole, evaluated, batch_size, steps):
    model = small(warm_start=True, batch_size=batch_size)
    for n_iter in steps:
        model.set_params(n_iter=n_iter).fit(*wave())
        assert model.n_iter_ == n_iter
        assert model.stop_reason_ == "n_iter"
    assert rows(model) == rows(whole[batch_size])
    assert evaluated == kernels(whole[batch_size])
    assert np.all(np.diff(model.search_history_["elapsed"]) > 0)


@pytest.mark.parametrize("batch_size", [1, 4])
@pytest.mark.parametrize("n_trials", [1, 9])
def test_a_search_that_was_interrupted_goes_on_as_if_it_had_not_been(
    whole, evaluated, batch_size, n_trials
):
    model = small(n_iter=7, warm_start=True, batch_size=batch_size)
    model.set_callbacks(At(interrupt, ended=n_trials))
    with pytest.raises(KeyboardInterrupt):
        model.fit(*wave())
    assert model.stop_reason_ == "interrupted"
    assert rows(model) == rows(whole[batch_size])[:n_trials]
    model.set_callbacks().fit(*wave())
    assert model.stop_reason_ == "n_iter"
    assert rows(model) == rows(whole[batch_size])
    assert evaluated == kernels(whole[batch_size])


def test_a_search_interrupted_before_any_kernel_begins_at_the_beginning(whole):
    model = small(n_iter=7, warm_start=True).set_callbacks(At(interrupt, begun=1))
    with pytest.raises(KeyboardInterrupt):
        model.fit(*wave())
    assert rows(model) == []
    assert rows(model.set_callbacks().fit(*wave())) == rows(whole[1])


def test_a_copy_of_a_fitted_model_goes_on_too(whole, evaluated):
    model = pickle.loads(pickle.dumps(small(n_iter=2, warm_start=True).fit(*wave())))
    evaluated.clear()
    assert rows(model.set_params(n_iter=7).fit(*wave())) == rows(whole[1])
    assert len(evaluated) == 5


@pytest.mark.parametrize("random_state", [None, np.random.RandomState(3)])
def test_without_a_seed_a_search_goes_on_too(evaluated, random_state):
    model = small(n_iter=1, warm_start=True, random_state=random_state, **TINY).fit(*wave())
    before = rows(model)
    evaluated.clear()
    model.set_params(n_iter=4).fit(*wave())
    assert rows(model)[: len(before)] == before
    assert len(rows(model)) == len(before) + 3
    assert evaluated == kernels(model)[len(before) :]


def test_a_search_that_has_been_long_enough_evaluates_nothing(whole, evaluated):
    model = small(n_iter=3, warm_start=True).fit(*wave())
    before, predictions = rows(model), model.predict(wave()[0])
    evaluated.clear()
    for n_iter in (3, 1):
        model.set_params(n_iter=n_iter).fit(*wave())
        assert rows(model) == before
        assert model.n_iter_ == 3
    assert evaluated == []
    np.testing.assert_array_equal(model.predict(wave()[0]), predictions)


@pytest.mark.parametrize(
    "settings",
    [
        {"random_state": 1},
        {"priors": "paper"},
        {"criterion": Importance(max_draws=100)},
        {"structure_prior": 2.0},
    ],
)
def test_where_scores_would_differ_a_search_begins_anew(settings):
    model = small(n_iter=1, warm_start=True, **TINY).fit(*wave())
    model.set_params(**settings).fit(*wave())
    assert rows(model) == rows(small(n_iter=1, **{**TINY, **settings}).fit(*wave()))
    assert model.n_iter_ == 1


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
def test_with_other_data_a_search_begins_anew(evaluated, data, random_state):
    model = small(n_iter=1, warm_start=True, random_state=random_state, **TINY).fit(*wave())
    evaluated.clear()
    model.fit(*data)
    assert evaluated == kernels(model)
    assert model.n_iter_ == 1
    if random_state is not None:
        assert rows(model) == rows(small(n_iter=1, **TINY).fit(*data))


def test_without_warm_start_a_search_begins_anew(evaluated):
    model = small(n_iter=1, **TINY).fit(*wave())
    first = rows(model)
    evaluated.clear()
    assert rows(model.fit(*wave())) == first
    assert len(evaluated) == len(first)


def test_a_larger_space_keeps_what_is_known(evaluated):
    model = small(n_iter=1, warm_start=True).fit(*wave())
    before = rows(model)
    model.set_params(n_iter=5, batch_size=2, max_leaves=5)
    evaluated.clear()
    model.fit(*wave())
    assert rows(model)[: len(before)] == before
    assert evaluated == kernels(model)[len(before) :]
    assert len(evaluated) > 2


def test_warm_start_and_memory_agree(tmp_path, whole, evaluated):
    for n_iter in (2, 7):
        model = small(n_iter=n_iter, warm_start=True, memory=tmp_path).fit(*wave())
    assert rows(model) == rows(whole[1])
    assert len(evaluated) == len(rows(model))
    again = small(n_iter=5, warm_start=True, memory=tmp_path).fit(*wave())
    assert rows(again.set_params(n_iter=7).fit(*wave())) == rows(whole[1])
    assert len(evaluated) == len(rows(model))
