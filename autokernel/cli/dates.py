"""Dates in the cells of a column."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np

from autokernel.cli.sheet import Column
from autokernel.data.dates import days_since_1970
from autokernel.typing import FloatArray

_ISO = "ISO"
_ISO_SHAPE = re.compile(r"\d{4}-\d\d-\d\d([T ]\d\d(:?\d\d){1,2}([.,]\d+)?)?(Z|[+-]\d\d(:?\d\d)?)?")
_DAYS = {
    "%Y/%m/%d": "year/month/day",
    "%Y.%m.%d": "year.month.day",
    "%d.%m.%Y": "day.month.year",
    "%d.%m.%y": "day.month.year",
    "%d/%m/%Y": "day/month/year",
    "%m/%d/%Y": "month/day/year",
    "%d/%m/%y": "day/month/year",
    "%m/%d/%y": "month/day/year",
    "%d-%m-%Y": "day-month-year",
    "%m-%d-%Y": "month-day-year",
    "%d %b %Y": "day month year",
    "%d-%b-%Y": "day-month-year",
    "%d-%b-%y": "day-month-year",
}
_MONTHS = {
    "%Y-%m": "year-month",
    "%Y/%m": "year/month",
    "%m/%Y": "month/year",
    "%b %Y": "month year",
    "%B %Y": "month year",
}
_TIMES = ("", " %H:%M", " %H:%M:%S", " %H:%M:%S.%f", " %I:%M %p", " %I:%M:%S %p")
_N_PROBED = 5  # cells that decide whether a column may hold dates


@dataclass(frozen=True, slots=True)
class DateReading:
    """How dates are written."""

    format: str  # as for strptime, or _ISO
    words: str  # the format for a person

    def days(self, cells: Sequence[str]) -> FloatArray:
        """Count the days since 1970-01-01 of the dates in some cells."""
        dates = [_date(cell, self.format) for cell in cells]
        assert None not in dates  # bad_dates has been asked before
        return days_since_1970(np.array(dates, dtype="datetime64[us]"))

    def bad_dates(self, cells: Sequence[str]) -> list[int]:
        """Return the numbers of the cells that are no dates in this format."""
        return [row for row, cell in enumerate(cells) if _date(cell, self.format) is None]


def read_dates(column: Column, given: str | None) -> DateReading | None:
    """Decide how the dates of a column are written.

    Parameters
    ----------
    column : Column
        Cells without missing ones.
    given : str or None
        A format as for strptime that the user prefers.

    Returns
    -------
    DateReading or None
        The reading of most cells, None if fewer than half of them are dates.

    Raises
    ------
    ValueError
        If the values allow for two formats.
    """
    counts = {
        text: sum(_date(cell, text) is not None for cell in column.cells)
        for text in _formats(given)
        if any(_date(cell, text) is not None for cell in column.cells[:_N_PROBED])
    }
    most = max(counts.values(), default=0)
    if most == 0 or 2 * most < len(column.cells):
        return None
    best, *others = [text for text, count in counts.items() if count == most]
    for other in others:
        for row, cell in enumerate(column.cells):
            one, two = _date(cell, best), _date(cell, other)
            if one is not None and two is not None and one != two:
                raise ValueError(
                    f"{column.file}, {column.cell_at(row)} may be {_spoken(one)} or {_spoken(two)},"
                    " and no other value of the column decides: choose by --date-format "
                    f"'{best}' or --date-format '{other}'"
                )
    return DateReading(best, _words(best, column.cells))


def are_digits_of_dates(cells: Sequence[str]) -> bool:
    """Whether all cells may be dates without separators, such as 20200131."""
    return all(
        len(cell) == 8 and cell[:2] in ("19", "20") and _date(cell, "%Y%m%d") is not None
        for cell in cells
    )


def _formats(given: str | None) -> Iterator[str]:
    """Yield all formats that are known, the given one alone if there is one."""
    if given is not None:
        yield given
        return
    yield _ISO
    yield from _MONTHS
    for day in _DAYS:
        yield from (day + time for time in _TIMES)


def _words(text: str, cells: Sequence[str]) -> str:
    """Tell a format."""
    has_time = any(":" in cell for cell in cells)
    if text == _ISO:
        zone = any(re.search(r"(Z|[+-]\d\d(:?\d\d)?)$", cell[10:]) for cell in cells)
        return "year-month-day" + ", time" * has_time + ", in UTC" * zone
    day = next((day for day in _DAYS if text.startswith(day)), None)
    known = _MONTHS.get(text) or (_DAYS[day] if day else None)
    return text if known is None else known + ", time" * has_time


def _date(cell: str, text: str) -> datetime | None:
    """Read a date, without its zone; None if it is not in the format."""
    if not any(character.isdigit() for character in cell):
        return None
    if text == _ISO and not _ISO_SHAPE.fullmatch(cell):
        return None
    try:
        date = datetime.fromisoformat(cell) if text == _ISO else datetime.strptime(cell, text)
    except ValueError:
        return None
    return date if date.tzinfo is None else date.astimezone(UTC).replace(tzinfo=None)


def _spoken(date: datetime) -> str:
    """Write a date with the name of its month."""
    return f"{date.day} {date:%B} {date.year}"
