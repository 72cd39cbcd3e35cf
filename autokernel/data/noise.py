"""What is known of the noise of each row."""

from collections.abc import Iterable
from functools import cached_property

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from autokernel.typing import FloatArray, IntArray

_LARGEST_LOG = 690.0  # so that its exponential does not overflow
_LOG_2PI = float(np.log(2 * np.pi))


class RowNoise:
    """What is known of the noise of each row, besides the noise variance s of all rows.

    A row with the weight w, the variance v of its known error and the variance r of rounding has
    noise of the variance ``(s + r) / w + v``: each of the w readings that the row stands for is
    rounded. On another scale of the target, ``log_slopes`` are the logs of the slopes of the scale
    at the targets, which turn a density on the scale into one of the target as it was.

    Parameters
    ----------
    weights, errors, rounding, log_slopes : ndarray of shape (n_samples,)
        By default, weights are one and all others are zero.
    """

    def __init__(
        self,
        weights: FloatArray,
        errors: FloatArray | float = 0.0,
        rounding: FloatArray | float = 0.0,
        log_slopes: FloatArray | float = 0.0,
    ) -> None:
        self.weights = weights
        self.errors, self.rounding, self.log_slopes = (
            np.broadcast_to(one, weights.shape) for one in (errors, rounding, log_slopes)
        )
        self.known = self.rounding / weights + self.errors
        self._has_weights = bool(np.any(weights != 1))
        self.differs = self._has_weights or bool(np.any(self.known))

    @classmethod
    def equal(cls, n_rows: int) -> "RowNoise":
        """Return the noise of rows of which nothing is known."""
        return cls(np.ones(n_rows))

    @property
    def record(self) -> list[FloatArray]:
        """The parameters, each as one number where all rows agree, for :meth:`of_record`."""
        every = self.weights, self.errors, self.rounding, self.log_slopes
        return [np.array(one.flat[0]) if one.size and np.ptp(one) == 0 else one for one in every]

    @classmethod
    def of_record(cls, shape: tuple[int, ...], record: Iterable[npt.ArrayLike]) -> "RowNoise":
        """Make the noise of a record."""
        return cls(*(np.broadcast_to(np.asarray(one, dtype=float), shape) for one in record))

    def variance(self, s: float | FloatArray) -> FloatArray:
        """Compute the noise variance of each row from that of all rows, or of single readings."""
        return s / self.weights + self.known

    @property
    def slope(self) -> FloatArray:
        """The derivative of :meth:`variance` in the noise variance of all rows."""
        return 1 / self.weights

    def take(self, rows: IntArray) -> "RowNoise":
        """Return the noise of some rows, in the shape of their indices."""
        every = self.weights, self.errors, self.rounding, self.log_slopes
        return RowNoise(*(one[rows] for one in every))

    def with_new(self) -> "RowNoise":
        """Return the noise of blocks of rows (n_blocks, n_rows) with a new row at the end."""
        width = ((0, 0), (0, 1))
        weights = np.pad(self.weights, width, constant_values=1.0)
        return RowNoise(weights, *(np.pad(one, width) for one in (self.errors, self.rounding)))

    def multiplied(self, factor: FloatArray | float) -> "RowNoise":
        """Return the noise of targets that are multiplied by the root of a factor."""
        return RowNoise(self.weights, self.errors * factor, self.rounding * factor)

    def on_scale(self, log_slopes: FloatArray) -> "RowNoise":
        """Return the noise on a scale of the target with these slopes, by the delta method."""
        noise = self.multiplied(np.exp(np.minimum(2 * log_slopes, _LARGEST_LOG)))
        return RowNoise(self.weights, noise.errors, noise.rounding, log_slopes)

    @property
    def influence(self) -> FloatArray:
        """Weights (n_samples,) of the rows before any fit, for a target of unit variance."""
        return 1 / self.variance(1.0)

    @property
    def n_readings(self) -> float:
        """The sum of the weights."""
        return float(self.weights.sum())

    def log_factors(self, log_noise: float) -> FloatArray:
        """Compute what turns the log density of each row into that of the target as it was.

        A row of the weight w is w readings of one target, and their mean has the noise variance
        ``s / w``. Their scatter has the density ``(2 pi s)^(-(w - 1) / 2) w^(-1 / 2)``. With
        rounding, s is that of a rounded reading.
        """
        w = self.weights
        with np.errstate(invalid="ignore"):  # of a noise that is no number
            log_noises = np.logaddexp(log_noise, self._log_rounding)
        scatter = (w - 1) * _LOG_2PI + np.log(w)
        return w * self.log_slopes - 0.5 * scatter + 0.5 * (1 - w) * log_noises

    def log_factor(self, log_noise: float) -> float:
        """Compute the sum of :meth:`log_factors`."""
        if not self._has_weights:
            return self._sum_of_log_slopes
        return float(self.log_factors(log_noise).sum())

    def slope_of_factor(self, log_noise: float) -> float:
        """Compute the derivative of :meth:`log_factor`."""
        if not self._has_weights:
            return 0.0
        shares = expit(log_noise - self._log_rounding)  # of the noise that is not rounding
        return float(0.5 * ((1 - self.weights) * shares).sum())

    @cached_property
    def _sum_of_log_slopes(self) -> float:
        return float(self.log_slopes.sum())

    @property
    def _log_rounding(self) -> FloatArray:
        with np.errstate(divide="ignore"):
            return np.log(self.rounding)
