"""Change-points and windows: other kernels in other parts of a column."""

import pickle
import re

import numpy as np
import pytest
from hypothesis import given

from autokernel import AutoKernelGPRegressor, ExpressionSyntaxError, parse_expression
from autokernel.expression import Grammar, addends, splits
from autokernel.inference import ExactLikelihood, TrainingData, cross_covariance
from autokernel.kernels import (
    CHANGE_POINT,
    CHANGE_WINDOW,
    FEW_COLUMNS,
    OPERATORS,
    BroadcastPairs,
    Operands,
)
from autokernel.search import STRATEGIES
from tests.batteries import numerical_gradient, seeds
from tests.fits import assert_predicts_as_its_kernel
from tests.search.stand_ins import QUICK


def level_shift(n=60, at=0.6):
    """A rising line that falls to a lower level, with little noise."""
    rng = np.random.default_rng(0)
    x = np.linspace(1950, 1960, n)
    y = np.where(x < 1950 + 10 * at, 0.5 * (x - 1950), -3.0) + 0.1 * rng.normal(size=n)
    return x[:, None], y


def bump(n=80):
    """A wave of period one that is still from 1953 to 1956."""
    rng = np.random.default_rng(0)
    x = np.linspace(1950, 1960, n)
    is_still = (x > 1953) & (x < 1956)
    y = np.where(is_still, 0.0, np.sin(2 * np.pi * x)) + 0.05 * rng.normal(size=n)
    return x[:, None], y


def logistic(z):
    return 1 / (1 + np.exp(-z))


@pytest.mark.parametrize("text", ["CP[1](SE[0], LIN[1])", "CW[1](SE[0], LIN[1])"])
@given(seed=seeds)
def test_values_are_those_of_the_definition(text, seed):
    rng = np.random.default_rng(seed)
    X, Z = rng.uniform(size=(6, 2)), rng.uniform(size=(5, 2))
    expression = parse_expression(text)
    n_own = len(expression.operator.parameters)
    params = np.append(rng.uniform(0.1, 0.6, n_own), [0.5, 2.0, 1.5, 0.3])
    found = cross_covariance(expression, X, Z).forward(params)

    def weight(x):
        """The weight of the first operand."""
        if n_own == 2:
            location, width = params[:2]
            return logistic((location - x) / width)
        centre, length, width = params[:3]
        begin, end = centre - length / 2, centre + length / 2
        return 1 - logistic((x - begin) / width) * logistic((end - x) / width)

    first = 2.0 * np.exp(-0.5 * (np.subtract.outer(X[:, 0], Z[:, 0]) / 0.5) ** 2)
    second = 1.5 * np.outer(X[:, 1], Z[:, 1]) + 0.3
    a, b = weight(X[:, 1]), weight(Z[:, 1])
    expected = np.outer(a, b) * first + np.outer(1 - a, 1 - b) * second
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("symbol", ["CP", "CW"])
@given(seed=seeds)
def test_the_gradient_of_the_likelihood_equals_finite_differences(symbol, seed):
    rng = np.random.default_rng(seed)
    text = f"SE[1] * {symbol}[0](SE[0] + LIN[0], {symbol}[1](LIN[1], RQ[0])) + LIN[0]"
    data = TrainingData(rng.uniform(0, 1, (12, 2)), rng.normal(size=12))
    likelihood = ExactLikelihood(parse_expression(text), data)
    theta = rng.uniform(-1, 0.5, len(likelihood.parameters))
    expected = numerical_gradient(likelihood.value, theta)
    found = likelihood.value_and_gradient(theta)[1]
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6 * abs(expected).max())


@pytest.mark.parametrize("operator", [CHANGE_POINT, CHANGE_WINDOW])
def test_values_and_gradients_are_finite_for_steps_far_away(operator):
    x = np.linspace(0, 1, 9)
    pairs = BroadcastPairs(x[:, None], x[None])
    for location in (1e-8, 0.5, 1e4):
        for width in (1e-9, 1e4):
            own = [location, width] if operator is CHANGE_POINT else [location, 0.2, width]
            at = Operands([np.ones((9, 9)), 2 * np.ones((9, 9))], np.array(own), pairs)
            assert np.all(np.isfinite(operator.value(at)))
            assert np.all(np.isfinite(operator.gradient(at, np.ones((9, 9)))))


@pytest.mark.parametrize("operator", [CHANGE_POINT, CHANGE_WINDOW])
def test_copies_of_an_operator_are_the_object_itself(operator):
    assert pickle.loads(pickle.dumps(operator)) is operator


def test_the_notation_needs_the_column_and_both_operands():
    text = "CP[time](SE[time] + LIN[time], PER[time])"
    assert parse_expression(text, ["time"]).to_text(["time"]) == text
    with pytest.raises(ExpressionSyntaxError, match="column of CP in square brackets"):
        parse_expression("CP(SE[0], LIN[0])")


def test_addends_are_the_terms_in_their_parts():
    found = addends(parse_expression("LIN[0] * CP[1](SE[0] + RQ[0], PER[0])"))
    texts = [str(one.expression) for one in found]
    assert texts == [
        "LIN[0] * BEFORE[1] * SE[0]",
        "LIN[0] * BEFORE[1] * RQ[0]",
        "LIN[0] * AFTER[1] * PER[0]",
    ]
    # LIN has 2 parameters, CP 2, SE 2, RQ 3, PER 3
    assert [one.entries.tolist() for one in found] == [
        [0, 1, 2, 3, 4, 5],
        [0, 1, 2, 3, 6, 7, 8],
        [0, 1, 2, 3, 9, 10, 11],
    ]


def test_terms_of_a_part_can_be_removed_and_operands_can_take_the_place():
    expression = parse_expression("CW[0](SE[0] + LIN[0], PER[0])")
    assert {str(split.term) for split in splits(expression)} == {"SE[0]", "LIN[0]"}
    grammar = Grammar(FEW_COLUMNS, tuple(OPERATORS.values()), (0,), 5, reduces=True)
    neighbours = {one.canonical for one in grammar.neighbours(expression)}
    assert {"LIN[0] + SE[0]", "PER[0]", "CW[0](LIN[0], PER[0])"} <= neighbours


@pytest.mark.parametrize(
    ("data", "kernel", "edges"),
    [
        (level_shift(), "CP[0](LIN[0], SE[0])", {"location": 1956.0}),
        (bump(), "CW[0](PER[0], SE[0])", {"centre": 1954.5, "length": 3.0}),
    ],
)
def test_a_fit_finds_the_place_and_tells_it_in_the_units_of_the_column(data, kernel, edges):
    X, y = data
    model = AutoKernelGPRegressor(averaging=None, random_state=0).refit(X, y, kernel)
    table = model.parameters_
    for name, expected in edges.items():
        assert table["value"][table["parameter"] == name][0] == pytest.approx(expected, abs=0.25)
        row = list(table["parameter"]).index(name)
        assert table["low"][row] - 0.2 < expected < table["high"][row] + 0.2
    simpler = AutoKernelGPRegressor(random_state=0).refit(X, y, "SE[0] + PER[0]")
    assert model.best_score_ > simpler.best_score_ + 10


@pytest.mark.parametrize("symbols", [["cp"], ["CP"]])
def test_the_operators_are_off_unless_they_are_asked_for(symbols):
    X, y = level_shift(30)
    settings = {"base_kernels": ("SE", "LIN"), "n_iter": 4, "max_leaves": 2, "random_state": 0}
    plain = AutoKernelGPRegressor(**settings).fit(X, y)
    assert not any("CP" in text or "CW" in text for text in plain.search_history_["kernel"])
    model = AutoKernelGPRegressor(operators=("+", *symbols), **settings).fit(X, y)
    assert any("CP[0]" in text for text in model.search_history_["kernel"])
    assert model.best_score_ > plain.best_score_ + 10
    assert "CP[x0](" in repr(model.best_kernel_)


def test_the_exported_kernel_prints_a_location_to_a_fraction_of_the_column():
    model = AutoKernelGPRegressor(random_state=0).refit(*level_shift(), "CP[0](LIN[0], SE[0])")
    location = model.parameters_["value"][model.parameters_["parameter"] == "location"][0]
    printed = float(re.search(r"location=([\d.e+]+)", repr(model.best_kernel_))[1])
    assert printed == pytest.approx(location, abs=0.01)  # of ten years


@pytest.mark.parametrize("name", STRATEGIES)
def test_every_strategy_searches_with_them(name):
    X, y = level_shift(25)
    model = AutoKernelGPRegressor(
        base_kernels=("SE", "LIN"),
        operators=("+", "cp", "cw"),
        strategy=QUICK[name],
        n_iter=12,
        max_leaves=3,
        averaging=None,
        random_state=0,
    ).fit(X, y)
    kernels = [text for text in model.search_history_["kernel"] if "CP" in text or "CW" in text]
    assert kernels
    assert all(status == "ok" for status in model.search_history_["status"])


@pytest.mark.parametrize("text", ["CP[0](SE[0], LIN[0])", "CW[0](PER[0], SE[0]) + LIN[0]"])
def test_the_exported_kernel_predicts_the_same(text):
    X, y = level_shift(40)
    model = AutoKernelGPRegressor(averaging=None, random_state=0).refit(X, y, text)
    X_new = np.linspace(1949, 1961, 9)[:, None]
    assert_predicts_as_its_kernel(model, X, y, X_new)


def test_a_base_kernel_cannot_have_the_name_of_an_operator():
    class Mine(type(FEW_COLUMNS[0])):
        name = "CP"

    with pytest.raises(ValueError, match="CP is an operator and cannot be the name of a base"):
        AutoKernelGPRegressor(base_kernels=(Mine(),)).fit(*level_shift(10))


def test_unknown_operators_are_refused_with_all_that_exist():
    with pytest.raises(ValueError, match=r"selection of \['\+', '\*', 'CP', 'CW'\]"):
        AutoKernelGPRegressor(operators=("+", "cx")).fit(*level_shift(10))
