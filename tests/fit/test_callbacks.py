"""Who follows a search: callbacks of scikit-learn, and who reads its lines; and what ends it."""

import copy

import numpy as np
import pytest
from sklearn.callback import ProgressBar, ScoringMonitor
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from autokernel import Laplace, NotAMaximumError
from tests import fits
from tests.fits import At, interrupt, through_json, wave

X, Y = wave(15, n_features=2)
X = X[:, ::-1]  # the wave is in the last column, so that the first kernel is not the best
FIT, KERNEL = "fit", "kernel"
N_PRUNINGS = 2  # tasks that a search counts with and begins only where there is something to prune


def tiny(**parameters):
    """An estimator that looks at five kernels: two on each column, and noise alone."""
    return fits.tiny(**{"averaging": None, **parameters})


class Recorder:
    """A callback that remembers what it was given."""

    def __init__(self):
        self.hooks, self.contexts, self.models, self.given = [], [], [], []

    @property
    def tasks(self):
        """What happened to which task, in order."""
        names = [context.task_name for context in self.contexts]
        return list(zip(self.hooks, names, strict=True))

    @property
    def root(self):
        """The context of the last fit."""
        return self.contexts[-1]

    def setup(self, estimator, context):
        self._note("setup", context)

    def teardown(self, estimator, context):
        self._note("teardown", context)

    def on_fit_task_begin(self, estimator, context, *, X=None, y=None, fitted_estimator=None):
        self._note("begin", context)
        self.given.append((estimator, X, y))

    def on_fit_task_end(self, estimator, context, *, X=None, y=None, fitted_estimator=None):
        self._note("end", context)
        self.given.append((estimator, X, y))
        self.models.append(fitted_estimator)

    def _note(self, hook, context):
        self.hooks.append(hook)
        self.contexts.append(context)


def stop_after(n_kernels):
    """A callback that ends a search."""
    return At(lambda: True, ended=n_kernels)


def whole(n_kernels):
    """What a callback hears of a fit that evaluates n kernels and finds none to prune."""
    kernels = [("begin", KERNEL), ("end", KERNEL)] * n_kernels
    return [("setup", FIT), ("begin", FIT), *kernels, ("end", FIT), ("teardown", FIT)]


ONE_LINE = {"base_kernels": ["LIN"]}


@pytest.mark.parametrize(
    ("parameters", "n_features", "n_kernels", "n_left"),
    [
        ({}, 2, 5, 0),
        ({"n_iter": 3, "batch_size": 2, "max_leaves": 3, "strategy": "random"}, 1, None, 0),
        ({**ONE_LINE, "max_leaves": "auto"}, 23, 2, 0),
        ({**ONE_LINE, "n_iter": 5}, 2, 3, 5),  # the space ends before the number of kernels
    ],
)
def test_a_fit_is_a_task_with_one_task_below_it_for_each_kernel(
    parameters, n_features, n_kernels, n_left
):
    recorder, (X, y) = Recorder(), wave(15, n_features=n_features)
    data = X.tolist(), y.tolist()
    model = tiny(**parameters).set_callbacks(recorder).fit(*data)
    n_evaluated = len(model.search_history_["kernel"])
    assert n_kernels in (None, n_evaluated)
    assert (model.stop_reason_ == "exhausted") == (n_left > 0)
    assert recorder.root.max_subtasks == n_evaluated + n_left + N_PRUNINGS
    assert recorder.tasks == whole(n_evaluated)
    for estimator, inputs, target in recorder.given:
        assert estimator is model
        assert inputs is data[0]  # as they were given
        assert target is data[1]
    kernels = [context for context in recorder.contexts if context.task_name == KERNEL]
    assert [context.task_id for context in kernels[::2]] == list(range(n_evaluated))
    assert kernels[::2] == kernels[1::2]  # the task that ends is the one that began
    assert all(context.parent is recorder.root for context in kernels)
    assert all(context.max_subtasks == 0 for context in kernels)


def test_a_search_that_is_repeated_has_all_its_tasks_again():
    model = tiny(warm_start=True, max_leaves=4, strategy="random", n_iter=1).fit(X[:, :1], Y)
    recorder = Recorder()
    model.set_params(n_iter=3).set_callbacks(recorder).fit(X[:, :1], Y)
    n_evaluated = len(model.search_history_["kernel"])
    assert n_evaluated <= recorder.root.max_subtasks == 3 + 3 + N_PRUNINGS
    assert recorder.tasks.count(("begin", KERNEL)) == n_evaluated


def test_each_kernel_hands_on_the_model_of_a_fit_that_ends_there():
    recorder = Recorder()
    model = tiny(base_kernels=["LIN"]).fit(X[:, ::-1], Y)  # of which nothing may be left
    model.set_params(base_kernels=["SE", "LIN"]).set_callbacks(recorder).fit(X, Y)
    n_kernels = len(recorder.models) - 1
    assert len({handed.best_expression_ for handed in recorder.models}) > 1
    for place in range(n_kernels):
        stopped = tiny().set_callbacks(stop_after(place + 1)).fit(X, Y)
        handed = recorder.models[place]
        for ours, theirs in zip(
            handed.predict(X, return_std=True), stopped.predict(X, return_std=True), strict=True
        ):
            np.testing.assert_array_equal(ours, theirs)
        assert handed.best_expression_ == stopped.best_expression_
        assert repr(handed.leaderboard()) == repr(stopped.leaderboard())


def test_callbacks_of_a_pipeline_hear_of_the_kernels():
    recorder, monitor = Recorder(), ScoringMonitor(scoring="r2")
    recorder.max_propagation_depth = None  # from a meta-estimator down to what it wraps
    pipeline = make_pipeline(StandardScaler(), tiny(base_kernels=["LIN"]).set_callbacks(monitor))
    pipeline.set_callbacks(recorder).fit(X, Y)
    assert recorder.tasks.count(("begin", KERNEL)) == recorder.tasks.count(("end", KERNEL)) == 3
    kernel = recorder.contexts[recorder.tasks.index(("end", KERNEL))]
    assert kernel.parent.source_task_name == "fit-final-estimator"
    logs = monitor.get_logs().data  # of the last step, which is scored on what it gets
    assert [row["task_name"] for row in logs] == [FIT, KERNEL, KERNEL, KERNEL]
    assert logs[0]["r2"] == pipeline.score(X, Y)


def test_a_callback_ends_the_search_and_leaves_a_fitted_model():
    recorder = Recorder()
    model = tiny().set_callbacks(recorder, stop_after(3)).fit(X, Y)
    assert model.stop_reason_ == "callback"
    assert recorder.tasks == whole(3)
    history = model.search_history_
    assert len(history["kernel"]) == 3
    assert model.best_expression_ == history["kernel"][np.argmax(history["score"])]
    assert np.isfinite(model.predict(X)).all()
    # what is stopped can go on
    model.set_callbacks().set_params(warm_start=True).fit(X, Y)
    assert model.stop_reason_ == "n_iter"
    assert repr(model.leaderboard()) == repr(tiny().fit(X, Y).leaderboard())


@pytest.mark.parametrize("error", [ValueError("of a callback"), KeyboardInterrupt()])
@pytest.mark.parametrize("moment", ["begun", "ended"])
def test_teardown_is_called_whatever_ends_a_fit(error, moment):
    def fail():
        raise error

    recorders = Recorder(), Recorder()
    with pytest.raises(type(error)) as info:
        tiny().set_callbacks(recorders[0], At(fail, **{moment: 2}), recorders[1]).fit(X, Y)
    assert info.value is error
    for one in recorders:
        assert one.hooks.count("teardown") == 1
        assert one.tasks[-1] == ("teardown", FIT)
        assert ("end", FIT) not in one.tasks


def test_ctrl_c_leaves_the_best_kernel_so_far_and_says_how_to_go_on():
    # after Ctrl-C there is no time for an average
    model = tiny(averaging="posterior").set_callbacks(At(interrupt, begun=3))
    with pytest.raises(KeyboardInterrupt), pytest.warns(match="interrupted: ") as caught:
        model.fit(X, Y)
    [line] = [str(one.message) for one in caught]
    assert line.startswith("interrupted: the model is the best of 2 kernels so far, ")
    assert line.endswith(f"{model.best_expression_}; warm_start=True continues the search")
    assert model.stop_reason_ == "interrupted"
    assert len(model.search_history_["kernel"]) == 2
    stopped = tiny().set_callbacks(stop_after(2)).fit(X, Y)
    np.testing.assert_array_equal(model.predict(X), stopped.predict(X))


@pytest.mark.filterwarnings("ignore:max_time:sklearn.exceptions.ConvergenceWarning")
def test_a_kernel_that_is_cut_short_by_max_time_is_a_task_that_ends_and_is_not_kept(tmp_path):
    recorder = Recorder()
    model = tiny(max_time=1e-6, memory=tmp_path).set_callbacks(recorder).fit(X, Y)
    assert model.stop_reason_ == "max_time"
    assert recorder.tasks == whole(1)
    assert list(tmp_path.rglob("*.pkl")) == []


class Interrupted(Laplace):
    """A criterion that is interrupted: no failure of a kernel."""

    def __call__(self, fit):
        raise KeyboardInterrupt


@pytest.mark.parametrize("criterion", [Laplace(), Interrupted()])
def test_ctrl_c_before_any_kernel_leaves_a_rough_model(criterion):
    begun = 1 if type(criterion) is Laplace else None
    model = tiny(criterion=criterion).set_callbacks(At(interrupt, begun=begun))
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, Y)
    assert model.stop_reason_ == "interrupted"
    assert model.best_score_ == -np.inf
    assert len(model.search_history_["kernel"]) == 0
    assert np.isfinite(model.predict(X)).all()
    assert len(model.leaderboard()["kernel"]) == 0


@pytest.mark.parametrize("duplicate", [copy.copy, through_json])
def test_rows_are_named_as_they_were_given_if_predictions_are_given_few(duplicate):
    X, y = wave(1100)
    y[553] += 9.0
    model = tiny().set_callbacks(At(interrupt, begun=2))
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y)
    assert model.set_callbacks().describe().count("Row 553 is an outlier") == 1
    assert "Row 553 is an outlier" in duplicate(model).describe()


class Failing(Laplace):
    """A criterion that has no score for the first kernels."""

    def __init__(self, n_kernels):
        self.n_kernels, self.n_calls = n_kernels, 0

    def __call__(self, fit):
        self.n_calls += 1
        if self.n_calls <= self.n_kernels:
            raise NotAMaximumError("injected")
        return super().__call__(fit)


def test_there_is_no_fitted_estimator_until_a_kernel_could_be_fitted():
    monitor, recorder = ScoringMonitor(scoring="r2"), Recorder()
    model = tiny(criterion=Failing(2)).set_callbacks(monitor, recorder).fit(X, Y)
    assert [handed is None for handed in recorder.models] == [True] * 2 + [False] * 4
    paths = [row["task_id_path"] for row in monitor.get_logs().data]
    assert paths == [(0,), (0, 2), (0, 3), (0, 4)]
    assert list(model.search_history_["status"]) == ["injected"] * 2 + ["ok"] * 3


def test_a_callback_may_stop_a_search_that_has_fitted_nothing():
    model = tiny(criterion=Failing(1)).set_callbacks(stop_after(1))
    with pytest.warns(
        ConvergenceWarning, match="callback ended .* 1 could not be fitted: .* rough fit of SE"
    ):
        model.fit(X, Y)
    assert model.stop_reason_ == "callback"
    assert model.best_score_ == -np.inf
    assert np.isfinite(model.predict(X)).all()


def test_progress_bar_is_full_in_the_end_or_stops_where_the_search_was_interrupted(capsys):
    pytest.importorskip("rich")
    make_pipeline(StandardScaler(), tiny()).set_callbacks(ProgressBar()).fit(X, Y)
    out = capsys.readouterr().out
    assert out.count("AutoKernelGPRegressor - fit") == 1
    assert " 100% " in out
    tiny(n_iter=5).set_callbacks(ProgressBar(), stop_after(2)).fit(X, Y)
    assert " 100% " in capsys.readouterr().out
    with pytest.raises(KeyboardInterrupt):
        tiny().set_callbacks(ProgressBar(), At(interrupt, begun=4)).fit(X, Y)
    assert " 43% " in capsys.readouterr().out  # three of seven: five kernels and two prunings


def test_more_kernels_than_planned_are_no_error():
    # sums over the columns that matter have more than two leaves, so that single ones are tried
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 30))
    model = tiny(base_kernels=["LIN"], max_leaves=2, n_iter=1).fit(X, X[:, :12].sum(axis=1))
    assert {f"LIN[{column}]" for column in range(30)} <= set(model.search_history_["kernel"])
