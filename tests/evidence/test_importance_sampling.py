"""Importance sampling: known integrals, its proposals, and its Pareto-smoothed weights."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import gammaln
from scipy.stats import genpareto, multivariate_normal, norm

from autokernel.evidence.importance import (
    FIRST_DRAWS,
    MAX_DRAWS,
    STANDARD_ERROR,
    fit_tail,
    importance_sample,
    pareto_smoothed,
)
from autokernel.evidence.maximise import Maximum
from autokernel.exceptions import NotAMaximumError
from autokernel.typing import FloatArray
from tests.maxima import maximum_of

N_SEEDS = 8
SOUND_PARETO_K = 0.5  # below it, weights have a finite variance


def uniforms(seed):
    return np.random.default_rng(seed).random


@dataclass(frozen=True, eq=False)
class Problem:
    """A log density with its modes, and the log of its integral over the box."""

    value: Callable[[FloatArray], float]
    maxima: list[Maximum]
    log_mass: float
    lower: FloatArray
    upper: FloatArray

    def estimate(self, seed=0, **limits):
        return importance_sample(self, self.maxima, uniforms=uniforms(seed), **limits)

    def counted(self, seed=0, **limits):
        """Return the estimate and the points at which it has asked for the density."""
        points = []

        def log_density(theta):
            points.append(theta)
            return self.value(theta)

        return replace(self, value=log_density).estimate(seed, **limits), points


def problem(log_density, modes, log_mass, *, lower=None, upper=None):
    """Build a problem from its modes: theta, Hessian and slopes beyond the bounds, if any."""

    def value(theta):
        return float(log_density(theta))

    maxima = [
        maximum_of(theta, value(np.array(theta, dtype=float)), *others) for theta, *others in modes
    ]
    anywhere = np.full(len(maxima[0].mode.theta), np.inf)
    lower = -anywhere if lower is None else np.array(lower, dtype=float)
    upper = anywhere if upper is None else np.array(upper, dtype=float)
    return Problem(value, maxima, log_mass, lower, upper)


def gaussian(n_params, *, factor_of_hessian=1.0):
    """A correlated Gaussian, with a multiple of its Hessian."""
    factor = np.random.default_rng(n_params).normal(size=(n_params, n_params))
    covariance = factor @ factor.T / n_params + 0.05 * np.eye(n_params)
    hessian = np.linalg.inv(covariance)
    return problem(
        lambda t: 4 - 0.5 * (t - 1) @ hessian @ (t - 1),
        [(np.ones(n_params), factor_of_hessian * hessian)],
        4 + n_params / 2 * np.log(2 * np.pi) + np.linalg.slogdet(covariance)[1] / 2,
    )


SHAPES = np.array([1.0, 2.0, 4.0])
NEAR = multivariate_normal([-3, 0], 0.25 * np.eye(2))
FAR = multivariate_normal([3, 1], np.eye(2))
PROBLEMS = {
    "gaussian of 1": gaussian(1),
    "gaussian of 12": gaussian(12),
    "too narrow hessian": gaussian(4, factor_of_hessian=9.0),
    "too wide hessian": gaussian(4, factor_of_hessian=1 / 9),
    # logs of Gamma variables, as the priors are: int exp(a t - exp t) dt = Gamma(a)
    "log gamma": problem(
        lambda t: SHAPES @ t - np.exp(t).sum(),
        [(np.log(SHAPES), np.diag(SHAPES))],
        gammaln(SHAPES).sum(),
    ),
    "two modes": problem(
        lambda t: np.logaddexp(np.log(0.3) + NEAR.logpdf(t), np.log(0.7) + FAR.logpdf(t)),
        [([-3, 0], 4 * np.eye(2)), ([3, 1], np.eye(2))],
        0.0,
    ),
    # an exponential upwards from 2, and nothing else
    "half line": problem(lambda t: -3 * (t[0] - 2), [([2], [[0]], [3])], -np.log(3), lower=[2]),
    # the part of a Gaussian below minus one sigma, 0.01, and a Gaussian that depends on it
    "held above": problem(
        lambda t: norm.logpdf(t[1], scale=0.01) + norm.logpdf(t[0] - 20 * t[1]),
        [([-0.2, -0.01], [[1, -20], [-20, 400 + 1e4]], [0, 100])],
        norm.logcdf(-1),
        upper=[np.inf, -0.01],
    ),
    "held where it curves up": problem(
        lambda t: -2 * t[0] + t[0] ** 2 / 2,
        [([0], [[-1]], [2])],
        np.log(quad(lambda t: np.exp(-2 * t + t**2 / 2), 0, 1)[0]),
        lower=[0],
        upper=[1],
    ),
    # a free mode, near to bounds that many draws cross
    "cut": problem(
        lambda t: norm.logpdf(t).sum(),
        [([0, 0], np.eye(2))],
        np.log((norm.cdf(2) - norm.cdf(-0.5)) * (norm.cdf(0.3) - norm.cdf(-1))),
        lower=[-0.5, -1],
        upper=[2, 0.3],
    ),
    # two wells with a saddle between them, which is all that is known
    "saddle": problem(
        lambda t: -2 * (t[0] ** 2 - 1) ** 2 - t[1] ** 2 / 2,
        [([0, 0], np.diag([-8, 1]))],
        np.log(quad(lambda t: np.exp(-2 * (t**2 - 1) ** 2), -4, 4)[0] * np.sqrt(2 * np.pi)),
    ),
    # without curvature at the top: its mass is 2 Gamma(5 / 4)
    "flat": problem(lambda t: -(t[0] ** 4), [([0], [[0]])], np.log(2) + gammaln(1.25)),
    # the same from zero on, with a slope and a curvature that say nothing of its width
    "flat at a bound": problem(
        lambda t: -(t[0] ** 4), [([0], [[-2]], [1e-12])], gammaln(1.25), lower=[0]
    ),
    # a Gaussian that is cut off where no bounds are
    "holes": problem(
        lambda t: -np.inf if abs(t[0]) > 1 else norm.logpdf(t[0]),
        [([0], [[1]])],
        np.log(2 * norm.cdf(1) - 1),
    ),
}
every_problem = pytest.mark.parametrize("problem", PROBLEMS.values(), ids=PROBLEMS)


@every_problem
def test_the_evidence_is_that_of_a_known_integral_within_the_error_that_is_claimed(problem):
    estimate, points = problem.counted()
    estimates = [estimate, *map(problem.estimate, range(1, N_SEEDS))]
    errors = [(e.log_evidence - problem.log_mass) / e.standard_error for e in estimates]
    assert np.abs(errors).max() < 4.0
    # the root mean square of 8 normal numbers has a deviation of 0.25; stopping early, where the
    # error looks small, adds to it, and stratified shares take away from it
    assert 0.4 < np.sqrt(np.mean(np.square(errors))) < 1.7
    # it stops as soon as it knows enough, and never after the most
    assert np.all((problem.lower <= points) & (points <= problem.upper))
    assert len(points) <= MAX_DRAWS
    if np.isinf(problem.lower).all() and np.isinf(problem.upper).all():
        # each batch doubles the number of draws
        assert len(points) in {*(FIRST_DRAWS * 2**n for n in range(4)), MAX_DRAWS}
        is_small = estimate.standard_error < STANDARD_ERROR
        assert (is_small and estimate.pareto_k < SOUND_PARETO_K) or len(points) == MAX_DRAWS


def test_the_fitted_proposals_leave_no_bias():
    cut = PROBLEMS["cut"]
    # no early stop: then the mean of the evidences is exact, whatever the proposals are fitted to
    estimates = [cut.estimate(seed, standard_error=0.0, max_draws=400) for seed in range(40)]
    ratios = np.exp([e.log_evidence - cut.log_mass for e in estimates])
    # four standard errors of a mean of 40
    assert abs(ratios.mean() - 1) < 4 * ratios.std() / np.sqrt(40)
    assert ratios.std() == pytest.approx(
        np.sqrt(np.mean([e.standard_error**2 for e in estimates])), rel=0.45
    )  # four deviations of the deviation of 40 numbers


@pytest.mark.parametrize("max_draws", [100, 201, 401])
def test_all_draws_are_made_where_the_error_should_vanish(max_draws):
    limits = {"standard_error": 0.0, "max_draws": max_draws}
    estimate, points = PROBLEMS["gaussian of 1"].counted(**limits)
    assert len(points) == max_draws  # a sound tail does not suffice
    assert np.isfinite([estimate.standard_error, estimate.log_evidence]).all()


def test_a_tail_that_is_heavier_than_the_proposal_shows_in_pareto_k_and_needs_all_draws():
    cauchy = problem(lambda t: -np.log1p(t[0] ** 2), [([0], [[1e4]])], np.log(np.pi))
    # any error would be small enough, but it cannot be trusted
    found = [cauchy.counted(seed, standard_error=1e3) for seed in range(10)]
    assert all(len(points) == MAX_DRAWS for _, points in found)
    assert np.median([e.pareto_k for e, _ in found]) > 0.7


@pytest.mark.parametrize("name", ["too narrow hessian", "too wide hessian"])
def test_a_wrong_hessian_is_made_up_for_by_fitting(name):
    def variance_of_a_draw(**limits):
        found = [PROBLEMS[name].counted(seed, standard_error=0.0, **limits) for seed in range(5)]
        return np.mean([len(points) * e.standard_error**2 for e, points in found])

    # widths wrong by three in four directions: a third of the variance and less
    assert variance_of_a_draw() < variance_of_a_draw(max_draws=FIRST_DRAWS) / 2


def of_constant(log_density, *, lower=-np.inf, upper=np.inf):
    here = maximum_of([0], 0.0, [[1]])
    return Problem(lambda t: log_density, [here], 0.0, np.array([lower]), np.array([upper]))


@pytest.mark.parametrize(
    ("refused", "message"),
    [
        (of_constant(-np.inf), "got -inf as the largest log weight"),
        (of_constant(np.nan), "got nan as the largest log weight"),
        (of_constant(np.inf), "got inf as the largest log weight"),
        (of_constant(0.0, lower=7e3, upper=8e3), "got -inf as the largest log weight"),
        *(
            (replace(PROBLEMS["cut"], maxima=[maximum_of(*numbers)]), "a maximum must be finite")
            for numbers in (
                (np.zeros(2), 0.0, np.full((2, 2), np.nan)),
                (np.zeros(2), -np.inf, np.eye(2)),
                ([np.nan, 0.0], 0.0, np.eye(2)),
            )
        ),
    ],
    ids=["zero", "nan", "inf", "outside", "hessian", "log density", "theta"],
)
def test_a_density_or_a_maximum_that_is_not_finite_is_refused(refused, message):
    with pytest.raises(NotAMaximumError, match=message):
        refused.estimate()


def shape_by_loops(weights):
    """The estimate of Zhang & Stephens (2009), section 3.1, as they write it, and the prior."""
    ordered, size = np.sort(weights), tail_size(len(weights))
    x = ordered[-size:] - ordered[-size - 1]
    n, m = len(x), 30 + int(np.floor(np.sqrt(len(x))))
    quartile = x[int(np.floor(n / 4 + 0.5)) - 1]  # which they count from one
    points = [1 / x[-1] + (1 - np.sqrt(m / (j - 0.5))) / (3 * quartile) for j in range(1, m + 1)]

    def k_at(point):
        return -np.mean(np.log(1 - point * x))

    profile = np.array([n * (np.log(p / k_at(p)) + k_at(p) - 1) for p in points])
    shares = [1 / np.exp(profile - one).sum() for one in profile]
    return (-n * k_at(np.dot(points, shares)) + 10 * 0.5) / (n + 10)


@pytest.mark.parametrize("n", [27, 31, 35, 40, 200, 1000])
def test_pareto_shape_is_that_of_the_published_algorithm(n):
    weights = np.exp(1.5 * np.random.default_rng(n).normal(size=n))
    assert fit_tail(weights)[0] == pytest.approx(shape_by_loops(weights), rel=1e-9)


def test_pareto_shape_without_a_tail_or_with_too_short_a_one_is_infinite():
    assert fit_tail(np.full(200, 0.3))[0] == -np.inf
    assert fit_tail(np.append(np.zeros(196), [1, 2, 3, 4]))[0] == np.inf


def log_weights(spread, *, n=400, seed=0):
    """Logs of log-normal weights."""
    return spread * np.random.default_rng(seed).normal(size=n)


def tail_size(n):
    """Number of weights in the tail (Vehtari et al. 2024, eq. 12)."""
    return int(min(0.2 * n, 3 * np.sqrt(n)))


def test_smoothing_puts_the_quantiles_of_the_fitted_distribution_in_place_of_the_tail():
    logs = log_weights(1.0, n=2000)
    order, n_tail = np.argsort(logs), tail_size(len(logs))
    raw, smoothed = np.exp(logs - logs.max())[order], pareto_smoothed(logs)[order]
    assert smoothed.sum() == pytest.approx(1.0, rel=1e-12)
    smoothed *= raw[0] / smoothed[0]
    np.testing.assert_allclose(smoothed[:-n_tail], raw[:-n_tail], rtol=1e-12)
    excess = smoothed[-n_tail:] - raw[-n_tail - 1]
    levels = (np.arange(n_tail) + 0.5) / n_tail
    shape = fit_tail(np.exp(logs))[0]
    expected = genpareto.ppf(levels, shape)
    scale = excess[0] / expected[0]
    expected *= scale
    # a mean over the likelihood is next to its maximum, by a small part of its width of a tenth
    *_, most_likely = genpareto.fit(raw[-n_tail:] - raw[-n_tail - 1], f0=shape, floc=0)
    assert scale == pytest.approx(most_likely, rel=0.05)
    below = smoothed[-n_tail:] < raw[-1] * (1 - 1e-9)  # the others are cut at the largest weight
    assert below.sum() > 0.9 * n_tail
    np.testing.assert_allclose(excess[below], expected[below], rtol=1e-9)


@pytest.mark.parametrize("n", [1, 2, 10, 20])  # four in the tail of twenty
def test_too_few_weights_for_a_tail_and_equal_ones_are_only_normalised(n):
    logs = log_weights(3.0, n=n)
    expected = np.exp(logs) / np.exp(logs).sum()
    np.testing.assert_allclose(pareto_smoothed(logs), expected, rtol=1e-12)
    np.testing.assert_allclose(pareto_smoothed(np.full(10 * n, -700.0)), 0.1 / n, rtol=1e-12)
