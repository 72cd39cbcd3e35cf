"""23 fits by two versions of the package: scores, errors on held-out rows, and CPU seconds.

A change that is meant to keep the results is compared with the commit before it. The fits cross all
strategies and criteria with the kinds of data: scales, categories, gaps, weights, known errors,
outliers, dates, many rows, workers and memory. They use the public API, so that any version since
9c09ee1 can run them. Each fit has its own process, which takes the package from a checkout.

    git worktree add --detach ../old 9c09ee1
    python benchmarks/new_over_old.py --old ../old --repeats 3

Rows go to results/new_over_old.csv, where ``version`` is the commit that was measured and
``in_turn_with`` the one that ran between. What is there is not measured again. The exit status is 1
if a fit is worse than before.
"""

import importlib
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import sklearn.gaussian_process  # noqa: F401  the import of the package is timed without it

began = time.process_time()
import autokernel  # noqa: E402, F401

IMPORT_SECONDS = time.process_time() - began

import common  # noqa: E402
from common import Row, Rows, Split, group  # noqa: E402

from autokernel import SOT, AutoKernelGPRegressor, RandomWalks  # noqa: E402
from autokernel.datasets import load_airline  # noqa: E402

NAME = "new_over_old"  # of the CSV file
SMALLER_SCORE, LARGER_NLL, RMSE_RATIO = 0.05, 0.01, 1.01  # beyond these, a fit is worse than before
N_TEST = 500
SHORT = {"n_iter": 6, "random_state": 0}
FEW = {"base_kernels": ("SE", "LIN"), "max_leaves": 3}
TIMES = {f"{what}_seconds": f"{what} ratio" for what in ("fit", "predict", "import")}


def table(n_features: int, n_samples: int) -> Split:
    """Draw a periodic function of the first column plus a square of the last one."""
    rng = np.random.default_rng(n_features)
    X = rng.uniform(size=(n_samples + N_TEST, n_features))
    y = np.sin(25 * X[:, 0]) + 2 * X[:, -1] ** 2 + 0.2 * rng.normal(size=len(X))
    return Split(X[:n_samples], y[:n_samples], X[n_samples:], y[n_samples:])


def airline(n_samples: int) -> Split:
    """Return the first months of the series of passengers, and the months after them."""
    X, y = load_airline(return_X_y=True)
    return Split(X[:n_samples], y[:n_samples], X[n_samples:], y[n_samples:])


def dated(n_samples: int) -> Split:
    import pandas as pd

    months = pd.date_range("1949-01", periods=144, freq="MS")
    y = pd.Series(load_airline().target, months, name="passengers")
    return Split(y[:n_samples], None, months[n_samples:], y.to_numpy()[n_samples:])


def shares(n_samples: int) -> Split:
    one = table(2, n_samples)
    y, y_test = (1 / (1 + np.exp(-1.5 * y)) for y in (one.y, one.y_test))
    return Split(one.X, y, one.X_test, y_test)


def ages(n_samples: int, *, of_target: bool = False) -> Split:
    """Draw a function of the logarithm of a column that spans three powers of ten."""
    rng = np.random.default_rng(11)
    X = 10 ** rng.uniform(0, 3, size=(n_samples + N_TEST, 1))
    z = np.sin(1.2 * np.log(X[:, 0])) + 0.1 * rng.normal(size=len(X))
    y = np.exp(1.5 * z) if of_target else z
    return Split(X[:n_samples], y[:n_samples], X[n_samples:], y[n_samples:])


def shops(n_samples: int, *, everything: bool = False) -> Split:
    """Draw four shops with functions of time; ``everything`` has all kinds of data at once."""
    import pandas as pd

    rng = np.random.default_rng(12)
    n = n_samples + N_TEST
    time_, age = rng.uniform(0, 10, size=n), 10 ** rng.uniform(0, 2, size=n)
    shop = rng.integers(4, size=n)
    z = np.sin(time_) + 0.5 * shop + 0.1 * shop * time_ + 0.1 * rng.normal(size=n)
    X = pd.DataFrame({"time": time_, "shop": pd.Categorical.from_codes(shop, list("abcd"))})
    if not everything:
        return Split(X[:n_samples], z[:n_samples], X[n_samples:], z[n_samples:])
    X["age"] = np.where(rng.uniform(size=n) < 0.1, np.nan, age)
    weights, errors = rng.uniform(0.5, 1.5, size=n_samples), rng.choice([0.01, 0.1], size=n_samples)
    y = np.exp(0.3 * (z + 0.5 * np.log(age)))
    y[:n_samples] += errors * rng.normal(size=n_samples)
    y[5] *= 10.0
    of_rows = {"sample_weight": weights / weights.mean(), "noise_std": errors}
    return Split(X[:n_samples], y[:n_samples], X[n_samples:], y[n_samples:], of_rows=of_rows)


def gaps(n_samples: int) -> Split:
    one = table(2, n_samples)
    rng = np.random.default_rng(13)
    X, X_test = (np.where(rng.uniform(size=X.shape) < 0.2, np.nan, X) for X in (one.X, one.X_test))
    return Split(X, one.y, X_test, one.y_test)


def uneven(n_samples: int, name: str) -> Split:
    """Draw rows with weights or with known errors, and noise that agrees with these."""
    one = table(1, n_samples)
    rng = np.random.default_rng(14)
    values = rng.choice([0.25, 1.75] if name == "sample_weight" else [0.02, 1.0], size=n_samples)
    if name == "sample_weight":
        values /= values.mean()
    deviation = values if name == "noise_std" else 0.5 / np.sqrt(values)
    y = one.y + deviation * rng.normal(size=n_samples)
    return Split(one.X, y, one.X_test, one.y_test, of_rows={name: values})


def spoilt(n_samples: int) -> Split:
    one = table(1, n_samples)
    y = one.y.copy()
    y[[3, 17, 31]] += [8.0, -9.0, 15.0]
    return Split(one.X, y, one.X_test, one.y_test)


def broken(n_samples: int) -> Split:
    rng = np.random.default_rng(15)
    X = rng.uniform(size=(n_samples + N_TEST, 1))
    y = np.where(X[:, 0] < 0.5, np.sin(8 * np.pi * X[:, 0]), 0.5) + 0.1 * rng.normal(size=len(X))
    return Split(X[:n_samples], y[:n_samples], X[n_samples:], y[n_samples:])


def in_two_steps(data: Split, settings: Mapping[str, Any]) -> AutoKernelGPRegressor:
    """Fit twice with a memory; the second fit reads what the first has evaluated."""
    model = AutoKernelGPRegressor(**settings)
    with tempfile.TemporaryDirectory() as folder:
        model.set_params(memory=folder, n_iter=2).fit(data.X, data.y)
        model.set_params(n_iter=settings["n_iter"]).fit(data.X, data.y)
    return model


FITS: Mapping[str, tuple[Callable[[], Split], Mapping[str, Any]]] = {
    "sot": (lambda: airline(120), {"n_iter": 10}),
    "boms": (lambda: table(1, 120), {"strategy": "boms", "max_leaves": 4}),
    "arc": (lambda: table(2, 120), {"strategy": "arc", **FEW}),
    "greedy, bic": (lambda: table(1, 150), {"strategy": "greedy", "criterion": "bic"}),
    "skc": (lambda: table(1, 200), {"strategy": "skc", "base_kernels": ("SE", "LIN", "PER")}),
    "tree_gep": (lambda: table(2, 120), {"strategy": "tree_gep", "max_leaves": 4}),
    "random walks, paper's priors, logit of target": (
        lambda: shares(120),
        {"strategy": RandomWalks(), "priors": "paper", "structure_prior": None, "max_leaves": 4},
    ),
    "series with dates": (lambda: dated(120), {"strategy": "series"}),
    "search with dates": (lambda: dated(96), {"n_iter": 4}),
    "importance": (lambda: table(1, 80), {"criterion": "importance"}),
    "loo, greedy": (lambda: table(2, 120), {"criterion": "loo", "strategy": "greedy"}),
    "scale of a column": (lambda: ages(120), {}),
    "scale of the target": (lambda: ages(120, of_target=True), {}),
    "categories": (lambda: shops(120), {}),
    "gaps": (lambda: gaps(120), {"base_kernels": ("SE", "LIN", "PER")}),
    "weights": (lambda: uneven(150, "sample_weight"), {}),
    "known errors": (lambda: uneven(150, "noise_std"), {}),
    "outliers": (lambda: spoilt(120), {}),
    "all kinds of data": (lambda: shops(150, everything=True), {"base_kernels": ("SE", "LIN")}),
    "300 rows, change points, known period": (
        lambda: broken(300),
        {"operators": ("+", "*", "cp"), "periods": {0: 0.25}, "max_leaves": 3},
    ),
    "2000 rows": (lambda: table(1, 2000), {"base_kernels": ("SE", "PER"), "max_leaves": 2}),
    "two workers, Thompson sampling": (
        lambda: table(3, 120),
        {"strategy": SOT(acquisition="thompson"), "n_jobs": 2, "batch_size": 2},
    ),
    "memory": (lambda: table(2, 120), {}),
}


def measure_here(fit: str) -> Row:
    warnings.simplefilter("ignore")
    make, given = FITS[fit]
    data, settings = make(), {**SHORT, **given}
    began = common.cpu_seconds()
    if fit == "memory":
        model = in_two_steps(data, settings)
    else:
        model = AutoKernelGPRegressor(**settings).fit(data.X, data.y, **data.of_rows)
    if "n_jobs" in settings:
        loky = importlib.import_module("joblib.externals.loky")
        loky.get_reusable_executor().shutdown(wait=True)
    fit_seconds = common.cpu_seconds() - began
    seconds = []
    for _ in range(5):
        began = time.process_time()
        mean, _ = model.predict(data.X_test, return_std=True)
        seconds.append(time.process_time() - began)
    density = model.log_predictive_density(data.X_test, data.y_test)
    return {
        "kernel": model.best_expression_,
        "score": float(model.best_score_),
        "rmse": common.rmse(mean, data.y_test) / float(np.std(data.y_test)),
        "nll": -float(np.mean(density)),
        "n_kernels": len(model.search_history_["score"]),
        "fit_seconds": fit_seconds,
        "predict_seconds": float(np.median(seconds)),
        "import_seconds": IMPORT_SECONDS,
    }


def measure(
    checkouts: Mapping[str, Path], fit: str, repeat: int, version: str, in_turn_with: str
) -> Row:
    """Run a fit in a fresh process that takes the package from a checkout."""
    found = common.measured_afresh(__file__, {"fit": fit}, folder=checkouts[version])
    assert found is not None
    return found


def compare(old: str, new: str, rows: Rows) -> bool:
    """Print the results and times of two versions; return whether none is worse."""
    found = {
        key: {row["repeat"]: row for row in own}
        for key, own in group(rows, "fit", "version").items()
    }
    pairs = {name: (found[name, old], found[name, new]) for name in group(rows, "fit")}
    lines = [{"fit": name} | compared(*pair) for name, pair in pairs.items()]
    print(f"\n{new} over {old}:")
    common.print_table(lines)
    medians = [f"{np.median([line[name] for line in lines]):.3f}" for name in TIMES.values()]
    print("median ratios of fit, predict, import:", *medians)
    totals = [
        sum(float(row["fit_seconds"]) for pair in pairs.values() for row in pair[number].values())
        for number in (0, 1)
    ]
    print(f"CPU of all fits: {totals[0]:.1f} s and {totals[1]:.1f} s")
    worse = [line["fit"] for line in lines if line[""]]
    print("worse:", ", ".join(worse) or "none")
    return not worse


def compared(before: Mapping[str, Row], now: Mapping[str, Row]) -> dict[str, Any]:
    """Compare the results of a fit, and its times in each repeat."""
    shared = sorted(before.keys() & now.keys())
    a, b = before[shared[0]], now[shared[0]]
    less = {name: float(b[name]) - float(a[name]) for name in ("score", "rmse", "nll")}
    is_worse = (
        less["score"] < -SMALLER_SCORE
        or less["nll"] > LARGER_NLL
        or float(b["rmse"]) > RMSE_RATIO * float(a["rmse"])
    )
    return {
        "score": float(a["score"]),
        **{f"{name} new - old": value for name, value in less.items()},
        **{
            what: float(np.median([float(now[r][name]) / float(before[r][name]) for r in shared]))
            for name, what in TIMES.items()
        },
        "kernel": "same" if a["kernel"] == b["kernel"] else f"{a['kernel']} > {b['kernel']}",
        "": "WORSE" if is_worse else "",
    }


def main() -> int:
    if common.answers(measure_here):
        return 0
    arguments = common.options_of(__doc__, old="../old", fits=list(FITS), repeats=1)
    checkouts, is_fixed = common.versions_of([Path(arguments.old), common.TOP])
    old, new = checkouts
    units = [
        {"fit": name, "repeat": repeat, "version": version, "in_turn_with": other}
        for repeat in range(arguments.repeats)
        for name in arguments.fits
        for version, other in [(old, new), (new, old)][:: 1 if repeat % 2 else -1]
    ]
    measured = partial(measure, checkouts)
    rows = common.collect(NAME, units, measured, arguments, any_commit=is_fixed)
    return int(not compare(old, new, rows))


if __name__ == "__main__":
    sys.exit(main())
