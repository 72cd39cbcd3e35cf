"""The end of a search: simpler forms of the best kernel."""

from dataclasses import replace

import numpy as np
import pytest

from autokernel import parse_expression
from autokernel.deadline import Deadline
from autokernel.exceptions import OutOfTimeError
from autokernel.expression import simplifications
from autokernel.search import History, Phase, StopReason
from tests.search.stand_ins import Diary, Laboratory, Script, rough, task_of

BIG = "SE[0] * PER[0] + LIN[0]"
# in the order in which they are tried: terms of the sum go first, then factors
SIMPLER = ["PER[0] * SE[0]", "LIN[0]", "LIN[0] + SE[0]", "LIN[0] + PER[0]"]
LATE = "RQ[0] + PER[0]"  # found by the search


def canonical(text):
    return parse_expression(text).canonical


def laboratory(scores, *, fixed=(BIG,), proposals=(), script=Script, **of_task):
    """Begin with one kernel; a function scores kernels, or a dict some of them: others are bad."""
    known = {} if callable(scores) else {canonical(text): scores[text] for text in scores}

    def score(expression):
        return known.get(expression.canonical, -50.0)

    strategy = script(fixed=fixed, proposals=proposals)
    return Laboratory(strategy, task_of(**of_task), scores if callable(scores) else score)


@pytest.mark.parametrize(
    ("scores", "pruned"),
    [
        ({"PER[0] * SE[0]": 1.0}, ["PER[0] * SE[0]", "SE[0]", "PER[0]"]),
        ({"PER[0] * SE[0]": 1.0, "SE[0]": 2.0}, ["PER[0] * SE[0]", "SE[0]"]),
        ({"LIN[0]": 1.0}, ["PER[0] * SE[0]", "LIN[0]"]),
        ({"LIN[0] + PER[0]": 1.0, "PER[0]": 2.0}, [*SIMPLER, "PER[0]"]),
    ],
)
def test_pruning_goes_on_from_a_simpler_kernel_as_soon_as_it_is_better(scores, pruned):
    subject = laboratory({BIG: 0.0, **scores}).search()
    assert subject.texts_of(Phase.PRUNING) == pruned
    assert subject.history.best.score == max(scores.values())


@pytest.mark.parametrize(("seed", "batch_size"), [(0, 1), (1, 2), (2, 10), (3, 2)])
def test_no_simpler_form_of_the_last_best_kernel_is_better(seed, batch_size):
    """Scores are random: there are chains of any length."""

    def score(expression):
        return rough(expression, seed) + (expression.n_leaves > 6)

    big = "(SE[0] + LIN[0]) * PER[0] * RQ[0] + LIN[0] * RQ[0] + PER[0]"
    subject = laboratory(score, fixed=[big]).search(batch_size=batch_size)
    known = subject.history.canonical_texts()
    assert len(known) == len(subject.history)
    best = subject.history.best
    for simpler in simplifications(best.expression):
        assert simpler.canonical in known
        assert score(simpler) <= best.score
    # each round has only simpler forms of the kernel that was the best before it
    n_before = 2
    for together in subject.rounds[1:]:
        before = History(10, subject.history.trials[:n_before])
        allowed = {e.canonical for e in simplifications(before.best.expression)}
        assert 1 <= len(together) <= batch_size
        assert {canonical(text) for text in together} <= allowed
        n_before += len(together)
    assert n_before == len(subject.history)


def test_the_best_kernel_of_the_design_is_pruned_and_then_that_of_the_search():
    scores = {"LIN[0] + SE[0]": 0.0, LATE: 1.0}
    proposals = ["LIN[0] * PER[0]", LATE]
    subject = laboratory(scores, fixed=["LIN[0] + SE[0]"], proposals=proposals).search(n_iter=2)
    phases = [phase for _, phase in subject.trials]
    assert phases == (
        [Phase.INITIAL] * 2 + [Phase.PRUNING] * 2 + [Phase.SEARCH] * 2 + [Phase.PRUNING] * 3
    )
    pruned = ["LIN[0]", "PER[0]", "PER[0] + SE[0]", "RQ[0]", "SE[0]"]
    assert sorted(subject.texts_of(Phase.PRUNING)) == pruned
    assert subject.history.n_searched == 2  # pruning does not count


@pytest.mark.parametrize("n_trials", [2, 4])
def test_a_deadline_ends_the_pruning(n_trials):
    subject, deadline = laboratory({BIG: 0.0}), Deadline(np.inf)
    subject.search(deadline=deadline, observer=Diary(n_trials, deadline.cancel))
    assert subject.reason is StopReason.N_ITER  # all that was wanted had been done
    assert len(subject.history) == n_trials


def test_nothing_is_pruned_after_a_proposal_that_took_too_long():
    class Slow(Script):
        def propose(self, task, history, **options):
            if history.n_searched == 1:
                raise OutOfTimeError
            return super().propose(task, history, **options)

    given = {"fixed": ["SE[0]"], "proposals": [LATE, "LIN[0]"], "script": Slow}
    subject = laboratory({LATE: 1.0}, **given).search(n_iter=2)
    assert subject.texts_of() == ["SE[0]", "NOISE", LATE]


@pytest.mark.parametrize(
    ("base_kernels", "simpler"), [(("SE", "RQ"), ["SE[0]"]), (("LIN", "PER", "RQ"), [])]
)
def test_a_limit_that_is_no_base_kernel_of_the_user_is_not_tried(base_kernels, simpler):
    subject = laboratory({"RQ[0]": 0.0}, fixed=["RQ[0]"], base_kernels=base_kernels).search()
    assert subject.texts_of(Phase.PRUNING) == simpler


@pytest.mark.parametrize(("better", "n_pruned"), [(None, 5), (3, 9)])
def test_five_estimated_forms_in_vain_end_a_pruning(better, n_pruned):
    """Each removal loses a little; that of one column, the fourth, gains."""

    def estimate(expression):
        return -0.1 * (9 - expression.n_leaves)

    def score(expression):
        gains = better is not None and better not in expression.columns
        return estimate(expression) + 0.3 * gains

    big = " * ".join(f"SE[{column}]" for column in range(9))
    given = {"n_features": 9, "max_leaves": 9, "reduces": True, "estimate": estimate}
    subject = laboratory(score, fixed=[big], **given)
    subject.task = replace(subject.task, shows_no_gain=lambda _: False)  # none follow in the end
    subject.search()
    assert len(subject.texts_of(Phase.PRUNING)) == n_pruned


def test_what_is_estimated_as_best_is_tried_first_and_what_is_hopeless_not_at_all():
    """Losses of factors: the estimates are right, and one removal gains."""
    losses = {0: 9.0, 1: 2.9, 2: 0.3, 3: 0.2, 4: -1.0}

    def score(expression):
        gone = set(losses) - {leaf.column for leaf in expression.leaves}
        return -sum(losses[column] for column in gone) if expression.n_leaves > 2 else -50.0

    big = "SE[0] * SE[1] * SE[2] * SE[3] * SE[4]"
    given = {"n_features": 5, "reduces": True, "estimate": score}
    pruned = laboratory(score, fixed=[big], **given).search().texts_of(Phase.PRUNING)
    removals = [set(range(5)) - {int(c) for c in text if c.isdigit()} for text in pruned]
    assert removals == [{4}, {3, 4}, {2, 4}, {1, 4}]


@pytest.mark.parametrize("of_prior", [0.0, -2.0])
def test_leaves_that_are_each_useless_are_removed_together(of_prior):
    """Also if a prior is against numbers of columns between all and one."""

    def prior(expression):
        return 0.0 if expression.n_leaves in (1, 8) else of_prior

    def score(expression):
        is_lost = "SE[2]" not in str(expression)
        return prior(expression) - 0.5 * expression.n_leaves - 50.0 * is_lost

    big = " + ".join(f"SE[{column}]" for column in range(8))
    subject = laboratory(score, fixed=[big], n_features=8, reduces=True, estimate=score)
    subject.task.evaluator.structure_prior = prior
    assert subject.search().texts_of(Phase.PRUNING) == ["SE[2]"]


def test_a_joint_removal_that_fails_is_followed_by_one_of_half_as_many():
    """Of two columns that say the same, each alone is useless."""

    def score(expression):
        used = {leaf.column for leaf in expression.leaves}
        return -3.0 * len(used) - 50.0 * (not used & {0, 1}) - 50.0 * (2 not in used)

    big = " + ".join(f"SE[{column}]" for column in range(5))
    given = {"n_features": 5, "reduces": True, "estimate": score}
    subject = laboratory(score, fixed=[big], **given).search()
    first, second, *_ = subject.texts_of(Phase.PRUNING)
    assert first == "SE[2]"
    assert len(parse_expression(second).leaves) == 3
    assert {leaf.column for leaf in subject.history.best.expression.leaves} in ({0, 2}, {1, 2})
