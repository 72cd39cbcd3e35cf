"""The null model as an expression."""

import copy
import pickle

import numpy as np
import pytest
from sklearn.base import clone

from autokernel import AutoKernelGPRegressor, ExpressionSyntaxError, parse_expression
from autokernel.expression import (
    NOISE,
    Arranged,
    Leaf,
    Null,
    Operation,
    align,
    arrange,
    n_kernel_params,
    node_swaps,
    normal_form,
    reduced,
    seed_text,
    simplifications,
    slots_of,
    splits,
    theta_order,
)
from autokernel.kernels import ADD, BASE_KERNELS, MULTIPLY, VARIANCE, BaseKernel, Operator

SE = Leaf(BASE_KERNELS["SE"], 0)


class Named(BaseKernel):
    """A kernel under any name."""

    parameters = (VARIANCE,)

    def value(self, params, pairs):
        return np.full_like(pairs.difference, params[0])


class First(Operator):
    """The first kernel, under the name of the null model unless a subclass has another."""

    symbol = "NOISE"

    def value(self, at):
        return at.values[0]

    def adjoints(self, at, adjoint):
        yield adjoint
        yield np.zeros_like(adjoint)


class Word(First):
    symbol = "FIRST"


@pytest.mark.parametrize("text", ["NOISE", "  NOISE ", "(NOISE)", "((\nNOISE))"])
def test_noise_alone_is_read_from_its_name(text):
    assert parse_expression(text) == NOISE
    assert parse_expression(text, ["time"], base_kernels=[Named("N")], operators=[Word()]) == NOISE


def test_noise_alone_is_written_as_its_name():
    assert str(NOISE) == NOISE.canonical == NOISE.to_text(["time"]) == "NOISE"
    assert repr(NOISE) == "<Expression NOISE>"


def test_a_name_that_begins_like_noise_is_another_one():
    assert parse_expression("NOISE2[0]", base_kernels=[Named("NOISE2")]) == Leaf(Named("NOISE2"), 0)


def test_noise_alone_has_no_leaves_no_parameters_and_no_column():
    assert (NOISE.n_leaves, NOISE.n_subtrees, NOISE.depth) == (0, 1, 0)
    assert (NOISE.leaves, NOISE.nodes, NOISE.parameters) == ((), (), ())
    assert (NOISE.column, NOISE.last_column, NOISE.has_parameters) == (None, -1, False)
    assert list(NOISE.subtrees()) == [NOISE.subtree(0)] == [NOISE]
    for operator in (ADD, MULTIPLY):
        assert (NOISE.terms(operator), NOISE.term_texts(operator)) == ((NOISE,), ("NOISE",))


def test_noise_alone_is_replaced_as_a_whole():
    assert NOISE.replace(0, SE) == SE
    assert SE.replace(0, NOISE) == NOISE
    for wrong in (lambda: NOISE.replace(1, SE), lambda: NOISE.subtree(1)):
        with pytest.raises(IndexError, match="index must be 0 for NOISE, got 1"):
            wrong()
    with pytest.raises(IndexError, match="leaf"):
        NOISE.leaf_index(0)


@pytest.mark.parametrize(
    "copied",
    [
        lambda e: pickle.loads(pickle.dumps(e)),
        copy.copy,
        copy.deepcopy,
        lambda e: clone(e, safe=False),
        lambda e: Null(),
    ],
    ids=["pickle", "copy", "deepcopy", "clone", "another object"],
)
def test_copies_of_noise_alone_are_equal(copied):
    assert copied(NOISE) == NOISE
    assert hash(copied(NOISE)) == hash(NOISE)
    assert copied(NOISE) != SE
    assert {NOISE: 1}[copied(NOISE)] == 1


def test_noise_alone_is_told_by_its_declaration():
    declared = NOISE.declared
    assert (declared.label, declared.parameters) == ("NOISE", ())
    assert declared == pickle.loads(pickle.dumps(declared))
    others = [*BASE_KERNELS.values(), ADD, MULTIPLY]
    assert declared not in others
    assert declared.definition not in [other.definition for other in others]


@pytest.mark.parametrize(
    "build",
    [
        lambda: NOISE + SE,
        lambda: SE + NOISE,
        lambda: NOISE * NOISE,
        lambda: Operation(MULTIPLY, SE, NOISE),
        lambda: (SE + SE).replace(1, NOISE),
        lambda: (SE * (SE + SE)).with_operands([NOISE, SE]),
        lambda: Operation(Word(), SE, NOISE),
    ],
)
def test_noise_alone_is_no_operand(build):
    with pytest.raises(ValueError, match="NOISE stands alone, as every kernel has noise"):
        build()


@pytest.mark.parametrize(
    ("text", "position"),
    [
        ("NOISE + SE[0]", 0),
        ("SE[0] * (LIN[0] + NOISE)", 18),
        ("NOISE * NOISE", 8),
        ("FIRST(SE[0], NOISE)", 13),
        ("NOISE[0]", 5),
        ("SE[0] + NOISE [0]", 14),
    ],
)
def test_text_with_noise_beside_kernels_or_on_a_column_is_refused(text, position):
    with pytest.raises(ExpressionSyntaxError, match="NOISE stands alone, as every") as caught:
        parse_expression(text, operators=[Word()])
    assert caught.value.position == position


@pytest.mark.parametrize(
    ("argument", "own", "shipped"),
    [("base_kernels", Named("NOISE"), "SE"), ("operators", First(), "+")],
)
def test_the_name_is_reserved(argument, own, shipped):
    message = f"{argument} must not hold the name 'NOISE', which means noise alone"
    with pytest.raises(ValueError, match=message):
        parse_expression("SE[0]", **{argument: [own]})
    X, y = np.linspace(0, 1, 9)[:, None], np.arange(9.0)
    with pytest.raises(ValueError, match=message):
        AutoKernelGPRegressor(**{argument: [shipped, own]}).fit(X, y)


def test_noise_alone_is_arranged_and_in_normal_form():
    assert arrange(NOISE) == Arranged(NOISE, [])
    assert seed_text(NOISE) == "NOISE"
    assert normal_form(NOISE) == reduced(NOISE) == NOISE
    assert simplifications(NOISE) == []


def test_theta_of_noise_alone_is_the_noise_variance():
    assert n_kernel_params(NOISE) == 0
    assert slots_of(NOISE) == []
    np.testing.assert_array_equal(np.array([7.0])[theta_order(NOISE, [])], [7.0])


@pytest.mark.parametrize("other", [NOISE, SE, SE + SE, Operation(Word(), SE, SE)])
def test_noise_alone_shares_no_nodes_with_any_kernel(other):
    assert align(NOISE, other) == align(other, NOISE) == []


def test_noise_alone_has_no_parts_and_no_symmetries():
    assert list(splits(NOISE)) == []
    assert node_swaps(NOISE) == []
