"""Speed of the package compared with the last release: eight ratios to a reference loop.

Timed are a log likelihood with its gradient, the evidence of one kernel, three fits, predictions,
a description and the import in a fresh process. The reference loop is fixed: Cholesky factors of
one matrix, and plain Python. It takes the speed of the machine and of the interpreter out of the
ratios, and runs before and after each timing. Times are CPU seconds of this process and of its
children; ratios are medians over repeats.

The table compares with the last rows of results/speed.csv, whose columns name their version. A
timing is called slower if its ratio is 1.3 times as large as there, or twice as large as on another
machine; in GitHub Actions it is a warning as well. A slower timing does not change the exit status.
A release appends rows by ``--write``.

    python benchmarks/speed.py
    python benchmarks/speed.py --write
"""

import argparse
import math
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from copy import copy

import common
import numpy as np
from common import Row, Rows, seconds_of
from new_over_old import airline, shops, table

from autokernel import AutoKernelGPRegressor, evaluate_kernel, parse_expression
from autokernel.inference import ExactLikelihood, TrainingData

NAME = "speed"  # of the CSV file
LIMIT = 1.3  # of two ratios; runs of one version differ by up to 1.21 on a busy machine
LIMIT_ELSEWHERE = 2.0  # if the rows are of another machine
KERNEL = "LIN[0] * PER[0] + SE[0]"
MATRIX = np.exp(-np.abs(np.subtract.outer(range(200), range(200))) / 20)
SHORTEST = 0.1  # seconds of a measurement
N_FACTORS, N_STEPS = 12, 60_000  # of the reference loop; either part takes some milliseconds


def reference() -> None:
    for _ in range(N_FACTORS):
        np.linalg.cholesky(MATRIX)
    counts: dict[int, float] = {}
    for step in range(N_STEPS):
        counts[step % 97] = counts.get(step % 97, 0.0) + math.sqrt(step)


def import_afresh() -> None:
    """Import the package in another process, from files of bytecode as a user does."""
    variables = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    subprocess.run([sys.executable, "-c", "import autokernel"], env=variables, check=True)


def make_timings() -> Mapping[str, Callable[[], object]]:
    rows, months, groups = table(3, 60), airline(144), shops(60)
    one = table(1, 200)
    likelihood = ExactLikelihood(parse_expression(KERNEL), TrainingData(one.X, one.y))
    theta = np.full(len(likelihood.parameters), -1.0)
    model = AutoKernelGPRegressor(n_iter=0, random_state=0).fit(rows.X, rows.y)
    return {
        "likelihood": lambda: likelihood.value_and_gradient(theta),
        "evidence": lambda: evaluate_kernel(KERNEL, one.X, one.y, random_state=0),
        "fit, 60 rows of 3 columns": lambda: fit(rows.X, rows.y),
        "fit, series of 144 months": lambda: fit(months.X, months.y, strategy="series"),
        "fit, 60 rows with a category": lambda: fit(groups.X, groups.y, n_iter=2),
        "predict": lambda: model.predict(rows.X_test, return_std=True),
        "describe": lambda: copy(model).describe(),  # a copy has no description yet
        "import": import_afresh,
    }


def fit(X: object, y: object, **settings: object) -> AutoKernelGPRegressor:
    return AutoKernelGPRegressor(random_state=0, **settings).fit(X, y)


def measure(timings: Mapping[str, Callable[[], object]], repeats: int) -> list[dict[str, object]]:
    """Time all calls, each after one that is not timed, and return a row for each."""
    for call in (*timings.values(), reference):
        call()
    ratios: dict[str, list[float]] = {name: [] for name in timings}
    times: dict[str, list[float]] = {name: [] for name in timings}
    before = seconds_of(reference, at_least=SHORTEST)
    for _ in range(repeats):
        for name, call in timings.items():
            times[name].append(seconds_of(call, at_least=SHORTEST))
            after = seconds_of(reference, at_least=SHORTEST)
            ratios[name].append(2 * times[name][-1] / (before + after))
            before = after
    return [
        {
            "timing": name,
            "ratio": float(np.median(ratios[name])),
            "lowest": min(ratios[name]),
            "highest": max(ratios[name]),
            "cpu_ms": 1e3 * float(np.median(times[name])),
        }
        for name in timings
    ]


def compare(rows: Sequence[Row], then: Rows) -> None:
    """Print a table of the ratios, and warnings in GitHub Actions."""
    last = {row["timing"]: row for row in then}  # the last one of each
    lines: list[Row] = []
    for row in rows:
        name, now = str(row["timing"]), float(str(row["ratio"]))
        before = float(last[name]["ratio"]) if name in last else float("nan")
        quotient, mark = now / before, ""
        is_same = name in last and last[name]["machine"] == common.environment()["machine"]
        if quotient > (LIMIT if is_same else LIMIT_ELSEWHERE):
            mark = "slower"
            if "GITHUB_ACTIONS" in os.environ:
                text = f"{name} takes {quotient:.2f} times as long as in the last release"
                print(f"::warning title=Speed::{text}")
        lines.append({**row, "then": before, "now / then": quotient, "": mark})
    common.print_table(lines)
    versions = sorted({f"{row['autokernel']} ({row['commit']})" for row in last.values()})
    print("then:", ", ".join(versions) or "no rows")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--write", action="store_true", help="append rows: they are the release's")
    arguments = parser.parse_args()
    common.print_environment()
    rows = measure(make_timings(), arguments.repeats)
    compare(rows, common.read_rows(NAME))
    if arguments.write:
        common.append_rows(NAME, rows)


if __name__ == "__main__":
    main()
