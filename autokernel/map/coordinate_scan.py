"""A scan along the parameters of single leaves, given one mode: where a higher mode may be.

A mode that is not the highest is often wrong in one leaf, or has the roles of two leaves exchanged:
a periodic leaf has found the seasons without their shape, a short lengthscale stands where the long
one belongs. Each leaf in turn is laid on a grid with all others held, which costs a factorisation
per point and no gradient; the local maxima over the grid are worth a run of the maximiser. What is
scanned, and on which grid, is what the parameters of the leaf declare.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, product

import numpy as np

from autokernel.expression import Expression, Leaf, meeting_operator, slots_of
from autokernel.kernels import BaseKernel, KernelParameter, Role, Unit
from autokernel.map.data_scales import DataScales
from autokernel.map.maximise import Mode
from autokernel.map.posterior import LogPosterior
from autokernel.operators import MULTIPLY
from autokernel.typing import BoolArray, FloatArray

_SMOOTH_CYCLES = (0.5, 1.2)  # lengthscales within a cycle
_LONGEST_IN_CYCLE = 3.0
_N_REACHES = 3
_SHARP = 0.3  # below this lengthscale a period explains more, and leaves less to the noise
_N_LENGTHSCALES = 8
_LEAST_FRACTION = 0.1  # of the mean square of the target, for the variance beside a period
_HALF_WINDOW = 0.3  # cycles over the extent: a peak of the periodogram is known to a quarter
_N_PEAKS = 5
_PER_GRID = 2  # local maxima that are kept of the periods at one lengthscale
_PER_LEAF = 3  # and of one grid of a leaf without a period
_MAX_PERIODIC = 2  # leaves whose periods are scanned: in larger kernels they stand for one another


@dataclass(frozen=True, slots=True)
class _Scanned:
    """A leaf whose parameters are scanned, and where they stand in theta."""

    node: int  # its index among the nodes
    leaf: Leaf
    entries: slice

    @property
    def kernel(self) -> BaseKernel:
        """The base kernel."""
        return self.leaf.kernel

    @property
    def is_periodic(self) -> bool:
        """Whether its period is scanned."""
        return self.entry(Role.PERIOD) is not None

    def entry(self, role: Role) -> int | None:
        """Entry of theta that plays a role, None if none does."""
        index = self.kernel.index(role)
        return None if index is None else self.entries.start + index

    def named_entries(self) -> dict[tuple[str, Unit], int]:
        """Entries of theta by name and unit."""
        parameters = enumerate(self.kernel.parameters)
        return {(p.name, p.unit): self.entries.start + index for index, p in parameters}


class CoordinateScan:
    """Points next to a mode of one kernel's posterior that are worth a run.

    Parameters
    ----------
    posterior : LogPosterior
        The log posterior.
    scales : DataScales
        Those of the data of the posterior.
    nodes : sequence of int or None
        Indices of the nodes that are scanned, if they are leaves; None is for all.
    """

    def __init__(
        self, posterior: LogPosterior, scales: DataScales, nodes: Sequence[int] | None = None
    ) -> None:
        self._posterior, self._scales = posterior, scales
        expression = posterior.expression
        leaves = [
            _Scanned(number, slot.node, slot.entries)
            for number, slot in enumerate(slots_of(expression))
            if isinstance(slot.node, Leaf) and (nodes is None or number in nodes)
        ]
        periodic = [one for one in leaves if one.is_periodic][:_MAX_PERIODIC]
        smooth = [
            one for one in leaves if not one.is_periodic and one.entry(Role.LENGTHSCALE) is not None
        ]
        self._leaves = smooth + periodic
        self._decaying = [
            (one, other)
            for one in periodic
            for other in smooth
            if _multiply_on_one_column(expression, one, other)
        ]

    def around(self, theta: FloatArray) -> list[Mode]:
        """Points by their log posterior, the highest first; none stands beside a better one."""
        kept: list[Mode] = []
        for point in sorted(self._all(theta), key=lambda found: -found.log_posterior):
            if all(np.abs(point.theta - other.theta).max() > 0.02 for other in kept):
                kept.append(point)
        return kept

    def _all(self, theta: FloatArray) -> Iterator[Mode]:
        """Yield the local maxima of all grids."""
        for leaf in self._leaves:
            yield from self._periodic(theta, leaf) if leaf.is_periodic else self._grid(theta, leaf)
        for one, other in combinations(self._leaves, 2):
            if one.leaf.column == other.leaf.column:
                yield from self._exchanged(theta, one, other)
        for one, other in self._decaying:
            yield from self._forgetting(theta, one, other)

    def _periodic(self, theta: FloatArray, leaf: _Scanned) -> Iterator[Mode]:
        """Scan the period at each of some lengthscales, the short ones with less noise too."""
        least = np.log(_LEAST_FRACTION * self._scales.mean_square)
        variance = leaf.entry(Role.VARIANCE)
        for length in _cycle_lengthscales(leaf.kernel):
            for noise in (0.0, np.log(10.0)) if length < _SHARP else (0.0,):
                base = theta.copy()
                if variance is not None:
                    base[variance] = max(base[variance], least)
                base[-1] -= noise
                yield from self._periods(base, leaf, length)

    def _periods(self, base: FloatArray, leaf: _Scanned, length: float) -> list[Mode]:
        """Scan the period of one leaf at one lengthscale, with the rest as in ``base``.

        Cycles over the extent are spread evenly: over the whole extent two points half a grid step
        apart are in phase to a lengthscale, whatever the period.
        """
        length = max(length, np.pi / self._scales.n_samples)  # shorter ones see no two points
        period, in_cycle = leaf.entry(Role.PERIOD), leaf.entry(Role.CYCLE_LENGTHSCALE)
        assert period is not None  # the leaf is periodic
        extent = self._scales.spacing_and_extent(leaf.leaf.column)[1]
        found: list[Mode] = []
        for low, high in self._windows(leaf.leaf.column, np.exp(base[period])):
            n_points = max(3, int(np.ceil((high - low) * np.pi / (2 * length))) + 1)
            thetas = np.tile(base, (n_points, 1))
            if in_cycle is not None:
                thetas[:, in_cycle] = np.log(length)
            thetas[:, period] = np.log(extent / np.linspace(low, high, n_points))
            found += self._local_maxima(thetas, (n_points,))
        return sorted(found, key=lambda one: -one.log_posterior)[:_PER_GRID]

    def _windows(self, column: int, period: float) -> list[tuple[float, float]]:
        """Intervals of cycles over the extent: around peaks, their halves, here and around one."""
        extent = self._scales.spacing_and_extent(column)[1]
        peaks = extent / self._scales.periods(column)[:_N_PEAKS]
        centres = np.array([extent / period, *peaks, *(peaks[:2] / 2)])
        centres = centres[centres > 1.5]
        merged = [(0.5, 1.5)]  # a period near the extent: a kernel that forgets, but for the ends
        for centre in np.sort(centres):
            low, high = centre - _HALF_WINDOW, centre + _HALF_WINDOW
            if low <= merged[-1][1]:
                merged[-1] = (merged[-1][0], high)
            else:
                merged.append((low, high))
        return merged

    def _grid(self, theta: FloatArray, leaf: _Scanned) -> Iterator[Mode]:
        """Lay the parameters of a leaf that have a unit on a grid, at each value of the others."""
        entries = range(leaf.entries.start, leaf.entries.stop)
        axes: list[tuple[int, FloatArray]] = []
        at: list[tuple[int, FloatArray]] = []
        for entry, parameter in zip(entries, leaf.kernel.parameters, strict=True):
            values = self._grid_values(parameter, leaf.leaf.column)
            if len(values):
                (at if parameter.unit == Unit.NONE else axes).append((entry, values))
        shape = tuple(len(values) for _, values in axes)
        axis_values = [values for _, values in axes]
        grid = np.meshgrid(*axis_values, indexing="ij")
        for combination in product(*(values for _, values in at)):
            thetas = np.tile(theta, (int(np.prod(shape)), 1))
            for (entry, _), values in zip(axes, grid, strict=True):
                thetas[:, entry] = values.ravel()
            for (entry, _), value in zip(at, combination, strict=True):
                thetas[:, entry] = value
            yield from self._local_maxima(thetas, shape)[:_PER_LEAF]

    def _grid_values(self, parameter: KernelParameter, column: int) -> FloatArray:
        """Return the logs of the values at which a scan sets a parameter, none if it is held."""
        spacing, extent = self._scales.spacing_and_extent(column)
        if parameter.role == Role.LENGTHSCALE and not parameter.grid:
            return np.linspace(np.log(spacing / 2), np.log(2 * extent), _N_LENGTHSCALES)
        units = {Unit.INPUT: extent, Unit.SQUARED_TARGET: self._scales.mean_square, Unit.NONE: 1.0}
        return np.log(np.array(parameter.grid) * units[parameter.unit])

    def _exchanged(self, theta: FloatArray, one: _Scanned, other: _Scanned) -> Iterator[Mode]:
        """Exchange the roles of two leaves on one column."""
        swapped = theta.copy()
        if one.is_periodic == other.is_periodic:
            named = other.named_entries()
            for shared, entry in one.named_entries().items():
                if shared in named:
                    swapped[[entry, named[shared]]] = theta[[named[shared], entry]]
            yield from self._local_maxima(swapped[None], (1,))
            return
        periodic, smooth = (one, other) if one.is_periodic else (other, one)
        ours, theirs = periodic.entry(Role.VARIANCE), smooth.entry(Role.VARIANCE)
        if ours is not None and theirs is not None:
            swapped[[ours, theirs]] = theta[[theirs, ours]]
        spacing, extent = self._scales.spacing_and_extent(periodic.leaf.column)
        lengthscale, period = smooth.entry(Role.LENGTHSCALE), periodic.entry(Role.PERIOD)
        in_cycle = periodic.entry(Role.CYCLE_LENGTHSCALE)
        # a periodic leaf forgets over the lengthscale l p / pi, before it repeats itself
        within = 0.0 if in_cycle is None else theta[in_cycle]
        reach = np.exp(within + theta[period]) / np.pi
        swapped[lengthscale] = np.log(np.clip(reach, spacing / 2, 2 * extent))
        shortest = min(_cycle_lengthscales(periodic.kernel))
        length = np.clip(np.pi * np.exp(theta[lengthscale]) / extent, shortest, _LONGEST_IN_CYCLE)
        yield from self._periods(swapped, periodic, float(length))

    def _forgetting(
        self, theta: FloatArray, periodic: _Scanned, smooth: _Scanned
    ) -> Iterator[Mode]:
        """Scan the period of smooth cycles that are forgotten over some lengthscales."""
        spacing, extent = self._scales.spacing_and_extent(smooth.leaf.column)
        for reach in np.geomspace(4 * spacing, extent / 4, _N_REACHES):
            for length in _SMOOTH_CYCLES:
                base = theta.copy()
                base[smooth.entry(Role.LENGTHSCALE)] = np.log(reach)
                yield from self._periods(base, periodic, length)

    def _local_maxima(self, thetas: FloatArray, shape: tuple[int, ...]) -> list[Mode]:
        """Local maxima over a grid of this shape of points (n_points, n_params), highest first."""
        thetas = np.clip(thetas, self._posterior.lower, self._posterior.upper)
        values = np.array([self._posterior.value(theta) for theta in thetas])
        tops = np.flatnonzero(_is_local_maximum(values.reshape(shape)))
        return [Mode(thetas[top], values[top]) for top in tops[np.argsort(-values[tops])]]


def _cycle_lengthscales(kernel: BaseKernel) -> tuple[float, ...]:
    """Lengthscales within a cycle at which a period is scanned; that of a sine if it has none."""
    index = kernel.index(Role.CYCLE_LENGTHSCALE)
    declared = () if index is None else kernel.parameters[index].grid
    return declared or (_SMOOTH_CYCLES[-1],)


def _multiply_on_one_column(expression: Expression, one: _Scanned, other: _Scanned) -> bool:
    """Whether two leaves act on one column and their product enters the kernel."""
    return one.leaf.column == other.leaf.column and (
        meeting_operator(expression, one.node, other.node) == MULTIPLY
    )


def _is_local_maximum(values: FloatArray) -> BoolArray:
    """Whether each finite entry of a grid is at least as high as its neighbours on every axis."""
    highest = np.isfinite(values)
    for axis in range(values.ndim):
        along = np.moveaxis(values, axis, 0)
        edge = np.full_like(along[:1], -np.inf)
        before, after = np.concatenate([edge, along[:-1]]), np.concatenate([along[1:], edge])
        highest &= np.moveaxis((along >= before) & (along >= after), 0, axis)
    return highest
