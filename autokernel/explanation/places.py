"""Places along a column in words: numbers with units, dates, and parts of the column."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple

import numpy as np

from autokernel.explanation.numbers import between
from autokernel.kernels import Share
from autokernel.kernels.declared import place as written
from autokernel.typing import FloatArray

_SINCE = re.compile(r"(?P<unit>\w+) since (?P<date>.+)")  # as in the conventions of NetCDF
_SECONDS = {"seconds": 1, "minutes": 60, "hours": 3600, "days": 86400, "weeks": 604800}
_YEAR = {"year", "years"}  # whose places are calendar years, and need no unit
_EVERYWHERE = (0.0, 1.0)
_EDGE = 8.0  # widths from an edge at which a sigmoid is 0.9997


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

    @classmethod
    def of(cls, name: str, unit: str, shift: float, scale: float) -> "Axis":
        """Build an axis; a unit such as ``"days since 1949-01-01"`` makes places dates."""
        since = _SINCE.fullmatch(unit)
        if since is None:
            return cls(name, unit, shift, scale)
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

    def place(self, value: float) -> str:
        """Write a place in the unit interval."""
        if self.origin is not None:
            return self._date(value)
        text = written(value, scale=self.scale, shift=self.shift)
        return text if self.unit in _YEAR else f"{text} {self.unit}".rstrip()

    def place_between(self, value: float, low: float, high: float) -> str:
        """Write a place in the unit interval with an interval, if it is known."""
        if not (np.isfinite(low) and np.isfinite(high)):
            return self.place(value)
        if self.origin is not None:
            value_text, *ends = (self._date(one) for one in (value, low, high))
            return f"{value_text} ({' to '.join(ends)})"
        value, low, high = (self.shift + self.scale * one for one in (value, low, high))
        return between(value, low, high, "" if self.unit in _YEAR else self.unit)

    def _date(self, value: float) -> str:
        """Write a place in the unit interval as a date, with the time if the extent is short."""
        assert self.origin is not None
        seconds = _SECONDS[self.unit]
        try:
            date = self.origin + timedelta(seconds=(self.shift + self.scale * value) * seconds)
        except OverflowError:  # a year before 1 or after 9999
            return written(value, scale=self.scale, shift=self.shift)
        hours = self.scale * seconds < 10 * _SECONDS["days"]
        return f"{date:%Y-%m-%d %H:%M}" if hours else f"{date:%Y-%m-%d}"


class Edge(NamedTuple):
    """Where a part of a column begins or ends, in the unit interval, with a 90 % interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Region:
    """A part of a column: between two edges, or all but that if ``is_rest``."""

    column: int
    begin: Edge | None  # None if it begins before the data do
    end: Edge | None
    is_rest: bool  # both edges are known then
    width: float  # of the sigmoids at its edges, in the unit interval

    @classmethod
    def of(cls, column: int, share: Share, params: FloatArray, draws: FloatArray) -> "Region":
        """Build the part that a share keeps, given its parameters (n_params,) and draws of them.

        Edges beyond the data are left out.
        """

        def edge(value: FloatArray | None, drawn: FloatArray | None) -> Edge | None:
            if value is None or drawn is None or not 0 < value < 1:
                return None
            low, high = (np.nan, np.nan) if len(draws) == 1 else np.quantile(drawn, (0.05, 0.95))
            return Edge(float(value), float(low), float(high))

        begin, end = map(edge, share.edges(params), share.edges(draws.T))
        if share.is_rest and (begin is None) != (end is None):
            begin, end, is_rest = end, begin, False
        else:
            is_rest = share.is_rest
        return cls(column, begin, end, is_rest, float(params[-1]))

    @property
    def ends(self) -> tuple[float, float]:
        """The lowest and the highest place of the part within the unit interval."""
        if self.is_rest:
            return _EVERYWHERE
        begin, end = (None if edge is None else edge.value for edge in (self.begin, self.end))
        return (begin or 0.0, 1.0 if end is None else end)

    @property
    def inner_ends(self) -> tuple[float, float]:
        """The same without the edges, at which sigmoids bend the functions."""
        begin, end = self.ends
        edge = _EDGE * self.width
        return (begin if self.begin is None else begin + edge), (
            end if self.end is None else end - edge
        )

    @property
    def has_ended(self) -> bool:
        """Whether the part ends before the data do."""
        return not self.is_rest and self.end is not None

    def text(self, axis: Axis, *, is_only: bool) -> str:
        """Tell the part; ``is_only`` if there is no other column."""
        begin, end = (
            None if edge is None else axis.place_between(*edge) for edge in (self.begin, self.end)
        )
        if begin is None and end is None:
            return "nowhere within the data" if self.is_rest else ""
        if self.is_rest:
            words = ("before {} and after {}", "where {} is below {} or above {}")
        elif begin is None:
            words = ("until {}", "where {} is below {}")
        elif end is None:
            words = ("from {} onwards", "where {} is above {}")
        else:
            words = ("from {} to {}", "where {} is between {} and {}")
        known = [text for text in (begin, end) if text is not None]
        return words[0].format(*known) if is_only else words[1].format(axis.name, *known)


def intersected(regions: Sequence[Region]) -> list[Region]:
    """Replace the parts of each column that lie between two edges by what they have in common."""
    kept = [region for region in regions if region.is_rest]
    columns = sorted({region.column for region in regions if not region.is_rest})
    for column in columns:
        on_it = [one for one in regions if one.column == column and not one.is_rest]
        begin = max((one.begin for one in on_it if one.begin is not None), default=None)
        end = min((one.end for one in on_it if one.end is not None), default=None)
        kept.append(Region(column, begin, end, False, max(one.width for one in on_it)))
    return sorted(kept, key=lambda region: (region.column, region.is_rest))
