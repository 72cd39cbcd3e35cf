import copy
import itertools
import pickle
from collections import defaultdict
from collections.abc import Callable
from dataclasses import FrozenInstanceError
from functools import reduce

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from autokernel.expression import Expression, Leaf, Operation, parse_expression
from autokernel.kernels import ADD, BASE_KERNELS, MULTIPLY, Operator
from tests.batteries import expressions, flat_terms, reshuffled, seeds
from tests.processes import outputs_under_two_hash_seeds

SE, RQ = BASE_KERNELS["SE"], BASE_KERNELS["RQ"]
A, B, C = Leaf(SE, 0), Leaf(BASE_KERNELS["PER"], 1), Leaf(BASE_KERNELS["LIN"], 0)

OF_EVERY_EXPRESSION = ("column", "canonical", "n_leaves", "n_subtrees", "last_column")


def all_trees(leaves: tuple[Leaf, ...], n_leaves: int) -> list[Expression]:
    """All trees with exactly this number of leaves."""
    if n_leaves == 1:
        return list(leaves)
    return [
        Operation(operator, left, right)
        for n_left in range(1, n_leaves)
        for operator in (ADD, MULTIPLY)
        for left in all_trees(leaves, n_left)
        for right in all_trees(leaves, n_leaves - n_left)
    ]


def normal_form(expression: Expression) -> tuple:
    """Nested multisets: equal if and only if the trees are, up to order and grouping."""
    if isinstance(expression, Leaf):
        return (expression.kernel.name, expression.column)
    terms = flat_terms(expression, expression.operator)
    return (expression.operator.symbol, tuple(sorted(map(normal_form, terms), key=repr)))


@given(expressions(), seeds)
def test_canonical_text_ignores_order_and_grouping(expression: Expression, seed: int) -> None:
    other = reshuffled(expression, np.random.default_rng(seed))
    assert other.canonical == expression.canonical


def test_canonical_text_tells_apart_all_small_trees_that_differ_by_more() -> None:
    trees = [tree for n in (1, 2, 3, 4) for tree in all_trees((A, B), n)]
    assert len(trees) == 2 + 8 + 64 + 640  # Catalan numbers times 2^leaves times 2^operators
    forms = defaultdict(set)
    for tree in trees:
        forms[tree.canonical].add(normal_form(tree))
    assert all(len(same) == 1 for same in forms.values())
    assert len(forms) == len({normal_form(tree) for tree in trees})


@given(expressions(), expressions())
def test_canonical_texts_are_equal_only_for_the_same_multisets(
    one: Expression, other: Expression
) -> None:
    assert (one.canonical == other.canonical) == (normal_form(one) == normal_form(other))


@given(expressions())
def test_canonical_text_is_read_back_as_the_same_candidate(expression: Expression) -> None:
    again = parse_expression(expression.canonical)
    assert again.canonical == expression.canonical
    assert normal_form(again) == normal_form(expression)


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("SE[0] + LIN[0]", "LIN[0] + SE[0]"),
        ("SE[0] * (SE[0] + LIN[0])", "(LIN[0] + SE[0]) * SE[0]"),
        ("SE[1] + (SE[0] + LIN[0])", "LIN[0] + SE[0] + SE[1]"),
        ("SE[0] * SE[0]", "SE[0] * SE[0]"),
        ("SE[0] + SE[0] * LIN[0]", "LIN[0] * SE[0] + SE[0]"),
    ],
)
def test_canonical_text_is_flattened_and_sorted(text: str, canonical: str) -> None:
    assert parse_expression(text).canonical == canonical


@given(expressions())
def test_equality_and_hash_are_those_of_the_structure(expression: Expression) -> None:
    same = parse_expression(str(expression))
    assert same is not expression
    assert same == expression
    assert hash(same) == hash(expression)
    assert len({same, expression}) == 1


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (A, Leaf(SE, 1)),
        (A, Leaf(RQ, 0)),
        (A + B, B + A),
        (A + B, A * B),
        ((A + B) + C, A + (B + C)),
        (A, A + A),
    ],
)
def test_trees_that_differ_are_not_equal(one: Expression, other: Expression) -> None:
    assert one != other


@pytest.mark.parametrize(
    ("expression", "name"),
    [(A, name) for name in ("kernel", *OF_EVERY_EXPRESSION)]
    + [(A + B, name) for name in ("operator", "operands", "leaves", *OF_EVERY_EXPRESSION)],
)
def test_expressions_are_immutable(expression: Expression, name: str) -> None:
    with pytest.raises(FrozenInstanceError):
        setattr(expression, name, getattr(expression, name))
    assert not hasattr(expression, "__dict__")


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, lambda e: pickle_round_trip(e)])
@given(expression=expressions())
def test_copies_and_pickles_are_equal(
    duplicate: Callable[[Expression], Expression], expression: Expression
) -> None:
    twin = duplicate(expression)
    assert twin == expression
    assert hash(twin) == hash(expression)
    assert twin.canonical == expression.canonical
    assert twin.n_leaves == expression.n_leaves
    assert twin.depth == expression.depth
    assert twin.leaves == expression.leaves


def pickle_round_trip(expression: Expression) -> Expression:
    return pickle.loads(pickle.dumps(expression))


def test_expressions_pickled_elsewhere_have_the_hashes_of_this_process() -> None:
    text = "(SE[0] + PER[1]) * LIN[0] + SE[0]"
    code = f"""
import pickle
from autokernel.expression import parse_expression

expression = parse_expression("{text}")
hash(expression)
print(pickle.dumps(expression).hex())
"""
    outputs = outputs_under_two_hash_seeds(code)
    assert len(outputs) == 1  # the hash does not travel
    arrived = pickle.loads(bytes.fromhex(outputs.pop()))
    assert {arrived: "found"}[parse_expression(text)] == "found"
    assert [hash(e) for e in arrived.subtrees()] == [
        hash(e) for e in parse_expression(text).subtrees()
    ]


def test_arithmetic_builds_operations() -> None:
    assert Operation(ADD, A, B) == A + B
    assert Operation(MULTIPLY, A, B) == A * B
    assert Operation(ADD, A, Operation(MULTIPLY, B, C)) == A + B * C


@pytest.mark.parametrize("operator", ["+", "-", "", "**", None, type(ADD)])
def test_what_is_no_operator_is_refused(operator: object) -> None:
    with pytest.raises(TypeError, match="operator must be an Operator object, got"):
        Operation(operator, A, B)


@pytest.mark.parametrize("operands", [(), (A,), (A, B, C)])
def test_another_number_of_operands_is_refused(operands: tuple[Expression, ...]) -> None:
    with pytest.raises(ValueError, match=rf"\+ must have 2 operands, got {len(operands)}"):
        Operation(ADD, *operands)


def test_a_column_for_an_operator_that_acts_on_none_is_refused() -> None:
    with pytest.raises(ValueError, match=r"\+ acts on no column, got column=0"):
        Operation(ADD, A, B, column=0)


@given(expressions())
def test_leaves_are_those_of_the_text_from_left_to_right(expression: Expression) -> None:
    words = str(expression).replace("(", "").replace(")", "")
    texts = [word for word in words.split() if word not in "+*"]
    assert [str(leaf) for leaf in expression.leaves] == texts
    assert expression.n_leaves == len(texts)


def test_subtrees_come_parents_first_and_left_before_right() -> None:
    left, right = A * B, C + A
    assert list((left + right).subtrees()) == [left + right, left, A, B, right, C, A]


@given(expressions())
def test_there_are_as_many_subtrees_as_leaves_and_operators(expression: Expression) -> None:
    assert len(list(expression.subtrees())) == 2 * expression.n_leaves - 1
    assert expression.n_subtrees == 2 * expression.n_leaves - 1


@given(expressions())
def test_a_subtree_is_found_by_its_index(expression: Expression) -> None:
    subtrees = list(expression.subtrees())
    assert [expression.subtree(index) for index in range(len(subtrees))] == subtrees


@given(expressions())
def test_a_leaf_stands_where_its_index_says(expression: Expression) -> None:
    places = [index for index, tree in enumerate(expression.subtrees()) if isinstance(tree, Leaf)]
    found = [expression.leaf_index(place) for place in range(expression.n_leaves)]
    assert found == places
    assert tuple(expression.subtree(index) for index in found) == expression.leaves


@given(expressions(), st.integers(0, 3))
def test_subtrees_and_leaves_beyond_the_tree_are_index_errors(
    expression: Expression, excess: int
) -> None:
    for index in (2 * expression.n_leaves - 1 + excess, -1 - excess):
        with pytest.raises(IndexError):
            expression.subtree(index)
    for place in (expression.n_leaves + excess, -1 - excess):
        with pytest.raises(IndexError):
            expression.leaf_index(place)


@given(expressions())
def test_depth_is_the_number_of_operators_above_the_lowest_leaf(expression: Expression) -> None:
    def depths(tree: Expression) -> list[int]:
        if isinstance(tree, Leaf):
            return [0]
        assert isinstance(tree, Operation)
        return [1 + depth for operand in tree.operands for depth in depths(operand)]

    assert expression.depth == max(depths(expression))
    assert expression.n_leaves <= 2**expression.depth


@pytest.mark.parametrize("operator", [ADD, MULTIPLY])
@given(expression=expressions(), seed=seeds)
def test_term_texts_are_those_of_the_terms_sorted(
    operator: Operator, expression: Expression, seed: int
) -> None:
    terms = flat_terms(expression, operator)
    needs_brackets = [
        operator == MULTIPLY and isinstance(e, Operation) and e.operator == ADD for e in terms
    ]
    expected = [
        f"({e.canonical})" if inner else e.canonical
        for e, inner in zip(terms, needs_brackets, strict=True)
    ]
    assert expression.term_texts(operator) == tuple(sorted(expected))
    other = reshuffled(expression, np.random.default_rng(seed))
    assert other.term_texts(operator) == expression.term_texts(operator)


@pytest.mark.parametrize("operator", [ADD, MULTIPLY])
@given(expression=expressions())
def test_terms_are_the_chain_of_one_operator(operator: Operator, expression: Expression) -> None:
    assert list(expression.terms(operator)) == flat_terms(expression, operator)


@given(expressions(), expressions(), st.data())
def test_replace_changes_one_subtree_and_nothing_else(
    expression: Expression, new: Expression, data: st.DataObject
) -> None:
    before = list(expression.subtrees())
    index = data.draw(st.integers(0, len(before) - 1))
    after = list(expression.replace(index, new).subtrees())
    n_new, n_old = len(list(new.subtrees())), len(list(before[index].subtrees()))
    assert after[index] == new
    assert after[index + n_new :] == before[index + n_old :]
    for place, (old, changed) in enumerate(zip(before[:index], after[:index], strict=True)):
        contains_it = index < place + len(list(old.subtrees()))
        assert contains_it or changed == old
    assert expression.replace(index, before[index]) == expression


@given(expressions())
def test_replace_outside_the_tree_is_an_index_error(expression: Expression) -> None:
    for index in (-1, 2 * expression.n_leaves - 1):
        with pytest.raises(IndexError):
            expression.replace(index, A)


def test_long_chains_keep_every_term() -> None:
    leaves = [Leaf(SE, column) for column in range(60)]
    chain = reduce(lambda left, right: left * right, leaves)
    assert chain.n_leaves == 60
    assert chain.leaves == tuple(leaves)
    assert len(set(chain.canonical.split(" * "))) == 60


def test_all_orders_of_a_sum_of_four_have_one_canonical_text() -> None:
    leaves = (A, B, C, Leaf(RQ, 2))
    sums = [reduce(lambda left, right: left + right, p) for p in itertools.permutations(leaves)]
    assert {e.canonical for e in sums} == {"LIN[0] + PER[1] + RQ[2] + SE[0]"}
