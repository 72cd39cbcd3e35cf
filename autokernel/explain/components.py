"""Which facts are told of each component of a fitted function, and in which order."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain

import numpy as np

from autokernel.explain.decomposition import MAX_ROWS, SMALL, ExplainedFunction
from autokernel.explain.facts import (
    N_GRID,
    SURE,
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
MAX_GAP = 2.5  # median gaps, up to which rows are regular
MAX_NAMED = 4  # columns of a component of many whose effects are described
MULTIPLIED = "kernels in which the columns are multiplied"

Regions = Mapping[int, Region]


class Components:
    """Describes the components of a fitted function.

    Parameters
    ----------
    model : FittedModel
        The model.
    explained : ExplainedFunction
        Its components.
    say : Sentences
        Words for facts.
    warnings : sequence of str
        Predicates of what the checks of residuals have found.
    """

    def __init__(
        self,
        model: FittedModel,
        explained: ExplainedFunction,
        say: Sentences,
        warnings: Sequence[str],
    ) -> None:
        self._model, self._explained, self._say, self._warnings = model, explained, say, warnings
        self._X, self._names = explained.X, say.names
        (best,) = (one for one in model.kernels if one.evaluation is model.evaluation)
        self._draws = best.draws  # of the parameters
        self._described: dict[int, list[Said]] = {}

    def describe(self, number: int) -> list[Said]:
        """Say what a component does, how much it explains, and how it continues."""
        if number not in self._described:
            self._described[number] = list(self._facts(self._explained.parts[number]))
        return self._described[number]

    def small(self) -> Iterator[Said]:
        """Say in one line how much the components explain that are not described one by one."""
        small = self._explained.parts[self._explained.n_large :]
        if small:
            columns = sorted({column for part in small for column in part.columns})
            names = listing([self._names[column] for column in columns])
            share = sum(part.share for part in small)
            fact = Fact(names, "share", share, evidence="covariance with the fit")
            yield self._say.small(fact, len(small))

    def _facts(self, part: Part) -> Iterator[Said]:
        subject, regions = (
            part.expression.to_text(self._model.columns.feature_names),
            self._regions(part),
        )
        begin = self._begin(regions)
        if part.span <= STILL * self._model.scale.width:
            still = Fact(subject, "does not vary", 0.0, evidence="its range over the rows")
            yield still, f"{begin}component that does not vary over the data."
            return
        said, ahead = self._described_by_curve(part, regions, subject, begin)
        yield from said
        if len(self._explained.parts) > 1:
            fact = Fact(subject, "share", part.share, evidence="covariance with the fit")
            yield self._say.share(fact)
        if any(region.has_ended for region in regions.values()):
            ended = Fact(subject, "ends", evidence="place of its change-point")
            yield ended, "It ends before the data do."
        yield from ahead

    def _described_by_curve(
        self, part: Part, regions: Regions, subject: str, begin: str
    ) -> tuple[list[Said], list[Said]]:
        """Describe what a component does within the data, and beyond them, if it is there."""
        whole = part if regions else self._with_cycles(part)
        probability = self._explained.probability(whole)
        is_hidden = self._is_warned("is hidden")
        if is_hidden or probability < SURE:
            how = "outliers that mask it" if is_hidden else "kernels that have such a component"
            fact = Fact(subject, "is possible", probability=probability, evidence=how)
            noun = "cycle in" if part.is_season else "effect of"
            return [self._say.uncertain(fact, noun, part.columns, begin)], []
        if not part.along:
            return list(self._levels(part, subject, begin)), []
        if part.groups:
            where = self._say.where(self._typical(part.groups))
            begin = f"{capital(where)}, {begin[:1].lower()}{begin[1:]}"
        said, ahead = self._along_columns(part, whole, regions, subject, begin)
        return [*said, *self._between_levels(part, subject)], ahead

    def _along_columns(
        self, part: Part, whole: Part, regions: Regions, subject: str, begin: str
    ) -> tuple[list[Said], list[Said]]:
        """Describe a component along its columns; of its ``whole``, averages are known."""
        free = [column for column in part.along if column not in regions] or list(part.along)
        (region,) = regions.values() if len(regions) == 1 else (None,)
        if len(part.along) == 1 and self._shows_period(part, region):
            return self._repeating(part, whole, region, subject, begin)
        if len(free) > 1:
            return list(self._joint(part, free, subject, begin)), []
        (column,) = free
        if whole is not part:
            said = [self._average(whole, column, subject, begin)]
        else:
            ends = (regions[column].inner if column in regions else None) or WHOLE_COLUMN
            said = self._along(part, column, subject, begin, ends=ends)
            if regions or self._has_two_values(column) or self._say.axes[column].levels:
                return said, []
        return [*said, *self._drift(part, column, subject)], self._beyond(whole, column, subject)

    # What a component is

    def _with_cycles(self, part: Part) -> Part:
        """Add to a trend the cycles along its column, of which it has the averages.

        The data do not show whether an average belongs to the trend or to a cycle.
        """
        cycles = [p for p in self._explained.parts if p.is_season and p.columns == part.columns]
        cycles = [one for one in cycles if part.is_free and self._shows_period(one, None)]
        if not cycles:
            return part
        group = [addend for one in (part, *cycles) for addend in one.group]
        period = float(np.nanmax([one.period for one in (part, *cycles)]))
        return replace(part, group=group, period=period, is_whole=True)

    def _shows_period(self, part: Part, region: Region | None) -> bool:
        """Whether a component repeats at least twice where it plays a part."""
        if region is None:
            return bool(part.period <= np.ptp(self._X[:, part.along[0]]))  # not if it is nan
        begin, end = region.longest
        return part.is_season and part.period <= MAX_PERIOD * (end - begin)

    def _is_warned(self, *predicates: str) -> bool:
        """Whether a check of the residuals has said something that begins like this."""
        return any(one.startswith(predicates) for one in self._warnings)

    def _regions(self, part: Part) -> Regions:
        """Return where a component plays a part, by the columns of its change-points."""
        regions: dict[int, Region] = {}
        if len(part.group) > 1:
            return regions
        for leaf, entries in leaves_of(part.group[0]):
            if isinstance(leaf.kernel, Share):
                theta = np.exp(part.theta_of_all[entries])
                _, highest = self._explained.ends(leaf.column)
                drawn = np.exp(self._draws[:, entries])
                region = Region.of(leaf.column, leaf.kernel, theta, drawn, highest)
                known = regions.get(leaf.column)
                regions[leaf.column] = region if known is None else known.intersect(region)
        return regions

    def _begin(self, regions: Regions) -> str:
        """Begin a sentence about a component with where it plays a part."""
        is_only, axes = len(self._names) == 1, self._say.axes
        where = [one.text(axes[column], is_only=is_only) for column, one in regions.items()]
        where = [text for text in where if text]
        return capital(f"{listing(where)}, a " if where else "a ")

    def _typical(self, columns: Sequence[int]) -> dict[int, float]:
        """Return the most frequent levels of categories."""
        return {column: float(self._explained.typical[column]) for column in columns}

    def _has_two_values(self, column: int) -> bool:
        return len(np.unique(self._X[:, column])) == 2

    def _regular_gap(self, column: int) -> float:
        """Return the gap between rows along a column if it is nearly regular, else zero."""
        gaps = np.diff(np.unique(self._X[:, column]))
        middle = float(np.median(gaps))
        return middle if gaps.max() < MAX_GAP * middle else 0.0

    # Along one column

    def _along(
        self,
        part: Part,
        column: int,
        subject: str,
        begin: str = "",
        *,
        ends: tuple[float, float] = WHOLE_COLUMN,
        fixed: Mapping[int, float] | None = None,
    ) -> list[Said]:
        """Describe the curve along a column, the others at given values or at their medians."""
        values, view = self._values(part, column, ends), self._explained.view(part, column)
        curve = curve_of(self._explained, part, column, values, fixed)
        fact = direction(curve, subject)
        if self._has_two_values(column) and fact.probability >= SURE:
            return [self._difference(fact, curve.places, column, begin)]
        said = self._say.curve(fact, column, view, begin)
        if said[0].predicate not in ("rises", "falls"):
            return [said]
        most = jump(curve, subject)
        if most is None or most.probability < SURE or most.high - most.low > MAX_BLUR:
            near = None if view.name == IDENTITY else nearly_line(curve, subject)
            is_near = near is not None and near.probability >= SURE
            most = near if is_near else None
            if view.name != IDENTITY and not is_near:
                most = half_way(curve, subject)
        return [said] if most is None else self._say.most(said, most, column, view)

    def _values(self, part: Part, column: int, ends: tuple[float, float]) -> FloatArray:
        """Return values along a column between ends: all if they are few, or evenly spaced."""
        low, high = self._explained.ends(column)
        low, high = max(low, ends[0]), min(high, ends[1])
        values = np.unique(self._X[:, column])
        inside = values[(values >= low) & (values <= high)]
        if len(values) <= MAX_VALUES and len(inside) >= 2:
            return inside  # nothing is known between them
        return self._explained.steps(part, column, N_GRID, (low, high))

    def _difference(self, fact: Fact, places: FloatArray, column: int, begin: str) -> Said:
        """Describe the effect of a column of two values, along which the curve is a line."""
        value, low, high = (
            float(np.ptp(places)) * one for one in (fact.value, fact.low, fact.high)
        )
        word = "is higher" if value > 0 else "is lower"
        fact = replace(fact, predicate=word, value=value, low=low, high=high)
        return self._say.difference(fact, column, np.unique(self._X[:, column]).tolist(), begin)

    def _average(self, part: Part, column: int, subject: str, begin: str) -> Said:
        """Describe the averages of a curve with a cycle."""
        level = level_of(self._explained, part, subject)
        return self._say.curve(level, column, self._explained.view(part, column), begin)

    def _drift(self, part: Part, column: int, subject: str) -> Iterator[Said]:
        """Say how far a level wanders from one row to the next, if it is a random walk."""
        drift = self._model.scale.width * part.drift(self._regular_gap(column))
        if drift > SMALL * part.span:
            fact = Fact(subject, "drifts", drift, evidence="parameters of the best kernel")
            how_far = self._say.amount(drift)
            text = f"Its level drifts by about {how_far} from one row to the next."
            yield self._say.measured(fact), text

    def _beyond(self, part: Part, column: int, subject: str) -> list[Said]:
        """Say how a curve continues beyond the data; among other columns, only if it continues."""
        fact, axis = beyond_of(self._explained, part, column, subject), self._say.axes[column]
        continues = fact.predicate == "continues beyond" and fact.probability >= SURE
        if len(self._names) > 1 and axis.origin is None and not continues:
            return []
        begin, end = self._explained.ends(column)
        return [self._say.beyond(fact, column, end, end - begin)]

    # Seasons

    def _repeating(
        self, part: Part, whole: Part, region: Region | None, subject: str, begin: str
    ) -> tuple[list[Said], list[Said]]:
        """Describe a season, or a curve with a season around it, and how it continues."""
        (column,) = part.along
        if part.is_season and part.period < 2 * self._regular_gap(column):
            return [self._say.too_fast(subject, column, begin)], []
        (swing, *extremes), grows, lasts = season(
            self._explained, part, self._ends_in(region, column), subject
        )
        said, ahead = [], []
        if not part.is_season:
            said = [self._average(whole, column, subject, begin)]
            ahead, begin = self._beyond(whole, column, subject), "Around it there is a "
            if swing.probability < SURE:
                return said, ahead
        said += self._say.season(self._period(part, swing), [swing, *extremes[:2]], column, begin)
        if part.is_season and region is None:
            said += self._level_of_cycle(part, swing.value * max(1.0, 1 / grows.value), subject)
        changes = max(grows.value, 1 / grows.value) >= MIN_GROWTH and grows.probability >= SURE
        if changes:
            said += self._say.growth(grows, swing, extremes[2:])
        if not (changes and grows.value < 1 and lasts.predicate == "repeats beyond"):
            noun = "it" if part.is_season else "the cycle"
            ahead.append(self._say.season_beyond(lasts, column, noun))
        return said, [] if region is not None and region.has_ended else ahead

    def _ends_in(self, region: Region | None, column: int) -> tuple[float, float]:
        """Return the ends of the data along a column, within a region."""
        low, high = self._explained.ends(column)
        own = WHOLE_COLUMN if region is None else region.inner or region.longest
        return max(low, own[0]), min(high, own[1])

    def _period(self, part: Part, swing: Fact) -> Fact:
        """Say with which period a component repeats, in the unit interval."""
        low, high = np.nan, np.nan
        for leaf, entries in chain.from_iterable(map(leaves_of, part.group)):
            index = role_index(leaf.kernel.parameters, Role.PERIOD)
            if index is not None and np.isclose(
                np.exp(part.theta_of_all[entries[index]]), part.period
            ):
                low, high = interval(np.exp(self._draws[:, entries[index]])).tolist()
                break
        how, sure = "parameter of the best kernel", swing.probability
        return Fact(swing.subject, "repeats", part.period, low, high, "", sure, how)

    def _level_of_cycle(self, part: Part, swing: float, subject: str) -> list[Said]:
        """Say where the averages of a cycle lead, if they certainly lead far for its swing."""
        (column,) = part.along
        if any(one.columns == part.columns and one is not part for one in self._explained.parts):
            return []  # which has the trend
        level = level_of(self._explained, part, subject)
        word, *linearly = level.predicate.split()
        extent = float(np.ptp(self._X[:, column])) if linearly else 1.0
        is_way = word in ("rises", "falls") and "then" not in linearly
        if (
            not is_way
            or abs(level.value) * extent < MIN_LEVEL * swing
            or level.probability < CERTAIN
        ):
            return []
        fact, text = self._say.curve(level, column, self._explained.view(part, column))
        return [(fact, f"Its average {text.removeprefix('it ')}")]

    # Several columns

    def _joint(self, part: Part, columns: list[int], subject: str, begin: str) -> Iterator[Said]:
        """Describe effects of several columns that belong together, the largest first.

        Of two columns, one is followed at two levels of the other; of more, each is followed with
        the others at their medians.
        """
        reach = {column: self._reach(part, column) for column in columns}
        ordered = sorted(columns, key=lambda column: -reach[column])
        interact = self._explained.probability_of_interaction(part, columns)
        if self._is_warned("does not fit", "grows", "shrinks"):
            interact = 0.0  # which may come from them
        if interact >= SURE and len(columns) == 2:
            said = self._at_levels(part, ordered, subject)
        else:
            said = self._one_by_one(part, ordered)
        (first, _), *others = said
        texts = "; ".join(text.removesuffix(".") for _, text in said if text)
        how = f"{first.evidence}, others at their medians"
        what = self._joint_noun(part, ordered, interact)
        yield replace(first, evidence=how), f"{begin}{what}: {texts}."
        if interact >= SURE:
            yield Fact(subject, "interact", probability=interact, evidence=MULTIPLIED), ""
        yield from ((fact, "") for fact, _ in others)  # the sentence is that of the first

    def _joint_noun(self, part: Part, columns: Sequence[int], interact: float) -> str:
        """Name effects of several columns, which may change each other."""
        names = listing([self._names[column] for column in columns])
        if interact >= SURE:
            return perhaps(f"joint effect of {names}", interact)
        if part.is_joint:
            return f"sum of effects of {names}, which may change each other"
        return f"sum of effects of {names}, which the data do not separate"

    def _one_by_one(self, part: Part, columns: Sequence[int]) -> list[Said]:
        """Describe the effect of each column, the others at their medians."""
        said = [
            (fact, f"along {self._names[column]}, {text}" if text else "")
            for column in columns[:MAX_NAMED]
            for fact, text in self._along(part, column, self._names[column])
        ]
        if len(columns) > MAX_NAMED:
            rest = listing([self._names[column] for column in columns[MAX_NAMED:]])
            said.append((Fact(rest, "has less effect"), f"the effect of {rest} is smaller"))
        return said

    def _reach(self, part: Part, column: int) -> float:
        places = self._explained.steps(part, column, N_GRID)
        return float(np.ptp(self._explained.curve(part, column, places)))

    def _at_levels(self, part: Part, ordered: Sequence[int], subject: str) -> list[Said]:
        """Describe the effect of one column at two levels of the other."""
        two_valued = [column for column in ordered if self._has_two_values(column)]
        other = two_valued[0] if two_valued else ordered[1]
        (column,) = (one for one in ordered if one != other)
        values = self._X[:, other]
        levels = np.unique(values) if two_valued else np.quantile(values, LEVELS)
        said: list[Said] = []
        for level in levels.tolist():
            (fact, text), *others = self._along(part, column, subject, fixed={other: level})
            at = self._say.level(other, level, is_one_of_two=bool(two_valued))
            along = "" if said else f"along {self._names[column]}, "
            said += [(fact, f"{along}where {self._names[other]} is {at}, {text}"), *others]
        return said

    # Categories

    def _levels(self, part: Part, subject: str, begin: str) -> Iterator[Said]:
        """Describe an effect of the levels of categories, each at typical levels of the others."""
        interact = self._explained.probability_of_interaction(part, part.groups)
        if len(part.groups) > 1 and interact >= SURE:
            fact = Fact(subject, "interact", probability=interact, evidence=MULTIPLIED)
            yield fact, f"{begin}{self._joint_noun(part, part.groups, interact)}."
        for column in part.groups:
            if len(part.groups) > 1:
                others = [one for one in part.groups if one != column]
                begin = f"{capital(self._say.where(self._typical(others)))}, a "
            if self._has_two_values(column):
                yield from self._along(part, column, subject, begin)
            else:
                yield from self._several_levels(part, column, begin)

    def _several_levels(self, part: Part, column: int, begin: str) -> list[Said]:
        """Say how the levels of a category differ."""
        values, name = np.unique(self._X[:, column]), self._names[column]
        heights = levels_of(curve_of(self._explained, part, column, values), name)
        said = [
            (value, replace(fact, subject=f"{name}={self._say.level(column, value)}"))
            for value, fact in heights
        ]
        return self._say.levels(said, column, begin)

    def _between_levels(self, part: Part, subject: str) -> Iterator[Said]:
        """Say how a curve differs between the levels of categories."""
        rows = self._X[:: max(1, len(self._X) // MAX_ROWS)]
        how = "kernels in which the levels are multiplied"
        for column in part.groups:
            levels = np.unique(self._X[:, column])
            sure = self._explained.probability_of_interaction(part, part.columns, column)
            differs = Fact(subject, "may differ", probability=sure, evidence=how)
            if sure < SURE:
                yield from self._say.between_levels([differs], column, len(levels))
                continue
            curves = []
            for level in levels:
                inputs = rows.copy()
                inputs[:, column] = level
                curves.append(self._explained.mean(part, inputs))
            averages = np.mean(curves, axis=1, keepdims=True)
            shapes = curves - averages
            of_shapes = float(np.sqrt(np.mean((shapes - shapes.mean(axis=0)) ** 2)))
            sizes = {"differs in shape": of_shapes, "differs on average": float(averages.std())}
            facts = [
                replace(differs, predicate=word, value=size)
                for word, size in sizes.items()
                if size > MIN_LEVEL * max(sizes.values())
            ]
            yield from self._say.between_levels(facts, column, len(levels))
