"""A kernel that cannot be evaluated is a row with its reason; all others are as without it."""

import itertools
import re
import warnings

import joblib
import numpy as np
import pytest
from scipy.linalg import LinAlgError
from sklearn.exceptions import NotFittedError

from autokernel import AutoKernelGPRegressor, EvaluationError, Laplace
from autokernel.evidence import Score
from autokernel.evidence.posterior import LogPosterior
from autokernel.inference import ExactLikelihood, ValueAndGradient
from autokernel.inference.exact import ExactPredictor
from autokernel.kernels import BASE_KERNELS

pytestmark = pytest.mark.filterwarnings("error")

X = np.random.default_rng(0).uniform(size=(15, 1))
Y = np.sin(6 * X[:, 0]) + 0.1 * np.random.default_rng(1).normal(size=15)
X_NEW = np.linspace(-0.5, 1.5, 7)[:, None]


def estimator(**parameters):
    """SE fits best, then RQ, the kernel that is to fail in most tests; LIN fits badly."""
    defaults = {"base_kernels": ["SE", "LIN", "RQ"], "max_leaves": 2, "n_iter": 0}
    return AutoKernelGPRegressor(**{**defaults, "random_state": 0, **parameters})


@pytest.fixture(scope="module")
def undisturbed():
    """What the estimator finds if nothing fails, and what the best kernel predicts."""
    return estimator(averaging=None).fit(X, Y)


def raising(error):
    """A method that raises."""

    def method(self, *_args, **_kwargs):
        raise error

    return method


def with_warning(self, *_args, **_kwargs):
    """A method that warns, where warnings are errors."""
    warnings.warn("overflow in exp", RuntimeWarning, stacklevel=2)


def likelihood_nan(self, theta):
    """A likelihood that is no number."""
    return ValueAndGradient(np.nan, np.full(len(theta), np.nan))


def likelihood_inf(self, theta):
    """A likelihood that has overflown."""
    return ValueAndGradient(np.inf, np.zeros(len(theta)))


def gradient_nan(self, theta):
    """A likelihood that is a number while its gradient is none."""
    return ValueAndGradient(-1.0, np.full(len(theta), np.nan))


def hessian_nan(self, theta):
    """A Hessian that has overflown."""
    return np.full((len(theta), len(theta)), np.nan)


HESSIAN = LogPosterior.hessian


def no_factor_nearby(self, theta):
    """A Hessian where no matrix next to the mode has a Cholesky factor."""
    nowhere = ValueAndGradient(-np.inf, np.zeros(len(theta)))
    self.likelihood.value_and_gradient = lambda _: nowhere
    return HESSIAN(self, theta)


def values_nan(self, params, pairs):
    """Kernel values that are no numbers."""
    return np.full_like(pairs.squared_distance, np.nan)


def values_of_another_shape(self, params, pairs):
    """Kernel values for another number of pairs."""
    return np.zeros(3)


NO_FACTOR = "^the covariance( matrix)? has no Cholesky factor"
RQ = type(BASE_KERNELS["RQ"])
FAILURES = {
    "no Cholesky factor": (ExactLikelihood, "factorise", raising(LinAlgError("minor")), NO_FACTOR),
    "nan likelihood": (ExactLikelihood, "value_and_gradient", likelihood_nan, "."),
    "inf likelihood": (ExactLikelihood, "value_and_gradient", likelihood_inf, "."),
    "nan gradient": (ExactLikelihood, "value_and_gradient", gradient_nan, "."),
    "nan Hessian": (LogPosterior, "hessian", hessian_nan, "."),
    "no factor nearby": (LogPosterior, "hessian", no_factor_nearby, NO_FACTOR + " next to"),
    "no memory for the Hessian": (
        LogPosterior,
        "hessian",
        raising(MemoryError("1 GiB")),
        "^MemoryError: 1 GiB$",
    ),
    "nan kernel values": (RQ, "exponent", values_nan, NO_FACTOR),
    "kernel values too few": (RQ, "exponent", values_of_another_shape, "^(Value|Index)Error: .+"),
    "no memory": (RQ, "exponent", raising(MemoryError("9 GiB")), "^MemoryError: 9 GiB$"),
    "a bug": (RQ, "exponent", raising(RuntimeError("bug")), "^RuntimeError: bug$"),
    "a value refused": (RQ, "exponent", raising(ValueError("odd")), "^ValueError: odd$"),
    "a warning": (RQ, "exponent", with_warning, "^RuntimeWarning: overflow in exp$"),
    "a bug in the gradient": (
        RQ,
        "exponent_gradient",
        raising(ZeroDivisionError("by 0")),
        "^ZeroDivisionError: by 0$",
    ),
}


def has_alpha(owner):
    """Whether a likelihood, a posterior or a kernel has to do with RQ."""
    likelihood = getattr(owner, "likelihood", owner)
    return any(parameter.name == "alpha" for parameter in likelihood.parameters)


def inject(monkeypatch, owner, method, failure, *, concerns=has_alpha):
    """Replace a method, for those objects that are to fail."""
    original = getattr(owner, method)

    def replaced(self, *args, **kwargs):
        return (failure if concerns(self) else original)(self, *args, **kwargs)

    monkeypatch.setattr(owner, method, replaced)


def fail_in_kernel(monkeypatch, name, error):
    """Let the code of one base kernel raise."""
    kernel = type(BASE_KERNELS[name])
    monkeypatch.setattr(kernel, "value" if name == "LIN" else "exponent", raising(error))


def rows_with(model, name):
    """Which rows of the history are of kernels with this base kernel."""
    return np.array([f"{name}[" in kernel for kernel in model.search_history_["kernel"]])


def assert_only_these_failed(model, failed, undisturbed, *, reason):
    """Rows that failed say why, the others are equal to the last bit to those of a sound fit."""
    history, sound = model.search_history_, undisturbed.search_history_
    assert 0 < failed.sum() < len(failed)
    np.testing.assert_array_equal(history["kernel"], sound["kernel"])
    assert np.all(history["score"][failed] == -np.inf)
    for status in history["status"][failed]:
        assert status != "ok"
        assert re.search(reason, status)
    # the kernels of a design inherit nothing from those that failed
    for column in ("score", "status", "n_params", "n_leaves", "phase"):
        np.testing.assert_array_equal(history[column][~failed], sound[column][~failed])


def test_nothing_fails_by_itself_and_the_best_kernel_is_not_the_one_that_is_to_fail(undisturbed):
    assert set(undisturbed.search_history_["status"]) == {"ok"}
    assert undisturbed.best_expression_ == "SE[0]"
    assert rows_with(undisturbed, "RQ").sum() == 5


@pytest.mark.parametrize("name", FAILURES)
def test_a_failure_is_a_row_with_its_reason_and_leaves_the_others_alone(
    name, monkeypatch, undisturbed
):
    owner, method, failure, reason = FAILURES[name]
    concerns = has_alpha if owner is not RQ else lambda kernel: True
    inject(monkeypatch, owner, method, failure, concerns=concerns)
    model = estimator(averaging=None).fit(X, Y)
    assert_only_these_failed(model, rows_with(model, "RQ"), undisturbed, reason=reason)
    assert model.best_expression_ == undisturbed.best_expression_
    np.testing.assert_array_equal(model.predict(X_NEW), undisturbed.predict(X_NEW))


@pytest.mark.parametrize(
    ("error", "reason"),
    [(MemoryError("late"), "^MemoryError: late$"), (LinAlgError("late"), NO_FACTOR)],
    ids=["memory", "factor"],
)
@pytest.mark.parametrize("n_calls", [1, 20, 50])
def test_a_failure_in_the_midst_of_an_evaluation_is_a_failure_of_that_kernel(
    n_calls, error, reason, monkeypatch, undisturbed
):
    calls = itertools.count()
    inject(
        monkeypatch,
        ExactLikelihood,
        "factorise",
        raising(error),
        concerns=lambda owner: has_alpha(owner) and next(calls) >= n_calls,
    )
    model = estimator().fit(X, Y)
    assert_only_these_failed(model, rows_with(model, "RQ"), undisturbed, reason=reason)


@pytest.mark.parametrize("name", BASE_KERNELS)
def test_whichever_base_kernel_fails_the_best_of_the_others_is_found(name, monkeypatch):
    every = estimator(base_kernels=list(BASE_KERNELS), max_leaves=1)
    sound = every.fit(X, Y).search_history_
    others = sound["kernel"] != f"{name}[0]"
    fail_in_kernel(monkeypatch, name, RuntimeError("injected"))
    model = every.fit(X, Y)
    np.testing.assert_array_equal(model.search_history_["kernel"], sound["kernel"])
    expected = np.where(others, "ok", "RuntimeError: injected")
    np.testing.assert_array_equal(model.search_history_["status"], expected)
    assert model.best_score_ == sound["score"][others].max()
    assert model.best_expression_ == sound["kernel"][others][sound["score"][others].argmax()]
    assert np.isfinite(model.predict(X_NEW)).all()


def test_the_search_goes_on_after_kernels_that_failed(monkeypatch):
    fail_in_kernel(monkeypatch, "SE", MemoryError("9 GiB"))  # the first of all
    model = estimator(n_iter=4).fit(X, Y)
    history, failed = model.search_history_, rows_with(model, "SE")
    assert model.stop_reason_ == "n_iter"
    assert model.n_iter_ == 4
    assert len(set(history["kernel"])) == len(history["kernel"]) == 14
    np.testing.assert_array_equal(history["score"] == -np.inf, failed)
    np.testing.assert_array_equal(history["status"] != "ok", failed)
    np.testing.assert_array_equal(history["best_score"], np.maximum.accumulate(history["score"]))
    assert model.best_score_ == history["score"].max() > -np.inf
    assert "SE[" not in model.leaderboard(1)["kernel"][0]


def test_failures_in_threads_are_the_rows_that_they_are_in_one(monkeypatch, undisturbed):
    fail_in_kernel(monkeypatch, "RQ", MemoryError("9 GiB"))
    with joblib.parallel_config(backend="threading", n_jobs=2):
        model = estimator().fit(X, Y)
    failed = rows_with(model, "RQ")
    assert_only_these_failed(model, failed, undisturbed, reason="^MemoryError: 9 GiB$")


def test_the_lines_of_a_verbose_fit_tell_why_a_kernel_failed(monkeypatch, capsys):
    fail_in_kernel(monkeypatch, "RQ", MemoryError("9 GiB"))
    model = estimator(verbose=2).fit(X, Y)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(model.search_history_["kernel"])
    told = np.array([line.endswith("(MemoryError: 9 GiB)") for line in lines])
    np.testing.assert_array_equal(told, rows_with(model, "RQ"))


@pytest.mark.parametrize(
    "error", [MemoryError("9 GiB"), LinAlgError("minor")], ids=["memory", "factor"]
)
def test_a_first_kernel_that_fails_does_not_end_a_fit_with_a_limited_time(error, monkeypatch):
    fail_in_kernel(monkeypatch, "SE", error)
    unlimited = estimator().fit(X, Y)
    limited = estimator(max_time=600.0).fit(X, Y)
    for column in ("kernel", "score", "status"):
        np.testing.assert_array_equal(
            limited.search_history_[column], unlimited.search_history_[column]
        )
    assert limited.best_expression_ == unlimited.best_expression_


@pytest.mark.parametrize("n_failing", [1, 3])
def test_a_kernel_that_cannot_be_conditioned_leaves_its_place_to_the_next_best(
    n_failing, monkeypatch, undisturbed
):
    history = undisturbed.search_history_
    best_first = history["kernel"][np.argsort(-history["score"])]
    original = ExactPredictor.__init__

    def condition(self, expression, *args, **kwargs):
        if str(expression) in best_first[:n_failing]:
            raise LinAlgError("K is not positive definite")
        original(self, expression, *args, **kwargs)

    monkeypatch.setattr(ExactPredictor, "__init__", condition)
    model = estimator().fit(X, Y)
    assert model.best_expression_ == best_first[n_failing]
    assert model.best_score_ == np.sort(history["score"])[-1 - n_failing]
    assert np.isfinite(model.predict(X_NEW)).all()


class Broken(Laplace):
    """A criterion that has no number for some kernels."""

    def __init__(self, value=np.nan, name="RQ"):
        self.value, self.name = value, name

    def __call__(self, fit):
        if f"{self.name}[" in str(fit.expression):
            return Score(self.value)
        return super().__call__(fit)


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("name", ["SE", "RQ"])
def test_a_criterion_that_returns_no_finite_number_has_failed(value, name, undisturbed):
    model = estimator(criterion=Broken(value, name)).fit(X, Y)
    assert_only_these_failed(model, rows_with(model, name), undisturbed, reason=".")
    assert f"{name}[" not in model.best_expression_


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (LinAlgError("minor"), "the covariance matrix has no Cholesky factor"),
        (MemoryError("9 GiB"), "MemoryError: 9 GiB"),
        (RuntimeError("bug"), "RuntimeError: bug"),
        (ValueError("odd"), "ValueError: odd"),
    ],
    ids=["factor", "memory", "bug", "value"],
)
@pytest.mark.parametrize("limits", [{}, {"n_iter": 3}, {"max_time": 600.0}], ids=str)
def test_an_error_says_why_and_how_many_if_every_kernel_fails(error, reason, limits, monkeypatch):
    inject(monkeypatch, ExactLikelihood, "factorise", raising(error), concerns=lambda owner: True)
    model = estimator(**limits)
    n_kernels = 10 + model.n_iter  # three base kernels, two from each, and noise alone
    expected = f"^none of the {n_kernels} kernels could be fitted; .*SE\\[0\\].*: {reason}"
    with pytest.raises(EvaluationError, match=expected):
        model.fit(X, Y)
    with pytest.raises(NotFittedError):
        model.predict(X)


@pytest.mark.parametrize("error", [LinAlgError("minor"), MemoryError("9 GiB")])
def test_a_refit_that_fails_says_why_and_leaves_the_model_as_it_was(error, monkeypatch):
    model = estimator(base_kernels=["SE"], max_leaves=1).fit(X, Y)
    before = dict(vars(model)), model.predict(X_NEW)
    fail_in_kernel(monkeypatch, "RQ", error)
    reason = "no Cholesky factor|MemoryError: 9 GiB"
    with pytest.raises(EvaluationError, match=rf"^RQ\[0\] could not be fitted .*({reason})"):
        model.refit(X, 2 * Y, "RQ[0]")
    assert vars(model) == before[0]
    np.testing.assert_array_equal(model.predict(X_NEW), before[1])
