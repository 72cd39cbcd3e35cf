"""The history of a search as a table."""

from collections.abc import Mapping
from typing import ClassVar

from autokernel.report.table import Table


class Trials(Table):
    """A table of all kernels of a search in order, of which the main columns are printed.

    It is a dict of arrays with one entry per kernel, and ``pandas.DataFrame`` accepts it.
    """

    shown: ClassVar[tuple[str, ...]] = ("score", "n_leaves", "phase", "status", "elapsed", "kernel")
    formats: ClassVar[Mapping[str, str]] = {"score": ".2f", "elapsed": ".1f"}
    note = "main columns; pandas.DataFrame(model.search_history_) has all"
