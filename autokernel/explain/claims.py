"""Claims about a fitted function, each one computed on the function and on draws of it.

A claim holds for the mean of its component. Its probability is the share of draws for which it
holds, each draw being one of a kernel, of its parameters and of the function; a kernel without a
component like this one counts as none for which it holds. Values are those of the mean, with
central 90 % intervals of the draws.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain

import numpy as np
from scipy.signal import find_peaks

from autokernel.data.scales import Scale
from autokernel.explain.decomposition import (
    ExplainedFunction,
    Part,
    inputs_along,
    unseen_period,
)
from autokernel.explain.numbers import INTERVAL_ENDS
from autokernel.typing import BoolArray, FloatArray

N_DRAWS = 200
N_GRID = 65  # points of a curve over the data
BEYOND = 0.5  # extents beyond the data, up to which a season is followed
NEAR_BEYOND = 0.25  # extents beyond the data, up to which a curve is followed
POINTS_OF_CYCLE, N_LEVELS = 16, 17  # points of a cycle, and averages over cycles
IS_LINE = 0.998  # share of the variance of a curve that a straight line explains
NEARLY_LINE = 0.95  # the same, from which a curve follows the logarithm or the root of a column
OPEN = 0.9  # probability of a direction or of a component below which none is named
MAX_SETBACK = 0.25  # of the change between the ends of a curve that rises, or falls
JUMP_LENGTH, JUMP = 0.1, 0.75  # of the length of a curve, within which so much of it happens
MIN_TURN = 0.1  # part of the range by which a turning point must stand out
SURE_TURN = 0.99  # share of draws with which it must
MIN_GROWTH = 1.25  # of the swing of a season, from its first cycle to the last, that is mentioned
HALF = 0.5  # of a swing, a height or a trend, from which it is said to go on


@dataclass(frozen=True, slots=True)
class Claim:
    """One thing that is said of a fitted function.

    Attributes
    ----------
    subject : str
        What it is about: the target, a column, or a component by its kernel.
    predicate : str
        What is said, such as ``"rises"`` or ``"repeats"``.
    value, low, high : float
        A number with its central 90 % interval, nan where there is none.
    unit : str
        Unit of the number.
    probability : float
        Probability that the claim is true, given the kernels of the search.
    evidence : str
        How it was computed.
    """

    subject: str
    predicate: str
    value: float = np.nan
    low: float = np.nan
    high: float = np.nan
    unit: str = ""
    probability: float = 1.0
    evidence: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Curve:
    """A component along one column, the others fixed: its mean and draws of it.

    Draws (n_draws, n_points) are nan for kernels that have no component like it.
    """

    places: FloatArray  # (n_points,), in the unit interval of the column on its scale
    mean: FloatArray
    draws: FloatArray
    at_most: float = 1.0  # probability that the columns of the component matter

    def probability(self, holds: Callable[[FloatArray], BoolArray]) -> float:
        """Compute the probability that a condition on curves (n, n_points) holds."""
        known = self.known
        share = float(np.sum(holds(known))) / len(self.draws) if len(known) else 0.0
        return min(share, self.at_most)

    @property
    def known(self) -> FloatArray:
        """The draws of kernels that have such a component."""
        return self.draws[np.isfinite(self.draws).all(axis=1)]

    def interval(self, quantity: Callable[[FloatArray], FloatArray]) -> tuple[float, float]:
        """Compute a 90 % interval of a quantity of curves (n, n_points)."""
        known = self.known
        if len(known) < 2 or np.ptp(known, axis=0).max() == 0:
            return np.nan, np.nan
        low, high = np.quantile(quantity(known), INTERVAL_ENDS)
        return float(low), float(high)

    @property
    def reach(self) -> float:
        """The range of the mean."""
        return float(np.ptp(self.mean))


def curve_of(
    explained: ExplainedFunction,
    part: Part,
    column: int,
    places: FloatArray,
    fixed: Mapping[int, float] | None = None,
    scale: Scale | None = None,
) -> Curve:
    """Compute a component along a column, others at given values or else at typical ones.

    The places are those on a ``scale`` of the column.
    """
    values = places if scale is None else scale.inverse(places)
    inputs = inputs_along(explained.typical, {**(fixed or {}), column: values})
    draws = explained.draws(part, column, inputs, N_DRAWS)
    return Curve(places, explained.mean(part, inputs), draws, float(explained.inclusion[column]))


def direction(curve: Curve, subject: str) -> Claim:
    """Say whether a curve rises, falls, turns once, or more often.

    The value of a line is its slope along the places, that of a turn its place; of other curves
    it is the change from one end to the other, or the range. A curve that rises may turn on the
    way, if this is small.
    """
    x, mean = curve.places, curve.mean
    if curve.reach <= 0:
        return Claim(subject, "does not vary", 0.0, 0.0, 0.0, evidence="its range is zero")
    slopes = partial_slope(x)
    slope = float(slopes(mean[None])[0])
    if _line_shares(x, mean[None])[0] > IS_LINE:
        low, high = curve.interval(slopes)
        same_sign = curve.probability(lambda drawn: slopes(drawn) * slope > 0)
        word = "rises linearly" if slope > 0 else "falls linearly"
        how = "slope of a line through the curve, which explains its variance"
        return Claim(subject, word, slope, low, high, probability=same_sign, evidence=how)
    change = float(mean[-1] - mean[0])
    low, high = curve.interval(_change)
    same_sign = curve.probability(lambda drawn: _change(drawn) * change > 0)
    word, how = "rises" if change > 0 else "falls", "difference between the ends of a curve"
    along = Claim(subject, word, change, low, high, probability=same_sign, evidence=how)
    turns, sure = _turns(curve)
    sure = min(sure, curve.at_most)
    forward = np.sign(change) * mean
    setback = float(np.max(np.maximum.accumulate(forward) - forward))
    if len(turns) == 0 or (len(turns) > 1 and setback <= MAX_SETBACK * abs(change)):
        return along
    if len(turns) == 1:
        sign = 1 if mean[turns[0]] > mean[0] else -1
        low, high = curve.interval(lambda drawn: _tops(x, sign * drawn))
        how = f"place of the {'highest' if sign > 0 else 'lowest'} point"
        word = "rises then falls" if sign > 0 else "falls then rises"
        place = float(_tops(x, sign * mean[None])[0])
        return Claim(subject, word, place, low, high, probability=sure, evidence=how)
    low, high = curve.interval(lambda drawn: np.ptp(drawn, axis=1))
    how, word = f"range; it turns {len(turns)} times", "goes up and down"
    return Claim(subject, word, curve.reach, low, high, probability=sure, evidence=how)


def nearly_line(curve: Curve, subject: str) -> Claim | None:
    """Say whether a curve is nearly a straight line along the scale of its places."""
    share = float(_line_shares(curve.places, curve.mean[None])[0])
    if share < NEARLY_LINE:
        return None
    sure = curve.probability(lambda drawn: _line_shares(curve.places, drawn) >= 2 * NEARLY_LINE - 1)
    how = "share of the variance of the curve that a line on this scale explains"
    return Claim(subject, "follows its scale", share, probability=sure, evidence=how)


def half_way(curve: Curve, subject: str) -> Claim | None:
    """Say until where half of the change between the ends of a curve that does not turn happens."""
    change = float(_change(curve.mean[None])[0])
    if curve.reach > (1 + MIN_TURN) * abs(change):
        return None
    sign = np.sign(change)

    def places(curves: FloatArray) -> FloatArray:
        return np.array([_middle(curve.places, sign * one) for one in curves])

    value, (low, high) = float(places(curve.mean[None])[0]), curve.interval(places)
    how = "half of the difference between the ends"
    return Claim(subject, "is half way", value, low, high, evidence=how)


def _middle(places: FloatArray, rising: FloatArray) -> float:
    """Return where a curve (n_points,) that rises, if only on the whole, is half way."""
    values = np.maximum.accumulate(rising)
    return float(np.interp((values[0] + values[-1]) / 2, values, places))


def _line_shares(x: FloatArray, curves: FloatArray) -> FloatArray:
    """Compute the shares (n,) of the variances of curves (n, n_points) that lines explain."""
    lines = partial_slope(x)(curves)[:, None] * (x - x.mean())
    residuals = curves - curves.mean(axis=1, keepdims=True) - lines
    return 1 - residuals.var(axis=1) / np.maximum(curves.var(axis=1), 1e-300)


def _turns(curve: Curve) -> tuple[list[int], float]:
    """Find the turning points that stand out, and whose order of heights nearly all draws share.

    Returns their numbers among the places, and the least share of draws that agree.
    """
    least = MIN_TURN * curve.reach
    found = (find_peaks(sign * curve.mean, prominence=least)[0].tolist() for sign in (1, -1))
    at, known = [0, *sorted(chain.from_iterable(found)), len(curve.mean) - 1], curve.known
    while len(at) > 2:
        agree = np.diff(known[:, at]) * np.diff(curve.mean[at]) > 0
        shares = agree.mean(axis=0) if len(known) else np.zeros(len(at) - 1)
        worst = int(np.argmin(shares))
        if shares[worst] >= SURE_TURN:
            return at[1:-1], float(shares[worst])
        ends = (0, len(at) - 1)
        at = [at[n] for n in range(len(at)) if n in ends or n not in (worst, worst + 1)]
    return [], 1.0


def jump(curve: Curve, subject: str) -> Claim | None:
    """Say where most of the change between the ends of a curve happens, if it is a short part."""
    if len(curve.mean) < N_GRID:
        return None  # of a few values there is no tenth
    length = round(JUMP_LENGTH * (len(curve.mean) - 1))
    change = _change(curve.mean[None])[0]

    def sizes(drawn: FloatArray) -> FloatArray:
        """Return the largest change within a short part, as a share of that between the ends."""
        steps = drawn[:, length:] - drawn[:, :-length]
        return np.max(steps * np.sign(change), axis=1) / np.abs(change)

    def places(drawn: FloatArray) -> FloatArray:
        """Return where half of the largest change within a short part has happened."""
        first = np.argmax((drawn[:, length:] - drawn[:, :-length]) * np.sign(change), axis=1)
        found = []
        for begin, one in zip(first.tolist(), drawn, strict=True):
            inside = slice(begin, begin + length + 1)
            found.append(_middle(curve.places[inside], np.sign(change) * one[inside]))
        return np.array(found)

    if sizes(curve.mean[None])[0] < JUMP:
        return None
    probability = curve.probability(lambda drawn: sizes(drawn) >= HALF)
    low, high = curve.interval(places)
    place, how = float(places(curve.mean[None])[0]), "largest change within a tenth of the curve"
    return Claim(subject, "jumps", place, low, high, probability=probability, evidence=how)


def levels_of(curve: Curve, subject: str) -> list[tuple[float, Claim]]:
    """Say how far each level of a category is from the average of the levels, the highest first.

    Each claim comes after the place of its level. The probability is that the highest level is
    higher than the lowest.
    """
    order = np.argsort(-curve.mean, kind="stable")
    first, last = order[0], order[-1]
    sure = curve.probability(lambda drawn: drawn[:, first] > drawn[:, last])
    said = []
    for number in order.tolist():

        def height(drawn: FloatArray, number: int = number) -> FloatArray:
            return drawn[:, number] - drawn.mean(axis=1)

        value, (low, high) = float(height(curve.mean[None])[0]), curve.interval(height)
        word, how = "level differs", "difference from the average of the levels"
        claim = Claim(subject, word, value, low, high, probability=sure, evidence=how)
        said.append((float(curve.places[number]), claim))
    return said


def season(
    explained: ExplainedFunction,
    part: Part,
    ends: tuple[float, float],
    subject: str,
) -> tuple[list[Claim], Claim, Claim]:
    """Say how large the swing of a season is, how it changes, and whether it goes on.

    The swing is the range within one cycle, less a straight line through both ends of the cycle:
    of the first and the last between the ends, and of those beyond. After the swing come the lowest
    and the highest point of the last cycle and of the first, as differences from the average.
    """
    (column,), (begin, end) = part.along, ends
    cycle = np.arange(POINTS_OF_CYCLE + 1) / POINTS_OF_CYCLE * part.period
    n_beyond = max(1, int(np.ceil(BEYOND * (end - begin) / part.period)))
    ahead = np.unique(np.geomspace(1, n_beyond, 6).astype(int))
    starts = np.concatenate([[begin, end - part.period], end + (ahead - 1) * part.period])
    places = (starts[:, None] + cycle).ravel()
    curve = curve_of(explained, part, column, places)

    def waves(drawn: FloatArray) -> FloatArray:
        cycles = drawn.reshape(len(drawn), len(starts), len(cycle))
        lines = np.linspace(cycles[:, :, 0], cycles[:, :, -1], len(cycle), axis=2)
        return cycles - lines

    def swings(drawn: FloatArray) -> FloatArray:
        return np.ptp(waves(drawn), axis=2)

    _, last, *later = swings(curve.mean[None])[0].tolist()
    present = explained.probability_of_period(part)
    swing = _swing(curve, waves, Claim(subject, "swing", probability=present))
    grows = _growth(curve, lambda drawn: swings(drawn)[:, :2], subject)
    inputs = inputs_along(explained.typical, {column: places})
    means = swings(explained.means_of_members(part, column, inputs))
    weights = np.array([weight for weight, _ in explained.members])
    goes_on, fading = (
        min(float(weights @ holds), present)
        for holds in (means[:, -1] >= HALF * means[:, 1], means[:, -1] < HALF * means[:, 1])
    )
    if later[-1] >= HALF * last:
        how = f"swing {BEYOND:g} extents beyond the data"
        return swing, grows, Claim(subject, "repeats beyond", probability=goes_on, evidence=how)
    lost = [number for number, one in zip(ahead, later, strict=True) if one < HALF * last]
    distance, how = float(lost[0]) * part.period, "swings of later cycles"
    fades = Claim(subject, "fades beyond", distance, probability=fading, evidence=how)
    return swing, grows, fades


def _swing(curve: Curve, waves: Callable[[FloatArray], FloatArray], claim: Claim) -> list[Claim]:
    """Say how large waves (n, n_cycles, n_points) are, and their ends around their averages."""

    def end(drawn: FloatArray, *, cycle: int, sign: int) -> FloatArray:
        wave = sign * waves(drawn)[:, cycle, :-1]
        return sign * (wave.max(axis=1) - wave.mean(axis=1))

    quantities: dict[str, Callable[[FloatArray], FloatArray]] = {
        "swing": lambda drawn: np.ptp(waves(drawn)[:, 1], axis=1),
        "lowest of swing": partial(end, cycle=1, sign=-1),
        "highest of swing": partial(end, cycle=1, sign=1),
        "lowest of first swing": partial(end, cycle=0, sign=-1),
        "highest of first swing": partial(end, cycle=0, sign=1),
    }
    said = []
    for name, quantity in quantities.items():
        value, (low, high) = float(quantity(curve.mean[None])[0]), curve.interval(quantity)
        how = "range within the last cycle" if name == "swing" else "difference from its average"
        one = replace(claim, predicate=name, value=value, low=low, high=high, evidence=how)
        said.append(one)
    return said


def _growth(curve: Curve, swings: Callable[[FloatArray], FloatArray], subject: str) -> Claim:
    """Compare the swings (n, 2) of the first and the last cycle."""
    first, last = swings(curve.mean[None])[0].tolist()
    ratio = last / first if first > 0 else np.inf
    sign, word = (1, "grows") if ratio > 1 else (-1, "shrinks")
    changed = curve.probability(lambda drawn: sign * (swings(drawn) @ [-1.0, 1.0]) > 0)
    how = "ratio of the last cycle to the first"
    return Claim(subject, f"swing {word}", ratio, probability=changed, evidence=how)


def level_of(
    explained: ExplainedFunction, part: Part, subject: str, scale: Scale | None = None
) -> Claim:
    """Say where the averages over a period lead, along a scale of the column.

    Between the middles of two cycles, and beyond those of the first and the last, the level is
    taken to be a straight line.
    """
    (column,) = part.along
    begin, end = explained.ends(column)
    offsets = (np.arange(POINTS_OF_CYCLE) + 0.5) / POINTS_OF_CYCLE * part.period
    n_starts = int(min(N_LEVELS, max(3, 2 * (end - begin) / part.period)))
    starts = np.linspace(begin, end - part.period, n_starts)
    places, ends = starts[:, None] + offsets, np.array([begin, end])
    curve = curve_of(explained, part, column, places.ravel())
    if scale is not None:
        places, ends = scale.forward(places), scale.forward(ends)
    middles = np.concatenate([ends[:1], places.mean(axis=1), ends[1:]])
    gaps = np.diff(middles)

    def levels(drawn: FloatArray) -> FloatArray:
        averages = drawn.reshape(len(drawn), n_starts, POINTS_OF_CYCLE).mean(axis=2)
        steps = np.diff(averages, axis=1)
        first = averages[:, :1] - gaps[0] / gaps[1] * steps[:, :1]
        last = averages[:, -1:] + gaps[-1] / gaps[-2] * steps[:, -1:]
        return np.concatenate([first, averages, last], axis=1)

    mean, drawn = levels(curve.mean[None])[0], levels(curve.draws)
    return direction(Curve(middles, mean, drawn, curve.at_most), subject)


def beyond_of(explained: ExplainedFunction, part: Part, column: int, subject: str) -> Claim:
    """Say how a component goes on beyond the data: on as before, back to its average, or otherwise.

    The value is its change over the next quarter of the extent of the data. Of a component with a
    period, averages over the last cycle are compared.
    """
    begin, end = explained.ends(column)
    ahead = NEAR_BEYOND * (end - begin)
    if unseen_period(part, end - begin + ahead):
        how = "a period of its kernel that the data do not show twice"
        return Claim(subject, "is open beyond", evidence=how)
    cycle = np.zeros(1)
    if np.isfinite(part.period):
        cycle = (np.arange(POINTS_OF_CYCLE) + 0.5) / POINTS_OF_CYCLE * part.period - part.period
    places = np.array([end - ahead, end, end + ahead])
    curve = curve_of(explained, part, column, (places[:, None] + cycle).ravel())

    def levels(drawn: FloatArray) -> FloatArray:
        return drawn.reshape(len(drawn), len(places), len(cycle)).mean(axis=2)

    def change(drawn: FloatArray) -> FloatArray:
        return levels(drawn) @ [0.0, -1.0, 1.0]

    before, last, later = levels(curve.mean[None])[0].tolist()
    own, trend = later - last, last - before
    low, high = curve.interval(change)
    same_sign = curve.probability(lambda drawn: change(drawn) * own > 0)
    how = f"predictions up to {NEAR_BEYOND:g} extents beyond the data"
    word = "changes beyond"
    if not low <= own <= high and np.isfinite(low):  # other kernels do not agree
        return Claim(subject, "is open beyond", own, low, high, probability=0.0, evidence=how)
    average = explained.curve(part, column, np.linspace(begin, end, N_GRID)).mean()
    if own * trend > 0 and abs(own) >= HALF * abs(trend):
        word = "continues beyond"
    elif abs(later - average) < HALF * abs(last - average) and own * (last - average) < 0:
        word = "returns beyond"
    return Claim(subject, word, own, low, high, probability=same_sign, evidence=how)


def partial_slope(x: FloatArray) -> Callable[[FloatArray], FloatArray]:
    """Return a function that computes the least-squares slopes (n,) of curves (n, n_points)."""
    centred = x - x.mean()
    return lambda curves: curves @ centred / (centred @ centred)


def _change(curves: FloatArray) -> FloatArray:
    return curves[:, -1] - curves[:, 0]


def _tops(x: FloatArray, curves: FloatArray) -> FloatArray:
    """Return the places (n,) of the highest points, by parabolas through three points around."""
    top = np.clip(np.argmax(curves, axis=1), 1, len(x) - 2)
    rows = np.arange(len(curves))
    before, at, after = (curves[rows, top + shift] for shift in (-1, 0, 1))
    left, right = x[top] - x[top - 1], x[top + 1] - x[top]
    rise, fall = right * (at - before), left * (at - after)
    shift = np.divide(
        right * rise - left * fall, 2 * (rise + fall), out=np.zeros_like(at), where=rise + fall > 0
    )
    return x[top] + np.clip(shift, -left, right)
