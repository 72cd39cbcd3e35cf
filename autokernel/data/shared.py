"""What some rows of a table share: a level, a weekday, or a day of the year."""

from collections import defaultdict
from collections.abc import Iterator
from datetime import date, timedelta
from typing import NamedTuple

import numpy as np

from autokernel.data.columns import Inputs
from autokernel.data.dates import parts_of_year
from autokernel.typing import BoolArray, FloatArray

ORDINALS = ("first", "second", "third", "fourth")  # weeks of a month
N_RANDOM_SETS, N_BLOCKS = 9999, 99  # of rows, with which some are compared
MIN_PROBABILITY = 1e-3  # of as much in common by chance


class Shared(NamedTuple):
    """What rows may have in common, as numbers (n_samples,), NaN where it is not known."""

    column: int
    kind: str  # "level", "weekday" or "day"
    groups: FloatArray


def shared_days(dates: FloatArray) -> tuple[list[str], int]:
    """Name the days that several dates (n,), in days since 1970, share, and count these dates.

    They are days that recur in other years, a day of a month such as 25 December, or of its weeks
    such as the fourth Thursday or the last Monday, and otherwise days of several dates.
    """
    known = np.floor(np.round(dates[~np.isnan(dates)], 6))
    every = [date(1970, 1, 1) + timedelta(int(one)) for one in known]
    by_name, names, left = defaultdict[str, set[date]](set), list[str](), {*every}
    for day in sorted(left):
        weeks = [*ORDINALS[(day.day - 1) // 7 :][:1]]
        weeks += ["last"] * ((day + timedelta(7)).month != day.month)
        for name in (f"{day.day} {day:%B}", *(f"the {one} {day:%A of %B}" for one in weeks)):
            by_name[name].add(day)
    while True:
        years = {name: len({one.year for one in own & left}) for name, own in by_name.items()}
        best = max(years, key=lambda name: years[name], default="")
        if years.get(best, 0) < 2:
            break
        names.append(best)
        left = left - by_name[best]
    if not names:
        left = {day for day in left if every.count(day) < 2}
        names = [str(day) for day in sorted({*every} - left)]
    return names, sum(day not in left for day in every)


def shared_by(inputs: Inputs, is_chosen: BoolArray, seed: int) -> Shared | None:
    """Find what chosen rows (n_samples,) share more often than random sets of as many rows."""
    rng = np.random.default_rng(seed)
    for shared in _possible(inputs):
        is_known = ~np.isnan(shared.groups)
        _, codes = np.unique(shared.groups[is_known], return_inverse=True)
        counts = np.bincount(codes, weights=is_chosen[is_known])
        n_in_each, n, pairs, n_more = np.bincount(codes), int(counts.sum()), (counts**2).sum(), 0
        for _ in range(N_BLOCKS):  # as all sets at once would need much memory
            drawn = rng.multivariate_hypergeometric(n_in_each, n, size=N_RANDOM_SETS // N_BLOCKS)
            n_more += int(np.sum((drawn**2).sum(axis=1) >= pairs))
        if n_more < MIN_PROBABILITY * N_RANDOM_SETS:
            return shared
    return None


def _possible(inputs: Inputs) -> Iterator[Shared]:
    for number, column in enumerate(inputs.columns.every):
        x = inputs.raw(number)
        if column.levels is not None:
            yield Shared(number, "level", x)
        elif column.is_date:
            for kind, part in zip(("weekday", "day"), parts_of_year(x), strict=True):
                yield Shared(number, kind, np.where(np.isnan(x), np.nan, part))
