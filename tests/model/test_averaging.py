"""The posterior over kernels, and the draws that stand for it."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy.special import ndtri, softmax
from scipy.stats import energy_distance

from autokernel import PosteriorAveraging, parse_expression
from autokernel.evidence import CRITERIA, Evaluator
from autokernel.evidence.importance import ImportanceSample
from autokernel.evidence.posterior import LogPosterior
from autokernel.exceptions import OutOfTimeError
from autokernel.expression import grammar_prior
from autokernel.inference import ExactLikelihood, TrainingData
from autokernel.kernels.parameters import check_priors
from autokernel.model import KernelPosterior, posterior_over_kernels
from autokernel.model.averaging import certain, probabilities_of, support_points
from tests.batteries import seeds
from tests.fits import evaluation_of, wave

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
        self.sampled = []  # numbers with the most draws

    def sample(self, evaluation, *, max_draws, deadline):
        number = int(evaluation.theta[0])
        if number >= self.n_in_time:
            raise OutOfTimeError("over")
        self.sampled.append((number, max_draws))
        correction = self.corrections.get(number, 0.0)
        theta = np.repeat(np.arange(4.0)[:, None], evaluation.n_params, axis=1)
        log_evidence, k = evaluation.log_evidence + correction, 0.3
        return ImportanceSample(theta, self.weights, log_evidence, 0.01, k)


def numbers(kernels):
    return [int(kernel.evaluation.theta[0]) for kernel in kernels]


def probabilities(kernels):
    return np.array([kernel.probability for kernel in kernels])


def evaluator(n_samples=15, *, criterion="laplace", **options):
    X, y = wave(n_samples)
    y = (y - y.mean()) / y.std()
    return Evaluator(TrainingData(X, y), priors=PRIORS, seed=0, criterion=criterion, **options)


def few_rows_of_a_wave(seed):
    """So few and noisy ones show several periods."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(size=16)
    y = np.sin(2 * np.pi * x / 0.23) + 0.4 * rng.normal(size=16)
    return TrainingData(x[:, None], (y - y.mean()) / y.std())


@example(scores=[0.0] * 10)
@given(scores=st.lists(st.floats(-20, 0), min_size=1, max_size=30))
def test_probabilities_of_the_best_kernels_sum_to_one_and_follow_the_scores(scores):
    scores = np.sort(scores)[::-1]
    sampler = Sampler()
    kernels = posterior_over_kernels(sampler, iter(scored(*scores)))
    found = probabilities(kernels)
    assert found.sum() == pytest.approx(1.0, rel=1e-12)
    assert numbers(kernels) == list(range(len(kernels)))
    # no more than twelve have a share, and none that is five nats below the best
    expected = softmax(scores[: min(12, 1 + np.sum(scores[1:] > scores[0] - 5))])
    n_drawn = max(1, np.sum(expected > 0.1))
    assert sampler.sampled == [(number, 256) for number in range(n_drawn)]
    assert all((len(kernel.draws) > 1) == (n < n_drawn) for n, kernel in enumerate(kernels))
    kept = expected > 1e-3
    np.testing.assert_allclose(found, expected[kept] / expected[kept].sum(), rtol=1e-9)
    assert [kernel.log_score for kernel in kernels] == list(scores[: len(found)])


def test_draws_correct_the_scores_by_the_error_of_laplaces_approximation():
    corrections = {0: -1.0, 1: 2.0, 2: 0.5, 3: -9.0, 4: 9.0}
    scores = scored(0.0, -0.5, -0.7, -0.9, -4.0)  # of the last one no draws are made
    kernels = posterior_over_kernels(Sampler(corrections=corrections), scores)
    assert numbers(kernels) == [1, 2, 0, 4]  # the most probable one first, and none of 1e-5
    expected = [1.5, -0.2, -1.0, -4.0]
    assert [kernel.log_score for kernel in kernels] == pytest.approx(expected, abs=1e-12)
    np.testing.assert_allclose(probabilities(kernels), softmax(expected), rtol=1e-12)
    # the prior of the structure, which is in the score but not in the evidence, stays in it
    with_prior = [evaluation(0, 0.0, log_evidence=7.0), evaluation(1, -0.5, log_evidence=-3.0)]
    kernels = posterior_over_kernels(Sampler(corrections={1: 0.25}), with_prior)
    assert [kernel.log_score for kernel in kernels] == pytest.approx([0.0, -0.25], abs=1e-12)


def test_more_draws_are_made_only_if_the_weights_of_the_first_are_not_reliable():
    taken = {}
    for text in ("PER[0]", "LIN[0]"):
        subject = Evaluator(few_rows_of_a_wave(6), priors={}, seed=0)
        found = subject(parse_expression(text))
        first, whole = (subject.sample(found, max_draws=n) for n in (256, 512))
        taken[text] = first.pareto_k < 0.7, len(whole.theta) <= 256
    assert taken == {"PER[0]": (False, False), "LIN[0]": (True, True)}


@pytest.mark.parametrize(
    ("criterion", "text"), [("laplace", "NOISE"), *((name, "SE[0]") for name in sorted(CRITERIA))]
)
def test_only_laplaces_score_is_corrected_and_not_that_of_noise_which_is_exact(criterion, text):
    subject = evaluator(criterion=criterion, structure_prior=PRIOR)
    found = subject(parse_expression(text))
    (kernel,) = posterior_over_kernels(subject, [found])
    if (criterion, text) == ("laplace", "SE[0]"):
        score = subject.sample(found, max_draws=256).log_evidence + found.log_structure_prior
        assert kernel.log_score == pytest.approx(score, abs=1e-9)
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
    evaluations = scored(0.0, -0.1, -0.2, -0.3)
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


@pytest.mark.parametrize("seed", [1, 3])
def test_draws_of_a_period_hold_all_that_are_probable(seed):
    """Against draws from the prior, weighted by the likelihood."""
    data, rng = few_rows_of_a_wave(seed), np.random.default_rng(seed)
    subject = Evaluator(data, priors={}, seed=0)
    found = subject(parse_expression("PER[0]"))
    (kernel,) = posterior_over_kernels(subject, [found])
    posterior = LogPosterior(ExactLikelihood(found.expression, data), priors={})
    theta = posterior.prior.quantile(rng.uniform(size=(4000, 4)), posterior.upper)
    weights = softmax([posterior.likelihood.value(point) for point in theta])

    def is_other(logs):
        return np.abs(logs[:, 2] - found.theta[2]) > 0.15

    expected = weights @ is_other(theta)
    # of the weighted draws, and of a hundred from the posterior
    error = np.sqrt(expected * (1 - expected) * (np.sum(weights**2) + 1 / 100))
    assert expected > 3.5 * error
    assert np.mean(is_other(kernel.draws)) == pytest.approx(expected, abs=3.5 * error)


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


# Components of a mixture


def believed(number, probability, draws):
    """A kernel with a probability, and draws with one number for all parameters."""
    found = evaluation(number, 0.0)
    thetas = np.repeat(np.array(draws, dtype=float)[:, None], found.n_params, axis=1)
    return KernelPosterior(found, probability, 0.0, thetas)


def components_of(kernels, n):
    return PosteriorAveraging(n_components=n).components(kernels)


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


def test_a_kernel_that_could_not_be_fitted_has_no_equal_share():
    texts = ("SE[0]", "RW[0] + IOU[0]", "LIN[0] + MAT12[0]")
    walks = [
        replace(evaluation(0, score), expression=parse_expression(text))
        for text, score in zip(texts, (0.0, -np.inf, -1.0), strict=True)
    ]
    found = probabilities_of([*map(certain, walks)], 0.5)
    np.testing.assert_allclose(
        found, [0.5 * softmax([0, -1])[0], 0, 0.5 * (1 + softmax([0, -1])[1])]
    )
