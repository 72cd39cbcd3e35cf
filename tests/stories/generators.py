"""Data with a known truth, and the claims about them that are true.

A fact is a kind of claim, the columns that it is about, and a number or a sign: what a claim of a
fitted model says, without its words. The facts of a story are those that must be claimed, and
those that may be; every other fact is false.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

NUMBER = 0.1  # relative difference up to which two numbers are the same
Fact = tuple[str, str, float]
"""Kind, columns joined by commas, and a number: a period or a sign, zero where there is none."""


@dataclass(frozen=True)
class Story:
    """Data, and the facts that must and that may be claimed about them."""

    X: pd.DataFrame
    y: pd.Series
    true: frozenset[Fact]
    optional: frozenset[Fact] = frozenset()
    units: Mapping[str, str] = field(default_factory=dict)
    operators: tuple[str, ...] = ("+", "*")


UP, DOWN, NONE, VALUE = 1.0, -1.0, 0.0, np.nan  # the number of a fact; its value where it is nan
KINDS = {
    "rises": ("direction", UP),
    "falls": ("direction", DOWN),
    "rises then falls": ("turn", UP),
    "falls then rises": ("turn", DOWN),
    "goes up and down": ("wiggles", NONE),
    "repeats": ("repeats", VALUE),
    "swing grows": ("swing", UP),
    "swing shrinks": ("swing", DOWN),
    "is higher": ("difference", UP),
    "is lower": ("difference", DOWN),
    "joint effect": ("joint", NONE),
    "matters": ("matters", NONE),
    "does not matter": ("does not matter", NONE),
    "are alike": ("alike", NONE),
    "does not fit": ("outlier", NONE),
    "grows with the prediction": ("spread", UP),
    "shrinks with the prediction": ("spread", DOWN),
    "skewed to above": ("skew", UP),
    "skewed to below": ("skew", DOWN),
}
"""Kinds of facts, and their numbers, by the predicates of claims."""


def facts_of(claims: pd.DataFrame) -> Iterator[tuple[Fact, float]]:
    """Yield the facts that a table of claims states, with their probabilities."""
    for claim in claims.itertuples():
        predicate, subject = claim.predicate.removesuffix(" linearly"), claim.subject
        if predicate not in KINDS:
            continue
        kind, number = KINDS[predicate]
        number = float(claim.value) if np.isnan(number) else number
        columns = ",".join(sorted(set(re.findall(r"\[(\w+)\]", subject))))
        names = re.split(r", | and ", subject)
        if predicate != claim.predicate:
            yield ("line", columns, NONE), claim.probability
        if kind == "outlier":
            found = [(kind, "", float(row)) for row in re.findall(r"\d+", subject)]
        elif kind in ("matters", "does not matter"):
            found = [(kind, name, number) for name in names]
        else:
            columns = ",".join(sorted(names)) if kind == "alike" else columns
            found = [(kind, columns, number)]
        yield from ((fact, claim.probability) for fact in found)


def agrees(fact: Fact, known: frozenset[Fact]) -> bool:
    """Whether a fact is among known ones, up to the accuracy of its number."""
    kind, columns, value = fact
    return any((kind, columns) == (k, c) and abs(value - v) <= NUMBER * abs(v) for k, c, v in known)


def rng_of(name: str, seed: int) -> np.random.Generator:
    return np.random.default_rng([seed, *name.encode()])


def months(n: int) -> np.ndarray:
    return np.arange(float(n))


def _series(x: np.ndarray, name: str, y: np.ndarray, *facts: Fact, **more) -> Story:
    return Story(pd.DataFrame({name: x}), pd.Series(y, name="sales"), frozenset(facts), **more)


def a_line(rng):
    t = np.linspace(2000, 2010, 60)
    y = 3 + 0.8 * (t - 2000) + 0.5 * rng.normal(size=60)
    return _series(t, "year", y, ("line", "year", 0.0), ("direction", "year", 1.0))


def a_line_that_falls(rng):
    t = np.linspace(0, 5, 40)
    return _series(
        t,
        "age",
        -2 * t + 0.8 * rng.normal(size=40),
        ("line", "age", 0.0),
        ("direction", "age", -1.0),
    )


def noise_only(rng):
    return _series(np.linspace(0, 1, 80), "x", 5 + rng.normal(size=80))


def a_season(rng):
    t = months(96)
    y = 2 * np.sin(2 * np.pi * t / 12) + 0.5 * rng.normal(size=96)
    return _series(t, "month", y, ("repeats", "month", 12.0))


def a_trend_with_a_season(rng):
    t = months(96)
    y = 0.1 * t + 2 * np.sin(2 * np.pi * t / 12) + 0.5 * rng.normal(size=96)
    facts = ("repeats", "month", 12.0), ("direction", "month", 1.0)
    return _series(t, "month", y, *facts, optional=frozenset({("line", "month", 0.0)}))


def a_trend_and_a_week(rng):
    t = months(200)
    y = 15 + 0.03 * t + 2 * np.sin(2 * np.pi * t / 7) + 0.7 * rng.normal(size=200)
    facts = ("repeats", "day", 7.0), ("direction", "day", 1.0)
    return _series(t, "day", y, *facts, optional=frozenset({("line", "day", 0.0)}))


def two_seasons(rng):
    t = months(120)
    y = (
        2 * np.sin(2 * np.pi * t / 12)
        + 1.5 * np.sin(2 * np.pi * t / 31)
        + 0.4 * rng.normal(size=120)
    )
    return _series(t, "month", y, ("repeats", "month", 12.0), ("repeats", "month", 31.0))


def a_season_that_grows(rng):
    t = months(120)
    y = (0.5 + 0.03 * t) * np.sin(2 * np.pi * t / 12) + 0.3 * rng.normal(size=120)
    return _series(t, "month", y, ("repeats", "month", 12.0), ("swing", "month", 1.0))


def a_multiplicative_season(rng):
    t = months(120)
    y = np.exp(0.012 * t) * (1 + 0.3 * np.sin(2 * np.pi * t / 12)) + 0.05 * rng.normal(size=120)
    facts = ("repeats", "month", 12.0), ("direction", "month", 1.0)
    return _series(t, "month", y, *facts, optional=frozenset({("swing", "month", 1.0)}))


def a_turn(rng):
    x = np.sort(rng.uniform(0, 10, 70))
    y = -((x - 4) ** 2) + 1.5 * rng.normal(size=70)
    return _series(x, "dose", y, ("turn", "dose", 1.0))


def a_wiggle(rng):
    x = np.sort(rng.uniform(0, 10, 90))
    y = np.sin(1.9 * x) + np.sin(0.8 * x + 1) + 0.2 * rng.normal(size=90)
    wave = frozenset({("repeats", "place", 2 * np.pi / 1.9), ("direction", "place", -1.0)})
    return _series(x, "place", y, ("wiggles", "place", 0.0), optional=wave)


def a_step(rng):
    x = np.linspace(0, 10, 120)
    y = np.where(x < 4, 1.0, 3.0) + 0.1 * rng.normal(size=120)
    optional = {("outlier", "", float(row)) for row in range(44, 52)}
    optional |= {("skew", "", sign) for sign in (1.0, -1.0)}
    return _series(x, "x", y, ("direction", "x", 1.0), optional=frozenset(optional))


def an_interaction(rng):
    n = 150
    X = pd.DataFrame(
        {
            "dose": rng.uniform(0, 10, n),
            "age": rng.uniform(20, 80, n),
            "smoker": rng.integers(0, 2, n),
        }
    )
    y = 2 + 0.8 * X["dose"] * X["smoker"] + 0.05 * X["age"] + 0.35 * rng.normal(size=n)
    true = {("direction", "age", 1.0), ("direction", "dose,smoker", 1.0)}
    true |= {("matters", name, 0.0) for name in X}
    lines = {("line", columns, 0.0) for columns in ("age", "dose,smoker")}
    # the effect of the dose for others is nothing, and its sign is left to chance
    optional = lines | {("direction", "dose,smoker", -1.0), ("wiggles", "dose,smoker", 0.0)}
    return Story(X, y.rename("cost"), frozenset(true), frozenset(optional))


def a_difference(rng):
    n = 100
    X = pd.DataFrame({"dose": rng.uniform(0, 10, n), "treated": rng.integers(0, 2, n)})
    y = 2 + 1.5 * X["treated"] + 0.3 * X["dose"] + 0.4 * rng.normal(size=n)
    true = {("difference", "treated", 1.0), ("direction", "dose", 1.0)}
    true |= {("matters", name, 0.0) for name in X}
    return Story(X, y.rename("cost"), frozenset(true), frozenset({("line", "dose", 0.0)}))


def a_table(rng):
    n = 120
    X = pd.DataFrame(rng.uniform(size=(n, 5)), columns=list("abcde"))
    y = 3 * X["a"] - 2 * X["b"] + np.sin(6 * X["c"]) + 0.3 * rng.normal(size=n)
    true = {("direction", "a", 1.0), ("direction", "b", -1.0), ("wiggles", "c", 0.0)}
    true |= {("matters", name, 0.0) for name in "abc"}
    optional = {("line", "a", 0.0), ("line", "b", 0.0)}
    optional |= {("does not matter", name, 0.0) for name in "de"}
    return Story(X, y.rename("cost"), frozenset(true), frozenset(optional))


def columns_that_are_alike(rng):
    n = 60
    x = rng.uniform(size=n)
    X = pd.DataFrame(
        {"gnp": x, "year": x + 0.02 * rng.normal(size=n), "other": rng.uniform(size=n)}
    )
    y = 2 * x + 0.3 * rng.normal(size=n)
    optional = {
        (kind, c, v) for c in ("gnp", "year") for kind, v in (("direction", 1.0), ("line", 0.0))
    }
    optional |= {("matters", name, 0.0) for name in ("gnp", "year")}
    optional |= {("does not matter", "other", 0.0), ("does not matter", "year", 0.0)}
    return Story(
        X, pd.Series(y, name="cost"), frozenset({("alike", "gnp,year", 0.0)}), frozenset(optional)
    )


def outliers(rng):
    x = np.linspace(0, 10, 120)
    y = 2 * np.sin(x) + 0.3 * x + 0.1 * rng.normal(size=120)
    rows = np.sort(rng.choice(120, 2, replace=False))
    y[rows] += [4.0, -4.0]
    true = {("outlier", "", float(row)) for row in rows} | {("wiggles", "x", 0.0)}
    return _series(x, "x", y, *true)


def a_spread_that_grows(rng):
    x = np.linspace(1, 10, 150)
    y = 2 * x + 0.3 * x * rng.normal(size=150)
    optional = frozenset({("line", "x", 0.0), ("skew", "", 1.0)})
    return _series(x, "x", y, ("direction", "x", 1.0), ("spread", "", 1.0), optional=optional)


def many_columns(rng):
    X = pd.DataFrame(rng.normal(size=(150, 20)), columns=[f"x{i}" for i in range(20)])
    y = np.sin(2 * X["x3"]) + 0.8 * X["x17"] + 0.3 * rng.normal(size=150)
    true = {("matters", "x3", 0.0), ("matters", "x17", 0.0), ("direction", "x17", 1.0)}
    true |= {("wiggles", "x3", 0.0)}
    optional = {("line", "x17", 0.0)}
    optional |= {("does not matter", f"x{i}", 0.0) for i in range(20) if i not in (3, 17)}
    return Story(X, y.rename("cost"), frozenset(true), frozenset(optional))


STORIES: Mapping[str, Callable[[np.random.Generator], Story]] = {
    make.__name__: make
    for make in (
        a_line, a_line_that_falls, noise_only, a_season, a_trend_with_a_season, a_trend_and_a_week,
        two_seasons, a_season_that_grows, a_multiplicative_season, a_turn, a_wiggle, a_step,
        an_interaction, a_difference, a_table, columns_that_are_alike, outliers,
        a_spread_that_grows, many_columns,
    )
}  # fmt: skip


def story(name: str, seed: int) -> Story:
    """Draw the data of a story."""
    return STORIES[name](rng_of(name, seed))
