"""The end of a search: simpler forms of the best kernel."""

from dataclasses import replace
from zlib import crc32

import numpy as np
import pytest

from autokernel import parse_expression
from autokernel.deadline import NEVER, Deadline
from autokernel.exceptions import OutOfTimeError
from autokernel.expression import simplifications
from autokernel.search import History, Phase, Search, StopReason

BIG = "SE[0] * PER[0] + LIN[0]"
# in the order in which they are tried: terms of the sum go first, then factors
SIMPLER = ["PER[0] * SE[0]", "LIN[0]", "LIN[0] + SE[0]", "LIN[0] + PER[0]"]


def canonical(text):
    return parse_expression(text).canonical


class Laboratory:
    """Searches by a script where the scores of some kernels are given, and all others are bad."""

    def __init__(self, script, task, make_evaluation, scores):
        self.script, self.task, self.make_evaluation = script, task, make_evaluation
        self.scores = {canonical(text): score for text, score in scores.items()}
        self.history = History(10)
        self.rounds = []  # texts of the kernels that were evaluated together
        self.known = []  # texts of what was known then

    def score(self, expression):
        return self.scores.get(expression.canonical, -50.0)

    def evaluate_all(self, expressions, known):
        self.rounds.append([str(expression) for expression in expressions])
        self.known.append([str(evaluation.expression) for evaluation in known])
        for expression in expressions:
            score = self.score(expression)
            yield None if score is None else self.make_evaluation(expression, score)

    def search(self, *, deadline=NEVER, observer=None, **settings):
        given = {"n_iter": 0, "seed": 0, **settings}
        search = Search(self.script, self.task, self.history, **given)
        return search.run(self.evaluate_all, deadline=deadline, observer=observer)

    def pruned(self):
        return [
            str(trial.evaluation.expression)
            for trial in self.history
            if trial.phase == Phase.PRUNING
        ]


@pytest.fixture
def laboratory(make_script, make_task, make_evaluation):
    """Build a laboratory that begins with one kernel."""

    def build(scores, *, fixed=(BIG,), proposals=(), script=None, **of_task):
        script = script or make_script(fixed=fixed, proposals=proposals)
        return Laboratory(script, make_task(**of_task), make_evaluation, scores)

    return build


class Diary:
    """An observer that writes down what it is told, and may do something after some trials."""

    def __init__(self, n_trials=None, act=None):
        self.n_trials, self.act = n_trials, act
        self.lines = []

    def begin(self, phase):
        self.lines.append(f"begin {phase}")

    def end(self, history):
        self.lines.append(f"end {len(history)}")
        return len(history) == self.n_trials and self.act()

    def abandon(self):
        self.lines.append("abandon")


class Switch:
    """Stands for a deadline that passes when it is told to."""

    has_passed = False

    def turn(self):
        self.has_passed = True
        return False


def signature(history):
    return [(str(trial.evaluation.expression), trial.phase) for trial in history]


@pytest.mark.parametrize(
    ("scores", "pruned"),
    [
        ({"PER[0] * SE[0]": 1.0}, ["PER[0] * SE[0]", "SE[0]", "PER[0]"]),
        ({"PER[0] * SE[0]": 1.0, "SE[0]": 2.0}, ["PER[0] * SE[0]", "SE[0]"]),
        ({"LIN[0]": 1.0}, ["PER[0] * SE[0]", "LIN[0]"]),
        ({"LIN[0] + PER[0]": 1.0, "PER[0]": 2.0}, [*SIMPLER, "PER[0]"]),
    ],
)
def test_pruning_goes_on_from_a_simpler_kernel_as_soon_as_it_is_better(laboratory, scores, pruned):
    subject = laboratory({BIG: 0.0, **scores})
    subject.search()
    assert subject.pruned() == pruned
    assert subject.history.best.score == max(scores.values())


@pytest.mark.parametrize("batch_size", [1, 2, 3, 10])
@pytest.mark.parametrize("seed", range(12))
def test_no_simpler_form_of_the_last_best_kernel_is_better(laboratory, seed, batch_size):
    """Scores are random: there are chains of any length."""
    big = "(SE[0] + LIN[0]) * PER[0] * RQ[0] + LIN[0] * RQ[0] + PER[0]"
    subject = laboratory({}, fixed=[big])

    def score(expression):
        rng = np.random.default_rng([seed, crc32(expression.canonical.encode())])
        return rng.normal() + (expression.n_leaves > 6)

    subject.score = score
    subject.search(batch_size=batch_size)
    texts = subject.history.canonical_texts()
    assert len(texts) == len(subject.history)
    best = subject.history.best
    for simpler in simplifications(best.expression):
        assert simpler.canonical in texts
        assert score(simpler) <= best.score
    # each round has only simpler forms of the kernel that was the best before it
    n_before = 2
    for together in subject.rounds[2:]:
        before = History(10, subject.history.trials[:n_before])
        allowed = {e.canonical for e in simplifications(before.best.expression)}
        assert 1 <= len(together) <= batch_size
        assert {canonical(text) for text in together} <= allowed
        n_before += len(together)
    assert n_before == len(subject.history)


LATE = "RQ[0] + PER[0]"  # found by the search


def test_the_best_kernel_of_the_design_is_pruned_and_then_that_of_the_search(laboratory):
    scores = {"LIN[0] + SE[0]": 0.0, LATE: 1.0}
    subject = laboratory(scores, fixed=["LIN[0] + SE[0]"], proposals=["LIN[0] * PER[0]", LATE])
    subject.search(n_iter=2)
    phases = [trial.phase for trial in subject.history]
    assert phases == (
        [Phase.INITIAL] * 2 + [Phase.PRUNING] * 2 + [Phase.SEARCH] * 2 + [Phase.PRUNING] * 3
    )
    assert sorted(subject.pruned()) == ["LIN[0]", "PER[0]", "PER[0] + SE[0]", "RQ[0]", "SE[0]"]
    assert subject.history.n_searched == 2  # pruning does not count
    assert [trial.start for trial in subject.history] == [0, 0, 2, 3, 0, 1, 6, 7, 8]


@pytest.mark.parametrize("batch_size", [1, 3])
@pytest.mark.parametrize("n_trials", [3, 4, 5, 6])
def test_an_observer_ends_the_pruning(laboratory, n_trials, batch_size):
    subject = laboratory({BIG: 0.0})
    diary = Diary(n_trials, lambda: True)
    assert subject.search(batch_size=batch_size, observer=diary) is StopReason.CALLBACK
    assert len(subject.history) == n_trials
    assert diary.lines[-1] == f"end {n_trials}"


@pytest.mark.parametrize("n_trials", [2, 3, 4])
def test_a_deadline_ends_the_pruning(laboratory, n_trials):
    subject, switch = laboratory({BIG: 0.0}), Switch()
    reason = subject.search(deadline=switch, observer=Diary(n_trials, switch.turn))
    assert reason is StopReason.N_ITER  # all that was asked for had been done
    assert len(subject.history) == n_trials


def test_nothing_is_pruned_after_a_proposal_that_took_too_long(laboratory, make_script):
    class Slow(make_script):
        def propose(self, task, history, **options):
            if history.n_searched == 1:
                raise OutOfTimeError
            return super().propose(task, history, **options)

    script = Slow(fixed=["SE[0]"], proposals=[LATE, "LIN[0]"])
    subject = laboratory({LATE: 1.0}, script=script)
    subject.search(n_iter=2)
    assert [text for text, _ in signature(subject.history)] == ["SE[0]", "NOISE", LATE]


def random_scores(make_evaluation, fits):
    """Evaluate kernels by random scores, of which larger kernels have somewhat better ones."""

    def evaluate(expression, known):
        rng = np.random.default_rng(crc32(expression.canonical.encode()))
        fits.append((str(expression), [str(one.expression) for one in known]))
        return make_evaluation(expression, 3 * rng.normal() + expression.n_leaves)

    return evaluate


@pytest.mark.parametrize("batch_size", [1, 3])
@pytest.mark.parametrize("first", [0, 1, 4])
@pytest.mark.parametrize("name", ["random", "tree_gep"])
def test_a_search_that_is_prolonged_after_pruning_is_the_longer_search(
    run, make_evaluation, make_task, quick, name, first, batch_size
):
    fits, task = [], make_task()
    task = replace(task, grammar=replace(task.grammar, reduces=True))  # as that of a fit
    evaluate = random_scores(make_evaluation, fits)

    def search(n_iter, history):
        fits.clear()
        settings = {"n_iter": n_iter, "batch_size": batch_size, "history": history}
        return run(evaluate, quick[name], task, **settings).history

    whole = search(6, History(10))
    fits_of_whole = list(fits)
    history = search(first, History(10))
    n_short, elapsed = len(history), history.elapsed
    last = max(n for n, trial in enumerate(history) if trial.phase == Phase.SEARCH) if first else -1
    n_kept = last + 1 or n_short  # all but the pruning after the search
    assert signature(history)[:n_kept] == signature(whole)[:n_kept]
    again = search(6, history)
    assert signature(again) == signature(whole)
    assert fits == fits_of_whole[n_kept:]
    assert all(trial.elapsed > elapsed for trial in again.trials[n_kept:])


@pytest.mark.parametrize("batch_size", [1, 2, 3])
def test_pruning_goes_on_from_wherever_its_history_ends(laboratory, batch_size):
    scores = {BIG: 0.0, **{text: 1.0 + number for number, text in enumerate(SIMPLER)}}
    whole = laboratory(scores)
    whole.search(batch_size=batch_size)
    assert len(whole.history) >= 4
    for length in range(len(whole.history) + 1):
        again = laboratory(scores)
        again.history.trials.extend(whole.history.trials[:length])
        again.search(batch_size=batch_size)
        assert signature(again.history) == signature(whole.history), length


@pytest.mark.parametrize(
    ("base_kernels", "simpler"),
    [
        (("RQ",), []),
        (("SE", "RQ"), ["SE[0]"]),
        (("LIN", "PER", "RQ"), []),
    ],
)
def test_a_limit_that_is_no_base_kernel_of_the_user_is_not_tried(laboratory, base_kernels, simpler):
    subject = laboratory({"RQ[0]": 0.0}, fixed=["RQ[0]"], base_kernels=base_kernels)
    subject.search()
    assert subject.pruned() == simpler


def test_a_change_that_was_cheap_before_is_tried_first_and_a_dear_one_last(laboratory):
    """Losses of factors: 9, 5, 0.3, 0.2, and then a gain, with which pruning goes on."""
    big = "SE[0] * SE[1] * SE[2] * SE[3] * SE[4]"
    losses = {0: 9.0, 1: 5.0, 2: 0.3, 3: 0.2, 4: -1.0}
    subject = laboratory({}, fixed=[big], n_features=5)

    def score(expression):
        gone = set(losses) - {leaf.column for leaf in expression.leaves}
        return -sum(losses[column] for column in gone) if expression.n_leaves > 2 else -50.0

    subject.score = score
    subject.search()
    removals = [set(range(5)) - {int(c) for c in text if c.isdigit()} for text in subject.pruned()]
    assert removals == [{0}, {1}, {2}, {3}, {4}, {3, 4}, {2, 4}, {1, 4}, {0, 4}]


@pytest.mark.parametrize("ended_by", ["deadline", "observer"])
def test_a_search_that_goes_on_and_ends_early_keeps_what_pruning_had_found(laboratory, ended_by):
    """The best kernel of the pruning is not lost where the next search proposes nothing in time."""
    proposals = [LATE, "LIN[0] * PER[0]"]
    subject = laboratory({LATE: 1.0, "PER[0]": 2.0}, fixed=["SE[0]"], proposals=proposals)
    subject.search(n_iter=1)
    assert subject.history.best.expression.canonical == "PER[0]"
    before = signature(subject.history)
    if ended_by == "deadline":
        subject.search(n_iter=2, deadline=Deadline(0.0))
        assert signature(subject.history) == before
    else:
        subject.search(n_iter=2, observer=Diary(3, lambda: True))
        assert {text for text, _ in before} <= {text for text, _ in signature(subject.history)}
    assert subject.history.best.expression.canonical == "PER[0]"
