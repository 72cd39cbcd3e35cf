"""Periods along a column: those it can show, and the highest peaks of a periodogram."""

from collections.abc import Sequence
from functools import partial

import numpy as np
import scipy
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve
from scipy.stats import rankdata

from autokernel.data.scales import mean_and_variance
from autokernel.deadline import NEVER, Deadline
from autokernel.typing import FloatArray

YEAR = 365.2425  # days
SEASONS = {"day": 1.0, "week": 7.0, "quarter": YEAR / 4, "year": YEAR}
"""Seasons of dates, in days."""

MAX_PEAKS = 6  # periods of one column
_MAX_AMPLITUDES = 8  # other columns, to which the amplitude of a season may be proportional
_MAX_CYCLES_TIMES_ROWS = 1e6  # of a periodogram
_ROWS_OF_CYCLE, _CYCLES = 4, 2  # that a period needs to be seen
_UNEQUAL = 0.02  # by which cycles, months and quarters differ from their mean
_MIN_DISTINCT = 6  # inputs that differ, below which a column has no periods


def periodogram_periods(
    x: FloatArray,
    y: FloatArray,
    within: tuple[float, float] | None = None,
    *,
    weights: FloatArray | None = None,
    precision: FloatArray | None = None,
    amplitudes: Sequence[FloatArray | None] = (None,),
) -> FloatArray:
    """Return the periods at the highest peaks of the Lomb-Scargle periodogram, the highest first.

    A parabola in ``x`` is subtracted from the target first, and rows count by their ``weights``.
    With the ``precision``, the inverse of the covariance of the target, the periodogram is the gain
    of log likelihood by a sine of each period, with the best amplitude, and no parabola is
    subtracted. The amplitude may be proportional to one of several ``amplitudes`` (n,), of which
    the best one counts at each period; None stands for equal ones.

    There are at most ``MAX_PEAKS`` periods, in the unit of ``x``, and ``within`` a range in extents
    of ``x`` if it is given. Otherwise one period below twice the mean spacing precedes them if its
    peak is high enough. There are none if there are too few distinct inputs, or too many cycles in
    the range for a quick periodogram.
    """
    if len(distinct := distinct_values(x)) < _MIN_DISTINCT:
        return np.empty(0)
    weights = np.ones(len(x)) if weights is None else weights
    extent = distinct[-1] - distinct[0]
    centred = (x - distinct[0]) / extent - 0.5
    residual = y
    if precision is None:
        residual = y - np.polynomial.Polynomial.fit(centred, y, 2, w=np.sqrt(weights))(centred)
    cycles, half = _cycles_to_try(distinct, len(x), within)
    is_flat = within is None and np.ptp(residual) <= 1e-10 * max(1.0, np.ptp(y))
    if is_flat or not len(cycles):
        return np.empty(0)
    find = partial(
        periodogram, centred, residual, cycles, half, weights=weights, precision=precision
    )
    power = np.max([find(amplitude=one) for one in amplitudes], axis=0)
    peaks = scipy.signal.find_peaks(np.concatenate([[0.0], power, [0.0]]))[0] - 1
    peaks = peaks[np.argsort(-power[peaks], kind="stable")]
    is_slow = cycles[peaks] <= half
    slow, fast = peaks[is_slow][:MAX_PEAKS], peaks[~is_slow][:1]
    if len(fast) and (len(slow) == 0 or power[fast[0]] > 2 * power[slow[0]]):
        slow = np.append(fast, slow)
    return extent / cycles[slow]


def _cycles_to_try(
    distinct: FloatArray, n_rows: int, within: tuple[float, float] | None
) -> tuple[FloatArray, float]:
    """Choose numbers of cycles over the extent; those above the second result are fast.

    A peak is one cycle wide at its base: four frequencies per cycle miss none.
    """
    extent = distinct[-1] - distinct[0]
    if within is not None:
        last, first = (1 / end for end in within)
        is_long = (last - first) * n_rows > _MAX_CYCLES_TIMES_ROWS
        return np.linspace(first, last, 0 if is_long else 3 + int(4 * (last - first))), np.inf
    # Irregularly spaced rows can show periods far below their mean spacing, such as a week in a
    # sample of daily figures. But among many frequencies, high peaks also occur by chance.
    half = len(distinct) / 2
    most = np.clip(0.5 * extent / np.diff(distinct).min(), half, 32 * half)
    most = max(half, min(most, _MAX_CYCLES_TIMES_ROWS / n_rows))
    return np.arange(1.0, most + 0.25, 0.25), half


def periodogram(
    centred: FloatArray,
    residual: FloatArray,
    cycles: FloatArray,
    half: float = np.inf,
    *,
    weights: FloatArray,
    precision: FloatArray | None = None,
    amplitude: FloatArray | None = None,
) -> FloatArray:
    """Compute the gain (n_cycles,) of log likelihood by a sine of each of equidistant frequencies.

    The sine is multiplied by an ``amplitude`` (n,) of each row, one by default. The gain is a
    quadratic form of the sizes of a sine and a cosine. With a precision it is taken to be diagonal
    beyond ``half`` cycles, since all that is smooth has been averaged out.
    """
    frequencies = 2 * np.pi * cycles
    amplitude = np.ones(len(centred)) if amplitude is None else amplitude
    if precision is None:
        sums = _sums_of_waves(weights * amplitude * residual, centred, frequencies)
        weights = weights * amplitude**2
        doubled, total = _sums_of_waves(weights, centred, 2 * frequencies), weights.sum()
        sums *= np.exp(-0.5j * np.angle(doubled))  # of waves that are orthogonal (Scargle's tau)
        cc, ss = (total + np.abs(doubled)) / 2, (total - np.abs(doubled)) / 2
        # on an even grid, the sine of the highest frequency vanishes
        of_sine = np.divide(sums.imag**2, ss, out=0 * ss, where=ss > 1e-9 * total)
        return 0.5 * (sums.real**2 / cc + of_sine)
    sums = _sums_of_waves(amplitude * (precision @ residual), centred, frequencies)
    c, s = sums.real, sums.imag
    cc, ss = np.full((2, len(cycles)), np.diag(precision) @ amplitude**2 / 2)
    cs, slow = np.zeros(len(cycles)), cycles <= half
    angles = np.outer(centred, frequencies[slow])
    cos, sin = np.cos(angles) * amplitude[:, None], np.sin(angles) * amplitude[:, None]
    by_cos = precision @ cos
    cc[slow], cs[slow] = (by_cos * cos).sum(axis=0), (by_cos * sin).sum(axis=0)
    ss[slow] = ((precision @ sin) * sin).sum(axis=0)
    determinant = np.maximum(cc * ss - cs**2, 1e-12 * cc * ss)
    return 0.5 * (c**2 * ss - 2 * c * s * cs + s**2 * cc) / determinant


def precision_beside_walk(x: FloatArray, y: FloatArray, weights: FloatArray) -> FloatArray | None:
    """Compute the precision (n, n) of a random walk along x with noise.

    The ratio of their variances is that of the highest likelihood among a few. What is slow in a
    target is likely under a walk, so that a periodogram beside it shows the seasons. The result is
    None for very many rows, as it takes O(n^3), and where the target or x is constant.
    """
    if not 1 < len(x) <= 1000 or not (np.ptp(y) and np.ptp(x)):
        return None
    z = (x - x.min()) / np.ptp(x)
    walk, best, precision = 1.0 + np.minimum.outer(z, z), -np.inf, None
    for ratio in 10.0 ** np.arange(-4, 2):  # of noise to the walk over the extent
        factor = cho_factor(walk + np.diag(ratio / weights), lower=True)
        square = float(y @ cho_solve(factor, y)) / len(y)
        log_likelihood = -np.log(square) * len(y) / 2 - np.log(np.diag(factor[0])).sum()
        if log_likelihood > best:
            best, precision = log_likelihood, cho_solve(factor, np.eye(len(y))) / square
    return precision


def _sums_of_waves(
    values: FloatArray, x: FloatArray, frequencies: FloatArray
) -> NDArray[np.complex128]:
    """Compute ``sum_i values_i exp(i f x_i)`` at equidistant f, by products of two waves each."""
    n = len(frequencies)
    n_steps = int(np.ceil(np.sqrt(n)))
    steps = (frequencies[-1] - frequencies[0]) / max(n - 1, 1) * np.arange(n_steps)
    firsts = values * np.exp(1j * np.outer(frequencies[::n_steps], x))
    return (firsts @ np.exp(1j * np.outer(x, steps))).ravel()[:n]


def distinct_values(x: FloatArray) -> FloatArray:
    """Return the sorted entries (n_distinct,) that differ by more than rounding."""
    x = np.unique(x)
    return x[np.diff(x, prepend=-np.inf) > 1e-12 * (x[-1] - x[0])]


def seasons_of(x: FloatArray) -> tuple[float, ...]:
    """Return the seasons in days that a column of dates (n_samples,), in days, can show.

    They are those of :data:`SEASONS` with four rows in a cycle, by the median step between
    neighbours, that are not longer than :func:`longest_period`.
    """
    if len(known := np.unique(x[~np.isnan(x)])) < 2:
        return ()
    shortest, longest = _ROWS_OF_CYCLE * float(np.median(np.diff(known))), longest_period(known)
    seasons = (one for one in SEASONS.values() if one <= longest)
    return tuple(one for one in seasons if shortest <= one * (1 + _UNEQUAL))


def longest_period(x: FloatArray) -> float:
    """Return the longest period of which known values (n,) of a column show two cycles.

    A row stands for the step to the next one, so that 24 months are two years. Cycles may be
    unequal, and their period is estimated.
    """
    places = np.unique(x)
    step = float(np.median(np.diff(places))) if len(places) > 1 else 0.0
    return float(np.ptp(places) + step) / _CYCLES * (1 + _UNEQUAL)


def shows_cycles(x: FloatArray) -> bool:
    """Return whether a column (n_samples,) can show a period.

    The longest period of which two cycles lie in the extent needs four distinct values in both.
    """
    known = np.unique(x[~np.isnan(x)])
    return bool(np.histogram(known, bins=_CYCLES)[0].min() >= _ROWS_OF_CYCLE)


def proportional_to(X: FloatArray) -> list[FloatArray]:
    """Return ranks of the columns that vary less their means, as amplitudes of a season.

    There are none of very many columns. With ranks, no few rows decide.
    """
    ranks = rankdata(X, axis=0) if X.shape[1] <= _MAX_AMPLITUDES else X[:, :0]
    return [one - one.mean() for one in ranks.T if np.ptp(one)]


def columns_with_season(
    X: FloatArray, y: FloatArray, weights: FloatArray, deadline: Deadline = NEVER
) -> list[int]:
    """Find the columns along which a linear model leaves a period that chance does not explain.

    The amplitude may be proportional to the ranks of another column. Columns that are not reached
    before the deadline are taken to have none.

    A periodogram of noise exceeds its mean z times with probability ``exp(-z)`` (Scargle 1982). A
    period above twice the mean spacing is one of as many as half of the values. Where the amplitude
    is equal, it counts as one of all periods, as it may stand for a trend that is no line.
    """
    roots, with_constant = np.sqrt(weights), np.column_stack([np.ones(len(y)), X])
    line = np.linalg.lstsq(with_constant * roots[:, None], y * roots, rcond=None)[0]
    residual = y - with_constant @ line
    found: list[int] = []
    for column, x in enumerate(X.T):
        if deadline.has_passed:
            break
        amplitudes = [None, *proportional_to(np.delete(X, column, axis=1))]
        chances = (_false_alarm(x, residual, weights, one) for one in amplitudes)
        if any(chance * len(amplitudes) < 1e-4 for chance in chances):
            found.append(column)
    return found


def _false_alarm(
    x: FloatArray, residual: FloatArray, weights: FloatArray, amplitude: FloatArray | None
) -> float:
    """Compute the probability of the highest peak by chance; it is 1 with at most four cycles."""
    periods = periodogram_periods(x, residual, weights=weights, amplitudes=[amplitude])[:1]
    if not len(periods) or np.ptp(x) <= 4 * periods[0]:
        return 1.0
    extent, distinct = np.ptp(x), distinct_values(x)
    centred, cycles = (x - x.min()) / extent - 0.5, extent / periods
    [height] = periodogram(centred, residual, cycles, weights=weights, amplitude=amplitude)
    _, variance = mean_and_variance(residual, weights)
    is_slow = amplitude is not None and cycles[0] <= len(distinct) / 2
    n_periods = len(distinct) / 2 if is_slow else extent / np.diff(distinct).min()
    return float(np.exp(-height / variance) * n_periods)
