"""Leaderboard, refit to a known structure, and fits that have very little time."""

import copy

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import ConvergenceWarning

from autokernel import evaluate_kernel, parse_expression
from tests.fits import TIMES, assert_predicts_as_its_kernel, rows, small, through_json, tiny, wave

X, Y = wave(20, n_features=2)
X_NEW, Y_NEW = wave(15, n_features=2, seed=1)


@pytest.fixture(scope="module")
def fitted():
    """A model that has seen kernels of two leaves, which no test may change."""
    return tiny(max_leaves=2, n_iter=1, averaging=None).fit(X, Y)


@pytest.fixture
def model(fitted):
    """A copy of it of a test's own."""
    return copy.deepcopy(fitted)


def scaled(X, y):
    """The units of the search, by the words of the documentation."""
    return (X - X.min(axis=0)) / np.ptp(X, axis=0), (y - y.mean()) / y.std()


@pytest.mark.parametrize("limit", [(), (1,), (1000,)])
def test_leaderboard_is_the_best_rows_of_the_history_each_kernel_once(fitted, limit):
    history = fitted.search_history_
    assert len(history["kernel"]) > 5
    n_rows = min(limit[0] if limit else 10, len(history["kernel"]))
    table = fitted.leaderboard(*limit)
    assert {len(column) for column in table.values()} == {n_rows}
    np.testing.assert_array_equal(table["score"], np.sort(history["score"])[::-1][:n_rows])
    np.testing.assert_array_equal(table["rank"], np.arange(1, n_rows + 1))
    rows = [list(history["kernel"]).index(kernel) for kernel in table["kernel"]]
    for name in ("score", "score_per_sample", "n_leaves", "n_params", "phase", "status"):
        np.testing.assert_array_equal(table[name], history[name][rows])
    canonical = [parse_expression(kernel).canonical for kernel in table["kernel"]]
    assert len(set(canonical)) == n_rows
    assert list(table["chosen"]) == [True] + [False] * (n_rows - 1)
    assert table["kernel"][0] == fitted.best_expression_


def test_leaderboard_prints_a_line_for_each_kernel_with_a_mark_at_the_chosen(fitted):
    table = fitted.leaderboard(3)
    head, *lines = str(table).splitlines()
    assert head.split() == ["rank", "chosen", "score", "n_leaves", "kernel"]
    assert [line.split()[0] for line in lines] == ["1", "2", "3"]
    assert [line.split()[1] == "*" for line in lines] == [True, False, False]
    for line, kernel, score in zip(lines, table["kernel"], table["score"], strict=True):
        assert line.endswith(f"  {kernel}")
        assert f"{score:.2f}" in line


@pytest.mark.parametrize("blank", [" ", "_"])
def test_leaderboard_keeps_to_a_hundred_characters_where_names_are_long(blank):
    names = [blank.join(["time since the beginning of the measurements in days"] * 3), "wind"]
    frame = pd.DataFrame(X, columns=[names[0].replace(" ", blank), names[1]])
    table = tiny(max_leaves=2, averaging=None).fit(frame, Y).leaderboard(1000)
    lines = str(table).splitlines()
    assert len(lines) > len(table["kernel"]) + 1  # some are broken
    assert max(map(len, lines)) <= 100
    # nothing is lost where a line is broken
    whole = "".join(str(table).split())
    assert all("".join(kernel.split()) in whole for kernel in table["kernel"])


def test_leaderboard_marks_the_kernel_of_refit_however_it_is_written(model):
    model.refit(X, Y, "LIN[1]")
    table = model.leaderboard()
    assert list(table["kernel"][table["chosen"]]) == ["LIN[1]"]
    model.refit(X, Y, "LIN[1] + SE[1]")  # not in the history
    assert not model.leaderboard()["chosen"].any()
    sums = [kernel for kernel in model.search_history_["kernel"] if " + " in kernel]
    left, right = next(
        pair for pair in (kernel.split(" + ") for kernel in sums) if len(set(pair)) > 1
    )
    model.refit(X, Y, f"{right} + {left}")
    table = model.leaderboard(1000)
    assert list(table["kernel"][table["chosen"]]) == [f"{left} + {right}"]


@pytest.mark.parametrize(
    ("kernel", "criterion"),
    [("LIN[0] + SE[1]", "importance"), (parse_expression("LIN[0] + SE[1]"), "laplace")],
)
def test_refit_of_a_kernel_is_evaluate_kernel_on_scaled_data(kernel, criterion):
    model = tiny(criterion=criterion, random_state=3, priors={"lengthscale": (3, 1)})
    model.set_params(structure_prior=None, averaging=None)
    assert model.refit(X, Y, kernel) is model
    expected = evaluate_kernel(
        kernel, *scaled(X, Y), random_state=3, criterion=criterion, priors=model.priors
    )
    assert model.best_score_ == expected.score
    np.testing.assert_array_equal(model._fitted.evaluation.theta, expected.theta)
    assert model.best_expression_ == "LIN[0] + SE[1]"
    assert model.n_features_in_ == 2
    assert_predicts_as_its_kernel(model, X, Y, X_NEW + 0.1)


def test_refit_without_a_kernel_keeps_the_structure_and_takes_the_data():
    model = tiny(averaging=None).fit(X, Y)
    history, reason = model.search_history_, model.stop_reason_
    structure = model.best_expression_
    before = model.predict(X_NEW)
    model.refit(X_NEW, Y_NEW)
    assert model.best_expression_ == structure
    assert model.search_history_ is history
    assert model.stop_reason_ == reason
    assert not np.array_equal(model.predict(X_NEW), before)
    np.testing.assert_array_equal(model.X_train_, X_NEW)
    np.testing.assert_array_equal(model.y_train_, Y_NEW)
    alone = evaluate_kernel(structure, *scaled(X_NEW, Y_NEW), random_state=0)
    # also begun at the parameters found before: no worse, but for the stop of the optimiser
    assert model._fitted.evaluation.log_posterior > alone.log_posterior - 1e-6
    assert_predicts_as_its_kernel(model, X_NEW, Y_NEW, X_NEW + 0.1)


def test_a_search_after_refit_goes_on_where_the_last_one_ended(fitted, model):
    model.refit(X_NEW, Y_NEW, "LIN[1]").set_params(warm_start=True).fit(X, Y)
    assert model.best_expression_ == fitted.best_expression_
    assert rows(model, without=TIMES[1:]) == rows(fitted, without=TIMES[1:])  # which were read


def test_a_moment_of_time_gives_a_rough_model_and_a_warning():
    with pytest.warns(ConvergenceWarning) as caught:
        model = tiny(max_time=1e-6, averaging=None).fit(X, Y)
    (warning,) = caught
    assert "max_time ended the search before any kernel had a score" in str(warning.message)
    assert model.best_expression_ in str(warning.message)
    assert warning.filename == __file__  # it points at the call of fit
    assert model.stop_reason_ == "max_time"
    assert model.best_score_ == -np.inf
    assert len(model.search_history_["kernel"]) == model.n_iter_ == 0
    assert model.score(X, Y) > 0.5  # better than a straight line
    assert_predicts_as_its_kernel(model, X, Y, X_NEW + 0.1)
    heads = ["rank", "chosen", "score", "n_leaves", "kernel"]
    assert str(model.leaderboard()).split() == heads  # without a row
    assert np.isfinite(model.refit(X, Y).best_score_)


def test_the_leaderboard_says_which_kernel_was_fitted_after_the_search(model):
    searched = model.best_score_
    assert model.leaderboard().note == ""
    model.refit(X_NEW, Y_NEW)
    assert model.best_score_ != searched
    of_rows = "fitted again after the search, to 15 rows, with score"
    again = f"* this kernel was {of_rows} {model.best_score_:.2f}"
    assert str(model.leaderboard()).splitlines()[-1] == again
    assert f"<p>{again}</p>" in model.leaderboard()._repr_html_()
    model.refit(X, Y, "SE[0] + SE[0] + SE[0]")  # which the search has not seen
    assert model.leaderboard().note == (
        "another kernel was fitted after the search, to 20 rows, with score "
        f"{model.best_score_:.2f}: {model.best_expression_}"
    )


def test_an_estimator_that_has_only_refitted_says_that_there_was_no_search():
    model = tiny(averaging=None, base_kernels=["LIN"]).refit(X, Y, "SE[0]")
    assert (model.stop_reason_, model.n_iter_) == ("refit", 0)
    copy = through_json(model)
    assert (copy.stop_reason_, copy.n_iter_) == ("refit", 0)
    model.set_params(max_leaves=2, n_iter=1, tol=0.0).fit(X, Y)
    assert (model.stop_reason_, model.n_iter_) == ("n_iter", 1)
    model.refit(X_NEW, Y_NEW)  # the search stays the last one
    assert (model.stop_reason_, model.n_iter_) == ("n_iter", 1)


def test_the_history_prints_its_main_columns_and_keeps_all(model):
    lines = str(model.search_history_).splitlines()
    assert lines[0].split() == ["score", "n_leaves", "phase", "status", "elapsed", "kernel"]
    assert lines[-1] == "main columns; pandas.DataFrame(model.search_history_) has all"
    assert "<th>kernel</th>" in model.search_history_._repr_html_()
    assert pd.DataFrame(model.search_history_).shape == (len(lines) - 2, len(model.search_history_))
    copy = through_json(model)
    assert str(copy.search_history_) == str(model.search_history_)


def test_refit_needs_nothing_that_only_a_search_needs(rng):
    X, y = rng.uniform(size=(30, 2)), rng.normal(size=30)  # without a column of time
    model = small(strategy="series").refit(X, y, "LIN[0]")
    assert model.best_expression_ == "LIN[0]"
