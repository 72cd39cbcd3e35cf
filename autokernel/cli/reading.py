"""Files as data frames: pandas reads the cells as texts, and then numbers and dates in them.

The index of each frame has the numbers of the lines, so that messages can name them. Errors of a
file are ``ValueError`` with the line, the column, the cell and what to do.
"""

import argparse
import gzip
import io
import re
import shlex
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from autokernel.datasets import load_airline

PREDICTED = ("mean", "std", "lower_95", "upper_95")  # columns of predictions

_MISSING = ("", "na", "n/a", "#n/a", "nan", "null", "none", "nil", "?", "-", "--", ".")
_MIN_ROWS = 4  # of a fit and its test
_N_NAMED = 3  # cells that a message names
_ISO = "ISO8601"
_DAYS = "%Y/%m/%d %Y.%m.%d %d.%m.%Y %d.%m.%y %d/%m/%Y %m/%d/%Y %d/%m/%y %m/%d/%y %d-%m-%Y %m-%d-%Y"
_DAYS_IN_WORDS = ("%d %b %Y", "%d-%b-%Y", "%d-%b-%y")
_TIMES = ("", " %H:%M", " %H:%M:%S", " %H:%M:%S.%f", " %I:%M %p", " %I:%M:%S %p")
_MOMENTS = (day + time for day in (*_DAYS.split(), *_DAYS_IN_WORDS) for time in _TIMES)
_FORMATS = (_ISO, "%Y/%m", "%m/%Y", "%b %Y", "%B %Y", *_MOMENTS)


@dataclass(frozen=True, slots=True, eq=False)  # eq=False: frames have no truth value
class FitRows:
    """Rows to fit."""

    title: str
    X: Any  # data frame; array of the bundled series
    y: Any  # (n_samples,)
    target: str
    units: dict[str, str]  # as for describe
    formats: dict[str, str]  # of the columns that hold dates
    notes: list[str]  # how the file was read


def airline() -> FitRows:
    """Load the bundled airline series, without pandas."""
    X, y = load_airline(return_X_y=True)
    title = "monthly airline passengers, 1949 to 1960"
    note = "x0, column [0], is the time in years."
    units = {"x0": "years", "y": "thousand passengers"}
    return FitRows(title, X, y, "passengers", units, {}, [note])


def read_table(path: Path, options: argparse.Namespace) -> FitRows:
    """Read a file with the target among its columns."""
    notes: list[str] = []
    with _errors_named(path):
        cells, sep = _read_cells(path, options.sep, notes)
        if wrong := [name for name in options.drop if name not in cells]:
            raise ValueError(f"--drop must be one of {list(cells)}, got {wrong[0]!r}")
        cells = cells.drop(columns=options.drop)
        names = list(cells)
        if len(names) < 2:
            raise ValueError(
                f"found one column, {''.join(names)!r}: there must be another one to predict it "
                "from; name the separator by --sep if it is none of , ; tab"
            )
        target, given = options.target or names[-1], options.date_format
        if target not in names:
            raise ValueError(f"--target must be one of {names}, got {target!r}")
        found = {name: _date_format(cells[name], given) for name in names if name != target}
        formats = {name: form for name, form in found.items() if form}
        if given and given not in formats.values():
            raise ValueError(f"--date-format must be that of a column, and {given!r} fits none")
        values, decimal = _values(cells, formats, sep, options.missing, notes, least=_MIN_ROWS)
    for name, form in formats.items():
        notes.append(f"{name}: dates such as {cells[name][values.index[0]]} ({form}).")
    notes += ["Numbers have decimal commas."] * (decimal == ",")
    X, y = values.drop(columns=target), values[target].to_numpy(float)
    return FitRows(path.name, X, y, target, {}, formats, notes)


def read_new_rows(
    path: Path, table: FitRows, options: argparse.Namespace
) -> tuple[Any, Any, dict[str, str]]:
    """Read rows to predict: the inputs, all cells, and how ``to_csv`` writes them like the file."""
    notes: list[str] = []
    with _errors_named(path):
        cells, sep = _read_cells(path, options.sep, notes)
        names = list(table.X) if options.file else ["time"]
        if not set(names) <= set(cells):
            raise ValueError(f"--predict must have the columns {names}, got {list(cells)}")
        if taken := [name for name in PREDICTED if name in cells]:
            raise ValueError(f"--predict must not have a column {taken[0]!r}, as predictions have")
        X, decimal = _values(cells[names], table.formats, sep, options.missing, notes, least=1)
    table.notes.extend(f"{path.name}: {note}" for note in notes)
    cells = cells.loc[X.index]
    return X if options.file else X.to_numpy(), cells, {"sep": sep, "decimal": decimal}


@contextmanager
def _errors_named(path: Path) -> Iterator[None]:
    """Begin messages with the name of the file."""
    try:
        yield
    except ImportError as error:
        raise ValueError(f"{path.name} needs pandas: pip install 'autokernel-gp[cli]'") from error
    except (ValueError, EOFError) as error:
        raise ValueError(f"{path.name}: {error}") from error


def _read_cells(path: Path, sep: str | None, notes: list[str]) -> tuple[Any, str]:
    """Read the cells of a file below the names of its columns, and the separator."""
    import pandas as pd

    text = _text(path, notes)
    uncommented = re.sub("^#.*", "", text, flags=re.MULTILINE)
    notes += ["Lines that begin with # are left out."] * (text != uncommented)
    lines = [line for line in uncommented.splitlines() if line.strip(" ;,\t")]
    if not lines:
        raise ValueError("the file is empty: it must have a line of column names, and rows below")
    header = re.sub('"[^"]*"', "", lines[0])
    # commas below a single name belong to numbers
    sep = sep or next((one for one in "\t;," if one in header), ";" if "," in text else ",")
    columns = range(1 + max(line.count(sep) for line in lines))
    how = {"dtype": str, "keep_default_na": False, "skipinitialspace": True}
    how |= {"names": columns, "skip_blank_lines": False}  # so that rows are lines
    try:
        cells = pd.read_csv(io.StringIO(uncommented), sep=sep, **how)
    except pd.errors.ParserError as error:
        place = re.sub(r"row (\d+)", lambda row: f"line {int(row[1]) + 1}", str(error))
        raise ValueError(f"{place}; is a quotation mark missing or too many?") from error
    cells.index += 1
    cells = cells.apply(lambda column: column.str.strip().str.replace("\u2212", "-"))
    is_filled = cells != ""
    return _named(cells.loc[is_filled.any(axis=1), is_filled.any()], sep, notes), sep


def _named(cells: Any, sep: str, notes: list[str]) -> Any:
    """Take the first row for the names of the columns."""
    numbers = [str(i) for i in range(len(cells))]
    if cells.iloc[0, 0] == "" and list(cells.iloc[1:, 0]) in (numbers[:-1], numbers[1:]):
        cells = cells.iloc[:, 1:]
        notes.append("Column 1 has no name and numbers the rows: it is left out.")
    names, where = list(cells.iloc[0]), f"line {cells.index[0]}"
    if not any(re.search(r"[^\W\d_]", name) for name in names):
        raise ValueError(f"{where} must have the names of the columns, such as x,y, got {names}")
    for number, name in enumerate(names, start=1):
        if name == "":
            line = cells.index[cells.iloc[:, number - 1] != ""][0]
            raise ValueError(f"line {line}, column {number} has no name; the separator is {sep!r}")
        if names.count(name) > 1:
            raise ValueError(f"{where}: two columns are called {name!r}: rename one of them")
    if len(cells) == 1:
        raise ValueError("there is a line of column names, and no row below it")
    return cells.iloc[1:].set_axis(names, axis=1)


def _text(path: Path, notes: list[str]) -> str:
    """Decode a file, compressed or not, and note if it is not in UTF-8."""
    content = path.read_bytes()
    if content.startswith(b"\x1f\x8b"):
        content = gzip.decompress(content)
    is_utf_16 = content.startswith((b"\xff\xfe", b"\xfe\xff"))
    if content.startswith(b"PK\x03\x04") or (b"\0" in content and not is_utf_16):
        raise ValueError("this is an Excel file, or no text: save the table as CSV in UTF-8 first")
    try:
        return content.decode("utf-16" if is_utf_16 else "utf-8-sig")
    except UnicodeDecodeError:
        notes.append("The file is not in UTF-8, and was read as Latin-1.")
        return content.decode("latin-1")


def _date_format(column: Any, given: str | None) -> str | None:
    """Decide how the dates of a column are written; None if fewer than half of them are dates."""
    column = column[~_is_gap(column)]
    if given and 2 * _parsed(column, given).count() > len(column):
        return given
    if any(_parsed(column, mark).notna().all() for mark in ".,"):
        return None
    read = {form: _parsed(column, form) for form in _FORMATS if _parsed(column[:5], form).count()}
    most = max((dates.count() for dates in read.values()), default=0)
    if 2 * most < len(column):
        return None
    best, *others = [form for form, dates in read.items() if dates.count() == most]
    for other in others:
        differ = (read[best] - read[other]).dt.total_seconds().abs() > 0
        for line in column.index[differ][:1]:
            one, two = (f"{read[form][line]:%Y-%m-%d}" for form in (best, other))
            place = f"line {line}, column {column.name!r}: {column[line]!r}"
            raise ValueError(
                f"{place} may be {one} or {two}, and no other value of the column decides: choose "
                f"by --date-format '{best}' or --date-format '{other}'"
            )
    return best


def _parsed(column: Any, form: str) -> Any:
    """Read dates of a format in UTC, or finite numbers with a decimal mark; others are missing."""
    import pandas as pd

    if form in ".,":
        if form == ",":
            column = column.str.translate({ord(","): ".", ord("."): ","})
        numbers = pd.to_numeric(column, errors="coerce").astype(float)
        return numbers.where(numbers.abs() < float("inf"))
    if form == _ISO:  # pandas also takes a year, and digits only, for dates
        column = column.where(column.str.match(r"\d{4}-\d\d"))
    return pd.to_datetime(column, format=form, errors="coerce", utc=True).dt.tz_localize(None)


def _values(
    cells: Any, formats: Mapping[str, str], sep: str, missing: str, notes: list[str], *, least: int
) -> tuple[Any, str]:
    """Read the rows without gaps as numbers and dates, and the decimal mark of the file."""
    n_read = {mark: sum(_parsed(cells[name], mark).count() for name in cells) for mark in ".,"}
    decimal = "," if sep != "," and n_read[","] > n_read["."] else "."
    values = cells.apply(lambda column: _parsed(column, formats.get(column.name, decimal)))
    gaps = cells.apply(_is_gap)
    bad = values.isna() & ~gaps
    if bad.any(axis=None):
        raise ValueError(
            f"no number or date in {_places(cells, bad)}. Write numbers such as 1234{decimal}5, "
            f"without units and separators of thousands, or leave columns out by {_drops(bad)} "
            "(--target names the column to predict)"
        )
    kept = ~gaps.any(axis=1)
    if not kept.all():
        rows = f"{(~kept).sum()} row{'s' * int((~kept).sum() != 1)}"
        if missing != "drop":
            raise ValueError(
                f"missing values in {rows}: {_places(cells, gaps)}. Fill them in, or leave out "
                f"their rows by --missing drop or their columns by {_drops(gaps)}"
            )
        notes.append(f"{rows} of {len(cells)} left out, for missing values.")
    if kept.sum() < least:
        raise ValueError(f"{kept.sum()} rows have all values, at least {least} are needed")
    return values[kept], decimal


def _is_gap(column: Any) -> Any:
    return column.str.lower().isin(_MISSING)


def _places(cells: Any, where: Any) -> str:
    """Name the cells that are marked, the first ones of many."""
    places = [
        f"line {cells.index[row]}, column {cells.columns[i]!r}: {cells.iat[row, i]!r}"
        for row, i in np.argwhere(where.to_numpy())
    ]
    n_more = len(places) - _N_NAMED
    return "; ".join(places[:_N_NAMED]) + f"; and {n_more} more" * (n_more > 0)


def _drops(where: Any) -> str:
    return " ".join(f"--drop {shlex.quote(name)}" for name in where.columns[where.any()])
