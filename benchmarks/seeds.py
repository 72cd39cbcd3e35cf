"""How much the result of a default fit depends on its seed, and on rounding.

Twelve sets of 100 to 200 rows, each fitted by several seeds; the rows are chosen once. The same
seed rounds otherwise with ``OPENBLAS_CORETYPE=Haswell``, which is a column of the file. A run
agrees if its score is within half a nat of the best that any row has for its set. ``--tables``
fits four tables with categories of tables.py, of 123 to 180 rows.

``--cases`` fits data that have misled a search, without a limit and with ten seconds. ``right``
says, of each:

- smoker: ``2 + 0.8 dose smoker + 0.05 age``, 150 rows. The score is at most half a nat below that
  of ``LIN[dose] * LIN[smoker] + LIN[age]``.
- week: a trend and a week on 775 of 800 days, and the temperature, which has no effect. The score
  is at most half a nat below that of ``LIN[date] + PER[date]``.
- 40 columns: 150 rows. The kernel is over the two columns that matter, and at most one other:
  one of the 38 raises the score by chance.
- sales: 2900 days with price, promotion and temperature. The RMSE on 300 other days is at most 1.5
  times the deviation of the noise; without the week it is five times as large.
- diabetes: 300 rows. The kernel is over at most six of the ten columns, and the score is at most
  half a nat below that of a sum of LIN over six.
- outliers: a trend, 6 of 120 rows off by 15. At each of the six rows, the prediction is nearer to
  the trend than to the target.

Rows go to results/seeds.csv; the tables are of all versions that have rows.

    AUTOKERNEL_DATA=folder python benchmarks/seeds.py              # an hour of CPU time
    python benchmarks/seeds.py --tables
    AUTOKERNEL_DATA=folder python benchmarks/seeds.py --cases
    python benchmarks/seeds.py --finished --any-commit
"""

import math
import os
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import NamedTuple

import common
import numpy as np
import numpy.typing as npt
import pandas as pd
from common import Row, Rows, group, numbers
from data import draw_split
from drawn_structures import draw_kernel
from sklearn.datasets import load_diabetes
from tables import CATEGORICAL, load_table

from autokernel import AutoKernelGPRegressor, parse_expression

NAME = "seeds"  # of the CSV file
CLOSE, NEAR, FAR = 0.5, 1.0, 2.0  # nats below the best score known
LIMIT = 10.0  # seconds of a fit of a case that is cut


class Problem(NamedTuple):
    """Data to fit, and whether a fit of a case is right."""

    X: npt.ArrayLike
    y: np.ndarray
    is_right: Callable[[AutoKernelGPRegressor], bool] | None = None


def rows_of(dataset: str, n_rows: int) -> Problem:
    split = draw_split(dataset, 0, n_train=n_rows)
    return Problem(split.X, split.y)


def drawn_from(kernel: str, seed: int) -> Problem:
    return Problem(*draw_kernel(kernel, seed))


def reaches(kernel: str, X: npt.ArrayLike, y: np.ndarray) -> Callable[..., bool]:
    """Compare the score of a fit with that of a kernel which is known to be good."""

    def is_right(model: AutoKernelGPRegressor) -> bool:
        known = AutoKernelGPRegressor(random_state=0).refit(X, y, kernel=kernel)
        return bool(model.best_score_ >= known.best_score_ - CLOSE)

    return is_right


def columns_of(model: AutoKernelGPRegressor) -> set[int]:
    """Return the columns of the best kernel, if they have no names."""
    return {leaf.column for leaf in parse_expression(model.best_expression_).leaves}


def smoker() -> Problem:
    """Draw an effect of one column that depends on another."""
    rng = np.random.default_rng(1)
    X = pd.DataFrame(
        {
            "dose": rng.uniform(0, 10, 150),
            "age": rng.uniform(20, 80, 150),
            "smoker": rng.integers(0, 2, 150).astype(bool),
        }
    )
    y = 2 + 0.8 * X["dose"] * X["smoker"] + 0.05 * X["age"] + 0.35 * rng.normal(size=150)
    return Problem(X, y.to_numpy(), reaches("LIN[dose] * LIN[smoker] + LIN[age]", X, y.to_numpy()))


def week() -> Problem:
    rng = np.random.default_rng(0)
    day = np.sort(rng.permutation(800)[:775])
    date = pd.Timestamp("2021-01-01") + pd.to_timedelta(day, unit="D")
    X = pd.DataFrame({"date": date, "temperature": rng.normal(10, 6, 775)})
    y = 1500 + 1.2 * day + 400 * np.sin(2 * np.pi * day / 7) + 75 * rng.normal(size=775)
    return Problem(X, y, reaches("LIN[date] + PER[date]", X, y))


def forty_columns() -> Problem:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(150, 40))
    y = np.sin(2 * X[:, 3]) + 0.5 * X[:, 17] + 0.3 * rng.normal(size=150)
    return Problem(X, y, lambda model: {3, 17} <= columns_of(model) and len(columns_of(model)) < 4)


def sales() -> Problem:
    """Draw daily sales with a trend, a week and the effects of two other columns."""
    rng = np.random.default_rng(0)
    day, noise = np.arange(3200), 400.0
    X = pd.DataFrame(
        {
            "date": pd.Timestamp("2016-01-01") + pd.to_timedelta(day, unit="D"),
            "price": rng.uniform(8, 12, 3200),
            "promotion": rng.integers(0, 2, 3200),
            "temperature": 10 + 8 * np.sin(2 * np.pi * day / 365.25) + 3 * rng.normal(size=3200),
        }
    )
    y = 1e4 + 0.5 * day + 3000 * np.sin(2 * np.pi * day / 7)
    y += 600 * X["promotion"] - 800 * (X["price"] - 10) + noise * rng.normal(size=3200)
    test, train = np.split(rng.permutation(3200), [300])

    def is_right(model: AutoKernelGPRegressor) -> bool:
        errors = model.predict(X.iloc[test]) - y.to_numpy()[test]
        return bool(np.sqrt(np.mean(errors**2)) <= 1.5 * noise)

    return Problem(X.iloc[train], y.to_numpy()[train], is_right)


def diabetes() -> Problem:
    """Draw patients; four of the ten columns add nothing."""
    X, y = load_diabetes(return_X_y=True)
    rows = np.random.default_rng(0).permutation(len(y))[:300]
    X, y = X[rows], y[rows]
    as_good = reaches(" + ".join(f"LIN[{column}]" for column in (1, 2, 3, 4, 6, 8)), X, y)
    return Problem(X, y, lambda model: len(columns_of(model)) <= 6 and as_good(model))


def outliers() -> Problem:
    rng = np.random.default_rng(2)
    x = np.sort(rng.uniform(0, 10, 120))
    trend = 2 * np.sin(x) + 0.3 * x
    y = trend + 0.1 * rng.normal(size=120)
    off = rng.permutation(120)[:6]
    y[off] += 15 * rng.choice([-1, 1], 6)

    def is_right(model: AutoKernelGPRegressor) -> bool:
        predicted = model.predict(x[off, None])
        return bool(np.all(np.abs(predicted - trend[off]) < np.abs(predicted - y[off])))

    return Problem(x[:, None], y, is_right)


N_OF_SET = {
    "airline": (100, 144), "mauna": (200,), "solar": (200,), "call_centre": (180,),
    "gas_production": (150,), "power_plant": (150,), "airfoil": (150,), "concrete": (120,),
    "boston_housing": (120,),
}  # fmt: skip
SEED_OF_KERNEL = {"LIN[0] + PER[0] * SE[1]": 4, "LIN[0] * PER[1] + SE[0] * SE[1]": 3}
"""Draws on which a search has found less than the truth."""
SETS: Mapping[str, Callable[[], Problem]] = {
    **{f"{name} {n}": partial(rows_of, name, n) for name, ns in N_OF_SET.items() for n in ns},
    **{kernel: partial(drawn_from, kernel, seed) for kernel, seed in SEED_OF_KERNEL.items()},
}
TABLES: Mapping[str, Callable[[], Problem]] = {
    name: lambda name=name: Problem(*load_table(name)) for name in CATEGORICAL
}
CASES: Mapping[str, Callable[[], Problem]] = {
    "smoker": smoker, "week": week, "40 columns": forty_columns, "sales": sales,
    "diabetes": diabetes, "outliers": outliers,
}  # fmt: skip


def measure(dataset: str, seed: int, max_time: float, coretype: str) -> Row:
    """Fit by the defaults; ``max_time`` is infinite without a limit."""
    X, y, is_right = {**SETS, **TABLES, **CASES}[dataset]()
    limit = max_time if math.isfinite(max_time) else None
    began = time.process_time()
    model = AutoKernelGPRegressor(max_time=limit, random_state=seed).fit(X, y)
    seconds = time.process_time() - began
    return {
        "score": model.best_score_,
        "kernel": model.best_expression_,
        "n_kernels": len(model.search_history_["score"]),
        "cpu_seconds": seconds,
        "stop_reason": model.stop_reason_,
        "right": "" if is_right is None else is_right(model),
    }


def summarise(rows: Rows) -> None:
    best = {name: numbers(found, "score").max() for name, found in group(rows, "dataset").items()}

    def below(found: Rows) -> np.ndarray:
        return np.array([best[row["dataset"]] - float(row["score"]) for row in found])

    def best_known(found: Rows) -> object:
        names = list(group(found, "dataset"))
        return float(best[names[0]]) if len(names) == 1 else ""

    def right(found: Rows) -> object:
        checked = [row["right"] == "True" for row in found if row["right"]]
        return float(np.mean(checked)) if checked else ""

    figures = {
        "runs": len,
        "best known": best_known,
        **{
            f"within {nats}": lambda found, nats=nats: float(np.mean(below(found) <= nats))
            for nats in (CLOSE, NEAR, FAR)
        },
        "most below": lambda found: float(below(found).max()),
        "right": right,
        "CPU s": common.of(np.median, "cpu_seconds"),
    }
    for (commit, coretype), own in group(rows, "commit", "coretype").items():
        print(f"\n{commit}, {coretype}")
        by_fit = group(own, "dataset", "max_time").items()
        lines = {" ".join(fit).removesuffix(" inf"): found for fit, found in by_fit}
        for name, sets in (("all sets", SETS), ("all tables", TABLES)):
            lines[name] = [row for row in own if row["dataset"] in sets]
        common.print_groups({k: found for k, found in lines.items() if found}, "set", figures)


def main() -> None:
    arguments = common.options_of(
        __doc__, datasets=SETS, by_name=(*TABLES, *CASES), seeds=10, cases=False, tables=False,
        small={"datasets": ["concrete 120"], "seeds": 2},
    )  # fmt: skip
    coretype = os.environ.get("OPENBLAS_CORETYPE", "native")
    chosen = CASES if arguments.cases else TABLES if arguments.tables else arguments.datasets
    units = [
        {"dataset": name, "seed": seed, "max_time": limit, "coretype": coretype}
        for seed in range(arguments.seeds)
        for name in chosen
        for limit in ((math.inf, LIMIT) if name in CASES else (math.inf,))
    ]
    common.collect(NAME, units, measure, arguments)
    summarise([row for row in common.read_rows(NAME) if row["dataset"] in chosen])


if __name__ == "__main__":
    main()
