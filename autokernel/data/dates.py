"""Dates in the columns of X, counted in days."""

import re
from collections.abc import Sequence
from datetime import UTC, date, datetime
from typing import Any

import numpy as np
import numpy.typing as npt

from autokernel.typing import FloatArray

SINCE = "days since 1970-01-01"
"""The unit of a column of dates, as ``describe`` takes it."""

MICROSECONDS_PER_DAY = 86_400_000_000.0

_ISO_TEXT = re.compile(r"\d{4}-\d{2}(-\d{2}([T ]\d{2}:\d{2}.*)?)?")
_LIKE_A_DATE = re.compile(r"\d{1,4}[./ -]{1,2}(\d{1,2}|[a-zA-Z]{3,9})[./ -]{1,2}\d{1,4}\b.*")
_NAMES_OF_DATE_TYPES = ("date", "time[", "timestamp", "period")  # parts of them
_NAMES_OF_TEXT_TYPES = ("object", "str", "<u", "|s", "categor", "large_string")  # beginnings


def count_days(X: Any) -> tuple[Any, list[int]]:
    """Replace columns of dates by days since 1970-01-01, in a copy; other inputs stay as they are.

    Dates are datetime64, period or ISO texts such as ``"2020-01-31"``, in a data frame or in an
    array of two dimensions. Times with a zone are converted to UTC. The indices of the columns that
    held dates are returned, too.

    Raises
    ------
    ValueError
        If a column holds texts that are neither dates nor numbers; the message names it. If X is a
        single column of dates without a second dimension, or has its times in the index.
    """
    if hasattr(X, "columns") and hasattr(X, "dtypes"):
        return _count_in_frame(X)
    array = _as_objects(X) if isinstance(X, (list, tuple)) else X
    shape: tuple[int, ...] = getattr(array, "shape", ())
    if len(shape) == 1 and _holds_only_dates(array):
        raise ValueError(
            "X must have two dimensions, got one column of dates or texts: give a data frame, as "
            "X.to_frame() or frame[['date']], or an array of shape (n_samples, 1)"
        )
    if len(shape) == 1 and _is_of_dates(getattr(X, "index", None)):
        raise ValueError(
            "X must have two dimensions, got a series with dates in its index: give X.to_frame() "
            "for its values, or X.index.to_frame() for the dates"
        )
    if len(shape) != 2 or not isinstance(array, np.ndarray):
        return X, []
    found = {column: _days_of(array[:, column], f"x{column}") for column in range(shape[1])}
    days = {column: values for column, values in found.items() if values is not None}
    if not days:
        return X, []
    counted = array.astype(object)
    for column, values in days.items():
        counted[:, column] = values
    return counted, list(days)


def _count_in_frame(frame: Any) -> tuple[Any, list[int]]:
    names = list(frame.columns)
    if not names:
        of_index = ": X.index.to_frame() makes a column of its index" * hasattr(frame, "index")
        raise ValueError(f"X must have a column, got a data frame without columns{of_index}")
    found = {name: _days_of(frame[name], str(name)) for name in names}
    days = {name: values for name, values in found.items() if values is not None}
    date_columns = [names.index(name) for name in days]
    if not days:
        return frame, []
    if hasattr(frame, "with_columns"):  # polars
        return frame.with_columns(**days), date_columns
    counted = frame.copy()
    for name, values in days.items():
        counted[name] = values
    return counted, date_columns


def _as_objects(rows: Sequence[Any]) -> npt.NDArray[np.object_] | None:
    try:
        return np.array(rows, dtype=object)
    except ValueError:  # scikit-learn reports rows of different lengths
        return None


def _holds_only_dates(values: Any) -> bool:
    """Whether one dimension holds dates, or dates and texts in a list."""
    is_date = all(isinstance(one, (str, date, np.datetime64)) for one in values)
    return _is_of_dates(values) or (is_date and len(values) > 0)


def _days_of(values: Any, name: str) -> FloatArray | None:
    """Count the days (n,) of a column of dates; None if it holds none."""
    kind = _type_name(values)
    if not _is_of_dates(values) and not kind.startswith(_NAMES_OF_TEXT_TYPES):
        return None
    moments = np.asarray(values.dt.to_timestamp() if kind.startswith("period") else values)
    if moments.dtype.kind == "M":
        return days_since_1970(moments)
    return _days_of_objects(list(moments), name)


def _is_of_dates(values: Any) -> bool:
    """Whether the type of a column is one of dates."""
    kind = _type_name(values)
    is_of_dates = any(word in kind for word in _NAMES_OF_DATE_TYPES)
    return is_of_dates and not kind.startswith(("timedelta", "time("))


def _type_name(values: Any) -> str:
    return str(getattr(values, "dtype", "")).lower()


def _days_of_objects(values: Sequence[Any], name: str) -> FloatArray | None:
    """Count the days of dates or ISO texts, None if there are none; refuse other texts."""
    known = [one for one in values if not _is_missing(one)]
    texts = [one for one in known if isinstance(one, (str, bytes)) and not is_number(one)]
    has_dates = any(isinstance(one, str) and _ISO_TEXT.fullmatch(one) for one in texts)
    if texts and not has_dates:
        text = repr(str(texts[0]) if isinstance(texts[0], str) else bytes(texts[0]))
        if isinstance(texts[0], str) and _LIKE_A_DATE.fullmatch(texts[0].strip()):
            raise ValueError(
                f"X must hold dates as datetime64, or as texts such as '2020-01-31', got {text} in "
                f"column {name!r}: convert the column by pandas.to_datetime(column, dayfirst=True),"
                " or without dayfirst=True if the day does not come first"
            )
        raise ValueError(
            f"X must hold numbers or dates, got text such as {text} in column {name!r}: leave the "
            "column out, or encode it, for example by sklearn.preprocessing.OneHotEncoder in a "
            "ColumnTransformer"
        )
    if not texts and not (known and all(isinstance(one, (date, np.datetime64)) for one in known)):
        return None
    return days_since_1970(np.array([_moment(one, name) for one in values], dtype="datetime64[us]"))


def _moment(value: Any, name: str) -> np.datetime64:
    """Turn a date, a time or an ISO text into a moment; times with a zone are converted to UTC."""
    if _is_missing(value):
        return np.datetime64("NaT")
    if not isinstance(value, (date, np.datetime64)):
        value = _read(str(value), name)
    if isinstance(value, datetime) and value.tzinfo is not None:
        value = value.astimezone(UTC).replace(tzinfo=None)
    return np.datetime64(value, "us")


def _read(text: str, name: str) -> datetime:
    try:
        if _ISO_TEXT.fullmatch(text):
            return datetime.fromisoformat(f"{text}-01" if len(text) == 7 else text)
    except ValueError:  # no such day
        pass
    raise ValueError(
        f"X must hold dates such as '2020-01-31' in column {name!r}, got {text!r}: mend it, or "
        "read the column by pandas.to_datetime"
    )


def days_since_1970(moments: npt.NDArray[np.datetime64]) -> FloatArray:
    """Count days since 1970-01-01; missing moments are NaN."""
    in_us = moments.astype("datetime64[us]")
    return np.where(np.isnat(in_us), np.nan, in_us.astype(np.int64) / MICROSECONDS_PER_DAY)


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
