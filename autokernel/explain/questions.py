"""Questions about a fitted function: differences between rows, and slopes along a column.

Answers are about the mean of the target given the function, without noise, so that they agree with
``predict``; their intervals hold the uncertainty of kernel, parameters and function.
"""

from collections import defaultdict
from collections.abc import Hashable, Iterator, Sequence
from itertools import count

import numpy as np
from scipy.stats import norm

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


def compared(model: FittedModel, A: FloatArray, B: FloatArray) -> Table:
    """Compare the average predictions at rows A (n, n_features) and B (m, n_features)."""
    (first, of_first), (second, of_second) = _averages(model, [A, B])
    rows = [
        ("A", first, *interval(of_first).tolist(), np.nan),
        ("B", second, *interval(of_second).tolist(), np.nan),
        ("A - B", *_signed(first - second, of_first - of_second)),
    ]
    if model.scale.name == "log" and not model.scale.offset:  # where predictions are positive
        *ends, probability = _signed(np.log(first / second), np.log(of_first / of_second))
        rows.append(("A / B", *np.exp(ends).tolist(), probability))
    return Table.of_rows(("quantity", *ESTIMATE), rows)


def average_slopes(
    model: FittedModel, X: FloatArray, column: str | int, by: str | int | None
) -> Table:
    """Compute the average slope of the mean along a column of numbers, over groups of rows.

    Along a column of few values it is the change from each to the next: nothing is known between.
    """
    number, rows = model.columns.index_of(column, argument="column"), list[tuple[object, ...]]()
    if model.columns[number].levels is not None:
        raise ValueError(
            f"slopes takes a column of numbers or dates, got {column!r}, which holds "
            "categories: compare takes two groups of rows"
        )
    is_used = any(number in one.expression.columns for one in model.mixture.components)
    for name, some in [("all", X)] if by is None else _rows_of_each(model, X, by):
        if not is_used:
            rows.append((name, 0.0, 0.0, 0.0, np.nan))
            continue
        filled = model.filled(some)  # two draws of a missing value would differ
        ends = _around(model, filled[:, number], number)
        moved = [np.insert(np.delete(filled, number, 1), number, end, axis=1) for end in ends]
        (lower, of_lower), (upper, of_upper) = _averages(model, moved, 1 / (ends[1] - ends[0]))
        rows.append((name, *_signed(upper - lower, of_upper - of_lower)))
    return Table.of_rows(("rows", *ESTIMATE), rows)


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


def _around(model: FittedModel, x: FloatArray, column: int) -> tuple[FloatArray, FloatArray]:
    """Return places (n,) around values of a column, neighbours of them if it has few values."""
    own = model.columns[column]
    values = own.low + own.extent * np.unique(model.mixture.data.inputs.filled[:, column])
    if not 2 <= len(values) <= MAX_VALUES:
        return x - STEP * own.extent, x + STEP * own.extent
    place = np.clip(np.searchsorted(values, x, side="right"), 1, len(values) - 1)
    return values[place - 1], values[place]


def contributions(found: Decomposition, explained: ExplainedFunction, X: FloatArray) -> Table:
    """List the contributions of effects to the prediction of a scaled row, the largest first."""
    is_log = found.scale == "log"
    n = len(found.components) - found.has_rest
    every = [(one.name, float(one.mean[0]), float(one.std[0])) for one in found.components]
    effects, rest = every[:n], [(name, mean, np.nan) for name, mean, _ in every[n:]]
    effects.sort(key=lambda one: -abs(np.log(one[1]) if is_log else one[1]))
    rows = [("constant", found.constant, explained.std_of_constant()), *effects, *rest]
    means = [mean for _, mean, _ in rows]
    whole = float(np.prod(means) if is_log else np.sum(means))
    named = {"identity": "prediction", "log": found.median}
    last = named.get(found.scale, f"{found.scale} of median")
    rows.append((last, whole, float(explained.std_of_fit(X)[0])))
    names, values, stds = zip(*rows, strict=True)
    ends = [norm.ppf(end) * np.array(stds) for end in INTERVAL_ENDS]
    low, high = (values * np.exp(end) if is_log else values + end for end in ends)
    table = zip(names, values, low, high, strict=True)
    return Table.of_rows(("effect", "contribution", "low", "high"), table)


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


def _signed(estimate: float, draws: FloatArray) -> tuple[float, ...]:
    """Return an estimate with its interval, and the probability of its sign, nan if it is zero."""
    sure = float(np.mean(draws * estimate > 0)) if estimate else np.nan
    return estimate, *interval(draws).tolist(), sure
