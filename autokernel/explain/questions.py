"""Questions about a fitted function: differences between rows, and slopes along a column.

Answers are about the mean of the target given the function, without noise, so that they agree with
``predict``; their intervals hold the uncertainty of kernel, parameters and function.
"""

from collections import defaultdict
from collections.abc import Hashable, Iterator, Sequence
from itertools import count

import numpy as np
from scipy.stats import norm
from sklearn.utils import gen_batches

from autokernel.explain.axes import MAX_VALUES, axes_of
from autokernel.explain.decomposition import Decomposition, ExplainedFunction
from autokernel.explain.tables import Table
from autokernel.explain.words import INTERVAL_ENDS, interval
from autokernel.model import FittedModel
from autokernel.typing import FloatArray, IntArray

N_DRAWS = 2000  # of the function
MAX_ROWS = 500  # of each side, of which values are drawn together
STEP = 1e-5  # to either side for a slope, in extents of the column

ESTIMATE = "estimate", "low", "high", "probability"
NO_SLOPE = 0.0, 0.0, 0.0, np.nan


def compared(model: FittedModel, A: FloatArray, B: FloatArray) -> Table:
    """Compare the average predictions at rows A (n, n_features) and B (m, n_features).

    If each group has one value of some columns, all rows with both values are compared as well.
    """
    rows, pairs = list[tuple[object, ...]](), {"": [A, B]}
    is_one = (np.ptp(A, axis=0) == 0) & (np.ptp(B, axis=0) == 0) & (A[0] != B[0])
    columns = [one for one in np.flatnonzero(is_one).tolist() if one in model.used_columns]
    every = np.concatenate([A, B])
    if columns and len(np.unique(np.delete(every, columns, axis=1), axis=0)) > 1:
        moved = [every.copy(), every.copy()]
        for X, given in zip(moved, (A, B), strict=True):
            X[:, columns] = given[0, columns]
        pairs[f", only {', '.join(model.columns.names[one] for one in columns)}"] = moved
    for suffix, pair in pairs.items():
        (first, of_first), (second, of_second) = _averages(model, pair)
        drawn = [of_first, of_second]
        new = _new_averages(model, pair, drawn)
        if not suffix:
            for name, mean, *both in zip("AB", (first, second), drawn, new, strict=True):
                rows.append((name, *_signed(mean, *both)[:-1], np.nan))
        changes = [one[0] - one[1] for one in (drawn, new)]
        rows.append((f"A - B{suffix}", *_signed(first - second, *changes)))
        if model.scale.name == "log" and not model.scale.offset:  # predictions are positive
            with np.errstate(divide="ignore", invalid="ignore"):  # a new count may be zero
                log, *logs = (np.log(one[0] / one[1]) for one in ((first, second), drawn, new))
            logs[1:] = [one if np.isfinite(one).all() else one[:1] * np.nan for one in logs[1:]]
            *ends, probability = _signed(float(log), *logs)
            rows.append((f"A / B{suffix}", *np.exp(ends).tolist(), probability))
    return Table.of_rows(
        ("quantity", "estimate", "low", "high", "new_low", "new_high", "probability"), rows
    )


def _new_averages(
    model: FittedModel, pair: Sequence[FloatArray], drawn: Sequence[FloatArray]
) -> list[FloatArray]:
    """Draw averages (n_draws,) of new observations, given draws without noise."""
    rng, n = np.random.default_rng(0), len(pair[0])
    if model.transformed.has_counts and sum(map(len, pair)) <= MAX_ROWS:  # others are normal
        counts = model.samples(np.concatenate(pair), N_DRAWS, 0)
        return [counts[:n].mean(axis=0), counts[n:].mean(axis=0)]
    every = zip(drawn, pair, strict=True)
    return [one + _noise(model, X) * rng.normal(size=N_DRAWS) for one, X in every]


def _noise(model: FittedModel, X: FloatArray) -> float:
    """Compute the standard deviation of the average noise of new observations (n,)."""
    stds = [model.mean_and_std(X, noise=noise)[1] for noise in (True, False)]
    variance = np.maximum(stds[0] ** 2 - stds[1] ** 2, 0.0)
    return float(np.sqrt(variance.mean() / len(X)))


def average_slopes(
    model: FittedModel, X: FloatArray, column: str | int, by: str | int | None
) -> Table:
    """Compute the average slope of the mean along a column of numbers, over groups of rows.

    Along a column of few values it is the change between the values on both sides.
    """
    number, rows = _column_of_slopes(model, column), list[tuple[object, ...]]()
    for name, some in [("all", X)] if by is None else _rows_of_each(model, X, by):
        if number not in model.used_columns:
            rows.append((name, *NO_SLOPE))
            continue
        moved, widths = _moved(model, some, number)
        (lower, of_lower), (upper, of_upper) = _averages(model, moved, 1 / widths)
        rows.append((name, *_signed(upper - lower, of_upper - of_lower)))
    return Table.of_rows(("rows", *ESTIMATE), rows)


def slopes_at(model: FittedModel, X: FloatArray, column: str | int) -> Table:
    """Compute the slope of the mean along a column of numbers at each row."""
    number, found = _column_of_slopes(model, column), list[tuple[float, ...]]()
    is_used = number in model.used_columns
    for rows in gen_batches(len(X), MAX_ROWS // 2):
        (lower, upper), widths = _moved(model, X[rows], number)
        both = np.concatenate([lower, upper])
        mean, draws = model.mean(both), model.draws_of_mean(both, N_DRAWS)
        (first, second), drawn = np.split(mean, 2), np.split(draws, 2, axis=1)
        of_rows = zip((second - first) / widths, ((drawn[1] - drawn[0]) / widths).T, strict=True)
        found += [_signed(*one) if is_used else NO_SLOPE for one in of_rows]
    return Table.of_rows(("rows", *ESTIMATE), ((n, *one) for n, one in enumerate(found)))


def _column_of_slopes(model: FittedModel, column: str | int) -> int:
    number = model.columns.index_of(column, argument="column")
    if model.columns[number].levels is not None:
        raise ValueError(
            f"slopes takes a column of numbers or dates, got {column!r}, which holds "
            "categories: compare takes two groups of rows"
        )
    return number


def _moved(model: FittedModel, X: FloatArray, number: int) -> tuple[list[FloatArray], FloatArray]:
    """Return rows at both ends of a step along a column, and the lengths (n,) of the steps.

    The ends are neighbours of the values of a column that has few.
    """
    filled = model.filled(X)  # two draws of a missing value would differ
    own, x = model.columns[number], filled[:, number]
    values = own.low + own.extent * np.unique(model.mixture.data.inputs.filled[:, number])
    ends = [x - STEP * own.extent, x + STEP * own.extent]
    if 2 <= len(values) <= MAX_VALUES:
        last = len(values) - 1
        before = np.clip(np.searchsorted(values, x, side="left") - 1, 0, last - 1)
        after = np.clip(np.searchsorted(values, x, side="right"), before + 1, last)
        ends = [values[before], values[after]]
    moved = [np.insert(np.delete(filled, number, 1), number, end, axis=1) for end in ends]
    return moved, ends[1] - ends[0]


def _rows_of_each(
    model: FittedModel, X: FloatArray, by: str | int
) -> Iterator[tuple[Hashable, FloatArray]]:
    """Yield the rows of each value or level of a column, and those without one, with a name."""
    column = model.columns.index_of(by, argument="by")
    axis, x = axes_of(model.columns, None)[0][column], X[:, column]
    values = np.unique(x[~np.isnan(x)])
    for name, value in zip(axis.names_of(values), values, strict=True):
        yield name, X[x == value]
    if np.isnan(x).any():
        yield "missing", X[np.isnan(x)]


def contributions(found: Decomposition, explained: ExplainedFunction, X: FloatArray) -> Table:
    """List the contributions of effects to the predictions of scaled rows, the largest first."""
    is_log = found.scale == "log"
    sizes = [np.abs(np.log(one.mean) if is_log else one.mean).mean() for one in found.components]
    n = len(sizes) - found.has_rest
    order = [*sorted(range(n), key=lambda one: -sizes[one]), *range(n, len(sizes))]
    every, ones = [found.components[one] for one in order], np.ones(len(X))
    means = np.array([found.constant * ones, *(one.mean for one in every)])
    named = {"identity": "prediction", "log": found.median}
    names = ["constant", *(one.name for one in every)]
    names.append(named.get(found.scale, f"{found.scale} of {found.centre}"))
    stds = [explained.std_of_constant() * ones, *(one.std for one in every[:n])]
    stds += [np.full(len(X), np.nan)] * found.has_rest + [explained.std_of_fit(X)]
    values = np.vstack([means, np.prod(means, axis=0) if is_log else means.sum(axis=0)]).T
    ends = (norm.ppf(end) * np.array(stds).T for end in INTERVAL_ENDS)
    low, high = (values * np.exp(end) if is_log else values + end for end in ends)
    columns = {"row": np.repeat(np.arange(len(X)), len(names))} if len(X) > 1 else {}
    columns |= {"effect": np.tile(names, len(X)), "contribution": values.ravel()}
    return Table(columns | {"low": low.ravel(), "high": high.ravel()})


def _averages(
    model: FittedModel, sides: Sequence[FloatArray], factors: FloatArray | None = None
) -> list[tuple[float, FloatArray]]:
    """Average the predictions of each of several tables, with joint draws from some rows of each.

    Returns each average with its draws (n_draws,). Rows may be multiplied by factors (n,). The same
    rows of tables of one length are drawn. A row that is in several tables is drawn once: its
    missing values are the same in all.
    """
    chosen = [np.linspace(0, len(X) - 1, min(len(X), MAX_ROWS)).astype(int) for X in sides]
    some = [X[rows] for X, rows in zip(sides, chosen, strict=True)]
    numbered = np.concatenate([np.column_stack([X, _occurrences(X)]) for X in some])
    _, first, inverse = np.unique(
        np.nan_to_num(numbered, nan=np.inf), axis=0, return_index=True, return_inverse=True
    )
    X = numbered[first, :-1]
    mean, draws = model.mean(X), model.draws_of_mean(X, N_DRAWS)
    found, ends = [], np.cumsum([len(one) for one in some])[:-1]
    for every, of_side, rows in zip(sides, chosen, np.split(inverse, ends), strict=True):
        each = np.ones(len(every)) if factors is None else factors
        average = float(np.mean(model.mean(every) * each))
        changes = (draws[:, rows] - mean[rows]) @ each[of_side] / len(rows)
        found.append((average, changes + average))
    return found


def _occurrences(X: FloatArray) -> IntArray:
    """Count for each row (n,) how many equal ones are before it."""
    before: defaultdict[bytes, Iterator[int]] = defaultdict(count)
    return np.array([next(before[row.tobytes()]) for row in X])


def _signed(estimate: float, *draws: FloatArray) -> tuple[float, ...]:
    """Return an estimate with its intervals, and the probability of its sign, nan if it is zero."""
    sure = float(np.mean(draws[0] * estimate > 0)) if estimate else np.nan
    return estimate, *(end for one in draws for end in interval(one).tolist()), sure
