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
import time
from collections.abc import Callable, Mapping
from functools import partial

import common
import numpy as np
from common import Row, Rows, Split, group, numbers
from data import path_of, read_table
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


def measure(**unit: object) -> Row:
    return common.measured_afresh(__file__, unit)


def measure_here(dataset: str, n_train: int, method: str, seed: int) -> Row:
    """Fit and predict, with the time and the largest memory of this process."""
    split = draw_split(dataset, n_train, seed)
    began, cpu_began = time.perf_counter(), time.process_time()
    if method == "boosting":
        predict, kernel = fit_boosting(split, seed=seed)
        what = ""
    else:
        model = AutoKernelGPRegressor(random_state=seed, **SETTINGS[method])
        model.fit(split.X, split.y)
        what, kernel = getattr(model, "approximation_", "exact"), model.best_expression_
        predict = partial(model.predict, return_std=True)
    seconds, cpu = time.perf_counter() - began, time.process_time() - cpu_began
    began = time.perf_counter()
    mean, std = predict(split.X_test)
    of_predict = time.perf_counter() - began
    away = np.abs(split.y_test - mean) / std
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return {
        "rmse": common.rmse(mean, split.y_test),
        "nll": common.normal_nll(mean, std, split.y_test),
        "coverage": float(np.mean(away < 1.96)),
        "seconds": seconds,
        "cpu_seconds": cpu,
        "predict_seconds": of_predict,
        "n_test": len(split.y_test),
        "gib": peak / 2**30,
        "approximation": what,
        "kernel": kernel,
    }


def draw_split(dataset: str, n_train: int, seed: int) -> Split:
    """Read or draw the data, and standardise the target by the rows to train on."""
    rng = np.random.default_rng(seed)
    if dataset == "friedman":
        X, y = draw_friedman(n_train + N_TEST, rng)
        train, test = np.split(np.arange(len(y)), [n_train])
    elif dataset in PUBLISHED:
        path = path_of(f"{dataset}.csv.gz")
        with gzip.open(path, "rt", encoding="utf-8") as file:
            table = np.loadtxt(file, delimiter=",", skiprows=1)
        X, y, is_test = table[:, :-2], table[:, -2], table[:, -1] == 1
        train, test = np.flatnonzero(~is_test)[:n_train], np.flatnonzero(is_test)
    else:
        table = read_table(dataset)
        X, y = table[:, :-1], table[:, -1]
        train, test = np.split(rng.permutation(len(y)), [n_train])
    mean, std = y[train].mean(), y[train].std()
    scaled = (y - mean) / std
    test = test[:N_TEST]
    return Split(X[train], scaled[train], X[test], scaled[test])


def draw_friedman(n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Draw rows of Friedman's first function, of which five of ten columns matter."""
    X = rng.uniform(size=(n, 10))
    wave = 10 * np.sin(np.pi * X[:, 0] * X[:, 1])
    return X, wave + 20 * (X[:, 2] - 0.5) ** 2 + 10 * X[:, 3] + 5 * X[:, 4] + rng.normal(size=n)


def fit_boosting(split: Split, *, seed: int) -> tuple[Callable[..., object], str]:
    trees = HistGradientBoostingRegressor(random_state=seed)
    grid = GridSearchCV(trees, GRID, cv=3, scoring="neg_root_mean_squared_error")
    grid.fit(split.X, split.y)
    held_out = cross_val_predict(grid.best_estimator_, split.X, split.y, cv=3)
    std = np.sqrt(np.mean((split.y - held_out) ** 2))

    def predict(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return grid.predict(X), np.full(len(X), std)

    return predict, json.dumps(grid.best_params_)


def summarise(rows: Rows) -> None:
    columns = ("rmse", "nll", "coverage", "seconds", "predict_seconds", "gib")
    figures = {name: common.of(np.mean, name) for name in columns}
    figures["predicts by"] = lambda found: found[0]["approximation"]
    groups = group(rows, "dataset", "n_train", "method", "seed")
    common.print_groups(groups, "set, rows, method, seed", figures)


def draw(rows: Rows, *, complete: bool) -> None:
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 3, figsize=(13, 4), layout="constrained")
    for method, found in group(rows, "method").items():
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
    common.save_figure(figure, NAME, complete=complete)


def main() -> None:
    if common.answers(measure_here):
        return
    arguments = common.options_of(
        __doc__, datasets=SETS, seeds=1, methods=[*SETTINGS, "boosting"], growth=GROWTH,
        small={"datasets": [], "methods": ["n_iter=0"], "growth": [500]},
    )  # fmt: skip
    seeds = range(arguments.seeds)
    growth = common.crossed(
        dataset=["friedman"], n_train=arguments.growth, method=["n_iter=0"], seed=seeds
    )
    of_sets = [
        {"dataset": dataset, "n_train": SETS[dataset], "method": method, "seed": seed}
        for seed in seeds
        for dataset in arguments.datasets
        for method in arguments.methods
        if method != "exact" or SETS[dataset] < GROWTH[4]
    ]
    rows = common.collect(NAME, [*growth, *of_sets], measure, arguments)
    summarise(rows)
    draw(
        [row for row in rows if row["dataset"] == "friedman" and row["method"] == "n_iter=0"],
        complete=arguments.complete,
    )


if __name__ == "__main__":
    main()
