"""Fitted models in words."""

import pickle
import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from autokernel import AutoKernelGPRegressor, PosteriorAveraging
from autokernel.explain import Description
from autokernel.export import from_dict, to_dict
from autokernel.expression import parse_expression
from autokernel.inference import ExactPredictor
from autokernel.model.errors import NORMAL, PRIOR_LAW, ErrorLaw
from tests.explain.models import random_expressions, refitted, sum_of, with_kernel
from tests.fits import At, interrupt, small, tiny, wave

UNITS = {"time": "years", "y": "litres"}
SE, WIDE, LIN, SEASON = [0.1, 1.0], [0.5, 9.0], [1.0, 0.1], [0.5, 1.0, 0.2]  # parameters


def frame(n=60):
    """Ten years, from 1950 on."""
    return pd.DataFrame({"time": np.linspace(1950, 1960, n)})


def described(text, params, y=None, **settings):
    """Describe a kernel of the column time, whose extent is ten years."""
    y = 0.5 * T + np.sin(2 * T) if y is None else y
    kernel = parse_expression(text, ["time"])
    return with_kernel(frame(), y, kernel, np.log(params), **settings).describe(UNITS)


def numbers(pattern, text):
    found = re.search(pattern, text)
    assert found, text
    return [float(one) for one in found.groups()]


RANGE = r"\((\S+) to (\S+)\)"


def test_a_line_has_its_slope_with_an_interval_in_the_units_of_the_user():
    time, settings = frame()["time"].to_numpy(), {"spread": 0.001, "noise": 1e-2}
    text = described("LIN[time]", [1.0, 1.0], y=3.0 * time, **settings)
    slope, low, high = numbers(rf"The target rises by (\S+) litres per year {RANGE}\.", text)
    assert low < slope < high
    # the standard deviation of the slope of the rows with noise of 0.1 deviations of y
    deviation = 0.1 * np.std(3.0 * time) / (np.sqrt(len(time)) * np.std(time))
    assert high - low == pytest.approx(2 * 1.645 * deviation, rel=0.3)
    assert slope == pytest.approx(3.0, abs=0.02)
    assert re.search(r"it continues, and rises by 7\.\d+ litres \(.*until 1962\.5", text)
    falling = described("LIN[time]", [1.0, 1.0], y=-3.0 * time, **settings)
    assert re.search("falls by (3.0|2.9)", falling)


T = frame()["time"].to_numpy() - 1950
WAVE = np.sin(np.pi * T)


SWING = r"with a swing of (2\.0|1\.9)\d litres in its last cycle\. It repeats beyond the data\."


@pytest.mark.parametrize(
    ("y", "kernel", "params", "expected"),
    [
        (WAVE, "PER[time]", SEASON, rf"A cycle in time .*every 2\.0\d* years \(.*\), {SWING}"),
        (T * WAVE, "LIN[time] * PER[time]", [1.0, 0.01, *SEASON], "Its swing has grown from"),
        ((10 - T) * WAVE, "PER[time] * SE[time]", [*SEASON, 0.5, 1.0], "Its swing has shrunk from"),
        (
            WAVE,
            "PER[time] * SE[time]",
            [*SEASON, 0.3, 1.0],
            r"Beyond the data half of its swing is left after \d\.00 years\.",
        ),
        (
            T**2,
            "SE[time]",
            WIDE,
            r"The target rises by (99|100)\S* litres \(.*\) from 1950 to 1960, half of it until "
            r"1957\.\d",
        ),
        (
            -((T - 4) ** 2),
            "SE[time]",
            WIDE,
            r"rises by 1\S+ litres from 1950 until (1953\.9|1954\.0)\d* \(.*\) and falls by 3",
        ),
        (
            (T - 4) ** 2,
            "SE[time]",
            WIDE,
            r"falls by 1\S+ litres from 1950 until (1953\.9|1954\.0)\d* \(.*\) and rises by 3",
        ),
        (
            np.sin(T),
            "SE[time]",
            SE,
            r"goes up and down by (2\.0|1\.9)\d litres, lowest at 195\S+ and highest at 195\d",
        ),
        (
            np.sin(0.94 * T),
            "SE[time]",
            [0.3, 1.0],
            r"goes up and down by 1\.9\d litres, .* Beyond the data it falls by",
        ),
        # a wave on a level is described with it
        (
            0.3 * T + 0.1 * WAVE,
            "LIN[time] * PER[time]",
            [1.0, 1.0, 0.8, 1.0, 0.2],
            r"The target rises by .*\. Around it there is a cycle in time that "
            r"repeats every 2\.0\d* years \([^)]*\), with a swing of 0\.(20|19)",
        ),
        # a period that is longer than the memory
        (np.sin(T), "PER[time] * SE[time]", [0.5, 1.0, 0.3, 0.1, 1.0], "^(?!.*repeats)"),
        # a step
        (
            1.0 * (T > 4),
            "SE[time]",
            [0.02, 1.0],
            r"rises by (1\.0|0\.9)\S* litres \(.*\) from 1950 to 1960, most of it around "
            r"195(3\.9|4\.0)\S* \(",
        ),
    ],
)
def test_a_component_is_described_by_what_its_curve_does(y, kernel, params, expected):
    text = described(kernel, params, y=y, spread=1e-3, noise=1e-3)
    assert re.search(expected, text.split("\n\n", 1)[1], re.DOTALL), text


@pytest.mark.parametrize(
    ("place", "height", "kernel"),
    [(4, 2, "RQ[0] + SE[0]"), (7, -3, "RQ[0]"), (2.5, 1, "SE[0]"), (5, -0.5, "LIN[0] + PER[0]")],
)
def test_overshoot_beyond_a_step_is_no_turn(place, height, kernel):
    x = np.linspace(0, 10, 60)
    y = height * (x >= place) + 0.005 * np.random.default_rng(1).normal(size=60)
    text = refitted(kernel, x[:, None], y, base_kernels=("SE", "LIN", "PER", "RQ")).describe()
    (said,) = re.findall(r"1\. The target .*", text)
    assert not re.search(r"until .* and (rises|falls)|up and down|then", said), said
    way, other = ("rises", "falls") if height > 0 else ("falls", "rises")
    assert f"The target {way} by" in said
    assert other not in said.split("eyond the data")[0]


CURVE_THEN_LINE = (
    r"(?=.*^\d\. Until {0}[^\n]*It ends before the data do\.)(?=.*^\d\. From {0}[^\n]* onwards, "
    r"[^\n]* litres per year)"
)


@pytest.mark.parametrize(
    ("text", "params", "expected"),
    [
        # a period that its part of the data does not show twice
        ("CP[time](PER[time], SE[time])", [0.3, 1e-3, *SEASON, *SE], r"\A(?!.*cycle)"),
        (
            "CP[time](SE[time], PER[time])",
            [0.3, 1e-3, *SE, *SEASON],
            r"a cycle in time that repeats every 2\.0",
        ),
        ("CP[time](SE[time], LIN[time])", [0.4, 1e-3, *SE, *LIN], CURVE_THEN_LINE.format("1954.0")),
        # edges that the data do not show are not named
        (
            "CW[time](SE[time], LIN[time])",
            [0.9, 0.4, 1e-3, *SE, *LIN],
            CURVE_THEN_LINE.format("1957.0"),
        ),
        (
            "CW[time](SE[time], LIN[time])",
            [0.1, 0.4, 1e-3, *SE, *LIN],
            r"(?=.*^\d\. From 1953\.0[^\n]* onwards, [^\n]*)(?=.*^\d\. Until 1953\.0[^\n]* litres "
            r"per year [^\n]*It ends before the data do\.)",
        ),
        # parts of parts are one
        (
            "CP[time](CP[time](SE[time], LIN[time]), SE[time])",
            [0.8, 1e-3, 0.3, 1e-3, *SE, *LIN, *SE],
            r"(?=.*From 1953\.0\d* \([^)]*\) to 1958\.0\d* \([^)]*\), the target \S+ by \S+ "
            r"litres per year)"
            r".*Until 1953\.0\d* \([^)]*\), the target",
        ),
        (
            "CW[time](CW[time](SE[time], LIN[time]), LIN[time])",
            [0.25, 0.1, 1e-3, 0.75, 0.1, 1e-3, *SE, *LIN, *LIN],
            r"Until 1952\.0\S* \([^)]*\), from 1953\.0\S* \([^)]*\) to 1957\.0\S* \([^)]*\) and "
            r"from 1958\.0\S* \([^)]*\) onwards, the target",
        ),
    ],
)
def test_components_are_described_with_their_parts_of_a_column(text, params, expected):
    assert re.search(expected, described(text, params, spread=0.001), re.DOTALL | re.MULTILINE)


def test_a_turn_has_a_size_that_the_noise_does_not_explain():
    y = 1.0 * (T > 4) + 0.3 * np.exp(-2 * T**2)
    texts = [
        described("SE[time]", [0.06, 1.0], y, spread=1e-3, noise=noise) for noise in (0.02, 2.0)
    ]
    assert re.search(
        r"falls by \S+ litres from 1950 until 1953\.\S+ .+ and rises by \S+ litres", texts[0]
    )
    assert "rises by 0." in texts[1]
    assert "falls" not in texts[1]


def words_of_components(model):
    """The paragraphs after the overview, without the sentence about averaging."""
    _, *paragraphs = model.describe().split("\n\n")
    return [re.sub("Predictions average .*?\\. ", "", text) for text in paragraphs]


@pytest.mark.parametrize("name", [pytest.param("line", marks=pytest.mark.slow), "shops"])
def test_one_posterior_has_the_same_words_however_predictions_average_over_it(name, tmp_path):
    rng = np.random.default_rng(3)
    X = pd.DataFrame({"shop": rng.choice([*"abc"], 40), "date": np.arange(40.0)})
    y = {"line": 0.05 * X["date"], "shops": 1.0 * (X["shop"] == "a")}[name]
    y = y + 0.9 * rng.normal(size=40)
    settings = {"base_kernels": ("LIN", "CAT"), "max_leaves": 2, "memory": tmp_path}
    averages = (None, "posterior", PosteriorAveraging(n_components=64))
    models = [small(averaging=one, **settings).fit(X, y) for one in averages]
    first, *others = map(words_of_components, models)
    assert all(other == first for other in others)
    table = models[0].inclusion_probabilities_
    depends = dict(zip(table["column"], table["depends"], strict=True))
    assert 0.01 < min(depends.values()) < 0.95  # some kernels have no such column
    for model in models:
        for claim in pd.DataFrame(model.claims_).itertuples():
            if claim.predicate in ("matters", "may matter", "is not used"):
                p = [depends[one] for one in re.split(", | and ", claim.subject)]
                assert claim.predicate != "may matter" or p == pytest.approx(
                    [claim.probability], abs=0.005
                )
                assert claim.predicate != "matters" or min(p) > 0.945
            elif claim.predicate == "is possible":  # no column has more than this one effect
                columns = re.findall(r"\[(\w+)\]", claim.subject)
                assert claim.probability == pytest.approx(max(depends[one] for one in columns))


def test_a_column_that_kernels_share_is_as_probable_in_each_of_its_effects(rng):
    """One kernel adds the columns, the other one multiplies them: both depend on each."""
    X = pd.DataFrame(rng.uniform(size=(30, 2)), columns=["a", "b"])
    model, *others = (
        refitted(kernel, X, X["a"] + X["b"] + 0.1 * rng.normal(size=30))
        for kernel in ("LIN[a] + LIN[b]", "LIN[a] * LIN[b]", "LIN[a]")
    )
    (one,), (product,), (without,) = (each._fitted.kernels for each in (model, *others))

    def with_another(other):
        kernels = (replace(one, probability=0.7), replace(other, probability=0.3))
        model._fitted = replace(model._fitted, kernels=kernels)
        return model.describe()

    assert "possible" not in with_another(product)
    assert model.inclusion_probabilities_["depends"].tolist() == pytest.approx([1.0, 1.0])
    text = with_another(without)
    assert re.search(
        r"b explains .* of the fit: the target rises by .*; probability 0\.70\)", text
    ), text
    assert "matters" not in text  # as a probability is said once
    claims = pd.DataFrame(model.claims_).set_index("predicate")
    assert claims.loc["may matter", ["subject", "probability"]].tolist() == ["b", 0.7]


def test_what_three_columns_do_together_is_said(rng):
    X = pd.DataFrame(rng.uniform(-1, 1, size=(80, 3)), columns=["a", "b", "c"])
    y = 3 * X["a"] * X["b"] * X["c"] + 0.05 * rng.normal(size=80)
    text = refitted("SE[a] * SE[b] * SE[c]", X, y).describe()
    (share,) = numbers(r"[Ii]nteractions explain (\S+) % of", text)
    assert share > 50


def smokers():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"dose": rng.uniform(0, 10, 80), "smoker": rng.integers(0, 2, 80)})
    return X, rng.normal(size=80)


def test_a_column_of_two_values_is_described_by_the_difference_between_them():
    X, e = smokers()
    y = pd.Series(2 + 4.1 * X["smoker"] + 0.5 * X["dose"] + 0.3 * e, name="cost")
    model = refitted("LIN[dose] + LIN[smoker]", X, y)
    text = model.describe({"cost": "dollars", "dose": "mg"})
    value, low, high = numbers(
        rf"where smoker is 1, cost is higher by (\S+) dollars {RANGE} than where it is 0", text
    )
    assert low < value < high
    assert abs(value - 4.1) < 4 * 0.3 * 2 / np.sqrt(80)
    assert "The mean of cost is" in text
    assert "Beyond" not in text.split("smoker explains")[1].split("\n")[0]


def test_an_interaction_is_described_by_the_effect_at_each_level():
    X, e = smokers()
    model = refitted("LIN[dose] * LIN[smoker]", X, 2 + 0.8 * X["dose"] * X["smoker"] + 0.2 * e)
    text = model.describe({"dose": "mg"})
    assert re.search(
        r"dose and smoker interact, which explains \S+ % of the variance of the fit: from 0\.\d+ "
        r"to 9\.\d+ of dose, the target hardly changes \(-0\.\d+ to 0\.\d+\) where smoker is 0 and "
        r"rises by 7\.[6789]\d* \(\S+ to \S+\) where it is 1; the changes differ by 7\.\d+ \(",
        text,
    ), text


def test_columns_that_are_alike_are_named(rng):
    x = rng.uniform(size=50)
    X = pd.DataFrame({"gnp": x, "year": x + 0.03 * rng.normal(size=50), "copy": 3 * x + 1})
    text = refitted("LIN[gnp]", X, x + rng.normal(size=50)).describe()
    assert re.search(r"gnp, year and copy can hardly be distinguished in these.*\(.*0\.99", text)
    assert "gnp and copy are one column in different units" in text


N = 150
ROWS = np.arange(N)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda e, z, f: e, None),
        (
            lambda e, z, f: e + 3 * (ROWS == 17),
            r"^Row 17 is an outlier: (more than 8|\d).* standard dev",
        ),
        # rows that are far off hide each other, but for a median
        (
            lambda e, z, f: e + 15 * (ROWS % 25 == 0),
            "^Rows (?=.*125).* are outliers: more than 8 st",
        ),
        (lambda e, z, f: 3 * e * (f > 0), "^The noise grows with the prediction"),
        (lambda e, z, f: 9 * e * z, r"^The noise grows with z: it is [345]\.\d* times as large"),
        (lambda e, z, f: 0.3 * np.exp(3 * e), "^Large residuals are more often above"),
        (
            lambda e, z, f: e + 0.5 * z,
            r"^z is not used, but residuals still rise with it, by 0\.3",
        ),
    ],
)
def test_what_does_not_fit_is_said_and_nothing_where_all_fits(change, expected):
    rng = np.random.default_rng(5)
    X = pd.DataFrame({"x": np.linspace(0, 10, N), "z": rng.uniform(size=N)})
    function = np.sin(X["x"])
    noise = change(0.15 * rng.normal(size=N), X["z"], function)
    variance = np.var(function + noise)
    # a kernel that is right for the function, and the noise as it is on average
    theta = np.log([0.15, 0.5 / variance])
    settings = {"noise": np.var(noise) / variance, "spread": 0.01}
    model = with_kernel(X, function + noise, parse_expression("SE[0]"), theta, **settings)
    used = "z is not used by the kernels of weight."
    checks = [text for text in model.describe().split("\n\n")[2:] if text != used]
    assert not checks if expected is None else re.search(expected, checks[0])


def test_a_column_that_is_mostly_at_its_largest_value_can_be_missed():
    X = np.column_stack([np.linspace(0, 10, N), ROWS % 5 > 0])
    y = X @ [1.0, 0.5] + 0.2 * np.random.default_rng(0).normal(size=N)
    said = refitted("LIN[0]", X, y).describe()
    assert re.search(r"x1 is not used, but residuals still rise with it,\s+by 0\.[456]", said)


def test_what_a_kernel_leaves_along_the_only_column_is_said():
    x, e = np.linspace(0, 10, N), 0.2 * np.random.default_rng(0).normal(size=N)
    fast, slow = (
        refitted("LIN[0]", x[:, None], x + np.sin(frequency * x) + e).describe()
        for frequency in (4.0, 0.5)
    )
    assert re.search(r"The residuals still repeat along x0, about every 1\.[56]\d", fast)
    said = r"still depend\s+on those before them along x0: their correlation with .* row before"
    assert re.search(said, slow)


def test_a_search_that_was_cut_is_said_to_be_so():
    model = tiny().fit(frame(), WAVE)
    expected = "The search was cut (as many kernels as n_iter allows were evaluated): kernels that"
    assert expected in model.describe()
    assert expected not in model.refit(frame(), WAVE, "LIN[time] * SE[time]").describe()


def test_every_sentence_is_a_claim_with_its_numbers():
    kernel, theta = parse_expression("LIN[0] + PER[0]"), np.log([*LIN, *SEASON])
    model = with_kernel(frame(), 0.5 * T + WAVE, kernel, theta, spread=1e-3, noise=1e-3)
    claims, text = pd.DataFrame(model.claims_), model.describe()
    for sentence in claims["text"]:
        assert sentence in text
    expected = {"rises linearly": (0.5, 0.01), "repeats": (2.0, 0.02), "swing": (2.0, 0.05)}
    for predicate, (value, error) in expected.items():
        assert claims.loc[claims["predicate"] == predicate, "value"].tolist() == pytest.approx(
            [value], abs=error
        )
    assert claims["probability"].between(0, 1).all()
    short = model.describe(short=True)
    assert len(short.splitlines()) <= 3
    assert "rises by 0.5" in short


def test_what_is_kept_of_a_description_is_of_the_last_fit_and_units_and_in_no_file():
    X, y = wave()
    model, units = tiny().fit(X, y), {"y": "litres"}
    size = len(pickle.dumps(model))
    found = [model.describe(units)]
    assert len(pickle.dumps(model)) == size
    units["y"] = "metres"
    found += [model.describe(units), model.fit(X, X[:, 0]).describe(units)]
    fresh = [tiny().fit(X, y).describe({"y": unit}) for unit in ("litres", "metres")]
    assert found == [*fresh, tiny().fit(X, X[:, 0]).describe({"y": "metres"})]


def test_columns_are_named_with_the_probability_that_they_matter(rng):
    X = pd.DataFrame(rng.uniform(size=(40, 3)), columns=["age", "water", "air"])
    y = X["age"] + np.sin(6 * X["water"]) * X["age"] + 0.05 * rng.normal(size=40)
    model = small(n_iter=2, tol=1e-3, start_kernel="LIN[age] * SE[water]").fit(X, y)
    text = model.describe()
    claims = pd.DataFrame(model.claims_)
    assert {*claims.loc[claims["predicate"] == "matters", "subject"]} == {"age", "water"}
    assert "air is not used by the kernels of weight." in text
    assert "age and water interact" in text
    assert "its probability among those that were evaluated is 0." in text
    sentences = "|".join(map(re.escape, claims["text"].unique()))
    assert re.fullmatch(r"[\s\d.]*", re.sub(sentences, "", text))  # each sentence is a claim


@pytest.mark.parametrize("n", [2, pytest.param(40, marks=pytest.mark.slow)])
def test_every_kernel_is_described_and_its_components_are_the_prediction(n, rng):
    X, X_new = rng.uniform(size=(30, 2)), rng.uniform(-0.2, 1.2, size=(30, 2))
    y = np.sin(9 * X[:, 0])
    noise_alone = (parse_expression("NOISE"), np.empty(0))
    for expression, theta in (noise_alone, *random_expressions(n, max_leaves=5)):
        model = with_kernel(X, y, expression, theta)
        found = model.decompose(X_new, units={"x0": "metres"})
        np.testing.assert_allclose(sum_of(found), model.predict(X_new), atol=1e-8 * y.std())
        text = model.describe({"x0": "metres"})
        components = [one for one in found.components if one.columns]
        n_large = sum(one.share >= 0.01 for one in components)
        assert len(re.findall(r"^\d+\. ", text, re.MULTILINE)) == n_large
        assert ("smaller component" in text) == (n_large < len(components))
        assert not re.search(r"nan|inf|  |None|\.\.|, \.|\{", text), text
        for one in components:
            assert one.text in text or one.share < 0.01
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
        ("time", "years", "units must be a mapping such as"),
        ("time", {"sales": "EUR", "y": "USD"}, "one for 'sales' and one for 'y': leave one of"),
    ],
)
def test_units_without_a_meaning_are_refused(column, units, message):
    y = pd.Series(np.arange(60.0), name="sales")
    model = refitted("NOISE", frame().rename(columns={"time": column}), y)
    with pytest.raises(ValueError, match=message):
        model.describe(units)


def test_parts_of_one_of_several_columns_are_described_with_its_name(rng):
    X = pd.DataFrame(rng.uniform(0, 10, size=(40, 2)), columns=["age", "water"])
    kernel = parse_expression("CP[age](SE[age], LIN[age]) + LIN[water]", list(X))
    y = np.where(X["age"] < 4, np.sin(2 * X["age"]), 0.3 * X["age"]) + 0.1 * X["water"]
    model = with_kernel(X, y, kernel, np.log([0.4, 1e-3, *SE, *LIN, *LIN]))
    text = model.describe({"age": "days"})
    lead = r"age explains \S+ % of the variance of the fit: "
    assert re.search(rf"{lead}where age is below \d\.\d+ days \(.*\), the target", text), text
    assert re.search(rf"{lead}where age is above \d\.\d+ days \(.*\), the target", text), text
    assert "water explains" in text


@pytest.mark.parametrize(
    ("unit", "factor", "change", "season"),
    [
        ("days since 1950-01-01", 365.0, "Until 1953-12-31", "yearly season in time with"),
        ("hours since 1950-01-01T12:00", 1.0, "Until 1950-01-01 16:00", r"every 1\.0\d* hours"),
    ],
)
def test_places_are_described_as_dates(unit, factor, change, season):
    X = pd.DataFrame({"time": factor * T})
    theta = np.log([0.4, 1e-3, *SE, 0.5, 1.0, 0.1])
    kernel = parse_expression("CP[0](SE[0], PER[0])")
    text = with_kernel(X, np.arange(60.0), kernel, theta, spread=1e-4).describe({"time": unit})
    assert change in text
    assert re.search(season, text)


@pytest.mark.parametrize(
    ("text", "own", "is_line"),
    [
        ("CW[time](SE[time], LIN[time])", [1.5, 0.3, 1e-3], False),
        ("CW[time](SE[time], LIN[time])", [0.5, 2.0, 1e-3], True),
        ("CP[time](SE[time], LIN[time])", [1.4, 1e-3], False),
    ],
)
def test_a_part_beyond_the_data_explains_nothing_and_the_rest_is_everywhere(text, own, is_line):
    found = described(text, [*own, *SE, *LIN], spread=0.001)
    (line,) = re.findall(r"^\d\. (.*)", found, flags=re.MULTILINE)
    assert line.startswith("The target rises by ")
    assert ("litres per year" in line) == is_line
    assert "It ends before the data do." not in line
    assert "One smaller component of time explains less than 0.1 %" in found


def test_a_change_on_a_constant_column_is_that_of_one_part():
    kernel = parse_expression("CP[1](SE[0], LIN[0])")
    theta = np.log([0.7, 1e-3, *SE, *LIN])
    text = with_kernel(frame().assign(fixed=1.0), np.sin(T), kernel, theta).describe()
    assert "1. time explains 100 % of the variance of the fit: the target goes up" in text
    assert "One smaller component of fixed explains less than 0.1 %" in text
    assert "It ends" not in text


def test_only_plurals_that_are_known_lose_their_last_letter():
    model = refitted("LIN[time]", frame(), 3.0 * frame()["time"])
    for unit, words in (("years", "year"), ("m/s", "m/s"), ("s", "s"), ("degrees C", "degrees")):
        assert re.search(rf"rises by 3\.0\d* per {words}(?![a-z])", model.describe({"time": unit}))
    model = refitted("LIN[time]", 500 * frame(), 1500.0 * frame()["time"])
    text = model.describe({"time": "hours since 2000-01-01"})  # not per year after 730 of them
    assert re.search(r"rises by 3\.0\d* per hour ", text)


def test_on_the_log_scale_effects_are_factors():
    X, e = frame()[:36], np.random.default_rng(0).normal(size=36)
    y = np.exp(2 + 0.1 * T[:36] + 0.3 * np.sin(2 * np.pi * T[:36]) + 0.05 * e)
    settings = {"target_scale": "log", "periods": {"time": 1.0}}
    model = refitted("log(y) ~ LIN[time] + PER1[time]", X, y, **settings)
    text = model.describe(UNITS)
    assert text.startswith("The effects multiply (log scale). The geometric mean")
    noise, low, high = numbers(rf"The noise is typically a factor of (\S+) {RANGE}", text)
    assert low <= noise <= high
    assert noise == pytest.approx(np.exp(0.05), rel=0.01)
    low, high = numbers(rf"rises exponentially, by a factor of \S+ per year {RANGE}", text)
    assert low < np.exp(0.1) < high
    swing = numbers(r"yearly season .* changes the target by a factor of (\S+) to (\S+) in", text)
    np.testing.assert_allclose(swing, np.exp([-0.3, 0.3]), rtol=0.06)
    predicates = {"effects multiply", "rises exponentially", "lowest of swing"}
    assert predicates < {*model.claims_["predicate"]}


def test_a_line_along_the_log_of_a_column_is_described_by_its_doublings(rng):
    X = pd.DataFrame({"age": np.exp(rng.uniform(0, np.log(365), 100))})
    y = 10 + 7 * np.log(X["age"]) + rng.normal(size=100)
    units = {"age": "days", "y": "MPa"}
    model = refitted("LIN[log(age)]", X, y, column_scales={"age": "log"})
    said = r"The target rises in proportion to the logarithm of age, by \S+ MPa"
    text = model.describe(units)
    low, high = numbers(rf"{said} {RANGE} with each doubling of age", text)
    assert low < 7 * np.log(2) < high
    beyond = r"Beyond the data it continues, and rises by 1\.5\d+ MPa \(.* until 4\d\d days"
    assert re.search(beyond, text)
    text = model.refit(X, np.exp(y / 10), "log(y) ~ LIN[log(age)]").describe(units)
    low, high = numbers(rf"as a power of age, by a factor of \S+ {RANGE} with each dou", text)
    assert low < 2**0.7 < high


def test_a_log_that_was_tried_is_not_advised(rng):
    X, advice = rng.uniform(size=(100, 1)), "try the log of the target"
    y = np.exp(X[:, 0] + 0.4 * rng.exponential(size=100))
    model = refitted("LIN[0]", X, y)
    assert advice in model.describe()
    text = refitted("log(y) ~ LIN[0]", X, y).describe()
    assert "more often above the prediction than not." in text
    description = Description(model._fitted, has_tried_log=True)
    assert advice not in str(description)


def test_the_unit_of_a_column_of_dates_is_days():
    days = pd.date_range("2000-01-01", periods=60, freq="MS")
    X = pd.DataFrame({"date": days, "age": np.arange(60.0)})
    model = refitted("LIN[date]", X, np.arange(60.0))
    for unit in ("years", "days since 1949-01-01"):
        with pytest.raises(ValueError, match="'days' for 'date', which holds dates, or"):
            model.describe({"date": unit})
    for unit in ("days", "dates", "days since 1970-01-01"):
        assert model.describe({"date": unit}) == model.describe()
    assert "per year" in model.describe({"age": "years", "y": "litres"})


def test_a_season_within_a_longer_one_is_that_of_averages():
    X = pd.DataFrame({"time": pd.date_range("2024-01-01", periods=21 * 12, freq="2h")})
    hour, day = X["time"].dt.hour, X["time"].dt.day_of_week
    y = np.cos(2 * np.pi * hour / 24) * (1 + (day < 5)) + 2.0 * (day == 6)
    y += 0.05 * np.random.default_rng(0).normal(size=len(X))
    model = refitted("PER1[time] + PER7[time]", X, y)
    text = " ".join(model.describe().split())
    of_days, of_week = numbers(
        r"daily season .* swing of (\S+) on average over its last 7 cycles"
        r".* weekly .* swing of (\S+) in",
        text,
    )
    last = X["time"] >= X["time"].max() - pd.Timedelta("6.95D")
    predicted = pd.Series(model.predict(X))[last]
    assert of_days == pytest.approx(np.ptp(predicted.groupby(hour[last]).mean()), rel=0.05)
    assert of_week == pytest.approx(np.ptp(predicted.groupby(day[last]).mean()), rel=0.1)
    assert "lowest at 12:00" in text


@pytest.mark.parametrize(
    ("kernel", "time", "units", "periods"),
    [
        ("PER365_2425[time]", pd.date_range("2000-01-01", periods=36, freq="MS"), {}, None),
        ("PER1[time]", 2000 + (np.arange(36) + 0.5) / 12, {"time": "years"}, {"time": 1.0}),
    ],
)
def test_a_season_has_the_months_of_its_highest_and_lowest_row(kernel, time, units, periods):
    month = np.arange(36) % 12
    y = 3.0 * (month == 6) - 2.0 * (month == 1) + 0.5 * np.cos(month)
    X = pd.DataFrame({"time": time})
    text = refitted(kernel, X, y, periods=periods).describe(units)
    assert "in its last cycle, highest in July and lowest in February." in text
    noise = 0.3 * np.random.default_rng(1).normal(size=36)
    text = refitted(kernel, X, y + 3.3 * (month == 5) + noise, periods=periods).describe(units)
    assert re.search("highest in (June or July|July or June) and lowest in February", text)


def test_a_search_of_some_rows_is_the_first_thing_that_is_said():
    model = refitted("LIN[time]", frame(), T)
    text = str(Description(model._fitted, n_searched=40, cut="max_time was over"))
    assert text.startswith("Kernels were searched on 40 of the 60 rows. The search was cut (max_")
    assert "searched on" not in model.describe()


def test_the_rows_of_a_search_are_those_that_it_had(rng):
    X = rng.uniform(size=(640, 1))
    y = 2 * X[:, 0] + 0.1 * rng.normal(size=640)
    settings = {"base_kernels": ["LIN"], "noise": "constant", "averaging": None}
    model = tiny(approximation="inducing", n_inducing=10, **settings).fit(X[:620], y[:620])
    model.set_params(approximation="exact", strategy="random")
    assert "Kernels were searched on 500 of the 620 rows." in model.describe()
    model.update(X[620:], y[620:])
    for one in (model, from_dict(to_dict(model))):
        assert "Kernels were searched on 500 of the 640 rows." in one.describe()
    model = tiny(**settings).fit(X[:40], y[:40]).refit(X[:60], y[:60])
    said = "Kernels were searched on 40 of the 62 rows."
    assert said in model.update(X[60:62], y[60:62]).describe()
    assert "searched on" not in model.refit(X[:60], y[:60], "SE[0]").describe()  # not of the search
    model = tiny().refit(X[:40], y[:40], "LIN[0]").update(X[40:42], y[40:42])
    assert "searched on" not in model.describe()


def test_residuals_are_compared_with_categories_that_no_kernel_uses(rng):
    X = pd.DataFrame({"x": rng.uniform(size=90), "shop": rng.choice([*"abc"], 90)})
    y = X["x"] + 0.3 * (X["shop"] == "a") + 0.1 * rng.normal(size=90)
    said = "shop is not used, but residuals still differ between its levels"
    assert said in refitted("LIN[x]", X, y).describe()
    assert said not in refitted("LIN[x] + CAT[shop]", X, y).describe()


def test_levels_are_compared_over_the_values_that_both_have(rng):
    X = pd.DataFrame({"dose": rng.uniform(0, 8, 80), "drug": np.repeat(["old", "new"], 40)})
    X.loc[X["drug"] == "new", "dose"] /= 4  # up to 2
    y = X["dose"] * np.where(X["drug"] == "new", 3.0, 1.0) + 0.1 * rng.normal(size=80)
    text = refitted("CAT[drug] * LIN[dose]", X, y).describe()
    begin, end, of_new, of_old = numbers(
        r"from (\S+) to (\S+) of dose, .+? by (\S+) \(.+ where drug is new .+? by (\S+) \(", text
    )
    assert end <= 2
    assert of_new / (end - begin) == pytest.approx(3, abs=0.1)
    assert of_old / (end - begin) == pytest.approx(1, abs=0.1)
    X.loc[X["drug"] == "old", "dose"] += 3
    y = X["dose"] * np.where(X["drug"] == "new", 3.0, 1.0) + 0.1 * rng.normal(size=80)
    text = refitted("CAT[drug] * LIN[dose]", X, y).describe()
    said = "the data cannot tell how, as rows that differ in drug have hardly any range of dose"
    assert said in " ".join(text.split())


def test_levels_within_levels_have_no_interaction(rng):
    chick = np.repeat([f"c{n}" for n in range(8)], 10)
    X = pd.DataFrame({"chick": chick, "diet": np.repeat(["corn", "soy"], 40)})
    y = np.repeat(rng.normal(size=8), 10) + 2.0 * (X["diet"] == "soy") + 0.1 * rng.normal(size=80)
    text = refitted("CAT[chick] * CAT[diet]", X, y).describe()
    assert "chick explains" in text
    assert "interact" not in text


def test_a_few_rows_far_from_the_others_do_not_stand_for_a_column(rng):
    hits = np.append(rng.uniform(40, 200, 78), [2000.0, 4000.0])
    X = pd.DataFrame({"hits": hits, "age": rng.uniform(size=80)})
    text = refitted("SE[hits] + LIN[age]", X, np.log(hits) + X["age"]).describe()
    (last,) = numbers(r"rises by \S+ \(.*?\) from \S+ to (\S+?),? ", text)
    assert last <= 200


def test_levels_have_intervals_if_they_are_few_and_a_spread_if_they_are_many(rng):
    shop = np.repeat([f"s{n}" for n in range(9)], 12)
    X = pd.DataFrame({"shop": shop, "kind": np.tile(["big", "mid", "small"], 36)})
    y = np.repeat(np.arange(9.0), 12) + np.tile([5.0, 0.0, -5.0], 36) + 0.1 * rng.normal(size=108)
    text = refitted("CAT[shop] + CAT[kind]", X, y).describe()
    assert re.search(rf"big \+\S+ {RANGE}, mid \S+ {RANGE} and small -\S+ {RANGE}", text)
    spread = numbers(r"of 9 levels with a standard deviation of (\S+), the highest", text)
    assert spread == pytest.approx([np.std(np.arange(9.0))], rel=0.05)


def test_only_levels_and_pairs_of_levels_that_surely_differ_are_named(rng):
    X = pd.DataFrame({"shop": np.repeat([f"s{n}" for n in range(9)], 20)})
    y = 3.0 * (X["shop"] == "s4") - 2.0 * (X["shop"] == "s7") + 0.7 * rng.normal(size=180)
    said = " ".join(refitted("CAT[shop]", X, y).describe().split())
    assert re.search(
        r": s4 \+\S+( and|, s\d \S+ and) s7 -\S+ \(of 9 levels .*all that surely", said
    )
    X["kind"] = np.tile(["big", "small"], 90)
    both = (X["shop"] == "s4") & (X["kind"] == "big")
    said = refitted("CAT[shop] * CAT[kind]", X[:-20], (y + 4.0 * both)[:-20]).describe()
    most, least = re.search(r"most where (.+?) \(.+most\s+where (.+?) \(", said, re.DOTALL).groups()
    assert " ".join(most.split()) == "shop is s4 and kind is big"
    assert " ".join(least.split()) == "shop is s4 and kind is small"


def test_a_curve_that_differs_between_neighbours_is_read_at_the_rows(rng):
    X, level = pd.DataFrame({"lot": np.repeat(np.arange(60) / 7, 3)}), rng.normal(size=60)
    y = np.repeat(level, 3) + 0.1 * rng.normal(size=180)
    theta = np.log([1e-3, 1.0])
    said = with_kernel(X, y, parse_expression("SE[lot]", ["lot"]), theta, noise=1e-2).describe()
    low, high = numbers(
        r"value to the next,\s+lowest\s+at\s+(\S+)\s+and\s+highest\s+at\s+(\S+)\.", said
    )
    assert (low, high) == pytest.approx((np.argmin(level) / 7, np.argmax(level) / 7), abs=1e-4)


def test_a_smooth_curve_at_even_rows_does_not_differ_between_neighbours():
    X = pd.DataFrame({"x": np.linspace(0, 10, 65)})  # as many as the points of a curve
    said = refitted("SE[x]", X, np.sin(2 * X["x"])).describe()
    assert "goes up and down by" in said
    assert "from one value" not in said


def test_whole_numbers_without_an_order_are_described_by_their_levels(rng):
    X = pd.DataFrame({"plot": np.repeat([1, 2, 3, 4], 15)})
    y = np.array([0.0, 2.0, -1.0, 1.0])[X["plot"] - 1] + 0.1 * rng.normal(size=60)
    said = refitted("CAT[plot] + LIN[plot]", X, y).describe()
    assert re.search(r"Levels of plot: 2 \+1\.\d.*, 4 .*, 1 .* and\s+3 -1\.\d", said, re.DOTALL)


def test_a_walk_that_surely_goes_back_is_not_said_to_rise():
    steps = np.repeat([1.0, -1.0, 1.0, -1.0, 1.0], 12)
    y = np.cumsum(steps) + 0.1 * np.random.default_rng(0).normal(size=60)
    said = refitted("RW[time]", frame(), y).describe()
    assert re.search("goes up and down by 1[12]", said)


def test_a_slope_is_measured_by_a_step_that_a_reader_can_see(rng):
    X = pd.DataFrame({"miles": rng.uniform(0, 50_000, 60), "age": rng.uniform(size=60)})
    y = -2e-4 * X["miles"] + X["age"] + 0.1 * rng.normal(size=60)
    text = refitted("LIN[miles] + LIN[age]", X, y).describe()
    (slope,) = numbers(r"the target falls by (\S+) per 10000 of miles", text)
    assert slope == pytest.approx(2.0, rel=0.05)


def test_components_of_one_column_have_different_names():
    days = pd.date_range("2000-01-01", periods=36, freq="MS")
    y = 0.1 * np.arange(36) + np.sin(np.pi / 6 * np.arange(36))
    model = refitted("LIN[date] + PER365_2425[date]", pd.DataFrame({"date": days}), y)
    names = [one.name for one in model.decompose().components]
    assert {"date (trend)", "date (yearly season)"} <= {*names}
    assert {*model.explain(pd.DataFrame({"date": days[:1]}))["effect"]} >= {*names}


def test_a_flat_part_of_a_column_hardly_changes():
    y = np.where(T < 4, 0.0, 3.0 * (T - 4)) + 0.05 * np.random.default_rng(0).normal(size=60)
    theta = [0.4, 1e-3, 0.5, 1e-4, 1.0, 0.4]
    text = described("CP[time](SE[time], LIN[time])", theta, y=y, spread=1e-3, noise=1e-2)
    assert re.search(r"Until 195\S+ \([^)]*\), the target hardly changes\.", text), text


def test_beyond_the_data_anything_may_come_or_little():
    anything, little = (
        described("SE[time]", [length, 1.0], y=np.sin(T), spread=1e-3, noise=1e-3)
        for length in (0.05, 0.4)
    )
    assert re.search(r"Its course beyond the data is uncertain\.\s", anything), anything
    assert re.search("uncertain: it changes by|Beyond the data it", little), little


@pytest.mark.parametrize("kernel", ["CAT[kind] + LIN[x]", "CAT[kind] * SE[x]"])
@pytest.mark.parametrize(
    ("others", "said"),
    [("a", r"where kind is rare, .* higher by (\S+) \("), ("ac", r"rare \+(\S+) \(")],
)
def test_a_level_of_one_row_is_described_as_the_others(kernel, others, said, rng):
    X = pd.DataFrame({"kind": rng.choice([*others], 60), "x": rng.uniform(size=60)})
    X.loc[59, "kind"] = "rare"
    y = X["x"] + 3.0 * (X["kind"] == "rare") + 0.1 * rng.normal(size=60)
    text = refitted(kernel, X, y).describe()
    (height,) = numbers(said, text)
    # its prior draws an effect of one row towards zero
    assert 2.0 < height < 3.2, text


@pytest.mark.parametrize("values", [(0.0, 1.0), (5.0, 5.5, 6.0), (-1e6, 1e6)])
def test_a_column_whose_rows_have_one_value_but_a_few_is_described(values, rng):
    first, *others = values
    x = np.append(np.full(100 - len(others), first), others)
    X = pd.DataFrame({"dose": x, "time": rng.uniform(size=100)})
    y = X["time"] + 2.0 * (x > first) + 0.05 * rng.normal(size=100)
    text = refitted("SE[dose] + LIN[time]", X, y).describe()
    (change,) = numbers(r"dose explains .*?(?:rises|higher) by (\d\S*)", text)
    assert 1.5 < change < 2.2, text


@pytest.mark.filterwarnings("ignore:interrupted")
def test_a_level_that_the_rows_of_the_fit_do_not_have_is_not_said_to_be_none():
    n, texts = 1200, []
    for seed in range(2):
        rng = np.random.default_rng(seed)
        X = pd.DataFrame({"rare": ["a"] * (n - 1) + ["b"], "x": rng.normal(size=n)})
        model = AutoKernelGPRegressor(random_state=seed, outliers=None)
        with pytest.raises(KeyboardInterrupt):
            model.set_callbacks(At(interrupt, ended=1)).fit(X, X["x"] + 0.1 * rng.normal(size=n))
        texts.append(model.describe())
        assert "rare is constant." not in texts[-1]
        assert np.isfinite(model.explain(X.iloc[[-1]])["contribution"]).all()
    assert re.search(r"rare is constant in the \d+ rows of the fit\.", "".join(texts))


def test_a_part_that_is_whole_between_two_rows_only_is_described():
    near = (T < 3.5) | (T > 7)
    kernel = parse_expression("CW[time](SE[time], LIN[time])", ["time"])
    theta = np.log([0.525, 0.4, 0.02, *SE, *LIN])
    text = with_kernel(frame()[near], np.sin(T[near]), kernel, theta).describe()
    assert re.search(r"From 195\S+ \(.*\) to 195\S+ \(.*\), the target", text)


@pytest.mark.parametrize(("approximation", "n"), [("neighbours", 1050), ("inducing", 400)])
def test_of_many_rows_some_are_left_out_too(approximation, n, rng):
    X = pd.DataFrame({"x": rng.uniform(size=n), "z": rng.uniform(size=n)})
    y = np.sin(6 * X["x"]) + 0.3 * rng.normal(size=n)
    model = refitted("SE[x]", X, y, approximation=approximation, n_inducing=20)
    (share,) = numbers(
        r"The fit explains (\d+) % of the variance of \d+ held-out rows", model.describe()
    )
    assert share == pytest.approx(100 * model.left_out_score_, abs=0.51)
    assert share == pytest.approx(100 * (1 - 0.3**2 / np.var(y)), abs=5)


def test_of_few_rows_the_fit_is_not_said_to_explain_others():
    X, y = wave(9)
    model = refitted("LIN[0]", X, y)
    of = "the variance of the rows that it was fitted to, and may explain less of others"
    (share,) = numbers(rf"The fit explains (\d+) % of {of}\.", model.describe())
    errors = np.mean((y - model.predict(X)) ** 2)
    assert share == pytest.approx(100 * (1 - errors / np.var(y)), abs=0.51)
    assert len(model.left_out_["row"]) == 0
    assert np.isnan(model.left_out_score_)


@pytest.mark.parametrize("width", [0.9, 1.3])
def test_intervals_are_said_to_be_wider_if_held_out_rows_show_it(width):
    X, y = wave(30)
    model = refitted("SE[0]", X, y, averaging=PosteriorAveraging(n_components=1))
    law = ErrorLaw.of(width, PRIOR_LAW.shares, wild=0.0)  # 1.23 times as wide at a width of one
    mixture = model._fitted.mixture.with_law(law)
    model._fitted = replace(model._fitted, mixture=mixture)
    said = re.findall(r"Intervals are (\S+) times as wide as the fit alone says", model.describe())
    assert said == (["1.60"] if width > 1 else [])  # 1.23 * 1.3
    low, high = model.predict_interval(X, 0.95).T
    inputs = model._fitted.scaled(X)
    plain = mixture.with_law(NORMAL).quantiles(inputs, np.array([0.025, 0.975]))
    wider = (high - low) / np.ptp(plain, axis=1) / y.std()
    np.testing.assert_allclose(wider, law.deviation, rtol=1e-6)  # the tolerance of the root


def test_the_row_that_carries_an_effect_is_named_with_what_is_left_without_it(rng):
    X = pd.DataFrame({"area": rng.uniform(size=40), "pools": rng.uniform(0, 0.2, 40)})
    X.loc[7, "pools"] = 5.0
    y = X["area"] + X["pools"] + 0.3 * rng.normal(size=40)
    model = refitted("LIN[area] + LIN[pools]", X, y)
    row, left = numbers(
        r"Row (\d+), where pools is 5, .+ without the row, (\S+) % of it", model.describe()
    )
    best, data = model._fitted.evaluation, model._fitted.mixture.data
    others = np.delete(np.arange(40), 7)
    some = ExactPredictor(best.expression, best.theta, data.take(others))
    ends = np.array([[0.5, 0.0], [0.5, 1.0]])
    slopes = [
        np.diff(one.mean(ends))[0]
        for one in (some, ExactPredictor(best.expression, best.theta, data))
    ]
    spread = np.std(np.delete(X["pools"].to_numpy(), 7)) / X["pools"].std(ddof=0)
    assert row == 7
    assert left / 100 == pytest.approx(slopes[0] / slopes[1] * spread, abs=0.02)


def of_firms(usual, rng):
    """Ten firms in six years, with prices around usual ones (10,), and a model of their sales."""
    firm, year = np.repeat(np.arange(10), 6), np.tile(np.arange(6.0), 10)
    X = pd.DataFrame({"firm": [f"f{one}" for one in firm], "year": year})
    X["price"] = usual[firm] + rng.normal(size=60)
    y = 3 * usual[firm] - 2 * (X["price"] - usual[firm]) + 0.1 * rng.normal(size=60)
    return X, refitted("CAT[firm] + LIN[price]", X, y)


def test_slopes_that_one_group_carries_are_not_said(rng):
    said = of_firms(np.append(np.zeros(9), 6.0), rng)[1].describe()
    assert "each firm" not in said


def test_slopes_within_groups_and_between_them_are_those_of_predictions(rng):
    X, model = of_firms(np.arange(10.0), rng)
    within, between = numbers(
        r"falls by (\S+) per unit of price, .+ rises by (\S+) per", model.describe()
    )
    frame = pd.DataFrame({"x": X["price"], "y": model.predict(X)})
    means = frame.groupby(X["firm"]).transform("mean")
    slopes = [np.polyfit(one["x"], one["y"], 1)[0] for one in (frame - means, means)]
    np.testing.assert_allclose([-within, between], slopes, rtol=0.02)


def test_a_wrong_reading_is_one_outlier_and_not_its_neighbours():
    y = np.sin(T) + 0.02 * np.random.default_rng(0).normal(size=len(T))
    y[30] += 3
    # the noise is that of the other rows, so that neighbours are far from their predictions too
    text = described("MAT12[time]", [2.0, 5.0], y, spread=1e-3, noise=1e-2)
    assert "Row 30 is an outlier: more than 8 standard deviations off" in text
