"""Columns with their units, and the places along them in words."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import numpy as np
import numpy.typing as npt

from autokernel.data import SINCE, Columns, Kind
from autokernel.explain.words import between, number
from autokernel.typing import FloatArray
from autokernel.validation import did_you_mean

TARGET = "y"  # name of the target among the units
_SINCE = re.compile(r"(?P<unit>\w+) since (?P<date>.+)")  # as in the conventions of NetCDF
_SECONDS = {"seconds": 1, "minutes": 60, "hours": 3600, "days": 86400, "weeks": 604800}
_YEAR = {"year", "years"}  # whose places are calendar years, and need no unit


@dataclass(frozen=True, slots=True)
class Axis:
    """A column with its unit.

    Raises
    ------
    ValueError
        If the unit is ``"... since ..."`` and does not begin with seconds, minutes, hours, days or
        weeks and end with an ISO date.
    """

    name: str
    unit: str  # empty if it is not known
    shift: float  # smallest value
    scale: float  # extent
    origin: datetime | None = None  # date of zero
    levels: tuple[str, ...] = ()  # of a column of categories

    @classmethod
    def of(
        cls, name: str, unit: str, shift: float, scale: float, levels: tuple[str, ...] = ()
    ) -> "Axis":
        """Build an axis; a unit such as ``"days since 1949-01-01"`` makes places dates."""
        since = _SINCE.fullmatch(unit)
        if since is None:
            return cls(name, unit, shift, scale, levels=levels)
        try:
            origin = datetime.fromisoformat(since["date"])
        except ValueError:
            origin = None
        if origin is None or since["unit"] not in _SECONDS:
            raise ValueError(
                f"units[{name!r}] must be a text such as 'days since 1949-01-01' with one of "
                f"{list(_SECONDS)} and an ISO date, got {unit!r}"
            )
        return cls(name, since["unit"], shift, scale, origin)

    def shown(self, values: FloatArray) -> FloatArray | npt.NDArray[np.datetime64]:
        """Return values of the column as a picture shows them: as dates where they are some."""
        if self.origin is None:
            return values
        origin = np.datetime64(self.origin.replace(tzinfo=None), "us")
        seconds = values * float(_SECONDS[self.unit])
        return origin + np.round(1e6 * seconds).astype("timedelta64[us]")

    def place(self, value: float, low: float = np.nan, high: float = np.nan) -> str:
        """Write a place in the unit interval, with an interval if it is known."""
        if self.levels:
            return self.level(self.shift + self.scale * value)
        has_interval = bool(np.isfinite(low) and np.isfinite(high))
        if self.origin is not None:
            ends = f" ({self._date(low)} to {self._date(high)})" if has_interval else ""
            return f"{self._date(value)}{ends}"
        unit = "" if self.unit in _YEAR else self.unit
        if not has_interval:
            return f"{self._number(value)} {unit}".rstrip()
        value, low, high = (self.shift + self.scale * one for one in (value, low, high))
        return between(value, low, high, unit)

    def end(self, value: float) -> str:
        """Write an end of the data, without digits that it does not have."""
        if self.origin is not None or self.levels:
            return self.place(value)
        found = self.shift + self.scale * value
        return f"{found:.0f}" if found == round(found) else number(found)

    def level(self, value: float) -> str:
        """Write a level of a category by the number that stands for it."""
        if not self.levels:
            return f"{value:.6g}"
        return self.levels[min(round(value), len(self.levels) - 1)]

    def _number(self, value: float) -> str:
        decimals = max(0, -int(np.floor(np.log10(self.scale / 100))))
        return f"{self.scale * value + self.shift:.{decimals}f}"

    def _date(self, value: float) -> str:
        """Write a place in the unit interval as a date, with the time if the extent is short."""
        assert self.origin is not None
        seconds = _SECONDS[self.unit]
        try:
            date = self.origin + timedelta(seconds=(self.shift + self.scale * value) * seconds)
        except OverflowError:  # a year before 1 or after 9999
            return self._number(value)
        hours = self.scale * seconds < 10 * _SECONDS["days"]
        return f"{date:%Y-%m-%d %H:%M}" if hours else f"{date:%Y-%m-%d}"


def axes_of(
    columns: Columns, units: Mapping[str, str] | None, target_name: str | None = None
) -> tuple[list[Axis], str]:
    """Return columns with their units, and the unit of the target.

    Raises
    ------
    ValueError
        If the units are no mapping of known names to texts, or hold a column of dates.
    """
    names = columns.names
    own = _checked_units(units, names, target_name)
    for column in columns.of_kind(Kind.DATE):
        name = names[column]
        if name in own:
            raise ValueError(
                f"units must not have {name!r}, which holds dates: their unit is days, "
                f"got {own[name]!r}"
            )
        own[name] = SINCE
    axes = [
        Axis.of(one.name, own.get(one.name, ""), one.low, one.extent, one.level_texts)
        for one in columns.every
    ]
    return axes, own.get(TARGET, "")


def _checked_units(
    units: Mapping[str, str] | None, names: Sequence[str], target_name: str | None
) -> dict[str, str]:
    if not isinstance(units or {}, Mapping):
        raise ValueError(f"units must be a mapping such as {{'time': 'years'}}, got {units!r}")
    given = {**(units or {})}
    own = {TARGET if name == target_name else name: unit for name, unit in given.items()}
    known = {*names, TARGET}
    for name, unit in own.items():
        if name not in known or not isinstance(unit, str):
            raise ValueError(
                f"units must map names out of {sorted(known)} to texts such as 'years', got "
                f"{name!r}: {unit!r}{did_you_mean(name, known - {name})}"
            )
    if {TARGET} <= own.keys() & {*names}:
        raise ValueError(
            f"units[{TARGET!r}] is that of the target, and a column has this name too: give "
            "the column another name"
        )
    return own
