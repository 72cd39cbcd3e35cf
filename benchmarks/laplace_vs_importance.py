"""Log evidence by Laplace's method and by importance sampling, from the same modes.

For every case of map_cases.py and seed 0. An estimate is called sound where its Pareto k is below
0.7 and its standard error below 0.2 nats. The summary tells how far the two lie apart where it is
sound, and how many pairs of kernels of one data set they order differently, by more than two
standard errors.

Rows are appended to results/laplace_vs_importance.csv; those that the current commit has already
are not run again.

    AUTOKERNEL_DATA=folder python benchmarks/laplace_vs_importance.py
"""

import argparse
from collections import defaultdict
from itertools import combinations

from common import append_rows, keys_of_this_commit, print_environment  # isort: skip
from common import print_table, rows_of_this_commit  # isort: skip
from map_cases import PRIORS, Case, cases  # isort: skip

import numpy as np

from autokernel.evidence import Evaluator

NAME = "laplace_vs_importance"
SOUND_PARETO_K = 0.7
SOUND_STANDARD_ERROR = 0.2  # nats
FIELDS = ("dataset", "n_samples", "kernel")
Row = dict[str, str]


def measure(case: Case) -> dict[str, object]:
    """Evaluate once by both."""
    data = case.data()
    laplace = Evaluator(data, priors=PRIORS, seed=0)(case.expression)
    fit = Evaluator(data, priors=PRIORS, seed=0, criterion="importance")(case.expression)
    return {
        **dict(zip(FIELDS, case.key, strict=True)),
        "n_params": fit.n_params,
        "laplace": fit.log_evidence,
        "importance": fit.score,
        "standard_error": fit.standard_error,
        "pareto_k": fit.pareto_k,
        "n_evaluations": fit.n_evaluations - laplace.n_evaluations,
        "seconds": fit.seconds - laplace.seconds,
        "search_n_evaluations": laplace.n_evaluations,
        "search_seconds": laplace.seconds,
        "sound": is_sound(fit.standard_error, fit.pareto_k),
        "status": fit.status,
    }


def is_sound(standard_error: float, pareto_k: float) -> bool:
    """Whether an estimate is to be trusted; nan is not."""
    return standard_error < SOUND_STANDARD_ERROR and pareto_k < SOUND_PARETO_K


def summarise(datasets: list[str] | None) -> None:
    """Print a table per case, and one line of totals per data set and for all of them."""
    wanted = {case.key for case in cases(datasets)}
    rows = [row for row in rows_of_this_commit(NAME) if tuple(row[f] for f in FIELDS) in wanted]
    shown = ("laplace", "importance", "standard_error", "pareto_k", "n_evaluations", "seconds")
    print_table(
        [
            {**{f: row[f] for f in FIELDS}, **{name: float(row[name]) for name in shown}}
            for row in rows
        ]
    )
    groups: defaultdict[str, list[Row]] = defaultdict(list)
    for row in rows:
        groups[row["dataset"]].append(row)
    print_table([totals(name, [group]) for name, group in groups.items()])
    print_table([totals("all", list(groups.values()))])


def totals(name: str, groups: list[list[Row]]) -> dict[str, object]:
    """Sum up the cases of some data sets."""
    rows = [row for group in groups for row in group]
    sound = [[row for row in group if row["sound"] == "True"] for group in groups]
    apart = [abs(difference(row)) for group in sound for row in group]
    pairs = [pair for group in sound for pair in combinations(group, 2)]
    return {
        "dataset": name,
        "cases": len(rows),
        "sound": sum(map(len, sound)) / len(rows),
        "median_difference": float(np.median(apart)) if apart else np.nan,
        "worst_difference": max(apart, default=np.nan),
        "pairs": len(pairs),
        "ordered_differently": sum(ordered_differently(*pair) for pair in pairs),
        "median_calls": float(np.median([int(row["n_evaluations"]) for row in rows])),
    }


def difference(row: Row) -> float:
    """Subtract the value of Laplace from that of importance sampling, in nats."""
    return float(row["importance"]) - float(row["laplace"])


def ordered_differently(one: Row, other: Row) -> bool:
    """Whether the two methods order two kernels differently, beyond the error of sampling."""
    by_laplace, by_importance = (
        float(one[name]) - float(other[name]) for name in ("laplace", "importance")
    )
    error = np.hypot(float(one["standard_error"]), float(other["standard_error"]))
    return by_laplace * by_importance < 0 and abs(by_importance) > 2 * error


def main() -> None:
    """Run what the current commit has not run yet, and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--datasets", nargs="+")
    arguments = parser.parse_args()
    print_environment()
    done = keys_of_this_commit(NAME, FIELDS)
    for case in cases(arguments.datasets):
        if case.key not in done:
            append_rows(NAME, [measure(case)])
            print(*case.key, flush=True)
    summarise(arguments.datasets)


if __name__ == "__main__":
    main()
