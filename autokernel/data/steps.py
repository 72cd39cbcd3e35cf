"""The series of a table: its columns of time and groups, periods, and the rows that follow."""

from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain, combinations
from math import lgamma
from typing import NamedTuple

import numpy as np

from autokernel.data.columns import Columns
from autokernel.data.dates import MICROSECONDS_PER_DAY, in_utc, in_zone
from autokernel.typing import FloatArray, IntArray

YEAR = 365.2425  # days
SEASONS = (1.0, 7.0, YEAR / 4, YEAR)
"""Day, week, quarter and year, in days."""

_ROWS_OF_CYCLE, _CYCLES, _CYCLES_OF_PATTERN = 4, 2, 3  # that a period needs to be seen
_UNEQUAL = 0.02  # by which cycles, months and quarters differ from their mean
_TOLERANCE = 1e-6  # of a step, by which equal steps differ through rounding
_ROUNDED = 0.15  # of a step, by which steps of rounded numbers differ from it
_MIN_SHARE = 0.5  # of the steps that are equal, from which they are the spacing
_MIN_SHARE_OF_ROWS = 0.95  # that differ in time or group
_MAX_SHARE_OF_TIMES = 0.5  # that differ, by rows, if groups have the same times
_MIN_SHARE_OF_SHARED = 0.4  # of rows at a time of other rows, if groups are of different lengths
_MIN_ROWS_OF_GROUP = 3  # on average
_MAX_GROUP_COLUMNS = 3  # whose levels make up the groups
_MIN_ROWS_OF_CALENDAR = 8  # of a group, from which it has a calendar apart from the others
_DAY, _WEEK, _WORK_DAYS = int(MICROSECONDS_PER_DAY), 7, 5  # microseconds; days; days
_WEEKS_OF_QUARTER = 13  # such as 4, 4 and 5
_CYCLES_OF_MONTHS = (1, 2, 3, 4, 6, 12)
_DAYS_OF_MONTH = (28, 31)  # the fewest and the most
_KEYS_OF_MONTH = 5 * _WEEK  # at most, as of a fifth Sunday
_MAX_DATES, _MAX_STEPS = 6, 12  # in a cycle of months, and of another pattern
_MAX_TICKS = 4_000_000  # of a calendar, all days from the year 1 to 9999

Keys = Callable[[IntArray], IntArray]
"""Numbers by which ticks are alike in a cycle; those below zero are in no calendar."""


class _Calendar(NamedTuple):
    """All moments whose ticks are like the known ones."""

    zone: str  # of the clock
    unit: int  # a tick in microseconds
    begin: int  # of tick zero, in microseconds since 1970
    keys: Keys
    kept: IntArray  # keys of its ticks
    cycle: int  # in ticks, at most
    n_keys: int  # that ticks of a cycle may have

    def ticks(self, low: int, high: int) -> IntArray:
        """Return the ticks from ``low`` on, below ``high``."""
        every = np.arange(low, high)
        return every[np.isin(self.keys(every), self.kept)]

    def after(self, last: int, horizon: int) -> IntArray:
        """Return the next moments (horizon,) in microseconds of UTC."""
        n_cycles = horizon // len(self.kept) + 1
        while len(found := self.ticks(last + 1, last + 1 + n_cycles * self.cycle)) < horizon:
            n_cycles *= 2  # as not every month has a fifth Wednesday
        return in_utc(found[:horizon] * self.unit + self.begin, self.zone)

    def cost(self, known: IntArray) -> float:
        """Return the nats that say which keys are kept, and which ticks the known ones lack."""
        if known[-1] - known[0] >= _MAX_TICKS:
            return np.inf
        every = self.ticks(known[0], known[-1] + 1)
        steps = np.diff(np.searchsorted(every, known))
        if np.mean(steps == 1) < _MIN_SHARE:
            return np.inf
        return _nats(self.n_keys, len(self.kept)) + _nats(len(every), len(known))


def time_and_groups(columns: Columns, X: FloatArray) -> tuple[int | None, tuple[int, ...]]:
    """Find the column of time in rows X (n_samples, n_features), and the columns of groups.

    Time is the first column of dates. Without any, it is the first column of numbers along which
    rows are at equal steps, or levels of categories have rows at values that they share; a single
    column is time in any case. Groups are the fewest columns of categories whose levels together
    have at most one row at each time, but for a few rows. None is time, and there are no groups, if
    there is no such column.
    """
    if len(columns) == 1:
        return (None if columns[0].levels else 0), ()
    varying = [number for number, column in enumerate(columns.every) if column.varies]
    categories = [number for number in varying if columns[number].levels]
    of_dates = [number for number in varying if columns[number].is_date]
    of_numbers = [number for number in varying if number not in categories]
    sizes = range(min(len(categories), _MAX_GROUP_COLUMNS) + 1)
    choices = list(chain.from_iterable(combinations(categories, size) for size in sizes))
    for time in of_dates[:1] or of_numbers:
        known = X[~np.isnan(X[:, time])]
        for groups in choices:
            if _are_series(known, time, groups, are_dates=bool(of_dates)):
                return time, groups
    return next(iter(of_dates), None), ()


def _are_series(X: FloatArray, time: int, groups: tuple[int, ...], *, are_dates: bool) -> bool:
    """Whether rows differ in time or group, and times are those of series."""
    n, (places, counts) = len(X), np.unique(X[:, time], return_counts=True)
    if len(np.unique(X[:, [*groups, time]], axis=0)) < _MIN_SHARE_OF_ROWS * n:
        return False
    if groups:
        _, of_rows, sizes = np.unique(X[:, groups], axis=0, return_inverse=True, return_counts=True)
        if len(sizes) * _MIN_ROWS_OF_GROUP > n:
            return False
        if len(places) <= _MAX_SHARE_OF_TIMES * n:
            return True
        if not are_dates and counts[counts > 1].sum() < _MIN_SHARE_OF_SHARED * n:
            return False
        places = np.unique(X[of_rows.ravel() == np.argmax(sizes), time])  # of the largest group
    return are_dates or (len(places) > 1 and _most_frequent(np.diff(places))[1] >= _MIN_SHARE)


def rows_ahead_of_group(
    x: FloatArray, own: FloatArray, horizon: int, *, are_dates: bool, zone: str
) -> FloatArray:
    """Return the values (horizon,) of a column that follow those of a group (n_group,).

    The calendar is that of the group. One of few rows continues at the values ``x`` (n_samples,) of
    all groups.
    """
    if len(np.unique(own)) >= _MIN_ROWS_OF_CALENDAR:
        return rows_ahead(own, horizon, are_dates=are_dates, zone=zone)
    beyond = rows_ahead(x, horizon, are_dates=are_dates, zone=zone)
    every, last = np.append(np.unique(x[~np.isnan(x)]), beyond), np.max(own, initial=-np.inf)
    return every[every > last][:horizon] if len(own) else beyond


def rows_ahead(x: FloatArray, horizon: int, *, are_dates: bool, zone: str = "") -> FloatArray:
    """Return the next values (horizon,) of a column (n_samples,), at its spacing.

    Dates, in days since 1970, continue in the simplest calendar that has all of them: equal steps;
    days of the week, hours of the day, or patterns such as 4, 4 and 5 weeks; days of the month,
    clipped to its end, working days from its begin or end, and weekdays such as the second
    Wednesday. Days are those of the ``zone``, and dates are in UTC. Otherwise, and for numbers, the
    spacing is the step between neighbours that is most frequent. Rows may be missing, and numbers
    may be rounded.
    """
    known = np.unique(x[~np.isnan(x)])
    if len(known) < 2:
        raise ValueError("forecast needs rows at different values, got one value in all rows")
    if are_dates:
        moments = np.rint(known * MICROSECONDS_PER_DAY).astype(np.int64)
        found = [(one.cost(ticks), one, ticks[-1]) for one, ticks in _calendars(moments, zone)]
        cost, calendar, last = min(found, key=lambda one: one[0])
        if np.isfinite(cost):
            return calendar.after(last, horizon) / MICROSECONDS_PER_DAY
    step, share = _most_frequent(np.diff(known))
    if share < _MIN_SHARE:
        raise ValueError(
            "forecast needs rows at equal steps, got steps from "
            f"{np.diff(known).min():g} to {np.diff(known).max():g}, of which {share:.0%} are "
            f"{step:g}: give the rows to predict_quantiles"
        )
    steps = np.diff(known) / step
    whole = np.rint(steps)
    if not are_dates and whole.min() > 0 and np.abs(steps - whole).max() < _ROUNDED:
        step = float(np.ptp(known) / whole.sum())
    return known[-1] + step * np.arange(1, horizon + 1)


def seasons_of(x: FloatArray) -> tuple[float, ...]:
    """Return the seasons in days that a column of dates (n_samples,), in days, can show.

    They are those of :data:`SEASONS` with four rows in a cycle, by the median step between
    neighbours, that are not longer than :func:`longest_period`.
    """
    known = np.unique(x[~np.isnan(x)])
    if len(known) < 2:
        return ()
    step, longest = float(np.median(np.diff(known))), longest_period(known)
    return tuple(
        season
        for season in SEASONS
        if _ROWS_OF_CYCLE * step <= season * (1 + _UNEQUAL) and season <= longest
    )


def longest_period(x: FloatArray) -> float:
    """Return the longest period of which known values (n,) of a column show two cycles.

    A row stands for the step to the next one, so that 24 months are two years. Cycles may be
    unequal, and their period is estimated.
    """
    places = np.unique(x)
    step = float(np.median(np.diff(places))) if len(places) > 1 else 0.0
    return float(np.ptp(places) + step) / _CYCLES * (1 + _UNEQUAL)


def shows_cycles(x: FloatArray) -> bool:
    """Return whether a column (n_samples,) can show a period.

    The longest period of which two cycles lie in the extent needs four distinct values in both.
    """
    known = np.unique(x[~np.isnan(x)])
    of_cycle = np.histogram(known, bins=_CYCLES)[0]
    return bool(of_cycle.min() >= _ROWS_OF_CYCLE)


def _most_frequent(steps: FloatArray) -> tuple[float, float]:
    """Return the most frequent step, as the mean of those that are equal to it, and its share."""
    order = np.sort(steps)
    begins = np.flatnonzero(np.diff(order, prepend=-np.inf) > _TOLERANCE * order)
    counts = np.diff([*begins, len(order)])
    most = int(np.argmax(counts))
    equal = order[begins[most] : begins[most] + counts[most]]
    return float(equal.mean()), len(equal) / len(order)


def _nats(n: int, k: int) -> float:
    """Return the log of the number of choices of k out of n."""
    return lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1)


def _calendars(moments: IntArray, zone: str) -> Iterator[tuple[_Calendar, IntArray]]:
    """Return calendars that have all moments, the simplest first, and the ticks of the moments."""
    for clock in dict.fromkeys((zone, "")):
        known = in_zone(moments, clock)
        steps = np.diff(known)
        if steps.min() <= 0:  # the clock was set back
            continue
        step, is_daily = int(np.gcd.reduce(steps)), np.ptp(known % _DAY) == 0
        unit = _DAY if is_daily else step
        ticks, begin = known // unit, int(known[0] % unit)
        of_ticks = partial(_Calendar, clock, unit, begin)
        for keys, cycle, n_keys in _of_months(ticks) if is_daily else ():
            kept = np.unique(keys(ticks))
            if kept[0] >= 0 and len(kept) <= min(_MAX_DATES, max(1, len(ticks) // _CYCLES)):
                yield of_ticks(keys, kept, cycle, n_keys), ticks
        if clock == "" or step % _DAY == 0 or np.ptp(known - moments) > 0:  # hours are those of UTC
            n_keys = step // _DAY if is_daily else 1
            equal = _Calendar(
                clock, step, int(known[0] % step), np.zeros_like, np.zeros(1, int), 1, n_keys
            )
            yield equal, known // step
        if is_daily and not np.any(_weekday(ticks) >= _WORK_DAYS):
            working = np.arange(_WORK_DAYS)
            yield of_ticks(_weekday, working, _WEEK, _WORK_DAYS), ticks
        patterns = np.cumsum(np.diff(ticks[: _MAX_STEPS + 1])).tolist()
        days = (1, _WEEK, _WEEKS_OF_QUARTER * _WEEK) if _DAY % unit == 0 else ()
        for cycle in sorted({*patterns, *(_DAY // unit * one for one in days)}):
            kept = np.unique(ticks % cycle)
            if len(ticks) >= _CYCLES_OF_PATTERN * len(kept):
                yield of_ticks(partial(_phase, cycle=cycle), kept, cycle, 2 * cycle), ticks


def _weekday(days: IntArray) -> IntArray:
    """Return the days of the week, from zero for Monday."""
    return (days + 3) % _WEEK  # 1970-01-01 was a Thursday


def _phase(ticks: IntArray, *, cycle: int) -> IntArray:
    return ticks % cycle


def _of_months(known: IntArray) -> Iterator[tuple[Keys, int, int]]:
    """Return keys of days in cycles of months, with the lengths and numbers of keys of these."""
    month, since, left = _months(known)
    steps, counts = np.unique(np.diff(month), return_counts=True)
    lengths = sorted({*_CYCLES_OF_MONTHS, int(steps[np.argmax(counts)])} - {0})
    ends = np.unique(since[left > 0])  # days that also explain ends of shorter months
    if np.max(since[left == 0], initial=-1) > np.max(ends, initial=-1):
        ends = np.append(ends, _DAYS_OF_MONTH[1] - 1)
    of_days = (
        partial(_day_of_month, ends=ends),
        *(partial(one, back=back) for one in (_work_day, _nth_weekday) for back in (False, True)),
    )
    for key in of_days:
        for n in lengths:
            n_keys, cycle = (n * days for days in _DAYS_OF_MONTH)
            yield partial(_key_in_months, key=key, n_months=n), cycle, n_keys


def _months(days: IntArray) -> tuple[IntArray, IntArray, IntArray]:
    """Return the months since 1970 of days, and the days since their first and to their last."""
    months = days.astype("datetime64[D]").astype("datetime64[M]")
    first, after = (
        (months + np.timedelta64(n, "M")).astype("datetime64[D]").astype(int) for n in (0, 1)
    )
    return months.astype(int), days - first, after - 1 - days


def _key_in_months(days: IntArray, *, key: Callable[..., IntArray], n_months: int) -> IntArray:
    month, since, left = _months(days)
    of_month = key(days, since, left)
    return np.where(of_month < 0, -1, month % n_months * _KEYS_OF_MONTH + of_month)


def _day_of_month(_: IntArray, since: IntArray, left: IntArray, *, ends: IntArray) -> IntArray:
    """Return the day; the last of a month stands for the next one of the ends."""
    end = np.append(ends, -1)[np.searchsorted(ends, since)]
    return np.where((left == 0) & (end >= 0), end, since)


def _work_day(days: IntArray, since: IntArray, left: IntArray, *, back: bool) -> IntArray:
    low, high = (days + 1, days + left + 1) if back else (days - since, days)
    n_between = np.busday_count(low.astype("datetime64[D]"), high.astype("datetime64[D]"))
    return np.where(_weekday(days) < _WORK_DAYS, n_between, -1)


def _nth_weekday(days: IntArray, since: IntArray, left: IntArray, *, back: bool) -> IntArray:
    return (left if back else since) // _WEEK * _WEEK + _weekday(days)
