"""The facts of a component of a fitted function, in their order."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from autokernel.explain.decomposition import SMALL, ExplainedFunction
from autokernel.explain.facts import (
    HALF,
    LIKELY,
    N_GRID,
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
from autokernel.explain.sentences import MAX_BLUR, Said, Sentences
from autokernel.explain.words import CERTAIN, capital, interval
from autokernel.expression import IDENTITY
from autokernel.model import FittedModel
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


class ComponentFacts:
    """The facts about one component, with their sentences.

    With one column, the sentences begin with where the component plays a part; with several, with
    the column and its share. A trend is described with the cycles along its column, its ``whole``:
    the data do not show to which of them an average belongs. ``warnings`` are the predicates of
    what the checks of residuals have found.
    """

    def __init__(
        self,
        model: FittedModel,
        explained: ExplainedFunction,
        part: Part,
        say: Sentences,
        warnings: Sequence[str],
    ) -> None:
        self._explained, self._say, self._part, self._warnings = explained, say, part, warnings
        self._column, self._x = part.column, explained.X[:, part.column]
        self._spread, self._noise = model.scale.width, model.noise_variance**0.5
        self._draws = explained.parameters  # of the parameters
        self._subject = model.columns.text_of(part.expression)
        self._region = part.region(explained.ends(part.column)[1], self._draws)
        self._whole = part if self._region or not part.is_free else self._with_cycles()
        self._axis, self._is_only = say.axes[part.column], len(say.axes) == 1
        where = self._region.text(self._axis, is_only=self._is_only) if self._region else ""
        name = say.names[part.column] if where else say.name(part, explained.parts)
        where, lead = where and f"{where}, ", say.lead(name, part.share)
        self._begin = f"{lead}{where}" if lead else capital(where)

    def all(self) -> Iterator[Said]:
        """Say what the component does, how much it explains, and how it continues."""
        how, say = "covariance with the fit", self._say
        share = Fact(self._subject, "share", self._part.share, evidence=how)
        if self._part.span <= STILL * self._spread:
            still = Fact(self._subject, "does not vary", 0.0, evidence="its range over the rows")
            yield still, f"{say.begun(self._begin, say.y_name)} does not vary over the data."
            return
        said, ahead = self._within_and_beyond()
        yield from said
        if not self._is_only:
            yield share, ""
        elif len(self._explained.parts) > 1:
            yield say.share(share)
        if self._region and self._region.has_ended:
            ended = Fact(self._subject, "ends", evidence="place of its change-point")
            yield ended, "It ends before the data do."
        yield from ahead

    def _within_and_beyond(self) -> tuple[list[Said], list[Said]]:
        """Describe the component within the data, and beyond them, if it is surely there."""
        part, region = self._part, self._region
        sure, is_hidden = self._explained.probability(self._whole), "is hidden" in self._warnings
        if is_hidden or (self._is_only and sure < SURE):
            how = "outliers that mask it" if is_hidden else "kernels that have such a component"
            fact = Fact(self._subject, "is possible", probability=sure, evidence=how)
            has = "has a cycle in" if part.is_season else "depends on"
            return [self._say.uncertain(fact, has, self._column, self._begin)], []
        if part.is_of_levels:
            return list(self._levels()), []
        if self._shows_period(part, region):
            return self._repeating(region)
        if self._whole is not part:
            said = [self._average(self._whole)]
        else:
            ends = (region and region.inner) or WHOLE_COLUMN
            said = self._along(ends)
        if region or self._has_two_values or self._axis.levels:
            return said, []
        return [*said, *self._drift()], self._beyond(said)

    @property
    def _changes(self) -> str:
        """The beginning of a sentence about how the target changes."""
        return self._say.begun(self._begin, self._say.y_name)

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
    def _has_two_values(self) -> bool:
        return len(np.unique(self._x)) == 2

    @property
    def _regular_step(self) -> float:
        """The step between rows along the column if it is nearly regular, else zero."""
        steps = np.diff(np.unique(self._x))
        middle = float(np.median(steps))
        return middle if steps.max() < MAX_STEP * middle else 0.0

    def _along(self, ends: tuple[float, float]) -> list[Said]:
        """Describe the curve between two ends of the column."""
        values, view = self._values(ends), self._explained.view(self._part)
        curve = curve_of(self._explained, self._part, values)
        if self._region and curve.reach < FLAT * self._noise:
            how = "range of the curve"
            still = Fact(self._subject, "hardly changes", curve.reach, evidence=how)
            return [(still, f"{self._changes} hardly changes.")]
        fact = direction(curve, self._subject)
        if self._has_two_values and fact.probability >= LIKELY * curve.present:
            return [self._difference(fact, curve.places)]
        said = self._say.curve(fact, self._column, view, self._changes, curve)
        most = None
        if said[0].predicate in ("rises", "falls"):
            most = self._most(curve, is_transformed=view.name != IDENTITY)
        return [said] if most is None else self._say.most(said, most, self._column, view)

    def _values(self, ends: tuple[float, float]) -> FloatArray:
        """Return values of the column between ends: all if they are few, or evenly spaced."""
        limits = [self._explained.ends(self._column)]
        if not self._is_only and self._axis.origin is None:
            places = self._explained.view(self._part).forward(self._x)
            limits.insert(0, central(self._x, places))  # unless the ends are among the others
        every = ((max(low, ends[0]), min(high, ends[1])) for low, high in limits)
        low, high = next((one for one in every if one[0] < one[1]), ends)
        values = np.unique(self._x)
        inside = values[(values >= low) & (values <= high)]
        if len(values) <= MAX_VALUES and len(inside) >= 2:
            return inside  # nothing is known between them
        grid, view = self._explained.steps(self._part, N_GRID, (low, high)), self._explained.view
        at, rows = (view(self._part).forward(one) for one in (grid, inside))
        near = np.abs(at[:, None] - rows).min(axis=1, initial=np.inf) <= np.ptp(at) / (N_GRID - 1)
        near[[0, -1]] = True  # what draws do far from rows is not known
        return grid[near]

    def _most(self, curve: Curve, *, is_transformed: bool) -> Fact | None:
        fact = jump(curve, self._subject)
        if fact is not None and fact.probability >= SURE and fact.high - fact.low <= MAX_BLUR:
            return fact
        near = nearly_line(curve, self._subject) if is_transformed else None
        if near is not None and near.probability >= SURE:
            return near
        half = half_way(curve, self._subject)
        middle = (half.value - curve.places[0]) / np.ptp(curve.places) if half else HALF
        is_late = len(curve.mean) > MAX_VALUES and abs(middle - HALF) > NEAR_MIDDLE
        return half if is_transformed or is_late else None

    def _difference(self, fact: Fact, places: FloatArray) -> Said:
        """Describe the effect of a column of two values, along which the curve is a line."""
        word, values = "is higher" if fact.value > 0 else "is lower", np.unique(self._x)
        fact = replace(fact, predicate=word).scaled(float(np.ptp(places)))
        return self._say.difference(fact, self._column, values.tolist(), self._begin)

    def _levels(self) -> Iterator[Said]:
        """Describe an effect of the levels of a category."""
        if self._has_two_values:
            yield from self._along(WHOLE_COLUMN)
            return
        curve = curve_of(self._explained, self._part, np.unique(self._x))
        facts = levels_of(curve, self._say.names[self._column])
        yield from self._say.levels(facts, self._column, self._begin)

    def _average(self, part: Part) -> Said:
        curve, view = level_of(self._explained, part), self._explained.view(part)
        level = direction(curve, self._subject)
        return self._say.curve(level, self._column, view, self._changes, curve)

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
        if not self._is_only and self._axis.origin is None:
            return []
        fact = beyond_of(self._explained, self._whole, self._subject)
        first, *more = (one.predicate for one, _ in said)
        if heading(first) * fact.value <= 0 or "jumps" in more:
            fact = replace(fact, predicate=fact.predicate.replace("continues", "changes"))
        ends, reach = self._explained.ends(self._column), self._explained.in_unit(self._part.span)
        return [self._say.beyond(fact, self._column, *ends, reach=float(reach))]

    def _repeating(self, region: Region | None) -> tuple[list[Said], list[Said]]:
        """Describe a season, or a curve with a season around it, and how it continues."""
        column, part = self._column, self._part
        if part.is_season and part.period < 2 * self._regular_step:
            return [self._say.too_fast(self._subject, column, self._begin)], []
        (low, high), own = self._explained.ends(column), WHOLE_COLUMN
        if region is not None:
            own = region.inner or region.longest
        ends = max(low, own[0]), min(high, own[1])
        (swing, *extremes), grows, lasts = season(self._explained, part, ends, self._subject)
        if part.is_season:
            said, ahead = self._cycle(swing, extremes, grows, lasts, self._begin)
            return said, [] if region is not None and region.has_ended else ahead
        said = [self._average(self._whole)]
        ahead = self._beyond(said)
        if swing.probability >= SURE:
            begin = "Around it there is "
            cycle, beyond = self._cycle(swing, extremes, grows, lasts, begin)
            said, ahead = [*said, *cycle], [*ahead, *beyond]
        return said, ahead

    def _cycle(
        self, swing: Fact, extremes: Sequence[Fact], grows: Fact, lasts: Fact, begin: str
    ) -> tuple[list[Said], list[Said]]:
        column, part = self._column, self._part
        shown, at = [swing, *extremes[:2]], self._extremes()
        said = self._say.season(self._period(swing), shown, column, begin, at)
        if part.is_season and not self._region:
            said += self._level_of_cycle(swing.value * max(1.0, 1 / grows.value))
        changes = max(grows.value, 1 / grows.value) >= MIN_GROWTH and grows.probability >= SURE
        if changes:
            said += self._say.growth(grows, swing, extremes[2:])
        if changes and grows.value < 1 and lasts.predicate == "repeats beyond":
            return said, []
        noun = "it" if part.is_season else "the cycle"
        return said, [self._say.season_beyond(lasts, column, noun)]

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
        part, ends = self._part, (np.nan, np.nan)
        for _, entry in part.periods:
            if np.isclose(np.exp(part.theta_of_all[entry]), part.period):
                ends = tuple(interval(np.exp(self._draws[:, entry])).tolist())
        how, sure = "parameter of the best kernel", swing.probability
        return Fact(swing.subject, "repeats", part.period, *ends, "", sure, how)

    def _level_of_cycle(self, swing: float) -> list[Said]:
        """Say where the averages of a cycle lead, if they certainly lead far for its swing."""
        column, part = self._column, self._part
        if any(one.column == part.column and one is not part for one in self._explained.parts):
            return []  # which has the trend
        curve, view = level_of(self._explained, part), self._explained.view(part)
        level = direction(curve, self._subject)
        word, *linearly = level.predicate.split()
        extent = float(np.ptp(self._x)) if linearly else 1.0
        is_far = abs(level.value) * extent >= MIN_LEVEL * swing and level.probability >= CERTAIN
        if not is_far or word not in ("rises", "falls") or "then" in linearly:
            return []
        return [self._say.curve(level, column, view, "Its average", curve, has_ends=False)]
