"""Whether a kernel at a local maximum has no better neighbour.

A search that ends with ``local_maximum`` has fitted only the neighbours of its best kernel whose
estimates are promising. Here every kernel one operation away is fitted twice: from its estimate,
and from the fit of the best kernel. ``gain`` is what the best of them gains, in nats.

Rows go to results/certificate.csv; those of the current commit are not measured again.

    AUTOKERNEL_DATA=folder python benchmarks/certificate.py     # 60 fits, 40 minutes of CPU time
    python benchmarks/certificate.py --summary
"""

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from common import (  # isort: skip
    Row,
    group,
    numbers,
    print_environment,
    print_table,
    read_rows,
    rounded,
    run_missing,
)
from seeds import SETS  # isort: skip

import numpy as np

from autokernel import AutoKernelGPRegressor
from autokernel.data import FitData
from autokernel.fit.arguments import Arguments
from autokernel.fit.run import Run
from autokernel.search import Observer

NAME = "certificate"  # of the CSV file
SMALL_GAIN = 0.1  # nats


@dataclass(frozen=True, slots=True)
class Search:
    """What a row is measured for."""

    dataset: str
    seed: int


def measure(unit: Search) -> Row:
    """Search, and fit all neighbours of the best kernel."""
    X, y, _ = SETS[unit.dataset]()
    arguments = Arguments.of(AutoKernelGPRegressor(random_state=unit.seed))
    run = Run(FitData(np.asarray(X, dtype=float), np.asarray(y, dtype=float)), arguments)
    reason = run.search(Observer())
    best = run.history.best
    assert best is not None
    gains: dict[str, float] = {}
    for estimate in run.task.neighbours(best):
        jobs = [
            run.evaluator.prepare(estimate.expression, [best], start)
            for start in (estimate.start, None)
        ]
        score = max(run.evaluator.run(job).score for job in jobs)
        gains[str(estimate.expression)] = score - best.score
    first = max(gains, key=lambda text: gains[text])
    return {
        "score": rounded(best.score),
        "kernel": str(best.expression),
        "stop_reason": str(reason),
        "n_neighbours": len(gains),
        "gain": rounded(gains[first]),
        "neighbour": first,
    }


def summarise(rows: Sequence[Mapping[str, str]]) -> None:
    """Print the largest gains, by set and over all sets."""
    for commit, of_commit in group(rows, lambda row: row["commit"]).items():
        print(f"\n{commit}")
        ended = [row for row in of_commit if row["stop_reason"] == "local_maximum"]
        by_set = {**group(ended, lambda row: row["dataset"]), "all sets": ended}
        table: list[Mapping[str, object]] = [
            {
                "set": name,
                "fits": len(found),
                "neighbours": float(np.median(numbers(found, "n_neighbours"))),
                f"gain above {SMALL_GAIN}": int((numbers(found, "gain") > SMALL_GAIN).sum()),
                "largest gain": float(numbers(found, "gain").max()),
            }
            for name, found in by_set.items()
        ]
        print_table(table)
        print(f"{len(of_commit) - len(ended)} of {len(of_commit)} searches ended otherwise")


def main() -> None:
    """Measure what is missing and print the tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seeds", type=int, default=5, help="seeds 0 to SEEDS - 1")
    parser.add_argument("--only", nargs="+", default=[""], help="sets with one of these in a name")
    parser.add_argument("--summary", action="store_true", help="what has rows, and no new runs")
    arguments = parser.parse_args()
    if not arguments.summary:
        print_environment()
        units = [
            Search(name, seed)
            for seed in range(arguments.seeds)
            for name in SETS
            if any(part in name for part in arguments.only)
        ]
        run_missing(NAME, units, measure)
    summarise(read_rows(NAME))


if __name__ == "__main__":
    main()
