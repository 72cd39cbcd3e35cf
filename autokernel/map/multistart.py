"""The MAP point of one kernel: short runs from many points, long ones from the best."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from autokernel.map.coordinate_scan import CoordinateScan
from autokernel.map.maximise import Mode, maximise
from autokernel.map.posterior import LogPosterior
from autokernel.typing import FloatArray

_CLOSE = 1e-7  # of the log posterior: the least gain of a step that goes on
_LONG = 300  # steps
_GAIN = 0.05  # nats: the least that makes another round worthwhile
_HOPELESS = 10.0  # nats below the best


@dataclass(frozen=True, slots=True)
class Budget:
    """How many runs the search of one kernel makes."""

    n_followed: int  # ends of short runs that are followed to their maxima
    n_scanned: tuple[int, int, int]  # points of a scan, those left after some steps, after more
    rounds: int  # scans around a new best mode


THOROUGH = Budget(n_followed=4, n_scanned=(14, 6, 3), rounds=4)
OF_PARTS = Budget(n_followed=3, n_scanned=(6, 3, 2), rounds=1)
LIGHT = Budget(n_followed=4, n_scanned=(6, 3, 1), rounds=1)


def find_modes(
    posterior: LogPosterior,
    starts: FloatArray,
    scan: CoordinateScan | None = None,
    *,
    subsample: LogPosterior | None = None,
    budget: Budget = THOROUGH,
) -> list[Mode]:
    """Search the highest mode of the log posterior.

    Parameters
    ----------
    posterior : LogPosterior
        What to maximise.
    starts : ndarray of shape (n_starts, n_params)
        Where to begin.
    scan : CoordinateScan or None
        Where to look once there is a mode; None looks no further.
    subsample : LogPosterior or None
        A cheaper posterior of the same parameters, such as that of some of the rows. The search is
        made on it, and its best modes are followed to the maxima of the other.
    budget : Budget
        How many runs to make.

    Returns
    -------
    list of Mode
        Distinct modes, the best first and found exactly; one of the height ``-inf`` where no start
        could be factorised.
    """
    if subsample is None:
        modes = _search(posterior, _short_runs(posterior, starts, steps=15), scan, budget)
    else:
        ends = _short_runs(subsample, starts, steps=15)
        modes = _follow(posterior, [*_search(subsample, ends, scan, budget), *ends], budget)
    if not modes:
        return [Mode(starts[0], -np.inf)]
    return [maximise(posterior, modes[0].theta, max_iterations=_LONG), *modes[1:]]


def _search(
    posterior: LogPosterior, ends: list[Mode], scan: CoordinateScan | None, budget: Budget
) -> list[Mode]:
    """Distinct modes, the best first: those of short runs, and of the scans around them."""
    modes = _long_runs(posterior, ends[: budget.n_followed])
    if scan is None or not modes:
        return modes
    best = modes[:1]  # the best so far, last of all first
    for _ in range(budget.rounds):
        found = _search_scanned(posterior, best, scan, budget)
        modes = _distinct([*modes, *found])
        if modes[0].log_posterior < best[0].log_posterior + _GAIN:
            break
        best = [modes[0], *best]
    return modes


def _follow(posterior: LogPosterior, found: list[Mode], budget: Budget) -> list[Mode]:
    """Follow the best of the points found on a subsample, which may have ranked them wrongly."""
    seen = _distinct([Mode(mode.theta, posterior.value(mode.theta)) for mode in found])
    ends = _short_runs(posterior, [mode.theta for mode in seen[: 2 * budget.n_followed]], steps=6)
    return _long_runs(posterior, ends[: budget.n_followed])


def _search_scanned(
    posterior: LogPosterior, known: list[Mode], scan: CoordinateScan, budget: Budget
) -> list[Mode]:
    """Run from points of a scan around the first known mode, in three stages of ever fewer."""
    best = known[0]
    first, second, third = budget.n_scanned
    points = [found.theta for found in scan.around(best.theta)[:first]]
    ends = _new(_short_runs(posterior, points, steps=6), known)
    ends = _new(_short_runs(posterior, [end.theta for end in ends[:second]], steps=12), known)
    near = [end for end in ends if end.log_posterior > best.log_posterior - _HOPELESS]
    return _long_runs(posterior, near[:third])


def _short_runs(posterior: LogPosterior, starts: Iterable[FloatArray], *, steps: int) -> list[Mode]:
    """Take some steps from each start; the distinct ends, the best first."""
    return _distinct([maximise(posterior, start, max_iterations=steps) for start in starts])


def _long_runs(posterior: LogPosterior, ends: Iterable[Mode]) -> list[Mode]:
    """Follow the ends of short runs to their modes, near enough to compare them; best first."""
    return _distinct(
        [
            maximise(posterior, end.theta, max_iterations=_LONG, tolerance=_CLOSE)
            for end in ends
            if np.isfinite(end.log_posterior)
        ]
    )


def _new(modes: Iterable[Mode], known: list[Mode]) -> list[Mode]:
    """Those that do not stand where a known mode stands."""
    return [mode for mode in modes if all(_apart(mode, other, 0.05) for other in known)]


def _distinct(modes: Iterable[Mode]) -> list[Mode]:
    """Sort, the best first, and drop every mode that stands where a better one stands."""
    kept: list[Mode] = []
    for mode in sorted(modes, key=_log_posterior, reverse=True):
        if all(_apart(mode, other, 0.1) for other in kept):
            kept.append(mode)
    return kept


def _log_posterior(mode: Mode) -> float:
    return mode.log_posterior


def _apart(one: Mode, other: Mode, distance: float) -> bool:
    """Whether two modes differ in some log parameter by more than ``distance``."""
    return bool(np.abs(one.theta - other.theta).max() > distance)
