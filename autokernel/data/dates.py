"""Columns of dates, counted in days."""

import re
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from itertools import compress
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np
import numpy.typing as npt

from autokernel.typing import FloatArray, IntArray

SINCE = "days since 1970-01-01"
"""The unit of a column of dates, as ``describe`` takes it."""

MICROSECONDS_PER_DAY = 86_400_000_000.0
WEEK, WORK_DAYS = 7, 5  # days
_EPOCH, _MICROSECOND = datetime(1970, 1, 1, tzinfo=UTC), timedelta(microseconds=1)

_ISO_TEXT = re.compile(r"\d{4}-\d{2}(-\d{2}([T ]\d{2}:\d{2}.*)?)?")
_WITHOUT_ZONE = re.compile(  # of which numpy reads many at once
    r"(?!0000)[0-9]{4}-[0-9]{2}(-[0-9]{2}([T ][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,9})?)?)?)?"
)
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
_NAME_OF_DATES = re.compile(
    r"((?<![A-Za-z])(?i:date|day|month|datum|period)|(?<=[a-z])(Date|Day|Month|Period))s?(?![a-z])"
)
_MIN_SHARE = 0.5  # of steps that are a week, or of the working days of a range that occur
_ANY_ORDER = re.compile(r"\s*\d{1,2}[./ -]\s?\d{1,2}[./ -]")  # of days and months in other rows


def read_dates(values: Sequence[Any], *, any_order: bool = False) -> npt.NDArray[np.datetime64]:
    """Return the moments (n,) at which dates begin, NaT for what is missing or no date.

    Dates in texts are ISO dates and weeks, as ``2023-W01``; years with a quarter, half or month, as
    ``1996 Q1``, ``2020M01`` or ``Jan 1949``; and days such as ``January 31, 2020``. Days and months
    in figures are read only in ``any_order``, as ``31.1.2020``, but never ``1/2/2020``, where they
    may be swapped. Each may have a time after it, and is converted to UTC if that has a zone.
    Periods count from their beginning; numbers are no dates.
    """
    texts = dict.fromkeys(one for one in values if isinstance(one, str))
    iso = list(filter(_WITHOUT_ZONE.fullmatch, texts))
    by_text: dict[str, Any] = {}
    with suppress(ValueError):  # of a day or a time that does not exist
        by_text.update(zip(iso, np.array(iso, dtype="datetime64[us]"), strict=True))
    for text in texts.keys() - by_text.keys():
        by_text[text] = _moment_of_text(text) if any_order or not _ANY_ORDER.match(text) else None
    found = [by_text[one] if isinstance(one, str) else _moment(one) for one in values]
    return np.array(found, dtype="datetime64[us]")


def other_than_dates(values: Sequence[Any]) -> list[Any]:
    """Return the values that are no dates, nor texts of dates."""
    return list(compress(values, np.isnat(read_dates(values))))


def _moment(value: Any) -> np.datetime64 | None:
    """Return the beginning of a date, a time or a period of pandas, None if it is none."""
    if has_no_value(value):
        return None
    if hasattr(value, "asfreq"):  # a period, of any year
        return np.datetime64(value.asfreq("us", "start").ordinal, "us")
    if isinstance(value, datetime) and value.tzinfo is not None:
        value = value.astimezone(UTC).replace(tzinfo=None)
    if not isinstance(value, (date, np.datetime64)):
        return None
    return np.datetime64(value, "us")  # type: ignore[call-overload] # numpy's stubs lack the union


def refuse_times(argument: str, values: Iterable[Any], where: str = "") -> None:
    """Refuse dates, durations and times of the day, and say how to convert them."""
    for one in values:
        if isinstance(one, (date, time, timedelta, np.datetime64, np.timedelta64)):
            raise ValueError(
                f"{argument} must hold numbers, got {type(one).__name__}{where}: count the time "
                "from a beginning, in days by (times - times.min()) / datetime.timedelta(days=1), "
                "where times is an array or a series of a time type (pandas.to_datetime makes one)"
            )


def _moment_of_text(text: str) -> datetime | None:
    text = _SPAN.sub(r"\1", text.strip())
    try:
        if _ISO_TEXT.fullmatch(text):
            moment = datetime.fromisoformat(f"{text}-01" if len(text) == 7 else text)
            return moment if moment.tzinfo is None else moment.astimezone(UTC).replace(tzinfo=None)
        if is_number(text) or not _HAS_YEAR.search(text):
            return None
        day, clock = _WEEKDAY.sub("", text, count=1), _CLOCK.search(text)
        if clock is not None:
            day, hour = day[: clock.start() - len(text)], int(clock[1])
            hour = hour if clock[3] is None else hour % 12 + 12 * (clock[3] in "pP")
            iso = _moment_of_text(f"2000-01-01T{hour:02d}{clock[2]}")
            midnight = _moment_of_text(day)
            return midnight and iso and midnight + (iso - datetime(2000, 1, 1))
        found = next(filter(None, (form.fullmatch(day) for form in _FORMS)), None)
        return None if found is None else _moment_of_parts(found.groupdict())
    except (ValueError, OverflowError):  # no such day, week or time
        return None


def _moment_of_parts(parts: dict[str, str | None]) -> datetime | None:
    number = {name: int(part) for name, part in parts.items() if part and part.isdigit()}
    year, day = number["year"], number.get("day", 1)
    if "week" in number:
        return datetime.fromisocalendar(year, number["week"], day)
    quarter = number.get("quarter", 2 * number.get("half", 1) - 1)
    month = number.get("month", 3 * quarter - 2)
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


def parts_of_year(days: FloatArray) -> tuple[IntArray, IntArray]:
    """Return numbers of the weekday, and of the month and day, of days (n,) since 1970-01-01."""
    # rounded, as scaling the days and back may leave them just below midnight
    day = np.floor(np.round(np.nan_to_num(days), 6)).astype(int)
    months, since, _ = months_of(day)
    return day % WEEK, months % 12 * 31 + since


def in_zone(moments: IntArray, zone: str) -> IntArray:
    """Return what the clock of a zone shows at moments, both in microseconds since 1970."""
    return _changed(moments, zone, lambda one, clock: one.astimezone(clock).replace(tzinfo=UTC))


def in_utc(shown: IntArray, zone: str) -> IntArray:
    """Return the moments at which the clock of a zone shows something, as :func:`in_zone`."""
    return _changed(shown, zone, lambda one, clock: one.replace(tzinfo=clock))


def _changed(x: IntArray, zone: str, change: Callable[[datetime, tzinfo], datetime]) -> IntArray:
    if not zone:
        return x
    clock = _clock(zone)
    times = (change(_EPOCH + one * _MICROSECOND, clock) for one in x.tolist())
    return np.array([(one - _EPOCH) // _MICROSECOND for one in times])


def _clock(zone: str) -> tzinfo:
    if zone.startswith("UTC") and zone != "UTC":
        return datetime.fromisoformat(f"2000-01-01T00{zone[3:]}").tzinfo or UTC
    return ZoneInfo(zone)


def zone_of(known: Sequence[Any], of_type: str = "") -> str:
    """Name the zone of dates, which their type may have; empty if they have none, or several."""
    zones = {of_type} if of_type else {str(getattr(one, "tzinfo", None) or "") for one in known}
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
    except ValueError:  # an array is a value
        return False


def is_number(text: str | bytes) -> bool:
    """Whether a text is a number, which scikit-learn reads."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def weekday(days: IntArray) -> IntArray:
    """Return the days of the week, from zero for Monday."""
    return (days + 3) % WEEK  # 1970-01-01 was a Thursday


def months_of(days: IntArray) -> tuple[IntArray, IntArray, IntArray]:
    """Return the months since 1970 of days, and the days since their first and to their last."""
    months = days.astype("datetime64[D]").astype("datetime64[M]")
    first, after = (
        (months + np.timedelta64(n, "M")).astype("datetime64[D]").astype(int) for n in (0, 1)
    )
    return months.astype(int), days - first, after - 1 - days


def reading_of_numbers(name: str, x: FloatArray) -> str:
    """Return how pandas.to_datetime reads a column x of whole numbers that are dates, or "".

    They are valid days yyyymmdd or months yyyymm, or serial days of spreadsheets that are first or
    last days of months, a week apart, or working days. The name of a date suffices for any serial
    days, and for few numbers.
    """
    known, has_name = np.unique(x[~np.isnan(x)]), _NAME_OF_DATES.search(name) is not None
    if len(known) < (2 if has_name else 12) or np.any(known % 1):
        return ""
    for form, divisor in {"%Y%m%d": 10_000, "%Y%m": 100}.items():
        if known[0] // divisor >= 1800 and known[-1] // divisor < 2200:
            texts = [f"{one:.0f}" for one in known]
            iso = ["-".join(filter(None, (one[:4], one[4:6], one[6:]))) for one in texts]
            whole = "x.astype('Int64').astype('string')"
            return f"{whole}, format={form!r}" if not np.isnat(read_dates(iso)).any() else ""
    if known[0] < 36_526 or known[-1] > 55_153:  # of the years 2000 to 2050
        return ""
    days = known.astype(int) - 25_569  # the serial day of 1970-01-01
    (_, since, left), steps = months_of(days), np.diff(days)
    are_weeks = not np.any(steps % WEEK) and np.mean(steps == WEEK) >= _MIN_SHARE
    n_work_days = np.ptp(days) * WORK_DAYS / WEEK
    are_work_days = np.all(weekday(days) < WORK_DAYS) and len(days) >= _MIN_SHARE * n_work_days
    is_pattern = not since.any() or not left.any() or are_weeks or are_work_days
    return "x, unit='D', origin='1899-12-30'" if has_name or is_pattern else ""
