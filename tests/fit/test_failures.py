"""A kernel that cannot be evaluated is a row with its reason; all others are as without it."""

import re
import warnings
from contextlib import contextmanager, nullcontext

import numpy as np
import pytest
from scipy.linalg import LinAlgError
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from autokernel import EvaluationError, Laplace
from autokernel.evidence import Score
from autokernel.kernels import CallableKernel
from autokernel.kernels.parameters import LENGTHSCALE, VARIANCE
from tests.fits import At, tiny

pytestmark = pytest.mark.filterwarnings("error")

X = np.random.default_rng(0).uniform(size=(15, 1))
Y = np.sin(6 * X[:, 0]) + 0.1 * np.random.default_rng(1).normal(size=15)
X_NEW = np.linspace(-0.5, 1.5, 7)[:, None]
OF_OWN = "custom part OWN failed: "
NO_FACTOR = "the covariance matrix has no Cholesky factor"


def smooth(X, Y, lengthscale, variance):
    """Compute a smooth function of two columns."""
    return variance * np.exp(-0.5 * ((X - Y.T) / lengthscale) ** 2 - np.abs(X - Y.T))


class Function:
    """The smooth function, which fails after some calls."""

    def __init__(self, fail=None, *, after=0):
        self.fail, self.after, self.n_calls = fail, after, 0

    def __call__(self, X, Y, lengthscale, variance):
        self.n_calls += 1
        values = smooth(X, Y, lengthscale, variance)
        if self.fail is None or self.n_calls <= self.after:
            return values
        return self.fail(values)


def raising(error):
    def fail(_):
        raise error

    return fail


def warning(values):
    warnings.warn("overflow in exp", RuntimeWarning, stacklevel=2)
    return values


def estimator(function=None, **parameters):
    """SE fits best, and the user-defined kernel less well."""
    own = CallableKernel("OWN", function or Function(), (LENGTHSCALE, VARIANCE))
    defaults = {"base_kernels": ["SE", own], "max_leaves": 2, "averaging": None}
    return tiny(**{**defaults, **parameters})


@pytest.fixture(scope="module")
def sound():
    """What the estimator finds if nothing fails, and what the best kernel predicts."""
    return estimator().fit(X, Y)


@contextmanager
def one_warning(part="OWN"):
    """One warning that names a custom part, however often it fails."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warnings.simplefilter("error", RuntimeWarning)  # as without this context
        yield
    [found] = [one for one in caught if str(one.message).startswith("custom part")]
    assert str(found.message).startswith(f"custom part {part} failed: ")
    assert found.filename == __file__  # the line that has called fit


def rows_with(model, name):
    """Which rows of the history are of kernels with this base kernel."""
    return np.array([f"{name}[" in kernel for kernel in model.search_history_["kernel"]])


def assert_only_these_failed(model, failed, sound, *, reason):
    """Rows that failed say why, the others are equal to those of a sound fit."""
    history, expected = model.search_history_, sound.search_history_
    assert 0 < failed.sum() < len(failed)
    np.testing.assert_array_equal(history["kernel"], expected["kernel"])
    assert np.all(history["score"][failed] == -np.inf)
    for status in history["status"][failed]:
        assert re.search(reason, status)
    # the kernels of a design inherit nothing from those that failed
    for column in ("score", "status", "n_params", "n_leaves", "phase"):
        np.testing.assert_array_equal(history[column][~failed], expected[column][~failed])


FAILURES = {
    "no memory": (raising(MemoryError("9 GiB")), f"^{OF_OWN}MemoryError: 9 GiB$"),
    "a bug": (raising(ZeroDivisionError("by 0")), f"^{OF_OWN}ZeroDivisionError: by 0$"),
    "a value refused": (raising(ValueError("odd")), f"^{OF_OWN}ValueError: odd$"),
    "a warning": (warning, f"^{OF_OWN}RuntimeWarning: overflow in exp$"),
    "no numbers": (lambda values: np.full_like(values, np.nan), f"^{NO_FACTOR}"),
    "too few values": (lambda _: np.zeros(3), f"^{OF_OWN}\\w*[eE]rror: .+"),
}


@pytest.mark.parametrize("name", FAILURES)
def test_a_failure_is_a_row_with_its_reason_and_leaves_the_others_alone(name, sound):
    assert set(sound.search_history_["status"]) == {"ok"}
    fail, reason = FAILURES[name]
    with one_warning() if OF_OWN in reason else nullcontext():
        model = estimator(Function(fail)).fit(X, Y)
    assert_only_these_failed(model, rows_with(model, "OWN"), sound, reason=reason)
    assert model.best_expression_ == sound.best_expression_ == "SE[0]"
    np.testing.assert_array_equal(model.predict(X_NEW), sound.predict(X_NEW))
    board = model.leaderboard(1000)  # those that failed are last
    failed = np.array(["OWN[" in kernel for kernel in board["kernel"]])
    assert list(failed) == sorted(failed)
    status = board["status"][failed][0]
    assert sum(status in line for line in str(board).splitlines()) == failed.sum()


def test_a_failure_in_the_midst_of_an_evaluation_is_a_failure_of_that_kernel(sound):
    with one_warning():
        model = estimator(Function(raising(MemoryError("late")), after=100)).fit(X, Y)
    failed = model.search_history_["status"] != "ok"
    assert np.all(rows_with(model, "OWN")[failed])
    assert_only_these_failed(model, failed, sound, reason=f"^{OF_OWN}MemoryError: late$")


def test_a_kernel_that_cannot_be_conditioned_leaves_its_place_to_the_next_best():
    function = Function()
    own = CallableKernel("OWN", function, (LENGTHSCALE, VARIANCE))

    def break_it():
        function.fail = raising(LinAlgError("K is not positive definite"))

    model = estimator(base_kernels=[own, "LIN"], max_leaves=1)
    model.set_callbacks(At(break_it, ended=3))
    few = pytest.warns(ConvergenceWarning, match=r"OWN\[0\] has only its best parameters in the")
    with (
        few,
        pytest.warns(ConvergenceWarning, match=r"left out, as OWN\[0\] cannot be conditioned"),
    ):
        model.fit(X, Y)
    history = model.search_history_
    kept = ~rows_with(model, "OWN")
    assert list(history["status"]) == ["ok"] * 3
    assert model.best_score_ == history["score"][kept].max() < history["score"].max()
    assert np.isfinite(model.predict(X_NEW)).all()


class Broken(Laplace):
    """A criterion that has no number for some kernels."""

    def __init__(self, value=np.nan, name="OWN["):
        self.value, self.name = value, name

    def __call__(self, fit):
        if self.name in str(fit.expression):
            return Score(self.value)
        return super().__call__(fit)


@pytest.mark.parametrize(("value", "name"), [(np.nan, "SE"), (np.inf, "OWN")])
def test_a_criterion_that_returns_no_finite_number_has_failed(value, name, sound):
    model = estimator(criterion=Broken(value, f"{name}[")).fit(X, Y)
    assert_only_these_failed(model, rows_with(model, name), sound, reason=".")
    assert f"{name}[" not in model.best_expression_


@pytest.mark.parametrize(("n_iter", "max_leaves", "n_kernels"), [(0, 1, 2), (1, 2, 3)])
def test_an_error_says_why_and_how_many_if_every_kernel_fails(n_iter, max_leaves, n_kernels):
    settings = {"base_kernels": ["SE"], "n_iter": n_iter, "max_leaves": max_leaves}
    model = estimator(criterion=Broken(name=""), **settings)
    expected = f"^none of the {n_kernels} kernels could be fitted; .*SE\\[0\\].*nan"
    with pytest.raises(EvaluationError, match=expected):
        model.fit(X, Y)
    with pytest.raises(NotFittedError):
        model.predict(X)


def test_a_refit_that_fails_says_why_and_leaves_the_model_as_it_was():
    function = Function()
    model = estimator(function).fit(X, Y)
    before = dict(vars(model)), model.predict(X_NEW)
    function.fail = raising(MemoryError("9 GiB"))
    with pytest.raises(
        EvaluationError, match=r"^OWN\[0\] could not be fitted .*MemoryError: 9 GiB"
    ):
        model.refit(X, 2 * Y, "OWN[0]")
    assert vars(model) == before[0]
    function.fail = None
    np.testing.assert_array_equal(model.predict(X_NEW), before[1])


def test_ctrl_c_while_the_best_kernel_is_conditioned_loses_nothing():
    function = Function()
    own = CallableKernel("OWN", function, (LENGTHSCALE, VARIANCE))

    def interrupt_once(values):
        function.fail = None
        raise KeyboardInterrupt

    def interrupt_next_call():
        function.fail = interrupt_once

    model = estimator(base_kernels=[own], max_leaves=1)
    whole = model.fit(X, Y)  # after Ctrl-C there is no average
    scores, expected = whole.search_history_["score"], whole.predict(X)
    model.set_params(averaging="posterior").set_callbacks(At(interrupt_next_call, ended=2))
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, Y)
    assert model.stop_reason_ == "interrupted"
    np.testing.assert_array_equal(model.search_history_["score"], scores)
    np.testing.assert_array_equal(model.predict(X), expected)


@pytest.mark.parametrize("place", ["file", "file/far/below"])
def test_a_memory_folder_that_cannot_be_made_is_not_used(tmp_path, place):
    (tmp_path / "file").write_text("in the way")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = tiny(memory=tmp_path / place).fit(X, Y)
    ours = [one for one in caught if str(one.message).startswith("memory must be a folder")]
    assert len(ours) == 1
    assert model.best_expression_ == tiny().fit(X, Y).best_expression_
    assert (tmp_path / "file").read_text() == "in the way"


def test_a_memory_folder_that_cannot_be_written_to_is_read(tmp_path):
    resource = pytest.importorskip("resource")
    known = tiny(memory=tmp_path, n_iter=0).fit(X, Y)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, limits[1]))  # as if the disk were full
    try:
        again = tiny(memory=tmp_path, n_iter=0).fit(X, Y)  # all of it is there: no warning
        with pytest.warns(
            UserWarning, match="memory must be .* can be written to, .* is read"
        ) as w:
            longer = tiny(memory=tmp_path, n_iter=2, base_kernels=("SE", "RQ")).fit(X, Y)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert len(w) == 1
    assert again.best_expression_ == known.best_expression_
    assert len(longer.search_history_["kernel"]) > 2
