"""The order in which pruning tries the simpler forms of the best kernel."""

import time
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from typing import NamedTuple, Protocol

import numpy as np

from autokernel.evidence import Evaluation
from autokernel.exceptions import OutOfTimeError
from autokernel.expression import NOISE, Expression, normal_form, simplifications
from autokernel.search.design import Design
from autokernel.search.history import History, Phase, StopReason, Trial
from autokernel.search.strategy import Strategy, Task

_UNKNOWN = 1.0  # nats of loss that are expected of a change that has not been tried

Change = frozenset[tuple[str, int]]
"""Texts of the leaves whose numbers differ, with how many more of them there are."""


def simpler_than_best(history: History, task: Task) -> list[Expression]:
    """List the simpler forms of the best kernel that have not been evaluated.

    The loss of score by the removal of a leaf hardly depends on what else has been removed. So the
    changes come in the order of the losses that they caused in earlier best kernels, the smallest
    loss first.
    """
    best = history.best
    if best is None or not np.isfinite(best.score):
        return []
    known = _losses_of_changes(history)
    simpler = history.without_known(filter(task.allows, simplifications(best.expression)))
    return sorted(simpler, key=lambda one: known.get(_change(best.expression, one), _UNKNOWN))


def _losses_of_changes(history: History) -> dict[Change, float]:
    """Compute the loss of score, in nats, by each change that pruning has tried."""
    losses: dict[Change, float] = {}
    for trial in history:
        if trial.phase == Phase.PRUNING and trial.start:
            evaluation = trial.evaluation
            before = History(history.n_samples, history.trials[: trial.start]).best
            assert before is not None  # it was pruned
            change = _change(before.expression, evaluation.expression)
            losses[change] = before.score - evaluation.score
    return losses


def _change(before: Expression, after: Expression) -> Change:
    """Compare the leaves of two expressions."""
    counts = Counter(leaf.canonical for leaf in after.leaves)
    counts.subtract(leaf.canonical for leaf in before.leaves)
    return frozenset((text, count) for text, count in counts.items() if count)


EvaluateAll = Callable[
    [Sequence[Expression], Sequence[Evaluation]], Generator[Evaluation | None, None, None]
]
"""Function that evaluates kernels, given known fits for warm starts, and yields them in order.

It does not raise for a kernel that cannot be fitted. It yields None for a kernel for which there
was not enough time.
"""

_DESIGN_STREAM, _PROPOSAL_STREAM = 0, 1


class Observer(Protocol):
    """Receives the events of a search."""

    def begin(self, phase: Phase) -> None:
        """React to the begin of a trial."""

    def end(self, history: History) -> bool:
        """React to the end of the last trial in the history; return True to end the search."""

    def abandon(self) -> None:
        """React to a begun trial for which there was not enough time."""


class Silent:
    """An observer that does nothing."""

    def begin(self, phase: Phase) -> None:
        """Do nothing."""

    def end(self, history: History) -> bool:  # noqa: ARG002 - other observers use it
        """Return False, so that the search continues."""
        return False

    def abandon(self) -> None:
        """Do nothing."""


def run_search(
    evaluate_all: EvaluateAll,
    strategy: Strategy,
    task: Task,
    history: History,
    *,
    n_iter: int,
    seed: int,
    batch_size: int = 1,
    tol: float = 0.0,
    observer: Observer | None = None,
) -> StopReason:
    """Evaluate the initial design of a strategy and its proposals, and prune the best after each.

    A search can be continued from any history, even one that ends within a batch; the result is the
    same as without the interruption.

    Parameters
    ----------
    evaluate_all : callable
        Evaluates kernels, given the evaluations on which their proposal was based; kernels of the
        initial design are given none. See :data:`EvaluateAll`.
    strategy : Strategy
        Chooses the kernels to evaluate.
    task : Task
        Space of kernels and settings of the strategy. After its deadline nothing is proposed;
        evaluations check the time themselves.
    history : History
        Earlier trials. New trials are appended as they end.
    n_iter : int
        Number of kernels to evaluate after the initial design, those in the history included.
    seed : int
        Seed of the random numbers, not negative. Each batch has its own random stream, numbered by
        the trials before it.
    batch_size : int
        Number of kernels that are proposed together and can be evaluated in parallel.
    tol : float
        Nats that the last ``PATIENCE`` kernels must have gained together for the search to go on.
    observer : Observer, optional
        Receives the begin and end of every trial.
    """
    observer = observer or Silent()
    began = time.perf_counter() - history.elapsed
    plan = _Plan(strategy, task, n_iter, seed, batch_size, tol)
    with closing(_rounds(plan, history)) as rounds:
        for together in rounds:
            ended = _run_round(evaluate_all, together, history, observer, began=began)
            if ended is not None:
                return ended
    if history.n_searched >= n_iter:
        return StopReason.N_ITER
    if task.deadline.has_passed:
        return StopReason.MAX_TIME
    return StopReason.CONVERGED if history.has_converged(tol) else StopReason.EXHAUSTED


def _run_round(
    evaluate_all: EvaluateAll,
    together: "_Round",
    history: History,
    observer: Observer,
    *,
    began: float,
) -> StopReason | None:
    """Evaluate kernels and append their trials; return the reason if the search ends with them."""
    n_left = len(together.expressions)
    seconds = together.proposal_seconds / n_left
    with closing(evaluate_all(together.expressions, together.known)) as evaluations:
        observer.begin(together.phase)
        for evaluation in evaluations:
            if evaluation is None:
                observer.abandon()
                return StopReason.MAX_TIME
            elapsed = time.perf_counter() - began
            trial = Trial(evaluation, together.phase, seconds, elapsed, together.start)
            history.trials.append(trial)
            if observer.end(history):
                return StopReason.CALLBACK
            n_left -= 1
            if n_left:
                observer.begin(together.phase)
    return None


class _Plan(NamedTuple):
    """All that a search depends on besides the history."""

    strategy: Strategy
    task: Task
    n_iter: int
    seed: int
    batch_size: int
    tol: float


class _Round(NamedTuple):
    """Kernels that are evaluated together, with warm starts from the same known fits."""

    expressions: list[Expression]
    known: list[Evaluation]
    phase: Phase
    proposal_seconds: float = 0.0
    start: int = 0  # number of trials on which the proposal is based, see Trial


def _rounds(plan: _Plan, history: History) -> Generator[_Round, None, None]:
    """Yield the kernels to evaluate next; the caller appends their trials to the history.

    A search that goes on does so without the pruning at its end. If it ends early, or proposes
    nothing, these trials come back.
    """
    goes_on, n_searched = history.n_searched < plan.n_iter, history.n_searched
    dropped = history.drop_last_pruning() if goes_on else []
    try:
        yield from _designed(plan, history)
        if not n_searched:  # otherwise the search goes on from what it began with
            yield from _pruning(plan, history)
        yield from _searched(plan, history)
        if history.n_searched == n_searched:
            history.restore(dropped)
        yield from _pruning(plan, history)
        if not plan.task.deadline.has_passed:
            dropped = []
    except OutOfTimeError:  # in a proposal
        return
    finally:
        history.restore(dropped)


def _designed(plan: _Plan, history: History) -> Iterator[_Round]:
    """Yield the two parts of the initial design, the second one with noise alone.

    Fits of the second part begin at those of the first one, except where they could miss a mode:
    those of kernels with a period and, if periods are searched, of all kernels on a single column.
    """
    design = design_of(plan.strategy, plan.task, plan.seed)
    first = [_plain(expression, plan.task) for expression in design.fixed]
    if new := history.without_known(first):
        yield _Round(new, [], Phase.INITIAL)
    second = [*design.rest(history.evaluations), NOISE]
    new = history.without_known(_plain(expression, plan.task) for expression in second)
    texts = {expression.canonical for expression in first}
    fitted = [e for e in history.evaluations if e.expression.canonical in texts]
    for from_nothing, known in ((True, []), (False, fitted)):
        some = [e for e in new if _has_modes_to_miss(e, plan.task) == from_nothing]
        if some:
            yield _Round(some, known, Phase.INITIAL)


def _has_modes_to_miss(expression: Expression, task: Task) -> bool:
    """Return whether a fit that begins at other kernels could miss the highest mode."""
    alone = task.has_many_modes and len(task.grammar.columns) == 1
    return alone or expression.has_many_modes


def _searched(plan: _Plan, history: History) -> Iterator[_Round]:
    """Yield the proposals of the strategy, until there are enough or no more."""
    while _goes_on(plan, history):
        asked = time.perf_counter()
        together = _rest_of_batch(plan, history)
        if together is None and not history.has_converged(plan.tol):
            together = _batch(plan, history, history.n_searched)
        if together is None:
            return
        yield together._replace(proposal_seconds=time.perf_counter() - asked)


def _goes_on(plan: _Plan, history: History) -> bool:
    """Return whether kernels are to be proposed; there are none if no column varies."""
    is_short = history.n_searched < plan.n_iter
    return is_short and bool(plan.task.grammar.columns) and not plan.task.deadline.has_passed


def _pruning(plan: _Plan, history: History) -> Iterator[_Round]:
    """Yield the simpler forms of the best kernel until none of them is better.

    After each batch the best kernel may be another one. A batch whose evaluation is incomplete is
    completed first.
    """
    last = history.trials[-1:]
    start = last[0].start if last and last[0].phase == Phase.PRUNING else len(history)
    while not plan.task.deadline.has_passed:
        before = History(history.n_samples, history.trials[:start])
        batch = simpler_than_best(before, plan.task)[: plan.batch_size]
        if not batch:
            return
        new = history.without_known(batch)
        if new:
            yield _Round(new, before.evaluations, Phase.PRUNING, start=start)
        start = len(history)


def _plain(expression: Expression, task: Task) -> Expression:
    """Return the normal form of an expression, if the grammar of the task reduces expressions."""
    return normal_form(expression) if task.grammar.reduces else expression


def _rest_of_batch(plan: _Plan, history: History) -> _Round | None:
    """Propose the last batch again if its evaluation may be incomplete."""
    start = history.last_start
    if history.n_searched - start >= plan.batch_size or history.n_searched == start:
        return None
    return _batch(plan, history, start)


def _batch(plan: _Plan, history: History, start: int) -> _Round | None:
    """Propose the batch after ``start`` search trials, or None if all of it is evaluated."""
    strategy, task, n_iter, seed, batch_size, _ = plan
    before = history.before(start)
    rng = np.random.default_rng([seed, _PROPOSAL_STREAM, start])
    batch = strategy.propose(task, before, n_proposals=batch_size, rng=rng)
    n_left = min(n_iter, start + batch_size) - history.n_searched
    plain = (_plain(expression, task) for expression in batch[: n_iter - start])
    new = history.without_known(plain)[:n_left]
    return _Round(new, before.evaluations, Phase.SEARCH, start=start) if new else None


def design_of(strategy: Strategy, task: Task, seed: int) -> Design:
    """Return the initial design of a search with this seed, empty if no column varies."""
    if not task.grammar.columns:
        return Design((), (), 0)
    design = strategy.design(task, rng=np.random.default_rng([seed, _DESIGN_STREAM]))
    return design.beginning_with(task.start)
