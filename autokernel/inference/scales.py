"""The scales of a data set: spacing, extent and periods of its columns."""

import numpy as np
from scipy.signal import find_peaks, lombscargle

from autokernel.likelihood import TrainingData
from autokernel.typing import FloatArray

N_PEAKS = 6


class DataScales:
    """What the data say, before any fit, about lengthscales and periods; found once per column."""

    def __init__(self, data: TrainingData) -> None:
        self._data = data
        self._known_periods: dict[int, FloatArray] = {}
        self.mean_square = data.mean_square or 1.0
        self.n_samples = len(data.y)

    def spacing_and_extent(self, column: int) -> tuple[float, float]:
        """Median spacing and extent of the distinct values of a column."""
        distinct = np.unique(self._data.X[:, column])
        if len(distinct) < 2:
            return (0.1, 1.0)
        return float(np.median(np.diff(distinct))), float(distinct[-1] - distinct[0])

    def periods(self, column: int) -> FloatArray:
        """Periods (n_peaks,) of the target along a column, the strongest first."""
        if column not in self._known_periods:
            found = periodogram_periods(self._data.X[:, column], self._data.y)
            self._known_periods[column] = found
        return self._known_periods[column]


def periodogram_periods(x: FloatArray, y: FloatArray) -> FloatArray:
    """Periods at the highest peaks of the Lomb-Scargle periodogram, the highest first.

    Parameters
    ----------
    x, y : ndarray of shape (n_samples,)
        One input column and the target, of which a parabola in ``x`` is taken off first.

    Returns
    -------
    ndarray of shape (n_peaks,)
        At most ``N_PEAKS`` periods, in the unit of ``x``; empty where there are too few distinct
        inputs to speak of a period.
    """
    distinct = np.unique(x)
    if len(distinct) < 6:
        return np.empty(0)
    extent = distinct[-1] - distinct[0]
    centred = (x - distinct[0]) / extent - 0.5
    residual = y - np.polynomial.Polynomial.fit(centred, y, 2)(centred)
    if np.ptp(residual) <= 1e-10 * max(1.0, np.ptp(y)):
        return np.empty(0)
    # four frequencies to a cycle over the extent: no peak, a cycle wide at its foot, is missed
    cycles = np.arange(1.0, len(distinct) / 2 + 0.25, 0.25)
    power = lombscargle(centred, residual, 2 * np.pi * cycles)
    padded = np.concatenate([[0.0], power, [0.0]])
    peaks = find_peaks(padded)[0] - 1
    highest = peaks[np.argsort(-power[peaks], kind="stable")[:N_PEAKS]]
    return extent / cycles[highest]
