"""BIC and AIC against their textbook forms."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from autokernel import AIC, BIC, evaluate_kernel

N_SAMPLES = 17
# parameters of the leaves, counted by hand, and the noise variance
N_PARAMS = {"LIN[0]": 2 + 1, "SE[0]": 2 + 1, "PER[0] * SE[1] + RQ[0]": 3 + 2 + 3 + 1}

every_kernel = pytest.mark.parametrize("text", N_PARAMS)


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(N_SAMPLES, 2))
    y = np.sin(6 * X[:, 0]) + 0.1 * rng.normal(size=N_SAMPLES)
    return X, (y - y.mean()) / y.std()


@pytest.fixture(scope="module")
def log_likelihood(table, dense_covariance):
    """Log likelihood at the parameters of a fit, computed by scipy."""
    X, y = table
    return lambda text, fit: multivariate_normal.logpdf(y, cov=dense_covariance(text, fit.theta, X))


@every_kernel
def test_bic_is_the_textbook_form_by_minus_two(text, table, log_likelihood):
    fit = evaluate_kernel(text, *table, criterion="bic")
    textbook = N_PARAMS[text] * np.log(N_SAMPLES) - 2 * log_likelihood(text, fit)
    # rounding, by a condition number below 1e5
    assert fit.score == pytest.approx(-textbook / 2, rel=1e-9)


@every_kernel
def test_aic_is_the_textbook_form_by_minus_two(text, table, log_likelihood):
    fit = evaluate_kernel(text, *table, criterion="aic")
    textbook = 2 * N_PARAMS[text] - 2 * log_likelihood(text, fit)
    assert fit.score == pytest.approx(-textbook / 2, rel=1e-9)


@pytest.mark.parametrize("criterion", [AIC(), BIC()], ids=str)
def test_they_take_no_likelihood_call_and_leave_the_fit_and_its_evidence(criterion, table):
    fit = evaluate_kernel("SE[0]", *table, criterion=criterion)
    plain = evaluate_kernel("SE[0]", *table)
    np.testing.assert_array_equal(fit.theta, plain.theta)
    assert fit.log_evidence == plain.score
    assert fit.n_evaluations == plain.n_evaluations
    assert np.isnan([fit.standard_error, fit.pareto_k]).all()
