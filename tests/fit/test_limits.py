"""Fits that time, Ctrl-C or a callback ends: what they leave, and what they do not claim."""

import os
import sys
import time
from functools import cache
from typing import ClassVar

import numpy as np
import pytest

from autokernel import BaseKernel, parse_expression
from autokernel.deadline import Deadline
from autokernel.evidence import Estimate, Evaluator, Laplace
from autokernel.exceptions import OutOfTimeError
from autokernel.inference import TrainingData
from autokernel.kernels import PRESETS, VARIANCE
from autokernel.search import CUT, evaluate_in_parallel
from tests.fits import At, interrupt, rows, small, tiny, wave

TABLES = {  # of few rows and many columns, with gaps, categories, a constant
    "many columns": wave(30, n_features=40),
    "gaps": (np.where(np.eye(40, 6) > 0, np.nan, wave(40, n_features=6)[0]), wave(40)[1]),
    "many rows": wave(1100, n_features=3),
    "a constant column": (np.column_stack([wave(30)[0], np.ones(30)]), wave(30)[1]),
}


@pytest.mark.filterwarnings("ignore:max_time ended the search before any kernel")
@pytest.mark.parametrize(
    ("table", "options"),
    [
        ("many columns", {}),
        ("gaps", {"strategy": "greedy"}),
        ("many rows", {}),
        ("many rows", {"approximation": "exact"}),
        ("a constant column", {"strategy": "greedy"}),
    ],
)
def test_without_time_the_model_is_rough_and_nothing_is_known_of_columns(table, options):
    X, y = TABLES[table]
    model = small(max_time=1e-6, max_leaves=60, outliers="auto", **options).fit(X, y)
    assert (model.stop_reason_, model.best_score_) == ("max_time", -np.inf)
    assert len(model.outliers_) == 0
    assert np.isfinite(model.predict(X)).all()
    varies = np.nanmax(X, axis=0) > np.nanmin(X, axis=0)
    for name in ("depends", "repeats", "linear"):
        assert np.isnan(model.inclusion_probabilities_[name][varies]).all()
    text = model.describe()
    assert "the model is a rough fit of one kernel to some rows" in text
    assert "nan" not in text
    assert "explains" not in text + model.describe(short=True)
    assert not any("matter" in one for one in model.claims_["predicate"])


def test_columns_that_a_search_has_not_left_out_before_its_end_have_no_probability():
    n_features = 3
    X, y = wave(40, n_features=n_features)
    model = small(max_leaves=30).set_callbacks(At(interrupt, ended=1))
    with (
        pytest.raises(KeyboardInterrupt),
        pytest.warns(UserWarning, match="interrupted: the model"),
    ):
        model.fit(X, y)
    assert model.best_expression_ == " * ".join(f"SE[{column}]" for column in range(n_features))
    assert np.isnan(model.inclusion_probabilities_["depends"]).all()
    assert "is not known, as the search was cut." in model.describe()
    assert "with a probability" not in model.describe()
    whole = small(max_leaves=30, n_iter=0).fit(X, y)
    assert (whole.inclusion_probabilities_["depends"] > 0.9).tolist() == [True] + [False] * (
        n_features - 1
    )


def test_what_a_search_has_estimated_before_its_end_is_known_of_columns():
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(60, 4))
    y = np.sin(6 * X[:, 0]) * X[:, 1] + 0.1 * rng.normal(size=60)
    model = small(max_leaves=6, n_iter=20, tol=0.0).set_callbacks(At(interrupt, ended=7))
    with pytest.raises(KeyboardInterrupt), pytest.warns(UserWarning, match="interrupted: "):
        model.fit(X, y)
    assert model.best_expression_ == "LIN[1] * SE[0]"
    assert list(model.search_history_["phase"][-2:]) == ["search", "search"]
    assert (model.inclusion_probabilities_["depends"] > 0.9).tolist() == [True, True, False, False]


@pytest.mark.filterwarnings("ignore:max_time ended the search before any kernel")
def test_columns_that_are_not_reached_in_time_are_no_time():
    X = np.column_stack([np.arange(40.0), wave(40)[0]])
    model = small(max_time=1e-6).fit(X, X[:, 0])
    with pytest.raises(ValueError, match="forecast needs a column of dates, or of numbers at"):
        model.forecast(1)
    assert model.refit(X, X[:, 0], "LIN[0]").forecast(1)["x0"] == [40]


class Interrupting:
    """Raises a KeyboardInterrupt at one of the lines of the estimator that are run."""

    def __init__(self, number):
        self.left, self.has_raised = number, False

    def __call__(self, frame, event, _):
        if not frame.f_code.co_filename.endswith("autokernel/estimator.py"):
            return None
        if event == "line" and not self.has_raised:
            self.left -= 1
            if self.left < 0:
                self.has_raised = True
                raise KeyboardInterrupt
        return self


@pytest.mark.parametrize("step", [37, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("call", ["fit", "refit"])
def test_an_interrupt_at_any_line_leaves_the_old_fit_or_a_new_one(call, step):
    old, new = wave(12), wave(14, n_features=2)
    names = ["X_train_", "posterior_", "best_kernel_", "outliers_", "scales_"]
    names += ["search_history_"] if call == "fit" else []
    settings = {"n_iter": 0, "averaging": None, "base_kernels": ["LIN"], "max_leaves": 1}
    data = new if call == "fit" else (*old, "LIN[0]")
    number, has_ended, found = 0, False, set()
    model = small(**settings).fit(*old)
    while not has_ended:
        before = vars(model).copy()
        sys.settrace(interrupting := Interrupting(number))
        try:
            getattr(model, call)(*data)
            has_ended = not interrupting.has_raised
        except KeyboardInterrupt:  # no warning instead of it, which is an error here
            pass
        finally:
            sys.settrace(None)
        (is_new,) = {getattr(model, name) is not before[name] for name in names}
        found.add(is_new)
        assert model.predict(model.X_train_).shape == model.y_train_.shape
        number += step
    assert found == {False, True}


class Slow(BaseKernel):
    """A constant of whose value each call takes a while."""

    name, parameters = "SLOW", (VARIANCE,)
    seconds = 0.05
    processes: ClassVar[list[int]] = []

    def value(self, params, pairs):
        self.processes.append(os.getpid())
        time.sleep(self.seconds)
        return params[0] * np.ones(pairs.shape)

    def gradient(self, params, pairs, adjoint):
        return np.array([adjoint.sum()])


@pytest.fixture
def slow():
    Slow.processes.clear()
    return parse_expression("SLOW[0]", base_kernels=[Slow()])


def evaluator(n_samples=20):
    X, y = wave(n_samples)
    return Evaluator(TrainingData(X, y / y.std()), priors=PRESETS["default"], seed=0)


def test_a_call_that_would_end_after_the_deadline_is_not_begun(slow):
    subject = evaluator()
    with pytest.raises(OutOfTimeError):
        subject.run(subject.prepare(slow), deadline=Deadline(1.5 * Slow.seconds))
    assert len(Slow.processes) == 1


def test_without_the_time_to_start_workers_this_process_evaluates(slow):
    until = Deadline(8 * Slow.seconds)
    found = list(evaluate_in_parallel(evaluator(), [Estimate(slow)], deadline=until, n_jobs=2))
    assert found == [None]
    assert set(Slow.processes) == {os.getpid()}


class Late(Laplace):
    """Laplace's criterion, for one kernel of which there is no time."""

    def __init__(self, *, number=0):
        self.number, self.n_calls = number, 0

    def __call__(self, fit):
        self.n_calls += 1
        if self.n_calls == self.number:
            raise OutOfTimeError("the time is over")
        return super().__call__(fit)


@cache
def whole_search(strategy, n_iter):
    """A fit to which the time of no kernel is cut, which no test may change."""
    return searching(strategy, n_iter).fit(*POSITIVE)


def searching(strategy, n_iter, **settings):
    kernels = "auto" if strategy == "series" else ["SE", "LIN"]
    given = {"max_leaves": 4, "base_kernels": kernels, "averaging": None}
    return small(strategy=strategy, n_iter=n_iter, **given, **settings)


POSITIVE = wave(20)[0], np.exp(wave(20)[1])


@pytest.mark.parametrize(
    ("strategy", "n_iter", "number"), [("series", 2, 2), ("sot", 0, 2), ("sot", 2, 5)]
)
def test_a_search_without_time_for_a_kernel_says_that_it_was_cut(strategy, n_iter, number):
    whole = whole_search(strategy, n_iter).search_history_
    model = searching(strategy, n_iter, criterion=Late(number=number), max_time=1e4)
    model.set_callbacks(At(list)).fit(*POSITIVE)  # which counts the tasks of the fit
    tried = set(model.search_history_["kernel"])
    left = set(whole["kernel"][whole["phase"] == "initial"]) - tried
    assert (not left) or model.stop_reason_ == "max_time"
    assert ("The search was cut" in model.describe()) == (model.stop_reason_ in CUT)


def with_levels(n):
    X, y = wave(n)
    return np.column_stack([X, np.arange(n) % 3]), y + np.arange(n) % 3


def with_gaps(table):
    X, y = table
    return np.where(np.eye(*X.shape) > 0, np.nan, X), y


def growing_noise(n):
    X, y = wave(n)
    return X, y + 2 * X[:, 0] ** 2 * np.random.default_rng(1).normal(size=n)


def with_outliers(n):
    X, y = wave(n, n_features=2)
    y[[3, 9]] += 8.0
    return X, y


SERIES = np.arange(24.0)[:, None], np.cumsum(np.random.default_rng(0).normal(size=24))

UNUSED = {  # a table, and what is not as in a tiny fit
    "many columns": (wave(20, n_features=26), {"base_kernels": ["LIN"]}),
    "categories": (with_levels(18), {"categorical_features": [1]}),
    "gaps and outliers": (with_gaps(with_outliers(16)), {"outliers": "auto"}),
    "scales": (POSITIVE, {"target_scale": "auto", "base_kernels": ["LIN"]}),
    "a noise that varies": (growing_noise(40), {"noise": "auto"}),
    "a series": (SERIES, {"strategy": "series", "base_kernels": "auto", "max_leaves": 6}),
    "bounds": (wave(20), {"strategy": "skc"}),
    "many rows": (wave(601), {"approximation": "inducing", "n_inducing": 8}),
}
"""Kinds of fits, each of which treats a limit differently; benchmarks/promises.py has thirty."""


@pytest.mark.parametrize("kind", UNUSED)
def test_a_limit_that_is_not_reached_changes_nothing(kind):
    """Fits in one process are equal to the last bit."""
    (X, y), options = UNUSED[kind]
    models = [tiny(max_time=limit, **options).fit(X, y) for limit in (None, 1e4)]
    known, found = ((rows(one), one.stop_reason_, one.best_score_) for one in models)
    assert found == known
    np.testing.assert_array_equal(models[1].predict(X), models[0].predict(X))
    assert models[1].outliers_.tolist() == models[0].outliers_.tolist()
