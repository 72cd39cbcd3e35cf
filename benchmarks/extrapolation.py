"""Extrapolation of thirteen series (Lloyd et al. 2014, the Automatic Statistician).

The first part of each series, in its own units, to train on, the rest to test: RMSE in the units of
the series, and its ratio to the best published method, once without Eureqa, which is no Gaussian
process, and once with it. The summary is the geometric mean of the ratios, with those of the
published methods, over the same series. Kernels are chosen by the log evidence (``laplace``), by
the Bayesian information criterion (``bic``), or by how they forecast the last five tenths of the
training part, each from what comes before it, with parameters that are fitted anew to that
(``forecast``) or those for the whole training part (``forecast-once``). NLL is in nats per test
point for a target that is standardised by the training part; ``inside`` is the share of test points
within the 95 % band.

Rows go to results/extrapolation.csv, with the forecast as ``mean:std`` at each test point; those
that the current commit has there are not measured again. The fits that take longest begin first.
Draws docs/figures/extrapolation_CRITERION.png, of seed 0.

    AUTOKERNEL_DATA=folder python benchmarks/extrapolation.py --jobs 2    # 40 minutes at most
    AUTOKERNEL_DATA=folder python benchmarks/extrapolation.py --small --jobs 2
"""

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

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
    save_figure,
)
from data import read_table  # isort: skip
from published import EXTRAPOLATION_N_TRAIN, EXTRAPOLATION_RMSE, best_extrapolation  # isort: skip

import numpy as np
from scipy.stats import norm
from sklearn.model_selection import TimeSeriesSplit

from autokernel import AutoKernelGPRegressor, CrossValidation

if TYPE_CHECKING:
    from matplotlib.axes import Axes

NAME = "extrapolation"  # of the CSV file
N_COLUMNS = 5  # of the figure
SHOWN = 4.0  # lengths of the test part that are drawn, itself included
CRITERIA = ("laplace", "bic", "forecast", "forecast-once")
BAND = float(norm.ppf(0.975))
SMALL = {"datasets": ["airline", "call_centre", "radio"], "max_time": 60.0, "n_iter": 20}


@dataclass(frozen=True, slots=True)
class Fit:
    """What a row is measured for."""

    dataset: str
    criterion: str
    seed: int
    n_iter: int
    max_time: float


@dataclass(frozen=True, slots=True, eq=False)  # eq=False: the fields are arrays
class Series:
    """A series, parted in time."""

    X_train: np.ndarray
    y_train: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray


def read_series(name: str) -> Series:
    """Read a series and part it."""
    table = read_table(name)
    n_train = EXTRAPOLATION_N_TRAIN[name]
    (X_train, X_test), (y_train, y_test) = (
        np.split(part, [n_train]) for part in (table[:, :1], table[:, 1])
    )
    return Series(X_train, y_train, X_test, y_test)


def criterion_of(name: str, n_train: int) -> str | CrossValidation:
    """Build what kernels are chosen by."""
    if not name.startswith("forecast"):
        return name
    folds = TimeSeriesSplit(5, test_size=n_train // 10)
    return CrossValidation(cv=folds, refit=name == "forecast")


def measure(unit: Fit) -> Row:
    """Fit one series and forecast."""
    series = read_series(unit.dataset)
    began = time.perf_counter()
    model = AutoKernelGPRegressor(
        criterion=criterion_of(unit.criterion, len(series.y_train)),
        n_iter=unit.n_iter,
        max_time=unit.max_time,
        random_state=unit.seed,
    ).fit(series.X_train, series.y_train)
    seconds = time.perf_counter() - began
    mean, std = model.predict(series.X_test, return_std=True)
    errors = mean - series.y_test
    unit_of_y = series.y_train.std()
    return {
        "rmse": rounded(np.sqrt(np.mean(errors**2))),
        "nll": rounded(-norm.logpdf(errors / unit_of_y, scale=std / unit_of_y).mean()),
        "inside": rounded(np.mean(np.abs(errors) <= BAND * std)),
        "score_per_sample": rounded(model.best_score_ / len(series.y_train)),
        "n_evaluations": len(model.search_history_["score"]),
        "stop_reason": str(model.stop_reason_),
        "fit_seconds": rounded(seconds),
        "kernel": model.best_expression_,
        "forecast": " ".join(f"{m:.6g}:{s:.4g}" for m, s in zip(mean, std, strict=True)),
    }


def summarise(rows: Sequence[Mapping[str, str]]) -> None:
    """Print the table of the series, medians over the seeds, and the geometric means."""
    by_series = group(rows, lambda row: row["dataset"])
    rmse = {name: float(np.median(numbers(found, "rmse"))) for name, found in by_series.items()}
    table = [
        {
            "series": name,
            "runs": len(found),
            "RMSE": rmse[name],
            "best published": best_extrapolation(name, with_eureqa=False),
            "ratio": rmse[name] / best_extrapolation(name, with_eureqa=False),
            "with Eureqa": rmse[name] / best_extrapolation(name, with_eureqa=True),
            "ABCD accuracy": EXTRAPOLATION_RMSE[name]["abcd_accuracy"],
            "NLL": float(np.median(numbers(found, "nll"))),
            "inside": float(np.median(numbers(found, "inside"))),
            "evaluations": float(np.median(numbers(found, "n_evaluations"))),
            "seconds": float(np.median(numbers(found, "fit_seconds"))),
            "kernel": found[0]["kernel"],
        }
        for name, found in by_series.items()
    ]
    print()
    print_table(table)
    summarise_means(rmse)


def summarise_means(rmse: Mapping[str, float]) -> None:
    """Print the geometric means over the series, with those of the published methods."""
    methods: dict[str, Mapping[str, float]] = {"autokernel": rmse}
    for method in EXTRAPOLATION_RMSE["airline"]:
        methods[method] = {name: EXTRAPOLATION_RMSE[name][method] for name in rmse}
    print(f"\nGeometric means of RMSE / best published, {len(rmse)} series")
    print_table(
        [
            {
                "method": method,
                "without Eureqa": geometric_mean(
                    value / best_extrapolation(name, with_eureqa=False)
                    for name, value in values.items()
                ),
                "with Eureqa": geometric_mean(
                    value / best_extrapolation(name, with_eureqa=True)
                    for name, value in values.items()
                ),
            }
            for method, values in methods.items()
        ]
    )


def geometric_mean(ratios: Iterable[float]) -> float:
    """Compute the geometric mean."""
    return float(np.exp(np.mean(np.log(list(ratios)))))


def draw(rows: Sequence[Mapping[str, str]], name: str, *, complete: bool) -> None:
    """Draw the end of each series, and its forecast."""
    from matplotlib.figure import Figure

    n_columns = min(N_COLUMNS, len(rows))
    n_lines = -(-len(rows) // n_columns)
    figure = Figure(figsize=(2.7 * n_columns, 2.1 * n_lines + 0.4), layout="constrained")
    panels = figure.subplots(n_lines, n_columns, squeeze=False).ravel()
    for axes, row in zip(panels, rows, strict=False):
        draw_series(axes, row)
    for axes in panels[len(rows) :]:
        axes.set_axis_off()
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower right", ncols=4)
    save_figure(figure, name, complete=complete)


def draw_series(axes: "Axes", row: Mapping[str, str]) -> None:
    """Draw the end of one series, and its forecast."""
    series = read_series(row["dataset"])
    pairs = [pair.split(":") for pair in row["forecast"].split()]
    mean, std = np.array(pairs, dtype=float).T
    end = series.X_test[-1, 0]
    start = end - SHOWN * (end - series.X_train[-1, 0])
    shown = series.X_train[:, 0] >= start
    time_test = series.X_test[:, 0]
    axes.plot(
        series.X_train[shown, 0],
        series.y_train[shown],
        ".",
        color="0.35",
        markersize=2.5,
        label="training data",
    )
    low, high = mean - BAND * std, mean + BAND * std
    axes.fill_between(time_test, low, high, color="C0", alpha=0.25, linewidth=0, label="95 % band")
    axes.plot(time_test, mean, color="C0", linewidth=1.1, label="forecast")
    axes.plot(time_test, series.y_test, ".", color="C3", markersize=2.5, label="test data")
    axes.set_title(row["dataset"], fontsize="medium")
    axes.tick_params(labelsize=7)
    axes.locator_params(axis="x", nbins=4)
    axes.ticklabel_format(axis="x", useOffset=False)


def main() -> None:
    """Measure what is missing, print the tables and draw the figure."""
    parser = make_parser(__doc__, datasets=list(EXTRAPOLATION_N_TRAIN), seeds=1)
    parser.add_argument("--criterion", choices=CRITERIA, default="laplace")
    parser.add_argument("--n-iter", type=int, default=50, help="kernels after the initial design")
    parser.add_argument("--max-time", type=float, default=360.0, help="seconds for each fit")
    arguments = parse(parser, small=SMALL)
    print_environment()
    units = [
        Fit(name, arguments.criterion, seed, arguments.n_iter, arguments.max_time)
        for name in sorted(arguments.datasets, key=lambda name: -EXTRAPOLATION_N_TRAIN[name])
        for seed in range(arguments.seeds)
    ]
    rows = run_missing(NAME, units, measure, n_jobs=arguments.jobs, any_commit=arguments.any_commit)
    rows.sort(key=lambda row: arguments.datasets.index(row["dataset"]))
    summarise(rows)
    figure = f"{NAME}_{arguments.criterion}"
    draw([row for row in rows if row["seed"] == "0"], figure, complete=arguments.complete)


if __name__ == "__main__":
    main()
