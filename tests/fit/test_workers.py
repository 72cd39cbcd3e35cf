"""Fits with workers of every kind and with a memory: the same result, whatever ends a process."""

import json
import os
import pickle
import signal
import sys
import warnings

import joblib
import numpy as np
import pytest

from autokernel import SOT
from autokernel.evidence import Estimate, Evaluator, Laplace
from autokernel.expression import parse_expression
from autokernel.inference import TrainingData
from autokernel.kernels import PRESETS
from autokernel.search import evaluate_in_parallel
from tests import fits
from tests.fits import (
    PATIENCE,
    TIMES,
    At,
    count_evaluations,
    kernels,
    left_of_group,
    rows,
    run_together,
    running,
    wave,
)
from tests.own_kernels import OrnsteinUhlenbeck

posix = pytest.mark.skipif(sys.platform == "win32", reason="signals and groups are of POSIX")
PERIODIC = {"base_kernels": ["SE", "PER"], "strategy": "greedy", "n_iter": 2, "batch_size": 2}
DATA = X, Y = wave(12)

FIT_ELSEWHERE = """
import json, os, sys
import joblib
from dask.distributed import Client, LocalCluster
from autokernel.evidence import Evaluator
from tests.fits import rows, small, wave

if __name__ == "__main__":
    here, run = os.getpid(), Evaluator.run

    def run_elsewhere(self, job, **options):
        assert os.getpid() != here, "no worker"
        return run(self, job, **options)

    Evaluator.run = run_elsewhere
    settings = json.loads(sys.argv[1])
    found = []
    with joblib.parallel_config(backend="multiprocessing", n_jobs=2):
        found.append(rows(small(**settings).fit(*wave(12))))
    with (
        LocalCluster(n_workers=1, threads_per_worker=2, dashboard_address=None) as cluster,
        cluster.get_client(),
        joblib.parallel_config(backend="dask"),
    ):
        found.append(rows(small(**settings).fit(*wave(12))))
    print(json.dumps(found))
"""

FIT_LONG = """
import sys
from tests.fits import counted, wave
counted(memory=sys.argv[1], n_iter=60, verbose=2, averaging=None).fit(*wave(12))
"""

FIT_UNTIL_INTERRUPTED = """
import json, os, signal, time
import numpy as np
from autokernel import Laplace
from tests.fits import PATIENCE, rows, small, wave

class Endless(Laplace):
    "Waits at each kernel for a signal to end it."

    def __call__(self, fit):
        os.write(1, b"waits\\n")  # at once, as another worker may print too
        for _ in range(int(10 * PATIENCE)):
            time.sleep(0.1)

signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's "&" has it ignored
X, y = wave(12)
model = small(criterion=Endless(), averaging=None, n_jobs=2)
try:
    model.fit(X, y)
except KeyboardInterrupt:
    finite = bool(np.isfinite(model.predict(X, return_std=True)).all())
    report = {"rows": rows(model), "reason": model.stop_reason_, "finite": finite}
    print(json.dumps(report), flush=True)
    raise
"""


def small(**parameters):
    """An estimator without an average."""
    return fits.small(**{"averaging": None, "n_iter": 2, **parameters})


def counted(**parameters):
    """The same, of which ``count_evaluations`` knows the kernels."""
    return fits.counted(**{"averaging": None, "n_iter": 2, **parameters})


@pytest.fixture(scope="module")
def undisturbed():
    """A search that keeps nothing."""
    return small().fit(*DATA)


@pytest.fixture(scope="module")
def alone():
    """A search without workers."""
    return small(**PERIODIC).fit(*DATA)


@pytest.fixture
def evaluated():
    """Texts of the kernels that are evaluated here."""
    return count_evaluations()


def kept(folder):
    """The files of evaluations; others hold proposals and outliers."""
    files = sorted(folder.rglob("output.pkl"))
    return [file for file in files if "theta" in joblib.load(file)]


def n_kept(folder):
    return len(kept(folder))


# Workers. Local classes can travel to any worker.


def elsewhere():
    """A criterion that has a value in other processes only."""
    here = os.getpid()

    class Elsewhere(Laplace):
        def __call__(self, fit):
            assert os.getpid() != here
            return super().__call__(fit)

    return Elsewhere()


def test_two_processes_find_what_one_finds_and_keep_it(alone, tmp_path):
    model = small(n_jobs=2, criterion=elsewhere(), memory=tmp_path, **PERIODIC).fit(*DATA)
    assert rows(model) == rows(alone)
    again = model.set_params(n_jobs=None).fit(*DATA)  # nothing is evaluated in this process
    assert rows(again) == rows(alone)
    assert n_kept(tmp_path) == len(rows(alone))


def test_two_threads_find_what_one_finds(alone):
    with joblib.parallel_config(backend="threading", n_jobs=2):
        assert rows(small(**PERIODIC).fit(*DATA)) == rows(alone)


@pytest.mark.slow
def test_workers_of_other_kinds_find_what_one_process_finds(alone):
    pytest.importorskip("distributed")
    assert run_together(FIT_ELSEWHERE, json.dumps(PERIODIC)) == [[rows(alone)] * 2]


@posix
def test_ctrl_c_leaves_a_fitted_model_and_no_worker():
    with running(FIT_UNTIL_INTERRUPTED) as process:
        while (line := process.stdout.readline()) != "waits\n":
            assert line, process.communicate()
        os.killpg(process.pid, signal.SIGINT)
        out, err = process.communicate(timeout=PATIENCE)
        assert left_of_group(process) == []
    # Python ends with this signal if it has raised KeyboardInterrupt to the end
    assert process.returncode == -signal.SIGINT, err
    assert err.endswith("KeyboardInterrupt\n"), err
    expected = {"rows": [], "reason": "interrupted", "finite": True}
    assert json.loads(out.splitlines()[-1]) == expected


def test_a_search_with_workers_can_be_stopped(alone):  # and the next test has workers again
    model = small(n_jobs=2, criterion=elsewhere(), **PERIODIC)
    model.set_callbacks(At(lambda: True, ended=2)).fit(*DATA)  # warnings are errors
    assert model.stop_reason_ == "callback"
    assert rows(model) == rows(alone)[:2]


@pytest.mark.slow  # the next test has such a failure without a process
def test_a_kernel_that_kills_its_worker_is_a_row_of_the_history_and_the_search_goes_on(tmp_path):
    class Deadly(Laplace):
        def __call__(self, fit):
            if str(fit.expression) == "LIN[0]":
                os._exit(1)
            return super().__call__(fit)

    model = small(criterion=Deadly(), n_jobs=2, n_iter=1, memory=tmp_path).fit(*DATA)
    history = model.search_history_
    failed = history["kernel"] == "LIN[0]"
    assert history["score"][failed] == -np.inf
    assert history["status"][failed][0].startswith("the worker failed: TerminatedWorkerError")
    assert np.all(history["status"][~failed] == "ok")
    assert (~failed).sum() == n_kept(tmp_path)
    assert model.stop_reason_ == "n_iter"


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_an_error_that_is_no_failure_of_a_kernel_is_raised(n_jobs):
    class Unlucky(Evaluator):
        def run(self, job, **options):
            if str(job.expression) == "LIN[0]":
                raise RuntimeError("no such\nluck")
            return super().run(job, **options)

    evaluator = Unlucky(TrainingData(*DATA), priors=PRESETS["default"], seed=0)
    kernels = [Estimate(parse_expression(text)) for text in ("SE[0]", "LIN[0]", "NOISE")]
    with joblib.parallel_config(backend="threading", n_jobs=n_jobs):
        evaluations = evaluate_in_parallel(evaluator, kernels)
        with pytest.raises(RuntimeError, match="no such\nluck"):
            list(evaluations)


# Memory.


@pytest.mark.parametrize("form", [str, joblib.Memory])
def test_a_longer_search_evaluates_only_what_is_new_and_finds_the_same(
    tmp_path, evaluated, undisturbed, capfd, form
):
    memory = form(tmp_path / "new" / "kept")
    known = kernels(counted(n_iter=1, memory=memory).fit(*DATA))
    assert evaluated == known
    longer = counted(memory=memory).fit(*DATA)
    assert evaluated == kernels(undisturbed)
    assert rows(longer) == rows(undisturbed)
    again = counted(memory=memory).fit(*DATA)
    assert evaluated == kernels(undisturbed)
    # seconds of the fits too, which are those of the evaluations that are kept
    assert rows(again, without=TIMES[1:]) == rows(longer, without=TIMES[1:])
    assert again.predict(X).tolist() == undisturbed.predict(X).tolist()
    assert capfd.readouterr() == ("", "")


def test_settings_that_a_score_does_not_depend_on_share_what_is_kept(tmp_path, evaluated):
    settings = {"strategy": SOT(population_size=20, initial_design="paper")}
    history = counted(memory=tmp_path).fit(*DATA).search_history_
    evaluated.clear()
    other = counted(memory=tmp_path, n_iter=0, **settings).fit(*DATA)
    alone = (history["phase"] == "initial") & (history["n_leaves"] == 1)
    known = set(history["kernel"][alone])  # the others had warm starts
    assert not known & set(evaluated)
    assert known & set(other.search_history_["kernel"])
    # what had other warm starts is not shared; a log prior that is exchanged costs a rounding
    scores, expected = other.search_history_["score"], counted(n_iter=0, **settings).fit(*DATA)
    np.testing.assert_allclose(scores, expected.search_history_["score"], rtol=1e-13)


class Moody(OrnsteinUhlenbeck):
    """A kernel that can be computed only at times."""

    _fails = True

    def value(self, params, pairs):
        if self._fails:
            raise MemoryError("9 GiB")
        return super().value(params, pairs)


def test_a_kernel_that_could_not_be_fitted_is_tried_again(tmp_path, evaluated):
    kernel = Moody()
    settings = {"base_kernels": ["SE", kernel], "max_leaves": 1, "n_iter": 0, "memory": tmp_path}
    with pytest.warns(UserWarning, match="custom part OU failed: MemoryError: 9 GiB"):
        counted(**settings).fit(*DATA)
    assert evaluated == ["SE[0]", "NOISE"]
    kernel._fails = False
    model = counted(**settings).fit(*DATA)
    assert evaluated == ["SE[0]", "NOISE", "OU[0]"]
    assert set(model.search_history_["status"]) == {"ok"}


class Foreign:
    """What another program may have left."""

    def __reduce__(self):
        return int, ("no number",)


CORRUPT = {
    "empty": lambda whole: b"",
    "cut": lambda whole: whole[:-1],
    "zeros": lambda whole: bytes(len(whole)),
    "text": lambda whole: b"this is no pickle\n",
    "something else": lambda whole: pickle.dumps({"score": 1.0}),
    "a kernel": lambda whole: pickle.dumps(parse_expression("SE[0]")),
    "a class that has gone": lambda _: pickle.dumps(np.zeros(1)).replace(b"ndarray", b"ndwhile"),
    "a pickle that raises": lambda whole: pickle.dumps(Foreign()),
    "compressed": lambda whole: b"\x1f\x8b" + whole,
}


def test_what_cannot_be_read_is_evaluated_and_kept_again_without_a_word(tmp_path, evaluated, capfd):
    settings = {"n_iter": 9, "strategy": "random", "memory": tmp_path}
    first = counted(**settings).fit(*DATA)
    files = kept(tmp_path)
    assert len(files) == len(evaluated) >= len(CORRUPT)
    for file, corrupt in zip(files, CORRUPT.values(), strict=False):
        whole = file.read_bytes()
        file.write_bytes(corrupt(whole))
        assert file.read_bytes() != whole
    for n_evaluated in (len(CORRUPT), 0):
        evaluated.clear()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("default")
            again = counted(**settings).fit(*DATA)
        assert len(evaluated) == n_evaluated
        assert rows(again) == rows(first)
        assert [str(warning.message) for warning in caught] == []
        assert capfd.readouterr() == ("", "")


@posix
def test_processes_at_once_may_share_a_folder_and_one_of_them_may_be_killed(tmp_path, evaluated):
    undisturbed = counted(n_iter=4).fit(*DATA)
    known, n_ended = kernels(undisturbed), 3
    evaluated.clear()
    with running(FIT_LONG, tmp_path) as process:
        while "best kernel so far" not in process.stdout.readline():
            assert process.poll() is None
        lines = [process.stdout.readline() for _ in range(1 + n_ended)][1:]
        assert all(" s " in line for line in lines)
        model = counted(n_iter=0, memory=tmp_path).fit(*DATA)  # at the same time
        process.send_signal(signal.SIGKILL)
        assert process.wait(timeout=PATIENCE) == -signal.SIGKILL
    assert rows(model) == rows(undisturbed)[: len(rows(model))]
    again = counted(n_iter=4, memory=tmp_path).fit(*DATA)
    assert rows(again) == rows(undisturbed)
    # no evaluation that had ended is repeated
    assert set(evaluated) <= set(known[n_ended:])
    assert len(set(evaluated)) == len(evaluated)
