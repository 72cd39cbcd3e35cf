"""Rows that join a fit: the time of update and of refit, and bands over 24 months of series.

``time``: a season with a walk and noise, on rows of which the last ones join the fit of the others.
CPU seconds are medians of five calls, all of them in one run, and the ratio is that of update to
refit.

All others forecast the last 24 months of a monthly series, with the year as known period: ten of M3
that are drawn among those with 100 rows or more before these months, airline, and CO2. ``once``
forecasts all months from one fit, ``updated`` predicts each month after update with the last one,
and ``refitted`` after refit of the same kernel. MAE is relative to ``once``, as a geometric mean.

Rows go to results/updates.csv; rows of any commit count.

    AUTOKERNEL_DATA=folder python benchmarks/updates.py    # 4 minutes
"""

import time
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass

from common import (  # isort: skip
    Row,
    collect,
    group,
    make_parser,
    numbers,
    parse,
    print_table,
    rounded,
)
from forecasts import read_series  # isort: skip

import numpy as np

from autokernel import AutoKernelGPRegressor
from autokernel.datasets import load_airline, load_mauna_loa

NAME = "updates"  # of the CSV file
METHODS = ("once", "updated", "refitted")
TIME, ROWS, NEW = "time", (100, 300, 1000), (1, 10)
N_MONTHS, MIN_ROWS, N_SERIES = 24, 100, 10
N_CALLS = 5
OWN = {"airline": load_airline, "co2": load_mauna_loa}


@dataclass(frozen=True, slots=True)
class Updating:
    """What a row is measured for."""

    label: str
    method: str
    dataset: str
    n_rows: int  # of the fit, zero for those before the last months
    n_new: int  # that join in one call


def months(dataset: str) -> tuple[np.ndarray, np.ndarray, float]:
    """Return the inputs and targets of a monthly series, and the length of a year."""
    if dataset in OWN:
        return *OWN[dataset](return_X_y=True), 1.0
    series = read_series("m3-monthly")[int(dataset.removeprefix("m3-"))]
    y = np.concatenate([series.train, series.test])
    return np.arange(len(y))[:, None], y, 12.0


def chosen() -> list[str]:
    """Draw the series of M3."""
    lengths = [len(one.train) + len(one.test) for one in read_series("m3-monthly")]
    long = np.flatnonzero(np.array(lengths) - N_MONTHS >= MIN_ROWS)
    drawn = np.random.default_rng(0).permutation(long)[:N_SERIES]
    return [f"m3-{number}" for number in drawn]


def waves(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return a season with a walk and noise."""
    rng, x = np.random.default_rng(0), np.arange(n)
    walk = np.cumsum(0.1 * rng.normal(size=n))
    return x[:, None], 3 * np.sin(np.pi * x / 6) + walk + 0.3 * rng.normal(size=n)


def model_of(year: float) -> AutoKernelGPRegressor:
    """Return the estimator."""
    return AutoKernelGPRegressor(strategy="series", periods={0: year}, random_state=0)


def measure(unit: Updating) -> Row:
    """Measure one unit."""
    return of_time(unit) if unit.dataset == TIME else of_months(unit)


def of_time(unit: Updating) -> Row:
    """Compare the time of update and of refit."""
    X, y = waves(unit.n_rows + unit.n_new)
    model = model_of(12.0).fit(X[: unit.n_rows], y[: unit.n_rows])
    seconds: dict[str, list[float]] = {"update": [], "refit": []}
    for _ in range(N_CALLS):
        updated, refitted = deepcopy(model), deepcopy(model)
        updated.predict(X[:1])  # a copy factorises at its first prediction
        calls: dict[str, Callable[[], object]] = {
            "update": lambda one=updated: one.update(X[unit.n_rows :], y[unit.n_rows :]),
            "refit": lambda one=refitted: one.refit(X, y),
        }
        for name, call in calls.items():
            began = time.process_time()
            call()
            seconds[name].append(time.process_time() - began)
    update, refit = (float(np.median(seconds[name])) for name in ("update", "refit"))
    return {
        "inside": "",
        "mae": "",
        "seconds": rounded(update),
        "seconds_of_refit": rounded(refit),
        "n_outliers": len(updated.outliers_),
        "kernel": model.best_expression_,
    }


def of_months(unit: Updating) -> Row:
    """Forecast the last months of a series."""
    X, y, year = months(unit.dataset)
    n = len(y) - N_MONTHS
    model = model_of(year).fit(X[:n], y[:n])
    began = time.process_time()
    found = []
    for last in range(n, len(y)):
        if last > n and unit.method == "updated":
            model.update(X[last - 1 : last], y[last - 1 : last])
        elif last > n and unit.method == "refitted":
            model.refit(X[:last], y[:last])
        row = X[last : last + 1]
        found.append([*model.predict_interval(row)[0], model.predict(row)[0]])
    low, high, mean = np.array(found).T
    return {
        "inside": rounded(np.mean((low <= y[n:]) & (y[n:] <= high))),
        "mae": rounded(np.abs(y[n:] - mean).mean()),
        "seconds": rounded(time.process_time() - began),
        "seconds_of_refit": "",
        "n_outliers": len(model.outliers_),
        "kernel": model.best_expression_,
    }


def summarise(rows: Sequence[Mapping[str, str]]) -> None:
    """Print the times of update and refit, and the bands of the series by method."""
    parts = group(rows, lambda row: row["dataset"] == TIME)
    for of_time in (True,) * (True in parts):
        times = parts[of_time]
        print()
        print_table(
            [
                {
                    "rows": row["n_rows"],
                    "new": row["n_new"],
                    "update": float(row["seconds"]),
                    "refit": float(row["seconds_of_refit"]),
                    "ratio": float(row["seconds"]) / float(row["seconds_of_refit"]),
                }
                for row in times
            ]
        )
    by_method = group(parts.get(False, []), lambda row: row["method"])
    table = []
    for method, found in by_method.items():
        errors = numbers(found, "mae") / numbers(by_method["once"], "mae")
        table.append(
            {
                "method": method,
                "series": len(found),
                "inside": float(numbers(found, "inside").mean()),
                "least": float(numbers(found, "inside").min()),
                "MAE / once": float(np.exp(np.log(errors).mean())),
                "worst": float(errors.max()),
                "seconds": float(np.median(numbers(found, "seconds"))),
            }
        )
    if table:
        print()
        print_table(table)


def main() -> None:
    """Measure what is missing, and print the tables."""
    datasets = [TIME, *OWN, *chosen()]
    parser = make_parser(__doc__, datasets=datasets, seeds=1)
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=METHODS)
    parser.add_argument("--label", default="now")
    arguments = parse(parser, small={"datasets": [TIME, "airline"]})
    times = [
        Updating(arguments.label, "update", TIME, n_rows, n_new)
        for n_rows in ROWS
        for n_new in NEW
        if TIME in arguments.datasets
    ]
    others = [
        Updating(arguments.label, method, dataset, 0, 1)
        for dataset in arguments.datasets
        if dataset != TIME
        for method in arguments.methods
    ]
    summarise(collect(NAME, [*times, *others], measure, arguments, any_commit=True))


if __name__ == "__main__":
    main()
