"""Kernels far below the best one are scored with an estimate of the Hessian."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from autokernel import parse_expression
from autokernel.evidence import BIC, Evaluator
from autokernel.expression import unit_prior
from autokernel.kernels import check_priors

NEAR, FAR = 4.9, 5.1 + 3.0  # nats below the best score; the estimate may be off by three nats


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(60, 2))
    y = np.sin(6 * X[:, 0]) + X[:, 1] * np.cos(4 * X[:, 0]) + 0.2 * rng.normal(size=60)
    return X, (y - y.mean()) / y.std()


def make_evaluator(table, **settings):
    return Evaluator(*table, priors=check_priors({}), seed=0, **settings)


@pytest.fixture(scope="module")
def known(table):
    evaluator = make_evaluator(table)
    first = [evaluator(parse_expression(text)) for text in ("SE[0] + SE[1]", "SE[0] * SE[1]")]
    return [*first, evaluator(parse_expression("LIN[1]")), evaluator(parse_expression("RQ[0]"))]


def run_below(evaluator, text, known, distance):
    """Fit a kernel exactly, and again where the best known score is so much higher."""
    job = replace(evaluator.prepare(parse_expression(text), known), best=-np.inf)
    exact = evaluator.run(job)
    return exact, evaluator.run(replace(job, best=exact.score + distance))


@pytest.mark.parametrize("text", ["SE[0] + LIN[1]", "RQ[0] + SE[1] * SE[0]", "RQ[0] * SE[1]"])
def test_far_below_the_best_the_calls_for_the_hessian_are_saved(text, table, known):
    exact, rough = run_below(make_evaluator(table), text, known, FAR)
    assert rough.n_evaluations <= exact.n_evaluations - exact.n_params
    assert np.array_equal(rough.theta, exact.theta)
    assert rough.log_posterior == exact.log_posterior
    assert rough.status == "ok"
    # the largest error on 60 kernels of recorded searches was 2.8 nats
    assert rough.score == pytest.approx(exact.score, abs=3.0)
    assert rough.score != exact.score
    assert np.linalg.eigvalsh(rough.hessian)[0] > 0


@pytest.mark.parametrize("text", ["SE[0] + LIN[1]", "RQ[0] + SE[1] * SE[0]"])
def test_near_the_best_the_hessian_is_exact(text, table, known):
    exact, again = run_below(make_evaluator(table), text, known, NEAR - 3.0)
    assert again.score == exact.score
    assert np.array_equal(again.hessian, exact.hessian)


def test_the_best_score_is_that_of_the_known_fits(table, known):
    evaluator = make_evaluator(table)
    job = evaluator.prepare(parse_expression("SE[0] + LIN[1]"), known)
    assert job.best == max(evaluation.score for evaluation in known)
    assert evaluator.prepare(parse_expression("SE[0]")).best == -np.inf
    assert evaluator.key(job) != evaluator.key(replace(job, best=job.best + 1.0))


def test_the_prior_of_the_structure_counts(table, known):
    """A kernel that is as good in evidence is far below the best by its prior."""
    evaluator = make_evaluator(table, structure_prior=partial(unit_prior, nats=4.0, n_columns=2))
    exact, rough = run_below(evaluator, "SE[0] + LIN[1]", known, FAR)
    assert exact.log_structure_prior < -5
    assert rough.score != exact.score
    exact, again = run_below(evaluator, "SE[0] + LIN[1]", known, NEAR - 3.0)
    assert again.score == exact.score


def test_other_criteria_keep_the_exact_hessian(table, known):
    exact, again = run_below(make_evaluator(table, criterion=BIC()), "SE[0] + LIN[1]", known, 99.0)
    assert again.score == exact.score
    assert np.array_equal(again.hessian, exact.hessian)
