"""Small fits, here and in processes of their own, and what two of them must have in common."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np
from sklearn.gaussian_process import GaussianProcessRegressor

import autokernel
from autokernel import AutoKernelGPRegressor, parse_expression
from autokernel.evidence import Evaluation, Laplace
from autokernel.export import from_dict, to_dict
from autokernel.model.errors import WILD
from autokernel.search import STRATEGIES

TIMES = ("fit_seconds", "proposal_seconds", "elapsed")
EVALUATED: list[str] = []  # canonical texts, see count_evaluations
PATIENCE = 150.0  # seconds: a process that has not ended by then is taken for one that hangs


def evaluation_of(expression, theta, *, score=0.0, status="ok", seconds=0.0):
    """A fit that nobody has made, of a kernel at some log parameters, with a Hessian of one."""
    return Evaluation(
        expression=expression,
        theta=theta,
        log_prior=0.0,
        log_posterior=score,
        log_evidence=score,
        score=score,
        hessian=np.eye(len(theta)),
        n_evaluations=1,
        seconds=seconds,
        status=status,
    )


def wave(n_samples=20, *, n_features=1, seed=0):
    """A smooth function of the first column with a little noise."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(n_samples, n_features))
    return X, np.sin(6 * X[:, 0]) + 0.1 * rng.normal(size=n_samples)


SEARCHES = {name: one for name, one in STRATEGIES.items() if not one.is_of_series}


# without what takes time and is not asked about
PLAIN = {"outliers": None, "noise": "constant", "column_scales": None, "target_scale": None}
PLAIN |= {"random_state": 0}


def small(**parameters):
    """An estimator that is done in a second."""
    settings = {"base_kernels": ["SE", "LIN"], "max_leaves": 3, "n_iter": 4, **PLAIN}
    return AutoKernelGPRegressor(**{**settings, **parameters})


def counted(**parameters):
    """The same, of which :func:`count_evaluations` knows the kernels."""
    return small(**{"criterion": Recording(), **parameters})


def tiny(**parameters):
    """An estimator that looks at two base kernels on each column, and at nothing else."""
    fixed = {"n_iter": 0, "base_kernels": ["SE", "LIN"], "max_leaves": 1, **PLAIN}
    return AutoKernelGPRegressor(**{**fixed, **parameters})


def normals_of(model, std, *, width):
    """The normal distributions of an error: shares, and deviations for predicted ones of ``std``.

    The ``width`` is that of the standardised target, in its unit.
    """
    law = model._fitted.mixture.law
    shares, factors = zip(*law.normals, strict=True)
    rare = np.full_like(np.asarray(std, dtype=float), WILD * width)
    plain = np.multiply.outer(factors, np.asarray(std) / law.deviation)
    return np.array([*shares, law.wild]), np.concatenate([plain, rare[None]])


def through_json(model):
    """Write an estimator as JSON without what only Python reads, and read it."""
    return from_dict(json.loads(json.dumps(to_dict(model), allow_nan=False)))


def rows(model, *, without=TIMES):
    """The history of a search, a text for each kernel with all bits of all numbers."""
    columns = {name: c for name, c in model.search_history_.items() if name not in without}
    return [
        " | ".join(v.hex() if isinstance(v, float) else str(v) for v in row)
        for row in zip(*(column.tolist() for column in columns.values()), strict=True)
    ]


def assert_predicts_as_its_kernel(model, X, y, X_new):
    """Check design 2.4 for a model that was last fitted to these data; return the regressor."""
    gpr = GaussianProcessRegressor(
        kernel=model.best_kernel_, optimizer=None, normalize_y=True, alpha=0
    ).fit(X, y)
    mean, std = gpr.predict(X_new, return_std=True)
    _, covariance = gpr.predict(X_new, return_cov=True)
    found_mean, found_std = model.predict(X_new, return_std=True)
    _, found_covariance = model.predict(X_new, return_cov=True)
    # the contract of design 2.4; covariances, which may be zero, as correlations
    np.testing.assert_allclose(model.predict(X_new), mean, rtol=1e-6)
    np.testing.assert_allclose(found_mean, mean, rtol=1e-6)
    np.testing.assert_allclose(found_std, std, rtol=1e-6)
    assert np.all(np.abs(found_covariance - covariance) <= 1e-6 * np.outer(std, std))
    return gpr


def kernels(model):
    """The kernels of a search in order, as ``count_evaluations`` notes them."""
    return [parse_expression(text).canonical for text in model.search_history_["kernel"]]


class Recording(Laplace):
    """Laplace's method, which notes the kernels that are evaluated in this process."""

    def __call__(self, fit):
        EVALUATED.append(fit.expression.canonical)
        return super().__call__(fit)


def count_evaluations():
    """Return a list that gets every kernel that fits of ``counted`` evaluate in this process."""
    EVALUATED.clear()
    return EVALUATED


class At:
    """A callback that does something when a kernel begins, or when one ends, and may stop then."""

    def __init__(self, act, *, begun=None, ended=None):
        self.act, self.begun, self.ended = act, begun, ended
        self.n_begun = self.n_ended = 0

    def setup(self, estimator, context):
        pass

    def teardown(self, estimator, context):
        pass

    def on_fit_task_begin(self, estimator, context, **given):
        if context.task_name == "kernel":
            self.n_begun += 1
            if self.n_begun == self.begun:
                self.act()

    def on_fit_task_end(self, estimator, context, **given):
        if context.task_name == "kernel":
            self.n_ended += 1
            return self.n_ended == self.ended and bool(self.act())
        return False


def interrupt():
    """Do as Ctrl-C does."""
    raise KeyboardInterrupt


def run_together(script, *arguments, n_processes=1):
    """Run a script in several processes at once; return what each prints, read as JSON."""
    processes = [_start(script, arguments) for _ in range(n_processes)]
    try:
        ends = [process.communicate(timeout=PATIENCE) for process in processes]
    finally:
        for process in processes:
            _kill_group(process)
    assert [process.returncode for process in processes] == [0] * n_processes, ends
    return [json.loads(out) for out, _ in ends]


@contextmanager
def running(script, *arguments) -> Iterator[subprocess.Popen]:
    """Run a script in a process, with a group of its own, that cannot outlive the test."""
    process = _start(script, arguments)
    guard = threading.Timer(PATIENCE, _kill_group, [process])
    guard.start()
    try:
        yield process
    finally:
        guard.cancel()
        _kill_group(process)
        process.communicate()


def left_of_group(process):
    """What still runs of the group of a process that has ended, once helpers had time to end."""
    give_up = time.monotonic() + PATIENCE
    while (left := _members(process.pid)) and time.monotonic() < give_up:
        time.sleep(0.05)
    return left


def _members(group):
    """Numbers and names of the processes of a group, those apart that only wait to be buried."""
    listing = subprocess.run(
        ["ps", "-A", "-o", "pgid=,stat=,pid=,command="],
        capture_output=True,
        text=True,
        check=True,
        timeout=PATIENCE,
    ).stdout
    lines = [line.split(maxsplit=2) for line in listing.splitlines()]
    return [rest for pgid, state, rest in lines if int(pgid) == group and "Z" not in state]


def _start(script, arguments):
    # where it finds the package under test, and these helpers
    paths = [Path(autokernel.__file__).parent.parent, Path(__file__).parent.parent]
    return subprocess.Popen(
        [sys.executable, "-c", script, *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, paths))},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def _kill_group(process):
    if sys.platform == "win32":  # has no groups; workers end with the pipe of their parent
        process.kill()
        return
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
