"""The rows that follow a series: the next dates in its calendar, or numbers at its spacing."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from math import lgamma
from typing import NamedTuple

import numpy as np

from autokernel.data.dates import (
    MICROSECONDS_PER_DAY,
    WEEK,
    WORK_DAYS,
    in_utc,
    in_zone,
    months_of,
    weekday,
)
from autokernel.data.series import MIN_SHARE, most_frequent_step
from autokernel.typing import FloatArray, IntArray

_ROUNDED = 0.15  # of a step, by which steps of rounded numbers differ from it
_DAY = int(MICROSECONDS_PER_DAY)
_DAYS_OF_MONTH = (28, 31)  # the fewest and the most

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
        if known[-1] - known[0] >= 4_000_000:  # more than the days from the year 1 to 9999
            return np.inf
        every = self.ticks(known[0], known[-1] + 1)
        if np.mean(np.diff(np.searchsorted(every, known)) == 1) < MIN_SHARE:
            return np.inf
        return _nats(self.n_keys, len(self.kept)) + _nats(len(every), len(known))


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
    if len(known) >= 8:  # enough to show a calendar
        return ahead(own, horizon)
    meanwhile = np.unique(others[(others >= np.min(own, initial=np.inf)) & (others <= last)])
    are_equal = len(steps) >= 3 and np.ptp(steps) <= _ROUNDED * steps.max()  # such as months
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
    if len(known := np.unique(x[~np.isnan(x)])) < 2:
        raise ValueError("forecast needs rows at different values, got one value in all rows")
    if are_dates:
        moments = np.rint(known * MICROSECONDS_PER_DAY).astype(np.int64)
        found = [(one.cost(ticks), one, ticks[-1]) for one, ticks in _calendars(moments, zone)]
        cost, calendar, last = min(found, key=lambda one: one[0])
        if np.isfinite(cost):
            return calendar.after(last, horizon) / MICROSECONDS_PER_DAY
    step, share = most_frequent_step(np.diff(known))
    if share < MIN_SHARE:
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
            if kept[0] >= 0 and len(kept) <= min(6, max(1, len(ticks) // 2)):  # two cycles
                yield of_ticks(keys, kept, cycle, n_keys), ticks
        if clock == "" or step % _DAY == 0 or np.ptp(known - moments) > 0:  # hours are those of UTC
            n_keys = step // _DAY if is_daily else 1
            equal = _Calendar(
                clock, step, int(known[0] % step), np.zeros_like, np.zeros(1, int), 1, n_keys
            )
            yield equal, known // step
        if is_daily and not np.any(weekday(ticks) >= WORK_DAYS):
            yield of_ticks(weekday, np.arange(WORK_DAYS), WEEK, WORK_DAYS), ticks
        patterns = np.cumsum(np.diff(ticks[:13])).tolist()  # of up to twelve steps
        days = (1, WEEK, 13 * WEEK) if _DAY % unit == 0 else ()  # a quarter of 4, 4 and 5 weeks
        for cycle in sorted({*patterns, *(_DAY // unit * one for one in days)}):
            kept = np.unique(ticks % cycle)
            if len(ticks) >= 3 * len(kept):  # three cycles
                yield of_ticks(partial(_phase, cycle=cycle), kept, cycle, 2 * cycle), ticks


def _phase(ticks: IntArray, *, cycle: int) -> IntArray:
    return ticks % cycle


def _of_months(known: IntArray) -> Iterator[tuple[Keys, int, int]]:
    """Return keys of days in cycles of months, with the lengths and numbers of keys of these."""
    month, since, left = months_of(known)
    steps, counts = np.unique(np.diff(month), return_counts=True)
    lengths = sorted({1, 2, 3, 4, 6, 12, int(steps[np.argmax(counts)])} - {0})
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


def _key_in_months(days: IntArray, *, key: Callable[..., IntArray], n_months: int) -> IntArray:
    month, since, left = months_of(days)
    of_month = key(days, since, left)
    return np.where(of_month < 0, -1, month % n_months * 5 * WEEK + of_month)  # a fifth Sunday: 34


def _day_of_month(_: IntArray, since: IntArray, left: IntArray, *, ends: IntArray) -> IntArray:
    """Return the day; the last of a month stands for the next one of the ends."""
    end = np.append(ends, -1)[np.searchsorted(ends, since)]
    return np.where((left == 0) & (end >= 0), end, since)


def _work_day(days: IntArray, since: IntArray, left: IntArray, *, back: bool) -> IntArray:
    low, high = (days + 1, days + left + 1) if back else (days - since, days)
    n_between = np.busday_count(low.astype("datetime64[D]"), high.astype("datetime64[D]"))
    return np.where(weekday(days) < WORK_DAYS, n_between, -1)


def _nth_weekday(days: IntArray, since: IntArray, left: IntArray, *, back: bool) -> IntArray:
    return (left if back else since) // WEEK * WEEK + weekday(days)
