"""Tables of the user as numbers: dates become days, and categories the numbers of levels."""

from collections import Counter
from collections.abc import Collection, Hashable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from numbers import Real
from typing import Any

import narwhals.stable.v2 as nw  # as scikit-learn reads frames
import numpy as np
import numpy.typing as npt
from narwhals.exceptions import DuplicateError

from autokernel.data.columns import NO_VALUE, Column, Columns, Levels
from autokernel.data.dates import (
    days_since_1970,
    has_no_value,
    other_than_dates,
    refuse_times,
    zone_of,
)
from autokernel.data.texts import CATEGORY, DATE, NUMBER, TO_GAPS, is_numeric, kind_of, refused
from autokernel.typing import FloatArray, IntArray
from autokernel.validation import index_of_column

_DATES = ("datetime64", "period", "timestamp", "date32")  # types of an index, their beginnings
WHOLE_TEXTS = "texts of whole numbers"
_KINDS_OF_LEVELS: dict[str, type] = {"text": str, "truth value": bool, "number": Real}

Reading = tuple[FloatArray, Column]
"""The numbers (n,) of a column, and what it is."""


@dataclass(frozen=True, eq=False)
class _Given:
    name: str
    number: int
    values: npt.NDArray[Any]  # (n,)
    is_of_frame: bool = True
    is_category: bool = False  # by its type
    declared: tuple[Any, ...] | None = None  # levels of its type
    is_ordered: bool = False
    zone: str = ""  # of a type of dates

    @cached_property
    def coded(self) -> tuple[list[Any], IntArray]:
        """The distinct values as Python has them, None where missing, and their numbers (n,)."""
        kind, values = self.values.dtype.kind, self.values
        values = values.astype(f"{kind}8[us]") if kind in "mM" else values  # others may be numbers
        cells: list[Any] = values.tolist()
        is_mixed = len({*map(type, cells)}) > 1  # 1 and True are equal, and two values
        keys: list[Any] = [*zip(map(type, cells), cells, strict=True)] if is_mixed else cells
        try:
            found = dict(zip(keys, cells, strict=True))
        except TypeError:  # such values are refused
            keys, found = [*range(len(cells))], dict(enumerate(cells))
        number_of = dict(zip(found, range(len(found)), strict=True))
        codes = np.fromiter(map(number_of.__getitem__, keys), dtype=np.intp, count=len(keys))
        return [None if has_no_value(one) else _plain(one) for one in found.values()], codes

    @property
    def counts(self) -> Counter[Any]:
        """How often each value occurs that is not missing."""
        values, codes = self.coded
        found = Counter[Any]()  # 1 and 1.0 are one value
        for one, n in zip(values, np.bincount(codes).tolist(), strict=True):
            found[one] += n
        found.pop(None, None)
        return found

    @cached_property
    def known(self) -> list[Any]:
        return [one for one in self.coded[0] if one is not None]


def in_memory(X: Any) -> Any:
    """Return a table whose rows are computed, and an array with NaN where it is masked."""
    X = nw.to_native(X, pass_through=True)
    X = X.compute() if hasattr(X, "__dask_graph__") else X
    if isinstance(X, np.ma.MaskedArray):
        nothing: Any = {"M": np.datetime64("NaT"), "O": None, "U": None}
        return np.where(np.ma.getmaskarray(X), nothing.get(X.dtype.kind, np.nan), X.data)
    try:
        table = nw.from_native(X, pass_through=True)
    except DuplicateError as error:
        names = " ".join(str(error).partition("got:")[2].split())
        raise ValueError(
            f"X must have columns of different names, got {names}: rename them"
        ) from None
    if isinstance(table, nw.LazyFrame):
        if not table.implementation.is_polars():
            raise ValueError(
                "X must be a table whose rows are in memory and have an order, got a "
                f"{type(X).__name__}: sort it, and convert it to a data frame"
            )
        table = table.collect()
    if isinstance(table, nw.DataFrame):
        return table.to_native()
    if hasattr(X, "to_dataframe") and getattr(X, "ndim", 1) != 2:  # of xarray
        raise ValueError(
            f"X must have two dimensions, got a {type(X).__name__}: give X.to_dataframe(), whose "
            "dates may be its index"
        )
    return np.asarray(X) if hasattr(X, "to_dataframe") else X


def to_numbers(
    X: Any, chosen: set[int] | None, known: Columns | None
) -> tuple[Any, dict[int, Column]]:
    """Replace columns of dates, categories and texts by numbers, in a copy; others stay.

    Dates are datetime64, period or texts such as ``"2020-01-31"``, in a data frame or in an array
    of two dimensions. Times with a zone are converted to UTC. The user may have ``chosen`` the
    columns of categories. New rows have the ``known`` columns of the fit. Levels that the fit has
    not met get numbers after those. The columns that are not of plain numbers are by their indices.
    """
    numbers, columns = dict[int, FloatArray](), dict[int, Column]()
    of_fit = dict(enumerate(() if known is None else known.every))
    for given in _columns_of(X, chosen or [n for n, one in of_fit.items() if one.levels]):
        number = given.number
        column = of_fit.get(number, Column(given.name))
        if known is None or column.origin == NO_VALUE:
            read = _read_column(given, None if chosen is None else number in chosen)
        else:
            read = _read_as_known(given, column)
        if read is not None:
            numbers[number], columns[number] = read
    if len(getattr(X, "columns", "x")) == 0:
        raise ValueError("X must have a column, got a data frame without columns")
    return _with(X, numbers), columns


def _read_column(given: _Given, is_chosen: bool | None) -> Reading | None:
    """Read a column of a fit; the user may choose the categories. None if it is of no kind."""
    if is_chosen or (is_chosen is None and given.is_category):
        return _as_category(given, "categorical_features" if is_chosen else "type of categories")
    kind, origin, numbers = _read_values(given, may_be_levels=is_chosen is None)
    if kind == CATEGORY and is_chosen is not None:
        raise refused(given.name, "numbers or dates", given.known, "leave the column out")
    if kind == CATEGORY:
        return _as_category(given, origin)
    known = given.known if given.values.dtype.kind == "O" else ()
    zone = zone_of(known, given.zone) if kind == DATE else ""
    return (numbers, Column(given.name, origin, is_date=kind == DATE, zone=zone)) if kind else None


def _read_as_known(given: _Given, column: Column) -> Reading | None:
    """Read a column of new rows as that of the fit; None if it is of no kind."""
    if column.levels is not None:
        return _numbers_of(given, column.levels, column.origin)
    kind, _, numbers = _read_values(given, may_be_levels=False)
    if not kind or kind == NUMBER or (kind == DATE and column.is_date):
        return (numbers, column) if kind else None
    wrong = [one for one in given.known if not is_numeric(one)]
    wrong = other_than_dates(given.known) if column.is_date else wrong
    advice = "give dates to both, or numbers to both" if kind == DATE else TO_GAPS[column.kind]
    raise refused(given.name, f"{column.kind}s, as in fit,", wrong, advice)


def _read_values(given: _Given, *, may_be_levels: bool) -> tuple[str, str, FloatArray]:
    """Return the kind of the values, "" for none, their origin, and numbers, which levels lack."""
    if given.values.dtype.kind == "M":
        return DATE, "dates", days_since_1970(given.values)
    (present, codes), known, kind = given.coded, given.known, NUMBER
    origin = "numbers" if known else NO_VALUE
    dates: dict[Any, Any] = {}
    if not set(map(type, known)) <= {int, float}:
        if may_be_levels and all(isinstance(one, bool) for one in known):
            return CATEGORY, "truth values", np.empty(0)
        if _are_odd(given):
            return "", "", np.empty(0)
        kind, dates = kind_of(given.counts, given.name, may_be_levels=may_be_levels)
        if kind == CATEGORY:
            return kind, WHOLE_TEXTS if all(map(is_numeric, known)) else "texts", np.empty(0)
        origin = "texts of " * any(isinstance(one, str) for one in known) + f"{kind}s"
    if kind == DATE:
        moments = np.array(list(map(dates.get, present)), dtype="datetime64[us]")
        return kind, origin, days_since_1970(moments)[codes]
    return kind, origin, np.array(present, dtype=float)[codes]


def _are_odd(given: _Given) -> bool:
    """Whether values are neither numbers, texts nor dates; those of a frame are refused."""
    odd = [one for one in given.known if not (isinstance(one, (str, bytes)) or is_numeric(one))]
    odd = other_than_dates(odd)
    refuse_times("X", odd, f" in column {given.name!r}" * given.is_of_frame)
    if odd and given.is_of_frame:
        advice = "give its parts columns of their own, or write it as text"
        raise refused(given.name, "numbers, dates, texts or truth values", odd, advice)
    return bool(odd)  # of which scikit-learn says more


def _columns_of(X: Any, chosen: Collection[int] = ()) -> Iterator[_Given]:
    """Yield the columns that are not of plain numbers, and those that are chosen."""
    if isinstance(table := nw.from_native(X, eager_only=True, pass_through=True), nw.DataFrame):
        for number, values in enumerate(table.iter_columns()):
            if number in chosen or not values.dtype.is_numeric() or values.dtype == nw.Decimal:
                yield _given_of_frame(values, number)
    elif isinstance(array := refuse_one_dimension(X), np.ndarray) and array.ndim == 2:
        for number in range(array.shape[1]):
            if number in chosen or array.dtype.kind not in "fiubc":
                yield _Given(f"x{number}", number, array[:, number], is_of_frame=False)


def refuse_one_dimension(X: Any) -> Any:
    """Return X, lists as an array; arrays of numbers and ragged lists are left to scikit-learn."""
    array: Any = X
    if isinstance(X, (list, tuple)):
        array = None
        with suppress(ValueError):  # scikit-learn reports rows of different lengths
            array = np.array(X, dtype=object)
    known = array if hasattr(array, "ndim") else np.asarray(array)  # as sparse matrices have it
    cells = () if array is None or known.ndim > 1 else np.asarray(known).ravel()
    if hasattr(X, "to_frame") or not all(isinstance(c, list) or is_numeric(c) for c in cells):
        raise ValueError(
            f"X must have two dimensions, got an object of type {type(X).__name__}: give one row "
            "as X.iloc[[3]] or [row], one column as X.to_frame(), frame[['date']] or array[:, "
            "None], and a dict as pandas.DataFrame(X), or pandas.DataFrame([X]) if it is a row"
        )
    return array


def _given_of_frame(values: Any, number: int) -> _Given:
    kind, name = values.dtype, str(values.name)
    if kind.is_temporal():
        zone = str(getattr(kind, "time_zone", None) or "")
        return _Given(name, number, values.to_numpy(), zone=zone)
    objects = np.empty(len(values), dtype=object)
    objects[:] = values.to_list()
    given = _Given(name, number, objects, is_category=kind in (nw.Categorical, nw.Enum))
    of_pandas: Any = getattr(values.to_native(), "cat", None)
    if hasattr(of_pandas, "categories"):
        levels = tuple(map(_plain, of_pandas.categories))
        return replace(given, declared=levels, is_ordered=bool(of_pandas.ordered))
    if kind == nw.Enum:  # of polars
        return replace(given, declared=tuple(kind.categories))
    if kind == nw.Categorical and not values.implementation.is_polars():
        of_arrow = values.to_arrow()
        levels = tuple(of_arrow.dictionary.to_pylist())
        return replace(given, declared=levels, is_ordered=bool(of_arrow.type.ordered))
    return given


def with_dates_of_index(X: Any) -> Any:
    """Return X with the dates of its index, DatetimeIndex or PeriodIndex, as its last column.

    An index and a series become a frame with only this column. A frame that has a column of dates,
    or one of the name of the index, stays as it is.
    """
    index: Any = X if _is_index(X) else getattr(X, "index", None)
    if not _is_of_dates(index):
        return X
    name = "time" if index.name is None else index.name
    if not hasattr(X, "columns"):
        return index.to_frame(index=False, name=name)
    if name in X.columns or any(
        not one.is_category and one.known and not other_than_dates(one.known)
        for one in _columns_of(X)
    ):
        return X
    changed = X.copy()
    is_numbered = len(X.columns) and not any(isinstance(one, str) for one in X.columns)
    changed[len(X.columns) if is_numbered else name] = index
    return changed


def _is_of_dates(index: Any) -> bool:
    return str(getattr(index, "dtype", "")).startswith(_DATES)


def series_with_dates(X: Any, y: Any) -> tuple[Any, Any]:
    """Return the index and the values of a series of pandas that is given without a target."""
    X, y = in_memory(X), in_memory(y)
    if hasattr(X, "columns") or not hasattr(X, "to_frame") or not hasattr(X, "index"):
        return X, y
    has_dates = _is_of_dates(X.index)
    if y is not None:
        if has_dates and not _is_of_dates(X) and not np.array_equal(X, y):  # values would be lost
            raise ValueError(
                "X must have two dimensions, got a series: leave y out if the series is the "
                "target, or give X.to_frame() for a column next to its dates"
            )
        return X, y
    if not has_dates:
        raise ValueError(
            "a series without a target must have a DatetimeIndex or a PeriodIndex, got one with a "
            f"{type(X.index).__name__}: give it dates, or call "
            "fit(numpy.arange(len(series))[:, None], series)"
        )
    return X.index, X


def _is_index(X: Any) -> bool:
    return hasattr(X, "to_frame") and not hasattr(X, "index")


def _with(X: Any, numbers: Mapping[int, FloatArray]) -> Any:
    """Return a copy of X in which some columns are numbers, X itself if there are none."""
    if not numbers:
        return X
    if isinstance(table := nw.from_native(X, eager_only=True, pass_through=True), nw.DataFrame):
        names, backend = table.columns, table.implementation
        changed = (nw.new_series(names[n], x, backend=backend) for n, x in numbers.items())
        return table.with_columns(*changed).to_native()
    array = np.array(X, dtype=object)
    for number, values in numbers.items():
        array[:, number] = values
    return array


def chosen_columns(X: Any, categorical: Any) -> set[int] | None:
    """Return the columns that the user chooses as categories, None if their types decide."""
    if (isinstance(categorical, str) and categorical == "auto") or _is_index(X):
        return None
    names = [str(one) for one in getattr(nw.from_native(X, pass_through=True), "columns", ())]
    if not names and np.ndim(X) == 2:
        names = [f"x{number}" for number in range(np.shape(X)[1])]
    given = [] if categorical is None else np.asarray(categorical, dtype=object).ravel().tolist()
    if not given or not all(isinstance(one, (bool, np.bool_)) for one in given):
        expected = "categorical_features must be 'auto', None, a mask, or columns of X"
        return {index_of_column(one, names, len(names), expected=expected) for one in given}
    if len(given) != len(names):
        raise ValueError(
            f"categorical_features must be a mask of {len(names)} columns, got {len(given)}"
        )
    return set(np.flatnonzero(given).tolist())


def _plain(value: Any) -> Any:
    if isinstance(value, (np.datetime64, np.timedelta64)):  # nanoseconds would be numbers
        value = value.astype(f"{value.dtype.kind}8[us]")
    return value.item() if isinstance(value, np.generic) else value


def _level(value: Any) -> Any:
    """Return a value as a level, a date, an interval and the like as its text."""
    is_plain = value is None or isinstance(value, (str, bytes, Real))
    return value if is_plain or not isinstance(value, Hashable) else str(value)


def _kind_of_level(value: Any) -> str:
    """Name the kind of a level; truth values are numbers too, and come first."""
    kinds = (kind for kind, of_kind in _KINDS_OF_LEVELS.items() if isinstance(value, of_kind))
    return next(kinds, type(value).__name__)


def _as_category(given: _Given, origin: str) -> Reading:
    """Read a column of categories, whose levels are in the order of their type, or sorted."""
    name, known = given.name, list(map(_level, given.known))
    if not known:
        return np.full(len(given.values), np.nan), Column(name, origin=NO_VALUE)
    kinds = {_kind_of_level(one): one for one in reversed(known)}  # with the first of each kind
    if len(kinds) > 1 or not kinds.keys() <= _KINDS_OF_LEVELS.keys():
        got = " and ".join(f"{one!r} of type {kind}" for kind, one in kinds.items())
        raise ValueError(
            "X must hold texts, truth values or numbers, and one kind of them, as levels of "
            f"column {name!r}, got {got}: convert it by astype(str), or mark gaps by None"
        )
    levels = sorted(set(known)) if given.declared is None else list(map(_level, given.declared))
    if None in given.coded[0] and not given.is_ordered:
        levels.append(None)
    return _numbers_of(given, Levels(tuple(levels), given.is_ordered), origin)


def _numbers_of(given: _Given, levels: Levels, origin: str) -> Reading:
    """Return the numbers (n,) of levels, and the column with those not known before.

    These get numbers after the others. Among ordered levels they have no place, as missing ones:
    their number is NaN.
    """
    name, numbers = given.name, {level: n for n, level in enumerate(levels.values)}
    first = levels.values[0]
    of_levels, (values, codes) = _kind_of_level(first), given.coded
    present = list(map(_level, values))
    for one in present:
        if one is not None and _kind_of_level(one) != of_levels:
            raise ValueError(
                f"X must hold levels such as {first!r} in column {name!r}, as in fit, got "
                f"{one!r}, which is of type {_kind_of_level(one)}"
            )
        if not levels.is_ordered:
            numbers.setdefault(one, len(numbers))
    found = np.array([numbers.get(one, np.nan) for one in present], dtype=float)
    levels = Levels(tuple(numbers), levels.is_ordered)
    return found[codes], Column(name, levels=levels, origin=origin)
