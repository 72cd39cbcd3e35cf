"""Starting points for the search of a maximum, from the scales of the data."""

import hashlib
from collections.abc import Sequence
from contextlib import suppress

import numpy as np
import scipy
from scipy.stats import qmc

from autokernel.data.scales import mean_and_variance
from autokernel.evidence.posterior import LogPosterior
from autokernel.expression import Expression, View, seed_text, slots_of
from autokernel.inference import TrainingData
from autokernel.kernels import KernelParameter, Role, Unit
from autokernel.typing import FloatArray

MAX_PEAKS = 6  # periods of one column
_MAX_CYCLES = 32  # over the extent, as a multiple of half the number of rows
_MAX_CYCLES_TIMES_ROWS = 1e6  # of a periodogram; also in one block of memory
_MIN_FAST_PEAK = 2.0  # height of a fast peak, as a multiple of the highest slow peak
_FALSE_ALARM = 1e-4  # probability that noise alone shows a season
_MIN_CYCLES_OF_SEASON = 4.0  # over the extent
_MIN_DISTINCT = 6  # inputs that differ, below which a column has no periods


class DataScales:
    """The lengthscales and periods of the data, estimated before any fit.

    With a ``covariance`` (n_samples, n_samples) of the target, and the variance ``noise`` in it,
    they are scales of what it takes for noise, and the periods those that would explain most.
    """

    def __init__(
        self, data: TrainingData, covariance: FloatArray | None = None, noise: float = 1.0
    ) -> None:
        self._data, unexplained = data, data.y
        self._precision: FloatArray | None = None
        if covariance is not None:
            with suppress(np.linalg.LinAlgError):
                self._precision = precision = np.linalg.inv(covariance).astype(float)
                unexplained = (data.noise.variance(noise)[:, None] * precision) @ data.y
        self._scales: dict[View, tuple[float, float]] = {}
        self._periods: dict[tuple[View, tuple[float, float] | None], FloatArray] = {}
        self.mean_square = float(np.average(unexplained**2, weights=data.noise.influence)) or 1.0
        self.largest_mean_square = max(self.mean_square, data.mean_square)
        self.n_samples = len(data.y)

    def spacing_and_extent(self, view: View) -> tuple[float, float]:
        """Return the median spacing and the extent of the distinct values of a view of a column."""
        if view not in self._scales:
            distinct = _distinct_values(self._data.inputs.known(view))
            known = (0.1, 1.0)
            if len(distinct) >= 2:
                known = (float(np.median(np.diff(distinct))), float(distinct[-1] - distinct[0]))
            self._scales[view] = known
        return self._scales[view]

    def periods(self, view: View, within: tuple[float, float] | None = None) -> FloatArray:
        """Return the periods (n_peaks,) of the target along a column, the strongest first.

        ``within`` is the range of periods that a parameter declares, in extents of the column.
        """
        if (view, within) not in self._periods:
            x, precision = self._data.inputs.view(view), self._precision
            known = np.flatnonzero(~np.isnan(x))
            x, y, weights = (one[known] for one in (x, self._data.y, self._data.noise.influence))
            if precision is not None and len(known) < len(precision):
                precision = precision[np.ix_(known, known)]
            found = periodogram_periods(x, y, within, weights=weights, precision=precision)
            self._periods[view, within] = found
        return self._periods[view, within]


def periodogram_periods(
    x: FloatArray,
    y: FloatArray,
    within: tuple[float, float] | None = None,
    *,
    weights: FloatArray | None = None,
    precision: FloatArray | None = None,
) -> FloatArray:
    """Return the periods at the highest peaks of the Lomb-Scargle periodogram, the highest first.

    A parabola in ``x`` is subtracted from the target first, and rows count by their ``weights``.
    With the ``precision``, the inverse of the covariance of the target, the periodogram is the gain
    of log likelihood by a sine of each period, with the best amplitude, and no parabola is
    subtracted.

    There are at most ``MAX_PEAKS`` periods, in the unit of ``x``, and ``within`` a range in extents
    of ``x`` if it is given. Otherwise one period below twice the mean spacing precedes them if its
    peak is high enough. There are none if there are too few distinct inputs, or too many cycles in
    the range for a quick periodogram.
    """
    distinct = _distinct_values(x)
    if len(distinct) < _MIN_DISTINCT:
        return np.empty(0)
    extent = distinct[-1] - distinct[0]
    centred = (x - distinct[0]) / extent - 0.5
    residual = y
    if precision is None:
        roots = None if weights is None else np.sqrt(weights)
        residual = y - np.polynomial.Polynomial.fit(centred, y, 2, w=roots)(centred)
    # A peak is one cycle over the extent wide at its base: four frequencies per cycle miss none.
    if within is not None:
        half, (last, first) = np.inf, (1 / end for end in within)
        if (last - first) * len(x) > _MAX_CYCLES_TIMES_ROWS:
            return np.empty(0)
        cycles = np.linspace(first, last, 3 + int(4 * (last - first)))
    elif np.ptp(residual) <= 1e-10 * max(1.0, np.ptp(y)):
        return np.empty(0)
    else:
        # Irregularly spaced rows can show periods far below their mean spacing, such as a week in
        # a sample of daily figures. But among many frequencies, high peaks also occur by chance.
        half = len(distinct) / 2
        most = np.clip(0.5 * extent / np.diff(distinct).min(), half, _MAX_CYCLES * half)
        most = max(half, min(most, _MAX_CYCLES_TIMES_ROWS / len(x)))
        cycles = np.arange(1.0, most + 0.25, 0.25)
    power = _power(centred, residual, cycles, half, weights=weights, precision=precision)
    peaks = scipy.signal.find_peaks(np.concatenate([[0.0], power, [0.0]]))[0] - 1
    peaks = peaks[np.argsort(-power[peaks], kind="stable")]
    is_slow = cycles[peaks] <= half
    slow, fast = peaks[is_slow][:MAX_PEAKS], peaks[~is_slow][:1]
    if len(fast) and (len(slow) == 0 or power[fast[0]] > _MIN_FAST_PEAK * power[slow[0]]):
        return extent / cycles[np.append(fast, slow)]
    return extent / cycles[slow]


def columns_with_season(data: TrainingData) -> list[int]:
    """Find the columns along which a linear model leaves a period that chance does not explain.

    A periodogram of noise exceeds its mean z times with probability ``exp(-z)`` (Scargle 1982).
    """
    X, y, weights = data.inputs.filled, data.y, data.noise.influence
    roots, with_constant = np.sqrt(weights), np.column_stack([np.ones(len(y)), X])
    line = np.linalg.lstsq(with_constant * roots[:, None], y * roots, rcond=None)[0]
    residual = y - with_constant @ line
    _, variance = mean_and_variance(residual, weights)
    found: list[int] = []
    for column, x in enumerate(X.T):
        for period in periodogram_periods(x, residual, weights=weights)[:1]:
            extent = np.ptp(x)
            centred, cycles = (x - x.min()) / extent - 0.5, extent / np.array([period])
            height = _power(centred, residual, cycles, weights=weights)[0]
            n_tried = extent / np.diff(_distinct_values(x)).min()
            is_high = np.exp(-height / variance) * n_tried < _FALSE_ALARM
            if is_high and extent / period > _MIN_CYCLES_OF_SEASON:
                found.append(column)
    return found


def _power(
    centred: FloatArray,
    residual: FloatArray,
    cycles: FloatArray,
    half: float = np.inf,
    *,
    weights: FloatArray | None = None,
    precision: FloatArray | None = None,
) -> FloatArray:
    """Compute the periodogram (n_cycles,), in blocks that bound the memory."""
    n_blocks = int(np.ceil(len(cycles) * len(centred) / _MAX_CYCLES_TIMES_ROWS))
    blocks = [2 * np.pi * block for block in np.array_split(cycles, n_blocks)]
    if precision is None:
        n_readings = 1.0 if weights is None else float(weights.mean())  # for each row
        powers = [
            scipy.signal.lombscargle(centred, residual, block, weights=weights) for block in blocks
        ]
        return n_readings * np.concatenate([np.atleast_1d(power) for power in powers])
    slow = 2 * np.pi * half
    return np.concatenate([_gains(centred, residual, block, slow, precision) for block in blocks])


def _gains(
    centred: FloatArray,
    residual: FloatArray,
    frequencies: FloatArray,
    slow: float,
    precision: FloatArray,
) -> FloatArray:
    """Compute the gain (n_frequencies,) of log likelihood by a sine of each frequency.

    That is a quadratic form of its two amplitudes. Above the frequency ``slow`` it is taken to be
    diagonal, since all that is smooth has been averaged out.
    """
    angles = np.outer(centred, frequencies)
    waves = np.cos(angles), np.sin(angles)
    alpha = precision @ residual
    c, s = (alpha @ wave for wave in waves)
    cc, ss = np.full((2, len(frequencies)), np.trace(precision) / 2)
    cs = np.zeros(len(frequencies))
    few = frequencies <= slow
    cos, sin = (wave[:, few] for wave in waves)
    by_cos = precision @ cos
    cc[few], cs[few] = (by_cos * cos).sum(axis=0), (by_cos * sin).sum(axis=0)
    ss[few] = ((precision @ sin) * sin).sum(axis=0)
    determinant = np.maximum(cc * ss - cs**2, 1e-12 * cc * ss)
    return 0.5 * (c**2 * ss - 2 * c * s * cs + s**2 * cc) / determinant


def _distinct_values(x: FloatArray) -> FloatArray:
    """Return the sorted entries (n_distinct,) that differ by more than rounding."""
    x = np.unique(x)
    return x[np.diff(x, prepend=-np.inf) > 1e-12 * (x[-1] - x[0])]


_TAILS = np.array([0.05, 0.95])  # prior quantiles that bound a parameter without a declared range
_SQUARED_TARGET_RANGE = (0.01, 3.0)  # mean squares of the target, unless a parameter declares it
_NEW_LENGTHSCALE = 0.1  # median spacings, of a node that explains what was noise
NOISE_LEFT = 0.25  # fraction of the noise variance that is still noise then
_PEAK_SHARE = 0.75  # of the starting values of a period


def draw_starts(
    posterior: LogPosterior, scales: DataScales, n_starts: int, *, rng: np.random.Generator
) -> FloatArray:
    """Draw starting points of shape (n_starts, n_params), within the bounds of theta.

    One half is drawn from the priors, by their inverse CDFs of a scrambled Sobol sequence. The
    other half is log-uniform over the ranges that the parameters declare: lengthscales from the
    median spacing of a column to its extent, and the noise over several decades. In both halves
    three of four periods are peaks of the periodogram of their column, if it has any, within the
    range that the period declares.
    """
    views = [node.view for node in posterior.expression.nodes for _ in node.parameters]
    parameters = posterior.likelihood.parameters
    views += [None] * (len(parameters) - len(views))  # the likelihood's parameters
    quantiles = posterior.prior.quantile(np.tile(_TAILS[:, None], len(parameters)))
    ranges = [
        _range(parameter, view, tails, scales)
        for parameter, view, tails in zip(parameters, views, np.exp(quantiles.T), strict=True)
    ]
    low, high = np.log(ranges).T
    n_prior = (n_starts + 1) // 2
    # Each half has its own sequence: every other point of one lies in the same half of an axis.
    theta = np.concatenate(
        [
            posterior.prior.quantile(_spread(n_prior, len(parameters), rng)),
            low + _spread(n_starts - n_prior, len(parameters), rng) * (high - low),
        ]
    )
    for entry, (parameter, view) in enumerate(zip(parameters, views, strict=True)):
        if parameter.role == Role.PERIOD and view is not None:
            _draw_periods(theta[:, entry], scales.periods(view, parameter.start), rng)
    return np.clip(theta, posterior.lower, posterior.upper)


def _draw_periods(theta: FloatArray, periods: FloatArray, rng: np.random.Generator) -> None:
    """Replace three of four log periods by those of peaks, with high peaks more often."""
    if len(periods) == 0:
        return
    weights = 1.0 / np.arange(1, len(periods) + 1)
    drawn = rng.choice(np.log(periods), size=len(theta), p=weights / weights.sum())
    replaced = rng.uniform(size=len(theta)) < _PEAK_SHARE
    theta[replaced] = drawn[replaced]


def _range(
    parameter: KernelParameter, view: View | None, tails: FloatArray, scales: DataScales
) -> tuple[float, float]:
    """Return the range of a parameter's log-uniform draws, given the tails of its prior."""
    low, high = parameter.start or (0.0, 0.0)
    if parameter.unit == Unit.INPUT and view is not None:
        spacing, extent = scales.spacing_and_extent(view)
        return (low * extent, high * extent) if parameter.start else (spacing, extent)
    if parameter.unit == Unit.SQUARED_TARGET:
        low, high = parameter.start or _SQUARED_TARGET_RANGE
        return (low * scales.mean_square, high * scales.largest_mean_square)
    return parameter.start or (float(tails[0]), float(tails[1]))


def _spread(n_points: int, n_axes: int, rng: np.random.Generator) -> FloatArray:
    """Draw points (n_points, n_axes) spread evenly over the open unit cube."""
    sequence = qmc.Sobol(n_axes, rng=rng)
    points = sequence.random_base2(max(n_points - 1, 0).bit_length())[:n_points]
    return np.clip(points, 1e-6, 1 - 1e-6)


def take_from_noise(
    theta: FloatArray, expression: Expression, nodes: Sequence[int], *, scales: DataScales
) -> None:
    """Let some nodes explain what was noise, in points (n_points, n_params) that are changed.

    Their lengthscale becomes a tenth of the spacing of the data, and their variance three quarters
    of that of the noise. What they add to the covariance is nearly diagonal, except between rows
    that have the same value in a column.
    """
    slots = slots_of(expression)
    for node, entries in (slots[number] for number in nodes):
        for entry, parameter in enumerate(node.parameters, start=entries.start):
            if parameter.role == Role.VARIANCE:
                theta[:, entry] = theta[:, -1] + np.log1p(-NOISE_LEFT)
            elif parameter.role == Role.LENGTHSCALE and node.view is not None:
                spacing, _ = scales.spacing_and_extent(node.view)
                theta[:, entry] = np.log(_NEW_LENGTHSCALE * spacing)
    theta[:, -1] += np.log(NOISE_LEFT)


def random_stream(seed: int, expression: Expression, purpose: str) -> np.random.Generator:
    """Return a generator for one kernel and purpose, the same in every process."""
    digest = hashlib.sha256(f"{purpose}: {seed_text(expression)}".encode()).digest()
    return np.random.default_rng([seed, int.from_bytes(digest[:8])])
