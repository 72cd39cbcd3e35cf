"""How far an evaluation ends from the best log posterior known, and at what cost.

For 75 pairs of a kernel and a data set and 8 seeds: the regret (best known minus found, in nats),
the spread of the log evidence over the seeds, and likelihood calls and seconds of
``evaluate_kernel`` with the paper's priors. The best known stands in results/map_best_known.csv. It
comes from 200 starts for each pair and from all fits since; whatever is better is kept there.

Rows go to results/map_reliability.csv. Rows of other methods are those of L-BFGS from ten draws
from the priors, and from ten perturbations of the prior means, as the published code has it.

    AUTOKERNEL_DATA=folder python benchmarks/map_reliability.py --jobs 2      # half an hour
    AUTOKERNEL_DATA=folder python benchmarks/map_reliability.py --small
    python benchmarks/map_reliability.py --finished --any-commit
"""

import csv
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from common import (  # isort: skip
    RESULTS,
    Row,
    collect,
    environment,
    group,
    make_parser,
    numbers,
    parse,
    print_table,
    read_rows,
)
from runs import draw_split  # isort: skip

import numpy as np

from autokernel import Evaluation, evaluate_kernel

NAME, BEST = "map_reliability", RESULTS / "map_best_known.csv"
N_ROWS_OF_SERIES = {"airline": 100, "mauna": 150, "solar": 200}
N_ROWS_OF_TABLE = {"concrete": 300, "airfoil": 150, "power_plant": 500}
SERIES = (
    "SE[0]",
    "PER[0]",
    "RQ[0]",
    "LIN[0] + PER[0]",
    "LIN[0] * PER[0]",
    "SE[0] + PER[0]",
    "PER[0] * SE[0] + RQ[0]",
    "LIN[0] + PER[0] * SE[0]",
    "LIN[0] * PER[0] + SE[0]",
    "LIN[0] + PER[0] * SE[0] + SE[0]",
    "(LIN[0] + PER[0]) * SE[0] + RQ[0]",
    "LIN[0] * PER[0] * SE[0] + SE[0] + RQ[0]",
    "(SE[0] + PER[0] * LIN[0]) * (RQ[0] + LIN[0]) + SE[0]",
)
TABLES = (
    "SE[0]",
    "RQ[1]",
    "SE[0] + SE[1]",
    "SE[0] * SE[3]",
    "LIN[0] * SE[1] + PER[2]",
    "SE[0] * RQ[1] + SE[2]",
    "(SE[0] + RQ[1]) * SE[3]",
    "SE[0] + SE[1] + SE[2] + SE[3]",
    "SE[0] * SE[1] * SE[2] * SE[3]",
    "(SE[0] + SE[1]) * (SE[2] + RQ[3])",
    "SE[0] * SE[1] + RQ[2] * SE[3] + SE[0]",
    "(SE[0] + RQ[1] * SE[2]) * (SE[3] + SE[0]) + RQ[3]",
)
CASES = {
    **{dataset: (n, SERIES) for dataset, n in N_ROWS_OF_SERIES.items()},
    **{dataset: (n, TABLES) for dataset, n in N_ROWS_OF_TABLE.items()},
}


@dataclass(frozen=True, slots=True)
class Fit:
    """What a row is measured for."""

    dataset: str
    n_samples: int
    kernel: str
    method: str
    seed: int


@lru_cache
def read(dataset: str, n_samples: int) -> tuple[np.ndarray, np.ndarray]:
    """Draw rows of a data set, and standardise the target."""
    split = draw_split(dataset, 0, n_train=n_samples)
    y = split.y_train
    return split.X_train, (y - y.mean()) / y.std()


def evaluate(unit: Fit) -> Evaluation:
    """Fit a kernel with the paper's priors."""
    X, y = read(unit.dataset, unit.n_samples)
    return evaluate_kernel(unit.kernel, X, y, priors="paper", random_state=unit.seed)


def measure(unit: Fit) -> Row:
    """Say what a fit has reached, and at what cost."""
    fit = evaluate(unit)
    names = ("log_posterior", "log_evidence", "n_evaluations", "seconds", "status")
    return {name: getattr(fit, name) for name in names}


def best_known() -> dict[tuple[str, ...], dict[str, str]]:
    """Read the best points, by data set, number of rows and kernel."""
    with BEST.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    return {(row["dataset"], row["n_samples"], row["kernel"]): row for row in rows}


def keep_better(units: Sequence[Fit], rows: Sequence[Mapping[str, str]]) -> None:
    """Write the points that are better than what is known."""
    known = best_known()
    for unit, row in zip(units, rows, strict=True):
        best = known[unit.dataset, str(unit.n_samples), unit.kernel]
        if row["status"] == "ok" and float(row["log_posterior"]) > 1e-6 + float(
            best["log_posterior"]
        ):
            best["log_posterior"] = f"{float(row['log_posterior']):.6f}"
            best["found_by"] = f"{unit.method}, seed {unit.seed}"
            best["theta"] = json.dumps([round(float(t), 6) for t in evaluate(unit).theta])
            best["commit"] = environment()["commit"]
    with BEST.open("w", encoding="utf-8", newline="") as file:
        fields = list(next(iter(known.values())))
        writer = csv.DictWriter(file, fieldnames=fields, lineterminator="\n")
        writer.writeheader()
        writer.writerows(known.values())


def summarise(rows: Sequence[Mapping[str, str]]) -> None:
    """Print a table of the methods, one line for each commit."""
    known = best_known()
    table: list[Mapping[str, object]] = []
    for (method, commit), found in group(rows, lambda r: (r["method"], r["commit"])).items():
        cases = group(found, lambda row: (row["dataset"], row["n_samples"], row["kernel"]))
        spreads = [np.ptp(numbers(of_case, "log_evidence")) for of_case in cases.values()]
        best = np.array(
            [
                float(known[r["dataset"], r["n_samples"], r["kernel"]]["log_posterior"])
                for r in found
            ]
        )
        regret = best - numbers(found, "log_posterior")
        table.append(
            {
                "method": method,
                "commit": commit,
                "runs": len(found),
                "regret<=0.5": float(np.mean(regret <= 0.5)),
                "regret<=3": float(np.mean(regret <= 3)),
                "median regret": float(np.median(regret)),
                "worst": float(regret.max()),
                "spread<=0.5": float(np.mean(np.array(spreads) <= 0.5)),
                "median calls": float(np.median(numbers(found, "n_evaluations"))),
                "median seconds": float(np.median(numbers(found, "seconds"))),
            }
        )
    print_table(table)


def main() -> None:
    """Run what is missing, and print the table."""
    parser = make_parser(__doc__, datasets=CASES, seeds=8)
    arguments = parse(parser, small={"datasets": ["airline"], "seeds": 1})
    units = [
        Fit(dataset, CASES[dataset][0], kernel, "autokernel", seed)
        for dataset in arguments.datasets
        for kernel in CASES[dataset][1]
        for seed in range(arguments.seeds)
    ]
    rows = collect(NAME, units, measure, arguments)
    if not arguments.finished:
        keep_better(units, rows)
    of_all = [row for row in read_rows(NAME) if row["dataset"] in arguments.datasets]
    summarise(of_all if arguments.finished and arguments.any_commit else rows)


if __name__ == "__main__":
    main()
