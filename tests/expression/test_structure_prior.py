"""Priors over structures, against products of probabilities by hand."""

from functools import partial
from math import exp, log

import numpy as np
import pytest
from hypothesis import given

from autokernel.expression import (
    NOISE,
    Expression,
    Grammar,
    StructurePrior,
    grammar_prior,
    normal_form,
    parse_expression,
    unit_prior,
)
from autokernel.kernels import ADD, BASE_KERNELS, MULTIPLY
from tests.batteries import every_tree, expressions, reshuffled, seeds
from tests.fits import tiny
from tests.kernels.gate import GATE

ARD = " * ".join(f"SE[{column}]" for column in range(8))
ARD_WITHOUT_ONE = " * ".join(f"SE[{column}]" for column in range(8) if column != 3)
ADDITIVE = " + ".join(f"SE[{column}]" for column in range(8))


def read(text: str) -> Expression:
    return parse_expression(text, operators=[GATE])


def kernels(*names: str) -> tuple:
    return tuple(BASE_KERNELS[name] for name in names)


def units_of(n_columns: int, nats: float = 2.0) -> StructurePrior:
    return partial(unit_prior, nats=nats, n_columns=n_columns)


def grammar_of(
    n_kernels: int, n_operators: int, n_columns: int, *, strength: float = 0.5
) -> StructurePrior:
    sizes = {"n_kernels": n_kernels, "n_operators": n_operators, "n_columns": n_columns}
    return partial(grammar_prior, **sizes, strength=strength)


@pytest.mark.parametrize(
    ("text", "n_columns", "n_units"),
    [
        ("NOISE", 1, 0),
        ("SE[0]", 1, 1),
        ("SE[0] * LIN[0] + PER[0]", 1, 3),
        ("LIN[0] * LIN[0]", 1, 2),
        ("SE[0] * SE[1]", 2, 1),
        ("SE[0] * SE[1]", 3, 2),  # of all columns, or each leaf by itself
        ("SE[0] * SE[1] * LIN[0]", 2, 2),
        (ARD, 8, 1),
        (ARD_WITHOUT_ONE, 8, 7),
        (ADDITIVE, 8, 8),
        (f"{ARD} + {ADDITIVE}", 8, 9),
        ("GATE[1](SE[0], SE[0] * SE[1])", 2, 2),
        ("LIN[0] * LIN[1]", 2, 2),  # a polynomial of two lines
    ],
)
def test_the_unit_prior_has_one_price_for_each_unit(text, n_columns, n_units):
    for nats in (0.0, 2.5):
        assert units_of(n_columns, nats=nats)(read(text)) == -nats * n_units


@pytest.mark.parametrize(
    ("text", "sizes", "probability"),
    [
        ("NOISE", (4, 2, 1), 1 / 2),
        # not noise, a unit, one of four base kernels
        ("SE[0]", (4, 2, 1), 1 / (2 * 2 * 4)),
        ("SE[0]", (2, 0, 1), 1 / (2 * 2 * 2)),
        # not noise; an operation, two units; one of two operators; two base kernels
        ("SE[0] + LIN[0]", (4, 2, 1), 1 / (2 * 2**3 * 2 * 4**2)),
        ("(SE[0] + LIN[0]) * PER[0]", (4, 2, 1), 1 / (2 * 2**5 * 2**2 * 4**3)),
        ("(SE[0] + LIN[0]) * PER[0]", (3, 1, 1), 1 / (2 * 2**5 * 3**3)),
        # the number of columns of the unit, of three, and which of them
        ("SE[1]", (4, 2, 3), 1 / (2 * 2 * 4 * 3 * 3)),
        # whether they are joined by a product or by a sum
        ("SE[1] * SE[2]", (4, 2, 3), 1 / (2 * 2 * 4 * 3 * 3 * 2)),
        ("SE[1] + SE[2]", (4, 2, 3), 1 / (2 * 2 * 4 * 3 * 3 * 2)),
        ("SE[0] * SE[1] + LIN[2]", (4, 2, 3), 1 / (2 * 2**3 * 2 * (4 * 3 * 3 * 2) * (4 * 3 * 3))),
        # a column that occurs twice, and leaves of different operations, are of other units
        ("SE[0] + SE[0]", (4, 2, 3), 1 / (2 * 2**3 * 2 * (4 * 3 * 3) ** 2)),
        ("SE[0] * SE[1] * SE[0]", (4, 2, 2), 1 / (2 * 2**3 * 2 * (4 * 2 * 2) * (4 * 2 * 2))),
        # lines on several columns are a sum, and a product of them is several units
        ("LIN[0] + LIN[1]", (4, 2, 3), 1 / (2 * 2 * 4 * 3 * 3)),
        ("LIN[0] * LIN[1]", (4, 2, 3), 0.01 / (2 * 2**3 * 2 * (4 * 3 * 3) ** 2)),
        ("LIN[0] * LIN[1] * SE[2]", (4, 2, 3), 0.01 / (2 * 2**5 * 2**2 * (4 * 3 * 3) ** 3)),
        # a line is rarely multiplied with a function of another column
        ("LIN[0] * SE[0]", (4, 2, 3), 1 / (2 * 2**3 * 2 * (4 * 3 * 3) ** 2)),
        ("LIN[0] * SE[1]", (4, 2, 3), 0.01 / (2 * 2**3 * 2 * (4 * 3 * 3) ** 2)),
        ("(LIN[0] + PER[1]) * SE[1]", (4, 2, 3), 0.01 / (2 * 2**5 * 2**2 * (4 * 3 * 3) ** 3)),
        (
            "(SE[0] * SE[1] + LIN[0]) * SE[0] * SE[1]",
            (4, 2, 2),
            0.01 / (2 * 2**5 * 2**2 * (4 * 2 * 2) * (4 * 2 * 2) * (4 * 2 * 2)),
        ),
        (ARD, (2, 2, 8), 1 / (2 * 2 * 2 * 8 * 2)),
        (ARD_WITHOUT_ONE, (2, 2, 8), 1 / (2 * 2 * 2 * 8 * 8 * 2)),
        (ADDITIVE, (2, 2, 8), 1 / (2 * 2 * 2 * 8 * 2)),
        (f"{ARD} + {ADDITIVE}", (2, 2, 8), 1 / (2 * 2**3 * 2 * (2 * 8 * 2) ** 2)),
        # one of three operators, which acts on one of two columns
        (
            "GATE[1](SE[0], PER[0] * PER[1])",
            (4, 3, 2),
            1 / (2 * 2**3 * 3 * 2 * (4 * 2 * 2) * (4 * 2 * 2)),
        ),
    ],
)
def test_the_grammar_prior_is_the_product_of_all_choices(text, sizes, probability):
    for strength in (1.0, 0.5, 0.0):
        prior = grammar_of(*sizes, strength=strength)
        assert prior(read(text)) == pytest.approx(strength * log(probability), rel=1e-12)


def test_the_kernel_of_a_category_stands_for_any_base_kernel():
    prior = partial(grammar_prior, n_kernels=3, n_operators=2, n_columns=4, strength=1.0)
    for operator in ("*", "+"):
        numbers = read(f"SE[0] {operator} SE[1] {operator} SE[2]")
        mixed = read(f"CAT[0] {operator} SE[1] {operator} SE[2]")
        assert prior(mixed) == pytest.approx(prior(numbers), rel=1e-12)
        levels = read(f"CAT[0] {operator} CAT[1] {operator} CAT[2]")
        assert prior(levels) == pytest.approx(prior(numbers) + log(3), rel=1e-12)
    # of two base kernels, the category is with the one on more columns
    several = read("CAT[0] + LIN[1] + SE[2] + SE[3]")
    without = read("LIN[1] + SE[0] + SE[2] + SE[3]")
    assert prior(several) == pytest.approx(prior(without), rel=1e-12)
    assert unit_prior(read("CAT[0] * SE[1]"), nats=2.0, n_columns=2) == -2.0
    # slopes that differ between levels are one unit as well
    slopes, curves = read("CAT[0] * LIN[1]"), read("CAT[0] * SE[1]")
    assert prior(slopes) == pytest.approx(prior(curves), rel=1e-12)
    # and in brackets they count as lines
    slopes, curves = (read(f"(CAT[0] * {one}[1] + SE[0]) * SE[2]") for one in ("LIN", "PER"))
    assert prior(slopes) == pytest.approx(prior(curves) + log(0.01), rel=1e-12)


@pytest.mark.parametrize("n_varying", [0, 1])
def test_a_kernel_on_columns_that_do_not_vary_can_be_fitted(n_varying):
    X, y = np.random.default_rng(0).uniform(size=(12, 2)), np.arange(12.0)
    X[:, n_varying:] = 1.0
    for text in ("SE[0] * SE[1]", "SE[1]"):
        model = tiny(base_kernels=["SE"]).refit(X, y, text)
        assert model.best_expression_ == text
        assert np.isfinite(model.best_score_)


@given(expression=expressions(), seed=seeds)
def test_order_and_grouping_do_not_matter(expression, seed):
    other = reshuffled(expression, np.random.default_rng(seed))
    for prior in (units_of(3), grammar_of(6, 2, 3), grammar_of(4, 2, 5, strength=1.0)):
        # sums of the same numbers in another order
        assert prior(other) == pytest.approx(prior(expression), rel=1e-12)


@pytest.mark.parametrize(
    ("names", "n_columns", "most_leaves"),
    [(("SE", "PER"), 1, 4), (("SE", "LIN"), 2, 3), (("SE", "LIN", "PER", "RQ"), 1, 3)],
)
def test_the_probabilities_of_all_normal_forms_sum_to_no_more_than_one(
    names, n_columns, most_leaves
):
    grammar = Grammar(kernels(*names), (ADD, MULTIPLY), tuple(range(n_columns)), most_leaves)
    prior = grammar_of(len(names), 2, n_columns, strength=1.0)
    forms = {"NOISE": NOISE}
    for n_leaves in range(1, most_leaves + 1):
        for tree in every_tree(grammar, n_leaves):
            form = normal_form(tree)
            forms.setdefault(form.canonical, form)
    total = sum(exp(prior(form)) for form in forms.values())
    assert 3 / 4 <= total <= 1  # noise and single units have three quarters


def test_scales_have_the_stated_probabilities_and_are_paid_once_for_each_column():
    plain, n = {"n_kernels": 2, "n_operators": 2, "n_columns": 2}, {0: 3}
    several = partial(grammar_prior, **plain, n_scales=n, n_targets=2)

    def cost(text: str) -> float:
        expression = parse_expression(text)
        return float(np.exp((several(expression) - grammar_prior(expression, **plain)) / 0.5))

    assert cost("SE[1]") == pytest.approx(0.8)  # of the target
    assert cost("SE[0] + LIN[0] * SE[1]") == pytest.approx(0.8 * 0.8)
    assert cost("SE[log(0)] + LIN[log(0)] * SE[1]") == pytest.approx(0.1 * 0.8)
    assert cost("log(y) ~ SE[sqrt(0)]") == pytest.approx(0.1 * 0.2)
    assert cost("log(y) ~ NOISE") == pytest.approx(0.2)
    assert cost("PER[0] + SE[log(0)]") == pytest.approx(0.1 * 0.8)  # periods have no scale
