"""CPU seconds of default fits, with what they find: scores, and errors on held-out rows.

The sets, from 100 to 10 000 rows:

- airline 100, concrete 120, 500 and 927, Boston housing 455, and 500 rows of power plant and
  airfoil, as random splits;
- three quarters of the tables of tables.py that no constant of the package was chosen on, of the
  rentals of bicycles, of cars, their prices, hitters, diamonds and guns, and of Ames housing;
- 40 columns, two of which matter: 150 rows, and 500 to test on;
- sensors: 10 000 rows of 16 columns, all smooth functions of a speed and of two states of wear, of
  which one is the target, as in UCI's naval propulsion plants;
- arm: 7000 rows of the eight angles of an arm, and the distance of its end to a point, with noise.

A fit has a process of its own, which takes the package from a checkout; with several checkouts they
run in turns. It is ended after ``--limit`` CPU seconds. Calls of the likelihood are Cholesky
factors of covariances, for estimates and for fits, of any number of rows. The RMSE is in units of
the target, the NLL in nats; both are of the standardised target for the files of the first line.
The RMSE of CatBoost with its defaults is that of rows by a program of 03b29bbd.

Rows go to results/fit_cost.csv, where ``version`` is the commit of the package that was measured.

    AUTOKERNEL_DATA=folder python benchmarks/fit_cost.py                       # an hour
    AUTOKERNEL_DATA=folder python benchmarks/fit_cost.py --checkouts ../old .
    AUTOKERNEL_DATA=folder python benchmarks/fit_cost.py --small
"""

import time
from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

import common
import numpy as np
from common import Row, Rows, Split, group, numbers, rmse
from data import draw_split
from sklearn.model_selection import train_test_split
from tables import UNSEEN, load_table

from autokernel import AutoKernelGPRegressor
from autokernel.evidence.evaluator import Evaluator
from autokernel.inference import ExactLikelihood
from autokernel.inference.packed import PackedCholesky

NAME = "fit_cost"  # of the CSV file
CATBOOST = "catboost"
FIGURES = ("cpu_seconds", "n_kernels", "n_calls", "n_calls_of_fits", "n_gradients")
FIGURES += ("score", "rmse", "nll")
LIMIT = 900  # CPU seconds, after which a fit is ended


def of_table(name: str, seed: int) -> Split:
    X, X_test, y, y_test = train_test_split(*load_table(name), random_state=seed)
    return Split(X, y, X_test, y_test)


def of_columns(seed: int) -> Split:
    """Draw 40 columns, two of which matter."""
    train, test = np.random.default_rng(1), np.random.default_rng(100 + seed)

    def draw(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
        X = rng.normal(size=(n, 40))
        return X, np.sin(2 * X[:, 3]) + 0.5 * X[:, 17] + 0.3 * rng.normal(size=n)

    return Split(*draw(train, 150), *draw(test, 500))


def sensors(seed: int) -> Split:
    """Draw sensors of engines that wear off."""
    rng = np.random.default_rng(seed)
    speed = rng.integers(1, 10, size=(12_000, 1)) / 9
    wear = rng.uniform(0, 0.05, size=(12_000, 2))
    powers, slopes = rng.uniform(0.3, 3.0, size=16), rng.normal(size=(2, 16))
    X = speed**powers * (1 + wear @ slopes) * (1 + 1e-4 * rng.normal(size=(12_000, 16)))
    return Split(X[:10_000], 1 - wear[:10_000, 0], X[10_000:], 1 - wear[10_000:, 0])


def arm(seed: int) -> Split:
    """Draw the angles of an arm, and the distance of its end to a point."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-np.pi / 2, np.pi / 2, size=(8000, 8))
    y = np.abs(np.exp(1j * np.cumsum(X, axis=1)).sum(axis=1) - 4) + 0.3 * rng.normal(size=8000)
    return Split(X[:7000], y[:7000], X[7000:], y[7000:])


TABLES = [*UNSEEN, "rentals", "cars", "auto", "hitters", "car_prices", "priced_diamonds", "guns"]
N_OF_FILE = {
    "airline": (100,), "concrete": (120, 500, 927), "power_plant": (500,), "airfoil": (500,),
    "boston_housing": (455,),
}  # fmt: skip
SETS: Mapping[str, Callable[[int], Split]] = {
    **{
        f"{name} {n}": partial(draw_split, name, n_train=n)
        for name, ns in N_OF_FILE.items()
        for n in ns
    },
    **{name: partial(of_table, name) for name in [*TABLES, "ames"]},
    "40 columns": of_columns,
    "arm": arm,
    "sensors": sensors,
}


def measure(
    checkouts: Mapping[str, Path], limit: int, version: str, dataset: str, split: int
) -> Row:
    unit = {"version": version, "dataset": dataset, "split": split}
    found = common.measured_afresh(__file__, unit, folder=checkouts[version], limit=limit)
    if found is None:
        found = {"cpu_seconds": float(limit), "stop_reason": "ended by the benchmark"}
    return {**dict.fromkeys(FIGURES, np.nan), "stop_reason": "", "kernel": "", **found}


def measure_here(version: str, dataset: str, split: int) -> Row:
    """Fit and predict; the split is the seed of the fit."""
    data = SETS[dataset](split)
    began = time.process_time()
    calls = count_calls()
    model = AutoKernelGPRegressor(random_state=split).fit(data.X, data.y)
    seconds = time.process_time() - began
    counted = dict(calls)  # predictions may call too
    density = model.log_predictive_density(data.X_test, data.y_test)
    return {
        "cpu_seconds": seconds,
        "n_kernels": len(model.search_history_["score"]),
        **counted,
        "score": float(model.best_score_),
        "rmse": rmse(model.predict(data.X_test), data.y_test),
        "nll": -float(np.mean(density)),
        "stop_reason": model.stop_reason_,
        "kernel": model.best_expression_,
    }


def count_calls() -> Counter[str]:
    """Count all exact likelihoods from now on, those of fits, and those with a gradient."""
    calls: Counter[str] = Counter()
    factorise, gradient = PackedCholesky.__init__, ExactLikelihood.value_and_gradient
    run = Evaluator.run

    def counted(self: PackedCholesky, *given: object, **options: object) -> None:
        calls["n_calls"] += 1
        factorise(self, *given, **options)

    def counted_gradient(self: ExactLikelihood, theta: np.ndarray) -> object:
        calls["n_gradients"] += 1
        return gradient(self, theta)

    def counted_run(self: Evaluator, *given: object, **options: object) -> object:
        before = calls["n_calls"]
        try:
            return run(self, *given, **options)
        finally:
            calls["n_calls_of_fits"] += calls["n_calls"] - before

    PackedCholesky.__init__, ExactLikelihood.value_and_gradient = counted, counted_gradient
    Evaluator.run = counted_run
    return calls


def median(name: str) -> common.Figure:

    def figure(rows: Rows) -> float:
        known = [value for value in numbers(rows, name) if not np.isnan(value)]
        return float(np.median(known)) if known else float("nan")

    return figure


def summarise(rows: Rows) -> None:
    by_version = group(rows, "version")
    peers = [row for row in common.read_rows(NAME) if row["version"] == CATBOOST]

    def worst(found: Rows) -> float:
        seconds = numbers(found, "cpu_seconds")
        return float(seconds.max() / np.median(seconds))

    figures = {
        "fits": len,
        "CPU s": common.of(np.median, "cpu_seconds"),
        "worst / median": worst,
        **{name: median(name) for name in FIGURES if name not in ("cpu_seconds", "n_gradients")},
        "rmse, catboost": lambda found: median("rmse")(
            [row for row in peers if row["dataset"] == found[0]["dataset"]]
        ),
    }
    for version, of_version in by_version.items():
        by_set = group(of_version, "dataset")
        means = [
            np.nanmean([median(name)(found) for found in by_set.values()])
            for name in ("cpu_seconds", "n_calls")
        ]
        print(f"\n{version}, {means[0]:.1f} CPU s and {means[1]:.0f} calls on average")
        common.print_groups(by_set, "set", figures)


def main() -> None:
    if common.answers(measure_here):
        return
    arguments = common.options_of(
        __doc__, datasets=SETS, seeds=5, checkouts=(), limit=LIMIT,
        small={"datasets": list(SETS)[:2], "seeds": 2},
    )  # fmt: skip
    folders = map(Path, arguments.checkouts or [common.checkout()])
    checkouts, is_fixed = common.versions_of(folders)
    units = [
        {"version": version, "dataset": dataset, "split": split}
        for dataset in arguments.datasets
        for split in range(arguments.seeds)
        for version in [*checkouts][:: 1 if split % 2 else -1]
    ]
    measured = partial(measure, checkouts, arguments.limit)
    summarise(common.collect(NAME, units, measured, arguments, any_commit=is_fixed))


if __name__ == "__main__":
    main()
