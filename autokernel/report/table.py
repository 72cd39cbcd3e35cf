"""A dict of arrays that prints as a table."""

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

_MOST_ROWS = 20


class Table(dict[str, npt.NDArray[Any]]):
    """A dict of arrays of one length that prints as a table; ``pandas.DataFrame`` accepts it."""

    formats: ClassVar[Mapping[str, str]] = {}  # of numbers, by column
    title: ClassVar[str] = ""

    def __repr__(self) -> str:
        names = list(self)
        n_rows = len(self[names[0]])
        cells = [names] + [
            [_text(self[name][row], self.formats.get(name, ".4g")) for name in names]
            for row in range(min(n_rows, _MOST_ROWS))
        ]
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
        return "\n".join(lines)


def _text(value: object, form: str) -> str:
    """Write one entry."""
    if isinstance(value, (float, np.floating)):
        return "" if np.isnan(value) else format(value, form)
    return str(value)
