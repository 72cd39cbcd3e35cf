"""How the effect of a column depends on another one, in words."""

from dataclasses import replace

import numpy as np

from autokernel.explain.decomposition import ExplainedFunction, Interaction
from autokernel.explain.facts import HALF, LIKELY, N_DRAWS, Fact
from autokernel.explain.sentences import MAX_LEVELS, Said, Sentences
from autokernel.explain.words import INTERVAL_ENDS, listing, perhaps
from autokernel.typing import FloatArray

LEVELS = (0.1, 0.9)  # quantiles of a column at which the effect of another one is shown
N_STEPS = 33  # along the column that is followed
OPEN = "may rise or fall"
MULTIPLIED = "kernels in which the columns are multiplied"


def said_of(explained: ExplainedFunction, pair: Interaction, say: Sentences) -> list[Said]:
    """Describe an interaction: the change along a column at two values or levels of the other.

    Of a category of many levels, the standard deviation between them is given, of two categories
    the levels that are highest and lowest together.
    """
    names = say.names[pair.columns[0]], say.names[pair.columns[1]]
    sure = explained.probability_of_interaction(pair.columns)
    fact = Fact(listing(names), "interact", pair.share, probability=sure, evidence=MULTIPLIED)
    facts, texts = _details(explained, pair, say, fact)
    if all(one.predicate == OPEN for one in facts):
        facts, texts = [], []
    text = say.interaction(fact, names, pair.share, texts)
    return [(fact, text), *((one, "") for one in facts)]


def _details(
    explained: ExplainedFunction, pair: Interaction, say: Sentences, about: Fact
) -> tuple[list[Fact], list[str]]:
    values = {column: np.unique(explained.X[:, column]) for column in pair.columns}
    every = [column for column in pair.columns if not say.axes[column].levels]
    if not every:
        return _of_levels(explained, pair, say, about)
    column = max(every, key=lambda one: (len(values[one]) > 2, _reach(explained, one)))
    other = next(one for one in pair.columns if one != column)
    levels, is_one_of_two = values[other], len(values[other]) == 2
    is_category = bool(say.axes[other].levels)
    if not (is_category or is_one_of_two):
        levels = np.quantile(explained.X[:, other], LEVELS)
    low, high = explained.ends(column)
    axis, name = say.axes[column], say.names[column]
    along = f"from {axis.end(low)} to {axis.end(high)} of {name}"
    has_many = is_category and len(levels) > MAX_LEVELS
    steps = np.linspace(low, high, 2 if has_many else N_STEPS)
    curves, drawn = _curves(explained, pair, column, steps, levels)
    if has_many:
        return _between_levels(curves, drawn, say, about, f"{along} differs", say.names[other])
    facts, texts = [], []
    for level, curve, draws in zip(levels.tolist(), curves, drawn, strict=True):
        where = f"{say.names[other]} is {say.level(other, level, is_one_of_two=is_one_of_two)}"
        named = replace(about, subject=f"{name}, where {where}", evidence=along)
        fact = _course(curve, draws, named, reach=float(np.ptp(curves, axis=1).max()))
        by = say.amount(*fact.ends)
        text = perhaps(f"{fact.predicate} by {by}", fact.probability)
        if fact.predicate in ("hardly changes", OPEN):
            text = f"{fact.predicate} ({say.between(fact.low, fact.high)})"
        facts.append(say.measured(fact))
        texts.append(f"{text} where {where}")
    texts[0] = f"{along}, {say.y_name} {texts[0]}"
    return facts, texts


def _course(curve: FloatArray, draws: FloatArray, about: Fact, *, reach: float) -> Fact:
    """Say how a curve (n_points,) changes, by the ends or by the range.

    A curve whose range is not larger than that of its errors goes up and down by chance. One that
    may rise or fall hardly changes if both are small for the largest ``reach`` of the curves.
    """
    most, change, reach = HALF * reach, float(curve[-1] - curve[0]), float(np.ptp(curve))
    by_chance = float(np.quantile(np.ptp(draws - curve, axis=1), INTERVAL_ENDS[1]))
    if abs(change) < HALF * reach and reach > by_chance:
        low, high = np.quantile(np.ptp(draws, axis=1), INTERVAL_ENDS).tolist()
        return replace(about, predicate="goes up and down").moved(reach, low, high)
    changes = draws[:, -1] - draws[:, 0]
    low, high = np.quantile(changes, INTERVAL_ENDS).tolist()
    word, sure = "rises" if change > 0 else "falls", float(np.mean(changes * change > 0))
    if low < 0 < high and max(-low, high) < most:
        word, sure = "hardly changes", 1.0
    elif sure < LIKELY:
        word, sure = OPEN, 1.0
    return replace(about, predicate=word, probability=sure).moved(change, low, high)


def _between_levels(
    curves: FloatArray, drawn: FloatArray, say: Sentences, about: Fact, differs: str, name: str
) -> tuple[list[Fact], list[str]]:
    """Say how much the change along a column differs between the levels of a category."""
    spread = float(np.std(curves[:, -1] - curves[:, 0]))
    low, high = np.quantile(np.std(drawn[..., -1] - drawn[..., 0], axis=0), INTERVAL_ENDS).tolist()
    fact = replace(about, predicate="changes differ").moved(spread, low, high)
    by = say.amount(spread, low, high)
    text = f"the change of {say.y_name} {differs} between levels of {name}"
    return [say.measured(fact)], [f"{text}, with a standard deviation of {by}"]


def _of_levels(
    explained: ExplainedFunction, pair: Interaction, say: Sentences, about: Fact
) -> tuple[list[Fact], list[str]]:
    """Say which levels of two categories are highest and lowest, besides the effects of each."""
    points = np.unique(explained.X[:, pair.columns], axis=0)
    heights = explained.in_unit(explained.interaction(pair.columns, points))
    facts, texts = [], []
    for word, at in (("highest", np.argmax(heights)), ("lowest", np.argmin(heights))):
        levels = [
            f"{say.names[column]} is {say.level(column, value)}"
            for column, value in zip(pair.columns, points[at].tolist(), strict=True)
        ]
        fact = replace(about, predicate=f"{word} together", evidence=listing(levels))
        facts.append(say.measured(fact.moved(float(heights[at]), np.nan, np.nan)))
        texts.append(f"{word} where {listing(levels)} ({say.signed(heights[at], np.ptp(heights))})")
    return facts, [f"besides both effects, {say.y_name} is {texts[0]}", texts[1]]


def _reach(explained: ExplainedFunction, column: int) -> float:
    return max(part.span for part in explained.parts if part.column == column)


def _curves(
    explained: ExplainedFunction,
    pair: Interaction,
    column: int,
    steps: FloatArray,
    levels: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """Compute curves (n_levels, n_steps) along a column at levels of the other, and draws of them.

    The draws have the shape (n_levels, n_draws, n_steps).
    """
    grid = np.array([(step, level) for level in levels.tolist() for step in steps.tolist()])
    points = grid if pair.columns[0] == column else grid[:, ::-1]
    shape = len(levels), len(steps)
    drawn = explained.draws_of_both(pair.columns, points, N_DRAWS)
    of_levels = drawn.reshape(len(drawn), *shape).transpose(1, 0, 2)
    mean = explained.both(pair.columns, points).reshape(shape)
    return explained.in_unit(mean), explained.in_unit(of_levels)
