"""What is no table of numbers gets an error that helps; how numbers are kept does not matter."""

import datetime

import numpy as np
import pytest
from scipy import sparse

from autokernel import AutoKernelGPRegressor

pytestmark = pytest.mark.filterwarnings("error")

ROWS = np.arange(20)
X = np.random.default_rng(0).uniform(size=(20, 2)) * [10.0, 1.0]
Y = np.sin(X[:, 0]) + X[:, 1] + 0.1 * np.random.default_rng(1).normal(size=20)


def estimator(**parameters):
    """An estimator that is done in a fraction of a second."""
    defaults = {"base_kernels": ["SE", "LIN"], "max_leaves": 1, "n_iter": 0, "random_state": 0}
    return AutoKernelGPRegressor(**{**defaults, **parameters})


@pytest.fixture(scope="module")
def fitted():
    return estimator().fit(X, Y)


def read_only(values):
    """A copy that cannot be written to."""
    values = values.copy()
    values.flags.writeable = False
    return values


def strided(values):
    """A view whose rows and columns lie apart, and backwards."""
    wide = np.zeros((2 * len(values), 3 * values.shape[1] if values.ndim == 2 else 3))
    view = wide[::-2, ::3] if values.ndim == 2 else wide[::-2, 0]
    view[...] = values
    return view


CONTAINERS = {
    "objects": lambda values: values.astype(object),
    "read-only": read_only,
    "Fortran order": np.asfortranarray,
    "strided backwards": strided,
    "other endianness": lambda values: values.astype(">f8"),
    "lists": lambda values: values.tolist(),
    "tuples": lambda values: tuple(map(tuple, values)) if values.ndim == 2 else tuple(values),
    "long double": lambda values: values.astype(np.longdouble),
}
TYPES = {
    "integers": "int64",
    "small integers": "int8",
    "unsigned integers": "uint16",
    "booleans": "bool",
    "single precision": "float32",
    "half precision": "float16",
    "objects": "object",
}


@pytest.mark.parametrize("convert", CONTAINERS.values(), ids=CONTAINERS.keys())
def test_the_container_of_the_numbers_does_not_matter(convert, fitted):
    model = estimator().fit(convert(X), convert(Y))
    np.testing.assert_array_equal(model.predict(convert(X)), fitted.predict(X))
    assert model.noise_variance_ == fitted.noise_variance_


@pytest.mark.parametrize("kind", TYPES.values(), ids=TYPES.keys())
def test_numbers_of_other_types_are_taken_for_what_they_are(kind):
    whole = np.random.default_rng(2).integers(0, 3, size=(20, 3)).astype(kind)
    inputs, target = whole[:, :2], whole[:, 2]
    model = estimator().fit(inputs, target)
    expected = estimator().fit(inputs.astype(float), target.astype(float))
    np.testing.assert_array_equal(model.predict(inputs), expected.predict(inputs.astype(float)))
    assert model.y_train_.dtype == model.X_train_.dtype == np.float64


def test_arrays_that_are_changed_after_the_fit_do_not_change_the_model(fitted):
    inputs, target = X.copy(), Y.copy()
    model = estimator().fit(inputs, target)
    inputs[...], target[...] = np.nan, np.nan
    np.testing.assert_array_equal(model.X_train_, X)
    np.testing.assert_array_equal(model.y_train_, Y)
    np.testing.assert_array_equal(model.predict(X), fitted.predict(X))


def spoilt(values, value):
    """A copy with another fourth row, as objects if need be."""
    values = values.astype(object) if value is None else values.copy()
    values[3] = value
    return values


BAD_INPUTS = {
    "NaN": (spoilt(X, np.nan), ValueError, "^Input X contains NaN"),
    "infinity": (spoilt(X, -np.inf), ValueError, "^Input X contains infinity"),
    "a gap": (spoilt(X, None), ValueError, "^Input X contains NaN"),
    "words": ([*X.tolist()[:-1], ["a", "b"]], ValueError, "got text such as 'a' in column 'x0'"),
    "complex": (X + 1j, ValueError, "^Complex data not supported"),
    "sparse": (sparse.csr_array(X), TypeError, "^Sparse data was passed for X.*toarray"),
    "empty": (X[:0], ValueError, r"^Found array with 0 sample\(s\) \(shape=\(0, 2\)\)"),
    "an empty list": ([], ValueError, "(?s)^Expected 2D array, got 1D array.*Reshape your data"),
    "one dimension": (X[:, 0], ValueError, "(?s)^Expected 2D array, got 1D array.*Reshape"),
    "three dimensions": (X[:, :, None], ValueError, "^Found array with dim 3, while dim <= 2"),
    "one number": (3.0, ValueError, "^Expected 2D array, got scalar array"),
    "nothing": (None, ValueError, "^Expected 2D array"),
    "ragged rows": ([[1.0, 2.0], [3.0]] * 10, ValueError, "inhomogeneous shape"),
    "huge": (X * 1e150, ValueError, "^X must not hold numbers above .*, got .*: divide it by a"),
}
BAD_TARGETS = {
    "infinity": (spoilt(Y, np.inf), ValueError, "^Input y contains infinity"),
    "a gap": (spoilt(Y, None), ValueError, "^Input y contains NaN"),
    "words": ([*Y.tolist()[:-1], "a"], ValueError, "y must hold numbers, got text such as 'a'"),
    "complex": (Y + 1j, ValueError, "^Complex data not supported"),
    "sparse": (sparse.csr_array(Y[:, None]), TypeError, "[Ss]parse"),
    "nothing": (None, ValueError, "requires y to be passed, but the target y is None"),
    "one number": (3.0, ValueError, "^y should be a 1d array, got an array of shape"),
    "one row less": (Y[:-1], ValueError, r"inconsistent numbers of samples: \[20, 19\]"),
    "one row more": (np.append(Y, 0.0), ValueError, r"numbers of samples: \[20, 21\]"),
    "huge": (Y * 1e150, ValueError, "^y must not hold numbers above .*, got .*: divide it by a"),
    "tiny": (Y * 1e-300, ValueError, "^y must not vary by less than .*, got .*: multiply it by a"),
}


@pytest.mark.parametrize("name", BAD_INPUTS)
def test_bad_inputs_are_refused_by_each_method_and_leave_the_model_as_it_was(name, fitted):
    inputs, error, message = BAD_INPUTS[name]
    with pytest.raises(error, match=message):
        estimator().fit(inputs, Y)
    before = fitted.predict(X)
    for ask in (fitted.predict, fitted.sample_y, lambda rows: fitted.refit(rows, Y)):
        with pytest.raises(error, match=message):
            ask(inputs)
    np.testing.assert_array_equal(fitted.predict(X), before)


@pytest.mark.parametrize("name", BAD_TARGETS)
def test_bad_targets_are_refused_and_leave_the_model_as_it_was(name, fitted):
    target, error, message = BAD_TARGETS[name]
    before = fitted.predict(X)
    for ask in (estimator().fit, fitted.refit):
        with pytest.raises(error, match=message):
            ask(X, target)
    np.testing.assert_array_equal(fitted.predict(X), before)


def test_inputs_that_vary_by_less_than_can_be_squared_are_refused():
    message = "^X must not vary by less than .*, got .*: multiply it by a constant"
    for unit in ([1e-300, 1e-300], [1.0, 1e-300]):
        with pytest.raises(ValueError, match=message):
            estimator().fit(X * unit, Y)


DAYS = [datetime.datetime(2020, 1, 1) + datetime.timedelta(int(row)) for row in ROWS]
SINCE = [day - DAYS[0] for day in DAYS]


def in_pandas(kind):
    """A frame with a column of numbers and one of durations."""
    pandas = pytest.importorskip("pandas")
    times = {"timedelta": pandas.Series(pandas.to_timedelta(SINCE))}[kind]
    return pandas.DataFrame({"load": X[:, 0], "when": times})


def in_polars(kind):
    """A frame with a column of numbers and one of durations or times of a day."""
    polars = pytest.importorskip("polars")
    times = {"Duration": SINCE, "Time": [day.time() for day in DAYS]}[kind]
    return polars.DataFrame({"load": X[:, 0], "when": times})


FRAMES = [(in_pandas, "timedelta"), (in_polars, "Duration"), (in_polars, "Time")]
ARRAYS = {
    "differences": np.array(SINCE)[:, None].astype("timedelta64[s]"),
    "objects": np.array(SINCE)[:, None],
    "lists": [[since] for since in SINCE],
}
ADVICE = r"count the time from .* datetime\.timedelta\(days=1\)"


@pytest.mark.parametrize(("frame", "kind"), FRAMES)
def test_durations_in_a_frame_get_an_error_that_names_the_column_and_says_how_to_convert(
    frame, kind, fitted
):
    times = frame(kind)
    for ask in (
        lambda: estimator().fit(times, Y),
        lambda: fitted.predict(times),
        lambda: fitted.sample_y(times),
        lambda: fitted.refit(times, Y),
    ):
        with pytest.raises(ValueError, match=rf"^X must hold numbers, got .*'when': {ADVICE}"):
            ask()


@pytest.mark.parametrize("name", ARRAYS)
def test_durations_in_an_array_get_an_error_that_says_how_to_convert(name, fitted):
    times = ARRAYS[name]
    for ask in (
        lambda: estimator().fit(times, Y),
        lambda: fitted.predict(times),
        lambda: fitted.sample_y(times),
        lambda: fitted.refit(times, Y),
    ):
        with pytest.raises(ValueError, match=f"^X must hold numbers, got .*time.*: {ADVICE}"):
            ask()


def of_series(values):
    """Targets as a series of pandas."""
    return pytest.importorskip("pandas").Series(values)


@pytest.mark.parametrize("convert", [list, np.array, of_series])
@pytest.mark.parametrize("times", [DAYS, SINCE], ids=["datetime", "timedelta"])
def test_times_as_targets_are_refused_too(convert, times, fitted):
    for ask in (estimator().fit, fitted.refit):
        with pytest.raises(ValueError, match=f"^y must hold numbers, got .*: {ADVICE}"):
            ask(X, convert(times))


@pytest.mark.parametrize(("frame", "kind"), [pair for pair in FRAMES if pair[1] != "Time"])
def test_what_the_error_on_times_says_makes_days_of_them(frame, kind):
    times = frame(kind)["when"]
    counted = (times - times.min()) / datetime.timedelta(days=1)
    np.testing.assert_array_equal(np.asarray(counted), ROWS)


def test_columns_of_numbers_may_be_called_date_and_time():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=["date", "time period"])
    # of twenty rows, half of the variance is that of a column which one leaf leaves to the noise:
    # a prior over structures prefers noise alone
    model = estimator(structure_prior=None).fit(frame, Y)
    assert model.best_expression_ == "SE[date]"
