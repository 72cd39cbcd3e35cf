"""The climb by estimates: what is estimated, and what is fitted."""

from dataclasses import replace

import numpy as np
import pytest

from autokernel.expression import parse_expression
from autokernel.search import SOT, Acquisition, Arc, StopReason
from autokernel.search.history import Phase
from autokernel.search.loop import Observer
from autokernel.search.store import Store
from tests.search.stand_ins import Laboratory, history_of, landscape, rough, task_of

BASES = ("SE", "LIN", "RQ", "PER")
TRAP, STEP, TOP = "LIN[0] + SE[1]", "LIN[0] * PER[0] + SE[1]", "LIN[0] * PER[0] + RQ[0] + SE[1]"
WORTH = {"SE[0]": 4.0, "LIN[1]": 3.0, "PER[2]": 5.0, "RQ[3]": 2.0, "LIN[0] * PER[2]": 2.5}


def additive(expression):
    """A score of terms, most of which cost more than they bring, with a little roughness."""
    terms = [term.canonical for term in getattr(expression, "children", ()) or (expression,)]
    gain = sum(WORTH.get(text, 0.0) - 1.0 for text in dict.fromkeys(terms))
    return gain - 0.5 * expression.n_leaves + 0.1 * rough(expression)


SMALL = SOT(population_size=20)


def search_of(
    score,
    *,
    n_features=4,
    start="SE[0] + LIN[1]",
    estimate=None,
    store=None,
    n_iter=60,
    targets=("identity",),
    strategy=SMALL,
    tol=0.05,
    observer=None,
):
    """Search from one kernel, and record which kernels were estimated; by default rightly."""
    asked = []

    def estimated(expression):
        asked.append(expression.canonical)
        return (estimate or score)(expression)

    task = task_of(n_features, base_kernels=BASES, reduces=True, max_leaves=6, estimate=estimated)
    grammar = replace(task.grammar, targets=targets)
    task = replace(task, start=(parse_expression(start),), grammar=grammar, tol=tol)
    laboratory = Laboratory(strategy, task, score)
    laboratory.search(n_iter=n_iter, store=store, observer=observer)
    return laboratory, asked


@pytest.fixture(scope="module")
def whole():
    """A search to its end, which no test may change, and the kernels that it has estimated."""
    return search_of(additive, start="SE[0]")


@pytest.mark.parametrize("strategy", [SMALL, Arc(population_size=20)], ids=["sot", "arc"])
def test_it_finds_the_best_terms_and_estimates_all_their_neighbours(strategy):
    found, asked = search_of(additive, start="PER[0] * PER[0]", strategy=strategy)
    best = found.history.best.expression
    assert set(WORTH) - {"LIN[0] * PER[2]"} <= {term.canonical for term in best.children}
    assert found.reason is StopReason.LOCAL_MAXIMUM
    near = {one.canonical for one in found.task.grammar.neighbours(best)}
    assert near <= {*asked, best.canonical}
    steps = [trial for trial in found.history if trial.phase is Phase.SEARCH]
    assert all(trial.proposal.score == trial.evaluation.score for trial in steps)  # they are right


@pytest.mark.parametrize(
    ("heights", "steps"),
    [
        # every change of the best kernel is worse; two steps from PER lead higher
        (
            {"PER[0]": 0.0, "LIN[0] * PER[0]": 5.0, "LIN[0] * PER[0] + RQ[0]": 20.0},
            ["LIN[0] * PER[0]", "LIN[0] * PER[0] + RQ[0]"],
        ),
        # the best neighbour of both is the same one; another neighbour of RQ leads higher
        (
            {
                "PER[0]": 0.0,
                "RQ[0]": -1.0,
                "PER[0] + RQ[0]": 5.0,
                "LIN[0] * RQ[0]": 3.0,
                "LIN[0] * RQ[0] + SE[0]": 20.0,
            },
            ["PER[0] + RQ[0]", "LIN[0] * RQ[0]"],
        ),
    ],
)
def test_it_climbs_from_two_base_kernels_too_and_never_past_the_same_kernel(heights, steps):
    heights = {"LIN[0] + PER[0] * SE[0] + SE[0]": 10.0, **heights}  # of the design
    score = landscape(heights, sea=-9.0)
    task = task_of(reduces=True, max_leaves=6, estimate=score)
    found = Laboratory(SOT(population_size=20), task, score).search(n_iter=20)
    assert found.texts_of(Phase.SEARCH)[:2] == steps
    assert found.history.best.score == 20.0


def test_it_leaves_a_trap_by_way_of_the_next_best_kernel():
    """Each change of the best kernel loses, and a change of a neighbour of it gains."""
    heights = {TRAP: 10.0, STEP: 9.5, TOP: 20.0}

    def score(expression):
        return heights.get(expression.canonical, 2.0 + 1.2 * min(rough(expression), 2.0))

    found, _ = search_of(score, n_features=2, start=TRAP)
    assert found.history.best.expression.canonical == TOP


@pytest.mark.parametrize("start", ["LIN[0] + SE[1]", "LIN[0]"])
def test_it_climbs_on_other_scales_of_the_target_and_after_the_pruning(start):
    """The best kernel has no better neighbour, and on its other scale it is far from the best."""
    heights = {"LIN[0]": 5.0, TRAP: 10.0, f"log(y) ~ {TRAP}": 5.0}  # which a pruning fits
    heights |= {f"log(y) ~ {STEP}": 7.0, f"log(y) ~ {TOP}": 20.0}
    targets = ("identity", "log")
    found, _ = search_of(landscape(heights), n_features=2, start=start, targets=targets)
    assert found.history.best.expression.canonical == f"log(y) ~ {TOP}"


def test_changes_that_have_lost_more_than_estimated_are_not_tried_again_and_again():
    """Estimates of kernels with a second column are five nats too high, and others are right."""

    def score(expression):
        return additive(expression) - 5.0 * (1 in expression.columns)

    def kernels_with_it(estimate):
        found, _ = search_of(score, start="SE[0]", estimate=estimate)
        assert found.reason is StopReason.LOCAL_MAXIMUM
        assert {"SE[0]", "PER[2]", "RQ[3]"} <= {
            term.canonical for term in found.history.best.expression.children
        }
        return sum("[1]" in text for text in found.texts_of(Phase.SEARCH))

    assert kernels_with_it(score) == 0
    assert 0 < kernels_with_it(additive) < 8


class EndsAtPruning(Observer):
    """Ends a search when a simpler form has been evaluated."""

    def end(self, history):
        return history.trials[-1].phase == Phase.PRUNING


def test_where_the_climb_ends_kernels_anywhere_are_judged(whole):
    """What is expected of them ends the search; with no tolerance it goes on with them."""
    found, _ = whole
    assert found.reason is StopReason.LOCAL_MAXIMUM
    assert 0.0 < found.expected_improvement < 0.05
    assert found.history.trials[-1].phase == Phase.PRUNING  # for the posterior over kernels
    cut, _ = search_of(additive, start="SE[0]", observer=EndsAtPruning())
    assert cut.reason is StopReason.CALLBACK
    assert np.isnan(cut.expected_improvement)
    known = len(found.history)
    on, _ = search_of(additive, start="SE[0]", tol=0.0, n_iter=known + 12)
    assert on.reason is StopReason.N_ITER
    assert np.isnan(on.expected_improvement)
    far = [trial for trial in on.history if trial.phase == Phase.SEARCH][-3:]
    near = set(on.task.near(found.history.best.expression))
    assert not near & {trial.evaluation.expression.canonical for trial in far}
    assert all(0.0 <= trial.proposal.expected < 0.05 for trial in far)


def test_improvements_are_over_the_best_kernel_also_on_other_climbs():
    """The search also climbs from the best base kernel, far below the best kernel."""
    heights = {"LIN[0] + SE[1]": 10.0, "SE[0]": 2.0, "PER[0] + SE[0]": 5.0}
    found, _ = search_of(landscape(heights), n_features=2, start="LIN[0] + SE[1]")
    trials = {str(trial.evaluation.expression): trial for trial in found.history}
    assert trials["PER[0] + SE[0]"].proposal.score == 5.0
    assert 0.0 <= trials["PER[0] + SE[0]"].proposal.expected < 0.01


class SmallFirst(Acquisition):
    """Prefers small kernels."""

    def values(self, belief):
        return lambda expressions: np.array([-1.0 * one.n_leaves for one in expressions])


def far_kernels(acquisition, *, tol=0.05):
    """What is proposed where all known kernels are alike, and kernels with PER[1] are better."""

    def worth(expression):
        return 5.0 if "PER[1]" in map(str, expression.leaves) else -3.0

    known = ("LIN[0] + SE[1]", "LIN[0] + RQ[1]", "SE[0] + SE[1]", "LIN[0] * SE[1]", "LIN[0]")
    task = task_of(2, base_kernels=BASES, reduces=True, max_leaves=6, estimate=worth)
    history = history_of(*zip(known, (0.0, -0.3, -0.4, -0.5, -2.0), strict=True), n_design=5)
    rng = np.random.default_rng(0)
    strategy = SOT(acquisition=acquisition)
    found = strategy.propose_far(replace(task, tol=tol), history, n_proposals=50, rng=rng)
    near = task.near(parse_expression(known[0]))
    return found, [one for one in found if one.expression.canonical not in near]


def test_promising_kernels_anywhere_are_estimated_from_the_best_one():
    found, far = far_kernels("ei")
    assert all(one.expected > 0.05 for one in found)
    estimated = [one for one in far if np.isfinite(one.score)]
    assert len(estimated) > 10
    assert all("PER[1]" in str(one.expression) for one in estimated)  # others promise nothing
    assert all(4.0 < one.expected < 7.0 for one in estimated)
    assert found[0].score == 5.0
    # leaves at the same places keep their numbers, by which their parameters are known
    numbers = {leaf.canonical: leaf.number for one in estimated for leaf in one.expression.leaves}
    assert numbers["PER[1]"] is None
    sums = [one.expression for one in estimated if str(one.expression) == "LIN[0] + PER[1] + SE[1]"]
    assert all([leaf.number for leaf in one.leaves] == [0, None, 1] for one in sums)
    shared = [n for one in estimated for n in [leaf.number for leaf in one.expression.leaves]]
    assert {0, 1} <= set(shared)


def test_the_acquisition_chooses_among_kernels_anywhere():
    found, _ = far_kernels(SmallFirst())
    sizes = [one.expression.n_leaves for one in found]
    assert sizes == sorted(sizes)
    assert sizes[0] < sizes[-1]
    [last], _ = far_kernels(SmallFirst(), tol=100.0)  # which none is expected to gain
    assert 0.0 < last.expected < 100.0


@pytest.mark.parametrize("n_before", [2, 5])  # the last one is where the climb ends
def test_an_interrupted_search_goes_on_as_if_it_had_not_been(whole, n_before):
    """What was proposed before is not estimated again."""
    (expected, asked), store = whole, Store()
    search_of(additive, start="SE[0]", store=store, n_iter=n_before)
    again, asked_later = search_of(additive, start="SE[0]", store=store)
    assert again.trials == expected.trials
    assert again.history.definition == expected.history.definition
    assert again.expected_improvement == expected.expected_improvement > 0.0
    assert set(asked_later) < set(asked)
    assert search_of(additive, start="SE[0]", store=store)[1] == []


def test_changes_that_lost_much_before_are_estimated_after_all_others():
    """Terms on a column lose ten nats wherever they are added."""

    def height(expression):
        return additive(expression) - 10.0 * (1 in expression.columns)

    # with fewer columns, all of so few neighbours are estimated at once
    found, asked = search_of(height, start="RQ[3] + SE[0]", n_features=20)
    best = found.history.best.expression
    assert best.canonical == "PER[2] + RQ[3] + SE[0]"  # one step from the start
    order = {text: number for number, text in enumerate(asked)}
    sums = [one for one in found.task.grammar.neighbours(best) if one.n_leaves == 4]
    sums = [one for one in sums if "*" not in one.canonical]
    lost, others = (
        [order[one.canonical] for one in sums if (1 in one.columns) == is_lost]
        for is_lost in (True, False)
    )
    assert max(others) < min(lost)
