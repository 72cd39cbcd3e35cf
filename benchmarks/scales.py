"""What scales of columns and of the target gain, and whether they are found where they are true.

The target and the columns are in their own units; errors are on the scale of the target that is
standardised over the whole set. Modes are ``with`` scales, ``without``, and with those of the
``target`` or of the ``columns`` only (``--ablate``). Tasks:

- ``random``: the sets of the SOT paper, with its numbers of rows to train on, and others
  that were chosen before the first fit; rows to test on are drawn at random.
- ``beyond``: the largest fifth of the column that goes most with the target, by rank, is to test
  on, that is the last fifth of a series; rows to train on are drawn from the others.
- ``simulation``: 100 rows from processes that are smooth on a logarithm, a square root or neither,
  of the target and of a column. A scale is identifiable if the evidence of a smooth process, which
  scikit-learn fits on each of the nine pairs of scales, is higher by MARGIN nats than on others.

Rows go to results/scales.csv, those of the simulation to results/scales_simulation.csv, and rows
of any commit count. The sets are those of scale_sets.py.

    AUTOKERNEL_DATA=folder python benchmarks/scales.py --jobs 2     # hours of CPU time
    AUTOKERNEL_DATA=folder python benchmarks/scales.py --task beyond --jobs 2
    python benchmarks/scales.py --task simulation --jobs 2
    python benchmarks/scales.py --small
"""

import argparse
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise, product

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
from scale_sets import KINDS, SETS, Table, draw, smooth_evidence  # isort: skip

import numpy as np
from scipy.stats import spearmanr

from autokernel import AutoKernelGPRegressor

NAME = "scales"  # of the CSV file
SIMULATED = "scales_simulation"  # of the CSV file
OPTIONS: Mapping[str, Mapping[str, str | None]] = {
    "without": {"column_scales": None, "target_scale": None},
    "with": {"column_scales": "auto", "target_scale": "auto"},
    "target": {"column_scales": None, "target_scale": "auto"},
    "columns": {"column_scales": "auto", "target_scale": None},
}
MARGIN = 3.0  # nats
EDGES = (0.0, 0.05, 0.2, 0.5, 0.8, 0.95, 1.0)  # of stated probabilities

Pairs = Sequence[tuple[Mapping[str, str], Mapping[str, str]]]
"""Rows of the same split, with scales and without."""


@dataclass(frozen=True, slots=True)
class Fit:
    """What a row is measured for."""

    label: str
    task: str
    dataset: str
    n_train: int
    seed: int
    n_iter: int
    mode: str


@dataclass(frozen=True, slots=True)
class Case:
    """What a row of the simulation is measured for."""

    label: str
    target: str
    column: str
    seed: int
    n_iter: int


def part(task: str, table: Table, n_train: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Draw the rows to train on and those to test on."""
    order = np.random.default_rng(seed).permutation(len(table.y))
    if task == "random":
        return order[:n_train], order[n_train:]
    columns = table.X.to_numpy().T
    column = max(columns, key=lambda one: abs(spearmanr(one, table.y).statistic))
    limit = np.quantile(column, 0.8)
    held = column > limit if limit < column.max() else column >= limit
    return order[~held[order]][:n_train], np.flatnonzero(held)


def measure(unit: Fit) -> Row:
    """Fit one split and measure its errors."""
    table = SETS[unit.dataset][0]()
    train, test = part(unit.task, table, unit.n_train, unit.seed)
    began = time.process_time()
    model = AutoKernelGPRegressor(
        n_iter=unit.n_iter, random_state=unit.seed, **OPTIONS[unit.mode]
    ).fit(table.X.iloc[train], table.y[train])
    seconds = time.process_time() - began
    X, y, std = table.X.iloc[test], table.y[test], table.y.std()
    low, high = model.predict_interval(X).T
    stated = scales_of(model)
    target = stated.pop("target", {"identity": 1.0})
    return {
        "rmse": rms((model.predict(X) - y) / std),
        "median_rmse": rms((model.predict_quantiles(X, [0.5])[:, 0] - y) / std),
        "nll": rounded(-float(np.mean(model.log_predictive_density(X, y))) - np.log(std)),
        "coverage": rounded(float(np.mean((low <= y) & (y <= high)))),
        "cpu_seconds": rounded(seconds),
        "target_scale": likeliest(target),
        "target_probability": rounded(max(target.values())),
        "column_scales": " ".join(
            f"{name}={likeliest(found)}:{max(found.values()):.3f}"
            for name, found in stated.items()
            if likeliest(found) != "identity"
        ),
        "score": rounded(model.best_score_),
        "n_test": len(test),
        "kernel": model.best_expression_,
    }


def scales_of(model: AutoKernelGPRegressor) -> dict[str, dict[str, float]]:
    """Probabilities of scales, by subject."""
    stated: dict[str, dict[str, float]] = {}
    columns = (model.scales_[name] for name in ("subject", "scale", "probability"))
    for subject, scale, probability in zip(*columns, strict=True):
        stated.setdefault(str(subject), {})[str(scale)] = float(probability)
    return stated


def likeliest(stated: Mapping[str, float]) -> str:
    """Name the scale of the highest probability."""
    return max(stated, key=stated.__getitem__)


def rms(errors: np.ndarray) -> float:
    """Compute the root of the mean square."""
    return rounded(float(np.sqrt(np.mean(errors**2))))


def simulate(case: Case) -> Row:
    """Fit one case and note which scales are found."""
    table = draw(case.target, case.column, seed=case.seed)
    evidence = {pair: smooth_evidence(table, *pair) for pair in product(KINDS, repeat=2)}
    began = time.process_time()
    model = AutoKernelGPRegressor(n_iter=case.n_iter, random_state=case.seed, **OPTIONS["with"])
    model.fit(table.X, table.y)
    seconds = time.process_time() - began
    row: dict[str, object] = {"n_columns": table.X.shape[1]}
    found = scales_of(model)
    for place, (what, subject) in enumerate({"target": "target", "column": "x0"}.items()):
        true = getattr(case, what)
        stated = found.get(subject, {"identity": 1.0})  # of a column without a part in it
        right, wrong = (
            max(value for pair, value in evidence.items() if (pair[place] == true) == is_true)
            for is_true in (True, False)
        )
        row[f"{what}_chosen"] = likeliest(stated)
        row[f"{what}_probability"] = rounded(stated.get(true, 0.0))
        row[f"{what}_stated"] = " ".join(f"{name}:{p:.4f}" for name, p in stated.items())
        row[f"{what}_margin"] = rounded(right - wrong)
    return {**row, "cpu_seconds": rounded(seconds), "kernel": model.best_expression_}


def summarise(rows: Sequence[Mapping[str, str]]) -> None:
    """Print differences from fits without scales, set by set and over all."""
    for (label, task), of_task in group(rows, lambda row: (row["label"], row["task"])).items():
        by_mode = group(of_task, lambda row: row["mode"])
        before = {key_of(row): row for row in by_mode.pop("without", [])}
        for mode, found in by_mode.items():
            print(f"\n{label}, {task}, {mode} less without")
            pairs = [(row, before[key_of(row)]) for row in found if key_of(row) in before]
            by_set = group(pairs, lambda pair: f"{pair[0]['dataset']}, {pair[0]['n_train']}")
            lines = [compare(name, of_set) for name, of_set in by_set.items()]
            if lines:
                print_table([*lines, compare("all", pairs)])
                worse = [name for name, of_set in by_set.items() if is_worse(of_set)]
                print("NLL higher by more than a standard error:", "; ".join(worse) or "none")


def key_of(row: Mapping[str, str]) -> tuple[str, ...]:
    """Name the split of a row."""
    return row["dataset"], row["n_train"], row["seed"]


def less(pairs: Pairs, name: str) -> np.ndarray:
    """Compute differences, split by split."""
    return np.array([float(new[name]) - float(old[name]) for new, old in pairs])


def is_worse(pairs: Pairs) -> bool:
    """Decide whether the mean NLL is higher by more than a standard error."""
    difference = less(pairs, "nll")
    return bool(difference.mean() > np.nan_to_num(standard_error(difference)))


def compare(name: str, pairs: Pairs) -> dict[str, object]:
    """Compute a line of the table."""
    new, old = ([pair[side] for pair in pairs] for side in (0, 1))
    chosen = [scales_in(row) for row in new]
    lower = less(pairs, "nll")[[bool(names) for names in chosen]] < 0
    line: dict[str, object] = {"set": name, "splits": len(pairs)}
    for error in ("nll", "rmse", "median_rmse"):
        difference = less(pairs, error)
        line[error] = float(numbers(new, error).mean())
        line[f"{error} less"] = f"{difference.mean():.4f} ± {standard_error(difference):.4f}"
    seconds = [numbers(side, "cpu_seconds").sum() for side in (new, old)]
    return {
        **line,
        "other scale": len(lower),
        "lower nll": float(lower.mean()) if len(lower) else "",
        "coverage": float(numbers(new, "coverage").mean()),
        "without": float(numbers(old, "coverage").mean()),
        "cpu ratio": float(seconds[0] / seconds[1]),
        "scales": " ".join(f"{one}:{n}" for one, n in Counter(chain(*chosen)).most_common(8)),
    }


def scales_in(row: Mapping[str, str]) -> list[str]:
    """List the scales that were chosen, without identities, as ``subject=scale``."""
    target = row["target_scale"]
    names = [one.rsplit(":", 1)[0] for one in row["column_scales"].split()]
    return [f"target={target}", *names] if target != "identity" else names


def summarise_simulation(rows: Sequence[Mapping[str, str]]) -> None:
    """Print which scales are found, and how often probabilities hold."""
    for label, of_label in group(rows, lambda row: row["label"]).items():
        print(f"\n{label}")
        by_truth = {
            (what, true): [row for row in of_label if row[what] == true]
            for what, true in product(("target", "column"), KINDS)
        }
        print_table([recovery(*truth, found) for truth, found in by_truth.items() if found])
        for what in ("target", "column"):
            pairs = [
                (float(probability), name == row[what])
                for row in of_label
                for name, probability in (one.split(":") for one in row[f"{what}_stated"].split())
            ]
            print(f"\nprobabilities of scales of the {what}")
            print_table(calibration(*np.array(pairs).T))


def recovery(what: str, true: str, rows: Sequence[Mapping[str, str]]) -> dict[str, object]:
    """Compute how often one scale is found."""
    right = np.array([row[f"{what}_chosen"] == true for row in rows])
    clear = numbers(rows, f"{what}_margin") >= MARGIN
    return {
        "of": what,
        "true": true,
        "cases": len(rows),
        "found": float(right.mean()),
        "identifiable": int(clear.sum()),
        "found of these": float(right[clear].mean()) if clear.any() else "",
        "probability": float(numbers(rows, f"{what}_probability").mean()),
    }


def calibration(stated: np.ndarray, held: np.ndarray) -> list[Mapping[str, object]]:
    """Compare stated probabilities with the shares that are true."""
    table = []
    for low, high in pairwise(EDGES):
        inside = (stated > low) & (stated <= high) if low else stated <= high
        if n := int(inside.sum()):
            share = float(held[inside].mean())
            error = np.sqrt(share * (1 - share) / n)
            mean = float(stated[inside].mean())
            table.append({"stated": mean, "n": n, "true": f"{share:.3f} ± {error:.3f}"})
    return table


def ask() -> argparse.Namespace:
    """Parse the options."""
    parser = make_parser(__doc__, datasets=list(SETS), seeds=5)
    parser.add_argument("--label", default="now", help="name of the version that runs")
    parser.add_argument("--task", default="random", choices=["random", "beyond", "simulation"])
    parser.add_argument("--n-iter", type=int, default=50)
    parser.add_argument("--cases", type=int, default=60, help="of the simulation")
    parser.add_argument("--ablate", action="store_true", help="scales of one kind only, too")
    parser.add_argument("--summary", action="store_true", help="what has rows, and no new runs")
    return parse(parser, small={"datasets": ["airline"], "seeds": 1, "n_iter": 5, "cases": 2})


def main() -> None:
    """Measure what is missing and print the tables."""
    arguments = ask()
    label, n_iter = arguments.label, arguments.n_iter
    print_environment()
    if arguments.task == "simulation":
        kinds = list(product(KINDS, repeat=2))
        units = [
            Case(label, *kinds[seed % len(kinds)], seed, n_iter) for seed in range(arguments.cases)
        ]
        name, run, summary = SIMULATED, simulate, summarise_simulation
    else:
        units = [
            Fit(label, arguments.task, dataset, n_train, seed, n_iter, mode)
            for seed in range(arguments.seeds)
            for dataset in arguments.datasets
            for n_train in SETS[dataset][1]
            for mode in list(OPTIONS)[: 4 if arguments.ablate else 2]
        ]
        name, run, summary = NAME, measure, summarise
    if not arguments.summary:
        run_missing(name, units, run, n_jobs=arguments.jobs, any_commit=True)
    summary([row for row in read_rows(name) if row["n_iter"] == str(n_iter)])


if __name__ == "__main__":
    main()
