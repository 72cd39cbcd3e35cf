"""The one loop: design, then propose and evaluate until the search ends."""

import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from typing import NamedTuple, Protocol

import numpy as np

from autokernel.evaluation import Evaluation
from autokernel.exceptions import OutOfTimeError
from autokernel.expression import Expression
from autokernel.search.design import Design
from autokernel.search.history import History, Phase, StopReason, Trial
from autokernel.search.strategies.base import Strategy, Task

EvaluateAll = Callable[
    [Sequence[Expression], Sequence[Evaluation]], Generator[Evaluation | None, None, None]
]
"""Scores kernels, given the fits that they may begin at; yields them in order.

Never raises for a kernel that cannot be fitted. None stands for one that time did not suffice for.
"""

_DESIGN_STREAM, _PROPOSAL_STREAM = 0, 1


class Observer(Protocol):
    """Follows a search."""

    def begin(self) -> None:
        """Hear that a trial begins."""

    def end(self, history: History) -> bool:
        """Hear that a trial has ended, the last of the history; True ends the search."""

    def abandon(self) -> None:
        """Hear that there was no time for the trial that was begun."""


class Silent:
    """An observer that does nothing."""

    def begin(self) -> None:
        """Do nothing."""

    def end(self, history: History) -> bool:  # noqa: ARG002 - of other observers
        """Go on."""
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
    observer: Observer | None = None,
) -> StopReason:
    """Evaluate the strategy's initial design, then what it proposes.

    A search whose history ends anywhere, in the midst of a batch too, goes on as if it had not been
    interrupted.

    Parameters
    ----------
    evaluate_all : callable
        Scores kernels, given what was evaluated before they were proposed; the initial design gets
        nothing. See :data:`EvaluateAll`.
    strategy : Strategy
        Chooses what to evaluate.
    task : Task
        What it may choose from. After its deadline nothing is proposed; evaluations look at the
        clock themselves.
    history : History
        What has been evaluated already; trials are added to it as they end.
    n_iter : int
        Kernels to evaluate after the initial design, those of the history included.
    seed : int
        Not negative. Each batch draws from a stream of its own, numbered by the trials before it.
    batch_size : int
        Kernels that are proposed together, and so can be evaluated together.
    observer : Observer, optional
        Told of every trial.
    """
    observer = observer or Silent()
    began = time.perf_counter() - history.elapsed
    plan = _Plan(strategy, task, n_iter, seed, batch_size)
    for together in _rounds(plan, history):
        n_left = len(together.expressions)
        seconds = together.proposal_seconds / n_left
        with closing(evaluate_all(together.expressions, together.known)) as evaluations:
            observer.begin()
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
                    observer.begin()
    if history.n_searched < n_iter:
        return StopReason.MAX_TIME if task.deadline.has_passed else StopReason.EXHAUSTED
    return StopReason.N_ITER


class _Plan(NamedTuple):
    """What a search depends on, beside the history."""

    strategy: Strategy
    task: Task
    n_iter: int
    seed: int
    batch_size: int


class _Round(NamedTuple):
    """Some kernels that are evaluated together, beginning at the same known fits."""

    expressions: list[Expression]
    known: list[Evaluation]
    phase: Phase
    proposal_seconds: float = 0.0
    start: int = 0  # trials of the search that they are proposed after


def _rounds(plan: _Plan, history: History) -> Iterator[_Round]:
    """Yield what is to be evaluated next, given a history that grows meanwhile."""
    strategy, task, n_iter, seed, _ = plan
    design = design_of(strategy, task, seed)
    for part in (lambda: design.fixed, lambda: design.rest(history.evaluations)):
        new = history.without_known(part())
        if new:
            yield _Round(new, [], Phase.INITIAL)
    while history.n_searched < n_iter and not task.deadline.has_passed:
        asked = time.perf_counter()
        try:
            together = _rest_of_batch(plan, history) or _batch(plan, history, history.n_searched)
        except OutOfTimeError:
            return
        if together is None:
            return
        yield together._replace(proposal_seconds=time.perf_counter() - asked)


def _rest_of_batch(plan: _Plan, history: History) -> _Round | None:
    """Propose the last batch again, if it may not have been evaluated to its end."""
    start = history.last_start
    if history.n_searched - start >= plan.batch_size or history.n_searched == start:
        return None
    return _batch(plan, history, start)


def _batch(plan: _Plan, history: History, start: int) -> _Round | None:
    """Propose what comes after so many trials; None where all of it has been evaluated."""
    strategy, task, n_iter, seed, batch_size = plan
    before = history.before(start)
    rng = np.random.default_rng([seed, _PROPOSAL_STREAM, start])
    batch = strategy.propose(task, before, n_proposals=batch_size, rng=rng)
    n_left = min(n_iter, start + batch_size) - history.n_searched
    new = history.without_known(batch[: n_iter - start])[:n_left]
    return _Round(new, before.evaluations, Phase.SEARCH, start=start) if new else None


def design_of(strategy: Strategy, task: Task, seed: int) -> Design:
    """Return the initial design that a search with this seed begins with."""
    return strategy.design(task, rng=np.random.default_rng([seed, _DESIGN_STREAM]))
