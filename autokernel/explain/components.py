"""The facts of a component of a fitted function, in their order, with their sentences."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from autokernel.data.periodogram import YEAR
from autokernel.explain.decomposition import SMALL, ExplainedFunction
from autokernel.explain.facts import (
    HALF,
    LIKELY,
    N_GRID,
    NEAR_BEYOND,
    SURE,
    Curve,
    Fact,
    beyond_of,
    central,
    curve_of,
    direction,
    half_way,
    heading,
    jump,
    level_of,
    levels_of,
    nearly_line,
    season,
)
from autokernel.explain.parts import WHOLE_COLUMN, Part, Region
from autokernel.explain.sentences import Said, Sentences
from autokernel.explain.words import (
    CERTAIN,
    between,
    calendar_word,
    capital,
    factor_text,
    interval,
    listing,
    percent,
    perhaps,
    readable,
    singular,
    with_unit,
)
from autokernel.expression import IDENTITY
from autokernel.typing import FloatArray

STILL = 1e-9  # largest span of a component that does not vary, in deviations of the target
MAX_VALUES = 20  # of a column, up to which a curve is followed from one to the next
FLAT = 1.0  # deviations of the noise, below which a curve within a part of a column is flat
MAX_PERIOD = 0.5  # of a part of a column, which shows a longer one less than twice
MIN_GROWTH = 1.25  # of the swing of a season, from its first cycle to the last, that is mentioned
MIN_LEVEL = 0.2  # of its swing, from which a change of the average of a cycle is mentioned
NEAR_MIDDLE = 0.15  # of a column, up to which half of a rise is expected to be half way
LEAST_OF_CYCLE = 4  # rows of the last cycle, from which the highest and the lowest are named
MAX_STEP = 2.5  # median steps, up to which rows are regular
MIN_YEARS = 2  # of a column of dates, from which a line is measured per year
MIN_STEPS, MAX_STEPS = 3, 300  # along a column, by one of which a line is measured
MAX_LOG_STEP = np.log(100.0)  # of a factor per unit of a column, above which it is per less
MAX_LEVELS, MAX_WITH_INTERVALS = 6, 4  # of a category whose differences are listed
MAX_BLUR = 0.25  # of a column, up to which the place of a jump is named
_LINES = {  # on a scale of a column, of the log of the target or not: what is said of a line
    (IDENTITY, False): ("linearly", "by"),
    (IDENTITY, True): ("exponentially", "exponentially, by"),
    ("log", False): ("with the logarithm", "in proportion to the logarithm of {}, by"),
    ("log", True): ("as a power", "as a power of {}, by"),
    ("sqrt", False): ("with the square root", "in proportion to the square root of {}, by"),
    ("sqrt", True): ("exponentially with the root", "exponentially with the square root of {}, by"),
}
_BEYOND = {"continues beyond": "continues, and ", "returns beyond": "returns to its average, and "}


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
        model, self._draws = explained.model, explained.parameters
        self._spread, self._noise = model.scale.width, model.noise_variance**0.5
        self._subject = model.columns.text_of(part.expression)
        self._region = part.region(explained.ends(part.column)[1], self._draws)
        self._whole = part if self._region or not part.is_free else self._with_cycles()
        self._view = view = explained.view(self._whole)
        self._is_linear, self._is_log = view.name == IDENTITY, say.scale == "log"
        more = f" + {view.offset:g}" if view.offset else ""  # before a logarithm is taken
        self._viewed = f"{self._name}{more}"
        where = self._region.text(self._axis, is_only=self._is_only) if self._region else ""
        name = self._name if where else say.name(part, explained.parts)
        lead = f"{name} explains {percent(part.share)} of the variance of the fit: "
        if part.share < 0:
            lead = f"{name} offsets other effects (share {percent(part.share)}): "
        where = where and f"{where}, "
        self._begin = capital(where) if self._is_only else f"{lead}{where}"
        self._changes = say.begun(self._begin, say.y_name)  # before a verb
        self._has_two_values = len(np.unique(self._x)) == 2

    def all(self) -> Iterator[Said]:
        """Say what the component does, how much it explains, and how it continues."""
        how = "covariance with the fit"
        share = Fact(self._subject, "share", self._part.share, evidence=how)
        if self._part.span <= STILL * self._spread:
            still = Fact(self._subject, "does not vary", 0.0, evidence="its range over the rows")
            yield still, f"{self._changes} does not vary over the data."
            return
        said, ahead = self._within_and_beyond()
        yield from said
        if not self._is_only:
            yield share, ""
        elif len(self._explained.parts) > 1:
            yield share, f"It explains {percent(share.value)} of the variance of the fit."
        if self._region and self._region.has_ended:
            ended = Fact(self._subject, "ends", evidence="place of its change-point")
            yield ended, "It ends before the data do."
        yield from ahead

    def _within_and_beyond(self) -> tuple[list[Said], list[Said]]:
        """Describe the component within the data, and beyond them, if it is surely there."""
        part, region = self._part, self._region
        sure = self._explained.probability(self._whole)
        if self._is_hidden or (self._is_only and sure < SURE):
            has = "has a cycle in" if part.is_season else "depends on"
            what = f"whether {self._say.y_name} {has} {self._name}"
            text, how = f"outliers mask {what}", "outliers that mask it"
            if not self._is_hidden:
                text = perhaps(f"it is uncertain {what}", sure)
                how = "kernels that have such a component"
            fact = Fact(self._subject, "is possible", probability=sure, evidence=how)
            return [(fact, f"{self._say.begun(self._begin, text)}.")], []
        if part.is_of_levels:
            return list(self._levels()), []
        if self._shows_period(part, region):
            return self._repeating(region)
        if self._whole is not part:
            said = [self._curve(*self._level())]
        else:
            said = self._along((region and region.inner) or WHOLE_COLUMN)
        if region or self._has_two_values or self._axis.levels:
            return said, []
        return [*said, *self._drift()], self._beyond(said)

    def _with_cycles(self) -> Part:
        part = self._part
        cycles = [p for p in self._explained.parts if p.is_season and p.column == part.column]
        cycles = [one for one in cycles if self._shows_period(one)]
        if not cycles:
            return part
        return replace(part.joined_with(*cycles), is_whole=True)

    def _shows_period(self, part: Part, region: Region | None = None) -> bool:
        """Whether a component repeats at least twice where it plays a part."""
        if region is None:
            return bool(part.period <= np.ptp(self._x))  # not if it is nan
        begin, end = region.longest
        return part.is_season and part.period <= MAX_PERIOD * (end - begin)

    @property
    def _regular_step(self) -> float:
        """The step between rows along the column if it is nearly regular, else zero."""
        steps = np.diff(np.unique(self._x))
        middle = float(np.median(steps))
        return middle if steps.max() < MAX_STEP * middle else 0.0

    def _along(self, ends: tuple[float, float]) -> list[Said]:
        """Describe the curve between two ends of the column."""
        curve = curve_of(self._explained, self._part, self._values(ends))
        if self._region and curve.reach < FLAT * self._noise:
            how = "range of the curve"
            still = Fact(self._subject, "hardly changes", curve.reach, evidence=how)
            return [(still, f"{self._changes} hardly changes.")]
        fact = direction(curve, self._subject)
        if self._has_two_values and fact.probability >= LIKELY * curve.present:
            return [self._difference(fact, curve.places)]
        said, text = self._curve(curve, fact)
        most = self._most(curve) if said.predicate in ("rises", "falls") else None
        if most is None:
            return [(said, text)]
        if most.predicate == "follows its scale":
            how = f"nearly {self._line_words.removesuffix(', by')}"
        else:
            most, place = self._place(most)
            how = f"half of it until {place}"
            if most.predicate == "jumps":
                how = f"most of it around {perhaps(place, most.probability)}"
        return [(said, f"{text.removesuffix('.')}, {how}."), (most, "")]

    def _curve(self, curve: Curve, fact: Fact, begin: str = "") -> Said:
        """Describe a line, a rise or fall, a turn, or many, along the column on a scale.

        The sentence says between which ends a curve rises or falls, unless it has a beginning.
        """
        say, word, begin, has_ends = self._say, fact.predicate, begin or self._changes, not begin
        if fact.probability < SURE * curve.present:
            return self._uncertain_direction(curve, fact, begin)
        if word.endswith("linearly"):
            fact, text = self._line(fact)
        elif " then " in word:
            first, then = word.split(" then ")
            top = float(np.interp(fact.value, curve.places, curve.mean))
            by_first, by_then = map(say.amount, (top - curve.mean[0], curve.mean[-1] - top))
            fact, place = self._place(fact)
            text = f"{first} by {by_first} until {place} and {then} by {by_then} from there on"
        else:
            ends = (fact.low, fact.high) if word in ("rises", "falls") else ()
            text = f"{word} by {say.amount(fact.value, *ends)}" if fact.value else word
            at = [0, -1] if ends else [np.argmin(curve.mean), np.argmax(curve.mean)]
            words = " from {} to {}" if ends else ", lowest at {} and highest at {}"
            text += words.format(*self._ends_of(curve.places[at])) if has_ends else ""
            fact = say.measured(fact)
        return fact, f"{begin} {perhaps(text, fact.probability)}."

    def _ends_of(self, places: FloatArray) -> list[str]:
        """Write places (n,) on the scale of the column without digits that the data lack."""
        return list(map(self._axis.end, self._view.inverse(places).tolist()))

    def _place(self, fact: Fact) -> Said:
        """Return a place on the scale of the column in the units of the column, and its text."""
        axis, ends = self._axis, self._view.inverse(np.array(fact.ends)).tolist()
        moved = fact.moved(*ends).scaled(axis.extent, axis.low)
        return replace(moved, unit=axis.unit), axis.place(*ends)

    def _uncertain_direction(self, curve: Curve, fact: Fact, begin: str) -> Said:
        """Say where a curve surely rises or falls when it may do both on the whole."""
        unknown = Fact(fact.subject, "is open", evidence=fact.evidence)
        ends = sorted((int(np.argmin(curve.mean)), int(np.argmax(curve.mean))))
        change = curve.measured(lambda curves: np.diff(curves[:, ends])[:, 0])
        sure = curve.probability(lambda curves: np.diff(curves[:, ends])[:, 0] * change[0] > 0)
        by = self._say.amount(curve.reach)
        if self._axis.levels:
            return unknown, f"{begin} differs by {by}, and it is uncertain which level is higher."
        if sure < LIKELY * curve.present:
            return unknown, f"{begin} varies by {by}, in a direction that is uncertain."
        way = "rises" if change[0] > 0 else "falls"
        first, last = self._ends_of(curve.places[ends])
        text = f"{way} by {self._say.amount(*change)} from {first} to {last}"
        part = Fact(fact.subject, f"{way} between", *change, "", sure, "lowest and highest place")
        elsewhere = ", and its course elsewhere is uncertain"
        if ends == [0, len(curve.mean) - 1]:
            elsewhere = ""
        return self._say.measured(part), f"{begin} {perhaps(text, sure)}{elsewhere}."

    @property
    def _line_words(self) -> str:
        """What is said of a line on the scale of the column, before its slope."""
        return _LINES[self._view.name, self._is_log][1].format(self._viewed)

    def _line(self, fact: Fact) -> Said:
        step, unit, per = self._step(fact)
        fact, way = fact.scaled(step), fact.predicate.split()[0]
        amount = self._say.amount(*fact.ends, f" {per}" * self._is_linear)
        where = f" {per}" * (not self._is_linear)
        fact = replace(fact, predicate=f"{way} {_LINES[self._view.name, self._is_log][0]}")
        return self._say.measured(fact, f"/{unit}"), f"{way} {self._line_words} {amount}{where}"

    def _step(self, fact: Fact) -> tuple[float, str, str]:
        """Choose the step along the column by which a line is measured, its unit, and its words."""
        axis, view, name = self._axis, self._view, self._name
        if view.name == "log":
            return np.log(2.0) / view.width, "doubling", f"with each doubling of {self._viewed}"
        if not self._is_linear:
            return 1 / view.width, f"{view.name}({name})", "per unit of this root"
        step, unit, one = 1 / axis.extent, axis.unit, singular(axis.unit) or f"unit of {name}"
        if axis.origin is not None and axis.extent > MIN_YEARS * YEAR:
            step, unit, one = step * YEAR, "years", "year"
        part, most = 10.0 ** np.floor(np.log10(1 / (MIN_STEPS * step))), abs(fact.value) * step
        if self._is_log and most > MAX_LOG_STEP:  # a factor of 1e9 says nothing
            part = 10.0 ** -np.ceil(np.log10(most / MAX_LOG_STEP))
        elif 1 / step < MAX_STEPS or axis.origin is not None:
            part = 1.0
        if part != 1:
            step, unit = step * part, f"{part:g} {unit}".rstrip()
            one = unit if axis.unit else f"{part:g} of {name}"
        return float(step), unit, f"per {'level' if axis.levels else one}"

    def _values(self, ends: tuple[float, float]) -> FloatArray:
        """Return values of the column between ends: all if they are few, or evenly spaced."""
        limits = [self._explained.ends(self._part.column)]
        if not self._is_only and self._axis.origin is None:
            places = self._view.forward(self._x)
            limits.insert(0, central(self._x, places))  # unless the ends are among the others
        every = ((max(low, ends[0]), min(high, ends[1])) for low, high in limits)
        low, high = next((one for one in every if one[0] < one[1]), ends)
        values = np.unique(self._x)
        inside = values[(values >= low) & (values <= high)]
        if len(values) <= MAX_VALUES and len(inside) >= 2:
            return inside  # nothing is known between them
        grid = self._explained.steps(self._part, N_GRID, (low, high))
        at, rows = map(self._view.forward, (grid, inside))
        near = np.abs(at[:, None] - rows).min(axis=1, initial=np.inf) <= np.ptp(at) / (N_GRID - 1)
        near[[0, -1]] = True  # what draws do far from rows is not known
        return grid[near]

    def _most(self, curve: Curve) -> Fact | None:
        """Say where or how most of a rise or fall happens, if that is worth saying."""
        fact = jump(curve, self._subject)
        if fact is not None and fact.probability >= SURE and fact.high - fact.low <= MAX_BLUR:
            return fact
        near = None if self._is_linear else nearly_line(curve, self._subject)
        if near is not None and near.probability >= SURE:
            return near
        half = half_way(curve, self._subject)
        middle = (half.value - curve.places[0]) / np.ptp(curve.places) if half else HALF
        is_late = len(curve.mean) > MAX_VALUES and abs(middle - HALF) > NEAR_MIDDLE
        return half if is_late or not self._is_linear else None

    def _difference(self, fact: Fact, places: FloatArray) -> Said:
        """Describe the effect of a column of two values, along which the curve is a line."""
        say, word, column = self._say, "higher" if fact.value > 0 else "lower", self._part.column
        fact = replace(fact, predicate=f"is {word}").scaled(float(np.ptp(places)))
        low, high = (say.one_of_two(column, one) for one in np.unique(self._x).tolist())
        than, measured = f"{word} by {say.amount(*fact.ends)} than", say.measured(fact)
        if self._is_log:
            factor, bracket, ends = _factor(measured).partition(" (")
            than = f"{factor} times as high{bracket}{ends} as"
        text = f"where {self._name} is {high}, {say.y_name} is {than} where it is {low}"
        return measured, f"{say.begun(self._begin, perhaps(text, fact.probability))}."

    def _levels(self) -> list[Said]:
        """Describe how the levels of a category differ from the average, the highest first."""
        if self._has_two_values:
            return self._along(WHOLE_COLUMN)
        curve, say = curve_of(self._explained, self._part, np.unique(self._x)), self._say
        places, facts = levels_of(curve, self._name)
        names, n = list(map(self._axis.end, places)), len(facts)
        spread, which = facts[0].value - facts[-1].value, ""
        texts = [say.signed(one.value, spread) for one in facts]
        measured = list(map(say.measured, facts))
        if n <= MAX_WITH_INTERVALS and self._is_log:
            texts = list(map(_factor, measured))
        elif n <= MAX_WITH_INTERVALS:
            texts = [f"{'+' * (one.value >= 0)}{between(*one.ends, say.unit)}" for one in facts]
        texts = list(map("{} {}".format, names, texts))
        if n > MAX_LEVELS:
            by = say.amount(float(np.std([fact.value for fact in facts])))
            which = f"the highest and lowest of {n} levels with a standard deviation of {by}, "
            texts = [*texts[: MAX_LEVELS // 2], *texts[-(MAX_LEVELS // 2) :]]
        about = "factors of" if self._is_log else "differences from"
        text = perhaps(f"{listing(texts)} ({which}{about} the average)", facts[0].probability)
        text = f"{self._begin or f'Levels of {self._name}: '}{text}."
        named = zip(measured, names, strict=True)
        first, *others = (replace(one, subject=f"{one.subject}={name}") for one, name in named)
        return [(first, text), *((one, "") for one in others)]

    def _level(self) -> tuple[Curve, Fact]:
        """Return the averages over a cycle, and where they lead."""
        curve = level_of(self._explained, self._whole)
        return curve, direction(curve, self._subject)

    def _drift(self) -> Iterator[Said]:
        """Say how far a level wanders from one row to the next, if it is a random walk."""
        drift = self._explained.drift(self._part, self._regular_step)
        if drift > SMALL * self._part.span:
            drift, how = float(self._explained.in_unit(drift)), "parameters of the best kernel"
            fact = Fact(self._subject, "drifts", drift, evidence=how)
            text = f"Its level drifts by about {self._say.amount(drift)} from one row to the next."
            yield self._say.measured(fact), text

    def _beyond(self, said: Sequence[Said]) -> list[Said]:
        """Say how a curve continues beyond the data; among other columns, only that of dates.

        What continues is the direction in which the curve is ``said`` to go; a jump is over.
        """
        axis, say = self._axis, self._say
        if not self._is_only and axis.origin is None:
            return []
        fact = beyond_of(self._explained, self._whole, self._subject)
        first, *more = (one.predicate for one, _ in said)
        if heading(first) * fact.value <= 0 or "jumps" in more:
            fact = replace(fact, predicate=fact.predicate.replace("continues", "changes"))
        begin, end = self._explained.ends(self._part.column)
        place = axis.place(end + NEAR_BEYOND * (end - begin))
        is_plain = axis.origin is None and not axis.unit
        until = f"until {self._name} is {place}" if is_plain else f"until {place}"
        measured = say.measured(fact)
        if fact.probability < SURE:
            text = "Its course beyond the data is uncertain"
            if fact.high - fact.low <= self._explained.in_unit(self._part.span):  # else anything
                text = f"{text}: it changes by {say.between(fact.low, fact.high)} {until}"
            return [(replace(measured, predicate="is open beyond", probability=1.0), f"{text}.")]
        way = f"{_BEYOND.get(fact.predicate, '')}{'rises' if fact.value > 0 else 'falls'}"
        text = perhaps(f"{way} by {say.amount(*fact.ends)} {until}", fact.probability)
        return [(measured, f"Beyond the data it {text}.")]

    def _repeating(self, region: Region | None) -> tuple[list[Said], list[Said]]:
        """Describe a season, or a curve with a season around it, and how it continues."""
        part = self._part
        if part.is_season and part.period < 2 * self._regular_step:
            how = "two gaps between rows"
            fact = Fact(self._subject, "is faster than the rows", evidence=how)
            text = f"a cycle in {self._name} that is faster than the rows, or seems so."
            return [(fact, self._say.begun(self._begin, text))], []
        (low, high), own = self._explained.ends(part.column), WHOLE_COLUMN
        if region is not None:
            own = region.inner or region.longest
        ends = max(low, own[0]), min(high, own[1])
        sizes, grows, lasts = season(self._explained, part, ends, self._subject)
        if part.is_season:
            said, ahead = self._cycle(sizes, grows, lasts, self._begin)
            return said, [] if region is not None and region.has_ended else ahead
        said = [self._curve(*self._level())]
        ahead = self._beyond(said)
        if sizes[0].probability >= SURE:
            cycle, beyond = self._cycle(sizes, grows, lasts, "Around it there is ")
            said, ahead = [*said, *cycle], [*ahead, *beyond]
        return said, ahead

    def _cycle(
        self, sizes: Sequence[Fact], grows: Fact, lasts: Fact, begin: str
    ) -> tuple[list[Said], list[Said]]:
        """Describe a cycle by its swing, and its lowest and highest points, last and first."""
        (swing, *last), first = sizes[:3], sizes[3:]
        said = self._season(swing, last, begin)
        if self._part.is_season and not self._region:
            said += self._level_of_cycle(swing.value * max(1.0, 1 / grows.value))
        changes = max(grows.value, 1 / grows.value) >= MIN_GROWTH and grows.probability >= SURE
        if changes:
            text = f" from {self._say.amount(swing.value / grows.value)} in the first cycle"
            if self._is_log:
                between_first = self._say.between(*(one.value for one in first))
                text = f": in the first cycle it was {between_first}"
            text = f"Its swing has {'grown' if grows.value > 1 else 'shrunk'}{text}"
            said += [(grows, f"{perhaps(text, grows.probability)}.")]
            said += [(self._say.measured(one), "") for one in first if self._is_log]
        if changes and grows.value < 1 and lasts.predicate == "repeats beyond":
            return said, []
        return said, [self._season_beyond(lasts)]

    def _season(self, swing: Fact, ends: Sequence[Fact], begin: str) -> list[Said]:
        """Say with which period it repeats, how large it is, and when it is highest.

        Places of the last cycle are named if the calendar has a name for them.
        """
        say, axis, period = self._say, self._axis, self._period(swing)
        word = calendar_word(*period.ends, axis.unit)
        noun = f"{word}season in {self._name}"
        if not word:
            every = between(*readable(*period.ends, axis.unit))
            noun = f"cycle in {self._name} that repeats every {every}"
        how = f"{'' if word else ','} with a swing of {say.amount(swing.value)}"
        amounts = [swing]
        if self._is_log:
            factors = say.between(*(one.value for one in ends))
            how = f" {'that' if word else 'and'} changes {say.y_name} by {factors}"
            amounts += ends
        text = perhaps(f"a {noun}{how} in its last cycle", swing.probability)
        named = [axis.name_in(word.strip(), place) for place in self._extremes()]
        if named and all(named):
            low, high = named
            text = f"{text}, highest {high} and lowest {low}"
        measured = ((say.measured(one), "") for one in amounts)
        return [(period, f"{say.begun(begin, text)}."), *measured]

    def _extremes(self) -> list[float]:
        """Return where the last cycle is lowest and highest, without a place if rows are few."""
        end, period = float(self._x.max()), self._part.period
        rows = np.unique(self._x[self._x > end - period * (1 - STILL)])
        if not (self._regular_step and len(rows) >= LEAST_OF_CYCLE):
            return []
        first, last, *values = self._explained.mean(
            self._part, np.array([end - period, end, *rows])
        )
        wave = np.array(values) - (last - first) * (rows - end) / period
        return [float(rows[np.argmin(wave)]), float(rows[np.argmax(wave)])]

    def _period(self, swing: Fact) -> Fact:
        part, axis, ends = self._part, self._axis, (np.nan, np.nan)
        for _, entry in part.periods:
            if np.isclose(np.exp(part.theta_of_all[entry]), part.period):
                ends = tuple(interval(np.exp(self._draws[:, entry])).tolist())
        how, sure = "parameter of the best kernel", swing.probability
        fact = Fact(swing.subject, "repeats", part.period, *ends, axis.unit, sure, how)
        return fact.scaled(axis.extent)

    def _season_beyond(self, fact: Fact) -> Said:
        """Say how a season continues beyond the data."""
        noun, axis = "it" if self._part.is_season else "the cycle", self._axis
        if fact.probability < SURE:
            unknown = replace(fact, predicate="is open beyond", probability=1.0)
            return unknown, f"Whether {noun} repeats beyond the data is uncertain."
        text = f"{capital(noun)} repeats beyond the data"
        if fact.predicate != "repeats beyond":
            fact = replace(fact.scaled(axis.extent), unit=axis.unit)
            value, _, _, unit = readable(fact.value, np.nan, np.nan, axis.unit)
            text = f"Beyond the data half of its swing is left after {with_unit(value, unit)}"
        return fact, f"{perhaps(text, fact.probability)}."

    def _level_of_cycle(self, swing: float) -> list[Said]:
        """Say where the averages of a cycle lead, if they certainly lead far for its swing."""
        part = self._part
        if any(one.column == part.column and one is not part for one in self._explained.parts):
            return []  # which has the trend
        curve, level = self._level()
        word, *linearly = level.predicate.split()
        extent = float(np.ptp(self._x)) if linearly else 1.0
        is_far = abs(level.value) * extent >= MIN_LEVEL * swing and level.probability >= CERTAIN
        if not is_far or word not in ("rises", "falls") or "then" in linearly:
            return []
        return [self._curve(curve, level, "Its average")]


def _factor(fact: Fact) -> str:
    return factor_text(*fact.ends).removeprefix("a factor of ")
