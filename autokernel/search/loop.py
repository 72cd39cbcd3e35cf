"""The one loop: design, then propose and evaluate until the search ends."""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from autokernel.expression import Expression
from autokernel.inference import Evaluation
from autokernel.search.history import History, Phase, StopReason, Trial
from autokernel.search.strategy import Space, Strategy

Evaluate = Callable[[Expression, Sequence[Evaluation]], Evaluation]
"""Scores a kernel, given the fits from which it may inherit parameters."""

Observer = Callable[[History], None]
"""Called after every trial, the last of the history."""

_DESIGN_STREAM, _PROPOSAL_STREAM = 0, 1


@dataclass(frozen=True, slots=True)
class SearchResult:
    """A finished search."""

    history: History
    n_iter: int
    stop_reason: StopReason


def search(
    evaluate: Evaluate,
    strategy: Strategy,
    space: Space,
    *,
    n_samples: int,
    n_iter: int,
    seed: int,
    observe: Observer | None = None,
) -> SearchResult:
    """Evaluate the strategy's initial design, then what it proposes.

    Parameters
    ----------
    evaluate : callable of (Expression, sequence of Evaluation) to Evaluation
        Scores one kernel, given what was evaluated before it was proposed; the initial design gets
        nothing. Never raises for a kernel that cannot be fitted.
    strategy : Strategy
        Chooses what to evaluate.
    space : Space
        What it may choose from.
    n_samples : int
        Size of the data set, for scores per sample.
    n_iter : int
        Kernels to evaluate after the initial design.
    seed : int
        Not negative. Each proposal draws from a stream of its own, numbered by its place.
    observe : callable of History, optional
        Called after every trial.
    """
    history = History(n_samples)
    began = time.perf_counter()

    def run(expression: Expression, phase: Phase, proposal_seconds: float) -> None:
        known = [trial.evaluation for trial in history.trials] if phase is Phase.SEARCH else []
        evaluation = evaluate(expression, known)
        elapsed = time.perf_counter() - began
        history.trials.append(Trial(evaluation, phase, proposal_seconds, elapsed))
        if observe is not None:
            observe(history)

    for expression in _design(strategy, space, history, seed):
        run(expression, Phase.INITIAL, 0.0)
    for iteration in range(n_iter):
        asked = time.perf_counter()
        rng = np.random.default_rng([seed, _PROPOSAL_STREAM, iteration])
        proposal = strategy.propose(space, history, rng=rng)
        if proposal is None:
            return SearchResult(history, iteration, StopReason.EXHAUSTED)
        run(proposal, Phase.SEARCH, time.perf_counter() - asked)
    return SearchResult(history, n_iter, StopReason.N_ITER)


def _design(strategy: Strategy, space: Space, history: History, seed: int) -> Iterator[Expression]:
    """Yield the initial design; its random part may look at how the fixed part went."""

    def new(expressions: Iterable[Expression]) -> Iterator[Expression]:
        return (e for e in expressions if e.canonical not in history.canonical_texts())

    yield from new(strategy.fixed_design(space))
    rng = np.random.default_rng([seed, _DESIGN_STREAM])
    yield from new(strategy.random_design(space, history, rng=rng))
