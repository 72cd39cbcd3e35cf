"""Errors, time and memory of fits from five hundred to a million rows.

``friedman`` is Friedman's first function of ten columns, with noise of standard deviation one; its
RMSE, as all others, is in units of the standard deviation of the target, so that the noise alone
has 0.2. kin40k, protein and elevators are tested on the published split 0, the others on rows that
are drawn. The method ``autokernel`` is the default fit, ``n_iter=0`` one without a search,
``inducing`` and ``neighbours`` these approximations, ``exact`` the exact fit, all three of these
without a search, ``skc`` a greedy search of 15 kernels by bounds; ``boosting`` is scikit-learn's
histogram boosting, whose number of leaves, rate and number of trees are chosen by cross-validation;
its standard deviation is that of residuals held out. Each unit runs in a process of its own, whose
largest memory is measured.

Rows go to results/scaling.csv. Draws docs/figures/scaling.png, the growth of time and memory.

    AUTOKERNEL_DATA=folder python benchmarks/scaling.py --any-commit     # two hours
    python benchmarks/scaling.py --small
"""

import gzip
import json
import resource
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

from common import (  # isort: skip
    Row,
    collect,
    group,
    make_parser,
    numbers,
    parse,
    print_table,
    rounded,
    save_figure,
)
from data import path_of, read_table  # isort: skip
from runs import Split, normal_nll, rmse  # isort: skip

import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.model_selection import GridSearchCV, cross_val_predict

from autokernel import AutoKernelGPRegressor

NAME = "scaling"  # of the CSV file
GROWTH = [500, 1000, 2000, 4000, 8000, 16_000, 32_000, 64_000, 128_000]
PUBLISHED = ("kin40k", "protein", "elevators")
SETS = {
    "power_plant": 8000,
    "kin40k": 36_000,
    "protein": 41_157,
    "elevators": 14_939,
    "births_full": 4600,
    "temperature_full": 3285,
    "friedman": 100_000,
}
N_TEST = 5000  # most rows to test on
SETTINGS: Mapping[str, Mapping[str, object]] = {
    "autokernel": {},
    "n_iter=0": {"n_iter": 0},
    "inducing": {"n_iter": 0, "approximation": "inducing"},
    "neighbours": {"n_iter": 0, "approximation": "neighbours"},
    "skc": {"strategy": "skc", "n_iter": 15},
    "exact": {"n_iter": 0, "approximation": "exact"},
}
GRID = {"learning_rate": [0.03, 0.1], "max_leaf_nodes": [15, 31, 63], "max_iter": [500, 1500]}


@dataclass(frozen=True, slots=True)
class Unit:
    """What a row is measured for."""

    dataset: str
    n_train: int
    method: str
    seed: int


def measure(unit: Unit) -> Row:
    """Measure one unit in a process of its own."""
    command = [sys.executable, __file__, "--one", json.dumps(asdict(unit))]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return json.loads(done.stdout.splitlines()[-1])


def measure_here(unit: Unit) -> Row:
    """Fit and predict, with the time and the largest memory of this process."""
    split = draw_split(unit)
    began, cpu_began = time.perf_counter(), time.process_time()
    if unit.method == "boosting":
        predict, what, kernel = fit_boosting(split, seed=unit.seed)
    else:
        model = AutoKernelGPRegressor(random_state=unit.seed, **SETTINGS[unit.method])
        model.fit(split.X_train, split.y_train)
        what, kernel = getattr(model, "approximation_", "exact"), model.best_expression_

        def predict(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            return model.predict(X, return_std=True)

    seconds, cpu = time.perf_counter() - began, time.process_time() - cpu_began
    began = time.perf_counter()
    mean, std = predict(split.X_test)
    of_predict = time.perf_counter() - began
    away = np.abs(split.y_test - mean) / std
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return {
        "rmse": rounded(rmse(mean, split.y_test)),
        "nll": rounded(normal_nll(mean, std, split.y_test)),
        "coverage": rounded(float(np.mean(away < 1.96))),
        "seconds": rounded(seconds),
        "cpu_seconds": rounded(cpu),
        "predict_seconds": rounded(of_predict),
        "n_test": len(split.y_test),
        "gib": rounded(peak / 2**30),
        "approximation": what,
        "kernel": kernel,
    }


def draw_split(unit: Unit) -> Split:
    """Read or draw the data, and standardise the target by the rows to train on."""
    rng = np.random.default_rng(unit.seed)
    if unit.dataset == "friedman":
        X, y = draw_friedman(unit.n_train + N_TEST, rng)
        train, test = np.split(np.arange(len(y)), [unit.n_train])
    elif unit.dataset in PUBLISHED:
        path = path_of(f"{unit.dataset}.csv.gz")
        with gzip.open(path, "rt", encoding="utf-8") as file:
            table = np.loadtxt(file, delimiter=",", skiprows=1)
        X, y, is_test = table[:, :-2], table[:, -2], table[:, -1] == 1
        train, test = np.flatnonzero(~is_test)[: unit.n_train], np.flatnonzero(is_test)
    else:
        table = read_table(unit.dataset)
        X, y = table[:, :-1], table[:, -1]
        train, test = np.split(rng.permutation(len(y)), [unit.n_train])
    mean, std = y[train].mean(), y[train].std()
    scaled = (y - mean) / std
    test = test[:N_TEST]
    return Split(X[train], scaled[train], X[test], scaled[test])


def draw_friedman(n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Draw rows of Friedman's first function, of which five of ten columns matter."""
    X = rng.uniform(size=(n, 10))
    wave = 10 * np.sin(np.pi * X[:, 0] * X[:, 1])
    return X, wave + 20 * (X[:, 2] - 0.5) ** 2 + 10 * X[:, 3] + 5 * X[:, 4] + rng.normal(size=n)


def fit_boosting(split: Split, *, seed: int):
    """Choose boosted trees by cross-validation."""
    trees = HistGradientBoostingRegressor(random_state=seed)
    grid = GridSearchCV(trees, GRID, cv=3, scoring="neg_root_mean_squared_error")
    grid.fit(split.X_train, split.y_train)
    held_out = cross_val_predict(grid.best_estimator_, split.X_train, split.y_train, cv=3)
    std = np.sqrt(np.mean((split.y_train - held_out) ** 2))

    def predict(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return grid.predict(X), np.full(len(X), std)

    return predict, "", json.dumps(grid.best_params_)


def summarise(rows: Sequence[Mapping[str, str]]) -> None:
    """Print errors, time and memory."""
    columns = ("rmse", "nll", "coverage", "seconds", "predict_seconds", "gib")
    print_table(
        [
            {
                "set": row["dataset"],
                "rows": int(row["n_train"]),
                "method": row["method"],
                **{name: float(row[name]) for name in columns},
                "predicts by": row["approximation"],
            }
            for row in rows
        ]
    )


def draw(rows: Sequence[Mapping[str, str]], *, complete: bool) -> None:
    """Draw CPU time and memory over the number of rows."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 3, figsize=(13, 4), layout="constrained")
    for method, found in group(rows, lambda row: row["method"]).items():
        n = numbers(found, "n_train")
        for axis, name in zip(axes, ("cpu_seconds", "gib", "rmse"), strict=True):
            axis.plot(n, numbers(found, name), "o-", label=method)
        beyond = n >= 2000
        if beyond.sum() > 1:
            slope = np.polyfit(np.log(n[beyond]), np.log(numbers(found, "cpu_seconds")[beyond]), 1)
            print(f"{method}: CPU time grows as n^{slope[0]:.2f} from 2000 rows on")
    titles = ("CPU seconds of the fit", "largest memory, GiB", "RMSE (noise alone: 0.2)")
    for axis, title in zip(axes, titles, strict=True):
        axis.set(xscale="log", yscale="log", xlabel="rows", title=title)
        axis.legend()
    save_figure(figure, NAME, complete=complete)


def main() -> None:
    """Measure what is missing, print the table and draw the growth."""
    if sys.argv[1:2] == ["--one"]:
        print(json.dumps(measure_here(Unit(**json.loads(sys.argv[2])))))
        return
    parser = make_parser(__doc__, datasets=list(SETS), seeds=1)
    methods = [*SETTINGS, "boosting"]
    parser.add_argument("--methods", nargs="+", default=methods, choices=methods)
    parser.add_argument("--growth", type=int, nargs="*", default=GROWTH, help="numbers of rows")
    arguments = parse(parser, small={"datasets": [], "methods": ["n_iter=0"], "growth": [500]})
    seeds = range(arguments.seeds)
    growth = [Unit("friedman", n, "n_iter=0", seed) for seed in seeds for n in arguments.growth]
    of_sets = [
        Unit(dataset, SETS[dataset], method, seed)
        for seed in seeds
        for dataset in arguments.datasets
        for method in arguments.methods
        if method != "exact" or SETS[dataset] < GROWTH[4]
    ]
    units = list(dict.fromkeys([*growth, *of_sets]))
    rows = collect(NAME, units, measure, arguments)
    summarise(rows)
    draw(
        [row for row in rows if row["dataset"] == "friedman" and row["method"] == "n_iter=0"],
        complete=arguments.complete,
    )


if __name__ == "__main__":
    main()
