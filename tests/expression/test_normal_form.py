"""Families are proved equal by parameters mapped both ways, covariance against covariance."""

import numpy as np
import pytest

from autokernel.expression import (
    Expression,
    Leaf,
    Operation,
    normal_form,
    parse_expression,
    reduced,
    simplifications,
)
from autokernel.kernels import ADD, BASE_KERNELS, SMOOTH, VARIANCE, BaseKernel, Pairs
from autokernel.typing import FloatArray
from tests.batteries import covariance
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


# Each rule by itself


def narrower(one: float, other: float) -> float:
    """Lengthscale of the product of two SE."""
    return (one**-2 + other**-2) ** -0.5


def wider(one: float, factor: float) -> float:
    """Lengthscale of what is left of SE when SE is taken out as a factor."""
    return (one**-2 - factor**-2) ** -0.5


def test_a_product_of_two_se_is_se_and_any_se_is_such_a_product():
    assert_equal(
        covariance_of("SE[0] * SE[0]", 0.7, 1.3, 0.4, 0.6),
        covariance_of("SE[0]", narrower(0.7, 0.4), 1.3 * 0.6),
    )
    assert_equal(
        covariance_of("SE[0]", 0.5, 2.5),
        covariance_of("SE[0] * SE[0]", 0.9, 5.0, wider(0.5, 0.9), 0.5),
    )


def test_a_sum_of_two_lin_is_lin_and_any_lin_is_such_a_sum():
    assert_equal(
        covariance_of("LIN[0] + LIN[0]", 0.7, 1.3, 0.4, 0.6), covariance_of("LIN[0]", 1.1, 1.9)
    )
    assert_equal(
        covariance_of("LIN[0]", 0.5, 2.5), covariance_of("LIN[0] + LIN[0]", 0.2, 1.9, 0.3, 0.6)
    )


def test_se_times_a_sum_of_products_with_se_is_that_sum_and_any_such_sum_has_that_factor():
    grouped, plain = "SE[0] * (SE[0] * LIN[1] + SE[0])", "SE[0] * LIN[1] + SE[0]"
    assert_equal(
        covariance_of(grouped, 0.7, 1.3, 0.4, 0.6, 0.2, 0.3, 0.9, 0.8),
        covariance_of(
            plain, narrower(0.7, 0.4), 1.3 * 0.6, 0.2, 0.3, narrower(0.7, 0.9), 1.3 * 0.8
        ),
    )
    assert_equal(
        covariance_of(plain, 0.4, 0.6, 0.2, 0.3, 0.9, 0.8),
        # any factor that is wider than both
        covariance_of(grouped, 1.1, 2.0, wider(0.4, 1.1), 0.3, 0.2, 0.3, wider(0.9, 1.1), 0.4),
    )


def test_the_limit_of_rq_is_se_with_the_same_lengthscale_and_variance():
    assert BASE_KERNELS["RQ"].limits == (SE,)
    # with z below (2 / 0.7)^2 / 2 < 5, the error of the exponent is z^2 / (2 alpha) < 2e-7
    np.testing.assert_allclose(
        covariance_of("RQ[0]", 0.7, 1.3, 1e8), covariance_of("SE[0]", 0.7, 1.3), rtol=2e-7
    )


@pytest.mark.parametrize(
    ("attribute", "names"),
    [
        ("closed_under_products", ["SE"]),
        ("closed_under_sums", ["LIN"]),
        ("is_linear", ["LIN"]),
        ("limits", ["RQ"]),
    ],
)
def test_only_these_kernels_declare_it(attribute, names):
    assert [n for n, kernel in BASE_KERNELS.items() if getattr(kernel, attribute)] == names


def test_limits_have_fewer_parameters():
    for kernel in BASE_KERNELS.values():
        assert all(len(limit.parameters) < len(kernel.parameters) for limit in kernel.limits)


# What is removed, and what is not


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SE[0] * SE[0]", "SE[0]"),
        ("SE[0] * (LIN[0] * (PER[0] * SE[0])) * SE[0]", "LIN[0] * PER[0] * SE[0]"),
        ("SE[0] * SE[1] * SE[0] * SE[1]", "SE[0] * SE[1]"),
        ("SE[0] * (SE[0] + SE[0])", "SE[0] + SE[0]"),
        ("SE[0] * (LIN[0] * SE[0] + SE[0] * PER[0])", "LIN[0] * SE[0] + PER[0] * SE[0]"),
        ("RQ[0] * (SE[0] + SE[0] * LIN[0]) * SE[0]", "(LIN[0] * SE[0] + SE[0]) * RQ[0]"),
        (
            "SE[0] * (SE[0] + PER[0] * (SE[0] + SE[0] * LIN[0]))",  # a sum in a product in a sum
            "(LIN[0] * SE[0] + SE[0]) * PER[0] + SE[0]",
        ),
        ("SE[0] * (SE[1] * (SE[0] + SE[0] * SE[1]))", "(SE[0] + SE[0] * SE[1]) * SE[1]"),
        ("LIN[0] + LIN[0]", "LIN[0]"),
        ("LIN[0] + (SE[0] + (LIN[0] + LIN[1])) + LIN[0]", "LIN[0] + LIN[1] + SE[0]"),
        ("PER[0] * (LIN[0] + LIN[0])", "LIN[0] * PER[0]"),
        (
            "PER[0] + PER[1] * (SE[0] * SE[0] + LIN[1] + LIN[1])",
            "(LIN[1] + SE[0]) * PER[1] + PER[0]",
        ),
        # what is left of an operation joins the operation around it
        ("LIN[0] * (LIN[0] + LIN[0])", "LIN[0] * LIN[0]"),
        (
            "SE[0] * (CONST[0] * SE[1] + CONST[0] * CONST[0]) * CONST[0]",
            "(CONST[0] + CONST[0] * SE[1]) * SE[0]",
        ),
        ("CONST[0] + CONST[0] * (CONST[0] + SE[0] * CONST[0])", "CONST[0] + CONST[0] * SE[0]"),
        ("CONST[0] * (CONST[0] + CONST[0])", "CONST[0]"),
        ("CONST[0] * LIN[0] * (CONST[0] + CONST[0])", "CONST[0] * LIN[0]"),
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


@pytest.mark.parametrize(
    "text",
    [
        "SE[0]",
        "SE[0] + SE[0]",
        "SE[0] * SE[1]",
        "LIN[0] * LIN[0]",
        "LIN[0] + LIN[1]",
        "RQ[0] * RQ[0]",
        "RQ[0] + RQ[0]",
        "PER[0] * PER[0]",
        "PER[0] + PER[0]",
        "MAT32[0] * MAT32[0]",
        "MAT52[0] * MAT52[0]",
        "SE[0] * RQ[0]",
        # the same leaf, but not in the same operation
        "SE[0] * LIN[0] + SE[0] * PER[0]",
        "SE[0] * LIN[0] + SE[0]",
        "LIN[0] * SE[0] + LIN[0] * SE[0]",
        "LIN[0] + LIN[0] * SE[0]",
        "LIN[0] * (LIN[0] + SE[0])",
        "LIN[0] * (LIN[0] * SE[0] + LIN[0] * PER[0])",
        "LIN[0] + (LIN[0] + SE[0]) * PER[0]",
        "(SE[0] + LIN[0]) * (SE[0] + LIN[0])",
        # a term that does not absorb the factor
        "SE[0] * (SE[0] + LIN[0])",
        "SE[0] * (SE[0] * LIN[0] + LIN[0])",
        "SE[0] * (SE[0] * LIN[0] + SE[1])",
        "SE[0] * (SE[0] + PER[0] * (SE[0] + LIN[0]))",
        # another operator gives no absorption
        "SE[0] * GATE[0](SE[0], SE[0])",
        "SE[0] * (SE[0] + GATE[0](SE[0], SE[0]))",
        "LIN[0] + GATE[0](LIN[0], LIN[0])",
        "GATE[0](SE[0], SE[0])",
        "GATE[0](LIN[0], LIN[0])",
    ],
)
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
        ("SE[0]", []),
        ("RQ[1]", ["SE[1]"]),
        ("SE[0] + LIN[0]", ["SE[0]", "LIN[0]"]),
        ("PER[0] * LIN[0] * SE[0]", ["PER[0] * SE[0]", "LIN[0] * SE[0]", "LIN[0] * PER[0]"]),
        ("SE[0] + SE[0]", ["SE[0]"]),  # each once
        (
            "LIN[0] * PER[0] + SE[0]",
            ["SE[0]", "LIN[0] * PER[0]", "PER[0] + SE[0]", "LIN[0] + SE[0]"],
        ),
        (
            "SE[0] * (LIN[0] + PER[0] * SE[1])",
            [
                "SE[0]",
                "LIN[0] + PER[0] * SE[1]",
                "PER[0] * SE[0] * SE[1]",
                "LIN[0] * SE[0]",
                "(LIN[0] + SE[1]) * SE[0]",
                "(LIN[0] + PER[0]) * SE[0]",
            ],
        ),
        (
            "RQ[0] + RQ[1] * LIN[0]",  # a limit of each leaf, then of all at once
            [
                "RQ[0]",
                "LIN[0] * RQ[1]",
                "RQ[0] + RQ[1]",
                "LIN[0] + RQ[0]",
                "LIN[0] * SE[1] + RQ[0]",
                "LIN[0] * RQ[1] + SE[0]",
                "LIN[0] * SE[1] + SE[0]",
            ],
        ),
        (
            "PER[0] * GATE[0](LIN[0] + SE[0], RQ[0])",
            [
                "PER[0]",
                "GATE[0](LIN[0] + SE[0], RQ[0])",
                "(LIN[0] + SE[0]) * PER[0]",
                "PER[0] * RQ[0]",
                "GATE[0](SE[0], RQ[0]) * PER[0]",
                "GATE[0](LIN[0], RQ[0]) * PER[0]",
                "GATE[0](LIN[0] + SE[0], SE[0]) * PER[0]",
            ],
        ),
        # what is left is reduced again
        ("RQ[0] * SE[0]", ["SE[0]", "RQ[0]"]),
        (
            "SE[0] * (SE[0] * LIN[0] + PER[0])",
            [
                "LIN[0] * SE[0] + PER[0]",
                "SE[0]",
                "PER[0] * SE[0]",
                "LIN[0] * SE[0]",
                "(PER[0] + SE[0]) * SE[0]",
                "(LIN[0] + PER[0]) * SE[0]",
            ],
        ),
        # steps begin at the normal form
        ("SE[0] * SE[0]", []),
        ("LIN[0] + (SE[0] + LIN[0])", ["SE[0]", "LIN[0]"]),
    ],
)
def test_simplifications_are_one_step_simpler(text, expected):
    found = simplifications(expression_of(text))
    assert sorted(map(str, found)) == sorted(expected)


def test_simplifications_come_in_a_fixed_order():
    found = simplifications(expression_of("RQ[0] * RQ[1] + LIN[0]"))
    assert list(map(str, found)) == [
        "RQ[0] * RQ[1]",
        "LIN[0]",
        "LIN[0] + RQ[1]",
        "LIN[0] + RQ[0]",
        "LIN[0] + RQ[1] * SE[0]",
        "LIN[0] + RQ[0] * SE[1]",
        "LIN[0] + SE[0] * SE[1]",
    ]


def test_every_limit_of_a_leaf_is_tried_and_the_first_of_all_leaves_at_once():
    class Wide(type(SMOOTH)):
        name = "WIDE"

        @property
        def limits(self) -> tuple[BaseKernel, ...]:
            return (SE, LIN, self)  # itself is no simplification

    one, other = Leaf(Wide(), 0), Leaf(Wide(), 1)
    assert list(map(str, simplifications(one))) == ["SE[0]", "LIN[0]"]
    assert list(map(str, simplifications(one + other)))[2:] == [
        "SE[0] + WIDE[1]",
        "LIN[0] + WIDE[1]",
        "SE[1] + WIDE[0]",
        "LIN[1] + WIDE[0]",
        "SE[0] + SE[1]",
    ]
