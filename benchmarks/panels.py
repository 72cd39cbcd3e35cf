"""Forecasts of panels: shops by week, states by year and industries by month.

The last tenth of each group is forecast from the rows before it, with the other columns of its
rows. ``autokernel`` is one model with the group as a column; ``each`` is one model for each group,
and ``each_by_dates`` the same without the other columns. ``catboost`` is one model for all groups
and steps with the group as a category, by time, month, the other columns and lags known at the
origin. ``naive`` repeats the last season, or the last row if the rows have none.

MAE of the medians and quantile loss at .1 to .9 are divided by the mean absolute error of naive
within the training part of the group, and averaged over groups; the summary divides both by those
of naive, and has the geometric mean over the panels. ``worst`` is the largest MAE of a group over
that of naive, and ``inside`` the share of targets inside of the 95 % interval.

Rows go to results/panels.csv; rows of any commit count.

    python benchmarks/panels.py --methods each each_by_dates catboost    # 3 minutes
    python benchmarks/panels.py --methods autokernel
"""

import importlib.util
import time
from collections.abc import Callable, Mapping, Sequence
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
from data import PANELS  # isort: skip
from forecasts import LEVELS, MEDIAN, Series, by_seasonal_naive, quantile_losses  # isort: skip
from known_futures import pairs_of, steps_from  # isort: skip

import numpy as np
import pandas as pd

from autokernel import AutoKernelGPRegressor

NAME = "panels"  # of the CSV file
PERIODS = {"shops": 1, "states": 1, "industries": 12}  # rows in a season
METHODS = ("autokernel", "each", "each_by_dates", "catboost")
N_GROUPS = 50  # at most, the first ones
MAX_TREES = 1000  # of CatBoost
ERRORS = {"MASE": "mase", "QL": "quantile_loss"}


@dataclass(frozen=True, slots=True)
class Panel:
    """What a row is measured for."""

    label: str
    method: str
    dataset: str
    n_groups: int
    seed: int


@dataclass(frozen=True, slots=True, eq=False)  # eq=False: the fields are frames and arrays
class Part:
    """A group: its rows, the number of those to train on, and their targets."""

    rows: pd.DataFrame
    n_past: int
    y: np.ndarray

    @property
    def past(self) -> pd.DataFrame:
        """Rows to train on."""
        return self.rows[: self.n_past]

    @property
    def future(self) -> pd.DataFrame:
        """Rows to forecast."""
        return self.rows[self.n_past :]


def parts_of(dataset: str, n_groups: int) -> list[Part]:
    """Part each group in time."""
    X, y = PANELS[dataset]()
    places = X.groupby(X.columns[0], sort=False).indices
    return [
        Part(X.iloc[at].reset_index(drop=True), len(at) - len(at) // 10, y[at])
        for at in list(places.values())[:n_groups]
    ]


def measure(unit: Panel) -> Row:
    """Forecast all groups of a panel."""
    parts, period = parts_of(unit.dataset, unit.n_groups), PERIODS[unit.dataset]
    began = time.process_time()
    found, kernel = FORECASTS[unit.method](parts, unit)
    seconds = time.process_time() - began
    naive, _ = by_naive(parts, unit)
    errors = [part.y[part.n_past :, None] - bands for part, bands in zip(parts, found, strict=True)]
    scales = np.array([_scale(part.y[: part.n_past], period) for part in parts])
    maes = np.array([np.abs(error[:, MEDIAN]).mean() for error in errors])
    of_naive = np.array(
        [
            np.abs(part.y[part.n_past :] - bands[:, MEDIAN]).mean()
            for part, bands in zip(parts, naive, strict=True)
        ]
    )
    losses = np.array([quantile_losses(error).mean() for error in errors])
    stacked = np.concatenate(errors)
    return {
        "mase": rounded(np.mean(maes / scales)),
        "quantile_loss": rounded(np.mean(losses / scales)),
        "worst": rounded(np.max(maes / of_naive)),
        "inside": rounded(np.mean((stacked[:, 0] >= 0) & (stacked[:, -1] <= 0))),
        "n_rows": sum(part.n_past for part in parts),
        "cpu_seconds": rounded(seconds),
        "kernel": kernel,
    }


def _scale(y: np.ndarray, period: int) -> float:
    """Compute the mean absolute error of naive within a series."""
    return float(np.abs(y[period:] - y[:-period]).mean())


def by_naive(parts: list[Part], unit: Panel) -> tuple[list[np.ndarray], str]:
    """Repeat the last season of each group."""
    period = PERIODS[unit.dataset]
    series = [Series(part.y[: part.n_past], part.y[part.n_past :], period) for part in parts]
    return [by_seasonal_naive(one, unit)[0] for one in series], ""


def by_autokernel(parts: list[Part], unit: Panel) -> tuple[list[np.ndarray], str]:
    """Forecast by one model with the group as a column."""
    past = pd.concat([part.past for part in parts], ignore_index=True)
    future = pd.concat([part.future for part in parts], ignore_index=True)
    y = np.concatenate([part.y[: part.n_past] for part in parts])
    name, date = past.columns[:2]
    model = AutoKernelGPRegressor(strategy="series", random_state=unit.seed).fit(past, y)
    horizon = len(parts[0].future)
    table = pd.DataFrame(model.forecast(horizon, LEVELS, X=future.drop(columns=date)))
    aligned = future[[name, date]].merge(table, how="left", on=[name, date], validate="1:1")
    bands = aligned[[f"{level:g}" for level in LEVELS]].to_numpy(float)
    return np.split(bands, len(parts)), model.best_expression_


def by_each(parts: list[Part], unit: Panel) -> tuple[list[np.ndarray], str]:
    """Forecast by one model for each group, with its other columns or by dates only."""
    found = []
    for part in parts:
        past, future = part.past.iloc[:, 1:], part.future.iloc[:, 2:]
        model = AutoKernelGPRegressor(strategy="series", random_state=unit.seed)
        if unit.method == "each_by_dates" or not future.shape[1]:
            model.fit(past.iloc[:, :1], part.y[: part.n_past])
            table = model.forecast(len(future), LEVELS)
        else:
            model.fit(past, part.y[: part.n_past])
            table = model.forecast(len(future), LEVELS, X=future.reset_index(drop=True))
        found.append(np.stack([table[f"{level:g}"] for level in LEVELS], axis=1))
    return found, ""


def by_catboost(parts: list[Part], unit: Panel) -> tuple[list[np.ndarray], str]:
    """Forecast by boosted trees, as many as forecast the last rows to train on best."""
    from catboost import CatBoostRegressor, Pool

    period, horizon = PERIODS[unit.dataset], len(parts[0].future)
    scales = [_scale(part.y[: part.n_past], period) for part in parts]

    def fit(n_trees: int, n_held: int) -> tuple[CatBoostRegressor, list[pd.DataFrame], np.ndarray]:
        known, targets, steps, levels = [], [], [], []
        for part, scale in zip(parts, scales, strict=True):
            y, columns = part.y[: part.n_past - n_held] / scale, _columns_of(part.rows)
            features, relative = pairs_of(y, columns, horizon, period)
            known.append(pd.DataFrame(features).assign(name=part.rows.iloc[0, 0]))
            targets.append(relative)
            features, level, _ = steps_from(y, columns, len(y) - 1, horizon, period)
            steps.append(pd.DataFrame(features).assign(name=part.rows.iloc[0, 0]))
            levels.append(level)
        held = None
        if n_held:
            after = [
                part.y[part.n_past - n_held : part.n_past] / scale - level
                for part, scale, level in zip(parts, scales, levels, strict=True)
            ]
            held = Pool(pd.concat(steps), np.concatenate(after), cat_features=["name"])
        model = CatBoostRegressor(
            n_trees,
            learning_rate=0.05,
            loss_function="MultiQuantile:alpha=" + ",".join(f"{level:g}" for level in LEVELS),
            thread_count=1,
            random_seed=unit.seed,
            verbose=False,
            allow_writing_files=False,
        )
        pool = Pool(pd.concat(known), np.concatenate(targets), cat_features=["name"])
        model.fit(pool, eval_set=held, early_stopping_rounds=MAX_TREES // 10 if n_held else None)
        return model, steps, np.array(levels)

    tried, _, _ = fit(MAX_TREES, horizon)
    model, steps, levels = fit(tried.tree_count_, 0)
    return [
        np.sort(scale * (level + model.predict(features)), axis=1)
        for features, level, scale in zip(steps, levels, scales, strict=True)
    ], ""


def _columns_of(rows: pd.DataFrame) -> np.ndarray:
    """Time, month and the other columns of a group."""
    dates = rows.iloc[:, 1]
    month = dates.dt.month if hasattr(dates, "dt") else np.zeros(len(dates))
    return np.column_stack([np.arange(len(dates)), month, rows.iloc[:, 2:].to_numpy(float)])


FORECASTS: Mapping[str, Callable[[list[Part], Panel], tuple[list[np.ndarray], str]]] = {
    "naive": by_naive,
    "autokernel": by_autokernel,
    "each": by_each,
    "each_by_dates": by_each,
    "catboost": by_catboost,
}


def summarise(rows: Sequence[Mapping[str, str]]) -> None:
    """Print the errors of each panel and method over those of naive, and their means."""
    table = []
    naive = {row["dataset"]: row for row in rows if row["method"] == "naive"}
    for (method, seed), found in group(rows, lambda row: (row["method"], row["seed"])).items():
        base = [naive[row["dataset"]] for row in found]
        ratios = {
            name: numbers(found, error) / numbers(base, error) for name, error in ERRORS.items()
        }
        table.append(
            {
                "method": method,
                "seed": seed,
                "panels": len(found),
                **{name: float(np.exp(np.mean(np.log(of)))) for name, of in ratios.items()},
                "inside": float(numbers(found, "inside").mean()),
                "worst": float(numbers(found, "worst").max()),
                "cpu max": float(numbers(found, "cpu_seconds").max()),
                **dict.fromkeys(naive, ""),
                **{
                    row["dataset"]: f"{mase:.3f} {loss:.3f} {float(row['inside']):.2f}"
                    for row, mase, loss in zip(found, ratios["MASE"], ratios["QL"], strict=True)
                },
            }
        )
    print()
    print_table(table)


def main() -> None:
    """Measure what is missing, and print the table."""
    parser = make_parser(__doc__, datasets=PANELS, seeds=1)
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=METHODS)
    parser.add_argument("--groups", type=int, default=N_GROUPS, help="at most so many of a panel")
    parser.add_argument("--label", default="now")
    arguments = parse(parser, small={"groups": 4})
    has_catboost = importlib.util.find_spec("catboost") is not None
    units = [
        Panel(arguments.label, method, dataset, arguments.groups, seed)
        for method in ("naive", *arguments.methods)
        if has_catboost or arguments.finished or method != "catboost"
        for dataset in arguments.datasets
        for seed in range(arguments.seeds if method != "naive" else 1)
    ]
    summarise(collect(NAME, units, measure, arguments, any_commit=True))


if __name__ == "__main__":
    main()
