"""The series of a table: its column of time, and groups with a series each."""

from typing import NamedTuple

import numpy as np

from autokernel.data.columns import Columns
from autokernel.deadline import Deadline
from autokernel.typing import FloatArray, IntArray

MIN_SHARE = 0.5  # of the steps that are equal, from which they are the spacing

_TOLERANCE = 1e-6  # of a step, by which equal steps differ through rounding
_MIN_SHARE_OF_ROWS = 0.95  # that differ in time or group
_MIN_ROWS_OF_GROUP = 3  # on average


class Series(NamedTuple):
    """The columns along which the rows of a table are series, as a fit decides once."""

    time: int | None = None  #: None if rows are no series
    groups: tuple[int, ...] = ()  #: whose levels have a series each

    @classmethod
    def of(cls, columns: Columns, X: FloatArray, deadline: Deadline) -> "Series":
        """Find the column of time in rows X (n_samples, n_features), and the columns of groups.

        Time is the first column of dates. Without any, it is the first column of numbers along
        which rows are at equal steps, or levels of categories have rows at values that they share;
        the only column that varies is time in any case. None is time, and there are no groups, if
        there is no such column before the deadline.
        """
        varying = [number for number, column in enumerate(columns.every) if column.varies]
        if len(columns) == 1 or len(varying) == 1:
            [only] = varying or [0]
            return cls(None if columns[only].levels else only)
        categories = [number for number in varying if columns[number].levels]
        of_dates = [number for number in varying if columns[number].is_date]
        levels = level_numbers(X[:, categories])
        for time in of_dates[:1] or [number for number in varying if number not in categories]:
            if deadline.has_passed:
                break
            if (found := groups_along(X[:, time], levels, are_dates=bool(of_dates))) is not None:
                return cls(time, tuple(categories[one] for one in found))
        return cls(next(iter(of_dates), None))

    @property
    def columns(self) -> tuple[int, ...]:
        """Time, if there is one, and the groups."""
        return () if self.time is None else (self.time, *self.groups)


NO_SERIES = Series()


def level_numbers(X: FloatArray) -> IntArray:
    """Return the values of each column of X (n_samples, n_columns) as numbers from zero."""
    every = [np.unique(x, return_inverse=True)[1] for x in X.T]
    return np.array(every, dtype=int).T.reshape(X.shape)


def groups_along(x: FloatArray, levels: IntArray, *, are_dates: bool) -> tuple[int, ...] | None:
    """Return the columns of levels (n_samples, n_columns) whose groups have a series along x each.

    They are the fewest columns whose levels together have at most one row at each time, but for a
    few rows. None if rows are no series along x (n_samples,). Of many choices of columns, a few are
    tried: those that separate most pairs at one time. O(n_samples * n_columns), after a sort.
    """
    levels, x = levels[~np.isnan(x)], x[~np.isnan(x)]
    times, places, counts = np.unique(x, return_inverse=True, return_counts=True)
    n = len(x)
    if len(times) >= _MIN_SHARE_OF_ROWS * n and (are_dates or _are_at_equal_steps(times)):
        return ()
    are_few = are_dates or len(times) <= 0.5 * n  # if groups have the same times
    if not (are_few or counts[counts > 1].sum() >= 0.4 * n):  # with groups of different lengths
        return None
    # about 4000 pairs of rows at one time are compared, neighbours in any case
    order, n_lags = np.argsort(places, kind="stable"), min(counts.max(), 4000 // n + 1)
    pairs = [[order[:-lag], order[lag:]] for lag in range(1, n_lags + 1)]
    one, other = np.concatenate(pairs, axis=1)
    are_equal = (levels[one] == levels[other])[places[one] == places[other]]
    sizes = levels.max(axis=0, initial=0) + 1
    few = np.flatnonzero(sizes * _MIN_ROWS_OF_GROUP <= n).tolist()
    choices: list[tuple[int, ...]] = [()]
    for _ in range(3):  # columns whose levels make up the groups
        n_equal: dict[tuple[int, ...], int] = {}
        for chosen in choices:
            left = are_equal[are_equal[:, chosen].all(axis=1)].sum(axis=0).tolist()
            n_equal |= {tuple(sorted((*chosen, c))): left[c] for c in few if c not in chosen}
        choices = sorted(n_equal, key=lambda one: (n_equal[one], one))[:30]
        n_distinct: dict[tuple[int, ...], int] = {(): 0}
        for chosen in sorted(choices[:10]):
            of_rows = np.ravel_multi_index(levels[:, chosen].T, sizes[[*chosen]])
            _, groups, of_group = np.unique(of_rows, return_inverse=True, return_counts=True)
            n_most = np.minimum(counts, len(of_group)).sum()
            if len(of_group) * _MIN_ROWS_OF_GROUP > n or n_most < _MIN_SHARE_OF_ROWS * n:
                continue
            rows = np.unique(groups * len(times) + places)
            own = times[rows[rows // len(times) == np.argmax(of_group)] % len(times)]
            if are_few or _are_at_equal_steps(own):
                n_distinct[chosen] = len(rows)
        best = max(n_distinct, key=n_distinct.__getitem__)
        if n_distinct[best] >= _MIN_SHARE_OF_ROWS * n:
            return best
    return None


def _are_at_equal_steps(x: FloatArray) -> bool:
    """Whether most steps between ascending values (n,) are equal."""
    return len(x) > 1 and most_frequent_step(np.diff(x))[1] >= MIN_SHARE


def most_frequent_step(steps: FloatArray) -> tuple[float, float]:
    """Return the most frequent step, as the mean of those that are equal to it, and its share."""
    order = np.sort(steps)
    begins = np.flatnonzero(np.diff(order, prepend=-np.inf) > _TOLERANCE * order)
    counts = np.diff([*begins, len(order)])
    most = int(np.argmax(counts))
    equal = order[begins[most] : begins[most] + counts[most]]
    return float(equal.mean()), len(equal) / len(order)
