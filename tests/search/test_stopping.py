"""Why and how searches end."""

import inspect

import pytest

from autokernel.deadline import NEVER, Deadline
from autokernel.search import History, Search, StopReason

DESIGN = ["SE[0]", "LIN[0]", "PER[0]", "NOISE"]  # PER is the best kernel: nothing is pruned
PROPOSALS = ["RQ[0]", "SE[0] + SE[0]", "SE[0] * LIN[0]"]


class Laboratory:
    """Searches by a script; keeps the generators that evaluate."""

    def __init__(self, planted, make_script, task):
        self.planted, self.task = planted, task
        self.script = make_script(fixed=DESIGN[:2], grown=DESIGN[2:3], proposals=PROPOSALS)
        self.history = History(10)
        self.generators = []
        self.evaluated = []

    def evaluate_all(self, expressions, known):
        self.generators.append(self._generate(expressions, known))
        return self.generators[-1]

    def _generate(self, expressions, known):
        for expression in expressions:
            self.evaluated.append(str(expression))
            yield self.score(expression, known)

    def score(self, expression, known):
        return self.planted(expression, known)

    def search(self, deadline=NEVER, observer=None, **settings):
        given = {"n_iter": 3, "seed": 0, "batch_size": 3, **settings}
        search = Search(self.script, self.task, self.history, **given)
        return search.run(self.evaluate_all, deadline=deadline, observer=observer)

    def states(self):
        return {inspect.getgeneratorstate(generator) for generator in self.generators}


@pytest.fixture
def laboratory(planted, make_script, make_task):
    return Laboratory(planted, make_script, make_task())


class AfterTrials:
    """An observer that does something once there are so many trials; counts what it hears."""

    def __init__(self, n_trials, act):
        self.n_trials, self.act = n_trials, act
        self.n_begun = self.n_ended = self.n_abandoned = 0

    def begin(self, phase):
        self.n_begun += 1

    def end(self, history):
        self.n_ended += 1
        return len(history) >= self.n_trials and self.act()

    def abandon(self):
        self.n_abandoned += 1


class Switch:
    """Stands for a deadline that passes when it is told to."""

    has_passed = False

    def turn(self):
        self.has_passed = True
        return False


@pytest.fixture
def improving(laboratory, make_evaluation):
    """Search proposals of which those with given numbers raise the best score by so many nats."""
    texts = [" + ".join(["SE[0]"] * (2 + number)) for number in range(80)]

    def search(improvements, **settings):
        best = 0.0

        def score(expression, known):
            nonlocal best
            if str(expression) not in texts:
                return make_evaluation(expression, 0.0)
            evaluation = make_evaluation(
                expression, best + improvements.get(texts.index(str(expression)), -1.0)
            )
            best = max(best, evaluation.score)
            return evaluation

        laboratory.script.proposals, laboratory.score = texts, score
        return laboratory.search(n_iter=80, **{"batch_size": 1, **settings})

    return search


@pytest.mark.parametrize(
    ("improvements", "n_searched"),
    [
        ({}, 30),
        ({0: 0.04}, 30),  # less than a gain
        ({0: 0.06}, 31),
        ({29: 0.06}, 60),
        ({3: 0.03, 9: 0.03}, 34),  # together they are one, until the first of them is long past
        ({30: 5.0}, 30),  # too late
    ],
)
def test_a_search_ends_where_its_last_kernels_have_gained_nothing(
    laboratory, improving, improvements, n_searched
):
    assert improving(improvements, tol=0.05) == StopReason.CONVERGED
    assert laboratory.history.n_searched == n_searched


@pytest.mark.parametrize("n_trials", [1, 2, 3, 4, 5, 6, 7])
def test_an_observer_ends_the_search_with_the_trial_that_it_has_heard_of(laboratory, n_trials):
    observer = AfterTrials(n_trials, lambda: True)
    reason = laboratory.search(observer=observer)
    assert reason is StopReason.CALLBACK
    assert (observer.n_begun, observer.n_ended, observer.n_abandoned) == (n_trials, n_trials, 0)
    assert reason == "callback"
    assert len(laboratory.history) == n_trials
    assert laboratory.evaluated == [*DESIGN, *PROPOSALS][:n_trials]


@pytest.mark.parametrize("n_trials", [0, 1, 2, 3, 4, 5, 6])
def test_an_evaluation_that_time_did_not_suffice_for_ends_the_search(laboratory, n_trials):
    laboratory.score = lambda expression, known: (
        None if len(laboratory.history) == n_trials else laboratory.planted(expression, known)
    )
    observer = AfterTrials(99, lambda: True)
    reason = laboratory.search(observer=observer)
    assert reason is StopReason.MAX_TIME
    assert reason == "max_time"
    assert len(laboratory.history) == n_trials  # it is no trial
    # whoever follows hears of its beginning and that it came to nothing
    assert (observer.n_begun, observer.n_ended, observer.n_abandoned) == (n_trials + 1, n_trials, 1)
    assert len(laboratory.evaluated) == n_trials + 1


@pytest.mark.parametrize("seconds", [0.0, -1.0])
def test_once_the_deadline_has_passed_nothing_is_proposed(laboratory, seconds):
    reason = laboratory.search(deadline=Deadline(seconds))
    assert reason == "max_time"
    assert laboratory.script.lengths == []
    # of the design, who evaluates decides
    assert laboratory.evaluated == DESIGN


@pytest.mark.parametrize(("n_trials", "n_batches"), [(1, 0), (3, 0), (4, 0), (5, 1), (6, 2)])
def test_a_deadline_that_passes_on_the_way_leaves_what_was_proposed(
    laboratory, n_trials, n_batches
):
    switch = Switch()
    observer = AfterTrials(n_trials, switch.turn)
    reason = laboratory.search(batch_size=1, deadline=switch, observer=observer)
    assert reason == "max_time"
    assert len(laboratory.script.lengths) == n_batches
    assert len(laboratory.history) == 4 + n_batches


@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError])
@pytest.mark.parametrize("n_trials", [1, 5, 6])
def test_who_evaluates_is_closed_where_an_observer_raises(laboratory, n_trials, error):
    def interrupt():
        raise error

    with pytest.raises(error):
        laboratory.search(observer=AfterTrials(n_trials, interrupt))
    assert laboratory.states() == {inspect.GEN_CLOSED}
    assert len(laboratory.history) == n_trials  # what was done is kept
