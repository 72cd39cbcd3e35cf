from collections import Counter

import numpy as np
import pytest

from autokernel import parse_expression
from autokernel.expression import Grammar, arrange
from autokernel.kernels import ADD, BASE_KERNELS, MULTIPLY
from autokernel.search.arc import N_LEVELS, ArcKernel

GRAMMAR = Grammar(tuple(BASE_KERNELS.values()), (ADD, MULTIPLY), columns=(0, 1, 2), max_leaves=10)


def walks(n, seed):
    """Expressions of one to ten leaves."""
    rng = np.random.default_rng(seed)
    return [
        GRAMMAR.random_walk(GRAMMAR.leaves[i % len(GRAMMAR.leaves)], int(rng.integers(14)), rng)
        for i in range(n)
    ]


def distances(one, other):
    """Squared distances (n_levels,) of two texts, twice those of the kernel."""
    halves = ArcKernel().distances([parse_expression(one)], [parse_expression(other)])
    return (2 * halves[:, 0, 0]).tolist()


def by_position(expression):
    """Values of positions, numbered as in a heap: the children of k are 2 k and 2 k + 1."""
    values, trees = {}, {1: arrange(expression).expression}
    while trees:
        number, tree = trees.popitem()
        if tree.n_leaves == 1:
            values[number] = (tree.kernel, tree.column)
        else:
            values[number] = tree.operator
            left, right = tree.operands
            trees |= {2 * number: left, 2 * number + 1: right}
    return values


def definition(one, other):
    """Distances by level, from the categorical pseudo-metric (Hutter and Osborne, section 3)."""
    one, other = by_position(one), by_position(other)
    total = Counter()
    for number in one.keys() | other.keys():
        level = min(number.bit_length() - 1, N_LEVELS - 1)
        if number in one and number in other:
            total[level] += 2 * (one[number] != other[number])
        else:
            total[level] += 1
    return [total[level] for level in range(N_LEVELS)]


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("SE[0]", "SE[0]", [0]),
        ("SE[0]", "LIN[0]", [2]),
        ("SE[0]", "SE[1]", [2]),
        # the root differs, two positions are active in one
        ("SE[0]", "LIN[0] + SE[0]", [2, 2]),
        # the same children below another root
        ("LIN[0] + SE[0]", "LIN[0] * SE[0]", [2]),
        # in canonical order, LIN on the left: on the right, SE against *, and two below it
        ("SE[0] + LIN[0]", "PER[0] * SE[0] + LIN[0]", [0, 2, 2]),
        # (LIN * PER) * SE against LIN * SE: LIN against *, then two below it
        ("SE[0] * PER[0] * LIN[0]", "LIN[0] * SE[0]", [0, 2, 2]),
        # two sums under a product against one leaf: one, two and four positions
        ("(SE[0] + LIN[0]) * (RQ[1] + PER[2])", "SE[2]", [2, 2, 4]),
    ],
)
def test_distances_of_examples_by_hand(one, other, expected):
    assert distances(one, other) == expected + [0] * (N_LEVELS - len(expected))


def test_distances_are_those_of_the_definition_at_every_position():
    kernels = walks(40, seed=1)
    expected = np.array([[definition(e, f) for f in kernels] for e in kernels])
    computed = 2 * ArcKernel().distances(kernels)
    np.testing.assert_array_equal(computed, np.moveaxis(expected, -1, 0))  # whole numbers
