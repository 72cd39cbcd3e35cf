"""Whole initial designs, as searches evaluate them."""

import numpy as np
import pytest

from autokernel.expression import NOISE
from autokernel.search import SOT, History, Search
from autokernel.search.design import (
    DESIGNS,
    MAX_DESIGN,
    classic_kernels,
    initial_design,
)

MANY = {"n_features": 40, "base_kernels": ("SE", "RQ"), "max_leaves": 44}
SOME = {"n_features": 10, "base_kernels": ("SE", "RQ"), "max_leaves": 14}  # 63 kernels

# the later a column, the shorter its lengthscale, and the other way round
LATER_IS_SHORTER = {column: 1.0 / (1 + column) for column in range(40)}
LATER_IS_LONGER = {column: 1.0 + column for column in range(40)}


def design_of(strategy, task):
    return Search(strategy, task, History(10), n_iter=0, seed=0).design


def build(name, task, *, seed=0):
    rng = np.random.default_rng(seed)
    return initial_design(name, task.grammar, task.base_kernels, rng=rng)


@pytest.fixture
def evaluated(run, make_evaluation):
    """What a search without proposals evaluates, given the lengthscales of all its fits.

    The end is noise alone, which is left out. It is the best, so that nothing is pruned.
    """

    def evaluate_design(name, task, *, lengthscales=None, score=-1.0):
        def evaluate(expression, known):
            own = score + 1.0 if expression == NOISE else score
            return make_evaluation(expression, own, lengthscales=lengthscales)

        history = run(evaluate, SOT(initial_design=name), task, n_iter=0).history
        *design, last = [evaluation.expression for evaluation in history.evaluations]
        assert last == NOISE
        return design

    return evaluate_design


@pytest.mark.parametrize("score", [-1.0, -np.inf])
@pytest.mark.parametrize("name", DESIGNS)
@pytest.mark.parametrize(
    "limits",
    [
        {"n_features": 1},
        {"n_features": 3},
        {"n_features": 1, "base_kernels": ("SE", "LIN")},  # so small that kernels meet again
        {"n_features": 2, "operators": ("+",)},
        {"n_features": 3, "max_leaves": 1},
        MANY,
        SOME,
    ],
)
def test_its_size_is_what_is_evaluated(evaluated, make_task, limits, name, score):
    task = make_task(**limits)
    design = design_of(SOT(initial_design=name), task)
    canonical = [e.canonical for e in evaluated(name, task, score=score)]
    assert len(canonical) == len(set(canonical)) == design.size
    assert design.size <= MAX_DESIGN or name == "paper"


# 12 kernels grow from a column; in one column two of the three classics are base kernels too
@pytest.mark.parametrize(("n_features", "size"), [(1, 13), (3, 42)])
def test_a_small_one_is_complete_classics_first_then_base_kernels_then_what_grew(
    evaluated, make_task, n_features, size
):
    task = make_task(n_features)
    classics = classic_kernels(task.grammar, task.base_kernels)
    known = {e.canonical for e in classics}
    paper = design_of(SOT(initial_design="paper"), task).grown
    grown = [g.expression for g in paper if g.expression.canonical not in known]
    if n_features > 1:  # those with a period are fitted from nothing, before the others
        grown.sort(key=lambda e: "PER" not in e.canonical)
    expected = [*classics, *grown]
    assert len(expected) == size
    # nothing is cut, so that nothing is moved
    assert evaluated("default", task, lengthscales={0: 3.0, 1: 2.0, 2: 1.0}) == expected


def test_of_many_columns_the_most_relevant_stay(evaluated, make_task):
    fixed = len(build("default", make_task(**MANY)).fixed)
    assert fixed == 3
    found = evaluated("default", make_task(**MANY), lengthscales=LATER_IS_SHORTER)[fixed:]
    # 57 of 80 base kernels, two on a column
    assert [str(e) for e in found] == [
        f"{name}[{column}]" for column in range(39, 10, -1) for name in ("SE", "RQ")
    ][:57]
    found = evaluated("default", make_task(**MANY), lengthscales=LATER_IS_LONGER)[fixed:]
    assert {leaf.column for e in found for leaf in e.leaves} == set(range(29))
