"""The climb: which kernels near the best ones are estimated, and which of them are evaluated."""

from collections.abc import Iterator, Sequence

import numpy as np
from scipy.stats import median_abs_deviation, norm

from autokernel.evidence import Estimate, Evaluation
from autokernel.expression import Expression
from autokernel.search.acquisition import expected_improvement
from autokernel.search.history import History, Phase
from autokernel.search.strategy import Task, choose_none
from autokernel.search.surrogate import Edge, GainGP
from autokernel.typing import BoolArray, FloatArray

N_CLIMBED_ALONE = 2  # base kernels of the design from which the search climbs too
N_CLIMBED = 3  # best kernels whose neighbours are estimated
N_FIRST_STEPS = 8  # from the best kernel, after which a second step is considered
MAX_NATS_BELOW = 6.0  # the best kernel, after the first of two steps
N_AHEAD = 4  # first steps after which second ones are estimated
SHARE_AHEAD, MIN_AHEAD = 0.3, 100  # of the second steps, likeliest first, that are estimated
MIN_GAIN_OF_ALONE = 1.0  # nats that a step of a climb from a base kernel is expected to gain
MIN_GAIN_OF_SCALE = 2.0  # nats that another scale must be expected to gain to be taken at once
MIN_EXPECTED_GAIN = 0.2  # of tol, with which a neighbour is evaluated
SMALLEST_TOL = 0.01  # nats, which stand for a tol of zero
ERROR_OF_ESTIMATES, N_ERRORS = 1.0, 4  # standard deviation in nats before any is known; weight


class Climb:
    """Finds what to evaluate next, by estimates of kernels near the best ones.

    All neighbours of the best kernels are estimated. Two steps ahead there are too many kernels: a
    surrogate knows from the ``gains`` of all changes so far which of them may be the best.
    """

    def __init__(self, task: Task, history: History, gains: GainGP) -> None:
        self._task, self._history, self._gains = task, history, gains
        self._fits = [one for one in history.best_first() if task.grammar.spans(one.expression)]
        self._known = history.canonical_texts()
        self._errors = _errors_to_expect(history.errors_of_estimates)

    def steps(self) -> list[Estimate]:
        """List kernels by their expected improvement, highest first.

        Other scales of the best kernel that gain much come before all others. Then come neighbours
        of it, of the kernels to which the search climbs from the best base kernels, and of the next
        best ones. If none is promising, the search looks two steps ahead.
        """
        if not self._fits:
            return []
        best, task = self._fits[0], self._task
        least = MIN_EXPECTED_GAIN * (task.tol or SMALLEST_TOL)
        if steps := self._promising(task.rescalings(best), best, MIN_GAIN_OF_SCALE):
            return steps[:1]
        if steps := self._promising(task.neighbours(best), best, least):
            return steps
        for top in self._tops():
            if steps := self._promising(task.neighbours(top), top, MIN_GAIN_OF_ALONE):
                return steps[:1]
        for other in self._fits[1:N_CLIMBED]:
            near = task.neighbours(other, least=best.score - other.score)
            if steps := self._promising(near, best, least):
                return steps
        for first in self._first_steps():
            if steps := self._promising(self._second_steps(first), best, least):
                return steps[:1]
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

    def _first_steps(self) -> Iterator[Estimate]:
        """Yield estimated neighbours of the best kernel, after which a second step may gain.

        The likeliest come first.
        """
        best = self._fits[0]
        near = self._task.neighbours(best, choose_none)
        first = [one for one in near if one.score > best.score - MAX_NATS_BELOW][:N_FIRST_STEPS]
        chances = [
            self._chances(one, best.score, self._task.near(one.expression)).max(initial=0.0)
            for one in first
        ]
        order = np.argsort(-np.array(chances), kind="stable")
        yield from (first[number] for number in order[:N_AHEAD])

    def _second_steps(self, first: Estimate) -> list[Estimate]:
        """Estimate the neighbours of a first step that are likeliest to be the best, once."""
        best = self._fits[0]

        def choose(near: Sequence[Expression]) -> BoolArray:
            chances = self._chances(first, best.score, near)
            n_kept = max(MIN_AHEAD, int(SHARE_AHEAD * len(near)))
            return np.asarray(chances >= np.sort(chances)[-n_kept:][0])

        is_taught = any(lesson.is_of(first) for lesson in self._task.lessons)
        least = best.score - first.score
        return self._task.neighbours(first, choose_none if is_taught else choose, least=least)

    def _chances(
        self, start: Evaluation | Estimate, score: float, near: Sequence[Expression]
    ) -> FloatArray:
        """Predict the probabilities (n,) that neighbours of a kernel exceed a score."""
        gains, lessons = self._gains, self._task.lessons
        for lesson in lessons[gains.n_batches :]:
            gains.learn(
                [Edge(lesson.parent, one.expression) for one in lesson.children],
                np.array([one.score - lesson.score for one in lesson.children]),
                np.array([one.error for one in lesson.children]),
            )
        if not near:
            return np.empty(0)
        changes = [Edge(start.expression, one) for one in near]
        return gains.chances(changes, score - start.score)

    def _promising(
        self, near: Sequence[Estimate], start: Evaluation, least: float
    ) -> list[Estimate]:
        """Sort new kernels with an expected gain over a kernel of more than ``least`` nats."""
        (bias, std), found = self._errors, dict[str, Estimate]()
        for one in near:
            text = one.expression.canonical
            lowest = found[text].score if text in found else -np.inf
            if text not in self._known and lowest < one.score < np.inf:
                found[text] = one
        scores = np.array([one.score for one in found.values()]) + bias
        gains = expected_improvement(scores, np.array(std), best=start.score)
        listed, order = list(found.values()), np.argsort(-gains, kind="stable")
        return [listed[number] for number in order if gains[number] > least]


def _errors_to_expect(errors: FloatArray) -> tuple[float, float]:
    """Estimate bias and standard deviation of estimates, robustly, from those that were checked.

    Few errors are very large, where a fit has found another mode. Some errors that are normally
    distributed stand for what is expected before any is known.
    """
    before = ERROR_OF_ESTIMATES * norm.ppf((np.arange(N_ERRORS) + 0.5) / N_ERRORS)
    known = np.append(before, errors)
    return float(np.median(known)), float(median_abs_deviation(known, scale="normal"))
