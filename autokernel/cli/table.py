"""A data set, read from a file: numbers, dates, missing values, the target."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from autokernel.cli.cells import (
    COMMA,
    POINT,
    advice_for,
    is_like_a_number,
    is_missing,
    marks_of,
    number_of,
    unit_of,
)
from autokernel.cli.dates import DateReading, are_digits_of_dates, read_dates
from autokernel.cli.options import DROP, Options
from autokernel.cli.sheet import Column, Sheet, read_sheet
from autokernel.data.checks import check_training_data
from autokernel.data.named import NamedColumns
from autokernel.datasets import load_airline
from autokernel.explain.description import TARGET
from autokernel.explain.regions import Axis
from autokernel.typing import FloatArray

_LEAST_ROWS = 4
_N_NAMED = 3  # cells that a message names


@dataclass(frozen=True, slots=True, eq=False)  # eq=False: the fields are arrays
class Table:
    """A data set with its title, its column names and how it was read."""

    title: str
    X: NamedColumns
    y: FloatArray  # (n_samples,)
    target_name: str
    units: Mapping[str, str]  # of columns, and of the target under "y"
    dates: Mapping[str, DateReading]  # of the columns that hold dates
    notes: list[str]  # how the file was read

    @property
    def feature_names(self) -> list[str]:
        """The names of the columns of X."""
        return self.X.names


@dataclass(frozen=True, slots=True, eq=False)  # eq=False: the fields are arrays
class NewRows:
    """Rows to predict, with the texts that they were read from."""

    sheet: Sheet
    X: NamedColumns
    decimal_mark: str


def airline() -> Table:
    """Load the bundled airline series."""
    data = load_airline()
    title = "monthly airline passengers, 1949 to 1960"
    units = {"time": "years", TARGET: "thousand passengers"}
    X = NamedColumns(list(data.feature_names), data.data, [])
    return Table(title, X, data.target, "passengers", units, {}, [])


def read_table(path: Path, options: Options) -> Table:
    """Read a file with the target among its columns.

    Raises
    ------
    OSError
        If the file cannot be read.
    ValueError
        If it cannot be used; the message says where, and what to do.
    """
    sheet = read_sheet(path, options.sep)
    for name in options.drop:
        if name not in sheet.header:
            raise ValueError(f"--drop must be one of {sheet.header}, got {name!r}")
    names = [name for name in sheet.header if name not in options.drop]
    if len(names) < 2:
        raise ValueError(
            f"--drop must leave the column to predict and another one, got {options.drop} out of "
            f"{sheet.header}"
        )
    target = names[-1] if options.target is None else options.target
    if target not in names:
        raise ValueError(f"--target must be one of {names}, got {target!r}")
    features = [name for name in names if name != target]
    present = [_present(sheet.column(name)) for name in names]
    dates = _dates(present, options.date_format)
    if target in dates:
        raise ValueError(
            f"{path.name}: the column to predict, {target!r}, holds dates: choose another one by "
            "--target"
        )
    mark = _decimal_mark([one for one in present if one.name not in dates], sheet.separator)
    _check_cells(present, dates, mark, target=target)
    notes = [*sheet.notes, *_told(present, dates, mark)]
    sheet = _without_missing(sheet, names, options.missing, notes)
    if len(sheet.rows) < _LEAST_ROWS:
        raise ValueError(
            f"{path.name} has {len(sheet.rows)} rows of values: at least {_LEAST_ROWS} are needed"
        )
    X, y = _named(sheet, features, dates, mark), _values(sheet, target, dates, mark)
    check_training_data(X.values, y)
    return Table(path.name, X, y, target, {}, dates, notes)


def read_new_rows(path: Path, table: Table, options: Options) -> NewRows:
    """Read the columns of a table from a file of rows to predict.

    Raises
    ------
    OSError
        If the file cannot be read.
    ValueError
        If a column is not there, or a cell cannot be read as in the table.
    """
    names = table.feature_names
    sheet = read_sheet(path, options.sep, least_columns=1)
    absent = [name for name in names if name not in sheet.header]
    if absent:
        raise ValueError(
            f"--predict {path.name} must have the columns {names}, and has no {', '.join(absent)}; "
            f"its columns are {sheet.header}"
        )
    present = [_present(sheet.column(name)) for name in names]
    plain = [one for one in present if one.name not in table.dates]
    mark = _decimal_mark(plain, sheet.separator)
    _check_cells(present, table.dates, mark)
    notes: list[str] = []
    sheet = _without_missing(sheet, names, options.missing, notes)
    if not sheet.rows:
        raise ValueError(f"--predict {path.name} has no row without missing values")
    return NewRows(
        replace(sheet, notes=[*sheet.notes, *notes]),
        _named(sheet, names, table.dates, mark),
        mark,
    )


def with_units(table: Table, given: Sequence[str]) -> Table:
    """Add the units that the user gives for columns and the target."""
    units = dict(table.units)
    known = [*table.feature_names, table.target_name]
    for text in given:
        name, sign, unit = text.partition("=")
        if not sign or name not in known:
            raise ValueError(f"--unit must be NAME=TEXT with one of {known}, got {text!r}")
        if name in table.dates:
            raise ValueError(
                f"--unit must not be given for {name!r}, which holds dates: they are told as dates"
            )
        if name != table.target_name:
            Axis.of(name, unit, 0.0, 1.0)  # raises the error that the description would raise
        units[TARGET if name == table.target_name else name] = unit
    if TARGET in units and TARGET in table.feature_names:
        raise ValueError(
            f"--unit cannot tell the column {TARGET!r} from the target: give it another name"
        )
    return replace(table, units=units)


def _present(column: Column) -> Column:
    """Return a column without its missing cells."""
    kept = [row for row, cell in enumerate(column.cells) if not is_missing(cell)]
    if not kept:
        raise ValueError(
            f"{column.file}: column {column.name!r} has no values: leave it out by --drop "
            f"{_quoted(column.name)}"
        )
    cells, lines = [column.cells[row] for row in kept], [column.lines[row] for row in kept]
    return Column(column.file, column.name, cells, lines)


def _dates(columns: Sequence[Column], given: str | None) -> dict[str, DateReading]:
    """Decide which columns hold dates, and how these are written."""
    dates = {}
    for column in columns:
        is_plain = all(marks_of(cell) for cell in column.cells)
        reading = None if is_plain and given is None else read_dates(column, given)
        if reading is None and given is not None and not is_plain:
            reading = read_dates(column, None)
        if reading is not None:
            dates[column.name] = reading
    if given is not None and given not in {one.format for one in dates.values()}:
        raise ValueError(
            f"--date-format must be that of a column, and no column has dates such as {given!r}"
        )
    return dates


def _decimal_mark(columns: Sequence[Column], separator: str) -> str:
    """Decide whether numbers have decimal points or commas.

    Raises
    ------
    ValueError
        If there are both.
    """
    first: dict[str, str] = {}
    for column in columns if separator != COMMA else ():
        for row, cell in enumerate(column.cells):
            marks = marks_of(cell)
            if len(marks) == 1:
                first.setdefault(marks, column.cell_at(row))
    if len(first) > 1:
        raise ValueError(
            f"{columns[0].file} must have decimal points or decimal commas, and has both: "
            f"{first[POINT]}; {first[COMMA]}"
        )
    return next(iter(first), POINT)


def _check_cells(
    columns: Sequence[Column],
    dates: Mapping[str, DateReading],
    mark: str,
    *,
    target: str | None = None,
) -> None:
    """Raise a ``ValueError`` for columns of text, and for cells that are no numbers or dates."""
    bad = {}
    for column in columns:
        reading = dates.get(column.name)
        rows = [row for row, cell in enumerate(column.cells) if mark not in marks_of(cell)]
        bad[column.name] = rows if reading is None else reading.bad_dates(column.cells)
    texts = [
        column
        for column in columns
        if column.name not in dates and _is_text(column, bad[column.name])
    ]
    if texts:
        examples = "; ".join(one.cell_at(bad[one.name][0]) for one in texts[:_N_NAMED])
        raise ValueError(
            f"{columns[0].file}: {_counted(len(texts), 'column')} of text: {examples}. "
            f"{_advice_for_text([one.name for one in texts], target)}"
        )
    for column in columns:
        rows = bad[column.name]
        if rows:
            reading = dates.get(column.name)
            what = "number" if reading is None else f"date ({reading.words})"
            first = "; ".join(column.cell_at(row) for row in rows[:_N_NAMED])
            more = f"; and {len(rows) - _N_NAMED} more" if len(rows) > _N_NAMED else ""
            advice = f": {advice_for(column.cells[rows[0]])}" if reading is None else ""
            raise ValueError(f"{column.file}: no {what} in {first}{more}{advice}")


def _is_text(column: Column, bad: Sequence[int]) -> bool:
    """Whether most cells of a column are nothing like a number, nor numbers with one unit."""
    cells = [column.cells[row] for row in bad if not is_like_a_number(column.cells[row])]
    units = {unit_of(cell) for cell in cells}
    has_one_unit = len(units) == 1 and None not in units
    return 2 * len(cells) > len(column.cells) and not has_one_unit


def _advice_for_text(names: Sequence[str], target: str | None) -> str:
    """Say what to do about columns of text."""
    dropped = [name for name in names if name != target]
    advice = []
    if target in names:
        advice.append("Choose another column to predict by --target.")
    if dropped:
        drops = " ".join(f"--drop {_quoted(name)}" for name in dropped)
        advice.append(
            f"Leave text out by {drops}, or encode categories in Python by a Pipeline with "
            "OneHotEncoder"
        )
    return " ".join(advice).removesuffix(".")


def _told(columns: Sequence[Column], dates: Mapping[str, DateReading], mark: str) -> list[str]:
    """Tell how dates and numbers were read."""
    told = [
        f"{column.name}: dates such as {column.cells[0]} ({dates[column.name].words})."
        for column in columns
        if column.name in dates
    ]
    told += [
        f"{column.name}: read as numbers such as {column.cells[0]}; where these are dates, say so "
        "by --date-format %Y%m%d."
        for column in columns
        if column.name not in dates and are_digits_of_dates(column.cells)
    ]
    return [*told, *["Numbers have decimal commas."] * (mark == COMMA)]


def _without_missing(sheet: Sheet, names: Sequence[str], missing: str, notes: list[str]) -> Sheet:
    """Return the rows that have all values; raise a ``ValueError`` unless others may be dropped."""
    indices = [sheet.header.index(name) for name in names]
    gaps = [
        (row, index)
        for row, cells in enumerate(sheet.rows)
        for index in indices
        if is_missing(cells[index])
    ]
    if not gaps:
        return sheet
    without = {row for row, _ in gaps}
    if missing != DROP:
        columns = {index: sheet.column(sheet.header[index]) for _, index in gaps[:_N_NAMED]}
        first = "; ".join(columns[index].cell_at(row) for row, index in gaps[:_N_NAMED])
        more = f"; and {len(gaps) - _N_NAMED} more" if len(gaps) > _N_NAMED else ""
        raise ValueError(
            f"{sheet.file}: {_counted(len(gaps), 'missing value')} in "
            f"{_counted(len(without), 'row')}: {first}{more}. Fill them in, or leave their rows "
            "out by --missing drop"
        )
    notes.append(
        f"{_counted(len(without), 'row')} of {len(sheet.rows)} left out, for missing values."
    )
    kept = [row for row in range(len(sheet.rows)) if row not in without]
    return replace(
        sheet, rows=[sheet.rows[row] for row in kept], lines=[sheet.lines[row] for row in kept]
    )


def _named(
    sheet: Sheet, names: Sequence[str], dates: Mapping[str, DateReading], mark: str
) -> NamedColumns:
    """Read columns of checked cells, dates as days."""
    values = np.column_stack([_values(sheet, name, dates, mark) for name in names])
    return NamedColumns(list(names), values, [i for i, name in enumerate(names) if name in dates])


def _values(sheet: Sheet, name: str, dates: Mapping[str, DateReading], mark: str) -> FloatArray:
    """Read a column of checked cells as numbers (n_rows,)."""
    cells = sheet.column(name).cells
    if name in dates:
        return dates[name].days(cells)
    return np.array([number_of(cell, mark) for cell in cells])


def _counted(number: int, noun: str) -> str:
    """Write a number with its noun."""
    return f"{number} {noun}{'s' * (number != 1)}"


def _quoted(name: str) -> str:
    """Write a column name as the shell reads it."""
    return name if name.replace("_", "").isalnum() else f"'{name}'"
