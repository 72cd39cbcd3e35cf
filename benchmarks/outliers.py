"""Which rows are taken for outliers, where there are some and where there are none.

Errors are those of rows to test on, which have no outliers, on the scale of the target that is
standardised over these rows. A ``share`` of the rows to train on is off by 5 to 15 standard
deviations of the target, without its noise if it is simulated, in either direction. Modes are
``auto``, the default; ``none``, with ``outliers=None``; and ``huber``, additive splines that are
fitted with Huber's loss, which scikit-learn has. Tasks:

- ``fits``: fits of both kinds of data. Each is compared with that of ``none`` to the same rows
  without outliers.
- ``example``: six of 120 rows of a wave are off by 150 standard deviations of its noise.
- ``rows``: only which rows are excluded, by a kernel that is given, for noise of several
  distributions. Nothing should be excluded if ``share`` is zero.

Rows go to results/outliers.csv and results/outliers_rows.csv, and rows of any commit count.

    AUTOKERNEL_DATA=folder python benchmarks/outliers.py --jobs 2     # hours of CPU time
    AUTOKERNEL_DATA=folder python benchmarks/outliers.py --task rows --seeds 10
    python benchmarks/outliers.py --task example
    python benchmarks/outliers.py --small
"""

import argparse
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from common import (  # isort: skip
    Row,
    group,
    make_parser,
    numbers,
    parse,
    print_environment,
    print_table,
    read_rows,
    rounded,
    run_missing,
    standard_error,
)
from scale_sets import SETS, of_file  # isort: skip

import numpy as np
from sklearn.linear_model import HuberRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import SplineTransformer, StandardScaler

from autokernel import AutoKernelGPRegressor

NAME, OF_ROWS = "outliers", "outliers_rows"  # of the CSV files
FILES = ("power_plant", "concrete", "airfoil", "airline", "solar")
TAILS = ("boston", "diabetes", "engel", "cancer", "sunspots", "wages", "gas_production")
SHARE = 0.05
LEAST, MOST = 5.0, 15.0  # standard deviations, by which outliers are off
N_TEST = 400  # rows of a simulation
MODES = ("none", "auto", "huber")
NOISES: Mapping[str, Callable[[np.random.Generator, int], np.ndarray]] = {
    "normal": lambda rng, n: rng.standard_normal(n),
    "t3": lambda rng, n: rng.standard_t(3, n),
    "t5": lambda rng, n: rng.standard_t(5, n),
    "exponential": lambda rng, n: rng.exponential(size=n) - 1,
}


class Simulation(NamedTuple):
    """A function and the standard deviation of its noise."""

    n_features: int
    function: Callable[[np.ndarray], np.ndarray]  # of inputs in the unit interval
    noise: float
    is_log: bool = False  # whether the target is the exponential of the function with noise


SIMULATED = {
    "wave": Simulation(1, lambda X: 2 * np.sin(10 * X[:, 0]) + 3 * X[:, 0], 0.1),
    "season": Simulation(1, lambda X: 4 * X[:, 0] + 2 * np.sin(63 * X[:, 0]), 0.4),
    "surface": Simulation(2, lambda X: np.sin(8 * X[:, 0]) + np.cos(6 * X[:, 1]), 0.3),
    "plane": Simulation(3, lambda X: 3 * X[:, 0] - 2 * X[:, 1], 0.5),
    "friedman": Simulation(10, lambda X: friedman(X), 1.0),
    "growth": Simulation(1, lambda X: 2 * X[:, 0] + np.sin(8 * X[:, 0]), 0.3, is_log=True),
    "sawtooth": Simulation(1, lambda X: (5 * X[:, 0]) % 1, 0.05),
}


class Split(NamedTuple):
    """Rows to train on, with the outliers among them, and rows to test on."""

    X: np.ndarray
    y: np.ndarray
    outliers: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray


@dataclass(frozen=True, slots=True)
class Fit:
    """What a row is measured for."""

    label: str
    dataset: str
    n_train: int
    share: float
    seed: int
    n_iter: int
    mode: str


@dataclass(frozen=True, slots=True)
class Case:
    """Rows whose outliers are looked for."""

    label: str
    dataset: str
    n_train: int
    share: float
    seed: int
    noise: str


def friedman(X: np.ndarray) -> np.ndarray:
    """Compute the first function of Friedman (1991)."""
    first = 10 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20 * (X[:, 2] - 0.5) ** 2
    return first + 10 * X[:, 3] + 5 * X[:, 4]


def split(dataset: str, n_train: int, share: float, seed: int, noise: str = "normal") -> Split:
    """Draw rows to train and to test on, and move some of the former."""
    rng = np.random.default_rng([seed, n_train])
    if dataset in SIMULATED:
        one, n = SIMULATED[dataset], n_train + N_TEST
        X = rng.uniform(size=(n, one.n_features))
        clean = one.function(X)
        y = clean + one.noise * NOISES[noise](rng, n)
        if one.is_log:
            clean, y = np.exp(clean), np.exp(y)
    else:
        table = SETS[dataset][0]() if dataset in SETS else of_file(dataset)
        order = rng.permutation(len(table.y))
        X, y = table.X.to_numpy(float)[order], np.asarray(table.y, float)[order]
        n_train = min(n_train, int(0.8 * len(y)))
        clean = y
    outliers = np.sort(rng.choice(n_train, round(share * n_train), replace=False))
    y_train = y[:n_train].copy()
    by = rng.uniform(LEAST, MOST, len(outliers)) * rng.choice([-1.0, 1.0], len(outliers))
    y_train[outliers] += clean[:n_train].std() * by
    return Split(X[:n_train], y_train, outliers, X[n_train:], y[n_train:])


def measure(unit: Fit) -> Row:
    """Fit one split and measure its errors."""
    data = split(unit.dataset, unit.n_train, unit.share, unit.seed)
    began = time.process_time()
    found = np.empty(0)
    row: dict[str, object] = {"nll": "", "coverage": "", "kernel": ""}
    if unit.mode == "huber":
        splines = SplineTransformer(n_knots=8, extrapolation="linear")
        model = make_pipeline(StandardScaler(), splines, HuberRegressor(alpha=0.1, max_iter=5000))
        model.fit(data.X, data.y)
    else:
        outliers = "auto" if unit.mode == "auto" else None
        model = AutoKernelGPRegressor(
            n_iter=unit.n_iter, random_state=unit.seed, outliers=outliers
        ).fit(data.X, data.y)
        std = data.y_test.std()
        density = model.log_predictive_density(data.X_test, data.y_test)
        low, high = model.predict_interval(data.X_test).T
        row = {
            "nll": rounded(-float(np.mean(density)) - np.log(std)),
            "coverage": rounded(float(np.mean((low <= data.y_test) & (data.y_test <= high)))),
            "kernel": model.best_expression_,
        }
        found = model.outliers_
    seconds = time.process_time() - began
    error = (model.predict(data.X_test) - data.y_test) / data.y_test.std()
    rmse = float(np.sqrt(np.mean(error**2)))
    return {"rmse": rounded(rmse), **row, **counts(found, data), "cpu_seconds": rounded(seconds)}


def counts(found: np.ndarray, data: Split) -> dict[str, object]:
    """Count the rows that are excluded, rightly and wrongly."""
    named = len(np.intersect1d(found, data.outliers))
    return {
        "n_rows": len(data.y),
        "n_outliers": len(data.outliers),
        "named": named,
        "wrong": len(found) - named,
    }


def look(case: Case) -> Row:
    """Find outliers by a smooth kernel of all columns."""
    data = split(case.dataset, case.n_train, case.share, case.seed, case.noise)
    kernel = " * ".join(f"SE[{column}]" for column in range(data.X.shape[1]))
    model = AutoKernelGPRegressor(averaging=None, random_state=case.seed)
    began = time.process_time()
    model.refit(data.X, data.y, kernel)
    return {**counts(model.outliers_, data), "cpu_seconds": rounded(time.process_time() - began)}


def example(n_seeds: int) -> None:
    """Print whether the six rows of the example are found, seed by seed."""
    lines: list[Mapping[str, object]] = []
    for seed in range(n_seeds):
        rng = np.random.default_rng(seed)
        X = rng.uniform(0, 10, size=(120, 1))
        f = 2 * np.sin(X[:, 0]) + 0.3 * X[:, 0]
        rows = np.sort(rng.choice(120, 6, replace=False))
        y = f + 0.1 * rng.standard_normal(120)
        y[rows] += 15 * rng.choice([-1, 1], 6)
        for outliers in (None, "auto"):
            model = AutoKernelGPRegressor(random_state=seed, outliers=outliers).fit(X, y)
            grid = np.linspace(0, 10, 200)[:, None]
            error = model.predict(grid) - 2 * np.sin(grid[:, 0]) - 0.3 * grid[:, 0]
            lines.append(
                {
                    "seed": seed,
                    "outliers": str(outliers),
                    "exactly the six": np.array_equal(model.outliers_, rows),
                    "rmse": float(np.sqrt(np.mean(error**2))),
                    "kernel": model.best_expression_,
                }
            )
    print_table(lines)


def summarise(rows: Sequence[Mapping[str, str]]) -> None:
    """Print errors relative to fits without outliers, set by set and over all."""
    for label, of_label in group(rows, lambda row: row["label"]).items():
        clean = {
            key_of(row): row
            for row in of_label
            if row["mode"] == "none" and not float(row["share"])
        }
        by_kind = group(of_label, lambda row: (float(row["share"]), row["mode"]))
        for (share, mode), found in sorted(by_kind.items()):
            pairs = [(row, clean[key_of(row)]) for row in found if key_of(row) in clean]
            if pairs and (share, mode) != (0.0, "none"):
                print(f"\n{label}, {share:.0%} outliers, {mode}")
                by_set = group(pairs, lambda pair: f"{pair[0]['dataset']}, {pair[0]['n_train']}")
                lines = [compare(name, of_set) for name, of_set in by_set.items()]
                print_table([*lines, compare("all", pairs)])


def key_of(row: Mapping[str, str]) -> tuple[str, ...]:
    """Name the split of a row."""
    return row["dataset"], row["n_train"], row["seed"], row["n_iter"]


def compare(name: str, pairs: Sequence[tuple[Mapping[str, str], ...]]) -> dict[str, object]:
    """Compute a line of the table."""
    new, old = ([pair[side] for pair in pairs] for side in (0, 1))
    ratios = np.log(numbers(new, "rmse") / numbers(old, "rmse"))
    line: dict[str, object] = {
        "set": name,
        "splits": len(pairs),
        "rmse ratio": float(np.exp(ratios.mean())),
        "largest": float(np.exp(ratios.max())),
    }
    if all(row["nll"] for row in new):
        less = numbers(new, "nll") - numbers(old, "nll")
        line |= {
            "nll less": f"{less.mean():.4f} ± {standard_error(less):.4f}",
            "coverage": float(numbers(new, "coverage").mean()),
            **found_in(new),
            "cpu ratio": float(
                numbers(new, "cpu_seconds").sum() / numbers(old, "cpu_seconds").sum()
            ),
        }
    return line


def found_in(rows: Sequence[Mapping[str, str]]) -> dict[str, object]:
    """Sum up which outliers are named, and how many other rows are excluded."""
    n, k, named, wrong = (
        numbers(rows, one).sum() for one in ("n_rows", "n_outliers", "named", "wrong")
    )
    return {
        "named": f"{named:.0f} of {k:.0f}",
        "wrong": f"{wrong:.0f} of {n - k:.0f}",
        "wrong share": float(wrong / (n - k)),
    }


def summarise_rows(rows: Sequence[Mapping[str, str]]) -> None:
    """Print which rows are excluded, by set and by noise."""
    for (label, share), found in group(rows, lambda row: (row["label"], row["share"])).items():
        print(f"\n{label}, {float(share):.0%} outliers")
        by_set = group(found, lambda row: (row["dataset"], row["noise"]))
        lines = [
            {
                "set": f"{dataset} {noise}",
                "cases": len(of_set),
                "with any": sum(int(row["named"]) + int(row["wrong"]) > 0 for row in of_set),
                **found_in(of_set),
            }
            for (dataset, noise), of_set in by_set.items()
        ]
        with_any = sum(int(line["with any"]) for line in lines)
        total = {"set": "all", "cases": len(found), "with any": with_any}
        print_table([*lines, {**total, **found_in(found)}])


def ask() -> argparse.Namespace:
    """Parse the options."""
    names = [*FILES, *SIMULATED]
    parser = make_parser(__doc__, datasets=[*names, *TAILS], seeds=2)
    parser.add_argument("--label", default="now", help="name of the version that runs")
    parser.add_argument("--task", default="fits", choices=["fits", "rows", "example"])
    parser.add_argument("--n-iter", type=int, default=50)
    parser.add_argument("--n-train", type=int, nargs="+", default=[120])
    parser.add_argument("--shares", type=float, nargs="+", default=[0.0, SHARE])
    parser.add_argument("--summary", action="store_true", help="what has rows, and no new runs")
    return parse(parser, small={"datasets": ["wave"], "seeds": 1, "n_iter": 2, "n_train": [60]})


def main() -> None:
    """Measure what is missing and print the tables."""
    arguments = ask()
    print_environment()
    if arguments.task == "example":
        example(arguments.seeds)
        return
    splits = [
        (arguments.label, dataset, n_train, share, seed)
        for seed in range(arguments.seeds)
        for dataset in arguments.datasets
        for n_train in arguments.n_train
        for share in arguments.shares
    ]
    if arguments.task == "rows":
        units = [
            Case(*one, noise)
            for one in splits
            for noise in (NOISES if one[1] in SIMULATED else ["normal"])
        ]
        name, run, summary = OF_ROWS, look, summarise_rows
    else:
        units = [Fit(*one, arguments.n_iter, mode) for one in splits for mode in MODES]
        name, run, summary = NAME, measure, summarise
    if not arguments.summary:
        run_missing(name, units, run, n_jobs=arguments.jobs, any_commit=True)
    summary(read_rows(name))


if __name__ == "__main__":
    main()
