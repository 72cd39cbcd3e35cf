"""Dates in the columns of X, counted in days."""

import re
from collections.abc import Sequence
from datetime import UTC, date, datetime
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from autokernel.data.named import NamedColumns
from autokernel.typing import FloatArray

SINCE = "days since 1970-01-01"
"""The unit of a column of dates, as ``describe`` takes it."""

_ISO = re.compile(r"\d{4}-\d{2}(-\d{2}([T ]\d{2}:\d{2}.*)?)?")
_DAY = np.timedelta64(1, "D") / np.timedelta64(1, "us")
_WORDS = ("date", "time[", "timestamp", "period")  # in the names of the types of dates


class Counted(NamedTuple):
    """Inputs whose dates have become days, and the indices of the columns that held dates."""

    X: Any
    columns: list[int]


def count_days(X: Any) -> Counted:
    """Replace columns of dates by days since 1970-01-01, in a copy; other inputs stay as they are.

    Dates are datetime64, period or ISO texts such as ``"2020-01-31"``, in a data frame or in an
    array of two dimensions. Times with a zone are converted to UTC.

    Raises
    ------
    ValueError
        If a column holds texts that are neither dates nor numbers; the message names it. If X is a
        single column of dates without a second dimension.
    """
    if isinstance(X, NamedColumns):
        return Counted(X, X.date_columns)
    if hasattr(X, "columns") and hasattr(X, "dtypes"):
        return _count_in_frame(X)
    is_list = isinstance(X, (list, tuple)) and len(X) > 0
    has_texts = is_list and all(isinstance(one, (str, date, np.datetime64)) for one in X)
    if has_texts or (len(getattr(X, "shape", ())) == 1 and _is_of_dates(X)):
        raise ValueError(
            "X must have two dimensions, got one column of dates or texts: give a data frame, as "
            "frame[['date']], or an array of shape (n_samples, 1)"
        )
    if is_list and isinstance(X[0], (list, tuple)):
        array = np.array(X, dtype=object) if _holds_dates(X) else None
    else:
        array = X if isinstance(X, np.ndarray) else None
    if array is None or array.ndim != 2 or array.dtype.kind not in "MOUS":
        return Counted(X, [])
    return _replaced(array, {c: _days_of(array[:, c], f"x{c}") for c in range(array.shape[1])})


def _count_in_frame(frame: Any) -> Counted:
    """Replace the columns of dates of a pandas or polars data frame."""
    days = {}
    for column, name in enumerate(frame.columns):
        values = frame[name]
        if len(getattr(values, "shape", (0,))) == 1:  # names may occur twice
            found = _days_of(values, str(name))
            if found is not None:
                days[column] = found
    if not days:
        return Counted(frame, [])
    named = {frame.columns[column]: values for column, values in days.items()}
    if hasattr(frame, "with_columns"):  # polars
        series = [type(frame[name])(name, values) for name, values in named.items()]
        return Counted(frame.with_columns(series), list(days))
    frame = frame.copy()
    for name, values in named.items():
        frame[name] = values
    return Counted(frame, list(days))


def _replaced(array: npt.NDArray[Any], days: dict[int, FloatArray | None]) -> Counted:
    """Replace the columns of dates of an array."""
    if all(values is None for values in days.values()):
        return Counted(array, [])
    array = array.astype(object)
    for column, values in days.items():
        if values is not None:
            array[:, column] = values
    return Counted(array, [column for column, values in days.items() if values is not None])


def _days_of(values: Any, name: str) -> FloatArray | None:
    """Count the days (n,) of a column of dates; None if it holds none."""
    kind = str(getattr(values, "dtype", "")).lower()
    if kind.startswith("period"):
        values = values.dt.to_timestamp()
    if _is_of_dates(values):
        moments = np.asarray(values)
        if moments.dtype.kind == "M":
            return days_since_1970(moments)
        return _days_of_objects(list(moments), name)
    if kind.startswith(("object", "str", "<u", "|s", "categor", "large_string")):
        return _days_of_objects(list(np.asarray(values)), name)
    return None


def _is_of_dates(values: Any) -> bool:
    """Whether the type of a column is one of dates."""
    kind = str(getattr(values, "dtype", "")).lower()
    return any(word in kind for word in _WORDS) and not kind.startswith(("timedelta", "time("))


def _days_of_objects(values: Sequence[Any], name: str) -> FloatArray | None:
    """Count the days of dates or ISO texts, None if there are none; refuse other texts."""
    known = [one for one in values if not _is_missing(one)]
    if known and all(isinstance(one, (date, np.datetime64)) for one in known):
        return days_since_1970(np.array([_moment(one) for one in values], dtype="datetime64[us]"))
    texts = [one for one in known if isinstance(one, (str, bytes)) and not is_number(one)]
    if not texts:
        return None
    if not any(isinstance(text, str) and _ISO.fullmatch(text) for text in texts):
        raise ValueError(
            f"X must hold numbers or dates, got text such as {_shown(texts[0])} in column "
            f"{name!r}: leave the column out, or encode it, for example by "
            "sklearn.preprocessing.OneHotEncoder in a ColumnTransformer"
        )
    return days_since_1970(np.array([_read(one, name) for one in values], dtype="datetime64[us]"))


def _holds_dates(rows: Sequence[Any]) -> bool:
    """Whether rows of equal lengths hold texts or dates."""
    kinds = (str, bytes, date, np.datetime64)
    return len({len(row) for row in rows if isinstance(row, (list, tuple))}) == 1 and any(
        isinstance(value, kinds) for row in rows if isinstance(row, (list, tuple)) for value in row
    )


def _shown(text: str | bytes) -> str:
    """Write a text without the type that NumPy gives it."""
    return repr(str(text) if isinstance(text, str) else bytes(text))


def _read(value: Any, name: str) -> np.datetime64:
    """Read an ISO text."""
    if _is_missing(value):
        return np.datetime64("NaT")
    text = str(value)
    try:
        if _ISO.fullmatch(text):
            return _moment(datetime.fromisoformat(f"{text}-01" if len(text) == 7 else text))
    except ValueError:  # no such day
        pass
    raise ValueError(
        f"X must hold dates such as '2020-01-31' in column {name!r}, got {text!r}: mend it, or "
        "read the column by pandas.to_datetime"
    )


def _moment(value: Any) -> np.datetime64:
    """Turn a date or a time into a moment; times with a zone are converted to UTC."""
    if _is_missing(value):
        return np.datetime64("NaT")
    if isinstance(value, datetime) and value.tzinfo is not None:
        value = value.astimezone(UTC).replace(tzinfo=None)
    return np.datetime64(value, "us")


def days_since_1970(moments: npt.NDArray[np.datetime64]) -> FloatArray:
    """Count days since 1970-01-01; missing moments are NaN."""
    in_us = moments.astype("datetime64[us]")
    days = in_us.astype(np.int64) / _DAY
    return np.where(np.isnat(in_us), np.nan, days)


def _is_missing(value: Any) -> bool:
    """Whether a value is None, NaN or NaT."""
    return value is None or value != value


def is_number(text: str | bytes) -> bool:
    """Whether a text is a number, which scikit-learn reads."""
    try:
        float(text)
    except ValueError:
        return False
    return True
