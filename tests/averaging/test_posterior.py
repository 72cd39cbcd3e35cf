"""Probabilities of kernels, and draws of their parameters."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import softmax

from autokernel import parse_expression
from autokernel.deadline import Deadline
from autokernel.evidence import CRITERIA, Evaluator
from autokernel.evidence.posterior import LogPosterior
from autokernel.exceptions import EvaluationError, OutOfTimeError
from autokernel.expression import NOISE, GrammarPrior
from autokernel.inference import ExactLikelihood, TrainingData
from autokernel.kernels.parameters import check_priors
from autokernel.model import posterior_over_kernels
from autokernel.model.averaging import systematic
from tests.averaging.kernels import evaluation, sample_of
from tests.batteries import seeds
from tests.fits import wave

PRIORS = check_priors("default")


class Sampler:
    """Stands for an evaluator: the draws of all kernels have been made before."""

    def __init__(
        self, *, corrections=None, is_laplace=True, weights=(0.25,) * 4, fails=None, shapes=None
    ):
        self.corrections, self.weights, self.shapes = corrections or {}, weights, shapes or {}
        self.score_is_laplace, self.fails = is_laplace, fails or {}
        self.sampled = []

    def sample(self, evaluation, *, max_draws, deadline):
        number = int(evaluation.theta[0])
        if number in self.fails:
            raise self.fails[number]
        self.sampled.append(number)
        self.most = max_draws
        correction = self.corrections.get(number, 0.0)
        if max_draws > 400:
            correction *= 2
        shape = self.shapes.get(number, 0.3)
        return sample_of(evaluation, evaluation.log_evidence + correction, self.weights, shape)


def numbers(kernels):
    return [int(kernel.evaluation.theta[0]) for kernel in kernels]


def probabilities(kernels):
    return np.array([kernel.probability for kernel in kernels])


def scored(*scores):
    return [evaluation(number, score) for number, score in enumerate(scores)]


def evaluator(n_samples=15, *, criterion="laplace", **options):
    X, y = wave(n_samples)
    y = (y - y.mean()) / y.std()
    return Evaluator(X, y, priors=PRIORS, seed=0, criterion=criterion, **options)


@pytest.fixture(scope="module")
def fits():
    """An evaluator, and two kernels that it has scored."""
    subject = evaluator()
    return subject, [subject(parse_expression(text)) for text in ("SE[0]", "RQ[0]")]


@given(scores=st.lists(st.floats(-20, 0), min_size=1, max_size=20))
def test_probabilities_sum_to_one_and_follow_the_scores(scores):
    scores = np.sort(scores)[::-1]
    kernels = posterior_over_kernels(Sampler(), scored(*scores))
    found = probabilities(kernels)
    assert found.sum() == pytest.approx(1.0, rel=1e-12)
    assert np.all(np.diff(found) <= 0)
    assert numbers(kernels) == list(range(len(kernels)))
    np.testing.assert_allclose(found, softmax(scores[: len(found)]), rtol=1e-9)
    assert [kernel.log_score for kernel in kernels] == list(scores[: len(found)])


def test_a_kernel_far_below_the_best_is_left_out_without_draws():
    sampler = Sampler()
    kernels = posterior_over_kernels(sampler, scored(-100.0, -104.9, -105.1, -200.0))
    assert numbers(kernels) == sampler.sampled == [0, 1]
    np.testing.assert_allclose(probabilities(kernels), softmax([0, -4.9]), rtol=1e-12)


@pytest.mark.parametrize("n_kernels", [1, 11, 12, 13, 30])
def test_no_more_than_twelve_kernels_are_believed(n_kernels):
    sampler = Sampler()
    kernels = posterior_over_kernels(sampler, scored(*np.zeros(n_kernels)))
    assert numbers(kernels) == sampler.sampled == list(range(min(n_kernels, 12)))
    np.testing.assert_allclose(probabilities(kernels), 1 / len(kernels), rtol=1e-12)


def test_the_evaluations_may_come_one_by_one():
    kernels = posterior_over_kernels(Sampler(), iter(scored(0.0, -1.0)))
    assert numbers(kernels) == [0, 1]


def test_draws_correct_the_scores_by_the_error_of_laplaces_approximation():
    corrections = {0: -1.0, 1: 2.0, 2: 0.5}
    kernels = posterior_over_kernels(Sampler(corrections=corrections), scored(0.0, -1.0, -3.0))
    assert numbers(kernels) == [1, 0, 2]  # the most probable one first
    assert [kernel.log_score for kernel in kernels] == pytest.approx([1.0, -1.0, -2.5], abs=1e-12)
    np.testing.assert_allclose(probabilities(kernels), softmax([1.0, -1.0, -2.5]), rtol=1e-12)
    assert [kernel.pareto_k for kernel in kernels] == [0.3] * 3


def test_a_kernel_that_matters_is_drawn_from_again_where_its_weights_are_not_reliable():
    sampler = Sampler(corrections={1: 0.5, 2: 0.5}, shapes={1: 0.71, 2: 0.7, 3: 0.9})
    kernels = posterior_over_kernels(sampler, scored(0.0, -1.0, -1.0, -4.5))
    assert sampler.sampled == [0, 1, 2, 3, 1]  # the last one has a probability of less than .05
    scores = {int(one.evaluation.theta[0]): one.log_score for one in kernels}
    assert scores == pytest.approx({0: 0.0, 1: 0.0, 2: -0.5, 3: -4.5}, abs=1e-12)
    expected = softmax([0.0, 0.0, -0.5, -4.5])
    np.testing.assert_allclose(np.sort(probabilities(kernels))[::-1], expected, rtol=1e-12)


@pytest.mark.parametrize(("shape", "most"), [(0.6, 200), (0.8, 800)])
def test_the_less_reliable_the_weights_the_more_draws(shape, most):
    sampler = Sampler(shapes={0: shape})
    posterior_over_kernels(sampler, scored(0.0))
    assert sampler.most == most


def test_the_prior_of_the_structure_stays_in_a_corrected_score():
    evaluations = [evaluation(0, 0.0, log_evidence=7.0), evaluation(1, -0.5, log_evidence=-3.0)]
    kernels = posterior_over_kernels(Sampler(corrections={1: 0.25}), evaluations)
    assert [kernel.log_score for kernel in kernels] == pytest.approx([0.0, -0.25], abs=1e-12)


def test_scores_of_other_criteria_are_not_corrected():
    sampler = Sampler(corrections={0: -1.0, 1: 2.0}, is_laplace=False)
    kernels = posterior_over_kernels(sampler, scored(0.0, -1.0))
    np.testing.assert_allclose(probabilities(kernels), softmax([0.0, -1.0]), rtol=1e-12)
    assert [len(kernel.draws) for kernel in kernels] == [100, 100]  # which are made all the same


@pytest.mark.parametrize("name", sorted(CRITERIA))
def test_laplace_alone_is_corrected(name):
    subject = evaluator(criterion=name, structure_prior=GrammarPrior(4, 2, 1))
    found = subject(parse_expression("SE[0]"))
    (kernel,) = posterior_over_kernels(subject, [found])
    if name == "laplace":
        sample = subject.sample(found, max_draws=400)
        expected = sample.log_evidence.value + found.log_structure_prior
        assert kernel.log_score == pytest.approx(expected, abs=1e-9)
        assert kernel.log_score != found.score
    else:
        assert kernel.log_score == found.score


def test_corrected_scores_are_those_of_the_criterion_by_importance_sampling():
    subject, sampling = evaluator(), evaluator(criterion="importance")
    # RQ is skew: Laplace's method is off by a third of a nat
    found, exact = (one(parse_expression("RQ[0]")) for one in (subject, sampling))
    (kernel,) = posterior_over_kernels(subject, [found])
    # four times the standard errors of both, which ask for 0.05 each
    error = 4 * np.hypot(exact.standard_error, 0.05)
    assert kernel.log_score == pytest.approx(exact.score, abs=error)
    assert abs(found.score - exact.score) > error


def test_the_exact_score_of_noise_is_not_corrected_twice():
    subject = evaluator(5, structure_prior=GrammarPrior(4, 2, 1))
    found = subject(NOISE)
    (kernel,) = posterior_over_kernels(subject, [found])
    sampled = subject.sample(found, max_draws=400).log_evidence.value + found.log_structure_prior
    # the exact one or that by sampling, but not the one and the difference of the other
    assert min(abs(kernel.log_score - found.score), abs(kernel.log_score - sampled)) < 1e-9


def test_an_improbable_kernel_is_left_out_after_its_correction():
    sampler = Sampler(corrections={1: -6.0})
    kernels = posterior_over_kernels(sampler, scored(0.0, -1.0, -2.0))
    assert numbers(kernels) == [0, 2]
    np.testing.assert_allclose(probabilities(kernels), softmax([0.0, -2.0]), rtol=1e-12)


def test_the_kernel_with_the_best_score_is_kept_however_improbable_it_turns_out():
    kernels = posterior_over_kernels(Sampler(corrections={0: -12.0}), scored(0.0, -1.0, -2.0))
    assert numbers(kernels) == [1, 2, 0]
    assert 0 < kernels[-1].probability < 1e-4
    assert probabilities(kernels).sum() == pytest.approx(1.0, rel=1e-12)


@pytest.mark.parametrize("n_in_time", [0, 1, 2])
def test_a_deadline_leaves_the_kernels_before_it(n_in_time):
    sampler = Sampler(fails={number: OutOfTimeError("over") for number in range(n_in_time, 4)})
    evaluations = scored(0.0, -1.0, -2.0, -3.0)
    kernels = posterior_over_kernels(sampler, evaluations)
    assert numbers(kernels) == list(range(max(1, n_in_time)))
    assert probabilities(kernels).sum() == pytest.approx(1.0, rel=1e-12)
    if n_in_time == 0:  # the best kernel at its best parameters
        np.testing.assert_array_equal(kernels[0].draws, evaluations[0].theta[None])
        assert np.isnan(kernels[0].pareto_k)


def test_a_passed_deadline_leaves_the_best_kernel_at_its_best_parameters(fits):
    subject, evaluations = fits
    (kernel,) = posterior_over_kernels(subject, evaluations, deadline=Deadline(-1.0))
    assert kernel.evaluation is evaluations[0]
    assert kernel.probability == 1.0
    assert kernel.log_score == evaluations[0].score
    np.testing.assert_array_equal(kernel.draws, evaluations[0].theta[None])


def test_a_kernel_without_draws_has_its_best_parameters_and_its_score():
    sampler = Sampler(corrections={0: 1.0}, fails={1: EvaluationError("a saddle")})
    evaluations = scored(0.0, -1.0, -2.0)
    kernels = posterior_over_kernels(sampler, evaluations)
    assert numbers(kernels) == [0, 1, 2]
    np.testing.assert_array_equal(kernels[1].draws, evaluations[1].theta[None])
    np.testing.assert_allclose(probabilities(kernels), softmax([1.0, -1.0, -2.0]), rtol=1e-12)


def test_a_hundred_draws_are_kept_as_often_as_their_weights_ask_for():
    weights = [0.5, 0.0, 0.2, 0.3]
    (kernel,) = posterior_over_kernels(Sampler(weights=weights), scored(0.0))
    drawn = kernel.draws[:, 0]
    assert kernel.draws.shape == (100, kernel.evaluation.n_params)
    np.testing.assert_array_equal(np.bincount(drawn.astype(int), minlength=4), [50, 0, 20, 30])


def test_the_same_fits_have_the_same_draws(fits):
    first, second = (posterior_over_kernels(*fits) for _ in range(2))
    for one, other in zip(first, second, strict=True):
        np.testing.assert_array_equal(one.draws, other.draws)
        assert one.probability == other.probability


def test_draws_have_the_moments_of_the_posterior_of_the_parameters():
    """Against a grid over the one parameter of noise alone."""
    rng = np.random.default_rng(3)
    X, y = rng.uniform(size=(12, 1)), rng.normal(size=12)
    subject = Evaluator(X, y, priors=PRIORS, seed=0)
    (kernel,) = posterior_over_kernels(subject, [subject(NOISE)])
    posterior = LogPosterior(ExactLikelihood(NOISE, TrainingData(X, y)), priors=PRIORS)
    grid = np.linspace(posterior.lower[0], posterior.upper[0], 4001)
    weights = softmax([posterior.value(np.array([point])) for point in grid])
    mean = weights @ grid
    std = np.sqrt(weights @ (grid - mean) ** 2)
    # 200 draws or more of a proposal that nearly fits: four standard errors of their moments
    assert kernel.draws.mean() == pytest.approx(mean, abs=4 * std / np.sqrt(200))
    assert kernel.draws.std() == pytest.approx(std, rel=4 / np.sqrt(2 * 200))


@given(seed=seeds, n=st.integers(1, 300), n_weights=st.integers(1, 60))
def test_systematic_resampling_takes_each_index_in_proportion_to_its_weight(seed, n, n_weights):
    rng = np.random.default_rng(seed)
    weights = rng.exponential(size=n_weights) * (rng.uniform(size=n_weights) < 0.8)
    weights[rng.integers(n_weights)] += 0.1
    chosen = systematic(weights, n)
    counts = np.bincount(chosen, minlength=n_weights)
    assert len(chosen) == n
    assert len(counts) == n_weights
    # the number of points in an interval of n w / sum(w) spacings, but for rounding at its ends
    assert np.abs(counts - n * weights / weights.sum()).max() < 1 + 1e-9
    assert np.all(counts[weights == 0] == 0)


@pytest.mark.parametrize(
    ("weights", "n", "chosen"),
    [
        ([1.0], 3, [0, 0, 0]),
        ([1.0, 1.0], 2, [0, 1]),
        ([3.0, 1.0], 4, [0, 0, 0, 1]),
        ([0.0, 2.0, 0.0, 2.0, 0.0], 4, [1, 1, 3, 3]),
        ([0.2, 0.3, 0.5], 1, [1]),  # the middle
    ],
)
def test_systematic_resampling_of_some_weights(weights, n, chosen):
    assert list(systematic(np.array(weights), n)) == chosen
