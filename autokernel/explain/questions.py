"""Questions about a fitted function: differences between rows, and slopes along a column.

Answers are about the mean of the target given the function, without noise, so that they agree with
``predict``; their intervals hold the uncertainty of kernel, parameters and function.
"""

from collections.abc import Hashable, Sequence

import numpy as np
from scipy.stats import norm

from autokernel.explain.decomposition import Component, Decomposition
from autokernel.explain.tables import Table
from autokernel.explain.words import INTERVAL_ENDS, interval
from autokernel.model import FittedModel
from autokernel.typing import FloatArray

N_DRAWS = 2000  # of the function
MAX_ROWS = 500  # of each side, of which values are drawn together
STEP = 1e-5  # to either side for a slope, in extents of the column

Side = tuple[float, FloatArray]
"""An average prediction, and draws (n_draws,) of it."""


def compared(model: FittedModel, A: FloatArray, B: FloatArray) -> Table:
    """Compare the average predictions at rows A (n, n_features) and B (m, n_features)."""
    (first, of_first), (second, of_second) = _averages(model, [A, B])
    rows = [
        ("A", first, *_ends(of_first), np.nan),
        ("B", second, *_ends(of_second), np.nan),
        ("A - B", *_signed((first - second, of_first - of_second))),
    ]
    if model.scale.name == "log":  # where predictions are positive
        ratio = np.log(first / second), np.log(of_first / of_second)
        *ends, probability = _signed(ratio)
        rows.append(("A / B", *np.exp(ends).tolist(), probability))
    return _table("quantity", rows)


def average_slopes(
    model: FittedModel, groups: Sequence[tuple[Hashable, FloatArray]], column: int
) -> Table:
    """Compute the average slope of the mean along a column of numbers, over groups of rows."""
    step = STEP * model.columns[column].extent
    rows = []
    for name, X in groups:
        ends = []
        for sign in (1, -1):
            moved = model.filled(X)  # two draws of a missing value would differ
            moved[:, column] += sign * step
            ends.append(moved)
        (upper, of_upper), (lower, of_lower) = _averages(model, ends)
        slope = (upper - lower) / (2 * step), (of_upper - of_lower) / (2 * step)
        rows.append((name, *_signed(slope)))
    return _table("rows", rows)


def contributions(found: Decomposition) -> Table:
    """List the contributions of effects to the prediction of a row, the largest first."""
    is_log = found.scale == "log"

    def row(one: Component) -> tuple[str, float, float, float]:
        std = float(one.std[0]) if one.columns else np.nan
        mean, half = float(one.mean[0]), float(norm.ppf(INTERVAL_ENDS[1])) * std
        if is_log:
            return one.name, mean, mean / np.exp(half), mean * np.exp(half)
        return one.name, mean, mean - half, mean + half

    n = len(found.components) - found.has_rest
    effects, rest = map(row, found.components[:n]), list(map(row, found.components[n:]))
    ordered = sorted(effects, key=lambda one: -abs(np.log(one[1]) if is_log else one[1]))
    rows = [("constant", found.constant, np.nan, np.nan), *ordered, *rest]
    every = [one[1] for one in rows]
    whole = float(np.prod(every) if is_log else np.sum(every))
    last = {"identity": "prediction", "log": "median"}.get(found.scale, f"{found.scale} of median")
    rows.append((last, whole, np.nan, np.nan))
    names = "effect", "contribution", "low", "high"
    return Table(dict(zip(names, map(list, zip(*rows, strict=True)), strict=True)))


def _averages(model: FittedModel, sides: Sequence[FloatArray]) -> list[Side]:
    """Average the predictions of each of several tables, with joint draws from some rows of each.

    The same rows of tables of one length are drawn.
    """
    some = [X[np.linspace(0, len(X) - 1, min(len(X), MAX_ROWS)).astype(int)] for X in sides]
    X = np.concatenate(some)
    mean, draws = model.mean(X), model.draws_of_mean(X, N_DRAWS)
    found, ends = [], np.cumsum([len(one) for one in some])[:-1]
    of_sides = zip(sides, np.split(mean, ends), np.split(draws, ends, axis=1), strict=True)
    for every, of_some, drawn in of_sides:
        average = float(model.mean(every).mean())
        found.append((average, drawn.mean(axis=1) - of_some.mean() + average))
    return found


def _signed(side: Side) -> tuple[float, float, float, float]:
    """Return an estimate with its interval, and the probability of its sign."""
    estimate, draws = side
    low, high = _ends(draws)
    return estimate, low, high, float(np.mean(draws * estimate > 0))


def _ends(draws: FloatArray) -> tuple[float, float]:
    low, high = interval(draws).tolist()
    return low, high


def _table(first: str, rows: Sequence[tuple[object, ...]]) -> Table:
    names = (first, "estimate", "low", "high", "probability")
    return Table(dict(zip(names, map(list, zip(*rows, strict=True)), strict=True)))
