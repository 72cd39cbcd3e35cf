"""How the effect of a column depends on another one, in words."""

from dataclasses import replace

import numpy as np

from autokernel.explain.decomposition import ExplainedFunction, Interaction
from autokernel.explain.facts import N_DRAWS, Fact
from autokernel.explain.sentences import Said, Sentences
from autokernel.explain.words import INTERVAL_ENDS, listing
from autokernel.typing import FloatArray

LEVELS = (0.1, 0.9)  # quantiles of a column at which the effect of another one is shown
MULTIPLIED = "kernels in which the columns are multiplied"


def said_of(explained: ExplainedFunction, pair: Interaction, say: Sentences) -> list[Said]:
    """Describe an interaction: the change along a column at two values or levels of the other.

    Of a category of more levels, the standard deviation between levels is given.
    """
    names = say.names[pair.columns[0]], say.names[pair.columns[1]]
    sure = explained.probability_of_interaction(pair.columns)
    fact = Fact(listing(names), "interact", pair.share, probability=sure, evidence=MULTIPLIED)
    facts, texts = _details(explained, pair, say, fact)
    text = say.interaction(fact, names, pair.share, texts)
    return [(fact, text), *((one, "") for one in facts)]


def _details(
    explained: ExplainedFunction, pair: Interaction, say: Sentences, about: Fact
) -> tuple[list[Fact], list[str]]:
    every = [column for column in pair.columns if not say.axes[column].levels]
    if not every:
        return [], []  # of two categories
    reach = {column: _reach(explained, column) for column in every}
    column = max(every, key=lambda one: reach[one])
    other = next(one for one in pair.columns if one != column)
    values = np.unique(explained.X[:, other])
    ends = explained.ends(column)
    is_category = bool(say.axes[other].levels) and len(values) > len(LEVELS)
    levels = (
        values if is_category or len(values) == 2 else np.quantile(explained.X[:, other], LEVELS)
    )
    changes, drawn = _changes(explained, pair, column, levels, ends)
    axis, name = say.axes[column], say.names[column]
    along = f"from {axis.end(ends[0])} to {axis.end(ends[1])} of {name}"
    if is_category:
        spread = float(changes.std())
        low, high = np.quantile(drawn.std(axis=1), INTERVAL_ENDS).tolist()
        sure = about.probability
        fact = Fact(about.subject, "changes differ", spread, low, high, "", sure, along)
        text = f"the change of {say.target} {along} differs between levels of {say.names[other]}"
        by = say.amount(spread, low, high)
        return [say.measured(fact)], [f"{text}, with a standard deviation of {by}"]
    facts, texts = [], []
    for level, change, of_draws in zip(levels.tolist(), changes.tolist(), drawn.T, strict=True):
        low, high = np.quantile(of_draws, INTERVAL_ENDS).tolist()
        word = "rises" if change > 0 else "falls"
        where = f"{say.names[other]} is {say.level(other, level, is_one_of_two=len(values) == 2)}"
        fact = replace(about, subject=f"{name}, where {where}", predicate=word, evidence=along)
        facts.append(say.measured(fact.moved(change, low, high)))
        texts.append(f"{word} by {say.amount(change, low, high)} where {where}")
    texts[0] = f"{along}, {say.target} {texts[0]}"
    return facts, texts


def _reach(explained: ExplainedFunction, column: int) -> float:
    own = [part for part in explained.parts if part.column == column]
    return max(part.span for part in own)


def _changes(
    explained: ExplainedFunction,
    pair: Interaction,
    column: int,
    levels: FloatArray,
    ends: tuple[float, float],
) -> tuple[FloatArray, FloatArray]:
    """Compute the changes (n_levels,) along a column at levels of the other, and draws of them."""
    grid = np.array([(end, level) for end in ends for level in levels.tolist()])
    points = grid if pair.columns[0] == column else grid[:, ::-1]
    mean = explained.both(pair.columns, points)
    drawn = explained.draws_of_both(pair.columns, points, N_DRAWS)
    n = len(levels)
    return mean[n:] - mean[:n], drawn[:, n:] - drawn[:, :n]
