"""Facts about a fitted function, each one computed on the function and on draws of it.

A fact holds for the mean of its component. Its probability is the share of draws for which it
holds, each draw being one of a kernel, of its parameters and of the function; a kernel without a
component like this one counts as none for which it holds. Values are those of the mean, with
central 90 % intervals of the draws. How facts are written is decided in ``sentences``.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain

import numpy as np
from scipy.signal import find_peaks

from autokernel.explain.axes import MAX_VALUES
from autokernel.explain.decomposition import ExplainedFunction
from autokernel.explain.parts import Part
from autokernel.explain.words import CERTAIN, interval
from autokernel.typing import BoolArray, FloatArray

N_GRID = 65  # points of a curve over the data
BEYOND = 0.5  # extents beyond the data, up to which a season is followed
NEAR_BEYOND = 0.25  # extents beyond the data, up to which a curve is followed
POINTS_OF_CYCLE, POINTS_OF_LEVEL = 32, 16  # of a wave, and of an average over one
POINTS_OF_LEVELS, N_WITHIN = 364, 4  # of all such averages, and within a shorter cycle
MIN_OF_CYCLE, MAX_CYCLES = 4, 7  # rows that show a wave, and cycles of which it is an average
OUTSIDE = 0.025  # share of the rows at each end of a column for which a few extreme ones stand
NEARLY_LINE = 0.95  # share of the variance of a curve along the log or the root of a column
SURE = 0.9  # probability of a component below which none is named
LIKELY = 0.7  # the same of a direction
MIN_TURN = 0.1  # part of the range by which a turn or the growth of a swing must stand out
MIN_GROUPS = 5  # that are compared
DETOUR = 0.25  # part of the change between the ends of a curve that rises or falls on the whole
HALF = 0.5  # of a swing, a height or a trend, from which it is said to continue

Quantity = Callable[[FloatArray], FloatArray]
"""Function that computes a number (n,) of each of some curves (n, n_points)."""
Ends = tuple[float, float, float]
"""A number with the ends of its interval."""


@dataclass(frozen=True, slots=True)
class Fact:
    """One thing that is said of a fitted function."""

    subject: str  # the target, a column, or a component by its kernel
    predicate: str  # what is said, such as "rises" or "repeats"
    value: float = np.nan  # a number with its central 90 % interval, nan where there is none
    low: float = np.nan
    high: float = np.nan
    unit: str = ""
    probability: float = 1.0  # that it is true, given the kernels of the search
    evidence: str = ""  # how it was computed
    text: str = ""  # the sentence that states it, empty if that is the one of the fact before it

    @property
    def ends(self) -> Ends:
        """The number with the ends of its interval."""
        return self.value, self.low, self.high

    def scaled(self, factor: float, shift: float = 0.0) -> "Fact":
        """Return the fact with its number in another unit."""
        return self.moved(*(shift + factor * one for one in self.ends))

    def moved(self, value: float, low: float, high: float) -> "Fact":
        """Return the fact with another number and interval."""
        return replace(self, value=value, low=low, high=high)

    def said(self, text: str) -> "Fact":
        """Return the fact with the sentence that states it."""
        return replace(self, text=text)


@dataclass(frozen=True, slots=True, eq=False)  # eq=False: the fields hold arrays
class Curve:
    """A component along its column: its mean over kernels, and draws (n_draws, n_points)."""

    places: FloatArray  # (n_points,), in the unit interval of the column on its scale
    mean: FloatArray
    draws: FloatArray  # of kernels that have such a component
    present: float = 1.0  # probability of these kernels
    is_rough: bool = False  # whether it differs between neighbouring places

    def probability(self, holds: Callable[[FloatArray], BoolArray]) -> float:
        """Compute the probability that a condition on curves (n, n_points) holds."""
        return self.present * float(np.mean(holds(self.draws)))

    def measured(self, quantity: Quantity, *, is_place: bool = False) -> Ends:
        """Compute a quantity of the mean, and the ends of its 90 % interval, nan if it is known.

        It is zero in kernels without the component, unless it is a place.
        """
        value = float(quantity(self.mean[None])[0])
        if np.ptp(self.draws, axis=0).max() == 0:
            return value, np.nan, np.nan
        found = quantity(self.draws)
        if self.present < CERTAIN and not is_place:
            n_without = round(len(found) * (1 - self.present) / max(self.present, 1 / len(found)))
            found = np.append(found, np.zeros(n_without))
        low, high = interval(found).tolist()
        return value, low, high

    @property
    def reach(self) -> float:
        """The range of the mean."""
        return float(np.ptp(self.mean))

    def range_of(self, curves: FloatArray) -> FloatArray:
        """Return the differences (n,) of curves between where the mean is highest and lowest."""
        return curves[:, np.argmax(self.mean)] - curves[:, np.argmin(self.mean)]

    @property
    def detours(self) -> bool:
        """Whether the range of the mean is clearly larger than the change between its ends."""
        return self.reach > (1 + DETOUR) * abs(float(self.mean[-1] - self.mean[0]))


def central(x: FloatArray, places: FloatArray) -> tuple[float, float]:
    """Return the ends of some values (n,), without 2.5 % of the rows at an end if they are far off.

    They are if they take three times as much of the column, at places (n,) on its scale, and leave
    more than one value.
    """
    order, n_outside = np.argsort(places, kind="stable"), int(OUTSIDE * len(x))
    ends = []
    for end, inner in ((0, n_outside), (-1, -1 - n_outside)):
        outside = abs(places[order[inner]] - places[order[end]])
        is_far = outside > 3 * OUTSIDE * np.ptp(places)
        ends.append(float(x[order[inner if is_far else end]]))
    low, high = ends
    return (low, high) if low != high else (float(x[order[0]]), float(x[order[-1]]))


def curve_of(explained: ExplainedFunction, part: Part, values: FloatArray) -> Curve:
    """Compute a component along values of its column, on average over the kernels that have it."""
    mean, draws = map(explained.in_unit, explained.draws(part, values))
    return Curve(explained.view(part).forward(values), mean, draws, explained.probability(part))


def within_and_between(explained: ExplainedFunction, part: Part) -> tuple[Ends, Ends] | None:
    """Compute the slopes of predictions along a column within groups, and of the groups' means.

    They are along the scale of the column. None if the groups of the series are not known or few,
    if the column hardly varies within or between them, or if the slopes do not differ certainly by
    half of the larger one, also without any one of the groups.
    """
    model, X = explained.model, explained.X
    if not model.series.groups or part.column in model.series.columns:
        return None
    names, group, n = np.unique(
        X[:, model.series.groups], axis=0, return_inverse=True, return_counts=True
    )
    x = explained.view(part).forward(X[:, part.column])
    between = (np.bincount(group, x) / n)[group] - x.mean()
    both = np.column_stack([x - x.mean() - between, between])
    squares = np.sum(both**2, axis=0)
    if len(names) < MIN_GROUPS or n.mean() < 3 or squares.min() <= 2e-3 * squares.sum():
        return None
    some, y, draws = explained.predictions
    terms = np.column_stack([np.ones(len(y)), y, both, both * y[:, None], both**2])
    sums = np.transpose([np.bincount(group, one) for one in terms.T])
    sums = sums.sum(axis=0) - np.vstack([0 * sums[:1], sums])  # of all groups, then without each
    n_rows, of_y, of_x, xy, xx = np.split(sums, [1, 2, 4, 6], axis=1)
    every = (xy - of_x * of_y / n_rows) / np.maximum(xx - of_x**2 / n_rows, 1e-12 * squares)
    slopes, apart = every[0], every[:, 0] - every[:, 1]
    centred = both[some] - both[some].mean(axis=0)  # draws may be higher on the whole
    changes = (draws - y[some]) @ centred / np.sum(centred**2, axis=0)
    more = np.mean(changes @ [1.0, -1.0] > -apart[0])
    is_apart = np.all(np.sign(apart[0]) * apart > HALF * np.abs(every).max(axis=1))
    is_apart &= bool(np.all(np.abs(every - slopes) <= np.abs(slopes)))  # carried by no group
    if not is_apart or 1 - CERTAIN < more < CERTAIN:
        return None
    low, high = slopes + interval(changes)
    first, second = zip(slopes.tolist(), low.tolist(), high.tolist(), strict=True)
    return first, second


def direction(curve: Curve, subject: str) -> Fact:
    """Say whether a curve rises, falls, turns once, or more often.

    The value of a line is its slope along the places, that of a turn its place; of other curves
    it is the change from one end to the other, or the range. A curve that rises may turn on the
    way, if this is small.
    """
    x, mean = curve.places, curve.mean
    if curve.reach <= 0:
        return Fact(subject, "does not vary", 0.0, 0.0, 0.0, evidence="its range is zero")
    if _line_shares(x, mean[None])[0] > 0.998:  # of the variance
        how = "slope of a line through the curve, which explains its variance"
        return rise_or_fall(curve, slopes_along(x), Fact(subject, "{} linearly", evidence=how))
    turns, sure = _turns(curve)
    back, is_sure = _setback(curve)
    is_back = back > DETOUR * abs(mean[-1] - mean[0]) and len(peaks_of(mean)) > 1
    sure = sure if turns else is_sure
    if not (is_back and sure >= SURE) and len(turns) != 1:
        how = "difference between the ends of a curve"
        return rise_or_fall(curve, changes_of, Fact(subject, "{}", evidence=how))
    if len(turns) != 1:
        measured = curve.measured(curve.range_of)
        how = f"range; it turns {len(turns)} times" if turns else "range"
        sure = min(sure, curve.probability(lambda one: curve.range_of(one) > HALF * curve.reach))
        return Fact(subject, "goes up and down", *measured, probability=sure, evidence=how)
    sign = 1 if mean[turns[0]] > mean[0] else -1
    word = "rises then falls" if sign > 0 else "falls then rises"
    how = f"place of the {'highest' if sign > 0 else 'lowest'} point"
    tops = _tops if len(x) > MAX_VALUES else lambda x, curves: x[np.argmax(curves, axis=1)]
    place = curve.measured(lambda curves: tops(x, sign * curves), is_place=True)
    return Fact(subject, word, *place, probability=sure, evidence=how)


def _setback(curve: Curve) -> tuple[float, float]:
    """Return how far the mean goes back at most, and the probability that the curve does there."""
    forward = np.sign(curve.mean[-1] - curve.mean[0]) * curve.mean
    back = np.maximum.accumulate(forward) - forward
    end = int(np.argmax(back))
    begin = int(np.argmax(forward[: end + 1]))
    sign = np.sign(curve.mean[begin] - curve.mean[end])
    sure = curve.probability(lambda curves: sign * (curves[:, begin] - curves[:, end]) > 0)
    return float(back[end]), sure


def rise_or_fall(curve: Curve, quantity: Quantity, fact: Fact) -> Fact:
    """Complete a fact about a curve that rises or falls, by the sign of a quantity."""
    value, low, high = curve.measured(quantity)
    same_sign = curve.probability(lambda curves: quantity(curves) * value > 0)
    word = fact.predicate.format("rises" if value > 0 else "falls")
    return Fact(fact.subject, word, value, low, high, "", same_sign, fact.evidence)


def nearly_line(curve: Curve, subject: str) -> Fact | None:
    """Say whether a curve is nearly a straight line along the scale of its places.

    Its slopes in each eighth of the middle nine tenths agree within a fifth with their mean.
    """
    share, x = float(_line_shares(curve.places, curve.mean[None])[0]), curve.places
    at = x[0] + np.ptp(x) * np.linspace(0.05, 0.95, 9)
    slopes = np.diff(np.interp(at, x, curve.mean))
    if np.any(np.abs(slopes - slopes.mean()) > 0.2 * abs(slopes.mean())):
        return None
    sure = curve.probability(lambda drawn: _line_shares(curve.places, drawn) >= 2 * NEARLY_LINE - 1)
    how = "share of the variance of the curve that a line on this scale explains"
    return Fact(subject, "follows its scale", share, probability=sure, evidence=how)


def half_way(curve: Curve, subject: str, *, is_log: bool) -> Fact | None:
    """Say until where half of the change between the ends of a curve that does not turn happens.

    That is half of the change of the target, also if the curve has the logs of factors.
    """
    if curve.detours:
        return None
    sign = np.sign(changes_of(curve.mean[None])[0])
    amounts = np.exp if is_log else np.positive
    places = curve.measured(
        lambda curves: np.array([_middle(curve.places, sign * amounts(one)) for one in curves]),
        is_place=True,
    )
    return Fact(subject, "is half way", *places, evidence="half of the difference between the ends")


def _middle(places: FloatArray, rising: FloatArray) -> float:
    """Return where a curve (n_points,) that rises, if only on the whole, is half way."""
    values = np.maximum.accumulate(rising)
    return float(np.interp((values[0] + values[-1]) / 2, values, places))


def _line_shares(x: FloatArray, curves: FloatArray) -> FloatArray:
    """Compute the shares (n,) of the variances of curves (n, n_points) that lines explain."""
    lines = slopes_along(x)(curves)[:, None] * (x - x.mean())
    residuals = curves - curves.mean(axis=1, keepdims=True) - lines
    return 1 - residuals.var(axis=1) / np.maximum(curves.var(axis=1), 1e-300)


def peaks_of(mean: FloatArray) -> list[int]:
    """Return where a curve (n_points,) turns, by their numbers among the points."""
    least = MIN_TURN * float(np.ptp(mean))
    found = (find_peaks(sign * mean, prominence=least)[0].tolist() for sign in (1, -1))
    return sorted(chain.from_iterable(found))


def _turns(curve: Curve) -> tuple[list[int], float]:
    """Find the turning points that stand out in the mean, and by half as much in most draws.

    Returns their numbers among the places, and the least share of draws in which the changes
    between them do.
    """
    least, at = MIN_TURN * curve.reach, [0, *peaks_of(curve.mean), len(curve.mean) - 1]
    while len(at) > 2:
        agree = np.diff(curve.draws[:, at]) * np.sign(np.diff(curve.mean[at])) > HALF * least
        shares = agree.mean(axis=0)
        worst = int(np.argmin(shares))
        if shares[worst] >= SURE:
            return at[1:-1], curve.present * float(shares[worst])
        ends = (0, len(at) - 1)
        at = [at[n] for n in range(len(at)) if n in ends or n not in (worst, worst + 1)]
    return [], 1.0


def jump(curve: Curve, subject: str) -> Fact | None:
    """Say where most of the change between the ends of a curve happens, if it is a short part."""
    n, change = len(curve.mean), float(changes_of(curve.mean[None])[0])
    length = max(1, round(0.1 * (n - 1)))  # a tenth of the curve

    def steps(curves: FloatArray) -> FloatArray:
        """Return the changes within short parts, as shares of that between the ends."""
        return (curves[:, length:] - curves[:, :-length]) / change

    def places(curves: FloatArray) -> FloatArray:
        """Return where half of the largest change within a short part has happened."""
        inside = [slice(first, first + length + 1) for first in np.argmax(steps(curves), axis=1)]
        pairs = zip(inside, curves / change, strict=True)
        return np.array([_middle(curve.places[rows], one[rows]) for rows, one in pairs])

    if n < 4 or steps(curve.mean[None]).max() < 0.75:  # of the change
        return None
    sure = curve.probability(lambda curves: steps(curves).max(axis=1) >= HALF)
    place, how = curve.measured(places, is_place=True), "largest change within a tenth of the curve"
    return Fact(subject, "jumps", *place, probability=sure, evidence=how)


def levels_of(curve: Curve, names: Sequence[str]) -> list[Fact]:
    """Say how far each level of a category is from the average over the rows, the highest first.

    The probability is that the highest level is higher than the lowest.
    """
    order = np.argsort(-curve.mean, kind="stable").tolist()
    sure = curve.probability(lambda drawn: drawn[:, order[0]] > drawn[:, order[-1]])
    heights = {at: curve.measured(partial(np.take, indices=at, axis=1)) for at in order}
    about = "", sure, "difference from the average over the rows"
    return [Fact(names[at], "level differs", *ends, *about) for at, ends in heights.items()]


def cycles_of_longer(explained: ExplainedFunction, part: Part, extent: float) -> tuple[int, Part]:
    """Return how many cycles a longer season has, which may change them, and the sum of both.

    Cycles are averaged over one of it, or over some if it is much longer.
    """
    most = (MAX_CYCLES + HALF) * part.period
    own = [one for one in explained.along(part.column) if one.is_season and one.period < most]
    sure = [one for one in own if explained.probability(one) >= SURE]
    longer = [one for one in sure if _is_within(explained, part, one)]
    periods = [one.period for one in longer]
    n = min(MAX_CYCLES, round(max([part.every_period[-1], *periods]) / part.period))
    if n * part.period > HALF * extent:
        return 1, part
    return n, replace(part.joined_with(*longer), period=part.period, longer=periods)


def _is_within(explained: ExplainedFunction, short: Part, long: Part) -> bool:
    """Whether a longer season has waves within the cycles of a shorter one."""
    if long.period < short.period / HALF:
        return False
    cycle = explained.ends(short.column)[1] - short.period * np.linspace(1, 0, POINTS_OF_CYCLE + 1)
    own, other = (swings_of(explained.mean(one, cycle)[None])[0] for one in (short, long))
    return bool(other > MIN_TURN * own)


def _places_of_cycle(
    explained: ExplainedFunction, part: Part, end: float
) -> tuple[FloatArray, FloatArray]:
    """Return places (n_points, n_averaged) in a cycle, those of rows if few, and its parts there.

    Those of a season with a shorter one in it are averages over a cycle of this.
    """
    x, period = explained.X[:, part.column], part.period
    own = [one for one in explained.along(part.column) if one.is_season]
    shorter = max((one.period for one in own if _is_within(explained, one, part)), default=np.nan)
    rows = np.unique(x[(x > end - (1 - 1e-9) * period) & (x <= end)])
    along = np.linspace(0, 1, POINTS_OF_CYCLE + 1)
    if shorter > period / POINTS_OF_CYCLE:
        along = np.linspace(0, 1, round(period / shorter) + 1)
    elif MIN_OF_CYCLE <= len(rows) <= POINTS_OF_CYCLE:
        steps = np.diff(rows, prepend=end - period)
        apart = np.abs((x[:, None] - rows) / period % 1 - HALF)  # one half at equal parts of cycles
        n_same = np.sum(apart.max(axis=1) > HALF - 0.25 / len(rows))
        if steps.max() < 2.5 * np.median(steps) and n_same > SURE * len(x):
            along = np.append(0.0, steps.cumsum() / period)
    averaged = np.zeros(1) if np.isnan(shorter) else (np.arange(N_WITHIN) + HALF) / N_WITHIN
    return np.add.outer(along * period, averaged * np.nan_to_num(shorter)), along


def _waves(curves: FloatArray, places: FloatArray, along: FloatArray) -> FloatArray:
    """Return cycles (n, n_cycles, n_points) of curves, less the straight lines through their ends.

    Points are averages over places (n_points, n_averaged), and ``along`` are the parts of a cycle.
    """
    points = curves.reshape(len(curves), -1, *places.shape).mean(axis=3)
    first, last = points[:, :, :1], points[:, :, -1:]
    return points - first - (last - first) * along


def season(
    explained: ExplainedFunction, part: Part, ends: tuple[float, float], subject: str
) -> tuple[list[Fact], Fact, Fact]:
    """Say how large the swing of a season is, how it changes, and whether it continues.

    The swing is the range within one cycle, less a straight line through both ends of the cycle:
    of the first and the last between the ends, and of those beyond. Cycles that a longer season
    changes are averages over one of this. After the swing come the lowest and the highest point of
    the last cycle and of the first, as differences from the average.
    """
    begin, end = ends
    n_averaged, whole = cycles_of_longer(explained, part, end - begin)
    places, along = _places_of_cycle(explained, part, end)
    length = n_averaged * part.period
    n_beyond = max(1, int(np.ceil(BEYOND * (end - begin) / length)))
    ahead = np.unique(np.geomspace(1, n_beyond, 6 if n_averaged == 1 else 2).astype(int))
    starts = length * np.array([-int((end - begin) / length + 1e-9), -1, *(ahead - 1)])
    places = np.add.outer(places, part.period * np.arange(n_averaged)).reshape(len(places), -1)
    values = np.add.outer(end + starts, places).ravel()
    curve, waves = curve_of(explained, whole, values), partial(_waves, places=places, along=along)
    first, last, *later = np.ptp(waves(curve.mean[None])[0], axis=1).tolist()
    sign, word = (1, "grows") if last > first else (-1, "shrinks")
    least = MIN_TURN * max(first, last)
    changed = curve.probability(
        lambda drawn: sign * (np.ptp(waves(drawn)[:, :2], axis=2) @ [-1.0, 1.0]) > least
    )
    floor, how = 1e-6 * max(first, last) or 1.0, "ratio of the last cycle to the first"
    ratio = max(last, floor) / max(first, floor)
    grows = Fact(subject, f"swing {word}", ratio, probability=changed, evidence=how)
    weights, means = explained.means_of_draws(part, values)
    _, now, *_, far = np.ptp(waves(explained.in_unit(means)), axis=2).T
    lasts = Fact(subject, "repeats beyond", evidence=f"swing {BEYOND:g} extents beyond the data")
    holds = far >= HALF * now
    if later[-1] < HALF * last:
        lost = next(n for n, one in zip(ahead, later, strict=True) if one < HALF * last)
        lasts = Fact(subject, "fades beyond", float(lost) * length, evidence="later swings")
        holds = ~holds
    present = explained.probability(replace(part, is_season=True))
    sure = min(present, curve.present * float(weights @ holds))
    return _swing(waves, curve, subject, present), grows, replace(lasts, probability=sure)


def _swing(waves: Quantity, curve: Curve, subject: str, sure: float) -> list[Fact]:
    def extreme(curves: FloatArray, at: int, function: Callable[..., FloatArray]) -> FloatArray:
        """Return the lowest or highest points (n,) of one cycle, as differences from its mean."""
        wave = waves(curves)[:, at, :-1]
        return function(wave - wave.mean(axis=1, keepdims=True), axis=1)

    found = {"swing": curve.measured(lambda curves: np.ptp(waves(curves)[:, 1], axis=1))}
    for at, name in ((1, "swing"), (0, "first swing")):
        for word, function in (("lowest", np.min), ("highest", np.max)):
            found[f"{word} of {name}"] = curve.measured(partial(extreme, at=at, function=function))
    how = "wave within a cycle"
    return [Fact(subject, name, *ends, "", sure, how) for name, ends in found.items()]


def swings_of(curves: FloatArray) -> FloatArray:
    """Return the ranges (n,) of curves along one cycle, without the line through their ends."""
    line = np.linspace(curves[:, 0], curves[:, -1], curves.shape[1], axis=1)
    return np.ptp(curves - line, axis=1)


def level_of(explained: ExplainedFunction, part: Part) -> Curve:
    """Compute the averages over a period, along the scale of the column.

    Between the middles of two cycles, and beyond those of the first and the last, the level is
    taken to be a straight line.
    """
    begin, end = explained.ends(part.column)
    steps = np.diff(np.unique(explained.X[:, part.column]))
    n_points = int(np.clip(part.period / np.median(steps) + HALF, 4, POINTS_OF_LEVEL))
    offsets = (np.arange(n_points) + 0.5) / n_points * part.period
    n_starts = int(min(POINTS_OF_LEVELS // n_points, max(3, 2 * (end - begin) / part.period)))
    starts = np.linspace(begin, end - part.period, n_starts)
    curve = curve_of(explained, part, (starts[:, None] + offsets).ravel())
    middles = curve.places.reshape(n_starts, -1).mean(axis=1)
    ends = explained.view(part).forward(np.array([begin, end]))
    middles = np.concatenate([ends[:1], middles, ends[1:]])
    apart = np.diff(middles)

    def averages(drawn: FloatArray) -> FloatArray:
        inside = drawn.reshape(len(drawn), n_starts, n_points).mean(axis=2)
        steps = np.diff(inside, axis=1)
        first = inside[:, :1] - apart[0] / apart[1] * steps[:, :1]
        last = inside[:, -1:] + apart[-1] / apart[-2] * steps[:, -1:]
        return np.concatenate([first, inside, last], axis=1)

    return Curve(middles, averages(curve.mean[None])[0], averages(curve.draws), curve.present)


def beyond_of(explained: ExplainedFunction, part: Part, subject: str) -> Fact:
    """Say how a component goes on beyond the data: on as before, back to its average, or otherwise.

    The value is its change over the next quarter of the extent of the data. Of a component with a
    period, averages over the last cycle are compared.
    """
    begin, end = explained.ends(part.column)
    ahead = NEAR_BEYOND * (end - begin)
    cycle = np.zeros(1)
    if np.isfinite(part.period):
        cycle = (np.arange(POINTS_OF_LEVEL) + 0.5) / POINTS_OF_LEVEL * part.period - part.period
    places = np.array([end - ahead, end, end + ahead])
    curve = curve_of(explained, part, (places[:, None] + cycle).ravel())

    def averages(drawn: FloatArray) -> FloatArray:
        return drawn.reshape(len(drawn), len(places), len(cycle)).mean(axis=2)

    before, last, later = averages(curve.mean[None])[0].tolist()
    how = f"predictions up to {NEAR_BEYOND:g} extents beyond the data"
    changes = Fact(subject, "changes beyond", evidence=how)
    change = rise_or_fall(curve, lambda drawn: averages(drawn) @ [0.0, -1.0, 1.0], changes)
    average = explained.in_unit(explained.mean(part, np.linspace(begin, end, N_GRID))).mean()
    if not change.low <= change.value <= change.high and np.isfinite(change.low):
        return replace(change, predicate="is open beyond", probability=0.0)  # kernels disagree
    if change.value * (last - before) > 0 and abs(change.value) >= HALF * abs(last - before):
        return replace(change, predicate="continues beyond")
    is_back = abs(later - average) < HALF * abs(last - average)
    if is_back and change.value * (last - average) < 0:
        return replace(change, predicate="returns beyond")
    return change


def slopes_along(x: FloatArray) -> Quantity:
    """Return a function that computes the least-squares slopes (n,) of curves (n, n_points)."""
    centred = x - x.mean()
    return lambda curves: curves @ centred / (centred @ centred)


def changes_of(curves: FloatArray) -> FloatArray:
    """Return the changes (...) between the ends of curves (..., n_points)."""
    return curves[..., -1] - curves[..., 0]


def _tops(x: FloatArray, curves: FloatArray) -> FloatArray:
    """Return the places (n,) of the highest points, by parabolas through three points around."""
    top = np.clip(np.argmax(curves, axis=1), 1, len(x) - 2)
    rows = np.arange(len(curves))
    before, at, after = (curves[rows, top + shift] for shift in (-1, 0, 1))
    left, right = x[top] - x[top - 1], x[top + 1] - x[top]
    is_near = np.maximum(left, right) < 3 * np.median(np.diff(x))  # no gap between rows
    rise, fall = right * (at - before), left * (at - after)
    shift = np.divide(
        right * rise - left * fall, 2 * (rise + fall), out=np.zeros_like(at), where=rise + fall > 0
    )
    return x[top] + is_near * np.clip(shift, -left, right)
