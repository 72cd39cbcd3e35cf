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
from tests.fits import end_of, left_of_group, rows, run_together, running, small, wave

posix = pytest.mark.skipif(sys.platform == "win32", reason="signals and groups are of POSIX")
PERIODIC = {"base_kernels": ["SE", "PER"], "n_iter": 4}

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
        print(json.dumps([rows(small(**each).fit(X, y)) for each in settings]))
"""

FIT_WITH_A_CRITERION_OF_ITS_OWN = """
import json, sys
from autokernel.evidence.laplace import Laplace
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
import json, os, signal, sys, time
import numpy as np
from joblib import Parallel, delayed
from tests.fits import At, rows, small, wave

def name_of_worker():
    import autokernel  # takes a worker a while
    time.sleep(0.1)
    return os.getpid()

signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's "&" has it ignored
settings = json.loads(sys.argv[1])
X, y = wave(settings.pop("n_samples", 20))
n_jobs = settings.get("n_jobs", 1)
while len(set(Parallel(n_jobs)(delayed(name_of_worker)() for _ in range(4)))) < n_jobs:
    pass  # until all workers are there, with the package
model = small(max_leaves=8, n_iter=500, **settings)
model.set_callbacks(At(lambda: print("begun", flush=True), begun=1))
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
    each = [{**PERIODIC, "batch_size": size} for size in alone]
    (found,) = run_together(FIT_ELSEWHERE, backend, json.dumps(each))
    assert found == list(alone.values())


def test_a_criterion_of_the_users_script_travels_to_workers_and_finds_what_is_kept(tmp_path):
    (found,) = run_together(FIT_WITH_A_CRITERION_OF_ITS_OWN, tmp_path)
    assert found == rows(small(n_iter=0).fit(*wave()))


def interrupt_after(n_lines, *, whom, seconds=0.0, **settings):
    """Interrupt a fit some lines and seconds later; return what it says then, and its errors."""
    with running(FIT_UNTIL_INTERRUPTED, json.dumps({"verbose": 2, **settings})) as process:
        first = process.stdout.readline()
        if "by one worker" in first:  # a fit that may take long
            first = process.stdout.readline()
        assert first == "begun\n", process.communicate()
        for _ in range(n_lines):
            process.stdout.readline()
        time.sleep(seconds)
        (os.killpg if whom == "group" else os.kill)(process.pid, signal.SIGINT)
        out, err = end_of(process)
        assert left_of_group(process) == []
    # Python ends with this signal where it has raised KeyboardInterrupt to the end
    assert process.returncode == -signal.SIGINT, err
    return json.loads(out.splitlines()[-1]), err


@posix
@pytest.mark.parametrize(
    ("whom", "n_jobs"), [("process", 1), ("process", 2), ("group", 2)], ids=str
)
def test_ctrl_c_leaves_a_fitted_model_and_no_worker(whom, n_jobs):
    told, err = interrupt_after(7, whom=whom, n_jobs=n_jobs, batch_size=4)
    assert told["reason"] == "interrupted"
    assert told["finite"]
    assert len(told["rows"]) >= 7
    expected = rows(small(max_leaves=8, batch_size=4, n_iter=1).fit(*wave()))
    assert told["rows"][:7] == expected[:7]
    # the traceback of the one that is not caught, and none of workers
    assert err.count("Traceback") == 1, err
    assert err.endswith("KeyboardInterrupt\n"), err


@posix
@pytest.mark.parametrize(("whom", "n_jobs"), [("process", 1), ("group", 2)])
def test_ctrl_c_before_any_kernel_leaves_a_rough_model_and_no_worker(whom, n_jobs):
    # a thousand rows and draws take seconds, in the midst of which the signal comes
    slow = {"n_samples": 1000, "criterion": "importance", "approximation": "exact"}
    told, err = interrupt_after(0, whom=whom, seconds=0.5, n_jobs=n_jobs, **slow)
    assert told["rows"] == []
    assert told["reason"] == "interrupted"
    assert told["finite"]
    assert told["score"] == "-inf"
    assert err.count("Traceback") == 1, err


def deadly_for(text):
    """A criterion that ends the process for one kernel; a local class travels to any worker."""

    class Deadly(Laplace):
        def __call__(self, fit):
            if str(fit.posterior.expression) == text:
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


def test_time_is_over_for_workers_too():
    X, y = wave(1500)
    small(n_iter=0, n_jobs=2).fit(*wave())  # workers are there, with the package
    began = time.monotonic()
    with pytest.warns(ConvergenceWarning, match="max_time ended the search before any kernel"):
        model = small(
            max_time=3,
            n_iter=0,
            base_kernels=["SE"],
            criterion="importance",
            approximation="exact",
            n_jobs=2,
        ).fit(X, y)
    # a call of the likelihood takes a tenth of a second or two, an evaluation a thousand of them
    assert time.monotonic() - began < 20
    assert model.stop_reason_ == "max_time"
    assert rows(model) == []
    assert np.isfinite(model.predict(X)).all()
