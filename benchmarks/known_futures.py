"""Forecasts of series whose other columns are known: weather, prices, promotions, laws, holidays.

The last three tenths of a series are three blocks. Each is forecast from all rows before it, with
the columns of its rows: what the weather or the price was, not a forecast of them. ``autokernel``
is ``strategy="series"`` with these columns, ``without`` is the same on dates only, and ``default``
the default search. ``arima`` is AutoARIMA of statsforecast with the columns as regressors, and with
waves of the year in series of days and weeks that are longer than a year; ``lightgbm`` is one
model for all steps, by lags known at the origin, the calendar and the columns, with one more model
for each quantile.

RMSE, MAE and the quantile loss at .1 to .9 are divided by those of seasonal naive, which repeats
the last season. A set has the sum over its blocks, and the summary the geometric mean over the
sets. ``inside`` is the share of targets inside of the 95 % interval.

Rows go to results/known_futures.csv; rows of any commit count.

    python benchmarks/known_futures.py --methods without arima lightgbm    # 4 minutes
    python benchmarks/known_futures.py --methods autokernel default    # 15 minutes
"""

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
from data import KNOWN  # isort: skip
from forecasts import (  # isort: skip
    BANDS,
    LEVELS,
    MEDIAN,
    Series,
    bands_of,
    by_seasonal_naive,
    quantile_losses,
)
from runs import rmse  # isort: skip

import numpy as np
import pandas as pd

from autokernel import AutoKernelGPRegressor

NAME = "known_futures"  # of the CSV file
N_ORIGINS = 3
PERIODS = dict.fromkeys(KNOWN, 7) | {"casualties": 12, "gasoline": 52}  # rows in a season
WAVES = {"trains": 2, "gasoline": 6}  # of the year, for ARIMA, whose season is then a week or none
PACKAGES = {"arima": "statsforecast", "lightgbm": "lightgbm"}
METHODS = ("autokernel", "without", "default", *PACKAGES)
SEEDED = ("autokernel", "without", "default", "lightgbm")
MAX_TIME = 120  # seconds of the default search
N_LAGS = 7
MAX_PAIRS = 20_000  # of an origin and a step, to train on
ERRORS = {"RMSE": "rmse", "MAE": "mae", "QL": "quantile_loss"}


@dataclass(frozen=True, slots=True)
class Known:
    """What a row is measured for."""

    label: str
    method: str
    dataset: str
    origin: int  # the block that is forecast
    seed: int


@dataclass(frozen=True, slots=True, eq=False)  # eq=False: the fields are frames and arrays
class Block:
    """The rows before a block with their targets, and those of the block."""

    past: pd.DataFrame
    y: np.ndarray
    future: pd.DataFrame
    y_future: np.ndarray


Found = tuple[np.ndarray, np.ndarray, str]
"""Means, quantiles of shape (horizon, n_levels), and the kernel."""


def block_of(dataset: str, origin: int) -> Block:
    """Part a series before one of its last blocks, each of which is a tenth."""
    X, y = KNOWN[dataset]()
    size = len(y) // 10
    end = len(y) - (N_ORIGINS - 1 - origin) * size
    start = end - size
    return Block(X[:start], y[:start], X[start:end].reset_index(drop=True), y[start:end])


def measure(unit: Known) -> Row:
    """Forecast one block."""
    block = block_of(unit.dataset, unit.origin)
    began = time.process_time()
    mean, bands, kernel = FORECASTS[unit.method](block, unit)
    seconds = time.process_time() - began
    errors = block.y_future[:, None] - bands
    return {
        "rmse": rounded(rmse(mean, block.y_future)),
        "mae": rounded(np.abs(errors[:, MEDIAN]).mean()),
        "quantile_loss": rounded(quantile_losses(errors).mean()),
        "inside": rounded(np.mean((errors[:, 0] >= 0) & (errors[:, -1] <= 0))),
        "n_rows": len(block.y),
        "cpu_seconds": rounded(seconds),
        "kernel": kernel,
    }


def by_autokernel(block: Block, unit: Known) -> Found:
    """Forecast by this package, with the other columns or by dates only."""
    model = AutoKernelGPRegressor(strategy="series", random_state=unit.seed)
    if unit.method == "without":
        table = model.fit(block.past[["date"]], block.y).forecast(len(block.future), LEVELS)
    else:
        model.fit(block.past, block.y)
        table = model.forecast(len(block.future), LEVELS, X=block.future.drop(columns="date"))
    bands = np.stack([table[f"{level:g}"] for level in LEVELS], axis=1)
    return np.asarray(table["mean"]), bands, model.best_expression_


def by_default(block: Block, unit: Known) -> Found:
    """Predict the rows of the block by the default search."""
    model = AutoKernelGPRegressor(max_time=MAX_TIME, random_state=unit.seed)
    model.fit(block.past, block.y)
    bands = model.predict_quantiles(block.future, LEVELS)
    return model.predict(block.future), bands, model.best_expression_


def by_seasons(block: Block, unit: Known) -> Found:
    """Repeat the last season."""
    period = PERIODS[unit.dataset]
    bands, kernel = by_seasonal_naive(Series(block.y, block.y_future, period), unit)
    return bands[:, MEDIAN], bands, kernel


def by_arima(block: Block, unit: Known) -> Found:
    """Forecast by AutoARIMA with regressors, less those that follow from the ones before them."""
    from statsforecast.models import AutoARIMA

    rows = pd.concat([block.past, block.future], ignore_index=True)
    n_waves, n_past, period = WAVES.get(unit.dataset, 0), len(block.y), PERIODS[unit.dataset]
    phases = np.outer(
        2 * np.pi / 365.2425 * (rows["date"] - rows["date"][0]).dt.days, 1 + np.arange(n_waves)
    )
    Z = np.column_stack([numbers_of(rows), np.sin(phases), np.cos(phases)])
    Z = (Z - Z[:n_past].mean(axis=0)) / np.maximum(Z[:n_past].std(axis=0), 1e-12)
    Z = Z[:, _independent(Z[:n_past])]
    center, spread = block.y.mean(), block.y.std()  # the optimiser fails at other scales
    model = AutoARIMA(season_length=1 if n_waves and period > 12 else period)
    found = model.forecast(
        y=(block.y - center) / spread,
        h=len(block.future),
        X=Z[:n_past],
        X_future=Z[n_past:],
        level=BANDS,
    )
    return center + spread * found["mean"], center + spread * bands_of(found), ""


def numbers_of(rows: pd.DataFrame) -> np.ndarray:
    """Columns without the date as numbers, categories as one column for each level but one."""
    return pd.get_dummies(rows.drop(columns="date"), drop_first=True).to_numpy(float)


def _independent(Z: np.ndarray) -> list[int]:
    """Find the columns, with means of zero, that do not follow from the columns before them."""
    kept: list[int] = []
    for column in range(Z.shape[1]):
        if np.linalg.matrix_rank(Z[:, [*kept, column]]) > len(kept):
            kept.append(column)
    return kept


def by_lightgbm(block: Block, unit: Known) -> Found:
    """Forecast by boosted trees, one model for the means and one for each quantile."""
    from lightgbm import LGBMRegressor

    horizon, period = len(block.future), PERIODS[unit.dataset]
    rows = pd.concat([block.past, block.future], ignore_index=True)
    columns = np.column_stack([calendar_of(rows["date"]), numbers_of(rows)])
    pairs = pairs_of(block.y, columns, horizon, period)
    features, level, _ = steps_from(block.y, columns, len(block.y) - 1, horizon, period)

    def predict(**objective: object) -> np.ndarray:
        model = LGBMRegressor(
            n_estimators=200, learning_rate=0.05, num_leaves=15, n_jobs=1, verbose=-1,
            random_state=unit.seed, **objective,
        )  # fmt: skip
        return level + model.fit(*pairs).predict(features)

    bands = [predict(objective="quantile", alpha=alpha) for alpha in LEVELS]
    return predict(objective="regression"), np.sort(np.stack(bands, axis=1), axis=1), ""


def calendar_of(dates: pd.Series) -> np.ndarray:
    """Month, day of the week and day of the year."""
    return np.column_stack([dates.dt.month, dates.dt.dayofweek, dates.dt.dayofyear])


def steps_from(
    y: np.ndarray, columns: np.ndarray, origin: int, horizon: int, period: int
) -> tuple[np.ndarray, float, np.ndarray]:
    """Compute the features of the steps after an origin: what is known there, and their columns.

    Targets are relative to a level, the mean of the last season; the rows of the steps come third.
    """
    at = np.arange(origin + 1, min(origin + 1 + horizon, len(columns)))
    level = float(y[origin + 1 - period : origin + 1].mean())
    step = at - origin
    season = y[at - period * -(-step // period)]  # the last one that is known
    lags = np.tile(y[origin + 1 - N_LAGS : origin + 1], (len(at), 1))
    relative = np.column_stack([season, lags]) - level
    return np.column_stack([step, relative, columns[at]]), level, at


def pairs_of(
    y: np.ndarray, columns: np.ndarray, horizon: int, period: int
) -> tuple[np.ndarray, np.ndarray]:
    """Pair origins with the steps after them, to train on."""
    first = max(period, N_LAGS) - 1
    n_origins = min(len(y) - 1 - first, max(MAX_PAIRS // horizon, 1))
    origins = np.linspace(first, len(y) - 2, n_origins).round().astype(int)
    parts = [steps_from(y, columns[: len(y)], origin, horizon, period) for origin in origins]
    targets = [y[at] - level for _, level, at in parts]
    return np.concatenate([features for features, *_ in parts]), np.concatenate(targets)


FORECASTS = {
    "seasonal_naive": by_seasons,
    "autokernel": by_autokernel,
    "without": by_autokernel,
    "default": by_default,
    "arima": by_arima,
    "lightgbm": by_lightgbm,
}


def summarise(rows: Sequence[Mapping[str, str]]) -> None:
    """Print the errors of each set and method over those of seasonal naive, and their means."""
    table = []
    naive = group([row for row in rows if row["method"] == "seasonal_naive"], _dataset_of)
    for (method, seed), found in group(rows, lambda row: (row["method"], row["seed"])).items():
        ratios: dict[str, list[float]] = {name: [] for name in ERRORS}
        sets = group(found, _dataset_of)
        for dataset, own in sets.items():
            origins = {row["origin"] for row in own}
            base = [row for row in naive[dataset] if row["origin"] in origins]
            for name, error in ERRORS.items():
                ratios[name].append(numbers(own, error).sum() / numbers(base, error).sum())
        cpu = numbers(found, "cpu_seconds")
        table.append(
            {
                "method": method,
                "seed": seed,
                "blocks": len(found),
                **{name: float(np.exp(np.mean(np.log(of)))) for name, of in ratios.items()},
                "inside": float(numbers(found, "inside").mean()),
                "cpu median": float(np.median(cpu)),
                "cpu max": float(cpu.max()),
                **dict.fromkeys(naive, ""),
                **{
                    dataset: f"{of_rmse:.3f} {of_loss:.3f}"
                    for dataset, of_rmse, of_loss in zip(
                        sets, ratios["RMSE"], ratios["QL"], strict=True
                    )
                },
            }
        )
    print()
    print_table(table)


def _dataset_of(row: Mapping[str, str]) -> str:
    return row["dataset"]


def main() -> None:
    """Measure what is missing, and print the table."""
    parser = make_parser(__doc__, datasets=KNOWN, seeds=1)
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=METHODS)
    parser.add_argument("--label", default="now")
    arguments = parse(parser, small={"datasets": ["casualties"]})
    missing = {of for of, name in PACKAGES.items() if importlib.util.find_spec(name) is None}
    units = [
        Known(arguments.label, method, dataset, origin, seed)
        for method in ("seasonal_naive", *arguments.methods)
        if method not in missing or arguments.finished
        for dataset in arguments.datasets
        for origin in range(N_ORIGINS)
        for seed in range(arguments.seeds if method in SEEDED else 1)
    ]
    summarise(collect(NAME, units, measure, arguments, any_commit=True))


if __name__ == "__main__":
    main()
