import numpy as np
import pytest

from autokernel.kernels import OPERATORS
from autokernel.search.design import classic_kernels, grown_kernels, relevant_columns


def texts(expressions):
    return [str(expression) for expression in expressions]


def classics(task):
    return texts(classic_kernels(task.grammar, task.base_kernels))


def grown(task, *, seed=0):
    rng = np.random.default_rng(seed)
    return [one.expression for one in grown_kernels(task.grammar, rng=rng)]


def test_one_column_has_smooth_linear_and_seasonal_classics(make_task):
    assert classics(make_task(1)) == ["SE[0]", "LIN[0]", "LIN[0] + PER[0] * SE[0] + SE[0]"]


def test_several_columns_have_ard_kernels_the_additive_and_the_linear_kernel(make_task):
    smooth, rough = "SE[0] * SE[1] * SE[2]", "RQ[0] * RQ[1] * RQ[2]"
    assert classics(make_task(3)) == [
        smooth,
        "SE[0] + SE[1] + SE[2]",
        "LIN[0] + LIN[1] + LIN[2]",
        rough,
        f"{rough} + (SE[0] + SE[1] + SE[2])",
        f"{smooth} + {rough}",
    ]


def test_classics_may_use_base_kernels_that_the_grammar_does_not(make_task):
    task = make_task(3, base_kernels=("SE", "RQ"), allowed=("SE", "LIN", "PER", "RQ"))
    assert "LIN[0] + LIN[1] + LIN[2]" in classics(task)


@pytest.mark.parametrize(
    ("n_features", "limits", "expected"),
    [
        (1, {"base_kernels": ("SE", "LIN", "RQ")}, ["SE[0]", "LIN[0]"]),
        (1, {"base_kernels": ("PER",)}, []),
        (1, {"operators": ("+",)}, ["SE[0]", "LIN[0]"]),
        (1, {"max_leaves": 3}, ["SE[0]", "LIN[0]"]),
        (2, {"base_kernels": ("SE", "LIN")}, ["SE[0] * SE[1]", "SE[0] + SE[1]", "LIN[0] + LIN[1]"]),
        (
            2,
            {"base_kernels": ("SE", "RQ"), "max_leaves": 3},
            ["SE[0] * SE[1]", "SE[0] + SE[1]", "RQ[0] * RQ[1]"],
        ),
        (2, {"operators": ("*",)}, ["SE[0] * SE[1]", "RQ[0] * RQ[1]"]),
        (2, {"operators": ("+",)}, ["SE[0] + SE[1]", "LIN[0] + LIN[1]"]),
        (4, {"max_leaves": 3}, []),
    ],
)
def test_classics_keep_to_base_kernels_operators_and_size(make_task, n_features, limits, expected):
    assert classics(make_task(n_features, **limits)) == expected


@pytest.mark.parametrize("n_features", [1, 3])
def test_every_base_kernel_on_every_column_comes_first(make_task, n_features):
    task = make_task(n_features)
    assert grown(task)[: 4 * n_features] == list(task.grammar.leaves)


def test_two_operations_from_each_base_kernel_come_next(make_task):
    task = make_task(3)
    bases = task.grammar.leaves
    rest = grown(task)[len(bases) :]
    assert len(rest) == 2 * len(bases)
    for number, base in enumerate(bases):
        for expression in rest[2 * number : 2 * number + 2]:
            # in this space an exchange gives a base kernel again, which is in the design already
            assert expression.n_leaves == 2
            assert base in expression.leaves


@pytest.mark.parametrize("limits", [{}, {"operators": ("*",)}, {"base_kernels": ("SE", "PER")}])
def test_grown_kernels_stay_in_the_grammar(make_task, limits):
    grammar = make_task(2, **limits).grammar
    for expression in grown(make_task(2, **limits)):
        assert set(expression.leaves) <= set(grammar.leaves)
        assert expression.n_leaves <= grammar.max_leaves
        used = {OPERATORS[symbol] for symbol in "+*" if symbol in str(expression)}
        assert used <= set(grammar.operators)


def test_columns_go_by_their_lengthscale_in_the_ard_fit(make_task, make_evaluation):
    scales = {0: 0.8, 1: 5.0, 2: 0.1}
    ard = make_evaluation("SE[0] * SE[1] * SE[2]", -10.0, lengthscales=scales)
    misleading = make_evaluation(
        "SE[0] + SE[1] + SE[2]", -5.0, lengthscales={0: 3.0, 1: 2.0, 2: 1.0}
    )
    assert relevant_columns(range(3), [misleading, ard], ard.expression) == (2, 0, 1)
