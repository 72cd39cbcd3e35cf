"""Fitted kernels in words."""

import numpy as np

from autokernel.data.scaling import Scaling
from autokernel.explain import describe
from autokernel.expression import parse_expression


def test_each_addend_is_a_phrase_in_the_units_of_the_user():
    expression = parse_expression("LIN[0] + PER[0] * SE[0]")
    theta = np.log([1.0, 1.0, 0.5, 1.0, 0.25, 2.0, 1.0, 0.1])  # v c, l v p, l v, noise
    assert describe(expression, theta, scaling=Scaling(np.zeros(1), np.array([12.0]))) == [
        "linear",
        "repeating every 3 x smooth over 24",
    ]


def test_columns_are_named_where_there_are_several_and_sums_in_products_are_bracketed():
    expression = parse_expression("(SE[0] + RQ[1]) * LIN[1]")
    theta = np.log([0.5, 1.0, 0.2, 1.0, 1.0, 1.0, 1.0, 0.1])
    scaling = Scaling(np.zeros(2), np.array([10.0, 100.0]))
    assert describe(expression, theta, scaling=scaling, feature_names=["age", "water"]) == [
        "(smooth over 5 in age + smooth on several scales around 20 in water) x linear in water"
    ]
    assert describe(expression, theta, scaling=scaling)[0].endswith("x linear in x1")
