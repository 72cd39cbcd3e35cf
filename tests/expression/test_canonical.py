import numpy as np
import pytest
from hypothesis import given

from autokernel.expression import arrange, parse_expression, theta_order
from tests.batteries import Problem, covariance, expressions, problems, reshuffled, seeds


@given(expressions(), seeds)
def test_all_orders_and_groupings_of_a_kernel_are_arranged_alike(expression, seed):
    other = reshuffled(expression, np.random.default_rng(seed))
    assert arrange(other)[0] == arrange(expression)[0]


@given(expressions())
def test_an_arranged_kernel_is_the_same_kernel_and_stays_as_it_is(expression):
    arranged, leaves = arrange(expression)
    assert arranged.canonical == expression.canonical
    assert sorted(leaves) == list(range(expression.n_leaves))
    assert arranged.leaves == tuple(expression.leaves[leaf] for leaf in leaves)
    assert arrange(arranged) == (arranged, list(range(expression.n_leaves)))


@given(problems(n_features=2), seeds)
def test_parameters_that_follow_their_leaves_give_the_same_covariance(problem: Problem, seed: int):
    written = reshuffled(problem.expression, np.random.default_rng(seed))
    arranged, leaves = arrange(written)
    moved = problem.theta[theta_order(written, leaves)]
    assert moved[-1] == problem.theta[-1]
    K = covariance(written, np.exp(problem.theta[:-1]), problem.X)
    # sums and products in another order: rounding
    np.testing.assert_allclose(
        covariance(arranged, np.exp(moved[:-1]), problem.X), K, rtol=1e-12, atol=1e-13 * K.max()
    )


@pytest.mark.parametrize(
    ("text", "arranged", "leaves"),
    [
        ("SE[0]", "SE[0]", [0]),
        ("SE[0] + LIN[1]", "LIN[1] + SE[0]", [1, 0]),
        ("SE[1] + (SE[0] + SE[1])", "SE[0] + SE[1] + SE[1]", [1, 0, 2]),
        ("SE[0] * (RQ[0] + LIN[0]) + PER[0]", "(LIN[0] + RQ[0]) * SE[0] + PER[0]", [2, 1, 0, 3]),
        ("RQ[0] * LIN[0] + LIN[0] * RQ[0]", "LIN[0] * RQ[0] + LIN[0] * RQ[0]", [1, 0, 2, 3]),
    ],
)
def test_operands_are_sorted_by_their_texts(text, arranged, leaves):
    assert arrange(parse_expression(text)) == (parse_expression(arranged), leaves)
