"""The climb: which kernels near the best ones are estimated, and which of them are evaluated."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain, islice

import numpy as np

from autokernel.evidence import Estimate, Evaluation
from autokernel.search.acquisition import expected_improvement
from autokernel.search.distances import keys_of
from autokernel.search.history import History, Phase
from autokernel.search.strategy import Task

N_CLIMBED_ALONE = 2  # base kernels of the design from which the search climbs too
N_CLIMBED = 3  # best kernels whose neighbours are estimated
MIN_GAIN_OF_ALONE = 1.0  # nats that a step of a climb from a base kernel is expected to gain
MIN_GAIN_OF_SCALE = 2.0  # nats that another scale must be expected to gain to be taken at once
MAX_RISE = 3.0  # nats by which a change rarely gains more than at the last kernel
MAX_BEHIND_ON_SCALE = 10.0  # nats of the best kernel on another scale of the target
SHARE_OF_RISE = 0.5  # of the largest gain, which is added to these nats
MANY_NEIGHBOURS = 150  # of a kernel; with fewer, all are estimated
SMALLEST_TOL = 0.01  # nats, which stand for a tol of zero
ERROR_OF_ESTIMATES = 0.7  # nats, root mean square of those that were worth a fit


class Climb:
    """Finds what to evaluate next, by estimates of kernels near the best ones.

    A change that gained little at the last kernel rarely gains much more at the next one: only
    neighbours that may be good by this are estimated, and all of the best kernel before the climb
    ends.
    """

    def __init__(self, task: Task, history: History) -> None:
        self._task, self._history = task, history
        self._fits = [one for one in history.best_first() if task.grammar.spans(one.expression)]
        self._known = history.canonical_texts()
        self._gains = _last_gains(history)
        self._new_gains: dict[float, float] = {}  # which no trial has

    def steps(self) -> list[Estimate]:
        """List kernels that are expected to gain enough, the best first.

        Other scales of the best kernel that gain much come before all others. Then come neighbours
        of it, of the kernels to which the search climbs from the best base kernels and on other
        scales of the target, and of the next best ones, which are often two operations away from
        it. In the end all neighbours of the best kernel are estimated.
        """
        if not self._fits:
            return []
        best, least = self._fits[0], self._task.tol or SMALLEST_TOL
        rescaled = {one.canonical for one in self._task.rescalings(best.expression)}
        found = self._estimates(best, above=best, least=least)
        scales = [one for one in found if one.expression.canonical in rescaled]
        if steps := self._promising(scales, above=best, least=MIN_GAIN_OF_SCALE):
            return steps[:1]
        if steps := self._promising(found, above=best, least=least):
            return steps
        for top in self._tops():  # for which gains of larger kernels do not count
            if steps := self._steps_from(top, above=top, least=MIN_GAIN_OF_ALONE, max_rise=np.inf):
                return steps[:1]
        for other in self._best_on_other_targets():
            if steps := self._steps_from(other, above=other, least=least):
                return steps[:1]
        for other in self._fits[1:N_CLIMBED]:
            if steps := self._steps_from(other, above=best, least=least):
                return steps
        return self._steps_from(best, above=best, least=least, max_rise=np.inf)

    def _steps_from(
        self, fit: Evaluation, *, above: Evaluation, least: float, max_rise: float = MAX_RISE
    ) -> list[Estimate]:
        """List promising neighbours of a fit, of those that may gain enough by the last gains."""
        found = self._estimates(fit, above=above, least=least, max_rise=max_rise)
        return self._promising(found, above=above, least=least)

    def _estimates(
        self, fit: Evaluation, *, above: Evaluation, least: float, max_rise: float = MAX_RISE
    ) -> list[Estimate]:
        """Estimate the neighbours that may gain enough by the last gains."""
        near, expected = self._task.near(fit.expression), dict[str, float]()
        known = self._gains | self._new_gains
        for text, one in near.items():
            of_paths, of_leaves = keys_of(fit.expression, one)
            expected[text] = known.get(of_paths, known.get(of_leaves, np.inf))
        needed = max([above.score + least - fit.score, *filter(np.isfinite, expected.values())])
        max_rise += np.inf if len(near) < MANY_NEIGHBOURS else SHARE_OF_RISE * max(0.0, needed)
        likely = {text for text, gain in expected.items() if gain > needed - max_rise}
        found = self._task.neighbours(fit, likely)
        self._new_gains |= _gains_of(fit, found)
        return found

    def _tops(self) -> Iterator[Evaluation]:
        """Yield the ends of climbs from the best base kernels; no two of these pass one kernel."""
        designed = self._history.best_first(Phase.INITIAL)
        known = {fit.expression.canonical: fit for fit in self._history.best_first(Phase.SEARCH)}
        for top in [one for one in designed if one.expression.n_leaves == 1][:N_CLIMBED_ALONE]:
            while True:
                near = (known[text] for text in self._task.near(top.expression) if text in known)
                if (best := max(near, key=lambda fit: fit.score, default=top)).score <= top.score:
                    break
                top = known.pop(best.expression.canonical)
            if top is not self._fits[0]:
                yield top

    def _best_on_other_targets(self) -> list[Evaluation]:
        """Return the best kernel on each other scale of the target that is not far behind."""
        best, found = self._fits[0], dict[str, Evaluation]()
        for fit in self._fits:
            found.setdefault(fit.expression.target, fit)
        del found[best.expression.target]
        return [one for one in found.values() if one.score > best.score - MAX_BEHIND_ON_SCALE]

    def _promising(
        self, near: Sequence[Estimate], *, above: Evaluation, least: float
    ) -> list[Estimate]:
        """Sort new kernels that are expected to gain enough over another one."""
        finite = (one for one in near if np.isfinite(one.score))
        new = [one for one in finite if one.expression.canonical not in self._known]
        scores, std = np.array([one.score for one in new]), np.full(len(new), ERROR_OF_ESTIMATES)
        gains = expected_improvement(scores, std, best=above.score)
        of_changes = tuple(sorted(self._new_gains.items()))
        over_best = expected_improvement(scores, std, best=self._fits[0].score)
        return [
            replace(new[n], gains=of_changes, expected=float(over_best[n]))
            for n in np.argsort(-scores, kind="stable")
            if gains[n] > least
        ]


def known_gains(task: Task, history: History) -> tuple[tuple[float, float], ...]:
    """Return the gains of changes, with those of all known estimates near the best kernel."""
    found = _last_gains(history)
    spanned = (one for one in history.best_first() if task.grammar.spans(one.expression))
    for best in islice(spanned, 1):  # none, if only noise has a score
        found |= _gains_of(best, task.known_neighbours(best))
    return tuple(sorted(found.items()))


def _last_gains(history: History) -> dict[float, float]:
    """Return the gains of changes when they were last estimated, by their keys."""
    return dict(chain.from_iterable(trial.proposal.gains for trial in history))


def _gains_of(fit: Evaluation, estimates: Iterable[Estimate]) -> dict[float, float]:
    """Return the largest gain of the changes with each key."""
    gains: dict[float, float] = {}
    for one in estimates:
        gain = round(float(one.score - fit.score), 1)
        for key in map(float, keys_of(fit.expression, one.expression)):
            gains[key] = max(gain, gains.get(key, -np.inf))
    return {key: gain for key, gain in gains.items() if np.isfinite(gain)}
