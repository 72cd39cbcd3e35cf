"""Likelihoods and predictions compared with other programs, and maxima compared with R.

make.py and make_series.py have written the numbers of the programs.
"""

import json
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import minimize

from autokernel import parse_expression
from autokernel.inference import ExactLikelihood, ExactPredictor, TrainingData

REFERENCES, SERIES = (
    json.loads(Path(__file__).with_name(name).read_text())
    for name in ("references.json", "series.json")
)
# Variances of a level and a slope of which nothing is known: some 1e4 times the squares of those of
# the Nile. Larger ones leave fewer digits to the matrix.
DIFFUSE_LEVEL, DIFFUSE_SLOPE = 1e10, 1e6


def read(text):
    return parse_expression(text, base_kernels=["RW", "IRW", "IOU", "MAT12"])


def series(name, mean=0.0):
    """Return the rows of a series that are not missing, less a known mean."""
    y = np.array(SERIES["series"][name], dtype=float)
    t = np.flatnonzero(~np.isnan(y))
    return TrainingData(t[:, None].astype(float), y[t] - mean)


def rows(case):
    """Return the data of a case, and the rows of the predictions."""
    if "series" in case:
        return series(case["series"]), np.array(case["new"], dtype=float)[:, None]
    X, y = np.array(REFERENCES["table"]), np.array(REFERENCES["y"])
    return TrainingData(X[: len(y)], y), X[len(y) :]


@pytest.mark.parametrize(
    "case",
    [*REFERENCES["cases"], *SERIES["cases"]],
    ids=lambda case: f"{case['program']}: {case['expression']}",
)
def test_digits_are_those_of_another_program(case):
    expression, theta = read(case["expression"]), np.log(case["params"])
    data, new = rows(case)
    value = ExactLikelihood(expression, data).value(theta)
    # with a season the matrix has a condition of 1e7, and terms of 150 nats cancel
    assert value == pytest.approx(case["log_likelihood"], rel=1e-9, abs=1e-7)
    mean, variance = ExactPredictor(expression, theta, data).function(new)
    np.testing.assert_allclose(mean, case["mean"], rtol=1e-8)
    np.testing.assert_allclose(variance, case["variance"], rtol=1e-8)


def most_likely(expression, data, start, *, free):
    """Maximise the likelihood over some of the parameters, and return these and the maximum."""
    likelihood, theta = ExactLikelihood(read(expression), data), np.log(start)

    def loss(part):
        theta[free] = part
        value, gradient = likelihood.value_and_gradient(theta)
        return -value, -gradient[free]

    found = minimize(loss, theta[free], jac=True, options={"gtol": 1e-6})
    return np.exp(found.x), -found.fun


@pytest.mark.parametrize(
    "case", SERIES["maxima"], ids=lambda case: f"{case['program']}: {case['model']}"
)
def test_the_maximum_with_a_diffuse_start_is_that_of_another_program(case):
    diffuse = [DIFFUSE_LEVEL, DIFFUSE_SLOPE][: case["n_diffuse"]]
    line = [*diffuse[1:], 1e-9] if diffuse[1:] else []  # without a level
    start = [1e3, DIFFUSE_LEVEL, *line, 1e4]
    found, value = most_likely(case["expression"], series(case["series"]), start, free=[0, -1])
    # likelihoods are rounded at 1e-8 nats or so, by which a maximum moves by the root
    np.testing.assert_allclose(found, [case["variance"], case["noise_variance"]], rtol=1e-4)
    # the normal density of a diffuse state, without the variance
    value += 0.5 * np.log(diffuse).sum()
    # half the square of the first level, of at most 1120, over its variance
    assert value == pytest.approx(case["log_likelihood"], abs=2e-4)


# What the examples of R print, in tests/Examples/{datasets,stats}-Ex.Rout.save of its sources.


@pytest.mark.parametrize(
    ("name", "level", "noise"), [("Nile", 1469, 15099), ("Nile with gaps", 685.8, 17899.8)]
)
def test_the_local_level_is_that_of_r(name, level, noise):
    """``StructTS(Nile, "level")``, and the same with 40 of the 100 years missing."""
    found, _ = most_likely("RW[0]", series(name), [1e3, DIFFUSE_LEVEL, 1e4], free=[0, -1])
    # half a unit of the last digit of 1469; R's optimiser goes as far as five digits
    assert found[0] == pytest.approx(level, rel=4e-4)
    assert found[1] == pytest.approx(noise, rel=4e-5)


@pytest.mark.parametrize(
    ("name", "mean", "coefficient", "variance", "log_likelihood"),
    [("lh", 2.4133, 0.5739, 0.1975, -29.38), ("presidents", 56.1505, 0.8242, 85.47, -416.89)],
)
def test_the_autoregression_is_that_of_r(name, mean, coefficient, variance, log_likelihood):
    """``arima(lh, c(1, 0, 0))``, and of presidents, where 6 of the 120 quarters are missing."""
    start = [2.0, variance, 1e-9]  # of the noise, which is none
    (length, whole), value = most_likely("MAT12[0]", series(name, mean), start, free=[0, 1])
    found = np.exp(-1 / length)
    # half a unit of the last digit, and another half for the mean, which is rounded, too
    assert found == pytest.approx(coefficient, abs=1e-4)
    assert whole * (1 - found**2) == pytest.approx(variance, rel=5e-4)
    assert value == pytest.approx(log_likelihood, abs=0.01)
