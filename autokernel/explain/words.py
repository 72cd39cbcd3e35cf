"""Numbers, lists and shares as a reader wants them, and how sure a sentence is."""

import re
from collections.abc import Sequence

import numpy as np

from autokernel.typing import FloatArray

INTERVAL_ENDS = (0.05, 0.95)  # levels of the ends of a central 90 % interval
MAX_LISTED = 12  # items of a sentence
CERTAIN = 0.95  # probability from which none is written
_DIGITS = 3
_PLURALS = re.compile(
    "(second|minute|hour|day|week|month|quarter|year|decade|metre|meter|kilometre|kilometer|mile|"
    "gram|kilogram|tonne|litre|liter|degree|point|unit)s"
)
_LEAD = re.compile(r".*?( of the fit|, which other effects offset| by other effects)(?=: )", re.S)
_MOST_DECIMALS, _MOST_ZEROS = 7, 6
SECONDS = {
    "seconds": 1.0,
    "minutes": 60.0,
    "hours": 3600.0,
    "days": 86400.0,
    "weeks": 604800.0,
    "months": 2629746.0,
    "quarters": 7889238.0,
    "years": 31556952.0,
}
_CALENDAR = {"days": "daily", "weeks": "weekly", "months": "monthly", "years": "yearly"}
_READABLE = ("minutes", "hours", "days", "years")  # units that a reader would choose


def interval(draws: FloatArray) -> FloatArray:
    """Compute the ends (2, ...) of 90 % intervals of draws (n_draws, ...); nan for one draw.

    With fewer than 19 draws, the ends are the smallest and the largest one.
    """
    if len(draws) == 1:
        return np.full((2, *draws.shape[1:]), np.nan)
    # a new draw is below the k-th of n with probability k / (n + 1)
    return np.quantile(draws, INTERVAL_ENDS, axis=0, method="weibull")


def number(value: float, digits: int = _DIGITS) -> str:
    """Write a number with some digits, without an exponent where it can be read without one."""
    if value == 0 or not np.isfinite(value):
        return f"{value:.0f}"
    value = float(f"{value:.{digits - 1}e}")
    decimals = digits - 1 - int(np.floor(np.log10(abs(value))))
    if decimals > _MOST_DECIMALS or decimals < -_MOST_ZEROS:
        return f"{value:.{digits - 1}e}"
    return f"{value:.{max(decimals, 0)}f}"


def with_unit(value: float, unit: str) -> str:
    """Write a number and its unit, if there is one."""
    return f"{number(value)} {unit}".rstrip()


def factor_text(value: float, low: float = np.nan, high: float = np.nan) -> str:
    """Write a factor, in two digits of its difference from one, with an interval if it is known.

    The ends of an interval from which one is twice the other have two digits each.
    """
    if np.isfinite(low) and np.isfinite(high):
        if high > 2 * low:
            return "{} ({} to {})".format(*(number(one, 2) for one in (value, low, high)))
        return between(value, low, high, "")
    away = abs(value - 1)
    decimals = 2 if away == 0 else max(1 - int(np.floor(np.log10(away))), 2)
    return f"{value:.{decimals}f}" if 0.1 < value < 10 and decimals < 6 else number(value)


def level_text(value: float, spread: float, unit: str) -> str:
    """Write a number and its unit, in three digits or as many as show a tenth of a spread."""
    decimals = _DIGITS - 2 - int(np.floor(np.log10(spread)))
    if decimals <= _MOST_DECIMALS and abs(value) > 10 * spread:
        return f"{round(value, decimals):.{max(decimals, 0)}f} {unit}".rstrip()
    return with_unit(value, unit)


def between(value: float, low: float, high: float, unit: str) -> str:
    """Write a number with an interval around it, in as many decimals as the interval shows.

    If the interval leaves an end one digit, there is a decimal more.
    """
    if not (np.isfinite(low) and np.isfinite(high)) or low == value == high:
        return with_unit(value, unit)
    spread = max(high - low, 1e-9 * max(abs(value), abs(low), abs(high)))
    decimals = -int(np.floor(np.log10(spread / 3)))
    least = min(abs(low), abs(high))
    decimals += bool(low * high > 0 and least < 10.0 ** (1 - decimals))
    if decimals > _MOST_DECIMALS or decimals < -_MOST_ZEROS:
        texts = [number(one) for one in (value, low, high)]
    else:
        texts = [f"{round(one, decimals) + 0.0:.{max(decimals, 0)}f}" for one in (value, low, high)]
    text, low_text, high_text = texts
    return f"{text} {unit}".rstrip() + f" ({low_text} to {high_text})"


def calendar_word(value: float, low: float = np.nan, high: float = np.nan, *, unit: str) -> str:
    """Return "yearly ", "weekly " and so on for such a period, and else nothing."""
    for name, word in _CALENDAR.items() if unit in SECONDS else ():
        exact = SECONDS[name] / SECONDS[unit]
        if abs(value / exact - 1) < 0.005 or low <= exact <= high:  # relative
            return f"{word} "
    return ""


def duration(value: float, low: float = np.nan, high: float = np.nan, *, unit: str) -> str:
    """Write a duration in the largest unit of which there are two, small ones in a smaller one."""
    if unit not in SECONDS:
        return between(value, low, high, unit)
    best = "seconds" if value < 0.5 else unit  # below half a unit
    for name in _READABLE:
        is_larger = SECONDS[name] > SECONDS[best]
        if is_larger and value * SECONDS[unit] >= 2.0 * SECONDS[name]:  # two of the larger unit
            best = name
    factor = SECONDS[unit] / SECONDS[best]
    return between(value * factor, low * factor, high * factor, best)


def percent(share: float) -> str:
    """Write a share in per cent, with a digit more where it is small."""
    per_cent = 100 * share
    if -1 < per_cent < 0.1:  # below zero, it works against the others
        return "less than 0.1 %"
    if 99.95 <= per_cent < 100 - 1e-9:
        return "more than 99.9 %"
    is_near_end = abs(per_cent) < 10 or 99 <= per_cent < 99.95
    return f"{per_cent:.1f} %" if is_near_end else f"{per_cent:.0f} %"


def listing(items: Sequence[str]) -> str:
    """Join items by commas, the last one by "and"; of very many, the first ones."""
    if len(items) > MAX_LISTED:
        items = [*items[: MAX_LISTED - 1], f"{len(items) - MAX_LISTED + 1} others"]
    *others, last = items
    return f"{', '.join(others)} and {last}" if others else last


def counted(n: int, noun: str) -> str:
    """Write how many there are, in words up to ten."""
    words = ["no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]
    text = words[n] if n < len(words) else str(n)
    return f"{text} {noun}" + ("" if n == 1 else "s")


def singular(unit: str) -> str:
    """Write a unit of which there is one, if its plural is a common word."""
    return unit[:-1] if _PLURALS.fullmatch(unit) else unit


def capital(text: str) -> str:
    """Write the first letter of a sentence."""
    return text[:1].upper() + text[1:]


def at_colon(text: str) -> tuple[str, str]:
    """Part the sentence of an effect at the colon after its share, or else at the first one."""
    found = _LEAD.match(text)  # names may have colons
    end = found.end() if found else len(text.partition(": ")[0])
    return text[:end], text[end + 2 :]


def perhaps(text: str, probability: float) -> str:
    """Add to a clause how probable it is, if it is not nearly certain."""
    if probability >= CERTAIN:
        return text
    words = f"probability {probability:.2f}"
    return f"{text[:-1]}; {words})" if text.endswith(")") else f"{text} ({words})"
