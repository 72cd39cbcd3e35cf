"""What the strategies of Bayesian optimisation share."""

import gc
import weakref
from dataclasses import replace

import numpy as np
import pytest

from autokernel.deadline import Deadline
from autokernel.exceptions import OutOfTimeError
from autokernel.search import BOMS, SOT, ExpectedImprovementPerSecond, History, Phase, Trial
from autokernel.search.distances import HellingerKernel

SMALL = SOT(population_size=10, n_generations=2)


class Noting(ExpectedImprovementPerSecond):
    """Keeps the cost that it is given."""

    def values(self, belief):
        self.cost = belief.cost
        return super().values(belief)


@pytest.fixture
def timed(make_evaluation):
    """Build trials of a phase from texts and seconds."""

    def build(phase, *rows):
        fits = [replace(make_evaluation(text, -1.0), seconds=seconds) for text, seconds in rows]
        return [Trial(fit, phase, 0.0, 1.0) for fit in fits]

    return build


def cost_of(make_task, trials):
    noting = Noting()
    strategy = SOT(population_size=10, n_generations=2, acquisition=noting)
    strategy.propose(make_task(), History(10, trials), n_proposals=1, rng=np.random.default_rng(0))
    return noting.cost


DESIGN = [("SE[0]", 1.0), ("SE[0] + SE[0]", 10.0), ("SE[0] + SE[0] + SE[0]", 100.0)]
SEARCHED = [(f"LIN[0] * {text}", 0.5) for text in ("SE[0]", "PER[0]", "RQ[0]", "LIN[0]")]


def test_seconds_of_the_design_count_until_there_are_enough_others(make_task, timed):
    design = timed(Phase.INITIAL, *DESIGN)
    [largest] = [trial.evaluation.expression for trial in design[-1:]]
    alone = cost_of(make_task, design)
    assert alone([largest]) == pytest.approx(100, rel=1e-9)  # rounding: a line through three points
    few = cost_of(make_task, [*design, *timed(Phase.SEARCH, *SEARCHED)])
    assert few([largest]) > 5
    fifth = ("LIN[0] + PER[0]", 0.5)
    enough = cost_of(make_task, [*design, *timed(Phase.SEARCH, *SEARCHED, fifth)])
    assert enough([largest]) == pytest.approx(0.5, rel=1e-9)


def test_kernels_that_were_not_even_tried_tell_nothing_about_seconds(make_task, timed):
    design = timed(Phase.INITIAL, *DESIGN)
    failed = replace(design[0].evaluation, seconds=0.0, log_posterior=-np.inf, score=-np.inf)
    untried = replace(failed, expression=failed.expression * failed.expression)
    with_it = cost_of(make_task, [*design, Trial(untried, Phase.INITIAL, 0.0, 1.0)])
    np.testing.assert_array_equal(with_it.coefficients, cost_of(make_task, design).coefficients)


@pytest.mark.parametrize("strategy", [SMALL, BOMS()])
def test_the_clock_is_looked_at_while_a_kernel_is_proposed(make_task, timed, strategy):
    task = replace(make_task(), deadline=Deadline(-1.0))
    history = History(10, timed(Phase.INITIAL, *DESIGN))
    with pytest.raises(OutOfTimeError):
        strategy.propose(task, history, n_proposals=1, rng=np.random.default_rng(0))


def test_distances_take_no_longer_than_the_time_that_is_left(make_task):
    task = make_task(3)
    expressions = task.grammar.random_walks(200, np.random.default_rng(0))
    deadline = Deadline(np.inf)
    kernel_kernel = HellingerKernel(task.X, deadline=deadline)
    known = kernel_kernel.distances(expressions[:5])
    deadline.cancel()
    with pytest.raises(OutOfTimeError):
        kernel_kernel.distances(expressions)
    np.testing.assert_array_equal(kernel_kernel.distances(expressions[:5]), known)


def test_nothing_is_kept_of_a_task_that_is_over(make_task, timed):
    task = make_task()
    history = History(10, timed(Phase.INITIAL, *DESIGN))
    BOMS().propose(task, history, n_proposals=1, rng=np.random.default_rng(0))
    inputs = weakref.ref(task.X)
    del task
    gc.collect()
    assert inputs() is None
