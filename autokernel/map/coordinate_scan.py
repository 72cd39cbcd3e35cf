"""Other roles that the leaves of a kernel could play, given one mode: where a higher mode may be.

A mode that is not the highest is often wrong in one leaf, or has the roles of two leaves exchanged:
a periodic leaf has found the seasons without their shape, a short lengthscale stands where the long
one belongs. Each leaf in turn is laid on a grid with all others held, which costs a factorisation
per point and no gradient; the local maxima over the grid are worth a maximise.
"""

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np

from autokernel.expression import MULTIPLY, Expression, Leaf, Slot, joining_operator, leaf_slots
from autokernel.map.data_scales import DataScales
from autokernel.map.posterior import LogPosterior
from autokernel.typing import BoolArray, FloatArray

_PHASES = (0.03, 0.08, 0.2, 0.6, 1.5)  # lengthscales of PER
_SMOOTH_PHASES = (0.5, 1.2)
_N_REACHES = 3
_SHARP = 0.3  # below it a period explains more, and leaves less to the noise
_N_LENGTHSCALES = 8
_PARTS = (0.01, 0.1, 1.0)  # variances, as parts of the target's mean square
_ALPHAS = (0.005, 0.1, 2.0)
_HALF_WINDOW = 0.3  # cycles over the extent: a peak of the periodogram is known to a quarter
_N_PEAKS = 5
_PER_GRID = 2  # local maxima that are kept of the periods at one lengthscale
_PER_LEAF = 3  # and of one grid of an SE or RQ
_MAX_PERIODIC = 2  # leaves whose periods are scanned: in larger kernels they stand for one another


class Candidate(NamedTuple):
    """A point from which to maximise."""

    theta: FloatArray  # (n_params,)
    log_posterior: float  # nats


class CoordinateScan:
    """Candidates next to a mode of one kernel's posterior.

    Parameters
    ----------
    expression : Expression
        The kernel.
    posterior : LogPosterior
        Its log posterior.
    scales : DataScales
        Those of the data of the posterior.
    leaves : sequence of int or None
        Places of the leaves that may play other roles; None is for all.
    """

    def __init__(
        self,
        expression: Expression,
        posterior: LogPosterior,
        scales: DataScales,
        leaves: Sequence[int] | None = None,
    ) -> None:
        self._posterior, self._scales = posterior, scales
        slots = leaf_slots(expression)
        places = range(len(slots)) if leaves is None else leaves
        periodic = [leaf for leaf in places if slots[leaf].leaf.kernel == "PER"][:_MAX_PERIODIC]
        smooth = [leaf for leaf in places if slots[leaf].leaf.kernel in ("SE", "RQ")]
        self._slots = [slots[leaf] for leaf in smooth + periodic]
        self._decaying = [
            (slots[one], slots[other])
            for one in periodic
            for other in smooth
            if slots[one].leaf.column == slots[other].leaf.column
            and joining_operator(expression, one, other) == MULTIPLY
        ]

    def around(self, theta: FloatArray) -> list[Candidate]:
        """Candidates by their log posterior, the highest first; none stands beside a better one."""
        kept: list[Candidate] = []
        for candidate in sorted(self._all(theta), key=lambda found: -found.log_posterior):
            if all(np.abs(candidate.theta - other.theta).max() > 0.02 for other in kept):
                kept.append(candidate)
        return kept

    def _all(self, theta: FloatArray) -> Iterator[Candidate]:
        """Yield the local maxima of all grids."""
        for leaf, place in self._slots:
            if leaf.kernel == "PER":
                yield from self._periodic(theta, leaf, place)
            else:
                yield from self._smooth(theta, leaf, place)
        for one, other in combinations(self._slots, 2):
            if one.leaf.column == other.leaf.column:
                yield from self._exchanged(theta, one, other)
        for one, other in self._decaying:
            yield from self._forgetting(theta, one, other)

    def _periodic(self, theta: FloatArray, leaf: Leaf, place: slice) -> Iterator[Candidate]:
        """Scan the period at each of some lengthscales, the short ones with less noise too."""
        least = np.log(0.1 * self._scales.mean_square)
        for phase in _PHASES:
            for noise in (0.0, np.log(10.0)) if phase < _SHARP else (0.0,):
                base = theta.copy()
                base[place.start + 1] = max(base[place.start + 1], least)
                base[-1] -= noise
                yield from self._periods(base, leaf, place, phase)

    def _periods(self, base: FloatArray, leaf: Leaf, place: slice, phase: float) -> list[Candidate]:
        """Scan the period of one leaf at one lengthscale, with the rest as in ``base``.

        Cycles over the extent are spread evenly: over the whole extent two points half a grid step
        apart are in phase to a lengthscale, whatever the period.
        """
        phase = max(phase, np.pi / self._scales.n_samples)  # shorter ones see no two points
        extent = self._scales.spacing_and_extent(leaf.column)[1]
        found: list[Candidate] = []
        for low, high in self._windows(leaf.column, np.exp(base[place.start + 2])):
            n_points = max(3, int(np.ceil((high - low) * np.pi / (2 * phase))) + 1)
            thetas = np.tile(base, (n_points, 1))
            thetas[:, place.start] = np.log(phase)
            thetas[:, place.start + 2] = np.log(extent / np.linspace(low, high, n_points))
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

    def _smooth(self, theta: FloatArray, leaf: Leaf, place: slice) -> Iterator[Candidate]:
        """Lay lengthscale and variance of an SE or RQ on a grid, at each of some alphas."""
        spacing, extent = self._scales.spacing_and_extent(leaf.column)
        lengthscales = np.linspace(np.log(spacing / 2), np.log(2 * extent), _N_LENGTHSCALES)
        variances = np.log(np.array(_PARTS) * self._scales.mean_square)
        shape = (len(lengthscales), len(variances))
        for alpha in _ALPHAS if leaf.kernel == "RQ" else (None,):
            thetas = np.tile(theta, (shape[0] * shape[1], 1))
            thetas[:, place.start] = np.repeat(lengthscales, shape[1])
            thetas[:, place.start + 1] = np.tile(variances, shape[0])
            if alpha is not None:
                thetas[:, place.start + 2] = np.log(alpha)
            yield from self._local_maxima(thetas, shape)[:_PER_LEAF]

    def _exchanged(self, theta: FloatArray, one: Slot, other: Slot) -> Iterator[Candidate]:
        """Exchange the roles of two leaves on one column."""
        a, b = one.place.start, other.place.start
        swapped = theta.copy()
        swapped[[a + 1, b + 1]] = theta[[b + 1, a + 1]]
        kernels = {one.leaf.kernel, other.leaf.kernel}
        if "PER" not in kernels or len(kernels) == 1:
            size = 3 if len(kernels) == 1 and kernels != {"SE"} else 2
            swapped[a : a + size], swapped[b : b + size] = (
                theta[b : b + size],
                theta[a : a + size],
            )
            yield from self._local_maxima(swapped[None], (1,))
            return
        if one.leaf.kernel != "PER":
            (one, other), (a, b) = (other, one), (b, a)
        spacing, extent = self._scales.spacing_and_extent(one.leaf.column)
        # a periodic leaf forgets over the lengthscale l p / pi, before it repeats itself
        reach = np.exp(theta[a] + theta[a + 2]) / np.pi
        swapped[b] = np.log(np.clip(reach, spacing / 2, 2 * extent))
        phase = float(np.clip(np.pi * np.exp(theta[b]) / extent, _PHASES[0], 3.0))
        yield from self._periods(swapped, *one, phase)

    def _forgetting(self, theta: FloatArray, periodic: Slot, smooth: Slot) -> Iterator[Candidate]:
        """Scan the period of smooth cycles that are forgotten over some lengthscales."""
        spacing, extent = self._scales.spacing_and_extent(smooth.leaf.column)
        for reach in np.geomspace(4 * spacing, extent / 4, _N_REACHES):
            for phase in _SMOOTH_PHASES:
                base = theta.copy()
                base[smooth.place.start] = np.log(reach)
                yield from self._periods(base, *periodic, phase)

    def _local_maxima(self, thetas: FloatArray, shape: tuple[int, ...]) -> list[Candidate]:
        """Local maxima over a grid of this shape of points (n_points, n_params), highest first."""
        thetas = np.clip(thetas, self._posterior.lower, self._posterior.upper)
        values = np.array([self._posterior.value(theta) for theta in thetas])
        tops = np.flatnonzero(_is_local_maximum(values.reshape(shape)))
        return [Candidate(thetas[top], values[top]) for top in tops[np.argsort(-values[tops])]]


def _is_local_maximum(values: FloatArray) -> BoolArray:
    """Whether each finite entry of a grid is at least as high as its neighbours on every axis."""
    highest = np.isfinite(values)
    for axis in range(values.ndim):
        along = np.moveaxis(values, axis, 0)
        edge = np.full_like(along[:1], -np.inf)
        before, after = np.concatenate([edge, along[:-1]]), np.concatenate([along[1:], edge])
        highest &= np.moveaxis((along >= before) & (along >= after), 0, axis)
    return highest
