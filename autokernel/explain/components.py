"""The facts of a component of a fitted function, in their order."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain

import numpy as np

from autokernel.explain.decomposition import MAX_ROWS, SMALL, ExplainedFunction
from autokernel.explain.facts import (
    N_GRID,
    SURE,
    Curve,
    Fact,
    beyond_of,
    curve_of,
    direction,
    half_way,
    jump,
    level_of,
    levels_of,
    nearly_line,
    season,
)
from autokernel.explain.parts import MAX_PERIOD, Part, leaves_of
from autokernel.explain.regions import WHOLE_COLUMN, Region
from autokernel.explain.sentences import MAX_BLUR, Said, Sentences
from autokernel.explain.words import CERTAIN, capital, interval, listing, perhaps
from autokernel.expression import IDENTITY
from autokernel.kernels import Role, Share, role_index
from autokernel.model import FittedModel
from autokernel.typing import FloatArray

STILL = 1e-9  # largest span of a component that does not vary, in deviations of the target
LEVELS = (0.1, 0.9)  # quantiles of a column at which the effect of another one is shown
MAX_VALUES = 20  # of a column, up to which a curve is followed from one to the next
MIN_GROWTH = 1.25  # of the swing of a season, from its first cycle to the last, that is mentioned
MIN_LEVEL = 0.2  # of its swing, from which a change of the average of a cycle is mentioned
MAX_STEP = 2.5  # median steps, up to which rows are regular
MAX_NAMED = 4  # columns of a component of many whose effects are described
MULTIPLIED = "kernels in which the columns are multiplied"


class ComponentFacts:
    """The facts about one component, with their sentences.

    The sentences begin with where the component plays a part. A trend is described with the cycles
    along its column, its ``whole``: the data do not show to which of them an average belongs.
    ``warnings`` are the predicates of what the checks of residuals have found.
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
        self._X, self._spread = explained.X, model.scale.width
        self._draws = explained.parameters  # of the parameters
        self._subject = part.expression.to_text(model.columns.feature_names)
        self._regions = self._find_regions() if len(part.group) == 1 else {}
        self._whole = part if self._regions or not part.is_free else self._with_cycles()
        axes, is_only = say.axes, len(say.axes) == 1
        where = [one.text(axes[c], is_only=is_only) for c, one in self._regions.items()]
        where = [text for text in where if text]
        self._begin = capital(f"{listing(where)}, a " if where else "a ")

    def all(self) -> Iterator[Said]:
        """Say what the component does, how much it explains, and how it continues."""
        if self._part.span <= STILL * self._spread:
            still = Fact(self._subject, "does not vary", 0.0, evidence="its range over the rows")
            yield still, f"{self._begin}component that does not vary over the data."
            return
        said, ahead = self._within_and_beyond()
        yield from said
        if len(self._explained.parts) > 1:
            how = "covariance with the fit"
            yield self._say.share(Fact(self._subject, "share", self._part.share, evidence=how))
        if any(region.has_ended for region in self._regions.values()):
            ended = Fact(self._subject, "ends", evidence="place of its change-point")
            yield ended, "It ends before the data do."
        yield from ahead

    def _within_and_beyond(self) -> tuple[list[Said], list[Said]]:
        """Describe the component within the data, and beyond them, if it is surely there."""
        part = self._part
        sure, is_hidden = self._explained.probability(self._whole), self._is_warned("is hidden")
        if is_hidden or sure < SURE:
            how = "outliers that mask it" if is_hidden else "kernels that have such a component"
            fact = Fact(self._subject, "is possible", probability=sure, evidence=how)
            noun = "cycle in" if part.is_season else "effect of"
            return [self._say.uncertain(fact, noun, part.columns, self._begin)], []
        if not part.along:
            return list(self._levels()), []
        if part.groups:
            where = capital(self._say.where(self._typical(part.groups)))
            self._begin = f"{where}, {self._begin[:1].lower()}{self._begin[1:]}"
        said, ahead = self._along_columns()
        return [*said, *self._between_levels()], ahead

    def _along_columns(self) -> tuple[list[Said], list[Said]]:
        part, regions = self._part, self._regions
        free = [column for column in part.along if column not in regions] or list(part.along)
        (region,) = regions.values() if len(regions) == 1 else (None,)
        if len(part.along) == 1 and self._shows_period(part, region):
            return self._repeating(region)
        if len(free) > 1:
            return list(self._joint(free)), []
        return self._curve(*free)

    def _curve(self, column: int) -> tuple[list[Said], list[Said]]:
        if self._whole is not self._part:
            said = [self._average(self._whole)]
        else:
            region = self._regions.get(column)
            ends = (region and region.inner) or WHOLE_COLUMN
            said = self._along(column, self._begin, ends=ends)
        if self._regions or self._has_two_values(column) or self._say.axes[column].levels:
            return said, []
        return [*said, *self._drift(column)], self._beyond()

    def _with_cycles(self) -> Part:
        part = self._part
        cycles = [p for p in self._explained.parts if p.is_season and p.columns == part.columns]
        cycles = [one for one in cycles if self._shows_period(one)]
        if not cycles:
            return part
        group = [addend for one in (part, *cycles) for addend in one.group]
        period = float(np.nanmax([one.period for one in (part, *cycles)]))
        return replace(part, group=group, period=period, is_whole=True)

    def _shows_period(self, part: Part, region: Region | None = None) -> bool:
        """Whether a component repeats at least twice where it plays a part."""
        if region is None:
            return bool(part.period <= np.ptp(self._X[:, part.along[0]]))  # not if it is nan
        begin, end = region.longest
        return part.is_season and part.period <= MAX_PERIOD * (end - begin)

    def _is_warned(self, *predicates: str) -> bool:
        return any(one.startswith(predicates) for one in self._warnings)

    def _find_regions(self) -> dict[int, Region]:
        """Return where the component plays a part, by the columns of its change-points."""
        shares: dict[int, list[tuple[Share, FloatArray, FloatArray]]] = {}
        for leaf, entries in leaves_of(self._part.group[0]):
            if isinstance(leaf.kernel, Share):
                params = np.exp(self._part.theta_of_all[entries])
                drawn = np.exp(self._draws[:, entries])
                shares.setdefault(leaf.column, []).append((leaf.kernel, params, drawn))
        return {c: Region.of(own, self._explained.ends(c)[1]) for c, own in shares.items()}

    def _typical(self, columns: Sequence[int]) -> dict[int, float]:
        return {column: float(self._explained.typical[column]) for column in columns}

    def _has_two_values(self, column: int) -> bool:
        return len(np.unique(self._X[:, column])) == 2

    def _regular_step(self, column: int) -> float:
        """Return the step between rows along a column if it is nearly regular, else zero."""
        steps = np.diff(np.unique(self._X[:, column]))
        middle = float(np.median(steps))
        return middle if steps.max() < MAX_STEP * middle else 0.0

    def _along(
        self,
        column: int,
        begin: str = "",
        *,
        subject: str = "",
        ends: tuple[float, float] = WHOLE_COLUMN,
        fixed: Mapping[int, float] | None = None,
    ) -> list[Said]:
        """Describe the curve along a column, the others at given values or at their medians."""
        values, view = self._values(column, ends), self._explained.view(self._part, column)
        curve = curve_of(self._explained, self._part, column, values, fixed)
        fact = direction(curve, subject or self._subject)
        if self._has_two_values(column) and fact.probability >= SURE:
            return [self._difference(fact, curve.places, column, begin)]
        said = self._say.curve(fact, column, view, begin)
        most = None
        if said[0].predicate in ("rises", "falls"):
            most = self._most(curve, fact.subject, is_transformed=view.name != IDENTITY)
        return [said] if most is None else self._say.most(said, most, column, view)

    def _values(self, column: int, ends: tuple[float, float]) -> FloatArray:
        """Return values along a column between ends: all if they are few, or evenly spaced."""
        low, high = self._explained.ends(column)
        low, high = max(low, ends[0]), min(high, ends[1])
        values = np.unique(self._X[:, column])
        inside = values[(values >= low) & (values <= high)]
        if len(values) <= MAX_VALUES and len(inside) >= 2:
            return inside  # nothing is known between them
        return self._explained.steps(self._part, column, N_GRID, (low, high))

    def _most(self, curve: Curve, subject: str, *, is_transformed: bool) -> Fact | None:
        fact = jump(curve, subject)
        if fact is not None and fact.probability >= SURE and fact.high - fact.low <= MAX_BLUR:
            return fact
        near = nearly_line(curve, subject)
        if not is_transformed or (near is not None and near.probability >= SURE):
            return near if is_transformed else None
        return half_way(curve, subject)

    def _difference(self, fact: Fact, places: FloatArray, column: int, begin: str) -> Said:
        """Describe the effect of a column of two values, along which the curve is a line."""
        word, values = "is higher" if fact.value > 0 else "is lower", np.unique(self._X[:, column])
        fact = replace(fact, predicate=word).scaled(float(np.ptp(places)))
        return self._say.difference(fact, column, values.tolist(), begin)

    def _average(self, part: Part) -> Said:
        (column,) = part.along
        level = level_of(self._explained, part, self._subject)
        return self._say.curve(level, column, self._explained.view(part, column), self._begin)

    def _drift(self, column: int) -> Iterator[Said]:
        drift = self._spread * self._part.drift(self._regular_step(column))
        if drift > SMALL * self._part.span:
            fact = Fact(self._subject, "drifts", drift, evidence="parameters of the best kernel")
            text = f"Its level drifts by about {self._say.amount(drift)} from one row to the next."
            yield self._say.measured(fact), text

    def _beyond(self) -> list[Said]:
        """Say how a curve continues beyond the data; among other columns, only if it continues."""
        (column,) = self._whole.along
        fact = beyond_of(self._explained, self._whole, column, self._subject)
        continues = fact.predicate == "continues beyond" and fact.probability >= SURE
        if len(self._say.axes) > 1 and self._say.axes[column].origin is None and not continues:
            return []
        return [self._say.beyond(fact, column, *self._explained.ends(column))]

    def _repeating(self, region: Region | None) -> tuple[list[Said], list[Said]]:
        """Describe a season, or a curve with a season around it, and how it continues."""
        (column,), part = self._part.along, self._part
        if part.is_season and part.period < 2 * self._regular_step(column):
            return [self._say.too_fast(self._subject, column, self._begin)], []
        (low, high), own = self._explained.ends(column), WHOLE_COLUMN
        if region is not None:
            own = region.inner or region.longest
        ends = max(low, own[0]), min(high, own[1])
        (swing, *extremes), grows, lasts = season(self._explained, part, ends, self._subject)
        if part.is_season:
            said, ahead = self._cycle(swing, extremes, grows, lasts, self._begin)
            return said, [] if region is not None and region.has_ended else ahead
        said, ahead = [self._average(self._whole)], self._beyond()
        if swing.probability >= SURE:
            begin = "Around it there is a "
            cycle, beyond = self._cycle(swing, extremes, grows, lasts, begin)
            said, ahead = [*said, *cycle], [*ahead, *beyond]
        return said, ahead

    def _cycle(
        self, swing: Fact, extremes: Sequence[Fact], grows: Fact, lasts: Fact, begin: str
    ) -> tuple[list[Said], list[Said]]:
        (column,), part = self._part.along, self._part
        said = self._say.season(self._period(swing), [swing, *extremes[:2]], column, begin)
        if part.is_season and not self._regions:
            said += self._level_of_cycle(swing.value * max(1.0, 1 / grows.value))
        changes = max(grows.value, 1 / grows.value) >= MIN_GROWTH and grows.probability >= SURE
        if changes:
            said += self._say.growth(grows, swing, extremes[2:])
        if changes and grows.value < 1 and lasts.predicate == "repeats beyond":
            return said, []
        noun = "it" if part.is_season else "the cycle"
        return said, [self._say.season_beyond(lasts, column, noun)]

    def _period(self, swing: Fact) -> Fact:
        part, ends = self._part, (np.nan, np.nan)
        for leaf, entries in chain.from_iterable(map(leaves_of, part.group)):
            index = role_index(leaf.kernel.parameters, Role.PERIOD)
            for entry in () if index is None else (entries[index],):
                if np.isclose(np.exp(part.theta_of_all[entry]), part.period):
                    ends = tuple(interval(np.exp(self._draws[:, entry])).tolist())
        how, sure = "parameter of the best kernel", swing.probability
        return Fact(swing.subject, "repeats", part.period, *ends, "", sure, how)

    def _level_of_cycle(self, swing: float) -> list[Said]:
        """Say where the averages of a cycle lead, if they certainly lead far for its swing."""
        (column,), part = self._part.along, self._part
        if any(one.columns == part.columns and one is not part for one in self._explained.parts):
            return []  # which has the trend
        level = level_of(self._explained, part, self._subject)
        word, *linearly = level.predicate.split()
        extent = float(np.ptp(self._X[:, column])) if linearly else 1.0
        is_far = abs(level.value) * extent >= MIN_LEVEL * swing and level.probability >= CERTAIN
        if not is_far or word not in ("rises", "falls") or "then" in linearly:
            return []
        fact, text = self._say.curve(level, column, self._explained.view(part, column))
        return [(fact, f"Its average {text.removeprefix('it ')}")]

    def _joint(self, columns: Sequence[int]) -> Iterator[Said]:
        """Describe effects of several columns that belong together, the largest first.

        Of two columns, one is followed at two levels of the other; of more, each is followed with
        the others at their medians.
        """
        ordered = sorted(columns, key=lambda column: -self._reach(column))
        interact = self._explained.probability_of_interaction(self._part, columns)
        if self._is_warned("does not fit", "grows", "shrinks"):
            interact = 0.0  # which may come from them
        is_pair = interact >= SURE and len(columns) == 2
        said = self._at_levels(ordered) if is_pair else self._one_by_one(ordered)
        (first, _), *others = said
        texts = "; ".join(text.removesuffix(".") for _, text in said if text)
        how = f"{first.evidence}, others at their medians"
        what = f"{self._begin}{self._joint_noun(ordered, interact)}"
        yield replace(first, evidence=how), f"{what}: {texts}."
        if interact >= SURE:
            yield Fact(self._subject, "interact", probability=interact, evidence=MULTIPLIED), ""
        yield from ((fact, "") for fact, _ in others)  # the sentence is that of the first

    def _joint_noun(self, columns: Sequence[int], interact: float) -> str:
        names = listing([self._say.names[column] for column in columns])
        if interact >= SURE:
            return perhaps(f"joint effect of {names}", interact)
        how = "may change each other" if self._part.is_joint else "the data do not separate"
        return f"sum of effects of {names}, which {how}"

    def _reach(self, column: int) -> float:
        places = self._explained.steps(self._part, column, N_GRID)
        return float(np.ptp(self._explained.curve(self._part, column, places)))

    def _one_by_one(self, columns: Sequence[int]) -> list[Said]:
        names = [self._say.names[column] for column in columns]
        said = [
            (fact, f"along {name}, {text}" if text else "")
            for column, name in list(zip(columns, names, strict=True))[:MAX_NAMED]
            for fact, text in self._along(column, subject=name)
        ]
        if len(columns) > MAX_NAMED:
            rest = listing(names[MAX_NAMED:])
            said.append((Fact(rest, "has less effect"), f"the effect of {rest} is smaller"))
        return said

    def _at_levels(self, ordered: Sequence[int]) -> list[Said]:
        """Describe the effect of one column at two levels of the other."""
        two_valued = [column for column in ordered if self._has_two_values(column)]
        other = two_valued[0] if two_valued else ordered[1]
        (column,) = (one for one in ordered if one != other)
        values = self._X[:, other]
        levels = np.unique(values) if two_valued else np.quantile(values, LEVELS)
        said: list[Said] = []
        for level in levels.tolist():
            (fact, text), *others = self._along(column, fixed={other: level})
            at = self._say.level(other, level, is_one_of_two=bool(two_valued))
            along = "" if said else f"along {self._say.names[column]}, "
            said += [(fact, f"{along}where {self._say.names[other]} is {at}, {text}"), *others]
        return said

    def _levels(self) -> Iterator[Said]:
        """Describe an effect of the levels of categories, each at typical levels of the others."""
        groups, begin = self._part.groups, self._begin
        interact = self._explained.probability_of_interaction(self._part, groups)
        if len(groups) > 1 and interact >= SURE:
            fact = Fact(self._subject, "interact", probability=interact, evidence=MULTIPLIED)
            yield fact, f"{begin}{self._joint_noun(groups, interact)}."
        for column in groups:
            if len(groups) > 1:
                others = [one for one in groups if one != column]
                begin = f"{capital(self._say.where(self._typical(others)))}, a "
            if self._has_two_values(column):
                yield from self._along(column, begin)
                continue
            values, name = np.unique(self._X[:, column]), self._say.names[column]
            curve = curve_of(self._explained, self._part, column, values)
            yield from self._say.levels(levels_of(curve, name), column, begin)

    def _between_levels(self) -> Iterator[Said]:
        part, how = self._part, "kernels in which the levels are multiplied"
        for column in part.groups:
            sure = self._explained.probability_of_interaction(part, part.columns, column)
            differs = Fact(self._subject, "may differ", probability=sure, evidence=how)
            facts, levels = [differs], np.unique(self._X[:, column])
            if sure >= SURE:
                sizes = self._sizes(column, levels)
                least = MIN_LEVEL * max(sizes.values())
                large = [(word, size) for word, size in sizes.items() if size > least]
                facts = [replace(differs, predicate=word, value=size) for word, size in large]
            yield from self._say.between_levels(facts, column, len(levels))

    def _sizes(self, column: int, levels: FloatArray) -> dict[str, float]:
        """Compute how much curves differ between levels, as standard deviations."""
        inputs, curves = self._X[:: max(1, len(self._X) // MAX_ROWS)].copy(), []
        for level in levels:
            inputs[:, column] = level
            curves.append(self._explained.mean(self._part, inputs))
        averages = np.mean(curves, axis=1, keepdims=True)
        shapes = curves - averages
        of_shapes = float(np.sqrt(np.mean((shapes - shapes.mean(axis=0)) ** 2)))
        return {"differs in shape": of_shapes, "differs on average": float(averages.std())}
