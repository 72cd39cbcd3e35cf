from typing import NamedTuple

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import multivariate_normal, multivariate_t

from autokernel import evaluate_kernel
from autokernel.evidence.laplace import boundary_log_mass, laplace_log_evidence
from autokernel.evidence.posterior import NOISE_FLOOR
from autokernel.exceptions import NotAMaximumError

N_DRAWS = 8000


class Estimate(NamedTuple):
    """An importance-sampling estimate of a log evidence."""

    log_evidence: float
    effective_size: float
    standard_error: float  # nats


def estimate(log_weights):
    highest = log_weights.max()
    weights = np.exp(log_weights - highest)
    effective_size = weights.sum() ** 2 / (weights**2).sum()
    return Estimate(
        highest + np.log(weights.mean()),
        effective_size,
        np.sqrt(1 / effective_size - 1 / len(weights)),
    )


@pytest.mark.parametrize("n_params", [1, 2, 5])
def test_laplace_log_evidence_is_exact_for_a_gaussian_posterior(n_params):
    # Bayesian linear regression with known noise: its evidence is a Gaussian density of y.
    rng = np.random.default_rng(n_params)
    features, noise = rng.normal(size=(12, n_params)), 0.3
    y = rng.normal(size=12)
    hessian = features.T @ features / noise + np.eye(n_params)
    weights = np.linalg.solve(hessian, features.T @ y / noise)
    log_posterior = multivariate_normal.logpdf(
        y, features @ weights, noise * np.eye(12)
    ) + multivariate_normal.logpdf(weights, np.zeros(n_params), np.eye(n_params))
    exact = multivariate_normal.logpdf(y, cov=features @ features.T + noise * np.eye(12))
    # both sides are sums of some dozen terms: rounding alone
    assert laplace_log_evidence(log_posterior, hessian) == pytest.approx(exact, rel=1e-12)


def test_laplace_log_evidence_rejects_a_saddle_point():
    with pytest.raises(NotAMaximumError, match=r"smallest eigenvalue -2\.00e\+00.*saddle"):
        laplace_log_evidence(0.0, np.diag([1.0, -2.0]))


def test_laplace_log_evidence_rejects_a_flat_direction():
    with pytest.raises(NotAMaximumError, match="must be positive definite"):
        laplace_log_evidence(0.0, np.diag([1.0, 0.0]))


@pytest.mark.parametrize("curvature", [1e-3, 0.5, 20.0])
@pytest.mark.parametrize("slope", [0.1, 1.0, 30.0])
def test_boundary_log_mass_is_the_integral_over_the_allowed_side(slope, curvature):
    mass, _ = quad(
        lambda t: np.exp(-slope * t - 0.5 * curvature * t**2), 0, np.inf, epsabs=0, epsrel=1e-11
    )
    # the quadrature's own error, with a margin
    assert boundary_log_mass(slope, curvature) == pytest.approx(np.log(mass), abs=1e-9)


@pytest.mark.parametrize("curvature", [0.0, -3.0])
@pytest.mark.parametrize("slope", [0.1, 7.0])
def test_boundary_log_mass_without_positive_curvature_is_that_of_an_exponential(slope, curvature):
    # int_0^inf exp(-slope t) dt = 1 / slope, to rounding
    assert boundary_log_mass(slope, curvature) == pytest.approx(np.log(1 / slope), abs=1e-14)


def test_boundary_log_mass_is_continuous_where_the_curvature_vanishes():
    # log(1 - curvature / slope^2 + ...) deviates by 1e-12
    assert boundary_log_mass(3.0, 1e-11) == pytest.approx(boundary_log_mass(3.0, 0.0), abs=1e-11)


def series(kind):
    rng = np.random.default_rng(4)
    x = np.sort(rng.uniform(size=40))
    clean = {
        "smooth": np.sin(7 * x),
        "line": 1.5 * x - 1,
        "line and wave": 2 * x - 1 + 0.6 * np.sin(14 * x),
    }
    return x[:, None], clean[kind] + 0.1 * rng.normal(size=40)


@pytest.mark.parametrize(
    ("text", "kind"),
    [("SE[0]", "smooth"), ("LIN[0]", "line"), ("SE[0] + LIN[0]", "line and wave")],
)
def test_evidence_of_a_kernel_agrees_with_importance_sampling(text, kind, dense_log_posterior):
    X, y = series(kind)
    fit = evaluate_kernel(text, X, y, priors="paper")
    # five degrees of freedom: tails heavier than the posterior's, so that weights are bounded
    proposal = multivariate_t(fit.theta, np.linalg.inv(fit.hessian), df=5, seed=0)
    draws = proposal.rvs(N_DRAWS)
    sampled = estimate(dense_log_posterior(text, X, y)(draws) - proposal.logpdf(draws))
    assert sampled.effective_size > N_DRAWS / 4
    assert sampled.standard_error < 0.02  # a tenth of the tolerance below
    # what is left is the skewness of these posteriors: up to 0.15 nats over many data sets, where
    # a missing Jacobian, 2 pi or factor in the Hessian is one nat or more
    assert fit.log_evidence == pytest.approx(sampled.log_evidence, abs=0.2)


@pytest.mark.parametrize("text", ["SE[0]", "LIN[0]"])
def test_evidence_with_the_noise_at_its_floor_agrees_with_importance_sampling(
    text, dense_log_posterior
):
    x = np.linspace(0, 1, 20)
    X, y = x[:, None], np.sin(6 * x) if text == "SE[0]" else 1.3 * x - 0.5
    fit = evaluate_kernel(text, X, y, priors="paper")
    assert fit.theta[-1] == pytest.approx(
        np.log(NOISE_FLOOR * np.mean(y**2)), abs=1e-9
    )  # a bound, not a fit
    log_posterior = dense_log_posterior(text, X, y)
    beside = fit.theta + 1e-3 * np.eye(fit.n_params)[-1]
    slope = -(log_posterior(beside) - log_posterior(fit.theta)) / 1e-3
    proposal = multivariate_t(fit.theta[:-1], np.linalg.inv(fit.hessian[:-1, :-1]), df=5, seed=0)
    kernel_params = proposal.rvs(N_DRAWS)
    above_floor = np.random.default_rng(0).exponential(1 / slope, size=N_DRAWS)
    draws = np.column_stack([kernel_params, fit.theta[-1] + above_floor])
    log_proposal = proposal.logpdf(kernel_params) + np.log(slope) - slope * above_floor
    sampled = estimate(log_posterior(draws) - log_proposal)
    assert sampled.effective_size > N_DRAWS / 4
    assert sampled.standard_error < 0.02  # a tenth of the tolerance below
    # skewness, and the noise taken as independent of the kernel's parameters
    assert fit.log_evidence == pytest.approx(sampled.log_evidence, abs=0.2)


def test_mass_at_a_bound_where_the_posterior_is_flat_is_refused():
    with pytest.raises(NotAMaximumError, match="flat at a bound"):
        boundary_log_mass(1e-6, -1e-3)
