"""What is claimed of data with a known truth is true, and what is true is claimed."""

import re

import pandas as pd
import pytest

from autokernel import AutoKernelGPRegressor
from tests.stories.generators import STORIES, agrees, facts_of, story
from tests.stories.reading import Reader

QUICK = ("a_line", "noise_only", "a_trend_with_a_season", "a_turn", "a_difference", "outliers")


def fitted(name, seed):
    found = story(name, seed)
    model = AutoKernelGPRegressor(operators=found.operators, random_state=seed)
    return found, model.fit(found.X, found.y)


@pytest.mark.parametrize(
    ("name", "seed"),
    [
        *((name, 0) for name in QUICK),
        *(pytest.param(name, seed, marks=pytest.mark.slow) for name in STORIES for seed in (0, 7)),
    ],
)
def test_claims_are_true_and_what_is_true_is_claimed(name, seed):
    found, model = fitted(name, seed)
    facts = dict(facts_of(pd.DataFrame(model.claims_)))
    false = {fact: p for fact, p in facts.items() if not agrees(fact, found.true | found.optional)}
    assert not {fact for fact, p in false.items() if p > 0.9}
    made = frozenset(facts)
    assert not {fact for fact in found.true if not agrees(fact, made)}
    assert not list(Reader(model, found.X, found.y).wrong())


@pytest.mark.parametrize("name", ["a_line", "a_trend_with_a_season"])
def test_numbers_of_claims_are_those_of_predictions(name):
    """A program that has only ``predict`` and the words finds the same numbers."""
    found, model = fitted(name, 0)
    (column,) = found.X
    x = found.X[column]
    text = model.describe()
    slope = float(re.search(r"rises by (\S+) per unit", text)[1])
    period = re.search(r"repeats every (\S+) \(", text)
    span = x.max() - x.min()
    if period:  # whole periods, along which the season is the same at both ends
        span = float(period[1]) * (span // float(period[1]))
    ends = pd.DataFrame({column: [x.min(), x.min() + span]})
    first, last = model.predict(ends)
    assert (last - first) / span == pytest.approx(slope, rel=0.1)
