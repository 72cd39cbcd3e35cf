"""Searches on a Dask cluster of separate processes: the cost of a message, efficiency, and deaths.

Kernels of a batch are evaluated on the workers of a ``dask.distributed`` LocalCluster through
joblib, one kernel a task, with which the rows travel. ``alone`` is the same search
without workers, ``one`` and ``two`` on clusters of so many workers. ``message`` is the time of a
task that does nothing, sent with the rows. In ``killed`` a worker is killed in the midst of the
search, at another moment for each seed; the column ``same_bits`` says whether the history is that
of the search alone.

Rows go to results/cluster.csv.

    AUTOKERNEL_DATA=folder python benchmarks/cluster.py
    python benchmarks/cluster.py --small
"""

import os
import signal
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from common import (
    Row,
    make_parser,
    numbers,
    parse,
    print_environment,
    print_table,
    rounded,
    run_missing,
)  # isort: skip

from runs import draw_split  # isort: skip

import joblib
import numpy as np

from autokernel import AutoKernelGPRegressor

if TYPE_CHECKING:
    from dask.distributed import LocalCluster

NAME = "cluster"  # of the CSV file
BATCH = 4
N_MESSAGES = 200
WORKERS = {"alone": 0, "one": 1, "two": 2, "killed": 2, "message": 2}
N_DEATHS = 10
MOMENT = 0.1  # seconds from the end of a kernel to a death, when others are under way
# Dask's own settings map each array anew, which takes twice the time
MEMORY = {"MALLOC_TRIM_THRESHOLD_": 2**28, "MALLOC_MMAP_THRESHOLD_": 2**25}


@dataclass(frozen=True, slots=True)
class Unit:
    """What a row is measured for."""

    case: str
    dataset: str
    n_train: int
    seed: int
    n_iter: int


def measure(unit: Unit) -> Row:
    """Search on a cluster, or send messages through it."""
    split = draw_split(unit.dataset, 0, n_train=unit.n_train)
    with workers(WORKERS[unit.case]) as cluster:
        if unit.case == "message":
            seconds = seconds_of_message(split.X_train)
            return {"seconds": rounded(seconds), "same_bits": "", "n_kernels": N_MESSAGES}
        killer = None
        if unit.case == "killed":
            assert cluster is not None
            killer = Killer(cluster, after=share_of_death(unit.seed) * n_kernels_of(unit))
        began = time.perf_counter()
        found = search(split.X_train, split.y_train, n_iter=unit.n_iter, callback=killer)
        seconds = time.perf_counter() - began
        if killer is not None and not killer.has_killed.is_set():
            raise RuntimeError(f"no worker was killed in {unit}")
    same = np.array_equal(found, expected_scores(unit.dataset, unit.n_train, unit.n_iter))
    return {"seconds": rounded(seconds), "same_bits": same, "n_kernels": len(found)}


@cache
def expected_scores(dataset: str, n_train: int, n_iter: int) -> np.ndarray:
    """Return the scores of the search without workers."""
    split = draw_split(dataset, 0, n_train=n_train)
    return search(split.X_train, split.y_train, n_iter=n_iter)


def n_kernels_of(unit: Unit) -> int:
    """Return the number of kernels of the search."""
    return len(expected_scores(unit.dataset, unit.n_train, unit.n_iter))


def share_of_death(seed: int) -> float:
    """Return the share of the kernels after which a worker dies, from the first to the last."""
    return 0.02 + 0.9 * seed / N_DEATHS


def search(
    X: np.ndarray, y: np.ndarray, *, n_iter: int, callback: "Killer | None" = None
) -> np.ndarray:
    """Return the scores of all kernels in order."""
    model = AutoKernelGPRegressor(
        n_iter=n_iter, batch_size=BATCH, tol=0, averaging=None, random_state=0
    )
    if callback is not None:
        model.set_callbacks(callback)
    return model.fit(X, y).search_history_["score"]


@contextmanager
def workers(n: int) -> Iterator["LocalCluster | None"]:
    """Let joblib use a cluster of so many processes, none for zero."""
    if n == 0:
        yield None
        return
    import dask
    from dask.distributed import Client, LocalCluster

    dask.config.set({"distributed.nanny.pre-spawn-environ": MEMORY})
    options = {"threads_per_worker": 1, "processes": True, "dashboard_address": None}
    with (
        LocalCluster(n_workers=n, **options) as cluster,
        Client(cluster) as client,
        joblib.parallel_config(backend="dask", n_jobs=n),
    ):
        client.run(warm)  # a worker imports the package once
        yield cluster


def warm() -> None:
    """Import what an evaluation needs."""
    import autokernel  # noqa: F401


class Killer:
    """A callback that kills a worker a moment after so many kernels; its nanny starts another."""

    def __init__(self, cluster: "LocalCluster", *, after: float) -> None:
        self._cluster, self._left = cluster, int(after)
        self.has_killed = threading.Event()

    def setup(self, estimator: Any, context: Any) -> None:
        """Do nothing before the fit."""

    def teardown(self, estimator: Any, context: Any) -> None:
        """Do nothing after the fit."""

    def on_fit_task_begin(self, estimator: Any, context: Any, **given: Any) -> None:
        """Do nothing as a kernel begins."""

    def on_fit_task_end(self, *given: Any, **named: Any) -> None:  # noqa: ARG002 - it only counts
        """Count the kernels, and kill a worker while it evaluates one of those that follow."""
        self._left -= 1
        if self._left == 0:
            threading.Timer(MOMENT, self._kill).start()

    def _kill(self) -> None:
        """Kill a worker process."""
        worker = next(iter(self._cluster.workers.values()))
        os.kill(worker.process.pid, signal.SIGKILL)
        self.has_killed.set()


def seconds_of_message(X: np.ndarray) -> float:
    """Measure the seconds of a task that only receives and returns an array."""
    run = joblib.Parallel(batch_size=1, pre_dispatch="n_jobs")
    run(joblib.delayed(len)(X) for _ in range(10))
    began = time.perf_counter()
    run(joblib.delayed(len)(X) for _ in range(N_MESSAGES))
    return (time.perf_counter() - began) / N_MESSAGES


def summarise(rows: list[Mapping[str, str]]) -> None:
    """Print medians of each case."""
    table = []
    for case in WORKERS:
        of_case = [row for row in rows if row["case"] == case]
        if of_case:
            same = [row["same_bits"] for row in of_case]
            table.append(
                {
                    "case": case,
                    "runs": len(of_case),
                    "seconds": float(np.median(numbers(of_case, "seconds"))),
                    "same bits": f"{same.count('True')} of {len(same)}",
                }
            )
    print_table(table)
    seconds = {row["case"]: row["seconds"] for row in table}
    if {"one", "two"} <= seconds.keys():
        print(f"efficiency of two workers: {seconds['one'] / (2 * seconds['two']):.2f}")


def main() -> None:
    """Measure what is missing and print the table."""
    parser = make_parser(__doc__, datasets=["concrete"], seeds=3)
    arguments = parse(parser, small={"seeds": 1})
    print_environment()
    n_iter, n_train = (8, 120) if arguments.small else (16, 250)
    units = [
        Unit(case, dataset, n_train, seed, n_iter)
        for dataset in arguments.datasets
        for case in WORKERS
        for seed in range(N_DEATHS if case == "killed" and not arguments.small else arguments.seeds)
    ]
    summarise(run_missing(NAME, units, measure))


if __name__ == "__main__":
    main()
