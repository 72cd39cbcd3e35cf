"""Searches that go on where the last one ended, and when they do not."""

import pickle

import numpy as np
import pytest

from autokernel import CallableKernel
from autokernel.evidence import Importance
from autokernel.kernels import VARIANCE
from tests import fits
from tests.fits import At, Recording, count_evaluations, interrupt, kernels, rows, wave
from tests.own_kernels import OrnsteinUhlenbeck

DATA = X, Y = wave(12)
ONE = {"base_kernels": ["SE"], "max_leaves": 1, "n_iter": 0}  # and noise alone
# three kernels in the initial design, and noise alone; many more if none is redundant
TINY = {"base_kernels": ["SE"], "max_leaves": 4, "structure_prior": None}


def counted(**parameters):
    """An estimator without an average, of which ``count_evaluations`` knows the kernels."""
    return fits.counted(**{"averaging": None, "max_leaves": 2, **parameters})


@pytest.fixture
def evaluated():
    """Texts of the kernels that are evaluated here."""
    return count_evaluations()


@pytest.fixture(scope="module")
def whole():
    """Searches in one go, by the size of the batch."""
    return {size: counted(n_iter=4, batch_size=size, tol=0).fit(*DATA) for size in (1, 4)}


@pytest.mark.parametrize(("batch_size", "n_begun", "n_ended"), [(1, 1, None), (4, None, 5)])
def test_a_search_interrupted_copied_and_prolonged_is_the_search_in_one_go(
    whole, evaluated, batch_size, n_begun, n_ended
):
    """The initial design has three kernels: four and five are in the first batch after it."""
    expected = rows(whole[batch_size])
    model = counted(n_iter=2, warm_start=True, batch_size=batch_size, tol=0)
    model.set_callbacks(At(interrupt, begun=n_begun, ended=n_ended))
    with pytest.raises(KeyboardInterrupt):
        model.fit(*DATA)
    assert model.stop_reason_ == "interrupted"
    assert rows(model) == expected[: n_ended or 0]
    for n_iter in (2, 4):
        model = pickle.loads(pickle.dumps(model)).set_callbacks()
        model.set_params(n_iter=n_iter).fit(*DATA)
        assert model.n_iter_ == n_iter
        assert model.stop_reason_ == "n_iter"
        assert rows(model)[: 3 + n_iter] == expected[: 3 + n_iter]
        assert np.all(np.diff(model.search_history_["elapsed"]) > 0)
    assert rows(model) == expected
    assert sorted(set(evaluated)) == sorted(evaluated)  # nothing twice
    # the same one evaluates nothing
    evaluated.clear()
    predictions = model.predict(X)
    model.fit(*DATA)
    assert rows(model) == expected
    assert evaluated == []
    np.testing.assert_array_equal(model.predict(X), predictions)
    assert model.set_params(n_iter=1).fit(*DATA).n_iter_ == 1


def test_without_a_seed_a_search_goes_on_too(evaluated):
    drawn = np.random.RandomState(3)
    model = counted(n_iter=1, warm_start=True, random_state=drawn, **TINY).fit(*DATA)
    before = rows(model)
    evaluated.clear()
    model.set_params(n_iter=3).fit(*DATA)
    assert rows(model)[: len(before)] == before
    assert model.n_iter_ == 3
    assert evaluated == kernels(model)[len(before) :]


def test_neither_a_repetition_that_is_interrupted_nor_a_refit_forgets_anything(evaluated):
    model = counted(n_iter=1, warm_start=True, **TINY).fit(*DATA)
    expected = rows(model)
    with pytest.raises(KeyboardInterrupt):
        model.set_callbacks(At(interrupt, ended=1)).fit(*DATA)
    assert rows(model) == expected[:1]
    model.set_callbacks().set_params(warm_start=False).refit(*DATA, "LIN[0]")
    evaluated.clear()
    assert rows(model.set_params(warm_start=True).fit(*DATA)) == expected
    assert evaluated == []


def test_what_the_last_search_did_not_use_is_forgotten():
    model = counted(warm_start=True, **ONE)
    sizes = [len(pickle.dumps(model.fit(*wave(12, seed=seed)))) for seed in range(4)]
    assert sizes[3] < 1.1 * sizes[1]


def test_a_kernel_without_a_name_is_known_in_this_process_and_one_that_is_rewritten_is_not():
    def of_class():
        class Own(OrnsteinUhlenbeck):
            pass

        return Own("OWN")

    function = lambda X, Y, v: v * (X == Y.T)  # noqa: E731
    local = CallableKernel("LOCAL", function, (VARIANCE,))
    settings = {"max_leaves": 1, "n_iter": 0, "warm_start": True}
    for kernel, n_again in ((local, 0), (of_class(), 3)):
        model = counted(base_kernels=["SE", kernel], **settings).fit(*DATA)
        evaluated = count_evaluations()
        other = kernel if kernel is local else of_class()
        model.set_params(base_kernels=["SE", other]).fit(*DATA)
        assert len(evaluated) == n_again


OTHER = wave(12, seed=1)[1]


@pytest.mark.parametrize(
    ("kept", "before", "after", "data"),
    [
        ("memory", {}, {"random_state": 1}, DATA),
        ("memory", {}, {"priors": "paper"}, DATA),
        ("warm_start", {}, {"priors": {"noise_variance": (2, 9)}}, DATA),
        (
            *("memory", {"criterion": Importance(max_draws=100)}, {"criterion": Recording()}),
            DATA,
        ),
        ("memory", {}, {}, (X, OTHER)),
        ("warm_start", {}, {}, (X, OTHER)),
        ("memory", {}, {}, (X + 1e-9 * (X[3] == X), Y)),
        ("warm_start", {}, {}, (X[::-1], Y[::-1])),
        ("warm_start", {"random_state": None}, {}, wave(13)),
    ],
)
def test_if_scores_would_differ_a_search_begins_again(
    tmp_path, evaluated, kept, before, after, data
):
    keeps = {"memory": tmp_path} if kept == "memory" else {"warm_start": True}
    model = counted(**{**ONE, **keeps, **before}).fit(*DATA)
    evaluated.clear()
    model.set_params(**after).fit(*data)
    assert evaluated == kernels(model) == ["SE[0]", "NOISE"]


# Scores of earlier searches under the prior over structures of a later one.


def scores(model):
    """Scores and log priors by kernel."""
    history = model.search_history_
    columns = (history[name].tolist() for name in ("kernel", "score", "log_prior"))
    return {kernel: pair for kernel, *pair in zip(*columns, strict=True)}


@pytest.mark.parametrize("kept", ["memory", "warm_start"])
def test_evaluations_serve_fits_under_another_prior(tmp_path, evaluated, kept):
    model = counted(**{kept: {"memory": tmp_path, "warm_start": True}[kept]}, **ONE)
    first, second = (
        scores(model.set_params(structure_prior=nats).fit(*DATA)) for nats in (1.0, 3.0)
    )
    assert evaluated == ["SE[0]", "NOISE"] == list(first)
    for kernel in first:
        assert second[kernel][1] == pytest.approx(3 * first[kernel][1], abs=1e-12)
        change = second[kernel][0] - first[kernel][0]
        assert change == pytest.approx(2 * first[kernel][1], abs=1e-9)
