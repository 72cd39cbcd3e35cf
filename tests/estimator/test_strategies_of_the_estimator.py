"""Every strategy in the estimator."""

from typing import ClassVar

import numpy as np
import pytest
from joblib import parallel_config
from sklearn.base import clone

from autokernel import AutoKernelGPRegressor, parse_expression
from autokernel.search import BOMS, SOT, STRATEGIES, RandomWalks, TreeGEP, UpperConfidenceBound
from tests.fits import rows, small, wave

TINY = {"base_kernels": ["SE", "LIN"], "max_leaves": 3, "n_iter": 2, "batch_size": 2}
BAYESIAN = ("sot", "boms", "arc")


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """A folder in which all searches find what one of them has evaluated."""
    return tmp_path_factory.mktemp("kept")


@pytest.fixture(scope="module", params=STRATEGIES)
def name(request):
    return request.param


@pytest.fixture(scope="module")
def whole(name, kept):
    """A search in one go, by one worker."""
    return small(strategy=name, memory=kept, **TINY).fit(*wave())


def test_it_finds_a_kernel_and_predicts(name, whole):
    X, y = wave()
    assert whole.stop_reason_ == "n_iter"
    assert whole.n_iter_ == 2
    assert whole.score(X, y) > 0.9
    texts = [parse_expression(text).canonical for text in whole.search_history_["kernel"]]
    assert len(set(texts)) == len(texts)
    # SE and LIN, and two from each, where from LIN alone one is left; then noise alone; no kernel
    # of one leaf has a simpler form to try
    n_initial = {"greedy": 3, "skc": 3}.get(name, 6)
    assert list(whole.search_history_["phase"]) == n_initial * ["initial"] + 2 * ["search"]
    assert whole.search_history_["kernel"][n_initial - 1] == "NOISE"


def test_workers_and_objects_change_nothing(name, whole):
    model = small(strategy=STRATEGIES[name](), n_jobs=2, **TINY)
    with parallel_config(backend="threading"):
        model.fit(*wave())
    assert rows(model) == rows(whole)
    assert model.best_expression_ == whole.best_expression_


def test_the_same_search_finds_all_in_memory(name, whole, kept):
    again = small(strategy=name, memory=kept, **TINY).fit(*wave())
    assert rows(again) == rows(whole)
    seconds = [model.search_history_["fit_seconds"] for model in (again, whole)]
    np.testing.assert_array_equal(*seconds)  # those of the first evaluation


def test_a_search_in_steps_is_the_search_in_one_go(name, whole, kept):
    model = small(strategy=name, warm_start=True, memory=kept, **TINY)
    for n_iter in (0, 1, 2):
        model.set_params(n_iter=n_iter).fit(*wave())
    assert rows(model) == rows(whole)


@pytest.mark.filterwarnings("ignore:max_time:sklearn.exceptions.ConvergenceWarning")  # if slow
def test_it_keeps_to_its_time(name):
    settings = {"strategy": name, "n_iter": 1000, "random_state": 0}
    model = AutoKernelGPRegressor(max_time=0.5, **settings)
    model.fit(*wave(60))  # a thousand steps take minutes
    assert model.stop_reason_ in ("max_time", "exhausted")
    assert np.isfinite(model.predict(wave()[0])).all()


def test_greedy_stops_where_no_neighbour_is_better(kept):
    settings = {**TINY, "max_leaves": 2, "n_iter": 100}
    model = small(strategy="greedy", memory=kept, **settings).fit(*wave())
    assert model.stop_reason_ == "exhausted"
    assert model.n_iter_ < 4  # all kernels are six besides noise alone, of which it begins with two


def test_parameters_of_a_strategy_are_read_and_set_through_the_estimator():
    model = small(strategy=BOMS())
    assert model.get_params()["strategy__n_walks"] == 15
    twin = clone(model).set_params(strategy__n_walks=3, strategy__n_neighbours=4)
    assert (twin.strategy.n_walks, twin.strategy.n_neighbours) == (3, 4)
    assert model.strategy.n_walks == 15
    with pytest.raises(ValueError, match=r"Invalid parameter 'n_steps' for estimator BOMS"):
        model.set_params(strategy__n_steps=1)


@pytest.mark.parametrize("name", BAYESIAN)
def test_an_acquisition_function_is_given_by_name_or_as_an_object(kept, name):
    settings = {"memory": kept, **TINY, "batch_size": 1}
    make = STRATEGIES[name]
    by_name = small(strategy=make(acquisition="ucb"), **settings).fit(*wave())
    ucb = UpperConfidenceBound(kappa=2.0)
    as_object = small(strategy=make(acquisition=ucb), **settings).fit(*wave())
    assert rows(as_object) == rows(by_name)
    as_object.set_params(strategy__acquisition__kappa=-1.0)
    with pytest.raises(ValueError, match=r"'kappa' .*of UpperConfidenceBound .*\[0.0, inf\)"):
        as_object.fit(*wave())


class NotingLimits(RandomWalks):
    """Notes how large a kernel may be."""

    limits: ClassVar[list[int]] = []

    def propose(self, task, history, *, n_proposals, rng):
        self.limits.append(task.grammar.max_leaves)
        return super().propose(task, history, n_proposals=n_proposals, rng=rng)


def test_the_more_columns_the_larger_kernels_may_be_by_default():
    NotingLimits.limits.clear()
    X = np.random.default_rng(0).uniform(size=(8, 6))
    for n_features, max_leaves in [(1, "auto"), (3, "auto"), (4, "auto"), (6, "auto"), (6, 5)]:
        settings = {"base_kernels": ["LIN"], "n_iter": 1, "max_leaves": max_leaves}
        small(strategy=NotingLimits(), **settings).fit(X[:, :n_features], X.sum(axis=1))
    assert NotingLimits.limits == [10, 10, 12, 16, 5]


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"strategy": "bomb"}, r"strategy must be one of .*'boms'.*got 'bomb'"),
        ({"strategy": "BOMS"}, r"strategy must be one of .*'tree_gep'.*got 'BOMS'"),
        ({"strategy": BOMS}, r"strategy must be an object, got the class"),
        ({"strategy": None}, r"strategy must be one of .*got None"),
        ({"strategy": BOMS(n_walks=0)}, r"'n_walks' .*of BOMS .*\[1, inf\).*0"),
        ({"strategy": TreeGEP(mutation=2)}, r"'mutation' .*of TreeGEP .*\[0.0, 1.0\].*2"),
        ({"strategy": RandomWalks(initial_design="big")}, "'initial_design' .*of RandomWalks"),
        ({"strategy": SOT(acquisition="pi")}, r"acquisition must be one of .*'thompson'.*got 'pi'"),
        ({"strategy": BOMS(acquisition=UpperConfidenceBound)}, r"acquisition must be an object"),
    ],
)
def test_a_bad_strategy_or_acquisition_function_is_named_with_what_is_known(parameters, message):
    with pytest.raises(ValueError, match=message):
        small(**parameters).fit(*wave())
