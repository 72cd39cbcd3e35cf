"""How much two workers gain, how well a budget is kept, and what distances take.

- workers: seconds of the initial design on 500 rows of a data set with one and with two workers,
  in turns; the ratio of the first, the reference, to the second is the speed-up. The workers are
  started beforehand.
- budget: seconds of a fit with max_time, the reference, and their ratio to it.
- import: seconds that importing autokernel takes after scikit-learn's gaussian_process, and their
  ratio to the 0.15 s that are allowed.
- distances: seconds of 100 Hellinger distances of a new kernel to others, with 20 inputs and 100
  samples, and their ratio to the 0.05 s that are allowed; the covariances of the others are known
  ("known") or computed as well ("new").

Rows are appended to results/promises.csv.

    AUTOKERNEL_DATA=folder python benchmarks/promises.py
"""

import argparse
import subprocess
import sys
import time
from collections.abc import Callable, Iterator

from common import append_rows, print_environment, print_table  # isort: skip
from data import load  # isort: skip
from meta_kernels import grow  # isort: skip

import numpy as np
from joblib import Parallel, delayed

from autokernel import AutoKernelGPRegressor
from autokernel.expression import Grammar
from autokernel.kernels import ADD, FEW_COLUMNS, MULTIPLY, PRESETS
from autokernel.search.boms import HellingerKernel

DATASETS = ("airfoil", "concrete")
N_ROWS = 500
IMPORT = """
import time
import sklearn.gaussian_process
began = time.perf_counter()
import autokernel
print(time.perf_counter() - began)
"""
Row = dict[str, object]


def rows_of(dataset: str) -> tuple[np.ndarray, np.ndarray]:
    """Draw the rows to fit."""
    X, y = load(dataset)
    rows = np.random.default_rng(0).permutation(len(y))[:N_ROWS]
    return X[rows], y[rows]


def seconds_of_a_fit(dataset: str, **parameters: object) -> float:
    """Time one fit."""
    X, y = rows_of(dataset)
    began = time.perf_counter()
    AutoKernelGPRegressor(random_state=0, **parameters).fit(X, y)
    return time.perf_counter() - began


def workers(repeats: int) -> Iterator[Row]:
    """Time the initial design with one and with two workers."""
    Parallel(n_jobs=2)(delayed(rows_of)("airfoil") for _ in range(2))
    for dataset in DATASETS:
        for repeat in range(repeats):
            order = (1, 2) if repeat % 2 else (2, 1)
            seconds = {n: seconds_of_a_fit(dataset, n_iter=0, n_jobs=n) for n in order}
            one, two = seconds[1], seconds[2]
            yield {
                "question": "workers",
                "dataset": dataset,
                "repeat": repeat,
                "reference": one,
                "seconds": two,
                "ratio": one / two,
            }


def budget(repeats: int) -> Iterator[Row]:
    """Time fits with a budget."""
    for dataset in DATASETS:
        for max_time in (2.0, 5.0, 20.0):
            for repeat in range(repeats):
                seconds = seconds_of_a_fit(dataset, max_time=max_time)
                yield {
                    "question": "budget",
                    "dataset": dataset,
                    "repeat": repeat,
                    "reference": max_time,
                    "seconds": seconds,
                    "ratio": seconds / max_time,
                }


def imports(repeats: int) -> Iterator[Row]:
    """Time the import."""
    for repeat in range(2 * repeats):
        run = subprocess.run([sys.executable, "-c", IMPORT], check=True, capture_output=True)
        seconds = float(run.stdout)
        yield {
            "question": "import",
            "dataset": "",
            "repeat": repeat,
            "reference": 0.15,
            "seconds": seconds,
            "ratio": seconds / 0.15,
        }


def distances(repeats: int) -> Iterator[Row]:
    """Time the distances of a new kernel to a hundred others, which are known or new."""
    grammar = Grammar(FEW_COLUMNS, (ADD, MULTIPLY), columns=(0, 1, 2), max_leaves=10)
    *others, one = (grown.expression for grown in grow(grammar, 101))
    X = np.random.default_rng(0).uniform(size=(20, 3))
    for repeat in range(repeats):
        for name in ("known", "new"):
            compute = HellingerKernel(X, PRESETS["default"]).distances
            if name == "known":
                compute(others)
            began = time.perf_counter()
            compute([one], others)
            seconds = time.perf_counter() - began
            yield {
                "question": "distances",
                "dataset": name,
                "repeat": repeat,
                "reference": 0.05,
                "seconds": seconds,
                "ratio": seconds / 0.05,
            }


QUESTIONS: dict[str, Callable[[int], Iterator[Row]]] = {
    "import": imports,
    "budget": budget,
    "workers": workers,
    "distances": distances,
}


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--questions", nargs="+", default=list(QUESTIONS), choices=list(QUESTIONS))
    parser.add_argument("--repeats", type=int, default=5)
    arguments = parser.parse_args()
    print_environment()
    summary = []
    for question in arguments.questions:
        found: dict[tuple[object, object], list[float]] = {}
        for row in QUESTIONS[question](arguments.repeats):
            append_rows("promises", [row])
            print(row, flush=True)
            reference = "" if question == "workers" else row["reference"]
            found.setdefault((row["dataset"], reference), []).append(float(str(row["ratio"])))
        for (dataset, reference), ratios in found.items():
            summary.append(
                {
                    "question": question,
                    "dataset": dataset,
                    "reference": reference,
                    "median_ratio": float(np.median(ratios)),
                    "lowest": min(ratios),
                    "highest": max(ratios),
                }
            )
    print_table(summary)


if __name__ == "__main__":
    main()
