import numpy as np
import pandas as pd
import pytest

from autokernel import parse_expression
from autokernel.search import History

COLUMNS = [
    "kernel",
    "score",
    "log_prior",
    "score_per_sample",
    "best_score",
    "n_leaves",
    "n_params",
    "phase",
    "status",
    "fit_seconds",
    "proposal_seconds",
    "elapsed",
    "standard_error",
    "pareto_k",
    "upper_bound",
]


@pytest.fixture
def history(make_history):
    return make_history(
        ("SE[0]", -np.inf),
        ("LIN[0] + SE[1]", -20.0),
        ("PER[0]", -30.0),
        ("RQ[0] * SE[0] * SE[1]", -10.0),
        ("RQ[1]", -np.inf),
    )


def test_columns_are_those_of_the_contract_and_of_one_length(history):
    columns = history.to_columns()
    assert list(columns) == COLUMNS
    assert {len(column) for column in columns.values()} == {len(history)}
    assert len(pd.DataFrame(columns)) == 5


def test_columns_hold_one_row_per_trial_in_order(history):
    table = pd.DataFrame(history.to_columns())
    assert list(table["kernel"]) == [
        "SE[0]",
        "LIN[0] + SE[1]",
        "PER[0]",
        "RQ[0] * SE[0] * SE[1]",
        "RQ[1]",
    ]
    assert list(table["score"]) == [-np.inf, -20, -30, -10, -np.inf]
    assert list(table["score_per_sample"]) == [-np.inf, -2, -3, -1, -np.inf]  # ten samples
    assert list(table["n_leaves"]) == [1, 2, 1, 3, 1]
    assert list(table["n_params"]) == [3, 5, 4, 8, 4]
    assert list(table["phase"]) == ["initial", "initial", "search", "search", "search"]
    assert list(table["status"]) == ["no factor", "ok", "ok", "ok", "no factor"]
    assert list(table["fit_seconds"]) == [0.25] * 5
    assert list(table["proposal_seconds"]) == [0, 0.5, 1, 1.5, 2]
    assert list(table["elapsed"]) == [1, 2, 3, 4, 5]


def test_kernels_are_written_with_feature_names_where_there_are_any(history):
    columns = history.to_columns(["time", "load"])
    assert columns["kernel"][1] == "LIN[time] + SE[load]"


def test_best_is_the_first_with_the_highest_score(make_history):
    history = make_history(("SE[0]", -2.0), ("LIN[0]", -1.0), ("PER[0]", -1.0))
    assert str(history.best.expression) == "LIN[0]"


def test_what_is_known_is_told_by_canonical_texts_and_the_rest_keeps_its_order(history):
    texts = ["PER[1]", "SE[1] + LIN[0]", "SE[1] * RQ[0]", "SE[1] * (SE[0] * RQ[0])", "LIN[0]"]
    new = history.without_known(parse_expression(text) for text in texts)
    assert [str(expression) for expression in new] == ["PER[1]", "SE[1] * RQ[0]", "LIN[0]"]


@pytest.mark.parametrize(("n_searched", "length"), [(0, 2), (1, 3), (3, 5)])
def test_before_some_trials_there_was_the_design_and_the_trials_before(history, n_searched, length):
    before = history.before(n_searched)
    assert before.trials == history.trials[:length]
    assert before.n_samples == history.n_samples
    assert len(history) == 5  # and stays as it is


def test_an_empty_history_has_empty_columns():
    history = History(10)
    assert len(history) == 0
    assert {len(column) for column in history.to_columns().values()} == {0}
