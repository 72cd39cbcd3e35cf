"""Averages of functions over rows, against the joint distribution of all values."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

from autokernel import parse_expression
from autokernel.data import Columns
from autokernel.explain.effects import AVERAGE, AveragedFunction, effect_of, interaction_of
from autokernel.expression import n_kernel_params
from autokernel.inference import ExactPredictor, InducingPredictor, TrainingData, cross_covariance
from tests.batteries import EVERY_OPERATOR

N_BACKGROUND, N_POINTS = 5, 4
KERNELS = {
    "a sum": "SE[0] * SE[1] + LIN[0]",
    "a product of sums": "(SE[0] + LIN[1]) * CAT[2] + RQ[1] * PER[1] * SE[0]",
    "a product of all columns": "SE[0] * LIN[1] * CAT[2]",
    "a change point": "CP[0](SE[0] * SE[1], LIN[1]) + SE[2]",
    "an operator without shares": "GATE[0](SE[0] * CAT[2], LIN[1]) * SE[2]",
}
EFFECTS = {
    "a column": (effect_of([0]), {(0,): 1, (): -1}),
    "a category": (effect_of([2]), {(2,): 1, (): -1}),
    "two columns": (effect_of([1, 0]), {(0, 1): 1, (): -1}),
    "all columns": (effect_of([0, 1, 2]), {(0, 1, 2): 1, (): -1}),
    "an interaction": (interaction_of([1, 2]), {(1, 2): 1, (1,): -1, (2,): -1, (): 1}),
    "another one": (interaction_of([0, 1]), {(0, 1): 1, (0,): -1, (1,): -1, (): 1}),
    "of three columns": (
        interaction_of([0, 1, 2]),
        {some: (-1) ** (3 - n) for n in range(4) for some in combinations(range(3), n)},
    ),
}


def with_inducing(expression, theta, data):
    return InducingPredictor(expression, theta, data, 30)


def function_of(text, make=ExactPredictor, *, n=25):
    """Return a function with its predictor, background and weights; some values are missing."""
    operators = {one.symbol: one for one in EVERY_OPERATOR.operators}
    expression = parse_expression(text, operators=operators.values())
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(n, 3))
    X[:, 2] = rng.integers(0, 3, n) / 2
    if "[0](" not in text:  # nothing may be missing along a change
        X[3, 0] = np.nan
    X[4, 1] = np.nan
    columns = Columns.of_names(None, 3).of_rows(X)
    data = TrainingData(columns.inputs(X, first_row=0), rng.normal(size=n))
    theta = np.append(rng.uniform(-1, 0.5, n_kernel_params(expression)), -2.0)
    predictor = make(expression, theta, data)
    background, weights = columns.inputs(X[:N_BACKGROUND]), rng.dirichlet(np.ones(N_BACKGROUND))
    function = AveragedFunction(
        expression, theta, predictor, background=background, weights=weights
    )
    return function, (expression, theta, predictor, background, weights)


def by_all_values(signs, points, expression, theta, predictor, background, weights):
    """Compute mean and covariance of an effect from those of the function at all rows."""
    rows = np.tile(background.values, (len(signs), len(points), 1, 1))
    for place, columns in enumerate(signs):
        rows[place][..., columns] = points[:, None, columns]
    values, n_averages = rows.reshape(-1, 3), len(signs) * len(points)
    every = replace(background, values=values, rows=np.tile(background.rows, n_averages))
    cross = cross_covariance(expression, every, predictor.knots).forward(np.exp(theta[:-1]))
    prior = cross_covariance(expression, every, every).forward(np.exp(theta[:-1]))
    mean, covariance = predictor.conditioned(cross, prior)
    contrasts = np.kron([*signs.values()], np.kron(np.eye(len(points)), weights))
    return contrasts @ mean, contrasts @ covariance @ contrasts.T


@pytest.mark.parametrize("make", [ExactPredictor, with_inducing], ids=["exact", "inducing"])
@pytest.mark.parametrize("text", KERNELS.values(), ids=KERNELS)
def test_effects_are_averages_of_all_values(text, make):
    function, known = function_of(text, make)
    rng = np.random.default_rng(1)
    points = rng.choice([0.0, 0.3, 0.5, 1.0], size=(N_POINTS, 3))
    for effect, signs in EFFECTS.values():
        mean, covariance = by_all_values(signs, points, *known)
        found, joint = function.joint(effect, points)
        # the covariances of at most 160 values of size one, each with rounding times 1e4
        np.testing.assert_allclose(found, mean, atol=1e-9)
        np.testing.assert_allclose(joint, covariance, atol=1e-9)
        np.testing.assert_allclose(function.mean(effect, points), mean, atol=1e-9)
        found, variance = function.moments(effect, points)
        np.testing.assert_allclose(found, mean, atol=1e-9)
        np.testing.assert_allclose(variance, np.diag(covariance), atol=1e-9)
    average, _ = by_all_values({(): 1}, points[:1], *known)
    assert function.mean(AVERAGE, points[:1]) == pytest.approx(average, abs=1e-9)


@pytest.mark.parametrize("name", ["two columns", "another one"])
def test_a_missing_value_stands_for_all_places_of_its_column(name):
    function, known = function_of("SE[0] * LIN[1] + CAT[2] + SE[1]", n=9)
    effect, signs = EFFECTS[name]
    places = np.array(known[3].columns[1].places)
    x = np.linspace(0.1, 0.9, 5)  # as many points as there are rows before one with a gap
    grid = np.zeros((5 * len(places), 3))
    grid[:, 0], grid[:, 1] = np.repeat(x, len(places)), np.tile(places, 5)
    mean, covariance = by_all_values(signs, grid, *known)
    averages = np.kron(np.eye(5), np.full(len(places), 1 / len(places)))
    points = np.column_stack([x, np.full(5, np.nan), np.zeros(5)])
    found, joint = function.joint(effect, points)
    np.testing.assert_allclose(found, averages @ mean, atol=1e-9)
    np.testing.assert_allclose(joint, averages @ covariance @ averages.T, atol=1e-9)
    np.testing.assert_allclose(function.moments(effect, points)[1], np.diag(joint), atol=1e-9)


@pytest.mark.parametrize("text", KERNELS.values(), ids=KERNELS)
def test_the_products_of_a_kernel_and_the_average_add_up_to_the_function(text):
    function, (*_, predictor, _, _) = function_of(text)
    points = np.random.default_rng(2).choice([0.0, 0.5, 1.0], size=(N_POINTS, 3))
    numbers = range(len(function.products))
    parts = [function.mean(effect_of(range(3), [number]), points) for number in numbers]
    parts.append(function.mean(AVERAGE, points))
    np.testing.assert_allclose(np.sum(parts, axis=0), predictor.mean(points), atol=1e-9)


def test_all_interactions_are_those_of_one_at_a_time():
    """Where there are many pairs, their averages are computed together."""
    text = " * ".join(["SE[0]", "LIN[1]", "RQ[2]", "SE[3]", "PER[4]"])
    expression, rng = parse_expression(text), np.random.default_rng(0)
    X = rng.uniform(size=(25, 5))
    columns = Columns.of_names(None, 5).of_rows(X)
    data = TrainingData(columns.inputs(X, first_row=0), rng.normal(size=25))
    theta = np.append(rng.uniform(-1, 0.5, n_kernel_params(expression)), -2.0)
    settings = {"background": columns.inputs(X[:10]), "weights": np.full(10, 0.1)}
    predictor = ExactPredictor(expression, theta, data)
    every = [interaction_of(pair) for pair in combinations(range(5), 2)]
    found = AveragedFunction(expression, theta, predictor, **settings).means(every, X)
    for effect, mean in zip(every, found, strict=True):
        alone = AveragedFunction(expression, theta, predictor, **settings)
        np.testing.assert_allclose(alone.mean(effect, X), mean, atol=1e-9)
