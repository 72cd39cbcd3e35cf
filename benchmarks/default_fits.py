"""Test errors, bands, sizes and cost of the default fit, beside those of another version.

Airline, power plant, airfoil and concrete by the protocol of runs.py, with the paper's numbers of
rows to train on, and with 120. ``--label`` names the version that is imported: rows of the version
before are made by the same file in a checkout of that version, with ``--label`` "before" and
``AUTOKERNEL_RESULTS`` naming the folder of these results. NLL and coverage of the 95 % interval are
those of the predictive distribution. ``init`` is the best kernel before the search at its best
parameters, ``ard`` a product of Matern kernels over all columns, at its best parameters too.
``point`` is the best kernel at its best parameters, and ``stacking`` the mixture whose weights
maximise the density of rows left out, both of the same search.

Rows go to results/default_fits.csv, and rows of any commit count.

    AUTOKERNEL_DATA=folder python benchmarks/default_fits.py --jobs 2     # an hour of CPU time
    python benchmarks/default_fits.py --small
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

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
from data import load  # isort: skip
from published import TEST_NLL, TEST_RMSE  # isort: skip
from runs import DATASETS, N_TRAIN, Prediction, Split, mean_nll, pose, rmse  # isort: skip
from runs import NAME as SEARCHED  # isort: skip

import numpy as np

from autokernel import AutoKernelGPRegressor, Stacking, parse_expression
from autokernel.inference import ExactPredictor
from autokernel.model import MixtureComponent, MixturePredictor

NAME = "default_fits"  # of the CSV file
FEW = 120
OTHERS = ("init", "ard", "point", "stacking")
MEASURES = ("rmse", "nll", "coverage", "n_leaves", "cpu_seconds")


@dataclass(frozen=True, slots=True)
class Fit:
    """What a row is measured for."""

    label: str
    dataset: str
    n_train: int
    seed: int
    n_iter: int


def measure(unit: Fit) -> Row:
    """Fit one split and measure its errors."""
    X, y = load(unit.dataset)
    X = (X - X.min(axis=0)) / np.ptp(X, axis=0)
    y = (y - y.mean()) / y.std()
    order = np.random.default_rng(unit.seed).permutation(len(y))
    train, test = np.split(order, [unit.n_train])
    split = Split(X[train], y[train], X[test], y[test])
    began = time.process_time()
    model = AutoKernelGPRegressor(n_iter=unit.n_iter, random_state=unit.seed)
    model.fit(split.X_train, split.y_train)
    seconds = time.process_time() - began
    predicted = Prediction(*model.predict(split.X_test, return_std=True))
    history = model.search_history_
    return {
        "rmse": rounded(rmse(predicted, split.y_test)),
        **bands_of(model, predicted, split),
        "n_leaves": parse_expression(model.best_expression_).n_leaves,
        "cpu_seconds": rounded(seconds),
        "score_per_sample": rounded(model.best_score_ / unit.n_train),
        **baselines_of(model, split),
        **other_averages_of(model, split),
        "n_evaluations": len(history["score"]),
        "n_pruning": int(np.sum(history["phase"] == "pruning")),
        "kernel": model.best_expression_,
    }


def bands_of(model: AutoKernelGPRegressor, predicted: Prediction, split: Split) -> dict[str, float]:
    """Compute the NLL and the coverage; versions before the mixture predict a normal density."""
    X, y = split.X_test, split.y_test
    if hasattr(model, "predict_interval"):
        low, high = model.predict_interval(X).T
        nll = -float(np.mean(model.log_predictive_density(X, y)))
    else:
        low, high = (predicted.mean + sign * 1.96 * predicted.std for sign in (-1, 1))
        nll = mean_nll(predicted, y)
    return {"nll": rounded(nll), "coverage": rounded(float(np.mean((low < y) & (y < high))))}


def baselines_of(model: AutoKernelGPRegressor, split: Split) -> dict[str, float]:
    """Compute the errors of the best kernel before the search, and of an ARD Matern kernel."""
    problem = pose(split.X_train, split.y_train, seed=model.random_state)
    initial = [t.evaluation for t in model._past.history.trials if t.phase == "initial"]
    ard = " * ".join(f"MAT52[{column}]" for column in range(split.X_train.shape[1]))
    found = {}
    for name, evaluation in {
        "init": max(initial, key=lambda one: one.score),
        "ard": problem.evaluator(parse_expression(ard)),
    }.items():
        predicted = Prediction(*problem._conditioned(evaluation).mean_and_std(split.X_test))
        found[f"{name}_rmse"] = rounded(rmse(predicted, split.y_test))
        found[f"{name}_nll"] = rounded(mean_nll(predicted, split.y_test))
    return found


def other_averages_of(model: AutoKernelGPRegressor, split: Split) -> dict[str, float]:
    """Compute the errors of other predictions from the same search."""
    problem = pose(split.X_train, split.y_train, seed=model.random_state)
    best = model._fitted.evaluation
    point = [MixtureComponent(best.expression, best.theta, 1.0)]
    stacked = Stacking().components(problem.evaluator, model._fitted.kernels)
    X, y = split.X_test, split.y_test
    found = {}
    for name, components in {"point": point, "stacking": stacked}.items():
        mixture = MixturePredictor(components, problem.evaluator.data, ExactPredictor)
        other = replace(model._fitted, mixture=mixture)
        low, high = other.quantiles(X, np.array([0.025, 0.975])).T
        found[f"{name}_rmse"] = rounded(rmse(Prediction(*other.mean_and_std(X)), y))
        found[f"{name}_nll"] = rounded(-float(np.mean(other.log_density(X, y))))
        found[f"{name}_coverage"] = rounded(float(np.mean((low < y) & (y < high))))
    return found


def summarise(rows: Sequence[Mapping[str, str]]) -> None:
    """Print means by set and version, and differences from the other version split by split."""
    table = []
    for (dataset, n_train), of_set in group(
        rows, lambda row: (row["dataset"], row["n_train"])
    ).items():
        by_label = group(of_set, lambda row: row["label"])
        for label, found in by_label.items():
            line: dict[str, object] = {"set": f"{dataset}, {n_train}", "version": label}
            line["splits"] = len(found)
            for name in MEASURES:
                middle = np.median if name == "n_leaves" else np.mean
                line[name] = float(middle(numbers(found, name)))
            before = {row["seed"]: row for row in by_label.get("before", [])}
            pairs = [(row, before[row["seed"]]) for row in found if row["seed"] in before]
            for name in ("rmse", "nll") if label != "before" and pairs else ():
                less = np.array([float(new[name]) - float(old[name]) for new, old in pairs])
                line[f"{name} less before"] = f"{less.mean():.4f} ± {standard_error(less):.4f}"
                line[f"{name} lower"] = int(np.sum(less < 0))
            for baseline in OTHERS:
                less = numbers(found, "nll") - numbers(found, f"{baseline}_nll")
                line[f"nll less {baseline}"] = f"{less.mean():.4f} ± {standard_error(less):.4f}"
            if int(n_train) == N_TRAIN[dataset]:
                line["paper"] = f"{TEST_RMSE[dataset]['sot']} / {TEST_NLL[dataset]['sot']}"
            table.append(line)
    columns = list(dict.fromkeys(name for line in table for name in line))
    print_table([{name: line.get(name, "") for name in columns} for line in table])


def searched_before(n_iter: str) -> list[dict[str, str]]:
    """Take runs of the first stage from another benchmark, which ran the same splits."""
    return [
        {
            **dict.fromkeys((*MEASURES, *(f"{one}_nll" for one in OTHERS)), "nan"),
            **row,
            "label": "before",
            "n_train": str(N_TRAIN[row["dataset"]]),
        }
        for row in read_rows(SEARCHED)
        if row["strategy"] == "sot" and row["n_iter"] == n_iter
    ]


def main() -> None:
    """Measure what is missing and print the table."""
    parser = make_parser(__doc__, datasets=list(DATASETS), seeds=5)
    parser.add_argument("--label", default="now", help="name of the version that runs")
    parser.add_argument("--n-iter", type=int, default=50)
    parser.add_argument("--sizes", nargs="+", default=["paper", "few"], choices=["paper", "few"])
    arguments = parse(parser, small={"datasets": ["airline"], "seeds": 1, "n_iter": 5})
    print_environment()
    units = [
        Fit(arguments.label, dataset, FEW if size == "few" else N_TRAIN[dataset], seed, n_iter)
        for n_iter in [arguments.n_iter]
        for seed in range(arguments.seeds)
        for size in arguments.sizes
        for dataset in arguments.datasets
    ]
    run_missing(NAME, units, measure, n_jobs=arguments.jobs, any_commit=True)
    n_iter = str(arguments.n_iter)
    rows = [row for row in read_rows(NAME) if row["n_iter"] == n_iter]
    have = {(row["label"], row["dataset"], row["n_train"], row["seed"]) for row in rows}
    for row in searched_before(n_iter):
        key = ("before", row["dataset"], row["n_train"], row["seed"])
        if key not in have and ("now", *key[1:]) in have:
            rows.append(row)
    summarise(rows)


if __name__ == "__main__":
    main()
