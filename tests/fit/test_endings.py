"""What a fit leaves that ends where it should not."""

import numpy as np
import pytest
from scipy.linalg import LinAlgError

from autokernel import AutoKernelGPRegressor
from autokernel.deadline import NEVER
from autokernel.fit.run import Run
from autokernel.inference import ExactLikelihood
from autokernel.search import evaluate_in_parallel
from tests.fits import count_evaluations, wave

X, Y = wave()


class Raises:
    """A callback that raises at the end of one kernel."""

    def __init__(self, error, *, place):
        self.error, self.place = error, place

    def setup(self, estimator, context):
        pass

    def teardown(self, estimator, context):
        pass

    def on_fit_task_begin(self, estimator, context):
        pass

    def on_fit_task_end(self, estimator, context):
        if context.parent is not None and context.task_id == self.place:
            raise self.error


def tiny(**parameters):
    return AutoKernelGPRegressor(
        **{"n_iter": 0, "base_kernels": ["SE", "LIN"], "random_state": 0, **parameters}
    )


def test_ctrl_c_while_the_best_kernel_is_conditioned_loses_nothing(monkeypatch):
    real, calls = Run.result, []

    def interrupted_once(fitting, reason):
        calls.append(reason)
        if len(calls) == 1:
            raise KeyboardInterrupt
        return real(fitting, reason)

    monkeypatch.setattr(Run, "result", interrupted_once)
    model = tiny()
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, Y)
    assert model.stop_reason_ == "interrupted"
    whole = tiny(averaging=None).fit(X, Y)  # after Ctrl-C there is no time for an average
    assert list(model.search_history_["kernel"]) == list(whole.search_history_["kernel"])
    np.testing.assert_array_equal(model.predict(X), whole.predict(X))


def test_ctrl_c_is_raised_where_nothing_can_be_fitted(monkeypatch):
    def fail(likelihood, theta, **options):
        raise LinAlgError("injected")

    monkeypatch.setattr(ExactLikelihood, "factorise", fail)
    model = tiny().set_callbacks(Raises(KeyboardInterrupt(), place=1))
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, Y)
    assert not hasattr(model, "best_kernel_")


def test_a_warm_start_goes_on_where_a_callback_has_failed(monkeypatch):
    evaluated = count_evaluations(monkeypatch)
    model = tiny(warm_start=True).set_callbacks(Raises(ZeroDivisionError(), place=2))
    with pytest.raises(ZeroDivisionError):
        model.fit(X, Y)
    model.set_callbacks(Raises(ZeroDivisionError(), place=100)).fit(X, Y)
    monkeypatch.undo()
    whole = tiny().fit(X, Y)
    np.testing.assert_array_equal(model.search_history_["score"], whole.search_history_["score"])
    assert len(evaluated) == len(whole.search_history_["score"])  # none of them twice


@pytest.mark.parametrize("error", [KeyboardInterrupt(), ZeroDivisionError(), None])
def test_time_is_over_for_workers_once_the_search_has_ended(error, monkeypatch):
    # threads that are in the midst of an evaluation stop at their next look at the clock
    deadlines = []

    def noting(*arguments, deadline, **options):
        deadlines.append(deadline)
        return evaluate_in_parallel(*arguments, deadline=deadline, **options)

    monkeypatch.setattr("autokernel.fit.run.evaluate_in_parallel", noting)
    model = tiny()
    if error is None:
        model.fit(X, Y)
    else:
        with pytest.raises(type(error)):
            model.set_callbacks(Raises(error, place=0)).fit(X, Y)
    assert {deadline.has_passed for deadline in deadlines} == {True}
    assert not NEVER.has_passed
