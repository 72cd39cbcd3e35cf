from collections import Counter

import numpy as np
import pytest
from hypothesis import given

from autokernel.expression import align, meeting_operator, parse_expression, slots_of, splits
from autokernel.kernels import ADD, MULTIPLY
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
def test_the_nodes_of_rest_and_term_are_read_at_their_places_in_the_whole(expression):
    for split in splits(expression):
        assert sorted(split.rest_nodes + split.term_nodes) == list(range(len(expression.nodes)))
        for part, nodes in ((split.rest, split.rest_nodes), (split.term, split.term_nodes)):
            assert part.nodes == tuple(expression.nodes[node] for node in nodes)


@given(problems(n_features=2))
def test_a_rest_is_the_kernel_in_which_the_term_is_zero(problem):
    expression = problem.expression
    slots = slots_of(expression)
    params = np.exp(problem.theta[:-1])
    for split in splits(expression):
        without = params.copy()
        for node in split.term_nodes:
            zero = [p.name in ("variance", "offset") for p in slots[node].node.parameters]
            without[slots[node].entries][zero] = 0.0
        rest = covariance(
            split.rest,
            np.concatenate([params[slots[node].entries] for node in split.rest_nodes]),
            problem.X,
        )
        whole = covariance(expression, without, problem.X)
        # sums and products in another order: rounding
        np.testing.assert_allclose(rest, whole, rtol=1e-12, atol=1e-13 * abs(whole).max())


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
def test_two_nodes_are_joined_where_they_meet(text, operators):
    expression = parse_expression(text)
    for (one, other), operator in operators.items():
        assert meeting_operator(expression, one, other) == operator
        assert meeting_operator(expression, other, one) == operator


@given(expressions())
def test_two_nodes_are_joined_by_the_lowest_operation_that_holds_both(expression):
    def check(tree, start):
        if tree.n_leaves == 1:
            return
        left, right = tree.operands
        middle, stop = start + left.n_leaves, start + tree.n_leaves
        for one in range(start, middle):
            for other in range(middle, stop):
                assert meeting_operator(expression, one, other) == tree.operator
        check(left, start)
        check(right, middle)

    check(expression, 0)


@pytest.mark.parametrize("places", [(0, 0), (1, 1), (0, 2), (-1, 0)])
def test_a_meeting_needs_two_nodes(places):
    with pytest.raises(IndexError, match=r"two nodes must be in SE\[0\] \+ SE\[0\]"):
        meeting_operator(parse_expression("SE[0] + SE[0]"), *places)


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
def test_nodes_that_play_the_same_part_are_paired(one, other, pairs):
    assert align(parse_expression(one), parse_expression(other)) == pairs


@given(expressions(), expressions())
def test_pairs_are_of_equal_nodes_one_to_one(one, other):
    pairs = align(one, other)
    ours, theirs = zip(*pairs, strict=True) if pairs else ((), ())
    assert max(Counter(ours).values(), default=1) == 1
    assert max(Counter(theirs).values(), default=1) == 1
    assert [one.nodes[a] for a in ours] == [other.nodes[b] for b in theirs]


@given(expressions(), expressions())
def test_what_joins_two_paired_nodes_joins_their_partners(one, other):
    pairs = align(one, other)
    for a, b in pairs:
        for c, d in pairs:
            if a < c:
                assert meeting_operator(one, a, c) == meeting_operator(other, b, d)


@given(expressions(), seeds)
def test_a_kernel_is_aligned_whole_with_itself_in_any_order(expression, seed):
    other = reshuffled(expression, np.random.default_rng(seed))
    assert len(align(expression, other)) == expression.n_leaves


@given(expressions(max_leaves=4), expressions(max_leaves=3))
def test_a_kernel_is_aligned_whole_with_its_sum_with_another(expression, other):
    assert len(align(expression, other + expression)) == expression.n_leaves
