"""Fits with workers of every kind, under Ctrl-C, with workers that die and where time is short."""

import json
import os
import signal
import sys
import time

import joblib
import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from autokernel.evidence import Evaluator, Laplace
from tests.fits import PATIENCE, end_of, left_of_group, rows, run_together, running, small, wave

posix = pytest.mark.skipif(sys.platform == "win32", reason="signals and groups are of POSIX")
PERIODIC = {"base_kernels": ["SE", "PER"], "n_iter": 2}

FIT_ELSEWHERE = """
import contextlib, json, os, sys
import joblib
from autokernel.evidence import Evaluator
from tests.fits import rows, small, wave

if __name__ == "__main__":
    backend, settings = sys.argv[1], json.loads(sys.argv[2])
    here, run = os.getpid(), Evaluator.run

    def run_elsewhere(self, job, **options):
        assert os.getpid() != here, "no worker"
        return run(self, job, **options)

    Evaluator.run = run_elsewhere
    with contextlib.ExitStack() as stack:
        if backend == "dask":
            from dask.distributed import Client, LocalCluster
            cluster = LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None)
            stack.enter_context(stack.enter_context(cluster).get_client())
        stack.enter_context(joblib.parallel_config(backend=backend, n_jobs=2))
        X, y = wave()
        print(json.dumps(rows(small(**settings).fit(X, y))))
"""

FIT_WITH_A_CRITERION_OF_ITS_OWN = """
import json, sys
from autokernel.evidence import Laplace
from tests.fits import TIMES, rows, small, wave

class Mine(Laplace):
    def __init__(self, weight=1.0):
        self.weight = weight

settings = {"n_iter": 0, "n_jobs": 2, "memory": sys.argv[1], "criterion": Mine(2.0)}
first, again = (small(**settings).fit(*wave()) for _ in range(2))
assert rows(again, without=TIMES[1:]) == rows(first, without=TIMES[1:]), "not kept"
print(json.dumps(rows(first)))
"""

FIT_UNTIL_INTERRUPTED = """
import json, signal, sys, time
import numpy as np
from autokernel import Laplace
from tests.fits import PATIENCE, rows, small, wave

class Endless(Laplace):
    "Waits at one kernel, or at each one, for a signal to end it."

    def __init__(self, text=""):
        self.text = text

    def __call__(self, fit):
        if self.text in ("", str(fit.expression)):
            print("waits", flush=True)
            for _ in range(int(10 * PATIENCE)):
                time.sleep(0.1)
        return super().__call__(fit)

signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's "&" has it ignored
X, y = wave()
model = small(criterion=Endless(sys.argv[1]), verbose=2, **json.loads(sys.argv[2]))
try:
    model.fit(X, y)
except KeyboardInterrupt:
    finite = bool(np.isfinite(model.predict(X, return_std=True)).all())
    told = {"rows": rows(model), "reason": model.stop_reason_, "finite": finite}
    told |= {"kernel": model.best_expression_, "score": str(model.best_score_)}
    print(json.dumps(told), flush=True)
    raise
"""


@pytest.fixture(scope="module")
def alone():
    """Histories without workers, by the size of the batch."""
    return {size: rows(small(batch_size=size, **PERIODIC).fit(*wave())) for size in (1, 4)}


@pytest.mark.parametrize("size", [1, 4])
def test_two_processes_find_what_one_finds(alone, size, monkeypatch):
    monkeypatch.setattr(Evaluator, "run", lambda *args, **options: pytest.fail("not in a worker"))
    model = small(n_jobs=2, batch_size=size, **PERIODIC).fit(*wave())
    assert rows(model) == alone[size]


@pytest.mark.parametrize("size", [1, 4])
def test_two_threads_find_what_one_finds(alone, size):
    with joblib.parallel_config(backend="threading", n_jobs=2):
        assert rows(small(batch_size=size, **PERIODIC).fit(*wave())) == alone[size]


@pytest.mark.parametrize("backend", ["multiprocessing", "dask"])
def test_workers_of_other_kinds_find_what_one_process_finds(alone, backend):
    if backend == "dask":
        pytest.importorskip("distributed")
    settings = {**PERIODIC, "batch_size": 4}
    (found,) = run_together(FIT_ELSEWHERE, backend, json.dumps(settings))
    assert found == alone[4]


def test_a_criterion_of_the_users_script_travels_to_workers_and_finds_what_is_kept(tmp_path):
    (found,) = run_together(FIT_WITH_A_CRITERION_OF_ITS_OWN, tmp_path)
    assert found == rows(small(n_iter=0).fit(*wave()))


def interrupt_at(text, *, after, whom, **settings):
    """Interrupt a fit that waits at a kernel, after some others; return what it says then."""
    with running(FIT_UNTIL_INTERRUPTED, text, json.dumps(settings)) as process:
        waits, n_rows = False, 0
        while not waits or n_rows < after:
            line = process.stdout.readline()
            assert line, process.communicate()
            waits, n_rows = waits or line == "waits\n", n_rows + (" s " in line)
        (os.killpg if whom == "group" else os.kill)(process.pid, signal.SIGINT)
        out, err = end_of(process)
        assert left_of_group(process) == []
    # Python ends with this signal where it has raised KeyboardInterrupt to the end
    assert process.returncode == -signal.SIGINT, err
    # the traceback of the one that is not caught; in a group, joblib's workers may print theirs
    assert err.count("Traceback") == 1 or whom == "group", err
    assert err.endswith("KeyboardInterrupt\n"), err
    return json.loads(out.splitlines()[-1])


@posix
@pytest.mark.parametrize(
    ("whom", "n_jobs"), [("process", 1), ("process", 2), ("group", 2)], ids=str
)
def test_ctrl_c_leaves_a_fitted_model_and_no_worker(whom, n_jobs):
    expected = small(n_iter=0).fit(*wave())
    place = 4
    text = expected.search_history_["kernel"][place]
    told = interrupt_at(text, after=place, whom=whom, n_jobs=n_jobs, batch_size=4)
    assert told["reason"] == "interrupted"
    assert told["finite"]
    assert told["rows"] == rows(expected)[:place]


@posix
@pytest.mark.parametrize(("whom", "n_jobs"), [("process", 1), ("group", 2)])
def test_ctrl_c_before_any_kernel_leaves_a_rough_model_and_no_worker(whom, n_jobs):
    told = interrupt_at("", after=0, whom=whom, n_jobs=n_jobs)
    assert told["rows"] == []
    assert told["reason"] == "interrupted"
    assert told["finite"]
    assert told["score"] == "-inf"


def deadly_for(text):
    """A criterion that ends the process for one kernel; a local class travels to any worker."""

    class Deadly(Laplace):
        def __call__(self, fit):
            if str(fit.expression) == text:
                os._exit(1)
            return super().__call__(fit)

    return Deadly()


def test_a_kernel_that_kills_its_worker_is_a_row_of_the_history_and_the_search_goes_on():
    X, y = wave()
    deadly = "LIN[0] * SE[0]"  # in the second part of the design: no other begins at its fit
    model = small(criterion=deadly_for(deadly), n_jobs=2, n_iter=1).fit(X, y)
    kernels = list(model.search_history_["kernel"])
    place = kernels.index(deadly)
    assert model.search_history_["score"][place] == -np.inf
    assert "TerminatedWorkerError" in model.search_history_["status"][place]
    assert list(model.search_history_["status"]).count("ok") == len(kernels) - 1
    assert model.stop_reason_ == "n_iter"
    initial = list(model.search_history_["phase"]).count("initial")
    expected = rows(small(n_iter=0).fit(X, y), without=("fit_seconds", "elapsed", "best_score"))
    found = rows(model, without=("fit_seconds", "elapsed", "best_score"))[:initial]
    assert found[:place] + found[place + 1 :] == expected[:place] + expected[place + 1 :]


def slow():
    """A criterion that takes minutes unless the time is over; it looks at the clock meanwhile."""

    class Slow(Laplace):
        def __call__(self, fit):
            for _ in range(int(100 * PATIENCE)):
                fit.log_density(fit.theta)
                time.sleep(0.01)
            return super().__call__(fit)

    return Slow()


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_time_is_over_for_workers_too(n_jobs):
    X, y = wave()
    with pytest.warns(ConvergenceWarning, match="max_time ended the search before any kernel"):
        model = small(max_time=1, n_iter=0, criterion=slow(), n_jobs=n_jobs).fit(X, y)
    assert model.stop_reason_ == "max_time"
    assert rows(model) == []
    assert np.isfinite(model.predict(X)).all()
