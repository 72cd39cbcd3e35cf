"""How the effect of a column depends on another one, in words."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np
from scipy.stats import rankdata

from autokernel.explain.components import MAX_LEVELS
from autokernel.explain.decomposition import ExplainedFunction, Interaction
from autokernel.explain.effects import effect_of
from autokernel.explain.facts import HALF, LIKELY, N_DRAWS, Curve, Fact, central, changes_of
from autokernel.explain.sentences import Said, Sentences
from autokernel.explain.words import INTERVAL_ENDS, interval, listing, percent, perhaps
from autokernel.typing import FloatArray

LEVELS = (0.1, 0.9)  # quantiles of a column at which the effect of another one is shown
N_STEPS = 33  # along the column that is followed
OPEN = "may rise or fall"
MULTIPLIED = "kernels in which the columns are multiplied"


class InteractionFacts:
    """The facts about an interaction: the change along a column at values or levels of the other.

    Of a category of many levels, the standard deviation between them is given; of two categories,
    the two levels that together exceed both effects most, and those that fall short of them most.
    """

    def __init__(self, explained: ExplainedFunction, pair: Interaction, say: Sentences) -> None:
        self._explained, self._pair, self._say = explained, pair, say
        names, sure = listing([say.names[one] for one in pair.columns]), explained.probability(pair)
        self._about = Fact(names, "interact", pair.share, probability=sure, evidence=MULTIPLIED)

    def all(self) -> list[Said]:
        """Say how much both columns explain besides the effects of each, and how."""
        about, share = self._about, self._pair.share
        facts, texts = self._details()
        if all(one.predicate == OPEN for one in facts):
            facts, texts = [], []
        how = f": {listing(texts)}" if texts else ", in a way that is uncertain"
        size = f"explains {percent(share)} of the variance of the fit"
        if share <= 0:
            size = f"has a share of {percent(share)}"
        text = f"{perhaps(f'{about.subject} interact, which {size}', about.probability)}{how}."
        return [(about, text), *((one, "") for one in facts)]

    def _details(self) -> tuple[list[Fact], list[str]]:
        explained, axes = self._explained, self._say.axes
        values = {column: np.unique(explained.X[:, column]) for column in self._pair.columns}
        every = [column for column in values if not axes[column].levels]
        if not every:
            return self._of_levels()
        spans = {one.column: one.span for one in sorted(explained.parts, key=lambda one: one.span)}
        column = max(every, key=lambda one: (len(values[one]) > 2, spans[one]))
        other = next(one for one in values if one != column)
        levels, width = values[other], 0.0
        if axes[other].levels and len(levels) > MAX_LEVELS:
            ends = [np.array(explained.ends(column))] * len(levels)
            return self._between_levels(column, other, ends, levels)
        if not (axes[other].levels or len(levels) == 2):
            width, levels = LEVELS[0], np.quantile(explained.X[:, other], LEVELS, method="nearest")
        rank = rankdata(explained.X[:, other]) / len(explained.X)
        steps = []
        for level in levels:
            near = np.abs(rank - rank[explained.X[:, other] == level][0]) <= width
            steps.append(self._steps(column, explained.X[near, column]))
        kept = [number for number, one in enumerate(steps) if np.ptp(one) > 0]
        if len(kept) < 2:
            return [], []
        return self._by_levels(column, other, [steps[one] for one in kept], levels[kept])

    def _by_levels(
        self, column: int, other: int, steps: Sequence[FloatArray], levels: FloatArray
    ) -> tuple[list[Fact], list[str]]:
        """Say how the target changes along a column at each level of the other one."""
        say, axis, write = self._say, self._say.axes[column], self._say.axes[other].end
        if len(np.unique(self._explained.X[:, other])) == 2:
            write = partial(say.one_of_two, other)
        curves, facts, texts = self._curves(column, other, steps, levels), [], []
        reach = max(curve.reach for curve in curves)
        for level, curve in zip(map(write, levels.tolist()), curves, strict=True):
            first, last = map(axis.end, curve.places[[0, -1]].tolist())
            where, ends = f"{say.names[other]} is {level}", f"from {first} to {last}"
            about = replace(self._about, subject=f"{axis.name}, where {where}", evidence=ends)
            fact = _course(curve, about, reach=reach)
            text = f"{fact.predicate} by {say.amount(*fact.ends)} {ends}"
            if fact.predicate in ("hardly changes", OPEN):
                text = f"{fact.predicate} ({say.between(fact.low, fact.high)}) {ends}"
            facts.append(say.measured(fact))
            texts.append(perhaps(f"{text} where {where}", fact.probability))
        texts[0] = f"along {axis.name}, {say.y_name} {texts[0]}"
        return facts, texts

    def _steps(self, column: int, rows: FloatArray) -> FloatArray:
        """Return places (n_steps,) along a column between some rows, in one phase of a season."""
        (low, high), parts = central(rows, rows), self._explained.parts
        periods = [one.period for one in parts if one.column == column and one.is_season]
        if periods and high - low >= max(periods):
            return low + max(periods) * np.arange(np.floor((high - low) / max(periods)) + 1)
        return np.linspace(low, high, N_STEPS)

    def _between_levels(
        self, column: int, other: int, ends: Sequence[FloatArray], levels: FloatArray
    ) -> tuple[list[Fact], list[str]]:
        """Say how much the change along a column differs between the levels of a category."""
        say, curves = self._say, self._curves(column, other, ends, levels)
        spreads = np.std([changes_of(one.draws) for one in curves], axis=0)
        size = float(np.median(spreads)), *interval(spreads).tolist()
        fact = replace(self._about, predicate="changes differ").moved(*size)
        first, last = map(say.axes[column].end, ends[0].tolist())
        text = f"the change of {say.y_name} from {first} to {last} of {say.names[column]} differs"
        by = f"with a standard deviation of {say.amount(*size)}"
        return [say.measured(fact)], [f"{text} between levels of {say.names[other]}, {by}"]

    def _of_levels(self) -> tuple[list[Fact], list[str]]:
        """Say which levels of two categories exceed both effects most, or fall short most."""
        explained, pair, say = self._explained, self._pair, self._say
        points = np.unique(explained.X[:, pair.columns], axis=0)
        heights = explained.in_unit(explained.mean_of(pair.effect, points))
        facts, texts = [], []
        for word, at in (("most", np.argmax(heights)), ("least", np.argmin(heights))):
            axes = zip((say.axes[one] for one in pair.columns), points[at].tolist(), strict=True)
            levels = listing([f"{axis.name} is {axis.end(value)}" for axis, value in axes])
            fact = replace(self._about, predicate=f"{word} together", evidence=levels)
            facts.append(say.measured(fact.moved(float(heights[at]), np.nan, np.nan)))
            texts.append(f"where {levels} ({say.signed(heights[at], np.ptp(heights))})")
        text = f"{say.y_name} exceeds what both effects give most {texts[0]}"
        return facts, [text, f"falls short of it most {texts[1]}"]

    def _curves(
        self, column: int, other: int, steps: Sequence[FloatArray], levels: FloatArray
    ) -> list[Curve]:
        """Compute a curve along a column at each level of another one, which has its steps."""
        explained, lengths, both = self._explained, [*map(len, steps)], effect_of((column, other))
        points = np.column_stack([np.concatenate(steps), np.repeat(levels, lengths)])
        ends = np.cumsum(lengths)[:-1]
        means = np.split(explained.in_unit(explained.mean_of(both, points)), ends)
        drawn = explained.in_unit(explained.draws_of(both, points, N_DRAWS))
        return list(map(Curve, steps, means, np.split(drawn, ends, axis=1)))


def _course(curve: Curve, about: Fact, *, reach: float) -> Fact:
    """Say how a curve changes, by the ends or by the range.

    A curve whose range is not larger than that of its errors goes up and down by chance. One that
    may rise or fall hardly changes if both are small for the largest ``reach`` of the curves.
    """
    change, low, high = curve.measured(changes_of)
    errors = np.ptp(curve.draws - curve.mean, axis=1)
    by_chance = np.quantile(errors, INTERVAL_ENDS[1])
    if abs(change) < HALF * curve.reach and curve.reach > by_chance:
        size = curve.measured(lambda curves: np.ptp(curves, axis=1))
        return replace(about, predicate="goes up and down").moved(*size)
    sure = curve.probability(lambda curves: change * changes_of(curves) > 0)
    word = "rises" if change > 0 else "falls"
    if low < 0 < high and max(-low, high) < HALF * reach:
        word, sure = "hardly changes", 1.0
    elif sure < LIKELY:
        word, sure = OPEN, 1.0
    return replace(about, predicate=word, probability=sure).moved(change, low, high)
