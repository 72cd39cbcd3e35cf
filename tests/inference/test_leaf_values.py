"""Likelihoods from values of leaves that are kept, against those of the whole kernel."""

import numpy as np
import pytest
from hypothesis import given, settings

from autokernel.data import Columns, RowNoise, Target
from autokernel.expression import Leaf, parse_expression, slots_of
from autokernel.inference import ExactLikelihood, LeafValues, TrainingData, leaf_values
from tests.batteries import problems, seeds
from tests.own_kernels import OrnsteinUhlenbeck


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
        found = values.log_likelihoods(expression, node, thetas)
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


class Counting(OrnsteinUhlenbeck):
    """Notes the lengthscales at which it is computed."""

    def __init__(self):
        self._computed = []

    def value(self, params, pairs):
        self._computed.append(params[0])
        return super().value(params, pairs)


@pytest.mark.parametrize(
    ("n_kept", "computed"),
    [(9, [1.0, 2.0, 3.0]), (2, [1.0, 2.0, 3.0, 1.0]), (1, [1.0, 2.0, 3.0, 2.0, 1.0])],
)
def test_values_are_computed_again_only_if_they_were_forgotten(monkeypatch, n_kept, computed):
    n = 20
    monkeypatch.setattr(leaf_values, "MAX_LEAF_BYTES", n_kept * 8 * n * (n + 1) // 2)
    values = LeafValues(TrainingData(np.linspace(0, 1, n)[:, None], np.zeros(n)))
    kernel = Counting()
    for lengthscale in (1.0, 2.0, 3.0, 3.0, 2.0, 1.0):
        values(Leaf(kernel, 0), np.array([lengthscale, 1.0]))
    assert kernel._computed == computed


@pytest.mark.parametrize("text", ["SE[0]", "CAT[0]"])
def test_a_kernel_of_one_leaf_has_nothing_beside_it(text):
    rng = np.random.default_rng(1)
    data = TrainingData(rng.integers(0, 3, size=(12, 1)).astype(float), rng.normal(size=12))
    check_every_leaf(parse_expression(text), data, rng)
