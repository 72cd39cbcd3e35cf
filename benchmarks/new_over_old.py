"""How long this checkout takes over another one: import, likelihood, evaluation, fit, prediction.

``python new_over_old.py ../../old`` runs the same code with both checkouts in turns, each time in a
process of its own, and appends the seconds of each pair to ``results/new_over_old.csv``. Both must
find the same scores, to the bit: otherwise the times say nothing.
"""

import argparse
import os
import statistics
import subprocess
import sys
from pathlib import Path

from common import append_rows, print_environment

SETTINGS = """
import sys, time, statistics
import numpy as np
from autokernel import AutoKernelGPRegressor, evaluate_kernel, parse_expression
from autokernel.datasets import load_airline
X, y = load_airline(return_X_y=True)
clock = time.process_time
"""

LIKELIHOOD = """
import autokernel.inference as package
Likelihood = getattr(package, "ExactLikelihood", None) or package.LogLikelihood
def likelihood(n, n_repeats):
    rng = np.random.default_rng(0)
    data = package.TrainingData(rng.uniform(size=(n, 2)), rng.normal(size=n))
    expression = parse_expression("LIN[0] + PER[0] * SE[1] + RQ[0] * SE[1]")
    one = Likelihood(expression, data)
    theta = rng.normal(-1.0, 0.1, 13)
    seconds = []
    with package.one_blas_thread():
        for i in range(n_repeats):
            began = time.perf_counter()
            found = one.value_and_gradient(theta[:13] * (1 + 1e-6 * i))
            seconds.append(time.perf_counter() - began)
    return statistics.median(seconds), found.value
"""

PREDICTION = """
def prediction(n, **what):
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(n, 1))
    y = np.sin(12 * X[:, 0]) + 0.1 * rng.normal(size=n)
    model = AutoKernelGPRegressor(random_state=0).refit(X, y, kernel="SE[0] + LIN[0] * PER[0]")
    X_new = rng.uniform(size=(1000, 1))
    model.predict(X_new, **what)
    seconds = []
    for _ in range(15):
        began = time.perf_counter()
        model.predict(X_new, **what)
        seconds.append(time.perf_counter() - began)
    return statistics.median(seconds), model.best_score_
"""

EVALUATION = """
def evaluation():
    x, z = (X - X.min()) / np.ptp(X), (y - y.mean()) / y.std()
    texts = ("SE[0]", "LIN[0] + PER[0] * SE[0] + SE[0]", "RQ[0] * PER[0] + LIN[0]")
    began = clock()
    scores = [evaluate_kernel(text, x, z).score for text in texts]
    return clock() - began, sum(scores)
"""

FIT = """
def fit(seed):
    began = clock()
    model = AutoKernelGPRegressor(random_state=seed).fit(X[:129], y[:129])
    return clock() - began, model.best_score_
"""

CASES = {
    "import": ("import time; began = time.process_time(); import autokernel", None),
    "likelihood, 100 rows": (SETTINGS + LIKELIHOOD, "likelihood(100, 2000)"),
    "likelihood, 500 rows": (SETTINGS + LIKELIHOOD, "likelihood(500, 60)"),
    "evaluation of three kernels": (SETTINGS + EVALUATION, "evaluation()"),
    "mean of 1000 rows, 100 to train on": (SETTINGS + PREDICTION, "prediction(100)"),
    "std of 1000 rows, 100 to train on": (
        SETTINGS + PREDICTION,
        "prediction(100, return_std=True)",
    ),
    "mean of 1000 rows, 500 to train on": (SETTINGS + PREDICTION, "prediction(500)"),
    "std of 1000 rows, 500 to train on": (
        SETTINGS + PREDICTION,
        "prediction(500, return_std=True)",
    ),
    "cov of 1000 rows, 500 to train on": (
        SETTINGS + PREDICTION,
        "prediction(500, return_cov=True)",
    ),
    **{f"fit of airline, seed {seed}": (SETTINGS + FIT, f"fit({seed})") for seed in range(3)},
}
"""Code to run before, and the call that returns seconds and a score."""


def measure(checkout: Path, name: str, core: int) -> tuple[float, str]:
    """Seconds and the bits of the score, in a process of its own on one core."""
    before, call = CASES[name]
    ends = "print(time.process_time() - began, 0)"
    code = (
        f"{before}\nfound = {call}\nprint(found[0], found[1].hex())"
        if call
        else f"{before}; {ends}"
    )
    environment = {**os.environ, "PYTHONPATH": str(checkout), "OPENBLAS_NUM_THREADS": "1"}
    seconds, score = subprocess.run(
        ["taskset", "-c", str(core), sys.executable, "-c", code],
        env=environment,
        cwd="/",
        check=True,
        capture_output=True,
        text=True,
    ).stdout.split()
    return float(seconds), score


def main() -> None:
    """Measure all cases, or some, and print the medians."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("old", type=Path, help="the other checkout")
    parser.add_argument("--cases", nargs="*", choices=CASES, default=list(CASES))
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    old, new = options.old.resolve(), Path(__file__).resolve().parents[1]
    command = ["git", "-C", str(old), "rev-parse", "--short", "HEAD"]
    commit = subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
    print_environment()
    for name in options.cases:
        pairs = []
        for repeat in range(options.repeats):
            order = (old, new) if repeat % 2 else (new, old)
            found = {checkout: measure(checkout, name, repeat // 2 % 2) for checkout in order}
            assert found[old][1] == found[new][1], f"{name}: the scores differ"
            pairs.append((found[old][0], found[new][0]))
            seconds_old, seconds_new = pairs[-1]
            row = {"case": name, "repeat": repeat, "old": seconds_old, "new": seconds_new}
            append_rows("new_over_old", [{**row, "old_commit": commit}])
        ratios = [seconds / before for before, seconds in pairs]
        olds, news = (statistics.median(side) for side in zip(*pairs, strict=True))
        print(
            f"{name}: old {olds:.4g} s, new {news:.4g} s, median of the ratios "
            f"{statistics.median(ratios):.3f} ({min(ratios):.3f} to {max(ratios):.3f})",
            flush=True,
        )


if __name__ == "__main__":
    main()
