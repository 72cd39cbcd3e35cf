"""The columns of X: what each is, and how the search sees its values."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from autokernel.data.scales import SCALES, Identity, Scale, log_offset
from autokernel.expression import COLUMN_SCALES, IDENTITY, Expression, View
from autokernel.typing import BoolArray, FloatArray, IntArray
from autokernel.validation import index_of_column

NO_VALUE = "no value"  # the origin of a column of which the fit had none
EXPOSURE = "exposure or trials of counts"  # the origin of a column of these
_N_PLACES = 16  # values for which a missing one may stand


class Levels(NamedTuple):
    """The levels of a column of categories, in the order of their numbers."""

    values: tuple[Any, ...]  #: texts, truth values or numbers; None for missing ones, if unordered
    is_ordered: bool  #: whether the type of the column says that they have an order


@dataclass(frozen=True, slots=True)
class Column:
    """A column of X, which is searched as a unit interval.

    Its scales besides the identity are unit intervals too. A missing value may stand for any of
    ``places``, quantiles of the known values in the unit interval.
    """

    name: str
    origin: str = "numbers"  # what it was read from
    is_date: bool = False  # in days since 1970-01-01
    zone: str = ""  # of dates, whose clock forecasts follow
    levels: Levels | None = None  # of categories, whose values are the numbers of levels
    low: float = 0.0  # the smallest known value
    extent: float = 1.0  # of the known values, one for a constant
    varies: bool = True  # by more than rounding
    n_gaps: int = 0  # rows without a value
    places: tuple[float, ...] = (0.5,)
    scales: Mapping[str, Scale] = field(default_factory=dict)  # by name, those that it has

    def of_values(self, x: FloatArray) -> "Column":
        """Return the column with the unit interval, gaps and scales of its values (n_samples,)."""
        known = x[~np.isnan(x)]
        n_gaps = int(self.is_gap(x).sum())
        if not len(known):
            return replace(self, low=0.0, extent=1.0, varies=False, n_gaps=n_gaps)
        low, high = float(known.min()), float(known.max())
        varies = bool(high - low > 10 * np.finfo(float).eps * max(abs(low), abs(high)))
        extent = high - low if varies else 1.0
        scales: dict[str, Scale] = {}
        for name in COLUMN_SCALES if varies else ():
            offset = log_offset(known) if name == "log" else 0.0
            ends = np.array([low, high]) + offset
            if SCALES[name].has(ends).all():
                first, last = SCALES[name].function(ends).tolist()
                origin, width = (low + offset) / extent, last - first
                scales[name] = Scale(name, origin, extent, first, width, offset)
        return replace(
            self,
            low=low,
            extent=extent,
            varies=varies,
            n_gaps=n_gaps,
            places=_places((known[:: max(1, len(known) // 4096)] - low) / extent),  # 4096 or so
            scales=scales,
        )

    def is_gap(self, x: FloatArray) -> BoolArray:
        """Return which values (n,) are missing: NaN, or the level that stands for them."""
        levels = () if self.levels is None else self.levels.values
        return np.isnan(x) | (x == (levels.index(None) if None in levels else np.nan))

    @property
    def kind(self) -> str:
        """What the values are."""
        return "category" if self.levels is not None else "date" if self.is_date else "number"

    @property
    def level_texts(self) -> tuple[str, ...]:
        """The levels of a category as they are written, none of other columns."""
        levels = () if self.levels is None else self.levels.values
        return tuple("missing" if one is None else str(one) for one in levels)

    def scale(self, name: str) -> Scale:
        """Return a scale by its name; one that the column does not have acts on raw numbers."""
        if name == IDENTITY:
            return Identity(name, shift=self.low, width=self.extent)
        return self.scales.get(name) or Scale(name)


@dataclass(frozen=True, slots=True)
class Columns:
    """The columns of X in order."""

    every: tuple[Column, ...]
    has_names: bool = False  # of the user, and not x0, x1 and so on

    @classmethod
    def of_names(
        cls, names: Sequence[str] | None, n_features: int, kinds: Mapping[int, Column] | None = None
    ) -> "Columns":
        """Return columns that are used as they come, of plain numbers but for those of kinds."""
        known = names or [f"x{number}" for number in range(n_features)]
        kinds = kinds or {}
        every = [replace(kinds.get(n, Column(name)), name=name) for n, name in enumerate(known)]
        return cls(tuple(every), has_names=names is not None)

    def of_rows(self, X: FloatArray) -> "Columns":
        """Return the columns with the unit intervals of inputs X (n_samples, n_features)."""
        every = (column.of_values(x) for column, x in zip(self.every, X.T, strict=True))
        return replace(self, every=tuple(every))

    def with_places_of(self, X: FloatArray) -> "Columns":
        """Return the columns as they are, with what must be known of their values."""
        every = list(self.every)
        for number, x in enumerate(X.T):
            if len(known := x[~np.isnan(x)]):
                offset = log_offset(known)
                own = {"log": Scale("log", offset, offset=offset)}
                every[number] = replace(every[number], places=_places(known), scales=own)
        return replace(self, every=tuple(every))

    def __getitem__(self, column: int) -> Column:
        return self.every[column]

    def __len__(self) -> int:
        return len(self.every)

    def index_of(self, given: object, *, argument: str) -> int:
        """Return the index of a column that is given by its name or index, if there is one."""
        expected = f"{argument} must be a column of X"
        return index_of_column(given, self.names, len(self), expected=expected)

    @property
    def names(self) -> list[str]:
        """The names of the columns."""
        return [column.name for column in self.every]

    @property
    def feature_names(self) -> list[str] | None:
        """The names of the columns, None if the user gives none."""
        return self.names if self.has_names else None

    @property
    def log_offsets(self) -> dict[int, float]:
        """What is added to columns with zeros before their logarithm is taken, by their index."""
        every = enumerate(column.scale("log").offset for column in self.every)
        return {number: offset for number, offset in every if offset}

    def text_of(self, expression: Expression) -> str:
        """Write an expression as the user reads it."""
        return expression.to_text(self.feature_names, self.log_offsets)

    @property
    def dates(self) -> list[int]:
        """The indices of the columns of dates."""
        return [number for number, column in enumerate(self.every) if column.is_date]

    def inputs(self, X: FloatArray, *, first_row: int | None = None) -> "Inputs":
        """Scale inputs (n, n_features), by default of new rows."""
        low, extent = np.array([(column.low, column.extent) for column in self.every]).T
        return self.scaled((X - low) / extent, first_row=first_row)

    def scaled(self, values: FloatArray, *, first_row: int | None = None) -> "Inputs":
        """Wrap values (n, n_features) in unit intervals, by default of new rows."""
        rows = np.arange(len(values))
        rows = -1 - rows if first_row is None else first_row + rows
        return Inputs(self, values, rows)

    def scale(self, view: View) -> Scale:
        """Return the scale of a view."""
        return self.every[view.column].scale(view.scale)

    def places(self, view: View) -> FloatArray:
        """Return the values (n_places,) of a view for which a missing one may stand."""
        return self.scale(view).forward(np.array(self.every[view.column].places))

    @property
    def numbers(self) -> tuple[object, ...]:
        """All numbers that values of kernels depend on."""
        return tuple((one.low, one.extent, one.places) for one in self.every)


@dataclass(frozen=True, slots=True, eq=False)  # eq=False: the fields are arrays
class Inputs:
    """Inputs of rows, of any shape (..., n_features), as the search sees them."""

    columns: Columns
    values: FloatArray  # (..., n_features), in unit intervals, NaN where missing
    rows: IntArray  # (...), numbers of the rows, those of new rows negative

    def view(self, view: View) -> FloatArray:
        """Return the values (...) of a view, NaN where missing."""
        x = self.values[..., view.column]
        if view.scale == IDENTITY:
            return x
        return np.where(np.isnan(x), x, self.columns.scale(view).forward(x))

    def raw(self, column: int) -> FloatArray:
        """Return the values (...) of a column in the unit of the user, NaN where missing."""
        known = self.columns[column]
        return known.low + known.extent * self.values[..., column]

    def known(self, view: View) -> FloatArray:
        """Return the values of a view that are not missing."""
        x = self.view(view)
        return x[~np.isnan(x)]

    @property
    def filled(self) -> FloatArray:
        """The values with medians of columns where they are missing."""
        if not (gaps := np.isnan(self.values)).any():
            return self.values
        medians = [np.median(column.places) for column in self.columns.every]
        return np.where(gaps, medians, self.values)

    @property
    def flat(self) -> "Inputs":
        """The same rows in one dimension."""
        values = self.values.reshape(-1, self.values.shape[-1])
        return replace(self, values=values, rows=self.rows.ravel())

    def joined(self, others: "Inputs") -> "Inputs":
        """Return these rows and others after them, whose columns may have more levels.

        The others are numbered as rows that are none of these.
        """
        values = np.concatenate([self.values, others.values])
        numbers = 1 + self.rows.max(initial=-1) + np.arange(len(others))
        return Inputs(others.columns, values, np.concatenate([self.rows, numbers]))

    def with_last(self, others: "Inputs") -> "Inputs":
        """Return blocks of rows (n_blocks, n_rows) with one of n_blocks others at the end."""
        values = np.concatenate([self.values, others.values[:, None]], axis=1)
        return replace(self, values=values, rows=np.column_stack([self.rows, others.rows]))

    def __getitem__(self, rows: Any) -> "Inputs":
        return replace(self, values=self.values[rows], rows=self.rows[rows])

    def __len__(self) -> int:
        return len(self.values)


def _places(x: FloatArray) -> tuple[float, ...]:
    """Return quantiles of known values, for which a missing one may stand."""
    return tuple(np.quantile(x, (np.arange(_N_PLACES) + 0.5) / _N_PLACES).tolist())
