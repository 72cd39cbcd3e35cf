"""What a fitted estimator tells once it was fitted again, or was never searched with."""

import json

import numpy as np
import pandas as pd
import pytest
import skops.io

from autokernel.export import from_dict, to_dict
from tests.fits import small, wave

X, Y = wave(20)
X_NEW, Y_NEW = wave(15, seed=1)


@pytest.fixture
def model():
    """A fitted model of a test's own."""
    return small(n_iter=0).fit(X, Y)


def test_the_leaderboard_of_a_fit_has_no_note(model):
    assert model.leaderboard().note == ""


def test_the_leaderboard_tells_that_scores_are_those_before_a_refit_to_other_rows(model):
    searched = model.best_score_
    model.refit(X_NEW, Y_NEW)
    assert model.best_score_ != searched
    table = model.leaderboard()
    note = (
        "* this kernel was fitted again after the search, to 15 rows, with score "
        f"{model.best_score_:.2f}"
    )
    assert str(table).splitlines()[-1] == note
    assert f"<p>{note}</p>" in table._repr_html_()


def test_the_leaderboard_names_a_kernel_of_refit_that_the_search_has_not_seen(model):
    kernel = "SE[0] + SE[0] + SE[0]"
    model.refit(X, Y, kernel)
    last = str(model.leaderboard(3)).splitlines()[-1]
    score = f"{model.best_score_:.2f}"
    assert last == (
        f"another kernel was fitted after the search, to 20 rows, with score {score}: "
        f"{model.best_expression_}"
    )


def test_an_estimator_that_has_only_refitted_says_that_there_was_no_search():
    model = small().refit(X, Y, "SE[0]")
    assert (model.stop_reason_, model.n_iter_) == ("refit", 0)
    copy = from_dict(json.loads(json.dumps(to_dict(model))))
    assert (copy.stop_reason_, copy.n_iter_) == ("refit", 0)
    model.set_params(n_iter=1).fit(X, Y)
    assert (model.stop_reason_, model.n_iter_) == ("n_iter", 1)
    model.refit(X_NEW, Y_NEW)  # the search stays the last one
    assert (model.stop_reason_, model.n_iter_) == ("n_iter", 1)


def test_skops_saves_and_loads_a_fitted_model_that_can_go_on(model, tmp_path):
    path = tmp_path / "model.skops"
    skops.io.dump(model, path)
    loaded = skops.io.load(path, trusted=skops.io.get_untrusted_types(file=path))
    np.testing.assert_array_equal(loaded.predict(X_NEW), model.predict(X_NEW))
    assert str(loaded.leaderboard()) == str(model.leaderboard())
    loaded.set_params(warm_start=True, n_iter=1).fit(X, Y)
    assert loaded.n_iter_ == 1


def test_the_history_prints_its_main_columns_and_keeps_all(model):
    lines = str(model.search_history_).splitlines()
    assert lines[0].split() == ["score", "n_leaves", "phase", "status", "elapsed", "kernel"]
    assert lines[-1] == "main columns; pandas.DataFrame(model.search_history_) has all"
    assert "<th>kernel</th>" in model.search_history_._repr_html_()
    assert pd.DataFrame(model.search_history_).shape == (len(lines) - 2, len(model.search_history_))
    copy = from_dict(json.loads(json.dumps(to_dict(model))))
    assert str(copy.search_history_) == str(model.search_history_)
