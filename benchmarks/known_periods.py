"""Forecasts of short series with and without the period that is known.

The first months of three monthly series are given, and the next twelve are forecast: airline and
the CO2 of Mauna Loa, which have a yearly season, and unemployment, whose season is weak. A period
of one year is known (``right``), or one of 1.3 years is said to be known (``wrong``), or none is.

Rows go to results/known_periods.csv.

    AUTOKERNEL_DATA=folder python benchmarks/known_periods.py      # ten minutes
    AUTOKERNEL_DATA=folder python benchmarks/known_periods.py --small
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from common import (  # isort: skip
    Row,
    group,
    make_parser,
    numbers,
    parse,
    print_environment,
    print_table,
    rounded,
    run_missing,
)
from data import read_table  # isort: skip

import numpy as np

from autokernel import AutoKernelGPRegressor

NAME = "known_periods"  # of the CSV file
PERIODS = {"none": None, "right": {0: 1.0}, "wrong": {0: 1.3}}
DATASETS = ("airline", "mauna", "unemployment")
SIZES = (18, 24, 36, 60)
N_TEST = 12


@dataclass(frozen=True, slots=True)
class Unit:
    """What a row is measured for."""

    dataset: str
    n_samples: int
    known: str
    seed: int


def measure(unit: Unit) -> Row:
    """Search on the first months, and forecast the next ones."""
    table = read_table(unit.dataset)[: unit.n_samples + N_TEST]
    (X, X_test), (y, y_test) = (
        np.split(part, [unit.n_samples]) for part in (table[:, :1], table[:, 1])
    )
    model = AutoKernelGPRegressor(
        periods=PERIODS[unit.known], n_iter=20, random_state=unit.seed
    ).fit(X, y)
    scale = y.std()
    density = model.log_predictive_density(X_test, y_test) + np.log(scale)
    return {
        "rmse": rounded(np.sqrt(np.mean((model.predict(X_test) - y_test) ** 2)) / scale),
        "nll": rounded(-density.mean()),
        "score": rounded(model.best_score_),
        "kernel": model.best_expression_,
    }


def summary(rows: Sequence[Mapping[str, str]]) -> list[Mapping[str, object]]:
    """Compute the medians over seeds and series, by size and by what is known."""
    table: list[Mapping[str, object]] = []
    for (size, known), of_one in group(rows, lambda row: (row["n_samples"], row["known"])).items():
        table.append(
            {
                "n_samples": int(size),
                "known": known,
                "rmse": rounded(np.median(numbers(of_one, "rmse"))),
                "nll": rounded(np.median(numbers(of_one, "nll"))),
            }
        )
    return table


def main() -> None:
    """Measure what is missing, and print all rows and their medians."""
    parser = make_parser(__doc__, datasets=DATASETS, seeds=3)
    arguments = parse(parser, small={"seeds": 1, "datasets": ["airline"]})
    print_environment()
    units = [
        Unit(dataset, size, known, seed)
        for dataset in arguments.datasets
        for size in SIZES
        for known in PERIODS
        for seed in range(arguments.seeds)
    ]
    rows = run_missing(NAME, units, measure, n_jobs=arguments.jobs, any_commit=arguments.any_commit)
    print_table(summary(rows))


if __name__ == "__main__":
    main()
