"""Forecasts: the rows that follow a series, or those of each group, and their predictions."""

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from autokernel.data import Column
from autokernel.data.calendars import rows_ahead_of_group
from autokernel.data.checks import Future
from autokernel.data.dates import dates_of
from autokernel.data.series import groups_along, level_numbers
from autokernel.exceptions import warn_user
from autokernel.explain.tables import Table
from autokernel.model import FittedModel
from autokernel.typing import FloatArray, IntArray


def forecast_table(
    model: FittedModel, past: FloatArray, horizon: int, quantiles: FloatArray, future: Future | None
) -> Table:
    """Return predictions for the rows that follow each series of ``past`` (n_samples, n_features).

    The ``future`` has the next rows, and the columns that are known of them.
    """
    past = past[~np.isnan(past[:, model.series.columns]).any(axis=1)]
    hint = "" if model.series.groups else _hint_of_groups(model, past)
    try:
        columns = _columns(model, None if future is None else future[1])
        time = model.series.columns[0]
        ahead = _rows(model, past, horizon, columns[time], future)
    except ValueError as error:
        raise ValueError(f"{hint}. Otherwise, {error}" if hint else str(error)) from None
    if hint:
        warn_user(f"{hint}. This forecast does not separate them")
    texts = [str(float(one)) for one in quantiles]
    if len(set(texts)) < len(texts):
        raise ValueError(f"quantiles must differ, got {texts}")
    names = {n: c.name + " of X" * (c.name in ("mean", *texts)) for n, c in columns.items()}
    bands = model.quantiles(ahead, quantiles).T
    found = {names[n]: _shown(one, ahead[:, n]) for n, one in sorted(columns.items())}
    step = np.median(np.diff(np.unique(np.append(past[:, time], ahead[:, time]))))
    n_digits = 3 + int(np.log10(np.abs(ahead[:, time]).max() / step + 1))  # that distinguish rows
    return Table(
        {**found, "mean": model.mean(ahead), **dict(zip(texts, bands, strict=True))},
        forms={names[time]: f".{n_digits}g"},
    )


def _columns(model: FittedModel, given: Mapping[int, Column] | None) -> dict[int, Column]:
    """Return time and groups; refuse a forecast without a time, or of rows that are not known."""
    names, known, series = model.columns.names, given or {}, model.series.columns
    if not series:
        what = "forecast needs a column of dates, or of numbers at equal steps"
        raise ValueError(f"{what}, got the columns {names}: give the rows to predict_quantiles")
    if missing := [names[n] for n in sorted(model.used_columns.difference(series, known))]:
        what = "it" if len(missing) == 1 else "them"
        got = "no X" if given is None else f"X without {what}"
        raise ValueError(
            f"forecast needs the next rows of {', '.join(map(repr, missing))}, as the forecast "
            f"depends on {what}, got {got}: give a frame of these columns as X"
        )
    return {number: known.get(number, model.columns[number]) for number in series}


def _hint_of_groups(model: FittedModel, past: FloatArray) -> str:
    """Say which whole numbers may name the groups of rows at one time; empty if none do."""
    every, names = model.columns.every, model.columns.feature_names or range(len(model.columns))
    levels = [n for n, one in enumerate(every) if one.levels]
    numbers = [n for n, one in enumerate(every) if one.varies and not one.levels]
    whole = [n for n in numbers if not (every[n].is_date or np.any(past[:, n] % 1 > 0))]
    for time in model.series.columns or numbers:
        others = sorted({*levels, *whole} - {time})
        numbered = level_numbers(past[:, others])
        found = groups_along(past[:, time], numbered, are_dates=every[time].is_date) or ()
        groups = [others[one] for one in found]
        if ids := [repr(names[n]) for n in groups if n in whole]:
            return (
                f"several rows have the same {every[time].name!r}, and the whole numbers of "
                f"{' and '.join(ids)} separate them: if these name groups, fit with "
                f"categorical_features={[names[n] for n in sorted({*levels, *groups})]}"
            )
    return ""


def _rows(
    model: FittedModel, past: FloatArray, horizon: int, column: Column, future: Future | None
) -> FloatArray:
    """Return the next rows (n_rows, n_features) of all groups."""
    time, *groups = model.series.columns
    x, names = past[:, time], np.unique(past[:, groups], axis=0)
    rows, known = future or (np.full((horizon, past.shape[1]), np.nan), {})
    given = [known[number].name for number in groups if number in known]
    if groups and not given:  # all have these rows
        n_rows, rows = len(rows), np.tile(rows, (len(names), 1))
        rows[:, groups] = np.repeat(names, n_rows, axis=0)
    elif len(given) < len(groups):
        raise ValueError(f"X must have all columns that make up a group, or none, got only {given}")
    for name in np.unique(rows[:, groups], axis=0):
        if len(own := _are_of(rows, groups, name)) != horizon:
            of_group = " for each group" * bool(groups)
            raise ValueError(f"X must have horizon={horizon} rows{of_group}, got {len(own)}")
        at = _are_of(past, groups, name)
        if time not in known:
            rows[own, time] = rows_ahead_of_group(
                x[at], np.delete(x, at), horizon, are_dates=column.is_date, zone=column.zone
            )
        elif not np.all(np.diff(rows[own, time], prepend=np.max(x[at], initial=-np.inf)) > 0):
            what = f"that follow the last row{' of each group' * bool(groups)}, in ascending order"
            raise ValueError(f"X must have times in column {column.name!r} {what}, or none")
    return rows


def _are_of(rows: FloatArray, groups: Sequence[int], name: FloatArray) -> IntArray:
    return np.flatnonzero(np.all(rows[:, groups] == name, axis=1))


def _shown(column: Column, x: FloatArray) -> npt.NDArray[np.generic]:
    if column.levels is not None:
        return np.array([column.levels.values[int(number)] for number in x], dtype=object)
    return dates_of(x) if column.is_date else x
