import copy
import pickle
from collections import defaultdict
from dataclasses import FrozenInstanceError
from zlib import crc32

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from autokernel import AutoKernelGPRegressor
from autokernel.expression import (
    IDENTITY,
    NOISE,
    Expression,
    Grammar,
    Leaf,
    Operation,
    align,
    arrange,
    node_swaps,
    normal_form,
    parse_expression,
    simplifications,
    slots_of,
    splits,
    with_numbers,
)
from autokernel.kernels import ADD, BASE_KERNELS, MULTIPLY
from tests.batteries import (
    EVERY_OPERATOR,
    ON_SCALES,
    every_tree,
    expressions,
    flat_terms,
)
from tests.kernels.gate import GATE, Gate

SE, RQ = BASE_KERNELS["SE"], BASE_KERNELS["RQ"]
STANDS_ALONE = "NOISE stands alone, as every kernel has noise"
A, B, C = Leaf(SE, 0), Leaf(BASE_KERNELS["PER"], 1), Leaf(BASE_KERNELS["LIN"], 0)


def multiset(expression: Expression) -> tuple:
    """Nested multisets: equal if and only if the trees are, up to order and grouping."""
    if isinstance(expression, Leaf):
        return (expression.kernel.name, expression.column)
    terms = flat_terms(expression, expression.operator)
    return (expression.operator.symbol, tuple(sorted(map(multiset, terms), key=repr)))


@pytest.mark.parametrize("name", ["cube", "Log", "", None])
def test_a_scale_has_one_of_the_names_that_are_known(name):
    for make in (A.on, (A + B).on, A.on("log").on):
        with pytest.raises(
            ValueError, match=r"^target must be one of \['identity', 'log', 'sqrt', "
        ):
            make(name)
    with pytest.raises(ValueError, match=r"^scale must be one of \['identity', 'log', 'sqrt'\]"):
        Leaf(SE, 0, scale=name)


def test_canonical_text_distinguishes_all_small_trees_that_differ_by_more():
    grammar = Grammar((SE, RQ), (ADD, MULTIPLY), (0,), max_leaves=4)
    trees = [tree for n in (1, 2, 3, 4) for tree in every_tree(grammar, n)]
    assert len(trees) == 2 + 8 + 64 + 640  # Catalan numbers times 2^leaves times 2^operators
    forms = defaultdict(set)
    for tree in trees:
        forms[tree.canonical].add(multiset(tree))
    assert all(len(same) == 1 for same in forms.values())
    assert len(forms) == len({multiset(tree) for tree in trees})


def test_trees_that_differ_are_not_equal():
    assert A not in (Leaf(SE, 1), Leaf(RQ, 0), A + A)
    assert A + B not in (B + A, A * B)
    assert (A + B) + C != A + (B + C)


def test_expressions_are_immutable():
    for expression, names in ((A, ("kernel",)), (A + B, ("operator", "operands", "leaves"))):
        for name in (*names, "column", "canonical", "n_leaves", "n_subtrees"):
            with pytest.raises(FrozenInstanceError):
                setattr(expression, name, getattr(expression, name))
        assert not hasattr(expression, "__dict__")


@pytest.mark.parametrize(
    "duplicate", [copy.copy, copy.deepcopy, lambda e: pickle.loads(pickle.dumps(e))]
)
@given(expression=expressions(EVERY_OPERATOR) | expressions(ON_SCALES) | st.just(NOISE))
def test_copies_are_equal(duplicate, expression):
    twin = duplicate(expression)
    assert twin == expression
    assert hash(twin) == hash(expression)
    for name in ("canonical", "n_leaves", "depth", "leaves"):
        assert getattr(twin, name) == getattr(expression, name)


@given(expressions(ON_SCALES))
def test_numbers_of_leaves_stay_on_other_scales_and_make_no_difference(expression):
    numbered = with_numbers(expression)
    assert [leaf.number for leaf in numbered.on("sqrt").leaves] == [*range(expression.n_leaves)]
    assert (numbered, hash(numbered)) == (expression, hash(expression))
    assert str(numbered) == str(expression)
    assert all(leaf.number is None for leaf in pickle.loads(pickle.dumps(numbered)).leaves)


@given(expressions(EVERY_OPERATOR))
def test_the_hash_that_an_operation_carries_is_the_same_in_every_process(expression):
    for part in expression.subtrees():  # leaves compute theirs when they are asked
        assert isinstance(part, Leaf) or hash(part) == crc32(part.canonical.encode())


NO_OPERATOR, NO_OPERAND = "operator must be an Operator object", "must join Expression objects, got"


@pytest.mark.parametrize(
    ("build", "error", "message"),
    [
        (lambda: Operation("+", A, B), TypeError, NO_OPERATOR),
        (lambda: Operation(type(ADD), A, B), TypeError, NO_OPERATOR),
        (lambda: A + 1, TypeError, NO_OPERAND),
        (lambda: A * B * "LIN[0]", TypeError, NO_OPERAND),
        (lambda: Operation(ADD, SE, A), TypeError, NO_OPERAND),
        (lambda: A + np.float64(2.0), TypeError, NO_OPERAND),
        (lambda: Operation(MULTIPLY), ValueError, r"\* must have 2 operands, got 0"),
        (lambda: Operation(MULTIPLY, A), ValueError, r"\* must have 2 operands, got 1"),
        (lambda: Operation(MULTIPLY, A, B, C), ValueError, r"\* must have 2 operands, got 3"),
        (lambda: Operation(ADD, A, B, column=0), ValueError, r"\+ acts on no column, got column=0"),
        (lambda: NOISE + A, ValueError, STANDS_ALONE),
        (lambda: A + NOISE, ValueError, STANDS_ALONE),
        (lambda: NOISE * NOISE, ValueError, STANDS_ALONE),
        (lambda: (A + A).replace(1, NOISE), ValueError, STANDS_ALONE),
        (lambda: Operation(GATE, A, NOISE, column=0), ValueError, STANDS_ALONE),
    ],
)
def test_what_is_no_operator_and_no_operand_is_refused(build, error, message):
    with pytest.raises(error, match=message):
        build()


@given(expressions(EVERY_OPERATOR))
def test_a_subtree_is_found_by_its_index(expression):
    subtrees = list(expression.subtrees())
    assert expression.n_subtrees == len(subtrees)
    for index in (-1, len(subtrees)):
        with pytest.raises(IndexError):
            expression.subtree(index)
        with pytest.raises(IndexError):
            expression.replace(index, A)
    assert [expression.subtree(index) for index in range(len(subtrees))] == subtrees


@given(expressions(EVERY_OPERATOR), expressions(), st.data())
def test_replace_changes_one_subtree_and_nothing_else(expression, new, data):
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


@given(expressions(ON_SCALES), st.data())
def test_a_scale_of_the_target_is_that_of_the_root_alone(expression, data):
    whole = expression.on("log")
    assert whole != expression
    assert (whole.target, whole.on(IDENTITY)) == ("log", expression)
    assert whole.tree == expression == whole.with_tree(A).with_tree(expression).tree
    parts = [*whole.subtrees(), *whole.leaves, *whole.nodes, *whole.terms(ADD)]
    assert {part.target for part in parts} == {IDENTITY}
    assert all(form.target == "log" for form in (normal_form(whole), *simplifications(whole)))
    assert list(whole.subtrees()) == list(expression.subtrees())
    place = data.draw(st.integers(0, whole.n_subtrees - 1))
    assert whole.replace(place, A) == expression.replace(place, A).on("log")


def test_the_parameters_of_a_node_are_together_in_the_order_of_the_nodes():
    slots = slots_of(parse_expression("SE[0] * CP[1](PER[1], LIN[0])"))
    assert [(node.canonical, entries.start, entries.stop) for node, entries in slots] == [
        ("SE[0]", 0, 2),
        ("CP[1](PER[1], LIN[0])", 2, 4),
        ("PER[1]", 4, 7),
        ("LIN[0]", 7, 9),
    ]


# Noise is the sum of no kernels.


class GateOfNoise(Gate):
    symbol = "NOISE"


@pytest.mark.parametrize("text", ["NOISE", "  NOISE ", "((\nNOISE))"])
def test_noise_is_read_and_written_by_its_name(text):
    assert parse_expression(text, ["time"], base_kernels=[type(SE)("N")]) == NOISE == Operation(ADD)
    assert str(NOISE) == NOISE.canonical == NOISE.to_text(["time"]) == "NOISE"
    longer = type(SE)("NOISE2")
    assert parse_expression("NOISE2[0]", base_kernels=[longer]) == Leaf(longer, 0)


def test_noise_has_no_leaves_no_parameters_and_no_column():
    assert (NOISE.n_leaves, NOISE.n_subtrees, NOISE.depth) == (0, 1, 0)
    assert (NOISE.leaves, NOISE.nodes, NOISE.terms(ADD)) == ((), (), ())
    assert (NOISE.column, slots_of(NOISE)) == (None, [])
    assert list(NOISE.subtrees()) == [NOISE]
    assert arrange(NOISE) == (NOISE, [])
    assert normal_form(NOISE) == NOISE
    assert simplifications(NOISE) == [*splits(NOISE)] == node_swaps(NOISE) == []
    for other in (NOISE, A, A + A, Operation(GATE, A, A, column=0)):
        assert align(NOISE, other) == align(other, NOISE) == []


@pytest.mark.parametrize(
    ("argument", "custom", "built_in"),
    [("base_kernels", type(SE)("NOISE"), "SE"), ("operators", GateOfNoise(), "+")],
)
def test_the_name_of_noise_is_reserved(argument, custom, built_in):
    message = f"{argument} must not hold the name 'NOISE', which means only noise"
    with pytest.raises(ValueError, match=message):
        parse_expression("SE[0]", **{argument: [custom]})
    X, y = np.linspace(0, 1, 9)[:, None], np.arange(9.0)
    with pytest.raises(ValueError, match=message):
        AutoKernelGPRegressor(**{argument: [built_in, custom]}).fit(X, y)


@pytest.mark.parametrize(
    ("text", "has_many", "has_few"),
    [
        ("SE[0] + LIN[1] * SE[1]", False, False),
        ("LIN[0] + RW[0] * IRW[1]", False, True),
        ("SE[0] + LIN[1] * PER[1]", True, False),
        ("LIN[0] + CP[0](LIN[0], RW[0])", True, False),
        ("CW[0](LIN[0], RW[0])", True, False),
    ],
)
def test_a_kernel_has_many_modes_if_a_part_has_and_few_if_all_have(text, has_many, has_few):
    expression = parse_expression(text)
    assert (expression.has_many_modes, expression.has_few_modes) == (has_many, has_few)
