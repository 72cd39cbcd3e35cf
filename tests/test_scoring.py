"""The scorer of predictive distributions."""

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.base import clone
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, WhiteKernel
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from autokernel import log_predictive_density_score
from tests.fits import tiny, wave

X, Y = wave(20)
X_NEW = np.linspace(-0.2, 1.3, 6)[:, None]
Y_NEW = np.array([0.1, 0.6, 0.9, 0.0, -1.0, -0.5])
FOLDS = KFold(3)


@pytest.fixture(scope="module")
def fitted():
    """A mixture, which no test may change."""
    return tiny().fit(X, Y)


def test_the_scorer_is_the_mean_log_density_of_a_row(fitted):
    expected = fitted.log_predictive_density(X_NEW, Y_NEW).mean()
    assert log_predictive_density_score(fitted, X_NEW, Y_NEW) == pytest.approx(expected, rel=1e-12)
    assert isinstance(log_predictive_density_score(fitted, X_NEW, Y_NEW), float)


WRAPS = {
    "a pipeline in a pipeline": lambda model: make_pipeline(
        make_pipeline(StandardScaler(), "passthrough", model)
    ),
    "a grid in a pipeline": lambda model: make_pipeline(
        StandardScaler(), GridSearchCV(model, {"n_iter": [0]}, cv=2)
    ),
}


@pytest.mark.parametrize("wrap", WRAPS.values(), ids=WRAPS)
def test_the_scorer_finds_the_estimator_in_what_is_around_it(wrap, fitted):
    model = wrap(tiny()).fit(X, Y)
    expected = log_predictive_density_score(fitted, X_NEW, Y_NEW)
    # inputs of another unit are scaled to the same ones but for rounding
    assert log_predictive_density_score(model, X_NEW, Y_NEW) == pytest.approx(expected, abs=1e-2)


def test_the_scorer_scores_in_cross_validation():
    model = make_pipeline(StandardScaler(), tiny())
    found = cross_val_score(model, X, Y, scoring=log_predictive_density_score, cv=FOLDS)
    for score, (train, test) in zip(found, FOLDS.split(X), strict=True):
        own = clone(model).fit(X[train], Y[train])
        scaled = own[0].transform(X[test])
        expected = own[-1].log_predictive_density(scaled, Y[test]).mean()
        assert score == pytest.approx(expected, rel=1e-9)


def test_the_scorer_takes_a_gaussian_process_of_scikit_learn():
    gpr = GaussianProcessRegressor(RBF(0.3) + WhiteKernel(0.01), optimizer=None)
    for model in (gpr, make_pipeline(StandardScaler(), clone(gpr))):
        model.fit(X, Y)
        mean, std = model.predict(X_NEW, return_std=True)
        expected = norm.logpdf(Y_NEW, mean, std).mean()
        found = log_predictive_density_score(model, X_NEW, Y_NEW)
        assert found == pytest.approx(expected, rel=1e-12)
    scores = cross_val_score(gpr, X, Y, scoring=log_predictive_density_score, cv=FOLDS)
    assert np.isfinite(scores).all()


@pytest.mark.parametrize("wrap", [lambda model: model, make_pipeline], ids=["alone", "pipeline"])
def test_the_scorer_refuses_an_estimator_without_a_deviation(wrap):
    model = wrap(LinearRegression()).fit(X, Y)
    message = "whose predict takes return_std, got LinearRegression"
    with pytest.raises(TypeError, match=message):
        log_predictive_density_score(model, X_NEW, Y_NEW)
    with pytest.raises(TypeError, match=message):
        cross_val_score(
            model, X, Y, scoring=log_predictive_density_score, cv=FOLDS, error_score="raise"
        )
