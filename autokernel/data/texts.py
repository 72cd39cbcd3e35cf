"""Texts of a column: numbers, dates or levels, and what only looks like numbers or dates."""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from decimal import Decimal
from itertools import compress
from numbers import Real
from typing import Any, NamedTuple

import numpy as np

from autokernel.data.dates import is_number, read_dates

MAJORITY = 0.9  # share of the texts of a column from which the others are mistakes
MAX_NAMED = 3  # values in a message
NUMBER, DATE, CATEGORY = "number", "date", "category"

_WHOLE = re.compile(r"[+-]?\d+")
_ISO_DATE = re.compile(r"\d{4}-\d{2}(-\d{2}(T|\b).*)?")
_MARK, _NAME = "[./ -]{1,2}", "(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*"
_MONTH = rf"(\d{{1,2}}|{_NAME})"
_LIKE_A_DATE = re.compile(
    rf"(\d{{1,2}}{_MARK}{_MONTH}{_MARK}\d{{2}}(\d{{2}})?|\d{{4}}{_MARK}{_MONTH}{_MARK}\d{{1,2}}|"
    rf"\d{{1,2}}{_MARK}(19|20)\d{{2}}|{_NAME}{_MARK}\d{{2}})([T,\s].*)?",
    re.IGNORECASE,
)
_MONTH_FIRST = re.compile(r"\s*\d{1,2}(?P<mark>[./ -])(1[3-9]|[23]\d)(?P=mark)\d{4}")
_LIKE_A_NUMBER = re.compile(
    r"(?P<before>[<>~≈≤≥$€£¥]? ?)[+\-\u2212]? ?"
    r"(?P<whole>\d{1,3}(?P<mark>[.,'\u2019_\s])\d{3}(?:(?P=mark)\d{3})*|\d+)"
    r"(?P<rest>[.,]\d+)?([eE][+-]?\d+)?\s?(?P<unit>([^\W\d_]|[%°‰$€£¥]).*)?"
)
_DECIMAL_COMMA = re.compile(r"0,\d+|[^,]*,(\d{1,2}|\d{4,})|[^,]*\.[^,]*,\d+|\d+(\.\d{3}){2,}")
_MINUS = "\u2212"


class Place(NamedTuple):
    """Where a column stands, for messages."""

    name: str
    number: int
    library: str  # of its table

    def line(self, pandas: str, polars: str) -> str:
        """Write the line that replaces the column, by what is done to ``{x}`` in either library."""
        if self.library == "polars":
            x = f"polars.col({self.name!r})"
            return f"X = X.with_columns({polars.replace('{x}', x)})"
        if not self.is_of_frame:
            x = f"X[:, {self.number}]"
            line = pandas.replace("{x}", f"pandas.Series({x})")
            return f"X = numpy.array(X, dtype=object); {x} = {line}"
        x, before = f"X[{self.name!r}]", "X = X.to_pandas(); " * (self.library != "pandas")
        return f"{before}{x} = {pandas.replace('{x}', x)}"

    @property
    def is_of_frame(self) -> bool:
        """Whether it is a column of a frame."""
        return self.library != "array"

    def refused(self, expected: str, given: Sequence[Any], advice: str) -> ValueError:
        """Make the error of values that are not as expected, unless they are levels."""
        advice += f"; if it holds levels, name it in categorical_features=[{self.name!r}]"
        texts = list(dict.fromkeys(map(repr, given)))
        more = f" and {len(texts) - MAX_NAMED} more" * (len(texts) > MAX_NAMED)
        got = "text such as " * isinstance(given[0], str) + ", ".join(texts[:MAX_NAMED]) + more
        return ValueError(f"X must hold {expected} in column {self.name!r}, got {got}: {advice}")


TO_NUMBERS = "pandas.to_numeric({x}, errors='coerce')", "{x}.cast(float, strict=False)"
TO_DATES = "pandas.to_datetime({x}, errors='coerce')", "{x}.str.to_datetime(strict=False)"


def kind_of(
    counts: Counter[Any], place: Place, *, may_be_levels: bool
) -> tuple[str, dict[Any, Any]]:
    """Return the kind of a column of texts, numbers and dates, and the moments of its dates.

    Texts of whole numbers are levels, if there may be any.

    Raises
    ------
    ValueError
        If most of the texts are numbers or dates, or look like them.
    """
    numbers = set(filter(is_numeric, counts))
    if len(numbers) == len(counts):
        are_levels = may_be_levels and all(_matches(_WHOLE, one) for one in counts)
        return CATEGORY if are_levels else NUMBER, {}
    moments = read_dates(list(counts))
    dates = dict(compress(zip(counts, moments, strict=True), ~np.isnat(moments)))
    if len(dates) == len(counts):
        return DATE, dates
    if _share_among(numbers, counts) >= MAJORITY:
        advice = f"{place.line(*TO_NUMBERS)} makes a gap of what is no number"
        raise place.refused("numbers", _others(counts, numbers), advice)
    others = _others(counts, dates)
    if _share_among(dates, counts) >= MAJORITY or any(_matches(_ISO_DATE, one) for one in counts):
        line = place.line(f"{{x}}.mask({{x}}.isin({others}))", f"{{x}}.replace({others}, None)")
        advice = f"mend it, or {line} makes a gap of it"
        raise place.refused("dates such as '2020-01-31'", others, advice)
    _refuse_what_looks_like_numbers(counts, numbers, place)
    like_dates = {one for one in counts if _matches(_LIKE_A_DATE, one)}
    if _share_among(dates.keys() | like_dates, counts) >= MAJORITY:
        months_first = [like for one in others if (like := _MONTH_FIRST.match(str(one)))]
        form = "'%m{0}%d{0}%Y', ".format(months_first[0]["mark"]) if months_first else ""
        line = place.line(
            f"pandas.to_datetime({{x}}, dayfirst={not form})",
            f"{{x}}.str.to_datetime({form}strict=False)",
        )
        unsure = ", without dayfirst=True if the day does not come first" * (not form)
        advice = f"{line} converts it{unsure}"
        raise place.refused("dates as datetime64, or as '2020-01-31',", others, advice)
    return CATEGORY, {}


def is_numeric(value: Any) -> bool:
    """Whether a value is a number, or a text that is one."""
    if isinstance(value, (str, bytes)):
        return is_number(value) and "_" not in str(value)
    return isinstance(value, (Real, Decimal))


def _matches(form: re.Pattern[str], value: Any) -> bool:
    return isinstance(value, str) and form.fullmatch(value.strip()) is not None


def _share_among(values: Iterable[Any], counts: Counter[Any]) -> float:
    return sum(counts[one] for one in values) / counts.total()


def _others(counts: Counter[Any], values: Collection[Any]) -> list[Any]:
    return [one for one in counts if one not in values]


def _refuse_what_looks_like_numbers(counts: Counter[Any], numbers: set[Any], place: Place) -> None:
    """Refuse decimal commas, marks of thousands, units and signs, with the line that reads them.

    Whole numbers with several units, such as ``"12a"`` and ``"14b"``, are levels.
    """
    texts = (one.strip() for one in counts if isinstance(one, str) and one not in numbers)
    found = {one: like for one in texts if (like := _LIKE_A_NUMBER.fullmatch(one))}
    likes = [one for one in counts if isinstance(one, str) and one.strip() in found]
    units = {like["unit"] for like in found.values()} - {None}
    are_whole = all(not like["mark"] and not like["rest"] for like in found.values())
    if _share_among({*likes, *numbers}, counts) < MAJORITY or (are_whole and len(units) > 1):
        return
    bodies = [like["whole"] + (like["rest"] or "") for like in found.values()]
    decimal = "," if any(map(_DECIMAL_COMMA.fullmatch, bodies)) else "."
    marks = sorted({mark for mark in "".join(bodies) if not mark.isdecimal()})
    instead = {_MINUS: "-"} if any(_MINUS in one for one in found) else {}
    instead |= {mark: "" for mark in marks if mark != decimal}
    instead |= {",": "."} if "," in marks and decimal == "," else {}
    steps = [
        (f".str.replace({a!r}, {b!r})", f".str.replace_all({a!r}, {b!r}, literal=True)")
        for a, b in instead.items()
    ]
    if units or any(like["before"] for like in found.values()):
        digits = ".str.extract('(-?[0-9.]*[0-9])'"
        steps.append((f"{digits}, expand=False)", f"{digits})"))
    if not all(isinstance(one, str) for one in counts):
        steps.insert(0, (".astype(str)", ""))
    pandas, polars = map("".join, zip(*steps, strict=True)) if steps else ("", "")
    line = place.line(f"{{x}}{pandas}.astype(float)", f"{{x}}{polars}.cast(float)")
    if len(units) > 1:
        line = f"convert it to one unit; without its units, {line}"
    raise place.refused("numbers", likes, f"{line} reads such texts")
