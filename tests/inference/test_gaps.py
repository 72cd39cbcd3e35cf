"""Missing values of columns: a missing value is another draw from those that are known."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autokernel.data import Columns
from autokernel.expression import Leaf, View, n_kernel_params, parse_expression
from autokernel.inference import (
    ExactLikelihood,
    ExactPredictor,
    InducingLikelihood,
    NeighbourLikelihood,
    TrainingData,
    cross_covariance,
    diagonal_covariance,
)
from autokernel.inference.covariance import Covariance
from autokernel.inference.packed import unpack
from autokernel.kernels import BASE_KERNELS, BroadcastPairs, Seasonal
from tests.batteries import SCALES, numerical_gradient, random_params, seeds
from tests.own_kernels import BY_CALL, OU

KERNELS = {one.name: one for one in (*BASE_KERNELS.values(), Seasonal(0.4), OU, BY_CALL)}
every_kernel = pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)


def a_column(rng, n=12, n_missing=4):
    x = rng.uniform(0.1, 2, n)
    x[:n_missing] = np.nan
    return rng.permutation(x)


def average(kernel, params, x, z, *, places, is_one_row):
    """The second moment of f(x) and f(z), each NaN of which is an independent draw from places.

    In one row there is one draw.
    """
    if is_one_row:
        x = z = places if np.isnan(x) else np.array([x])
        return kernel.value(params, BroadcastPairs(x, z)).mean()
    x, z = (places if np.isnan(one) else np.array([one]) for one in (x, z))
    return kernel.value(params, BroadcastPairs(x[:, None], z[None])).mean()


def averages(kernel, params, x, z, *, places, is_one_row):
    """All of them, (n, m)."""
    return np.array(
        [
            [
                average(kernel, params, a, b, places=places, is_one_row=is_one_row(i, j))
                for j, b in enumerate(z)
            ]
            for i, a in enumerate(x)
        ]
    )


@every_kernel
@settings(max_examples=4)
@given(seed=seeds, scale=st.sampled_from(SCALES))
def test_covariances_are_averages_over_the_places_of_a_missing_value(kernel, seed, scale):
    rng = np.random.default_rng(seed)
    X = a_column(rng)[:, None]
    params, data, view = random_params(kernel, rng), TrainingData(X, X[:, 0]), View(0, scale)
    new = data.inputs.columns.scaled(a_column(rng, 5, 2)[:, None])
    x, z, places = data.inputs.view(view), new.view(view), data.inputs.columns.places(view)
    leaf = Leaf(kernel, 0, scale)
    expected = averages(kernel, params, x, x, places=places, is_one_row=lambda i, j: i == j)
    # the order of the sums differs, over up to 256 terms
    same = {"rtol": 1e-12, "atol": 1e-13 * abs(expected).max()}
    packed = Covariance(leaf, data.pairs).forward(params)
    np.testing.assert_allclose(unpack(packed, len(x)), expected, **same)
    K = cross_covariance(leaf, data.inputs, data.inputs).forward(params)
    np.testing.assert_allclose(K, expected, **same)
    diagonal = diagonal_covariance(leaf, data.inputs).forward(params)
    np.testing.assert_allclose(diagonal, np.diag(expected), **same)
    assert np.linalg.eigvalsh(K).min() > -1e-10 * np.trace(K)
    # a new row is another row, also where its place in the table is that of a training row
    expected = averages(kernel, params, z, x, places=places, is_one_row=lambda i, j: False)
    np.testing.assert_allclose(
        cross_covariance(leaf, new, data.inputs).forward(params), expected, **same
    )


def test_places_are_quantiles_of_known_values_on_any_scale():
    x = np.append(np.random.default_rng(0).uniform(1, 50, 40), [np.nan] * 3)
    columns = Columns.of_names(None, 1).of_rows(x[:, None])
    levels = (np.arange(16) + 0.5) / 16
    quantiles = np.nanquantile(x, levels)
    unit = (quantiles - np.nanmin(x)) / np.ptp(x[:-3])
    np.testing.assert_allclose(columns.places(View(0)), unit, rtol=1e-12)
    logs = np.log(quantiles / np.nanmin(x)) / np.log(np.nanmax(x) / np.nanmin(x))
    np.testing.assert_allclose(columns.places(View(0, "log")), logs, rtol=1e-9)
    assert columns[0].n_gaps > 0


def exact(expression, data):
    return ExactLikelihood(expression, data)


def inducing(expression, data):
    return InducingLikelihood(expression, data, data.inputs[:5])


def neighbours(expression, data):
    rows = np.arange(4, len(data.y))
    return NeighbourLikelihood(expression, data, np.arange(4), rows[:, None] + np.arange(-3, 1))


@pytest.mark.parametrize(
    ("make", "kernel"),
    [
        *((exact, kernel) for kernel in KERNELS.values()),
        *((inducing, KERNELS[name]) for name in ("SE", "LIN", "CALL")),
        *((neighbours, KERNELS[name]) for name in ("PER", "OU")),
    ],
)
def test_gradients_of_likelihoods_are_those_of_differences(make, kernel):
    rng = np.random.default_rng(0)
    X = np.column_stack([a_column(rng), a_column(rng)])
    expression = Leaf(kernel, 0) * parse_expression("SE[1]") + parse_expression("LIN[1]")
    likelihood = make(expression, TrainingData(X, rng.normal(size=len(X))))
    theta = np.append(rng.uniform(-1, 1, n_kernel_params(expression)), -1.0)
    expected = numerical_gradient(likelihood.value, theta)
    found = likelihood.value_and_gradient(theta)[1]
    # differences are good to 1e-8, see numerical_gradient; OU and CALL have differences too
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6 * abs(expected).max())


@pytest.mark.parametrize("has_gaps", [False, True], ids=["of new rows", "of all rows"])
def test_predictions_are_those_of_the_textbook_with_averages(has_gaps):
    """New rows may have gaps in a column that had none in the fit."""
    rng = np.random.default_rng(0)
    x = a_column(rng) if has_gaps else rng.uniform(0.1, 2, 12)
    y, z = rng.normal(size=12), np.array([np.nan, 0.7, np.nan])
    data, kernel, params = TrainingData(x[:, None], y), KERNELS["RQ"], np.array([0.4, 1.3, 0.8])
    places, noise = data.inputs.columns.places(View(0)), 0.2
    K, cross, prior = (
        averages(kernel, params, a, b, places=places, is_one_row=lambda i, j, s=same: s and i == j)
        for a, b, same in ((x, x, True), (z, x, False), (z, z, True))
    )
    K += noise * np.eye(12)
    theta = np.log([*params, noise])
    predictor = ExactPredictor(Leaf(kernel, 0), theta, data)
    mean, covariance = predictor.mean_and_covariance(z[:, None])
    expected = prior - cross @ np.linalg.solve(K, cross.T) + noise * np.eye(3)
    # rounding times a condition number below 1e3
    np.testing.assert_allclose(mean, cross @ np.linalg.solve(K, y), rtol=1e-11)
    np.testing.assert_allclose(covariance, expected, rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(
        predictor.mean_and_variance(z[:, None])[1], np.diag(expected), rtol=1e-11
    )
