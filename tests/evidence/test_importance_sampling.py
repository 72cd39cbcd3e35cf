from collections.abc import Callable
from dataclasses import dataclass, replace
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.polynomial.laguerre import laggauss
from scipy.integrate import quad
from scipy.special import gammaln, logsumexp
from scipy.stats import genpareto, multivariate_normal, norm

from autokernel import evaluate_kernel
from autokernel.evidence import importance
from autokernel.evidence.importance import (
    FIRST_DRAWS,
    MAX_DRAWS,
    STANDARD_ERROR,
    Mixture,
    importance_sample,
    pareto_shape,
)
from autokernel.evidence.maximum import Maximum
from autokernel.evidence.posterior import LogPosterior
from autokernel.exceptions import NotAMaximumError
from autokernel.expression import parse_expression
from autokernel.inference import ExactLikelihood, TrainingData
from autokernel.kernels.parameters import check_priors
from autokernel.typing import FloatArray
from tests.maxima import maximum_of

N_SEEDS = 20


@dataclass(frozen=True, eq=False)
class Problem:
    """A log density with its modes, and the log of its integral over the box."""

    log_density: Callable[[FloatArray], float]
    maxima: list[Maximum]
    log_mass: float
    lower: FloatArray
    upper: FloatArray

    def estimate(self, seed=0, **limits):
        density = SimpleNamespace(value=self.log_density, lower=self.lower, upper=self.upper)
        return importance_sample(density, self.maxima, rng=np.random.default_rng(seed), **limits)

    def counted(self, seed=0, **limits):
        """Return the estimate and the points at which it has asked for the density."""
        points = []

        def log_density(theta):
            points.append(theta)
            return self.log_density(theta)

        return replace(self, log_density=log_density).estimate(seed, **limits), points

    def errors(self):
        """Errors of the estimates with several seeds, in their standard errors."""
        estimates = [self.estimate(seed) for seed in range(N_SEEDS)]
        return np.array([(e.log_evidence - self.log_mass) / e.standard_error for e in estimates])


def peak(log_density, theta, hessian, outward=None):
    return maximum_of(theta, log_density(np.array(theta, dtype=float)), hessian, outward)


def problem(log_density, maxima, log_mass, *, lower=None, upper=None):
    anywhere = np.full(len(maxima[0].mode.theta), np.inf)
    lower = -anywhere if lower is None else np.array(lower, dtype=float)
    upper = anywhere if upper is None else np.array(upper, dtype=float)
    return Problem(log_density, maxima, log_mass, lower, upper)


def gaussian(n_params, *, told=1.0):
    """A correlated Gaussian whose Hessian is told as a multiple of what it is."""
    factor = np.random.default_rng(n_params).normal(size=(n_params, n_params))
    covariance = factor @ factor.T / n_params + 0.05 * np.eye(n_params)
    hessian = np.linalg.inv(covariance)

    def log_density(theta):
        return float(4 - 0.5 * (theta - 1) @ hessian @ (theta - 1))

    log_mass = 4 + n_params / 2 * np.log(2 * np.pi) + np.linalg.slogdet(covariance)[1] / 2
    return problem(log_density, [peak(log_density, np.ones(n_params), told * hessian)], log_mass)


def log_gamma(*shapes):
    """Logs of Gamma variables, as the priors are: int exp(a t - exp t) dt = Gamma(a)."""
    shape = np.array(shapes)

    def log_density(theta):
        return float(shape @ theta - np.exp(theta).sum())

    maxima = [peak(log_density, np.log(shape), np.diag(shape))]
    return problem(log_density, maxima, gammaln(shape).sum())


def two_modes():
    near = multivariate_normal([-3, 0], 0.25 * np.eye(2))
    far = multivariate_normal([3, 1], np.eye(2))

    def log_density(theta):
        return float(
            np.logaddexp(np.log(0.3) + near.logpdf(theta), np.log(0.7) + far.logpdf(theta))
        )

    maxima = [peak(log_density, [-3, 0], 4 * np.eye(2)), peak(log_density, [3, 1], np.eye(2))]
    return problem(log_density, maxima, 0.0)


def half_line():
    """An exponential upwards from 2, and nothing else."""

    def log_density(theta):
        return float(-3 * (theta[0] - 2))

    return problem(log_density, [peak(log_density, [2], [[0]], [3])], -np.log(3), lower=[2])


def held_above():
    """The part of a Gaussian below minus one sigma, 0.01, and a Gaussian that depends on it."""

    def log_density(theta):
        return float(norm.logpdf(theta[1], scale=0.01) + norm.logpdf(theta[0] - 20 * theta[1]))

    hessian = [[1, -20], [-20, 400 + 1e4]]
    maxima = [peak(log_density, [-0.2, -0.01], hessian, [0, 100])]
    return problem(log_density, maxima, norm.logcdf(-1), upper=[np.inf, -0.01])


def held_where_it_curves_up():
    """exp(-2 t + t^2 / 2) for t from 0 to 1: the curvature of minus the logarithm is -1."""

    def log_density(theta):
        return float(-2 * theta[0] + theta[0] ** 2 / 2)

    mass = quad(lambda t: np.exp(-2 * t + t**2 / 2), 0, 1)[0]
    maxima = [peak(log_density, [0], [[-1]], [2])]
    return problem(log_density, maxima, np.log(mass), lower=[0], upper=[1])


def cut():
    """A free mode, near to bounds that many draws cross."""

    def log_density(theta):
        return float(norm.logpdf(theta).sum())

    mass = (norm.cdf(2) - norm.cdf(-0.5)) * (norm.cdf(0.3) - norm.cdf(-1))
    maxima = [peak(log_density, [0, 0], np.eye(2))]
    return problem(log_density, maxima, np.log(mass), lower=[-0.5, -1], upper=[2, 0.3])


def saddle():
    """Two wells with a saddle between them, which is all that is known."""

    def log_density(theta):
        return float(-2 * (theta[0] ** 2 - 1) ** 2 - theta[1] ** 2 / 2)

    mass = quad(lambda t: np.exp(-2 * (t**2 - 1) ** 2), -4, 4)[0] * np.sqrt(2 * np.pi)
    return problem(log_density, [peak(log_density, [0, 0], np.diag([-8, 1]))], np.log(mass))


def flat():
    """exp(-t^4), without curvature at the top: its mass is 2 Gamma(5 / 4)."""

    def log_density(theta):
        return float(-(theta[0] ** 4))

    return problem(log_density, [peak(log_density, [0], [[0]])], np.log(2) + gammaln(1.25))


PROBLEMS = {
    "gaussian of 1": gaussian(1),
    "gaussian of 12": gaussian(12),
    "too narrow hessian": gaussian(4, told=9.0),
    "too wide hessian": gaussian(4, told=1 / 9),
    "log gamma": log_gamma(1.0, 2.0, 4.0),
    "two modes": two_modes(),
    "half line": half_line(),
    "held above": held_above(),
    "held where it curves up": held_where_it_curves_up(),
    "cut": cut(),
    "saddle": saddle(),
    "flat": flat(),
}
every_problem = pytest.mark.parametrize("problem", PROBLEMS.values(), ids=PROBLEMS)


@every_problem
def test_the_evidence_is_that_of_a_known_integral_within_the_error_that_is_claimed(problem):
    errors = problem.errors()
    assert np.abs(errors).max() < 4.0
    # the root mean square of 20 normal numbers has a deviation of 0.16; stopping early, where the
    # error looks small, adds to it, and stratified shares take away from it
    assert 0.5 < np.sqrt(np.mean(errors**2)) < 1.6


@pytest.mark.parametrize("name", ["gaussian of 12", "log gamma", "half line", "two modes", "cut"])
def test_the_fitted_proposals_leave_no_bias(name):
    # no early stop: then the mean of the evidences is exact, whatever the proposals are fitted to
    estimates = [
        PROBLEMS[name].estimate(seed, standard_error=0.0, max_draws=800) for seed in range(40)
    ]
    ratios = np.exp([e.log_evidence - PROBLEMS[name].log_mass for e in estimates])
    # four standard errors of a mean of 40
    assert abs(ratios.mean() - 1) < 4 * ratios.std() / np.sqrt(40)
    assert ratios.std() == pytest.approx(
        np.sqrt(np.mean([e.standard_error**2 for e in estimates])), rel=0.45
    )  # four deviations of the deviation of 40 numbers


@every_problem
def test_it_stops_as_soon_as_it_knows_enough_and_never_after_the_most(problem):
    for seed in range(5):
        estimate, points = problem.counted(seed)
        assert np.all((problem.lower <= points) & (points <= problem.upper))
        enough = (
            estimate.standard_error < STANDARD_ERROR
            and estimate.pareto_k < importance._SOUND_PARETO_K
        )
        if np.isinf(problem.lower).all() and np.isinf(problem.upper).all():
            # each batch doubles the number of draws
            assert len(points) in {
                FIRST_DRAWS,
                2 * FIRST_DRAWS,
                4 * FIRST_DRAWS,
                8 * FIRST_DRAWS,
                MAX_DRAWS,
            }
            assert enough or len(points) == MAX_DRAWS
        assert len(points) <= MAX_DRAWS


def test_a_gaussian_needs_one_batch():
    _, points = PROBLEMS["gaussian of 1"].counted()
    assert len(points) == FIRST_DRAWS


def test_a_small_error_with_a_heavy_tail_of_weights_is_not_enough(monkeypatch):
    monkeypatch.setattr(importance, "_SOUND_PARETO_K", -np.inf)
    estimate, points = PROBLEMS["gaussian of 1"].counted()
    assert estimate.standard_error < STANDARD_ERROR
    assert len(points) == MAX_DRAWS


@pytest.mark.parametrize("max_draws", [100, 199, 200, 201, 219, 220, 401, 799, 801])
def test_every_number_of_draws_has_an_error(max_draws):
    settings = {"standard_error": 0.0, "max_draws": max_draws}
    estimate, points = PROBLEMS["gaussian of 1"].counted(**settings)
    assert len(points) == max_draws
    assert np.isfinite([estimate.standard_error, estimate.log_evidence]).all()


def test_a_small_tail_with_a_large_error_is_not_enough():
    estimate, points = PROBLEMS["gaussian of 1"].counted(standard_error=0.0)
    assert estimate.pareto_k < importance._SOUND_PARETO_K
    assert len(points) == MAX_DRAWS


@pytest.mark.parametrize("told", [1 / 9, 9.0])
def test_a_wrong_hessian_is_made_up_for_by_fitting(told, monkeypatch):
    def variance_of_a_draw():
        found = [gaussian(4, told=told).counted(seed) for seed in range(5)]
        return np.mean([len(points) * e.standard_error**2 for e, points in found])

    fitted = variance_of_a_draw()
    monkeypatch.setattr(Mixture, "refit", lambda mixture, theta, weights: mixture)
    # widths wrong by three in four directions: a third of the variance and less
    assert fitted < variance_of_a_draw() / 2


def test_a_tail_that_is_heavier_than_the_proposal_shows_in_pareto_k():
    def log_density(theta):
        return float(-np.log1p(theta[0] ** 2))

    cauchy = problem(log_density, [peak(log_density, [0], [[1e4]])], np.log(np.pi))
    found = [cauchy.counted(seed) for seed in range(10)]
    assert all(len(points) == MAX_DRAWS for _, points in found)
    assert np.median([e.pareto_k for e, _ in found]) > 0.7


def test_the_same_generator_gives_the_same_and_another_seed_another_estimate():
    hard = log_gamma(0.5, 1.0, 2.0)
    assert hard.estimate(1).log_evidence == hard.estimate(1).log_evidence
    assert hard.estimate(1).log_evidence != hard.estimate(2).log_evidence


def test_a_density_that_is_nowhere_positive_is_refused():
    nowhere = maximum_of(np.zeros(2), 0.0, np.eye(2))
    with pytest.raises(NotAMaximumError, match="got -inf as the largest log weight"):
        problem(lambda theta: -np.inf, [nowhere], 0.0).estimate()


def test_draws_that_all_miss_the_box_are_refused():
    tiny = problem(lambda theta: 0.0, [maximum_of(np.zeros(1), 0.0, np.eye(1))], 0.0)
    with pytest.raises(NotAMaximumError, match="got -inf as the largest log weight"):
        Problem(tiny.log_density, tiny.maxima, 0.0, np.array([7e3]), np.array([8e3])).estimate()


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_density_that_is_not_a_number_is_refused(value):
    def log_density(theta):
        return value if theta[0] > 1 else -0.5 * theta[0] ** 2

    here = maximum_of(np.zeros(1), 0.0, np.eye(1))
    with pytest.raises(NotAMaximumError, match=f"got {value} as the largest log weight"):
        problem(log_density, [here], 0.0).estimate()


def test_holes_in_the_density_have_no_mass():
    def log_density(theta):
        return -np.inf if abs(theta[0]) > 1 else float(norm.logpdf(theta[0]))

    holed = problem(log_density, [peak(log_density, [0], [[1]])], np.log(2 * norm.cdf(1) - 1))
    assert np.abs(holed.errors()).max() < 4.0


@pytest.mark.parametrize("shape", [0.2, 0.6, 1.0])
def test_pareto_shape_is_that_of_the_tail(shape):
    weights = genpareto(shape).rvs(size=40_000, random_state=0)
    # a tail of 600: the deviation of k is (1 + k) / sqrt(600), and the prior takes 2 percent
    assert pareto_shape(weights) == pytest.approx(shape, abs=3 * (1 + shape) / np.sqrt(600))
    assert pareto_shape(1e-200 * weights) == pytest.approx(pareto_shape(weights), rel=1e-9)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_pareto_shape_is_near_to_the_most_likely_one_and_leans_towards_a_half(seed):
    weights = 1 + genpareto(1.0).rvs(size=1000, random_state=seed)
    tail = np.sort(weights)[-95:]  # 3 sqrt(1000), and the one that they exceed
    most_likely = genpareto.fit(tail[1:] - tail[0], floc=0)[0]
    # a mean over the likelihood is next to its maximum, by a small part of its width of 0.2;
    # without the ten draws at a half it would be 0.05 higher
    expected = (94 * most_likely + 10 * 0.5) / 104
    assert pareto_shape(weights) == pytest.approx(expected, abs=0.02)


def test_pareto_shape_of_bounded_weights_is_negative():
    assert pareto_shape(np.random.default_rng(0).uniform(size=2000)) < -0.5


def test_pareto_shape_of_equal_weights_says_that_there_is_no_tail():
    assert pareto_shape(np.full(200, 0.3)) == -np.inf


def test_pareto_shape_of_a_few_weights_that_stand_out_says_that_it_cannot_tell():
    weights = np.zeros(200)
    weights[:4] = [1, 2, 3, 4]
    assert pareto_shape(weights) == np.inf


@pytest.fixture
def line():
    x = np.sort(np.random.default_rng(3).uniform(size=20))
    return x[:, None], 1.5 * x - 1


def of_kernel(text, X, y):
    """Its fit, its posterior and the problem, with the Hessian and the slopes of the fit."""
    posterior = LogPosterior(
        ExactLikelihood(parse_expression(text), TrainingData(X, y)), priors=check_priors("paper")
    )
    fit = evaluate_kernel(text, X, y, priors="paper")
    at_lower = fit.theta <= posterior.lower
    slopes = -posterior.value_and_gradient(fit.theta)[1]
    top = maximum_of(fit.theta, fit.log_posterior, fit.hessian, np.where(at_lower, slopes, 0.0))
    return posterior, Problem(posterior.value, [top], np.nan, posterior.lower, posterior.upper)


def log_sum_over_grid(posterior, axes, log_weights):
    """Log of the sum over a grid of three axes."""
    values = [
        [[posterior.value(np.array([a, b, c])) for c in axes[2]] for b in axes[1]] for a in axes[0]
    ]
    return logsumexp(np.array(values) + log_weights)


def test_the_evidence_of_a_kernel_agrees_with_a_sum_over_a_grid(line):
    X, y = line
    posterior, kernel = of_kernel("LIN[0]", X, y + 0.1 * np.random.default_rng(0).normal(size=20))
    # smooth and vanishing at the ends, where the trapezoidal rule is exact to many digits: half as
    # many points change the sum by 1e-4
    axes = [np.linspace(-8, 3, 34), np.linspace(-8, 3, 34), np.linspace(-6.5, -2, 28)]
    cell = sum(np.log(axis[1] - axis[0]) for axis in axes)
    exact = log_sum_over_grid(posterior, axes, cell)
    estimate = kernel.estimate()
    assert estimate.standard_error < 0.05
    assert estimate.log_evidence == pytest.approx(exact, abs=4 * estimate.standard_error)


def test_the_evidence_with_the_noise_held_by_its_floor_agrees_with_a_sum_over_a_grid(line):
    posterior, kernel = of_kernel("LIN[0]", *line)
    (top,) = kernel.maxima
    assert top.outward[2] > 1  # or nothing is held
    nodes, weights = laggauss(12)  # int exp(-t) f(t) dt
    noise = top.mode.theta[2] + nodes / top.outward[2]
    axes = [np.linspace(-8, 3, 34), np.linspace(-8, 3, 34), noise]
    cell = sum(np.log(axis[1] - axis[0]) for axis in axes[:2])
    exact = log_sum_over_grid(
        posterior, axes, cell + np.log(weights) + nodes - np.log(top.outward[2])
    )
    estimate = kernel.estimate()
    assert estimate.standard_error < 0.05
    assert estimate.log_evidence == pytest.approx(exact, abs=4 * estimate.standard_error)
