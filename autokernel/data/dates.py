"""Columns of dates, counted in days."""

import re
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta, tzinfo
from itertools import islice
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np
import numpy.typing as npt

from autokernel.typing import FloatArray, IntArray

SINCE = "days since 1970-01-01"
"""The unit of a column of dates, as ``describe`` takes it."""

MICROSECONDS_PER_DAY = 86_400_000_000.0
_EPOCH, _MICROSECOND = datetime(1970, 1, 1, tzinfo=UTC), timedelta(microseconds=1)

_ISO_TEXT = re.compile(r"\d{4}-\d{2}(-\d{2}([T ]\d{2}:\d{2}.*)?)?")
_LIKE_A_DATE = re.compile(r"\d{1,4}[./ -]{1,2}(\d{1,2}|[a-zA-Z]{3,9})[./ -]{1,2}\d{1,4}\b.*")
_MONTHS = "janfebmaraprmayjunjulaugsepoctnovdec"
_MONTH = (
    r"(?P<name>jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|"
    r"sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\.?"
)
_YEAR, _DAY, _GAP = r"(?P<year>\d{4})", r"(?P<day>\d{1,2})(?:st|nd|rd|th)?", r"[\s,./_-]*"
_PART = (
    r"(?:Q(?P<quarter>[1-4])|[HS](?P<half>[12])|M(?P<month>\d\d?)|"
    r"W(?P<week>\d\d?)(?:-(?P<day>[1-7]))?)"
)
_HAS_YEAR = re.compile(r"\d{4}")
_FORMS = [  # of dates, besides ISO 8601
    re.compile(form, re.IGNORECASE)
    for form in (
        rf"{_YEAR}[\s:./_-]*{_PART}",
        rf"{_PART}[\s:./_-]*{_YEAR}",
        rf"{_YEAR}[ /-](?P<month>\d\d?)",
        rf"{_YEAR}(?P<mark>[ ./-])(?P<month>\d\d?)(?P=mark){_DAY}",
        rf"(?P<one>\d\d?)(?P<mark>[ ./-])\s?(?P<two>\d\d?)(?P=mark)\s?{_YEAR}",
        rf"(?:{_DAY}{_GAP})?{_MONTH}{_GAP}{_YEAR}",
        rf"{_MONTH}\s*{_DAY}[\s,./-]+{_YEAR}",
        rf"{_YEAR}{_GAP}{_MONTH}(?:{_GAP}{_DAY})?",
    )
]
_WEEKDAY = re.compile(
    r"(?:mon|tues?|wed(?:nes)?|thu(?:rs)?|fri|sat(?:ur)?|sun)(?:day)?[.,\s]+", re.IGNORECASE
)
_CLOCK = re.compile(
    r"[T,\s]\s*(\d\d?)(:\d\d\S*)(?:\s*([AP])\.?M\.?)?\s*(?:UTC|GMT)?$", re.IGNORECASE
)
_SPAN = re.compile(r"(\d{4}-\d\d-\d\d)/\d{4}-\d\d-\d\d")  # a week of pandas

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
    if kind.startswith("period"):  # of any year
        values = values.dt.asfreq("us", "start").astype("int64").to_numpy().astype("M8[us]")
    moments = np.asarray(values)
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


def moments_of_texts(texts: Sequence[str]) -> npt.NDArray[np.datetime64] | None:
    """Read dates in any usual form: NaT where a text is no date, None if no text is one.

    They are ISO dates and weeks, as ``2023-W01``; years with a quarter, half or month, as ``1996
    Q1``, ``2020M01`` or ``Jan 1949``; and days such as ``January 31, 2020`` or ``31.1.2020``, but
    not ``1/2/2020``, whose day and month may be swapped. Each may have a time after it, and is
    converted to UTC if that has a zone. Periods count from their beginning; numbers are no dates.
    """
    by_text = {text: _moment_of_text(text) for text in dict.fromkeys(texts)}
    moments = np.array([by_text[text] for text in texts], dtype="datetime64[us]")
    return None if np.isnat(moments).all() else moments


def _moment_of_text(text: str) -> datetime | None:
    text = _SPAN.sub(r"\1", text.strip())
    if is_number(text) or not _HAS_YEAR.search(text):
        return None
    try:
        if _ISO_TEXT.fullmatch(text):
            moment = datetime.fromisoformat(f"{text}-01" if len(text) == 7 else text)
            return moment if moment.tzinfo is None else moment.astimezone(UTC).replace(tzinfo=None)
        day, clock = _WEEKDAY.sub("", text, count=1), _CLOCK.search(text)
        if clock is not None:
            day, hour = day[: clock.start() - len(text)], int(clock[1])
            hour = hour if clock[3] is None else hour % 12 + 12 * (clock[3] in "pP")
            iso = _moment_of_text(f"2000-01-01T{hour:02d}{clock[2]}")
            midnight = _moment_of_text(day)
            return midnight and iso and midnight + (iso - datetime(2000, 1, 1))
        found = next(filter(None, (form.fullmatch(day) for form in _FORMS)), None)
        return None if found is None else _moment_of_parts(found.groupdict())
    except ValueError:  # no such day, week or time
        return None


def _moment_of_parts(parts: dict[str, str | None]) -> datetime | None:
    number = {name: int(part) for name, part in parts.items() if part and part.isdigit()}
    year, month, day = number["year"], number.get("month", 1), number.get("day", 1)
    if "week" in number:
        return datetime.fromisocalendar(year, number["week"], day)
    if "quarter" in number:
        month = 3 * number["quarter"] - 2
    if "half" in number:
        month = 6 * number["half"] - 5
    if name := parts.get("name"):
        month = _MONTHS.index(name[:3].lower()) // 3 + 1
    if "one" in number:
        month, day = number["one"], number["two"]
        if month > 12:
            month, day = day, month
        elif day <= 12 and day != month:
            return None
    return datetime(year, month, day)


def days_since_1970(moments: npt.NDArray[np.datetime64]) -> FloatArray:
    """Count days since 1970-01-01; missing moments are NaN."""
    in_us = moments.astype("datetime64[us]")
    return np.where(np.isnat(in_us), np.nan, in_us.astype(np.int64) / MICROSECONDS_PER_DAY)


def dates_of(days: FloatArray) -> npt.NDArray[np.datetime64]:
    """Turn days since 1970-01-01 into dates, or into moments if some are not at midnight."""
    moments = np.round(days * MICROSECONDS_PER_DAY).astype("datetime64[us]")
    dates = moments.astype("datetime64[D]")
    return dates if np.array_equal(dates, moments) else moments


def in_zone(moments: IntArray, zone: str) -> IntArray:
    """Return what the clock of a zone shows at moments, both in microseconds since 1970."""
    if not zone:
        return moments
    clock = _clock(zone)
    shown = (_moment_of(one).astimezone(clock).replace(tzinfo=UTC) for one in moments.tolist())
    return np.array([(one - _EPOCH) // _MICROSECOND for one in shown])


def in_utc(shown: IntArray, zone: str) -> IntArray:
    """Return the moments at which the clock of a zone shows something, as :func:`in_zone`."""
    if not zone:
        return shown
    clock = _clock(zone)
    moments = (_moment_of(one).replace(tzinfo=clock) for one in shown.tolist())
    return np.array([(one - _EPOCH) // _MICROSECOND for one in moments])


def _moment_of(microseconds: int) -> datetime:
    return _EPOCH + microseconds * _MICROSECOND


def _clock(zone: str) -> tzinfo:
    if zone.startswith("UTC") and zone != "UTC":
        return datetime.fromisoformat(f"2000-01-01T00{zone[3:]}").tzinfo or UTC
    return ZoneInfo(zone)


def zone_of(values: Any) -> str:
    """Name the zone of a column of dates, empty if it has none, or several."""
    known = (one for one in values if not has_no_value(one))
    few = known if type_name(values) == "object" else islice(known, 1)  # the type has one zone
    zones = {str(getattr(one, "tzinfo", None) or "") for one in few}
    zone = zones.pop() if len(zones) == 1 else ""
    try:
        return zone if zone and _clock(zone) else ""
    except (ValueError, ZoneInfoNotFoundError):  # of another library
        return ""


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
