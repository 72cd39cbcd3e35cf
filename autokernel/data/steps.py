"""The periods that a column can show, and the rows that follow a series."""

import numpy as np

from autokernel.data.dates import dates_of, days_since_1970
from autokernel.typing import FloatArray, IntArray

YEAR = 365.2425  # days
SEASONS = (1.0, 7.0, YEAR / 4, YEAR)
"""Day, week, quarter and year, in days."""

_ROWS_OF_CYCLE, _CYCLES = 4, 2  # that a period needs to be seen
_UNEQUAL = 0.02  # by which cycles, months and quarters differ from their mean
_TOLERANCE = 1e-6  # of a step, by which equal steps differ through rounding
_ROUNDED = 0.15  # of a step, by which steps of rounded numbers differ from it
_WORK_DAYS = 5
_MIN_SHARE = 0.5  # of the steps that are equal, from which they are the spacing


def rows_ahead(x: FloatArray, horizon: int, *, are_dates: bool) -> FloatArray:
    """Return the next values (horizon,) of a column (n_samples,), at its spacing.

    Dates, in days since 1970, go on by months if all are on one day of the month, or at the ends of
    months, and by working days if none is on a weekend and most are one day apart. Otherwise, and
    for numbers, the spacing is the step between neighbours that is most frequent. Rows may be
    missing, and numbers may be rounded.
    """
    known = np.unique(x[~np.isnan(x)])
    if len(known) < 2:
        raise ValueError("forecast needs rows at different values, got one value in all rows")
    ahead = np.arange(1, horizon + 1)
    if are_dates:
        found = _months_ahead(known, ahead)
        if found is not None:
            return found
    step, share = _most_frequent(np.diff(known))
    if share < _MIN_SHARE:
        raise ValueError(
            "forecast needs rows at equal steps, got steps from "
            f"{np.diff(known).min():g} to {np.diff(known).max():g}, of which {share:.0%} are "
            f"{step:g}: give the rows to predict_quantiles"
        )
    if are_dates and step == 1 and share < 1 and not np.any(_weekday(known) >= _WORK_DAYS):
        last = np.datetime64("1970-01-01") + np.timedelta64(int(np.floor(known[-1])), "D")
        return days_since_1970(np.busday_offset(last, ahead)) + known[-1] % 1
    steps = np.diff(known) / step
    whole = np.rint(steps)
    if whole.min() > 0 and np.abs(steps - whole).max() < _ROUNDED:
        step = float(np.ptp(known) / whole.sum())
    return known[-1] + step * ahead


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


def _weekday(days: FloatArray) -> IntArray:
    """Return the days of the week, from zero for Monday."""
    return (np.floor(days).astype(int) + 3) % 7  # 1970-01-01 was a Thursday


def _months_ahead(days: FloatArray, ahead: IntArray) -> FloatArray | None:
    """Go on by the number of months between most rows, None unless all steps are multiples."""
    moments = dates_of(days)
    months = moments.astype("datetime64[M]")
    steps, counts = np.unique(np.diff(months.astype(int)), return_counts=True)
    step = steps[np.argmax(counts)]
    if step == 0 or np.any(steps % step) or counts.max() < _MIN_SHARE * counts.sum():
        return None
    nexts = months[-1] + step * ahead
    since_first, to_next = (moments - months, (months + 1).astype("datetime64[us]") - moments)
    if len(np.unique(since_first)) == 1:
        return days_since_1970(nexts.astype("datetime64[us]") + since_first[0])
    if len(np.unique(to_next)) == 1:
        return days_since_1970((nexts + 1).astype("datetime64[us]") - to_next[0])
    return None
