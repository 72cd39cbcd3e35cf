"""How the effect of a column depends on another one, in words."""

from collections.abc import Sequence
from dataclasses import replace

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


def said_of(explained: ExplainedFunction, pair: Interaction, say: Sentences) -> list[Said]:
    """Describe an interaction: the change along a column at two values or levels of the other.

    Of a category of many levels, the standard deviation between them is given; of two categories,
    the two levels that together exceed both effects most, and those that fall short of them most.
    """
    names, sure = listing([say.names[one] for one in pair.columns]), explained.probability(pair)
    fact = Fact(names, "interact", pair.share, probability=sure, evidence=MULTIPLIED)
    facts, texts = _details(explained, pair, say, fact)
    if all(one.predicate == OPEN for one in facts):
        facts, texts = [], []
    how = f": {listing(texts)}" if texts else ", in a way that is uncertain"
    size = f"explains {percent(pair.share)} of the variance of the fit"
    if pair.share <= 0:
        size = f"has a share of {percent(pair.share)}"
    text = f"{perhaps(f'{names} interact, which {size}', sure)}{how}."
    return [(fact, text), *((one, "") for one in facts)]


def _details(
    explained: ExplainedFunction, pair: Interaction, say: Sentences, about: Fact
) -> tuple[list[Fact], list[str]]:
    values = {column: np.unique(explained.X[:, column]) for column in pair.columns}
    every = [column for column in pair.columns if not say.axes[column].levels]
    if not every:
        return _of_levels(explained, pair, say, about)
    spans = {one.column: one.span for one in sorted(explained.parts, key=lambda one: one.span)}
    column = max(every, key=lambda one: (len(values[one]) > 2, spans[one]))
    other = next(one for one in pair.columns if one != column)
    levels, width = values[other], 0.0
    if say.axes[other].levels and len(levels) > MAX_LEVELS:
        ends = [np.array(explained.ends(column))] * len(levels)
        curves = _curves(explained, (column, other), ends, levels)
        return _between_levels(curves, column, other, say, about)
    if not (say.axes[other].levels or len(levels) == 2):
        width, levels = LEVELS[0], np.quantile(explained.X[:, other], LEVELS, method="nearest")
    rank = rankdata(explained.X[:, other]) / len(explained.X)
    steps = []
    for level in levels:
        near = np.abs(rank - rank[explained.X[:, other] == level][0]) <= width
        steps.append(_steps(explained, column, explained.X[near, column]))
    kept = [number for number, one in enumerate(steps) if np.ptp(one) > 0]
    if len(kept) < 2:
        return [], []
    steps, levels = [steps[one] for one in kept], levels[kept]
    is_one_of_two = len(values[other]) == 2
    names = [say.level(other, one, is_one_of_two=is_one_of_two) for one in levels.tolist()]
    curves = _curves(explained, (column, other), steps, levels)
    return _by_levels(curves, names, column, other, say, about)


def _by_levels(
    curves: Sequence[Curve],
    levels: Sequence[str],
    column: int,
    other: int,
    say: Sentences,
    about: Fact,
) -> tuple[list[Fact], list[str]]:
    """Say how the target changes along a column at each level of the other one."""
    facts, texts, reach = [], [], max(curve.reach for curve in curves)
    for level, curve in zip(levels, curves, strict=True):
        first, last = (say.axes[column].end(one) for one in curve.places[[0, -1]].tolist())
        where = f"{say.names[other]} is {level}"
        subject, ends = f"{say.names[column]}, where {where}", f"from {first} to {last}"
        fact = _course(curve, replace(about, subject=subject, evidence=ends), reach=reach)
        text = f"{fact.predicate} by {say.amount(*fact.ends)} {ends}"
        if fact.predicate in ("hardly changes", OPEN):
            text = f"{fact.predicate} ({say.between(fact.low, fact.high)}) {ends}"
        facts.append(say.measured(fact))
        texts.append(perhaps(f"{text} where {where}", fact.probability))
    texts[0] = f"along {say.names[column]}, {say.y_name} {texts[0]}"
    return facts, texts


def _steps(explained: ExplainedFunction, column: int, rows: FloatArray) -> FloatArray:
    """Return places (n_steps,) along a column between some rows, in one phase of a season."""
    low, high = central(rows, rows)
    periods = [one.period for one in explained.parts if one.column == column and one.is_season]
    if periods and high - low >= max(periods):
        return low + max(periods) * np.arange(np.floor((high - low) / max(periods)) + 1)
    return np.linspace(low, high, N_STEPS)


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


def _between_levels(
    curves: Sequence[Curve], column: int, other: int, say: Sentences, about: Fact
) -> tuple[list[Fact], list[str]]:
    """Say how much the change along a column differs between the levels of a category."""
    spreads = np.std([changes_of(one.draws) for one in curves], axis=0)
    ends = float(np.median(spreads)), *interval(spreads).tolist()
    fact = replace(about, predicate="changes differ").moved(*ends)
    first, last = (say.axes[column].end(one) for one in curves[0].places.tolist())
    text = f"the change of {say.y_name} from {first} to {last} of {say.names[column]} differs"
    by = f"with a standard deviation of {say.amount(*ends)}"
    return [say.measured(fact)], [f"{text} between levels of {say.names[other]}, {by}"]


def _of_levels(
    explained: ExplainedFunction, pair: Interaction, say: Sentences, about: Fact
) -> tuple[list[Fact], list[str]]:
    """Say which levels of two categories exceed both effects most, and which fall short most."""
    points = np.unique(explained.X[:, pair.columns], axis=0)
    heights = explained.in_unit(explained.mean_of(pair.effect, points))
    facts, texts = [], []
    for word, at in (("most", np.argmax(heights)), ("least", np.argmin(heights))):
        levels = [
            f"{say.names[column]} is {say.level(column, value)}"
            for column, value in zip(pair.columns, points[at].tolist(), strict=True)
        ]
        fact = replace(about, predicate=f"{word} together", evidence=listing(levels))
        facts.append(say.measured(fact.moved(float(heights[at]), np.nan, np.nan)))
        texts.append(f"where {listing(levels)} ({say.signed(heights[at], np.ptp(heights))})")
    text = f"{say.y_name} exceeds what both effects give most {texts[0]}"
    return facts, [text, f"falls short of it most {texts[1]}"]


def _curves(
    explained: ExplainedFunction,
    columns: tuple[int, int],
    steps: Sequence[FloatArray],
    levels: FloatArray,
) -> list[Curve]:
    """Compute a curve along the first column at each level of the second, which has its steps."""
    lengths, both = [len(one) for one in steps], effect_of(columns)
    points = np.column_stack([np.concatenate(steps), np.repeat(levels, lengths)])
    ends = np.cumsum(lengths)[:-1]
    means = np.split(explained.in_unit(explained.mean_of(both, points)), ends)
    drawn = explained.in_unit(explained.draws_of(both, points, N_DRAWS))
    return list(map(Curve, steps, means, np.split(drawn, ends, axis=1)))
