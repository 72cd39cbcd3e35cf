"""Fitted models in words."""

import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from autokernel import AutoKernelGPRegressor, PosteriorAveraging
from autokernel.explain import Description, axes_of
from autokernel.expression import parse_expression
from tests.explain.models import random_expressions, with_kernel

UNITS = {"time": "years", "y": "litres"}
SE, LIN, SEASON = [0.1, 1.0], [1.0, 0.1], [0.5, 1.0, 0.2]  # parameters


def frame(n=80):
    """Ten years, from 1950 on."""
    return pd.DataFrame({"time": np.linspace(1950, 1960, n)})


def described(text, params, y=None, **settings):
    """Describe a kernel of the column time, whose extent is ten years."""
    X = frame()
    y = 0.5 * T + np.sin(2 * T) if y is None else y
    kernel = parse_expression(text, ["time"])
    return with_kernel(X, y, kernel, np.log(params), **settings).describe(UNITS)


def test_a_line_has_its_slope_with_an_interval_in_the_units_of_the_user():
    time = frame()["time"].to_numpy()
    settings = {"spread": 0.001, "noise": 1e-2}
    text = described("LIN[time]", [1.0, 1.0], y=3.0 * time, **settings)
    found = re.search(
        r"A straight line in time that rises by (\S+) litres per year \((.*)\)\.", text
    )
    low, high = map(float, found[2].split(" to "))
    assert low < float(found[1]) < high
    # the standard deviation of the slope of eighty rows with noise of 0.1 deviations of y
    deviation = 0.1 * np.std(3.0 * time) / (np.sqrt(80) * np.std(time))
    assert high - low == pytest.approx(2 * 1.645 * deviation, rel=0.3)
    assert float(found[1]) == pytest.approx(3.0, abs=0.02)
    assert re.search(
        "falls by (3.0|2.9)", described("LIN[time]", [1.0, 1.0], y=-3.0 * time, **settings)
    )
    assert re.search(
        r"Beyond the data it continues, and rises by 7\.\d+ litres \(.*until 1962\.5", text
    )


T = frame()["time"].to_numpy() - 1950
WAVE = np.sin(np.pi * T)


@pytest.mark.parametrize(
    ("y", "kernel", "params", "expected"),
    [
        (
            WAVE,
            "PER[time]",
            [0.5, 1.0, 0.2],
            r"A cycle in time that repeats every 2\.0\d* years \(.*\), with a swing of "
            r"(2\.0|1\.9)\d litres in its last cycle\. It repeats beyond the data\.",
        ),
        (T * WAVE, "LIN[time] * PER[time]", [1.0, 0.01, 0.5, 1.0, 0.2], "Its swing has grown from"),
        (
            (10 - T) * WAVE,
            "PER[time] * SE[time]",
            [0.5, 1.0, 0.2, 0.5, 1.0],
            "Its swing has shrunk from",
        ),
        (
            WAVE,
            "PER[time] * SE[time]",
            [0.5, 1.0, 0.2, 0.3, 1.0],
            r"Beyond the data half of its swing is left after \d\.00 years\.",
        ),
        (T**2, "SE[time]", [0.5, 9.0], r"A curve in time that rises by (99|100)\.\d* litres \("),
        (
            -((T - 4) ** 2),
            "SE[time]",
            [0.5, 9.0],
            r"rises until (1953\.9|1954\.0)\d* \(.*\) and falls",
        ),
        (
            (T - 4) ** 2,
            "SE[time]",
            [0.5, 9.0],
            r"falls until (1953\.9|1954\.0)\d* \(.*\) and rises",
        ),
        (np.sin(T), "SE[time]", [0.1, 1.0], r"goes up and down by (2\.0|1\.9)\d litres\."),
        # a wave on a level is described with it
        (
            0.3 * T + 0.1 * WAVE,
            "LIN[time] * PER[time]",
            [1.0, 1.0, 0.8, 1.0, 0.2],
            r"A \S+ (line )?in time that rises by .*\. Around it there is a cycle in time that "
            r"repeats every 2\.0\d* years \([^)]*\), with a swing of 0\.(20|19)",
        ),
        # a period that the data do not show twice, and one that is longer than the memory
        (
            np.sin(T),
            "PER[time]",
            [0.5, 1.0, 0.6],
            r"^(?!.*(repeats every|a cycle)).*The data cover less than two periods",
        ),
        # a step
        (
            1.0 * (T > 4),
            "SE[time]",
            [0.02, 1.0],
            r"rises by (1\.0|0\.9)\S* litres \(.*\), most of it around 195(3\.9|4\.0)\S* \(",
        ),
        (np.sin(T), "PER[time] * SE[time]", [0.5, 1.0, 0.3, 0.1, 1.0], "^(?!.*repeats)"),
    ],
)
def test_a_component_is_described_by_what_its_curve_does(y, kernel, params, expected):
    text = described(kernel, params, y=y, spread=1e-3, noise=1e-3)
    assert re.search(expected, text.split("\n\n", 1)[1], re.DOTALL), text


@pytest.mark.parametrize(
    ("text", "params", "expected"),
    [
        # a period that its part of the data does not show twice
        ("CP[time](PER[time], SE[time])", [0.3, 1e-3, *SEASON, *SE], "^(?!.*cycle)"),
        (
            "CP[time](SE[time], PER[time])",
            [0.3, 1e-3, *SE, *SEASON],
            r"a cycle in time that repeats every 2\.0",
        ),
        # parts of parts are one
        (
            "CP[time](CP[time](SE[time], LIN[time]), SE[time])",
            [0.8, 1e-3, 0.3, 1e-3, *SE, *LIN, *SE],
            r"(?=.*From 1953\.0\d* \([^)]*\) to 1958\.0\d* \([^)]*\), a straight line)"
            r".*Until 1953\.0\d* \([^)]*\), a curve",
        ),
        (
            "CW[time](CW[time](SE[time], LIN[time]), LIN[time])",
            [0.25, 0.1, 1e-3, 0.75, 0.1, 1e-3, *SE, *LIN, *LIN],
            r"Until 1952\.0\S* \([^)]*\), from 1953\.0\S* \([^)]*\) to 1957\.0\S* \([^)]*\) and "
            r"from 1958\.0\S* \([^)]*\) onwards, a curve",
        ),
    ],
)
def test_components_are_described_with_their_parts_of_a_column(text, params, expected):
    assert re.search(expected, described(text, params, spread=0.001), re.DOTALL)


def test_a_claim_that_other_kernels_deny_has_their_probability():
    """Two kernels are level: a line, and one that is constant along the column."""
    X = pd.DataFrame({"time": np.linspace(0, 1, 40), "age": np.linspace(0, 1, 40)[::-1] ** 2})
    model = AutoKernelGPRegressor(
        base_kernels={"time": ("LIN",), "age": ("SE",)}, n_iter=8, random_state=0
    )
    rng = np.random.default_rng(1)
    model.fit(X, X["time"] + 0.5 * X["age"] + 0.4 * rng.normal(size=40))
    claims = pd.DataFrame(model.claims_)
    kernels = pd.DataFrame(model.posterior_)
    for component in {one.expression for one in model.decompose().components} - {""}:
        (column,) = {name for name in X if f"[{name}]" in component}
        has_it = kernels["kernel"].str.contains(column, regex=False)
        own = claims[(claims["subject"] == component) & (claims["predicate"] != "share")]
        assert (own["probability"] <= kernels["probability"][has_it].sum() + 0.05).all()


def words_of_components(model):
    """The paragraphs about components, which follow the overview, and those about columns."""
    overview, *paragraphs = model.describe().split("\n\n")
    return [text for text in overview.split(". ") if "matter" in text], paragraphs


@pytest.mark.parametrize("name", [pytest.param("line", marks=pytest.mark.slow), "shops"])
def test_one_posterior_has_the_same_words_however_predictions_average_over_it(name):
    rng = np.random.default_rng(3)
    X = pd.DataFrame({"shop": rng.choice([*"abc"], 40), "date": np.arange(40.0)})
    y = {"line": 0.05 * X["date"], "shops": 1.0 * (X["shop"] == "a")}[name]
    y = y + 0.9 * rng.normal(size=40)
    averages = (None, "posterior", PosteriorAveraging(n_components=64))
    settings = {"base_kernels": ("LIN", "SE", "CAT"), "n_iter": 4, "random_state": 0}
    settings |= {"target_scale": None, "outliers": None}
    models = [AutoKernelGPRegressor(averaging=one, **settings).fit(X, y) for one in averages]
    first, *others = map(words_of_components, models)
    assert all(other == first for other in others)
    table = models[0].inclusion_probabilities_
    depends = dict(zip(table["column"], table["depends"], strict=True))
    assert 0.01 < min(depends.values()) < 0.95  # some kernels have no such column
    for model in models:
        for claim in pd.DataFrame(model.claims_).itertuples():
            if claim.predicate in ("matters", "may matter", "does not matter"):
                p = [depends[one] for one in re.split(", | and ", claim.subject)]
                assert claim.predicate != "may matter" or p == pytest.approx(
                    [claim.probability], abs=0.005
                )
                assert claim.predicate != "matters" or min(p) > 0.945
            elif claim.predicate == "is possible":  # no column has more than this one effect
                columns = re.findall(r"\[(\w+)\]", claim.subject)
                assert claim.probability == pytest.approx(max(depends[one] for one in columns))


def test_a_column_that_kernels_share_is_as_probable_in_each_of_its_effects():
    """One kernel adds the columns, the other one multiplies them: both depend on each."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.uniform(size=(40, 2)), columns=["a", "b"])
    model = AutoKernelGPRegressor(outliers=None, random_state=0)
    model.refit(X, X["a"] + X["b"] + 0.1 * rng.normal(size=40), "SE[a] + SE[b]")
    (one,) = model._fitted.kernels
    other = AutoKernelGPRegressor(outliers=None, random_state=0).refit(
        X, X["a"] + X["b"], "SE[a] * SE[b]"
    )
    (two,) = other._fitted.kernels
    kernels = (replace(one, probability=0.7), replace(two, probability=0.3))
    model._fitted = replace(model._fitted, kernels=kernels)
    assert "possible" not in model.describe()
    assert model.inclusion_probabilities_["depends"].tolist() == pytest.approx([1.0, 1.0])
    other = AutoKernelGPRegressor(outliers=None, random_state=0).refit(X, X["a"], "SE[a]")
    (three,) = other._fitted.kernels
    model._fitted = replace(
        model._fitted, kernels=(replace(one, probability=0.7), replace(three, probability=0.3))
    )
    assert "A possible effect of b (probability 0.70)." in model.describe()
    assert "It is uncertain whether b (0.70) matters." in model.describe()


def smokers(seed=0):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({"dose": rng.uniform(0, 10, 80), "smoker": rng.integers(0, 2, 80)})
    return X, rng


def test_a_column_of_two_values_is_described_by_the_difference_between_them():
    X, rng = smokers()
    y = pd.Series(2 + 4.1 * X["smoker"] + 0.5 * X["dose"] + 0.3 * rng.normal(size=80), name="cost")
    model = AutoKernelGPRegressor(outliers=None, random_state=0).refit(
        X, y, "LIN[dose] + LIN[smoker]"
    )
    text = model.describe({"cost": "dollars", "dose": "mg"})
    found = re.search(
        r"where smoker is 1, cost is higher by (\S+) dollars \((\S+) to (\S+)\) than where it is 0",
        text,
    )
    value, low, high = map(float, found.groups())
    assert low < value < high
    assert abs(value - 4.1) < 4 * 0.3 * 2 / np.sqrt(80)
    assert "The mean of cost is" in text
    assert "Beyond" not in text.split("difference of smoker")[1].split("\n")[0]


def test_an_interaction_is_described_by_the_effect_at_each_level():
    X, rng = smokers()
    y = 2 + 0.8 * X["dose"] * X["smoker"] + 0.2 * rng.normal(size=80)
    model = AutoKernelGPRegressor(outliers=None, random_state=0).refit(
        X, y, "LIN[dose] * LIN[smoker]"
    )
    text = model.describe({"dose": "mg"})
    assert re.search(
        r"A joint effect of dose and smoker: along dose, where smoker is 0, its "
        r"direction is uncertain; where smoker is 1, it rises by 0\.(80|79|81)\d* per mg "
        r"\(0\.7",
        text,
    ), text


def test_columns_that_are_alike_are_named():
    rng = np.random.default_rng(0)
    x = rng.uniform(size=50)
    X = pd.DataFrame({"gnp": x, "year": x + 0.03 * rng.normal(size=50), "copy": 3 * x + 1})
    model = AutoKernelGPRegressor(outliers=None, random_state=0).refit(
        X, x + rng.normal(size=50), "LIN[gnp]"
    )
    text = model.describe()
    assert re.search(
        r"gnp, year and copy can hardly be distinguished in these data \(.*0\.99", text
    )
    assert "gnp and copy are one column in different units" in text


N = 150
ROWS = np.arange(N)


@pytest.mark.parametrize(
    ("kernel", "change", "expected"),
    [
        ("SE[x]", lambda y, e, z: y + e, None),
        (
            "SE[x]",
            lambda y, e, z: y + e + 3 * (ROWS == 17),
            r"^Row 17 is an outlier: \d.* standard dev",
        ),
        # rows that are far off hide each other, but for a median
        (
            "SE[x]",
            lambda y, e, z: y + e + 15 * (ROWS % 25 == 0),
            "^Rows (?=.*125).* are outliers: up to",
        ),
        ("SE[x]", lambda y, e, z: y + 3 * e * (y > 0), "^The noise grows with the prediction"),
        ("SE[x]", lambda y, e, z: y + 9 * e * z, "^The noise grows with z: it is"),
        ("SE[x]", lambda y, e, z: y + 0.3 * np.exp(3 * e), "^Large residuals are more often above"),
        (
            "SE[x]",
            lambda y, e, z: y + 0.2 * (1 - 2 * (e > 0)),
            "^Intervals are too wide: 90 % int",
        ),
        ("SE[x]", lambda y, e, z: y + e + 0.5 * z, r"^The residuals still rise with z\."),
    ],
)
def test_what_does_not_fit_is_said_and_nothing_where_all_fits(kernel, change, expected):
    rng = np.random.default_rng(5)
    X = pd.DataFrame({"x": np.linspace(0, 10, N), "z": rng.uniform(size=N)})
    y = change(np.sin(X["x"]), 0.15 * rng.normal(size=N), X["z"])
    settings = {"averaging": None, "outliers": None, "random_state": 0}
    text = AutoKernelGPRegressor(**settings).refit(X, y, kernel).describe()
    checks = text.split("\n\n")[2:]
    assert not checks if expected is None else re.search(expected, checks[0])


@pytest.mark.parametrize(
    ("frequency", "expected"),
    [
        (4.0, r"The residuals still repeat along x0, about every 1\.[56]\d"),
        (0.5, "The residuals still depend on those before them along x0: their first autocorrel"),
    ],
)
def test_what_a_kernel_leaves_along_the_only_column_is_said(frequency, expected):
    x = np.linspace(0, 10, N)
    y = x + np.sin(frequency * x) + 0.2 * np.random.default_rng(0).normal(size=N)
    text = (
        AutoKernelGPRegressor(outliers=None, random_state=0)
        .refit(x[:, None], y, "LIN[0]")
        .describe()
    )
    assert re.search(expected, text), text


def test_a_search_that_was_cut_is_said_to_be_so():
    X, rng = frame(), np.random.default_rng(0)
    model = AutoKernelGPRegressor(n_iter=0, outliers=None, random_state=0).fit(
        X, WAVE + rng.normal(size=80)
    )
    expected = "The search was cut (as many kernels as n_iter allows were evaluated): kernels that"
    assert expected in model.describe()
    assert expected not in model.refit(X, WAVE, "RQ[time] * SE[time]").describe()


def test_every_sentence_is_a_claim_with_its_numbers():
    y = 0.5 * T + WAVE
    X = frame()
    kernel = parse_expression("LIN[time] + PER[time]", ["time"])
    model = with_kernel(X, y, kernel, np.log([1.0, 0.1, 0.5, 1.0, 0.2]), spread=1e-3, noise=1e-3)
    claims, text = pd.DataFrame(model.claims_), model.describe()
    for sentence in claims["text"]:
        assert sentence in text
    (slope,) = claims.loc[claims["predicate"] == "rises linearly", "value"]
    (period,) = claims.loc[claims["predicate"] == "repeats", "value"]
    (swing,) = claims.loc[claims["predicate"] == "swing", "value"]
    assert slope == pytest.approx(0.5, abs=0.01)
    assert period == pytest.approx(2.0, abs=0.02)
    assert swing == pytest.approx(2.0, abs=0.05)
    assert claims["probability"].between(0, 1).all()
    short = model.describe(short=True)
    assert len(short.splitlines()) <= 5
    assert "straight line" in short


def test_noise_alone_is_described_as_such():
    X = frame()
    model = AutoKernelGPRegressor(outliers=None, random_state=0).refit(
        X, np.sin(np.arange(80.0)), "NOISE"
    )
    assert model.describe({"y": "litres"}).startswith("No structure was found: the target is noise")


def test_columns_are_named_with_the_probability_that_they_matter():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.uniform(size=(60, 3)), columns=["age", "water", "air"])
    y = X["age"] + np.sin(6 * X["water"]) * X["age"] + 0.05 * rng.normal(size=60)
    settings = {"base_kernels": ("SE", "LIN"), "n_iter": 10, "random_state": 0}
    text = AutoKernelGPRegressor(**settings).fit(X, y).describe()
    assert "age and water matter (probability at least 0.95)." in text
    assert "A joint effect of water and age" in text
    assert "its probability among those that were evaluated is 0." in text


def test_every_kernel_of_the_grammar_can_be_described():
    X = np.random.default_rng(0).uniform(size=(30, 2))
    for expression, theta in random_expressions(3):
        model = with_kernel(X, np.sin(9 * X[:, 0]), expression, theta)
        text = model.describe({"x0": "metres"})
        components = model.decompose(units={"x0": "metres"}).components
        n_large = sum(one.share >= 0.01 for one in components)
        assert len(re.findall(r"^\d+\. ", text, re.MULTILINE)) == n_large
        assert ("smaller component" in text) == (n_large < len(components))
        assert not re.search(r"nan|inf|  |None|\.\.|, \.|\{", text), text
        for one in components:
            assert one.text in text or one.share < 0.01
            assert one.text[0].isupper()
            assert one.text.endswith(".")


KNOWN_NAMES = r"units must map names out of \['time', 'y'\] to texts"
DATES = r"units\['time'\] must be a text such as 'days since"
TWO_MEANINGS = r"units\['y'\] is that of the target, and a column has"


@pytest.mark.parametrize(
    ("column", "units", "message"),
    [
        ("time", {"tme": "years"}, KNOWN_NAMES),
        ("time", {"time": 3}, KNOWN_NAMES),
        ("time", {"time": "months since 1950-01-01"}, DATES),
        ("time", {"time": "days since yesterday"}, DATES),
        ("y", {"y": "kg"}, TWO_MEANINGS),
    ],
)
def test_units_without_a_meaning_are_refused(column, units, message):
    X = frame().rename(columns={"time": column})
    model = AutoKernelGPRegressor(outliers=None, random_state=0).refit(X, np.arange(80.0), "NOISE")
    with pytest.raises(ValueError, match=message):
        model.describe(units)


@pytest.mark.parametrize(
    ("text", "own", "expected"),
    [
        ("CP[time](SE[time], LIN[time])", [0.4, 1e-3], ("Until 1954.0", "From 1954.0")),
        ("CW[time](SE[time], LIN[time])", [0.5, 0.4, 1e-3], ("Until 1953.0", "From 1953.0")),
        # edges that the data do not show are not named
        ("CW[time](SE[time], LIN[time])", [0.9, 0.4, 1e-3], ("Until 1957.0", "From 1957.0")),
        ("CW[time](SE[time], LIN[time])", [0.1, 0.4, 1e-3], ("From 1953.0", "Until 1953.0")),
    ],
)
def test_components_of_a_change_are_described_with_their_part(text, own, expected):
    found = described(text, [*own, *SE, *LIN], spread=0.001).splitlines()
    nouns = ("curve in time", "straight line in time")
    for noun, begin in zip(nouns, expected, strict=True):
        line = next(line for line in found if noun in line)
        assert re.match(rf"\d\. {begin}", line), line
        assert ("It ends before the data do." in line) != ("onwards" in line)


def test_parts_of_one_of_several_columns_are_described_with_its_name():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.uniform(0, 10, size=(40, 2)), columns=["age", "water"])
    kernel = parse_expression("CP[age](SE[water], LIN[water])", list(X))
    model = with_kernel(X, np.sin(X["water"]), kernel, np.log([0.4, 1e-3, *SE, *LIN]))
    text = model.describe({"age": "days"})
    assert re.search(r"Where age is below \d\.\d+ days \(.*\), a curve in water", text)
    assert re.search(r"Where age is above \d\.\d+ days \(.*\), a \w+( line)? in water", text)


@pytest.mark.parametrize(
    ("unit", "factor", "expected"),
    [
        ("days since 1950-01-01", 365.0, "Until 1953-12-31"),
        ("hours since 1950-01-01", 365.0 * 24, "Until 1953-12-31"),
        ("hours since 1950-01-01T12:00", 1.0, "Until 1950-01-01 16:00"),
    ],
)
def test_places_are_described_as_dates(unit, factor, expected):
    X = pd.DataFrame({"time": factor * np.linspace(0, 10, 80)})
    kernel = parse_expression("CP[time](SE[time], PER[time])", ["time"])
    theta = np.log([0.4, 1e-3, *SE, 0.5, 1.0, 0.1])
    text = with_kernel(X, np.arange(80.0), kernel, theta, spread=1e-4).describe({"time": unit})
    assert expected in text
    assert re.search(
        r"yearly season in time with|repeats every (24\.\d+ hours|1\.0\d* hours)", text
    )


@pytest.mark.parametrize(
    ("text", "own", "everywhere"),
    [
        ("CW[time](SE[time], LIN[time])", [1.5, 0.3, 1e-3], "curve"),
        ("CW[time](SE[time], LIN[time])", [0.5, 2.0, 1e-3], "straight line"),
        ("CP[time](SE[time], LIN[time])", [1.4, 1e-3], "curve"),
    ],
)
def test_a_part_beyond_the_data_is_nowhere_and_the_rest_everywhere(text, own, everywhere):
    for line in described(text, [*own, *SE, *LIN], spread=0.001).splitlines():
        if re.match(r"\d\. ", line):
            is_seen = everywhere in line
            assert ("Nowhere within the data" in line) != is_seen, line
            assert line[3:].startswith("A " if is_seen else "Nowhere"), line
            assert "It ends before the data do." not in line


def test_a_change_on_a_constant_column_is_that_of_one_part():
    X = pd.DataFrame({"time": np.linspace(0, 10, 30), "fixed": np.ones(30)})
    kernel = parse_expression("CP[1](SE[0], LIN[0])")
    theta = np.log([0.7, 1e-3, *SE, *LIN])
    text = with_kernel(X, np.sin(X["time"]), kernel, theta).describe()
    assert re.search(r"1\. A (curve|possible effect)", text)
    assert "One smaller component of time and fixed explains less than 0.1 %" in text
    assert "It ends" not in text


@pytest.mark.parametrize(
    ("unit", "words"),
    [("years", "per year"), ("m/s", "per m/s"), ("s", "per s"), ("degrees Celsius", "per degrees")],
)
def test_only_plurals_that_are_known_lose_their_last_letter(unit, words):
    X = frame()
    model = AutoKernelGPRegressor(outliers=None, random_state=0).refit(
        X, 3.0 * X["time"], "LIN[time]"
    )
    assert re.search(rf"rises by 3\.0\d* {words}(?![a-z])", model.describe({"time": unit}))


def numbers(pattern, text):
    found = re.search(pattern, text)
    assert found, text
    return [float(one) for one in found.groups()]


RANGE = r"\((\S+) to (\S+)\)"


def test_on_the_log_scale_effects_are_factors():
    X, rng = pd.DataFrame({"time": np.linspace(1950, 1960, 80)}), np.random.default_rng(0)
    years = X["time"] - 1950
    logs = 2 + 0.1 * years + 0.3 * np.sin(2 * np.pi * years)
    y = np.exp(logs + 0.05 * rng.normal(size=80))
    settings = {"target_scale": "log", "outliers": None, "averaging": None, "random_state": 0}
    model = AutoKernelGPRegressor(**settings)
    text = model.refit(X, y, "log(y) ~ LIN[time] + PER[time]").describe(UNITS)
    assert text.startswith("The effects multiply (log scale). The geometric mean")
    (mean,) = numbers(r"The geometric mean of the target is (\S+) litres\.", text)
    assert mean == pytest.approx(np.exp(np.log(y).mean()), rel=0.01)
    noise, low, high = numbers(rf"The noise is typically a factor of (\S+) {RANGE}", text)
    assert low <= noise <= high
    assert noise == pytest.approx(np.exp(0.05), rel=0.01)
    by, low, high = numbers(rf"rises exponentially, by a factor of (\S+) per year {RANGE}", text)
    assert low < np.exp(0.1) < high
    assert low < by < high
    least, most = numbers(
        r"yearly season in time that changes the target by a factor of (\S+) to (\S+) in its last",
        text,
    )
    np.testing.assert_allclose([least, most], np.exp([-0.3, 0.3]), rtol=0.06)
    by, low, high = numbers(
        rf"continues, and rises by a factor of (\S+) {RANGE} until 1962.5", text
    )
    assert low < by < high
    assert by == pytest.approx(np.exp(0.1 * 2.5), rel=0.02)
    claims = pd.DataFrame(model.claims_)
    assert {"effects multiply", "rises exponentially", "lowest of swing"} < {*claims["predicate"]}
    plain = model.describe()
    assert all(one in plain for one in claims["text"])


def test_a_line_along_the_log_of_a_column_is_described_by_its_doublings():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"age": np.exp(rng.uniform(0, np.log(365), 100))})
    y = 10 + 7 * np.log(X["age"]) + rng.normal(size=100)
    units = {"age": "days", "y": "MPa"}
    model = AutoKernelGPRegressor(column_scales={"age": "log"}, outliers=None, random_state=0)
    text = model.refit(X, y, "LIN[log(age)]").describe(units)
    by, low, high = numbers(
        rf"A curve in age that rises in proportion to the logarithm of age, by (\S+) MPa {RANGE} "
        "with each doubling of age",
        text,
    )
    assert low < 7 * np.log(2) < high
    assert low < by < high
    assert re.search(
        r"Beyond the data it continues, and rises by 1\.5\d+ MPa \(.* until 4\d\d days", text
    )
    text = model.refit(X, np.exp(y / 10), "log(y) ~ LIN[log(age)]").describe(units)
    by, low, high = numbers(rf"as a power of age, by a factor of (\S+) {RANGE} with each dou", text)
    assert low < 2**0.7 < high


def test_places_along_the_log_of_a_column_are_in_its_unit():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"age": np.exp(rng.uniform(0, np.log(365), 150))})
    noise = 0.02 * rng.normal(size=150)
    model = AutoKernelGPRegressor(outliers=None, random_state=0)
    top = model.refit(X, noise - (np.log(X["age"]) - 3) ** 2, "SE[log(age)]").describe()
    place, low, high = numbers(rf"rises until (\S+) {RANGE} and falls", top)
    assert low <= place <= high
    assert place == pytest.approx(np.exp(3), rel=0.05)
    step = model.refit(X, noise + (X["age"] > 20), "SE[log(age)]").describe()
    assert numbers(r"most of it around (\S+) \(", step)[0] == pytest.approx(20, rel=0.15)


def test_a_log_that_was_tried_is_not_advised():
    rng = np.random.default_rng(0)
    X, advice = rng.uniform(size=(100, 1)), "try the log of the target"
    y = np.exp(X[:, 0] + 0.4 * rng.exponential(size=100))
    model = AutoKernelGPRegressor(outliers=None, random_state=0)
    assert advice in model.refit(X, y, "LIN[0]").describe()
    text = model.refit(X, y, "log(y) ~ LIN[0]").describe()
    assert "more often above the prediction than not." in text
    fitted = model.refit(X, y, "LIN[0]")._fitted
    description = Description(fitted, axes_of(fitted.columns, {})[0], has_tried_log=True)
    assert advice not in str(description)


@pytest.mark.parametrize("unit", ["years", "days since 1949-01-01"])
def test_the_unit_of_a_column_of_dates_is_not_that_of_the_user(unit):
    days = pd.date_range("2000-01-01", periods=60, freq="MS")
    X = pd.DataFrame({"date": days, "age": np.arange(60.0)})
    model = AutoKernelGPRegressor(outliers=None, random_state=0).refit(
        X, np.arange(60.0), "LIN[date]"
    )
    with pytest.raises(ValueError, match=r"units must not have 'date', which holds dates: their"):
        model.describe({"date": unit})
    assert "per year" in model.describe({"age": "years", "y": "litres"})
