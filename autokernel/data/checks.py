"""Checks of inputs and targets."""

from collections import Counter
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import Any

import narwhals.stable.v2 as nw  # as scikit-learn reads frames
import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator
from sklearn.utils import check_array, check_X_y
from sklearn.utils.validation import validate_data

from autokernel.data.columns import EXPOSURE, NO_VALUE, Column, Columns
from autokernel.data.counts import FAMILIES, MAX_SMALL, SHARE_OF_SMALL
from autokernel.data.dates import has_no_value, is_number, reading_of_numbers, refuse_times
from autokernel.data.noise import RowNoise
from autokernel.data.scales import target_offset
from autokernel.data.series import NO_SERIES, Series
from autokernel.data.tables import (
    WHOLE_TEXTS,
    chosen_columns,
    in_memory,
    refuse_one_dimension,
    to_numbers,
    with_dates_of_index,
)
from autokernel.data.target import MIN_SPREAD, resolution_of
from autokernel.deadline import Deadline
from autokernel.exceptions import warn_user
from autokernel.typing import BoolArray, FloatArray, IntArray
from autokernel.validation import index_of_column

MAX_MAGNITUDE = 1e100  # of a number, so that its square does not overflow
MAX_ROWS_NAMED = 5  # rows without a target that a message lists

MIN_ROWS = 2  # of a fit


def check_training_data(X: npt.ArrayLike, y: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Turn inputs and targets into finite arrays of float64, whose squares do not overflow."""
    X, y = in_memory(X), in_memory(y)
    _refuse_times("X", refuse_one_dimension(X))
    check_index("y", y, X)
    _check_y(y)
    inputs, values = check_X_y(X, y, dtype=np.float64, y_numeric=True, ensure_min_samples=MIN_ROWS)
    values = values.astype(np.float64)
    check_range(inputs, values)
    return inputs, values


@dataclass(frozen=True, slots=True, eq=False)  # eq=False: the fields are arrays
class FitData:
    """The valid data of a fit, in the units of the user."""

    X: FloatArray  # (n_samples, n_features); dates are days since 1970-01-01, levels their numbers
    y: FloatArray  # (n_samples,)
    noise: RowNoise  # in squared units of y
    columns: Columns
    rows: IntArray  # (n_samples,), indices among the rows that are given, the first of equal ones
    first_equal: IntArray  # (n_given,), the first row that equals each; -1 for those left out
    weightless: FloatArray  # (n_weightless, n_features), inputs of rows of weight zero
    target_name: str | None = None  # that of a Series
    resolution: float = 0.0  # of y, zero if it is not known to be rounded
    log_offset: float = 0.0  # what is added to y before its logarithm is taken
    series: Series = NO_SERIES
    families: tuple[str, ...] = ()  # distributions of counts that y may have
    exposure: int | None = None  # column of exposures or numbers of trials, of counts only
    is_count: bool = False  # whether there is nothing but these distributions

    def without(self, rows: IntArray) -> "FitData":
        """Return the data without some rows."""
        if not len(rows):
            return self
        kept = np.delete(np.arange(len(self.y)), rows)
        return replace(
            self, X=self.X[kept], y=self.y[kept], noise=self.noise.take(kept), rows=self.rows[kept]
        )


def check_fit_data(
    estimator: BaseEstimator,
    X: npt.ArrayLike,
    y: npt.ArrayLike,
    sample_weight: npt.ArrayLike | None = None,
    noise_std: npt.ArrayLike | None = None,
    *,
    known: Columns | None = None,
    deadline: Deadline,
) -> FitData:
    """Turn the data of a fit into arrays of float64, which are copies; inputs may have NaN.

    The estimator stays as it is. The columns must agree with the ``known`` ones of its fit, if
    there are any. Rows of the weight zero are left out. Equal rows without missing values and known
    errors are one row with the sum of their weights. The series are searched until the deadline.
    """
    inputs, values, weights, errors, kinds, names = _check_rows(
        estimator, X, y, sample_weight, noise_std, known, min_rows=MIN_ROWS
    )
    kept = weights > 0
    if kept.sum() < MIN_ROWS:
        raise ValueError(
            f"sample_weight must not be zero in all rows but {kept.sum()}: give at least "
            f"{MIN_ROWS} rows a positive weight"
        )
    if weights.max() <= 1 and weights[kept].min() < 1:
        warn_user(
            "sample_weight is at most one in every row, and not the number of readings that a row "
            "stands for: it is taken for relative weights, and divided by its mean"
        )
        weights = weights / weights[kept].mean()
    if weights.sum() < MIN_ROWS:
        raise ValueError(
            f"sample_weight must add up to at least {MIN_ROWS} readings, got {weights.sum():.3g}: "
            "a weight is the number of readings that a row stands for, so divide relative weights "
            "by their mean"
        )
    check_range(inputs[kept], values[kept])
    columns = Columns.of_names(names, inputs.shape[1], kinds)
    log_offset = target_offset(values[kept], weights[kept])
    first_equal = _first_equal(columns, inputs, values, errors, kept)
    rows, weightless = np.flatnonzero(first_equal == np.arange(len(values))), inputs[~kept]
    weights = np.bincount(first_equal[kept], weights[kept], len(values)).astype(np.float64)
    inputs, values, weights, errors = (one[rows] for one in (inputs, values, weights, errors))
    columns = _with_warnings(columns, inputs)
    families, exposure = _families_of(estimator, columns, inputs, values, errors)
    if exposure is not None:
        every = [*columns.every]
        every[exposure] = replace(every[exposure], origin=EXPOSURE)
        columns = replace(columns, every=tuple(every))
    resolution, name = resolution_of(values), getattr(y, "name", None)
    return FitData(
        inputs,
        values,
        RowNoise.of_rows(inputs, values, weights, errors, resolution),
        columns=columns,
        target_name=str(name) if name not in (None, "", *(names or [])) else None,
        rows=rows,
        first_equal=first_equal,
        weightless=weightless,
        resolution=resolution,
        log_offset=log_offset,
        series=Series.of(columns.of_rows(inputs), inputs, deadline),
        families=families,
        exposure=exposure,
        is_count=estimator.noise in FAMILIES or exposure is not None,
    )


def _families_of(
    estimator: BaseEstimator, columns: Columns, X: FloatArray, y: FloatArray, errors: FloatArray
) -> tuple[tuple[str, ...], int | None]:
    """Return the distributions of counts that the target may have, and the column of exposures.

    By default there are some for whole numbers from zero on, of which many are small.
    """
    noise, given = estimator.noise, {"exposure": estimator.exposure, "n_trials": estimator.n_trials}
    given = {argument: column for argument, column in given.items() if column is not None}
    is_chosen, is_share, argument = noise in FAMILIES, "n_trials" in given, next(iter(given), "")
    families = tuple(one for one, family in FAMILIES.items() if family.is_share == is_share)
    if not (given or is_chosen):
        is_small = np.quantile(y, SHARE_OF_SMALL) < MAX_SMALL and resolution_of(y) == 1
        may_be = noise == "auto" == estimator.target_scale and not errors.any()
        return (families if may_be and y.min() >= 0 and is_small else ()), None
    others = f"noise={noise!r}, target_scale={estimator.target_scale!r}", *given
    is_right = len(given) < 2 and noise in ("auto", *families) and not errors.any()
    if not is_right or estimator.target_scale not in ("auto", None):
        raise ValueError(
            "noise of counts must be 'poisson' or 'negative_binomial', perhaps with exposure, or "
            "'binomial' or 'beta_binomial' with n_trials, without noise_std and a target_scale, "
            f"got {', '.join(others)}{', noise_std' * bool(errors.any())}"
        )
    column = columns.index_of(given[argument], argument=argument) if given else None
    if column is not None and columns[column].kind != "number":
        raise ValueError(f"{argument} must be a column of numbers, got a {columns[column].kind}")
    e = np.ones(len(y)) if column is None else X[:, column]
    is_valid = (e >= 1) & (np.rint(e) == e) if is_share else (e > 0) & np.isfinite(e)
    if len(wrong := np.flatnonzero(~is_valid)):
        kind = "whole numbers from one on" if is_share else "positive numbers"
        raise ValueError(f"{argument} must hold {kind}, got {e[wrong[0]]:g} in row {wrong[0]}")
    if len(wrong := np.flatnonzero(~FAMILIES[families[0]].has(y, e))):
        most = f" and at most the {e[wrong[0]]:g} of n_trials" if is_share else ""
        raise ValueError(
            f"y must hold counts, whole numbers from zero on{most}, got {y[wrong[0]]:g} in row "
            f"{wrong[0]}: noise='auto' without exposure or n_trials fits other numbers"
        )
    return ((noise,) if is_chosen else families), column


def check_new_rows(
    estimator: BaseEstimator,
    X: npt.ArrayLike,
    y: npt.ArrayLike,
    sample_weight: npt.ArrayLike | None,
    noise_std: npt.ArrayLike | None,
    *,
    first_row: int,
    known: Columns,
    resolution: float,
) -> FitData:
    """Turn rows that join a fit into arrays of float64, with its columns and resolution.

    The columns are the ``known`` ones, with the levels that the rows have besides. Rows are
    numbered from the first one. Equal rows stay separate, and weights are never relative.
    """
    inputs, values, weights, errors, kinds, _ = _check_rows(
        estimator, X, y, sample_weight, noise_std, known, min_rows=1
    )
    refuse_large("X", inputs)
    refuse_large("y", values)
    kept = np.flatnonzero(weights > 0)
    every = (
        one if one.levels is None else replace(one, levels=kinds[number].levels)
        for number, one in enumerate(known.every)
    )
    return FitData(
        inputs[kept],
        values[kept],
        RowNoise.of_rows(inputs[kept], values[kept], weights[kept], errors[kept], resolution),
        columns=replace(known, every=tuple(every)),
        rows=first_row + kept,
        first_equal=np.where(weights > 0, np.arange(len(values)), -1),
        weightless=inputs[weights == 0],
        resolution=resolution,
    )


def _check_rows(
    estimator: BaseEstimator,
    X: npt.ArrayLike,
    y: npt.ArrayLike,
    sample_weight: npt.ArrayLike | None,
    noise_std: npt.ArrayLike | None,
    known: Columns | None,
    *,
    min_rows: int,
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray, dict[int, Column], list[str] | None]:
    """Return inputs, targets, weights and errors, and the kinds and names of columns."""
    for argument, one in {"y": y, "sample_weight": sample_weight, "noise_std": noise_std}.items():
        check_index(argument, one, X)
    X, kinds = _in_numbers(estimator, X, known)
    _check_y(y)
    checked = copy(estimator)  # scikit-learn sets the columns on it
    inputs, values = validate_data(
        checked,
        X,
        y,
        reset=known is None,
        dtype=np.float64,
        y_numeric=True,
        ensure_min_samples=min_rows,
        ensure_all_finite=False,
    )
    names = getattr(checked, "feature_names_in_", None)
    _refuse_infinity(inputs, names)
    values = values.astype(np.float64)
    weights = _check_of_rows("sample_weight", sample_weight, len(values), default=1.0)
    errors = _check_of_rows("noise_std", noise_std, len(values), default=0.0)
    return inputs, values, weights, errors, kinds, None if names is None else list(map(str, names))


def _first_equal(
    columns: Columns, X: FloatArray, y: FloatArray, errors: FloatArray, kept: BoolArray
) -> IntArray:
    """Return the first row that equals each of the kept ones (n,), and -1 for the others.

    A row with a known error, or with a gap in a column that has values, is equal to no other, as
    what is not known of it is its own.
    """
    gaps = np.array([one.is_gap(x) for one, x in zip(columns.every, X.T, strict=True)])
    is_own = (errors > 0) | gaps[~gaps[:, kept].all(axis=1)].any(axis=0)
    table = np.column_stack([np.nan_to_num(X), y, np.where(is_own, np.arange(len(y)), -1)])
    found, numbers = np.full(len(table), -1), np.flatnonzero(kept)
    _, first, equal = np.unique(table[numbers], axis=0, return_index=True, return_inverse=True)
    found[numbers] = numbers[first[equal]]
    return found


def _with_warnings(columns: Columns, X: FloatArray) -> Columns:
    """Warn of columns without a value, which are marked, of many levels, and of likely dates."""
    every, empty = list(columns.every), [bool(np.isnan(x).all()) for x in X.T]
    if all(empty):
        raise ValueError(
            f"X must have a value in one of its columns {columns.names}, got only missing ones"
        )
    for number, column in enumerate(every):
        if empty[number]:
            warn_user(f"column {column.name!r} of X has no value in any row, and is left out")
            every[number] = Column(column.name, origin=NO_VALUE)
        elif column.levels is not None:
            _warn_of_many_levels(column, X[:, number])
        elif not column.is_date and (how := reading_of_numbers(column.name, X[:, number])):
            warn_user(
                f"column {column.name!r} of X has whole numbers that read as dates, such as "
                f"{np.nanmin(X[:, number]):.0f}, and is taken for numbers: if these are dates, "
                f"convert it by pandas.to_datetime({how}), where x is the column"
            )
    return replace(columns, every=tuple(every))


def _warn_of_many_levels(column: Column, x: FloatArray) -> None:
    known, name = x[~np.isnan(x)], column.name
    n_levels = len(np.unique(known))
    if len(known) < 10 or n_levels < 0.8 * len(known):
        return
    advice = "if it numbers or names the rows, leave it out"
    if column.origin == WHOLE_TEXTS:
        advice = f"if it holds numbers, convert it by pandas.to_numeric; {advice}"
    warn_user(
        f"column {name!r} of X is a category with {n_levels} levels in {len(known)} rows, which "
        f"cannot show what a level does: {advice}"
    )


def _check_of_rows(
    argument: str, values: npt.ArrayLike | None, n_rows: int, *, default: float
) -> FloatArray:
    """Turn a number for each row, or one for all rows, into an array (n_rows,)."""
    try:
        given = np.asarray(default if values is None else in_memory(values), dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{argument} must hold a number for each row: {error}") from error
    if given.shape not in ((), (n_rows,)):
        raise ValueError(
            f"{argument} must be one number for each of the {n_rows} rows of X, got an array of "
            f"shape {given.shape}: give an array of shape ({n_rows},)"
        )
    array = np.broadcast_to(given, (n_rows,))
    if len(wrong := np.flatnonzero(~((array >= 0) & (array <= MAX_MAGNITUDE)))):
        raise ValueError(
            f"{argument} must hold numbers from zero to {MAX_MAGNITUDE:.0e}, got "
            f"{array[wrong[0]]:g} in row {wrong[0]}: leave out such rows"
        )
    return array


def check_inputs(estimator: BaseEstimator, X: npt.ArrayLike, known: Columns) -> FloatArray:
    """Turn the inputs to predict at into an array of float64 with the columns of the fit."""
    try:
        X, _ = _in_numbers(estimator, X, known)
        inputs: FloatArray = validate_data(
            estimator, X, dtype=np.float64, reset=False, ensure_all_finite=False
        )
    except ValueError as error:
        if "feature names should match" not in str(error):
            raise
        raise ValueError(
            f"{error}X.reindex(columns=model.feature_names_in_) has all in their order; only those "
            "that columns_ calls used may not be missing"
        ) from None
    _refuse_infinity(inputs, getattr(estimator, "feature_names_in_", None))
    refuse_large("X", inputs)
    return inputs


Future = tuple[FloatArray, Mapping[int, Column]]
"""Next rows (n_rows, n_features), NaN in columns that are not given, and those that are given."""


def check_future(X: Any, known: Columns, time: int | None) -> Future:
    """Turn the next rows of some of the known columns into numbers.

    Columns are found by their names. An array has all of them in order, or all but that of time.
    """
    X = in_memory(X)
    if hasattr(X, "to_frame") and hasattr(X, "index") and not hasattr(X, "columns"):
        X = X.to_frame()  # a series is one of the columns
    table = nw.from_native(X, eager_only=True, pass_through=True)
    if known.dates and (with_dates := with_dates_of_index(X)) is not X and time is not None:
        table = nw.from_native(with_dates, eager_only=True)
        table = table.rename({table.columns[-1]: known.names[time]})  # whatever the index is called
    expected = "X must have columns of the fit"
    if isinstance(table, nw.DataFrame) and known.has_names:
        given = {
            index_of_column(name, known.names, len(known), expected=expected): name
            for name in map(str, table.columns)
        }
        numbers = sorted(given)
        X = table.select(*(given[number] for number in numbers)).to_native()
    else:
        n = np.shape(X)[1] if np.ndim(X) == 2 else 0
        numbers = list(range(len(known)))
        if n == len(known) - 1 and time is not None:
            numbers.remove(time)
        elif n != len(known):
            raise ValueError(
                f"{expected}, all {len(known)} or all but that of time, got an array of shape "
                f"{np.shape(X)}"
            )
    some = replace(known, every=tuple(known[number] for number in numbers))
    values, read = to_numbers(X, None, some)
    inputs = check_array(values, dtype=np.float64, ensure_all_finite=False, input_name="X")
    _refuse_infinity(inputs, some.names)
    refuse_large("X", inputs)
    rows = np.full((len(inputs), len(known)), np.nan)
    rows[:, numbers] = inputs
    every = {n: replace(read.get(i, known[n]), name=known[n].name) for i, n in enumerate(numbers)}
    return rows, every


def _in_numbers(
    estimator: BaseEstimator, X: Any, known: Columns | None
) -> tuple[Any, dict[int, Column]]:
    """Replace dates and categories by numbers, those of known columns as in the fit."""
    X = in_memory(X)
    if known is None:
        chosen = chosen_columns(X, estimator.categorical_features)
        return to_numbers(with_dates_of_index(X), chosen, None)
    if known.dates:
        X = with_dates_of_index(X)
    if any(one.levels for one in known.every) and hasattr(X, "columns"):
        validate_data(estimator, X, reset=False, skip_check_array=True)  # names say what they hold
    return to_numbers(X, None, known)


def _refuse_infinity(X: FloatArray, names: Sequence[str] | None) -> None:
    rows, columns = np.nonzero(np.isinf(X))
    if len(rows):
        more = f", and {len(rows) - 1} more" if len(rows) > 1 else ""
        name = columns[0] if names is None else repr(str(names[columns[0]]))
        raise ValueError(
            f"Input X contains infinity: row {rows[0]}, column {name}{more}. "
            "Leave such rows out, or replace what is not known by NaN"
        )


def check_index(argument: str, values: Any, X: Any) -> None:
    """Refuse values with the labels of X in another order, and warn of those with other labels.

    There is no warning if the rows of either are counted from zero, as after ``reset_index``.
    """
    own: Any = getattr(values, "index", None)
    of_X: Any = getattr(X, "index", None)
    has_labels = hasattr(own, "equals") and hasattr(of_X, "equals") and len(own) == len(of_X)
    if not has_labels or own.equals(of_X):
        return
    if Counter(own) == Counter(of_X):
        advice = f", and {argument}.loc[X.index] if the labels are right" * own.is_unique
        raise ValueError(
            f"{argument} must have its rows in the order of X, got the labels of its index in "
            f"another order: give {argument}.to_numpy() if the rows are in order{advice}"
        )
    if not any(np.array_equal(one, np.arange(len(one))) for one in (own, of_X)):
        warn_user(
            f"{argument} and X have different labels in their indices, and their rows are paired "
            f"in order: {argument}.to_numpy() has none"
        )


def _check_y(y: npt.ArrayLike) -> None:
    """Refuse several targets, dates, texts, and missing or infinite numbers in the first rows."""
    values = np.asarray(y)
    if values.ndim == 2 and values.shape[1] > 1:
        raise ValueError(
            f"y should be a 1d array of one target, got an array of shape {values.shape}: wrap the "
            "estimator in sklearn.multioutput.MultiOutputRegressor for several targets"
        )
    _refuse_times("y", values)
    if values.size and all(isinstance(one, (bool, np.bool_)) for one in values.flat):
        warn_user(
            "y holds truth values, which are taken as 0 and 1: y.astype(float) makes them numbers, "
            "and a classifier, such as GaussianProcessClassifier, predicts their probabilities"
        )
    if values.ndim == 1 and values.dtype.kind in "OUS":
        for value in values:
            if isinstance(value, str) and not is_number(value):
                raise ValueError(f"y must hold numbers, got text such as {str(value)!r}")
    if values.ndim and values.dtype.kind == "O":
        known = [np.nan if has_no_value(one) else one for one in values.ravel()]
        values = np.array(known, dtype=object).reshape(values.shape)
    try:
        numbers = np.ravel(values if values.dtype.kind in "fc" else values.astype(np.float64))
    except (TypeError, ValueError):  # no numbers, of which scikit-learn says more
        return
    if values.ndim and len(rows := np.flatnonzero(~np.isfinite(numbers))):
        what = "NaN" if np.isnan(numbers[rows[0]]) else "infinity"
        raise ValueError(
            f"Input y contains {what}: {text_of_rows(rows)}. Leave such rows out of X and y: they "
            "can be predicted after the fit"
        )


def text_of_rows(rows: IntArray) -> str:
    """Name the first rows, and count the others."""
    named = ", ".join(map(str, rows[:MAX_ROWS_NAMED].tolist()))
    more = f" and {len(rows) - MAX_ROWS_NAMED} more" if len(rows) > MAX_ROWS_NAMED else ""
    return f"row{'s' if len(rows) > 1 else ''} {named}{more}"


def check_range(X: FloatArray, y: FloatArray) -> None:
    """Refuse numbers whose squares overflow, and spreads whose squares vanish."""
    for name, values in (("X", X), ("y", y)):
        refuse_large(name, values)
        known = np.where(np.isnan(values).all(axis=0), 0.0, values)
        spreads = np.ravel(np.nanmax(known, axis=0) - np.nanmin(known, axis=0))
        if len(tiny := spreads[(spreads > 0) & (spreads < MIN_SPREAD)]):
            raise ValueError(
                f"{name} must not vary by less than {MIN_SPREAD:.0e}, got {tiny[0]:.3g}: "
                "multiply it by a constant"
            )


def refuse_large(argument: str, values: FloatArray) -> None:
    """Refuse numbers whose squares overflow."""
    if (largest := float(np.nanmax(np.abs(values), initial=0.0))) > MAX_MAGNITUDE:
        raise ValueError(
            f"{argument} must not hold numbers above {MAX_MAGNITUDE:.0e}, got {largest:.3g}: "
            "divide it by a constant"
        )


def _refuse_times(argument: str, values: Any) -> None:
    if (array := np.asarray(values)).dtype.kind in "mMO":
        refuse_times(argument, array.ravel())
