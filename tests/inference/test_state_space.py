"""Exact inference in linear time, against exact inference by the covariance matrix."""

import numpy as np
import pytest
from scipy.linalg import LinAlgError
from scipy.special import ive

from autokernel import parse_expression
from autokernel.data import RowNoise, Target
from autokernel.inference import (
    ExactLikelihood,
    ExactPredictor,
    StateSpaceLikelihood,
    StateSpacePredictor,
    TrainingData,
    has_state_space,
)
from autokernel.kernels import Seasonal

SERIES = ["RW", "IRW", "IOU", "MAT12", "MAT32", "LIN", "PER"]
TERMS = [*SERIES, Seasonal(0.1).name]
SUMS = ["RW + IOU + PER + PER", "LIN + MAT12 + PER", "MAT32 + IRW + RW + MAT12 + LIN"]
every_kernel = pytest.mark.parametrize("names", [*TERMS, *SUMS])
# rounding times the condition number of the covariance matrix, which is below 1e6: the noise is
# 0.03 or more, and all variances together are below 30 in 150 rows
SAME = {"rtol": 1e-9, "atol": 1e-9}


def kernel(names):
    """Read a sum of base kernels on the first column."""
    text = " + ".join(f"{name}[0]" for name in names.split(" + "))
    return parse_expression(text, base_kernels=[*SERIES, Seasonal(0.1)])


def series(n_rows=150, *, begin=0.0, seed=0):
    """Rows at irregular and at repeated places in any order, with weights and known errors."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(begin, 1, n_rows)
    x[: n_rows // 10] = x[n_rows // 10]
    x[-1] = begin
    y = np.sin(9 * x) + 0.3 * rng.normal(size=n_rows)
    noise = RowNoise(rng.integers(1, 4, n_rows).astype(float), rng.uniform(0, 0.01, n_rows))
    return TrainingData(x[:, None], y, noise)


def theta_of(expression, data, seed=0):
    """Draw log parameters, and take a noise variance of 0.1."""
    n_params = len(ExactLikelihood(expression, data).parameters)
    theta = np.random.default_rng(seed).normal(-1, 0.5, n_params)
    theta[-1] = np.log(0.1)
    return theta


def both(names, data):
    expression = kernel(names)
    return expression, theta_of(expression, data)


# one row, a few, a square number that fills all blocks, and one that does not
@pytest.mark.parametrize("n_rows", [1, 12, 144, 150])
@every_kernel
def test_the_likelihood_and_its_gradient_are_the_exact_ones(names, n_rows):
    data = series(n_rows, begin=0.1)
    expression, theta = both(names, data)
    exact, own = ExactLikelihood(expression, data), StateSpaceLikelihood(expression, data)
    expected, slopes = exact.value_and_gradient(theta)
    value, gradient = own.value_and_gradient(theta)
    assert has_state_space(expression, data.inputs)
    assert value == own.value(theta)
    assert value == pytest.approx(expected, rel=1e-9, abs=1e-9)
    # periods have the largest slopes, and rounding in all of them is that of these
    np.testing.assert_allclose(gradient, slopes, rtol=1e-8, atol=1e-8 * np.abs(slopes).max())


@every_kernel
def test_predictions_are_the_exact_ones(names):
    data = series(begin=0.1)
    expression, theta = both(names, data)
    exact, own = (
        ExactPredictor(expression, theta, data),
        StateSpacePredictor(expression, theta, data),
    )
    # before the first row and zero, between rows, at rows, after the last row, and unknown
    X = np.concatenate([np.linspace(-0.2, 1.3, 31), data.X[:3, 0], [1.3, np.nan]])[:, None]
    for found, expected in zip(own.mean_and_variance(X), exact.mean_and_variance(X), strict=True):
        np.testing.assert_allclose(found, expected, **SAME)
    for found, expected in zip(
        own.mean_and_covariance(X), exact.mean_and_covariance(X), strict=True
    ):
        np.testing.assert_allclose(found, expected, **SAME)
    np.testing.assert_array_equal(own.mean(X), own.mean_and_variance(X)[0])


def test_the_target_may_be_on_a_scale_and_rounded():
    data = series()
    u = np.exp(data.u)
    target = Target.of(u, RowNoise(np.ones(len(u))))
    data = TrainingData(data.inputs, target.forward(u), data.known_noise, target)
    plain, theta = both("RW + PER", data)
    expression = plain.on("log")
    values = [
        make(expression, data).value_and_gradient(theta)
        for make in (ExactLikelihood, StateSpaceLikelihood)
    ]
    np.testing.assert_allclose(values[1][0], values[0][0], **SAME)
    np.testing.assert_allclose(values[1][1], values[0][1], rtol=1e-8, atol=1e-6)
    X = np.linspace(0, 1.1, 7)[:, None]
    exact, own = (make(expression, theta, data) for make in (ExactPredictor, StateSpacePredictor))
    np.testing.assert_allclose(own.mean_and_variance(X), exact.mean_and_variance(X), **SAME)


@pytest.mark.parametrize("lengthscale", [1e-3, 0.3, 30.0])
@pytest.mark.parametrize("name", ["IOU", "MAT32", "MAT12"])
def test_any_lengthscale_keeps_its_digits(name, lengthscale):
    """Steps are between a thirtieth of a lengthscale and a thousandth of it, or many of them."""
    x = np.sort(np.random.default_rng(0).uniform(size=200))
    data = TrainingData(x[:, None], np.sin(5 * x))
    expression = kernel(name)
    theta = np.full(len(ExactLikelihood(expression, data).parameters), np.log(0.5))
    theta[0], theta[-1] = np.log(lengthscale), np.log(0.01)
    exact, own = (make(expression, data) for make in (ExactLikelihood, StateSpaceLikelihood))
    # h(d / l), from which IOU is computed, has lost five digits at the longest lengthscale
    assert own.value(theta) == pytest.approx(exact.value(theta), rel=1e-7)


@pytest.mark.parametrize(("lengthscale", "period"), [(0.2, 0.16), (0.02, 0.7)])
def test_a_rough_season_loses_no_more_than_its_fastest_harmonics(lengthscale, period):
    """A hundred rows show eight harmonics of a sixth of the column, and 48 are the most."""
    x = np.arange(101) / 100
    data = TrainingData(x[:, None], np.sin(9 * x))
    expression = kernel("RW + PER")
    theta = np.log([0.1, 0.5, lengthscale, 0.5, period, 0.1])
    exact, own = (make(expression, data) for make in (ExactLikelihood, StateSpaceLikelihood))
    kept = np.arange(-min(48, round(period * 50)), min(48, round(period * 50)) + 1)
    lost = 0.5 * (1 - ive(kept, 1 / (4 * lengthscale**2)).sum())
    assert lost > 1e-6
    # a change D of the matrix moves the value by (alpha^T D alpha - tr(K^-1 D)) / 2 at first order
    alpha = ExactPredictor(expression, theta, data).weights
    most = 0.5 * lost * len(x) * max(1 / 0.1, alpha @ alpha)
    assert own.value(theta) == pytest.approx(exact.value(theta), abs=most)


@pytest.mark.parametrize(
    ("text", "has"),
    [
        ("RW[0]", True),
        ("log(y) ~ RW[0] + IOU[0]", True),
        ("RW[0] + RW[1]", False),
        ("RW[0] * PER[0]", False),
        ("RW[0] + SE[0]", False),
        ("RW[log(0)]", False),
        ("RW[1]", False),  # it has a gap
        ("RW[2]", False),  # it begins below zero
        ("NOISE", False),
    ],
)
def test_a_state_space_needs_a_sum_of_its_terms_on_one_column(text, has):
    X = np.column_stack([[0.0, 0.5, 1.0], [0.0, np.nan, 1.0], [-0.1, 0.5, 1.0]])
    data = TrainingData(X, np.array([1.0, 2.0, 3.0]))
    assert has_state_space(parse_expression(text), data.inputs) == has


@pytest.mark.parametrize("begin", [-0.1, np.nan])
def test_rows_before_the_first_one_or_without_a_place_have_no_state_space(begin):
    data = series(20)
    X = data.inputs.columns.scaled(np.append([[begin]], data.X, axis=0))
    rows = TrainingData(X, np.append(0.0, data.u))
    with pytest.raises(LinAlgError, match="needs rows with a time, from the first of the fit on"):
        StateSpacePredictor(kernel("RW"), np.zeros(3), rows)
