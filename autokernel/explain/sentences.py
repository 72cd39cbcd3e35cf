"""How amounts, places and names are written in sentences: in units, and on scales.

A sentence comes with the fact that it states, whose numbers are in the units of the user. A fact
without a sentence is stated by the sentence before it.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from autokernel.data.scales import LARGEST_LOG
from autokernel.explain.axes import Axis
from autokernel.explain.facts import Fact
from autokernel.explain.parts import Part
from autokernel.explain.words import (
    between,
    calendar_word,
    capital,
    factor_text,
    number,
    readable,
    with_unit,
)
from autokernel.expression import IDENTITY

LEAST_SPREAD, MAX_SPREAD = 1e-6, 2.0  # of logs of factors that have the same decimals
SCALE_WORDS = {IDENTITY: "original", "log": "log", "sqrt": "square root", "logit": "logit"}

UNNAMED = "the target"

Said = tuple[Fact, str]


class Sentences:
    """Writes amounts of a target, with its unit or as factors, and names of parts of columns."""

    def __init__(self, axes: Sequence[Axis], *, y_name: str, unit: str, scale: str) -> None:
        self.axes, self.y_name, self.unit, self.scale = axes, y_name, unit, scale
        self.names = [axis.name for axis in axes]
        self._is_given = y_name != UNNAMED

    def name(self, part: Part, parts: Sequence[Part]) -> str:
        """Name a part of an effect by its column and, among several, by what it is."""
        axis, unknown = self.axes[part.column], (np.nan, np.nan)
        if sum(one.column == part.column for one in parts) <= 1:
            return axis.name
        period, kind = axis.extent * part.period, "trend"
        if part.is_season:
            kind = f"{calendar_word(period, *unknown, axis.unit)}season"
        if kind == "season":
            value, _, _, unit = readable(period, *unknown, axis.unit)
            kind = f"cycle of {with_unit(value, unit)}"
        region = part.region(1.0)
        where = f" {region.text(axis, is_only=True)}" if region else ""
        return f"{axis.name} ({kind}{where})"

    def begun(self, begin: str, text: str) -> str:
        """Begin a sentence by a lead, or by a capital unless its first word is a given name."""
        is_name = self._is_given and f"{text} ".startswith(f"{self.y_name} ")
        return f"{begin}{text}" if begin or is_name else capital(text)

    def measured(self, fact: Fact, per: str = "") -> Fact:
        """Return a fact about a change on the scale of the target in its unit, or a factor."""
        unit = "factor" if self.scale == "log" else self.unit
        fact = fact.moved(*_exp(fact.ends)) if self.scale == "log" else fact
        return replace(fact, unit=f"{unit}{per}".strip("/"))

    def amount(self, value: float, low: float = np.nan, high: float = np.nan, per: str = "") -> str:
        """Write the size of a change on the scale of the target, without its sign."""
        sign, unit = (1.0 if value >= 0 else -1.0), per
        low, high = sorted((sign * low, sign * high))
        if self.scale == "log":
            text = factor_text(*_exp([sign * value, low, high]))
        else:
            text, unit = between(sign * value, low, high, ""), f" {self.unit}".rstrip() + per
        number, bracket, ends = text.partition(" (")
        return f"{number}{unit}{bracket}{ends}"

    def between(self, low: float, high: float) -> str:
        """Write a range of changes on the scale of the target."""
        if self.scale == "log":
            first, last = map(factor_text, _exp([low, high]))
            return f"{first} to {last.removeprefix('a factor of ')}"
        return f"{with_unit(low, '')} to {with_unit(high, self.unit)}"

    def one_of_two(self, column: int, value: float) -> str:
        """Write one of the two values of a column, given in the unit interval, in full."""
        axis = self.axes[column]
        if axis.origin is None and not axis.levels:
            return f"{axis.low + axis.extent * value:.10g}"
        return axis.end(value)

    def signed(self, value: float, spread: float) -> str:
        """Write a difference on the scale of the target with its sign, or as a factor.

        Factors have decimals that show a hundredth of a ``spread`` of their logs.
        """
        if self.scale == "log" and spread < MAX_SPREAD:
            decimals = max(2, 1 - int(np.floor(np.log10(max(spread, LEAST_SPREAD)))))
            return f"{np.exp(value):.{decimals}f}"
        if self.scale == "log":
            return number(_exp([value])[0])
        return f"{'+' if value >= 0 else '-'}{self.amount(value)}"


def _exp(values: Sequence[float]) -> list[float]:
    return np.exp(np.clip(values, -LARGEST_LOG, LARGEST_LOG)).tolist()
