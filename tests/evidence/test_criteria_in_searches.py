"""Every criterion in a whole search."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, KFold, TimeSeriesSplit

from autokernel import AutoKernelGPRegressor, CrossValidation, evaluate_kernel
from autokernel.evidence import CRITERIA
from tests.fits import rows, small, wave

# these tests are about numbers, of rows in no order
pytestmark = pytest.mark.filterwarnings("ignore:TimeSeriesSplit takes rows")

X, Y = wave()


def scaled(X, y):
    """Columns in the unit interval, and a standardised target, as a search sees them."""
    return (X - X.min(axis=0)) / np.ptp(X, axis=0), (y - y.mean()) / y.std()


@pytest.mark.parametrize("name", CRITERIA)
def test_a_search_maximises_its_criterion_and_is_the_same_with_two_workers(name):
    model = small(criterion=name, n_iter=1).fit(X, Y)
    history = model.search_history_
    assert set(history["status"]) == {"ok"}
    assert model.best_score_ == history["score"].max()
    assert model.best_expression_ == history["kernel"][np.argmax(history["score"])]
    assert np.isnan(history["standard_error"]).all() == (name != "importance")
    first = evaluate_kernel(history["kernel"][0], *scaled(X, Y), criterion=name)
    assert history["log_prior"][0] < 0
    assert history["score"][0] == first.score + history["log_prior"][0]
    assert model.score(X, Y) > 0.9
    assert rows(small(criterion=name, n_iter=1, n_jobs=2).fit(X, Y)) == rows(model)


@pytest.mark.parametrize("cv", [5, TimeSeriesSplit(3)], ids=str)
def test_folds_are_those_of_the_scaled_rows_in_their_order(cv):
    order = np.argsort(X[:, 0])
    model = small(criterion=CrossValidation(cv=cv), n_iter=0, max_leaves=1, structure_prior=None)
    model.fit(X[order], Y[order])
    expected = evaluate_kernel(
        model.best_expression_, *scaled(X[order], Y[order]), criterion=CrossValidation(cv=cv)
    )
    assert model.best_score_ == expected.score
    assert model.best_score_ != model.fit(X, Y).best_score_


def test_folds_that_cannot_be_made_are_one_error_of_the_whole_fit():
    with pytest.raises(ValueError, match=r"cv must not be larger .*, got cv=21 and 20 rows"):
        small(criterion=CrossValidation(cv=21)).fit(X, Y)
    with pytest.raises(ValueError, match=r"'cv' .* of CrossValidation must be an int"):
        small(criterion=CrossValidation(cv=0)).fit(X, Y)


def test_the_number_of_folds_is_a_parameter_of_the_estimator():
    model = AutoKernelGPRegressor(criterion=CrossValidation())
    assert model.get_params()["criterion__cv"] == 5
    model.set_params(criterion__cv=3, n_iter=0, base_kernels=["LIN"], max_leaves=1)
    assert clone(model).criterion.cv == 3
    search = GridSearchCV(model, {"criterion__cv": [2, KFold(3)]}, cv=KFold(2), error_score="raise")
    assert np.isfinite(search.fit(X, Y).cv_results_["mean_test_score"]).all()
