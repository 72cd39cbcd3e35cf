"""A scan over the parameters of single leaves, to find modes higher than a given mode.

A mode that is not the highest is often wrong in one leaf, or has two leaves exchanged. For example,
a periodic leaf has the right period but the wrong shape of the cycle. The parameters of each leaf
in turn, if they declare a grid, are varied over it while all others are fixed. A grid point costs
one factorisation and no gradient. The local maxima are starting points for the maximiser.
"""

from collections.abc import Iterable, Iterator
from itertools import combinations, product

import numpy as np
from scipy.ndimage import generate_binary_structure, maximum_filter

from autokernel.evidence.maximise import Point, distinct_points
from autokernel.evidence.posterior import LogPosterior
from autokernel.evidence.starts import Magnitudes
from autokernel.expression import Slot, View, meeting_operator, slots_of
from autokernel.kernels import MULTIPLY, KernelParameter, Role, Unit, role_index
from autokernel.typing import FloatArray

_HALF_WINDOW = 0.3  # cycles over the extent; a peak of the periodogram is accurate to a quarter
_MAX_PERIODIC_LEAVES = 2  # whose periods are scanned; more leaves can often replace one another


class CoordinateScan:
    """Starting points, derived from one mode of a posterior, that may lead to higher modes.

    ``nodes`` are the indices of the nodes to scan.
    """

    def __init__(
        self, posterior: LogPosterior, magnitudes: Magnitudes, nodes: Iterable[int]
    ) -> None:
        self._posterior, self._magnitudes = posterior, magnitudes
        slots = slots_of(posterior.expression)
        periodic = [n for n in sorted(nodes) if _is_periodic(slots[n])]
        others = [n for n in sorted(nodes) if n not in periodic and _has_grid(slots[n])]
        self._scanned = {n: slots[n] for n in (*others, *periodic[:_MAX_PERIODIC_LEAVES])}

    def around(self, theta: FloatArray) -> list[Point]:
        """List points by decreasing log posterior, without those that are close to a better one."""
        found: list[Point] = []
        for one in self._scanned.values():
            found += self._periodic(theta, one) if _is_periodic(one) else self._grid(theta, one)
        for n, m in combinations(self._scanned, 2):
            one, other = self._scanned[n], self._scanned[m]
            if one.node.view != other.node.view:
                continue
            if _is_periodic(one) == _is_periodic(other):
                found += self._exchanged(theta, one, other)
            elif meeting_operator(self._posterior.expression.tree, n, m) == MULTIPLY:
                found += self._decaying_cycles(theta, other, one)
        return distinct_points(found, 0.02)

    def _periodic(self, theta: FloatArray, leaf: Slot) -> Iterator[Point]:
        base, variance = theta.copy(), _entry(leaf, Role.VARIANCE)
        if variance is not None:
            base[variance] = max(base[variance], np.log(0.1 * self._magnitudes.mean_square))
        index = role_index(leaf.node.parameters, Role.CYCLE_LENGTHSCALE)
        grid = () if index is None else leaf.node.parameters[index].grid
        for length in grid or (1.2,):  # by default that of a sine
            yield from self._periods(base, leaf, length)

    def _periods(self, base: FloatArray, leaf: Slot, length: float) -> list[Point]:
        """Scan the period of one leaf at one lengthscale, with all else as in ``base``.

        The grid is even in the number of cycles over the extent. Half a grid step changes the phase
        at the far end of the extent by one lengthscale, whatever the period.
        """
        length = max(length, np.pi / self._magnitudes.n_samples)  # to correlate any two points
        period, in_cycle = _entry(leaf, Role.PERIOD), _entry(leaf, Role.CYCLE_LENGTHSCALE)
        assert period is not None  # the leaf is periodic
        extent = self._magnitudes.spacing_and_extent(_view(leaf))[1]
        found: list[Point] = []
        within = self._posterior.likelihood.parameters[period].start
        now, longest = np.exp([base[period], self._posterior.upper[period]])
        for low, high in self._windows(_view(leaf), now, longest, within):
            n_points = max(3, int(np.ceil((high - low) * np.pi / (2 * length))) + 1)
            thetas = np.tile(base, (n_points, 1))
            if in_cycle is not None:
                thetas[:, in_cycle] = np.log(length)
            thetas[:, period] = np.log(extent / np.linspace(low, high, n_points))
            found += self._local_maxima(thetas, (n_points,))
        return sorted(found, key=lambda one: -one.log_posterior)[:2]

    def _windows(
        self, view: View, period: float, longest: float, within: tuple[float, float] | None
    ) -> list[tuple[float, float]]:
        """List intervals of cycles over the extent: near ``period``, peaks and half peaks.

        All lie within the bounds of the period, or within its declared range, in extents, whose
        middle is then one of them.
        """
        extent = self._magnitudes.spacing_and_extent(view)[1]
        peaks = extent / self._magnitudes.periods(view, within)[:5]
        most, least = (np.inf, extent / longest) if within is None else (1 / end for end in within)
        more = peaks[:2] / 2 if within is None else [np.sqrt(least * most)]
        centres, merged = [extent / period, *peaks, *more], [(np.inf, -np.inf)]
        for centre in np.sort(np.clip(centres, least, most)):
            low, high = max(least, centre - _HALF_WINDOW), min(most, centre + _HALF_WINDOW)
            if low <= merged[-1][1]:
                merged[-1] = (merged[-1][0], high)
            else:
                merged.append((low, high))
        return [window for window in merged if window[0] < window[1]]

    def _grid(self, theta: FloatArray, leaf: Slot) -> Iterator[Point]:
        """Scan the parameters of a leaf that have a unit, at each value of the other ones."""
        axes: dict[int, FloatArray] = {}
        at: dict[int, FloatArray] = {}
        for entry, parameter in enumerate(leaf.node.parameters, start=leaf.entries.start):
            if len(values := self._grid_values(parameter, _view(leaf))):
                (at if parameter.unit == Unit.NONE else axes)[entry] = values
        grid = np.meshgrid(*axes.values(), indexing="ij")
        shape = tuple(map(len, axes.values()))
        for combination in product(*at.values()):
            thetas = np.tile(theta, (int(np.prod(shape)), 1))
            thetas[:, list(axes)] = np.reshape(grid, (len(axes), -1)).T
            thetas[:, list(at)] = combination
            yield from self._local_maxima(thetas, shape)[:3]

    def _grid_values(self, parameter: KernelParameter, view: View) -> FloatArray:
        """Return the log values at which a parameter is scanned, none if it is fixed."""
        spacing, extent = self._magnitudes.spacing_and_extent(view)
        if parameter.role == Role.LENGTHSCALE and not parameter.grid:
            return np.linspace(np.log(spacing / 2), np.log(2 * extent), 8)
        square = self._magnitudes.mean_square
        units = {Unit.INPUT: extent, Unit.SQUARED_TARGET: square, Unit.NONE: 1.0}
        return np.log(np.array(parameter.grid) * units[parameter.unit])

    def _exchanged(self, theta: FloatArray, one: Slot, other: Slot) -> list[Point]:
        """List the point at which two leaves exchange the parameters of the same name."""
        swapped, named = theta.copy(), _named_entries(other)
        for name, entry in _named_entries(one).items():
            if name in named:
                swapped[[entry, named[name]]] = theta[[named[name], entry]]
        return self._local_maxima(swapped[None], (1,))

    def _decaying_cycles(self, theta: FloatArray, periodic: Slot, other: Slot) -> Iterator[Point]:
        """Scan the period of smooth cycles whose correlation decays over several lengthscales."""
        lengthscale = _entry(other, Role.LENGTHSCALE)
        spacing, extent = self._magnitudes.spacing_and_extent(_view(other))
        decays = np.geomspace(4 * spacing, extent / 4, 3)
        for decay_length, length in product(() if lengthscale is None else decays, (0.5, 1.2)):
            base = theta.copy()
            base[lengthscale] = np.log(decay_length)
            yield from self._periods(base, periodic, length)

    def _local_maxima(self, thetas: FloatArray, shape: tuple[int, ...]) -> list[Point]:
        """Return the local maxima of a grid of points (n_points, n_params), the highest first."""
        thetas = np.clip(thetas, self._posterior.lower, self._posterior.upper)
        values = np.array([self._posterior.value(theta) for theta in thetas])
        grid = np.atleast_1d(values.reshape(shape))
        cross = generate_binary_structure(grid.ndim, 1)  # an entry with its neighbours
        highest = maximum_filter(grid, footprint=cross, mode="constant", cval=-np.inf)
        indices = np.flatnonzero(np.isfinite(grid) & (grid >= highest))
        return [Point(thetas[i], values[i]) for i in indices[np.argsort(-values[indices])]]


def _entry(slot: Slot, role: Role) -> int | None:
    index = role_index(slot.node.parameters, role)
    return None if index is None else slot.entries.start + index


def _is_periodic(slot: Slot) -> bool:
    return _entry(slot, Role.PERIOD) is not None


def _has_grid(slot: Slot) -> bool:
    """Return whether a lengthscale or another parameter except the variance is laid on a grid."""
    return any(
        parameter.role == Role.LENGTHSCALE or (parameter.grid and parameter.role != Role.VARIANCE)
        for parameter in slot.node.parameters
    )


def _view(slot: Slot) -> View:  # an operator on no column is scanned as on the first
    return slot.node.view or View(0)


def _named_entries(slot: Slot) -> dict[tuple[str, Unit], int]:
    return {(p.name, p.unit): slot.entries.start + n for n, p in enumerate(slot.node.parameters)}
