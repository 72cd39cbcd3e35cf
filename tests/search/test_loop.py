"""The loop of a search: its order, its end, and the history that it leaves."""

import inspect
import time
import tracemalloc
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from autokernel.deadline import Deadline
from autokernel.evidence import Estimate, Evaluator
from autokernel.expression import parse_expression
from autokernel.inference import TrainingData
from autokernel.kernels import PRESETS
from autokernel.many_rows.left_out import MAX_INVISIBLE_STEPS, no_gain_seen_by
from autokernel.search import (
    SOT,
    History,
    Phase,
    Search,
    StopReason,
    Store,
    evaluate_in_parallel,
)
from tests.search.stand_ins import (
    Diary,
    Laboratory,
    Script,
    fit_of,
    history_of,
    planted,
    task_of,
)

DESIGN = ["SE[0]", "LIN[0]", "PER[0]", "NOISE"]  # PER is the best kernel: nothing is pruned
PROPOSALS = ["RQ[0]", "SE[0] + SE[0]", "SE[0] * LIN[0]", "LIN[0] * LIN[0]"]


def script_of(**options):
    return Script(**{"fixed": DESIGN[:3], "proposals": PROPOSALS, **options})


@pytest.fixture
def laboratory():
    return Laboratory(script_of(), task_of())


def test_a_search_that_goes_on_with_no_kernel_ends(laboratory):
    search = Search(laboratory.strategy, laboratory.task, laboratory.history, n_iter=0, seed=0)
    search.run(laboratory._evaluate_all)
    search.go_on(laboratory.task, History(10), [])
    assert search.run(laboratory._evaluate_all) in set(StopReason)


@pytest.mark.parametrize("batch_size", [1, 3])
@pytest.mark.parametrize("n_iter", [0, 4])
def test_the_design_comes_first_then_noise_then_batches_of_proposals(
    laboratory, n_iter, batch_size
):
    laboratory.search(n_iter=n_iter, batch_size=batch_size)
    assert laboratory.reason == "n_iter"
    assert laboratory.texts_of() == [*DESIGN, *PROPOSALS[:n_iter]]
    assert [phase for _, phase in laboratory.trials] == ["initial"] * 4 + ["search"] * n_iter
    assert laboratory.history.n_searched == n_iter
    # a batch is proposed and fitted given all before it, except noise alone; the design given none
    starts = [number // batch_size * batch_size for number in range(n_iter)]
    known = [[*DESIGN[:3], *PROPOSALS[:start]] for start in starts]
    assert [given for _, given in laboratory.fits] == [[]] * 4 + known
    assert laboratory.strategy.shown == known[::batch_size]


def test_a_design_that_takes_too_long_leaves_time_to_prune_and_to_search():
    def score(expression):  # there was no time for the third kernel of the design
        return None if str(expression) == "PER[0]" else -float(expression.n_leaves or 10)

    script = Script(fixed=["SE[0] + LIN[0]", "RQ[0] + LIN[0]", "PER[0]"], proposals=PROPOSALS[:1])
    subject = Laboratory(script, task_of(), score).search(n_iter=1, deadline=Deadline(1000.0))
    assert subject.texts_of() == ["SE[0] + LIN[0]", "RQ[0] + LIN[0]", "NOISE", "SE[0]", "RQ[0]"]
    assert subject.reason is StopReason.MAX_TIME  # also when it was tried again at the end
    assert 400 < subject.seconds[0] <= 500 < min(subject.seconds[1:])


@pytest.mark.parametrize("is_short", [False, True])
def test_a_rough_fit_is_a_start_only_if_there_was_no_time_for_a_kernel(is_short):
    starts = []

    def evaluate_all(kernels, known, deadline):
        for one in kernels:
            starts.append(one.start)
            is_late = is_short and len(starts) == 1
            yield None if is_late else fit_of(one.expression, -1.0)

    rough = fit_of("SE[0]", 0.0)
    search = Search(Script(), task_of(), History(10), n_iter=0, seed=0)
    search.run(evaluate_all, deadline=Deadline(1000.0), rough=rough, latest=Deadline(1000.0))
    known = [start.theta.tolist() for start in starts if start is not None]
    assert known == ([rough.theta.tolist()] if is_short else [])


def test_a_search_ends_when_its_last_steps_are_not_seen_on_other_rows():
    rng = np.random.default_rng(0)
    rows = TrainingData(rng.uniform(size=(120, 1)), rng.normal(size=120))
    given, left_out = rows.take(np.arange(20)), rows.take(np.arange(20, 120))
    script = Script(fixed=["SE[0]"], proposals=[" + ".join(n * ["RQ[0]"]) for n in range(1, 15)])
    task = replace(task_of(), shows_no_gain=no_gain_seen_by(left_out, given=given))
    subject = Laboratory(script, task, lambda one: -float(one.n_leaves or 99))
    subject.search(n_iter=14)
    assert subject.reason is StopReason.CONVERGED
    assert subject.history.n_searched == MAX_INVISIBLE_STEPS


def test_what_was_proposed_after_the_same_trials_is_read_from_the_store():
    strategy, store = script_of(), Store()
    for n_iter in (2, 4, 4):
        laboratory = Laboratory(strategy, task_of()).search(n_iter=n_iter, store=store)
        assert laboratory.texts_of() == [*DESIGN, *PROPOSALS[:n_iter]]
    assert len(strategy.shown) == 4
    others = [
        ({"seed": 1}, {}, planted),
        ({"batch_size": 2}, {}, planted),
        ({}, {"max_leaves": 3}, planted),
        ({}, {}, lambda expression: planted(expression) + 1e-9),
    ]
    for settings, of_task, score in others:
        n_before = len(strategy.shown)
        laboratory = Laboratory(strategy, task_of(**of_task), score)
        laboratory.search(n_iter=1, store=store, **settings)
        assert len(strategy.shown) == n_before + 1


def test_equal_kernels_are_evaluated_once():
    fixed = ["SE[0] + LIN[0]", "LIN[0] + SE[0]", "SE[0] * SE[0]", "SE[0]"]
    laboratory = Laboratory(Script(fixed=fixed), task_of(reduces=True), lambda e: -e.n_leaves)
    assert sorted(laboratory.search().texts_of()) == ["LIN[0] + SE[0]", "NOISE", "SE[0]"]
    laboratory = Laboratory(script_of(), task_of(columns=())).search(n_iter=3)  # none varies
    assert laboratory.reason is StopReason.EXHAUSTED
    assert laboratory.trials == [("NOISE", "initial")]


def test_seconds_add_up_and_those_of_a_proposal_are_shared_among_its_kernels():
    class Slow(Script):
        def propose(self, *arguments, **options):
            time.sleep(0.03)
            return super().propose(*arguments, **options)

    slow = Slow(fixed=["PER[0]"], proposals=PROPOSALS)
    history = Laboratory(slow, task_of()).search(n_iter=3, batch_size=3).history
    table = history.to_columns()
    assert list(table["proposal_seconds"][:2]) == [0, 0]
    one, *others = table["proposal_seconds"][2:]
    assert others == [one, one]
    assert one > 0.009  # a third of the sleep, less the grain of clocks
    assert np.all(np.diff(table["elapsed"]) > 0)
    assert history.trials[-1].elapsed > 3 * one


def test_each_proposal_has_its_own_random_numbers():
    def first_draws(seed, *n_draws):
        script = script_of(n_draws=n_draws)
        return Laboratory(script, task_of()).search(n_iter=3, seed=seed).strategy.first_draws

    few = first_draws(0, 0, 0, 0)
    assert len(set(few)) == 3
    assert first_draws(0, 5, 1000, 1) == few  # what one proposal draws does not shift the next
    assert not set(first_draws(1, 0, 0, 0)) & set(few)


@pytest.mark.parametrize(
    ("improvements", "n_searched"),
    [
        ({}, 30),
        ({0: 0.06}, 31),
        ({3: 0.03, 9: 0.03}, 34),  # together they are one, until the first of them is long past
        ({30: 5.0}, 30),  # too late
    ],
)
def test_a_search_ends_where_its_last_kernels_have_gained_nothing(improvements, n_searched):
    """Of the proposals, those with given numbers raise the best score by a number of nats."""
    proposals = [" + ".join(["SE[0]"] * (2 + number)) for number in range(80)]
    gains = np.cumsum([improvements.get(number, 0.0) for number in range(80)])

    def score(expression):
        if str(expression) not in proposals:
            return 0.0
        number = proposals.index(str(expression))
        return gains[number] - (number not in improvements)

    laboratory = Laboratory(script_of(proposals=proposals), task_of(), score)
    assert laboratory.search(n_iter=80).reason == StopReason.CONVERGED
    assert laboratory.history.n_searched == n_searched


@pytest.mark.parametrize("n_trials", [1, 4, 5, 7])
@pytest.mark.parametrize("fixed", [DESIGN[:3], ["SE[0] * PER[0] + LIN[0]"]])  # nor is pruned then
def test_an_observer_ends_the_search_with_the_trial_that_it_has_heard_of(fixed, n_trials):
    diary, laboratory = Diary(n_trials), Laboratory(script_of(fixed=fixed), task_of())
    reason = laboratory.search(n_iter=4, batch_size=3, observer=diary).reason
    assert reason is StopReason.CALLBACK
    assert len(diary.lines) == 2 * n_trials
    assert diary.lines[-1] == f"end {n_trials}"
    assert laboratory.texts_of() == [text for text, _ in laboratory.fits]


@pytest.mark.parametrize("n_trials", [0, 1, 3, 4, 6])
def test_an_evaluation_that_time_did_not_suffice_for_ends_the_search(laboratory, n_trials):
    diary, history = Diary(), laboratory.history
    laboratory.score = lambda e: None if len(history) == n_trials else planted(e)
    assert laboratory.search(n_iter=4, batch_size=3, observer=diary).reason is StopReason.MAX_TIME
    assert len(history) == n_trials  # it is no trial
    # an observer hears of its beginning and that it came to nothing
    assert len(diary.lines) == 2 * n_trials + 2
    assert diary.lines[-1] == "abandon"
    assert len(laboratory.fits) == n_trials + 1


@pytest.mark.parametrize(("n_trials", "n_batches"), [(0, 0), (1, 0), (4, 0), (5, 1), (6, 2)])
def test_a_deadline_that_passes_on_the_way_leaves_what_was_proposed(
    laboratory, n_trials, n_batches
):
    deadline = Deadline(np.inf)
    if n_trials == 0:  # the evaluator decides about the design
        deadline.cancel()
    diary = Diary(n_trials, deadline.cancel)
    assert laboratory.search(n_iter=3, deadline=deadline, observer=diary).reason == "max_time"
    assert len(laboratory.strategy.shown) == n_batches
    assert len(laboratory.history) == 4 + n_batches


@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError])
@pytest.mark.parametrize("n_trials", [1, 5, 6])
def test_evaluations_are_closed_and_trials_kept_if_an_observer_raises(laboratory, n_trials, error):
    def interrupt():
        raise error

    with pytest.raises(error):
        laboratory.search(n_iter=3, batch_size=3, observer=Diary(n_trials, interrupt))
    states = {inspect.getgeneratorstate(generator) for generator in laboratory.generators}
    assert states == {inspect.GEN_CLOSED}
    assert len(laboratory.history) == n_trials


def test_columns_of_a_history_hold_one_row_per_trial_in_order():
    rows = [("SE[0]", -np.inf), ("LIN[0] + SE[1]", -20.0), ("PER[0]", -30.0), ("SE[1]", -10.0)]
    columns = history_of(*rows).to_columns()
    nothing = np.full(4, np.nan)
    expected = {
        "kernel": ["SE[0]", "LIN[0] + SE[1]", "PER[0]", "SE[1]"],
        "score": [-np.inf, -20, -30, -10],
        "log_prior": [0, 0, 0, 0],
        "score_per_sample": [-np.inf, -2, -3, -1],  # ten samples
        "best_score": [-np.inf, -20, -20, -10],
        "n_leaves": [1, 2, 1, 1],
        "n_params": [3, 5, 4, 3],
        "phase": ["initial", "initial", "search", "search"],
        "status": ["no factor", "ok", "ok", "ok"],
        "fit_seconds": [0.25] * 4,
        "proposal_seconds": [0, 0.5, 1, 1.5],
        "elapsed": [1, 2, 3, 4],
        "estimate": nothing,
        "expected_improvement": nothing,
        "standard_error": nothing,
        "pareto_k": nothing,
        "upper_bound": nothing,
    }
    assert list(columns) == list(expected)
    for name, values in expected.items():
        np.testing.assert_array_equal(columns[name], values)
    assert {len(column) for column in History(10).to_columns().values()} == {0}


def searched(x, y, **of_task):
    """Search without stand-ins."""
    evaluator = Evaluator(TrainingData(x[:, None], y), priors=PRESETS["default"], seed=0)
    strategy, history = SOT(population_size=20, initial_design="paper"), History(len(y))
    Search(strategy, task_of(**of_task), history, n_iter=0, seed=0).run(
        partial(evaluate_in_parallel, evaluator)
    )
    return history


def test_a_history_keeps_no_matrix_of_the_rows():
    n, limits = 200, {"base_kernels": ("SE", "LIN"), "max_leaves": 1}
    searched(np.linspace(0, 1, 5), np.zeros(5), **limits)  # what is cached once stays
    tracemalloc.start()
    try:
        history = searched(np.linspace(0, 1, n), np.zeros(n), **limits)
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(history) == 3
    assert kept < len(history) * n * n  # bytes: an eighth of a matrix for each kernel


class LooksFar(Script):
    """Expects some nats of one kernel, and of another one later."""

    def __init__(self, *, fixed=("PER[0]",), expected=()):
        super().__init__(fixed=fixed)
        self.expected = expected

    def climbs(self, *, reduces):
        return True

    def propose_far(self, task, history, *, n_proposals, rng):
        far = zip(("LIN[0]", "SE[0]"), self.expected, strict=True)
        every = [Estimate(parse_expression(text), expected=nats) for text, nats in far]
        return history.without_known(every)[:n_proposals]


def test_kernels_that_are_expected_to_gain_the_tolerance_are_evaluated_and_no_others():
    for expected, found, left in [
        ((0.06, 0.05), ["LIN[0]"], 0.05),
        ((0.04, 0.03), [], 0.04),
        ((0.3, 0.06), ["LIN[0]", "SE[0]"], np.nan),
    ]:
        laboratory = Laboratory(LooksFar(expected=expected), task_of(tol=0.05))
        laboratory.search(n_iter=5)
        assert laboratory.texts_of(Phase.SEARCH) == found
        assert laboratory.reason is StopReason.LOCAL_MAXIMUM
        np.testing.assert_equal(laboratory.expected_improvement, left)
