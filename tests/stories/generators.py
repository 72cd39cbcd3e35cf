"""Data with a known truth, and the claims about them that are true.

A fact is a kind of claim, the columns that it is about, and a number or a sign: what a claim of a
fitted model says, without its words. The facts of a story are those that must be claimed, and
those that may be; every other fact is false. The truth is the function that the data are drawn
from, and what it does beyond the data; what no data can decide may be claimed. To say that
something is open claims nothing, unless it is said that the data cannot tell it.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from inspect import isfunction, signature
from itertools import combinations

import numpy as np
import pandas as pd

ACCURACY = {  # relative difference that is allowed, by kind
    "noise": 1 / 3,
    "outlier": 0.0,
    "carried": 0.0,
    "half way": 1 / 4,
}
NUMBER = 0.1  # the same for other kinds
YEAR = 365.25  # days

Fact = tuple[str, str, float]
"""Kind, columns joined by commas, and a number: a period or a sign, zero where there is none."""
Facts = frozenset[Fact]


@dataclass(frozen=True)
class Story:
    """Data, and the facts that must and that may be claimed about them."""

    X: pd.DataFrame
    y: pd.Series
    true: Facts
    optional: Facts = frozenset()
    operators: tuple[str, ...] = ("+", "*")


UP, DOWN, NONE = 1.0, -1.0, 0.0  # the number of a fact
VALUE, SIGN = np.nan, np.inf  # it is the value of the claim, or its sign
ANY = np.nan  # a known fact with each number
KINDS = {
    "noise": ("noise", VALUE),
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
    "interact": ("interaction", NONE),
    "differ by": ("differ", NONE),
    "swings": ("swings", NONE),
    "cannot be told": ("untold", NONE),
    "rises within groups": ("within", UP),
    "falls within groups": ("within", DOWN),
    "rises between groups": ("between", UP),
    "falls between groups": ("between", DOWN),
    "repeats beyond": ("lasts", NONE),
    "fades beyond": ("fades", NONE),
    "continues beyond": ("beyond", SIGN),
    "changes beyond": ("beyond", SIGN),
    "returns beyond": ("returns", NONE),
    "matters": ("matters", NONE),
    "is not used": ("does not matter", NONE),
    "is carried by a row": ("carried", NONE),
    "share a day": ("days", NONE),
    "are alike": ("alike", NONE),
    "does not fit": ("outlier", NONE),
    "excluded": ("outlier", NONE),
    "grows with the prediction": ("spread", UP),
    "shrinks with the prediction": ("spread", DOWN),
    "skewed to above": ("skew", UP),
    "skewed to below": ("skew", DOWN),
}
"""Kinds of facts, and their numbers, by the predicates of claims."""


def facts_of(claims: pd.DataFrame) -> Iterator[tuple[Fact, float]]:
    """Yield the facts that a table of claims states, with their probabilities.

    Noise that is a factor grows with the prediction. What grows or is skewed to above on the scale
    of a log or a root does so for the target, too; the opposite says nothing of the target.
    """
    has_scale = claims["text"].str.contains(r"\b(?:log|root|logit) scale").any()
    for claim in claims.itertuples():
        predicate, subject = claim.predicate.removesuffix(" linearly"), claim.subject
        of_scale = "^(rises|falls) (exponentially.*|with the .*|as a power.*)"
        predicate = re.sub(of_scale, r"\1", predicate)
        no_change = 1.0 if claim.unit.startswith("factor") else 0.0
        predicate = re.sub("^(grows|shrinks) with .*", r"\1 with the prediction", predicate)
        predicate = re.sub("^(rises|falls) (within|between) .*", r"\1 \2 groups", predicate)
        if predicate == "noise" and claim.unit.startswith("factor"):
            predicate = "grows with the prediction"
        kind, number = KINDS.get(predicate, ("", NONE))
        if not kind or (has_scale and kind in ("spread", "skew") and number == DOWN):
            continue
        if np.isnan(number):
            number = float(claim.value)
        elif np.isinf(number):
            number = float(np.sign(claim.value - no_change))
        columns = columns_of(subject)
        if claim.predicate.endswith(" linearly"):
            yield ("line", columns, NONE), claim.probability
        if kind == "interaction" and (ratio := ratio_of_half_ways(claim.text)) > 1:
            yield ("half way", columns, ratio), claim.probability
        yield from ((one, claim.probability) for one in said_of(kind, subject, number, claim.text))


def said_of(kind: str, subject: str, number: float, text: str) -> list[Fact]:
    """Return the facts of one kind: of a row, a column or a pair each, or of the whole subject."""
    names = re.split(r", | and ", subject)
    if kind in ("outlier", "carried"):
        named = re.sub(r"^\d+ rows|and \d+ more", "", subject)
        rows = re.findall(r"\d+", named) if kind == "outlier" else re.findall(r"Row (\d+)", text)
        return [(kind, "", float(row)) for row in rows]
    if kind in ("matters", "does not matter"):
        return [(kind, name, number) for name in names]
    if kind == "alike":
        return [(kind, ",".join(pair), number) for pair in combinations(sorted(names), 2)]
    return [(kind, "" if kind == "days" else columns_of(subject), number)]


def ratio_of_half_ways(text: str) -> float:
    """Return the ratio of the places until which half of each change happens, one without them."""
    places = [float(one) for one in re.findall(r"half of it until (\d+(?:\.\d+)?)", text)]
    return max(places) / min(places) if len(places) > 1 and min(places) > 0 else 1.0


def columns_of(subject: str) -> str:
    """Return the columns that a claim is about: by a kernel, a pair, or a curve at a value."""
    in_kernel = re.findall(r"\[(?:\w+\()?(\w+)(?: \+ [\d.]+)?\)?\]", subject)
    pair = re.fullmatch(r"(\w+)(?: and (\w+)|, where (\w+) is .+)", subject)
    names = in_kernel or [one for one in (pair.groups() if pair else [subject]) if one]
    return ",".join(sorted({*names} - {"y", "noise"}))


def agrees(fact: Fact, known: Facts) -> bool:
    """Whether a fact is among known ones, up to the accuracy of its number."""
    kind, columns, value = fact
    accuracy = ACCURACY.get(kind, NUMBER)
    numbers = (v for k, c, v in known if (k, c) == (kind, columns))
    sizes = ((v, accuracy * max(abs(value), abs(v))) for v in numbers)
    return any(np.isnan(v) or abs(value - v) <= most for v, most in sizes)


def ways_to_interact(known: Facts) -> Facts:
    """Return what may be said of how columns interact, where the data can tell it."""
    of_kind = {kind: {c for one, c, _ in known if one == kind} for kind, *_ in known}
    pairs, halves, seasons = (
        of_kind.get(one, set()) for one in ("interaction", "half way", "repeats")
    )
    pairs = pairs - of_kind.get("untold", set())
    waves = {pair for pair in pairs if seasons & {*pair.split(",")}}
    others = pairs - halves  # curves that are half way elsewhere may change as much
    ways = {"differ": others, "half way": others, "swings": waves}
    return frozenset((kind, columns, ANY) for kind, every in ways.items() for columns in every)


def rng_of(name: str, seed: int) -> np.random.Generator:
    return np.random.default_rng([seed, *name.encode()])


# Facts that belong together


def facts(kind: str, columns: str = "", *numbers: float) -> Facts:
    return frozenset((kind, columns, float(number)) for number in numbers or (NONE,))


def rises(columns: str) -> Facts:
    return facts("direction", columns, UP)


def falls(columns: str) -> Facts:
    return facts("direction", columns, DOWN)


def line(column: str, sign: float) -> Facts:
    """A straight line, which goes on beyond the data."""
    return facts("line", column) | facts("direction", column, sign) | facts("beyond", column, sign)


def season(column: str, period: float) -> Facts:
    """A season that lasts."""
    return facts("repeats", column, period) | facts("lasts", column)


def matter(columns: Iterable[str]) -> Facts:
    return frozenset(("matters", column, NONE) for column in columns)


def idle(columns: Iterable[str]) -> Facts:
    return frozenset(("does not matter", column, NONE) for column in columns)


def alike(columns: Iterable[str]) -> Facts:
    pairs = combinations(sorted(columns), 2)
    return frozenset(("alike", ",".join(pair), NONE) for pair in pairs)


def anything_beyond(column: str) -> Facts:
    """What may be said of a curve whose way beyond the data nobody knows from them."""
    return facts("beyond", column, UP, DOWN) | facts("returns", column)


def either_of(columns: Iterable[str], cause: str, sign: float) -> Facts:
    """What may be said of columns that are alike, one of which is the cause."""
    known = matter(columns) | idle(set(columns) - {cause})
    return known.union(*(line(column, sign) for column in columns))


def noise(deviation: float) -> Facts:
    return facts("noise", "", deviation)


def story_of(x: Mapping[str, np.ndarray] | pd.DataFrame, y: np.ndarray, *args, **more) -> Story:
    return Story(pd.DataFrame(x), pd.Series(np.asarray(y), name="sales"), *args, **more)


def months(n: int) -> np.ndarray:
    return np.arange(float(n))


def dates(start: str, n: int, frequency: str) -> tuple[pd.DatetimeIndex, np.ndarray]:
    """Return dates, and the days since the first of them."""
    found = pd.date_range(start, periods=n, freq=frequency)
    return found, (found - found[0]).days.to_numpy(float)


def wave(t: np.ndarray, period: float) -> np.ndarray:
    return np.sin(2 * np.pi * t / period)


# The stories of a review by a new user


def a_step(rng):
    x = np.linspace(0, 10, 120)
    y = np.where(x < 4, 1.0, 3.0) + 0.1 * rng.normal(size=120)
    optional = facts("outlier", "", *range(44, 52)) | facts("skew", "", UP, DOWN)
    return story_of({"x": x}, y, rises("x") | noise(0.1), optional)


def forty_columns(rng):
    X = pd.DataFrame(rng.normal(size=(100, 40)), columns=[f"x{i}" for i in range(40)])
    y = np.sin(2 * X["x3"]) + 0.5 * X["x17"] + 0.3 * rng.normal(size=100)
    true = matter(["x3", "x17"]) | facts("wiggles", "x3") | rises("x17") | noise(0.3)
    optional = line("x17", UP) | season("x3", np.pi) | anything_beyond("x3")
    return story_of(X, y, true, optional | idle(set(X) - {"x3", "x17"}))


def an_interaction(rng):
    dose, age = rng.uniform(0, 10, 150), rng.uniform(20, 80, 150)
    smoker = rng.integers(0, 2, 150)
    y = 2 + 0.8 * dose * smoker + 0.05 * age + 0.35 * rng.normal(size=150)
    true = matter(["dose", "age", "smoker"]) | rises("age") | rises("dose") | noise(0.35)
    true |= facts("interaction", "dose,smoker") | rises("dose,smoker")
    true |= facts("difference", "smoker", UP)
    # the effect of the dose for others is nothing, and its sign is left to chance
    optional = falls("dose,smoker") | line("age", UP) | line("dose", UP)
    return story_of({"dose": dose, "age": age, "smoker": smoker}, y, true, optional)


def a_week_over_dates(rng):
    date, t = dates("2022-01-01", 240, "D")
    y = 1500 + 1.2 * t + 400 * wave(t, 7) + 120 * rng.normal(size=240)
    true = season("date", 7) | rises("date") | noise(120)
    return story_of({"date": date}, y, true, line("date", UP))


def a_multiplicative_season(rng):
    t = months(120)
    y = np.exp(0.012 * t) * (1 + 0.3 * wave(t, 12)) + 0.05 * rng.normal(size=120)
    true = season("month", 12) | rises("month") | noise(0.05)
    optional = facts("beyond", "month", UP) | facts("swing", "month", UP)
    return story_of({"month": t}, y, true, optional)


def carbon_dioxide(rng):
    date, t = dates("1985-01-01", 144, "MS")
    cycle = 3 * wave(t, YEAR) + 0.8 * wave(t + 50, YEAR / 2)
    y = 346 + 1.3 * t / YEAR + 0.02 * (t / YEAR) ** 2 + cycle + 0.3 * rng.normal(size=144)
    true = season("date", YEAR) | rises("date") | facts("beyond", "date", UP) | noise(0.3)
    return story_of({"date": date}, y, true, facts("line", "date"))


def longley(rng):
    year = np.arange(1947.0, 1963.0)
    X = {
        "year": year,
        "product": 235 + 21 * (year - 1947) + 6 * rng.normal(size=16),
        "people": 107 + 1.5 * (year - 1947) + 0.3 * rng.normal(size=16),
        "unemployed": 320 + 95 * rng.normal(size=16),
        "armed": 260 + 70 * rng.normal(size=16),
    }
    drawn = 0.3 * rng.normal(size=16)
    y = 53 + 0.035 * X["product"] - 0.01 * X["unemployed"] + drawn
    group = ["year", "product", "people"]
    # so few rows do not show the deviation from which their noise was drawn
    true = alike(group) | matter(["unemployed"]) | falls("unemployed") | noise(drawn.std())
    optional = either_of(group, "product", UP) | line("unemployed", DOWN) | idle(["armed"])
    return story_of(X, y, true, optional)


def a_change_point(rng):
    x = np.linspace(0, 10, 120)
    y = np.where(x < 4, 6 - 1.5 * x, wave(x, 1)) + 0.2 * rng.normal(size=120)
    true = falls("x") | season("x", 1) | noise(0.2)
    return story_of({"x": x}, y, true, facts("line", "x"), operators=("+", "*", "cp"))


def gross_outliers(rng):
    x = np.linspace(0, 10, 120)
    y = 2 * np.sin(x) + 0.3 * x + 0.1 * rng.normal(size=120)
    rows = rng.choice(120, 6, replace=False)
    y[rows] += 15 * rng.choice([-1, 1], 6)
    optional = facts("wiggles", "x") | season("x", 2 * np.pi) | anything_beyond("x")
    optional |= noise(0.1) | noise(15 * 0.05**0.5)
    return story_of({"x": x}, y, facts("outlier", "", *rows), optional)


# Curves


def a_line(rng):
    t = np.linspace(2000, 2010, 60)
    y = 3 + 0.8 * (t - 2000) + 0.5 * rng.normal(size=60)
    return story_of({"year": t}, y, line("year", UP) | noise(0.5))


def a_faint_line(rng):
    x = rng.uniform(0, 10, 100)
    y = 20 - 0.35 * x + 2 * rng.normal(size=100)
    return story_of({"age": x}, y, falls("age") | noise(2), line("age", DOWN))


def noise_only(rng):
    return story_of({"x": np.linspace(0, 1, 80)}, 5 + rng.normal(size=80), noise(1))


def a_turn(rng):
    x = np.sort(rng.uniform(0, 10, 70))
    y = -((x - 4) ** 2) + 1.5 * rng.normal(size=70)
    true = facts("turn", "dose", UP) | noise(1.5)
    return story_of({"dose": x}, y, true, facts("beyond", "dose", DOWN))


def a_wiggle(rng):
    x = np.sort(rng.uniform(0, 10, 90))
    y = np.sin(1.9 * x) + np.sin(0.8 * x + 1) + 0.2 * rng.normal(size=90)
    # the faster wave is one that lasts, and the slower one ends lower than it begins
    optional = season("place", 2 * np.pi / 1.9) | falls("place") | anything_beyond("place")
    optional |= facts("wiggles", "place") | facts("turn", "place", DOWN)
    return story_of({"place": x}, y, noise(0.2), optional)


def an_exponential_growth(rng):
    x = np.linspace(0, 5, 60)
    y = np.exp(0.8 * x) + 1.5 * rng.normal(size=60)
    return story_of({"week": x}, y, rises("week") | facts("beyond", "week", UP) | noise(1.5))


def a_saturation(rng):
    x, drawn = np.linspace(0, 10, 25), 0.3 * rng.normal(size=25)
    true = rises("dose") | noise(drawn.std())
    y = 5 * (1 - np.exp(-x / 1.5)) + drawn
    return story_of({"dose": x}, y, true, facts("beyond", "dose", UP))


# Seasons


def a_season(rng):
    t = months(96)
    y = 2 * wave(t, 12) + 0.5 * rng.normal(size=96)
    return story_of({"month": t}, y, season("month", 12) | noise(0.5))


def a_trend_with_a_season(rng):
    t = months(96)
    y = 0.1 * t + 2 * wave(t, 12) + 0.5 * rng.normal(size=96)
    true = season("month", 12) | rises("month") | facts("beyond", "month", UP) | noise(0.5)
    return story_of({"month": t}, y, true, facts("line", "month"))


def a_slow_and_a_fast_season(rng):
    t = months(300)
    y = 2 * wave(t, 50) + 1.5 * wave(t, 6) + 0.5 * rng.normal(size=300)
    return story_of({"month": t}, y, season("month", 50) | season("month", 6) | noise(0.5))


def a_season_that_grows(rng):
    t = months(120)
    y = (0.5 + 0.03 * t) * wave(t, 12) + 0.3 * rng.normal(size=120)
    return story_of({"month": t}, y, season("month", 12) | facts("swing", "month", UP) | noise(0.3))


def a_damped_oscillation(rng):
    x = np.linspace(0, 10, 120)
    y = 3 * np.exp(-x / 4) * wave(x, 1.25) + 0.15 * rng.normal(size=120)
    true = facts("repeats", "second", 1.25) | facts("swing", "second", DOWN) | noise(0.15)
    return story_of({"second": x}, y, true, facts("fades", "second") | facts("wiggles", "second"))


def a_season_with_a_break(rng):
    t = months(120)
    y = 2 * wave(t, 12) + 4 * (t >= 60) + 0.5 * rng.normal(size=120)
    true = season("month", 12) | rises("month") | noise(0.5)
    return story_of({"month": t}, y, true, facts("outlier", "", *range(57, 63)))


def a_season_on_a_turn(rng):
    t = months(120)
    y = -((t - 50) ** 2) / 250 + 2 * wave(t, 12) + 0.5 * rng.normal(size=120)
    true = season("month", 12) | facts("turn", "month", UP) | noise(0.5)
    return story_of({"month": t}, y, true, facts("beyond", "month", DOWN))


def weeks_of_three_years(rng):
    date, t = dates("2020-01-05", 156, "W")
    y = 20 + 3 * wave(t, YEAR) + rng.normal(size=156)
    return story_of({"date": date}, y, season("date", YEAR) | noise(1))


# Tables


def a_difference(rng):
    X = {"dose": rng.uniform(0, 10, 100), "treated": rng.integers(0, 2, 100)}
    y = 2 + 1.5 * X["treated"] + 0.3 * X["dose"] + 0.4 * rng.normal(size=100)
    true = matter(X) | facts("difference", "treated", UP) | rises("dose") | noise(0.4)
    return story_of(X, y, true, line("dose", UP))


def two_switches(rng):
    X = {
        "dose": rng.uniform(0, 10, 150),
        "female": rng.integers(0, 2, 150),
        "treated": rng.uniform(size=150) < 0.4,
    }
    y = 2 * X["treated"] + (0.3 + 0.5 * X["female"]) * X["dose"] + 0.5 * rng.normal(size=150)
    true = matter(X) | rises("dose") | rises("dose,female") | noise(0.5)
    true |= facts("interaction", "dose,female")
    true |= facts("difference", "treated", UP) | facts("difference", "female", UP)
    return story_of(X, y, true, line("dose", UP))


def an_age_limit(rng):
    X = {"age": rng.uniform(20, 80, 150), "income": rng.uniform(1, 5, 150)}
    y = 2 * (X["age"] >= 65) + 0.4 * X["income"] + 0.3 * rng.normal(size=150)
    true = matter(X) | rises("age") | rises("income") | noise(0.3)
    near = np.flatnonzero(np.abs(X["age"] - 65) < 2)
    return story_of(X, y, true, line("income", UP) | facts("outlier", "", *near))


def a_table(rng):
    X = pd.DataFrame(rng.uniform(size=(120, 5)), columns=list("abcde"))
    y = 3 * X["a"] - 2 * X["b"] + np.sin(6 * X["c"]) + 0.3 * rng.normal(size=120)
    true = matter("abc") | rises("a") | falls("b") | facts("wiggles", "c") | noise(0.3)
    return story_of(X, y, true, line("a", UP) | line("b", DOWN) | anything_beyond("c") | idle("de"))


def six_columns(rng):
    X = pd.DataFrame(rng.uniform(size=(150, 6)), columns=list("abcdef"))
    curves = np.sin(6 * X["c"]) + 8 * (X["d"] - 0.5) ** 2 + np.exp(2 * X["e"]) / 3
    y = 2 * X["a"] - 2 * X["b"] + curves + 1.5 * X["f"] + 0.3 * rng.normal(size=150)
    shapes = rises("a") | falls("b") | facts("wiggles", "c") | facts("turn", "d", DOWN)
    true = matter(X) | shapes | rises("e") | rises("f") | noise(0.3)
    optional = line("a", UP) | line("b", DOWN) | line("f", UP)
    optional |= anything_beyond("c") | facts("beyond", "d", UP) | facts("beyond", "e", UP)
    return story_of(X, y, true, optional)


def one_column_of_ten(rng):
    X = pd.DataFrame(rng.uniform(-3, 3, size=(100, 10)), columns=[f"x{i}" for i in range(10)])
    y = -0.5 * X["x4"] ** 2 + 0.5 * rng.normal(size=100)
    true = matter(["x4"]) | facts("turn", "x4", UP) | noise(0.5)
    return story_of(X, y, true, idle(set(X) - {"x4"}) | facts("beyond", "x4", DOWN))


def noise_in_a_table(rng):
    X = pd.DataFrame(rng.normal(size=(100, 10)), columns=[f"x{i}" for i in range(10)])
    return story_of(X, 5 + 2 * rng.normal(size=100), noise(2), idle(X))


def a_product(rng):
    X = {"length": rng.uniform(1, 5, 120), "width": rng.uniform(1, 5, 120)}
    y = 0.5 * X["length"] * X["width"] + 0.5 * rng.normal(size=120)
    true = matter(X) | rises("length") | rises("width") | noise(0.5)
    true |= facts("interaction", "length,width") | rises("length,width")
    return story_of(X, y, true, line("length", UP) | line("width", UP))


def a_ratio(rng):
    X = {"mass": rng.uniform(1, 10, 120), "volume": rng.uniform(1, 5, 120)}
    y = X["mass"] / X["volume"] + 0.2 * rng.normal(size=120)
    true = matter(X) | rises("mass") | falls("volume") | noise(0.2)
    true |= facts("interaction", "mass,volume")
    # one of them is followed at two values of the other
    optional = rises("mass,volume") | falls("mass,volume") | line("mass", UP)
    optional |= facts("beyond", "volume", DOWN)
    return story_of(X, y, true, optional)


def slopes_of_groups(rng):
    dose, site = rng.uniform(0, 10, 80), rng.choice(["north", "south", "east", "west"], 80)
    slopes = pd.Series({"north": 0.2, "south": 0.8, "east": 1.4, "west": 2.0})
    y = 5 + slopes[site].to_numpy() * dose + 0.5 * rng.normal(size=80)
    X = {"dose": dose, "site": site}
    true = matter(X) | rises("dose") | rises("dose,site") | noise(0.5)
    true |= facts("interaction", "dose,site")
    return story_of(X, y, true, line("dose", UP))


def two_that_multiply(rng):
    X = {"tilt": rng.uniform(-1, 1, 80), "wind": rng.uniform(1, 5, 80)}
    y = 2 * X["tilt"] * X["wind"] + 0.5 * rng.normal(size=80)
    true = matter(X) | facts("interaction", "tilt,wind") | rises("tilt") | noise(0.5)
    # the mean of the tilt is nearly zero, and with it the effect of the wind
    chance = line("wind", UP) | line("wind", DOWN) | falls("tilt,wind")
    return story_of(X, y, true, chance | line("tilt", UP) | rises("tilt,wind"))


def a_cause_and_its_shadow(rng):
    length = rng.normal(50, 10, 80)
    X = {"length": length, "mass": 2 * length + 9 * rng.normal(size=80)}  # correlation 0.91
    y = 0.3 * (length - 50) + rng.normal(size=80)
    true = matter(["length"]) | rises("length") | noise(1)
    return story_of(X, y, true, line("length", UP) | idle(["mass"]))


def two_groups_of_columns(rng):
    height, weight = rng.uniform(size=(2, 80))
    X = {
        "height": height,
        "arm": height + 0.03 * rng.normal(size=80),
        "leg": height + 0.03 * rng.normal(size=80),
        "weight": weight,
        "waist": weight + 0.03 * rng.normal(size=80),
    }
    y = 2 * height - 1.5 * weight + 0.3 * rng.normal(size=80)
    tall, heavy = ["height", "arm", "leg"], ["weight", "waist"]
    optional = either_of(tall, "height", UP) | either_of(heavy, "weight", DOWN)
    return story_of(X, y, alike(tall) | alike(heavy) | noise(0.3), optional)


def idle_columns(rng):
    dose = rng.uniform(0, 10, 60)
    weekend, site = rng.uniform(size=60) < 0.3, np.full(60, 4.0)
    X = {"dose": dose, "copy": dose, "weekend": weekend, "site": site}
    y = 0.5 * dose + 0.4 * rng.normal(size=60)
    pair = ["dose", "copy"]
    optional = either_of(pair, "dose", UP) | idle(["weekend", "site"])
    return story_of(X, y, alike(pair) | noise(0.4), optional)


# Tables whose columns act together, groups with slopes, and columns that go together


def subjects_with_slopes(rng):
    subject, day = np.repeat(np.arange(18), 8), np.tile(np.arange(8.0), 18)
    level, slope = 25 * rng.normal(size=18), 10 + 6 * rng.normal(size=18)
    y = 250 + level[subject] + slope[subject] * day + 10 * rng.normal(size=144)
    X = {"day": day, "subject": [f"s{one:02d}" for one in subject]}
    true = matter(X) | rises("day") | facts("interaction", "day,subject") | noise(10)
    return story_of(X, y, true, line("day", UP))


def a_group_that_does_not_respond(rng):
    dose, before = rng.uniform(0, 10, 150), rng.normal(50, 5, 150)
    strain = rng.choice(["mutant", "tame", "wild"], 150)
    slopes = pd.Series({"mutant": 0.0, "tame": 1.0, "wild": 1.4})
    y = 0.4 * before + slopes[strain].to_numpy() * dose + rng.normal(size=150)
    X = {"dose": dose, "before": before, "strain": strain}
    true = matter(X) | rises("dose") | rises("before") | noise(1)
    true |= facts("interaction", "dose,strain") | rises("dose,strain")
    # the dose does nothing to mutants, and the sign of that is left to chance
    return story_of(X, y, true, line("dose", UP) | line("before", UP) | falls("dose,strain"))


def shops_with_promotions(rng):
    month, t = dates("2018-01-01", 48, "MS")
    shop = np.repeat(["airport", "centre", "harbour", "suburb"], 48)
    levels = pd.Series({"airport": 60.0, "centre": 35.0, "harbour": 20.0, "suburb": 0.0})
    promotion = rng.integers(0, 2, 192)
    y = 200 + levels[shop].to_numpy() + np.tile(15 * wave(t, YEAR), 4) + 12 * promotion
    X = {"date": np.tile(month, 4), "shop": shop, "promotion": promotion}
    true = matter(X) | season("date", YEAR) | facts("difference", "promotion", UP) | noise(6)
    return story_of(X, y + 6 * rng.normal(size=192), true)


def growth_with_a_diet(rng):
    pup, week = np.repeat(np.arange(21), 7), np.tile(np.arange(7.0), 21)
    gain = np.array([5.0, 6.5, 9.0])[pup % 3]
    y = 40 + 4 * rng.normal(size=21)[pup] + gain * week + 1.5 * rng.normal(size=147)
    diet = np.array(["bran", "fish", "soy"])[pup % 3]
    X = {"week": week, "diet": diet, "pup": [f"p{one:02d}" for one in pup]}
    true = matter(["week", "pup"]) | rises("week") | noise(1.5)
    # each pup has one diet, so that its own gain explains as much as that of its diet
    optional = facts("interaction", "diet,week") | facts("interaction", "pup,week")
    optional |= rises("diet,week") | facts("interaction", "diet,pup")
    return story_of(X, y, true, optional | line("week", UP) | matter(["diet"]) | idle(["diet"]))


def a_product_of_three(rng):
    X = pd.DataFrame(rng.uniform(1, 5, size=(180, 3)), columns=["height", "length", "width"])
    y = X.prod(axis=1) + 4 * rng.normal(size=180)
    pairs = [",".join(pair) for pair in combinations(X, 2)]
    true = matter(X).union(*map(rises, X)) | noise(4)
    true |= frozenset().union(*(facts("interaction", pair) | rises(pair) for pair in pairs))
    return story_of(X, y, true, frozenset().union(*(line(column, UP) for column in X)))


def a_saddle(rng):
    X = pd.DataFrame(rng.uniform(-1, 1, size=(120, 2)), columns=["pitch", "roll"])
    y = 4 * X["pitch"] * X["roll"] + 0.4 * rng.normal(size=120)
    true = matter(X) | facts("interaction", "pitch,roll") | noise(0.4)
    true |= rises("pitch,roll") | falls("pitch,roll")
    # the means of both are nearly zero, and with them the effect of each
    chance = (line(column, sign) for column in X for sign in (UP, DOWN))
    return story_of(X, y, true, frozenset().union(*chance))


def a_cure_for_some(rng):
    site, treated = rng.choice(["bone", "lung", "skin"], 150), rng.integers(0, 2, 150)
    gains, levels = (pd.Series(one, ["bone", "lung", "skin"]) for one in ([6, 2, -2], [0, 3, 4]))
    age = rng.uniform(20, 80, 150)
    y = levels[site].to_numpy() + gains[site].to_numpy() * treated + 0.05 * age
    X = {"site": site, "treated": treated, "age": age}
    true = matter(X) | facts("difference", "treated", UP) | rises("age") | noise(0.8)
    true |= facts("interaction", "site,treated") | rises("site,treated") | falls("site,treated")
    return story_of(X, y + 0.8 * rng.normal(size=150), true, line("age", UP))


def three_columns_go_together(rng):
    size = rng.normal(size=160)
    X = {
        "length": 50 + 10 * size,
        "mass": 100 + 20 * (0.9 * size + 0.19**0.5 * rng.normal(size=160)),
        "girth": 30 + 5 * (0.9 * size + 0.19**0.5 * rng.normal(size=160)),
        "heat": rng.uniform(10, 30, 160),
    }
    y = 0.4 * X["length"] - 0.3 * X["heat"] + 1.5 * rng.normal(size=160)
    true = matter(["length", "heat"]) | rises("length") | falls("heat") | noise(1.5)
    return story_of(X, y, true, line("length", UP) | line("heat", DOWN) | idle(["mass", "girth"]))


def a_price_over_dates(rng):
    date, t = dates("2019-01-06", 160, "W")
    X = {"date": date, "price": rng.uniform(2, 6, 160), "holiday": rng.uniform(size=160) < 0.15}
    y = 100 + 10 * wave(t, YEAR) - 5 * X["price"] + 9 * X["holiday"] + 4 * rng.normal(size=160)
    true = matter(X) | season("date", YEAR) | falls("price") | noise(4)
    true |= facts("difference", "holiday", UP)
    return story_of(X, y, true, line("price", DOWN))


def a_limit_that_changes_a_slope(rng):
    X = {"age": rng.uniform(20, 80, 150), "dose": rng.uniform(0, 10, 150)}
    y = (0.5 + 1.5 * (X["age"] >= 50)) * X["dose"] + rng.normal(size=150)
    true = matter(X) | rises("age") | rises("dose") | noise(1)
    true |= facts("interaction", "age,dose") | rises("age,dose")
    near = np.flatnonzero(np.abs(X["age"] - 50) < 2)
    return story_of(X, y, true, line("dose", UP) | facts("outlier", "", *near))


def effects_that_multiply(rng):
    region = rng.choice(["east", "north", "south", "west"], 200)
    factors = pd.Series({"east": 1.0, "north": 1.6, "south": 0.7, "west": 1.2})
    X = {"area": rng.uniform(30, 150, 200), "age": rng.uniform(0, 40, 200), "region": region}
    mean = 50 * np.exp(0.01 * X["area"] - 0.02 * X["age"]) * factors[region].to_numpy()
    y = mean * np.exp(0.12 * rng.normal(size=200))
    true = matter(X) | rises("area") | falls("age")
    # effects that multiply depend on each other where they are differences
    pairs = [",".join(sorted(pair)) for pair in combinations(X, 2)]
    optional = frozenset().union(*(facts("interaction", pair) for pair in pairs))
    optional |= rises("age,area") | falls("age,area") | rises("area,region") | falls("age,region")
    optional |= line("area", UP) | line("age", DOWN) | facts("spread", "", UP)
    optional |= facts("skew", "", UP) | noise(0.12 * np.sqrt(np.mean(mean**2)))
    return story_of(X, y, true, optional)


def rooms_and_doors(rng):
    X = {
        "rooms": rng.integers(1, 8, 160),
        "doors": rng.integers(2, 6, 160),
        "area": rng.uniform(40, 160, 160),
    }
    y = 50 + 12 * X["rooms"] + 25 * (X["doors"] >= 4) + 0.5 * X["area"] + 8 * rng.normal(size=160)
    true = matter(X) | rises("rooms") | rises("doors") | rises("area") | noise(8)
    return story_of(X, y, true, line("rooms", UP) | line("area", UP))


def gaps_in_a_cause(rng):
    X = pd.DataFrame(rng.uniform(0, 10, size=(180, 3)), columns=["income", "age", "wealth"])
    y = 3 * X["income"] - 1.5 * X["age"] + 2 * rng.normal(size=180)
    X.loc[rng.uniform(size=180) < 0.2, "income"] = np.nan
    true = matter(["income", "age"]) | rises("income") | falls("age")
    # what the missing values would explain is noise of their rows
    gap, share = 3 * 10 / 12**0.5, X["income"].isna().mean()
    optional = noise(2) | noise(np.sqrt(4 + share * gap**2)) | idle(["wealth"])
    optional |= facts("outlier", "", *np.flatnonzero(X["income"].isna()))
    return story_of(X, y, true, optional | line("income", UP) | line("age", DOWN))


def seasons_of_two_stations(rng):
    month, t = dates("2014-01-01", 60, "MS")
    station = np.repeat(["coast", "inland"], 60)
    swing, level = np.repeat([3.0, 9.0], 60), np.repeat([12.0, 8.0], 60)
    y = level + swing * np.tile(wave(t, YEAR), 2) + rng.normal(size=120)
    true = matter(["date", "station"]) | season("date", YEAR) | noise(1)
    true |= facts("interaction", "date,station") | facts("difference", "station", DOWN)
    optional = facts("wiggles", "date,station")
    return story_of({"date": np.tile(month, 2), "station": station}, y, true, optional)


# Groups that differ, and columns that are more or less than they seem


def a_hump_by_age(rng):
    X = {"age": rng.uniform(20, 75, 200), "school": rng.uniform(8, 18, 200)}
    y = 30 - 0.02 * (X["age"] - 45) ** 2 + 1.2 * X["school"] + 2 * rng.normal(size=200)
    true = matter(X) | facts("turn", "age", UP) | rises("school") | noise(2)
    return story_of(X, y, true, line("school", UP) | facts("beyond", "age", DOWN))


def two_drugs_of_one_curve(rng):
    drug, dose = rng.choice(["alpha", "beta"], 160), 10 ** rng.uniform(-1, 2, 160)
    half = np.where(drug == "alpha", 1.5, 4.5)
    y = 10 / (1 + (half / dose) ** 1.5) + 0.4 * rng.normal(size=160)
    X = {"dose": dose, "drug": drug}
    true = matter(X) | rises("dose") | facts("difference", "drug", DOWN) | noise(0.4)
    true |= facts("interaction", "dose,drug") | facts("half way", "dose,drug", 3)
    true |= rises("dose,drug")
    return story_of(X, y, true, facts("beyond", "dose", UP))


def groups_without_a_common_range(rng):
    is_old = np.repeat([False, True], 60)
    load = np.where(is_old, rng.uniform(20, 30, 120), rng.uniform(0, 10, 120))
    y = np.where(is_old, 26 - 0.5 * load, 2 + 0.8 * load) + 0.8 * rng.normal(size=120)
    X = {"load": load, "model": np.where(is_old, "old", "new")}
    # a curve of the load alone does the same, and no row shows what else would
    optional = facts("interaction", "load,model") | facts("untold", "load,model")
    optional |= facts("turn", "load", UP) | facts("wiggles", "load") | line("load", UP)
    optional |= line("load", DOWN) | matter(["model"]) | idle(["model"])
    optional |= facts("difference", "model", UP, DOWN)
    return story_of(X, y, matter(["load"]) | noise(0.8), optional)


def a_panel_of_firms(rng):
    firm, year = np.repeat(np.arange(20), 8), np.tile(np.arange(2010.0, 2018.0), 20)
    usual = rng.normal(20, 4, 20)[firm]
    price = usual + 1.5 * rng.normal(size=160)
    y = 100 + 3 * usual - 2 * (price - usual) + 0.8 * (year - 2010) + 1.5 * rng.normal(size=160)
    X = {"firm": [f"f{one:02d}" for one in firm], "year": year, "price": price}
    true = matter(X) | rises("year") | noise(1.5)
    true |= facts("within", "price", DOWN) | facts("between", "price", UP)
    return story_of(X, y, true, line("year", UP) | line("price", DOWN))


def causes_that_offset_each_other(rng):
    staff, drawn = rng.normal(size=(2, 200))
    X = {"staff": 40 + 8 * staff, "rent": 25 + 5 * (0.8 * staff + 0.6 * drawn)}
    y = 10 + 0.5 * X["staff"] - 0.6 * X["rent"] + 2 * rng.normal(size=200)
    true = matter(X) | rises("staff") | falls("rent") | noise(2)
    return story_of(X, y, true, line("staff", UP) | line("rent", DOWN))


def a_row_that_carries_an_effect(rng):
    X = {"area": rng.uniform(40, 160, 150), "pools": rng.uniform(0, 0.5, 150)}
    row = int(rng.integers(150))
    X["pools"][row] = 12.0
    y = 5 + 0.1 * X["area"] + X["pools"] + 1.5 * rng.normal(size=150)
    true = matter(["area"]) | rises("area") | noise(1.5) | facts("carried", "", row)
    # it may as well be an error
    optional = line("pools", UP) | matter(["pools"]) | facts("outlier", "", row)
    return story_of(X, y, true, optional | line("area", UP))


def a_wrong_reading(rng):
    date = pd.date_range("2023-04-03", periods=192, freq="h")
    t, row = np.arange(192.0), int(rng.integers(10, 182))
    drawn = 0.1 * rng.normal(size=192)
    y = 3 + 5 * np.exp(-(((t - 90) / 35) ** 2)) + drawn
    y[row] += 4
    true = facts("turn", "date", UP) | facts("outlier", "", row) | noise(0.1)
    far = facts("outlier", "", *np.flatnonzero(np.abs(drawn) > 0.35))
    return story_of({"date": date}, y, true, anything_beyond("date") | far)


def days_of_holidays(rng):
    date, t = dates("2016-11-01", 990, "D")
    is_fixed = ((date.month == 12) & (date.day == 25)) | ((date.month == 1) & (date.day == 1))
    is_fourth = (date.month == 11) & (date.weekday == 3) & ((date.day - 1) // 7 == 3)
    is_free = np.asarray(is_fixed | is_fourth)
    y = 200 + 10 * wave(t, 7) - 60 * is_free + 4 * rng.normal(size=990)
    true = season("date", 7) | facts("days")
    # they are the same days of each year, or nearly
    optional = season("date", YEAR) | facts("outlier", "", *np.flatnonzero(is_free))
    optional |= noise(4) | noise(np.sqrt(16 + 60**2 * is_free.mean()))
    return story_of({"date": date}, y, true, optional)


def sites_with_numbers(rng):
    X = {"site": rng.integers(1, 6, 150), "area": rng.uniform(40, 160, 150)}
    levels = np.array([14.0, 22.0, 10.0, 20.0, 12.0])
    y = levels[X["site"] - 1] + 0.1 * X["area"] + 1.5 * rng.normal(size=150)
    return story_of(X, y, matter(X) | rises("area") | noise(1.5), line("area", UP))


def a_season_of_one_site(rng):
    month, t = dates("2015-01-01", 72, "MS")
    site, swing = np.repeat(["cellar", "roof"], 72), np.repeat([0.0, 8.0], 72)
    y = np.repeat([11.0, 14.0], 72) + swing * np.tile(wave(t, YEAR), 2) + rng.normal(size=144)
    true = matter(["date", "site"]) | season("date", YEAR) | noise(1)
    true |= facts("interaction", "date,site") | facts("difference", "site", UP)
    optional = facts("wiggles", "date,site")
    return story_of({"date": np.tile(month, 2), "site": site}, y, true, optional)


def days_of_failure(rng):
    date, t = dates("2021-03-01", 365, "D")
    rows = rng.choice(365, 8, replace=False)
    y = 300 + 0.3 * t + 6 * rng.normal(size=365)
    y[rows] -= rng.uniform(80, 160, 8)
    with_dips = np.sqrt(36 + 8 / 365 * np.mean(np.square([80, 120, 160])))
    optional = line("date", UP) | facts("outlier", "", *rows) | facts("skew", "", DOWN)
    return story_of({"date": date}, y, rises("date"), optional | noise(6) | noise(with_dips))


def columns_twice(rng):
    dose, male = rng.uniform(0, 10, 120), rng.integers(0, 2, 120)
    X = {"dose": dose, "amount": dose, "male": male, "female": 1 - male}
    y = 3 + 0.5 * dose + 1.5 * male + 0.6 * rng.normal(size=120)
    pairs = ["dose", "amount"], ["male", "female"]
    optional = either_of(pairs[0], "dose", UP) | matter(pairs[1]) | idle(pairs[1])
    optional |= facts("difference", "male", UP) | facts("difference", "female", DOWN)
    return story_of(X, y, alike(pairs[0]) | alike(pairs[1]) | noise(0.6), optional)


# Noise that is not normal


def outliers(rng):
    x = np.linspace(0, 10, 120)
    y = 2 * np.sin(x) + 0.3 * x + 0.1 * rng.normal(size=120)
    rows = np.sort(rng.choice(120, 2, replace=False))
    y[rows] += [4.0, -4.0]
    optional = noise(0.1) | noise(4 / 60**0.5) | season("x", 2 * np.pi) | anything_beyond("x")
    return story_of({"x": x}, y, facts("outlier", "", *rows) | facts("wiggles", "x"), optional)


def outliers_in_a_table(rng):
    X = pd.DataFrame(rng.uniform(size=(120, 3)), columns=list("abc"))
    y = 2 * X["a"] - X["b"] + 0.2 * rng.normal(size=120)
    rows = rng.choice(120, 3, replace=False)
    y[rows] += [3.0, -3.0, 3.0]
    true = matter("ab") | rises("a") | falls("b") | facts("outlier", "", *rows)
    optional = line("a", UP) | line("b", DOWN) | idle("c") | noise(0.2) | noise(3 / 40**0.5)
    return story_of(X, y, true, optional)


def a_spread_that_grows(rng):
    x = np.linspace(1, 10, 150)
    y = 2 * x + 0.3 * x * rng.normal(size=150)
    true = rises("x") | facts("spread", "", UP)
    return story_of({"x": x}, y, true, line("x", UP) | noise(0.3 * np.sqrt(np.mean(x**2))))


def a_spread_in_a_table(rng):
    X = pd.DataFrame(rng.uniform(size=(150, 3)), columns=list("abc"))
    mean = 1 + 5 * X["a"] + X["b"]
    y = mean * (1 + 0.2 * rng.normal(size=150)) - 3  # below zero there is no log of the target
    true = matter("a") | rises("a") | facts("spread", "", UP)
    optional = line("a", UP) | line("b", UP) | matter("b") | idle("bc")
    return story_of(X, y, true, optional | noise(0.2 * np.sqrt(np.mean(mean**2))))


def a_skewed_noise(rng):
    x, drawn = rng.uniform(0, 10, 150), rng.lognormal(sigma=0.6, size=150)
    deviation = np.exp(0.18) * np.sqrt(np.exp(0.36) - 1)
    far = np.flatnonzero(drawn > np.exp(0.18) + 3 * deviation)
    true = rises("x") | facts("skew", "", UP) | noise(deviation)
    return story_of({"x": x}, 0.8 * x + drawn, true, line("x", UP) | facts("outlier", "", *far))


STORIES: Mapping[str, Callable[[np.random.Generator], Story]] = {
    name: make
    for name, make in tuple(globals().items())
    if isfunction(make) and [*signature(make).parameters] == ["rng"]
}


def story(name: str, seed: int) -> Story:
    """Draw the data of a story."""
    found = STORIES[name](rng_of(name, seed))
    ways = ways_to_interact(found.true | found.optional)
    return replace(found, optional=found.optional | ways)
