"""Evaluations of noise alone."""

import numpy as np
import pytest

from autokernel import evaluate_kernel, parse_expression
from autokernel.evidence import Evaluator
from autokernel.evidence.warm_starts import warm_starts_from_similar
from autokernel.expression import NOISE

RATE = 2.0  # of the default prior of the noise, whose shape is one


def draw(n_samples, *, scale=1.0):
    rng = np.random.default_rng(n_samples)
    return rng.uniform(size=(n_samples, 1)), scale * rng.normal(size=n_samples)


@pytest.fixture(scope="module")
def evaluator():
    return Evaluator(*draw(30), priors={}, seed=0)


@pytest.mark.parametrize("scale", [0.01, 1.0, 100.0])
@pytest.mark.parametrize("n_samples", [3, 40, 400])  # 400: modes are searched on a subsample
def test_a_fit_finds_the_highest_variance(n_samples, scale):
    X, y = draw(n_samples, scale=scale)
    fit = evaluate_kernel("NOISE", X, y)
    # -n/2 log s - S / (2 s) + log s - rate s has its maximum where
    # rate s^2 + (n/2 - 1) s - S/2 = 0
    half = n_samples / 2 - 1
    highest = (-half + np.sqrt(half**2 + 2 * RATE * (y @ y))) / (2 * RATE)
    assert (fit.status, fit.n_params) == ("ok", 1)
    # the search ends within 1e-8 nats of the maximum, whose curvature is one or more
    assert fit.theta == pytest.approx([np.log(highest)], abs=2e-4)
    slope = -n_samples / 2 + y @ y / (2 * np.exp(fit.theta[0])) + 1 - RATE * np.exp(fit.theta[0])
    gain = 0.5 * slope**2 / fit.hessian[0, 0]  # of a Newton step
    assert gain < 1e-8
    curvature = y @ y / (2 * highest) + RATE * highest
    assert fit.hessian[0, 0] == pytest.approx(curvature, rel=1e-3)  # a finite difference


def test_an_evaluation_of_noise_alone_is_printed():
    X, y = draw(8)
    fit = evaluate_kernel("NOISE", X, y)
    variance = np.exp(fit.theta[0])
    assert repr(fit) == f"NOISE: score {fit.score:.2f} nats (ok)\n  noise_variance = {variance:.4g}"


def test_noise_alone_is_scored_without_structure_and_loses_where_there_is_one():
    X, y = draw(30)
    wave = np.sin(6 * X[:, 0])
    for target, noise_wins in ((y, True), (wave + 0.1 * y, False)):
        scores = [evaluate_kernel(text, X, target).score for text in ("NOISE", "SE[0]")]
        assert (scores[0] > scores[1]) == noise_wins


def test_noise_alone_needs_no_warm_start_and_gives_none(evaluator):
    fits = [evaluator(parse_expression(text)) for text in ("SE[0]", "LIN[0]")]
    noise = evaluator(NOISE, fits)
    assert warm_starts_from_similar(NOISE, [*fits, noise]) == []
    assert warm_starts_from_similar(parse_expression("PER[0]"), [noise]) == []
    assert noise.score == evaluator(NOISE).score


def test_records_of_noise_alone_without_a_full_fit(evaluator):
    rough = evaluator.run_roughly(NOISE)
    assert (rough.expression, len(rough.theta)) == (NOISE, 1)
    assert np.isfinite(rough.log_posterior)
    failed = evaluator.without_fit(NOISE, "no time")
    assert (failed.expression, failed.score, failed.status) == (NOISE, -np.inf, "no time")


def test_evaluations_of_noise_alone_are_kept_under_a_key_of_their_own(evaluator):
    jobs = [evaluator.prepare(parse_expression(text)) for text in ("NOISE", "NOISE", "SE[0]")]
    first, again, other = map(evaluator.key, jobs)
    assert first == again != other
