"""Sentences about components and interactions of a fitted function, in units and on scales."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
from scipy.stats import rankdata

from autokernel.data.scales import LARGEST_LOG, Scale
from autokernel.data.shared import shared_days
from autokernel.explain.axes import MAX_VALUES, Axis
from autokernel.explain.decomposition import SMALL, ExplainedFunction, Interaction
from autokernel.explain.effects import effect_of
from autokernel.explain.facts import (
    HALF,
    LIKELY,
    N_GRID,
    NEAR_BEYOND,
    POINTS_OF_CYCLE,
    SURE,
    Curve,
    Fact,
    Quantity,
    beyond_of,
    central,
    changes_of,
    curve_of,
    cycles_of_longer,
    direction,
    half_way,
    jump,
    level_of,
    levels_of,
    nearly_line,
    peaks_of,
    rise_or_fall,
    season,
    swings_of,
    within_and_between,
)
from autokernel.explain.parts import WHOLE_COLUMN, Part, Region
from autokernel.explain.words import (
    CERTAIN,
    INTERVAL_ENDS,
    SECONDS,
    between,
    calendar_word,
    capital,
    duration,
    factor_text,
    interval,
    listing,
    number,
    percent,
    perhaps,
    singular,
    with_unit,
)
from autokernel.expression import IDENTITY
from autokernel.typing import FloatArray

SCALE_WORDS = {IDENTITY: "original", "log": "log", "sqrt": "square root", "logit": "logit"}

UNNAMED = "the target"
FAR_AROUND = 1.5  # the range of a trend in that of its averages, from which it is said instead
FEW_AROUND = 0.005, 0.995  # quantiles of a trend at the rows
WHOLE = 1.005  # share of the variance from which an effect explains more than there is
STILL = 1e-9  # largest span of a component that does not vary, in deviations of the target
MAX_LOG_STEP = np.log(100.0)  # of a factor per unit of a column, above which it is per less
MAX_LEVELS, MAX_WITH_INTERVALS = 6, 4  # of a category whose differences are listed
_LINES = {  # on a scale of a column, of the log of the target or not: what is said of a line
    (IDENTITY, False): ("linearly", "by"),
    (IDENTITY, True): ("exponentially", "exponentially, by"),
    ("log", False): ("with the logarithm", "in proportion to the logarithm of {}, by"),
    ("log", True): ("as a power", "as a power of {}, by"),
    ("sqrt", False): ("with the square root", "in proportion to the square root of {}, by"),
}
_BEYOND = {"continues beyond": "continues, and ", "returns beyond": "returns to its average, and "}
LEVELS = (0.1, 0.9), (0.25, 0.75)  # quantiles of a column at which the effect of another is shown
MAX_ROWS_OF_CYCLE = 400  # at which the highest and lowest are looked for
MAX_ROUGH = 400  # values of a column at which a curve that differs between neighbours is computed
LEAST_COMMON = 0.1  # part of a column, from which its values at levels of another are compared
OPEN, WAYS = "may rise or fall", ("rises", "falls")
FLAT = ("hardly changes", "hardly swings", OPEN)


class Sentences:
    """Writes amounts of a target, with its unit or as factors, and names of parts of columns."""

    def __init__(self, axes: Sequence[Axis], *, y_name: str, unit: str, scale: str) -> None:
        self.axes, self.y_name, self.unit, self.scale = axes, y_name, unit, scale
        self.names = [axis.name for axis in axes]

    def name(self, part: Part, parts: Sequence[Part]) -> str:
        """Name a part of an effect by its column and, among several, by what it is."""
        axis = self.axes[part.column]
        if sum(one.column == part.column for one in parts) <= 1:
            return axis.name
        period, kind = axis.extent * part.period, "trend"
        if part.is_season:
            word = calendar_word(period, unit=axis.unit)
            kind = f"{word}season" if word else f"cycle of {duration(period, unit=axis.unit)}"
        region = part.region(1.0)
        where = f" {region.text(axis, is_only=True)}" if region else ""
        return f"{axis.name} ({kind}{where})"

    def begun(self, begin: str, text: str) -> str:
        """Begin a sentence by a lead, or by a capital unless its first word is a given name."""
        is_name = self.y_name != UNNAMED and f"{text} ".startswith(f"{self.y_name} ")
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
            text = f"a factor of {factor_text(*_exp([sign * value, low, high]))}"
        else:
            text, unit = between(sign * value, low, high, ""), f" {self.unit}".rstrip() + per
        number, bracket, ends = text.partition(" (")
        return f"{number}{unit}{bracket}{ends}"

    def between(self, low: float, high: float) -> str:
        """Write a range of changes on the scale of the target."""
        if self.scale == "log":
            first, last = map(factor_text, _exp([low, high]))
            return f"a factor of {first} to {last}"
        return f"{with_unit(low, '')} to {with_unit(high, self.unit)}"

    def one_of_two(self, column: int, value: float) -> str:
        """Write one of the two values of a column, given in the unit interval, in full."""
        axis = self.axes[column]
        if axis.origin is None and not axis.levels:
            return f"{axis.low + axis.extent * value:.10g}"
        return axis.end(value)

    def turn(self, fact: Fact, curve: Curve, axis: Axis, view: Scale) -> tuple[Fact, str]:
        """Say by how much a curve rises and falls before and after the place where it turns."""
        first, then = fact.predicate.split(" then ")
        top = float(np.interp(fact.value, curve.places, curve.mean))
        by_first, by_then = map(self.amount, (top - curve.mean[0], curve.mean[-1] - top))
        fact, place = placed(fact, axis, view)
        begin, last = (axis.end(float(one)) for one in view.inverse(curve.places[[0, -1]]))
        text = f"{first} by {by_first} from {begin} until {place}"
        return fact, f"{text} and {then} by {by_then} until {last}"

    def signed(self, value: float, spread: float) -> str:
        """Write a difference on the scale of the target with its sign, or as a factor.

        Factors have decimals that show a hundredth of a ``spread`` of their logs.
        """
        if self.scale == "log" and spread < 2.0:  # a standard deviation of logs
            decimals = max(2, 1 - int(np.floor(np.log10(max(spread, 1e-6)))))
            return f"{np.exp(value):.{decimals}f}"
        if self.scale == "log":
            return number(_exp([value])[0])
        return f"{'+' if value >= 0 else '-'}{self.amount(value)}"


def placed(fact: Fact, axis: Axis, view: Scale) -> tuple[Fact, str]:
    """Return a place on the scale of a column in the units of the column, and its text."""
    ends = view.inverse(np.array(fact.ends)).tolist()
    moved = fact.moved(*ends).scaled(axis.extent, axis.low)
    text = axis.end(ends[0]) if ends[1] == ends[2] else axis.place(*ends)  # one of few values
    return replace(moved, unit=axis.unit), text


class ComponentFacts:
    """The facts about one component, with their sentences.

    With one column, the sentences begin with where the component plays a part; with several, with
    the column and its share. A trend is described with the cycles along its column, its ``whole``:
    the data do not show to which of them an average belongs. It ``is_hidden`` if outliers mask it.
    """

    def __init__(
        self, explained: ExplainedFunction, part: Part, say: Sentences, *, is_hidden: bool
    ) -> None:
        self._explained, self._part, self._say, self._is_hidden = explained, part, say, is_hidden
        self._axis, self._x = say.axes[part.column], explained.X[:, part.column]
        self._name, self._is_only = self._axis.name, len(say.axes) == 1
        self._subject = explained.model.columns.text_of(part.expression)
        self._region = part.region(explained.ends(part.column)[1], explained.parameters)
        self._whole = part if self._region or not part.is_free else self._with_cycles()
        self._view = view = explained.view(self._whole)
        self._is_linear, self._is_log = view.name == IDENTITY, say.scale == "log"
        more = f" + {view.offset:g}" if view.offset else ""  # before a logarithm is taken
        self._viewed = f"{self._name}{more}"
        where = self._region.text(self._axis, is_only=self._is_only) if self._region else ""
        name = self._name if where else say.name(part, explained.parts)
        lead = f"{name} explains {percent(part.share)} of the variance of the fit: "
        if part.share < 0:
            lead = f"{name}, which other effects offset: "
        elif part.share >= WHOLE:
            lead = f"{name} explains the variance of the fit, in part offset by other effects: "
        where = where and f"{where}, "
        self._begin = capital(where) if self._is_only else f"{lead}{where}"
        self._changes = say.begun(self._begin, say.y_name)  # a verb follows
        self._has_two_values = len(np.unique(self._x)) == 2

    def all(self) -> Iterator[Fact]:
        """Say what the component does, how much it explains, and how it continues."""
        if self._part.span <= STILL * self._explained.model.scale.width:
            text = f"{self._changes} does not vary over the data."
            how = "its range over the rows"
            yield Fact(self._subject, "does not vary", 0.0, evidence=how, text=text)
            return
        said, ahead = self._within_and_beyond()
        yield from said
        if len(self._explained.parts) > 1 or not self._is_only:
            share, how = self._part.share, "covariance with the fit"
            text = f"It explains {percent(share)} of the variance of the fit." * self._is_only
            yield Fact(self._subject, "share", share, evidence=how, text=text)
        if not (self._part.is_of_levels or self._part.is_season):
            yield from self._carried()
        if self._region and self._region.has_ended:
            text, how = "It ends before the data do.", "place of its change-point"
            yield Fact(self._subject, "ends", evidence=how, text=text)
        yield from ahead

    def _carried(self) -> Iterator[Fact]:
        """Name the row without which little is left of the component, if there is one."""
        left = self._explained.left_without(self._part)
        if left.min(initial=1.0) < HALF:
            at, how = int(np.argmin(left)), "predictions without this row, at the same parameters"
            row, place = self._explained.model.given_rows[at], self._axis.end(self._x[at])
            text = f"Row {row}, where {self._name} is {place}, carries this effect: without the row"
            fact = Fact(self._subject, "is carried by a row", float(left[at]), evidence=how)
            yield fact.said(f"{text}, {percent(left[at])} of it is left.")

    def _within_and_beyond(self) -> tuple[list[Fact], list[Fact]]:
        """Describe the component within the data, and beyond them, if it is surely there."""
        part, region = self._part, self._region
        sure = self._explained.probability(self._whole)
        if self._is_hidden or (self._is_only and sure < SURE):
            has = "depends on"
            if part.is_season:
                period = self._axis.extent * part.period
                has = f"has a cycle of {duration(period, unit=self._axis.unit)} in"
            what = f"whether {self._say.y_name} {has} {self._name}"
            text, how = f"outliers mask {what}", "outliers that mask it"
            if not self._is_hidden:
                text = perhaps(f"it is uncertain {what}", sure)
                how = "kernels that have such a component"
            fact = Fact(self._subject, "is possible", probability=sure, evidence=how)
            return [self._begun(fact, text)], []
        if part.is_of_levels or self._explained.levels_probability(part.column) > HALF:
            return self._levels(), []
        if self._shows_period(part, region):
            return self._repeating(region)
        if self._whole is not part:
            curve = level_of(self._explained, self._whole)
            said = self._around(curve) or [self._curve(curve, direction(curve, self._subject))]
        else:
            said = self._along((region and region.inner) or WHOLE_COLUMN)
        said = self._in_groups(said)
        if region or self._has_two_values or self._axis.levels:
            return said, []
        return [*said, *self._drift()], self._beyond(said)

    def _begun(self, fact: Fact, text: str) -> Fact:
        """Return a fact with a sentence that says first of which part of the data it is."""
        return fact.said(f"{self._say.begun(self._begin, text)}.")

    def _with_cycles(self) -> Part:
        part, own = self._part, self._explained.along(self._part.column)
        seasons = [one for one in own if one.is_season and self._shows_period(one)]
        cycles = [one for one in seasons if self._explained.probability(one) >= SURE]
        return replace(part.joined_with(*cycles), is_whole=True) if cycles else part

    def _shows_period(self, part: Part, region: Region | None = None) -> bool:
        """Whether a component repeats at least twice where it plays a part."""
        if region is None:
            return bool(part.period <= np.ptp(self._x))  # not if it is nan
        begin, end = region.longest
        return part.is_season and part.period <= (end - begin) / 2  # else it is not seen twice

    @property
    def _regular_step(self) -> float:
        """The step between rows along the column if it is nearly regular, else zero."""
        steps = np.diff(np.unique(self._x))
        middle = float(np.median(steps))
        return middle if steps.max() < 2.5 * middle else 0.0  # nearly regular

    def _along(self, ends: tuple[float, float]) -> list[Fact]:
        values, is_rough = self._values(ends)
        curve = replace(curve_of(self._explained, self._part, values), is_rough=is_rough)
        if self._region and curve.reach < self._explained.model.noise_variance**0.5:  # nearly flat
            text, how = f"{self._changes} hardly changes.", "range of the curve"
            return [Fact(self._subject, "hardly changes", curve.reach, evidence=how, text=text)]
        fact = direction(curve, self._subject)
        if self._has_two_values and fact.probability >= LIKELY * curve.present:
            return [self._difference(fact, curve.places)]
        said = self._curve(curve, fact)
        most = self._most(curve) if said.predicate in ("rises", "falls") else None
        if most is None:
            return [said]
        if most.predicate == "follows its scale":
            how = f"nearly {_LINES[self._view.name, self._is_log][1].format(self._viewed)}"
            how = how.removesuffix(", by")
        else:
            most, place = placed(most, self._axis, self._view)
            how = f"half of it until {place}"
            if most.predicate == "jumps":
                how = f"most of it around {perhaps(place, most.probability)}"
        return [said.said(f"{said.text.removesuffix('.')}, {how}."), most]

    def _in_groups(self, said: list[Fact]) -> list[Fact]:
        """Add what predictions do within groups and between them, if these slopes differ.

        A rise or fall on average over all rows that those of each group contradict is not said.
        """
        if (slopes := within_and_between(self._explained, self._part)) is None:
            return said
        say, series = self._say, self._explained.model.series
        groups, texts, found = listing([say.names[one] for one in series.groups]), [], []
        for of, ends in zip(("within", "between"), slopes, strict=True):
            way, how = "rises" if ends[0] > 0 else "falls", f"slope of predictions {of} groups"
            fact = Fact(self._name, f"{way} {of} {groups}", *ends, evidence=how)
            step, unit, per = self._step(fact)
            fact = fact.scaled(step)
            texts.append(f"{way} by {say.amount(fact.value, per=f' {per}')}")
            found.append(say.measured(fact, f"/{unit}"))
        within, between = texts
        text = f"within each {groups}, {say.y_name} {within}, and from one to the next it {between}"
        first = said[0].predicate.split()[0]
        if first in WAYS and not found[0].predicate.startswith(first):
            return [self._begun(found[0], text), found[1]]
        return [*said, found[0].said(f"{capital(text)}."), found[1]]

    def _curve(self, curve: Curve, fact: Fact, begin: str = "") -> Fact:
        """Describe a line, a rise or fall, a turn, or many, along the column on a scale.

        The sentence says between which ends a curve rises or falls, unless it has a beginning.
        """
        say, word, begin, has_ends = self._say, fact.predicate, begin or self._changes, not begin
        if fact.probability < SURE * curve.present:
            return self._uncertain_direction(curve, fact)
        if word.endswith("linearly") and (self._view.name, self._is_log) not in _LINES:
            word = word.split()[0]
            fact = replace(fact, predicate=word).moved(*curve.measured(changes_of))
        if word.endswith("linearly"):
            fact, text = self._line(fact)
        elif " then " in word:
            fact, text = say.turn(fact, curve, self._axis, self._view)
        else:
            ends = (fact.low, fact.high) if word in ("rises", "falls") else ()
            text = f"{word} by {say.amount(fact.value, *ends)}" if fact.value else word
            at = [0, -1] if ends else [int(np.argmin(curve.mean)), int(np.argmax(curve.mean))]
            words = " from {} to {}" if ends else ", lowest at {} and highest at {}"
            if curve.is_rough and not ends:
                words = f" from one value to the next{words}"
            text += words.format(*self._ends_of(curve, at)) if has_ends else ""
            fact = say.measured(fact)
        return fact.said(f"{begin} {perhaps(text, fact.probability)}.")

    def _ends_of(self, curve: Curve, at: Sequence[int]) -> list[str]:
        """Write places of a curve, by their numbers, without digits that the data lack."""
        values = self._view.inverse(curve.places[at])
        if curve.is_rough:
            return self._axis.names_of(self._axis.low + self._axis.extent * values)
        return list(map(self._axis.end, values.tolist()))

    def _uncertain_direction(self, curve: Curve, fact: Fact) -> Fact:
        """Say where a curve surely rises or falls when it may do both on the whole."""
        ends = sorted((int(np.argmin(curve.mean)), int(np.argmax(curve.mean))))
        part = Fact(fact.subject, "{} between", evidence="lowest and highest place")
        part = rise_or_fall(curve, lambda curves: changes_of(curves[:, ends]), part)
        if self._axis.levels or curve.is_rough or part.probability < LIKELY * curve.present:
            by = self._say.amount(curve.reach)
            text = f"varies by {by}, in a direction that is uncertain"
            if self._axis.levels:
                text = f"differs by {by}, and it is uncertain which level is higher"
            is_open = Fact(fact.subject, "is open", evidence=fact.evidence)
            return is_open.said(f"{self._changes} {text}.")
        way, (first, last) = part.predicate.split()[0], self._ends_of(curve, ends)
        text = f"{way} by {self._say.amount(*part.ends)} from {first} to {last}"
        text = perhaps(text, part.probability)
        if ends != [0, len(curve.mean) - 1]:
            text = f"{text}, and its course elsewhere is uncertain"
        return self._say.measured(part.said(f"{self._changes} {text}."))

    def _line(self, fact: Fact) -> tuple[Fact, str]:
        step, unit, per = self._step(fact)
        fact, way = fact.scaled(step), fact.predicate.split()[0]
        amount = self._say.amount(*fact.ends, f" {per}" * self._is_linear)
        where = f" {per}" * (not self._is_linear)
        along, words = _LINES[self._view.name, self._is_log]
        fact, words = replace(fact, predicate=f"{way} {along}"), words.format(self._viewed)
        return self._say.measured(fact, f"/{unit}"), f"{way} {words} {amount}{where}"

    def _step(self, fact: Fact) -> tuple[float, str, str]:
        """Choose the step along the column by which a line is measured, its unit, and its words."""
        axis, view, name = self._axis, self._view, self._name
        if view.name == "log":
            return np.log(2.0) / view.width, "doubling", f"with each doubling of {self._viewed}"
        if not self._is_linear:
            return 1 / view.width, f"{view.name}({name})", "per unit of this root"
        step, unit, one = 1 / axis.extent, axis.unit, singular(axis.unit) or f"unit of {name}"
        year = SECONDS["years"] / SECONDS[unit] if axis.origin is not None else np.inf
        if axis.extent > 2 * year:  # two are enough
            step, unit, one = step * year, "years", "year"
        part, most = 10.0 ** np.floor(np.log10(1 / (3 * step))), abs(fact.value) * step
        if self._is_log and most > MAX_LOG_STEP:  # a factor of 1e9 says nothing
            part = 10.0 ** -np.ceil(np.log10(most / MAX_LOG_STEP))
        elif 1 / step < 300 or axis.origin is not None:  # steps along the column
            part = 1.0
        if part != 1:
            step, unit = step * part, f"{part:g} {unit}".rstrip()
            one = unit if axis.unit else f"{part:g} of {name}"
        return float(step), unit, f"per {'level' if axis.levels else one}"

    def _values(self, ends: tuple[float, float]) -> tuple[FloatArray, bool]:
        """Return values of the column between ends, and whether neighbours of them differ.

        They are all if they are few, or if neighbours differ, and evenly spaced otherwise.
        """
        limits = [self._explained.ends(self._part.column)]
        if not self._is_only and self._axis.origin is None:
            places = self._view.forward(self._x)
            limits.insert(0, central(self._x, places))  # unless the ends are among the others
        every = ((max(low, ends[0]), min(high, ends[1])) for low, high in limits)
        low, high = next((one for one in every if one[0] < one[1]), ends)
        values = np.unique(self._x)
        inside = values[(values >= low) & (values <= high)]
        if len(values) <= MAX_VALUES and len(inside) >= 2:
            return inside, False  # nothing is known between them
        grid = self._explained.steps(self._part, N_GRID, (low, high))
        if MAX_VALUES < len(inside) <= MAX_ROUGH:
            n_turns = len(peaks_of(self._explained.mean(self._part, inside)))
            if n_turns > len(inside) / 8:
                return inside, True
        at, rows = map(self._view.forward, (grid, inside))
        near = np.abs(at[:, None] - rows).min(axis=1, initial=np.inf) <= np.ptp(at) / (N_GRID - 1)
        near[[0, -1]] = True  # what draws do far from rows is not known
        return grid[near], False

    def _most(self, curve: Curve) -> Fact | None:
        """Say where or how most of a rise or fall happens, if that is worth saying."""
        fact = jump(curve, self._subject)
        if fact is not None and fact.probability >= SURE and fact.high - fact.low <= 0.25:
            return fact
        has_words = not self._is_linear and (self._view.name, self._is_log) in _LINES
        near = nearly_line(curve, self._subject) if has_words else None
        if near is not None and near.probability >= SURE:
            return near
        half = half_way(curve, self._subject, is_log=self._is_log)
        middle = (half.value - curve.places[0]) / np.ptp(curve.places) if half else HALF
        is_late = len(curve.mean) > MAX_VALUES and abs(middle - HALF) > 0.15  # of the column
        return half if is_late or not self._is_linear else None

    def _difference(self, fact: Fact, places: FloatArray) -> Fact:
        """Describe the effect of a column of two values, along which the curve is a line."""
        say, word, column = self._say, "higher" if fact.value > 0 else "lower", self._part.column
        fact = replace(fact, predicate=f"is {word}").scaled(float(np.ptp(places)))
        low, high = (say.one_of_two(column, one) for one in np.unique(self._x).tolist())
        than, measured = f"{word} by {say.amount(*fact.ends)} than", say.measured(fact)
        if self._is_log:
            factor, bracket, ends = factor_text(*measured.ends).partition(" (")
            than = f"{factor} times as high{bracket}{ends} as"
        text = f"where {self._name} is {high}, {say.y_name} is {than} where it is {low}"
        return self._begun(measured, perhaps(text, fact.probability))

    def _levels(self) -> list[Fact]:
        """Describe how the levels of a category differ from the average, the highest first."""
        if self._has_two_values:
            return self._along(WHOLE_COLUMN)
        curve, say = curve_of(self._explained, self._part, np.unique(self._x)), self._say
        facts = levels_of(curve, [*map(self._axis.end, curve.places.tolist())])
        n, spread = len(facts), facts[0].value - facts[-1].value
        measured = [
            replace(say.measured(one), subject=f"{self._name}={one.subject}") for one in facts
        ]
        if n > MAX_WITH_INTERVALS:
            texts = [say.signed(one.value, spread) for one in facts]
        elif self._is_log:
            texts = [factor_text(*one.ends) for one in measured]
        else:
            texts = [f"{'+' * (one.value >= 0)}{between(*one.ends, say.unit)}" for one in facts]
        texts = [f"{one.subject} {text}" for one, text in zip(facts, texts, strict=True)]
        about = f"{'factors of' if self._is_log else 'differences from'} the average"
        text = f"{listing(texts)} ({about})"
        if n > MAX_LEVELS:
            by = say.amount(float(np.std([fact.value for fact in facts])))
            text = _of_many(texts, facts, by, about)
        text = perhaps(text, facts[0].probability)
        first, *others = measured
        return [first.said(f"{self._begin or f'Levels of {self._name}: '}{text}."), *others]

    def _around(self, level: Curve) -> list[Fact]:
        """Say how far a trend is from its averages, if much farther than these are from each other.

        Its six lowest days or rows may be days of the year, such as holidays.
        """
        x = np.unique(self._x)
        values, say = self._explained.in_unit(self._explained.mean(self._part, x)), self._say
        ends = np.quantile(values, FEW_AROUND, method="nearest")  # single rows may be wrong
        if np.ptp(ends) <= FAR_AROUND * level.reach:
            return []
        low, high = (self._axis.place(x[values == end][0]) for end in ends)
        size, where = float(np.ptp(ends)), f"lowest at {low} and highest at {high}"
        if self._axis.origin is not None:
            moments = self._axis.low + self._axis.extent * x[np.argsort(values, kind="stable")]
            days, n = shared_days(np.array([*dict.fromkeys(np.floor(moments).tolist())][:6]))
            where = f"lowest on {listing(days)}" if n >= 4 else where
        fact = Fact(self._subject, "goes up and down", size, evidence="values at the rows")
        text = f"{self._changes} goes up and down by {say.amount(size)}, {where}."
        return [say.measured(fact).said(text)]

    def _drift(self) -> Iterator[Fact]:
        """Say how far a level wanders from one row to the next, if it is a random walk."""
        drift = self._explained.drift(self._part, self._regular_step)
        if drift > SMALL * self._part.span:
            drift, how = float(self._explained.in_unit(drift)), "parameters of the best kernel"
            text = f"Its level drifts by about {self._say.amount(drift)} from one row to the next."
            yield self._say.measured(Fact(self._subject, "drifts", drift, evidence=how, text=text))

    def _beyond(self, said: Sequence[Fact]) -> list[Fact]:
        """Say how a curve continues beyond the data; among other columns, only that of dates.

        What continues is the direction in which the curve is ``said`` to go; a jump is over.
        """
        axis, say = self._axis, self._say
        if not self._is_only and axis.origin is None:
            return []
        fact = beyond_of(self._explained, self._whole, self._subject)
        first, *more = (one.predicate for one in said)
        last = {"rises": 1, "falls": -1}.get(first.split(" then ")[-1].split()[0], 0)
        if last * fact.value <= 0 or "jumps" in more:
            fact = replace(fact, predicate=fact.predicate.replace("continues", "changes"))
        begin, end = self._explained.ends(self._part.column)
        place = axis.place(end + NEAR_BEYOND * (end - begin))
        is_plain = axis.origin is None and not axis.unit
        until = f"until {self._name} is {place}" if is_plain else f"until {place}"
        measured = say.measured(fact)
        if fact.probability < SURE:
            text = "Its course beyond the data is uncertain"
            if fact.high - fact.low <= self._explained.in_unit(self._part.span):  # else not known
                text = f"{text}: it changes by {say.between(fact.low, fact.high)} {until}"
            return [replace(measured, predicate="is open beyond", probability=1.0, text=f"{text}.")]
        way = f"{_BEYOND.get(fact.predicate, '')}{'rises' if fact.value > 0 else 'falls'}"
        text = perhaps(f"{way} by {say.amount(*fact.ends)} {until}", fact.probability)
        return [measured.said(f"Beyond the data it {text}.")]

    def _repeating(self, region: Region | None) -> tuple[list[Fact], list[Fact]]:
        """Describe a season, or a curve with a season around it, and how it continues."""
        part = self._part
        if part.is_season and part.period < 2 * self._regular_step:
            fact = Fact(self._subject, "is faster than the rows", evidence="two gaps between rows")
            text = f"a cycle in {self._name} that is faster than the rows, or seems so"
            return [self._begun(fact, text)], []
        low, high = self._explained.ends(part.column)
        begin, end = (region.inner or region.longest) if region else WHOLE_COLUMN
        ends = max(low, begin), min(high, end)
        sizes, grows, lasts = season(self._explained, part, ends, self._subject)
        if part.is_season:
            said, ahead = self._cycle(sizes, grows, lasts, self._begin)
            return said, [] if region is not None and region.has_ended else ahead
        level = level_of(self._explained, self._whole)
        said = [self._curve(level, direction(level, self._subject))]
        ahead = self._beyond(said)
        if sizes[0].probability >= SURE:
            cycle, beyond = self._cycle(sizes, grows, lasts, "Around it there is ")
            said, ahead = [*said, *cycle], [*ahead, *beyond]
        return said, ahead

    def _cycle(
        self, sizes: Sequence[Fact], grows: Fact, lasts: Fact, begin: str
    ) -> tuple[list[Fact], list[Fact]]:
        """Describe a cycle by its swing, and its lowest and highest points, last and first."""
        (swing, *last), first = sizes[:3], sizes[3:]
        said = self._season(swing, last, begin)
        if self._part.is_season and not self._region:
            said += self._level_of_cycle(swing.value * max(1.0, 1 / grows.value))
        # otherwise the first and the last cycle are alike
        changes = max(grows.value, 1 / grows.value) >= 1.25 and grows.probability >= SURE
        changes &= self._part.every_period[-1] < 1.02 * self._part.period  # no longer one bends it
        if changes:
            text = f" from {self._say.amount(swing.value / grows.value)} in the first cycle"
            if self._is_log:
                between_first = self._say.between(*(one.value for one in first))
                text = f": in the first cycle it was {between_first}"
            text = f"Its swing has {'grown' if grows.value > 1 else 'shrunk'}{text}"
            said.append(grows.said(f"{perhaps(text, grows.probability)}."))
            said += [self._say.measured(one) for one in first if self._is_log]
        if changes and grows.value < 1 and lasts.predicate == "repeats beyond":
            return said, []
        return said, [self._season_beyond(lasts)]

    def _season(self, swing: Fact, ends: Sequence[Fact], begin: str) -> list[Fact]:
        """Say with which period it repeats, how large it is, and when it is highest.

        Places of the last cycle are named if the calendar has a name for them.
        """
        say, axis, period = self._say, self._axis, self._period(swing)
        word = calendar_word(*period.ends, unit=axis.unit)
        noun = f"{word}season in {self._name}"
        if not word:
            every = duration(*period.ends, unit=axis.unit)
            noun = f"cycle in {self._name} that repeats every {every}"
        how = f"{'' if word else ','} with a swing of {say.amount(swing.value)}"
        amounts = [swing]
        if self._is_log:
            factors = say.between(*(one.value for one in ends))
            how = f" {'that' if word else 'and'} changes {say.y_name} by {factors}"
            amounts += ends
        n, whole = cycles_of_longer(self._explained, self._part, float(np.ptp(self._x)))
        which = "in its last cycle" if n == 1 else f"on average over its last {n} cycles"
        text = perhaps(f"a {noun}{how} {which}", swing.probability)
        if named := self._extremes(word.strip(), n, whole):
            text = f"{text}, {' and '.join(named)}"
        return [period.said(f"{say.begun(begin, text)}."), *map(say.measured, amounts)]

    def _extremes(self, word: str, n: int, whole: Part) -> list[str]:
        """Name when the last n cycles are highest and lowest on average, if rows are not few.

        Several in a row are named if it is uncertain which of these it is.
        """
        end, span = float(self._x.max()), n * self._part.period
        rows = np.unique(self._x[self._x > end - span * (1 - STILL)])
        rows = rows[:: -(-len(rows) // MAX_ROWS_OF_CYCLE)]
        names = [self._axis.name_in(word, place) for place in rows.tolist()]
        if not (all(names) and self._regular_step and len(rows) >= 4):  # rows in one cycle
            return []
        known = [*dict.fromkeys(names)]  # in the order of the cycle
        is_of = np.array(names)[:, None] == known
        curve = curve_of(self._explained, whole, np.append([end - span, end], rows))

        def means(curves: FloatArray) -> FloatArray:
            slopes = (curves[:, 1] - curves[:, 0]) / span
            waves = curves[:, 2:] - np.outer(slopes, rows - end)
            return waves @ is_of / is_of.sum(axis=0)

        found = []
        for word, at in (("highest", np.argmax), ("lowest", np.argmin)):
            best = int(at(means(curve.mean[None])[0]))
            found_at = at(means(curve.draws), axis=1)
            shares = np.bincount(found_at, minlength=len(known)) / len(curve.draws)
            if text := _named_around(best, shares, known):
                found.append(f"{word} {text}")
        return found

    def _period(self, swing: Fact) -> Fact:
        part, axis, ends = self._part, self._axis, (np.nan, np.nan)
        for _, entry in part.periods:
            if np.isclose(np.exp(part.theta_of_all[entry]), part.period):
                ends = tuple(interval(np.exp(self._explained.parameters[:, entry])).tolist())
        how, sure = "parameter of the best kernel", swing.probability
        fact = Fact(swing.subject, "repeats", part.period, *ends, axis.unit, sure, how)
        return fact.scaled(axis.extent)

    def _season_beyond(self, fact: Fact) -> Fact:
        noun, axis = "it" if self._part.is_season else "the cycle", self._axis
        if fact.probability < SURE:
            text = f"Whether {noun} repeats beyond the data is uncertain."
            return replace(fact, predicate="is open beyond", probability=1.0, text=text)
        text = f"{capital(noun)} repeats beyond the data"
        if fact.predicate != "repeats beyond":
            fact = replace(fact.scaled(axis.extent), unit=axis.unit)
            after = duration(fact.value, unit=axis.unit)
            text = f"Beyond the data half of its swing is left after {after}"
        return fact.said(f"{perhaps(text, fact.probability)}.")

    def _level_of_cycle(self, swing: float) -> list[Fact]:
        """Say where the averages of a cycle lead, if they certainly lead far for its swing."""
        part = self._part
        if len(self._explained.along(part.column)) > 1:
            return []  # the other part has the trend
        whole = replace(part, is_season=False, is_whole=True)  # with trends of other kernels
        curve = level_of(self._explained, whole)
        level = direction(curve, self._subject)
        word, *linearly = level.predicate.split()
        extent = float(np.ptp(self._x)) if linearly else 1.0
        is_far = abs(level.value) * extent >= 0.2 * swing and level.probability >= CERTAIN
        if not is_far or word not in ("rises", "falls") or "then" in linearly:
            return []
        return [self._curve(curve, level, "Its average")]


class InteractionFacts:
    """The facts about an interaction: the change along a column at values or levels of the other.

    They are compared over values that rows of all of these have. Of a category of many levels, the
    standard deviation between them is given; of two categories, the two levels that together exceed
    both effects most, and those that fall short of them most.
    """

    def __init__(self, explained: ExplainedFunction, pair: Interaction, say: Sentences) -> None:
        self._explained, self._pair, self._say = explained, pair, say
        names, sure = listing([say.names[one] for one in pair.columns]), explained.probability(pair)
        how = "kernels in which the columns are multiplied"
        self._about = Fact(names, "interact", pair.share, probability=sure, evidence=how)

    def all(self) -> list[Fact]:
        """Say how much both columns explain besides the effects of each, and how."""
        about, share = self._about, self._pair.share
        found = self._details()
        found = [] if all(one.predicate == OPEN for one in found) else found
        clauses = [one.text for one in found if one.text]
        how = f": {listing(clauses)}" if clauses else ", in a way that is uncertain"
        size = f"explains {percent(share)} of the variance of the fit"
        if share < 0:
            size = "other effects offset"
        text = f"{perhaps(f'{about.subject} interact, which {size}', about.probability)}{how}."
        return [about.said(text), *(one.said("") for one in found)]

    def _details(self) -> list[Fact]:
        """Say how the effect of one depends on the other, in clauses of a sentence."""
        explained, axes = self._explained, self._say.axes
        values = {column: np.unique(explained.X[:, column]) for column in self._pair.columns}
        ordered = [one for one in values if explained.levels_probability(one) <= HALF]
        every = [one for one in ordered if not explained.has_levels(one, self._pair)]
        if not every:
            return self._of_levels()
        spans = {one.column: one.span for one in sorted(explained.parts, key=lambda one: one.span)}
        column = max(every, key=lambda one: (len(values[one]) > 2, spans[one]))
        other = next(one for one in values if one != column)
        levels = values[other]
        if axes[other].levels and len(levels) > MAX_LEVELS:
            return self._between_levels(column, other, levels)
        tries, x = [(levels, 0.0)], explained.X[:, other]
        if other in every and len(levels) > 2:
            tries = [(np.quantile(x, one, method="nearest"), one[0]) for one in LEVELS]
        for levels, width in tries:
            kept, ends = self._common(column, other, levels, width)
            if len(kept) > 1:
                return self._by_levels(column, other, ends, kept)
        return self._untold(column, other)

    def _untold(self, column: int, other: int) -> list[Fact]:
        if abs(self._pair.share) < SMALL:
            return []
        text = f"the data cannot tell how, as rows that differ in {self._say.names[other]} have"
        text = f"{text} hardly any range of {self._say.names[column]} in common"
        return [replace(self._about, predicate="cannot be told").said(text)]

    def _ranges(
        self, column: int, other: int, levels: FloatArray, width: float
    ) -> tuple[list[FloatArray], FloatArray]:
        """Return values of a column in the rows of each level of another, and ends (n_levels, 2).

        These are rows whose ranks are within a width of that of the level.
        """
        x, z = self._explained.X[:, column], self._explained.X[:, other]
        ranks = rankdata(z) / len(z)
        near = [x[np.abs(ranks - ranks[z == level][0]) <= width] for level in levels]
        return near, np.array([central(one, one) for one in near])

    def _common(
        self, column: int, other: int, levels: FloatArray, width: float
    ) -> tuple[FloatArray, tuple[float, float]]:
        """Return levels whose rows have a range of a column in common, and the range.

        Those of the smallest range are left out until there is one, with rows of all levels in it.
        """
        least = LEAST_COMMON * float(np.ptp(self._explained.X[:, column]))
        x, ranges = self._ranges(column, other, levels, width)
        order = np.argsort(ranges[:, 0] - ranges[:, 1], kind="stable")
        for n in range(len(levels), 1, -1):
            low, high = ranges[order[:n], 0].max(), ranges[order[:n], 1].min()
            inside = [np.mean((x[one] >= low) & (x[one] <= high)) for one in order[:n]]
            if high - low >= least and min(inside) >= LEAST_COMMON:
                return levels[np.sort(order[:n])], (float(low), float(high))
        return levels[:0], WHOLE_COLUMN

    def _by_levels(
        self, column: int, other: int, ends: tuple[float, float], levels: FloatArray
    ) -> list[Fact]:
        """Say how the target changes along a column at each level of the other one."""
        say, axis, write = self._say, self._say.axes[column], self._say.axes[other].end
        if len(np.unique(self._explained.X[:, other])) == 2:
            write = partial(say.one_of_two, other)
        curves, quantity, begin = self._common_curves(column, other, ends, levels)
        about = replace(self._about, evidence="from {} to {}".format(*map(axis.end, ends)))
        reach, found = max(curve.reach for curve in curves), list[Fact]()
        facts = [_course(curve, about, reach=reach, quantity=quantity) for curve in curves]
        halves = self._half_ways(column, curves, facts)
        every = zip(map(write, levels.tolist()), curves, facts, halves, strict=True)
        for level, curve, fact, half in every:
            where = f"{'it' if found else say.names[other]} is {level}"
            whole = " on the whole" * (curve.detours and fact.predicate in WAYS)
            text = f"{fact.predicate}{whole} by {say.amount(*fact.ends)}{half}"
            if fact.predicate in FLAT:
                text = f"{fact.predicate} ({say.between(fact.low, fact.high)})"
            if " then " in fact.predicate:
                fact, text = say.turn(fact, curve, axis, self._view(column))
            else:
                fact = say.measured(fact)
            text = perhaps(f"{text} where {where}", fact.probability)
            fact = replace(fact, subject=f"{axis.name}, where {say.names[other]} is {level}")
            found.append(fact.said(f"{begin * (not found)}{text}"))
        words = {one.predicate for one in facts}
        if words == {"goes up and down"} and not _are_different(curves):
            return []
        if words - {*WAYS, *FLAT, "swings"}:  # not all are of one kind
            return found
        if (differ := self._differ(curves, about, quantity)) is None:
            return found if any(halves) else []
        found[-1] = found[-1].said(f"{found[-1].text}; {differ.text}")
        return [*found, differ.said("")]

    def _differ(self, curves: Sequence[Curve], about: Fact, quantity: Quantity) -> Fact | None:
        """Say by how much the largest change differs from the smallest, if that is certain."""
        changes = [float(quantity(one.mean[None])[0]) for one in curves]
        most, least = (curves[int(at(changes))].draws for at in (np.argmax, np.argmin))
        drawn = quantity(most) - quantity(least)
        sure = float(np.mean(drawn > 0))
        if sure < CERTAIN:
            return None
        size = max(changes) - min(changes), *interval(drawn).tolist()
        fact = replace(about, predicate="differ by", probability=sure).moved(*size)
        what = "swings" if quantity is swings_of else "changes"
        by = f"{'up to ' * (len(curves) > 2)}{self._say.amount(*size)}"
        return self._say.measured(fact).said(f"the {what} differ by {by}")

    def _common_curves(
        self, column: int, other: int, ends: tuple[float, float], levels: FloatArray
    ) -> tuple[list[Curve], Quantity, str]:
        """Return a curve for each level, what is measured of it, and the begin of the clauses.

        Along a season, these are the waves of the last cycle if they differ more than what changes
        from the first cycle to the last.
        """
        say, axis, explained = self._say, self._say.axes[column], self._explained
        own = explained.along(column)
        steps, season = explained.steps(own[0], 33, ends), ""
        period = max((one.period for one in own if one.is_season), default=np.inf)
        n_cycles = int((ends[1] - ends[0]) / period + STILL)
        if n_cycles:
            steps = np.linspace(ends[0], ends[0] + period * n_cycles, n_cycles + 1)
            season = ", apart from its season"
        curves = self._curves(column, other, steps, levels)
        if n_cycles:
            cycle = ends[1] - period * np.linspace(1, 0, POINTS_OF_CYCLE + 1)
            waves = self._curves(column, other, cycle, levels)
            swings, changes = (
                np.ptp([quantity(one.mean[None]) for one in some])
                for some, quantity in ((waves, swings_of), (curves, changes_of))
            )
            if swings > changes:
                length = duration(axis.extent * period, unit=axis.unit)
                return waves, swings_of, f"within {length} of {axis.name}, {say.y_name} "
        if len(np.unique(explained.X[:, column])) == 2:
            first, last = (say.one_of_two(column, one) for one in ends)
            return curves, changes_of, f"with {axis.name} {last} instead of {first}, {say.y_name} "
        first, last = map(axis.end, ends)
        return curves, changes_of, f"from {first} to {last} of {axis.name}{season}, {say.y_name} "

    def _view(self, column: int) -> Scale:
        """Return the scale on which the largest part along a column acts."""
        return self._explained.view(self._explained.along(column)[0])

    def _half_ways(self, column: int, curves: Sequence[Curve], facts: Sequence[Fact]) -> list[str]:
        """Say until where half of each rise or fall happens, if these places surely differ."""
        axis, view = self._say.axes[column], self._view(column)
        halves = [half_way(one, axis.name, is_log=self._say.scale == "log") for one in curves]
        known = [one for one in halves if one is not None and np.isfinite(one.low)]
        ways = {one.predicate for one in facts}
        are_known = len(known) == len(curves) and len(ways) == 1 and ways <= {*WAYS}
        if not are_known or max(one.low for one in known) <= min(one.high for one in known):
            return [""] * len(curves)
        return [f", half of it until {placed(one, axis, view)[1]}," for one in known]

    def _between_levels(self, column: int, other: int, levels: FloatArray) -> list[Fact]:
        """Say how much the change along a column differs between the levels of a category."""
        say, (lows, highs) = self._say, self._ranges(column, other, levels, 0.0)[1].T
        low, high = (np.quantile(*one, method="nearest") for one in ((lows, 0.75), (highs, 0.25)))
        kept = levels[(lows <= low) & (highs >= high)]
        is_wide = high - low >= LEAST_COMMON * np.ptp(self._explained.X[:, column])
        if len(kept) < HALF * len(levels) or not is_wide:
            return self._untold(column, other)
        ends = np.array([low, high])
        curves = self._curves(column, other, ends, kept)
        spread = float(np.std([one.mean[1] - one.mean[0] for one in curves]))
        drawn = np.std([changes_of(one.draws) for one in curves], axis=0)  # larger, by their errors
        size = spread, *(spread * interval(drawn) / np.median(drawn)).tolist()
        fact = replace(self._about, predicate="changes differ").moved(*size)
        first, last = map(say.axes[column].end, ends.tolist())
        text = f"the change of {say.y_name} from {first} to {last} of {say.names[column]} differs"
        by = f"with a standard deviation of {say.amount(*size)}"
        return [say.measured(fact).said(f"{text} between levels of {say.names[other]}, {by}")]

    def _of_levels(self) -> list[Fact]:
        """Say which levels of two categories surely exceed both effects, or fall short, most."""
        explained, pair, say = self._explained, self._pair, self._say
        points = np.unique(explained.X[:, pair.columns], axis=0)
        heights, drawn = map(explained.in_unit, explained.draws(pair, points))
        found, what = list[Fact](), "what both effects give"
        for word, does, sign in (("most", "exceeds", 1), ("least", "falls short of", -1)):
            at = int(np.argmax(sign * heights))
            if np.mean(sign * drawn[:, at] > 0) < CERTAIN:
                continue
            axes = zip((say.axes[one] for one in pair.columns), points[at].tolist(), strict=True)
            levels = listing([f"{axis.name} is {axis.end(value)}" for axis, value in axes])
            fact = replace(self._about, predicate=f"{word} together", evidence=levels)
            begin = f"{does} it" if found else f"{say.y_name} {does} {what}"
            text = f"{begin} most where {levels} ({say.signed(heights[at], np.ptp(heights))})"
            found.append(say.measured(fact.moved(float(heights[at]), np.nan, np.nan)).said(text))
        return found

    def _curves(
        self, column: int, other: int, steps: FloatArray, levels: FloatArray
    ) -> list[Curve]:
        """Compute a curve along steps of a column at each level of another one."""
        explained, both, n = self._explained, effect_of((column, other)), len(levels)
        points = np.column_stack([np.tile(steps, n), np.repeat(levels, len(steps))])
        mean, drawn = map(explained.in_unit, explained.draws(both, points))
        every = zip(np.split(mean, n), np.split(drawn, n, axis=1), strict=True)
        return [Curve(self._view(column).forward(steps), *one) for one in every]


def _of_many(texts: Sequence[str], facts: Sequence[Fact], by: str, about: str) -> str:
    """List the highest and lowest levels of those that surely differ from the average."""
    n, n_each = len(facts), MAX_LEVELS // 2
    surely = [text for text, one in zip(texts, facts, strict=True) if not one.low <= 0 <= one.high]
    if not surely:
        text = f"{n} levels have a standard deviation of {by}"
        return f"{text}, and none surely differs from the average"
    which = f"of {n} levels with a standard deviation of {by}"
    if len(surely) == n:
        which = f"the highest and lowest {which}"
    elif len(surely) <= MAX_LEVELS:
        which = f"{which}, all that surely differ"
    else:
        which = f"{which}, the highest and lowest of {len(surely)} that surely differ"
    return f"{listing([*surely[:n_each], *surely[n_each:][-n_each:]])} ({which}, {about})"


def _named_around(best: int, shares: FloatArray, names: Sequence[str]) -> str:
    """Name the part of a cycle around its best name that surely has the best one.

    It is empty if that is more than a quarter of the cycle.
    """
    first, last, n = best, best, len(names)
    while shares[np.arange(first, last + 1) % n].sum() < SURE:
        is_before = shares[(first - 1) % n] > shares[(last + 1) % n]
        first, last = first - is_before, last + (not is_before)
        if last - first >= max(2, n // 4):
            return ""
    preposition = names[best].split()[0]
    begin, end = (names[one % n].removeprefix(f"{preposition} ") for one in (first, last))
    if first == last:
        return names[best]
    is_pair = last == first + 1
    return f"{preposition} {begin} or {end}" if is_pair else f"between {begin} and {end}"


def _are_different(curves: Sequence[Curve]) -> bool:
    """Whether the first and the last curve surely differ by half of what they vary."""
    first, *_, last = curves
    apart = replace(last, mean=last.mean - first.mean, draws=last.draws - first.draws)
    least = HALF * max(one.reach for one in curves)
    return apart.reach > least and apart.probability(lambda one: apart.range_of(one) > 0) >= SURE


def _course(curve: Curve, about: Fact, *, reach: float, quantity: Quantity) -> Fact:
    """Say how a curve changes, by the swing of a season, by the ends or by the range.

    A curve whose range is not larger than that of its errors goes up and down by chance. One that
    may rise or fall hardly changes if both are small for the largest ``reach`` of the curves.
    """
    change, low, high = curve.measured(quantity)
    if quantity is swings_of:
        word = "swings" if change > HALF**2 * reach else "hardly swings"
        return replace(about, predicate=word).moved(change, low, high)
    errors = np.ptp(curve.draws - curve.mean, axis=1)
    is_seen = curve.reach > np.quantile(errors, INTERVAL_ENDS[1])
    if abs(change) < HALF * curve.reach and is_seen:
        return replace(about, predicate="goes up and down").moved(*curve.measured(curve.range_of))
    turned = direction(curve, about.subject)
    if " then " in turned.predicate or (turned.predicate == "goes up and down" and is_seen):
        return replace(turned, evidence=about.evidence)
    if low < 0 < high and max(-low, high) < HALF * reach:
        return replace(about, predicate="hardly changes", probability=1.0).moved(change, low, high)
    fact = rise_or_fall(curve, quantity, replace(about, predicate="{}"))
    return fact if fact.probability >= LIKELY else replace(fact, predicate=OPEN, probability=1.0)


def _exp(values: Sequence[float]) -> list[float]:
    return np.exp(np.clip(values, -LARGEST_LOG, LARGEST_LOG)).tolist()
