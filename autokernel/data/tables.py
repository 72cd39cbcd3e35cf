"""Tables of the user as numbers: dates become days, and categories the numbers of levels."""

from collections.abc import Mapping, Sequence
from numbers import Real
from typing import Any

import numpy as np
import numpy.typing as npt

from autokernel.data.columns import Column, Columns, Levels
from autokernel.data.dates import (
    NAMES_OF_TEXT_TYPES,
    days_of,
    has_no_value,
    holds_only_dates,
    is_of_dates,
    texts_of,
    type_name,
    zone_of,
)
from autokernel.typing import FloatArray
from autokernel.validation import did_you_mean, index_of_column

_NAMES_OF_CATEGORY_TYPES = ("categor", "enum", "bool")  # beginnings
_NAME_OF_INDEX = "time"  # of one without a name
_KINDS_OF_LEVELS: Mapping[str, type] = {"text": str, "truth value": bool, "number": Real}


Kinds = dict[int, Levels | str]
"""The levels of the columns that are not of numbers by their indices, or zones of dates."""

Reading = tuple[FloatArray, Levels | str]
"""The numbers (n,) of a column of categories or dates, and its levels or its zone."""


def to_numbers(X: Any, chosen: set[int] | None, known: Columns | None) -> tuple[Any, Kinds]:
    """Replace columns of dates and categories by numbers, in a copy; others stay as they are.

    Dates are datetime64, period or ISO texts such as ``"2020-01-31"``, in a data frame or in an
    array of two dimensions. Times with a zone are converted to UTC. The user may have ``chosen``
    the columns of categories. New rows have the ``known`` columns of the fit. Levels that the fit
    has not met get numbers after those.
    """
    numbers: dict[Any, FloatArray] = {}
    kinds: Kinds = {}
    for number, (key, values) in enumerate((_columns_by_name(X) or {}).items()):
        if known is None:
            is_chosen = None if chosen is None else number in chosen
            found = _read_column(values, str(key), is_chosen)
        else:
            found = _read_as_known(values, known[number] if number < len(known) else None, str(key))
        if found is not None:
            numbers[key], kinds[number] = found
    return _with(X, numbers), kinds


def _read_column(values: Any, name: str, is_chosen: bool | None) -> Reading | None:
    """Read a column of a fit, None if it holds numbers; the user may choose the categories."""
    is_category = _is_of_categories(values) if is_chosen is None else is_chosen
    if not is_category:
        days = days_of(values, name)
        if days is not None:
            return days, zone_of(values)
        texts = _texts(values)
        if not texts:
            return None
        if is_chosen is not None:
            raise _texts_refused(texts[0], name, "or leave it out")
    return _numbers_of(values, _levels_of(values, name), name)


def _read_as_known(values: Any, column: Column | None, name: str) -> Reading | None:
    """Read a column of new rows as that of the fit, None if it holds numbers."""
    if column is not None and column.levels is not None:
        return _numbers_of(values, column.levels, name)
    days = days_of(values, name)
    if days is not None and (column is None or not column.is_date):
        raise ValueError(
            f"X must hold numbers in column {name!r}, as it did in fit, got dates: give dates to "
            "both, or numbers to both"
        )
    if days is not None:
        return days, zone_of(values)
    texts = _texts(values)
    if texts:
        raise _texts_refused(texts[0], name, "in which it held no texts")
    return None


def _texts_refused(text: Any, name: str, advice: str) -> ValueError:
    return ValueError(
        f"X must hold numbers or dates in column {name!r}, got text such as {text!r}: name the "
        f"column in categorical_features of the fit, {advice}"
    )


def _columns_by_name(X: Any) -> dict[Any, Any] | None:
    """Return the columns by name, or by texts such as x0; None if there are no texts or dates."""
    if hasattr(X, "columns") and hasattr(X, "dtypes"):
        names = list(X.columns)
        if not names:
            raise ValueError("X must have a column, got a data frame without columns")
        return {name: X[name] for name in names}
    array = _as_objects(X) if isinstance(X, (list, tuple)) else X
    shape: tuple[int, ...] = getattr(array, "shape", ())
    if len(shape) == 1 and holds_only_dates(array):
        raise ValueError(
            "X must have two dimensions, got one column of dates or texts: give a data frame, as "
            "X.to_frame() or frame[['date']], or an array of shape (n_samples, 1)"
        )
    if len(shape) != 2 or not isinstance(array, np.ndarray):
        return None
    return {f"x{column}": array[:, column] for column in range(shape[1])}


def with_dates_of_index(X: Any) -> Any:
    """Return X with the dates of its index, DatetimeIndex or PeriodIndex, as its last column.

    An index and a series become a frame with only this column. A frame that has a column of dates,
    or one of the name of the index, stays as it is.
    """
    index: Any = X if _is_index(X) else getattr(X, "index", None)
    if not is_of_dates(index):
        return X
    name = _NAME_OF_INDEX if index.name is None else index.name
    if not hasattr(X, "columns"):
        return index.to_frame(index=False, name=name)
    if name in X.columns or any(_holds_dates(X[one], str(one)) for one in X.columns):
        return X
    changed = X.copy()
    changed[name] = index
    return changed


def _holds_dates(values: Any, name: str) -> bool:
    return not _is_of_categories(values) and days_of(values, name) is not None


def series_with_dates(X: Any, y: Any) -> tuple[Any, Any]:
    """Return the index and the values of a series of pandas that is given without a target."""
    if hasattr(X, "columns") or not hasattr(X, "to_frame") or not hasattr(X, "index"):
        return X, y
    has_dates = is_of_dates(X.index)
    if y is not None:
        if has_dates and not is_of_dates(X) and not np.array_equal(X, y):  # values would be lost
            raise ValueError(
                "X must have two dimensions, got a series: leave y out if the series is the "
                "target, or give X.to_frame() for a column next to its dates"
            )
        return X, y
    if not has_dates:
        raise ValueError(
            "a series without a target must have a DatetimeIndex or a PeriodIndex, got one with a "
            f"{type(X.index).__name__}: give it dates, or call "
            "fit(numpy.arange(len(series))[:, None], series)"
        )
    return X.index, X


def _is_index(X: Any) -> bool:
    return hasattr(X, "to_frame") and not hasattr(X, "index")


def _as_objects(rows: Sequence[Any]) -> npt.NDArray[np.object_] | None:
    try:
        return np.array(rows, dtype=object)
    except ValueError:  # scikit-learn reports rows of different lengths
        return None


def _with(X: Any, numbers: Mapping[Any, FloatArray]) -> Any:
    """Return a copy of X in which some columns are numbers, X itself if there are none."""
    if not numbers:
        return X
    if hasattr(X, "with_columns"):  # polars
        return X.with_columns(**numbers)
    if hasattr(X, "columns"):
        changed = X.copy()
        for name, values in numbers.items():
            changed[name] = values
        return changed
    array = np.array(X, dtype=object)
    for name, values in numbers.items():
        array[:, int(name[1:])] = values
    return array


def chosen_columns(X: Any, categorical: Any) -> set[int] | None:
    """Return the columns that the user chooses as categories, None if their types decide."""
    is_auto = isinstance(categorical, str) and categorical == "auto"
    columns = None if is_auto or _is_index(X) else _columns_by_name(X)
    if columns is None:
        return None
    given = [] if categorical is None else np.asarray(categorical, dtype=object).ravel().tolist()
    names = list(map(str, columns))
    if not given or not all(isinstance(one, (bool, np.bool_)) for one in given):
        return {_index_of(one, names) for one in given}
    if len(given) != len(names):
        raise ValueError(
            f"categorical_features must be a mask of {len(names)} columns, got {len(given)}"
        )
    return set(np.flatnonzero(given).tolist())


def _index_of(column: Any, names: Sequence[str]) -> int:
    index = index_of_column(column, names, len(names))
    if index is None:
        raise ValueError(
            "categorical_features must be 'auto', None, a mask, or columns of X, out of "
            f"{names} or indices below {len(names)}, got {column!r}{did_you_mean(column, names)}"
        )
    return index


def _is_of_categories(values: Any) -> bool:
    """Whether a column is one of categories by its type; an array may hold truth values."""
    return type_name(values).startswith(_NAMES_OF_CATEGORY_TYPES) and not isinstance(
        values, np.ndarray
    )


def _texts(values: Any) -> list[Any]:
    """Return the texts of a column that are no numbers, or its values if all are true or false."""
    if not type_name(values).startswith((*NAMES_OF_TEXT_TYPES, *_NAMES_OF_CATEGORY_TYPES)):
        return []
    known = [_plain(one) for one in values if not has_no_value(one)]
    are_truths = type_name(values) == "object" and all(isinstance(one, bool) for one in known)
    return known if are_truths else [_plain(one) for one in texts_of(known)]


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def _kind_of_level(value: Any) -> str:
    """Name the kind of a level; truth values are numbers too, and come first."""
    kinds = (kind for kind, of_kind in _KINDS_OF_LEVELS.items() if isinstance(value, of_kind))
    return next(kinds, type(value).__name__)


def _levels_of(values: Any, name: str) -> Levels:
    """Return the levels of a column of categories.

    Levels of a type that declares them are in its order, others are sorted.
    """
    present = [_plain(one) for one in values]
    known = [one for one in present if not has_no_value(one)]
    if not known:
        raise ValueError(f"X must hold a level in column {name!r}, got only missing values")
    by_kind: dict[str, Any] = {}
    for one in known:
        by_kind.setdefault(_kind_of_level(one), one)
    if len(by_kind) > 1:
        first, second, *_ = by_kind.values()
        raise ValueError(
            f"X must hold levels of one kind in column {name!r}, got {first!r} and {second!r}: "
            "convert the column, for example by astype(str), or mark what is missing by None"
        )
    (kind,) = by_kind
    if kind not in _KINDS_OF_LEVELS:
        raise ValueError(
            f"X must hold texts, truth values or numbers as levels of column {name!r}, got "
            f"{known[0]!r}, which is of type {kind}"
        )
    of_pandas = getattr(values, "cat", None)
    declared = getattr(of_pandas, "categories", None)
    if declared is None and type_name(values).startswith("enum"):  # of polars
        declared = values.dtype.categories
    levels = sorted(set(known)) if declared is None else [_plain(one) for one in declared]
    is_ordered = bool(getattr(of_pandas, "ordered", False))
    if len(known) < len(present) and not is_ordered:
        levels.append(None)
    return Levels(tuple(levels), is_ordered)


def _numbers_of(values: Any, levels: Levels, name: str) -> Reading:
    """Return the numbers (n,) of levels, and the levels with those that were not known before.

    These get numbers after the others. Among ordered levels they have no place, as missing ones:
    their number is NaN.
    """
    numbers = {level: number for number, level in enumerate(levels.values)}
    first = levels.values[0]
    of_levels = _kind_of_level(first)
    present = [None if has_no_value(one) else _plain(one) for one in values]
    for one in present:
        if one is not None and _kind_of_level(one) != of_levels:
            raise ValueError(
                f"X must hold levels such as {first!r} in column {name!r}, as in fit, got "
                f"{one!r}, which is of type {_kind_of_level(one)}"
            )
        if not levels.is_ordered:
            numbers.setdefault(one, len(numbers))
    found = np.array([numbers.get(one, np.nan) for one in present], dtype=float)
    return found, Levels(tuple(numbers), levels.is_ordered)
