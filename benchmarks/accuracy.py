"""How well the default predicts rows of many small tables, next to simpler models.

24 tables and series of tables.py, 100 to 500 rows, ten random splits each: 100 rows to train, or
two thirds if these are fewer, and the rest to test. Methods:

- ``default``: the estimator as it is;
- ``design``: the same without a search, the best of the kernels that it begins with.

The table also has rows that a program of 4eef7427 measured: ``matern``, scikit-learn's Gaussian
process with one Matern kernel, a lengthscale for each column, and indicators of categories and
gaps; ``ridge``, scikit-learn's ridge regression, its penalty by leaving out; and ``catboost`` with
its defaults.

``--datasets`` also takes ten tables of 300 to 5000 rows to train on. ``within`` is the share of
rows within 1.96 standard deviations of the mean, ``worst`` the least log density of a row, and
``claimed`` the share of the variance that rows left out by the fit show, less the true one. Errors
are in standard deviations of the target over the whole table, and the NLL is that of the
standardised target. A fit is ``too far`` if its RMSE is above 1.15 times the best of the design, a
Matern kernel and ridge regression, or its NLL more than 0.25 above the best of the first two.
Rows go to results/accuracy.csv. ``--label`` names the version that runs, which is compared with
that of ``--against``; rows of other packages have no label.

    AUTOKERNEL_DATA=folder python benchmarks/accuracy.py --jobs 2            # two hours
    AUTOKERNEL_DATA=folder python benchmarks/accuracy.py --small --jobs 2    # 8 sets, 3 splits
"""

import time

import common
import numpy as np
import pandas as pd
from common import Row, Rows, Split, rmse, standard_error
from tables import JUDGED, LARGER, TAUGHT, load_table

from autokernel import AutoKernelGPRegressor

NAME = "accuracy"  # of the CSV file
FIGURES = ("rmse", "nll", "coverage", "coverage_50", "coverage_80", "within", "worst", "claimed")
OWN, OTHERS = ("default", "design"), ("matern", "ridge", "catboost")
N_TRAIN, SHARE = 100, 2 / 3  # rows to train on, at most this share of a table
N_TRAIN_OF_TAUGHT = 120
MAX_TEST = 2000  # rows
COVERAGES = (0.5, 0.8, 0.95)
MAX_RMSE, MAX_NLL = 1.15, 0.25  # times, and nats above, what the best simpler model reaches


def split_of(dataset: str, seed: int) -> Split:
    X, y = load_table(dataset)
    order = np.random.default_rng(100 + seed).permutation(len(y))
    n_train = N_TRAIN if dataset in JUDGED else N_TRAIN_OF_TAUGHT
    n_train = LARGER[dataset][1] if dataset in LARGER else min(n_train, int(SHARE * len(y)))
    train, test, _ = np.split(order, [n_train, n_train + MAX_TEST])
    return Split(X.iloc[train], y[train], X.iloc[test], y[test], float(y.std()))


def measure(label: str, dataset: str, split: int, method: str) -> Row:
    data = split_of(dataset, split)
    began = time.process_time()
    options = {} if method == "default" else {"n_iter": 0}
    found = assess(AutoKernelGPRegressor(random_state=0, **options).fit(data.X, data.y), data)
    return {**found, "cpu_seconds": time.process_time() - began}


def error_of(split: Split, mean: np.ndarray) -> float:
    return rmse(mean, split.y_test) / split.scale


def assess(model: AutoKernelGPRegressor, split: Split) -> dict[str, object]:
    ends = (model.predict_interval(split.X_test, coverage).T for coverage in COVERAGES)
    half, most, whole = (np.mean((a <= split.y_test) & (split.y_test <= b)) for a, b in ends)
    mean, std = model.predict(split.X_test, return_std=True)
    density = model.log_predictive_density(split.X_test, split.y_test) + np.log(split.scale)
    medians = model.predict_quantiles(split.X_test, [0.5])[:, 0]
    away = split.y_test - split.y.mean()
    explained = 1 - np.mean((split.y_test - mean) ** 2) / np.mean(away**2)
    return {
        "rmse": error_of(split, mean),
        "nll": -float(np.mean(density)),
        "coverage": whole,
        "coverage_50": half,
        "coverage_80": most,
        "within": np.mean(np.abs(split.y_test - mean) <= 1.96 * std),
        "worst": float(density.min()),
        "claimed": getattr(model, "left_out_score_", np.nan) - explained,
        "rmse_of_medians": error_of(split, medians),
        "score": model.best_score_,
        "kernel": model.best_expression_,
    }


def numbers_of(rows: Rows) -> pd.DataFrame:
    """Turn rows into a table by set and split, the last of several for one method."""
    table = pd.DataFrame(rows).replace("", np.nan)
    table = table.drop_duplicates(["dataset", "split", "method"], keep="last")
    values = [*FIGURES, "cpu_seconds"]
    table[values] = table[values].astype(float)
    return table.pivot(index=["dataset", "split"], columns="method", values=values)


def summarise(rows: Rows, label: str) -> None:
    table = numbers_of([row for row in rows if row["label"] in (label, "")])
    if not {"default", "design", "matern", "ridge"} <= {*table["nll"]}:  # only compared
        return
    methods = [one for one in (*OWN, *OTHERS) if one in table["rmse"]]
    table = table[table["nll"]["default"].notna()]
    rmse, nll = table["rmse"], table["nll"]
    ratio = rmse["default"] / rmse[["design", "matern", "ridge"]].min(axis=1)
    above = nll["default"] - nll[["design", "matern"]].min(axis=1)
    less = nll["default"] - nll["design"]
    is_far = (ratio > MAX_RMSE) | (above > MAX_NLL)
    lines = []
    for dataset in table.index.unique("dataset"):
        found, own = table.loc[[dataset]], less.loc[[dataset]].to_numpy()
        lines.append(
            {"set": dataset, "splits": len(found)}
            | {f"RMSE {m}": float(found["rmse"][m].mean()) for m in methods}
            | {f"NLL {m}": float(found["nll"][m].mean()) for m in (*OWN, "matern")}
            | {
                "less design": f"{own.mean():.3f} ± {standard_error(own):.3f}",
                "coverage": float(found["coverage"]["default"].mean()),
                "worst RMSE": float(ratio.loc[dataset].max()),
                "worst NLL": float(above.loc[dataset].max()),
                "too far": int(is_far.loc[dataset].sum()),
                "CPU s": float(found["cpu_seconds"]["default"].mean()),
            }
        )
    coverage = table["coverage"]["default"].groupby("dataset").mean()
    is_right = coverage.between(0.93, 0.97)
    print(f"\n{label}:")
    common.print_table(lines)
    print(
        f"{is_far.sum()} of {len(table)} fits too far; NLL less design {less.mean():.4f}; coverage "
        f"in .93 to .97 on {is_right.sum()} of {len(coverage)} sets, least {coverage.min():.3f}"
    )


def compare(rows: Rows, before: str, now: str) -> None:
    """Print how two versions differ, split by split, if both have rows."""
    if before == now or not {before, now} <= {row["label"] for row in rows}:
        return
    both = [
        numbers_of([row for row in rows if (row["label"], row["method"]) == (one, "default")])
        for one in (before, now)
    ]
    shared = both[0].index.intersection(both[1].index)
    old, new = (one.loc[shared] for one in both)
    print(f"\n{now} less {before}, {len(shared)} fits:")
    for name in FIGURES:
        less = (new[name] - old[name])["default"].dropna().to_numpy()
        if not len(less):  # older rows have no such figure
            continue
        print(f"{name}: {less.mean():.4f} ± {standard_error(less):.4f}, worst {less.max():.3f}")
    seconds = [float(one["cpu_seconds"]["default"].sum()) for one in (old, new)]
    print(f"CPU: {seconds[1] / seconds[0]:.2f} times")


def main() -> None:
    arguments = common.options_of(
        __doc__, datasets=JUDGED, by_name={**TAUGHT, **LARGER}, seeds=10, label="now",
        against="before", methods=list(OWN), small={"datasets": list(JUDGED)[:8], "seeds": 3},
    )  # fmt: skip
    units = common.crossed(
        split=range(arguments.seeds),
        dataset=arguments.datasets,
        method=arguments.methods,
        label=[arguments.label],
    )
    common.collect(NAME, units, measure, arguments, any_commit=True)
    rows = [row for row in common.read_rows(NAME) if row["dataset"] in arguments.datasets]
    for label in dict.fromkeys([arguments.against, arguments.label]):
        summarise(rows, label)
    compare(rows, arguments.against, arguments.label)


if __name__ == "__main__":
    main()
