"""The search of the highest mode: many short runs, long runs of the best, scans.

A mode that is not the highest is often wrong in one leaf, or has two leaves exchanged. For example,
a periodic leaf has the right period but the wrong shape of the cycle. The parameters of each leaf
in turn, if they declare a grid, are varied over it while all others are fixed. A grid point costs
one factorisation and no gradient. The local maxima are starting points for the maximiser.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache, partial
from itertools import combinations, product
from typing import Any

import numpy as np
from scipy.ndimage import generate_binary_structure, maximum_filter

from autokernel.deadline import Deadline
from autokernel.evidence.maximise import HOPELESS_NATS, MAX_STEPS, Point, distinct_points, maximise
from autokernel.evidence.posterior import LogPosterior
from autokernel.evidence.starts import (
    Magnitudes,
    WarmStart,
    WarmStarts,
    even_starts,
    highest,
    random_stream,
    starting_points,
    terms_as_noise,
    warm_points,
)
from autokernel.exceptions import OutOfTimeError
from autokernel.expression import (
    Expression,
    Slot,
    View,
    arrange,
    meeting_operator,
    slots_of,
    splits,
)
from autokernel.expression.parts import Part
from autokernel.inference import ExactLikelihood, TrainingData
from autokernel.kernels import MULTIPLY, KernelParameter, Priors, Role, Unit, role_index
from autokernel.typing import FloatArray

_HALF_WINDOW = 0.3  # cycles over the extent; a peak of the periodogram is accurate to a quarter
_MAX_PERIODIC_LEAVES = 2  # whose periods are scanned; more leaves can often replace one another
_MODE_GAIN = 1e-4  # nats that a Newton step may still gain at the end of a run
_SHORT_STEPS = 15  # of a run from a starting point
_SCREENING_STEPS = 6  # of a run that ranks its start


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
        grid, shape = list(product(*axes.values())), tuple(map(len, axes.values()))
        for combination in product(*at.values()):
            thetas = np.tile(theta, (len(grid), 1))
            thetas[:, list(axes)] = grid
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
        swapped = theta.copy()
        own, others = (enumerate(e.node.parameters, start=e.entries.start) for e in (one, other))
        for (n, mine), (m, theirs) in product(own, others):
            if (mine.name, mine.unit) == (theirs.name, theirs.unit):
                swapped[[n, m]] = theta[[m, n]]
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


def find_modes(
    posterior: LogPosterior,
    starts: Sequence[Point],
    scan: CoordinateScan | None = None,
    *,
    variants: Callable[[Point], Iterable[Point]] | None = None,
    subsample: LogPosterior | None = None,
    patience: int = 4,
    n_scanned: tuple[int, int, int] = (14, 6, 3),
    n_refined: tuple[int, int] = (6, 3),
) -> list[Point]:
    """Search for the highest mode of the log posterior.

    The points ``starts`` are tried in this order, until ``patience`` in a row have gained nothing.
    They have a curvature if they are from the fit of a similar kernel. ``scan`` finds further ones
    around a mode, from which ``n_scanned`` runs are made in three stages. ``variants`` lists points
    that may lead to a higher mode than the best one; those of the highest posterior are followed on
    all rows. ``subsample`` is a cheaper posterior of the same parameters. Its best modes are
    starting points for ``n_refined`` short and long runs on ``posterior``. The default numbers are
    those of a kernel with a period.

    The modes are distinct, the best one first and to full precision. If the covariance could not be
    factorised at any start, there is one point with the log posterior ``-inf``.
    """
    cheap = subsample or posterior
    ends = _runs_until_no_gain(cheap, starts, patience)
    modes = _runs(cheap, _near(ends, ends[0])[: max(1, patience - 1)]) or ends[:1]
    if scan is not None and np.isfinite(modes[0].log_posterior):
        modes = _with_scanned(cheap, modes, scan, n_scanned)
    if subsample is not None:
        modes = _refine(posterior, starts, [*modes, *ends], n_refined)
    if variants is not None:
        starts = highest(posterior, list(variants(modes[0])), 2)
        near = _near(_new(_runs(posterior, starts, steps=_SCREENING_STEPS), modes), modes[0])
        modes = _distinct_modes([*modes, *_runs(posterior, near)])
    return [maximise(posterior, modes[0], max_iterations=MAX_STEPS), *modes[1:]]


def _with_scanned(
    posterior: LogPosterior, modes: list[Point], scan: CoordinateScan, n_runs: tuple[int, int, int]
) -> list[Point]:
    """Add the modes to which runs from the points of a scan lead, in stages: longer, fewer runs."""
    best, (first, second, third) = modes[0], n_runs
    starts = scan.around(best.theta)[:first]
    found = _new(_runs(posterior, starts, steps=_SCREENING_STEPS), [best])
    found = _new(_runs(posterior, found[:second], steps=2 * _SCREENING_STEPS), [best])
    return _distinct_modes([*modes, *_runs(posterior, _near(found, best)[:third])])


def _refine(
    posterior: LogPosterior,
    starts: Iterable[Point],
    found: Sequence[Point],
    n_runs: tuple[int, int],
) -> list[Point]:
    """Run from the best points found on a subsample, which may have ranked them wrongly.

    The best start with a known curvature is followed on all rows too: the subsample may lack the
    few rows that a mode explains.
    """
    known = highest(posterior, [start for start in starts if start.curvature is not None], 1)
    seen = _distinct_modes(highest(posterior, found, len(found)))
    n_short, n_long = n_runs
    some = [*known, *seen[: max(1, n_short - len(known))]]
    ends = _runs(posterior, some, steps=_SCREENING_STEPS)
    return _distinct_modes([*_runs(posterior, ends[:n_long]), *ends[n_long:]])


def _runs(
    posterior: LogPosterior, starts: Iterable[Point], *, steps: int = MAX_STEPS
) -> list[Point]:
    """Return the distinct ends of runs, accurate enough to compare, the best first."""
    run = partial(maximise, posterior, max_iterations=steps, tolerance=_MODE_GAIN)
    ends: list[Point] = []
    for start in starts:
        ends.append(run(start, known=ends))
    return _distinct_modes(ends)


def _runs_until_no_gain(
    posterior: LogPosterior, starts: Sequence[Point], patience: int
) -> list[Point]:
    """Run from starts until so many in a row gain nothing, and return distinct ends, best first."""
    ends: list[Point] = []
    run = partial(maximise, posterior, tolerance=_MODE_GAIN, known=ends)
    best, n_in_vain = -np.inf, 0
    for start in starts:
        end = run(start, max_iterations=_SCREENING_STEPS)
        if end.log_posterior > best - 2 * HOPELESS_NATS:
            end = run(end, max_iterations=_SHORT_STEPS - _SCREENING_STEPS)
        ends.append(end)
        n_in_vain = 0 if end.log_posterior > best + 0.1 else n_in_vain + 1
        best = max(best, end.log_posterior)
        if n_in_vain >= patience:
            break
    return _distinct_modes(ends)


def _with_enough_noise(posterior: LogPosterior, start: Point) -> Point:
    """Raise the noise of a start for as long as that helps: fewer rows may have shown none."""
    value, step = posterior.value(start.theta), np.append(np.zeros(len(start.theta) - 1), 2.0)
    while (higher := posterior.value(start.theta + step)) > value:
        start, value = replace(start, theta=start.theta + step), higher
    return start


def _near(points: Iterable[Point], best: Point) -> list[Point]:
    return [one for one in points if one.log_posterior > best.log_posterior - HOPELESS_NATS]


def _new(points: Iterable[Point], known: Sequence[Point]) -> list[Point]:
    thetas = np.array([other.theta for other in known])
    return [one for one in points if np.abs(thetas - one.theta).max(axis=1).min() > 0.05]


_distinct_modes = partial(distinct_points, distance=0.1)


def modes_of_other_periods(posterior: LogPosterior, mode: Point) -> list[Point]:
    """Find modes that have other periods than the best one and are nearly as probable, best first.

    Each run starts from the mode with one period at a quantile of its prior, one of the four with
    the highest log posterior, and ends at full precision. Modes within six nats are returned.
    Periods with a declared range of starting values, such as those that the user knows, are not
    varied.
    """
    n = 16  # quantiles of the prior
    quantiles = posterior.prior.quantile((np.arange(n)[:, None] + 0.5) / n, posterior.upper)
    starts: list[Point] = []
    for entry in np.flatnonzero(posterior.is_period):
        if posterior.likelihood.parameters[entry].start is None:
            thetas = np.tile(mode.theta, (n, 1))
            thetas[:, entry] = quantiles[:, entry]
            starts += highest(posterior, list(map(Point, thetas)), 4)
    ends = _near(_new(_runs(posterior, starts, steps=_SCREENING_STEPS), [mode]), mode)
    run = partial(maximise, posterior, max_iterations=MAX_STEPS)  # to full precision
    ends = _new(_distinct_modes(map(run, ends)), [mode])
    return [end for end in ends if end.log_posterior > mode.log_posterior - 6.0]


_MAX_FULL_ROWS = 250  # with more rows, modes are searched on a subsample
_SUBSAMPLE_ROWS, _SUBSAMPLE_ROWS_PERIODIC = 150, 250  # fewer would be too few per cycle


class ModeSearch:
    """A search for the modes of kernels on one data set.

    A result depends on the structure of the kernel, the seed and the warm starts, but not on the
    order of the searches or on the process.
    """

    def __init__(self, data: TrainingData, *, priors: Priors, seed: int) -> None:
        self._data, self._priors, self._seed = data, priors, seed
        self._magnitudes_on = cache(lambda target: Magnitudes(data.on(target)))
        self._parts: dict[Expression, tuple[list[Point], Mapping[str, int]]] = {}
        self._rows = np.random.default_rng(seed).permutation(len(data.y))
        self._has_subsample = len(data.y) > _MAX_FULL_ROWS
        self._subsamples = [  # for kernels without and with many modes
            data.take(self._rows[:n]) if self._has_subsample else data
            for n in (_SUBSAMPLE_ROWS, _SUBSAMPLE_ROWS_PERIODIC)
        ]

    def __call__(
        self, posterior: LogPosterior, warm_starts: WarmStarts = ()
    ) -> tuple[list[Point], int]:
        """Search for the modes of the log posterior of an arranged kernel on all rows.

        The search starts from the warm starts of the highest log posterior, and scans only nodes
        that the first of them does not have. If that has all nodes, it is close to a mode, to which
        one run leads; of a kernel with periods, a term may be what that mode takes for noise. The
        deadline of the posterior applies to all of it.

        Returns distinct modes, the best first, and the number of likelihood calls on a subsample,
        those for the modes of parts included.
        """
        expression, deadline = posterior.expression, posterior.deadline
        has_many, magnitudes = expression.has_many_modes, self._magnitudes_on(expression.target)
        as_noise = partial(terms_as_noise, posterior, magnitudes=magnitudes)
        known = warm_starts[0][0].nodes if warm_starts else ()
        if warm_starts and len(known) == len(expression.nodes):
            warm = warm_points(posterior, posterior.centre[None], warm_starts[0])
            starts = [_with_enough_noise(posterior, one) for one in warm]
            variants = as_noise if has_many else None
            modes = find_modes(posterior, starts, variants=variants, patience=1)
            if np.isfinite(modes[0].log_posterior):
                return modes, 0
        subsample = self._on_subsample(expression, deadline) if self._has_subsample else None
        calls: Mapping[str, int] = {}
        options: dict[str, Any] = {"patience": 1, "n_scanned": (6, 3, 1), "n_refined": (2, 1)}
        if not warm_starts and not expression.has_few_modes:
            options = {} if has_many else {"patience": 3, "n_refined": (2, 1)}
            options["variants"] = as_noise
            warm_starts, calls = self._from_parts(expression, deadline)
        cheap = subsample or posterior
        starts = self._starting_points(cheap, warm_starts, purpose="whole")
        scan = self._scan(cheap, known)
        modes = find_modes(posterior, starts, scan, subsample=subsample, **options)
        return modes, sum(calls.values()) + (subsample.n_evaluations if subsample else 0)

    def rough_mode(self, expression: Expression, deadline: Deadline) -> tuple[LogPosterior, Point]:
        """Find a point near a mode of the log posterior of an arranged kernel, on few rows.

        At the deadline, it is the best point so far; one is always tried.
        """
        few = ExactLikelihood(expression, self._data.take(self._rows[:100]))
        make = partial(LogPosterior, few, priors=self._priors)
        first, rough = make(), make(deadline=deadline)
        first.value(first.centre)
        with suppress(OutOfTimeError):
            _runs(rough, self._starting_points(rough, [], purpose="rough")[:2], steps=_SHORT_STEPS)
        best = max(rough, first, key=lambda one: one.best_value)
        return best, Point(best.best, best.best_value)

    def _from_parts(
        self, expression: Expression, deadline: Deadline
    ) -> tuple[WarmStarts, Mapping[str, int]]:
        """Fit a kernel without its first and without its last term, and these terms alone.

        Of a large kernel, it is only the last one. The second result has the likelihood calls by
        kernel, also of parts that were fitted before.
        """
        warm_starts: list[list[WarmStart]] = []
        calls: dict[str, int] = {}
        found = list(splits(expression.tree)) if expression.has_many_modes else []
        if len(found) > 1:
            found = [*(found[:1] if expression.n_leaves <= 6 else []), found[-1]]
        for rest, term in found:
            of_rest = self._modes_of_part(expression, rest, calls, deadline)
            of_term = self._modes_of_part(expression, term, calls, deadline)
            for start in of_rest:
                warm_starts += [[start], *([start, other] for other in of_term)]
        return warm_starts, calls

    def _modes_of_part(
        self, whole: Expression, part: Part, calls: dict[str, int], deadline: Deadline
    ) -> list[WarmStart]:
        """Return warm starts at the two best modes of a part, scanned if it has no parts itself."""
        tree, order = arrange(part[0])
        if (kernel := whole.with_tree(tree)) not in self._parts:
            posterior = self._on_subsample(kernel, deadline)
            warm_starts, of_parts = self._from_parts(kernel, deadline)
            starts = self._starting_points(posterior, warm_starts, purpose="part")
            scan = self._scan(posterior, range(len(kernel.nodes)) if warm_starts else ())
            found = find_modes(posterior, starts, scan, n_scanned=(6, 3, 2))
            self._parts[kernel] = found, {**of_parts, kernel.canonical: posterior.n_evaluations}
        modes, calls_of_part = self._parts[kernel]
        calls.update(calls_of_part)
        in_whole = tuple(part[1][node] for node in order)
        least = modes[0].log_posterior - 8.0
        best = [mode for mode in modes[:2] if mode.log_posterior >= least]
        return [WarmStart(in_whole, mode.theta, mode.curvature) for mode in best]

    def _scan(self, posterior: LogPosterior, known: Iterable[int]) -> CoordinateScan:
        """Scan the nodes that are not known; without a period, the starting points suffice."""
        expression = posterior.expression
        scanned = expression.has_many_modes and not expression.has_few_modes
        nodes = set(range(len(expression.nodes) if scanned else 0)).difference(known)
        return CoordinateScan(posterior, self._magnitudes_on(expression.target), nodes)

    def _starting_points(
        self, posterior: LogPosterior, warm_starts: WarmStarts, *, purpose: str
    ) -> list[Point]:
        """List starting points: even ones or warm starts, and drawn ones, the highest first."""
        expression = posterior.expression
        magnitudes = self._magnitudes_on(expression.target)
        rng = random_stream(self._seed, expression, purpose)
        starts = starting_points(posterior, magnitudes, warm_starts, rng=rng)
        even = [] if warm_starts or purpose == "rough" else even_starts(posterior, magnitudes)
        return [*even, *highest(posterior, starts, len(starts))]

    def _on_subsample(self, expression: Expression, deadline: Deadline) -> LogPosterior:
        some = ExactLikelihood(expression, self._subsamples[expression.has_many_modes])
        return LogPosterior(some, priors=self._priors, deadline=deadline)
