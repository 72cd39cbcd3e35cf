"""What holds for every strategy: parameters, proposals, whole searches, and their continuation."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import clone

from autokernel import parse_expression
from autokernel.search import (
    ACQUISITIONS,
    BOMS,
    SOT,
    Arc,
    Greedy,
    History,
    Phase,
    StopReason,
    Store,
    TreeGEP,
)
from autokernel.search.distances import SOTKernel
from autokernel.search.methods.arc import ArcKernel
from autokernel.search.methods.boms import HellingerKernel
from tests.fits import SEARCHES
from tests.search.stand_ins import (
    QUICK,
    Laboratory,
    Noting,
    every_bayesian,
    every_kernel,
    every_strategy,
    history_of,
    proposed,
    rough,
    task_of,
    texts,
)

TASKS = {
    "columns left out": {"n_features": 4, "columns": (0, 2), "max_leaves": 4},
    "products alone": {"n_features": 2, "operators": ("*",)},
}


@pytest.fixture(params=TASKS)
def task(request):
    return task_of(**TASKS[request.param])


def history_in_no_order(expressions, *, n_design=4):
    """Build a history with scores of no order."""
    distinct = list({e.canonical: e for e in expressions}.values())
    scores = np.random.default_rng(0).normal(size=len(distinct))
    return history_of(*zip(distinct, scores, strict=True), n_design=n_design)


@pytest.fixture
def history(task):
    """The base kernels of the task and some others."""
    walks = task.grammar.random_walks(8, np.random.default_rng(1))
    return history_in_no_order([*task.grammar.leaves, *walks])


# Parameters.


@pytest.mark.parametrize("name", SEARCHES)
def test_it_can_be_made_by_name_and_cloned_and_checks_all_parameters(name):
    strategy = SEARCHES[name]()
    strategy._validate_params()
    copy = clone(strategy)
    assert copy is not strategy
    assert copy.get_params() == strategy.get_params()
    assert set(strategy._parameter_constraints) == set(strategy.get_params())


POSITIVE = r"an int in the range \[1, inf\)"
SIZES = [
    (strategy, name, value, POSITIVE)
    for strategy, names in [
        (SOT, ["population_size"]),
        (Arc, ["population_size"]),
        (BOMS, ["n_walks", "n_neighbours", "n_candidates"]),
        (TreeGEP, ["max_depth"]),
    ]
    for name in names
    for value in (0, 2.0)
]


@pytest.mark.parametrize(
    ("strategy", "name", "value", "expected"),
    [
        *SIZES,
        (TreeGEP, "population_size", 1, r"an int in the range \[2, inf\)"),
        (TreeGEP, "reproduction", 1.0, r"a float in the range \[0.0, 1.0\)"),
        (TreeGEP, "mutation", "often", r"a float in the range \[0.0, 1.0\]"),
        (TreeGEP, "tournament", 0, r"a float in the range \(0.0, 1.0\]"),
        *(
            (SEARCHES[name], "initial_design", "large", r"\{'\w+', '\w+'\}")
            for name in SEARCHES
            if name not in {"greedy", "skc"}  # with their own design
        ),
    ],
)
def test_an_invalid_parameter_is_an_error_that_says_what_is_valid(strategy, name, value, expected):
    message = rf"'{name}' parameter of {strategy.__name__} must be .*{expected}.*{value!r}"
    with pytest.raises(ValueError, match=message):
        strategy(**{name: value})._validate_params()


# Proposals.


def assert_valid(proposals, task, history):
    canonical = [e.canonical for e in proposals]
    assert len(set(canonical)) == len(canonical)
    assert not set(canonical) & history.canonical_texts()
    assert all(task.grammar.spans(e) for e in proposals)


@every_strategy
def test_proposals_are_a_function_of_the_arguments_alone(strategy, task, history):
    trials, params = list(history), strategy.get_params()
    longest = proposed(strategy, task, history, 5)
    assert len(longest) > 1
    assert_valid(longest, task, history)
    # the first ones do not depend on how many there are to be
    for n_proposals in (1, 2):
        assert proposed(strategy, task, history, n_proposals) == longest[:n_proposals]
    # nor on what was proposed before, on the identity of the arguments, or on the clock
    proposed(strategy, task, History(10, trials[:-2]), 2, seed=1)
    slow = [
        replace(t, evaluation=replace(t.evaluation, seconds=9.0), proposal_seconds=8.0, elapsed=1e3)
        for t in history
    ]
    assert proposed(clone(strategy), replace(task), History(10, slow), 5) == longest
    assert history.trials == trials
    assert strategy.get_params() == params


@pytest.mark.parametrize("name", sorted(set(SEARCHES) - {"boms"}))
def test_other_random_numbers_give_other_proposals(name):
    # BOMS draws from a stream of the history: which kernels it may choose depends on that alone
    task = task_of(2)
    history = history_in_no_order(task.grammar.leaves)
    found = {tuple(texts(proposed(QUICK[name], task, history, 3, seed=seed))) for seed in (1, 2)}
    assert len(found) == 2


@every_bayesian
def test_of_the_unknown_kernels_met_that_of_highest_acquisition_is_proposed(name):
    noting, task = Noting(), task_of(2)
    history = history_in_no_order(task.grammar.leaves)
    [proposal] = proposed(clone(QUICK[name]).set_params(acquisition=noting), task, history)
    known = history.canonical_texts()
    unknown = {e.canonical: value for e, value in noting.found if e.canonical not in known}
    assert len(unknown) > 5
    assert unknown[proposal.canonical] == max(unknown.values())


@every_bayesian
def test_a_failed_kernel_counts_as_the_worst_and_improvement_is_over_the_best(name):
    noting = Noting()
    strategy = clone(QUICK[name]).set_params(acquisition=noting)
    one, other = (
        proposed(strategy, task_of(), history_of(("SE[0]", -30), ("LIN[0]", score), ("PER[0]", -9)))
        for score in (-30.0, -np.inf)
    )
    assert one == other
    assert [belief.best for belief in noting.beliefs] == [-0.9, -0.9]  # per sample


@pytest.mark.parametrize(
    "name", ["sot", *(pytest.param(name, marks=pytest.mark.slow) for name in ("arc", "boms"))]
)
def test_proposals_are_better_than_what_walks_find(name):
    """If scores go by the distance by which a strategy compares kernels."""
    task, target = task_of(), parse_expression("LIN[0] * PER[0] + SE[0]")
    strategy, kernel = {
        "sot": (SOT(population_size=20), SOTKernel()),
        "arc": (Arc(population_size=40), ArcKernel()),
        "boms": (
            BOMS(n_candidates=80),
            HellingerKernel(task.evaluator.data, task.evaluator.priors),
        ),
    }[name]

    def score(expressions):
        return -kernel.distances(expressions, [target]).sum(axis=(0, 2))

    found, met = [], []
    for seed in range(5):
        walks = task.grammar.random_walks(30, np.random.default_rng(seed))
        walks = list({e.canonical: e for e in walks if e.canonical != target.canonical}.values())
        history = history_of(*zip(walks, score(walks), strict=True), n_design=30)
        found.append(score(proposed(strategy, task, history, 4, seed=seed)).max())
        met += [*score(walks)]
    # the best of four walks would be so good in one of five cases, and four times of five in 1 of
    # 200; from 30 scores a surrogate may take the wrong things to matter
    assert np.sum(found > np.quantile(met, 0.95)) >= 4


# Whole searches.


@pytest.mark.parametrize(
    ("limits", "n_expected", "batch_size"),
    [
        ({"base_kernels": ("SE",), "max_leaves": 1}, 1, 1),
        ({"n_features": 3, "columns": (0, 2), "max_leaves": 1}, 8, 3),
        ({"base_kernels": ("SE", "LIN"), "max_leaves": 2}, 8, 1),
        ({"base_kernels": ("SE", "PER"), "operators": ("*",), "max_leaves": 4}, 14, 3),
    ],
)
@pytest.mark.parametrize("name", [name for name in SEARCHES if name not in {"greedy", "skc"}])
def test_a_tiny_space_is_evaluated_exactly_once_and_then_exhausted(
    name, limits, n_expected, batch_size
):
    task = task_of(**limits)
    everything = [e.canonical for e in every_kernel(task.grammar)]
    assert len(everything) == n_expected
    found = Laboratory(QUICK[name], task).search(n_iter=100, batch_size=batch_size)
    canonical = [e.expression.canonical for e in found.history.evaluations]
    assert sorted(canonical) == sorted([*everything, "NOISE"])
    assert found.reason is StopReason.EXHAUSTED


@every_bayesian
@pytest.mark.parametrize("acquisition", ACQUISITIONS)
def test_every_acquisition_function_goes_with_every_strategy_that_has_one(name, acquisition):
    strategy = clone(QUICK[name]).set_params(acquisition=acquisition)
    history = Laboratory(strategy, task_of()).search(n_iter=2, batch_size=2).history
    assert history.n_searched == 2
    assert len(history.canonical_texts()) == len(history)


# Searches that go on from a history.


def random_score(expression):
    """A score with local maxima, of which larger kernels have somewhat better ones."""
    return 3 * rough(expression) + expression.n_leaves


def estimated_score(expression):
    """What is known of a score beforehand: not much, and more of some than of others."""
    return 8 + 0.2 * random_score(expression) + rough(expression, "error of ")


def searched(strategy, *, store=None, **settings):
    """Search as a fit does: in normal forms, with pruning; the task is a new one."""
    task = task_of(reduces=True, max_leaves=6, estimate=estimated_score)
    return Laboratory(strategy, task, random_score).search(store=store, **settings)


@every_strategy
def test_a_search_that_is_repeated_and_prolonged_is_the_longer_search(strategy):
    whole = searched(strategy, n_iter=4, batch_size=3)
    assert whole.texts_of(Phase.PRUNING) or isinstance(strategy, Greedy)  # or it shows less
    store = Store()
    for n_iter in (1, 4):  # three is a whole batch, one ends in the midst of one
        again = searched(strategy, store=store, n_iter=n_iter, batch_size=3)
    assert again.trials == whole.trials
    assert again.fits == whole.fits
