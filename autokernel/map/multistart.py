"""The modes of one kernel by short runs from many points and long runs from the best."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from autokernel.map.coordinate_scan import CoordinateScan
from autokernel.map.maximise import Mode, maximise
from autokernel.map.posterior import LogPosterior
from autokernel.typing import FloatArray

_CLOSE = 1e-7  # relative gain of the log posterior below which a run stops
_LONG = 300  # most iterations of a long run
_GAIN = 0.05  # nats, the least gain of a scan after which another scan is made
_HOPELESS = 10.0  # nats below the best mode at which a point is dropped


@dataclass(frozen=True, slots=True)
class Budget:
    """The numbers of runs and scans in the search for the modes of one kernel."""

    n_tried: int | None  # starting points from which short runs start, None for all
    n_followed: int  # ends of short runs from which long runs start
    n_scanned: tuple[int, int, int]  # runs from points of a scan, in each of three stages
    rounds: int  # most scans, each around a new best mode
    n_refined: tuple[int, int] = (8, 4)  # short and long runs on all rows after a subsample
    scans_coarsely: bool = False  # whether scans take every other lengthscale of a period


THOROUGH = Budget(n_tried=None, n_followed=4, n_scanned=(14, 6, 3), rounds=4)
OF_PARTS = Budget(n_tried=None, n_followed=3, n_scanned=(6, 3, 2), rounds=1)
LIGHT = Budget(
    n_tried=4, n_followed=3, n_scanned=(6, 3, 1), rounds=1, n_refined=(2, 1), scans_coarsely=True
)


def find_modes(
    posterior: LogPosterior,
    starts: FloatArray,
    scan: CoordinateScan | None = None,
    *,
    subsample: LogPosterior | None = None,
    budget: Budget = THOROUGH,
) -> list[Mode]:
    """Search for the highest mode of the log posterior.

    Parameters
    ----------
    posterior : LogPosterior
        Log posterior to maximise.
    starts : ndarray of shape (n_starts, n_params)
        Starting points.
    scan : CoordinateScan or None
        Scan for further starting points around a mode; None for no scan.
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
    cheap = posterior if subsample is None else subsample
    ends = _short_runs(cheap, _highest(posterior, starts, budget.n_tried), steps=15)
    if subsample is None:
        modes = _search(posterior, ends, scan, budget)
    else:
        modes = _refine(posterior, [*_search(subsample, ends, scan, budget), *ends], budget)
    if not modes:
        return [Mode(starts[0], -np.inf)]
    return [maximise(posterior, modes[0].theta, max_iterations=_LONG), *modes[1:]]


def _highest(posterior: LogPosterior, starts: FloatArray, n: int | None) -> FloatArray:
    """Return the ``n`` starting points of the highest log posterior, or all of them."""
    if n is None or n >= len(starts):
        return starts
    values = [posterior.value(start) for start in starts]
    return starts[np.argsort(values, kind="stable")[::-1][:n]]


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


def _refine(posterior: LogPosterior, found: list[Mode], budget: Budget) -> list[Mode]:
    """Run from the best points found on a subsample, which may have ranked them wrongly."""
    seen = _distinct([Mode(mode.theta, posterior.value(mode.theta)) for mode in found])
    n_short, n_long = budget.n_refined
    ends = _short_runs(posterior, [mode.theta for mode in seen[:n_short]], steps=6)
    return _distinct([*_long_runs(posterior, ends[:n_long]), *ends[n_long:]])


def _search_scanned(
    posterior: LogPosterior, known: list[Mode], scan: CoordinateScan, budget: Budget
) -> list[Mode]:
    """Run from points of a scan around the first known mode, in three stages of fewer runs."""
    best = known[0]
    first, second, third = budget.n_scanned
    points = [found.theta for found in scan.around(best.theta)[:first]]
    ends = _new(_short_runs(posterior, points, steps=6), known)
    ends = _new(_short_runs(posterior, [end.theta for end in ends[:second]], steps=12), known)
    near = [end for end in ends if end.log_posterior > best.log_posterior - _HOPELESS]
    return _long_runs(posterior, near[:third])


def _short_runs(posterior: LogPosterior, starts: Iterable[FloatArray], *, steps: int) -> list[Mode]:
    """Run for some iterations from each start, and return the distinct ends, the best first."""
    return _distinct([maximise(posterior, start, max_iterations=steps) for start in starts])


def _long_runs(posterior: LogPosterior, ends: Iterable[Mode]) -> list[Mode]:
    """Run from the ends of short runs to modes, accurate enough to compare; the best first."""
    return _distinct(
        [
            maximise(posterior, end.theta, max_iterations=_LONG, tolerance=_CLOSE)
            for end in ends
            if np.isfinite(end.log_posterior)
        ]
    )


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
