"""The scorer of predictive distributions."""

import numpy as np
import pytest
from scipy.special import expit, logit
from scipy.stats import norm
from sklearn.base import clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, WhiteKernel
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    PowerTransformer,
    QuantileTransformer,
    StandardScaler,
)

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


def of_logs(model):
    return TransformedTargetRegressor(model, func=np.log, inverse_func=np.exp)


LOGS = {
    "alone": of_logs,
    "in a pipeline": lambda model: make_pipeline(StandardScaler(), of_logs(model)),
    "around a pipeline": lambda model: of_logs(make_pipeline(StandardScaler(), model)),
    "around a grid": lambda model: of_logs(GridSearchCV(model, {"n_iter": [0]}, cv=2)),
    "in a grid": lambda model: GridSearchCV(of_logs(model), {"regressor__n_iter": [0]}, cv=2),
    "as an object": lambda model: TransformedTargetRegressor(
        model, transformer=FunctionTransformer(np.log, np.exp, check_inverse=False)
    ),
}


@pytest.mark.parametrize("wrap", LOGS.values(), ids=LOGS)
def test_the_density_of_a_transformed_target_is_that_of_the_target(wrap, fitted):
    for y, new in ((np.exp(Y), np.exp(Y_NEW)), (1e-8 * np.exp(Y), 1e-8 * np.exp(Y_NEW))):
        model = wrap(tiny()).fit(X, y)
        # p(y) = p(log y) / y
        expected = log_predictive_density_score(fitted, X_NEW, Y_NEW) - np.log(new).mean()
        # inputs of another unit are scaled to the same ones but for rounding
        assert log_predictive_density_score(model, X_NEW, new) == pytest.approx(expected, abs=1e-2)


@pytest.mark.parametrize(
    "transformer",
    [
        StandardScaler(),
        PowerTransformer(),
        QuantileTransformer(n_quantiles=20, output_distribution="normal"),
        FunctionTransformer(np.sqrt, np.square, check_inverse=False),
        FunctionTransformer(logit, expit, check_inverse=False),
        None,
    ],
    ids=str,
)
def test_the_density_of_a_transformed_target_integrates_to_one(transformer):
    y = expit(Y)
    gpr = GaussianProcessRegressor(RBF(0.3) + WhiteKernel(0.01), optimizer=None)
    model = TransformedTargetRegressor(gpr, transformer=transformer).fit(X, y)
    ends = np.linspace(y.min(), y.max(), 201)
    middles = (ends[1:] + ends[:-1]) / 2
    p = np.exp([log_predictive_density_score(model, X_NEW[[2]], [at]) for at in middles])
    # the probability between the ends, on the other scale
    mean, std = model.regressor_.predict(X_NEW[[2]], return_std=True)
    ends = np.sort(model.transformer_.transform(y[[y.argmin(), y.argmax()], None])[:, 0])
    inside = np.ptp(norm.cdf(ends, mean, std))
    # the slope of quantiles jumps at each of the twenty, and that of a logit is steep at the ends
    assert p.mean() * np.ptp(y) == pytest.approx(inside, rel=0.02)


def test_a_target_that_a_transform_cannot_have_has_no_density():
    model = of_logs(tiny()).fit(X, np.exp(Y))
    for impossible in (0.0, -1.0):
        assert log_predictive_density_score(model, X_NEW[:2], [1.0, impossible]) == -np.inf
    quantiles = QuantileTransformer(n_quantiles=20, output_distribution="normal")
    model = TransformedTargetRegressor(tiny(), transformer=quantiles).fit(X, Y)
    assert log_predictive_density_score(model, X_NEW[:2], [0.5, 9.0]) == -np.inf


@pytest.mark.parametrize(
    "wrap", [lambda model: model, make_pipeline, of_logs], ids=["alone", "pipeline", "logs"]
)
def test_the_scorer_refuses_an_estimator_without_a_deviation(wrap):
    y = np.exp(Y)
    model = wrap(LinearRegression()).fit(X, y)
    message = "whose predict takes return_std, got LinearRegression"
    with pytest.raises(TypeError, match=message):
        log_predictive_density_score(model, X_NEW, Y_NEW)
    with pytest.raises(TypeError, match=message):
        cross_val_score(
            model, X, y, scoring=log_predictive_density_score, cv=FOLDS, error_score="raise"
        )
