"""The climb: which kernels near the best ones are estimated, and which of them are evaluated."""

from collections.abc import Iterator, Sequence

import numpy as np

from autokernel.evidence import Estimate, Evaluation
from autokernel.search.acquisition import expected_improvement
from autokernel.search.history import History, Phase
from autokernel.search.strategy import Task
from autokernel.search.surrogate import DiscreteKernel, Edge, SurrogateGP
from autokernel.typing import FloatArray

N_CLIMBED_ALONE = 2  # base kernels of the design from which the search climbs too
N_CLIMBED = 3  # best kernels whose neighbours are estimated
MIN_GAIN_OF_ALONE = 1.0  # nats that a step of a climb from a base kernel is expected to gain
MIN_GAIN_OF_SCALE = 2.0  # nats that another scale must be expected to gain to be taken at once
SMALLEST_TOL = 0.01  # nats, which stand for a tol of zero
ERROR_OF_ESTIMATES = 1.0  # standard deviation in nats, before any estimate is checked
STD_OF_BIAS = 0.3  # nats, of all estimates
MAX_ERROR = 4.0  # nats, beyond which a fit may have found another mode


class Climb:
    """Finds what to evaluate next, by estimates of kernels near the best ones.

    All neighbours of the best kernels are estimated. Where fits have checked estimates, the errors
    of similar ``changes`` correct the others.
    """

    def __init__(self, task: Task, history: History, changes: DiscreteKernel[Edge]) -> None:
        self._task, self._history = task, history
        self._fits = [one for one in history.best_first() if task.grammar.spans(one.expression)]
        self._known = history.canonical_texts()
        self._errors = learn_errors(history.errors_of_estimates, changes)

    def steps(self) -> list[Estimate]:
        """List kernels by their expected improvement, highest first.

        Other scales of the best kernel that gain much come before all others. Then come neighbours
        of it, of the kernels to which the search climbs from the best base kernels, and of the next
        best ones, which are often two operations away from it.
        """
        if not self._fits:
            return []
        best, task = self._fits[0], self._task
        least = task.tol or SMALLEST_TOL
        if steps := self._promising(task.rescalings(best), best, MIN_GAIN_OF_SCALE):
            return steps[:1]
        if steps := self._promising(task.neighbours(best), best, least):
            return steps
        for top in self._tops():
            if steps := self._promising(task.neighbours(top), top, MIN_GAIN_OF_ALONE):
                return steps[:1]
        for other in self._fits[1:N_CLIMBED]:
            if steps := self._promising(task.neighbours(other), best, least):
                return steps
        return []

    def _tops(self) -> Iterator[Evaluation]:
        """Yield where the search has climbed to from the best base kernels of the design."""
        designed = self._history.best_first(Phase.INITIAL)
        for base in [one for one in designed if one.expression.n_leaves == 1][:N_CLIMBED_ALONE]:
            top = self._top_of_climb(base)
            if top is not self._fits[0]:
                yield top

    def _top_of_climb(self, start: Evaluation) -> Evaluation:
        """Follow the best neighbours in the search, as long as each is better than the last."""
        known = {fit.expression.canonical: fit for fit in self._history.best_first(Phase.SEARCH)}
        while True:
            texts = self._task.neighbour_texts(start.expression)
            near = (known[text] for text in texts if text in known)
            best = max(near, key=lambda fit: fit.score, default=start)
            if best.score <= start.score:
                return start
            start = best

    def _promising(
        self, near: Sequence[Estimate], start: Evaluation, least: float
    ) -> list[Estimate]:
        """Sort new kernels with an expected gain over a kernel of more than ``least`` nats."""
        found = dict[str, Estimate]()
        for one in near:
            text = one.expression.canonical
            lowest = found[text].score if text in found else -np.inf
            if text not in self._known and lowest < one.score < np.inf:
                found[text] = one
        listed = list(found.values())
        gains = expected_improvement(*self._predicted(listed), best=start.score)
        order = np.argsort(-gains, kind="stable")
        return [listed[number] for number in order if gains[number] > least]

    def _predicted(self, estimates: Sequence[Estimate]) -> tuple[FloatArray, FloatArray]:
        """Predict the scores (n,) of kernels with estimates, and their standard deviations."""
        scores = np.array([one.score for one in estimates])
        if self._errors is None or not estimates:
            return scores, np.full(len(scores), ERROR_OF_ESTIMATES)
        changes = [Edge(one.parent, one.expression) for one in estimates if one.parent is not None]
        errors, std = self._errors.predict(changes)
        return scores + errors, np.hypot(std, self._errors.noise)


def learn_errors(
    known: Sequence[tuple[Edge, float]], changes: DiscreteKernel[Edge]
) -> SurrogateGP[Edge] | None:
    """Learn by how many nats scores are above their estimates, None if no estimate is checked.

    Before, half of the variance is common to similar changes.
    """
    if not known:
        return None
    edges, errors = zip(*known, strict=True)
    half = 2 * np.log(ERROR_OF_ESTIMATES) - np.log(2)
    means = np.array([half, *np.zeros(len(changes.bounds)), half, 0.0])
    stds = np.array([*np.ones(len(means) - 1), STD_OF_BIAS])
    clipped = np.clip(np.array(errors), -MAX_ERROR, MAX_ERROR)
    return SurrogateGP(changes, edges, clipped, prior=(means, stds))
