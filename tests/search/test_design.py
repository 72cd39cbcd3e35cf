"""Initial designs: what they hold, and what a search evaluates of them."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from autokernel.evidence import Evaluator
from autokernel.expression import NOISE
from autokernel.inference import TrainingData
from autokernel.kernels import PRESETS
from autokernel.search import SOT, History, Search, Store, evaluate_in_parallel
from autokernel.search.design import classic_kernels
from tests.search.stand_ins import task_of, texts

ARD, ROUGH = "SE[0] * SE[1] * SE[2]", "RQ[0] * RQ[1] * RQ[2]"
ADDITIVE, LINEAR = "SE[0] + SE[1] + SE[2]", "LIN[0] + LIN[1] + LIN[2]"


def classics(task):
    return texts(classic_kernels(task.grammar))


def design_of(task, name="default"):
    strategy = SOT(initial_design=name)
    *design, last = Search(strategy, task, History(10), n_iter=0, seed=0).design
    assert last == NOISE
    return design


@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        ({}, ["SE[0]", "LIN[0]", "LIN[0] + PER[0] * SE[0] + SE[0]"]),
        ({"base_kernels": ("PER",)}, []),
        ({"operators": ("+",)}, ["SE[0]", "LIN[0]"]),
        (
            {"n_features": 3},
            [ARD, ADDITIVE, LINEAR, ROUGH, f"{ROUGH} + ({ADDITIVE})"],
        ),
        (
            {"n_features": 2, "base_kernels": ("SE", "LIN")},
            ["SE[0] * SE[1]", "SE[0] + SE[1]", "LIN[0] + LIN[1]"],
        ),
        (
            {"n_features": 2, "base_kernels": ("SE", "RQ"), "max_leaves": 3},
            ["SE[0] * SE[1]", "SE[0] + SE[1]", "RQ[0] * RQ[1]"],
        ),
        ({"n_features": 2, "operators": ("+",)}, ["SE[0] + SE[1]", "LIN[0] + LIN[1]"]),
        ({"n_features": 4, "max_leaves": 3}, []),
    ],
)
def test_classics_keep_to_base_kernels_operators_and_size(limits, expected):
    assert classics(task_of(**limits)) == expected


@pytest.mark.parametrize("n_features", [1, 3])
def test_base_kernels_come_first_and_then_two_operations_from_each(n_features):
    task = task_of(n_features)
    bases, design = task.grammar.leaves, design_of(task, "paper")
    assert design[: len(bases)] == list(bases)
    if n_features > 1:  # enough kernels that none is met twice
        rest = design[len(bases) :]
        assert len(rest) == 2 * len(bases)
        for number, expression in enumerate(rest):
            # in this space an exchange gives a base kernel again, which is in the design already
            assert expression.n_leaves == 2
            assert bases[number // 2] in expression.leaves


@pytest.mark.parametrize(
    ("limits", "n_bases"),
    [
        ({}, 2),  # without those that are classics
        ({"n_features": 2}, 8),
        ({"n_features": 3}, 0),
        ({"n_features": 3, "base_kernels": ("PER",)}, 3),  # of which no classic is made
    ],
)
def test_base_kernels_follow_what_a_person_would_try_first_where_columns_are_few(limits, n_bases):
    task = task_of(**limits)
    design = texts(design_of(task))
    assert design[: len(classics(task))] == classics(task)
    assert len(design) == len(classics(task)) + n_bases
    assert set(design) >= set(texts(task.grammar.leaves)) or not n_bases


def test_of_very_many_columns_the_design_has_those_that_matter_also_by_a_product_only():
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(70, 30))
    y = np.sin(6 * X[:, 2]) + 8 * (X[:, 5] - 0.5) * (X[:, 11] - 0.5) + 0.1 * rng.normal(size=70)
    evaluator = Evaluator(TrainingData(X, y / y.std()), priors=PRESETS["default"], seed=0)
    task = task_of(30, base_kernels=("SE", "LIN"), max_leaves=64, reduces=True)
    task = replace(task, evaluator=evaluator)
    store = Store()

    def searched(**limits):
        history = History(len(y))
        search = Search(SOT(), task, history, n_iter=0, seed=0, store=store)
        search.run(partial(evaluate_in_parallel, evaluator, store=store), **limits)
        return search, history

    search, history = searched()
    assert history.best.expression.columns == {2, 5, 11}
    assert {2, 5, 11} <= search.task.chosen
    assert all(len(one.expression.columns) <= 12 for one in history.evaluations)
    near = search.task.near(history.best.expression).values()
    assert {c for one in near for c in one.columns} == set(range(30))  # a term of each other one
    again, same = searched()
    assert texts(one.expression for one in same.evaluations) == texts(
        one.expression for one in history.evaluations
    )
    assert again.task.chosen == search.task.chosen
