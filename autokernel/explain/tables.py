"""Tables for a person: dicts of arrays that print as tables."""

import textwrap
from collections.abc import Mapping
from html import escape
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from autokernel.typing import BoolArray

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


class Trials(Table):
    """A table of all kernels of a search in order, of which the main columns are printed.

    It is a dict of arrays with one entry per kernel, and ``pandas.DataFrame`` accepts it.
    """

    shown: ClassVar[tuple[str, ...]] = ("score", "n_leaves", "phase", "status", "elapsed", "kernel")
    formats: ClassVar[Mapping[str, str]] = {"score": ".2f", "elapsed": ".1f"}
    note = "main columns; pandas.DataFrame(model.search_history_) has all"


_COLUMNS = ("score", "score_per_sample", "n_leaves", "n_params", "phase", "status")
_WIDTH = 100  # characters per line
MARK = "*"
_WORTH = 2.0  # nats, less than which no larger kernel is suggested


class Leaderboard(Table):
    """A table of kernels, the best first, that prints as text.

    It is a dict of arrays with one entry per kernel, and ``pandas.DataFrame`` accepts it. The keys
    are ``rank``, ``chosen``, ``kernel``, ``score``, ``score_per_sample``, ``n_leaves``,
    ``n_params``, ``phase`` and ``status``.
    """

    formats: ClassVar[Mapping[str, str]] = {"score": ".2f"}

    @classmethod
    def of(
        cls, history: Mapping[str, npt.NDArray[Any]], *, k: int, is_chosen: BoolArray
    ) -> "Leaderboard":
        """Take the k best rows of a history, and mark the chosen ones."""
        order = np.argsort(-history["score"], kind="stable")[:k]
        return cls(
            rank=np.arange(1, len(order) + 1),
            chosen=is_chosen[order],
            kernel=history["kernel"][order],
            **{name: history[name][order] for name in _COLUMNS},
        )

    def __repr__(self) -> str:
        if not len(self["kernel"]):
            return "no kernel has been evaluated"
        head = f"{'rank':>4}   {'score':>9}  {'leaves':>6}  kernel"
        lines = [f"{head}   ({MARK} chosen; score in nats)"]
        rows = (self[name] for name in ("rank", "chosen", "score", "n_leaves", "kernel", "status"))
        for rank, chosen, score, n_leaves, kernel, status in zip(*rows, strict=True):
            start = f"{rank:4d} {MARK if chosen else ' '} {score:9.2f}  {n_leaves:6d}  "
            text = kernel if status == "ok" else f"{kernel}  ({status})"
            lines.append(
                textwrap.fill(
                    text,
                    _WIDTH,
                    initial_indent=start,
                    subsequent_indent=" " * len(start),
                )
            )
        if self.note:
            lines.append(textwrap.fill(self.note, _WIDTH))
        return "\n".join(lines)


class SizeFront(Table):
    """The best kernel of each size, the smallest first.

    It is a dict of arrays with one entry per size. The keys are ``n_leaves``, ``score``, ``gain``
    (nats above the best smaller kernel), ``chosen``, ``suggested`` (the smallest kernel within two
    nats of the best score) and ``kernel``.
    """

    title: ClassVar[str] = "best kernel of each size; score in nats, gain over the best smaller one"
    formats: ClassVar[Mapping[str, str]] = {"score": ".2f", "gain": ".2f"}

    @classmethod
    def of(
        cls, history: Mapping[str, npt.NDArray[Any]], *, k: int, is_chosen: BoolArray
    ) -> "SizeFront":
        """Take the best row of each size from a history, up to the k smallest sizes."""
        order = np.argsort(-history["score"], kind="stable")
        order = order[np.isfinite(history["score"][order])]
        sizes, first = np.unique(history["n_leaves"][order], return_index=True)
        rows = order[first][:k]
        scores = history["score"][rows]
        best_so_far = np.maximum.accumulate(scores)
        before = np.concatenate([[np.nan], best_so_far])[: len(scores)]
        near = np.flatnonzero(scores >= history["score"].max(initial=-np.inf) - _WORTH)
        return cls(
            n_leaves=sizes[:k],
            score=scores,
            gain=scores - before,
            chosen=is_chosen[rows],
            suggested=np.arange(len(rows)) == (near[0] if len(near) else -1),
            kernel=history["kernel"][rows],
        )
