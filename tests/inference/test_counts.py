"""Distributions of counts, and Laplace's approximation of their likelihood."""

from itertools import pairwise

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import minimize
from scipy.stats import multivariate_normal, norm

from autokernel.data import Columns, RowNoise, Target
from autokernel.data.counts import FAMILIES, Rates
from autokernel.data.scales import CountScale
from autokernel.expression import parse_expression
from autokernel.inference import ExactLikelihood, ExactPredictor, TrainingData
from autokernel.inference.packed import unpack

Y, F, E = np.array([0.0, 1, 3, 10]), np.array([-1.0, 0.2, 0.5, 1.5]), np.array([12.0, 12, 15, 20])
THETA = np.log([0.4, 0.8, 0.3])  # lengthscale, variance, noise variance
STEP = 1e-5


def counts(family, *, n=20, seed=0, weights=None):
    """Rows of an input and an exposure, with counts of a wave."""
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.uniform(size=n), rng.integers(4, 20, n)])
    rates = Rates(X[:, 1], 0.4)
    f = np.sin(6 * X[:, 0]) - 1
    law = FAMILIES[family].law(X[:, 1] * FAMILIES[family].rate(f), rates)
    return training(X, law.rvs(random_state=np.random.RandomState(seed)), family, weights)


def training(X, y, family, weights=None, rounding=0.0):
    noise = RowNoise(np.ones(len(y)) if weights is None else weights, 0.0, rounding)
    target = Target.of(y * 1.0, noise, X, families=(family,), exposure=1)
    inputs = Columns.of_names(None, 2).of_rows(X).inputs(X, first_row=0)
    return TrainingData(inputs, target.forward(y), noise.multiplied(target.width**-2), target)


def kernel(family, text="SE[0]"):
    return parse_expression(f"{family}(y) ~ {text}")


@pytest.mark.parametrize("name", FAMILIES)
def test_densities_and_their_slopes_are_those_of_the_distribution(name):
    family, rates = FAMILIES[name], Rates(E, 0.3)
    law = family.law(E * family.rate(F), rates)
    np.testing.assert_allclose(family.log_density(Y, F, rates), law.logpmf(Y), rtol=1e-11)
    np.testing.assert_allclose(family.below(Y, E * family.rate(F), rates), law.cdf(Y), rtol=1e-11)
    every = [lambda f: family.log_density(Y, f, rates)]
    every += [lambda f, n=n: family.slopes(Y, f, rates)[n] for n in range(3)]
    for function, slope in pairwise(every):
        # the error of central differences is a sixth of the third derivative times STEP squared,
        # and the rounding of values of about ten divided by STEP
        measured = (function(F + STEP) - function(F - STEP)) / (2 * STEP)
        np.testing.assert_allclose(slope(F), measured, atol=2e-9 * 20)


@pytest.mark.parametrize("name", FAMILIES)
def test_gradients_include_how_the_mode_moves(name):
    weights = np.where(np.arange(20) % 3 == 0, 2.5, 1.0)
    for text in ("SE[0]", "LIN[0] + SE[0]", "NOISE"):
        likelihood = ExactLikelihood(kernel(name, text), counts(name, weights=weights))
        theta = np.resize(THETA, len(likelihood.parameters))
        value = lambda t: likelihood.value_and_gradient(t)[0]  # noqa: B023, E731
        axes = STEP * np.eye(len(theta))
        measured = [(value(theta + a) - value(theta - a)) / (2 * STEP) for a in axes]
        np.testing.assert_allclose(likelihood.value_and_gradient(theta)[1], measured, atol=1e-5)


@pytest.mark.parametrize("name", FAMILIES)
def test_the_likelihood_is_laplace_s_at_the_mode(name):
    data = counts(name)
    likelihood = ExactLikelihood(kernel(name), data)
    value, n = likelihood.value_and_gradient(THETA)[0], len(data.u)
    K = unpack(likelihood._prior(THETA), n)
    local = data.on(name).local(THETA[-1])
    L = np.linalg.cholesky(K + 1e-9 * np.eye(n))  # f = L w, where w is standard normal

    def loss(w):
        return 0.5 * w @ w - local(L @ w).value.sum()

    w = minimize(loss, np.zeros(n), method="BFGS", options={"gtol": 1e-7}).x
    curvature = local(L @ w).curvature
    size = np.linalg.slogdet(np.eye(n) + L.T @ (curvature[:, None] * L))[1]
    # a density of the standardised target
    expected = -loss(w) - 0.5 * size + n * np.log(data.target.width)
    assert value == pytest.approx(expected, abs=1e-4)  # the jitter adds its share of each row


def test_laplace_s_method_is_close_to_the_integral():
    data = training(np.array([[0.0, 1.0], [1.0, 1.0], [2.0, 1.0]]), np.array([2, 5, 7]), "poisson")
    few = data.take(np.array([1]))
    likelihood = ExactLikelihood(kernel("poisson"), few)
    scale, variance = few.on("poisson").scale, np.exp(THETA[1])

    def integrand(t):
        y = few.on("poisson").counts
        log_p = FAMILIES["poisson"].log_density(y, scale.function(np.array([t])), Rates())
        return np.exp(log_p[0]) * norm.pdf(t, 0, np.sqrt(variance))

    exact = np.log(quad(integrand, -9, 9)[0] * data.target.width)
    assert likelihood.value_and_gradient(THETA)[0] == pytest.approx(exact, abs=0.02)
    # a predictor of the same prior gives one row the same density
    predictor = ExactPredictor(kernel("poisson"), THETA, data)
    mean, variance = predictor.mean_and_variance(few.X)
    joint = predictor.log_density(few, predictor.mean_and_covariance(few.X))
    of_row = scale.of_rows(1.0, THETA[-1]).log_density(few.u, mean, variance)
    assert joint == pytest.approx(of_row[0], abs=0.02)


def test_a_row_of_weight_three_is_three_rows():
    data = counts("negative_binomial", n=12)
    often = np.concatenate([np.arange(12), [3, 3, 7]])
    weights = np.bincount(often).astype(float)
    repeated = data.take(often)
    joined = data._with_rows(data.inputs, data.u, RowNoise(weights))
    both = [ExactLikelihood(kernel("negative_binomial"), one) for one in (repeated, joined)]
    found = [one.value_and_gradient(THETA) for one in both]
    assert found[0][0] == pytest.approx(found[1][0], abs=1e-7)
    np.testing.assert_allclose(found[0][1], found[1][1], atol=1e-6)


def test_without_dispersion_a_negative_binomial_is_a_poisson():
    X = counts("poisson").inputs.values * [1, 0] + [0, 1]
    y = np.arange(20) % 5
    values = [
        ExactLikelihood(kernel(name), training(X, y, name)).value(np.array([-1.0, 0.0, -30.0]))
        for name in ("poisson", "negative_binomial")
    ]
    assert values[0] == pytest.approx(values[1], abs=1e-3)  # of a dispersion of a millionth


@pytest.mark.parametrize("name", FAMILIES)
def test_probabilities_of_new_counts_sum_to_one_and_have_their_moments(name):
    scale = CountScale(name, 0.2, 1.7, -0.5, 0.8).of_rows(12.0, np.log(0.4))
    k = np.arange(13.0 if FAMILIES[name].is_share else 1500.0)
    u, at = k / 1.7 - 0.2, np.zeros(len(k))
    p = np.exp(scale.log_density(u, at + 0.3, at + 0.5)) / 1.7
    assert p.sum() == pytest.approx(1, abs=1e-9)
    np.testing.assert_allclose(p.cumsum(), scale.below(u, at + 0.3, at + 0.5), atol=1e-9)
    mean, variance = (one[0] for one in scale.moments(np.array([0.3]), np.array([0.5])))
    assert p @ u == pytest.approx(mean, rel=1e-6)
    assert p @ (u - mean) ** 2 == pytest.approx(variance, rel=1e-5)
    drawn = scale.drawn(0.3 + np.sqrt(0.5) * np.random.default_rng(0).normal(size=(1, 40_000)),
                        np.random.RandomState(0))  # fmt: skip
    assert drawn.mean() == pytest.approx(mean, abs=4 * np.sqrt(variance / 40_000))


def test_a_rounded_normal_has_the_probability_of_its_interval():
    rng = np.random.default_rng(5)
    X = np.column_stack([np.sort(rng.uniform(size=12)), np.ones(12)])
    for deviation in (0.4, 1.0):
        y = np.rint(2 + 2 * np.sin(5 * X[:, 0]) + deviation * rng.normal(size=12)).clip(0)
        data = training(X, y, "poisson", rounding=1 / 12)
        likelihood = ExactLikelihood(parse_expression("SE[0]"), data)
        theta = np.log([0.3, 1.0, (deviation / data.target.width) ** 2])
        K = unpack(likelihood.matrix(theta), 12) - np.diag(data.noise.known)
        half = 0.5 / data.target.width
        ends = {"x": data.u + half, "lower_limit": data.u - half}
        exact = multivariate_normal.cdf(mean=np.zeros(12), cov=K, maxpts=400_000, **ends)
        exact = np.log(exact) + 12 * np.log(data.target.width)
        rough = likelihood.value(theta)
        found = rough + likelihood.of_rounding(theta)
        assert found == pytest.approx(exact, abs=0.01)
        assert abs(found - exact) < abs(rough - exact)


def test_equal_rows_have_the_probability_of_all_their_readings():
    X = np.repeat([[0.1, 1.0], [0.6, 1.0], [0.9, 1.0]], 4, axis=0)
    y = np.array([1, 1, 2, 2, 3, 3, 3, 3, 0, 0, 1, 1])
    table, first, times = np.unique(
        np.column_stack([X, y]), axis=0, return_index=True, return_counts=True
    )
    merged = training(table[:, :2], table[:, 2], "poisson", times * 1.0, rounding=1 / 12)
    apart = training(X + [1e-9, 0] * np.arange(12)[:, None], y, "poisson", rounding=1 / 12)
    for text in ("SE[0]", "poisson(y) ~ SE[0]"):
        likelihoods = [ExactLikelihood(parse_expression(text), one) for one in (merged, apart)]
        values = [one.value_and_gradient(THETA)[0] for one in likelihoods]
        if text == "SE[0]":
            values = [one.value(THETA) + one.of_rounding(THETA) for one in likelihoods]
        # the rounding of a mean of two readings is not that of each
        assert values[0] == pytest.approx(values[1], abs=0.02 if text == "SE[0]" else 1e-5)
    assert len(first) < 12


def test_probabilities_of_many_trials_are_those_of_the_distribution():
    family, e = FAMILIES["beta_binomial"], np.array([400.0, 1000, 5000])
    for p, a in ((0.3, 0.05), (0.9, 0.01), (0.5, 2.0)):
        law = family.law(p * e, Rates(e, a))
        for share in (0.2, 0.5, 0.9):
            k = np.floor(share * e)
            # a beta distribution of the same moments, of which a step is a tail of 1 / e
            np.testing.assert_allclose(family.below(k, p * e, Rates(e, a)), law.cdf(k), atol=6e-3)


@pytest.mark.parametrize("name", FAMILIES)
def test_large_counts_have_the_quantiles_of_their_draws(name):
    scale = CountScale(name, shift=0.3, width=0.5).of_rows(5e6, np.log(0.02))
    t = 0.8 * np.random.default_rng(2).normal(size=(1, 4000))
    drawn = np.sort(scale.drawn(t, np.random.RandomState(2))[0])
    at = drawn[[400, 2000, 3600]]
    found = [scale.below(one[None], np.zeros(1), np.full(1, 0.64))[0] for one in at]
    # four standard errors of shares of 4000 draws
    np.testing.assert_allclose(found, [0.1, 0.5, 0.9], atol=4 * np.sqrt(0.25 / 4000))
