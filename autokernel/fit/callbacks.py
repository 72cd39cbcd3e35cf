"""The observer that passes trials on to scikit-learn's callbacks and to the progress lines."""

from collections.abc import Callable
from typing import Any

from sklearn.base import BaseEstimator
from sklearn.callback import CallbackContext

from autokernel.search import History, Observer, Phase


class Monitor(Observer):
    """Passes every trial on to the callbacks of an estimator and to a reporter.

    Parameters
    ----------
    estimator : BaseEstimator
        Estimator whose callbacks are called.
    context : CallbackContext
        Context of the fit. Each trial becomes a task below it.
    X, y : array-like
        Data as the user passed them, for the callbacks.
    attributes : callable
        Function that returns the fitted attributes of the best kernel so far, which predicts
        alone, or None while there is none. It is called only if a callback requests a fitted
        estimator.
    report : callable of History, optional
        Function that writes a progress line.
    """

    def __init__(
        self,
        estimator: BaseEstimator,
        context: CallbackContext,
        *,
        X: Any,
        y: Any,
        attributes: Callable[[], dict[str, Any] | None],
        report: Callable[[History], None] | None,
    ) -> None:
        self._context, self._attributes, self._report = context, attributes, report
        self._given = {"estimator": estimator, "X": X, "y": y}
        self._task: CallbackContext = context
        self._pruning: CallbackContext | None = None

    def begin(self, phase: Phase) -> None:
        """Begin the task of a trial, in pruning below a task of its own.

        The number of trials of the pruning is not known beforehand.
        """
        parent = self._context
        if phase == Phase.PRUNING:
            if self._pruning is None:
                self._pruning = parent.subcontext(task_name="pruning", max_subtasks=None)
                self._pruning.call_on_fit_task_begin(**self._given)
            parent = self._pruning
        else:
            self.finish()
        self._task = parent.subcontext(task_name="kernel")
        self._task.call_on_fit_task_begin(**self._given)

    def end(self, history: History) -> bool:
        """End the task of the last trial; return whether a callback ends the search."""
        if self._report is not None:
            self._report(history)
        ends = self._task.call_on_fit_task_end(
            **self._given, reconstruction_attributes=self._attributes
        )
        return bool(ends)

    def finish(self) -> None:
        """End the task of the pruning, if one is under way."""
        if self._pruning is not None:
            self._pruning.call_on_fit_task_end(
                **self._given, reconstruction_attributes=self._attributes
            )
            self._pruning = None

    def abandon(self) -> None:
        """End the task of a trial for which there was not enough time."""
        self._task.call_on_fit_task_end(**self._given)
