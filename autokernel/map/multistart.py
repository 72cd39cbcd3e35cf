"""The modes of one kernel by short runs from many points and long runs from the best."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from autokernel.map.coordinate_scan import CoordinateScan
from autokernel.map.maximise import Mode, Start, maximise
from autokernel.map.posterior import LogPosterior

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
