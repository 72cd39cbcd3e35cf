"""Errors, time and memory of fits from five hundred to a million rows.

``friedman`` is Friedman's first function of ten columns, with noise of standard deviation one; its
RMSE, as all others, is in units of the standard deviation of the target, so that the noise alone
has 0.2. kin40k, protein and elevators are tested on the published split 0, the others on rows that
are drawn. The method ``autokernel`` is the default fit, ``n_iter=0`` one without a search,
``inducing`` and ``neighbours`` these approximations, ``exact`` the exact fit, all three of these
without a search, ``skc`` a greedy search of 15 kernels by bounds. Rows of ``boosting``, which is
scikit-learn's histogram boosting tuned by cross-validation, are by a program of 03b29bbd. Each unit
runs in a process of its own, whose largest memory is measured.

Rows go to results/scaling.csv. Draws docs/figures/scaling.png, the growth of time and memory.

    AUTOKERNEL_DATA=folder python benchmarks/scaling.py --any-commit     # two hours
    python benchmarks/scaling.py --small
"""

import gzip
import resource
import time
from collections.abc import Mapping

import common
import numpy as np
from common import Row, Rows, Split, group, numbers
from data import path_of, read_table

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


def measure(**unit: object) -> Row:
    return common.measured_afresh(__file__, unit)


def measure_here(dataset: str, n_train: int, method: str, seed: int) -> Row:
    """Fit and predict, with the time and the largest memory of this process."""
    split = draw_split(dataset, n_train, seed)
    began, cpu_began = time.perf_counter(), time.process_time()
    model = AutoKernelGPRegressor(random_state=seed, **SETTINGS[method]).fit(split.X, split.y)
    seconds, cpu = time.perf_counter() - began, time.process_time() - cpu_began
    began = time.perf_counter()
    mean, std = model.predict(split.X_test, return_std=True)
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
        "approximation": model.approximation_,
        "kernel": model.best_expression_,
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
        __doc__, datasets=SETS, seeds=1, methods=list(SETTINGS), growth=GROWTH,
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
    peers = [row for row in common.read_rows(NAME) if row["method"] == "boosting"]
    summarise(rows + [row for row in peers if row["dataset"] in arguments.datasets])
    draw(
        [row for row in rows if row["dataset"] == "friedman" and row["method"] == "n_iter=0"],
        complete=arguments.complete,
    )


if __name__ == "__main__":
    main()
