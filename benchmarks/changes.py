"""Searches with and without change-points on series that have a break.

``call_centre``: the charge for calls to directory assistance of March 1974, in the first 162
months; the other 18 are forecast. ``solar``: the Maunder minimum, about 1645 to 1715, in 402 years.
``places`` are the edges of the parts that the best kernel has, in years.

Rows go to results/changes.csv.

    AUTOKERNEL_DATA=folder python benchmarks/changes.py      # half an hour
    AUTOKERNEL_DATA=folder python benchmarks/changes.py --small
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from common import (  # isort: skip
    Row,
    make_parser,
    parse,
    print_environment,
    print_table,
    rounded,
    run_missing,
)
from data import read_table  # isort: skip
from published import EXTRAPOLATION_N_TRAIN  # isort: skip

import numpy as np

from autokernel import AutoKernelGPRegressor

NAME = "changes"  # of the CSV file
N_TRAIN = {"call_centre": EXTRAPOLATION_N_TRAIN["call_centre"], "solar": 402}
OPERATORS = {"off": ("+", "*"), "cp": ("+", "*", "cp"), "cp and cw": ("+", "*", "cp", "cw")}


@dataclass(frozen=True, slots=True)
class Unit:
    """What a row is measured for."""

    dataset: str
    changes: str
    seed: int
    n_iter: int


def measure(unit: Unit) -> Row:
    """Search, and forecast the rest of the series."""
    table = read_table(unit.dataset)
    n = N_TRAIN[unit.dataset]
    (X, X_test), (y, y_test) = (np.split(part, [n]) for part in (table[:, :1], table[:, 1]))
    model = AutoKernelGPRegressor(
        operators=OPERATORS[unit.changes], n_iter=unit.n_iter, random_state=unit.seed
    )
    began = time.perf_counter()
    model.fit(X, y)
    seconds = time.perf_counter() - began
    error = np.nan
    if len(X_test):
        error = float(np.sqrt(np.mean((model.predict(X_test) - y_test) ** 2)))
    return {
        "score": rounded(model.best_score_),
        "rmse": rounded(error),
        "places": " ".join(f"{place:.2f}" for place in places(model)),
        "seconds": rounded(seconds),
        "n_evaluations": len(model.search_history_["score"]),
        "kernel": model.best_expression_,
    }


def places(model: AutoKernelGPRegressor) -> list[float]:
    """Return the edges of all parts of the best kernel, without repetitions, in rising order."""
    found: set[float] = set()
    centre = 0.0
    table = model.parameters_
    for name, value in zip(table["parameter"], table["value"].tolist(), strict=True):
        if name == "location":
            found.add(value)
        elif name == "centre":
            centre = value
        elif name == "length":
            found |= {centre - value / 2, centre + value / 2}
    return sorted(found)


def summarise(rows: Sequence[Mapping[str, str]]) -> None:
    """Print a line for each search."""
    print_table(
        [
            {
                "series": row["dataset"],
                "changes": row["changes"],
                "seed": int(row["seed"]),
                **{name: float(row[name]) for name in ("score", "rmse", "seconds")},
                "places": row["places"],
            }
            for row in rows
        ]
    )


def main() -> None:
    """Measure what is missing, and print the table."""
    parser = make_parser(__doc__, datasets=list(N_TRAIN), seeds=3)
    parser.add_argument("--n-iter", type=int, default=50)
    arguments = parse(parser, small={"datasets": ["call_centre"], "seeds": 1, "n_iter": 5})
    print_environment()
    units = [
        Unit(dataset, changes, seed, arguments.n_iter)
        for seed in range(arguments.seeds)
        for dataset in arguments.datasets
        for changes in OPERATORS
    ]
    summarise(
        run_missing(NAME, units, measure, n_jobs=arguments.jobs, any_commit=arguments.any_commit)
    )


if __name__ == "__main__":
    main()
