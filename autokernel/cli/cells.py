"""What the text of a cell is: a number, a missing value, or something else."""

import math
import re

POINT, COMMA = ".", ","

_MISSING = frozenset(
    {"", "na", "n/a", "#n/a", "nan", "null", "none", "nil", "?", "-", "--", "."}
)  # in lower case
_WITH_POINT = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_WITH_COMMA = re.compile(r"[+-]?(\d+,\d*|,\d+)([eE][+-]?\d+)?")
_WHOLE = re.compile(r"[+-]?\d+([eE][+-]?\d+)?")
_THOUSANDS = re.compile(r"[+-]?\d{1,3}([., '\u00a0\u202f]\d{3})+([.,]\d+)?")
_WITH_UNIT = re.compile(r"(?P<left>[^\w\s.,+-]{1,3})?\s*[+-]?\d[\d.,]*\s*(?P<right>[^\d\s]{1,6})?")
_TIME = re.compile(r"\d{1,3}:\d\d(:\d\d([.,]\d+)?)?")
_INFINITE = re.compile(r"[+-]?inf(inity)?", re.IGNORECASE)
_MINUS = str.maketrans({"\u2212": "-"})  # the minus sign of typeset tables


def is_missing(cell: str) -> bool:
    """Whether a cell stands for a missing value."""
    return cell.lower() in _MISSING


def marks_of(cell: str) -> str:
    """Return the decimal marks with which a cell is a number, none if it is not a number."""
    cell = cell.translate(_MINUS)
    marks = POINT * bool(_WITH_POINT.fullmatch(cell)) + COMMA * bool(_WITH_COMMA.fullmatch(cell))
    if _WHOLE.fullmatch(cell):
        marks = POINT + COMMA
    return marks if marks and math.isfinite(float(cell.replace(COMMA, POINT))) else ""


def is_like_a_number(cell: str) -> bool:
    """Whether a cell is a number for a person, though not for a program."""
    patterns = (_WITH_POINT, _WITH_COMMA, _THOUSANDS, _INFINITE, _TIME)
    return any(pattern.fullmatch(cell.translate(_MINUS)) for pattern in patterns)


def unit_of(cell: str) -> str | None:
    """Return what stands before or behind a number in a cell, None if there is no number alone."""
    found = _WITH_UNIT.fullmatch(cell)
    return found and (found["right"] or found["left"])


def number_of(cell: str, mark: str) -> float:
    """Read a cell that is a number with this decimal mark."""
    return float(cell.translate(_MINUS).replace(mark, POINT))


def is_number_or_missing(cell: str) -> bool:
    """Whether a cell belongs to a row of numbers rather than to a line of names."""
    return bool(marks_of(cell)) or is_missing(cell)


def advice_for(cell: str) -> str:
    """Say what to do about a cell that is not a number."""
    if _THOUSANDS.fullmatch(cell):
        return "write numbers without separators of thousands"
    if _INFINITE.fullmatch(cell) or _WITH_POINT.fullmatch(cell):
        return "numbers must be finite"
    if _TIME.fullmatch(cell):
        return "write times as numbers, such as 12.5 for half past twelve"
    unit = unit_of(cell)
    if unit is not None:
        return f"write the number without {unit!r}"
    return "write a number, or nothing where the value is missing"
