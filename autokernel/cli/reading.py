"""Files as data frames: pandas reads the cells as texts, and then numbers and dates in them.

A column of which hardly anything is a number or a date is a column of categories, as texts.

The index of each frame has the numbers of the lines, so that messages can name them. Errors of a
file are ``ValueError`` with the line, the column, the cell and what to do.
"""

import argparse
import gzip
import io
import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from autokernel.datasets import load_airline
from autokernel.validation import did_you_mean

PREDICTED = ("mean", "std", "lower_95", "upper_95")  # columns of predictions

_MISSING = ("", "na", "n/a", "#n/a", "nan", "null", "none", "nil", "?", "-", "--", ".")
_MIN_ROWS = 4  # of a fit and its test
_N_NAMED = 3  # cells that a message names
_N_TRIED = 5  # cells of a column, about, in which dates are looked for
_READABLE_SHARE = 0.1  # of cells of categories at most, as numbers or dates
_CATEGORY = "category"  # in place of a form of dates or a decimal mark
_ISO = "ISO8601"
_DAYS = "%Y/%m/%d %Y.%m.%d %d.%m.%Y %d.%m.%y %d/%m/%Y %m/%d/%Y %d/%m/%y %m/%d/%y %d-%m-%Y %m-%d-%Y"
_DAYS_IN_WORDS = ("%d %b %Y", "%d-%b-%Y", "%d-%b-%y")
_TIMES = ("", " %H:%M", " %H:%M:%S", " %H:%M:%S.%f", " %I:%M %p", " %I:%M:%S %p")
_MOMENTS = (day + time for day in (*_DAYS.split(), *_DAYS_IN_WORDS) for time in _TIMES)
_FORMATS = (_ISO, "%Y/%m", "%m/%Y", "%b %Y", "%B %Y", *_MOMENTS)
_MARKS = (".", ",")  # of decimals
_GROUPING = {".": ",'\u2019 \u00a0\u202f", ",": ".'\u2019 \u00a0\u202f"}  # separators of thousands


@dataclass(frozen=True, slots=True, eq=False)  # eq=False: frames have no truth value
class FitRows:
    """Rows to fit, all of which have a target and a positive weight."""

    title: str
    X: Any  # data frame, whose gaps are missing; array of the bundled series without pandas
    y: Any  # (n_samples,)
    weights: Any  # (n_samples,)
    target: str
    units: dict[str, str]  # as for describe, which calls the column of an array x0
    forms: dict[str, str]  # of each column: the format of dates, a decimal mark, or a category
    notes: list[str]  # how the file was read

    @property
    def names(self) -> list[str]:
        """Names of the columns of ``X``."""
        return [name for name in self.forms if name != self.target]

    @property
    def dates(self) -> list[str]:
        """Names of the columns that hold dates."""
        return [name for name, form in self.forms.items() if form not in (*_MARKS, _CATEGORY)]

    @property
    def categories(self) -> list[str]:
        """Names of the columns that hold categories."""
        return [name for name, form in self.forms.items() if form == _CATEGORY]


def airline() -> FitRows:
    """Load the bundled airline series, as an array if pandas is missing."""
    try:
        X, y = load_airline(return_X_y=True, as_frame=True)
    except ImportError:
        X, y = load_airline(return_X_y=True)
    title = "monthly airline passengers, 1949 to 1960"
    units = {"time" if hasattr(X, "columns") else "x0": "years", "y": "thousand passengers"}
    y = np.asarray(y)
    weights, forms = np.ones(len(y)), {"time": "."}
    return FitRows(title, X, y, weights, "passengers", units, forms, ["time is in years."])


def read_table(path: Path, options: argparse.Namespace) -> FitRows:
    """Read a file with the target among its columns."""
    notes: list[str] = []
    troubles: list[str] = []
    with _errors_named(path):
        cells, sep = _read_cells(path, options.sep, notes)
        cells, target = _chosen(cells, options, troubles)
        given, no_inputs = options.date_format, (target, options.weights)

        def form_of(column: Any, usual: str | None) -> str:
            if column.name in options.category:
                return _CATEGORY
            is_input = column.name not in no_inputs
            return _form(column, usual, options.decimal, given, is_input=is_input)

        values, forms = _read_columns(cells, sep, form_of, no_inputs, notes, troubles)
        if given and given not in forms.values():
            troubles.append(f"--date-format must be that of a column, and {given!r} fits none")
        kept = _rows_to_fit(cells, values, target, options, notes, troubles)
        _refuse(troubles)
        values = values[kept]
        y, weights = values.pop(target).to_numpy(float), np.ones(len(values))
        if options.weights:
            weights = values.pop(options.weights).to_numpy(float)
            span = f"from {weights.min():.4g} to {weights.max():.4g}"
            notes.append(f"{options.weights}: weights of the rows, {span}, used over their mean.")
            weights = weights / weights.mean()  # rows are seldom readings that agree exactly
            del forms[options.weights]
        for name in [name for name in values if values[name].isna().all()]:
            del values[name], forms[name]
            notes.append(f"{name}: left out, without a value.")
        if values.shape[1] == 0:
            raise ValueError("no column has values to predict from")
    _note_columns(cells, values, forms, notes)
    return FitRows(path.name, values, y, weights, target, {}, forms, notes)


def read_new_rows(
    path: Path, table: FitRows, options: argparse.Namespace
) -> tuple[Any, Any, dict[str, str]]:
    """Read rows to predict: the inputs, all cells, and how ``to_csv`` writes them like the file."""
    notes: list[str] = []
    troubles: list[str] = []
    with _errors_named(path):
        cells, sep = _read_cells(path, options.sep, notes)
        names = table.names
        if not set(names) <= set(cells):
            raise ValueError(f"--predict must have the columns {names}, got {list(cells)}")
        if taken := [name for name in PREDICTED if name in cells]:
            raise ValueError(f"--predict must not have a column {taken[0]!r}, as predictions have")

        def form_of(column: Any, usual: str | None) -> str:
            form = table.forms[column.name]
            return _form(column, usual, form) if form in _MARKS else form

        X, forms = _read_columns(cells[names], sep, form_of, (), notes, troubles)
        _refuse(troubles)
    for name in table.categories:
        unknown = X[name][X[name].notna() & ~X[name].isin(table.X[name])].unique()
        if len(unknown):
            more = " and others" * (len(unknown) > _N_NAMED)
            levels = f"new level{'s' * (len(unknown) > 1)} {', '.join(unknown[:_N_NAMED])}"
            notes.append(f"{name} has the {levels}{more}.")
    _note_gaps(X, notes)
    table.notes.extend(f"{path.name}: {note}" for note in notes)
    decimal = "," if sep != "," and "," in forms.values() else "."
    return X, cells, {"sep": sep, "decimal": decimal}


def _rows_to_fit(
    cells: Any,
    values: Any,
    target: str,
    options: argparse.Namespace,
    notes: list[str],
    troubles: list[str],
) -> Any:
    """Mark the rows to fit: gaps of columns may be kept, but not those of the target."""
    import pandas as pd

    gaps = cells.apply(_is_gap)
    has_gap = gaps.any(axis=1)
    if options.missing == "error" and has_gap.any():
        troubles.append(
            f"missing values in {_counted(has_gap.sum(), 'row')}: {_places(cells, gaps)}. Fill "
            "them in, keep them by --missing keep, or leave out their rows by --missing drop or "
            f"their columns by {_options('--drop', gaps)}"
        )
    is_dropped = has_gap if options.missing == "drop" else gaps.get(target, has_gap)
    if is_dropped.any():
        of_target = f" of {target}" * (options.missing != "drop")
        rows = f"{_counted(is_dropped.sum(), 'row')} of {len(cells)}"
        notes.append(f"{rows} left out, for missing values{of_target}.")
    kept = ~is_dropped
    if options.weights in cells:
        weights = pd.to_numeric(values[options.weights], errors="coerce")
        wrong = (weights < 0) | (gaps[options.weights] & kept)
        if wrong.any():
            where = _places(cells[[options.weights]], wrong.to_frame())
            troubles.append(
                f"--weights must hold numbers from zero, got {where}. A weight of 0 leaves a row "
                "out"
            )
        is_zero = kept & (weights == 0)
        if is_zero.any():
            notes.append(f"{_counted(is_zero.sum(), 'row')} left out, for a weight of zero.")
        kept &= ~is_zero
    if not troubles and kept.sum() < _MIN_ROWS:
        troubles.append(f"{_counted(kept.sum(), 'row')} to fit, at least {_MIN_ROWS} are needed")
    return kept


def _counted(n: int, what: str) -> str:
    return f"{n} {what}" if n == 1 else f"{n} {what}s"


def _note_columns(cells: Any, values: Any, forms: Mapping[str, str], notes: list[str]) -> None:
    """Note which columns are dates and categories, and which have gaps."""
    for name, column in values.items():
        known = column.dropna()
        first = cells.at[known.index[0], name]
        if forms[name] == _CATEGORY:
            n_levels, n = known.nunique(), len(known)
            levels = _counted(n_levels, "level") + f" in {n} rows" * (2 * n_levels > n)
            leave_out = f"; --drop {shlex.quote(name)} leaves it out" * (2 * n_levels > n)
            notes.append(f"{name}: a category with {levels}, such as {first}{leave_out}.")
        elif forms[name] not in _MARKS:
            notes.append(f"{name}: dates such as {first} ({forms[name]}).")
    _note_gaps(values, notes)


def _note_gaps(X: Any, notes: list[str]) -> None:
    """Count the missing values that are kept, by column."""
    gaps = X.isna().sum()
    if gaps.any():
        counts = ", ".join(f"{n} in {name}" for name, n in gaps[gaps > 0].items())
        notes.append(f"Missing values are kept: {counts}.")


def _unknown(option: str, name: str, known: Iterable[str], *, target: str | None = None) -> str:
    """Say that no column has the name that an option gives, and which one may be meant."""
    names = list(known)
    if name == target:
        return f"{option} must be one of {names}, got {name!r}, which is the target"
    longer = {name.casefold(): one for one in names if name.casefold() in one.casefold()}
    meant = did_you_mean(name, names, aliases=longer)
    return f"{option} must be one of {names}, got {name!r}{meant}"


def _refuse(troubles: Sequence[str]) -> None:
    if troubles:
        raise ValueError("\n".join(troubles))


@contextmanager
def _errors_named(path: Path) -> Iterator[None]:
    """Begin messages with the name of the file."""
    try:
        yield
    except ImportError as error:
        raise ValueError(f"{path.name} needs pandas: pip install 'autokernel-gp[cli]'") from error
    except (ValueError, EOFError) as error:
        lines = str(error).splitlines()
        raise ValueError("\n".join(f"{path.name}: {line}" for line in lines)) from error


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


def _chosen(cells: Any, options: argparse.Namespace, troubles: list[str]) -> tuple[Any, str]:
    """Leave out the columns of ``--drop``, and return the name of the target with the others."""
    troubles += [_unknown("--drop", name, cells) for name in options.drop if name not in cells]
    names = [name for name in cells if name not in options.drop]
    no_weights = [name for name in names if name != options.weights]
    if len(no_weights) < 2:
        raise ValueError(
            f"found one column, {''.join(no_weights)!r}: there must be another one to predict it "
            "from; name the separator by --sep if it is none of , ; tab"
        )
    target = options.target or no_weights[-1]
    if target not in names:
        troubles.append(_unknown("--target", target, names))
    others = [name for name in names if name != target]
    if options.weights and options.weights not in others:
        troubles.append(_unknown("--weights", options.weights, others, target=target))
    inputs = [name for name in others if name != options.weights]
    for name in options.category:
        if name not in inputs:
            troubles.append(_unknown("--category", name, inputs, target=target))
    return cells[names], target


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


def _read_columns(
    cells: Any,
    sep: str,
    form_of: Callable[[Any, str | None], str],
    no_inputs: Sequence[str | None],
    notes: list[str],
    troubles: list[str],
) -> tuple[Any, dict[str, str]]:
    """Read all columns, and return them with the form of each; gaps are missing.

    ``form_of`` decides the form of a column, given the usual decimal mark of the file if there is
    one. What cannot be read is added to the troubles.
    """
    known = {name: column[~_is_gap(column)] for name, column in cells.items()}
    point, comma = (sum(_parsed(one, mark).count() for one in known.values()) for mark in _MARKS)
    usual = "," if comma > point else "." if point > comma or sep == "," else None
    values, bad = cells.astype(object), cells != cells
    forms: dict[str, str] = {}
    for name, column in known.items():
        try:
            forms[name] = form = form_of(column, usual)
        except ValueError as error:
            troubles.append(str(error))
            continue
        if form == _CATEGORY:
            values[name] = column.reindex(cells.index)
            continue
        read = _parsed(column, form)
        values[name] = read.reindex(cells.index)
        bad.loc[column.index, name] = read.isna()
        odd = column[column.str.contains(f"[%{_GROUPING.get(form, '%')}]")]
        for line in odd.index[:1]:
            unit = ", in per cent" * odd[line].endswith("%")
            notes.append(f"{name}: {odd[line]} is read as {read[line]:.15g}{unit}.")
    if bad.any(axis=None):
        percent = any(known[name].str.contains("%").any() for name in bad.columns[bad.any()])
        inputs = bad.drop(columns=[name for name in no_inputs if name in bad])
        take = f"take columns as categories by {_options('--category', inputs)}, "
        troubles.append(
            f"no number or date in {_places(cells, bad)}. Write numbers such as 1234{usual or '.'}5"
            f", without units{', with % in all cells of a column or in none' * percent}, "
            f"{take * bool(inputs.any(axis=None))}or leave columns out by "
            f"{_options('--drop', bad)} (--target names the column to predict)"
        )
    commas = [name for name, form in forms.items() if form == ","]
    points = [name for name, form in forms.items() if form == "." and "." in "".join(known[name])]
    if commas:
        where = f" in {', '.join(commas)}" if points else ""
        notes.append(f"Numbers have decimal commas{where}.")
    return values, forms


def _form(
    column: Any,
    usual: str | None,
    decimal: str | None,
    date_format: str | None = None,
    *,
    is_input: bool = False,
) -> str:
    """Decide how a column without gaps is written: the format of its dates, or a decimal mark.

    Inputs may also be categories.

    Raises
    ------
    ValueError
        If it can be read in two forms. ``decimal`` decides between marks, and so does the usual one
        if it makes no separators of thousands of the others.
    """
    readings, option, spec = _readings(column, _MARKS), "--decimal", ".15g"
    if is_input:
        if date_format and 2 * _parsed(column, date_format).count() > len(column):
            return date_format
        tried = column[:: max(1, len(column) // _N_TRIED)]
        dates = _readings(column, [one for one in _FORMATS if _parsed(tried, one).count()])
        if max(_n_read(readings), _n_read(dates)) < _READABLE_SHARE * len(column):
            return _CATEGORY
        if _n_read(readings) < len(column) <= 2 * _n_read(dates):
            readings, option, spec = dates, "--date-format", "%Y-%m-%d"
    best, *others = readings
    if decimal in readings:
        return str(decimal)
    if usual in readings and not column.str.contains(f"[{_GROUPING[usual]}]").any():
        return str(usual)
    for other in others:
        line = column.index[_differ(readings[best], readings[other])][0]
        one, two = (f"{readings[form][line]:{spec}}" for form in (best, other))
        raise ValueError(
            f"line {line}, column {column.name!r}: {column[line]!r} may be {one} or {two}, and no "
            f"other value of the column decides: choose by {option} '{best}' or {option} '{other}'"
        )
    return best


def _readings(column: Any, forms: Iterable[str]) -> dict[str, Any]:
    """Read a column in the forms that can read most of its cells, each with other values."""
    read = {form: _parsed(column, form) for form in forms}
    most = _n_read(read)
    kept: dict[str, Any] = {}
    for form, values in read.items():
        if values.count() == most and all(_differ(values, one).any() for one in kept.values()):
            kept[form] = values
    return kept


def _n_read(readings: Mapping[str, Any]) -> int:
    return max((values.count() for values in readings.values()), default=0)


def _differ(one: Any, other: Any) -> Any:
    return (one != other) & one.notna() & other.notna()


def _parsed(column: Any, form: str) -> Any:
    """Read dates of a format in UTC, or finite numbers with a decimal mark; others are missing."""
    import pandas as pd

    if form in _MARKS:
        grouped = "|".join(rf"[1-9]\d{{0,2}}(?:[{one}]\d{{3}})+" for one in _GROUPING[form])
        number = rf"[+-]?(?:{grouped}|\d*)(?:[{form}]\d*)?(?:[eE][+-]?\d+)?\s*%?"
        percent = column.str.endswith("%")
        is_usual = percent == (2 * percent.sum() > len(column))
        text = column.where(is_usual & column.str.fullmatch(number))
        text = text.str.replace(f"[%{_GROUPING[form]}]", "", regex=True).str.replace(",", ".")
        numbers = pd.to_numeric(text, errors="coerce").astype(float)
        return numbers.where(numbers.abs() < float("inf"))
    if form == _ISO:  # pandas also takes a year, and digits only, for dates
        column = column.where(column.str.match(r"\d{4}-\d\d"))
    return pd.to_datetime(column, format=form, errors="coerce", utc=True).dt.tz_localize(None)


def _is_gap(column: Any) -> Any:
    return column.str.lower().isin(_MISSING)


def _places(cells: Any, where: Any) -> str:
    """Name the cells that are marked, the first ones of many, and one at least of each column."""
    marked = where.to_numpy()
    rank = np.where(marked, marked.cumsum(axis=0), np.inf)  # within a column
    order = np.argsort(rank, axis=None, kind="stable")[: marked.sum()]
    n_named = max(_N_NAMED, int(marked.any(axis=0).sum()))
    named = [
        f"line {cells.index[row]}, column {cells.columns[i]!r}: {cells.iat[row, i]!r}"
        for row, i in np.column_stack(np.unravel_index(np.sort(order[:n_named]), marked.shape))
    ]
    n_more = len(order) - n_named
    return "; ".join(named) + f"; and {n_more} more" * (n_more > 0)


def _options(option: str, where: Any) -> str:
    """Name the columns with marked cells, each after the option."""
    return " ".join(f"{option} {shlex.quote(name)}" for name in where.columns[where.any()])
