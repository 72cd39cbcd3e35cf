"""Where the search of a maximum begins."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import scipy
from scipy.stats import qmc

from autokernel.evidence.posterior import LogPosterior
from autokernel.expression import Expression, Slot, slots_of
from autokernel.inference import TrainingData
from autokernel.kernels import KernelParameter, Role, Unit
from autokernel.typing import FloatArray, IntArray

N_PEAKS = 6
_MOST_CYCLES = 32  # most cycles over the extent, as a multiple of half the number of rows
_MOST_WORK = 1e6  # largest product of cycles and rows
_CLEAR = 2.0  # least height of a fast peak, as a multiple of the highest slow peak
_BLOCK = 1e6  # product of cycles and rows whose memory is allocated at once


class DataScales:
    """The lengthscales and periods of the data, estimated before any fit."""

    def __init__(self, data: TrainingData) -> None:
        self._data = data
        self._known_scales: dict[int, tuple[float, float]] = {}
        self._known_periods: dict[int, FloatArray] = {}
        self._periods_within: dict[tuple[int, float, float], FloatArray] = {}
        self.mean_square = data.mean_square or 1.0
        self.n_samples = len(data.y)

    def spacing_and_extent(self, column: int) -> tuple[float, float]:
        """Return the median spacing and the extent of the distinct values of a column."""
        if column not in self._known_scales:
            distinct = _distinct(self._data.X[:, column])
            known = (0.1, 1.0)
            if len(distinct) >= 2:
                known = (float(np.median(np.diff(distinct))), float(distinct[-1] - distinct[0]))
            self._known_scales[column] = known
        return self._known_scales[column]

    def periods(self, column: int) -> FloatArray:
        """Return the periods (n_peaks,) of the target along a column, the strongest first."""
        if column not in self._known_periods:
            found = periodogram_periods(self._data.X[:, column], self._data.y)
            self._known_periods[column] = found
        return self._known_periods[column]

    def periods_within(self, column: int, low: float, high: float) -> FloatArray:
        """Return the periods (n_peaks,) of the target between two periods, the strongest first."""
        key = (column, low, high)
        if key not in self._periods_within:
            found = peaks_within(self._data.X[:, column], self._data.y, low, high)
            self._periods_within[key] = found
        return self._periods_within[key]


def periodogram_periods(x: FloatArray, y: FloatArray) -> FloatArray:
    """Return the periods at the highest peaks of the Lomb-Scargle periodogram, the highest first.

    Parameters
    ----------
    x, y : ndarray of shape (n_samples,)
        One input column and the target, from which a parabola in ``x`` is subtracted first.

    Returns
    -------
    ndarray of shape (n_peaks,)
        At most ``N_PEAKS`` periods, in the unit of ``x``. One period below twice the mean spacing
        precedes them if its peak is high enough. Empty if there are too few distinct inputs.
    """
    distinct = _distinct(x)
    if len(distinct) < 6:
        return np.empty(0)
    extent = distinct[-1] - distinct[0]
    centred, residual = _without_parabola(x, y, distinct)
    if np.ptp(residual) <= 1e-10 * max(1.0, np.ptp(y)):
        return np.empty(0)
    # Irregularly spaced rows can show periods far below their mean spacing, such as a week in a
    # sample of daily figures. But among so many frequencies, high peaks also occur by chance.
    half = len(distinct) / 2
    most = np.clip(0.5 * extent / np.diff(distinct).min(), half, _MOST_CYCLES * half)
    most = max(half, min(most, _MOST_WORK / len(x)))
    # A peak is one cycle over the extent wide at its base: four frequencies per cycle miss none.
    cycles = np.arange(1.0, most + 0.25, 0.25)
    power = _power(centred, residual, cycles)
    peaks = scipy.signal.find_peaks(np.concatenate([[0.0], power, [0.0]]))[0] - 1
    peaks = peaks[np.argsort(-power[peaks], kind="stable")]
    is_slow = cycles[peaks] <= half
    slow, fast = peaks[is_slow][:N_PEAKS], peaks[~is_slow][:1]
    if len(fast) and (len(slow) == 0 or power[fast[0]] > _CLEAR * power[slow[0]]):
        return extent / cycles[np.append(fast, slow)]
    return extent / cycles[slow]


def peaks_within(x: FloatArray, y: FloatArray, low: float, high: float) -> FloatArray:
    """Return the periods between two periods at the highest peaks there, the highest first.

    There are at most ``N_PEAKS``, and none if there are too few distinct inputs, or so many cycles
    that the periodogram would take long.
    """
    distinct = _distinct(x)
    if len(distinct) < 6:
        return np.empty(0)
    extent = distinct[-1] - distinct[0]
    first, last = extent / high, extent / low
    if (last - first) * len(x) > _MOST_WORK:
        return np.empty(0)
    centred, residual = _without_parabola(x, y, distinct)
    cycles = np.linspace(first, last, 3 + int(4 * (last - first)))
    power = _power(centred, residual, cycles)
    peaks = scipy.signal.find_peaks(np.concatenate([[0.0], power, [0.0]]))[0] - 1
    return extent / cycles[peaks[np.argsort(-power[peaks], kind="stable")][:N_PEAKS]]


def _without_parabola(
    x: FloatArray, y: FloatArray, distinct: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Scale inputs to an extent of one, and subtract a parabola in them from the target."""
    centred = (x - distinct[0]) / (distinct[-1] - distinct[0]) - 0.5
    return centred, y - np.polynomial.Polynomial.fit(centred, y, 2)(centred)


def _power(centred: FloatArray, residual: FloatArray, cycles: FloatArray) -> FloatArray:
    """Compute the periodogram (n_cycles,), in blocks that bound the memory."""
    blocks = np.array_split(cycles, int(np.ceil(len(cycles) * len(centred) / _BLOCK)))
    return np.concatenate(
        [scipy.signal.lombscargle(centred, residual, 2 * np.pi * block) for block in blocks]
    )


def _distinct(x: FloatArray) -> FloatArray:
    """Return the sorted entries (n_distinct,) that differ by more than rounding."""
    x = np.unique(x)
    return x[np.diff(x, prepend=-np.inf) > 1e-12 * (x[-1] - x[0])]


_TAILS = np.array([0.05, 0.95])  # prior quantiles that bound a parameter without a declared range
_FRACTIONS = (0.01, 3.0)  # default range of a squared-target parameter, in mean squares
_OF_SPACING = 0.1  # lengthscale of what was noise
_NOISE_LEFT = 0.25  # part of the noise variance that is still noise then
_FROM_PEAKS = 0.75  # fraction of the starting values of a period that are peaks


class StartingPoints:
    """Random starting points for the kernels of one data set.

    One half is drawn from the priors, by their inverse CDFs of a scrambled Sobol sequence. The
    other half is log-uniform over the ranges that the parameters declare: lengthscales from the
    median spacing of a column to its extent, and the noise over several decades. In both halves
    three of four periods are peaks of the periodogram of their column, if it has any, within the
    range that the period declares.
    """

    def __init__(self, scales: DataScales) -> None:
        self._scales = scales

    def draw(
        self, posterior: LogPosterior, n_starts: int, *, rng: np.random.Generator
    ) -> FloatArray:
        """Draw starting points of shape (n_starts, n_params), within the bounds of theta."""
        columns = [node.column for node in posterior.expression.nodes for _ in node.parameters]
        parameters = posterior.likelihood.parameters
        columns += [None] * (len(parameters) - len(columns))  # the likelihood's parameters
        quantiles = posterior.prior.quantile(np.tile(_TAILS[:, None], len(parameters)))
        ranges = [
            self._range(parameter, column, tails)
            for parameter, column, tails in zip(
                parameters, columns, np.exp(quantiles.T), strict=True
            )
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
        for entry, (parameter, column) in enumerate(zip(parameters, columns, strict=True)):
            if parameter.role == Role.PERIOD and column is not None:
                self._draw_periods(theta[:, entry], column, parameter.start, rng)
        return np.clip(theta, posterior.lower, posterior.upper)

    def take_from_noise(
        self, theta: FloatArray, expression: Expression, nodes: Sequence[int]
    ) -> None:
        """Let some nodes explain what was noise, in points (n_points, n_params) that are changed.

        Their lengthscale becomes a tenth of the spacing of the data, and their variance three
        quarters of that of the noise. What they add to the covariance is nearly diagonal, except
        between rows that have the same value in a column.
        """
        slots = slots_of(expression)
        for node, entries in (slots[number] for number in nodes):
            for entry, parameter in enumerate(node.parameters, start=entries.start):
                if parameter.role == Role.VARIANCE:
                    theta[:, entry] = theta[:, -1] + np.log1p(-_NOISE_LEFT)
                elif parameter.role == Role.LENGTHSCALE and node.column is not None:
                    spacing, _ = self._scales.spacing_and_extent(node.column)
                    theta[:, entry] = np.log(_OF_SPACING * spacing)
        theta[:, -1] += np.log(_NOISE_LEFT)

    def _draw_periods(
        self,
        theta: FloatArray,
        column: int,
        within: tuple[float, float] | None,
        rng: np.random.Generator,
    ) -> None:
        """Replace three of four log periods by those of peaks, with high peaks more often.

        ``within`` is the declared range, in extents of the column.
        """
        if within is None:
            periods = self._scales.periods(column)
        else:
            extent = self._scales.spacing_and_extent(column)[1]
            periods = self._scales.periods_within(column, *(extent * end for end in within))
        if len(periods) == 0:
            return
        weights = 1.0 / np.arange(1, len(periods) + 1)
        drawn = rng.choice(np.log(periods), size=len(theta), p=weights / weights.sum())
        replaced = rng.uniform(size=len(theta)) < _FROM_PEAKS
        theta[replaced] = drawn[replaced]

    def _range(
        self, parameter: KernelParameter, column: int | None, tails: FloatArray
    ) -> tuple[float, float]:
        """Return the range of a parameter's log-uniform draws, given the tails of its prior."""
        low, high = parameter.start or (0.0, 0.0)
        if parameter.unit == Unit.INPUT and column is not None:
            spacing, extent = self._scales.spacing_and_extent(column)
            return (low * extent, high * extent) if parameter.start else (spacing, extent)
        if parameter.unit == Unit.SQUARED_TARGET:
            low, high = parameter.start or _FRACTIONS
            return (low * self._scales.mean_square, high * self._scales.mean_square)
        return parameter.start or (float(tails[0]), float(tails[1]))


def _spread(n_points: int, n_axes: int, rng: np.random.Generator) -> FloatArray:
    """Draw points (n_points, n_axes) spread evenly over the open unit cube."""
    sequence = qmc.Sobol(n_axes, rng=rng)
    points = sequence.random_base2(max(n_points - 1, 0).bit_length())[:n_points]
    return np.clip(points, 1e-6, 1 - 1e-6)


_LESS_NOISE = np.log(4.0)  # log factor, as terms added to a kernel explain some of the noise


class WarmStart(NamedTuple):
    """Parameters of some nodes of a kernel, taken from the fit of another kernel."""

    nodes: Sequence[int]  # indices among the nodes of the kernel
    theta: FloatArray  # log parameters of these nodes in this order, the noise variance last
    hessian: FloatArray | None = None  # of the negative log posterior of the other kernel, in theta

    @property
    def definition(self) -> tuple[tuple[int, ...], bytes, bytes]:
        """What tells it from any other: nodes, theta and Hessian to the last bit."""
        hessian = b"" if self.hessian is None else self.hessian.tobytes()
        return tuple(self.nodes), self.theta.tobytes(), hessian


def with_warm_starts(
    expression: Expression, draws: FloatArray, fits: Iterable[WarmStart]
) -> FloatArray:
    """Return draws of theta (n_draws, n_params) with parameters replaced by those of fits.

    If several fits have a node, the last one counts. The noise variance is the lowest one of the
    fits, and is reduced further in every other draw.
    """
    draws = draws.copy()
    slots = slots_of(expression)
    noise = np.inf
    for fit in fits:
        draws[:, _entries(slots, fit)] = fit.theta
        noise = min(noise, fit.theta[-1])
    draws[:, -1] = noise
    draws[1::2, -1] -= _LESS_NOISE
    return draws


def curvature_from(
    expression: Expression, fits: Iterable[WarmStart], scales: FloatArray
) -> FloatArray | None:
    """Join the Hessians of fits to that (n_params, n_params) of a kernel, None if none is known.

    The parameters that no fit has are taken as independent, with the standard deviations
    ``scales`` (n_params,).
    """
    curvature = np.diag(scales**-2)
    slots, is_known = slots_of(expression), False
    for fit in fits:
        if fit.hessian is None or not np.all(np.isfinite(fit.hessian)):
            continue
        entries, is_known = _entries(slots, fit), True
        curvature[entries] = curvature[:, entries] = 0.0
        curvature[np.ix_(entries, entries)] = fit.hessian
    return curvature if is_known else None


def _entries(slots: Sequence[Slot], fit: WarmStart) -> IntArray:
    """Return the entries of theta that a fit has, the noise variance last."""
    numbers = np.arange(slots[-1].entries.stop + 1)
    return np.concatenate([*(numbers[slots[node].entries] for node in fit.nodes), numbers[-1:]])
