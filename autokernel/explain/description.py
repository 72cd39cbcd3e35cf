"""A fitted model in sentences.

The rules are those of Lloyd et al. (2014): a product of base kernels on one column has a noun,
which is its periodic factor if it has one, and each other factor changes the noun. Base kernels
declare their nouns.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from itertools import groupby

import numpy as np

from autokernel.explain.decomposition import (
    TEXT_OF_AVERAGING,
    Component,
    Decomposition,
    ExplainedFunction,
    Part,
)
from autokernel.explain.numbers import (
    between,
    counted,
    interval,
    listing,
    percent,
    singular,
    with_unit,
)
from autokernel.explain.regions import WHOLE_COLUMN, Axis, Region
from autokernel.explain.tables import inclusion_table
from autokernel.expression import NOISE, Leaf, n_kernel_params
from autokernel.inference import diagonal_covariance
from autokernel.kernels import MULTIPLY, BaseKernel, LagPairs, Role, Share, Unit, role_index
from autokernel.model import FittedModel
from autokernel.typing import FloatArray

TARGET = "y"  # name of the target among the units
POLYNOMIALS = ("constant", "straight line", "parabola", "cubic polynomial")
SEASON = "function that repeats itself"  # of a kernel that declares no noun
UNSEEN_PERIOD = "smooth function"  # with a period that the data do not show

MIN_AMPLITUDE_RATIO = 1.25  # of the two ends, from which an amplitude is said to grow
MAX_PERIOD = 0.5  # extents of the column; the data show a longer one less than twice
MIN_CORRELATION = 0.1  # after one period, for a function that is said to repeat
MIN_WAVE_SHARE = 0.5  # of the variance, from which a wave on a level is a season
MAX_BENDING = 1.0  # lengthscale in extents of the column from which a function hardly bends
FADING_LENGTHS = 2.0  # lengthscales at which the correlation of SE and of MAT32 is 14 %

N_GRID = 200  # points of a curve on which its direction is judged
POINTS_PER_PERIOD, MAX_POINTS = 16, 2000  # of a curve whose periods are averaged
STILL = 1e-9  # largest span of a component that does not vary, in deviations of the target
NEARLY_MONOTONE = 0.02  # part of the range by which a monotone curve may go back
MIN_REACH = 0.1  # part of the span of a component that a curve must exceed for its direction
MIN_TURN = 0.1  # part of the range that a curve must cover on each side of a turning point
CERTAIN, EXCLUDED = 0.95, 0.05  # probabilities from which a column matters, and does not
MIN_AVERAGING_SHARE = 0.01  # of the variance, from which averaging is worth a sentence

OWN_UNIT = (Role.LENGTHSCALE, Role.PERIOD)  # roles of parameters in the unit of the column


@dataclass(frozen=True, slots=True)
class Scale:
    """A lengthscale or a period in the units of the column, with a 90 % interval."""

    value: float
    low: float  # nan where nothing is known of it
    high: float
    in_extents: float  # in multiples of the extent of the column where the component plays a part

    def text(self, unit: str) -> str:
        """Write it with its interval."""
        return between(self.value, self.low, self.high, unit)


@dataclass(frozen=True, slots=True, eq=False)
class Factor:
    """One leaf of a product."""

    leaf: Leaf
    params: FloatArray  # (n_params,), with inputs in the unit interval
    scales: Mapping[Role, Scale]

    @property
    def kernel(self) -> BaseKernel:
        """The base kernel."""
        return self.leaf.kernel

    @property
    def is_known_season(self) -> bool:
        """Whether the user has given its period, so that the data need not show it."""
        index = role_index(self.kernel.parameters, Role.PERIOD)
        return index is not None and self.kernel.parameters[index].keeps_prior


@dataclass(frozen=True, slots=True)
class Phrase:
    """What is said of a product on one column."""

    noun: str  # such as "season", without an article
    clauses: tuple[str, ...] = ()  # what is said of it, such as "repeats every 1.00 years"
    fades: Scale | None = None  # distance beyond the data over which it is forgotten, None if never


def phrase_of(
    factors: Sequence[Factor],
    unit: str,
    ends: tuple[float, float],
    wave_share: Callable[[float], float],
) -> Phrase:
    """Describe the product of the factors on one column, from one end to the other.

    ``wave_share`` is the share of the variance of the fitted function that a period explains. A
    product of a periodic factor with others may be a drift with a small wave.
    """
    lines = [one for one in factors if one.kernel.is_linear]
    amplitude = _amplitude(lines, ends)
    stationary = [one for one in factors if one.kernel.is_stationary]
    decaying = [one for one in stationary if Role.PERIOD not in one.scales]
    periodic = [one for one in factors if _is_period(one, decaying)]
    others = [one for one in factors if one not in periodic and one not in lines]
    fades = _shortest(others)
    periods = [one.scales[Role.PERIOD].text(unit) for one in periodic]
    repeats = f"repeats every {listing(periods)}" if periods else ""
    is_alone = not (lines or others)
    is_given = any(one.scales[Role.PERIOD].in_extents > MAX_PERIOD for one in periodic)
    if periodic and (
        is_alone or is_given or wave_share(_longest_period(periodic)) > MIN_WAVE_SHARE
    ):
        clauses = [repeats, f"changes its shape over {fades.text(unit)}"] if fades else [repeats]
        return Phrase(periodic[0].kernel.noun or SEASON, (*clauses, *amplitude), fades)
    in_part = [f"in part {repeats}"] if periodic else []
    if not others:
        degree = len(lines)
        known = degree < len(POLYNOMIALS)
        noun = POLYNOMIALS[degree] if known else f"polynomial of degree {degree}"
        return Phrase(noun, tuple(in_part))
    clauses = [_smoothness(fades, unit)] if fades is not None else []
    return Phrase(_noun(others), (*clauses, *amplitude, *in_part), fades)


def _noun(factors: Sequence[Factor]) -> str:
    """Name a product without a period: after the first factor that has a noun."""
    for one in factors:
        if Role.PERIOD in one.scales:
            return UNSEEN_PERIOD
        if one.kernel.noun:
            return one.kernel.noun
    return f"function with the kernel {' * '.join(one.kernel.name for one in factors)}"


def _shortest(factors: Sequence[Factor]) -> Scale | None:
    lengths = [scale for one in factors if (scale := _length(one)) is not None]
    return min(lengths, key=lambda scale: scale.value, default=None)


def _longest_period(periodic: Sequence[Factor]) -> float:
    """Return the longest period in the unit interval."""
    return max(
        float(one.params[role_index(one.kernel.parameters, Role.PERIOD)]) for one in periodic
    )


def _is_period(factor: Factor, decaying: Sequence[Factor]) -> bool:
    """Whether a factor repeats itself before it is forgotten, at least twice in the data.

    A period that the user has given need not be shown by the data.
    """
    scale = factor.scales.get(Role.PERIOD)
    if scale is None or (scale.in_extents > MAX_PERIOD and not factor.is_known_season):
        return False
    lags = LagPairs(np.array([0.0, _longest_period([factor])]))
    kept = 1.0
    for one in decaying:
        now, later = one.kernel.value(one.params, lags)
        kept *= float(later / now)
    return kept > MIN_CORRELATION


def _length(factor: Factor) -> Scale | None:
    """Return the distance over which a factor decays, None if it declares none.

    A period that the data do not show twice is no period: within a cycle, the kernel decays over
    ``l p / pi``.
    """
    period = factor.scales.get(Role.PERIOD)
    if period is None:
        return factor.scales.get(Role.LENGTHSCALE)
    index = role_index(factor.kernel.parameters, Role.CYCLE_LENGTHSCALE)
    shorter = 1.0 if index is None else float(factor.params[index]) / np.pi
    return Scale(period.value * shorter, np.nan, np.nan, period.in_extents * shorter)


def _smoothness(scale: Scale, unit: str) -> str:
    """Say over which distance a function varies."""
    if scale.in_extents > MAX_BENDING:
        return f"hardly bends (its lengthscale, {with_unit(scale.value, unit)}, exceeds the data)"
    return f"varies over {scale.text(unit)}"


def _amplitude(lines: Sequence[Factor], ends: tuple[float, float]) -> list[str]:
    """Say how linear factors change the amplitude, which grows with the column."""
    if not lines:
        return []
    growth = 1.0
    for one in lines:
        variance = diagonal_covariance(Leaf(one.kernel, 0), np.array(ends)[:, None])
        at_begin, at_end = variance.forward(one.params)
        growth *= float(np.sqrt(at_end / at_begin))
    if growth < MIN_AMPLITUDE_RATIO:
        return []
    how = "linearly" if len(lines) == 1 else f"as a polynomial of degree {len(lines)}"
    return [f"grows {how} in amplitude"]


class Description:
    """A fitted model in words.

    Parameters
    ----------
    model : FittedModel
        The model.
    units : mapping of str to str
        Units of the columns by name, and of the target under ``"y"``.
    """

    def __init__(self, model: FittedModel, units: Mapping[str, str]) -> None:
        self._model, self._target_unit = model, units.get(TARGET, "")
        self._explained = ExplainedFunction(model)
        self.names = model.column_names
        self.axes = [
            Axis.of(name, units.get(name, ""), *model.scaling.of_column(column))
            for column, name in enumerate(self.names)
        ]
        (self._best,) = (k for k in model.kernels if k.evaluation is model.evaluation)
        self._phrases_of = cache(self._phrases)

    def decompose(self, X: FloatArray) -> Decomposition:
        """Compute the components at inputs (n, n_features)."""
        components, inputs = [], self._model.scaling.apply(X)
        for part in self._explained.parts:
            mean, std = self._explained.mean_and_std(part, inputs)
            text, where = self._text(part), part.expression.to_text(self._model.feature_names)
            components.append(Component(where, text, mean, std, part.share))
        if self._explained.is_averaged:
            mean, std = self._explained.added_by_averaging(inputs)
            share = self._explained.share_of_averaging
            components.append(Component("", TEXT_OF_AVERAGING, mean, std, share))
        constant = self._model.target_scaling.shift
        return Decomposition(constant, float(np.sqrt(self._model.noise_variance)), components)

    def texts(self) -> list[tuple[float, str]]:
        """Return the share and the text of each component of the best kernel."""
        return [(part.share, self._text(part)) for part in self._explained.parts]

    def columns_of(self, number: int) -> list[int]:
        """Return the columns of a component."""
        trees = self._explained.parts[number].expression.subtrees()
        return sorted({tree.column for tree in trees if tree.column is not None})

    def along(
        self, number: int, columns: Sequence[int], n_points: int
    ) -> tuple[list[FloatArray], FloatArray, FloatArray]:
        """Compute a component on a grid of its columns, the others at their medians.

        Returns
        -------
        axes : list of ndarray of shape (n_points,)
            Values along each column, in its units, over the extent of the data.
        mean, std : ndarray of shape (n_points,) for each column
            Mean in the units of the target, and standard deviation of the difference from the
            average over the grid, because components can exchange a constant.
        """
        X = self._model.mixture.data.X
        steps = [
            np.linspace(X[:, column].min(), X[:, column].max(), n_points) for column in columns
        ]
        grid = np.meshgrid(*steps, indexing="ij")
        inputs = np.tile(np.median(X, axis=0), (grid[0].size, 1))
        for column, values in zip(columns, grid, strict=True):
            inputs[:, column] = values.ravel()
        part, about = self._explained.parts[number], inputs[:: max(1, len(inputs) // N_GRID)]
        mean, std = self._explained.mean_and_std(part, inputs, about=about)
        scaling = self._model.scaling
        axes = [
            scaling.shift[column] + scaling.scale[column] * values
            for column, values in zip(columns, steps, strict=True)
        ]
        return axes, mean.reshape(grid[0].shape), std.reshape(grid[0].shape)

    def paragraphs(self) -> list[str]:
        """Describe each component and its effect, the largest share first."""
        return [f"{self._text(part)} {self._effect(part)}" for part in self._explained.parts]

    def __str__(self) -> str:
        parts = [f"{place}. {text}" for place, text in enumerate(self.paragraphs(), start=1)]
        return "\n\n".join([self.overview(), *parts])

    def overview(self) -> str:
        """Say how many components there are, how much noise, and which columns matter."""
        model, unit = self._model, self._target_unit
        noise = with_unit(float(np.sqrt(model.noise_variance)), unit)
        if model.target_scaling.is_constant:
            constant = with_unit(model.target_scaling.shift, unit)
            return f"The target is constant, {constant}: the data do not show how it would vary."
        if model.evaluation.expression == NOISE:
            return (
                f"No structure was found: the target is noise with a standard deviation of {noise} "
                f"around its mean, {with_unit(model.target_scaling.shift, unit)}."
            )
        share = model.noise_variance / model.target_scaling.scale**2
        sentences = [
            f"The target is the sum of a constant, {with_unit(model.target_scaling.shift, unit)}, "
            f"{counted(len(self._explained.parts), 'component')} and noise with a standard "
            f"deviation of {noise}, {percent(share)} of its variance.",
            *self._columns(),
        ]
        if self._explained.is_averaged:
            added = self._explained.std_of_averaging
            if added > np.sqrt(MIN_AVERAGING_SHARE) * model.target_scaling.scale:
                sentences.append(
                    "Predictions average over other kernels and parameters too, which changes them "
                    f"by {with_unit(added, unit)} (root mean square over the data)."
                )
        if len(model.kernels) > 1:
            kernel = model.evaluation.expression.to_text(model.feature_names)
            sentences.append(
                f"What follows is the best kernel, {kernel}; its probability among those that were "
                f"evaluated is {self._best.probability:.2f}."
            )
        return " ".join(sentences)

    def _columns(self) -> Iterator[str]:
        """Say which columns matter, with which probability."""
        inclusion = inclusion_table(self._model)
        rows = list(zip(inclusion["column"], inclusion["depends"], strict=True))
        if len(rows) == 1:
            return
        clearly = [name for name, p in rows if p > CERTAIN]
        perhaps = [(name, p) for name, p in rows if EXCLUDED <= p <= CERTAIN]
        not_at_all = [name for name, p in rows if p < EXCLUDED]
        if clearly:
            verb = "matters" if len(clearly) == 1 else "matter"
            yield f"{listing(clearly)} {verb}, with a probability above {CERTAIN}."
        if perhaps:
            texts = [f"{name} matters with a probability of {p:.2f}" for name, p in perhaps]
            yield f"{listing(texts)}."
        if not_at_all:
            verb = "does" if len(not_at_all) == 1 else "do"
            yield f"{listing(not_at_all)} {verb} not matter, with a probability above {CERTAIN}."

    def _text(self, part: Part) -> str:
        found = self._phrases_of(part)
        if found is None:
            return f"A function with the kernel {part.expression.to_text(self.names)}."
        regions, phrases = found
        is_only = len(self.names) == 1
        where = [
            region.text(self.axes[column], is_only=is_only) for column, region in regions.items()
        ]
        where = [text for text in where if text]
        begin = f"{listing(where)}, a" if where else "a"
        return f"{begin[0].upper()}{begin[1:]} {self._noun(part, phrases)}."

    def _noun(self, part: Part, phrases: Sequence[tuple[int, Phrase]]) -> str:
        """Name a component, without the article and the region where it plays a part."""
        if len(phrases) == 1:
            ((column, phrase),) = phrases
            clauses = [*self._direction(part, column), *phrase.clauses]
            along = "of" if "function" in phrase.noun else "in"
            return f"{phrase.noun} {along} {self.names[column]}{_that(clauses)}"
        names = listing([self.names[column] for column, _ in phrases])
        nouns = {phrase.noun for _, phrase in phrases}
        if len(nouns) == 1 and all(phrase.clauses for _, phrase in phrases):
            whole = [f"in {self.names[c]} it {listing(phrase.clauses)}" for c, phrase in phrases]
            return f"{nouns.pop()} of {names} together: {'; '.join(whole)}"
        whole = [
            f"in {self.names[column]} it is a {phrase.noun}{_that(phrase.clauses)}"
            for column, phrase in phrases
        ]
        return f"joint effect of {names}: {'; '.join(whole)}"

    def _effect(self, part: Part) -> str:
        """Say how large a component is, and how it continues beyond the data."""
        if part.span <= STILL * self._model.target_scaling.scale:
            return "It does not vary over the data."
        unit = self._target_unit
        explains = f"It explains {percent(part.share)} of the variance"
        if part.share < 0:
            explains = "It works against the other components"
        extent = f"{explains}, and spans {with_unit(part.span, unit)}."
        return " ".join([extent, *self._beyond(part)])

    def _beyond(self, part: Part) -> Iterator[str]:
        """Say how a component continues beyond the data, if that is known."""
        found = self._phrases_of(part)
        if found is None:
            return
        regions, phrases = found
        if any(region.has_ended for region in regions.values()):
            yield "It ends before the data do."
            return
        fading = [(column, one.fades) for column, one in phrases if one.fades is not None]
        if not fading:
            yield "It goes on beyond the data."
            return
        lengths = [
            f"{with_unit(FADING_LENGTHS * scale.value, self.axes[column].unit)}"
            + (f" of {self.names[column]}" if len(phrases) > 1 else "")
            for column, scale in fading
        ]
        yield f"Beyond the data it fades within about {listing(lengths)}."

    def _direction(self, part: Part, column: int) -> Iterator[str]:
        """Say whether a component of one column rises or falls, or turns once."""
        regions, _ = self._phrases_of(part) or ({}, [])
        region = regions.get(column)
        ends = WHOLE_COLUMN if region is None else region.inner
        if ends is None:
            return
        places = np.linspace(*ends, N_GRID)
        axis = self.axes[column]
        curve = self._curve(part, column, places)
        reach = np.ptp(curve)
        if reach <= MIN_REACH * part.span:
            return
        for sign, word, other in ((1, "rises", "falls"), (-1, "falls", "rises")):
            if _way_back(sign * curve) < NEARLY_MONOTONE * reach:
                if isinstance(part.expression, Leaf) and part.expression.kernel.is_linear:
                    slope = abs(float(curve[-1] - curve[0])) / (axis.scale * np.ptp(places))
                    per = singular(axis.unit) or "unit"
                    word = f"{word} by {with_unit(slope, self._target_unit)} per {per}"
                yield word
                return
            turn = int(np.argmax(sign * curve))
            before, after = sign * curve[: turn + 1], -sign * curve[turn:]
            if (
                max(_way_back(before), _way_back(after)) < NEARLY_MONOTONE * reach
                and min(np.ptp(before), np.ptp(after)) > MIN_TURN * reach
            ):
                yield f"{word} until {axis.place(places[turn])} and {other} from there on"
                return

    def _wave_share(
        self, part: Part, column: int, ends: tuple[float, float], period: float
    ) -> float:
        """Compute the share of the variance along a column around averages over a period."""
        n_periods = np.ptp(ends) / period
        places = np.linspace(*ends, int(min(POINTS_PER_PERIOD * n_periods, MAX_POINTS)))
        curve = self._curve(part, column, places)
        window = max(2, round(len(places) / n_periods))
        level = np.convolve(curve, np.full(window, 1 / window), mode="valid")
        within = curve[(window - 1) // 2 :][: len(level)]  # where there are averages
        return float((within - level).var() / within.var()) if within.var() > 0 else 1.0

    def _curve(self, part: Part, column: int, places: FloatArray) -> FloatArray:
        X = np.tile(np.median(self._model.mixture.data.X, axis=0), (len(places), 1))
        X[:, column] = places
        return self._explained.mean(part, X)

    def _phrases(self, part: Part) -> "PhrasesOfPart | None":
        """Describe the product on each column; None with operators other than sum and product."""
        if not all(isinstance(one, Leaf) for one in part.expression.terms(MULTIPLY)):
            return None
        draws, start = self._best.draws[:, part.entries], 0
        regions: dict[int, Region] = {}
        others: list[tuple[Leaf, slice]] = []
        for leaf in part.expression.leaves:
            entries = slice(start, start + n_kernel_params(leaf))
            start = entries.stop
            if isinstance(leaf.kernel, Share):
                theta, drawn = np.exp(part.theta[entries]), np.exp(draws[:, entries])
                highest = float(self._model.mixture.data.X[:, leaf.column].max())
                region = Region.of(leaf.column, leaf.kernel, theta, drawn, highest)
                known = regions.get(leaf.column)
                regions[leaf.column] = region if known is None else known.intersect(region)
            else:
                others.append((leaf, entries))
        phrases: list[tuple[int, Phrase]] = []
        others.sort(key=lambda one: one[0].column)
        for column, group in groupby(others, key=lambda one: one[0].column):
            ends = regions[column].longest if column in regions else WHOLE_COLUMN
            factors = [
                self._factor(leaf, part.theta[entries], draws[:, entries], extent=np.ptp(ends))
                for leaf, entries in group
            ]
            wave_share = partial(self._wave_share, part, column, ends)
            phrase = phrase_of(factors, self.axes[column].unit, ends, wave_share)
            phrases.append((column, phrase))
        return regions, phrases

    def _factor(self, leaf: Leaf, theta: FloatArray, draws: FloatArray, *, extent: float) -> Factor:
        """Collect the parameters of a leaf in the units of its column.

        ``extent`` is that of the part of the column where the component plays a part.
        """
        scale = self.axes[leaf.column].scale
        scales = {}
        for place, parameter in enumerate(leaf.kernel.parameters):
            if parameter.role in OWN_UNIT and parameter.unit == Unit.INPUT:
                low, high = interval(np.exp(draws[:, place])) * scale
                value = float(np.exp(theta[place]))
                scales[Role(parameter.role)] = Scale(value * scale, low, high, value / extent)
        return Factor(leaf, np.exp(theta), scales)


PhrasesOfPart = tuple[Mapping[int, Region], Sequence[tuple[int, Phrase]]]
"""Where a component plays a part, by column, and a phrase for each of its columns."""


def _way_back(curve: FloatArray) -> float:
    return float(-np.minimum(np.diff(curve), 0).sum())


def _that(clauses: Sequence[str]) -> str:
    """Join what is said of a noun by a relative pronoun."""
    return f" that {listing(clauses)}" if clauses else ""
