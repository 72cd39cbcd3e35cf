"""Likelihoods from values of leaves that are kept, against those of the whole kernel."""

import numpy as np
import pytest
from hypothesis import given, settings

from autokernel.data import Columns, RowNoise, Target
from autokernel.expression import Leaf, parse_expression, slots_of
from autokernel.inference import ExactLikelihood, LeafValues, TrainingData, leaf_values
from tests.batteries import problems, seeds


def points_of(expression, node, n_points, rng):
    """Draw points that differ by the parameters of one leaf and by the noise."""
    slots = slots_of(expression)
    thetas = np.tile(rng.normal(-1.0, 0.7, slots[-1].entries.stop + 1), (n_points, 1))
    for entries in (slots[node].entries, slice(-1, None)):
        thetas[:, entries] = rng.normal(-1.0, 0.7, thetas[:, entries].shape)
    return thetas


def check_every_leaf(expression, data, rng):
    values, whole = LeafValues(data), ExactLikelihood(expression, data)
    leaves = [n for n, node in enumerate(expression.nodes) if isinstance(node, Leaf)]
    for node in [*leaves, *leaves]:  # the second time from values that are kept
        thetas = points_of(expression, node, 3, rng)
        found = values.log_likelihoods(expression, slots_of(expression), node, thetas)
        expected = [whole.value(theta) for theta in thetas]
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


@given(problems(n_features=3, has_row_noise=True), seeds)
@settings(max_examples=25)
def test_they_are_those_of_the_whole_kernel(problem, seed):
    if problem.expression.leaves:
        check_every_leaf(problem.expression, problem.data, np.random.default_rng(seed))


def test_they_know_gaps_scales_and_a_target_on_a_scale():
    rng = np.random.default_rng(0)
    X = np.exp(rng.normal(size=(25, 3)))
    X[:, 2] = rng.integers(0, 3, 25)
    X[[3, 8, 9], 0] = np.nan
    y, noise = np.exp(rng.normal(size=25)), RowNoise(rng.uniform(0.5, 2.0, 25))
    columns, target = Columns.of_names(None, 3).of_rows(X), Target.of(y, noise)
    data = TrainingData(columns.inputs(X, first_row=0), target.forward(y), noise, target)
    kernel = parse_expression("(SE[0] + LIN[log(1)]) * CAT[2] + PER[0] * SE[log(1)]").on("log")
    check_every_leaf(kernel, data, rng)


def test_a_memory_that_is_full_forgets_the_oldest_values(monkeypatch):
    monkeypatch.setattr(leaf_values, "MAX_KEPT_BYTES", 1000)
    rng = np.random.default_rng(0)
    data = TrainingData(rng.uniform(size=(20, 2)), rng.normal(size=20))
    check_every_leaf(parse_expression("SE[0] * RQ[1] + PER[0]"), data, rng)


@pytest.mark.parametrize("text", ["SE[0]", "CAT[0]"])
def test_a_kernel_of_one_leaf_has_nothing_beside_it(text):
    rng = np.random.default_rng(1)
    data = TrainingData(rng.integers(0, 3, size=(12, 1)).astype(float), rng.normal(size=12))
    check_every_leaf(parse_expression(text), data, rng)
