"""Same results, and how much time: this checkout over another one, on one machine.

``python new_over_old.py ../../old`` runs each case with both checkouts in turns, each time in its
own process on one core. It compares the kernels, scores and predictions that both find, prints the
median ratio of the times, and appends the seconds of each pair to ``results/new_over_old.csv``.
It exits with 1 if a result differs. ``--repeats 1`` is enough for the results only.

Cases use the public API, except for the likelihood. Both checkouts run this file, so that it
allows for what has changed between them: see ``thompson`` and ``likelihood``.
"""

import argparse
import importlib.util
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from common import append_rows, print_environment  # isort: skip

import numpy as np
from joblib import parallel_config

import autokernel
from autokernel import BOMS, SOT, AutoKernelGPRegressor, evaluate_kernel, parse_expression
from autokernel.datasets import load_airline

NEW = Path(__file__).resolve().parents[1]
TOLERANCE = 1e-9  # of scores and predictions, relative and absolute
IMPORT = "import time; began = time.process_time(); import autokernel"
IMPORT += "; print([time.process_time() - began, {}])"
SHORT = {"n_iter": 5, "max_leaves": 4, "random_state": 0}
FEW = {"base_kernels": ("SE", "LIN")}

Found = tuple[float, dict[str, Any]]
"""Seconds, and the results to compare: texts, numbers or lists of them, by name."""


def data(n_features: int, n_samples: int) -> tuple[np.ndarray, np.ndarray]:
    """Return a part of the airline series, or a function of some columns."""
    if n_features == 1 and n_samples <= 144:
        X, y = load_airline(return_X_y=True)
        return X[:n_samples], y[:n_samples]
    rng = np.random.default_rng(n_features)
    X = rng.uniform(size=(n_samples, n_features))
    return X, np.sin(25 * X[:, 0]) + 2 * X[:, -1] ** 2 + 0.2 * rng.normal(size=n_samples)


def thompson() -> dict[str, object]:
    """Return settings of a search by Thompson sampling; once a parameter of the estimator."""
    try:
        return {"strategy": SOT(acquisition="thompson")}
    except TypeError:
        return {"strategy": "sot", "acquisition": "thompson"}


def results(model: AutoKernelGPRegressor, X: np.ndarray) -> dict[str, Any]:
    """Return what two fits must have in common."""
    mean, std = model.predict(X[:20], return_std=True)
    return {
        "kernels": model.search_history_["kernel"].tolist(),
        "scores": model.search_history_["score"].tolist(),
        "best kernel": model.best_expression_,
        "best score": model.best_score_,
        "means": mean.tolist(),
        "standard deviations": std.tolist(),
    }


def fit(n_features: int, n_samples: int, **settings: Any) -> Found:
    """Fit; with workers, seconds are those of the clock on the wall."""
    X, y = data(n_features, n_samples)
    clock = time.perf_counter if "n_jobs" in settings else time.process_time
    with parallel_config(backend="loky"):
        began = clock()
        model = AutoKernelGPRegressor(**{**SHORT, **settings}).fit(X, y)
        return clock() - began, results(model, X)


def resumed() -> Found:
    """Fit in two steps with a memory."""
    X, y = data(2, 25)
    model = AutoKernelGPRegressor(**{**SHORT, **FEW, "strategy": "boms"})
    with tempfile.TemporaryDirectory() as folder:
        began = time.process_time()
        model.set_params(memory=folder, n_iter=2).fit(X, y)
        model.set_params(n_iter=SHORT["n_iter"]).fit(X, y)
        return time.process_time() - began, results(model, X)


def median_seconds(call: Callable[[], object], repeats: int) -> float:
    """Median time of a call, after a first one."""
    call()
    seconds = []
    for _ in range(repeats):
        began = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - began)
    return statistics.median(seconds)


def likelihood(n_samples: int, repeats: int) -> Found:
    """Value and gradient; the package of the likelihoods was once called ``likelihood``."""
    names = ("autokernel.inference", "autokernel.likelihood")
    package = importlib.import_module(next(filter(importlib.util.find_spec, names)))
    rng = np.random.default_rng(0)
    training = package.TrainingData(rng.uniform(size=(n_samples, 2)), rng.normal(size=n_samples))
    expression = parse_expression("LIN[0] + PER[0] * SE[1] + RQ[0] * SE[1]")
    one = package.ExactLikelihood(expression, training)
    theta = rng.normal(-1.0, 0.1, 13)
    with package.one_blas_thread():
        seconds = median_seconds(lambda: one.value_and_gradient(theta), repeats)
        found = one.value_and_gradient(theta)
    if not isinstance(found, tuple):  # once a record
        found = found.value, found.gradient
    return seconds, {"value": found[0], "gradient": found[1].tolist()}


def evaluation() -> Found:
    """Evaluate three kernels."""
    X, y = load_airline(return_X_y=True)
    x, z = (X - X.min()) / np.ptp(X), (y - y.mean()) / y.std()
    texts = ("SE[0]", "LIN[0] + PER[0] * SE[0] + SE[0]", "RQ[0] * PER[0] + LIN[0]")
    began = time.process_time()
    scores = [evaluate_kernel(text, x, z).score for text in texts]
    return time.process_time() - began, {"scores": scores}


def prediction(n_samples: int, **what: bool) -> Found:
    """Predict 1000 rows."""
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(n_samples, 1))
    y = np.sin(12 * X[:, 0]) + 0.1 * rng.normal(size=n_samples)
    model = AutoKernelGPRegressor(random_state=0).refit(X, y, kernel="SE[0] + LIN[0] * PER[0]")
    X_new = rng.uniform(size=(1000, 1))
    seconds = median_seconds(lambda: model.predict(X_new, **what), 15)
    mean, std = model.predict(X_new, return_std=True)
    return seconds, {"means": mean.tolist(), "standard deviations": std.tolist()}


CASES: dict[str, Callable[[], Found]] = {
    "import": lambda: (0.0, {}),  # measured without what this file imports
    "likelihood, 100 rows": lambda: likelihood(100, 2000),
    "likelihood, 500 rows": lambda: likelihood(500, 60),
    "evaluation of three kernels": evaluation,
    "mean of 1000 rows, 100 to train on": lambda: prediction(100),
    "std of 1000 rows, 100 to train on": lambda: prediction(100, return_std=True),
    "mean of 1000 rows, 500 to train on": lambda: prediction(500),
    "std of 1000 rows, 500 to train on": lambda: prediction(500, return_std=True),
    "cov of 1000 rows, 500 to train on": lambda: prediction(500, return_cov=True),
    "default fit of airline": lambda: fit(1, 129, n_iter=50, max_leaves="auto"),
    "fit: sot, one column": lambda: fit(1, 40, n_iter=10, max_leaves=6),
    "fit: boms, one column": lambda: fit(1, 40, strategy=BOMS(n_walks=4, initial_design="paper")),
    "fit: arc, aic, two columns": lambda: fit(2, 30, strategy="arc", criterion="aic", **FEW),
    "fit: greedy, bic, one column": lambda: fit(
        1, 40, strategy="greedy", criterion="bic", n_iter=15
    ),
    "fit: skc, one column": lambda: fit(1, 60, strategy="skc", **FEW),
    "fit: tree_gep, two columns": lambda: fit(2, 30, strategy="tree_gep", **FEW),
    "fit: random, paper's priors, five columns": lambda: fit(
        5, 30, strategy="random", priors="paper", base_kernels=("SE",)
    ),
    "fit: sot, importance, one column": lambda: fit(1, 30, criterion="importance", **FEW),
    "fit: sot, cv, three columns": lambda: fit(3, 30, criterion="cv", n_iter=3, **FEW),
    "fit: greedy, loo, five columns": lambda: fit(5, 25, strategy="greedy", criterion="loo", **FEW),
    "fit: sot, four columns, two workers": lambda: fit(
        4, 25, strategy=SOT(initial_design="paper"), max_leaves=3, n_jobs=2, batch_size=2
    ),
    "fit: boms, two columns, resumed from memory": resumed,
    "fit: sot by Thompson sampling, 300 rows": lambda: fit(
        1, 300, base_kernels=("SE", "PER"), max_leaves=2, n_iter=2, **thompson()
    ),
    "fit: sot, 2000 rows": lambda: fit(1, 2000, base_kernels=("SE",), max_leaves=2, n_iter=0),
}


def run(checkout: Path, name: str, core: int) -> Found:
    """Run a case in a process of one checkout, on one core unless it has workers."""
    code = ["-c", IMPORT] if name == "import" else [__file__, "--run", name, str(checkout)]
    pinned = [] if "workers" in name else ["taskset", "-c", str(core)]
    environment = {**os.environ, "PYTHONPATH": str(checkout), "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(
        [*pinned, sys.executable, "-W", "ignore", *code],
        env=environment, cwd="/", check=True, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    seconds, found = json.loads(done.stdout)
    return seconds, found


def differences(old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    """Say in which results two runs differ."""
    found = []
    for name, before in old.items():
        now = new[name]
        if np.shape(before) != np.shape(now):
            found.append(f"{name}: {np.size(before)} and {np.size(now)} of them")
        elif np.asarray(before).dtype.kind == "U":
            pairs = zip(np.atleast_1d(before), np.atleast_1d(now), strict=True)
            found += [f"{name}: {a} and {b}" for a, b in pairs if a != b][:1]
        elif not np.allclose(now, before, rtol=TOLERANCE, atol=TOLERANCE, equal_nan=True):
            found.append(f"{name}: {np.nanmax(np.abs(np.subtract(now, before))):.2g} apart")
    return found


def compare(name: str, old: Path, commit: str, repeats: int) -> bool:
    """Run a case with both checkouts, print a line, and return whether results are the same."""
    pairs, differing = [], []
    for repeat in range(repeats):
        order = (old, NEW) if repeat % 2 else (NEW, old)
        found = {checkout: run(checkout, name, repeat // 2 % 2) for checkout in order}
        pairs.append((found[old][0], found[NEW][0]))
        differing = differing or differences(found[old][1], found[NEW][1])
        row = {"case": name, "repeat": repeat, "old": pairs[-1][0], "new": pairs[-1][1]}
        append_rows("new_over_old", [{**row, "old_commit": commit}])
    before, now = (statistics.median(side) for side in zip(*pairs, strict=True))
    ratios = sorted(new / old for old, new in pairs)
    print(
        f"{'DIFFERENT' if differing else 'same'}  {name}: old {before:.4g} s, new {now:.4g} s, "
        f"ratio {statistics.median(ratios):.3f} ({ratios[0]:.3f} to {ratios[-1]:.3f})",
        *differing, sep="\n    ", flush=True,
    )  # fmt: skip
    return not differing


def main() -> int:
    """Compare all cases, or some."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("old", type=Path, help="the other checkout")
    parser.add_argument("--only", nargs="+", default=[""], help="cases with one of these in a name")
    parser.add_argument("--skip", nargs="+", default=[], help="cases to leave out, in the same way")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--run", choices=CASES, help=argparse.SUPPRESS)
    options = parser.parse_args()
    old = options.old.resolve()
    if options.run:  # in the process of one checkout
        if not Path(autokernel.__file__).is_relative_to(old):
            raise RuntimeError(f"{autokernel.__file__} is not in {old}")
        print(json.dumps(CASES[options.run]()))
        return 0
    command = ["git", "-C", str(old), "rev-parse", "--short", "HEAD"]
    commit = subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
    print_environment()
    names = [name for name in CASES if any(part in name for part in options.only)]
    names = [name for name in names if not any(part in name for part in options.skip)]
    same = [compare(name, old, commit, options.repeats) for name in names]
    return int(not all(same))


if __name__ == "__main__":
    sys.exit(main())
