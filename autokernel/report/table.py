"""A dict of arrays that prints as a table."""

from collections.abc import Mapping
from html import escape
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

_MOST_ROWS = 20


class Table(dict[str, npt.NDArray[Any]]):
    """A dict of arrays of one length that prints as a table; ``pandas.DataFrame`` accepts it."""

    formats: ClassVar[Mapping[str, str]] = {}  # of numbers, by column
    title: ClassVar[str] = ""
    note: str = ""  # a line below the table
    shown: ClassVar[tuple[str, ...]] = ()  # columns that are printed, all of them if it is empty

    @property
    def _names(self) -> list[str]:
        """Names of the columns that are printed."""
        return [name for name in self.shown or self if name in self]

    def _cells(self, n_rows: int) -> list[list[str]]:
        """Write the first rows."""
        return [
            [_text(self[name][row], self.formats.get(name, ".4g")) for name in self._names]
            for row in range(n_rows)
        ]

    def to_html(self) -> str:
        """Write all rows as an HTML table."""
        names = self._names
        n_rows = len(self[names[0]])
        head = "".join(f"<th>{escape(name)}</th>" for name in names)
        kinds = ["text" if self[name].dtype == object else "number" for name in names]
        body = "".join(
            "<tr>"
            + "".join(
                f'<td class="{kind}">{escape(cell)}</td>'
                for kind, cell in zip(kinds, row, strict=True)
            )
            + "</tr>\n"
            for row in self._cells(n_rows)
        )
        note = f"<p>{escape(self.note)}</p>" if self.note else ""
        return f"<table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}</tbody>\n</table>{note}"

    def _repr_html_(self) -> str:
        """Show the table in a notebook."""
        return self.to_html()

    def __repr__(self) -> str:
        names = self._names
        n_rows = len(self[names[0]])
        cells = [names, *self._cells(min(n_rows, _MOST_ROWS))]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        is_text = [self[name].dtype == object for name in names]
        lines = [self.title] if self.title else []
        for line in cells:
            padded = (
                cell.ljust(width) if left else cell.rjust(width)
                for cell, width, left in zip(line, widths, is_text, strict=True)
            )
            lines.append("  ".join(padded).rstrip())
        if n_rows > _MOST_ROWS:
            lines.append(f"... and {n_rows - _MOST_ROWS} more")
        if self.note:
            lines.append(self.note)
        return "\n".join(lines)


def _text(value: object, form: str) -> str:
    """Write one entry."""
    if isinstance(value, (float, np.floating)):
        return "" if np.isnan(value) else format(value, form)
    return str(value)
