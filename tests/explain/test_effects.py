"""Averages of functions over rows, against the joint distribution of all values."""

from dataclasses import replace

import numpy as np
import pytest

from autokernel import parse_expression
from autokernel.data import Columns
from autokernel.explain.effects import AveragedFunction
from autokernel.expression import n_kernel_params
from autokernel.inference import (
    ExactPredictor,
    InducingPredictor,
    TrainingData,
    cross_covariance,
)
from tests.batteries import EVERY_OPERATOR

N_BACKGROUND = 8
KERNELS = {
    "a sum": "SE[0] * SE[1] + LIN[0]",
    "a product of sums": "(SE[0] + LIN[1]) * CAT[2] + RQ[1] * PER[1] * SE[0]",
    "a change point": "CP[0](SE[0] * SE[1], LIN[1]) + SE[2]",
    "an operator without shares": "GATE[0](SE[0] * CAT[2], LIN[1]) * SE[2]",
}


def with_inducing(expression, theta, data):
    return InducingPredictor(expression, theta, data, 30)


@pytest.mark.parametrize("make", [ExactPredictor, with_inducing], ids=["exact", "inducing"])
@pytest.mark.parametrize("text", KERNELS.values(), ids=KERNELS)
def test_effects_are_averages_of_all_values(text, make):
    operators = {one.symbol: one for one in EVERY_OPERATOR.operators}
    expression = parse_expression(text, operators=operators.values())
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(25, 3))
    X[:, 2] = rng.integers(0, 3, 25) / 2
    if "[0](" not in text:  # nothing may be missing along a change
        X[3, 0] = np.nan
    X[4, 1] = np.nan
    columns = Columns.of_names(None, 3).of_rows(X)
    data = TrainingData(columns.inputs(X, first_row=0), rng.normal(size=25))
    theta = np.append(rng.uniform(-1, 0.5, n_kernel_params(expression)), -2.0)
    predictor = make(expression, theta, data)
    background, weights = columns.inputs(X[:N_BACKGROUND]), rng.dirichlet(np.ones(N_BACKGROUND))
    function = AveragedFunction(
        expression, theta, predictor, background=background, weights=weights
    )
    for of_columns in ([0], [2], [1, 0]):
        points = rng.choice([0.0, 0.5, 1.0], size=(4, len(of_columns)))
        rows = np.tile(background.values, (5, 1, 1))  # the last block is the background
        rows[:4, :, of_columns] = points[:, None]
        every = replace(background, values=rows.reshape(-1, 3), rows=np.tile(background.rows, 5))
        cross = cross_covariance(expression, every, predictor.knots).forward(np.exp(theta[:-1]))
        prior = cross_covariance(expression, every, every).forward(np.exp(theta[:-1]))
        mean, covariance = predictor.conditioned(cross, prior)
        averages = np.kron(np.eye(5), weights)
        contrasts = averages[:4] - averages[4]
        found = function.effect(of_columns, points)
        # the covariances of at most 40 values of size one, each with rounding times 1e4
        np.testing.assert_allclose(found[0], contrasts @ mean, atol=1e-9)
        np.testing.assert_allclose(found[1], contrasts @ covariance @ contrasts.T, atol=1e-9)
        assert function.average() == pytest.approx(averages[4] @ mean, abs=1e-9)
