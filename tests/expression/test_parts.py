"""Canonical order, symmetries, splits, alignment and addends of expressions."""

from collections import Counter
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings

from autokernel.expression import (
    Leaf,
    addends,
    align,
    arrange,
    meeting_operator,
    n_kernel_params,
    node_swaps,
    numbered_like,
    parse_expression,
    slots_of,
    splits,
    theta_order,
    with_numbers,
)
from autokernel.inference import cross_covariance
from autokernel.kernels import Unit
from tests.batteries import (
    EVERY_OPERATOR,
    covariance,
    expressions,
    inputs_of,
    problems,
    reshuffled,
    seeds,
)
from tests.kernels.gate import GATE

trees = expressions(EVERY_OPERATOR)


def read(text):
    return parse_expression(text, operators=[GATE])


@given(trees, seeds)
def test_all_orders_and_groupings_of_a_kernel_are_arranged_alike(expression, seed):
    other = reshuffled(expression, np.random.default_rng(seed))
    assert arrange(other)[0] == arrange(expression)[0]


@given(trees)
def test_an_arranged_kernel_is_the_same_kernel_and_stays_as_it_is(expression):
    arranged, nodes = arrange(expression)
    assert arranged.canonical == expression.canonical
    assert sorted(nodes) == list(range(len(expression.nodes)))
    for node, original in zip(arranged.nodes, nodes, strict=True):  # its operands may be in order
        assert node.canonical == expression.nodes[original].canonical
    assert arrange(arranged) == (arranged, list(range(len(nodes))))


@given(problems(n_features=2), seeds)
def test_parameters_that_follow_their_nodes_give_the_same_covariance(problem, seed):
    written = reshuffled(problem.expression, np.random.default_rng(seed))
    arranged, nodes = arrange(written)
    moved = problem.theta[theta_order(written, nodes)]
    assert moved[-1] == problem.theta[-1]
    K = covariance(written, np.exp(problem.theta[:-1]), problem.X)
    # sums and products in another order: rounding
    np.testing.assert_allclose(
        covariance(arranged, np.exp(moved[:-1]), problem.X), K, rtol=1e-12, atol=1e-13 * K.max()
    )


def test_terms_are_sorted_by_their_texts():
    form, nodes = arrange(parse_expression("SE[0] * (RQ[0] + LIN[0]) + PER[0]"))
    assert (str(form), nodes) == ("(LIN[0] + RQ[0]) * SE[0] + PER[0]", [2, 1, 0, 3])


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
def test_the_swaps_make_all_orders_that_give_the_same_kernel(text, n_orders):
    expression = parse_expression(text)
    n_leaves, swaps = expression.n_leaves, node_swaps(expression)
    same = numbered(expression, range(n_leaves)).canonical
    for swap in swaps:
        assert swap != tuple(range(n_leaves))
        assert numbered(expression, swap).canonical == same
    made = orders_made_by(swaps, n_leaves)
    assert len(made) == n_orders
    if n_leaves <= 5:
        assert sorted(made) == [
            order
            for order in permutations(range(n_leaves))
            if numbered(expression, order).canonical == same
        ]


def test_operands_that_cannot_be_exchanged_are_no_symmetry():
    assert node_swaps(read("GATE[0](SE[0], SE[0])")) == []
    assert node_swaps(read("GATE[0](SE[0] + SE[0], LIN[0])")) == [(0, 2, 1, 3)]


def test_ten_equal_leaves_have_nine_swaps():
    expression = parse_expression(" + ".join(["SE[0]"] * 10))
    assert len(node_swaps(expression)) == 9  # not 10! orders
    np.testing.assert_array_equal(np.sort(node_swaps(expression), axis=1), [range(10)] * 9)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("SE[0]", ""),
        ("SE[0] * LIN[0]", ""),
        ("SE[0] + LIN[0]", "LIN[0] and SE[0]; SE[0] and LIN[0]"),
        (
            "SE[0] + PER[0] * (LIN[0] + RQ[0])",  # the outer sum alone
            "PER[0] * (LIN[0] + RQ[0]) and SE[0]; SE[0] and PER[0] * (LIN[0] + RQ[0])",
        ),
        (
            "SE[0] * (LIN[0] + RQ[0] * PER[0]) * PER[1]",
            "SE[0] * (RQ[0] * PER[0]) * PER[1] and LIN[0]; "
            "SE[0] * LIN[0] * PER[1] and RQ[0] * PER[0]",
        ),
        (
            "(SE[0] + LIN[0]) * (RQ[0] + PER[0])",
            "LIN[0] * (RQ[0] + PER[0]) and SE[0]; SE[0] * (RQ[0] + PER[0]) and LIN[0]; "
            "(SE[0] + LIN[0]) * PER[0] and RQ[0]; (SE[0] + LIN[0]) * RQ[0] and PER[0]",
        ),
        (
            "CW[0](SE[0] + LIN[0], PER[0])",
            "CW[0](LIN[0], PER[0]) and SE[0]; CW[0](SE[0], PER[0]) and LIN[0]",
        ),
    ],
)
def test_each_term_of_a_sum_is_taken_away_in_turn(text, parts):
    found = [
        (rest.canonical, term.canonical) for (rest, _), (term, _) in splits(parse_expression(text))
    ]
    pairs = [pair.split(" and ") for pair in parts.split("; ") if pair]
    assert found == [tuple(parse_expression(part).canonical for part in pair) for pair in pairs]


@given(problems(n_features=2))
def test_a_rest_is_the_kernel_in_which_the_term_is_zero(problem):
    expression = problem.expression
    slots = slots_of(expression)
    params = np.exp(problem.theta[:-1])
    for (rest, rest_nodes), (term, term_nodes) in splits(expression):
        assert sorted(rest_nodes + term_nodes) == list(range(len(slots)))
        nodes = [slots[node].node.declared for node in rest_nodes + term_nodes]
        assert nodes == [node.declared for node in (*rest.nodes, *term.nodes)]
        without = params.copy()
        for node in term_nodes:
            zero = [p.unit == Unit.SQUARED_TARGET for p in slots[node].node.parameters]
            without[slots[node].entries][zero] = 0.0
        left = np.concatenate([params[slots[node].entries] for node in rest_nodes])
        without_term = covariance(rest, left, problem.X)
        whole = covariance(expression, without, problem.X)
        # sums and products in another order: rounding
        np.testing.assert_allclose(without_term, whole, rtol=1e-12, atol=1e-13 * abs(whole).max())


@given(trees)
def test_two_nodes_are_joined_by_the_lowest_operation_that_holds_both(expression):
    def check(tree, start):
        """Check the nodes of a tree, which are those of the kernel from a number on."""
        if tree.n_leaves == 1:
            return
        middle, stop = start + bool(tree.parameters), start + len(tree.nodes)
        for operand in tree.operands:
            check(operand, middle)
            for one in range(start, middle):
                for other in range(middle, middle + len(operand.nodes)):
                    assert meeting_operator(expression, one, other) == tree.operator
                    assert meeting_operator(expression, other, one) == tree.operator
            middle += len(operand.nodes)
        assert middle == stop

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
        # operands of an operator in their positions
        ("GATE[0](SE[0], LIN[0]) + PER[0]", "GATE[0](SE[0], LIN[0])", [(0, 0), (1, 1), (2, 2)]),
        ("GATE[0](SE[0], LIN[0])", "GATE[0](LIN[0], SE[0])", [(0, 0)]),
        ("GATE[0](SE[0], LIN[0])", "GATE[1](SE[0], LIN[0])", []),
        ("GATE[0](SE[0], LIN[0])", "SE[0]", [(1, 0)]),
        ("LIN[0]", "GATE[0](SE[0], LIN[0])", [(0, 2)]),
    ],
)
def test_nodes_that_play_the_same_part_are_paired(one, other, pairs):
    assert align(read(one), read(other)) == pairs


@given(trees, trees)
def test_pairs_are_of_equal_nodes_one_to_one_and_joined_alike(one, other):
    pairs = align(one, other)
    ours, theirs = zip(*pairs, strict=True) if pairs else ((), ())
    assert max(Counter(ours).values(), default=1) == 1
    assert max(Counter(theirs).values(), default=1) == 1
    assert [one.nodes[a].declared for a in ours] == [other.nodes[b].declared for b in theirs]
    assert [one.nodes[a].column for a in ours] == [other.nodes[b].column for b in theirs]
    for a, b in pairs:
        for c, d in pairs:
            if a < c:
                assert meeting_operator(one, a, c) == meeting_operator(other, b, d)


@given(trees, seeds)
def test_a_kernel_is_aligned_whole_with_itself_in_any_order(expression, seed):
    other = reshuffled(expression, np.random.default_rng(seed))
    assert len(align(expression, other)) == len(expression.nodes)


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
    assert [str(one) for one, _ in addends(parse_expression(text))] == expected


@settings(max_examples=25)
@given(tree=trees, seed=seeds)
def test_the_covariances_of_the_addends_add_up(tree, seed):
    rng = np.random.default_rng(seed)
    X, Z = rng.uniform(size=(7, 3)), rng.uniform(size=(5, 3))
    params = np.exp(rng.normal(size=n_kernel_params(tree)))
    rows = inputs_of(X), inputs_of(Z)
    parts = [
        cross_covariance(one, *rows).forward(params[entries]) for one, entries in addends(tree)
    ]
    # at most six factors in another order: rounding
    whole = cross_covariance(tree, *rows).forward(params)
    np.testing.assert_allclose(sum(parts), whole, rtol=1e-10, atol=1e-13 * abs(whole).max())


@pytest.mark.parametrize(
    "text",
    [
        "*".join(["(SE[0] + LIN[1])"] * 12),
        "*".join(["(SE[0] + LIN[1])"] * 300),
        "CP[0](" + "*".join(["(SE[0] + LIN[1])"] * 11) + ", SE[0])",
        "(SE[0] + LIN[1])*" * 6 + "(SE[0]" + " + LIN[0]" * 50 + ")",
    ],
)
def test_products_are_counted_before_they_are_distributed(text):
    with pytest.raises(ValueError, match="a kernel must be a sum of at most 2000 products to be"):
        addends(parse_expression(text))


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("LIN[0] * SE[1] + PER[0]", {"PER[0]": 0, "SE[1]": 1, "LIN[0]": None}),
        ("RQ[0] + SE[1] * (SE[0] + PER[0])", {"SE[1]": 1, "SE[0]": 2}),
        ("log(y) ~ SE[0]", {"SE[0]": 2}),
    ],
)
def test_leaves_get_the_numbers_of_those_at_the_same_places(text, numbers):
    other = with_numbers(read("PER[0] + SE[1] * SE[0]"))
    numbered = numbered_like(read(text), other)
    assert numbered == read(text)
    found = {leaf.canonical: leaf.number for leaf in numbered.leaves}
    assert {name: found[name] for name in numbers} == numbers
