"""Pairs of entries of one column, the form in which a kernel receives the data."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import cached_property
from typing import NamedTuple

import numpy as np

from autokernel.typing import BoolArray, FloatArray, IntArray

_BLOCK = 256  # number of pairs whose values are taken from one matrix

Function = Callable[[FloatArray], FloatArray]


class Pairs(ABC):
    """Quantities of pairs ``(x, x')`` of entries of one column, as arrays in one storage.

    All arrays of one ``Pairs`` have the same shape, which a kernel need not know. They must not be
    overwritten. Entries are numbers also where values are missing, at the pairs of ``gaps``.
    """

    gaps: "Gaps | None" = None

    @property
    @abstractmethod
    def shape(self) -> tuple[int, ...]:
        """Shape of all arrays."""

    @abstractmethod
    def combine(self, ufunc: np.ufunc, function: Function | None = None) -> FloatArray:
        """Compute ``ufunc(x, x')``, or ``ufunc(f(x), f(x'))`` for a function of an array."""

    @cached_property
    def difference(self) -> FloatArray:
        """``|x - x'|``."""
        return np.abs(self.combine(np.subtract))

    @cached_property
    def squared_distance(self) -> FloatArray:
        """``(x - x')^2``."""
        return self.combine(np.subtract) ** 2

    @cached_property
    def product(self) -> FloatArray:
        """``x x'``."""
        return self.combine(np.multiply)

    @abstractmethod
    def periodic(self, period: float) -> FloatArray:
        """Compute ``sin^2(pi (x - x') / period)``, as a new array."""

    @abstractmethod
    def periodic_slope(self, period: float, weights: FloatArray) -> float:
        """Differentiate the weighted sum of :meth:`periodic` with respect to the log period."""

    def outer(self, function: Function) -> FloatArray:
        """Compute ``f(x) f(x')`` for a function ``f`` of an array."""
        return self.combine(np.multiply, function)

    def sum(self, function: Function) -> FloatArray:
        """Compute ``f(x) + f(x')`` for a function ``f`` of an array."""
        return self.combine(np.add, function)

    @cached_property
    def overlap(self) -> FloatArray:
        """``min(x, x')``, the length that the ways from zero to ``x`` and to ``x'`` have in common.

        It is zero if they go to opposite sides.
        """
        return 0.5 * (self.sum(np.abs) - self.difference)

    @abstractmethod
    def matrix(self, kernel: Callable[[FloatArray, FloatArray], FloatArray]) -> FloatArray:
        """Evaluate a symmetric function ``k(X, Y)`` of (n, 1) and (m, 1) that returns (n, m)."""

    @property
    def distinct(self) -> "DistinctLags | None":
        """The distinct lags, None where there are too many of them for a gain in time."""
        return None


class DistinctLags(NamedTuple):
    """The lags ``|x - x'|`` of pairs without repetitions, as on a grid where most are equal."""

    lags: FloatArray  #: (n_lags,)
    indices: IntArray  #: of the lag of each pair


class BroadcastPairs(Pairs):
    """Pairs of two arrays that broadcast against each other, computed by the definitions.

    Parameters
    ----------
    x, other : ndarray
        A column of shape (n, 1) and a row of shape (1, m) give the rectangular matrix of all pairs.
        Two arrays of the same shape give the pairs of their entries.
    gaps : Gaps, optional
        The pairs of which an entry is missing.
    """

    def __init__(self, x: FloatArray, other: FloatArray, gaps: "Gaps | None" = None) -> None:
        self._x, self._other, self.gaps = x, other, gaps

    @cached_property
    def shape(self) -> tuple[int, ...]:
        return np.broadcast_shapes(self._x.shape, self._other.shape)

    def combine(self, ufunc: np.ufunc, function: Function | None = None) -> FloatArray:
        if function is None:
            return ufunc(self._x, self._other)
        return ufunc(function(self._x), function(self._other))

    def periodic(self, period: float) -> FloatArray:
        return np.sin(np.pi * self.difference / period) ** 2

    def periodic_slope(self, period: float, weights: FloatArray) -> float:
        angle = (2 * np.pi / period) * self.difference
        return float(-0.5 * (weights * angle * np.sin(angle)).sum())

    def matrix(self, kernel: Callable[[FloatArray, FloatArray], FloatArray]) -> FloatArray:
        if self._x.ndim == 2 and self._x.shape[1] == 1 and self._other.shape[0] == 1:
            return kernel(self._x, self._other.T)
        x, other = (one.ravel() for one in np.broadcast_arrays(self._x, self._other))
        values = [np.empty(0)]
        for begin in range(0, len(x), _BLOCK):  # from the matrix of the distinct entries
            rows, row = np.unique(x[begin : begin + _BLOCK], return_inverse=True)
            columns, column = np.unique(other[begin : begin + _BLOCK], return_inverse=True)
            values.append(kernel(rows[:, None], columns[:, None])[row, column])
        return np.concatenate(values).reshape(self.shape)


class Gaps:
    """Pairs of which an entry is missing, and the places where it may be.

    Values are missing completely at random. A missing value ``x*`` is another independent draw from
    the known ones, of which the ``places`` (n_places,) are quantiles: ``k(x, x*) = E k(x, X)`` and
    ``k(x*, x**) = E k(X, X')``, and the variance of the function there is ``E k(X, X)``. These are
    the second moments of ``f(X)``, so that the kernel is positive definite.

    In the ``pairs`` missing entries are NaN; ``is_one_row`` says of which both are of the same row.
    """

    def __init__(self, pairs: Pairs, *, is_one_row: BoolArray, places: FloatArray) -> None:
        n_missing = pairs.sum(lambda x: np.isnan(x).astype(float))
        partners = pairs.outer(lambda x: np.where(np.isnan(x), 1.0, x))
        self._one, neither = n_missing == 1, n_missing == 2
        self._same, self._apart = neither & is_one_row, neither & ~is_one_row
        present, self._indices = np.unique(partners[self._one], return_inverse=True)
        self._n_present = len(present)
        n = self._n_places = len(places)
        self._with_places = BroadcastPairs(np.repeat(present, n), np.tile(places, len(present)))
        self._between_places = BroadcastPairs(np.repeat(places, n), np.tile(places, n))
        self._at_places = BroadcastPairs(places, places)

    def average(self, value: FloatArray, kernel: Callable[[Pairs], FloatArray]) -> None:
        """Put the averages of a kernel into its values, where entries are missing."""
        if self._n_present:
            table = kernel(self._with_places).reshape(self._n_present, self._n_places)
            value[self._one] = table.mean(axis=1)[self._indices]
        value[self._apart] = kernel(self._between_places).mean()
        value[self._same] = kernel(self._at_places).mean()

    def gradient(
        self, adjoint: FloatArray, kernel: Callable[[Pairs, FloatArray], FloatArray]
    ) -> FloatArray:
        """Compute the gradient of ``sum(adjoint * value)`` over the pairs with missing entries."""
        n = self._n_places
        between, at = adjoint[self._apart].sum() / n**2, adjoint[self._same].sum() / n
        gradient = kernel(self._between_places, np.full(n**2, between))
        gradient = gradient + kernel(self._at_places, np.full(n, at))
        if self._n_present:
            of_one = np.bincount(self._indices, adjoint[self._one], self._n_present) / n
            gradient = gradient + kernel(self._with_places, np.repeat(of_one, n))
        return gradient

    def of_known(self, adjoint: FloatArray) -> FloatArray:
        """Return a derivative with zeros where entries are missing."""
        return np.where(self._one | self._apart | self._same, 0.0, adjoint)


class LagPairs(BroadcastPairs):
    """Pairs of which only the lags are known, for kernels that are stationary.

    The quantities that depend on the inputs themselves, ``product``, ``outer``, ``sum`` and
    ``overlap``, raise a ``ValueError``.

    Parameters
    ----------
    lags : ndarray of shape (n_lags,)
        The lags ``|x - x'|``.
    """

    def __init__(self, lags: FloatArray) -> None:
        super().__init__(lags, np.zeros(1))

    def combine(self, ufunc: np.ufunc, function: Function | None = None) -> FloatArray:
        if ufunc is not np.subtract:
            raise ValueError(
                "a kernel with is_stationary = True must use difference, squared_distance and "
                "periodic alone, got a quantity of the inputs themselves: set is_stationary = False"
            )
        return super().combine(ufunc, function)


_STEP = 1e-4  # step in a log parameter


def log_derivatives(
    value: Callable[[FloatArray], FloatArray], params: FloatArray
) -> list[FloatArray]:
    """Differentiate an array with respect to the log of each parameter.

    These are central differences of fourth order, with four calls for each parameter. With this
    step the truncation error is below 1e-8 of the value for a period that repeats thirty times, and
    the rounding error is about 1e-12 of the value.
    """
    derivatives = []
    for axis in np.eye(len(params)):
        one, two = np.exp(_STEP * axis), np.exp(2 * _STEP * axis)
        near = value(params * one) - value(params / one)
        far = value(params * two) - value(params / two)
        derivatives.append((8 * near - far) / (12 * _STEP))
    return derivatives


def difference_gradient(
    value: Callable[[FloatArray], FloatArray], params: FloatArray, adjoint: FloatArray
) -> FloatArray:
    """Compute the gradient (n_params,) of ``sum(adjoint * value)`` in the log parameters."""
    return np.array([(adjoint * slope).sum() for slope in log_derivatives(value, params)])
