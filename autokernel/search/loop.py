"""The loop of every search: evaluate the design, then propose and evaluate until the end."""

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
"""Function that evaluates kernels, given known fits for warm starts, and yields them in order.

It does not raise for a kernel that cannot be fitted. It yields None for a kernel for which there
was not enough time.
"""

_DESIGN_STREAM, _PROPOSAL_STREAM = 0, 1


class Observer(Protocol):
    """Receives the events of a search."""

    def begin(self) -> None:
        """React to the begin of a trial."""

    def end(self, history: History) -> bool:
        """React to the end of the last trial in the history; return True to end the search."""

    def abandon(self) -> None:
        """React to a begun trial for which there was not enough time."""


class Silent:
    """An observer that does nothing."""

    def begin(self) -> None:
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
    observer: Observer | None = None,
) -> StopReason:
    """Evaluate the initial design of a strategy, then its proposals.

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
    observer : Observer, optional
        Receives the begin and end of every trial.
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
    """All that a search depends on besides the history."""

    strategy: Strategy
    task: Task
    n_iter: int
    seed: int
    batch_size: int


class _Round(NamedTuple):
    """Kernels that are evaluated together, with warm starts from the same known fits."""

    expressions: list[Expression]
    known: list[Evaluation]
    phase: Phase
    proposal_seconds: float = 0.0
    start: int = 0  # number of search trials on which the proposal is based


def _rounds(plan: _Plan, history: History) -> Iterator[_Round]:
    """Yield the kernels to evaluate next; the caller appends their trials to the history."""
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
    """Propose the last batch again if its evaluation may be incomplete."""
    start = history.last_start
    if history.n_searched - start >= plan.batch_size or history.n_searched == start:
        return None
    return _batch(plan, history, start)


def _batch(plan: _Plan, history: History, start: int) -> _Round | None:
    """Propose the batch after ``start`` search trials, or None if all of it is evaluated."""
    strategy, task, n_iter, seed, batch_size = plan
    before = history.before(start)
    rng = np.random.default_rng([seed, _PROPOSAL_STREAM, start])
    batch = strategy.propose(task, before, n_proposals=batch_size, rng=rng)
    n_left = min(n_iter, start + batch_size) - history.n_searched
    new = history.without_known(batch[: n_iter - start])[:n_left]
    return _Round(new, before.evaluations, Phase.SEARCH, start=start) if new else None


def design_of(strategy: Strategy, task: Task, seed: int) -> Design:
    """Return the initial design of a search with this seed."""
    return strategy.design(task, rng=np.random.default_rng([seed, _DESIGN_STREAM]))
