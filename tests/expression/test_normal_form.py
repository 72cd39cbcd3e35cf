"""Families are proved equal by parameters mapped both ways, covariance against covariance."""

import numpy as np
import pytest

from autokernel.expression import (
    Expression,
    Grammar,
    Leaf,
    Operation,
    factorings,
    moves,
    n_kernel_params,
    normal_form,
    parse_expression,
    reduced,
    simplifications,
    without_leaves,
)
from autokernel.kernels import (
    ADD,
    BASE_KERNELS,
    MULTIPLY,
    SMOOTH,
    VARIANCE,
    BaseKernel,
    Pairs,
)
from autokernel.typing import FloatArray
from tests.batteries import covariance, reshuffled
from tests.kernels.gate import GATE


class Constant(BaseKernel):
    """Constant functions: a kernel to which both rules apply."""

    name = "CONST"
    parameters = (VARIANCE,)
    closed_under_products = True
    closed_under_sums = True

    def value(self, params: FloatArray, pairs: Pairs) -> FloatArray:
        return params[0] + 0.0 * pairs.product


class Wiggly(type(SMOOTH)):
    """A kernel of the user that is called as another one."""


SE, LIN, PER, CONST = SMOOTH, BASE_KERNELS["LIN"], BASE_KERNELS["PER"], Constant()
X = np.random.default_rng(0).uniform(-1, 1, (7, 2))


def expression_of(text: str) -> Expression:
    return parse_expression(text, base_kernels=[CONST], operators=[GATE])


def assert_equal(one: FloatArray, other: FloatArray) -> None:
    # sums and products in another order, and inverse squares: rounding
    np.testing.assert_allclose(one, other, rtol=1e-11, atol=1e-12 * abs(one).max())


def covariance_of(text: str, *params: float) -> FloatArray:
    return covariance(expression_of(text), np.array(params, dtype=float), X)


# Each rule with parameters by hand


def narrower(one: float, other: float) -> float:
    """Lengthscale of the product of two SE."""
    return (one**-2 + other**-2) ** -0.5


def wider(one: float, factor: float) -> float:
    """Lengthscale of what is left of SE when SE is taken out as a factor."""
    return (one**-2 - factor**-2) ** -0.5


@pytest.mark.parametrize(
    ("text", "params", "form", "reduced_params"),
    [
        ("SE[0] * SE[0]", (0.9, 5.0, wider(0.5, 0.9), 0.5), "SE[0]", (0.5, 2.5)),
        ("LIN[0] + LIN[0]", (0.2, 1.9, 0.3, 0.6), "LIN[0]", (0.5, 2.5)),
        ("RW[0] + RW[0]", (0.2, 1.9, 0.3, 0.6), "RW[0]", (0.5, 2.5)),
        ("IRW[0] + IRW[0]", (0.2, 0.4, 1.9, 0.3, 0.1, 0.6), "IRW[0]", (0.5, 0.5, 2.5)),
        ("CAT[0] + CAT[0]", (0.2, 1.9, 0.3, 0.6), "CAT[0]", (0.5, 2.5)),
        # (v 1 + c) (v' 1 + c') = (v v' + v c' + c v') 1 + c c'
        ("CAT[0] * CAT[0]", (0.2, 2.0, 0.3, 0.6), "CAT[0]", (0.06 + 0.12 + 0.6, 1.2)),
        ("MAT12[0] * MAT12[0]", (0.5, 5.0, 2.0, 0.5), "MAT12[0]", (0.4, 2.5)),
        (
            "SE[0] * (SE[0] * LIN[1] + SE[0])",
            # any factor that is wider than both
            (1.1, 2.0, wider(0.4, 1.1), 0.3, 0.2, 0.3, wider(0.9, 1.1), 0.4),
            "SE[0] * LIN[1] + SE[0]",
            (0.4, 0.6, 0.2, 0.3, 0.9, 0.8),
        ),
    ],
)
def test_any_kernel_of_the_normal_form_is_one_of_the_family(text, params, form, reduced_params):
    assert reduced(expression_of(text)).canonical == expression_of(form).canonical
    assert_equal(covariance_of(text, *params), covariance_of(form, *reduced_params))


def test_the_limit_of_rq_is_se_with_the_same_lengthscale_and_variance():
    assert BASE_KERNELS["RQ"].limits == (SE,)
    # with z below (2 / 0.7)^2 / 2 < 5, the error of the exponent is z^2 / (2 alpha) < 2e-7
    np.testing.assert_allclose(
        covariance_of("RQ[0]", 0.7, 1.3, 1e8), covariance_of("SE[0]", 0.7, 1.3), rtol=2e-7
    )


# What is removed, and what is not


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SE[0] * (LIN[0] * (PER[0] * SE[0])) * SE[0]", "LIN[0] * PER[0] * SE[0]"),
        ("SE[0] * SE[1] * SE[0] * SE[1]", "SE[0] * SE[1]"),
        ("SE[0] * (LIN[0] * SE[0] + SE[0] * PER[0])", "LIN[0] * SE[0] + PER[0] * SE[0]"),
        ("RQ[0] * (SE[0] + SE[0] * LIN[0]) * SE[0]", "(LIN[0] * SE[0] + SE[0]) * RQ[0]"),
        (
            "SE[0] * (SE[0] + PER[0] * (SE[0] + SE[0] * LIN[0]))",  # a sum in a product in a sum
            "(LIN[0] * SE[0] + SE[0]) * PER[0] + SE[0]",
        ),
        ("SE[0] * (SE[1] * (SE[0] + SE[0] * SE[1]))", "(SE[0] + SE[0] * SE[1]) * SE[1]"),
        ("LIN[0] + (SE[0] + (LIN[0] + LIN[1])) + LIN[0]", "LIN[0] + LIN[1] + SE[0]"),
        ("PER[0] * (LIN[0] + LIN[0])", "LIN[0] * PER[0]"),
        (
            "PER[0] + PER[1] * (SE[0] * SE[0] + LIN[1] + LIN[1])",
            "(LIN[1] + SE[0]) * PER[1] + PER[0]",
        ),
        # what is left of an operation joins the operation around it
        (
            "SE[0] * (CONST[0] * SE[1] + CONST[0] * CONST[0]) * CONST[0]",
            "(CONST[0] + CONST[0] * SE[1]) * SE[0]",
        ),
        # operands of other operators
        ("GATE[0](SE[0] * SE[0], LIN[0] + LIN[0])", "GATE[0](SE[0], LIN[0])"),
        ("LIN[0] + LIN[0] + GATE[0](LIN[0], LIN[0])", "GATE[0](LIN[0], LIN[0]) + LIN[0]"),
        ("SE[0] * GATE[1](SE[0], SE[0]) * SE[0]", "GATE[1](SE[0], SE[0]) * SE[0]"),
    ],
)
def test_what_is_redundant_is_removed(text, expected):
    form = normal_form(expression_of(text))
    assert str(form) == expected  # sorted, and without needless brackets
    assert reduced(expression_of(text)).canonical == form.canonical == expected


KEPT = """
    LIN[0] + LIN[1]; RQ[0] * RQ[0]; RQ[0] + RQ[0]; PER[0] * PER[0]; PER[0] + PER[0]
    MAT32[0] * MAT32[0]; MAT52[0] * MAT52[0]; SE[0] * RQ[0]
    # the same leaf, but not in the same operation
    SE[0] * LIN[0] + SE[0] * PER[0]; LIN[0] * (LIN[0] * SE[0] + LIN[0] * PER[0])
    LIN[0] + (LIN[0] + SE[0]) * PER[0]
    # a term that does not absorb the factor
    SE[0] * (SE[0] * LIN[0] + SE[1]); SE[0] * (SE[0] + PER[0] * (SE[0] + LIN[0]))
    # another operator gives no absorption
    SE[0] * GATE[0](SE[0], SE[0]); SE[0] * (SE[0] + GATE[0](SE[0], SE[0]))
    LIN[0] + GATE[0](LIN[0], LIN[0]); GATE[0](SE[0], SE[0]); GATE[0](LIN[0], LIN[0])
"""
LINES = [line for line in KEPT.splitlines() if "#" not in line]


@pytest.mark.parametrize("text", "; ".join(LINES).strip(" ;").split("; "))
def test_what_is_not_redundant_is_kept_as_the_same_object(text):
    expression = expression_of(text)
    assert reduced(expression) is expression
    assert normal_form(expression).canonical == expression.canonical


def test_leaves_of_one_name_with_other_kernels_are_kept():
    for joined in (Leaf(SE, 0) * Leaf(Wiggly(), 0), Leaf(Wiggly("A"), 0) * Leaf(Wiggly("B"), 0)):
        assert reduced(joined) is joined
    twice = Leaf(Wiggly(), 0) * Leaf(Wiggly(), 0)  # equal, and not the same object
    assert reduced(twice) == Leaf(Wiggly(), 0)


def test_an_operator_of_the_user_that_commutes_removes_nothing_itself():
    class Join(type(ADD)):
        symbol = "&"
        precedence = 3

    (lin, se), join = (Leaf(LIN, 0), Leaf(SE, 0)), Join()
    for leaf in (lin, se, Leaf(CONST, 0)):
        twice = Operation(join, leaf, leaf)
        assert reduced(twice) is twice
        assert reduced(leaf + Leaf(PER, 0) * twice) == leaf + Leaf(PER, 0) * twice
    operands = Operation(join, lin + lin, Operation(join, se * se, lin))
    assert reduced(operands).canonical == "LIN[0] & LIN[0] & SE[0]"


# One step simpler


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SE[0]", ""),
        ("RQ[1]", "SE[1]"),
        ("SE[0] + LIN[0]", "SE[0]; LIN[0]"),
        ("PER[0] * LIN[0] * SE[0]", "PER[0] * SE[0]; LIN[0] * SE[0]; LIN[0] * PER[0]"),
        ("SE[0] + SE[0]", "SE[0]"),  # each once
        ("LIN[0] * PER[0] + SE[0]", "SE[0]; LIN[0] * PER[0]; PER[0] + SE[0]; LIN[0] + SE[0]"),
        (
            "SE[0] * (LIN[0] + PER[0] * SE[1])",
            "SE[0]; LIN[0] + PER[0] * SE[1]; PER[0] * SE[0] * SE[1]; LIN[0] * SE[0]; "
            "(LIN[0] + SE[1]) * SE[0]; (LIN[0] + PER[0]) * SE[0]",
        ),
        (
            "RQ[0] * RQ[1] + LIN[0]",  # a limit of each leaf, then of all at once
            "RQ[0] * RQ[1]; LIN[0]; LIN[0] + RQ[1]; LIN[0] + RQ[0]; LIN[0] + RQ[1] * SE[0]; "
            "LIN[0] + RQ[0] * SE[1]; LIN[0] + SE[0] * SE[1]",
        ),
        (
            "PER[0] * GATE[0](LIN[0] + SE[0], RQ[0])",
            "PER[0]; GATE[0](LIN[0] + SE[0], RQ[0]); (LIN[0] + SE[0]) * PER[0]; PER[0] * RQ[0]; "
            "GATE[0](SE[0], RQ[0]) * PER[0]; GATE[0](LIN[0], RQ[0]) * PER[0]; "
            "GATE[0](LIN[0] + SE[0], SE[0]) * PER[0]",
        ),
        # what is left is reduced again
        ("RQ[0] * SE[0]", "SE[0]; RQ[0]"),
        (
            "SE[0] * (SE[0] * LIN[0] + PER[0])",
            "SE[0]; LIN[0] * SE[0] + PER[0]; PER[0] * SE[0]; LIN[0] * SE[0]; "
            "(PER[0] + SE[0]) * SE[0]; (LIN[0] + PER[0]) * SE[0]",
        ),
        # a common factor is taken out of two terms
        (
            "SE[0] * LIN[0] + SE[0] * PER[0] + RQ[1]",
            "PER[0] * SE[0] + RQ[1]; LIN[0] * SE[0] + RQ[1]; LIN[0] * SE[0] + PER[0] * SE[0]; "
            "PER[0] * SE[0] + RQ[1] + SE[0]; LIN[0] + PER[0] * SE[0] + RQ[1]; "
            "LIN[0] * SE[0] + RQ[1] + SE[0]; LIN[0] * SE[0] + PER[0] + RQ[1]; "
            "(LIN[0] + PER[0]) * SE[0] + RQ[1]; LIN[0] * SE[0] + PER[0] * SE[0] + SE[1]",
        ),
        # steps begin at the normal form
        ("SE[0] * SE[0]", ""),
        ("LIN[0] + (SE[0] + LIN[0])", "SE[0]; LIN[0]"),
    ],
)
def test_simplifications_are_one_step_simpler_in_the_order_of_the_subtrees(text, expected):
    assert "; ".join(map(str, simplifications(expression_of(text)))) == expected


def test_a_common_factor_is_taken_out_with_either_of_its_leaves():
    """Their parameters differ, so that each of them is a place to go on from."""
    tree = expression_of("PER[0] * (LIN[0] * SE[0] + LIN[0] * (PER[1] + RQ[1]))")
    factored = list(factorings(tree))
    text = "(PER[1] + RQ[1] + SE[0]) * LIN[0] * PER[0]"
    assert [one.canonical for one in factored] == [text] * 2
    leaves = [[leaf for leaf in one.leaves if leaf.kernel == LIN] for one in (tree, *factored)]
    kept = [one is leaf for (one,) in leaves[1:] for leaf in leaves[0]]
    assert kept == [True, False, False, True]
    assert not [*factorings(expression_of("LIN[0] + LIN[0] * SE[0] + LIN[1] * SE[1]"))]
    one = expression_of("LIN[0] * SE[0]")  # an object that is a term three times
    assert {str(found) for found in factorings(one + one + one)} == {
        "LIN[0] * SE[0] + LIN[0] * (SE[0] + SE[0])",
        "LIN[0] * SE[0] + SE[0] * (LIN[0] + LIN[0])",
    }


def test_every_limit_of_a_leaf_is_tried_and_the_first_of_all_leaves_at_once():
    class Wide(type(SMOOTH)):
        name = "WIDE"

        @property
        def limits(self) -> tuple[BaseKernel, ...]:
            return (SE, LIN, self)  # itself is no simplification

    one, other = Leaf(Wide(), 0), Leaf(Wide(), 1)
    assert list(map(str, simplifications(one))) == ["SE[0]", "LIN[0]"]
    limits = "SE[0] + WIDE[1]; LIN[0] + WIDE[1]; SE[1] + WIDE[0]; LIN[1] + WIDE[0]; SE[0] + SE[1]"
    assert "; ".join(map(str, simplifications(one + other)[2:])) == limits


# Random trees

GRAMMAR = Grammar((SE, LIN, CONST), (ADD, MULTIPLY), columns=(0,), max_leaves=9)
TREES = [GRAMMAR.random_tree(2 + n % 8, np.random.default_rng(n)) for n in range(150)]


@pytest.mark.parametrize(
    ("text", "removed", "expected"),
    [
        ("SE[0] * (LIN[0] + PER[1])", ["LIN[0]", "PER[1]"], "SE[0]"),
        ("SE[0] + LIN[0] * PER[1]", ["PER[1]"], "SE[0] + LIN[0]"),
        ("CP[0](SE[0] + LIN[1], LIN[1] * PER[1])", ["LIN[1]"], "CP[0](SE[0], PER[1])"),
        ("CP[0](SE[0], LIN[1])", ["SE[0]"], "LIN[1]"),
        ("CP[0](SE[0], LIN[1])", ["LIN[1]"], "SE[0]"),
        ("CP[0](SE[0], LIN[1])", ["PER[1]"], "CP[0](SE[0], LIN[1])"),
        ("SE[0] * SE[0]", ["SE[0]"], None),
    ],
)
def test_without_some_leaves_the_other_operands_are_left(text, removed, expected):
    found = without_leaves(parse_expression(text), set(removed))
    assert found == (None if expected is None else parse_expression(expected))


def test_the_order_and_the_grouping_of_operands_make_no_difference():
    for number, tree in enumerate(TREES):
        other = reshuffled(tree, np.random.default_rng(number))
        assert normal_form(other) == normal_form(tree)
        assert reduced(other).canonical == reduced(tree).canonical
        assert simplifications(other) == simplifications(tree)


def test_to_reduce_twice_is_to_reduce_once():
    for tree in TREES:
        once = reduced(tree)
        assert reduced(once) is once
        assert all(reduced(subtree) is subtree for subtree in once.subtrees())
        assert normal_form(normal_form(tree)) == normal_form(tree)
        assert (once is tree) == (once.canonical == tree.canonical)


def test_simplifications_are_other_normal_forms_with_fewer_parameters():
    for tree in TREES:
        form, found = normal_form(tree), simplifications(tree)
        assert len({simpler.canonical for simpler in found}) == len(found)
        for simpler in found:
            assert normal_form(simpler) == simpler
            assert n_kernel_params(simpler) < n_kernel_params(form)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("(SE[0] + SE[1]) * LIN[2]", {
            "SE[0] * LIN[2] + SE[1]", "SE[1] * LIN[2] + SE[0]", "SE[0] + SE[1] + LIN[2]",
            "SE[0] * SE[1] * LIN[2]", "(SE[0] + LIN[2]) * SE[1]", "(SE[1] + LIN[2]) * SE[0]",
        }),
        ("SE[0] * SE[1]", {"SE[0] + SE[1]"}),
        ("SE[0]", set()),
    ],
)  # fmt: skip
def test_a_part_moves_to_every_other_place(text, expected):
    tree = expression_of(text)
    found = {one.canonical for one in moves(tree)} - {tree.canonical}
    assert found == {expression_of(one).canonical for one in expected}


def test_a_move_keeps_all_leaves_and_can_be_taken_back():
    tree = expression_of("SE[0] * SE[1] + LIN[2]")
    found = {one.canonical: one for one in moves(tree)}
    leaves = sorted(leaf.canonical for leaf in tree.leaves)
    for one in found.values():
        assert sorted(leaf.canonical for leaf in one.leaves) == leaves
        assert tree.canonical in {back.canonical for back in moves(one)}


def test_a_product_is_split_into_pairs():
    tree = expression_of("LIN[0] * LIN[1] * SE[2] * SE[3]")
    found = {one.canonical for one in moves(tree)}
    pairs = ("01 23", "02 13", "03 12")
    leaves = ("LIN[0]", "LIN[1]", "SE[2]", "SE[3]")
    for pair in pairs:
        one, other = (" * ".join(leaves[int(n)] for n in part) for part in pair.split())
        assert expression_of(f"{one} + {other}").canonical in found
