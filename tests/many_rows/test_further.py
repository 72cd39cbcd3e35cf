"""Fits of one kernel to some rows that stand for many."""

import numpy as np
import pytest

from autokernel.evidence import Evaluator
from autokernel.evidence.laplace import laplace_log_evidence
from autokernel.evidence.posterior import LogPosterior
from autokernel.expression import NOISE, parse_expression
from autokernel.inference import InducingLikelihood, TrainingData
from autokernel.kernels import PRESETS
from autokernel.many_rows import ManyRows, approximation_for, rows_of_stages, shuffled_rows

PRIORS = dict(PRESETS["default"])


def many_rows(X, y, approximation):
    """Rows of which the first hundred are searched."""
    evaluator = Evaluator(TrainingData(X[:100], y[:100]), priors=PRIORS, seed=0)
    return ManyRows(approximation_for(approximation, len(y), 20), TrainingData(X, y), evaluator)


def searched(rows, text):
    return rows.evaluator(parse_expression(text))


def test_evidence_from_a_part_of_the_rows_is_that_of_all():
    """The Hessian grows with the rows; the part of the prior stays as it is."""
    rng = np.random.default_rng(0)
    x = rng.uniform(size=(10_000, 1))  # of which 8192 are fitted
    rows = many_rows(x, np.sin(6 * x[:, 0]) + 0.3 * rng.normal(size=10_000), "inducing")
    found = rows.fit(searched(rows, "SE[0]"), thorough=True)
    points = rows.approximation.bound(found, rows.data).points
    bound = InducingLikelihood(found.expression, rows.data, points)
    posterior = LogPosterior(bound, priors=PRIORS)
    assert found.log_posterior == pytest.approx(posterior.value(found.theta), abs=0.01)
    expected = laplace_log_evidence(found.log_posterior, posterior.hessian(found.theta))
    assert found.log_evidence == pytest.approx(expected, abs=0.3)  # by sampling of the rows


def test_the_evidence_of_all_rows_has_the_hessian_at_the_maximum():
    """It is computed with half of the blocks; the estimate of the run is 2 nats away."""
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(1500, 2))
    y = np.sin(6 * X[:, 0]) + X[:, 1] ** 2 + 0.3 * rng.normal(size=1500)
    rows = many_rows(X, y, "neighbours")
    found = rows.fit(searched(rows, "SE[0] * SE[1]"), thorough=True)
    every = rows.approximation.likelihood(found, rows.data, thorough=True, rng=rng)
    hessian = LogPosterior(every, priors=PRIORS).hessian(found.theta)
    expected = laplace_log_evidence(found.log_posterior, hessian)
    assert found.log_evidence == pytest.approx(expected, abs=1.0)


def test_rows_that_stand_for_many_others_find_nothing_in_noise():
    """Each of a thousand rows stands for 39: a gain by the fit to them is no evidence."""
    rng = np.random.default_rng(3)
    rows = many_rows(rng.uniform(size=(40_000, 1)), rng.normal(size=40_000), "neighbours")
    linear, noise = (rows.fit(searched(rows, text)) for text in ("LIN[0]", "NOISE"))
    assert linear.rows_for_each == pytest.approx(39.5)
    assert linear.score < noise.score
    exact = rows.fit_exactly(noise)
    assert exact.expression == NOISE
    assert noise.log_likelihood == pytest.approx(exact.log_likelihood, rel=0.05)


@pytest.mark.parametrize("n", [700, 1200, 5000])
@pytest.mark.parametrize("by_bounds", [False, True])
def test_rows_held_out_for_the_choice_are_none_of_the_search(n, by_bounds):
    rows = many_rows(np.arange(n)[:, None], np.zeros(n), "neighbours")
    n_of_stages = rows_of_stages("neighbours", n, by_bounds=by_bounds, climbs=not by_bounds)
    chosen = shuffled_rows(n, 0)[: max(n_of_stages)]
    given, held_out = (part.X.ravel() for part in rows.given_and_held_out)
    assert (by_bounds and n <= 1000) or not set(chosen) & set(held_out)
    assert not set(given) & set(held_out)
    assert len(given) + len(held_out) == n


@pytest.mark.parametrize(
    ("name", "n", "is_exact", "climbs", "n_of_stages"),
    [
        ("auto", 250, True, True, (250,)),
        ("auto", 600, True, True, (250, 600)),
        ("auto", 1000, True, True, (250, 1000)),
        ("auto", 1001, False, True, (250, 600)),
        ("auto", 600, True, False, (600,)),
        ("auto", 601, True, False, (500, 601)),
        ("auto", 1001, False, False, (500,)),
        ("inducing", 100, False, True, (100,)),
        ("inducing", 700, False, True, (250, 560)),
        ("exact", 5000, True, True, (250, 5000)),
        ("exact", 5000, True, False, (5000,)),
    ],
)
def test_auto_is_exact_up_to_1000_rows_and_a_climb_begins_on_250(
    name, n, is_exact, climbs, n_of_stages
):
    assert (approximation_for(name, n, 512) is None) == is_exact
    assert rows_of_stages(name, n, by_bounds=False, climbs=climbs) == n_of_stages
