"""A text file as a table of texts: its encoding, its separator, its lines."""

import csv
import gzip
import io
import re
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from autokernel.cli.cells import is_number_or_missing
from autokernel.cli.options import AUTO

_DETECTED = "\t;,"  # in order of preference: a comma may belong to a number
_N_PROBED = 50  # rows that decide on the separator
_N_NAMED = 3  # lines that a message names
_COMMENT = "#"
_NAMES = {"\t": "tab", " ": "space"}
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")
_GZIP, _ZIP = b"\x1f\x8b", b"PK\x03\x04"


@dataclass(frozen=True, slots=True)
class Column:
    """The cells of a column, with the file and the lines that they come from."""

    file: str
    name: str
    cells: list[str]
    lines: list[int]

    def cell_at(self, row: int) -> str:
        """Name the place of a cell and its text."""
        cell = repr(self.cells[row]) if self.cells[row] else "empty"
        return f"line {self.lines[row]}, column {self.name!r}: {cell}"


@dataclass(frozen=True, slots=True)
class Sheet:
    """A file of texts below a line of column names."""

    file: str
    separator: str
    header: list[str]
    rows: list[list[str]]  # each as long as the header
    lines: list[int]  # numbers of the lines that the rows begin at
    notes: list[str]  # what the user should know about the reading

    def column(self, name: str) -> Column:
        """Return a column by its name."""
        index = self.header.index(name)
        return Column(self.file, name, [row[index] for row in self.rows], self.lines)


@dataclass(frozen=True, slots=True)
class _Record:
    """The cells between two ends of lines."""

    line: int
    cells: list[str]


def read_sheet(path: Path, separator: str, *, least_columns: int = 2) -> Sheet:
    """Read a file.

    Parameters
    ----------
    path : Path
        File to read, compressed by gzip or not.
    separator : str
        A character, or ``"auto"``.
    least_columns : int, default=2
        Number of columns that there must be, one or two.

    Raises
    ------
    ValueError
        If the file is not a table of texts; the message has the number of the line.
    """
    notes: list[str] = []
    text = _without_comments(_text(path, notes), notes)
    if not text.strip():
        raise ValueError(
            f"{path.name} is empty: it must have a line of column names, and rows below"
        )
    separator = _detected(text) if separator == AUTO else separator
    records = _records(text, separator, path.name)
    if len(records[0].cells) < least_columns:
        raise ValueError(_one_column(text, separator, path.name))
    _remove_last_empty(records)
    _remove_row_numbers(records, notes)
    header = _header(records[0], path.name)
    rows = records[1:]
    if not rows:
        raise ValueError(f"{path.name} has a line of column names and no row below it")
    _check_lengths(rows, len(header), path.name, separator)
    return Sheet(
        path.name,
        separator,
        header,
        [row.cells for row in rows],
        [row.line for row in rows],
        notes,
    )


def _text(path: Path, notes: list[str]) -> str:
    """Decode a file, and note it if it is not in UTF-8."""
    content = path.read_bytes()
    if content.startswith(_GZIP):
        try:
            content = gzip.decompress(content)
        except (OSError, EOFError, zlib.error) as error:
            raise ValueError(f"{path.name} cannot be decompressed: {error}") from error
    if content.startswith(_ZIP):
        raise ValueError(
            f"{path.name} is an Excel or zip file, and not a text: save the table as CSV first"
        )
    try:
        text = content.decode("utf-16" if content.startswith(_UTF_16) else "utf-8-sig")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        text = content.decode("latin-1")
        notes.append(
            f"Line {line} is not in UTF-8: the file was read as Latin-1. If letters in names look "
            "wrong, save it as UTF-8."
        )
    if "\0" in text:
        raise ValueError(f"{path.name} is not a text file: save the table as CSV in UTF-8 first")
    return text


def _without_comments(text: str, notes: list[str]) -> str:
    """Empty the lines before the column names that begin with ``#``, which may have the names."""
    lines = text.splitlines(keepends=True)
    n = next((i for i, line in enumerate(lines) if not line.startswith(_COMMENT)), len(lines))
    if 0 < n < len(lines):
        cells = re.split(r"[;,\t ]+", lines[n].strip())
        n -= all(is_number_or_missing(cell) for cell in cells)
        lines[n] = lines[n].removeprefix(_COMMENT)
    if n:
        notes.append(f"Lines that begin with {_COMMENT} before the column names are left out.")
    return "".join([*("\n" for _ in range(n)), *lines[n:]])


def _records(text: str, separator: str, file: str, *, most: int | None = None) -> list[_Record]:
    """Split a text into stripped cells, without lines that have none."""
    reader = csv.reader(
        io.StringIO(text, newline=""), delimiter=separator, skipinitialspace=True, strict=True
    )
    records: list[_Record] = []
    end = 0  # number of the last line that has been read
    try:
        for cells in reader:
            stripped = [cell.strip() for cell in cells]
            if any(stripped):
                records.append(_Record(end + 1, stripped))
            end = reader.line_num
            if most is not None and len(records) >= most:
                break
    except csv.Error as error:
        raise ValueError(
            f"{file}, line {end + 1}: {error}; is a quotation mark missing or too many?"
        ) from error
    return records


def _detected(text: str) -> str:
    """Choose the separator that splits most rows into as many cells as the header has.

    Commas below a single name belong to numbers.
    """
    has_comma = "," in text.strip().splitlines()[0]
    best, most = "," if has_comma or "," not in text else ";", (0.0, 0)
    for separator in _DETECTED:
        try:
            header, *rows = _records(text, separator, "", most=_N_PROBED)
        except ValueError:  # a quotation mark in the wrong place for this separator
            continue
        n_cells = len(header.cells)
        same = sum(len(row.cells) == n_cells for row in rows) / max(1, len(rows))
        if n_cells > 1 and (same, n_cells) > most:
            best, most = separator, (same, n_cells)
    return best


def _one_column(text: str, separator: str, file: str) -> str:
    """Say that there is one column, and which other separator there may be."""
    first = text.strip().splitlines()[0].strip()
    shown = first if len(first) <= 40 else f"{first[:40]}..."
    found = re.search(r"[;\t,|]", first.replace(separator, "")) or re.search(r"[ :]", first)
    if found is None:
        return (
            f"{file}: found one column, {shown!r}: the file must have the column to predict and at "
            "least one to predict it from"
        )
    other = _NAMES.get(found.group(), found.group())
    return (
        f"{file}: found one column, {shown!r}; is the separator {other!r}? give it by --sep "
        f"{other!r}"
    )


def _remove_last_empty(records: Sequence[_Record]) -> None:
    """Remove a last column without a name and without cells, which a separator at the ends makes.

    Its rows may end before it.
    """
    last = len(records[0].cells) - 1
    if not any(cell for record in records for cell in record.cells[last : last + 1]):
        for record in records:
            del record.cells[last : last + 1]


def _remove_row_numbers(records: Sequence[_Record], notes: list[str]) -> None:
    """Remove a first column without a name that numbers the rows, as pandas and R write it."""
    first, *numbers = [record.cells[0] for record in records]
    counted = [[str(i + start) for i in range(len(numbers))] for start in (0, 1)]
    if first == "" and numbers in counted and len(records[0].cells) > 2:
        for record in records:
            del record.cells[0]
        notes.append("Column 1 has no name and numbers the rows: it is left out.")


def _header(record: _Record, file: str) -> list[str]:
    """Check the line of column names."""
    names, where = record.cells, f"{file}, line {record.line}"
    if not any(re.search(r"[^\W\d_]", name) for name in names if not is_number_or_missing(name)):
        raise ValueError(
            f"{where} must be a line of column names, got {', '.join(names)}: write one above, "
            "such as x,y"
        )
    for index, name in enumerate(names):
        if not name:
            raise ValueError(f"{where}: column {index + 1} has no name: write one")
        first = names.index(name)
        if first < index:
            raise ValueError(
                f"{where}: columns {first + 1} and {index + 1} are both called {name!r}: names "
                "must differ"
            )
    return names


def _check_lengths(rows: Sequence[_Record], width: int, file: str, separator: str) -> None:
    """Raise a ``ValueError`` if a row has more or fewer cells than there are names."""
    wrong = [row for row in rows if len(row.cells) != width]
    if wrong:
        texts = [f"line {row.line} has {len(row.cells)}" for row in wrong[:_N_NAMED]]
        more = f" and {len(wrong) - _N_NAMED} more" if len(wrong) > _N_NAMED else ""
        raise ValueError(
            f"{file}: each line must have {width} cells, as many as there are column names, but "
            f"{', '.join(texts)}{more}; cells are separated by "
            f"{_NAMES.get(separator, repr(separator))}"
        )
