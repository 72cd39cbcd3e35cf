"""Terms of a function compared with their averages."""

import numpy as np
import pytest

from autokernel.expression import parse_expression
from autokernel.inference import TrainingData, cross_covariance
from autokernel.inference.exact import ExactPredictor
from autokernel.inference.inducing import InducingPredictor

WHOLE = parse_expression("LIN[0] + SE[0] * SE[1]")
TERM = parse_expression("LIN[0]")
THETA = np.log([1.0, 0.7, 0.3, 0.8, 0.6, 1.2, 0.05])  # v, offset; l, v; l, v; noise


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(30, 2))
    return TrainingData(X, X[:, 0] + np.sin(5 * X[:, 1]) + 0.2 * rng.normal(size=30))


@pytest.mark.parametrize("n_inducing", [None, 30])
def test_the_variance_is_that_of_the_difference_from_the_average(data, n_inducing):
    if n_inducing is None:
        predictor = ExactPredictor(WHOLE, THETA, data)
    else:  # as many points as rows: the same but for jitter
        predictor = InducingPredictor(WHOLE, THETA, data, n_inducing)
    rng = np.random.default_rng(1)
    X, about = rng.uniform(size=(5, 2)), rng.uniform(size=(7, 2))
    params = np.exp(THETA[:-1])
    points = np.concatenate([X, about])
    K = cross_covariance(WHOLE, data.X, data.X).forward(params) + np.exp(THETA[-1]) * np.eye(30)
    cross = cross_covariance(TERM, points, data.X).forward(params[:2])
    prior = cross_covariance(TERM, points, points).forward(params[:2])
    covariance = prior - cross @ np.linalg.solve(K, cross.T)
    difference = np.hstack([np.eye(5), np.full((5, 7), -1 / 7)])
    expected = np.diag(difference @ covariance @ difference.T)
    mean, variance = predictor.part(TERM, params[:2], X, about=about)
    plain_mean, plain = predictor.part(TERM, params[:2], X)
    np.testing.assert_allclose(mean, plain_mean)
    np.testing.assert_allclose(variance, expected, rtol=1e-4)
    np.testing.assert_allclose(plain, np.diag(covariance)[:5], rtol=1e-4)
    assert np.all(variance < plain)
