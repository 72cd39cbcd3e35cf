"""Canonical order, symmetries, splits, alignment and addends of expressions."""

from collections import Counter
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given

from autokernel.expression import (
    Arranged,
    Leaf,
    addends,
    align,
    arrange,
    meeting_operator,
    n_kernel_params,
    node_swaps,
    parse_expression,
    slots_of,
    splits,
    theta_order,
)
from autokernel.inference import cross_covariance
from autokernel.kernels import ADD, MULTIPLY
from tests.batteries import Problem, covariance, expressions, problems, reshuffled, seeds, walks


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


def numbered(expression, order):
    """The expression in which leaf i differs from the others by order[i] in its column."""
    numbers = iter(order)
    for place, tree in enumerate(expression.subtrees()):
        if isinstance(tree, Leaf):
            leaf = Leaf(tree.kernel, 100 * tree.column + next(numbers))
            expression = expression.replace(place, leaf)
    return expression


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


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("NOISE", []),
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


@given(tree=walks(), seed=seeds)
def test_the_covariances_of_the_addends_add_up(tree, seed):
    rng = np.random.default_rng(seed)
    X, Z = rng.uniform(size=(7, 2)), rng.uniform(size=(5, 2))
    params = np.exp(rng.normal(size=n_kernel_params(tree)))
    parts = [
        cross_covariance(one.expression, X, Z).forward(params[one.entries]) for one in addends(tree)
    ]
    # at most six factors in another order: rounding
    whole = cross_covariance(tree, X, Z).forward(params)
    np.testing.assert_allclose(sum(parts), whole, rtol=1e-10, atol=1e-13 * abs(whole).max())
