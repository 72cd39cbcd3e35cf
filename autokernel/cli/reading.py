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

_MISSING = ("", "na", "n/a", "#n/a", "nan", "null", "none", "nil", "?", "-", "--", ".")
_MIN_ROWS = 4
PREDICTED = ("mean", "std", "lower_95", "upper_95")
"""Columns of predictions."""

_N_NAMED = 3  # cells that a message names
_ISO = "ISO8601"
_DAYS = "%Y/%m/%d %Y.%m.%d %d.%m.%Y %d.%m.%y %d/%m/%Y %m/%d/%Y %d/%m/%y %m/%d/%y %d-%m-%Y %m-%d-%Y"
_DAYS_IN_WORDS = ("%d %b %Y", "%d-%b-%Y", "%d-%b-%y")
_TIMES = ("", " %H:%M", " %H:%M:%S", " %H:%M:%S.%f", " %I:%M %p", " %I:%M:%S %p")
_MOMENTS = (day + time for day in (*_DAYS.split(), *_DAYS_IN_WORDS) for time in _TIMES)
_FORMATS = (_ISO, "%Y/%m", "%m/%Y", "%b %Y", "%B %Y", *_MOMENTS)
_LIKE_A_NUMBER = re.compile(
    r"(?P<left>[^\w\s.,+-]{1,3})?\s*[+-]?(\d[\d.,:'\s]*?(e[+-]?\d+)?|inf(inity)?)"
    r"\s*(?P<right>[^\d\s]{1,6})?",
    re.IGNORECASE,
)


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


@dataclass(frozen=True, slots=True, eq=False)
class NewRows:
    """Rows to predict, with all cells of the file that they come from."""

    X: Any
    cells: Any
    sep: str
    decimal: str
    notes: list[str]


def airline() -> FitRows:
    """Load the bundled airline series, without pandas."""
    X, y = load_airline(return_X_y=True)
    title = "monthly airline passengers, 1949 to 1960"
    units = {"x0": "years", "y": "thousand passengers"}
    return FitRows(title, X, y, "passengers", units, {}, ["x0, column [0], is the time in years."])


def read_table(path: Path, options: argparse.Namespace) -> FitRows:
    """Read a file with the target among its columns."""
    with _errors_named(path):
        cells, sep, notes = _read_cells(path, options.sep)
        if wrong := [name for name in options.drop if name not in cells]:
            raise ValueError(f"--drop must be one of {list(cells)}, got {wrong[0]!r}")
        cells = cells.drop(columns=options.drop)
        names = list(cells)
        if len(names) < 2:
            raise ValueError(
                f"found one column, {''.join(names)!r}: there must be the column to predict and at "
                "least one to predict it from; name the separator by --sep if it is none of , ; tab"
            )
        target = options.target or names[-1]
        if target not in names:
            raise ValueError(f"--target must be one of {names}, got {target!r}")
        present = {name: cells[name][~_gaps(cells[name])] for name in names}
        for name in names:
            if present[name].empty:
                drop = f"leave it out by --drop {shlex.quote(name)}"
                raise ValueError(f"column {name!r} has no values: {drop}")
        formats = _date_formats(present, options.date_format)
        if target in formats:
            raise ValueError(
                f"the column to predict, {target!r}, holds dates: choose another one by --target"
            )
        values, decimal = _values(cells, formats, sep, target)
        for name, form in formats.items():
            example = present[name].iloc[0]
            notes.append(f"{name}: dates such as {example} ({_words(form, example)}).")
        notes += ["Numbers have decimal commas."] * (decimal == ",")
        kept = _complete(cells, options.missing, notes)
        if kept.sum() < _MIN_ROWS:
            raise ValueError(f"{kept.sum()} rows have all values, at least {_MIN_ROWS} are needed")
        X, y = values[kept].drop(columns=target), values[target][kept].to_numpy(float)
        return FitRows(path.name, X, y, target, {}, formats, notes)


def read_new_rows(path: Path, table: FitRows, options: argparse.Namespace) -> NewRows:
    """Read the columns of a table from a file of rows to predict."""
    with _errors_named(path):
        cells, sep, notes = _read_cells(path, options.sep)
        names = list(table.X) if options.file else ["time"]
        if absent := [name for name in names if name not in cells]:
            raise ValueError(
                f"--predict must have the columns {names}, and has no {', '.join(absent)}; its "
                f"columns are {list(cells)}"
            )
        if taken := [name for name in PREDICTED if name in cells]:
            raise ValueError(f"--predict must not have a column {taken[0]!r}, as predictions have")
        X, decimal = _values(cells[names], table.formats, sep, None)
        kept = _complete(cells[names], options.missing, notes)
        if not kept.any():
            raise ValueError("--predict has no row without missing values")
        X = X[kept] if options.file else X[kept].to_numpy()
        return NewRows(X, cells[kept], sep, decimal, [f"{path.name}: {note}" for note in notes])


@contextmanager
def _errors_named(path: Path) -> Iterator[None]:
    """Begin messages with the name of the file."""
    try:
        yield
    except ImportError as error:
        message = "files are read by pandas: install it by pip install 'autokernel-gp[cli]'"
        raise ValueError(f"{path.name}: {message}") from error
    except ValueError as error:
        raise ValueError(f"{path.name}: {error}") from error


def _read_cells(path: Path, sep: str | None) -> tuple[Any, str, list[str]]:
    """Read the cells of a file, with their separator and notes."""
    import pandas as pd

    notes: list[str] = []
    text = _text(path, notes)
    rows = {n: row for n, row in enumerate(text.splitlines(), 1) if row.strip(" ;,\t")}
    lines = {n: row for n, row in rows.items() if row[0] != "#"}
    if len(lines) < len(rows):
        notes.append("Lines that begin with # are left out.")
    if not lines:
        raise ValueError("the file is empty: it must have a line of column names, and rows below")
    header = re.sub('"[^"]*"', "", next(iter(lines.values())))
    # commas below a single name belong to numbers
    sep = sep or next((one for one in "\t;," if one in header), ";" if "," in text else ",")
    options = {"dtype": str, "header": None, "keep_default_na": False, "skipinitialspace": True}
    try:
        cells = pd.read_csv(io.StringIO("\n".join(lines.values())), sep=sep, **options)
    except pd.errors.ParserError as error:
        raise ValueError(_parsing_error(str(error), list(lines), sep)) from error
    if len(cells) == len(lines):  # no cell has several lines
        cells.index = list(lines)
    cells = cells.apply(lambda column: column.str.strip().str.replace("\u2212", "-"))
    if cells.shape[1] > 1 and (cells.iloc[:, -1] == "").all():  # separators that end lines
        cells = cells.iloc[:, :-1]
    return _with_names(cells, notes), sep, notes


def _with_names(cells: Any, notes: list[str]) -> Any:
    """Take the first row for the names of the columns."""
    numbers = [str(i) for i in range(len(cells))]
    if cells.iloc[0, 0] == "" and list(cells.iloc[1:, 0]) in (numbers[:-1], numbers[1:]):
        cells = cells.iloc[:, 1:]
        notes.append("Column 1 has no name and numbers the rows: it is left out.")
    names, where = list(cells.iloc[0]), f"line {cells.index[0]}"
    if not any(re.search(r"[^\W\d_]", name) for name in names):
        got = ", ".join(names)
        raise ValueError(f"{where} must have the names of the columns, such as x,y, got {got}")
    if wrong := [name for name in names if name == "" or names.count(name) > 1]:
        number = names.index(wrong[0]) + 1
        what = f"is called {wrong[0]!r} as another one" if wrong[0] else "has no name"
        raise ValueError(f"{where}: column {number} {what}: write one")
    if len(cells) == 1:
        raise ValueError("there is a line of column names, and no row below it")
    return cells.iloc[1:].set_axis(names, axis=1)


def _text(path: Path, notes: list[str]) -> str:
    """Decode a file, compressed or not, and note if it is not in UTF-8."""
    content = path.read_bytes()
    if content.startswith(b"\x1f\x8b"):
        try:
            content = gzip.decompress(content)
        except (OSError, EOFError) as error:
            raise ValueError(f"the file cannot be decompressed: {error}") from error
    is_utf_16 = content.startswith((b"\xff\xfe", b"\xfe\xff"))
    if content.startswith(b"PK\x03\x04") or (b"\0" in content and not is_utf_16):
        raise ValueError("this is an Excel file, or no text: save the table as CSV in UTF-8 first")
    try:
        return content.decode("utf-16" if is_utf_16 else "utf-8-sig")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        notes.append(
            f"Line {line} is not in UTF-8: the file was read as Latin-1. If letters in names look "
            "wrong, save it as UTF-8."
        )
        return content.decode("latin-1")


def _parsing_error(error: str, lines: list[int], sep: str) -> str:
    """Say what pandas cannot read."""
    if found := re.search(r"Expected (\d+) fields in line (\d+), saw (\d+)", error):
        width, row, n = map(int, found.groups())
        where = f"line {lines[row - 1]} has {n} cells, and there are {width} column names"
        return f"{where}; cells are separated by {'tab' if sep == chr(9) else repr(sep)}"
    found = re.search(r"starting at row (\d+)", error)
    where = f"line {lines[int(found[1])]}: " if found else ""
    return f"{where}{error.rpartition(': ')[2]}; is a quotation mark missing or too many?"


def _date_formats(columns: Mapping[str, Any], given: str | None) -> dict[str, str]:
    """Decide which columns hold dates, and how these are written."""
    formats = {}
    for name, column in columns.items():
        form = given
        if form is None or 2 * _dates(column, form).count() < len(column):
            is_plain = any(_numbers(column, mark).notna().all() for mark in ".,")
            form = None if is_plain else _date_format(column)
        if form is not None:
            formats[name] = form
    if given and given not in formats.values():
        raise ValueError(
            f"--date-format must be that of a column, and no column has dates such as {given!r}"
        )
    return formats


def _date_format(column: Any) -> str | None:
    """Decide how the dates of a column are written; None if fewer than half of them are dates."""
    read = {form: _dates(column, form) for form in _FORMATS if _dates(column[:5], form).count()}
    most = max((dates.count() for dates in read.values()), default=0)
    if most == 0 or 2 * most < len(column):
        return None
    best, *others = [form for form, dates in read.items() if dates.count() == most]
    for other in others:
        both = read[best].notna() & read[other].notna()
        for line in column.index[both & (read[best] != read[other])][:1]:
            one, two = (
                f"{date.day} {date:%B %Y}" for date in (read[best][line], read[other][line])
            )
            raise ValueError(
                f"{_at(column, line)} may be {one} or {two}, and no other value of the column "
                f"decides: choose by --date-format '{best}' or --date-format '{other}'"
            )
    return best


def _dates(column: Any, form: str) -> Any:
    """Read dates, in UTC; NaT if a cell is none."""
    import pandas as pd

    if form == _ISO:  # pandas also takes a year, and digits only, for dates
        column = column.where(column.str.match(r"\d{4}-\d\d"))
    return pd.to_datetime(column, format=form, errors="coerce", utc=True).dt.tz_localize(None)


def _numbers(column: Any, mark: str) -> Any:
    """Read finite numbers with a decimal mark; NaN if a cell is none."""
    import pandas as pd

    if mark == ",":
        column = column.str.translate({ord(","): ".", ord("."): ","})
    numbers = pd.to_numeric(column, errors="coerce").astype(float)
    return numbers.where(numbers.abs() < float("inf"))


def _values(
    cells: Any, formats: Mapping[str, str], sep: str, target: str | None
) -> tuple[Any, str]:
    """Read columns as numbers and dates, with the decimal mark; refuse texts and other cells."""
    marked = {}  # the first number with each mark
    for mark in ".," if sep != "," else "":
        for name in [name for name in cells if name not in formats]:
            column = cells[name][cells[name].str.contains(mark, regex=False)]
            for line in _numbers(column, mark).dropna().index[:1]:
                marked[mark] = _at(column, line)
    if len(marked) == 2:
        both = "; ".join(marked.values())
        raise ValueError(f"there must be decimal points or decimal commas, not both: {both}")
    decimal = next(iter(marked), ".")
    values, texts = cells.astype(object), {}
    for name in cells:
        form = formats.get(name)
        values[name] = _dates(cells[name], form) if form else _numbers(cells[name], decimal)
        bad = cells[name][values[name].isna() & ~_gaps(cells[name])]
        if 2 * sum(not _LIKE_A_NUMBER.fullmatch(cell) for cell in bad) > len(cells) and not form:
            texts[name] = _at(bad, bad.index[0])
        elif len(bad):
            what = f"date ({_words(form, bad.iloc[0])})" if form else "number"
            advice = "" if form else f": {_advice(bad.iloc[0])}"
            places = _listed([_at(bad, line) for line in bad.index])
            raise ValueError(f"no {what} in {places}{advice}")
    if texts:
        advice = "Choose another column to predict by --target. " * (target in texts)
        if drops := " ".join(f"--drop {shlex.quote(name)}" for name in texts if name != target):
            advice += f"Leave text out by {drops}, or encode categories in Python by OneHotEncoder"
        raise ValueError(f"text in {_listed(list(texts.values()))}. {advice}")
    return values, decimal


def _complete(cells: Any, missing: str, notes: list[str]) -> Any:
    """Return which rows have all values, with a note; others must be allowed by --missing drop."""
    gaps = cells.apply(_gaps)
    kept = ~gaps.any(axis=1)
    places = [_at(cells.iloc[:, i], cells.index[row]) for row, i in np.argwhere(gaps.to_numpy())]
    rows = f"{(~kept).sum()} row{'s' * int((~kept).sum() != 1)}"
    if places and missing != "drop":
        values = f"{len(places)} missing value{'s' * (len(places) != 1)}"
        advice = "Fill them in, or leave their rows out by --missing drop"
        raise ValueError(f"{values} in {rows}: {_listed(places)}. {advice}")
    notes += [f"{rows} of {len(cells)} left out, for missing values."] * bool(places)
    return kept


def _gaps(column: Any) -> Any:
    return column.str.lower().isin(_MISSING)


def _advice(cell: str) -> str:
    """Say what to do about a cell that is not a number."""
    found = _LIKE_A_NUMBER.fullmatch(cell)
    if found is None:
        return "write a number, or nothing if the value is missing"
    if unit := found["right"] or found["left"]:
        return f"write the number without {unit!r}"
    if ":" in cell:
        return "write times as numbers, such as 12.5 for half past twelve"
    if re.search("[a-z]", cell, re.IGNORECASE):
        return "numbers must be finite"
    return "write numbers without separators of thousands"


def _words(form: str, example: str) -> str:
    """Describe a format of dates."""
    if form == _ISO:
        form = ("%Y-%m" if len(example) == 7 else "%Y-%m-%d") + " %H" * (":" in example)
    day, *time = re.split(" (?=%[HI])", form)
    for code, word in {"[Yy]": "year", "[mbB]": "month", "d": "day"}.items():
        day = re.sub(f"%{code}", word, day)
    return day + ", time" * len(time)


def _at(column: Any, line: int) -> str:
    return f"line {line}, column {column.name!r}: {repr(column[line]) if column[line] else 'empty'}"


def _listed(places: list[str]) -> str:
    more = f"; and {len(places) - _N_NAMED} more" if len(places) > _N_NAMED else ""
    return "; ".join(places[:_N_NAMED]) + more
