"""The search of the highest mode: many short runs, long runs of the best, scans."""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np

from autokernel.deadline import Deadline
from autokernel.evidence.maximise import Mode, Start, maximise
from autokernel.evidence.posterior import LogPosterior
from autokernel.evidence.scan import CoordinateScan
from autokernel.evidence.starts import (
    DataScales,
    StartingPoints,
    WarmStart,
    curvature_from,
    with_warm_starts,
)
from autokernel.expression import Expression, Leaf, Split, arrange, seed_text, splits
from autokernel.inference import ExactLikelihood, TrainingData
from autokernel.kernels import ADD, Priors, Role
from autokernel.typing import FloatArray

_CLOSE = 1e-4  # nats that a Newton step may still gain at the end of a run
_LONG = 300  # most steps of a long run
_GAIN = 0.05  # nats, the least gain of a scan after which another scan is made
_N_VARIANTS = 2  # variants of the best mode that are followed
_N_KNOWN = 2  # starts with a known curvature that are followed on all rows after a subsample
_HOPELESS = 10.0  # nats below the best mode at which a point is dropped


@dataclass(frozen=True, slots=True)
class Budget:
    """The numbers of runs and scans in the search for the modes of one kernel."""

    n_tried: int | None  # starting points from which short runs start, None for all
    n_followed: int  # ends of short runs from which long runs start
    n_scanned: tuple[int, int, int]  # runs from points of a scan, in each of three stages
    rounds: int  # most scans, each around a new best mode
    n_refined: tuple[int, int] = (8, 4)  # short runs of all rows after a subsample, and long ones
    scans_coarsely: bool = False  # whether scans take every other lengthscale of a period


THOROUGH = Budget(n_tried=None, n_followed=4, n_scanned=(14, 6, 3), rounds=4)
OF_PARTS = Budget(n_tried=None, n_followed=3, n_scanned=(6, 3, 2), rounds=1)
LIGHT = Budget(
    n_tried=4, n_followed=3, n_scanned=(6, 3, 1), rounds=1, n_refined=(2, 1), scans_coarsely=True
)


def find_modes(
    posterior: LogPosterior,
    starts: Sequence[Start],
    scan: CoordinateScan | None = None,
    *,
    variants: Callable[[Mode], Sequence[Start]] | None = None,
    subsample: LogPosterior | None = None,
    budget: Budget = THOROUGH,
) -> list[Mode]:
    """Search for the highest mode of the log posterior.

    Parameters
    ----------
    posterior : LogPosterior
        Log posterior to maximise.
    starts : sequence of Start
        Starting points, with a curvature where they are from the fit of a similar kernel.
    scan : CoordinateScan or None
        Scan for further starting points around a mode; None for no scan.
    variants : callable or None
        Function from the best mode to points that may lead to a higher one. Those of the highest
        posterior are followed on all rows.
    subsample : LogPosterior or None
        A cheaper posterior of the same parameters, such as one on some of the rows. The search uses
        it, and its best modes are starting points for runs on ``posterior``.
    budget : Budget
        Numbers of runs and scans.

    Returns
    -------
    list of Mode
        Distinct modes, the best first and to full precision. If the covariance could not be
        factorised at any start, one point with the log posterior ``-inf``.
    """
    starts = _highest(posterior, starts, budget.n_tried)
    if subsample is None:
        modes = _search(posterior, _runs(posterior, starts, steps=15), scan, budget)
    else:
        ends = _runs(subsample, starts, steps=15)
        found = [*_search(subsample, ends, scan, budget), *ends]
        modes = _refine(posterior, starts, found, budget)
    if not modes:
        return [Mode(starts[0].theta, -np.inf)]
    if variants is not None:
        modes = _with_variants(posterior, modes, variants(modes[0]))
    best, *others = modes
    return [
        maximise(posterior, best.theta, max_iterations=_LONG, curvature=best.curvature),
        *others,
    ]


def _highest(posterior: LogPosterior, starts: Sequence[Start], n: int | None) -> Sequence[Start]:
    """Return the ``n`` starting points of the highest log posterior, or all of them."""
    if n is None or n >= len(starts):
        return starts
    values = [posterior.value(start.theta) for start in starts]
    return [starts[number] for number in np.argsort(values, kind="stable")[::-1][:n]]


def _search(
    posterior: LogPosterior, ends: list[Mode], scan: CoordinateScan | None, budget: Budget
) -> list[Mode]:
    """Return the distinct modes from the ends of short runs and from scans, the best first."""
    modes = _long_runs(posterior, ends[: budget.n_followed])
    if scan is None or not modes:
        return modes
    best = modes[:1]  # the best mode of each round, the latest first
    for _ in range(budget.rounds):
        found = _search_scanned(posterior, best, scan, budget)
        modes = _distinct([*modes, *found])
        if modes[0].log_posterior < best[0].log_posterior + _GAIN:
            break
        best = [modes[0], *best]
    return modes


def _refine(
    posterior: LogPosterior, starts: Iterable[Start], found: Iterable[Mode], budget: Budget
) -> list[Mode]:
    """Run from the best points found on a subsample, which may have ranked them wrongly.

    The best starts with a known curvature are followed on all rows too: the subsample may lack the
    few rows that a mode explains.
    """
    with_curvature = [start for start in starts if start.curvature is not None]
    known = _highest(posterior, with_curvature, _N_KNOWN)
    seen = _distinct(
        Mode(mode.theta, posterior.value(mode.theta), mode.curvature) for mode in found
    )
    n_short, n_long = budget.n_refined
    unknown = seen[: max(1, n_short - len(known))]
    ends = _runs(posterior, [*known, *(mode.as_start for mode in unknown)], steps=6)
    return _distinct([*_long_runs(posterior, ends[:n_long]), *ends[n_long:]])


def _with_variants(
    posterior: LogPosterior, modes: list[Mode], variants: Sequence[Start]
) -> list[Mode]:
    """Run from the best variants of the best mode, and add the modes that they lead to."""
    ends = _runs(posterior, _highest(posterior, variants, _N_VARIANTS), steps=6)
    least = modes[0].log_posterior - _HOPELESS
    near = [end for end in _new(ends, modes) if end.log_posterior > least]
    return _distinct([*modes, *_long_runs(posterior, near)])


def _search_scanned(
    posterior: LogPosterior, known: list[Mode], scan: CoordinateScan, budget: Budget
) -> list[Mode]:
    """Run from points of a scan around the first known mode, in three stages of fewer runs."""
    best = known[0]
    first, second, third = budget.n_scanned
    points = [Start(found.theta) for found in scan.around(best.theta)[:first]]
    ends = _new(_runs(posterior, points, steps=6), known)
    ends = _new(_runs(posterior, (end.as_start for end in ends[:second]), steps=12), known)
    near = [end for end in ends if end.log_posterior > best.log_posterior - _HOPELESS]
    return _long_runs(posterior, near[:third])


def _runs(posterior: LogPosterior, starts: Iterable[Start], *, steps: int) -> list[Mode]:
    """Run for so many steps at most from each start, and return the distinct ends, best first."""
    return _distinct(
        maximise(posterior, theta, max_iterations=steps, tolerance=_CLOSE, curvature=curvature)
        for theta, curvature in starts
    )


def _long_runs(posterior: LogPosterior, ends: Iterable[Mode]) -> list[Mode]:
    """Run from the ends of short runs to modes, accurate enough to compare; the best first."""
    starts = (end.as_start for end in ends if np.isfinite(end.log_posterior))
    return _runs(posterior, starts, steps=_LONG)


def _new(modes: Iterable[Mode], known: list[Mode]) -> list[Mode]:
    """Return the modes that are not close to a known mode."""
    return [mode for mode in modes if all(_apart(mode, other, 0.05) for other in known)]


def _distinct(modes: Iterable[Mode]) -> list[Mode]:
    """Sort the modes, the best first, and drop every mode that is close to a better one."""
    kept: list[Mode] = []
    for mode in sorted(modes, key=_log_posterior, reverse=True):
        if all(_apart(mode, other, 0.1) for other in kept):
            kept.append(mode)
    return kept


def _log_posterior(mode: Mode) -> float:
    return mode.log_posterior


def _apart(one: Mode, other: Mode, distance: float) -> bool:
    """Return whether two modes differ in some log parameter by more than ``distance``."""
    return bool(np.abs(one.theta - other.theta).max() > distance)


_SUBSAMPLE_FROM = 250  # rows; with more, modes are searched on a subsample of the rows
_N_SUBSAMPLE = 150
_N_SUBSAMPLE_PERIODIC = 250  # with fewer rows there would be too few per cycle
_N_ROUGH = 100  # rows of a rough fit

_N_STARTS = 24  # enough for kernels without a period
_N_STARTS_PERIODIC = 12
_N_STARTS_BESIDE = 4  # starting points in addition to warm starts
_N_DRAWS = 2  # draws of the parameters that a warm start lacks
_N_MODES_OF_PART = 2
_HOPELESS_MODE_SEARCH = 8.0  # nats below the best mode of a part at which another mode is dropped
_MOST_LEAVES = 6  # kernels up to this size are split in two ways, larger ones in one way

WarmStarts = Sequence[Sequence[WarmStart]]
"""Alternatives, the best first; the warm starts in one alternative are combined."""


class Found(NamedTuple):
    """Distinct modes of one kernel, the best first, and the likelihood calls that they took."""

    modes: list[Mode]
    calls: Mapping[str, int]  # likelihood calls by kernel, including those for parts fitted earlier

    @property
    def n_evaluations(self) -> int:
        """Total number of likelihood calls."""
        return sum(self.calls.values())


class ModeSearch:
    """A search for the modes of kernels on one data set.

    A result depends on the structure of the kernel, the seed and the warm starts, but not on the
    order of the searches or on the process.

    Parameters
    ----------
    data : TrainingData
        Inputs and targets.
    priors : mapping
        Priors as returned by :func:`check_priors`.
    seed : int
        Seed of the random numbers, not negative.
    """

    def __init__(self, data: TrainingData, *, priors: Priors, seed: int) -> None:
        self._data = self._subsample = self._subsample_periodic = data
        self._priors, self._seed = priors, seed
        self._scales = DataScales(data)
        self._starts = StartingPoints(self._scales)
        self._parts: dict[Expression, Found] = {}
        n = len(data.y)
        if n > _SUBSAMPLE_FROM:
            rows = np.random.default_rng(seed).permutation(n)
            self._subsample = data.take(rows[:_N_SUBSAMPLE])
            self._subsample_periodic = data.take(rows[:_N_SUBSAMPLE_PERIODIC])

    def __call__(self, posterior: LogPosterior, warm_starts: WarmStarts = ()) -> Found:
        """Search for the modes of the log posterior of an arranged kernel on all rows.

        Parameters
        ----------
        posterior : LogPosterior
            Log posterior of an expression that :func:`arrange` has returned. Its deadline applies
            to the whole search.
        warm_starts : sequence of sequence of WarmStart
            Parameters of similar kernels. The search starts from those of the highest log
            posterior, and scans only nodes that the first of them does not have.

        Raises
        ------
        OutOfTimeError
            Once the deadline of the posterior has passed.
        """
        expression, before = posterior.expression, posterior.n_evaluations
        is_sampled = self._subsample is not self._data
        subsample = self._on_subsample(expression, posterior.deadline) if is_sampled else None
        calls: Mapping[str, int] = {}
        if warm_starts:
            budget = LIGHT
            taken = warm_starts[0][0].nodes
            nodes = [node for node in _nodes_to_scan(expression) if node not in taken]
        else:
            budget = THOROUGH
            warm_starts, calls = self._from_parts(expression, posterior.deadline)
            nodes = _nodes_to_scan(expression)
        starts = self._starting_points(posterior, warm_starts, purpose="whole")
        if budget is LIGHT:
            starts = [*starts, *self._taken_from_noise(posterior, warm_starts)]
        modes = find_modes(
            posterior,
            starts,
            CoordinateScan(
                subsample or posterior, self._scales, nodes, coarse=budget.scans_coarsely
            ),
            variants=partial(self._terms_as_noise, posterior) if budget is THOROUGH else None,
            subsample=subsample,
            budget=budget,
        )
        n_own = posterior.n_evaluations - before + (subsample.n_evaluations if subsample else 0)
        return Found(modes, {**calls, expression.canonical: n_own})

    def rough_mode(self, expression: Expression) -> Mode:
        """Find a point near a mode of an arranged kernel quickly, on few rows."""
        rows = np.random.default_rng(self._seed).permutation(len(self._data.y))[:_N_ROUGH]
        likelihood = ExactLikelihood(expression, self._data.take(rows))
        posterior = LogPosterior(likelihood, priors=self._priors)
        starts = self._starting_points(posterior, [], purpose="rough")
        thetas = sorted((start.theta for start in starts), key=posterior.value, reverse=True)
        ends = [maximise(posterior, theta, max_iterations=15) for theta in thetas[:2]]
        return max(ends, key=lambda mode: mode.log_posterior)

    def _fit_part(self, expression: Expression, deadline: Deadline) -> Found:
        """Search for the modes of an arranged part on the subsample, and store them."""
        if expression not in self._parts:
            posterior = self._on_subsample(expression, deadline)
            warm_starts, calls = self._from_parts(expression, deadline)
            nodes = [] if warm_starts else _nodes_to_scan(expression)
            modes = find_modes(
                posterior,
                self._starting_points(posterior, warm_starts, purpose="part"),
                CoordinateScan(posterior, self._scales, nodes),
                budget=OF_PARTS,
            )
            self._parts[expression] = Found(
                modes, {**calls, expression.canonical: posterior.n_evaluations}
            )
        return self._parts[expression]

    def _from_parts(
        self, expression: Expression, deadline: Deadline
    ) -> tuple[WarmStarts, Mapping[str, int]]:
        """Fit a kernel without its first and without its last term, and these terms alone."""
        warm_starts: list[list[WarmStart]] = []
        calls: dict[str, int] = {}
        if not expression.has_many_modes:
            return warm_starts, calls
        for split in _splits_to_fit(expression):
            of_rest, of_term = (
                self._modes_of_part(part, nodes, calls, deadline=deadline)
                for part, nodes in (
                    (split.rest, split.rest_nodes),
                    (split.term, split.term_nodes),
                )
            )
            for start in of_rest:
                warm_starts += [[start], *([start, other] for other in of_term)]
        return warm_starts, calls

    def _modes_of_part(
        self,
        part: Expression,
        nodes: Sequence[int],
        calls: dict[str, int],
        *,
        deadline: Deadline,
    ) -> list[WarmStart]:
        """Return warm starts at the best modes of a part; ``nodes`` are its nodes in the whole."""
        arranged, order = arrange(part)
        found = self._fit_part(arranged, deadline)
        calls.update(found.calls)
        in_whole = [nodes[node] for node in order]
        least = found.modes[0].log_posterior - _HOPELESS_MODE_SEARCH
        return [
            WarmStart(in_whole, mode.theta, mode.curvature)
            for mode in found.modes[:_N_MODES_OF_PART]
            if mode.log_posterior >= least
        ]

    def _starting_points(
        self, posterior: LogPosterior, warm_starts: WarmStarts, *, purpose: str
    ) -> list[Start]:
        """Draw starting points, most of them with warm starts."""
        expression = posterior.expression
        sizes = [1 if _is_complete(fits, expression) else _N_DRAWS for fits in warm_starts]
        if warm_starts:
            n_own = _N_STARTS_BESIDE
        else:
            n_own = _N_STARTS_PERIODIC if expression.has_many_modes else _N_STARTS
        rng = random_stream(self._seed, expression, purpose)
        draws = self._starts.draw(posterior, n_own + sum(sizes), rng=rng)
        own, *others = np.split(rng.permutation(draws), n_own + np.cumsum([0, *sizes])[:-1])
        starts = [Start(theta) for theta in own]
        for some, fits in zip(others, warm_starts, strict=True):
            starts += _warm(posterior, with_warm_starts(expression, some, fits), fits)
        return starts

    def _taken_from_noise(
        self, posterior: LogPosterior, warm_starts: WarmStarts
    ) -> Iterator[Start]:
        """Yield starts at warm starts where new nodes explain some of the noise."""
        expression = posterior.expression
        mean = np.log(posterior.prior.shape / posterior.prior.rate)
        for fits in warm_starts:
            taken = {node for fit in fits for node in fit.nodes}
            new = [node for node in range(len(expression.nodes)) if node not in taken]
            if new:
                point = with_warm_starts(expression, mean[None], fits)
                self._starts.take_from_noise(point, expression, new)
                yield from _warm(posterior, point, fits)

    def _terms_as_noise(self, posterior: LogPosterior, mode: Mode) -> list[Start]:
        """List variants of a mode in which one leaf of the sum explains some of the noise."""
        starts = []
        for node in _leaf_terms(posterior.expression):
            point = mode.theta[None].copy()
            self._starts.take_from_noise(point, posterior.expression, [node])
            (theta,) = np.clip(point, posterior.lower, posterior.upper)
            starts.append(Start(theta, mode.curvature))
        return starts

    def _on_subsample(self, expression: Expression, deadline: Deadline) -> LogPosterior:
        """Build the log posterior on the subsample."""
        periodic = expression.has_many_modes
        rows = self._subsample_periodic if periodic else self._subsample
        likelihood = ExactLikelihood(expression, rows)
        return LogPosterior(likelihood, priors=self._priors, deadline=deadline)


def _splits_to_fit(expression: Expression) -> list[Split]:
    """Return the first and the last split, so that parts have few parts of their own."""
    ways = list(splits(expression))
    if len(ways) < 2:
        return ways
    return [ways[0], ways[-1]] if expression.n_leaves <= _MOST_LEAVES else ways[-1:]


def _leaf_terms(expression: Expression) -> Iterator[int]:
    """Yield the node indices of the terms of a sum that are leaves with a lengthscale."""
    terms, number = expression.terms(ADD), 0
    for term in terms:
        has_length = any(p.role == Role.LENGTHSCALE for p in term.parameters)
        if isinstance(term, Leaf) and has_length and len(terms) > 1:
            yield number
        number += len(term.nodes)


def _nodes_to_scan(expression: Expression) -> list[int]:
    """Return the nodes to scan: none without a period, as the starting points suffice."""
    return list(range(len(expression.nodes))) if expression.has_many_modes else []


def _warm(
    posterior: LogPosterior, thetas: FloatArray, fits: Sequence[WarmStart]
) -> Iterator[Start]:
    """Yield starts at points (n_points, n_params), with the curvature of their warm starts."""
    for theta in np.clip(thetas, posterior.lower, posterior.upper):
        scales = posterior.step_scales(theta)
        yield Start(theta, curvature_from(posterior.expression, fits, scales))


def _is_complete(fits: Sequence[WarmStart], expression: Expression) -> bool:
    """Return whether warm starts have every node."""
    return sum(len(fit.nodes) for fit in fits) >= len(expression.nodes)


def random_stream(seed: int, expression: Expression, purpose: str) -> np.random.Generator:
    """Return a generator for one kernel and purpose, the same in every process."""
    digest = hashlib.sha256(f"{purpose}: {seed_text(expression)}".encode()).digest()
    return np.random.default_rng([seed, int.from_bytes(digest[:8])])
