"""Starting points of the MAP search: from the priors and from the structure of the data."""

from collections.abc import Mapping

import numpy as np
from scipy.signal import find_peaks, lombscargle
from scipy.stats import qmc

from autokernel.expression import Expression, leaf_slots
from autokernel.inference.posterior import LogPosterior
from autokernel.likelihood import TrainingData
from autokernel.typing import FloatArray

N_PEAKS = 6

_SPREAD: Mapping[str, tuple[float, float]] = {  # of log-uniform draws
    "alpha": (0.1, 5.0),
}
_SPREAD_OF_SQUARE: Mapping[str, tuple[float, float]] = {  # as parts of the target's mean square
    "variance": (0.03, 3.0),
    "offset": (0.03, 3.0),
    "noise_variance": (1e-4, 0.5),
}


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


class StartingPoints:
    """Draws of theta for the kernels of one data set.

    One half comes from the priors, as a scrambled Sobol sequence through their inverse CDFs. The
    other is log-uniform between the scales of the data: lengthscales from the median spacing of a
    column to its extent, noise across decades. In both halves three of four periods are peaks of
    the periodogram of their column, where it has any.
    """

    def __init__(self, data: TrainingData) -> None:
        self._data = data
        self._known_periods: dict[int, FloatArray] = {}

    def draw(
        self,
        expression: Expression,
        posterior: LogPosterior,
        n_starts: int,
        *,
        rng: np.random.Generator,
    ) -> FloatArray:
        """Draw starting points of shape (n_starts, n_params), within the bounds of theta."""
        names = posterior.parameter_names
        columns = [leaf.column for leaf, place in leaf_slots(expression) for _ in names[place]]
        ranges = [self._range(name, column) for name, column in zip(names, columns, strict=False)]
        low, high = np.log([*ranges, self._range("noise_variance")]).T
        n_prior = (n_starts + 1) // 2
        # a sequence for each half: every other point of one sequence lies in half of an axis
        theta = np.concatenate(
            [
                posterior.prior.quantile(_spread(n_prior, len(names), rng)),
                low + _spread(n_starts - n_prior, len(names), rng) * (high - low),
            ]
        )
        for place, column in enumerate(columns):
            if names[place] == "period":
                self._draw_periods(theta[:, place], column, rng)
        return np.clip(theta, posterior.lower, posterior.upper)

    def _draw_periods(self, theta: FloatArray, column: int, rng: np.random.Generator) -> None:
        """Replace three of four log periods by those of peaks, high peaks more often."""
        periods = self._periods(column)
        if len(periods) == 0:
            return
        weights = 1.0 / np.arange(1, len(periods) + 1)
        drawn = rng.choice(np.log(periods), size=len(theta), p=weights / weights.sum())
        replaced = rng.uniform(size=len(theta)) < 0.75
        theta[replaced] = drawn[replaced]

    def _range(self, name: str, column: int = 0) -> tuple[float, float]:
        """Range of the log-uniform draws of a parameter."""
        if name in ("lengthscale", "period"):
            return self._scales(column)
        if name in _SPREAD:
            return _SPREAD[name]
        low, high = _SPREAD_OF_SQUARE[name]
        square = self._data.mean_square or 1.0
        return (low * square, high * square)

    def _scales(self, column: int) -> tuple[float, float]:
        """Median spacing and extent of the distinct values of a column."""
        distinct = np.unique(self._data.X[:, column])
        if len(distinct) < 2:
            return (0.1, 1.0)
        return float(np.median(np.diff(distinct))), float(distinct[-1] - distinct[0])

    def _periods(self, column: int) -> FloatArray:
        """Periods of one column, found once."""
        if column not in self._known_periods:
            found = periodogram_periods(self._data.X[:, column], self._data.y)
            self._known_periods[column] = found
        return self._known_periods[column]


def _spread(n_points: int, n_axes: int, rng: np.random.Generator) -> FloatArray:
    """Draw points (n_points, n_axes) spread evenly over the open unit cube."""
    sequence = qmc.Sobol(n_axes, rng=rng)
    points = sequence.random_base2(max(n_points - 1, 0).bit_length())[:n_points]
    return np.clip(points, 1e-6, 1 - 1e-6)
