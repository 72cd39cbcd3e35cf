"""How much two workers gain, how well a budget is kept, and what the import takes.

- workers: seconds of the initial design on 500 rows of a data set with one and with two workers,
  in turns; the ratio of the first, the reference, to the second is the speed-up. The workers are
  started beforehand.
- budget: seconds of a fit with max_time, the reference, and their ratio to it.
- import: seconds that importing autokernel takes after scikit-learn's gaussian_process, and their
  ratio to the 0.15 s that are allowed.

Rows are appended to results/promises.csv.

    AUTOKERNEL_DATA=folder python benchmarks/promises.py
    python benchmarks/promises.py --questions import --repeats 1
"""

import argparse
import subprocess
import sys
import time
from collections.abc import Callable, Iterator

from common import append_rows, group, print_environment, print_table  # isort: skip
from runs import draw_split  # isort: skip

import numpy as np
from joblib import Parallel, delayed

from autokernel import AutoKernelGPRegressor

DATASETS = ("airfoil", "concrete")
N_ROWS = 500
ALLOWED = 0.15  # seconds of the import
IMPORT = """
import time
import sklearn.gaussian_process
began = time.perf_counter()
import autokernel
print(time.perf_counter() - began)
"""
Measured = tuple[str, float, float, float]
"""Data set, reference, seconds, and their ratio."""


def seconds_of_a_fit(dataset: str, **parameters: object) -> float:
    """Time one fit."""
    split = draw_split(dataset, 0, n_train=N_ROWS)
    began = time.perf_counter()
    AutoKernelGPRegressor(random_state=0, **parameters).fit(split.X_train, split.y_train)
    return time.perf_counter() - began


def workers(repeat: int) -> Iterator[Measured]:
    """Time the initial design with one and with two workers."""
    Parallel(n_jobs=2)(delayed(draw_split)("airfoil", 0, n_train=N_ROWS) for _ in range(2))
    for dataset in DATASETS:
        order = (1, 2) if repeat % 2 else (2, 1)
        seconds = {n: seconds_of_a_fit(dataset, n_iter=0, n_jobs=n) for n in order}
        yield dataset, seconds[1], seconds[2], seconds[1] / seconds[2]


def budget(_: int) -> Iterator[Measured]:
    """Time fits with a budget."""
    for dataset in DATASETS:
        for max_time in (2.0, 5.0, 20.0):
            seconds = seconds_of_a_fit(dataset, max_time=max_time)
            yield dataset, max_time, seconds, seconds / max_time


def imports(_: int) -> Iterator[Measured]:
    """Time the import."""
    run = subprocess.run([sys.executable, "-c", IMPORT], check=True, capture_output=True)
    seconds = float(run.stdout)
    yield "", ALLOWED, seconds, seconds / ALLOWED


QUESTIONS: dict[str, Callable[[int], Iterator[Measured]]] = {
    "import": imports,
    "budget": budget,
    "workers": workers,
}


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--questions", nargs="+", default=list(QUESTIONS), choices=list(QUESTIONS))
    parser.add_argument("--repeats", type=int, default=5)
    arguments = parser.parse_args()
    print_environment()
    rows = []
    for question in arguments.questions:
        for repeat in range(arguments.repeats):
            for measured in QUESTIONS[question](repeat):
                names = ("dataset", "reference", "seconds", "ratio")
                found = dict(zip(names, measured, strict=True))
                row = {"question": question, "dataset": found["dataset"], "repeat": repeat, **found}
                append_rows("promises", [row])
                print(*row.values(), flush=True)
                rows.append(row)
    summary = []
    for key, found in group(
        rows, lambda row: (row["question"], row["dataset"], _limit(row))
    ).items():
        ratios = [float(str(row["ratio"])) for row in found]
        line = dict(zip(("question", "dataset", "limit"), key, strict=True))
        line |= {"median": float(np.median(ratios)), "lowest": min(ratios), "highest": max(ratios)}
        summary.append(line)
    print_table(summary)


def _limit(row: dict[str, object]) -> object:
    """Seconds that are allowed; none where one worker is compared with two."""
    return "" if row["question"] == "workers" else row["reference"]


if __name__ == "__main__":
    main()
