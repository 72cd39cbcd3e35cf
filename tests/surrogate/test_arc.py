from collections import Counter

import numpy as np
import pytest
from hypothesis import given

from autokernel import parse_expression
from autokernel.expression import Grammar, arrange
from autokernel.kernels import ADD, BASE_KERNELS, MULTIPLY
from autokernel.search.distances import N_LEVELS, arc_distances, level_distances
from tests.batteries import expressions, reshuffled, seeds

GRAMMAR = Grammar(tuple(BASE_KERNELS.values()), (ADD, MULTIPLY), columns=(0, 1, 2), max_leaves=10)


def walks(n, seed):
    """Expressions of one to ten leaves."""
    rng = np.random.default_rng(seed)
    return [
        GRAMMAR.random_walk(GRAMMAR.leaves[i % len(GRAMMAR.leaves)], int(rng.integers(14)), rng)
        for i in range(n)
    ]


def distances(one, other, **options):
    """Distances (n_levels,) of two texts."""
    pair = [parse_expression(one)], [parse_expression(other)]
    return level_distances(*pair, **{"n_features": 3, **options})[:, 0, 0].tolist()


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
    computed = level_distances(kernels, n_features=3)
    np.testing.assert_array_equal(computed, np.moveaxis(expected, -1, 0))  # whole numbers


def test_deeper_positions_count_in_the_last_level():
    kernels = walks(60, seed=2)
    all_levels = level_distances(kernels, n_features=3, n_levels=12)
    assert all_levels[4:].any()
    few = level_distances(kernels, n_features=3, n_levels=4)
    np.testing.assert_array_equal(few[:3], all_levels[:3])
    np.testing.assert_array_equal(few[3], all_levels[3:].sum(axis=0))


def test_distances_are_symmetric_and_zero_for_equals_alone():
    kernels = list({kernel.canonical: kernel for kernel in walks(80, seed=3)}.values())
    D = level_distances(kernels, n_features=3)
    np.testing.assert_array_equal(D, D.swapaxes(1, 2))
    assert D.min() == 0
    np.testing.assert_array_equal(D.sum(axis=0) == 0, np.eye(len(kernels), dtype=bool))


@given(expressions(GRAMMAR), seeds)
def test_the_order_and_grouping_of_operands_do_not_matter(expression, seed):
    variants = [expression, reshuffled(expression, np.random.default_rng(seed))]
    np.testing.assert_array_equal(level_distances(variants, n_features=3), 0)


@pytest.mark.parametrize("seed", range(5))
def test_the_kernel_is_positive_semi_definite(seed):
    D = level_distances(walks(200, seed=seed), n_features=3)
    omega = np.cumprod(np.random.default_rng(seed).uniform(size=N_LEVELS))
    K = np.exp(-0.5 * np.tensordot(omega**2, D, axes=1))
    # many walks end at one tree, so that the smallest eigenvalue is 0; its computed value is off
    # by a small multiple of eps times the norm of the matrix, which is at most 200
    assert np.linalg.eigvalsh(K)[0] > -200 * 200 * np.finfo(float).eps


def test_distances_to_others_are_a_part_of_the_square_matrix():
    kernels = walks(50, seed=4)
    square = level_distances(kernels, n_features=3)
    part = level_distances(kernels[:13], kernels[20:], n_features=3)
    assert part.shape == (N_LEVELS, 13, 30)
    np.testing.assert_array_equal(part, square[:, :13, 20:])


@pytest.mark.parametrize("side", ["rows", "columns"])
def test_a_column_beyond_n_features_is_an_error(side):
    pair = ("SE[0] + LIN[2]", "SE[1]") if side == "rows" else ("SE[1]", "SE[0] + LIN[2]")
    with pytest.raises(ValueError, match=r"n_features must exceed.* got 2 and SE\[0\] \+ LIN\[2\]"):
        distances(*pair, n_features=2)


def test_there_must_be_a_level():
    with pytest.raises(ValueError, match="n_levels must be at least 1, got 0"):
        distances("SE[0]", "SE[0]", n_levels=0)


def test_no_expressions_have_no_distances():
    assert level_distances([], n_features=3).shape == (N_LEVELS, 0, 0)
    assert level_distances([parse_expression("SE[0]")], [], n_features=3).shape == (N_LEVELS, 1, 0)


def test_all_positions_together_count_the_same():
    trees = [parse_expression(text) for text in ("SE[0]", "SE[0] + LIN[1]", "SE[0] * LIN[1]")]
    # one position is other and two are active in one tree alone; one is other
    expected = [[0, 4, 4], [4, 0, 2], [4, 2, 0]]
    np.testing.assert_array_equal(arc_distances(trees, n_features=2), expected)
    np.testing.assert_array_equal(
        arc_distances(trees[:1], trees[1:], n_features=2), [expected[0][1:]]
    )
