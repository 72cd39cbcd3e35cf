"""The posterior over kernels, the draws that stand for it, and stacking."""

import warnings
from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import logsumexp, ndtri, softmax
from scipy.stats import energy_distance, loggamma, norm

from autokernel import PosteriorAveraging, Stacking, parse_expression
from autokernel.deadline import Deadline
from autokernel.evidence import CRITERIA, Evaluator
from autokernel.evidence.importance import ImportanceSample
from autokernel.evidence.posterior import LogPosterior
from autokernel.exceptions import EvaluationError, OutOfTimeError
from autokernel.expression import NOISE, Leaf, grammar_prior
from autokernel.inference import ExactLikelihood, TrainingData
from autokernel.kernels.parameters import check_priors
from autokernel.model import KernelPosterior, posterior_over_kernels
from autokernel.model.averaging import (
    loo_log_densities,
    stacking_weights,
    support_points,
    systematic,
)
from tests.batteries import seeds
from tests.fits import evaluation_of, wave
from tests.model.cases import Constant

PRIORS = check_priors("default")
PRIOR = partial(grammar_prior, n_kernels=4, n_operators=2, n_columns=1)
LEAVES = ("SE", "LIN", "PER", "RQ", "MAT32", "MAT52")


def text_of(number):
    """A kernel of its own for each number."""
    name = LEAVES[number % len(LEAVES)]
    return " + ".join([f"{name}[0]"] * (1 + number // len(LEAVES)))


def evaluation(number, score, *, log_evidence=None):
    """An evaluation of the kernel of a number, whose theta is this number."""
    expression = parse_expression(text_of(number))
    n_params = sum(len(leaf.parameters) for leaf in expression.leaves) + 1
    made = evaluation_of(expression, np.full(n_params, float(number)), score=score)
    return made if log_evidence is None else replace(made, log_evidence=log_evidence)


def scored(*scores):
    return [evaluation(number, score) for number, score in enumerate(scores)]


class Sampler:
    """An evaluator whose draws are numbered, and correct the evidence of each kernel as given."""

    score_is_laplace = True

    def __init__(self, *, corrections=None, weights=(0.25,) * 4, n_in_time=np.inf):
        self.corrections, self.weights = corrections or {}, np.array(weights)
        self.n_in_time = n_in_time
        self.shapes, self.sampled = {}, []  # Pareto's k, and numbers with the most draws

    def sample(self, evaluation, *, max_draws, deadline):
        number = int(evaluation.theta[0])
        if number >= self.n_in_time:
            raise OutOfTimeError("over")
        self.sampled.append((number, max_draws))
        correction = self.corrections.get(number, 0.0) * (2 if max_draws > 400 else 1)
        theta = np.repeat(np.arange(4.0)[:, None], evaluation.n_params, axis=1)
        log_evidence, k = evaluation.log_evidence + correction, self.shapes.get(number, 0.3)
        return ImportanceSample(theta, self.weights, log_evidence, 0.01, k)


def numbers(kernels):
    return [int(kernel.evaluation.theta[0]) for kernel in kernels]


def probabilities(kernels):
    return np.array([kernel.probability for kernel in kernels])


def evaluator(n_samples=15, *, criterion="laplace", **options):
    X, y = wave(n_samples)
    y = (y - y.mean()) / y.std()
    return Evaluator(TrainingData(X, y), priors=PRIORS, seed=0, criterion=criterion, **options)


@given(scores=st.lists(st.floats(-20, 0), min_size=1, max_size=30))
def test_probabilities_of_the_best_kernels_sum_to_one_and_follow_the_scores(scores):
    scores = np.sort(scores)[::-1]
    sampler = Sampler()
    kernels = posterior_over_kernels(sampler, iter(scored(*scores)))
    found = probabilities(kernels)
    assert found.sum() == pytest.approx(1.0, rel=1e-12)
    assert numbers(kernels) == list(range(len(kernels)))
    # no more than twelve are drawn from, and none that is five nats below the best
    assert len(sampler.sampled) == min(12, 1 + np.sum(scores[1:] > scores[0] - 5))
    expected = softmax(scores[: len(sampler.sampled)])
    kept = expected > 1e-3
    np.testing.assert_allclose(found, expected[kept] / expected[kept].sum(), rtol=1e-9)
    assert [kernel.log_score for kernel in kernels] == list(scores[: len(found)])


def test_draws_correct_the_scores_by_the_error_of_laplaces_approximation():
    corrections = {0: -1.0, 1: 2.0, 2: 0.5, 3: -6.0}
    scores = scored(0.0, -1.0, -3.0, -4.0)
    kernels = posterior_over_kernels(Sampler(corrections=corrections), scores)
    assert numbers(kernels) == [1, 0, 2]  # the most probable one first, and none of 1e-5
    assert [kernel.log_score for kernel in kernels] == pytest.approx([1.0, -1.0, -2.5], abs=1e-12)
    np.testing.assert_allclose(probabilities(kernels), softmax([1.0, -1.0, -2.5]), rtol=1e-12)
    # the prior of the structure, which is in the score but not in the evidence, stays in it
    with_prior = [evaluation(0, 0.0, log_evidence=7.0), evaluation(1, -0.5, log_evidence=-3.0)]
    kernels = posterior_over_kernels(Sampler(corrections={1: 0.25}), with_prior)
    assert [kernel.log_score for kernel in kernels] == pytest.approx([0.0, -0.25], abs=1e-12)


def test_a_probable_kernel_whose_weights_are_not_reliable_is_drawn_from_again():
    sampler = Sampler(corrections={1: 0.5, 2: 0.5})
    sampler.shapes = {1: 0.71, 2: 0.7, 3: 0.9}
    kernels = posterior_over_kernels(sampler, scored(0.0, -1.0, -1.0, -4.5))
    # the last one has a probability below 0.05
    assert sampler.sampled == [(0, 200), (1, 200), (2, 200), (3, 200), (1, 800)]
    scores = {int(one.evaluation.theta[0]): one.log_score for one in kernels}
    assert scores == pytest.approx({0: 0.0, 1: 0.0, 2: -0.5, 3: -4.5}, abs=1e-12)


@pytest.mark.parametrize(
    ("criterion", "text"), [("laplace", "NOISE"), *((name, "SE[0]") for name in sorted(CRITERIA))]
)
def test_only_laplaces_score_is_corrected_and_not_that_of_noise_which_is_exact(criterion, text):
    subject = evaluator(criterion=criterion, structure_prior=PRIOR)
    found = subject(parse_expression(text))
    (kernel,) = posterior_over_kernels(subject, [found])
    if (criterion, text) == ("laplace", "SE[0]"):
        sample = subject.sample(found, max_draws=400)
        expected = sample.log_evidence + found.log_structure_prior
        assert kernel.log_score == pytest.approx(expected, abs=1e-9)
        assert kernel.log_score != found.score
    else:
        assert kernel.log_score == found.score


def test_the_kernel_with_the_best_score_is_kept_however_improbable_it_turns_out():
    kernels = posterior_over_kernels(Sampler(corrections={0: -12.0}), scored(0.0, -1.0, -2.0))
    assert numbers(kernels) == [1, 2, 0]
    assert 0 < kernels[-1].probability < 1e-4
    assert probabilities(kernels).sum() == pytest.approx(1.0, rel=1e-12)


@pytest.mark.parametrize("n_in_time", [0, 1, 2])
def test_a_deadline_leaves_the_kernels_before_it(n_in_time):
    evaluations = scored(0.0, -1.0, -2.0, -3.0)
    kernels = posterior_over_kernels(Sampler(n_in_time=n_in_time), evaluations)
    assert numbers(kernels) == list(range(max(1, n_in_time)))
    assert probabilities(kernels).sum() == pytest.approx(1.0, rel=1e-12)
    if n_in_time == 0:  # the best kernel at its best parameters
        np.testing.assert_array_equal(kernels[0].draws, evaluations[0].theta[None])
        assert np.isnan(kernels[0].pareto_k)


def test_a_hundred_draws_are_kept_in_proportion_to_their_weights():
    sampler = Sampler(weights=[0.5, 0.0, 0.2, 0.3])
    (kernel,) = posterior_over_kernels(sampler, scored(0.0))
    assert kernel.draws.shape == (100, kernel.evaluation.n_params)
    counts = np.bincount(kernel.draws[:, 0].astype(int), minlength=4)
    np.testing.assert_array_equal(counts, [50, 0, 20, 30])


def test_draws_have_the_moments_of_the_posterior_of_the_parameters():
    """Against a grid over the one parameter of noise alone."""
    rng = np.random.default_rng(3)
    X, y = rng.uniform(size=(12, 1)), rng.normal(size=12)
    subject = Evaluator(TrainingData(X, y), priors=PRIORS, seed=0)
    found = subject(NOISE)
    (kernel,) = posterior_over_kernels(subject, [found])
    posterior = LogPosterior(ExactLikelihood(NOISE, TrainingData(X, y)), priors=PRIORS)
    grid = np.linspace(posterior.lower[0], posterior.upper[0], 4001)
    weights = softmax([posterior.value(np.array([point])) for point in grid])
    mean = weights @ grid
    std = np.sqrt(weights @ (grid - mean) ** 2)
    # 200 draws or more of a proposal that nearly fits: four standard errors of their moments
    assert kernel.draws.mean() == pytest.approx(mean, abs=4 * std / np.sqrt(200))
    assert kernel.draws.std() == pytest.approx(std, rel=4 / np.sqrt(2 * 200))
    (at_mode,) = posterior_over_kernels(subject, [found], deadline=Deadline(-1.0))
    np.testing.assert_array_equal(at_mode.draws, found.theta[None])


@given(seed=seeds, n=st.integers(1, 300), n_weights=st.integers(1, 60))
def test_systematic_resampling_takes_each_index_in_proportion_to_its_weight(seed, n, n_weights):
    rng = np.random.default_rng(seed)
    weights = rng.exponential(size=n_weights) * (rng.uniform(size=n_weights) < 0.8)
    weights[rng.integers(n_weights)] += 0.1
    counts = np.bincount(systematic(weights, n), minlength=n_weights)
    assert counts.sum() == n
    assert len(counts) == n_weights
    # the number of points in an interval of n w / sum(w) spacings, but for rounding at its ends
    assert np.abs(counts - n * weights / weights.sum()).max() < 1 + 1e-9
    assert np.all(counts[weights == 0] == 0)


# Draws that stand for many

NORMAL = ndtri((np.arange(100) + 0.5) / 100)


@pytest.mark.parametrize("n", [1, 2, 5, 8, 30])
def test_draws_of_one_parameter_are_nearer_to_all_than_chosen_evenly(n):
    chosen = NORMAL[support_points(NORMAL[:, None], n)]
    assert len(chosen) == n
    evenly = NORMAL[((np.arange(n) + 0.5) * 100 / n).astype(int)]
    random = [np.random.default_rng(seed).choice(NORMAL, n) for seed in range(200)]
    distance = energy_distance(chosen, NORMAL)
    assert distance <= energy_distance(evenly, NORMAL) + 1e-12
    assert distance <= min(energy_distance(one, NORMAL) for one in random) + 1e-12


@given(seed=seeds, n=st.integers(1, 12), n_params=st.integers(1, 30))
def test_neither_scales_nor_correlations_have_an_influence(seed, n, n_params):
    rng = np.random.default_rng(seed)
    draws = rng.normal(size=(60, n_params))
    mixing = rng.normal(size=(n_params, n_params)) + 3 * np.eye(n_params)
    other = 5.0 + draws @ mixing
    np.testing.assert_array_equal(support_points(draws, n), support_points(other, n))


@given(seed=seeds, n=st.integers(8, 20))
def test_mean_and_spread_are_kept(seed, n):
    draws = np.random.default_rng(seed).normal(size=(100, 3))
    chosen = draws[support_points(draws, n)]
    # the standard error of n random draws is 1 / sqrt(n): at least .22
    assert np.abs(chosen.mean(axis=0) - draws.mean(axis=0)).max() < 0.22
    assert np.all(chosen.std(axis=0) > 0.6 * draws.std(axis=0))


# Components of a mixture


def believed(number, probability, draws):
    """A kernel with a probability, and draws with one number for all parameters."""
    found = evaluation(number, 0.0)
    thetas = np.repeat(np.array(draws, dtype=float)[:, None], found.n_params, axis=1)
    return KernelPosterior(found, probability, 0.0, thetas)


def components_of(kernels, n):
    return PosteriorAveraging(n_components=n).components(None, kernels)


@given(
    seed=seeds,
    n=st.integers(1, 40),
    n_kernels=st.integers(1, 6),
    n_draws=st.sampled_from([1, 3, 100]),
)
def test_weights_sum_to_one_and_are_shared_by_probability(seed, n, n_kernels, n_draws):
    rng = np.random.default_rng(seed)
    weights = rng.dirichlet(np.full(n_kernels, 0.7))
    kernels = [believed(i, weight, rng.normal(size=n_draws)) for i, weight in enumerate(weights)]
    components = components_of(kernels, n)
    assert sum(one.weight for one in components) == pytest.approx(1.0, rel=1e-12)
    assert 1 <= len(components) <= n
    texts = [str(one.expression) for one in components]
    for number, weight in enumerate(weights):
        own = [
            c.weight for c, text in zip(components, texts, strict=True) if text == text_of(number)
        ]
        # less than one draw too many or too few; weights are summed in another order
        assert abs(sum(own) - weight) < (1 + 1e-9) / n
    # each component is a draw of its kernel, and those of one kernel stand together
    draws = {str(kernel.evaluation.expression): kernel.draws for kernel in kernels}
    assert texts == sorted(texts, key=list(draws).index)
    for text, one in zip(texts, components, strict=True):
        assert (draws[text] == one.theta).all(axis=1).any()


def test_equal_draws_become_one_component_with_the_weight_of_all():
    kernels = [believed(0, 0.5, [1.0, 1.0, 1.0, 2.0]), believed(1, 0.5, [1.0]), believed(2, 0, [3])]
    components = components_of(kernels, 8)
    assert [(str(one.expression), one.theta[0], one.weight) for one in components] == [
        (text_of(0), 1.0, 3 / 8),
        (text_of(0), 2.0, 1 / 8),
        (text_of(1), 1.0, 1 / 2),  # the same numbers for another kernel
    ]


# Stacking

N_GRID, N_DRAWS = 80, 2000


def noise_on_a_grid(y):
    """Parameters of noise alone, and their log prior masses and log likelihoods by row."""
    theta = np.linspace(-5, 5, N_GRID**2)[:, None]
    log_prior = loggamma.logpdf(theta[:, 0], 1.0, loc=-np.log(2.0))
    return theta, log_prior, lambda rows: norm.logpdf(y[rows], scale=np.exp(theta / 2)).sum(axis=1)


def constant_on_a_grid(y):
    """The same for a constant with noise: (constant^2) + s I has an inverse in closed form."""
    ends = np.linspace(-6, 4, N_GRID)
    theta = np.stack(np.meshgrid(ends, ends), axis=-1).reshape(-1, 2)
    log_prior = loggamma.logpdf(theta, [2.0, 1.0], loc=-np.log([3.0, 2.0])).sum(axis=1)
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
def test_leave_one_out_densities_are_quotients_of_evidences(expression, on_a_grid):
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
    subject = Evaluator(TrainingData(X, y), priors=PRIORS, seed=0)
    found = loo_log_densities(subject, expression, draws)
    # Draws are spread evenly, so that all but the outlier has an error of some 1 / N_DRAWS. Its
    # weights have a heavy tail, which draws do not reach
    np.testing.assert_allclose(found[:-1], expected[:-1], atol=5e-3)
    assert found[-1] == pytest.approx(expected[-1], abs=0.1)
    # means of the densities given all others would be far too good
    optimistic = logsumexp(subject.leave_one_out(expression, draws)[:, -1]) - np.log(N_DRAWS)
    assert optimistic > expected[-1] + 0.2
    # one draw: the closed form at its parameters
    (closed,) = subject.leave_one_out(expression, draws[:1])
    np.testing.assert_allclose(
        loo_log_densities(subject, expression, draws[:1]), closed, rtol=1e-12
    )


def densities_of(log_densities):
    """Leave-one-out densities of a kernel with given ones at each draw."""
    subject = SimpleNamespace(leave_one_out=lambda expression, draws, deadline: log_densities)
    return loo_log_densities(subject, None, None)


def test_a_draw_without_densities_is_left_out():
    densities = np.log(np.random.default_rng(0).uniform(0.1, 1.0, size=(40, 5)))
    broken = densities.copy()
    broken[7] = -np.inf  # its covariance has no Cholesky factor
    np.testing.assert_array_equal(densities_of(broken), densities_of(np.delete(densities, 7, 0)))


def test_a_few_draws_with_tiny_densities_do_not_decide_by_themselves():
    """The plain harmonic mean has an infinite variance here; smoothing bounds the weights."""
    plain, smoothed = [], []
    for seed in range(100):
        # densities of a row, exponential in a variable whose weights have a tail of shape 1 / 1.5
        logs = -np.random.default_rng(seed).exponential(1 / 1.5, size=(400, 1))
        expected = np.log(0.5 / 1.5)  # one over the mean of exp(x), for x with the rate 1.5
        plain.append(np.log(400) - logsumexp(-logs) - expected)
        smoothed.append(densities_of(logs)[0] - expected)
    assert np.mean(np.square(smoothed)) < np.mean(np.square(plain))


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


@settings(max_examples=30)
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


def test_stacking_weights_depend_neither_on_the_unit_of_the_target_nor_on_the_order():
    log_densities = np.random.default_rng(0).normal(size=(3, 20))
    weights = stacking_weights(log_densities)
    np.testing.assert_allclose(stacking_weights(log_densities - 900.0), weights, atol=1e-9)
    first, _, last = stacking_weights(log_densities[[0, 1, 0]])
    assert first == pytest.approx(last, rel=1e-12)  # equal kernels
    log_densities[1, :3] = -1e4  # a kernel that cannot predict some rows does no harm
    weights = stacking_weights(log_densities[:2])
    assert objective(log_densities[:2], weights) >= log_densities[0].mean() - 1e-3


def test_a_kernel_that_fails_at_a_draw_gets_no_weight():
    def leave_one_out(expression, draws, deadline):
        raise EvaluationError("it fails")

    subject = SimpleNamespace(leave_one_out=leave_one_out, data=SimpleNamespace(y=np.zeros(5)))
    failed = loo_log_densities(subject, parse_expression("SE[0]"), np.zeros((3, 3)))
    weights = stacking_weights(np.array([failed, np.full(5, -3.0)]))
    np.testing.assert_allclose(weights, [0.0, 1.0], atol=1e-12)


def test_stacking_weighs_kernels_by_their_predictions_and_not_by_their_evidence():
    subject = evaluator(20)
    kernels = [
        posterior_over_kernels(subject, [subject(parse_expression(text))])[0]
        for text in ("SE[0]", "LIN[0]", "NOISE")  # two of them cannot explain the data
    ]
    assert [kernel.probability for kernel in kernels] == [1.0] * 3  # each was the only one
    assert Stacking().weights(subject, kernels)[0] > 1 - 1e-5
    components = Stacking(n_components=5).components(subject, kernels)
    assert [str(one.expression) for one in components] == ["SE[0]"] * 5
    others = PosteriorAveraging(n_components=6).components(subject, kernels)
    assert {str(one.expression) for one in others} == {"SE[0]", "LIN[0]", "NOISE"}
