"""The series of a table: its columns of time and groups, periods, and the rows that follow."""

import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from math import lgamma
from typing import NamedTuple

import numpy as np

from autokernel.data.columns import Columns, TimeAndGroups
from autokernel.data.dates import MICROSECONDS_PER_DAY, in_utc, in_zone, read_dates
from autokernel.deadline import Deadline
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
_MAX_CHOICES, _MAX_TRIED = 30, 10  # of columns of groups, for each number of them
_MAX_PAIRS = 4000  # of rows at one time, about, by which these are compared, neighbours in any case
_MIN_ROWS_OF_CALENDAR = 8  # of a group, from which it has a calendar apart from the others
_MIN_STEPS = 3  # of a group of fewer rows, that are equal to be its calendar
_DAY, _WEEK, _WORK_DAYS = int(MICROSECONDS_PER_DAY), 7, 5  # microseconds; days; days
_WEEKS_OF_QUARTER = 13  # such as 4, 4 and 5
_CYCLES_OF_MONTHS = (1, 2, 3, 4, 6, 12)
_DAYS_OF_MONTH = (28, 31)  # the fewest and the most
_KEYS_OF_MONTH = 5 * _WEEK  # at most, as of a fifth Sunday
_MAX_DATES, _MAX_STEPS = 6, 12  # in a cycle of months, and of another pattern
_NAME_OF_DATES = re.compile(
    r"((?<![A-Za-z])(?i:date|day|month|datum|period)|(?<=[a-z])(Date|Day|Month|Period))s?(?![a-z])"
)
_MIN_DATES = 12  # whole numbers that are read as dates whatever their name is
_FIRST_YEAR, _LAST_YEAR = 1800, 2199  # of whole numbers that are read as dates
_SERIAL_DAYS, _SERIAL_DAY_OF_1970 = (36_526, 55_153), 25_569  # of the years 2000 to 2050
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


def time_and_groups(columns: Columns, X: FloatArray, deadline: Deadline) -> TimeAndGroups:
    """Find the column of time in rows X (n_samples, n_features), and the columns of groups.

    Time is the first column of dates. Without any, it is the first column of numbers along which
    rows are at equal steps, or levels of categories have rows at values that they share; the only
    column that varies is time in any case. None is time, and there are no groups, if there is no
    such column before the deadline.
    """
    varying = [number for number, column in enumerate(columns.every) if column.varies]
    if len(columns) == 1 or len(varying) == 1:
        [only] = varying or [0]
        return (None if columns[only].levels else only), ()
    categories = [number for number in varying if columns[number].levels]
    of_dates = [number for number in varying if columns[number].is_date]
    levels = level_numbers(X[:, categories])
    for time in of_dates[:1] or [number for number in varying if number not in categories]:
        if deadline.has_passed:
            break
        found = groups_along(X[:, time], levels, are_dates=bool(of_dates))
        if found is not None:
            return time, tuple(categories[one] for one in found)
    return next(iter(of_dates), None), ()


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
    are_few = are_dates or len(times) <= _MAX_SHARE_OF_TIMES * n
    if not (are_few or counts[counts > 1].sum() >= _MIN_SHARE_OF_SHARED * n):
        return None
    order, n_lags = np.argsort(places, kind="stable"), min(counts.max(), _MAX_PAIRS // n + 1)
    pairs = [[order[:-lag], order[lag:]] for lag in range(1, n_lags + 1)]
    one, other = np.concatenate(pairs, axis=1)
    are_equal = (levels[one] == levels[other])[places[one] == places[other]]
    sizes = levels.max(axis=0, initial=0) + 1
    few = np.flatnonzero(sizes * _MIN_ROWS_OF_GROUP <= n).tolist()
    choices: list[tuple[int, ...]] = [()]
    for _ in range(_MAX_GROUP_COLUMNS):
        n_equal: dict[tuple[int, ...], int] = {}
        for chosen in choices:
            left = are_equal[are_equal[:, chosen].all(axis=1)].sum(axis=0).tolist()
            n_equal |= {tuple(sorted((*chosen, c))): left[c] for c in few if c not in chosen}
        choices = sorted(n_equal, key=lambda one: (n_equal[one], one))[:_MAX_CHOICES]
        n_distinct: dict[tuple[int, ...], int] = {(): 0}
        for chosen in sorted(choices[:_MAX_TRIED]):
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
    return len(x) > 1 and _most_frequent(np.diff(x))[1] >= _MIN_SHARE


def reading_of_numbers(name: str, x: FloatArray) -> str:
    """Return how pandas reads whole numbers x that are almost certainly dates; empty for others.

    They are valid days yyyymmdd or months yyyymm, or serial days of spreadsheets that are first or
    last days of months, a week apart, or working days. The name of a date suffices for any serial
    days, and for few numbers.
    """
    known, has_name = np.unique(x[~np.isnan(x)]), _NAME_OF_DATES.search(name) is not None
    if len(known) < (2 if has_name else _MIN_DATES) or np.any(known % 1):
        return ""
    for form, divisor in {"%Y%m%d": 10_000, "%Y%m": 100}.items():
        if known[0] // divisor >= _FIRST_YEAR and known[-1] // divisor <= _LAST_YEAR:
            texts = [f"{one:.0f}" for one in known]
            iso = ["-".join(filter(None, (one[:4], one[4:6], one[6:]))) for one in texts]
            whole = "{x}.astype('Int64').astype('string')"
            return f"{whole}, format={form!r}" if not np.isnat(read_dates(iso)).any() else ""
    if not (_SERIAL_DAYS[0] <= known[0] and known[-1] <= _SERIAL_DAYS[1]):
        return ""
    days = known.astype(int) - _SERIAL_DAY_OF_1970
    (_, since, left), steps, weekday = _months(days), np.diff(days), _weekday(days)
    are_weeks = not np.any(steps % _WEEK) and np.mean(steps == _WEEK) >= _MIN_SHARE
    n_work_days = np.ptp(days) * _WORK_DAYS / _WEEK
    are_work_days = np.all(weekday < _WORK_DAYS) and len(days) >= _MIN_SHARE * n_work_days
    is_pattern = not since.any() or not left.any() or are_weeks or are_work_days
    return "{x}, unit='D', origin='1899-12-30'" if has_name or is_pattern else ""


def rows_ahead_of_group(
    own: FloatArray, others: FloatArray, horizon: int, *, are_dates: bool, zone: str
) -> FloatArray:
    """Return the values (horizon,) of a column that follow those of a group (n_group,).

    The calendar is that of the group. One of few rows continues at the values of all groups, those
    of the ``others`` (n_others,) too, unless it is at equal steps and leaves out some of these.
    """
    ahead = partial(rows_ahead, are_dates=are_dates, zone=zone)
    known, x = np.unique(own), np.concatenate([own, others])
    last, steps = np.max(own if len(own) else x), np.diff(known)
    if len(known) >= _MIN_ROWS_OF_CALENDAR:
        return ahead(own, horizon)
    meanwhile = np.unique(others[(others >= np.min(own, initial=np.inf)) & (others <= last)])
    are_equal = len(steps) >= _MIN_STEPS and np.ptp(steps) <= _ROUNDED * steps.max()  # as months
    if are_equal and not np.array_equal(meanwhile, known):
        with suppress(ValueError):  # of steps that are equal by chance
            return ahead(own, horizon)
    every = np.append(np.unique(x), ahead(x, horizon))
    return every[every > last][:horizon]


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
