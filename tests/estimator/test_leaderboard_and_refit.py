"""The table of kernels, parameters anew for a known structure, and a limit on the time."""

from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from autokernel import (
    AutoKernelGPRegressor,
    EvaluationError,
    ExpressionSyntaxError,
    NotAMaximumError,
    evaluate_kernel,
    parse_expression,
)
from autokernel.evidence import evaluator as evaluate
from autokernel.explain import Table
from tests.estimator.test_estimator import wave
from tests.fits import assert_predicts_as_its_kernel

X, Y = wave(20, n_features=2)
X_NEW, Y_NEW = wave(15, n_features=2, seed=1)


def tiny(**parameters):
    """An estimator that looks at two base kernels on each column."""
    fixed = {"n_iter": 0, "base_kernels": ["SE", "LIN"], "max_leaves": 1, "random_state": 0}
    return AutoKernelGPRegressor(**{**fixed, **parameters})


@pytest.fixture(scope="module")
def fitted():
    """A model that has seen kernels of two leaves, which no test may change."""
    return tiny(max_leaves=2, n_iter=1).fit(X, Y)


@pytest.fixture
def model():
    """A fitted model of a test's own."""
    return tiny().fit(X, Y)


def scaled(X, y):
    """The units of the search, by the words of the documentation."""
    return (X - X.min(axis=0)) / np.ptp(X, axis=0), (y - y.mean()) / y.std()


@pytest.mark.parametrize("k", [1, 3, 1000])
def test_leaderboard_is_the_best_rows_of_the_history_each_kernel_once(fitted, k):
    history = fitted.search_history_
    n_rows = min(k, len(history["kernel"]))
    assert n_rows == len(history["kernel"]) or k < 1000
    table = fitted.leaderboard(k)
    assert {len(column) for column in table.values()} == {n_rows}
    np.testing.assert_array_equal(table["score"], np.sort(history["score"])[::-1][:n_rows])
    np.testing.assert_array_equal(table["rank"], np.arange(1, n_rows + 1))
    rows = [list(history["kernel"]).index(kernel) for kernel in table["kernel"]]
    for name in ("score", "score_per_sample", "n_leaves", "n_params", "phase", "status"):
        np.testing.assert_array_equal(table[name], history[name][rows])
    canonical = [parse_expression(kernel).canonical for kernel in table["kernel"]]
    assert len(set(canonical)) == n_rows
    assert list(table["chosen"]) == [True] + [False] * (n_rows - 1)
    assert table["kernel"][0] == fitted.best_expression_


def test_leaderboard_shows_ten_kernels_unless_told(fitted):
    assert len(fitted.search_history_["kernel"]) > 10
    assert len(fitted.leaderboard()["kernel"]) == 10
    assert repr(fitted.leaderboard()) == repr(fitted.leaderboard(k=10))


def test_leaderboard_goes_into_a_frame(fitted):
    pandas = pytest.importorskip("pandas")
    table = fitted.leaderboard(4)
    frame = pandas.DataFrame(table)
    assert frame.shape == (4, len(table))
    assert list(frame.columns) == list(table)
    assert list(frame["kernel"]) == list(table["kernel"])
    assert frame["chosen"].dtype == bool


def test_leaderboard_prints_a_line_for_each_kernel_with_a_mark_at_the_chosen(fitted):
    table = fitted.leaderboard(3)
    head, *lines = str(table).splitlines()
    assert head.split()[:4] == ["rank", "score", "leaves", "kernel"]
    assert [line.split()[0] for line in lines] == ["1", "2", "3"]
    assert [line[5] for line in lines] == ["*", " ", " "]
    for line, kernel, score in zip(lines, table["kernel"], table["score"], strict=True):
        assert line.endswith(f"  {kernel}")
        assert f"{score:.2f}" in line


@pytest.mark.parametrize("blank", [" ", "_"])
def test_leaderboard_keeps_to_a_hundred_characters_where_names_are_long(blank):
    pandas = pytest.importorskip("pandas")
    names = [blank.join(["time since the beginning of the measurements in days"] * 3), "wind"]
    frame = pandas.DataFrame(X, columns=[names[0].replace(" ", blank), names[1]])
    table = tiny(max_leaves=2).fit(frame, Y).leaderboard(1000)
    lines = str(table).splitlines()
    assert len(lines) > len(table["kernel"]) + 1  # some are broken
    assert max(map(len, lines)) <= 100
    # nothing is lost where a line is broken
    whole = "".join(str(table).split())
    assert all("".join(kernel.split()) in whole for kernel in table["kernel"])


def test_leaderboard_shows_failed_kernels_last_with_the_reason(monkeypatch):
    real, left = evaluate.find_best_maximum, iter(range(2))

    def fail(*arguments, **keywords):
        if next(left, None) is not None:
            raise NotAMaximumError("the reason")
        return real(*arguments, **keywords)

    monkeypatch.setattr(evaluate, "find_best_maximum", fail)
    table = tiny().fit(X, Y).leaderboard()
    assert list(table["status"]) == ["ok"] * 3 + ["the reason"] * 2  # noise alone among the former
    assert list(table["score"][3:]) == [-np.inf, -np.inf]
    lines = str(table).splitlines()
    assert [line.endswith("  (the reason)") for line in lines] == [False] * 4 + [True] * 2
    assert "-inf" in lines[-1]


def test_leaderboard_marks_the_kernel_of_refit_however_it_is_written(model):
    model.refit(X, Y, "LIN[1]")
    table = model.leaderboard()
    assert list(table["kernel"][table["chosen"]]) == ["LIN[1]"]
    model.refit(X, Y, "LIN[1] + SE[1]")  # not in the history
    assert not model.leaderboard()["chosen"].any()
    model.set_params(max_leaves=2).fit(X, Y)
    sums = [kernel for kernel in model.search_history_["kernel"] if " + " in kernel]
    left, right = next(
        pair for pair in (kernel.split(" + ") for kernel in sums) if len(set(pair)) > 1
    )
    model.refit(X, Y, f"{right} + {left}")
    table = model.leaderboard(1000)
    assert list(table["kernel"][table["chosen"]]) == [f"{left} + {right}"]


@pytest.mark.parametrize(
    ("k", "error", "message"),
    [
        (0, ValueError, "k == 0, must be >= 1"),
        (-1, ValueError, "k == -1, must be >= 1"),
        (2.5, TypeError, "k must be an instance of int, not float"),
        ("all", TypeError, "k must be an instance of int, not str"),
        (None, TypeError, "k must be an instance of int, not NoneType"),
    ],
)
def test_leaderboard_refuses_a_number_of_rows_that_makes_no_sense(fitted, k, error, message):
    with pytest.raises(error, match=message):
        fitted.leaderboard(k)


def test_leaderboard_before_a_search_is_refused():
    with pytest.raises(NotFittedError):
        tiny().leaderboard()
    with pytest.raises(NotFittedError):
        tiny().refit(X, Y, "SE[0]").leaderboard()


def test_leaderboard_outlives_a_fit_that_is_refused():
    pandas = pytest.importorskip("pandas")
    model = tiny().fit(pandas.DataFrame(X, columns=["time", "depth"]), Y)
    before = str(model.leaderboard())
    with pytest.raises(ValueError, match="NaN"):
        model.fit(X, np.full(len(Y), np.nan))
    assert str(model.leaderboard()) == before
    assert "SE[time]" in before


@pytest.mark.parametrize("kernel", ["LIN[0] + SE[1]", parse_expression("LIN[0] + SE[1]")])
@pytest.mark.parametrize("criterion", ["laplace", "importance"])
def test_refit_of_a_kernel_is_evaluate_kernel_on_scaled_data(kernel, criterion):
    model = tiny(criterion=criterion, random_state=3, priors={"lengthscale": (3, 1)})
    model.set_params(structure_prior=None, averaging=None)
    assert model.refit(X, Y, kernel) is model
    expected = evaluate_kernel(
        kernel, *scaled(X, Y), random_state=3, criterion=criterion, priors=model.priors
    )
    assert model.best_score_ == expected.score
    np.testing.assert_array_equal(model._fitted.evaluation.theta, expected.theta)
    assert model.best_expression_ == "LIN[0] + SE[1]"
    assert model.n_features_in_ == 2
    assert_predicts_as_its_kernel(model, X, Y, X_NEW + 0.1)


def test_refit_without_a_kernel_keeps_the_structure_and_takes_the_data():
    model = tiny(averaging=None).fit(X, Y)
    history, reason = model.search_history_, model.stop_reason_
    structure = model.best_expression_
    before = model.predict(X_NEW)
    model.refit(X_NEW, Y_NEW)
    assert model.best_expression_ == structure
    assert model.search_history_ is history
    assert model.stop_reason_ == reason
    assert not np.array_equal(model.predict(X_NEW), before)
    np.testing.assert_array_equal(model.X_train_, X_NEW)
    np.testing.assert_array_equal(model.y_train_, Y_NEW)
    alone = evaluate_kernel(structure, *scaled(X_NEW, Y_NEW), random_state=0)
    # also begun at the parameters found before: no worse, but for the stop of the optimiser
    assert model._fitted.evaluation.log_posterior > alone.log_posterior - 1e-6
    assert_predicts_as_its_kernel(model, X_NEW, Y_NEW, X_NEW + 0.1)


def test_refit_of_a_found_kernel_to_the_same_data_finds_the_same(model):
    before, score = model.predict(X_NEW), model.best_score_
    model.refit(X, Y)
    assert model.best_score_ == pytest.approx(score, abs=1e-6)  # nats: the stop of the optimiser
    np.testing.assert_allclose(model.predict(X_NEW), before, rtol=1e-4)  # as flat as a maximum is


def test_refit_begins_at_the_parameters_found_before(model, monkeypatch):
    known = []
    prepare = evaluate.Evaluator.prepare

    def listening(self, expression, fits=()):
        known.append([fit.theta for fit in fits])
        return prepare(self, expression, fits)

    monkeypatch.setattr(evaluate.Evaluator, "prepare", listening)
    theta = model._fitted.evaluation.theta
    model.refit(X_NEW, Y_NEW)
    assert [len(fits) for fits in known] == [0, 1]
    np.testing.assert_array_equal(known[1][0], theta)
    known.clear()
    model.refit(X, Y, "LIN[0]")
    assert known == [[]]


def test_refit_reads_the_names_of_columns():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=["time", "wind speed"])
    model = tiny().refit(frame, Y, "LIN[wind speed] + SE[time]")
    assert model.best_expression_ == "LIN[wind speed] + SE[time]"
    assert list(model.feature_names_in_) == ["time", "wind speed"]
    np.testing.assert_array_equal(
        model.predict(frame), tiny().refit(X, Y, "LIN[1] + SE[0]").predict(X)
    )
    with pytest.raises(ExpressionSyntaxError, match="unknown column 'depth', the known ones are"):
        model.refit(frame, Y, "SE[depth]")
    assert model.refit(frame, Y, "LIN[1]").best_expression_ == "LIN[wind speed]"


@pytest.mark.parametrize(
    ("kernel", "error", "message"),
    [
        ("SE[0", ExpressionSyntaxError, "expected SE with a column"),
        ("SX[0]", ExpressionSyntaxError, "unknown base kernel 'SX'"),
        ("SE[time]", ExpressionSyntaxError, "'time'"),
        ("SE[2]", ValueError, r"kernel must use columns below n_features=2, got SE\[2\]"),
        (
            parse_expression("SE[2]"),
            ValueError,
            r"kernel must use columns below n_features=2, got SE\[2\]",
        ),
        (3, TypeError, "kernel must be a str .* or an Expression, got 3"),
    ],
)
def test_refit_refuses_a_kernel_that_it_cannot_read_and_stays_as_it_was(
    model, kernel, error, message
):
    before = model.predict(X_NEW)
    with pytest.raises(error, match=message):
        model.refit(X_NEW, Y_NEW, kernel)
    np.testing.assert_array_equal(model.predict(X_NEW), before)
    np.testing.assert_array_equal(model.X_train_, X)


def test_refit_without_a_kernel_before_any_fit_is_refused():
    model = tiny()
    with pytest.raises(NotFittedError):
        model.refit(X, Y)
    with pytest.raises(NotFittedError):
        model.predict(X)


def test_refit_that_fails_leaves_the_model_as_it_was(model, monkeypatch):
    def fail(*arguments, **keywords):
        raise NotAMaximumError("the reason")

    before = model.predict(X_NEW)
    monkeypatch.setattr(evaluate, "find_best_maximum", fail)
    monkeypatch.setattr(evaluate.Evaluator, "_fit_and_score", fail)
    with pytest.raises(EvaluationError, match=r"LIN\[0\] could not be fitted .*the reason"):
        model.refit(X_NEW, Y_NEW, "LIN[0]")
    np.testing.assert_array_equal(model.predict(X_NEW), before)
    assert model.best_expression_ == "SE[0]"


def test_refit_wants_the_columns_of_the_fit_and_valid_parameters(model):
    with pytest.raises(ValueError, match="is expecting 2 features as input"):
        model.refit(X[:, :1], Y)
    with pytest.raises(ValueError, match="'max_time' parameter"):
        model.set_params(max_time=-1.0).refit(X, Y)


def test_a_search_after_refit_goes_on_where_the_last_one_ended(model):
    plain = tiny(max_leaves=2).fit(X, Y)
    model.refit(X_NEW, Y_NEW, "LIN[1]").set_params(warm_start=True, max_leaves=2).fit(X, Y)
    assert model.best_expression_ == plain.best_expression_
    assert set(model.search_history_["kernel"]) == set(plain.search_history_["kernel"])


@pytest.mark.parametrize("max_time", [0, -1.5, "long", np.nan])
def test_max_time_must_be_a_positive_number_of_seconds(max_time):
    with pytest.raises(ValueError, match=r"'max_time' .* in the range \(0.0, inf\) or None"):
        tiny(max_time=max_time).fit(X, Y)


def test_a_moment_of_time_gives_a_rough_model_and_a_warning():
    with pytest.warns(ConvergenceWarning) as caught:
        model = tiny(max_time=1e-6).fit(X, Y)
    (warning,) = caught
    assert "max_time ended the search before any kernel had a score" in str(warning.message)
    assert model.best_expression_ in str(warning.message)
    assert warning.filename == __file__  # it points at the call of fit
    assert model.stop_reason_ == "max_time"
    assert model.best_score_ == -np.inf
    assert len(model.search_history_["kernel"]) == model.n_iter_ == 0
    assert model.score(X, Y) > 0.5  # better than a straight line
    assert_predicts_as_its_kernel(model, X, Y, X_NEW + 0.1)
    assert isinstance(model.leaderboard(), Table)
    assert len(model.leaderboard()["kernel"]) == 0
    assert np.isfinite(model.refit(X, Y).best_score_)


@pytest.fixture
def clock(monkeypatch):
    """A clock that goes on by a hundred seconds with each evaluation, and else stands still."""
    clock = SimpleNamespace(now=0.0)
    run = evaluate.Evaluator.run

    def run_for_long(self, job, **keywords):
        evaluation = run(self, job, **keywords)
        clock.now += 100
        return evaluation

    monkeypatch.setattr(evaluate.Evaluator, "run", run_for_long)
    monkeypatch.setattr("autokernel.deadline.time", SimpleNamespace(monotonic=lambda: clock.now))
    return clock


@pytest.mark.parametrize(("max_time", "n_kernels"), [(50.0, 1), (150, 2), (350.0, 4)])
def test_time_for_some_kernels_gives_the_best_of_them_without_a_warning(clock, max_time, n_kernels):
    model = tiny(max_time=max_time, max_leaves=2).fit(X, Y)
    history = model.search_history_
    assert model.stop_reason_ == "max_time"
    assert len(history["kernel"]) == n_kernels
    best = np.argmax(history["score"])
    assert model.best_score_ == history["score"][best]
    assert model.best_expression_ == history["kernel"][best]
    assert_predicts_as_its_kernel(model, X, Y, X_NEW + 0.1)
    whole = tiny(max_leaves=2).fit(X, Y).search_history_
    np.testing.assert_array_equal(history["score"], whole["score"][:n_kernels])


def test_time_for_all_kernels_ends_as_without_a_limit(clock):
    model = tiny(max_time=1e9).fit(X, Y)
    assert model.stop_reason_ == "n_iter"
    assert repr(model.leaderboard()) == repr(tiny().fit(X, Y).leaderboard())
