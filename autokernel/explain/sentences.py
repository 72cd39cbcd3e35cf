"""How facts are written: English, units, and the scale of the target, in one place.

A sentence comes with the fact that it states, whose numbers are in the units of the user. A fact
without a sentence is stated by the sentence before it.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from autokernel.data.scales import LARGEST_LOG, Scale
from autokernel.data.steps import YEAR
from autokernel.explain.axes import Axis
from autokernel.explain.facts import LIKELY, NEAR_BEYOND, SURE, Curve, Fact
from autokernel.explain.parts import Part
from autokernel.explain.words import (
    between,
    calendar_word,
    capital,
    counted,
    factor_text,
    listing,
    number,
    percent,
    perhaps,
    readable,
    singular,
    with_unit,
)
from autokernel.expression import IDENTITY
from autokernel.typing import FloatArray

MIN_YEARS = 2  # of a column of dates, from which a line is measured per year
MIN_STEPS, MAX_STEPS = 3, 300  # along a column, by one of which a line is measured
MAX_LOG_STEP = np.log(100.0)  # of a factor per unit of a column, above which it is per less
MAX_LEVELS, MAX_WITH_INTERVALS = 6, 4  # of a category whose differences are listed
MAX_BLUR = 0.25  # of a column, up to which the place of a jump is named
LEAST_SPREAD, MAX_SPREAD = 1e-6, 2.0  # of logs of factors that have the same decimals
SCALE_WORDS = {IDENTITY: "original", "log": "log", "sqrt": "square root", "logit": "logit"}
_LINES = {  # on a scale of a column, of the log of the target or not: what is said of a line
    (IDENTITY, False): ("linearly", "by"),
    (IDENTITY, True): ("exponentially", "exponentially, by"),
    ("log", False): ("with the logarithm", "in proportion to the logarithm of {}, by"),
    ("log", True): ("as a power", "as a power of {}, by"),
    ("sqrt", False): ("with the square root", "in proportion to the square root of {}, by"),
    ("sqrt", True): ("exponentially with the root", "exponentially with the square root of {}, by"),
}
_BEYOND = {"continues beyond": "continues, and ", "returns beyond": "returns to its average, and "}

UNNAMED = "the target"

Said = tuple[Fact, str]


class Sentences:
    """Writes facts about columns and a target with a unit, on the scale where amounts are."""

    def __init__(self, axes: Sequence[Axis], *, y_name: str, unit: str, scale: str) -> None:
        self.axes, self.y_name, self.unit, self.scale = axes, y_name, unit, scale
        self.names = [axis.name for axis in axes]
        self._is_given = y_name != UNNAMED

    def lead(self, name: str, share: float) -> str:
        """Begin the description of a component of one of several columns by its name."""
        if len(self.axes) == 1:
            return ""
        if share < 0:
            return f"{name} offsets other effects (share {percent(share)}): "
        return f"{name} explains {percent(share)} of the variance of the fit: "

    def name(self, part: Part, parts: Sequence[Part]) -> str:
        """Name a part of an effect by its column and, among several, by what it is."""
        is_one_of_several = sum(one.column == part.column for one in parts) > 1
        kind = f" ({self._kind(part)})" if is_one_of_several else ""
        return f"{self.names[part.column]}{kind}"

    def _kind(self, part: Part) -> str:
        """Say what a part of the effect of a column is: a season, a cycle or a trend."""
        axis, unknown = self.axes[part.column], (np.nan, np.nan)
        period, kind = axis.extent * part.period, "trend"
        if part.is_season:
            kind = f"{calendar_word(period, *unknown, axis.unit)}season"
        if kind == "season":
            value, _, _, unit = readable(period, *unknown, axis.unit)
            kind = f"cycle of {with_unit(value, unit)}"
        region = part.region(1.0)
        return f"{kind} {region.text(axis, is_only=True)}" if region else kind

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

    def place(self, fact: Fact, column: int, view: Scale) -> Said:
        """Return a place on a scale of a column in the units of the column, and its text."""
        axis, ends = self.axes[column], view.inverse(np.array(fact.ends)).tolist()
        moved = fact.moved(*ends).scaled(axis.extent, axis.low)
        return replace(moved, unit=axis.unit), axis.place(*ends)

    def level(self, column: int, value: float, *, is_one_of_two: bool = False) -> str:
        """Write a value of a column in the unit interval, in full if it is one of two."""
        axis = self.axes[column]
        if is_one_of_two and axis.origin is None and not axis.levels:
            return f"{axis.low + axis.extent * value:.10g}"
        return axis.end(value)

    def curve(
        self,
        fact: Fact,
        column: int,
        view: Scale,
        begin: str,
        curve: Curve,
        *,
        has_ends: bool = True,
    ) -> Said:
        """Describe a line, a rise or fall, a turn, or many, along a column on a scale.

        The sentence begins with what changes, and says between which ends a curve rises or falls.
        """
        word = fact.predicate
        if fact.probability < SURE * curve.present:
            return self._uncertain_direction(fact, column, view, begin, curve)
        if word.endswith("linearly"):
            fact, text = self._line(fact, column, view)
        elif " then " in word:
            first, then = word.split(" then ")
            top = float(np.interp(fact.value, curve.places, curve.mean))
            by_first, by_then = map(self.amount, (top - curve.mean[0], curve.mean[-1] - top))
            fact, place = self.place(fact, column, view)
            text = f"{first} by {by_first} until {place} and {then} by {by_then} from there on"
        else:
            ends = (fact.low, fact.high) if word in ("rises", "falls") else ()
            text = f"{word} by {self.amount(fact.value, *ends)}" if fact.value else word
            if has_ends:
                at = [0, -1] if ends else [np.argmin(curve.mean), np.argmax(curve.mean)]
                text += self._from_to(curve.places[at], column, view, is_ordered=bool(ends))
            fact = self.measured(fact)
        return fact, f"{begin} {perhaps(text, fact.probability)}."

    def _from_to(
        self, ends: FloatArray, column: int, view: Scale, *, is_ordered: bool = True
    ) -> str:
        """Say between which places (2,) on a scale a curve changes, or the extremes it has."""
        first, last = (self.axes[column].end(one) for one in view.inverse(ends).tolist())
        if is_ordered:
            return f" from {first} to {last}"
        return f", lowest at {first} and highest at {last}"

    def _uncertain_direction(
        self, fact: Fact, column: int, view: Scale, begin: str, curve: Curve
    ) -> Said:
        """Say where a curve surely rises or falls when it may do both on the whole."""
        unknown = Fact(fact.subject, "is open", evidence=fact.evidence)
        ends = sorted((int(np.argmin(curve.mean)), int(np.argmax(curve.mean))))
        change = curve.measured(lambda curves: np.diff(curves[:, ends])[:, 0])
        sure = curve.probability(lambda curves: np.diff(curves[:, ends])[:, 0] * change[0] > 0)
        by = self.amount(curve.reach)
        if self.axes[column].levels:
            return unknown, f"{begin} differs by {by}, and it is uncertain which level is higher."
        if sure < LIKELY * curve.present:
            return unknown, f"{begin} varies by {by}, in a direction that is uncertain."
        way, where = "rises" if change[0] > 0 else "falls", curve.places[ends]
        text = f"{way} by {self.amount(*change)}{self._from_to(where, column, view)}"
        part = Fact(fact.subject, f"{way} between", *change, "", sure, "lowest and highest place")
        elsewhere = ", and its course elsewhere is uncertain"
        if ends == [0, len(curve.mean) - 1]:
            elsewhere = ""
        return self.measured(part), f"{begin} {perhaps(text, sure)}{elsewhere}."

    def _line(self, fact: Fact, column: int, view: Scale) -> Said:
        step, unit, per = self._step(fact, column, view)
        fact, way = fact.scaled(step), fact.predicate.split()[0]
        predicate, words = _LINES[view.name, self.scale == "log"]
        amount = self.amount(*fact.ends, "" if view.name != IDENTITY else f" {per}")
        where = f" {per}" if view.name != IDENTITY else ""
        fact = self.measured(replace(fact, predicate=f"{way} {predicate}"), f"/{unit}")
        return fact, f"{way} {words.format(self.names[column] + _more(view))} {amount}{where}"

    def _step(self, fact: Fact, column: int, view: Scale) -> tuple[float, str, str]:
        """Choose the step along a column by which a line is measured, its unit, and its words."""
        axis, name = self.axes[column], self.names[column]
        if view.name == "log":
            return (
                np.log(2.0) / view.width,
                "doubling",
                f"with each doubling of {name}{_more(view)}",
            )
        if view.name != IDENTITY:
            return 1 / view.width, f"{view.name}({name})", "per unit of this root"
        step, unit, one = 1 / axis.extent, axis.unit, singular(axis.unit) or f"unit of {name}"
        if axis.origin is not None and axis.extent > MIN_YEARS * YEAR:
            step, unit, one = step * YEAR, "years", "year"
        part, most = 10.0 ** np.floor(np.log10(1 / (MIN_STEPS * step))), abs(fact.value) * step
        if self.scale == "log" and most > MAX_LOG_STEP:  # a factor of 1e9 says nothing
            part = 10.0 ** -np.ceil(np.log10(most / MAX_LOG_STEP))
        elif 1 / step < MAX_STEPS or axis.origin is not None:
            part = 1.0
        if part != 1:
            step, unit = step * part, f"{part:g} {unit}".rstrip()
            one = unit if axis.unit else f"{part:g} of {name}"
        return float(step), unit, f"per {'level' if axis.levels else one}"

    def most(self, said: Said, where: Fact, column: int, view: Scale) -> list[Said]:
        """Add to a rise or fall where or how most of it happens."""
        fact, text = said
        if where.predicate == "follows its scale":
            line = _LINES[view.name, self.scale == "log"][1].format(
                self.names[column] + _more(view)
            )
            how = f"nearly {line.removesuffix(', by')}"
        else:
            where, place = self.place(where, column, view)
            how = f"half of it until {place}"
            if where.predicate == "jumps":
                how = f"most of it around {perhaps(place, where.probability)}"
        return [(fact, f"{text.removesuffix('.')}, {how}."), (where, "")]

    def difference(self, fact: Fact, column: int, values: Sequence[float], begin: str) -> Said:
        """Describe the effect of a column of two values."""
        low, high = (self.level(column, one, is_one_of_two=True) for one in values)
        name, measured = self.names[column], self.measured(fact)
        than = f"{fact.predicate.removeprefix('is ')} by {self.amount(*fact.ends)} than"
        if self.scale == "log":
            factor, bracket, ends = _factor(measured).partition(" (")
            than = f"{factor} times as high{bracket}{ends} as"
        text = f"where {name} is {high}, {self.y_name} is {than} where it is {low}"
        return measured, f"{self.begun(begin, perhaps(text, fact.probability))}."

    def beyond(self, fact: Fact, column: int, begin: float, end: float, *, reach: float) -> Said:
        """Say how a curve that has a ``reach`` continues after its end."""
        axis, measured = self.axes[column], self.measured(fact)
        far = end + NEAR_BEYOND * (end - begin)
        until = f"until {axis.place(far)}"
        if axis.origin is None and not axis.unit:
            until = f"until {self.names[column]} is {axis.place(far)}"
        if fact.probability < SURE:
            text = "Its course beyond the data is uncertain"
            if fact.high - fact.low <= reach:  # else anything may come
                text = f"{text}: it changes by {self.between(fact.low, fact.high)} {until}"
            return replace(measured, predicate="is open beyond", probability=1.0), f"{text}."
        way = f"{_BEYOND.get(fact.predicate, '')}{'rises' if fact.value > 0 else 'falls'}"
        text = f"{way} by {self.amount(*fact.ends)} {until}"
        return measured, f"Beyond the data it {perhaps(text, fact.probability)}."

    def season(
        self,
        period: Fact,
        swing: Sequence[Fact],
        column: int,
        begin: str,
        extremes: Sequence[float] = (),
    ) -> list[Said]:
        """Say with which period a component repeats, how large it is, and when it is highest.

        The period is in the unit interval; after the swing come its lowest and highest point. Their
        places in the last cycle are the ``extremes``, named if the calendar has a name for them.
        """
        axis, (size, *ends) = self.axes[column], swing
        period = replace(period.scaled(axis.extent), unit=axis.unit)
        word = calendar_word(*period.ends, axis.unit)
        noun = f"{word}season in {self.names[column]}"
        if not word:
            every = between(*readable(*period.ends, axis.unit))
            noun = f"cycle in {self.names[column]} that repeats every {every}"
        how = f"{'' if word else ','} with a swing of {self.amount(size.value)}"
        amounts = [size]
        if self.scale == "log":
            factors = self.between(*(one.value for one in ends))
            how = f" {'that' if word else 'and'} changes {self.y_name} by {factors}"
            amounts = [*swing]
        text = perhaps(f"a {noun}{how} in its last cycle", size.probability)
        named = [axis.name_in(word.strip(), place) for place in extremes]
        if named and all(named):
            low, high = named
            text = f"{text}, highest {high} and lowest {low}"
        return [
            (period, f"{self.begun(begin, text)}."),
            *((self.measured(one), "") for one in amounts),
        ]

    def growth(self, grows: Fact, size: Fact, first: Sequence[Fact]) -> list[Said]:
        """Say how a swing has changed since the first cycle, given its lowest and highest point."""
        text = f" from {self.amount(size.value / grows.value)} in the first cycle"
        facts: list[Said] = []
        if self.scale == "log":
            text = f": in the first cycle it was {self.between(*(one.value for one in first))}"
            facts = [(self.measured(one), "") for one in first]
        word = "grown" if grows.value > 1 else "shrunk"
        text = perhaps(f"Its swing has {word}{text}", grows.probability)
        return [(grows, f"{text}."), *facts]

    def season_beyond(self, fact: Fact, column: int, noun: str) -> Said:
        """Say how a season continues beyond the data."""
        if fact.probability < SURE:
            unknown = replace(fact, predicate="is open beyond", probability=1.0)
            return unknown, f"Whether {noun} repeats beyond the data is uncertain."
        if fact.predicate == "repeats beyond":
            text = perhaps(f"{capital(noun)} repeats beyond the data", fact.probability)
            return fact, f"{text}."
        axis = self.axes[column]
        fact = replace(fact.scaled(axis.extent), unit=axis.unit)
        value, _, _, unit = readable(fact.value, np.nan, np.nan, axis.unit)
        text = f"Beyond the data half of its swing is left after {with_unit(value, unit)}"
        return fact, f"{perhaps(text, fact.probability)}."

    def too_fast(self, subject: str, column: int, begin: str) -> Said:
        """Say that a cycle is too fast for the rows."""
        fact = Fact(subject, "is faster than the rows", evidence="two gaps between rows")
        text = f"a cycle in {self.names[column]} that is faster than the rows, or seems so."
        return fact, self.begun(begin, text)

    def levels(self, said: Sequence[tuple[float, Fact]], column: int, begin: str) -> list[Said]:
        """Describe how levels differ from the average, the highest first."""
        (_, first), n = said[0], len(said)
        end, spread = self.axes[column].end, said[0][1].value - said[-1][1].value
        texts = [f"{end(value)} {self.signed(fact.value, spread)}" for value, fact in said]
        which = ""
        if n <= MAX_WITH_INTERVALS:
            texts = [f"{end(value)} {self._with_interval(fact)}" for value, fact in said]
        if n > MAX_LEVELS:
            by = self.amount(float(np.std([fact.value for _, fact in said])))
            which = f"the highest and lowest of {n} levels with a standard deviation of {by}, "
            texts = [*texts[: MAX_LEVELS // 2], *texts[-(MAX_LEVELS // 2) :]]
        about = "factors of" if self.scale == "log" else "differences from"
        text = f"{listing(texts)} ({which}{about} the average)"
        whole = f"{begin or f'Levels of {self.names[column]}: '}{perhaps(text, first.probability)}."
        facts = [
            replace(self.measured(fact), subject=f"{fact.subject}={self.axes[column].end(value)}")
            for value, fact in said
        ]
        return [(facts[0], whole), *((fact, "") for fact in facts[1:])]

    def _with_interval(self, fact: Fact) -> str:
        """Write a difference on the scale of the target with its interval, or a factor."""
        if self.scale == "log":
            return _factor(self.measured(fact))
        return f"{'+' * (fact.value >= 0)}{between(*fact.ends, self.unit)}"

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

    def share(self, fact: Fact, begin: str = "It explains") -> Said:
        """Say how much is explained."""
        return fact, f"{begin} {percent(fact.value)} of the variance of the fit."

    def small(self, fact: Fact, n: int) -> Said:
        """Say how much some small components explain together."""
        verb = "explains" if n == 1 else "together explain"
        return self.share(
            fact, f"{capital(counted(n, 'smaller component'))} of {fact.subject} {verb}"
        )

    def uncertain(self, fact: Fact, has: str, column: int, begin: str) -> Said:
        """Name a component of which nothing else is known, or which outliers mask."""
        text = f"whether {self.y_name} {has} {self.names[column]}"
        if fact.evidence.startswith("outliers"):
            return fact, f"{self.begun(begin, f'outliers mask {text}')}."
        return fact, f"{self.begun(begin, perhaps(f'it is uncertain {text}', fact.probability))}."

    def interaction(
        self, fact: Fact, names: tuple[str, str], share: float, texts: Sequence[str]
    ) -> str:
        """Say how much two columns explain together besides the effects of each, and how."""
        text = f"{listing(names)} interact"
        how = "explains {} of the variance of the fit" if share > 0 else "has a share of {}"
        text += f", which {how.format(percent(share))}"
        text, how = perhaps(text, fact.probability), ", in a way that is uncertain"
        return f"{text}{f': {listing(texts)}' if texts else how}."


def _more(view: Scale) -> str:
    """Write what is added to a column before its logarithm is taken."""
    return f" + {view.offset:g}" if view.offset else ""


def _exp(values: Sequence[float]) -> list[float]:
    return np.exp(np.clip(values, -LARGEST_LOG, LARGEST_LOG)).tolist()


def _factor(fact: Fact) -> str:
    return factor_text(*fact.ends).removeprefix("a factor of ")
