"""Texts of a column: numbers, dates or levels, and what only looks like numbers or dates."""

import re
from collections import Counter
from collections.abc import Collection, Sequence
from decimal import Decimal
from itertools import compress
from numbers import Real
from typing import Any

import numpy as np

from autokernel.data.dates import is_number, read_dates

MAJORITY = 0.9  # share of the texts of a column from which the others are mistakes
MAX_NAMED = 3  # values in a message
NUMBER, DATE, CATEGORY = "number", "date", "category"
TO_GAPS = {
    NUMBER: "pandas.to_numeric with errors='coerce' makes a gap of what is no number",
    DATE: "mend it, or pandas.to_datetime with errors='coerce' makes a gap of what is no date",
}
"""What to do about a few values that are no numbers, or no dates."""

_WHOLE = re.compile(r"[+-]?\d+")
_ISO_DATE = re.compile(r"\d{4}-\d{2}(-\d{2}(T|\b).*)?")
_MARK, _NAME = "[./ -]{1,2}", "(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*"
_MONTH = rf"(\d{{1,2}}|{_NAME})"
_LIKE_A_NUMBER = re.compile(
    r"[<>~≈≤≥$€£¥]? ?[+\-\u2212]? ?"
    r"(\d{1,3}(?P<mark>[.,'\u2019_\s])\d{3}(?:(?P=mark)\d{3})*|\d+)"
    r"(?P<rest>[.,]\d+)?([eE][+-]?\d+)?\s?(?P<unit>([^\W\d_]|[%°‰$€£¥]).*)?"
)
_LIKE_A_DATE = re.compile(
    rf"(\d{{1,2}}{_MARK}{_MONTH}{_MARK}\d{{2}}(\d{{2}})?|\d{{4}}{_MARK}{_MONTH}{_MARK}\d{{1,2}}|"
    rf"\d{{1,2}}{_MARK}(19|20)\d{{2}}|{_NAME}{_MARK}\d{{2}})([T,\s].*)?",
    re.IGNORECASE,
)
_LOOKS = (
    (
        NUMBER,
        _LIKE_A_NUMBER,
        "numbers",
        "write them as 1234.5, without marks of thousands, units and other signs (pandas has "
        "str.replace), and convert them by astype(float)",
    ),
    (
        DATE,
        _LIKE_A_DATE,
        "dates as datetime64, or as '2020-01-31',",
        "convert it by pandas.to_datetime, with dayfirst=True if the day comes before the month",
    ),
)
"""Forms of texts that look like numbers or dates: what they should be, and what to do."""


def kind_of(counts: Counter[Any], name: str, *, may_be_levels: bool) -> tuple[str, dict[Any, Any]]:
    """Return the kind of a column of texts, numbers and dates, and the moments of its dates.

    Texts of whole numbers are levels, if there may be any. Texts of which most, but not all, are
    numbers or dates, or look like them, are refused.
    """
    if len(numbers := set(filter(is_numeric, counts))) == len(counts):
        are_levels = may_be_levels and all(_match(_WHOLE, one) for one in counts)
        return CATEGORY if are_levels else NUMBER, {}
    moments = read_dates(list(counts))
    dates = dict(compress(zip(counts, moments, strict=True), ~np.isnat(moments)))
    if len(dates) == len(counts):
        return DATE, dates
    known: dict[str, Collection[Any]] = {NUMBER: numbers, DATE: dates}
    others = {kind: [one for one in counts if one not in known[kind]] for kind in known}
    if _is_most(numbers, counts):
        raise refused(name, "numbers", others[NUMBER], TO_GAPS[NUMBER])
    if _is_most(dates, counts) or any(_match(_ISO_DATE, one) for one in counts):
        raise refused(name, "dates such as '2020-01-31'", others[DATE], TO_GAPS[DATE])
    for kind, form, expected, advice in _LOOKS:
        found = {one: like for one in others[kind] if (like := _match(form, one))}
        if _is_most({*found, *known[kind]}, counts) and not _are_codes(found.values()):
            raise refused(name, expected, others[kind], advice)
    return CATEGORY, {}


def refused(name: str, expected: str, given: Sequence[Any], advice: str) -> ValueError:
    """Make the error of values that are not as expected, unless they are levels."""
    texts = list(dict.fromkeys(map(repr, given)))
    more = f" and {len(texts) - MAX_NAMED} more" * (len(texts) > MAX_NAMED)
    got = "text such as " * isinstance(given[0], str) + ", ".join(texts[:MAX_NAMED]) + more
    advice += f"; if it holds levels, name it in categorical_features=[{name!r}]"
    return ValueError(f"X must hold {expected} in column {name!r}, got {got}: {advice}")


def is_numeric(value: Any) -> bool:
    """Whether a value is a number, or a text that is one."""
    if isinstance(value, (str, bytes)):
        return is_number(value) and "_" not in str(value)
    return isinstance(value, (Real, Decimal))


def _match(form: re.Pattern[str], value: Any) -> re.Match[str] | None:
    return form.fullmatch(value.strip()) if isinstance(value, str) else None


def _is_most(values: Collection[Any], counts: Counter[Any]) -> bool:
    return sum(counts[one] for one in values) >= MAJORITY * counts.total()


def _are_codes(found: Collection[re.Match[str]]) -> bool:
    """Whether these are whole numbers with several units, such as ``"12a"`` and ``"14b"``."""
    parts = [one.groupdict() for one in found]
    are_whole = not any(one.get("mark") or one.get("rest") for one in parts)
    return are_whole and len({one["unit"] for one in parts if one.get("unit")}) > 1
