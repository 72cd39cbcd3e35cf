"""All pairs of the entries of one column, in packed storage, computed once per data set."""

from collections.abc import Callable
from functools import cached_property
from typing import TypeVar

import numpy as np

from autokernel.inference.packed import pack, packed_gram
from autokernel.kernels import DistinctLags, Gaps, Pairs
from autokernel.typing import BoolArray, FloatArray

Made = TypeVar("Made", bound=Pairs)


class PackedPairs(Pairs):
    """Pairs of the entries of ``x`` (n,).

    On a regular grid most of the n^2 / 2 lags are equal. What depends only on lags, such as the
    periodic terms, is then computed once for each distinct lag and looked up.
    """

    def __init__(self, x: FloatArray, gaps: Gaps | None = None) -> None:
        self._x, self.gaps = x, gaps
        self._centred = x - x.mean()  # the periodic terms lose fewer digits with small phases

    @property
    def shape(self) -> tuple[int, ...]:
        return (len(self._x) * (len(self._x) + 1) // 2,)

    def combine(
        self, ufunc: np.ufunc, function: Callable[[FloatArray], FloatArray] | None = None
    ) -> FloatArray:
        x = self._x if function is None else function(self._x)
        return packed_gram(x[:, None]) if ufunc is np.multiply else pack(ufunc.outer(x, x))

    def periodic(self, period: float) -> FloatArray:
        """Compute ``sin^2(pi (x_i - x_j) / period)``, as a new array.

        By ``cos(a - b) = cos a cos b + sin a sin b`` it follows from a product of rank two. That
        needs 2 n sines, and the definition n^2 / 2 of them.
        """
        if self.distinct is not None:
            lags, indices = self.distinct
            return (np.sin(np.pi / period * lags) ** 2).take(indices, mode="clip")
        phase = (2 * np.pi / period) * self._centred
        cosine = packed_gram(np.stack([np.cos(phase), np.sin(phase)], axis=1))
        cosine *= -0.5
        cosine += 0.5
        return cosine

    def periodic_slope(self, period: float, weights: FloatArray) -> float:
        """Differentiate the weighted sum of :meth:`periodic` with respect to the log period.

        With the phases a and b, the derivative of an entry is ``-(a - b) sin(a - b) / 2``. As
        ``sin(a - b) = sin a cos b - cos a sin b``, the matrix of the derivatives is symmetric
        and of rank four. It is the difference of two products of rank two:
        ``2 (u v^T + v u^T) = (u+v)(u+v)^T - (u-v)(u-v)^T``.
        """
        if self.distinct is not None:
            lags, indices = self.distinct
            angle = (2 * np.pi / period) * lags
            return float(-0.5 * (np.bincount(indices, weights) @ (angle * np.sin(angle))))
        phase = (2 * np.pi / period) * self._centred
        # u and v are scaled to similar sizes, so that few digits cancel in the difference
        balance = np.sqrt(max(1.0, float(np.abs(phase).max())))
        cosine, sine = np.cos(phase) * balance, np.sin(phase) * balance
        scaled = phase / balance**2
        slope = packed_gram(np.stack([scaled * sine + cosine, scaled * cosine - sine], axis=1))
        slope -= packed_gram(np.stack([scaled * sine - cosine, scaled * cosine + sine], axis=1))
        return float(-0.25 * (weights @ slope))

    def matrix(self, kernel: Callable[[FloatArray, FloatArray], FloatArray]) -> FloatArray:
        column = self._x[:, None]
        return pack(kernel(column, column))

    @cached_property
    def distinct(self) -> DistinctLags | None:
        """The distinct lags; None unless there are many pairs for each of them."""
        lags = np.sqrt(self.squared_distance)
        order = np.argsort(lags)
        # equal ones differ through rounding, by some EPS of the extent
        new = np.diff(lags[order], prepend=-np.inf) > 1e-13 * lags.max()
        if 8 * np.count_nonzero(new) > len(lags):  # with fewer pairs a lookup is not faster
            return None
        indices = np.empty(len(lags), dtype=np.intp)
        indices[order] = np.cumsum(new) - 1
        return DistinctLags(np.bincount(indices, lags) / np.bincount(indices), indices)


def with_gaps(
    make: Callable[..., Made], *values: FloatArray, is_one_row: BoolArray, places: FloatArray
) -> Made:
    """Make pairs of values of which some are missing; the first place stands for each of these."""
    gaps = Gaps(make(*values), is_one_row=is_one_row, places=places)
    return make(*(np.where(np.isnan(one), places[0], one) for one in values), gaps)
