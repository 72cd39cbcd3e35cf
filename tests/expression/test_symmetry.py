from itertools import permutations

import numpy as np
import pytest

from autokernel import parse_expression
from autokernel.expression import Leaf, node_swaps

TEXTS = {
    "SE[0]": 1,
    "SE[0] + SE[1]": 1,
    "SE[0] + SE[0]": 2,
    "SE[0] * LIN[0] + SE[0]": 1,
    "SE[0] * LIN[0] + RQ[0] + LIN[0] * SE[0]": 2,
    "SE[0] + RQ[0] + SE[0] + SE[0]": 6,
    "(SE[0] + SE[0]) * (SE[0] + SE[0])": 8,
    "(SE[0] + SE[0]) * LIN[0] + SE[0] + SE[0] + LIN[0] * (SE[0] + SE[0])": 16,
}
every_text = pytest.mark.parametrize(("text", "n_orders"), TEXTS.items())


def numbered(expression, order, start=0):
    """The expression in which leaf i is told from the others by order[i] in its column."""
    if expression.n_leaves == 1:
        (leaf,) = expression.leaves
        return Leaf(leaf.kernel, 100 * leaf.column + order[start])
    left, right = expression.operands
    middle = start + left.n_leaves
    return expression.with_operands([numbered(left, order, start), numbered(right, order, middle)])


def orders_made_by(swaps, n_leaves):
    """All orders that the swaps make one after another."""
    orders = [tuple(range(n_leaves))]
    for order in orders:
        orders += {tuple(order[i] for i in swap) for swap in swaps} - set(orders)
    return orders


@every_text
def test_a_swap_gives_the_same_kernel_again(text, n_orders):
    expression = parse_expression(text)
    same = numbered(expression, range(expression.n_leaves)).canonical
    for swap in node_swaps(expression):
        assert swap != tuple(range(expression.n_leaves))
        assert numbered(expression, swap).canonical == same


@every_text
def test_the_swaps_make_all_orders_that_give_the_same_kernel(text, n_orders):
    expression = parse_expression(text)
    n_leaves = expression.n_leaves
    made = orders_made_by(node_swaps(expression), n_leaves)
    assert len(made) == n_orders
    if n_leaves <= 5:
        same = numbered(expression, range(n_leaves)).canonical
        assert sorted(made) == [
            order
            for order in permutations(range(n_leaves))
            if numbered(expression, order).canonical == same
        ]


def test_ten_equal_leaves_have_nine_swaps():
    expression = parse_expression(" + ".join(["SE[0]"] * 10))
    assert len(node_swaps(expression)) == 9  # not 10! orders
    np.testing.assert_array_equal(np.sort(node_swaps(expression), axis=1), [range(10)] * 9)
