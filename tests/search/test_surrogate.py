"""Surrogates of scores, and acquisition functions of what these predict."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import check_grad
from scipy.stats import multivariate_normal, norm

from autokernel.search.acquisition import (
    Belief,
    ExpectedImprovement,
    ThompsonSampling,
    UpperConfidenceBound,
    expected_improvement,
)
from autokernel.search.surrogate import SurrogateGP, negative_log_posterior
from tests.search.stand_ins import distinct_walks, kernel_kernels

KERNEL_KERNELS = kernel_kernels(np.random.default_rng(0).uniform(size=(5, 2)))
SOT = KERNEL_KERNELS["sot"]


def decay(distances, weights):
    """Correlation that falls with weighted distances (SOT eq. 4, lengthscale of one)."""
    return np.exp(-np.tensordot(weights, distances, axes=1))


EXPRESSIONS = distinct_walks(120, n_walks=220)
DISTANCES = SOT.distances(EXPRESSIONS, EXPRESSIONS)


def drawn_scores():
    """Draw from a prior (n,), in the size of scores per sample."""
    K = decay(DISTANCES, np.array([0.5, 0.3, 0.2]))
    L = np.linalg.cholesky(K + 1e-10 * np.eye(len(EXPRESSIONS)))
    return -0.4 + 0.2 * L @ np.random.default_rng(1).normal(size=len(EXPRESSIONS))


SCORES = drawn_scores()


def covariance(theta, distances):
    """K_SOT from the definition: log variance, log squared lengthscale, three logits."""
    sigmoid = 1 / (1 + np.exp(-theta[2:5]))
    distance = sum(weight * D for weight, D in zip(sigmoid / sigmoid.sum(), distances, strict=True))
    return np.exp(theta[0]) * np.exp(-distance / np.exp(theta[1]))


def posterior(theta, distances, y, variances=0.0):
    """Mean and covariance at all expressions given the first n (R&W eqs. 2.25 and 2.26)."""
    n = len(y)
    P = covariance(theta, distances)
    gain = np.linalg.solve(P[:n, :n] + (np.exp(theta[5]) + variances) * np.eye(n), P[:n]).T
    return theta[6] + gain @ (y - theta[6]), P - gain @ P[:n]


@pytest.fixture(params=KERNEL_KERNELS)
def thirty(request):
    """A kernel-kernel, the distances of 30 expressions, and their scores."""
    kernel_kernel = KERNEL_KERNELS[request.param]
    return kernel_kernel, kernel_kernel.distances(EXPRESSIONS[:30], EXPRESSIONS[:30]), SCORES[:30]


@pytest.mark.parametrize("seed", range(3))
def test_objective_is_the_dense_negative_log_posterior_with_its_gradient(seed, thirty):
    kernel_kernel, distances, y = thirty
    rng = np.random.default_rng(seed)
    theta, means = rng.normal(size=(2, len(kernel_kernel.bounds) + 3))
    variances, stds = rng.uniform(size=30), rng.uniform(0.5, 2.0, size=len(theta))
    weights, _ = kernel_kernel.weights(theta[1:-2])
    noise = np.diag(np.exp(theta[-2]) + variances)
    K = np.exp(theta[0]) * decay(distances, weights) + noise
    expected = -multivariate_normal.logpdf(y, np.full(30, theta[-1]), K)
    expected += 0.5 * np.sum(((theta - means) / stds) ** 2)
    objective = negative_log_posterior(kernel_kernel, distances, y, variances, prior=(means, stds))
    assert objective(theta)[0] == pytest.approx(expected, rel=1e-10)  # condition 1e3, rounding
    error = check_grad(lambda t: objective(t)[0], lambda t: objective(t)[1], theta, epsilon=1e-6)
    # one-sided: the step times half the curvature, which is of the order of n, per entry
    assert error < 1e-4 < np.linalg.norm(objective(theta)[1])


@pytest.fixture(scope="module")
def conditioned():
    """A surrogate of 60 scores; it takes two fifths of their variance for noise."""
    return SurrogateGP(SOT, EXPRESSIONS[:60], SCORES[:60])


def standardise(values, scores):
    """Values in the unit of a surrogate of these scores."""
    return (values - scores.mean()) / scores.std()


def test_predictions_are_those_of_the_dense_formulas_and_may_be_believed(conditioned):
    n, m = 60, 65
    before, _ = conditioned.predict(EXPRESSIONS[n:])
    believing = conditioned.given(EXPRESSIONS[n:m], before[: m - n])
    for surrogate, known in (
        (conditioned, SCORES[:n]),
        (believing, np.append(SCORES[:n], before[: m - n])),
    ):
        mean, std = surrogate.predict(EXPRESSIONS[n:])
        expected, C = posterior(surrogate.theta, DISTANCES, standardise(known, SCORES[:n]))
        # rounding: a noise of at least 1e-5 keeps the condition number below 1e8
        np.testing.assert_allclose(standardise(mean, SCORES[:n]), expected[n:], atol=1e-7)
        np.testing.assert_allclose(std, SCORES[:n].std() * np.sqrt(np.diag(C)[n:]), atol=1e-6)
        # the mean stays where it was (Ginsbourger et al. 2010, kriging believer)
        np.testing.assert_allclose(mean, before, atol=1e-7)
    assert before.std() > 0.1 * SCORES.std()  # or the test shows nothing


def test_scores_with_errors_of_known_size_count_less():
    n, m = 40, 50
    variances = np.linspace(0.0, 2.0, m)
    prior = np.array([0.0, 0.5, 0.2, -0.1, 0.0, -2.0, -0.4]), np.full(7, 0.3)
    first = SurrogateGP(SOT, EXPRESSIONS[:n], SCORES[:n], prior=prior, variances=variances[:n])
    both = first.given(EXPRESSIONS[n:m], SCORES[n:m], variances[n:m])
    np.testing.assert_array_equal(both.theta, first.theta)
    for surrogate, known in ((first, n), (both, m)):
        mean, std = surrogate.predict(EXPRESSIONS)
        expected, C = posterior(first.theta, DISTANCES, SCORES[:known], variances[:known])
        np.testing.assert_allclose(mean, expected, atol=1e-8)
        np.testing.assert_allclose(std**2, np.diag(C), atol=1e-8)


@pytest.mark.parametrize(("n_believed", "sizes"), [(0, [40]), (4, [1, 39]), (4, [17, 3, 20])])
def test_a_draw_is_the_mean_and_a_factor_of_the_covariance_times_normal_numbers(
    sizes, n_believed, conditioned
):
    n = 60 + n_believed
    believed = EXPRESSIONS[60:n]
    surrogate = conditioned
    if believed:
        surrogate = conditioned.given(believed, conditioned.predict(believed)[0])
    function = surrogate.draw(np.random.default_rng(0))
    pieces = np.split(np.arange(80, 120), np.cumsum(sizes)[:-1])
    values = np.concatenate([function([EXPRESSIONS[i] for i in piece]) for piece in pieces])
    known = np.append(SCORES[:60], conditioned.predict(EXPRESSIONS[60:n])[0])
    mean, C = posterior(surrogate.theta, DISTANCES, standardise(known, SCORES[:60]))
    normal = np.random.default_rng(0).normal(size=40)
    expected = mean[80:] + np.linalg.cholesky(C[80:, 80:]) @ normal
    # what is added to the diagonal, 1e-9, over roots of eigenvalues of at least 1e-2
    np.testing.assert_allclose(standardise(values, SCORES[:60]), expected, atol=1e-7)


def test_a_draw_gives_the_same_value_whenever_it_is_called():
    precise = SurrogateGP(SOT, EXPRESSIONS[:80], SCORES[:80])  # it finds the smallest noise
    function = precise.draw(np.random.default_rng(0))
    first = function(EXPRESSIONS)
    shuffled = np.random.default_rng(1).permutation(120)
    parts = np.split(shuffled, 4)
    later = np.concatenate([function([EXPRESSIONS[i] for i in part]) for part in parts])
    prior_std = SCORES[:80].std() * np.exp(0.5 * precise.theta[0])
    atol = 5 * np.sqrt(2e-9) * prior_std  # each answer has its own variance of 1e-9
    np.testing.assert_allclose(later, first[shuffled], atol=atol)
    assert first[80:].std() > 1000 * atol  # or the test shows nothing


def test_with_a_prior_the_fit_maximises_the_dense_log_posterior_of_the_scores_as_they_are():
    n, prior = 12, (np.array([-0.7, 0.0, 0.0, 0.0, 0.0, -0.7, 0.0]), np.array([1.0] * 6 + [0.3]))

    def log_posterior(theta):
        K = covariance(theta, DISTANCES[:, :n, :n]) + np.exp(theta[5]) * np.eye(n)
        of_scores = multivariate_normal.logpdf(SCORES[:n], np.full(n, theta[6]), K)
        return of_scores + norm.logpdf(theta, *prior).sum()

    surrogate = SurrogateGP(SOT, EXPRESSIONS[:n], SCORES[:n], prior=prior)
    best = log_posterior(surrogate.theta)
    for step in 0.05 * np.vstack([np.eye(7), -np.eye(7)]):
        assert log_posterior(surrogate.theta + step) < best


# Acquisition functions.


def improvement(mean, std, best):
    return expected_improvement(np.atleast_1d(mean), np.full(np.size(mean), std), best=best)


@pytest.mark.parametrize("best", [-2.0, 0.3, 1.5])
@pytest.mark.parametrize("std", [0.2, 3.0])
def test_expected_improvement_is_the_integral_of_its_definition(std, best):
    value, _ = quad(
        lambda f: (f - best) * norm.pdf(f, 0.3, std), best, np.inf, epsabs=0, epsrel=1e-10
    )
    assert improvement(0.3, std, best) == pytest.approx(value, rel=1e-8)  # the quadrature's error


def test_it_is_never_negative_and_without_uncertainty_the_improvement_of_the_mean():
    # far below the best, where two terms almost cancel
    assert np.all(improvement(np.linspace(-50, 5, 10_001), 1.0, 0.0) >= 0)
    # a standard deviation of zero is taken as 1e-12, of which 0.4 is left at the best itself
    np.testing.assert_allclose(improvement([1.0, 2.0, 5.0], 0.0, 2.0), [0, 0, 3], atol=1e-12)


def test_values_are_those_of_the_surrogate(conditioned):
    new = EXPRESSIONS[80:]
    mean, std = conditioned.predict(new)
    for acquisition, expected in [
        (ExpectedImprovement(), expected_improvement(mean, std, best=-0.5)),
        (UpperConfidenceBound(kappa=0), mean),
        (UpperConfidenceBound(kappa=0.5), mean + 0.5 * std),
        (ThompsonSampling(), conditioned.draw(np.random.default_rng(0))(new)),
    ]:
        values = acquisition.values(Belief(conditioned, -0.5, np.random.default_rng(0)))(new)
        np.testing.assert_allclose(values, expected, rtol=1e-12)


@pytest.mark.parametrize("kappa", [-1e-9, np.inf, "2"])
def test_a_kappa_that_is_no_finite_number_from_zero_is_an_error_that_says_so(kappa):
    expected = rf"'kappa' parameter of UpperConfidenceBound must be a float in .*Got {kappa!r}"
    with pytest.raises(ValueError, match=expected):
        UpperConfidenceBound(kappa=kappa)._validate_params()
