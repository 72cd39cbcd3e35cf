"""A kernel as a sum of products."""

import numpy as np
import pytest

from autokernel.expression import NOISE, Grammar, addends, n_kernel_params, parse_expression
from autokernel.inference import cross_covariance
from autokernel.kernels import BASE_KERNELS, OPERATORS


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SE[0]", ["SE[0]"]),
        ("SE[0] + LIN[1] * PER[0]", ["SE[0]", "LIN[1] * PER[0]"]),
        ("(SE[0] + LIN[1]) * PER[0]", ["SE[0] * PER[0]", "LIN[1] * PER[0]"]),
        ("SE[0] * (LIN[1] + PER[0])", ["SE[0] * LIN[1]", "SE[0] * PER[0]"]),
        (
            "(SE[0] + RQ[1]) * (LIN[0] + PER[1])",
            ["SE[0] * LIN[0]", "SE[0] * PER[1]", "RQ[1] * LIN[0]", "RQ[1] * PER[1]"],
        ),
    ],
)
def test_products_are_distributed_over_sums(text, expected):
    assert [str(one.expression) for one in addends(parse_expression(text))] == expected


def test_noise_alone_has_no_addends():
    assert addends(NOISE) == []


def random_expressions(n, *, max_leaves=6):
    rng = np.random.default_rng(0)
    grammar = Grammar(
        tuple(BASE_KERNELS.values())[:4], tuple(OPERATORS.values()), (0, 1), max_leaves
    )
    for _ in range(n):
        expression = grammar.leaves[rng.integers(len(grammar.leaves))]
        for _ in range(rng.integers(max_leaves)):
            neighbours = grammar.neighbours(expression)
            expression = neighbours[rng.integers(len(neighbours))]
        yield expression, rng.normal(size=n_kernel_params(expression))


def test_the_covariances_of_the_addends_add_up():
    rng = np.random.default_rng(1)
    X, Z = rng.uniform(size=(7, 2)), rng.uniform(size=(5, 2))
    for expression, theta in random_expressions(100):
        whole = cross_covariance(expression, X, Z).forward(np.exp(theta))
        parts = [
            cross_covariance(one.expression, X, Z).forward(np.exp(theta[one.entries]))
            for one in addends(expression)
        ]
        np.testing.assert_allclose(sum(parts), whole, rtol=1e-10)
