"""Columns with their units, and the places along them in words."""

import calendar
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

import numpy as np
import numpy.typing as npt

from autokernel.data import SINCE, Column, Columns
from autokernel.explain.words import SECONDS, between, level_text
from autokernel.typing import FloatArray
from autokernel.validation import did_you_mean

Y_NAME = "y"  # name of the target among the units
MAX_VALUES = 20  # of a column, up to which curves and slopes are those between neighbours
_SINCE = re.compile(r"(?P<unit>\w+) since (?P<date>.+)")  # as in the conventions of NetCDF
_EXACT = ["seconds", "minutes", "hours", "days", "weeks"]  # units that are all of one length
_NAMES_IN = {"yearly": "in %B", "weekly": "on %A", "daily": "at %H:%M"}
_YEAR = {"year", "years"}  # whose places are calendar years, and need no unit


@dataclass(frozen=True, slots=True)
class Axis:
    """A column with its unit."""

    name: str
    unit: str  # empty if it is not known
    low: float  # smallest value
    extent: float
    origin: datetime | None = None  # date of zero
    levels: tuple[str, ...] = ()  # of a column of categories, none for numbers and dates
    is_ordered: bool = False  # whether they have an order

    @classmethod
    def of(cls, column: Column, unit: str) -> "Axis":
        """Build an axis; a unit such as ``"days since 1949-01-01"`` makes places dates."""
        since, ends = _SINCE.fullmatch(unit), (column.low, column.extent)
        if since is None:
            is_ordered = column.levels is not None and column.levels.is_ordered
            return cls(column.name, unit, *ends, None, column.level_texts, is_ordered)
        try:
            origin = datetime.fromisoformat(since["date"])
        except ValueError:
            origin = None
        if origin is None or since["unit"] not in _EXACT:
            what = f"'days since 1949-01-01' with one of {_EXACT} and an ISO date"
            raise ValueError(f"units[{column.name!r}] must be a text such as {what}, got {unit!r}")
        return cls(column.name, since["unit"], *ends, origin)

    def shown(self, values: FloatArray) -> FloatArray | npt.NDArray[np.datetime64]:
        """Return values of the column as a picture shows them: as dates where they are some."""
        if self.origin is None:
            return values
        origin = np.datetime64(self.origin.replace(tzinfo=None), "us")
        return origin + np.round(1e6 * (values * SECONDS[self.unit])).astype("timedelta64[us]")

    def place(self, value: float, low: float = np.nan, high: float = np.nan) -> str:
        """Write a place in the unit interval, with an interval if it is known."""
        if self.levels:
            number = round(self.low + self.extent * value)
            return self.levels[number] if number < len(self.levels) else "a new level"
        has_interval = bool(np.isfinite(low) and np.isfinite(high))
        if self.origin is not None:
            ends = f" ({self._date(low)} to {self._date(high)})" if has_interval else ""
            return f"{self._date(value)}{ends}"
        unit = "" if self.unit in _YEAR else self.unit
        if not has_interval:
            return f"{self._number(value)} {unit}".rstrip()
        value, low, high = (self.low + self.extent * one for one in (value, low, high))
        return between(value, low, high, unit)

    def name_in(self, word: str, value: float) -> str:
        """Say when a place is in a "yearly", "weekly" or "daily" cycle, if it has a calendar."""
        year, are_years = self.low + self.extent * value, self.unit in _YEAR
        if self.origin is None and are_years and word == "yearly" and self.low > 1000:
            return f"in {calendar.month_name[int(12 * (year % 1) + 0.05) % 12 + 1]}"
        if self.origin is None or word not in _NAMES_IN:
            return ""
        try:
            return f"{self._moment(value):{_NAMES_IN[word]}}"
        except OverflowError:
            return ""

    def end(self, value: float) -> str:
        """Write an end of the data, without digits that it does not have."""
        if self.origin is not None or self.levels:
            return self.place(value)
        found = self.low + self.extent * value
        found = 0.0 if abs(found) < 1e-9 * self.extent else found  # rounding
        text = f"{found:.0f}" if found == round(found) else level_text(found, self.extent, "")
        return text.rstrip("0").rstrip(".") if "." in text else text

    def names_of(self, values: FloatArray) -> list[str]:
        """Write different levels, dates or numbers, in as many digits as tell them apart."""
        if self.levels or self.origin is not None:
            texts = [self.place((one - self.low) / self.extent) for one in values.tolist()]
            is_clear = self.levels or len({*texts}) == len(texts)
            return texts if is_clear else [str(one) for one in self.shown(values)]
        for digits in range(6, 18) if np.any(values % 1) else (15,):
            texts = [f"{one:.{digits}g}" for one in values.tolist()]
            if len({*texts}) == len(texts):
                break
        return texts

    def _number(self, value: float) -> str:
        decimals = max(0, -int(np.floor(np.log10(self.extent / 100))))
        return f"{self.extent * value + self.low:.{decimals}f}"

    def _moment(self, value: float) -> datetime:
        assert self.origin is not None
        seconds = round((self.low + self.extent * value) * SECONDS[self.unit])
        return self.origin + timedelta(seconds=seconds)

    def _date(self, value: float) -> str:
        """Write a place in the unit interval as a date, with the time if the extent is short."""
        try:
            date = self._moment(value)
        except OverflowError:  # a year before 1 or after 9999
            return self._number(value)
        is_short = self.extent * SECONDS[self.unit] < 10 * SECONDS["days"]
        return f"{date:%Y-%m-%d %H:%M}" if is_short else f"{date:%Y-%m-%d}"


def axes_of(
    columns: Columns, units: Mapping[str, str] | None, target_name: str | None = None
) -> tuple[list[Axis], str]:
    """Return columns with their units, and the unit of the target."""
    if units is not None and not isinstance(units, Mapping):
        raise ValueError(f"units must be a mapping such as {{'time': 'years'}}, got {units!r}")
    given, known = units or {}, {*columns.names, Y_NAME}
    own = {Y_NAME if name == target_name else name: unit for name, unit in given.items()}
    for name, unit in own.items():
        if name not in known or not isinstance(unit, str):
            what = f"names out of {sorted(known)} to texts such as 'years'"
            meant = did_you_mean(name, known - {name})
            raise ValueError(f"units must map {what}, got {name!r}: {unit!r}{meant}")
    if len(own) < len(given):
        got = f"one for {target_name!r} and one for {Y_NAME!r}: leave one of them out"
        raise ValueError(f"units must have one unit for the target, got {got}")
    if Y_NAME in own and Y_NAME in columns.names:
        what = "is that of the target, and a column has this name too: give it another name"
        raise ValueError(f"units[{Y_NAME!r}] {what}")
    for name in (column.name for column in columns.every if column.is_date):
        if own.get(name, SINCE) not in {"day", "days", "date", "dates", SINCE}:
            what = f"'days' for {name!r}, which holds dates, or leave it out"
            raise ValueError(f"units must have {what}, got {own[name]!r}")
        own[name] = SINCE
    return [Axis.of(one, own.get(one.name, "")) for one in columns.every], own.get(Y_NAME, "")
