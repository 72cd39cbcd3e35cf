"""Sums, products, changes, and an operator that no module knows go everywhere that others go."""

import pickle
import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings

from autokernel import AutoKernelGPRegressor, parse_expression
from autokernel.evidence import Evaluator
from autokernel.evidence.mode_search import CoordinateScan
from autokernel.evidence.posterior import LogPosterior
from autokernel.evidence.starts import Magnitudes
from autokernel.expression import Grammar, addends, n_kernel_params
from autokernel.inference import ExactLikelihood, TrainingData, cross_covariance
from autokernel.kernels import ADD, FEW_COLUMNS, OPERATORS, Operator
from autokernel.search.distances import SOTKernel
from tests.batteries import EVERY_OPERATOR, expressions, inputs_of, numerical_gradient, seeds
from tests.fits import PLAIN, assert_predicts_as_its_kernel
from tests.kernels.gate import EXACT_GATE, GATE, Gate
from tests.model.cases import dense_covariance
from tests.search.stand_ins import every_strategy

trees = expressions(EVERY_OPERATOR)


class Twin(type(ADD)):
    """A sum with another sign."""

    symbol = "&"


def read(text):
    return parse_expression(text, operators=[GATE, EXACT_GATE])


def level_shift(n_samples=40):
    """A rising line that falls to a lower level in 1956, with little noise."""
    rng = np.random.default_rng(0)
    x = np.linspace(1950, 1960, n_samples)
    y = np.where(x < 1956, 0.5 * (x - 1950), -3.0) + 0.1 * rng.normal(size=n_samples)
    return x[:, None], y


def bump():
    """A wave of period one that is still from 1953 to 1956."""
    rng = np.random.default_rng(0)
    x = np.linspace(1950, 1960, 60)
    is_still = (x > 1953) & (x < 1956)
    y = np.where(is_still, 0.0, np.sin(2 * np.pi * x)) + 0.05 * rng.normal(size=60)
    return x[:, None], y


def test_a_pickle_of_an_operator_is_equal_and_a_built_in_one_the_same_object():
    assert all(pickle.loads(pickle.dumps(one)) is one for one in OPERATORS.values())
    assert pickle.loads(pickle.dumps(Twin())) == Twin()


# Values and derivatives.


@given(expression=trees, seed=seeds)
def test_values_are_those_of_the_definition(expression, seed):
    rng = np.random.default_rng(seed)
    X, Z = rng.uniform(size=(6, 3)), rng.uniform(size=(5, 3))
    params = np.exp(rng.uniform(-1, 1, n_kernel_params(expression)))
    found = cross_covariance(expression, inputs_of(X), inputs_of(Z)).forward(params)
    expected = dense_covariance(expression, params, X, Z)
    # products of up to six factors, each right to some 1e-14 (the cosines of PER)
    np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-13 * abs(expected).max())


@pytest.mark.parametrize("symbol", ["CP", "CW", "GATE", "EXACTGATE"])
@settings(max_examples=5)
@given(seed=seeds)
def test_the_gradient_of_the_likelihood_equals_finite_differences(symbol, seed):
    rng = np.random.default_rng(seed)
    text = f"SE[1] * {symbol}[0](SE[0] + LIN[0], {symbol}[1](LIN[1], RQ[0])) + LIN[0]"
    data = TrainingData(rng.uniform(0, 1, (12, 2)), rng.normal(size=12))
    likelihood = ExactLikelihood(read(text), data)
    theta = rng.uniform(-1, 0.5, len(likelihood.parameters))
    expected = numerical_gradient(likelihood.value, theta)
    found = likelihood.value_and_gradient(theta)[1]
    # differences are good to 1e-8 (see numerical_gradient), those of GATE itself as well
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6 * abs(expected).max())


# Trees: the suites of expressions run over trees of every operator, too.


def test_addends_are_the_terms_in_their_parts():
    found = addends(parse_expression("LIN[0] * CP[1](SE[0] + RQ[0], PER[0])"))
    texts = [str(one) for one, _ in found]
    assert texts == [
        "LIN[0] * BEFORE[1] * SE[0]",
        "LIN[0] * BEFORE[1] * RQ[0]",
        "LIN[0] * AFTER[1] * PER[0]",
    ]
    # LIN has 2 parameters, CP 2, SE 2, RQ 3, PER 3
    assert [entries.tolist() for _, entries in found] == [
        [0, 1, 2, 3, 4, 5],
        [0, 1, 2, 3, 6, 7, 8],
        [0, 1, 2, 3, 9, 10, 11],
    ]


def test_the_grammar_joins_in_both_positions_and_on_every_column():
    grammar = Grammar(FEW_COLUMNS, (ADD, GATE), columns=(0, 1), max_leaves=5)
    found = {text.canonical for text in grammar.neighbours(read("SE[0]"))}
    for text in ("GATE[0](SE[0], LIN[1])", "GATE[1](LIN[1], SE[0])", "GATE[1](SE[0], SE[0])"):
        assert text in found
    one, beyond = read("GATE[1](SE[0], LIN[1])"), read("GATE[2](SE[0], LIN[1])")
    assert grammar.spans(one)
    assert not grammar.spans(beyond)
    assert not replace(grammar, operators=(ADD,)).spans(one)


# Fits.


@pytest.mark.parametrize(
    ("data", "kernel", "worse", "expected"),
    [
        (level_shift, "CP[0](LIN[0], SE[0])", "SE[0]", {"location": 1956.0}),
        pytest.param(
            *(bump, "CW[0](PER[0], SE[0])", "PER[0]", {"centre": 1954.5, "length": 3.0}),
            marks=pytest.mark.slow,
        ),
    ],
)
def test_a_fit_finds_the_location_in_the_units_of_the_column(data, kernel, worse, expected):
    X, y = data()
    operators = ("+", "cp", "cw", GATE)
    model = AutoKernelGPRegressor(operators=operators, averaging=None, **PLAIN).refit(X, y, kernel)
    table = model.parameters_
    for name, value in expected.items():
        row = list(table["parameter"]).index(name)
        assert table["value"][row] == pytest.approx(value, abs=0.25)
        assert table["low"][row] - 0.2 < value < table["high"][row] + 0.2
        printed = float(re.search(rf"{name}=([\d.e+]+)", repr(model.best_kernel_))[1])
        assert printed == pytest.approx(table["value"][row], abs=0.01)  # of ten years
    assert_predicts_as_its_kernel(model, X, y, np.linspace(1949, 1961, 9)[:, None])
    score = model.best_score_
    assert score > model.refit(X, y, worse).best_score_ + 2


FEW = {"base_kernels": ("SE", "LIN"), "max_leaves": 2, "n_iter": 1, "averaging": None, **PLAIN}


def test_changes_are_off_unless_they_are_selected():
    X, y = level_shift(20)
    plain = AutoKernelGPRegressor(**FEW).fit(X, y)
    assert not any("CP" in text or "CW" in text for text in plain.search_history_["kernel"])
    model = AutoKernelGPRegressor(operators=("+", "CP"), **FEW).fit(X, y)
    assert any("CP[0]" in text for text in model.search_history_["kernel"])
    assert model.best_score_ > plain.best_score_ + 5
    assert "CP[x0](" in repr(model.best_kernel_)


class Three(Operator):
    """The sum of three kernels, as a word."""

    symbol = "SUM3"
    n_operands = 3

    def value(self, at):
        return at.values[0] + at.values[1] + at.values[2]

    def adjoints(self, at, adjoint):
        yield from (adjoint, adjoint, adjoint)


@every_strategy
def test_every_strategy_searches_with_operators_from_outside(strategy):
    operators, limits = (GATE, Three()), {"max_leaves": 3, "strategy": strategy, "tol": 0.0}
    model = AutoKernelGPRegressor(operators=operators, **{**FEW, **limits}).fit(*level_shift(9))
    history = model.search_history_
    assert any("GATE" in text or "SUM3" in text for text in history["kernel"])
    assert set(history["status"]) == {"ok"}
    assert history["n_leaves"].max() <= 3


def test_a_warm_start_takes_over_the_parameter_of_the_operator():
    X, y = level_shift(30)
    evaluator = Evaluator(TrainingData((X - 1950) / 10, y), priors={}, seed=0)
    known = evaluator(read("GATE[0](LIN[0], SE[0])"))
    job = evaluator.prepare(read("GATE[0](LIN[0], SE[0]) + LIN[0]"), [known])
    ((start, *_), *_) = job.warm_starts
    assert sorted(start.nodes) == [0, 1, 2]
    np.testing.assert_array_equal(start.theta, known.theta)
    assert evaluator.run(job).log_likelihood >= known.log_likelihood - 0.1


class Scanned(Gate):
    """A gate whose location is scanned, as one mode of it hides many others."""

    has_many_modes = True
    parameters = (replace(Gate.parameters[0], grid=tuple(np.linspace(0.05, 0.95, 19))),)


def test_a_parameter_with_a_grid_is_scanned_where_there_are_many_modes():
    X, y = level_shift()
    expression = parse_expression("GATE[0](LIN[0], SE[0])", operators=[Scanned()])
    data = TrainingData((X - 1950) / 10, y)
    posterior = LogPosterior(ExactLikelihood(expression, data), priors={})
    theta = np.log([0.1, 1.0, 1.0, 0.05, 0.5, 0.01])
    found = CoordinateScan(posterior, Magnitudes(data), [0]).around(theta)
    best = max(
        np.linspace(0.05, 0.95, 19), key=lambda a: posterior.value(np.append(np.log(a), theta[1:]))
    )
    assert np.exp(found[0].theta[0]) == pytest.approx(best)


# Distances between kernels.


def test_sot_distinguishes_the_operands_and_counts_what_is_shared():
    one, other = read("GATE[0](SE[0], LIN[0])"), read("GATE[0](LIN[0], SE[0])")
    _, paths, subtrees = SOTKernel().distances([one], [other])
    assert paths == 1
    assert subtrees == pytest.approx(1 / 3)
    _, paths, _ = SOTKernel().frequencies(one)
    assert list(paths) == ["GATE[0]0:SE[0]", "GATE[0]1:LIN[0]"]


# Declarations.


class Steep(Gate):
    """Gates of one symbol that differ in an attribute, and so are different operators."""

    def __init__(self, steepness):
        self.steepness = steepness


class Commuting(Gate):
    commutes = True


class NamedAsAnOperator(type(FEW_COLUMNS[0])):
    name = "CP"


@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        ({"operators": ("+", Commuting())}, ValueError, "commutes, and so must have no parameters"),
        ({"operators": ("+", Gate)}, TypeError, r"got a class: call Gate\(\)"),
        ({"operators": (Steep(8.0), Steep(40.0))}, ValueError, "must have different symbols"),
        ({"operators": ("+", "cx")}, ValueError, r"selection of \['\+', '\*', 'CP', 'CW'\]"),
        (
            {"base_kernels": (NamedAsAnOperator(),)},
            ValueError,
            "CP is an operator and cannot be the name of a base",
        ),
    ],
)
def test_an_operator_that_cannot_be_is_refused(parameters, error, message):
    with pytest.raises(error, match=message):
        AutoKernelGPRegressor(**parameters).fit(*level_shift(10))
