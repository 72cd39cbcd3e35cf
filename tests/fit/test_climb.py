"""What a fit to some rows tells of a fit to more."""

import numpy as np

from autokernel.evidence.posterior import LogPosterior
from autokernel.expression import parse_expression
from autokernel.inference import ExactLikelihood, TrainingData
from autokernel.kernels import PRESETS
from autokernel.many_rows.climb import _scaled


def posterior():
    X = np.linspace(0, 1, 10)[:, None]
    likelihood = ExactLikelihood(parse_expression("SE[0]"), TrainingData(X, X[:, 0]))
    return LogPosterior(likelihood, priors=dict(PRESETS["default"]))


def test_the_part_of_the_rows_grows_and_that_of_the_prior_does_not():
    at, theta = posterior(), np.zeros(3)
    of_prior, of_rows = np.diag(at.prior.curvature(theta)), np.diag([3.0, 2.0, 5.0])
    found = _scaled(of_rows + of_prior, 20, at, theta)
    np.testing.assert_allclose(found, 20 * of_rows + of_prior)
    assert _scaled(np.full((3, 3), np.nan), 20, at, theta) is None


def test_a_parameter_that_the_prior_alone_holds_stays_at_a_maximum():
    """Where the likelihood curves upwards a little, more rows must not make a saddle of it."""
    at, theta = posterior(), np.zeros(3)
    of_prior = np.diag(at.prior.curvature(theta))
    found = _scaled(of_prior + np.diag([3.0, -0.01, 5.0]), 1000, at, theta)
    assert np.all(np.linalg.eigvalsh(found) > 0)
    np.testing.assert_allclose(found[1, 1], of_prior[1, 1])


def test_the_curvature_of_the_prior_is_the_derivative_of_its_gradient():
    prior, theta, step = posterior().prior, np.array([0.3, -0.5, 1.0]), 1e-6
    slopes = (prior.gradient(theta + step) - prior.gradient(theta - step)) / (2 * step)
    np.testing.assert_allclose(prior.curvature(theta), -slopes, rtol=1e-6)
