"""Weights by the densities of rows left out."""

import warnings
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import gammaln, logsumexp, softmax
from scipy.stats import norm

from autokernel import PosteriorAveraging, Stacking, parse_expression
from autokernel.evidence import Evaluator
from autokernel.exceptions import EvaluationError
from autokernel.expression import NOISE, Leaf
from autokernel.kernels.parameters import check_priors
from autokernel.model import posterior_over_kernels
from autokernel.model.averaging import loo_log_densities, stacking_weights, systematic
from tests.batteries import seeds
from tests.fits import wave
from tests.model.cases import Constant

PRIORS = check_priors("default")
N_GRID = 80
N_DRAWS = 2000


def log_gamma_prior(log_value, shape, rate):
    """Log density of the logarithm of a Gamma variable."""
    constant = shape * np.log(rate) - gammaln(shape)
    return constant + shape * log_value - rate * np.exp(log_value)


def noise_on_a_grid(y):
    """Parameters of noise alone, and their log prior masses and log likelihoods by row."""
    theta = np.linspace(-5, 5, N_GRID**2)[:, None]
    log_prior = log_gamma_prior(theta[:, 0], 1.0, 2.0)
    return theta, log_prior, lambda rows: norm.logpdf(y[rows], scale=np.exp(theta / 2)).sum(axis=1)


def constant_on_a_grid(y):
    """The same for a constant with noise: (constant^2) + s I has an inverse in closed form."""
    ends = np.linspace(-6, 4, N_GRID)
    theta = np.stack(np.meshgrid(ends, ends), axis=-1).reshape(-1, 2)
    log_prior = log_gamma_prior(theta[:, 0], 2.0, 3.0) + log_gamma_prior(theta[:, 1], 1.0, 2.0)
    a, s = np.exp(theta).T

    def log_likelihood(rows):
        n, total, squares = len(y[rows]), y[rows].sum(), (y[rows] ** 2).sum()
        log_det = (n - 1) * np.log(s) + np.log(s + n * a)
        explained = a * total**2 / (s + n * a)
        return -0.5 * ((squares - explained) / s + log_det + n * np.log(2 * np.pi))

    return theta, log_prior, log_likelihood


@pytest.mark.parametrize(
    ("expression", "on_a_grid"),
    [(NOISE, noise_on_a_grid), (Leaf(Constant(), 0), constant_on_a_grid)],
    ids=["noise", "constant"],
)
def test_densities_of_rows_left_out_are_quotients_of_evidences(expression, on_a_grid):
    """Against quadrature: the evidence of all rows divided by that without the row."""
    X = np.linspace(0, 1, 9)[:, None]
    y = np.array([0.3, -0.2, 0.8, 0.1, -0.4, 1.0, 0.2, 0.5, 1.7])  # the last one lies far out
    theta, log_prior, log_likelihood = on_a_grid(y)
    every = np.arange(9)
    log_posterior = log_prior + log_likelihood(every)
    expected = [
        logsumexp(log_posterior) - logsumexp(log_prior + log_likelihood(np.delete(every, row)))
        for row in every
    ]
    draws = theta[systematic(softmax(log_posterior), N_DRAWS)]
    found = loo_log_densities(Evaluator(X, y, priors=PRIORS, seed=0), expression, draws)
    # Draws are spread evenly, so that all but the outlier has an error of some 1 / N_DRAWS. Its
    # weights have a heavy tail, which draws do not reach
    np.testing.assert_allclose(found[:-1], expected[:-1], atol=5e-3)
    assert found[-1] == pytest.approx(expected[-1], abs=0.1)
    # the densities given all rows, or means of those given all others, would be far too good
    subject = Evaluator(X, y, priors=PRIORS, seed=0)
    optimistic = logsumexp(subject.leave_one_out(expression, draws)[:, -1]) - np.log(N_DRAWS)
    assert optimistic > expected[-1] + 0.2


def test_one_draw_is_the_closed_form_at_its_parameters():
    X, y = wave(12)
    subject = Evaluator(X, y, priors=PRIORS, seed=0)
    expression, theta = parse_expression("SE[0]"), np.log([0.3, 1.0, 0.01])
    (expected,) = subject.leave_one_out(expression, theta[None])
    found = loo_log_densities(subject, expression, theta[None])
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_a_draw_without_densities_is_left_out():
    densities = np.log(np.random.default_rng(0).uniform(0.1, 1.0, size=(40, 5)))
    broken = densities.copy()
    broken[7] = -np.inf  # its covariance has no Cholesky factor
    subject = SimpleNamespace(leave_one_out=lambda expression, draws, deadline: broken)
    others = SimpleNamespace(
        leave_one_out=lambda expression, draws, deadline: np.delete(densities, 7, 0)
    )
    np.testing.assert_array_equal(
        loo_log_densities(subject, None, None), loo_log_densities(others, None, None)
    )


def test_a_few_draws_with_tiny_densities_do_not_decide_alone():
    """The plain harmonic mean has an infinite variance here; smoothing bounds the weights."""
    errors = {"plain": [], "smoothed": []}
    for seed in range(100):
        # densities of a row, exponential in a variable whose weights have a tail of shape 1 / 1.5
        logs = -np.random.default_rng(seed).exponential(1 / 1.5, size=(400, 1))
        subject = SimpleNamespace(leave_one_out=lambda expression, draws, deadline, logs=logs: logs)
        expected = np.log(0.5 / 1.5)  # one over the mean of exp(x), for x with the rate 1.5
        errors["plain"].append(np.log(400) - logsumexp(-logs) - expected)
        errors["smoothed"].append(loo_log_densities(subject, None, None)[0] - expected)
    plain, smoothed = (np.sqrt(np.mean(np.square(own))) for own in errors.values())
    assert smoothed < plain


def objective(log_densities, weights):
    """The mean log density of a row under the mixture."""
    with np.errstate(divide="ignore"):
        return logsumexp(log_densities + np.log(weights)[:, None], axis=0).mean()


def best_on_the_simplex(log_densities):
    """The maximum by another method: sequential quadratic programming."""
    n_kernels = len(log_densities)
    densities = np.exp(log_densities)

    def loss_and_gradient(weights):
        mixed = weights @ densities
        return -np.log(mixed).mean(), -(densities / mixed).mean(axis=1)

    with warnings.catch_warnings():
        # SLSQP of scipy 1.15 steps over a bound by rounding, and clips
        warnings.filterwarnings("ignore", "Values in x were outside bounds", RuntimeWarning)
        found = minimize(
            loss_and_gradient,
            np.full(n_kernels, 1 / n_kernels),
            jac=True,
            method="SLSQP",
            bounds=[(1e-12, 1)] * n_kernels,
            constraints={"type": "eq", "fun": lambda weights: weights.sum() - 1},
            options={"maxiter": 500, "ftol": 1e-12},
        )
    assert found.success
    return found.x


@given(seed=seeds, n_kernels=st.integers(1, 8), spread=st.sampled_from([0.1, 1.0, 3.0]))
def test_stacking_weights_maximise_the_density_of_the_mixture(seed, n_kernels, spread):
    log_densities = spread * np.random.default_rng(seed).normal(size=(n_kernels, 25))
    weights = stacking_weights(log_densities)
    assert weights.shape == (n_kernels,)
    assert weights.min() >= 0
    assert weights.sum() == pytest.approx(1.0, rel=1e-12)
    best = objective(log_densities, best_on_the_simplex(log_densities))
    # steps end when they gain 1e-7 nats per row; the last ones shrink slowly, like a series
    assert best - 1e-4 < objective(log_densities, weights) < best + 1e-8


def test_stacking_weights_are_those_of_the_maximum():
    """Each kernel is far better on its own rows: one third and two thirds of them."""
    log_densities = np.full((2, 30), -8.0)
    log_densities[0, :10] = log_densities[1, 10:] = 0.0
    weights = stacking_weights(log_densities)
    # where w / (1 - w) = 1 / 2, but for exp(-8) of the other density
    np.testing.assert_allclose(weights, [1 / 3, 2 / 3], atol=1e-3)


def test_stacking_weights_do_not_depend_on_the_unit_of_the_target():
    log_densities = np.random.default_rng(0).normal(size=(3, 20))
    np.testing.assert_allclose(
        stacking_weights(log_densities - 900.0), stacking_weights(log_densities), atol=1e-9
    )


def test_equal_kernels_share_their_weight():
    log_densities = np.random.default_rng(0).normal(size=(2, 20))[[0, 1, 0]]
    first, _, last = stacking_weights(log_densities)
    assert first == pytest.approx(last, rel=1e-12)


@pytest.mark.parametrize("worse", [0.5, 5.0, 500.0])
def test_a_kernel_that_predicts_all_rows_worse_gets_no_weight(worse):
    good = np.random.default_rng(0).normal(size=30)
    weights = stacking_weights(np.array([good, good - worse]))
    assert weights[1] < 1e-5


def test_a_kernel_that_cannot_predict_some_rows_at_all_does_no_harm():
    log_densities = np.zeros((2, 10))
    log_densities[1, :3] = -1e4
    weights = stacking_weights(log_densities)
    assert np.isfinite(weights).all()
    assert objective(log_densities, weights) == pytest.approx(0.0, abs=1e-3)


@pytest.fixture(scope="module")
def fitted():
    """An evaluator and the posterior over three kernels, two of which cannot explain the data."""
    X, y = wave(20)
    y = (y - y.mean()) / y.std()
    evaluator = Evaluator(X, y, priors=PRIORS, seed=0)
    kernels = [
        posterior_over_kernels(evaluator, [evaluator(parse_expression(text))])[0]
        for text in ("SE[0]", "LIN[0]", "NOISE")
    ]
    return evaluator, kernels


def test_stacking_weighs_kernels_by_their_predictions_and_not_by_their_evidence(fitted):
    evaluator, kernels = fitted
    assert [kernel.probability for kernel in kernels] == [1.0] * 3  # each was asked for alone
    weights = Stacking().weights(evaluator, kernels)
    assert weights[0] > 1 - 1e-5
    log_densities = np.array(
        [loo_log_densities(evaluator, k.evaluation.expression, k.draws) for k in kernels]
    )
    np.testing.assert_array_equal(weights, stacking_weights(log_densities))


def test_stacking_chooses_the_components(fitted):
    evaluator, kernels = fitted
    components = Stacking(n_components=5).components(evaluator, kernels)
    assert [str(one.expression) for one in components] == ["SE[0]"] * 5
    others = PosteriorAveraging(n_components=6).components(evaluator, kernels)
    assert {str(one.expression) for one in others} == {"SE[0]", "LIN[0]", "NOISE"}


def test_a_kernel_that_fails_at_a_draw_gets_no_weight():
    def leave_one_out(expression, draws, deadline):
        raise EvaluationError("it fails")

    subject = SimpleNamespace(leave_one_out=leave_one_out, data=SimpleNamespace(y=np.zeros(5)))
    failed = loo_log_densities(subject, parse_expression("SE[0]"), np.zeros((3, 3)))
    weights = stacking_weights(np.array([failed, np.full(5, -3.0)]))
    np.testing.assert_allclose(weights, [0.0, 1.0], atol=1e-12)
