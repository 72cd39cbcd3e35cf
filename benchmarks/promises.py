"""How much two workers gain, and how well a budget is kept.

- workers: seconds of the initial design on 500 rows of a data set with one and with two workers,
  in turns; the ratio of the first, the reference, to the second is the speed-up. The workers are
  started beforehand.
- budget: seconds of fits with max_time, of tables of many shapes, and their ratio to what is
  allowed, the reference: 1.1 times max_time, and 0.2 s. With --load 4, four other processes work.
- unused: fits of 32 tables with a max_time that they do not reach; the ratio is 1 if kernels,
  scores and predictions are equal to the last bit to those without max_time, else 0.
- interrupts: fits and refits that Ctrl-C ends at random moments; the ratio is 1 if the estimator
  then has either all attributes of the old fit or all of a new one, else 0.
- kills: a fit with memory in a process that is killed ten times at random moments, and then ends;
  the ratio is 1 if it finds what a fit without interruption finds, else 0.

Rows are appended to results/promises.csv; ``--finished`` prints all that are there.

    AUTOKERNEL_DATA=folder python benchmarks/promises.py
    python benchmarks/promises.py --questions workers --repeats 1
"""

import signal
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import common
import numpy as np
import pandas as pd
from common import Rows, group
from data import draw_split
from joblib import Parallel, delayed

from autokernel import AutoKernelGPRegressor
from autokernel.search import STRATEGIES
from autokernel.typing import FloatArray

NAME = "promises"  # of the CSV file
DATASETS = ("airfoil", "concrete")
N_ROWS = 500
BUDGETS = (0.3, 1.0, 3.0, 10.0)  # seconds
SHAPES = (
    *((50, k) for k in (1, 20, 200)),
    *((300, k) for k in (1, 30, 100, 200)),
    *((600, 5), (1000, 8), (2000, 3), (5000, 10), (20_000, 5), (20_000, 200)),
    *((200_000, 1), (200_000, 10)),
)
KINDS = ("outliers", "categories", "gaps")
SMALL_SHAPES = (
    *((n, k) for n in (30, 60, 150) for k in (1, 2, 5, 12)),
    *((n, 30) for n in (40, 80)),
    *((n, 3, kind) for n in (50, 150) for kind in KINDS),
)
APPROXIMATIONS = (("exact", 2000), ("exact", 4000), ("inducing", 50_000), ("neighbours", 50_000))
LEVELS = [f"level {number}" for number in range(30)]
ARRAYS = ("X_train_", "y_train_", "posterior_", "outliers_", "inclusion_probabilities_")
FIT_WITH_MEMORY = """
import sys
import numpy as np
from autokernel import AutoKernelGPRegressor
rng = np.random.default_rng(0)
X = rng.uniform(size=(80, 2))
y = np.sin(9 * X[:, 0]) + X[:, 1] + 0.1 * rng.normal(size=80)
model = AutoKernelGPRegressor(n_iter=8, random_state=0, memory=sys.argv[1] or None).fit(X, y)
print(model.search_history_["kernel"].tolist(), model.search_history_["score"].tolist())
print(model.predict(X).tolist())
"""
Measured = tuple[str, float, float, float]
"""Data set, reference, seconds, and their ratio."""


def workers(repeat: int) -> Iterator[Measured]:
    Parallel(n_jobs=2)(delayed(draw_split)("airfoil", 0, n_train=N_ROWS) for _ in range(2))
    for dataset in DATASETS:
        split, seconds = draw_split(dataset, 0, n_train=N_ROWS), {}
        for n_jobs in (1, 2) if repeat % 2 else (2, 1):
            began = time.perf_counter()
            AutoKernelGPRegressor(n_iter=0, n_jobs=n_jobs, random_state=0).fit(split.X, split.y)
            seconds[n_jobs] = time.perf_counter() - began
        yield dataset, seconds[1], seconds[2], seconds[1] / seconds[2]


def shaped(n_rows: int, n_columns: int, kind: str = "") -> tuple[object, FloatArray]:
    """Draw a table of some shape, with outliers, categories or gaps."""
    rng = np.random.default_rng(0)
    X: Any = rng.uniform(size=(n_rows, n_columns))
    y = np.sin(6 * X[:, 0]) + X[:, -1] + 0.1 * rng.normal(size=n_rows)
    if kind == "outliers":
        rows = rng.choice(n_rows, n_rows // 50, replace=False)
        y[rows] += 30 * rng.normal(size=len(rows))
    if kind == "gaps":
        X[rng.random(X.shape) < 0.1] = np.nan
    if kind == "categories":
        X = pd.DataFrame(X).rename(columns=str)
        X["few"], X["many"] = rng.choice(list("abcd"), n_rows), rng.choice(LEVELS, n_rows)
    return X, y


def budget(_: int) -> Iterator[Measured]:
    shapes = [((n, k), {}) for n, k in SHAPES]
    shapes += [((n, 5, kind), {}) for kind in KINDS for n in (200, 5000)]
    shapes += [((300, 4), {"strategy": one}) for one in STRATEGIES if one != "series"]
    shapes += [((n, 1), {"strategy": "series"}) for n in (300, 3000)]
    shapes += [((n, 3), {"approximation": how}) for how, n in APPROXIMATIONS]
    shapes += [((n, 3), {"n_jobs": 2, "batch_size": 2}) for n in (300, 3000)]
    for shape, parameters in shapes:
        X, y = shaped(*shape)
        for max_time in BUDGETS:
            model = AutoKernelGPRegressor(max_time=max_time, random_state=0, **parameters)
            began = time.perf_counter()
            model.fit(X, y)
            seconds, allowed = time.perf_counter() - began, 1.1 * max_time + 0.2
            name = " ".join(map(str, (*shape, *parameters.values(), model.best_score_ > -np.inf)))
            yield name, allowed, seconds, seconds / allowed


def unused(_: int) -> Iterator[Measured]:
    shapes: list[tuple[Any, dict[str, Any]]] = [(shape, {}) for shape in SMALL_SHAPES]
    shapes += [((60, 2), {"strategy": one}) for one in STRATEGIES if one != "series"]
    shapes += [((60, 1), {"strategy": "series"})]
    shapes += [((700, 2), {"approximation": how}) for how in ("auto", "inducing", "neighbours")]
    shapes += [((1200, 1), {"strategy": "series"})]
    for shape, parameters in shapes:
        X, y = shaped(*shape)
        if parameters.get("strategy") == "series":
            X = np.arange(len(y))[:, None]
        found = []
        began = time.perf_counter()
        for max_time in (None, 1e5):
            model = AutoKernelGPRegressor(max_time=max_time, n_iter=3, random_state=0, **parameters)
            model.fit(X, y)
            history = model.search_history_
            texts = [history[name].tolist() for name in ("kernel", "score", "phase")]
            found.append((texts, model.best_score_, model.predict(X).tolist()))
        name = " ".join(map(str, (*shape, *parameters.values())))
        yield name, 1.0, time.perf_counter() - began, float(found[0] == found[1])


def interrupts(repeat: int) -> Iterator[Measured]:
    """Interrupt fits and refits, and look which attributes the estimator has."""
    rng = np.random.default_rng(repeat)
    old, new = shaped(60, 2), shaped(70, 3)
    for number in range(20):
        model = AutoKernelGPRegressor(n_iter=2, random_state=0).fit(*old)
        before = vars(model).copy()
        call = (model.fit, new) if number % 2 else (model.refit, (*old, "SE[0] + LIN[1]"))
        after = rng.uniform(0, 0.7 if number % 2 else 0.15)
        signal.setitimer(signal.ITIMER_REAL, after)
        try:
            call[0](*call[1])
        except KeyboardInterrupt:
            pass
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
        names = [name for name in before if name.endswith("_") and before[name] is not None]
        changed = [getattr(model, name) is not before[name] for name in ARRAYS if name in names]
        is_whole = len(set(changed)) == 1 and np.isfinite(model.predict(model.X_train_)).all()
        yield call[0].__name__, after, float(all(changed)), float(is_whole)


def kills(repeat: int) -> Iterator[Measured]:
    """Kill a process that fits with memory, let another one end the fit, and compare."""
    rng = np.random.default_rng(repeat)
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-c", FIT_WITH_MEMORY, folder]
        for _ in range(10):
            with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
                with suppress(subprocess.TimeoutExpired):
                    process.wait(rng.uniform(1, 6))
                process.kill()
        found = subprocess.run(command, check=True, capture_output=True).stdout
    expected = subprocess.run([*command[:-1], ""], check=True, capture_output=True).stdout
    yield "", 10.0, 0.0, float(found == expected)


def _interrupted(*_: object) -> None:
    raise KeyboardInterrupt


QUESTIONS: dict[str, Callable[[int], Iterator[Measured]]] = {
    "budget": budget,
    "interrupts": interrupts,
    "kills": kills,
    "unused": unused,
    "workers": workers,
}


def main() -> None:
    arguments = common.options_of(__doc__, questions=list(QUESTIONS), repeats=5, load=0)
    warnings.simplefilter("ignore")
    signal.signal(signal.SIGALRM, _interrupted)
    command = [sys.executable, "-c", "while True: pass"]
    busy = [subprocess.Popen(command) for _ in range(arguments.load)]
    rows = common.read_rows(NAME) if arguments.finished else []
    try:
        for question in () if arguments.finished else arguments.questions:
            name = f"{question}, load {arguments.load}" if arguments.load else question
            for repeat in range(arguments.repeats):
                for dataset, *measured in QUESTIONS[question](repeat):
                    row = {"question": name, "dataset": dataset, "repeat": repeat}
                    row |= zip(("reference", "seconds", "ratio"), measured, strict=True)
                    common.append_rows(NAME, [row])
                    print(*row.values(), flush=True)
                    rows.append(row)
    finally:
        for one in busy:
            one.kill()
    summarise([row for row in rows if row["question"].split(",")[0] in arguments.questions])


def summarise(rows: Rows) -> None:
    lines = [
        {**row, "limit": f"{float(row['reference']):.3g}" * row["question"].startswith("budget")}
        for row in rows
    ]
    figures = {"median": np.median, "lowest": np.min, "highest": np.max}
    common.print_groups(
        group(lines, "question", "dataset", "limit"),
        "question, data set, limit",
        {name: common.of(function, "ratio") for name, function in figures.items()},
    )


if __name__ == "__main__":
    main()
