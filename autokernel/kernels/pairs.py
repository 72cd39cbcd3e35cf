"""Pairs of entries of one column, the form in which a kernel receives the data."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import cached_property
from typing import NamedTuple

import numpy as np

from autokernel.data.gaps import is_missing
from autokernel.typing import FloatArray, IntArray

_BLOCK = 256  # number of pairs whose values are taken from one matrix


class Pairs(ABC):
    """Quantities of pairs ``(x, x')`` of entries of one column, as arrays in one storage.

    All arrays of one ``Pairs`` have the same shape, which a kernel need not know. They must not be
    overwritten.
    """

    @property
    @abstractmethod
    def shape(self) -> tuple[int, ...]:
        """Shape of all arrays."""

    @property
    @abstractmethod
    def difference(self) -> FloatArray:
        """``|x - x'|``."""

    @property
    @abstractmethod
    def squared_distance(self) -> FloatArray:
        """``(x - x')^2``."""

    @property
    @abstractmethod
    def product(self) -> FloatArray:
        """``x x'``."""

    @abstractmethod
    def periodic(self, period: float) -> FloatArray:
        """Compute ``sin^2(pi (x - x') / period)``, as a new array."""

    @abstractmethod
    def periodic_slope(self, period: float, weights: FloatArray) -> float:
        """Differentiate the weighted sum of :meth:`periodic` with respect to the log period."""

    @abstractmethod
    def outer(self, function: Callable[[FloatArray], FloatArray]) -> FloatArray:
        """Compute ``f(x) f(x')`` for a function ``f`` of an array."""

    @abstractmethod
    def sum(self, function: Callable[[FloatArray], FloatArray]) -> FloatArray:
        """Compute ``f(x) + f(x')`` for a function ``f`` of an array."""

    @cached_property
    def overlap(self) -> FloatArray:
        """``min(x, x')``, the length that the ways from zero to ``x`` and to ``x'`` have in common.

        It is zero if they go to opposite sides.
        """
        return 0.5 * (self.sum(np.abs) - self.difference)

    @abstractmethod
    def matrix(self, kernel: Callable[[FloatArray, FloatArray], FloatArray]) -> FloatArray:
        """Evaluate a symmetric function ``k(X, Y)`` of (n, 1) and (m, 1) that returns (n, m)."""

    @cached_property
    def gaps(self) -> "Gaps":
        """The pairs of which an entry is missing."""
        return Gaps(self)

    @property
    def distinct(self) -> "DistinctLags | None":
        """The distinct lags, None where there are too many of them for a gain in time."""
        return None


class DistinctLags(NamedTuple):
    """The lags ``|x - x'|`` of pairs without repetitions, as on a grid where most are equal."""

    lags: FloatArray  #: (n_lags,)
    indices: IntArray  #: of the lag of each pair


class Gaps:
    """Pairs of which an entry is missing, and with which values the known ones are compared.

    Attributes
    ----------
    one, apart, same : ndarray of bool
        Masks of the pairs: one of the two is missing, both are at different places, and both are
        one and the same missing value.
    n_known : int
        Number of values that are known in a pair with a missing one, without repetitions.
    indices : ndarray of int
        Index among these values for each pair of ``one``.
    """

    def __init__(self, pairs: Pairs) -> None:
        known = pairs.outer(lambda x: np.where(is_missing(x), 0.0, 1.0)) > 0
        neither = pairs.outer(lambda x: np.where(is_missing(x), 1.0, 0.0)) > 0
        partners = pairs.outer(lambda x: np.where(is_missing(x), 1.0, x))
        self.one = ~(known | neither)
        self.same = neither & (pairs.difference == 0)
        self.apart = neither & ~self.same
        self._known, self.indices = np.unique(partners[self.one], return_inverse=True)
        self.n_known = len(self._known)
        self._with_places: dict[tuple[float, ...], BroadcastPairs] = {}

    def with_places(self, places: tuple[float, ...]) -> "BroadcastPairs":
        """Pair each of the known values with each of some places, (n_known * n_places,)."""
        if places not in self._with_places:
            x = np.repeat(self._known, len(places))
            self._with_places[places] = BroadcastPairs(x, np.tile(places, self.n_known))
        return self._with_places[places]


class BroadcastPairs(Pairs):
    """Pairs of two arrays that broadcast against each other, computed by the definitions.

    Parameters
    ----------
    x, other : ndarray
        A column of shape (n, 1) and a row of shape (1, m) give the rectangular matrix of all pairs.
        Two arrays of the same shape give the pairs of their entries.
    """

    def __init__(self, x: FloatArray, other: FloatArray) -> None:
        self._x, self._other = x, other

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """The shape to which the two arrays broadcast."""
        return np.broadcast_shapes(self._x.shape, self._other.shape)

    @cached_property
    def difference(self) -> FloatArray:
        """``|x - x'|``."""
        return np.abs(self._x - self._other)

    @cached_property
    def squared_distance(self) -> FloatArray:
        """``(x - x')^2``."""
        return (self._x - self._other) ** 2

    @cached_property
    def product(self) -> FloatArray:
        """``x x'``."""
        return self._x * self._other

    def periodic(self, period: float) -> FloatArray:
        """Compute ``sin^2(pi (x - x') / period)``."""
        return np.sin(np.pi * self.difference / period) ** 2

    def periodic_slope(self, period: float, weights: FloatArray) -> float:
        """Differentiate the weighted sum of :meth:`periodic` with respect to the log period."""
        angle = (2 * np.pi / period) * self.difference
        return float(-0.5 * (weights * angle * np.sin(angle)).sum())

    def outer(self, function: Callable[[FloatArray], FloatArray]) -> FloatArray:
        """Compute ``f(x) f(x')``."""
        return function(self._x) * function(self._other)

    def sum(self, function: Callable[[FloatArray], FloatArray]) -> FloatArray:
        """Compute ``f(x) + f(x')``."""
        return function(self._x) + function(self._other)

    def matrix(self, kernel: Callable[[FloatArray, FloatArray], FloatArray]) -> FloatArray:
        """Evaluate a symmetric function of two columns of points."""
        if self._x.ndim == 2 and self._x.shape[1] == 1 and self._other.shape[0] == 1:
            return kernel(self._x, self._other.T)
        x, other = np.broadcast_arrays(self._x, self._other)
        blocks = range(0, x.size, _BLOCK)
        values = [
            _elementwise(kernel, x.ravel()[i : i + _BLOCK], other.ravel()[i : i + _BLOCK])
            for i in blocks
        ]
        return np.concatenate([*values, np.empty(0)]).reshape(x.shape)


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

    @property
    def product(self) -> FloatArray:
        """Raise an error, as the lags do not say what it is."""
        raise _not_stationary("product")

    def outer(self, function: Callable[[FloatArray], FloatArray]) -> FloatArray:  # noqa: ARG002 - there are no inputs
        """Raise an error, as the lags do not say what it is."""
        raise _not_stationary("outer")

    def sum(self, function: Callable[[FloatArray], FloatArray]) -> FloatArray:  # noqa: ARG002 - there are no inputs
        """Raise an error, as the lags do not say what it is."""
        raise _not_stationary("sum")


def _not_stationary(name: str) -> ValueError:
    """Build the error for a kernel that is not stationary and says that it is."""
    return ValueError(
        "a kernel with is_stationary = True must use difference, squared_distance and periodic "
        f"alone, got pairs.{name}: set is_stationary = False"
    )


def _elementwise(
    kernel: Callable[[FloatArray, FloatArray], FloatArray], x: FloatArray, other: FloatArray
) -> FloatArray:
    """Evaluate a kernel at pairs (n,) of entries, from the matrix of their distinct values."""
    rows, row = np.unique(x, return_inverse=True)
    columns, column = np.unique(other, return_inverse=True)
    return kernel(rows[:, None], columns[:, None])[row, column]


_STEP = 1e-4  # step in a log parameter


def log_derivatives(
    value: Callable[[FloatArray], FloatArray], params: FloatArray
) -> list[FloatArray]:
    """Differentiate an array with respect to the log of each parameter.

    Notes
    -----
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
