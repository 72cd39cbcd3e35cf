import numpy as np
import pytest
from hypothesis import given

from autokernel.expression import Arranged, arrange, parse_expression, theta_order
from tests.batteries import Problem, covariance, expressions, problems, reshuffled, seeds


@given(expressions(), seeds)
def test_all_orders_and_groupings_of_a_kernel_are_arranged_alike(expression, seed):
    other = reshuffled(expression, np.random.default_rng(seed))
    assert arrange(other).expression == arrange(expression).expression


@given(expressions())
def test_an_arranged_kernel_is_the_same_kernel_and_stays_as_it_is(expression):
    arranged, nodes = arrange(expression)
    assert arranged.canonical == expression.canonical
    assert sorted(nodes) == list(range(len(expression.nodes)))
    assert arranged.nodes == tuple(expression.nodes[node] for node in nodes)
    assert arrange(arranged) == Arranged(arranged, list(range(expression.n_leaves)))


@given(problems(n_features=2), seeds)
def test_parameters_that_follow_their_nodes_give_the_same_covariance(problem: Problem, seed: int):
    written = reshuffled(problem.expression, np.random.default_rng(seed))
    arranged, nodes = arrange(written)
    moved = problem.theta[theta_order(written, nodes)]
    assert moved[-1] == problem.theta[-1]
    K = covariance(written, np.exp(problem.theta[:-1]), problem.X)
    # sums and products in another order: rounding
    np.testing.assert_allclose(
        covariance(arranged, np.exp(moved[:-1]), problem.X), K, rtol=1e-12, atol=1e-13 * K.max()
    )


@pytest.mark.parametrize(
    ("text", "arranged", "nodes"),
    [
        ("SE[0]", "SE[0]", [0]),
        ("SE[0] + LIN[1]", "LIN[1] + SE[0]", [1, 0]),
        ("SE[1] + (SE[0] + SE[1])", "SE[0] + SE[1] + SE[1]", [1, 0, 2]),
        ("SE[0] * (RQ[0] + LIN[0]) + PER[0]", "(LIN[0] + RQ[0]) * SE[0] + PER[0]", [2, 1, 0, 3]),
        ("RQ[0] * LIN[0] + LIN[0] * RQ[0]", "LIN[0] * RQ[0] + LIN[0] * RQ[0]", [1, 0, 2, 3]),
    ],
)
def test_terms_are_sorted_by_their_texts(text, arranged, nodes):
    assert arrange(parse_expression(text)) == Arranged(parse_expression(arranged), nodes)
