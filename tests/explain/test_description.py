"""Fitted models in words."""

import re

import numpy as np
import pandas as pd
import pytest

from autokernel import AutoKernelGPRegressor
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
    y = np.sin(np.arange(len(X))) if y is None else y
    kernel = parse_expression(text, ["time"])
    return with_kernel(X, y, kernel, np.log(params), **settings).describe(UNITS)


def test_a_line_has_its_slope_in_the_units_of_the_user():
    X = frame()
    text = described("LIN[time]", [1.0, 1.0], y=3.0 * X["time"].to_numpy(), noise=1e-6)
    assert "A straight line in time that rises by 3.00 litres per year." in text
    text = described("LIN[time]", [1.0, 1.0], y=-3.0 * X["time"].to_numpy(), noise=1e-6)
    assert "falls by 3.00 litres per year" in text
    assert "It explains 100 % of the variance, and spans 30.0 litres." in text


@pytest.mark.parametrize(
    ("text", "params", "expected"),
    [
        (
            "PER[time]",
            [0.5, 1.0, 0.1],
            r"A season in time that repeats every 1\.00\d* years \(0\.9",
        ),
        ("PER[time]", [0.5, 1.0, 0.1], r"It goes on beyond the data\."),
        ("SE[time]", [0.2, 1.0], r"Beyond the data it fades within about 4\.00 years\."),
        ("SE[time]", [0.2, 1.0], r"smooth function of time that varies over 2\.0\d* years"),
        (
            "SE[time]",
            [2.0, 1.0],
            r"hardly bends \(its lengthscale, 20\.0 years, exceeds the data\)",
        ),
        ("RQ[time]", [0.2, 1.0, 1.0], "multi-scale smooth function of time"),
        ("LIN[time] * LIN[time]", [1.0, 1.0, 1.0, 1.0], "A parabola in time"),
        (
            "PER[time] * SE[time]",
            [0.5, 1.0, 0.1, 0.5, 1.0],
            r"changes its shape over 5\.0\d* years",
        ),
        ("LIN[time] * PER[time]", [1.0, 0.1, 0.5, 1.0, 0.1], "and grows linearly in amplitude"),
        # an amplitude that hardly changes
        ("LIN[time] * PER[time]", [0.1, 1.0, 0.5, 1.0, 0.1], r"^(?!.*amplitude)"),
        # periods that the data do not show twice, and longer than the memory
        ("PER[time]", [0.5, 1.0, 0.6], r"^(?!.*(repeats|season)).*A smooth function of time"),
        (
            "PER[time] * SE[time]",
            [0.5, 1.0, 0.3, 0.1, 1.0],
            "^(?!.*repeats).*smooth function of time",
        ),
        # and a part of the data that does not
        ("CP[time](PER[time], SE[time])", [0.3, 1e-3, *SEASON, *SE], "^(?!.*season)"),
        (
            "CP[time](SE[time], PER[time])",
            [0.3, 1e-3, *SE, *SEASON],
            r"a season in time that repeats every 2\.00",
        ),
        # parts of parts are one
        (
            "CP[time](CP[time](SE[time], LIN[time]), SE[time])",
            [0.8, 1e-3, 0.3, 1e-3, *SE, *LIN, *SE],
            r"(?=.*From 1953\.0\d* \([^)]*\) to 1958\.0\d* \([^)]*\), a straight line)"
            r".*Until 1953\.0\d* \([^)]*\), a smooth function",
        ),
        (
            "CW[time](CW[time](SE[time], LIN[time]), LIN[time])",
            [0.25, 0.1, 1e-3, 0.75, 0.1, 1e-3, *SE, *LIN, *LIN],
            r"Until 1952\.0\S* \([^)]*\), from 1953\.0\S* \([^)]*\) to 1957\.0\S* \([^)]*\) and "
            r"from 1958\.0\S* \([^)]*\) onwards, a smooth function",
        ),
    ],
)
def test_a_component_is_described_by_its_factors_scales_and_parts(text, params, expected):
    assert re.search(expected, described(text, params, spread=0.001), re.DOTALL)


def test_a_wave_on_a_level_that_drifts_is_no_season():
    time = frame()["time"].to_numpy() - 1950
    drift, wave = np.sin(0.6 * time), np.sin(np.pi * time)
    for y, kernel, params, noun in (
        (drift + 0.1 * wave, "PER[time] * SE[time]", [0.5, 1.0], "smooth function of time"),
        (0.3 * time + 0.1 * wave, "PER[time] * LIN[time]", [1.0, 1.0], "straight line in time"),
    ):
        settings = {"noise": 1e-3, "spread": 0.01}
        text = described(kernel, [0.8, 1.0, 0.2, *params], y=y, **settings)
        assert re.search(rf"A {noun} that .*in part repeats every 2\.\d+ years", text), text
        text = described(kernel, [0.8, 1.0, 0.2, *params], y=y + 3 * wave, **settings)
        assert re.search(r"A season in time that repeats every 2\.\d+ years", text), text


def test_noise_alone_is_described_as_such():
    X = frame()
    model = AutoKernelGPRegressor(random_state=0).refit(X, np.sin(np.arange(80.0)), "NOISE")
    assert model.describe({"y": "litres"}).startswith("No structure was found: the target is noise")


def test_columns_are_named_with_the_probability_that_they_matter():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.uniform(size=(60, 3)), columns=["age", "water", "air"])
    y = X["age"] + np.sin(6 * X["water"]) * X["age"] + 0.05 * rng.normal(size=60)
    settings = {"base_kernels": ("SE", "LIN"), "n_iter": 10, "random_state": 0}
    text = AutoKernelGPRegressor(**settings).fit(X, y).describe()
    assert "age and water matter, with a probability above 0.95." in text
    assert "A joint effect of age and water" in text
    assert "its probability among those that were evaluated is 0." in text


def test_every_kernel_of_the_grammar_can_be_described():
    X = np.random.default_rng(0).uniform(size=(30, 2))
    for expression, theta in random_expressions(20):
        model = with_kernel(X, np.sin(9 * X[:, 0]), expression, theta)
        text = model.describe({"x0": "metres"})
        components = model.decompose(units={"x0": "metres"}).components
        assert len(re.findall(r"^\d+\. ", text, re.MULTILINE)) == len(components)
        assert not re.search(r"nan|inf|  |None|\.\.|, \.|\{", text), text
        for one in components:
            assert one.text in text
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
    model = AutoKernelGPRegressor(random_state=0).refit(X, np.arange(80.0), "NOISE")
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
    nouns = ("smooth function of time", "straight line in time")
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
    assert re.search(r"Where age is below \d\.\d+ days \(.*\), a smooth function of water", text)
    assert re.search(r"Where age is above \d\.\d+ days \(.*\), a straight line in water", text)


def test_a_turn_is_described_with_its_place():
    X = frame()
    y = -((X["time"].to_numpy() - 1954) ** 2)
    text = described("SE[time]", [0.5, 1.0], y=y, noise=1e-6)
    assert "that rises until 1954.0 and falls from there on" in text
    text = described("SE[time]", [0.5, 1.0], y=-y, noise=1e-6)
    assert "that falls until 1954.0 and rises from there on" in text


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
    assert re.search(rf"repeats every {factor:.0f}(\.\d+)? {unit.split()[0]}", text)


@pytest.mark.parametrize(
    ("text", "own", "everywhere"),
    [
        ("CW[time](SE[time], LIN[time])", [1.5, 0.3, 1e-3], "smooth function"),
        ("CW[time](SE[time], LIN[time])", [0.5, 2.0, 1e-3], "straight line"),
        ("CP[time](SE[time], LIN[time])", [1.4, 1e-3], "smooth function"),
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
    assert re.search(r"1\. A smooth function of time", text)
    assert "Nowhere within the data, a straight line" in text
    assert "It does not vary over the data." in text
    assert "It ends" not in text


@pytest.mark.parametrize(
    ("unit", "words"),
    [("years", "per year"), ("m/s", "per m/s"), ("s", "per s"), ("degrees Celsius", "per degrees")],
)
def test_only_plurals_that_are_known_lose_their_last_letter(unit, words):
    X = frame()
    model = AutoKernelGPRegressor(random_state=0).refit(X, 3.0 * X["time"], "LIN[time]")
    assert re.search(rf"rises by 3\.00 {words}(?![a-z])", model.describe({"time": unit}))
