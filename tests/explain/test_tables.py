"""Tables about a fitted model: kernels, columns, parameters, the search."""

import json
import pickle
from functools import cache

import numpy as np
import pandas as pd
import pytest

from autokernel import Criterion, NotAMaximumError
from autokernel.evidence.posterior import LogPosterior
from autokernel.explain.tables import Table, Text
from autokernel.explain.words import interval
from autokernel.expression import parse_expression
from autokernel.inference import ExactLikelihood, TrainingData
from tests.explain.models import refitted, with_kernel
from tests.fits import tiny, wave


@cache
def fit_of_a_line():
    """A line in the first of two columns, in units of thousands."""
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(60, 2)) * [10.0, 1e-3]
    y = 1000 * (2 * X[:, 0] / 10 + 0.05 * rng.normal(size=60))
    return tiny(max_leaves=2).fit(X, y)


@cache
def fit_of_a_sine():
    """Five cycles in twelve years, with a noise of ten."""
    rng = np.random.default_rng(1)
    years = 1949 + 12 * np.append(rng.uniform(size=28), [0, 1])
    y = 100 * np.sin(2 * np.pi * years / 2.4) + 10 * rng.normal(size=30)
    return tiny(base_kernels=["SE", "PER"]).fit(years[:, None], y)


def test_a_slice_of_a_table_is_the_table_of_these_rows():
    table = Table({"x": [1, 2, 3, 4], "text": list("abcd")}, shown=["text"], note="four")
    some = table[1:3]
    assert {name: some[name].tolist() for name in some} == {"x": [2, 3], "text": ["b", "c"]}
    assert repr(some) == "text\nb\nc\nfour"
    np.testing.assert_array_equal(table[::-1]["x"], table["x"][::-1])
    claims = fit_of_a_line().claims_
    assert claims[1:3]["text"].tolist() == claims["text"].tolist()[1:3]


@cache
def fit_of_noise():
    """Noise alone."""
    X, y = np.linspace(0, 1, 30)[:, None], np.random.default_rng(1).normal(size=30)
    return tiny(base_kernels=["SE"], max_leaves="auto").fit(X, 10 * y)


FITS = {"line": fit_of_a_line, "sine": fit_of_a_sine, "noise": fit_of_noise}


def rows_of(table):
    """The rows of a table as dicts."""
    return [dict(zip(table, row, strict=True)) for row in zip(*table.values(), strict=True)]


def row_of(table, **values):
    """The only row with these values."""
    (row,) = (row for row in rows_of(table) if all(row[name] == v for name, v in values.items()))
    return row


def test_a_line_in_one_of_two_columns_is_recognised():
    used, unused = rows_of(fit_of_a_line().inclusion_probabilities_)
    assert [used["column"], unused["column"]] == ["x0", "x1"]
    assert used["depends"] > 0.99
    assert used["linear"] > 0.6  # smooth functions may be nearly straight, too
    # a sum over both columns costs no more than one: little but the evidence speaks against it
    assert unused["depends"] < 0.3
    for row in (used, unused):
        assert row["repeats"] == 0.0  # no kernel repeats itself
        assert row["linear"] <= row["depends"]


def test_a_sine_of_five_cycles_is_recognised():
    model = fit_of_a_sine()
    (row,) = rows_of(model.inclusion_probabilities_)
    assert row["depends"] > 0.99
    assert row["repeats"] > 0.99
    assert row["linear"] == 0.0
    period = row_of(model.parameters_, leaf="PER", parameter="period")
    assert period["low"] < period["value"] < period["high"]
    # in years; a cycle is known to a few hundredths
    assert period["value"] == pytest.approx(2.4, rel=0.02)
    assert period["high"] - period["low"] < 0.1
    # which is a lengthscale within a cycle, without unit
    length = row_of(model.parameters_, parameter="lengthscale")
    assert 0.1 < length["low"] < length["high"] < 5


def test_intervals_are_those_of_a_markov_chain_over_the_parameters(rng):
    model = fit_of_a_sine()
    best, columns = model._fitted.evaluation, model._fitted.columns
    data = TrainingData(
        columns.inputs(model.X_train_), model._fitted.target.forward(model.y_train_)
    )
    posterior = LogPosterior(ExactLikelihood(best.expression, data), priors={})
    step = 1.2 * np.linalg.cholesky(np.linalg.inv(best.hessian))
    states, value = [best.theta], best.log_posterior
    for _ in range(6000):
        proposed = states[-1] + step @ rng.normal(size=4)
        new = posterior.value(proposed)
        accepted = np.log(rng.uniform()) < new - value
        states.append(proposed if accepted else states[-1])
        value = new if accepted else value
    expected = np.quantile(np.exp(states) * [1.0, 1.0, 12.0, 1.0], [0.05, 0.95], axis=0)
    table = model.parameters_
    assert table["parameter"].tolist() == ["lengthscale", "variance", "period", "noise_variance"]
    found = np.log([table["low"], table["high"]])
    # 200 draws know an end to 0.2 standard deviations, or to 0.5 where its tail is long; ends at
    # other levels, such as 0.25, would be off by one on average
    deviations = np.abs(found - np.log(expected)) / np.std(states, axis=0)
    assert deviations.max() < 2
    assert deviations.mean() < 0.5


def test_a_period_as_long_as_the_data_is_no_repetition():
    X = np.linspace(0, 1, 25)[:, None]
    y = X[:, 0] ** 2 + 0.02 * np.random.default_rng(0).normal(size=25)
    (row,) = rows_of(tiny(base_kernels=["SE", "PER"]).fit(X, y).inclusion_probabilities_)
    assert row["depends"] > 0.99
    assert row["repeats"] < 0.05


def test_columns_do_not_matter_to_noise_alone():
    model = fit_of_noise()
    assert model.best_expression_ == "NOISE"
    assert model.inclusion_probabilities_["depends"][0] < 0.5
    (noise,) = rows_of(model.parameters_)
    assert (noise["leaf"], noise["parameter"]) == ("noise", "noise_variance")
    assert noise["low"] < 1 < noise["high"]  # in multiples of the variance of y
    # a variance of 30 values is known to sqrt(2 / 30): 0.26, and a 90 % interval to 1.64 of that
    assert noise["high"] / noise["low"] == pytest.approx(np.exp(2 * 1.64 * 0.26), rel=0.2)


@pytest.mark.parametrize("name", FITS)
def test_the_posterior_is_a_distribution_over_evaluated_kernels(name):
    model = FITS[name]()
    table, history = model.posterior_, model.search_history_
    head = ("probability", "log_evidence", "log_prior", "n_leaves", "pareto_k", "kernel")
    assert tuple(table) == head
    assert table["probability"].sum() == pytest.approx(1.0, rel=1e-12)
    assert np.all(np.diff(table["probability"]) <= 0)
    joint = table["log_evidence"] + table["log_prior"]
    odds = np.log(table["probability"] / table["probability"][0])
    np.testing.assert_allclose(odds, joint - joint[0], atol=1e-9)
    for row in rows_of(table):
        before = history["kernel"].tolist().index(row["kernel"])
        assert row["log_prior"] == history["log_prior"][before]
        assert row["n_leaves"] == history["n_leaves"][before]
        # Laplace's method is off by less than two nats here
        evidence = history["score"][before] - history["log_prior"][before]
        assert row["log_evidence"] == pytest.approx(evidence, abs=2)
    assert model.best_expression_ in table["kernel"]


def test_columns_have_their_names_and_constant_ones_no_say():
    x, y = wave(20)
    frame = pd.DataFrame({"time": x[:, 0], "site": 3.0})
    model = tiny(base_kernels=["SE"]).fit(frame, y)
    time, site = rows_of(model.inclusion_probabilities_)
    assert time["column"] == "time"
    assert site == {"column": "site", "depends": 0.0, "repeats": 0.0, "linear": 0.0}
    assert model.posterior_["kernel"][0] == "SE[time]"
    assert model.parameters_["column"].tolist() == ["time", "time", ""]


def test_what_a_kernel_says_about_columns():
    X, y = wave(15, n_features=2)
    for text, depends, linear in (
        ("LIN[0] + SE[1]", [1, 1], [1, 0]),
        ("LIN[0] + LIN[1]", [1, 1], [1, 1]),
        ("LIN[0] * SE[1]", [1, 1], [0, 0]),  # its slope depends on the other
        ("LIN[0] + SE[0]", [1, 0], [0, 0]),
        ("LIN[0] + LIN[0] * LIN[1]", [1, 1], [0, 0]),
        ("LIN[0] * LIN[0]", [1, 0], [0, 0]),  # a parabola
        ("NOISE", [0, 0], [0, 0]),
    ):
        table = refitted(text, X, y).inclusion_probabilities_
        assert (table["depends"].tolist(), table["linear"].tolist()) == (depends, linear), text


class Without(Criterion):
    """A criterion that no kernel has a score by."""

    def __call__(self, fit):
        raise NotAMaximumError("there is none")


@pytest.mark.parametrize(("criterion", "has_score"), [("laplace", True), (Without(), False)])
def test_after_refit_one_kernel_has_all_the_probability(criterion, has_score):
    model = refitted("SE[0] + LIN[0]", *wave(20), criterion=criterion)
    assert np.isfinite(model.best_score_) == has_score
    (row,) = rows_of(model.posterior_)
    assert (row["kernel"], row["probability"]) == ("SE[0] + LIN[0]", 1.0)
    assert model.inclusion_probabilities_["depends"].tolist() == [1.0]
    assert len(model.parameters_["low"]) == 5


@pytest.mark.parametrize("attribute", ["posterior_", "inclusion_probabilities_", "parameters_"])
def test_tables_print_a_line_for_each_row_and_go_into_a_frame(attribute):
    table = getattr(fit_of_a_line(), attribute)
    head, *lines = str(table).splitlines()
    assert head.split() == list(table)
    for line, row in zip(lines, rows_of(table), strict=True):
        assert all(text in line for text in row.values() if isinstance(text, str))
        assert line == line.rstrip()
        assert "nan" not in line
    pd.testing.assert_frame_equal(pd.DataFrame(table), pd.DataFrame(rows_of(table)))


def test_a_table_aligns_its_columns_and_ends_after_twenty_rows():
    table = Table({"name": ["a", "long"], "size": [1.0, 123456.0]})
    assert str(table).splitlines() == ["name    size", "a          1", "long  123456"]
    table = Table({"number": np.arange(25), "value": np.full(25, np.nan)})
    assert str(table).splitlines()[20:] == ["    19", "... and 5 more"]  # nan is left out
    assert str(Table({"number": np.arange(20)})).splitlines()[-1].split() == ["19"]
    assert str(Table({"number": np.arange(0)})).split() == ["number"]


def test_a_row_for_each_parameter_of_each_component():
    X = pd.DataFrame({"time": np.linspace(0, 10, 30), "depth": np.linspace(5, 0, 30) ** 2})
    kernel = parse_expression("(PER[time] + LIN[depth]) * SE[depth]", ["time", "depth"])
    params = [0.5, 1.0, 0.2, 1.0, 2.0, 0.4, 3.0]
    table = with_kernel(X, np.sin(X["time"]), kernel, np.log(params)).parameters_
    rows = [list(row.values()) for row in rows_of(table)]
    assert list(table)[:5] == ["component", "leaf", "column", "parameter", "value"]
    assert [(*row[:4], round(row[4], 6), row[7]) for row in rows] == [
        (1, "PER", "time", "lengthscale", 0.5, ""),
        (1, "PER", "time", "variance", 1.0, "variance of y"),
        (1, "PER", "time", "period", 2.0, "time"),
        (1, "SE", "depth", "lengthscale", 10.0, "depth"),
        (1, "SE", "depth", "variance", 3.0, "variance of y"),
        (2, "LIN", "depth", "variance", 1.0, "variance of y"),
        (2, "LIN", "depth", "offset", 2.0, "variance of y"),
        (2, "SE", "depth", "lengthscale", 10.0, "depth"),
        (2, "SE", "depth", "variance", 3.0, "variance of y"),
        (0, "noise", "", "noise_variance", 0.1, "variance of y"),
    ]
    assert np.all(table["low"] < table["value"])
    assert np.all(table["value"] < table["high"])
    # draws with a log standard deviation of 0.1
    np.testing.assert_allclose(table["high"] / table["low"], np.exp(0.329), rtol=0.15)
    assert pd.DataFrame(table).shape == (10, 8)
    assert "period" in repr(table)


def test_a_text_reads_without_print_and_is_a_string():
    text = Text("Of SE[a_b] * LIN[b], $ 1.\n\n1. " + "A word, " * 30 + "and the end.")
    assert text == str(text)
    assert json.loads(json.dumps({text: text})) == {str(text): str(text)}
    assert pickle.loads(pickle.dumps(text)) == text
    assert repr(text).split() == text.split()
    assert max(map(len, repr(text).splitlines())) <= 100
    markdown = text._repr_markdown_()
    assert r"SE\[a\_b\] \* LIN\[b\], \$ 1." in markdown
    assert "\n1. A word" in markdown


def test_an_interval_holds_nine_of_ten_new_draws_of_any_distribution():
    # a new draw is below the k-th smallest of 99 with probability k / 100
    np.testing.assert_allclose(interval(np.arange(1.0, 100.0)), [5, 95], rtol=1e-12)
    found = interval(np.arange(1.0, 40.0)[:, None] * [1.0, -2.0])
    np.testing.assert_allclose(found, [[2, -76], [38, -4]], rtol=1e-12)
    assert np.isnan(interval(np.ones((1, 2)))).all()  # one draw says nothing
