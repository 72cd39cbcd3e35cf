"""All pairs of the entries of one column, in packed storage, computed once per data set."""

from collections.abc import Callable
from functools import cached_property

import numpy as np

from autokernel.kernels import Pairs
from autokernel.likelihood.linalg import pack, packed_gram
from autokernel.typing import FloatArray, IntArray

_SAME = 1e-13  # of the extent: lags that differ by rounding alone
_MANY = 8  # pairs to a distinct lag, from where on looking up is faster than a product


class PackedPairs(Pairs):
    """Pairs of the entries of ``x`` (n,).

    On a regular grid most of the n^2 / 2 lags are equal: what is periodic is computed once for each
    distinct lag and looked up.
    """

    def __init__(self, x: FloatArray) -> None:
        self._x = x
        self._centred = x - x.mean()  # small phases keep the digits of the periodic terms

    @cached_property
    def difference(self) -> FloatArray:
        """``|x_i - x_j|``."""
        return pack(np.abs(np.subtract.outer(self._x, self._x)))

    @cached_property
    def squared_distance(self) -> FloatArray:
        """``(x_i - x_j)^2``."""
        return pack(np.subtract.outer(self._x, self._x) ** 2)

    @cached_property
    def product(self) -> FloatArray:
        """``x_i x_j``."""
        return packed_gram(self._x[:, None])

    def periodic(self, period: float) -> FloatArray:
        """``sin^2(pi (x_i - x_j) / period)``, from ``cos(a - b) = cos a cos b + sin a sin b``.

        A product of rank two needs 2 n sines where the definition needs n^2 / 2 of them.
        """
        if self._lags is not None:
            distinct, places = self._lags
            return (np.sin(np.pi / period * distinct) ** 2).take(places, mode="clip")
        phase = (2 * np.pi / period) * self._centred
        cosine = packed_gram(np.stack([np.cos(phase), np.sin(phase)], axis=1))
        cosine *= -0.5
        cosine += 0.5
        return cosine

    def periodic_slope(self, period: float, weights: FloatArray) -> float:
        """Differentiate the weighted sum of :meth:`periodic` in the log of the period.

        That of an entry is ``-(a - b) sin(a - b) / 2``. With ``sin(a - b) = sin a cos b - cos a sin
        b`` it is symmetric and of rank four, the difference of two products of rank two:
        ``2 (u v^T + v u^T) = (u+v)(u+v)^T - (u-v)(u-v)^T``.
        """
        if self._lags is not None:
            distinct, places = self._lags
            angle = (2 * np.pi / period) * distinct
            return float(-0.5 * (np.bincount(places, weights) @ (angle * np.sin(angle))))
        phase = (2 * np.pi / period) * self._centred
        # u and v of like size, so that the difference cancels few digits
        balance = np.sqrt(max(1.0, float(np.abs(phase).max())))
        cosine, sine = np.cos(phase) * balance, np.sin(phase) * balance
        scaled = phase / balance**2
        plus = np.stack([scaled * sine + cosine, scaled * cosine - sine], axis=1)
        minus = np.stack([scaled * sine - cosine, scaled * cosine + sine], axis=1)
        slope = packed_gram(plus)
        slope -= packed_gram(minus)
        return float(-0.25 * (weights @ slope))

    def outer(self, function: Callable[[FloatArray], FloatArray]) -> FloatArray:
        """``f(x_i) f(x_j)``."""
        return packed_gram(function(self._x)[:, None])

    def matrix(self, kernel: Callable[[FloatArray, FloatArray], FloatArray]) -> FloatArray:
        """Values of a symmetric function of two columns of points."""
        column = self._x[:, None]
        return pack(kernel(column, column))

    @cached_property
    def _lags(self) -> tuple[FloatArray, IntArray] | None:
        """Distinct lags (n_lags,) and which of them each pair has; None if there are many."""
        lags = np.sqrt(self.squared_distance)
        order = np.argsort(lags)
        new = np.diff(lags[order], prepend=-np.inf) > _SAME * lags.max()
        n_lags = np.count_nonzero(new)
        if n_lags * _MANY > len(lags):
            return None
        places = np.empty(len(lags), dtype=np.intp)
        places[order] = np.cumsum(new) - 1
        return np.bincount(places, lags) / np.bincount(places), places
