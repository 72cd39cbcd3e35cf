"""How well the default predicts rows of many small tables, beside simpler models.

24 tables and series of tables.py, 100 to 500 rows, ten random splits each: 100 rows to train, or
two thirds if these are fewer, and the rest to test. Methods:

- ``default``: the estimator as it is;
- ``design``: the same without a search, the best of the kernels that it begins with;
- ``matern``: scikit-learn's Gaussian process with one Matern kernel, a lengthscale for each column,
  and indicators of categories and gaps;
- ``ridge``: scikit-learn's ridge regression, its penalty by leaving out;
- ``catboost``: CatBoost with its defaults, if it is installed.

Errors are in standard deviations of the target over the whole table, and the NLL is that of the
standardised target. ``--task steps`` follows what each gain of evidence in a search does to held-out
density. Rows go to results/accuracy.csv and accuracy_steps.csv. ``--label`` names the version that
runs; it is compared with that of ``--against``.

    AUTOKERNEL_DATA=folder python benchmarks/accuracy.py --jobs 2     # two hours
    python benchmarks/accuracy.py --small --jobs 2                    # 8 sets, 3 splits: 10 minutes
"""

import importlib.util
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from common import (  # isort: skip
    Row,
    append_rows,
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
from tables import JUDGED, TAUGHT, load_table  # isort: skip

import numpy as np
import pandas as pd
from scipy.stats import norm
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel
from sklearn.impute import SimpleImputer
from sklearn.linear_model import RidgeCV
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from autokernel import AutoKernelGPRegressor, parse_expression
from autokernel.inference import ExactPredictor
from autokernel.model import MixtureComponent, MixturePredictor

NAME, STEPS = "accuracy", "accuracy_steps"  # of the CSV files
OWN, OTHERS = ("default", "design"), ("matern", "ridge", "catboost")
N_TRAIN, SHARE = 100, 2 / 3  # rows to train on, at most this share of a table
N_TRAIN_OF_TAUGHT = 120
QUICK = list(JUDGED)[:8]
MAX_RMSE, MAX_NLL = 1.15, 0.25  # times, and nats above, what the best simpler model reaches


@dataclass(frozen=True, slots=True)
class Fit:
    """What a row is measured for; ``label`` is empty for other packages."""

    label: str
    dataset: str
    split: int
    method: str


@dataclass(frozen=True, slots=True)
class Split:
    """Rows to train and to test on, and the deviation of the whole target."""

    X: pd.DataFrame
    y: np.ndarray
    X_test: pd.DataFrame
    y_test: np.ndarray
    scale: float


def split_of(dataset: str, seed: int) -> Split:
    """Draw the rows to train on."""
    X, y = load_table(dataset)
    order = np.random.default_rng(100 + seed).permutation(len(y))
    n_train = N_TRAIN if dataset in JUDGED else N_TRAIN_OF_TAUGHT
    train, test = np.split(order, [min(n_train, int(SHARE * len(y)))])
    return Split(X.iloc[train], y[train], X.iloc[test], y[test], float(y.std()))


def measure(unit: Fit) -> Row:
    """Fit one method to one split."""
    split = split_of(unit.dataset, unit.split)
    began = time.process_time()
    found = fit_own(unit, split) if unit.method in OWN else fit_other(unit.method, split)
    return {**found, "cpu_seconds": rounded(time.process_time() - began)}


def errors(split: Split, mean: np.ndarray) -> dict[str, float]:
    """Compute the RMSE."""
    return {"rmse": rounded(float(np.sqrt(np.mean((mean - split.y_test) ** 2))) / split.scale)}


def fit_own(unit: Fit, split: Split) -> dict[str, object]:
    """Fit the estimator, with or without a search."""
    options = {} if unit.method == "default" else {"n_iter": 0}
    model = AutoKernelGPRegressor(random_state=0, **options).fit(split.X, split.y)
    low, high = model.predict_interval(split.X_test).T
    density = model.log_predictive_density(split.X_test, split.y_test)
    medians = model.predict_quantiles(split.X_test, [0.5])[:, 0]
    if unit.method == "default":
        follow(unit, model, split)
    return {
        **errors(split, model.predict(split.X_test)),
        "nll": rounded(-float(np.mean(density)) - np.log(split.scale)),
        "coverage": rounded(float(np.mean((low <= split.y_test) & (split.y_test <= high)))),
        "rmse_of_medians": errors(split, medians)["rmse"],
        "score": rounded(model.best_score_),
        "kernel": model.best_expression_,
    }


def follow(unit: Fit, model: AutoKernelGPRegressor, split: Split) -> None:
    """Write a row for each kernel that was the best of the search so far."""
    best, rows = -np.inf, []
    data, X = model._fitted.mixture.data, split.X_test
    for number, trial in enumerate(model._past.history.trials):
        found = trial.evaluation
        if found.score <= best:
            continue
        best = found.score
        point = [MixtureComponent(found.expression, found.theta, 1.0)]
        mixture = MixturePredictor(point, data, ExactPredictor)
        one = AutoKernelGPRegressor()
        vars(one).update(vars(model))
        one._fitted = replace(model._fitted, mixture=mixture)
        density = one.log_predictive_density(X, split.y_test)
        rows.append(
            {
                "label": unit.label,
                "dataset": unit.dataset,
                "split": unit.split,
                "trial": number,
                "phase": str(trial.phase),
                "score": rounded(found.score),
                "prior": rounded(found.log_structure_prior),
                "nll": rounded(-float(np.mean(density)) - np.log(split.scale)),
                **errors(split, one.predict_quantiles(X, [0.5])[:, 0]),
                "n_leaves": found.expression.n_leaves,
                "kernel": str(found.expression),
            }
        )
    append_rows(STEPS, rows)


def fit_other(method: str, split: Split) -> dict[str, object]:
    """Fit a method of another package."""
    empty = {"rmse_of_medians": np.nan, "score": np.nan, "kernel": ""}
    if method == "catboost":
        return {**errors(split, predict_by_catboost(split)), "nll": np.nan, "coverage": np.nan} | empty
    if method == "ridge":
        model = prepared(split, RidgeCV(np.logspace(-4, 4, 33)))
        model.fit(split.X, split.y)
        return {**errors(split, model.predict(split.X_test)), "nll": np.nan, "coverage": np.nan} | empty
    n_inputs = prepared(split, None)[:-1].fit_transform(split.X).shape[1]
    kernel = ConstantKernel() * Matern(np.ones(n_inputs), (1e-2, 1e3), nu=2.5) + WhiteKernel(0.1)
    process = GaussianProcessRegressor(
        kernel, normalize_y=True, n_restarts_optimizer=2, random_state=unit_seed(split)
    )
    model = prepared(split, process).fit(split.X, split.y)
    mean, std = model.predict(split.X_test, return_std=True)
    z = (split.y_test - mean) / std
    return {
        **errors(split, mean),
        "nll": rounded(-float(np.mean(norm.logpdf(z) - np.log(std))) - np.log(split.scale)),
        "coverage": rounded(float(np.mean(np.abs(z) <= norm.ppf(0.975)))),
    } | empty


def unit_seed(split: Split) -> int:
    """Seed other packages by the number of rows to train on."""
    return len(split.y)


def prepared(split: Split, model: object) -> Pipeline:
    """Standardise numbers, and turn categories and gaps into indicators."""
    numeric = make_column_selector(dtype_include="number")
    steps = make_column_transformer(
        (make_pipeline(SimpleImputer(add_indicator=True), StandardScaler()), numeric),
        (
            OneHotEncoder(handle_unknown="ignore", sparse_output=False),
            make_column_selector(dtype_exclude="number"),
        ),
    )
    return make_pipeline(steps, model)


def predict_by_catboost(split: Split) -> np.ndarray:
    """Predict with CatBoost's defaults."""
    from catboost import CatBoostRegressor  # noqa: PLC0415 - optional

    names = list(split.X.select_dtypes(exclude="number").columns)
    X, X_test = (one.astype(dict.fromkeys(names, str)) for one in (split.X, split.X_test))
    model = CatBoostRegressor(
        cat_features=names, random_seed=0, verbose=False, thread_count=1, allow_writing_files=False
    )
    return model.fit(X, split.y).predict(X_test)


def table_of(rows: Sequence[Mapping[str, str]], label: str) -> list[dict[str, object]]:
    """Compute means and worst splits by set for one version."""
    lines = []
    for dataset, of_set in group(rows, lambda row: row["dataset"]).items():
        by = group(of_set, lambda row: row["method"])
        own = {m: {r["split"]: r for r in by.get(m, []) if r["label"] == label} for m in OWN}
        other = {m: {r["split"]: r for r in by.get(m, [])} for m in OTHERS}
        splits = sorted(set(own["default"]) & set(own["design"]))
        if not splits:
            continue

        def column(found: Mapping[str, Mapping[str, str]], name: str) -> np.ndarray:
            return np.array([float(found[s][name]) if s in found else np.nan for s in splits])

        rmse = column(own["default"], "rmse")
        nll = column(own["default"], "nll")
        simple = np.nanmin(
            [column(own["design"], "rmse"), *(column(other[m], "rmse") for m in OTHERS[:2])], axis=0
        )
        floor = np.nanmin([column(own["design"], "nll"), column(other["matern"], "nll")], axis=0)
        less = nll - column(own["design"], "nll")
        lines.append(
            {
                "set": dataset,
                "splits": len(splits),
                **{f"rmse {m}": float(np.mean(column(own[m], "rmse"))) for m in OWN},
                **{f"rmse {m}": float(np.mean(column(other[m], "rmse"))) for m in OTHERS},
                "worst ratio": float(np.max(rmse / simple)),
                **{f"nll {m}": float(np.mean(column(own[m], "nll"))) for m in OWN},
                "nll matern": float(np.mean(column(other["matern"], "nll"))),
                "nll less design": f"{less.mean():.3f} ± {standard_error(less):.3f}",
                "worst nll": float(np.max(nll - floor)),
                "coverage": float(np.mean(column(own["default"], "coverage"))),
                "too far": int(np.sum((rmse > MAX_RMSE * simple) | (nll > floor + MAX_NLL))),
                "cpu": float(np.mean(column(own["default"], "cpu_seconds"))),
            }
        )
    return lines


def summarise(rows: Sequence[Mapping[str, str]], labels: Sequence[str]) -> None:
    """Print the table of each version, and differences of the two split by split."""
    for label in labels:
        lines = table_of(rows, label)
        if not lines:
            continue
        print(f"\n{label}:")
        print_table(lines)
        less = [
            float(line["nll default"]) - float(line["nll design"])  # type: ignore[arg-type]
            for line in lines
        ]
        covered = [float(line["coverage"]) for line in lines]  # type: ignore[arg-type]
        print(
            f"{sum(int(line['too far']) for line in lines)} of "  # type: ignore[call-overload]
            f"{sum(int(line['splits']) for line in lines)} fits too far; NLL less design "  # type: ignore[call-overload]
            f"{np.mean(less):.3f}; coverage in .93 to .97 on "
            f"{sum(0.93 <= one <= 0.97 for one in covered)} of {len(lines)}, least {min(covered):.3f}"
        )
    default = {
        (row["label"], row["dataset"], row["split"]): row
        for row in rows
        if row["method"] == "default"
    }
    pairs = [
        (default[labels[0], d, s], row)
        for (label, d, s), row in default.items()
        if label == labels[-1] and len(labels) > 1 and (labels[0], d, s) in default
    ]
    if pairs:
        print(f"\n{labels[-1]} less {labels[0]}, {len(pairs)} fits:")
        for name in ("rmse", "nll", "coverage", "cpu_seconds"):
            old, new = (numbers(side, name) for side in zip(*pairs, strict=True))
            less = new - old
            print(f"{name}: {less.mean():.4f} ± {standard_error(less):.4f}, median {np.median(less):.4f}")


def main() -> None:
    """Measure what is missing and print the tables."""
    parser = make_parser(__doc__, datasets=[*JUDGED, *TAUGHT], seeds=10, what="splits")
    parser.set_defaults(datasets=list(JUDGED))
    parser.add_argument("--label", default="now", help="name of the version that runs")
    parser.add_argument("--against", default="before", help="name of the version to compare with")
    parser.add_argument("--methods", nargs="+", default=[*OWN, *OTHERS], choices=[*OWN, *OTHERS])
    arguments = parse(parser, small={"datasets": QUICK, "seeds": 3})
    print_environment()
    methods = list(arguments.methods)
    if importlib.util.find_spec("catboost") is None and "catboost" in methods:
        methods.remove("catboost")
    units = [
        Fit(arguments.label if method in OWN else "", dataset, split, method)
        for split in range(arguments.seeds)
        for dataset in arguments.datasets
        for method in methods
    ]
    run_missing(NAME, units, measure, n_jobs=arguments.jobs, any_commit=True)
    rows = [row for row in read_rows(NAME) if row["dataset"] in arguments.datasets]
    summarise(rows, list(dict.fromkeys([arguments.against, arguments.label])))


if __name__ == "__main__":
    main()
