"""The evidence of whole evaluations; importance_sample has tests of its own."""

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import multivariate_t
from sklearn.base import clone

from autokernel import NotAMaximumError, evaluate_kernel, parse_expression
from autokernel.evidence import (
    CRITERIA,
    Criterion,
    Evaluator,
    Importance,
    KernelFit,
    Laplace,
    Score,
    check_criterion,
)
from autokernel.evidence import mode_search as modes_module
from autokernel.evidence.importance import FIRST_DRAWS, MAX_DRAWS
from autokernel.evidence.maximise import Point, maximise
from autokernel.evidence.maximum import measure_maximum
from autokernel.evidence.mode_search import find_modes
from autokernel.evidence.posterior import LogPosterior
from autokernel.inference import ExactLikelihood, TrainingData
from autokernel.kernels.parameters import check_priors
from tests.processes import outputs_under_two_hash_seeds

FIT_AND_PRINT = """
import numpy as np
from autokernel import NotAMaximumError, evaluate_kernel
x = np.linspace(0, 1, 15)
fit = evaluate_kernel("SE[0] + SE[0]", x[:, None], np.sin(20 * x) + x, criterion="importance")
print(fit.score.hex(), fit.standard_error.hex(), fit.pareto_k.hex(), fit.n_evaluations)
"""


def noisy_wave(frequency, noise, *, seed=0, n_samples=20):
    rng = np.random.default_rng(seed)
    x = np.sort(rng.uniform(size=n_samples))
    y = np.sin(frequency * x) + noise * rng.normal(size=n_samples)
    return x[:, None], (y - y.mean()) / y.std()


SMOOTH = noisy_wave(6, 0.1)
AMBIGUOUS = noisy_wave(20, 0.4)  # a wave of this length, or noise alone
TRIPLE = noisy_wave(20, 0.4, seed=2)


def sampled(text, X, y, **parameters):
    return evaluate_kernel(text, X, y, priors="paper", criterion="importance", **parameters)


def sum_over_grid(log_posterior):
    """Log evidence of three parameters by the trapezoidal rule."""
    axes = [np.linspace(-8, 3, 45), np.linspace(-8, 3, 30), np.linspace(-14, 2, 40)]
    slices = [
        log_posterior(np.stack(np.meshgrid([first], *axes[1:], indexing="ij"), axis=-1))
        for first in axes[0]
    ]
    return logsumexp(slices) + sum(np.log(axis[1] - axis[0]) for axis in axes)


@pytest.mark.parametrize(
    ("X", "y", "laplace_error"),
    [(*SMOOTH, (-0.3, 0.0)), (*AMBIGUOUS, (-1.0, -0.5)), (*TRIPLE, (-1.0, -0.5))],
    ids=["one mode", "two modes", "other two modes"],
)
def test_the_evidence_agrees_with_a_sum_over_a_grid_where_laplace_is_off(
    X, y, laplace_error, dense_log_posterior
):
    exact = sum_over_grid(dense_log_posterior("SE[0]", X, y))
    fit = sampled("SE[0]", X, y)
    low, high = laplace_error
    assert low < fit.log_evidence - exact < high  # or the test shows nothing
    assert fit.standard_error < 0.05
    assert fit.pareto_k < 0.7
    # half as fine a grid moves the sum by 0.14 at the first, by 0.08 at the others: this fine,
    # the trapezoidal rule is off by far less
    assert fit.score == pytest.approx(exact, abs=4 * fit.standard_error)


def test_the_mirror_images_of_a_mode_count(dense_log_posterior, monkeypatch):
    monkeypatch.setattr(modes_module, "find_modes", lambda *a, **o: find_modes(*a, **o)[:1])
    # two waves: each of the leaves may be the slow one
    x = np.linspace(0, 1, 20)
    y = np.sin(5 * x) + np.sin(30 * x) + 0.1 * np.random.default_rng(1).normal(size=20)
    X, y = x[:, None], (y - y.mean()) / y.std()
    fits = [sampled("SE[0] + SE[0]", X, y, random_state=seed) for seed in range(5)]
    fit = fits[0]
    mirror = np.array([2, 3, 0, 1, 4])
    assert np.abs(fit.theta - fit.theta[mirror]).max() > 1  # or the test shows nothing
    # an independent sample, from tails heavier and wider than those of the modes
    covariance = 2 * np.linalg.inv(fit.hessian)
    parts = [
        multivariate_t(fit.theta, covariance, df=4, seed=0),
        multivariate_t(fit.theta[mirror], covariance[np.ix_(mirror, mirror)], df=4, seed=1),
    ]
    draws = np.concatenate([part.rvs(20_000) for part in parts])
    log_proposal = logsumexp([part.logpdf(draws) for part in parts], axis=0) - np.log(2)
    inside = draws[:, -1] > np.log(1e-8)  # the floor of the noise
    log_weights = dense_log_posterior("SE[0] + SE[0]", X, y)(draws[inside]) - log_proposal[inside]
    expected = logsumexp(log_weights) - np.log(len(draws))
    error = max(fit.standard_error for fit in fits)
    assert error < 0.1
    # log 2 = 0.69 is missed without the other image; a single sample may miss some of the mass
    # between the images, and not know it
    score = np.median([fit.score for fit in fits])
    # 1.25 is the error of a median over that of a mean; 0.05 the errors of ``expected`` and of
    # stopping, which is half of the standard error that is asked for, each
    assert score == pytest.approx(expected, abs=4 * 1.25 * error / np.sqrt(5) + 0.05)


def test_the_fit_is_that_of_laplace_and_its_evidence_stays_laplaces():
    fit, plain = sampled("SE[0]", *AMBIGUOUS), evaluate_kernel("SE[0]", *AMBIGUOUS, priors="paper")
    np.testing.assert_array_equal(fit.theta, plain.theta)
    assert fit.log_evidence == plain.log_evidence == plain.score
    assert fit.score != fit.log_evidence
    assert np.isnan([plain.standard_error, plain.pareto_k]).all()
    n_more = fit.n_evaluations - plain.n_evaluations
    assert (
        FIRST_DRAWS <= n_more <= MAX_DRAWS + 5 * (3 * fit.n_params + 2)
    )  # Hessians of other modes


def test_the_same_seed_gives_the_same_score_whatever_came_before():
    expressions = [parse_expression(text) for text in ("SE[0]", "LIN[0] + SE[0]")]
    options = {"priors": check_priors("paper"), "seed": 3, "criterion": "importance"}
    evaluator = Evaluator(*SMOOTH, **options)
    forth = [evaluator(expression).score for expression in expressions]
    back = [evaluator(expression).score for expression in reversed(expressions)]
    assert forth == back[::-1] == [Evaluator(*SMOOTH, **options)(e).score for e in expressions]
    assert forth != [Evaluator(*SMOOTH, **{**options, "seed": 4})(e).score for e in expressions]


def test_the_score_does_not_depend_on_the_process():
    assert len(outputs_under_two_hash_seeds(FIT_AND_PRINT)) == 1


def test_a_sample_without_any_weight_is_a_failure_with_its_reason(monkeypatch):
    monkeypatch.setattr(LogPosterior, "value", lambda self, theta: -np.inf)
    fit = sampled("SE[0]", *SMOOTH)
    assert fit.score == -np.inf
    assert np.isfinite(fit.log_evidence)
    assert "got -inf as the largest log weight" in fit.status
    assert np.isnan([fit.standard_error, fit.pareto_k]).all()
    assert np.isfinite(fit.log_posterior)


def test_a_saddle_that_laplace_refuses_can_be_sampled(monkeypatch):
    true_hessian = LogPosterior.hessian

    def with_a_saddle(self, theta):
        return true_hessian(self, theta) * np.array([[1, 1, 0], [1, 1, 0], [0, 0, -1]])

    expected = sampled("SE[0]", *SMOOTH)
    monkeypatch.setattr(LogPosterior, "hessian", with_a_saddle)
    fit = sampled("SE[0]", *SMOOTH)
    assert fit.status == "ok"
    assert fit.log_evidence == -np.inf
    error = np.hypot(fit.standard_error, expected.standard_error)
    assert fit.score == pytest.approx(expected.score, abs=4 * error)


class Counting:
    """A posterior that counts the Hessians that are asked of it."""

    def __init__(self, posterior):
        self.posterior, self.n_hessians = posterior, 0

    def __getattr__(self, name):
        return getattr(self.posterior, name)

    def hessian(self, theta):
        self.n_hessians += 1
        return self.posterior.hessian(theta)


@pytest.mark.parametrize(
    ("away", "below", "n_hessians"),
    [(3.0, 5.0, 1), (3.0, 11.0, 0), (1e-3, 0.0, 0)],
    ids=["another mode", "far below", "the same mode"],
)
def test_only_other_modes_of_some_height_are_taken_in(away, below, n_hessians):
    posterior = LogPosterior(
        ExactLikelihood(parse_expression("SE[0]"), TrainingData(*SMOOTH)),
        priors=check_priors("paper"),
    )
    best = maximise(posterior, np.array([-1.0, 0.0, -4.0]), max_iterations=300)
    maximum = measure_maximum(posterior, best)
    counting = Counting(posterior)
    other = Point(best.theta + np.array([away, 0, 0]), best.log_posterior - below)
    Importance()(KernelFit(counting, maximum, [other], np.random.default_rng(0)))
    assert counting.n_hessians == n_hessians


def test_points_of_one_ridge_do_not_crowd_out_another_mode():
    posterior = LogPosterior(
        ExactLikelihood(parse_expression("SE[0]"), TrainingData(*SMOOTH)),
        priors=check_priors("paper"),
    )
    best = maximise(posterior, np.array([-1.0, 0.0, -4.0]), max_iterations=300)
    away = Point(best.theta + np.array([3.0, 0, 0]), best.log_posterior - 5)
    counting = Counting(posterior)
    others = [best] * 9 + [away] * 9
    maximum = measure_maximum(posterior, best)
    Importance()(KernelFit(counting, maximum, others, np.random.default_rng(0)))
    assert counting.n_hessians == 1


def test_an_evaluation_prints_its_standard_error():
    fit = sampled("LIN[0]", *SMOOTH)
    line = f"LIN[0]: score {fit.score:.2f} ± {fit.standard_error:.2f} nats (ok)"
    assert repr(fit).splitlines()[0] == line


def test_the_criteria_are_known_by_their_names():
    assert list(CRITERIA) == ["laplace", "importance", "bic", "aic", "loo", "cv"]
    with pytest.raises(ValueError, match=r"one of \['laplace', .*, 'cv'\] or a .*, got 'bik'"):
        Evaluator(*SMOOTH, priors=check_priors("paper"), seed=0, criterion="bik")


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        (
            {"max_draws": 99},
            r"'max_draws' .* of Importance must be an int in the range \[100, inf\)",
        ),
        ({"max_draws": 200.0}, r"'max_draws' .* must be an int .* Got 200.0 instead"),
        ({"max_draws": "many"}, r"'max_draws' .* must be an int .* Got 'many' instead"),
        ({"standard_error": 0.0}, r"'standard_error' .* must be a float in the range \(0.0, inf\)"),
        ({"standard_error": -0.1}, r"'standard_error' .* must be a float .* Got -0.1 instead"),
        ({"standard_error": None}, r"'standard_error' .* must be a float .* Got None instead"),
    ],
)
def test_parameters_of_a_criterion_that_are_not_valid_are_errors(parameters, message):
    criterion = Importance(**parameters)  # stores them as they are
    with pytest.raises(ValueError, match=message):
        check_criterion(criterion)
    with pytest.raises(ValueError, match=message):
        evaluate_kernel("SE[0]", *SMOOTH, criterion=criterion)


@pytest.mark.parametrize("criterion", [None, 3, Importance, Laplace])
def test_what_is_no_criterion_is_an_error(criterion):
    with pytest.raises(
        ValueError,
        match=r"criterion must be (one of \['laplace', .* or a Crit|an object, got the class)",
    ):
        check_criterion(criterion)


@pytest.mark.parametrize("name", CRITERIA)
def test_every_criterion_can_be_made_by_name_and_cloned(name):
    criterion = check_criterion(name)
    assert type(criterion) is CRITERIA[name]
    assert check_criterion(criterion) is criterion
    assert clone(criterion) is not criterion
    assert clone(criterion).get_params() == criterion.get_params()


def test_a_clone_of_a_criterion_keeps_its_parameters():
    criterion = clone(Importance().set_params(max_draws=np.int64(700), standard_error=1))
    check_criterion(criterion)
    assert criterion.get_params() == {"max_draws": 700, "standard_error": 1}


@pytest.mark.parametrize("name", CRITERIA)
def test_a_criterion_by_name_is_that_with_its_defaults(name):
    by_name = evaluate_kernel("SE[0]", *SMOOTH, criterion=name)
    assert evaluate_kernel("SE[0]", *SMOOTH, criterion=CRITERIA[name]()).score == by_name.score


@pytest.mark.parametrize("name", CRITERIA)
def test_every_criterion_is_larger_for_the_kernel_that_follows_the_data(name):
    wavy, straight = (evaluate_kernel(k, *SMOOTH, criterion=name) for k in ("SE[0]", "LIN[0]"))
    assert wavy.status == straight.status == "ok"
    assert wavy.score > straight.score + 5


@pytest.mark.parametrize("name", CRITERIA)
def test_all_ways_to_write_a_kernel_have_one_score(name):
    X = np.c_[SMOOTH[0], AMBIGUOUS[0]]
    texts = ("LIN[0] * SE[1] + (RQ[0] + SE[0])", "(SE[0] + SE[1] * LIN[0]) + RQ[0]")
    one, other = (evaluate_kernel(text, X, SMOOTH[1], criterion=name) for text in texts)
    assert one.score == other.score
    assert one.status == other.status == "ok"


def test_the_parameters_of_importance_bound_the_draws():
    plain = evaluate_kernel("SE[0]", *AMBIGUOUS, priors="paper")

    def n_draws(**parameters):
        fit = evaluate_kernel(
            "SE[0]", *AMBIGUOUS, priors="paper", criterion=Importance(**parameters)
        )
        return fit.n_evaluations - plain.n_evaluations, fit.standard_error

    most = 5 * (3 * plain.n_params + 2)  # Hessians of other modes
    few, rough = n_draws(max_draws=100)
    many, fine = n_draws(max_draws=4000, standard_error=0.02)
    # a draw outside the box costs no call, one in ten at most here
    assert 90 <= few <= 100 + most
    assert 4 * few < many <= 4000 + most
    assert fine < 0.02 < rough
    assert n_draws(standard_error=10.0)[0] <= FIRST_DRAWS + most


class OfTheLikelihood(Criterion):
    """A criterion of a user: a fit without a penalty."""

    def __call__(self, fit):
        return Score(fit.log_likelihood)


def test_a_criterion_may_be_of_ones_own():
    fit = evaluate_kernel("SE[0]", *SMOOTH, criterion=OfTheLikelihood())
    assert fit.score == pytest.approx(fit.log_likelihood, rel=1e-12)  # rounding
    assert fit.score != fit.log_evidence
    assert fit.status == "ok"


def test_another_mode_without_a_hessian_leaves_the_best_one_its_score(monkeypatch):
    asked = []

    def failing(posterior, mode):
        asked.append(mode)
        raise NotAMaximumError("the covariance has no Cholesky factor next to the point")

    monkeypatch.setattr("autokernel.evidence.criteria.measure_maximum", failing)
    fit = sampled("SE[0]", *AMBIGUOUS)
    assert asked  # or the test shows nothing
    assert fit.status == "ok"
    assert np.isfinite(fit.score)
