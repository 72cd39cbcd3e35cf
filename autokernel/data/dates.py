"""Columns of dates, counted in days."""

import re
from collections.abc import Iterable, Sequence
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

import numpy as np
import numpy.typing as npt

from autokernel.typing import FloatArray

SINCE = "days since 1970-01-01"
"""The unit of a column of dates, as ``describe`` takes it."""

MICROSECONDS_PER_DAY = 86_400_000_000.0

_ISO_TEXT = re.compile(r"\d{4}-\d{2}(-\d{2}([T ]\d{2}:\d{2}.*)?)?")
_PART_OF_YEAR = re.compile(r"(?P<year>\d{4})[ -]?(?P<unit>[QMW])(?P<number>\d{1,2})", re.I)
_PART_FIRST = re.compile(r"(?P<unit>[QM])(?P<number>\d{1,2})[ -](?P<year>\d{4})", re.I)
_MONTHS = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)
_IN_WORDS = re.compile(r"[A-Za-z\d ,.-]+")


def read_dates(values: Sequence[Any]) -> npt.NDArray[np.datetime64] | None:
    """Return the moments (n,) at which dates and texts begin, in UTC; None if one is no clear date.

    Clear texts are ISO dates and times, ISO weeks, quarters and months such as ``"2023-W01"``,
    ``"1996 Q1"`` and ``"2020M01"``, and English months such as ``"Jan 2000"`` and ``"13 February
    2021"``. What is missing is NaT.
    """
    found = [_moment(one) for one in values]
    return None if any(one is None for one in found) else np.array(found, dtype="datetime64[us]")


def reads_as_date(value: Any) -> bool:
    """Whether a value is a date, or a text that is one."""
    return _moment(value) is not None


def _read_date(text: str) -> np.datetime64 | None:
    try:
        if _ISO_TEXT.fullmatch(text):
            return _moment(datetime.fromisoformat(f"{text}-01" if len(text) == 7 else text))
        if part := _PART_OF_YEAR.fullmatch(text) or _PART_FIRST.fullmatch(text):
            year, number = int(part["year"]), int(part["number"])
            if part["unit"] in "Ww":
                return _moment(datetime.fromisocalendar(year, number, 1))
            months = 3 if part["unit"] in "Qq" else 1
            return _moment(datetime(year, months * (number - 1) + 1, 1))
        return _read_date_in_words(text)
    except ValueError:  # no such day
        return None


def _read_date_in_words(text: str) -> np.datetime64 | None:
    """Read a year of four digits, the English name of a month, and a day, if there is one."""
    tokens = re.findall(r"[a-z]+|\d+", text.lower())
    words, years = (
        [one for one in tokens if one.isalpha()],
        [one for one in tokens if len(one) == 4],
    )
    years = [one for one in years if one.isdecimal()]
    days = [one for one in tokens if one.isdecimal() and len(one) < 3]
    if not _IN_WORDS.fullmatch(text) or (len(words), len(years), len(tokens) - len(days)) != (
        1,
        1,
        2,
    ):
        return None
    (month,) = words
    months = [n for n, name in enumerate(_MONTHS, 1) if len(month) > 2 and name.startswith(month)]
    if not months or len(days) > 1:
        return None
    return _moment(datetime(int(years[0]), months[0], int(days[0]) if days else 1))


def _moment(value: Any) -> np.datetime64 | None:
    """Return the beginning of a date, a time or a period of pandas, None if it is none."""
    if isinstance(value, str):
        return _read_date(value.strip())
    if has_no_value(value):
        return np.datetime64("NaT")
    if hasattr(value, "asfreq"):  # a period, of any year
        return np.datetime64(value.asfreq("us", "start").ordinal, "us")
    if isinstance(value, datetime) and value.tzinfo is not None:
        value = value.astimezone(UTC).replace(tzinfo=None)
    return np.datetime64(value, "us") if isinstance(value, (date, np.datetime64)) else None  # type: ignore[call-overload]


def refuse_times(argument: str, values: Iterable[Any], where: str = "") -> None:
    """Refuse dates, durations and times of the day, and say how to convert them."""
    for one in values:
        if isinstance(one, (date, time, timedelta, np.datetime64, np.timedelta64)):
            raise ValueError(
                f"{argument} must hold numbers, got {type(one).__name__}{where}: count the time "
                "from a beginning, in days by (times - times.min()) / datetime.timedelta(days=1), "
                "where times is an array or a series of a time type (pandas.to_datetime makes one)"
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
