"""Criteria of noise alone, whose evidence has a closed form."""

import numpy as np
import pytest
from mpmath import mpf
from scipy.stats import norm
from sklearn.model_selection import KFold

from autokernel import CrossValidation, evaluate_kernel
from autokernel.evidence.laplace import log_evidence, log_evidence_at
from autokernel.evidence.maximise import Point, maximise
from autokernel.evidence.maximum import measure_maximum
from autokernel.evidence.posterior import LogPosterior
from autokernel.expression import NOISE, parse_expression
from autokernel.inference import ExactLikelihood, TrainingData
from tests.high_precision import mp

DEFAULT = (1.0, 2.0)


def draw(n_samples, *, scale=1.0):
    rng = np.random.default_rng(n_samples)
    return rng.uniform(size=(n_samples, 1)), scale * rng.normal(size=n_samples)


def priors_of(shape_and_rate):
    return {"noise_variance": shape_and_rate}


def exact_log_evidence(y, shape, rate):
    """Log of the integral over all s of N(y; 0, s I) Gamma(s; shape, rate).

    With ``nu = shape - n/2`` and ``S = y'y``, the integral of ``s^(nu-1) exp(-S/(2s) - rate s)`` is
    ``2 (S / (2 rate))^(nu/2) K_nu(sqrt(2 rate S))`` (Gradshteyn & Ryzhik, 3.471.9).
    """
    n, a, b = mpf(len(y)), mpf(shape), mpf(rate)
    S = mp.fsum(mpf(value) ** 2 for value in y.tolist())
    nu = a - n / 2
    constant = a * mp.log(b) - mp.loggamma(a) - n / 2 * mp.log(2 * mp.pi)
    bessel = mp.besselk(nu, mp.sqrt(2 * b * S))
    return float(constant + mp.log(2) + nu / 2 * mp.log(S / (2 * b)) + mp.log(bessel))


def highest_variance(y, shape, rate):
    """Where ``-n/2 log s - S / (2 s) + shape log s - rate s`` is largest: a quadratic equation."""
    half = len(y) / 2 - shape
    return (-half + np.sqrt(half**2 + 2 * rate * (y @ y))) / (2 * rate)


@pytest.mark.parametrize("scale", [1e-3, 1.0, 30.0])
@pytest.mark.parametrize("prior", [DEFAULT, (1.0, 100.0), (4.0, 0.3)], ids=str)
@pytest.mark.parametrize("n_samples", [2, 5, 40, 300])
def test_laplace_is_the_exact_evidence_in_closed_form(n_samples, prior, scale):
    X, y = draw(n_samples, scale=scale)
    fit = evaluate_kernel(NOISE, X, y, priors=priors_of(prior))
    exact = exact_log_evidence(y, *prior)
    assert fit.status == "ok"
    # the tolerance of the quadrature, and the rounding of a log posterior of this size; the floor
    # of the noise, 1e-8 mean squares, cuts off nothing that matters
    assert fit.score == pytest.approx(exact, rel=1e-12, abs=1e-8)


def test_laplaces_approximation_would_be_off():
    X, y = draw(5)
    posterior = LogPosterior(ExactLikelihood(NOISE, TrainingData(X, y)), priors={})
    maximum = measure_maximum(posterior, maximise(posterior, np.zeros(1), max_iterations=100))
    exact = exact_log_evidence(y, *DEFAULT)
    # so that the tests of exactness show something
    assert abs(log_evidence_at(maximum) - exact) > 1e-2
    assert log_evidence(posterior, maximum) == pytest.approx(exact, abs=1e-8)


@pytest.mark.parametrize("away", [-0.4, 0.0, 0.3])
def test_the_exact_evidence_does_not_depend_on_how_well_the_mode_was_found(away):
    X, y = draw(30)
    posterior = LogPosterior(ExactLikelihood(NOISE, TrainingData(X, y)), priors={})
    theta = np.log([highest_variance(y, *DEFAULT)]) + away
    maximum = measure_maximum(posterior, Point(theta, posterior.value(theta)))
    assert log_evidence(posterior, maximum) == pytest.approx(
        exact_log_evidence(y, *DEFAULT), abs=1e-8
    )


@pytest.mark.parametrize("n_samples", [3, 60, 40_000])
def test_the_evidence_is_exact_where_a_bound_holds_the_noise(n_samples):
    # without a target, the density falls from the lower bound of the noise as a power of it
    X, y = draw(n_samples)[0], np.zeros(n_samples)
    shape, rate = (mpf(number) for number in DEFAULT)
    lower, upper = shape / rate / 10**6, shape / rate * 10**6  # as the log posterior has them
    power = shape - mpf(n_samples) / 2
    mass = mp.gammainc(power, rate * lower, rate * upper) * rate ** (shape - power)
    exact = float(mp.log(mass) - n_samples * mp.log(2 * mp.pi) / 2)
    fit = evaluate_kernel(NOISE, X, y, priors=priors_of(DEFAULT))
    assert fit.theta[0] == pytest.approx(float(mp.log(lower)), abs=1e-9)  # a bound, not a fit
    assert fit.score == pytest.approx(exact, rel=1e-12, abs=1e-8)


def test_a_kernel_with_more_parameters_keeps_laplaces_approximation():
    X, y = draw(20)
    likelihood = ExactLikelihood(parse_expression("LIN[0]"), TrainingData(X, y))
    posterior = LogPosterior(likelihood, priors={})
    maximum = measure_maximum(posterior, maximise(posterior, np.zeros(3), max_iterations=200))
    assert log_evidence(posterior, maximum) == log_evidence_at(maximum)


@pytest.mark.parametrize("prior", [DEFAULT, (4.0, 0.3)], ids=str)
@pytest.mark.parametrize("n_samples", [5, 300])
def test_information_criteria_are_those_of_one_parameter(n_samples, prior):
    X, y = draw(n_samples)
    deviation = np.sqrt(highest_variance(y, *prior))
    log_likelihood = norm.logpdf(y, scale=deviation).sum()
    scores = {
        criterion: evaluate_kernel(NOISE, X, y, criterion=criterion, priors=priors_of(prior)).score
        for criterion in ("aic", "bic", "loo")
    }
    # the search ends where the log posterior is within 1e-8 nats of its maximum. The log likelihood
    # has a slope there, of the size of the shape of the prior, and theta is known to 1e-5
    assert scores["aic"] == pytest.approx(log_likelihood - 1, abs=1e-4)
    assert scores["bic"] == pytest.approx(log_likelihood - 0.5 * np.log(n_samples), abs=1e-4)
    # independent rows: each is predicted as in the likelihood
    assert scores["loo"] == pytest.approx(log_likelihood, abs=1e-4)


@pytest.mark.parametrize("refit", [True, False])
def test_cross_validation_predicts_each_fold_with_the_noise_of_the_others(refit):
    X, y = draw(23)
    expected = 0.0
    for train, test in KFold(4, shuffle=True, random_state=1).split(X):
        variance = highest_variance(y[train] if refit else y, *DEFAULT)
        expected += norm.logpdf(y[test], scale=np.sqrt(variance)).sum()
    splitter = KFold(4, shuffle=True, random_state=1)
    fit = evaluate_kernel(NOISE, X, y, criterion=CrossValidation(cv=splitter, refit=refit))
    assert fit.score == pytest.approx(expected, abs=1e-4)  # theta is known to 1e-5


@pytest.mark.parametrize("y", [draw(6)[1], np.eye(6)[0], 1e4 * draw(6)[1]], ids=["", "one", "big"])
def test_importance_sampling_agrees_with_the_closed_form(y):
    fit = evaluate_kernel(NOISE, draw(6)[0], y, criterion="importance")
    assert fit.standard_error < 0.05
    assert fit.score == pytest.approx(exact_log_evidence(y, *DEFAULT), abs=4 * fit.standard_error)
