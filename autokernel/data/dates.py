"""Columns of dates, counted in days."""

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
NAMES_OF_TEXT_TYPES = ("object", "str", "<u", "|s", "large_string")  # beginnings


def holds_only_dates(values: Any) -> bool:
    """Whether one dimension holds dates, or dates and texts in a list."""
    is_date = all(isinstance(one, (str, date, np.datetime64)) for one in values)
    return is_of_dates(values) or (is_date and len(values) > 0)


def days_of(values: Any, name: str) -> FloatArray | None:
    """Count the days (n,) of a column of dates; None if it holds none."""
    kind = type_name(values)
    if not is_of_dates(values) and not kind.startswith(NAMES_OF_TEXT_TYPES):
        return None
    moments = np.asarray(values.dt.to_timestamp() if kind.startswith("period") else values)
    if moments.dtype.kind == "M":
        return days_since_1970(moments)
    return _days_of_objects(list(moments), name)


def is_of_dates(values: Any) -> bool:
    """Whether the type of a column is one of dates."""
    kind = type_name(values)
    is_of_dates = any(word in kind for word in _NAMES_OF_DATE_TYPES)
    return is_of_dates and not kind.startswith(("timedelta", "time("))


def type_name(values: Any) -> str:
    """Name the type of a column in lower case."""
    return str(getattr(values, "dtype", "")).lower()


def _days_of_objects(values: Sequence[Any], name: str) -> FloatArray | None:
    """Count the days of dates or ISO texts, None if there are none."""
    known = [one for one in values if not has_no_value(one)]
    texts = texts_of(known)
    has_dates = any(isinstance(one, str) and _ISO_TEXT.fullmatch(one) for one in texts)
    if texts and not has_dates:
        first = texts[0]
        if isinstance(first, str) and _LIKE_A_DATE.fullmatch(first.strip()):
            raise ValueError(
                f"X must hold dates as datetime64, or as texts such as '2020-01-31', got "
                f"{str(first)!r} in column {name!r}: convert the column by "
                "pandas.to_datetime(column, dayfirst=True), or without dayfirst=True if the day "
                "does not come first"
            )
        return None
    if not texts and not (known and all(isinstance(one, (date, np.datetime64)) for one in known)):
        return None
    return days_since_1970(np.array([_moment(one, name) for one in values], dtype="datetime64[us]"))


def _moment(value: Any, name: str) -> np.datetime64:
    """Turn a date, a time or an ISO text into a moment; times with a zone are converted to UTC."""
    if has_no_value(value):
        return np.datetime64("NaT")
    if not isinstance(value, (date, np.datetime64)):
        value = _read_date(str(value), name)
    if isinstance(value, datetime) and value.tzinfo is not None:
        value = value.astimezone(UTC).replace(tzinfo=None)
    return np.datetime64(value, "us")


def _read_date(text: str, name: str) -> datetime:
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


def dates_of(days: FloatArray) -> npt.NDArray[np.datetime64]:
    """Turn days since 1970-01-01 into dates, or into moments if some are not at midnight."""
    moments = np.round(days * MICROSECONDS_PER_DAY).astype("datetime64[us]")
    dates = moments.astype("datetime64[D]")
    return dates if np.array_equal(dates, moments) else moments


def has_no_value(value: Any) -> bool:
    """Whether a value is None, NaN, NaT or NA."""
    try:
        return value is None or bool(value != value)
    except TypeError:  # pandas.NA is neither equal to itself nor not
        return True


def texts_of(values: Sequence[Any]) -> list[str | bytes]:
    """Return the values that are texts, but no numbers."""
    return [one for one in values if isinstance(one, (str, bytes)) and not is_number(one)]


def is_number(text: str | bytes) -> bool:
    """Whether a text is a number, which scikit-learn reads."""
    try:
        float(text)
    except ValueError:
        return False
    return True
