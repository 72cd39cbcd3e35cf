"""Wrong input is refused, and the message says which argument, what was expected and what to do."""

import datetime
import pickle
from functools import partial

import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse
from sklearn.exceptions import DataConversionWarning, NotFittedError
from sklearn.gaussian_process.kernels import RBF

from autokernel import (
    SOT,
    AutoKernelGPRegressor,
    ExpectedImprovement,
    PosteriorAveraging,
    evaluate_kernel,
    parse_expression,
)
from autokernel.displays import CalibrationDisplay, ForecastDisplay
from autokernel.export import from_dict, to_dict, write_report
from tests.fits import At, small, tiny, wave

X, Y = wave(20, n_features=2)
FRAME = pd.DataFrame(X, columns=["age", "size"])
DATES = pd.DataFrame({"day": pd.date_range("2020-01-01", periods=20), "level": np.arange(20.0)})


@pytest.fixture(scope="module")
def model():
    """A fitted model, which no test may change."""
    return tiny().fit(FRAME, Y)


@pytest.fixture(scope="module")
def refitted():
    """A model of arrays without a search, which no test may change."""
    return small().refit(X, Y, "LIN[0]")


PARAMETERS = [
    ({"strategy": SOT}, r"strategy must be an object, .* class SOT: call it, strategy=SOT\(\)"),
    ({"strategy": SOT(acquisition=ExpectedImprovement)}, "acquisition must .*, got the class Exp"),
    ({"strategy": "greeedy"}, r"strategy must be one of .*'greeedy'; did you mean 'greedy'\?"),
    ({"criterion": "laplacian"}, r"criterion must be one of .*did you mean 'laplace'\?"),
    ({"criterion": 3}, r"criterion must be one of \['laplace', .* or a Criterion, got 3$"),
    ({"strategy": SOT(acquisition="eips")}, r"acquisition must be one of .*got 'eips'"),
    ({"averaging": "stack"}, r"averaging must be one of \['posterior'\] or a Post.*, got 'stack'$"),
    ({"strategy": "skc", "criterion": "loo"}, r"strategy=SKC\(\) .*needs criterion='laplace'"),
    ({"base_kernels": "SE"}, r"base_kernels must be .* a list such as \['SE'\], got 'SE'"),
    ({"base_kernels": ["RBF"]}, r"base_kernels must be .*got \['RBF'\]; did you mean 'SE'\?"),
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
    ({"noise": "varying"}, r"'noise' parameter .*Got 'varying'"),
    ({"outliers": "all"}, r"'outliers' parameter .* must be a str among .*Got 'all'"),
    ({"approximation": "sparse"}, r"'approximation' parameter .*Got 'sparse'"),
    ({"memory": 3}, r"'memory' parameter .*Got 3"),
    ({"random_state": "a"}, r"'random_state' parameter .*Got 'a'"),
    ({"strategy": SOT(population_size=0)}, r"'population_size' .*of SOT .*\[1, inf\).*0"),
    ({"strategy": SOT(initial_design="big")}, r"'initial_design' .*of SOT .*'default'.*'big'"),
    ({"strategy": SOT(local_steps="few")}, r"'local_steps' .*of SOT .*'auto'.*'few'"),
    ({"averaging": PosteriorAveraging(n_components=0)}, r"'n_components' .*of PosteriorAveraging"),
    ({"base_kernels": [["SE"]]}, r"base_kernels must hold names or BaseKernel .* got \['SE'\]"),
    ({"priors": {"lengthscale": (1, -2)}}, r"priors\['lengthscale'\] .*positive"),
    ({"random_state": -3}, r"random_state|[Ss]eed"),
    ({"max_time": np.nan}, r"'max_time' .* in the range \(0.0, inf\) or None"),
]


@pytest.mark.parametrize(("parameters", "message"), PARAMETERS)
def test_a_wrong_parameter_is_refused_before_any_kernel_is_fitted(parameters, message):
    kernels = At(None)
    model = small(**parameters).set_callbacks(kernels)
    with pytest.raises((ValueError, TypeError), match=message):
        model.fit(X, Y)
    assert not kernels.n_begun
    with pytest.raises(NotFittedError):
        model.predict(X)


def spoilt(values, value):
    """A copy with another fourth row, as objects if need be."""
    values = values.astype(object) if value is None else values.copy()
    values[3] = value
    return values


TIMES = [datetime.datetime(2020, 1, 1) + datetime.timedelta(day) for day in range(20)]
DURATIONS = [time - TIMES[0] for time in TIMES]
ADVICE = r"count the time from .* datetime\.timedelta\(days=1\)"
IN_FRAME = rf"^X must hold numbers, got .*'when': {ADVICE}"
IN_ARRAY = f"^X must hold numbers, got .*time.*: {ADVICE}"

TWO_DIMENSIONS = "^X must have two dimensions, got an object of type"

INPUTS = {
    "infinity": (
        spoilt(X, -np.inf),
        r"^Input X contains infinity: row 3, column 0, and 1 more. Leave such rows out",
    ),
    "words": ([*X.tolist()[:-1], ["a", "b"]], "in column 'x0'.* 'a'"),
    "complex": (X + 1j, "^Complex data not supported"),
    "sparse": (scipy.sparse.csr_array(X), "^Sparse data was passed for X.*toarray"),
    "empty": (X[:0], r"^Found array with 0 sample\(s\) \(shape=\(0, 2\)\)"),
    "no column": (X[:, :0], r"0 feature\(s\)"),
    "only an index of numbers": (DATES[[]], "^X must have a column, got .*columns$"),
    "an empty list": ([], "(?s)^Expected 2D array, got 1D array.*Reshape your data"),
    "one dimension": (X[:, 0], "(?s)^Expected 2D array, got 1D array.*Reshape"),
    "three dimensions": (X[:, :, None], "^Found array with dim 3, while dim <= 2"),
    "one number": (3.0, "^Expected 2D array, got scalar array"),
    "nothing": (None, "^Expected 2D array"),
    "a row of a frame": (FRAME.iloc[3], rf"{TWO_DIMENSIONS} Series: .* as X\.iloc\[\[3\]\]"),
    "a row of two kinds": (np.array([1.0, "b"], dtype=object), f"{TWO_DIMENSIONS} ndarray"),
    "a column of polars": (pl.Series("a", Y), f"{TWO_DIMENSIONS} Series"),
    "a dict": ({"age": X[:, 0], "size": X[:, 1]}, r"dict: .*as pandas\.DataFrame\(X\)"),
    "records": ([{"age": 1.0, "size": 2.0}] * 20, r"list: .*dict as pandas\.DataFrame\(X\)"),
    "a set": ({1.0, 2.0}, f"{TWO_DIMENSIONS} set"),
    "the name of a file": ("table.csv", f"{TWO_DIMENSIONS} str"),
    "ragged rows": ([[1.0, 2.0], [3.0]] * 10, "inhomogeneous shape"),
    "huge": (X * 1e150, "^X must not hold numbers above .*, got .*: divide it by a"),
    "durations in pandas": (pd.DataFrame({"load": Y, "when": pd.Series(DURATIONS)}), IN_FRAME),
    "durations": (np.array(DURATIONS)[:, None].astype("timedelta64[s]"), IN_ARRAY),
    "durations in lists": ([[one] for one in DURATIONS], IN_ARRAY),
}
TARGETS = {
    "NaN": (spoilt(Y, np.nan), r"^Input y contains NaN: row 3\. Leave such rows out of X and y"),
    "infinity": (spoilt(Y, np.inf), r"^Input y contains infinity: row 3\."),
    "a gap": (spoilt(Y, None), r"^Input y contains NaN: row 3\."),
    "many gaps": (pd.Series(Y).shift(9), r"NaN: rows 0, 1, 2, 3, 4 and 4 more\. Leave"),
    "words": ([*Y.tolist()[:-1], "a"], "y must hold numbers, got text such as 'a'"),
    "complex": (Y + 1j, "^Complex data not supported"),
    "sparse": (scipy.sparse.csr_array(Y[:, None]), "[Ss]parse"),
    "nothing": (None, "requires y to be passed, but the target y is None"),
    "one number": (3.0, "^y should be a 1d array, got an array of shape"),
    "one row less": (Y[:-1], r"inconsistent numbers of samples: \[20, 19\]"),
    "huge": (Y * 1e150, "^y must not hold numbers above .*, got .*: divide it by a"),
    "tiny": (Y * 1e-300, "^y must not vary by less than .*, got .*: multiply it by a"),
    "two targets": (np.c_[Y, Y], r"shape \(20, 2\).*MultiOutputRegressor"),
    "times": (TIMES, f"^y must hold numbers, got .*: {ADVICE}"),
    "durations in a series": (pd.Series(DURATIONS), f"^y must hold numbers, got .*: {ADVICE}"),
}


@pytest.mark.parametrize("name", INPUTS)
def test_wrong_inputs_are_refused_by_each_method(name, refitted):
    inputs, message = INPUTS[name]
    for ask in (
        lambda rows: small().fit(rows, Y),
        lambda rows: refitted.refit(rows, Y),
        refitted.predict,
        refitted.predict_interval,
        refitted.sample_y,
    ):
        with pytest.raises((ValueError, TypeError), match=message):
            ask(inputs)


@pytest.mark.parametrize("row", [FRAME.iloc[3], {"age": 1.0, "size": 2.0}, "age", FRAME["age"]])
def test_answers_about_a_row_need_a_table_of_it(model, row):
    for ask in (
        model.explain,
        lambda one: model.compare(FRAME, one),
        lambda one: model.slopes("age", one),
        lambda one: model.log_predictive_density(one, Y),
        lambda one: evaluate_kernel("LIN[0]", one, Y),
    ):
        with pytest.raises(ValueError, match=TWO_DIMENSIONS):
            ask(row)


LABELLED = FRAME.set_index(pd.Index([f"r{n}" for n in range(20)]))
OTHER_ORDERS = {
    "sorted": (LABELLED, pd.Series(Y, LABELLED.index).sort_values()),
    "numbered": (FRAME, pd.Series(Y).sort_values()),
    "only X": (FRAME.sort_values("age"), pd.Series(Y)),
    "dates": (FRAME.set_index(pd.date_range("2020", periods=20))[::-1], None),
    "several levels": (FRAME.set_index([np.arange(20) // 4, np.arange(20) % 4])[::-1], None),
    "repeated labels": (FRAME.set_index(np.arange(20) // 2)[::-1], None),
}


@pytest.mark.parametrize("name", OTHER_ORDERS)
def test_rows_of_which_the_labels_are_in_another_order_are_refused(name, model):
    rows, y = OTHER_ORDERS[name]
    y = pd.Series(Y, rows.index[::-1]) if y is None else y
    message = r"must have its rows in the order of X, .*: give {0}\.to_numpy\(\) if the rows are in"
    message += r" order, and {0}\.loc\[X\.index\]" * y.index.is_unique
    ones, read = np.ones(20), small(averaging=None, noise="constant")
    for ask in (
        lambda: read.refit(rows, y, "NOISE"),
        lambda: small().fit(rows, y),
        lambda: evaluate_kernel("LIN[0]", rows, y),
    ):
        with pytest.raises(ValueError, match="^y " + message.format("y")):
            ask()
    for argument in ("sample_weight", "noise_std"):
        given = {argument: pd.Series(ones, y.index)}
        with pytest.raises(ValueError, match=f"^{argument} " + message.format(argument)):
            read.refit(rows, Y, "NOISE", **given)
    np.testing.assert_array_equal(read.refit(rows, y.to_numpy(), "NOISE").y_train_, y)


def test_the_labels_of_new_rows_must_be_in_order_too(model):
    y = pd.Series(Y).sort_values()
    joined = small(averaging=None, noise="constant").refit(FRAME, Y, "LIN[age]")
    for ask in (model.log_predictive_density, joined.update, CalibrationDisplay.from_estimator):
        given = (model, FRAME, y) if ask == CalibrationDisplay.from_estimator else (FRAME, y)
        with pytest.raises(ValueError, match=r"^y must have its rows in the order of X"):
            ask(*given)


def test_rows_that_are_counted_from_zero_have_no_other_labels():
    read = small(averaging=None, noise="constant")
    part, of_part = LABELLED[::2], pd.Series(Y, LABELLED.index)[::2]
    for rows, y in (
        (part, of_part),
        (part.reset_index(drop=True), of_part),
        (part, of_part.reset_index(drop=True)),
        (FRAME[10:], pd.Series(Y[10:])),
        (pl.from_pandas(FRAME), pd.Series(Y).sort_values()),
        (FRAME, pd.Series(Y, pd.MultiIndex.from_product([["a", "b"], range(10)]))),
        (FRAME, pd.Series(Y, pd.period_range("2020", periods=20, freq="D"))),
    ):
        np.testing.assert_array_equal(read.refit(rows, y, "NOISE").y_train_, y)
    with pytest.warns(
        UserWarning, match=r"^y and X have different labels .*y\.to_numpy\(\) has none"
    ):
        read.refit(part, pd.Series(Y, LABELLED.index)[1::2], "NOISE")


@pytest.mark.parametrize("kind", [bool, object, "boolean"])
def test_truth_values_as_a_target_warn_once_that_they_are_numbers(kind):
    y = pd.Series(Y > 0)
    with pytest.warns(
        UserWarning, match="y holds truth values, which are taken as 0 and 1"
    ) as seen:
        model = tiny(averaging=None, noise="constant").fit(X, y.astype(kind))
    assert len(seen) == 1
    np.testing.assert_array_equal(model.y_train_, y.astype(float))


@pytest.mark.parametrize("name", TARGETS)
def test_wrong_targets_are_refused(name, refitted):
    target, message = TARGETS[name]
    for ask in (small().fit, refitted.refit):
        with pytest.raises((ValueError, TypeError), match=message):
            ask(X, target)


def test_one_row_and_inputs_without_a_spread_that_can_be_squared_are_refused():
    with pytest.raises(ValueError, match=r"1 sample\(s\) .* a minimum of 2 is required"):
        small().fit(X[:1], Y[:1])
    message = r"^X must not vary by less than 1e-100, got \d\.\d+e-301: multiply it by a constant"
    for unit in ([1e-300, 1e-300], [1.0, 1e-300], [0.0, 1e-300]):  # zero: constant, as is allowed
        with pytest.raises(ValueError, match=message):
            small().fit(X * unit, Y)


@pytest.mark.parametrize("convert", [np.asarray, np.ndarray.tolist, pd.DataFrame])
def test_a_column_of_targets_is_taken_with_the_warning_of_scikit_learn(convert):
    with pytest.warns(DataConversionWarning, match="column-vector y was passed"):
        model = small().refit(X, convert(Y[:, None]), "LIN[0]")
    np.testing.assert_array_equal(model.y_train_, Y)


def read_only(values):
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
    "bool": lambda values: values > np.median(values) if values.ndim == 2 else values,
}
TYPES = ("int64", "int8", "uint16", "float32", "float16", "longdouble")
CONTAINERS |= {kind: partial(np.ndarray.astype, dtype=kind) for kind in TYPES}


@pytest.mark.parametrize("convert", CONTAINERS.values(), ids=CONTAINERS.keys())
def test_neither_container_nor_type_of_the_numbers_matters(convert):
    inputs, target = convert(10 * X), convert(10 * Y + 20)
    model = small().refit(inputs, target, "LIN[0]")
    assert model.y_train_.dtype == model.X_train_.dtype == np.float64
    np.testing.assert_array_equal(model.X_train_, np.array(inputs, dtype=float))
    np.testing.assert_array_equal(model.y_train_, np.array(target, dtype=float))
    np.testing.assert_array_equal(model.predict(inputs), model.predict(model.X_train_))


DAYS = pd.date_range("2020-01-01", periods=20)
TABLE = pd.DataFrame(
    {
        "self": X[:, 0],
        "whole": pd.array([None, *range(19)], dtype="Int64"),
        "shop": ["a", "b", None, "a"] * 5,
        "day": DAYS,
        "is open": pd.array([True, False] * 10, dtype="boolean"),
    }
)
PLACES = ["number", "number", "category", "date", "category"]


def in_polars(frame):
    return pl.DataFrame(
        {name: [None if pd.isna(one) else one for one in frame[name]] for name in frame}
    )


def arrow(frame):
    pytest.importorskip("pyarrow")
    return in_polars(frame).to_arrow()


def in_arrow_types(frame):
    """Columns with the types of pyarrow, also those that it has no other type for."""
    types = {"shop": "dictionary", "is open": "bool"}
    pa = pytest.importorskip("pyarrow")
    types = {"self": pa.float64(), "whole": pa.int64(), "day": pa.date32(), "is open": pa.bool_()}
    types["shop"] = pa.dictionary(pa.int32(), pa.string())
    frame = frame.assign(day=frame["day"].dt.date)
    return frame.astype({name: pd.ArrowDtype(kind) for name, kind in types.items()})


def dask(frame):
    return pytest.importorskip("dask.dataframe").from_pandas(frame, npartitions=1)


LIBRARIES = {
    "pandas objects": lambda frame: frame.astype(object),
    "NA among objects": lambda frame: frame.astype(object).where(frame.notna(), pd.NA),
    "pandas with types of Arrow": in_arrow_types,
    "polars": in_polars,
    "polars, lazy": lambda frame: in_polars(frame).lazy(),
    "pyarrow": arrow,
    "narwhals": lambda frame: nw.from_native(frame),
    "narwhals of polars, lazy": lambda frame: nw.from_native(in_polars(frame).lazy()),
    "dask": dask,
    "array of objects": lambda frame: frame.astype(object).to_numpy(),
    "list of rows with NA": lambda frame: frame.astype(object).to_numpy().tolist(),
}


BEFORE = TABLE.copy()


@pytest.mark.parametrize("library", LIBRARIES)
def test_tables_of_any_library_are_the_same(library):
    kernel = "LIN[0] + LIN[1] + CAT[2] + LIN[3] + CAT[4]"
    model = small(averaging=None).refit(LIBRARIES[library](TABLE), Y, kernel)
    plain = small(averaging=None).refit(TABLE, Y, kernel)
    pd.testing.assert_frame_equal(TABLE, BEFORE)  # that of the user stays as it is
    assert model.columns_["kind"].tolist() == PLACES
    assert model.columns_["gaps"].tolist() == [0, 1, 5, 0, 0]
    np.testing.assert_array_equal(model.X_train_, plain.X_train_)
    assert model.categories_ == plain.categories_
    new = LIBRARIES[library](TABLE[5:9])
    np.testing.assert_array_equal(model.predict(new), plain.predict(TABLE[5:9]))
    names = [] if library.startswith(("array", "list")) else list(TABLE)
    assert list(getattr(model, "feature_names_in_", [])) == names


def test_types_of_categories_keep_their_levels_and_their_order():
    pa = pytest.importorskip("pyarrow")
    sizes = pd.Categorical(["S", "M", "L", "M"] * 5, ["S", "M", "L", "XL"], ordered=True)
    ordered = pa.array(sizes)  # as parquet keeps it
    forms = {
        "pandas": pd.DataFrame({"size": sizes}),
        "pandas of Arrow": pd.DataFrame(
            {"size": pd.Series(ordered, dtype=pd.ArrowDtype(ordered.type))}
        ),
        "pyarrow": pa.table({"size": ordered}),
        "chunks": pa.table({"size": pa.chunked_array([ordered[:9], ordered[9:]])}),
    }
    for form, table in forms.items():
        levels = small().refit(table, Y, "LIN[size]").categories_[0]
        assert levels == (("S", "M", "L", "XL"), True), form
    cut = small().refit(pd.DataFrame({"age": pd.cut(X[:, 0], [0, 0.3, 0.6, 1])}), Y, "LIN[age]")
    assert cut.categories_[0] == (("(0.0, 0.3]", "(0.3, 0.6]", "(0.6, 1.0]"), True)
    assert "NOISE" not in cut.describe()


def xarray():
    return pytest.importorskip("xarray")


REFUSED = {
    "struct": (
        lambda: in_polars(TABLE).select(pl.struct("self", "shop").alias("s")),
        "got {'self'",
    ),
    "lists": (lambda: pl.DataFrame({"s": [[1.0, 2.0]] * 20}), "parts columns of their own"),
    "intervals": (
        lambda: pd.DataFrame({"s": pd.arrays.IntervalArray(pd.cut(X[:, 0], 4))}),
        "Interval",
    ),
    "dicts": (lambda: pd.DataFrame({"s": [{"a": 1}] * 20}), "or write it as text"),
    "times of the day": (lambda: pl.DataFrame({"s": [datetime.time(3)] * 20}), ADVICE),
    "two columns of one name": (
        lambda: pd.DataFrame(X, columns=["s", "s"]),
        "columns of different names, got - 's' 2 times: rename them",
    ),
    "dataset": (lambda: xarray().Dataset({"s": ("t", Y)}), r"got a Dataset: give X\.to_dataframe"),
    "data array of one dimension": (lambda: xarray().DataArray(Y), "give X.to_dataframe"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_tables_that_are_none_of_columns_are_refused_with_what_to_do(name):
    make, message = REFUSED[name]
    with pytest.raises(ValueError, match=message):
        small().refit(make(), Y, "NOISE")


def test_arrays_of_xarray_and_dask_are_arrays():
    model = small().refit(X, Y, "LIN[0]")
    arrays = [xarray().DataArray(X), pytest.importorskip("dask.array").from_array(X)]
    for array in arrays:
        same = small().refit(array, Y, "LIN[0]")
        np.testing.assert_array_equal(same.predict(array), model.predict(X))


def test_masked_values_are_missing():
    mask = np.arange(20) % 5 == 0
    masked = np.ma.masked_array(X, np.c_[mask, np.zeros(20)])
    gaps = np.where(np.c_[mask, np.zeros(20)], np.nan, X)
    model, same = (small().refit(one, Y, "LIN[0]") for one in (masked, gaps))
    np.testing.assert_array_equal(model.X_train_, gaps)
    np.testing.assert_array_equal(model.predict(masked), same.predict(gaps))
    whole = np.ma.masked_array(np.arange(20)[:, None], mask)
    assert np.isnan(small().refit(whole, Y, "LIN[0]").X_train_).sum() == 4
    for values in (
        DAYS.to_numpy(),
        np.array(["a", "b"] * 10),
        np.array(["a", "b"] * 10, dtype=object),
    ):
        table = np.ma.masked_array(values[:, None], mask)
        assert small().refit(table, Y, "NOISE").columns_["gaps"].tolist() == [4]
    target = np.ma.masked_array(Y, mask)
    with pytest.raises(ValueError, match=r"y contains NaN: rows 0, 5, 10, 15\. Leave"):
        small().fit(X, target)
    with pytest.raises(ValueError, match="y contains NaN"):
        model.log_predictive_density(X, target)
    with pytest.raises(ValueError, match="y contains NaN"):
        evaluate_kernel("LIN[0]", X, target)
    with pytest.raises(ValueError, match=r"noise_std must hold numbers .*, got nan in row 0"):
        small().fit(X, Y, noise_std=np.ma.masked_array(np.ones(20), mask))


def test_a_column_of_dates_from_the_index_is_the_last_of_numbered_columns_too():
    frame = pd.DataFrame(X.round(1), index=DAYS)  # whose columns are 0 and 1
    model = tiny(base_kernels={0: ["LIN"], "*": ()}, categorical_features=[1]).refit(
        frame, Y, "LIN[2]"
    )
    assert model.date_columns_ == [2]
    assert model.columns_["kind"].tolist() == ["number", "category", "date"]
    assert np.isfinite(model.predict(frame)).all()
    assert not hasattr(model, "feature_names_in_")
    with pytest.raises(TypeError, match="Feature names are only supported"):
        tiny().fit(pd.DataFrame(X, columns=[0, "a"]), Y)


def test_arrays_that_are_changed_after_the_fit_do_not_change_the_model():
    inputs, target = X.copy(), Y.copy()
    model = small().refit(inputs, target, "LIN[0]")
    before = model.predict(X)
    inputs[...], target[...] = np.nan, np.nan
    np.testing.assert_array_equal(model.X_train_, X)
    np.testing.assert_array_equal(model.y_train_, Y)
    np.testing.assert_array_equal(model.predict(X), before)


A_LEVEL = "quantiles must be probabilities between 0 and 1, such as"
A_SHARE = "coverage must be a probability between 0 and 1, such as 0.95, got"
NO_SEARCH = "was fitted by refit, which does not search"
TOO_FEW = "X has 1 features, but AutoKernelGPRegressor is expecting 2 features as input"

UNITS = r"units .*mapping such as \{'time': 'years'\}, got 'years'"
A_KERNEL = "kernel must be a str .* or an Expression, got 3"
TWICE = r"got ndarray: .* evaluate_kernel\(expression, X, y\)"

# by a model of a frame, and by one of arrays that has never searched
CALLS = [
    (lambda m, _: m.predict(FRAME[["size", "age"]]), "feature names should match"),
    (lambda m, _: m.predict(FRAME.assign(age=np.inf)), "infinity: row 0, column 'age', and 19"),
    (lambda m, _: m.predict(FRAME, "noise"), "True, False or 'function', got 'noise'"),
    (lambda m, _: m.predict(FRAME, noise=1), r"predict\(\) got an unexpected .*'noise'"),
    (lambda m, _: m.predict(FRAME, True, return_cov=True), "at most one of .*, got both"),
    (lambda m, _: m.predict_interval(FRAME, 95), f"{A_SHARE} 95"),
    (lambda m, _: m.predict_interval(FRAME, "95%"), f"{A_SHARE} '95%'"),
    (lambda m, _: m.predict_quantiles(FRAME, [5, 95]), rf"{A_LEVEL} .*got \[5, 95\]"),
    (lambda m, _: m.predict_quantiles(FRAME, [np.nan]), A_LEVEL),
    (lambda m, _: m.predict_quantiles(FRAME, [[0.1, 0.9]]), A_LEVEL),
    (lambda m, _: m.log_predictive_density(FRAME, Y[:3]), "inconsistent numbers of samples"),
    (lambda m, _: m.log_predictive_density(FRAME, np.full(20, np.nan)), "y contains NaN"),
    (lambda m, _: m.log_predictive_density(FRAME, np.zeros((20, 2))), "1d array"),
    (lambda m, _: m.sample_y(FRAME, 0), "n_samples == 0, must be >= 1"),
    (lambda m, _: m.leaderboard(0), "k == 0, must be >= 1"),
    (lambda m, _: m.leaderboard(2.5), "k must be an instance of int, not float"),
    (lambda m, _: m.describe({"ages": "years"}), r"units .*'ages': .*did you mean 'age'\?"),
    (lambda m, _: m.describe("years"), UNITS),
    (lambda m, _: m.refit(FRAME, Y, "RBF[age]"), r"unknown base kernel 'RBF'.*mean 'SE'\?"),
    (lambda m, _: m.refit(FRAME, Y, "SE[aeg]"), r"column 'aeg', .*; did you mean 'age'\?"),
    (lambda m, _: m.refit(FRAME, Y, "SE[7]"), "below the number of columns 2, got 7"),
    (lambda m, _: m.refit(FRAME, Y, parse_expression("SE[2]")), r"below n_features=2, got SE\[2"),
    (lambda m, _: m.refit(FRAME, Y, 3), A_KERNEL),
    (lambda m, _: m.set_callbacks(print), "instances following the FitCallback"),
    (lambda m, _: ForecastDisplay.from_estimator(m), "shows one column.*EffectsDisplay"),
    (lambda m, _: write_report(m, "nowhere/report.html"), "folder that exists, got 'nowhere"),
    (lambda *_: evaluate_kernel(X, Y, "SE[0]"), TWICE),
    (lambda *_: from_dict("{}"), r"record .* json\.loads makes a dict of a text, got '{}'"),
    (lambda *_: small().describe(), "not fitted yet"),
    (lambda *_: small().refit(X, Y), "not fitted yet"),
    (lambda *_: small().leaderboard(), "not fitted yet"),
    (lambda *_: small().update(X, Y), "not fitted yet"),
    (lambda *_: to_dict(small()), "not fitted yet"),
    (lambda _, m: m.leaderboard(), f"{NO_SEARCH}: call fit to have a search"),
    (lambda _, m: m.predict(X[:, :1]), TOO_FEW),
    (lambda _, m: m.refit(X[:, :1], Y), TOO_FEW),
]


@pytest.mark.parametrize(("call", "message"), CALLS)
def test_a_wrong_call_says_what_was_expected(call, message, model, refitted):
    with pytest.raises((ValueError, TypeError, RuntimeError), match=message):
        call(model, refitted)


def test_methods_of_the_class_can_be_pickled():
    members = vars(AutoKernelGPRegressor).items()
    methods = [one for name, one in members if callable(one) and not name.startswith("_")]
    assert AutoKernelGPRegressor.predict in methods
    assert pickle.loads(pickle.dumps(methods)) == methods


@pytest.mark.parametrize("fit", ["fit", "refit"])
@pytest.mark.parametrize(
    "refused",
    [
        {"y": [np.nan, *range(19)]},
        {"X": DATES.assign(level=["high", 2.0] * 10)},
        {"X": DATES.assign(level=np.inf)},
        {"periods": {"no such column": 12}},
        {"criterion": "evidence"},
    ],
    ids=lambda refused: next(iter(refused)),
)
def test_a_refused_fit_leaves_a_fitted_estimator_as_it_was(fit, refused):
    model = tiny(base_kernels=["LIN"]).fit(DATES, Y)
    others = pd.DataFrame(np.ones((20, 3)), columns=list("abc"))
    given = {"X": others if fit == "fit" else DATES, "y": Y, **refused}
    X, y = given.pop("X"), given.pop("y")
    before, mean = dict(vars(model.set_params(**given))), model.predict(DATES)
    with pytest.raises(ValueError, match=r"must|contains|features"):
        getattr(model, fit)(X, y)
    assert vars(model).keys() == before.keys()
    assert all(vars(model)[name] is value for name, value in before.items())
    np.testing.assert_array_equal(model.predict(DATES), mean)
