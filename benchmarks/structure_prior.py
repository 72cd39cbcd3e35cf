"""How strong the prior over structures should be, on data that no other benchmark uses.

Random splits of 100 to 120 rows of larger sets, of a series and of a function (Friedman 1 with
three columns that it does not use), and the end of a part of the series. The default search runs
with the grammar prior to the power of each strength. Errors are on the scale of the whole set; NLL
is that of the mixture that predicts, in nats per test row.

Rows go to results/structure_prior.csv; those of the current commit are not measured again.

    AUTOKERNEL_DATA=folder python benchmarks/structure_prior.py --jobs 2     # an hour of CPU time
    python benchmarks/structure_prior.py --small
"""

import gzip
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from unittest import mock

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
    standard_error,
)
from data import path_of  # isort: skip
from runs import Split  # isort: skip

import numpy as np
from sklearn.datasets import make_friedman1

from autokernel import AutoKernelGPRegressor, parse_expression
from autokernel.expression import grammar_prior

NAME = "structure_prior"  # of the CSV file
STRENGTHS = (0.25, 0.5, 1.0)
FRIEDMAN = "friedman"
N_TEST = 400
TABLES = {"kin40k": 120, "protein": 120, "boston_housing": 120, "elevators": 120}
SERIES = {
    "methane": 100,
    "methane, end": 100,
}  # all others are in the forecasts of extrapolation.py
N_TRAIN = {FRIEDMAN: 100, **TABLES, **SERIES}


@dataclass(frozen=True, slots=True)
class Fit:
    """What a row is measured for."""

    dataset: str
    strength: float
    seed: int


def read(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Read a set: inputs scaled to the unit interval and target standardised."""
    path = path_of(f"{name}.csv")
    packed = path.with_suffix(".csv.gz")
    with (
        gzip.open(packed, "rt", encoding="utf-8")
        if packed.exists()
        else path.open(encoding="utf-8") as file
    ):
        header = file.readline().strip().split(",")
        table = np.loadtxt(file, delimiter=",")
    if header[-1] == "test_split0":
        table = table[:, :-1]
    X, y = table[:, :-1], table[:, -1]
    extent = np.ptp(X, axis=0)
    return (X - X.min(axis=0)) / np.where(extent > 0, extent, 1.0), (y - y.mean()) / y.std()


def draw(unit: Fit) -> Split:
    """Draw the rows to train on and to test on."""
    n = N_TRAIN[unit.dataset]
    rng = np.random.default_rng(1000 + unit.seed)
    name, _, end = unit.dataset.partition(", ")
    if name == FRIEDMAN:
        X, y = make_friedman1(n + N_TEST, n_features=8, noise=1.0, random_state=100 + unit.seed)
        y = (y - y.mean()) / y.std()
    else:
        X, y = read(name)
    if end:
        start = int(rng.integers(max(1, len(y) - n - n // 5)))
        rows = np.arange(start, start + n + n // 5)
    else:
        rows = rng.permutation(len(y))[: n + N_TEST]
    train, test = rows[:n], rows[n:]
    return Split(X[train], y[train], X[test], y[test])


def measure(unit: Fit) -> Row:
    """Fit with a prior of one strength, and measure test errors."""
    split = draw(unit)
    prior = partial(grammar_prior, strength=unit.strength)
    began = time.process_time()
    with mock.patch("autokernel.fit.run.grammar_prior", prior):
        model = AutoKernelGPRegressor(random_state=unit.seed).fit(split.X_train, split.y_train)
    seconds = time.process_time() - began
    log_density = model.log_predictive_density(split.X_test, split.y_test)
    residual = model.predict(split.X_test) - split.y_test
    low, high = model.predict_interval(split.X_test).T
    return {
        "nll": rounded(-float(np.mean(log_density))),
        "rmse": rounded(float(np.sqrt(np.mean(residual**2)))),
        "coverage": rounded(float(np.mean((low < split.y_test) & (split.y_test < high)))),
        "n_leaves": parse_expression(model.best_expression_).n_leaves,
        "cpu_seconds": rounded(seconds),
        "kernel": model.best_expression_,
    }


def summarise(rows: Sequence[Mapping[str, str]]) -> None:
    """Print the errors by data set and strength, and their differences from the default."""
    by_strength = group(rows, lambda row: row["strength"])
    default = numbers(by_strength["0.5"], "nll") if "0.5" in by_strength else None
    for strength, found in by_strength.items():
        print(f"\nstrength {strength}")
        print_table(
            [
                {
                    "dataset": dataset,
                    **{
                        name: float(np.mean(numbers(some, name)))
                        for name in ("nll", "rmse", "coverage", "n_leaves", "cpu_seconds")
                    },
                }
                for dataset, some in group(found, lambda row: row["dataset"]).items()
            ]
        )
        if default is not None:
            less = numbers(found, "nll") - default
            print(f"NLL less that at 0.5: {less.mean():.4f} ± {standard_error(less):.4f}")


def main() -> None:
    """Measure what is missing and print the tables."""
    parser = make_parser(__doc__, datasets=list(N_TRAIN), seeds=3)
    parser.add_argument("--strengths", nargs="+", type=float, default=list(STRENGTHS))
    arguments = parse(parser, small={"datasets": [FRIEDMAN], "strengths": [0.5]})
    print_environment()
    units = [
        Fit(dataset, strength, seed)
        for seed in range(arguments.seeds)
        for strength in arguments.strengths
        for dataset in arguments.datasets
    ]
    any_commit = arguments.any_commit
    summarise(run_missing(NAME, units, measure, n_jobs=arguments.jobs, any_commit=any_commit))


if __name__ == "__main__":
    main()
