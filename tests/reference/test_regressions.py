"""NIST's linear regressions: the coefficients under a prior that is nearly flat, and their digits.

With a prior variance ``v`` and a noise variance ``s``, the posterior mean is ridge regression with
``rho = s / v``, and a flat prior is the limit of small ``rho``. The coefficients ``b`` of
standardised terms ``A``, whose smallest singular value is ``sigma``, have two errors:

- that by the prior is at most ``rho |b| / sigma^2``;
- rounding changes the matrix of n rows by about ``n eps |A|^2 / rho``. This times the residuals
  ``r`` is the error of the means at the rows, and divided by ``sigma`` that of the coefficients.

The test takes the ``rho`` at which they are equal, and compares with their sum. A good design keeps
half of all digits; a condition takes away 1.5 times its own digits.
"""

import json
from math import comb
from pathlib import Path

import numpy as np
import pytest
from numpy.polynomial import Polynomial

from autokernel import parse_expression
from autokernel.inference import ExactPredictor, TrainingData

PROBLEMS = json.loads(Path(__file__).with_name("nist.json").read_text())["problems"]
DEGREE = 10  # of Filip


def plane(X):
    """A sum of LIN: its terms, and the coefficients of the columns from those of the terms."""
    shift, scale = X.mean(axis=0), X.std(axis=0)
    Z = (X - shift) / scale
    n_columns = Z.shape[1]
    back = np.diag([1, *(1 / scale)])
    back[0, 1:] = -shift / scale
    text = " + ".join(f"LIN[{j}]" for j in range(n_columns))
    params = np.array([1, 1 / n_columns] * n_columns)
    return Z, np.column_stack([np.ones(len(Z)), Z]), back, text, params, slice(None)


def polynomial(X):
    """A product of LIN, ``(1 + z z')^10``, in which powers have binomial coefficients."""
    shift, scale = (X.max() + X.min()) / 2, np.ptp(X) / 2
    Z = (X - shift) / scale
    factors = np.sqrt([comb(DEGREE, k) for k in range(DEGREE + 1)])
    powers = [Polynomial([-shift / scale, 1 / scale]) ** k for k in range(DEGREE + 1)]
    back = np.zeros((DEGREE + 1, DEGREE + 1))
    for k, power in enumerate(powers):
        back[: k + 1, k] = factors[k] * power.coef
    text = " * ".join(["LIN[0]"] * DEGREE)
    params, of_first = np.ones(2 * DEGREE), slice(2)  # one factor has the variance of the product
    return Z, factors * Z ** np.arange(DEGREE + 1), back, text, params, of_first


@pytest.mark.parametrize(
    ("name", "terms", "digits"),
    # the least number of digits that the error leaves to any coefficient
    [("Norris", plane, 4), ("Longley", plane, 3), ("Filip", polynomial, 1)],
)
def test_coefficients_under_a_nearly_flat_prior_have_the_digits_that_double_precision_allows(
    name, terms, digits
):
    X, y, certified = (np.array(PROBLEMS[name][key]) for key in ("x", "y", "coefficients"))
    Z, A, back, text, params, flat = terms(X)
    u = (y - y.mean()) / y.std()
    solution = np.linalg.lstsq(A, u)[0]
    b, r = np.linalg.norm(solution), np.linalg.norm(u - A @ solution)
    largest, *_, least = np.linalg.svd(A, compute_uv=False)
    rounding = len(u) * np.finfo(float).eps * largest**2 * r / least
    rho = np.sqrt(rounding * least**2 / b)
    error = rho * b / least**2 + rounding / rho

    params[flat] /= rho
    predictor = ExactPredictor(parse_expression(text), np.log([*params, 1.0]), TrainingData(Z, u))
    mean, _ = predictor.function(Z)
    found = y.std() * back @ np.linalg.lstsq(A, mean)[0]
    found[0] += y.mean()

    reachable = y.std() * np.linalg.norm(back, axis=1) * error
    assert np.all(reachable < 10.0**-digits * np.abs(certified))
    assert np.all(np.abs(found - certified) < reachable)
