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
from functools import lru_cache

import common
import numpy as np
from common import Row, Rows, group, numbers
from data import draw_split

from autokernel import Evaluation, evaluate_kernel

NAME, BEST = "map_reliability", common.RESULTS / "map_best_known.csv"
MIN_GAIN = 1e-3  # nats, more than what rows are rounded by
SERIES = (
    "SE[0]", "PER[0]", "RQ[0]", "LIN[0] + PER[0]", "LIN[0] * PER[0]", "SE[0] + PER[0]",
    "PER[0] * SE[0] + RQ[0]", "LIN[0] + PER[0] * SE[0]", "LIN[0] * PER[0] + SE[0]",
    "LIN[0] + PER[0] * SE[0] + SE[0]", "(LIN[0] + PER[0]) * SE[0] + RQ[0]",
    "LIN[0] * PER[0] * SE[0] + SE[0] + RQ[0]",
    "(SE[0] + PER[0] * LIN[0]) * (RQ[0] + LIN[0]) + SE[0]",
)  # fmt: skip
TABLES = (
    "SE[0]", "RQ[1]", "SE[0] + SE[1]", "SE[0] * SE[3]", "LIN[0] * SE[1] + PER[2]",
    "SE[0] * RQ[1] + SE[2]", "(SE[0] + RQ[1]) * SE[3]", "SE[0] + SE[1] + SE[2] + SE[3]",
    "SE[0] * SE[1] * SE[2] * SE[3]", "(SE[0] + SE[1]) * (SE[2] + RQ[3])",
    "SE[0] * SE[1] + RQ[2] * SE[3] + SE[0]", "(SE[0] + RQ[1] * SE[2]) * (SE[3] + SE[0]) + RQ[3]",
)  # fmt: skip
CASES = {  # rows and kernels
    **{name: (n, SERIES) for name, n in {"airline": 100, "mauna": 150, "solar": 200}.items()},
    **{name: (n, TABLES) for name, n in {"concrete": 300, "airfoil": 150}.items()},
    "power_plant": (500, TABLES),
}
CASE = ("dataset", "n_samples", "kernel")


@lru_cache
def read(dataset: str, n_samples: int) -> tuple[np.ndarray, np.ndarray]:
    split = draw_split(dataset, 0, n_train=n_samples)
    return split.X, (split.y - split.y.mean()) / split.y.std()


def evaluate(dataset: str, n_samples: int, kernel: str, seed: int) -> Evaluation:
    """Fit a kernel with the paper's priors."""
    X, y = read(dataset, n_samples)
    return evaluate_kernel(kernel, X, y, priors="paper", random_state=seed)


def measure(dataset: str, n_samples: int, kernel: str, method: str, seed: int) -> Row:
    fit = evaluate(dataset, n_samples, kernel, seed)
    names = ("log_posterior", "log_evidence", "n_evaluations", "seconds", "status")
    return {name: getattr(fit, name) for name in names}


def best_known() -> dict[tuple[str, ...], dict[str, str]]:
    with BEST.open(encoding="utf-8", newline="") as file:
        return {tuple(row[name] for name in CASE): row for row in csv.DictReader(file)}


def keep_better(rows: Rows) -> None:
    known = best_known()
    for row in rows:
        best = known[tuple(row[name] for name in CASE)]
        gain = float(row["log_posterior"]) - float(best["log_posterior"])
        if row["status"] == "ok" and gain > MIN_GAIN:
            n_samples, seed = int(row["n_samples"]), int(row["seed"])
            fit = evaluate(row["dataset"], n_samples, row["kernel"], seed)
            best["log_posterior"] = f"{fit.log_posterior:.6f}"
            best["found_by"] = f"{row['method']}, seed {seed}"
            best["theta"] = json.dumps([round(float(t), 6) for t in fit.theta])
            best["commit"] = common.environment()["commit"]
    with BEST.open("w", encoding="utf-8", newline="") as file:
        fields = list(next(iter(known.values())))
        writer = csv.DictWriter(file, fieldnames=fields, lineterminator="\n")
        writer.writeheader()
        writer.writerows(known.values())


def summarise(rows: Rows) -> None:
    known = {case: float(row["log_posterior"]) for case, row in best_known().items()}

    def regret(found: Rows) -> np.ndarray:
        best = np.array([known[tuple(row[name] for name in CASE)] for row in found])
        return best - numbers(found, "log_posterior")

    def has_small_spread(found: Rows) -> list[bool]:
        cases = group(found, *CASE).values()
        return [np.ptp(numbers(case, "log_evidence")) <= 0.5 for case in cases]

    figures = {
        "runs": len,
        "regret<=0.5": lambda found: float(np.mean(regret(found) <= 0.5)),
        "regret<=3": lambda found: float(np.mean(regret(found) <= 3)),
        "median regret": lambda found: float(np.median(regret(found))),
        "worst": lambda found: float(regret(found).max()),
        "spread<=0.5": lambda found: float(np.mean(has_small_spread(found))),
        "median calls": common.of(np.median, "n_evaluations"),
        "median seconds": common.of(np.median, "seconds"),
    }
    common.print_groups(group(rows, "method", "commit"), "method, commit", figures)


def main() -> None:
    small = {"datasets": ["airline"], "seeds": 1}
    arguments = common.options_of(__doc__, datasets=CASES, seeds=8, small=small)
    units = [
        {
            "dataset": dataset,
            "n_samples": CASES[dataset][0],
            "kernel": kernel,
            "method": "autokernel",
            "seed": seed,
        }
        for dataset in arguments.datasets
        for kernel in CASES[dataset][1]
        for seed in range(arguments.seeds)
    ]
    rows = common.collect(NAME, units, measure, arguments)
    if not arguments.finished:
        keep_better(rows)
    of_all = [row for row in common.read_rows(NAME) if row["dataset"] in arguments.datasets]
    summarise(of_all if arguments.finished and arguments.any_commit else rows)


if __name__ == "__main__":
    main()
