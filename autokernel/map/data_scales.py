"""The scales of a data set: spacing, extent and periods of its columns."""

import numpy as np
import scipy  # loads scipy.signal on first use, as it takes as long as this whole package

from autokernel.likelihood import TrainingData
from autokernel.typing import FloatArray

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
