"""What users get wrong, and what they are told: which argument, what was expected, what to do."""

import pickle

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from sklearn.exceptions import NotFittedError
from sklearn.gaussian_process.kernels import RBF
from sklearn.model_selection import TimeSeriesSplit

from autokernel import (
    BIC,
    SOT,
    AutoKernelGPRegressor,
    CrossValidation,
    ExpectedImprovement,
    Stacking,
    evaluate_kernel,
    parse_expression,
)
from autokernel.displays import DecompositionDisplay, ForecastDisplay, SearchDisplay
from autokernel.export import from_dict, write_report
from tests.fits import count_evaluations, small

RNG = np.random.default_rng(0)
X = RNG.uniform(size=(20, 2))
Y = X[:, 0] + 0.1 * RNG.normal(size=20)
FRAME = pd.DataFrame(X, columns=["age", "size"])
DATES = pd.DataFrame({"day": pd.date_range("2020-01-01", periods=12), "level": np.arange(12.0)})


@pytest.fixture(scope="module")
def model():
    return small(n_iter=0).fit(FRAME, Y)


def unsearched():
    return small().refit(X, Y, "SE[0]")


PARAMETERS = [
    (
        {"strategy": SOT},
        r"strategy must be an object, got the class SOT: call it, strategy=SOT\(\)",
    ),
    ({"criterion": BIC}, r"criterion must be an object, got the class BIC: call it"),
    (
        {"strategy": SOT(acquisition=ExpectedImprovement)},
        r"acquisition must be an object, got the class Exp",
    ),
    ({"averaging": Stacking}, r"averaging must be an object, got the class Stacking: call it"),
    ({"strategy": "greeedy"}, r"strategy must be one of .*'greeedy'; did you mean 'greedy'\?"),
    ({"strategy": "Greedy"}, r"'Greedy'; did you mean 'greedy'\?"),
    ({"criterion": "laplacian"}, r"criterion must be one of .*did you mean 'laplace'\?"),
    ({"criterion": 3}, r"criterion must be one of \['laplace', .* or a Criterion, got 3$"),
    ({"strategy": SOT(acquisition="eips")}, r"acquisition must be one of .*got 'eips'"),
    ({"averaging": "posteriors"}, r"averaging must be one of .*did you mean 'posterior'\?"),
    ({"strategy": "skc", "criterion": "loo"}, r"strategy=SKC\(\) .*needs criterion='laplace'"),
    ({"base_kernels": "SE"}, r"base_kernels must be .* a list such as \['SE'\], got 'SE'"),
    ({"base_kernels": ["RBF"]}, r"base_kernels must be .*got \['RBF'\]; did you mean 'SE'\?"),
    ({"base_kernels": ["Linear"]}, r"did you mean 'LIN'\?"),
    ({"base_kernels": [RBF()]}, r"base_kernels must hold names or BaseKernel objects, got RBF"),
    ({"base_kernels": []}, r"base_kernels must be a selection of"),
    ({"operators": "+"}, r"operators must be .* a list such as \['\+'\], got '\+'"),
    ({"operators": ["-"]}, r"operators must be a selection of .*got \['-'\]"),
    ({"priors": {"lengthscal": (1, 2)}}, r"priors must have keys .*mean 'lengthscale'\?"),
    ({"priors": {"lengthscale": 2}}, r"priors\['lengthscale'\] must be a pair \(shape, rate\)"),
    ({"priors": "uniform"}, r"priors must be one of \['default', 'paper'\] or a mapping"),
    ({"structure_prior": "bic"}, r"'structure_prior' parameter .*Got 'bic'"),
    ({"structure_prior": True}, r"structure_prior must be 'default', None or a number of nats"),
    ({"n_iter": 2.5}, r"'n_iter' parameter .*must be an int in the range \[0, inf\). Got 2.5"),
    ({"max_time": 0}, r"'max_time' parameter .*must be a float in the range \(0.0, inf\)"),
    ({"max_leaves": 0}, r"'max_leaves' parameter .*an int in the range \[1, inf\). Got 0"),
    ({"n_jobs": 0}, r"'n_jobs' parameter .*Got 0"),
    ({"approximation": "sparse"}, r"'approximation' parameter .*Got 'sparse'"),
    ({"memory": 3}, r"'memory' parameter .*Got 3"),
    ({"random_state": "a"}, r"'random_state' parameter .*Got 'a'"),
]


@pytest.mark.parametrize(("parameters", "message"), PARAMETERS)
def test_a_wrong_parameter_is_refused_before_any_kernel_is_fitted(parameters, message):
    evaluated = count_evaluations()
    with pytest.raises((ValueError, TypeError), match=message):
        small(**parameters).fit(X, Y)
    assert not evaluated


DATA = [
    (X[:, 0], Y, r"Expected 2D array, got 1D array"),
    (FRAME.assign(size=[*X[:19, 1], np.nan]), Y, r"X contains NaN: row 19, column 'size'. Leave"),
    (np.where(X > 0.9, np.inf, X), Y, r"X contains infinity: row \d+, column \d, and \d+ more"),
    (scipy.sparse.csr_matrix(X), Y, r"Sparse data was passed for X.*toarray"),
    (FRAME.assign(size="big"), Y, r"text such as 'big' in column 'size'.*OneHotEncoder"),
    (X, np.c_[Y, Y], r"y should be a 1d array .*MultiOutputRegressor"),
    (X, ["a"] * 20, r"y must hold numbers, got text such as 'a'"),
    (X, np.where(Y > 0.9, np.nan, Y), r"y contains NaN"),
    (X, Y[:5], r"inconsistent numbers of samples: \[20, 5\]"),
    (X[:1], Y[:1], r"1 sample\(s\) .* a minimum of 2 is required"),
]


@pytest.mark.parametrize(("inputs", "target", "message"), DATA)
def test_wrong_data_are_refused_with_what_to_do(inputs, target, message):
    with pytest.raises((ValueError, TypeError), match=message):
        small().fit(inputs, target)


CALLS = {
    "swapped arguments": (
        lambda _: evaluate_kernel(X, Y, "SE[0]"),
        TypeError,
        r"expression must be a str .*got ndarray: the order is evaluate_kernel\(expression, X, y\)",
    ),
    "an unknown keyword": (
        lambda model: model.predict(FRAME, noise=False),
        TypeError,
        r"AutoKernelGPRegressor\.predict\(\) got an unexpected keyword argument 'noise'",
    ),
    "a function as callback": (
        lambda _: small().set_callbacks(print),
        TypeError,
        "callbacks must be instances following the FitCallback protocol",
    ),
    "a class as callback": (
        lambda _: small().set_callbacks(SOT),
        TypeError,
        "callbacks must be instances following the FitCallback protocol",
    ),
    "a nested parameter of a name": (
        lambda _: small().set_params(strategy__population_size=3),
        ValueError,
        r"strategy must be an object .*set strategy=SOT\(\) first",
    ),
    "prediction before fit": (lambda _: small().predict(X), NotFittedError, r"not fitted yet"),
    "description before fit": (lambda _: small().describe(), NotFittedError, r"not fitted yet"),
    "a picture before fit": (
        lambda _: DecompositionDisplay.from_estimator(small()),
        NotFittedError,
        r"not fitted yet",
    ),
    "a leaderboard without a search": (
        lambda _: unsearched().leaderboard(),
        NotFittedError,
        r"was fitted by refit, which does not search: call fit to have a search",
    ),
    "a picture of no search": (
        lambda _: SearchDisplay.from_estimator(unsearched()),
        NotFittedError,
        r"was fitted by refit, which does not search",
    ),
    "other columns": (
        lambda model: model.predict(FRAME[["size", "age"]]),
        ValueError,
        r"feature names should match",
    ),
    "too few columns": (
        lambda _: small(n_iter=0).fit(X, Y).predict(X[:, :1]),
        ValueError,
        r"X has 1 features, but AutoKernelGPRegressor is expecting 2",
    ),
    "gaps in new rows": (
        lambda model: model.predict(FRAME.assign(age=np.nan)),
        ValueError,
        r"X contains NaN: row 0, column 'age', and 19 more",
    ),
    "a kernel of another library": (
        lambda model: model.refit(FRAME, Y, "RBF[age]"),
        ValueError,
        r"unknown base kernel 'RBF'.*did you mean 'SE'\?",
    ),
    "a kernel in small letters": (
        lambda _: parse_expression("se[0]"),
        ValueError,
        r"unknown base kernel 'se'.*did you mean 'SE'\?",
    ),
    "a kernel without a column": (
        lambda _: parse_expression("SE + LIN[0]"),
        ValueError,
        r"expected SE with a column in brackets: SE\[0\]",
    ),
    "an open bracket": (
        lambda _: parse_expression("(SE[0] + LIN[1]"),
        ValueError,
        r"expected '\)'",
    ),
    "an unknown column": (
        lambda model: model.refit(FRAME, Y, "SE[aeg]"),
        ValueError,
        r"unknown column 'aeg', the known ones are 'age', 'size'; did you mean 'age'\?",
    ),
    "a column beyond the last": (
        lambda model: model.refit(FRAME, Y, "SE[7]"),
        ValueError,
        r"column must be below the number of columns 2, got 7",
    ),
    "coverage in percent": (
        lambda model: model.predict_interval(FRAME, 95),
        ValueError,
        r"coverage must be a probability between 0 and 1, such as 0.95, got 95",
    ),
    "quantiles in percent": (
        lambda model: model.predict_quantiles(FRAME, [5, 95]),
        ValueError,
        r"quantiles must be probabilities between 0 and 1, such as .*got \[5, 95\]",
    ),
    "an unknown kind of deviation": (
        lambda model: model.predict(FRAME, return_std="noise"),
        ValueError,
        r"return_std must be True, False or 'function', got 'noise'",
    ),
    "both deviation and covariance": (
        lambda model: model.predict(FRAME, return_std=True, return_cov=True),
        RuntimeError,
        r"at most one of return_std and return_cov, got both",
    ),
    "no samples": (
        lambda model: model.sample_y(FRAME, n_samples=0),
        ValueError,
        r"n_samples == 0, must be >= 1",
    ),
    "a unit of an unknown column": (
        lambda model: model.describe({"ages": "years"}),
        ValueError,
        r"units must map names out of .*got 'ages': 'years'; did you mean 'age'\?",
    ),
    "units as text": (
        lambda model: model.describe("years"),
        ValueError,
        r"units must be a mapping such as \{'time': 'years'\}, got 'years'",
    ),
    "a dict of something else": (
        lambda _: from_dict({"a": 1}),
        ValueError,
        r"record must be the dict that to_dict returns",
    ),
    "JSON as text": (
        lambda _: from_dict("{}"),
        ValueError,
        r"record must be the dict .*got str: json.loads makes a dict of a text",
    ),
    "a forecast of two columns": (
        ForecastDisplay.from_estimator,
        ValueError,
        r"ForecastDisplay shows one column.*DecompositionDisplay",
    ),
    "a report in no folder": (
        lambda model: write_report(model, "nowhere/report.html"),
        ValueError,
        r"path must be a file in a folder that exists, got 'nowhere",
    ),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_wrong_call_says_what_was_expected(name, model):
    call, kind, message = CALLS[name]
    with pytest.raises(kind, match=message):
        call(model)


def test_methods_of_the_class_can_be_pickled():
    members = vars(AutoKernelGPRegressor).items()
    methods = [one for name, one in members if callable(one) and not name.startswith("_")]
    assert AutoKernelGPRegressor.predict in methods
    assert pickle.loads(pickle.dumps(methods)) == methods


@pytest.mark.parametrize("fit", ["fit", "refit"])
@pytest.mark.parametrize(
    "refused",
    [
        {"y": [np.nan, *range(11)]},
        {"X": DATES.assign(level=["high"] * 12)},
        {"X": DATES.assign(level=np.inf)},
        {"periods": {"no such column": 12}},
        {"criterion": "evidence"},
    ],
    ids=lambda refused: next(iter(refused)),
)
def test_a_refused_fit_leaves_a_fitted_estimator_as_it_was(fit, refused):
    model = small(n_iter=0, base_kernels=("LIN",)).fit(DATES, Y[:12])
    others = pd.DataFrame(np.ones((12, 3)), columns=list("abc"))
    given = {"X": others if fit == "fit" else DATES, "y": Y[:12], **refused}
    X, y = given.pop("X"), given.pop("y")
    before, mean = dict(vars(model.set_params(**given))), model.predict(DATES)
    with pytest.raises(ValueError, match=r"must|contains|features"):
        getattr(model, fit)(X, y)
    assert vars(model).keys() == before.keys()
    assert all(vars(model)[name] is value for name, value in before.items())
    np.testing.assert_array_equal(model.predict(DATES), mean)


def test_folds_in_time_of_rows_in_no_order_are_warned_of():
    criterion = CrossValidation(cv=TimeSeriesSplit(3))
    with pytest.warns(UserWarning, match="no column of X rises from row to row: sort the rows"):
        small(n_iter=0, criterion=criterion).fit(X, Y)
    order = np.argsort(X[:, 0])
    small(n_iter=0, criterion=criterion).fit(X[order], Y[order])  # no warning


def test_a_time_that_is_too_short_counts_no_failures_where_there_are_none():
    with pytest.warns(UserWarning, match=r"before any kernel had a score: this model is a rough"):
        small(max_time=1e-9).fit(X, Y)
