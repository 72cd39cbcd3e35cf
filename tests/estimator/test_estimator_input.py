"""Bad input gets a clear error; odd but valid input gets a sane fit."""

import warnings
from contextlib import nullcontext

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from autokernel import SOT, EvaluationError
from autokernel.evidence import evaluator as evaluate
from tests.estimator.test_estimator import quick, wave


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"base_kernels": ["SE", "SX"]}, r"base_kernels .*'SE', 'LIN', 'PER', 'RQ'.*'SX'"),
        ({"base_kernels": []}, "base_kernels"),
        ({"base_kernels": "SE"}, r"base_kernels .*'SE', 'LIN', 'PER', 'RQ'.*'SE'"),
        (
            {"operators": "+"},
            r"operators must be a selection of \['\+', '\*', 'CP', 'CW'\] or Operator objects, "
            r"a list such as \['\+'\], got '\+'",
        ),
        ({"operators": ["-"]}, r"operators .*'\+', '\*'.*'-'"),
        ({"strategy": "sott"}, r"strategy must be .*'sot'"),
        ({"criterion": "bik"}, r"criterion must be .*'laplace'"),
        ({"n_iter": -1}, r"'n_iter' .*\[0, inf\).*-1"),
        ({"n_iter": 2.5}, "'n_iter'"),
        ({"max_leaves": 0}, "'max_leaves'"),
        ({"priors": "none"}, "priors .*'default', 'paper'"),
        ({"priors": {"lengthscal": (1, 2)}}, "priors .*'lengthscale'.*'lengthscal'"),
        ({"priors": {"lengthscale": (1, -2)}}, r"priors\['lengthscale'\] .*positive"),
        ({"random_state": -3}, "random_state|Seed|seed"),
        ({"strategy": SOT(population_size=0)}, r"'population_size' .*of SOT .*\[1, inf\).*0"),
        ({"strategy": SOT(initial_design="big")}, "'initial_design' .*of SOT .*'default'.*'big'"),
        ({"strategy": SOT(n_generations="few")}, "'n_generations' .*of SOT .*'auto'.*'few'"),
    ],
)
def test_bad_parameter_is_named_with_what_is_known(parameters, message):
    X, y = wave()
    with pytest.raises(ValueError, match=message):
        quick(**parameters).fit(X, y)


def test_what_is_neither_a_name_nor_a_base_kernel_is_named_with_what_may_be_given():
    message = r"base_kernels must hold names or BaseKernel objects, got \['SE'\]"
    with pytest.raises(TypeError, match=message):
        quick(base_kernels=[["SE"]]).fit(*wave())


def broken(X, *, value):
    """A copy with one entry replaced."""
    X = X.copy()
    X[3, 0] = value
    return X


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda X, y: (broken(X, value=np.nan), y), "NaN"),
        (lambda X, y: (broken(X, value=np.inf), y), "infinity"),
        (lambda X, y: (X, np.where(np.arange(len(y)) == 3, np.nan, y)), "NaN"),
        (lambda X, y: (X[:1], y[:1]), "minimum of 2 is required"),
        (lambda X, y: (X[:, 0], y), "Expected 2D array"),
        (lambda X, y: (X[:-1], y), "inconsistent numbers of samples"),
        (lambda X, y: (X, np.c_[y, y]), "y should be a 1d array"),
        (lambda X, y: (X[:, :0], y), r"0 feature\(s\)"),
    ],
)
def test_bad_data_get_the_errors_of_scikit_learn(change, message):
    with pytest.raises(ValueError, match=message):
        quick().fit(*change(*wave()))


def test_numbers_whose_squares_overflow_are_refused():
    X, y = wave()
    with pytest.raises(ValueError, match="y must not hold numbers above 1e"):
        quick().fit(X, y * 1e200)
    with pytest.raises(ValueError, match="X must not hold numbers above 1e"):
        quick().fit(X * 1e200, y)


def test_predict_after_a_fit_that_failed_says_that_there_is_none():
    X, y = wave()
    model = quick(base_kernels=["SX"])
    with pytest.raises(ValueError, match="base_kernels"):
        model.fit(X, y)
    with pytest.raises(NotFittedError):
        model.predict(X)


def test_predict_before_fit_and_with_another_number_of_columns_are_refused():
    X, y = wave()
    with pytest.raises(NotFittedError):
        quick().predict(X)
    with pytest.raises(NotFittedError):
        quick().sample_y(X)
    with pytest.raises(ValueError, match="expecting 1 features"):
        quick(n_iter=0).fit(X, y).predict(np.c_[X, X])


def test_error_says_why_if_no_kernel_can_be_fitted(monkeypatch):
    def fail(*_args, **_kwargs):
        raise evaluate.NotAMaximumError("injected")

    monkeypatch.setattr(evaluate, "find_best_maximum", fail)
    with pytest.raises(EvaluationError, match="injected"):
        quick().fit(*wave())


X_BASE, Y_BASE = wave(20)
ODD_DATA = {
    "constant target": (X_BASE, np.full(20, 3.0)),
    "constant target that is rounded": (X_BASE, np.full(20, 0.1)),
    "column that varies by rounding": (np.c_[X_BASE, 0.1 + 1e-17 * X_BASE], Y_BASE),
    "constant column": (np.c_[X_BASE, np.ones(20)], Y_BASE),
    "only constant columns": (np.ones((20, 2)), Y_BASE),
    "repeated rows with other targets": (np.repeat(X_BASE[:10], 2, axis=0), Y_BASE),
    "two samples": (X_BASE[:2], Y_BASE[:2]),
    "three samples": (X_BASE[:3], Y_BASE[:3]),
    "X of scale 1e9": (X_BASE * 1e9, Y_BASE),
    "X of scale 1e-9": (X_BASE * 1e-9, Y_BASE),
    "y of scale 1e9": (X_BASE, Y_BASE * 1e9),
    "y of scale 1e-9": (X_BASE, Y_BASE * 1e-9),
    "exactly linear target": (X_BASE, 3 * X_BASE[:, 0] + 1),
    "integers": (np.arange(20)[:, None], np.arange(20) ** 2),
    "single precision": (X_BASE.astype(np.float32), Y_BASE.astype(np.float32)),
    "an outlier": (X_BASE, np.where(np.arange(20) == 3, 1e12, Y_BASE)),
    "a step": (np.arange(20.0)[:, None], (np.arange(20) > 9).astype(float)),
}


@pytest.mark.parametrize("name", ODD_DATA)
def test_odd_data_fit_and_predict_finite_numbers_without_a_warning(name):
    X, y = ODD_DATA[name]
    before = X.copy(), y.copy()
    expected = nullcontext()
    if name == "only constant columns":  # nothing else is worth a warning
        expected = pytest.warns(UserWarning, match="^every column of X is constant")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with expected:
            model = quick(max_leaves=4).fit(X, y)
        beyond = np.concatenate([X, X + np.ptp(X, axis=0)])
        mean, std = model.predict(beyond, return_std=True)
    assert np.isfinite(mean).all()
    assert np.isfinite(std).all()
    # within the training data the prediction keeps to the range of the targets
    spread = np.ptp(y) or 1.0
    assert np.all(mean[: len(y)] > y.min() - spread)
    assert np.all(mean[: len(y)] < y.max() + spread)
    np.testing.assert_array_equal(X, before[0])
    np.testing.assert_array_equal(y, before[1])


def test_constant_column_is_left_out_of_the_search():
    X, y = ODD_DATA["constant column"]
    model = quick().fit(X, y)
    assert not any("[1]" in kernel for kernel in model.search_history_["kernel"])


@pytest.mark.parametrize("factor", [1e9, 1e-9])
def test_units_do_not_change_the_kernel_found_or_its_predictions(factor):
    X, y = wave()
    plain = quick(n_iter=2).fit(X, y)
    scaled = quick(n_iter=2).fit(X * factor, y * factor)
    assert scaled.best_expression_ == plain.best_expression_
    # rounding in the scaling moves the optimiser's end by its own tolerance
    np.testing.assert_allclose(scaled.predict(X * factor) / factor, plain.predict(X), rtol=1e-4)
    assert scaled.noise_variance_ / factor**2 == pytest.approx(plain.noise_variance_, rel=1e-3)


def test_tiny_space_is_searched_to_its_end():
    X, y = wave()
    model = quick(base_kernels=["SE", "LIN"], max_leaves=1, n_iter=10).fit(X, y)
    assert sorted(model.search_history_["kernel"]) == ["LIN[0]", "NOISE", "SE[0]"]
    assert model.stop_reason_ == "exhausted"
    assert model.n_iter_ == 0
