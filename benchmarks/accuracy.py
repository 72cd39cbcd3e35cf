"""How well the default predicts rows of many small tables, next to simpler models.

24 tables and series of tables.py, 100 to 500 rows, ten random splits each: 100 rows to train, or
two thirds if these are fewer, and the rest to test. Methods:

- ``default``: the estimator as it is;
- ``design``: the same without a search, the best of the kernels that it begins with;
- ``matern``: scikit-learn's Gaussian process with one Matern kernel, a lengthscale for each column,
  and indicators of categories and gaps;
- ``ridge``: scikit-learn's ridge regression, its penalty by leaving out;
- ``catboost``: CatBoost with its defaults, if it is installed.

Errors are in standard deviations of the target over the whole table, and the NLL is that of the
standardised target. A fit is ``too far`` if its RMSE is above 1.15 times the best of the design, a
Matern kernel and ridge regression, or its NLL more than 0.25 above the best of the first two.
Rows go to results/accuracy.csv. ``--label`` names the version that runs, which is compared with
that of ``--against``; rows of other packages have no label.

    AUTOKERNEL_DATA=folder python benchmarks/accuracy.py --jobs 2            # two hours
    AUTOKERNEL_DATA=folder python benchmarks/accuracy.py --small --jobs 2    # 8 sets, 3 splits
"""

import time
import warnings

import common
import numpy as np
import pandas as pd
from common import Row, Rows, Split, rmse, standard_error
from scipy.stats import norm
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel
from sklearn.impute import SimpleImputer
from sklearn.linear_model import RidgeCV
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from tables import JUDGED, TAUGHT, load_table

from autokernel import AutoKernelGPRegressor

NAME = "accuracy"  # of the CSV file
OWN, OTHERS = ("default", "design"), ("matern", "ridge", "catboost")
N_TRAIN, SHARE = 100, 2 / 3  # rows to train on, at most this share of a table
N_TRAIN_OF_TAUGHT = 120
MAX_RMSE, MAX_NLL = 1.15, 0.25  # times, and nats above, what the best simpler model reaches


def split_of(dataset: str, seed: int) -> Split:
    X, y = load_table(dataset)
    order = np.random.default_rng(100 + seed).permutation(len(y))
    n_train = N_TRAIN if dataset in JUDGED else N_TRAIN_OF_TAUGHT
    train, test = np.split(order, [min(n_train, int(SHARE * len(y)))])
    return Split(X.iloc[train], y[train], X.iloc[test], y[test], float(y.std()))


def measure(label: str, dataset: str, split: int, method: str) -> Row:
    data = split_of(dataset, split)
    began = time.process_time()
    found = dict.fromkeys(("rmse", "nll", "coverage", "rmse_of_medians", "score"), np.nan)
    found["kernel"] = ""
    if method in OWN:
        options = {} if method == "default" else {"n_iter": 0}
        found |= assess(AutoKernelGPRegressor(random_state=0, **options).fit(data.X, data.y), data)
    elif method == "catboost":
        found["rmse"] = error_of(data, predict_by_catboost(data))
    elif method == "ridge":
        model = prepared(RidgeCV(np.logspace(-4, 4, 33))).fit(data.X, data.y)
        found["rmse"] = error_of(data, model.predict(data.X_test))
    else:
        found |= assess_normal(data, *predict_by_matern(data))
    return {**found, "cpu_seconds": time.process_time() - began}


def error_of(split: Split, mean: np.ndarray) -> float:
    return rmse(mean, split.y_test) / split.scale


def assess(model: AutoKernelGPRegressor, split: Split) -> dict[str, object]:
    low, high = model.predict_interval(split.X_test).T
    density = model.log_predictive_density(split.X_test, split.y_test)
    medians = model.predict_quantiles(split.X_test, [0.5])[:, 0]
    return {
        "rmse": error_of(split, model.predict(split.X_test)),
        "nll": -float(np.mean(density)) - np.log(split.scale),
        "coverage": np.mean((low <= split.y_test) & (split.y_test <= high)),
        "rmse_of_medians": error_of(split, medians),
        "score": model.best_score_,
        "kernel": model.best_expression_,
    }


def assess_normal(split: Split, mean: np.ndarray, std: np.ndarray) -> dict[str, float]:
    """Compute the figures of normal predictive distributions."""
    away = np.abs(split.y_test - mean) / std
    nll = common.normal_nll(mean, std, split.y_test) - np.log(split.scale)
    coverage = np.mean(away <= norm.ppf(0.975))
    return {"rmse": error_of(split, mean), "nll": nll, "coverage": coverage}


def predict_by_matern(split: Split) -> tuple[np.ndarray, np.ndarray]:
    n_inputs = prepared(None)[:-1].fit_transform(split.X).shape[1]
    kernel = ConstantKernel() * Matern(np.ones(n_inputs), (1e-2, 1e3), nu=2.5) + WhiteKernel(0.1)
    process = GaussianProcessRegressor(
        kernel, normalize_y=True, n_restarts_optimizer=2, random_state=len(split.y)
    )
    with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
        return prepared(process).fit(split.X, split.y).predict(split.X_test, return_std=True)


def prepared(model: object) -> Pipeline:
    """Standardise numbers, and turn categories and gaps into indicators."""
    numeric = make_pipeline(SimpleImputer(add_indicator=True), StandardScaler())
    categorical = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    steps = make_column_transformer(
        (numeric, make_column_selector(dtype_include="number")),
        (categorical, make_column_selector(dtype_exclude="number")),
    )
    return make_pipeline(steps, model)


def predict_by_catboost(split: Split) -> np.ndarray:
    from catboost import CatBoostRegressor

    names = list(split.X.select_dtypes(exclude="number").columns)
    X, X_test = (
        one.assign(**one[names].astype(object).fillna("missing").astype(str))
        for one in (split.X, split.X_test)
    )
    model = CatBoostRegressor(
        cat_features=names, random_seed=0, verbose=False, thread_count=1, allow_writing_files=False
    )
    return model.fit(X, split.y).predict(X_test)


def numbers_of(rows: Rows) -> pd.DataFrame:
    """Turn rows into a table by set and split, the last of several for one method."""
    table = pd.DataFrame(rows).replace("", np.nan)
    table = table.drop_duplicates(["dataset", "split", "method"], keep="last")
    values = ["rmse", "nll", "coverage", "cpu_seconds"]
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
    for name in ("rmse", "nll", "coverage"):
        less = (new[name] - old[name])["default"].to_numpy()
        print(f"{name}: {less.mean():.4f} ± {standard_error(less):.4f}, worst {less.max():.3f}")
    seconds = [float(one["cpu_seconds"]["default"].sum()) for one in (old, new)]
    print(f"CPU: {seconds[1] / seconds[0]:.2f} times")


def main() -> None:
    arguments = common.options_of(
        __doc__, datasets=JUDGED, by_name=TAUGHT, seeds=10, label="now", against="before",
        methods=[*OWN, *OTHERS], small={"datasets": list(JUDGED)[:8], "seeds": 3},
    )  # fmt: skip
    has_catboost = common.can_measure("catboost", arguments)
    methods = [one for one in arguments.methods if one != "catboost" or has_catboost]
    splits = range(arguments.seeds)
    units = common.crossed(split=splits, dataset=arguments.datasets, method=methods)
    units = [unit | {"label": arguments.label if unit["method"] in OWN else ""} for unit in units]
    common.collect(NAME, units, measure, arguments, any_commit=True)
    rows = [row for row in common.read_rows(NAME) if row["dataset"] in arguments.datasets]
    for label in dict.fromkeys([arguments.against, arguments.label]):
        summarise(rows, label)
    compare(rows, arguments.against, arguments.label)


if __name__ == "__main__":
    main()
