"""What the strategies of Bayesian optimisation share."""

import gc
import weakref
from dataclasses import replace

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm
from sklearn.base import clone

from autokernel.deadline import Deadline
from autokernel.evidence import Estimate
from autokernel.exceptions import OutOfTimeError
from autokernel.search import BOMS, SOT
from autokernel.search.distances import SOTKernel
from autokernel.search.methods.boms import HellingerKernel
from autokernel.search.methods.sot import UNIT, nats_to_gain, surrogate_below, warped
from tests.search.stand_ins import Noting, distinct_walks, history_of, proposed, task_of

SMALL = SOT(population_size=10)
either = pytest.mark.parametrize("strategy", [SMALL, BOMS()], ids=["evolution", "candidates"])


DESIGNED = history_of(*((" + ".join(n * ["SE[0]"]), -1.0) for n in (1, 2, 3)), n_design=3)


@either
def test_the_clock_is_looked_at_while_a_kernel_is_proposed(strategy):
    task = replace(task_of(), deadline=Deadline(-1.0))
    with pytest.raises(OutOfTimeError):
        proposed(strategy, task, DESIGNED)


def test_distances_take_no_longer_than_the_time_that_is_left():
    task = task_of(3)
    expressions = task.grammar.random_walks(200, np.random.default_rng(0))
    deadline = Deadline(np.inf)
    kernel_kernel = HellingerKernel(task.evaluator.data, {}, deadline=deadline)
    known = kernel_kernel.distances(expressions[:5], expressions[:5])
    deadline.cancel()
    with pytest.raises(OutOfTimeError):
        kernel_kernel.distances(expressions, expressions)
    np.testing.assert_array_equal(kernel_kernel.distances(expressions[:5], expressions[:5]), known)


def test_nothing_is_kept_of_a_task_that_is_over():
    task = task_of()
    proposed(BOMS(), task, DESIGNED)
    inputs = weakref.ref(task.evaluator.data)
    del task
    gc.collect()
    assert inputs() is None


@either
def test_each_next_kernel_is_sought_where_those_before_it_are_believed(strategy):
    noting = Noting()
    strategy = clone(strategy).set_params(acquisition=noting)
    batch = proposed(strategy, task_of(), DESIGNED, 3)
    for proposal, before, after in zip(batch, noting.beliefs, noting.beliefs[1:], strict=False):
        (mean, std), (believed, left) = (
            belief.surrogate.predict([proposal]) for belief in (before, after)
        )
        np.testing.assert_allclose(believed, mean, atol=1e-6)  # rounding
        assert left <= std + 1e-9
        assert after.best == max(before.best, mean[0])


@pytest.mark.parametrize(("mean", "std"), [(-3.0, 1.0), (-0.5, 0.2), (1.0, 0.7)])
def test_the_expected_gain_is_that_of_scores_whose_logs_are_normal(mean, std):
    def density_of_gain(gain):  # of nats above the best score
        [log] = warped(10.0, [10.0 + gain])
        return gain * norm.pdf(log, mean, std) / (UNIT + gain)

    value, _ = quad(density_of_gain, 0.0, np.inf, epsabs=1e-13)
    assert nats_to_gain(np.array([mean]), np.array([std]))[0] == pytest.approx(value, rel=1e-6)


def test_warped_scores_grow_with_scores_and_are_odd_about_the_best_one():
    scores = np.array([-40.0, -1.0, 2.0, 3.0, 4.0, 45.0])
    expected = np.log1p(np.array([43, 4, 1, 0, 1, 42]) / UNIT) * [-1, -1, -1, 0, 1, 1]
    np.testing.assert_allclose(warped(3.0, scores), expected)
    without_doubt = nats_to_gain(np.array([-2.0, 0.3]), np.zeros(2))
    np.testing.assert_allclose(without_doubt, [0.0, UNIT * np.expm1(0.3)], atol=1e-12)


def test_of_very_many_kernels_the_surrogate_has_the_best_and_some_of_the_others():
    kernels = distinct_walks(300, n_walks=600)
    scores = -0.1 * np.arange(300)
    known = [Estimate(one, score) for one, score in zip(kernels, scores, strict=True)]
    kernel = SOTKernel()
    surrogate = surrogate_below(0.0, known[::-1], kernel)
    few = surrogate_below(0.0, [*known[:100], *known[100::2]], kernel)
    near, far = (surrogate.predict(some)[1].mean() for some in (kernels[:100], kernels[100:]))
    assert near < far  # of which half are known
    np.testing.assert_allclose(
        surrogate.predict(kernels[:100])[0], few.predict(kernels[:100])[0], atol=0.3
    )
