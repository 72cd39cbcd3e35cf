"""The climb: which kernels near the best ones are estimated, and which of them are evaluated."""

from collections.abc import Hashable, Iterator, Sequence

import numpy as np

from autokernel.evidence import Estimate, Evaluation
from autokernel.expression import Expression
from autokernel.search.acquisition import expected_improvement
from autokernel.search.history import History, Phase
from autokernel.search.strategy import Task
from autokernel.search.surrogate import DiscreteKernel, Edge, FrequencyKernel, SurrogateGP
from autokernel.typing import FloatArray

N_CLIMBED_ALONE = 2  # base kernels of the design from which the search climbs too
N_CLIMBED = 3  # best kernels whose neighbours are estimated
MIN_GAIN_OF_ALONE = 1.0  # nats that a step of a climb from a base kernel is expected to gain
MIN_GAIN_OF_SCALE = 2.0  # nats that another scale must be expected to gain to be taken at once
MAX_LOSS = 6.0  # nats; changes that lost more are estimated again if no other is promising
SMALLEST_TOL = 0.01  # nats, which stand for a tol of zero
ERROR_OF_ESTIMATES = 1.0  # standard deviation in nats, before any estimate is checked
STD_OF_BIAS = 0.3  # nats, of all estimates
MAX_ERROR = 4.0  # nats, beyond which a fit may have found another mode


class Climb:
    """Finds what to evaluate next, by estimates of kernels near the best ones.

    All neighbours of the best kernels are estimated, those last whose change lost much at the
    kernel before. Where fits have checked estimates, the errors of similar ``changes`` correct the
    others.
    """

    def __init__(self, task: Task, history: History, changes: FrequencyKernel[Edge]) -> None:
        self._task, self._history, self._changes = task, history, changes
        self._fits = [one for one in history.best_first() if task.grammar.spans(one.expression)]
        self._known = history.canonical_texts()
        fits = {one.expression.canonical: one for one in history.evaluations}
        self._parents = {  # the fits from which the kernels were estimated
            trial.evaluation.expression.canonical: fits[trial.parent.canonical]
            for trial in history
            if trial.parent is not None and trial.parent.canonical in fits
        }
        self._errors = learn_errors(history.errors_of_estimates, changes)

    def steps(self) -> list[Estimate]:
        """List kernels by their expected improvement, highest first.

        Other scales of the best kernel that gain much come before all others. Then come neighbours
        of it, of the kernels to which the search climbs from the best base kernels, and of the next
        best ones, which are often two operations away from it.
        """
        for near, start, least, n_taken in self._looks() if self._fits else ():
            if steps := self._promising(near, start, least):
                return steps[:n_taken]
        return []

    def _looks(self) -> Iterator[tuple[list[Estimate], Evaluation, float, int | None]]:
        """Yield estimates, with what a gain is above, its least nats, and how many are taken."""
        best, least = self._fits[0], self._task.tol or SMALLEST_TOL
        yield self._task.rescalings(best), best, MIN_GAIN_OF_SCALE, 1
        for near in self._near(best):
            yield near, best, least, None
        for top in self._tops():
            for near in self._near(top):
                yield near, top, MIN_GAIN_OF_ALONE, 1
        for other in self._fits[1:N_CLIMBED]:
            for near in self._near(other):
                yield near, best, least, None

    def _near(self, fit: Evaluation) -> Iterator[list[Estimate]]:
        """Yield neighbours of a fit, without changes that lost much before it, and then all."""
        yield self._task.neighbours(fit, self._likely(fit))
        yield self._task.neighbours(fit)

    def _likely(self, fit: Evaluation) -> set[str]:
        """Return the texts of neighbours but for changes that lost much on the way to a kernel."""
        before = self._parents.get(fit.expression.canonical)
        near, gains = self._task.near(fit.expression), self._gains(before) if before else {}
        lost = {change for change, gain in gains.items() if gain < -MAX_LOSS}
        return {text for text, one in near.items() if self._change(fit, one) not in lost}

    def _gains(self, fit: Evaluation) -> dict[Hashable, float]:
        """Return what changes of a kernel, or else of those before it, are estimated to gain."""

        def make() -> dict[Hashable, float]:
            before, own = self._parents.get(fit.expression.canonical), dict[Hashable, float]()
            for one in self._task.neighbours(fit, self._likely(fit)):
                own.setdefault(self._change(fit, one.expression), one.score - fit.score)
            return {**(self._gains(before) if before else {}), **own}

        return self._task.cached(("gains", fit.expression.canonical, fit.theta.tobytes()), make)

    def _change(self, fit: Evaluation, neighbour: Expression) -> Hashable:
        """Return the paths to leaves that come or go, by which changes of kernels are the same."""
        _, paths = self._changes.frequencies(Edge(fit.expression, neighbour))
        return frozenset(item for item in paths.items() if item[1])

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
