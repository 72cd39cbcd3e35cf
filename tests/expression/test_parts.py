from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given

from autokernel.expression import ADD, MULTIPLY, align, joining_operator, parse_expression, splits
from autokernel.kernels import BASE_KERNELS
from tests.batteries import covariance, expressions, problems, reshuffled, seeds


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("SE[0]", []),
        ("SE[0] * LIN[0]", []),
        ("SE[0] + LIN[0]", [("LIN[0]", "SE[0]"), ("SE[0]", "LIN[0]")]),
        (
            "SE[0] + PER[0] * (LIN[0] + RQ[0])",  # the outer sum alone
            [("PER[0] * (LIN[0] + RQ[0])", "SE[0]"), ("SE[0]", "PER[0] * (LIN[0] + RQ[0])")],
        ),
        (
            "SE[0] * (LIN[0] + RQ[0] * PER[0]) * PER[1]",
            [
                ("SE[0] * (RQ[0] * PER[0]) * PER[1]", "LIN[0]"),
                ("SE[0] * LIN[0] * PER[1]", "RQ[0] * PER[0]"),
            ],
        ),
        (
            "(SE[0] + LIN[0]) * (RQ[0] + PER[0])",
            [
                ("LIN[0] * (RQ[0] + PER[0])", "SE[0]"),
                ("SE[0] * (RQ[0] + PER[0])", "LIN[0]"),
                ("(SE[0] + LIN[0]) * PER[0]", "RQ[0]"),
                ("(SE[0] + LIN[0]) * RQ[0]", "PER[0]"),
            ],
        ),
    ],
)
def test_each_term_of_a_sum_is_taken_away_in_turn(text, parts):
    found = list(splits(parse_expression(text)))
    assert [(split.rest.canonical, split.term.canonical) for split in found] == [
        tuple(parse_expression(part).canonical for part in pair) for pair in parts
    ]


@given(expressions())
def test_the_leaves_of_rest_and_term_are_read_at_their_places_in_the_whole(expression):
    for split in splits(expression):
        assert sorted(split.rest_leaves + split.term_leaves) == list(range(expression.n_leaves))
        for part, places in ((split.rest, split.rest_leaves), (split.term, split.term_leaves)):
            assert part.leaves == tuple(expression.leaves[place] for place in places)


@given(problems(n_features=2))
def test_a_rest_is_the_kernel_in_which_the_term_is_zero(problem):
    expression = problem.expression
    starts = np.cumsum([0, *(len(_parameters(leaf)) for leaf in expression.leaves)])
    places = [np.arange(*ends) for ends in pairwise(starts)]
    params = np.exp(problem.theta[:-1])
    for split in splits(expression):
        without = params.copy()
        for leaf in split.term_leaves:
            names = _parameters(expression.leaves[leaf])
            zero = [name in ("variance", "offset") for name in names]
            without[places[leaf][zero]] = 0.0
        rest = covariance(
            split.rest,
            np.concatenate([params[places[leaf]] for leaf in split.rest_leaves]),
            problem.X,
        )
        whole = covariance(expression, without, problem.X)
        # sums and products in another order: rounding
        np.testing.assert_allclose(rest, whole, rtol=1e-12, atol=1e-13 * abs(whole).max())


def _parameters(leaf):
    return BASE_KERNELS[leaf.kernel].parameter_names


@pytest.mark.parametrize(
    ("text", "operators"),
    [
        ("SE[0] + SE[0]", {(0, 1): ADD}),
        ("SE[0] * SE[0]", {(0, 1): MULTIPLY}),
        ("SE[0] + (SE[0] + SE[0])", {(0, 1): ADD, (0, 2): ADD, (1, 2): ADD}),
        ("SE[0] + SE[0] * SE[0]", {(0, 1): ADD, (0, 2): ADD, (1, 2): MULTIPLY}),
        ("(SE[0] + SE[0]) * SE[0]", {(0, 1): ADD, (0, 2): MULTIPLY, (1, 2): MULTIPLY}),
        (
            "SE[0] * (SE[0] + SE[0] * SE[0])",
            {(0, 1): MULTIPLY, (0, 2): MULTIPLY, (1, 2): ADD, (1, 3): ADD, (2, 3): MULTIPLY},
        ),
    ],
)
def test_two_leaves_are_joined_where_they_meet(text, operators):
    expression = parse_expression(text)
    for (one, other), operator in operators.items():
        assert joining_operator(expression, one, other) == operator
        assert joining_operator(expression, other, one) == operator


@given(expressions())
def test_two_leaves_are_joined_by_the_lowest_operation_that_holds_both(expression):
    def check(tree, start):
        if tree.n_leaves == 1:
            return
        middle, stop = start + tree.left.n_leaves, start + tree.n_leaves
        for one in range(start, middle):
            for other in range(middle, stop):
                assert joining_operator(expression, one, other) == tree.operator
        check(tree.left, start)
        check(tree.right, middle)

    check(expression, 0)


@pytest.mark.parametrize("places", [(0, 0), (1, 1), (0, 2), (-1, 0)])
def test_what_joins_needs_two_leaves(places):
    with pytest.raises(IndexError, match=r"two leaves must be in SE\[0\] \+ SE\[0\]"):
        joining_operator(parse_expression("SE[0] + SE[0]"), *places)


@pytest.mark.parametrize(
    ("one", "other", "pairs"),
    [
        ("SE[0]", "SE[0]", [(0, 0)]),
        ("SE[0]", "SE[1]", []),
        ("SE[0] + LIN[0]", "LIN[0] + SE[0]", [(0, 1), (1, 0)]),
        ("LIN[0] + PER[0] * SE[0] + SE[0]", "SE[0] * PER[0] + LIN[0]", [(0, 2), (1, 1), (2, 0)]),
        # one factor of a product, for terms are not factors
        ("PER[0] + SE[0]", "PER[0] * SE[0]", [(0, 0)]),
        ("PER[0] * SE[0]", "SE[0] + RQ[0]", [(1, 0)]),
        # a leaf alone goes to the leaf that stands alone
        ("SE[0]", "LIN[0] * SE[0] + SE[0]", [(0, 2)]),
        ("SE[0] + LIN[0]", "LIN[0] * SE[0] + SE[0]", [(0, 2), (1, 0)]),
        # the term with the most to pair goes first
        ("PER[0] * SE[0]", "PER[0] + SE[0] * PER[0]", [(0, 2), (1, 1)]),
        (
            "SE[0] * (PER[0] + LIN[0])",
            "(LIN[0] + RQ[0] + PER[0]) * SE[0] + PER[0]",
            [(0, 3), (1, 2), (2, 0)],
        ),
    ],
)
def test_leaves_that_play_the_same_part_are_paired(one, other, pairs):
    assert align(parse_expression(one), parse_expression(other)) == pairs


@given(expressions(), expressions())
def test_pairs_are_of_equal_leaves_one_to_one(one, other):
    pairs = align(one, other)
    ours, theirs = zip(*pairs, strict=True) if pairs else ((), ())
    assert max(Counter(ours).values(), default=1) == 1
    assert max(Counter(theirs).values(), default=1) == 1
    assert [one.leaves[a] for a in ours] == [other.leaves[b] for b in theirs]


@given(expressions(), expressions())
def test_what_joins_two_paired_leaves_joins_their_partners(one, other):
    pairs = align(one, other)
    for a, b in pairs:
        for c, d in pairs:
            if a < c:
                assert joining_operator(one, a, c) == joining_operator(other, b, d)


@given(expressions(), seeds)
def test_a_kernel_is_aligned_whole_with_itself_in_any_order(expression, seed):
    other = reshuffled(expression, np.random.default_rng(seed))
    assert len(align(expression, other)) == expression.n_leaves


@given(expressions(max_leaves=4), expressions(max_leaves=3))
def test_a_kernel_is_aligned_whole_with_its_sum_with_another(expression, other):
    assert len(align(expression, other + expression)) == expression.n_leaves
