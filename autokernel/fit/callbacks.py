"""Who follows a search: scikit-learn's callbacks, and who reads its lines."""

from collections.abc import Callable
from typing import Any

from sklearn.base import BaseEstimator
from sklearn.callback import CallbackContext

from autokernel.search import History


class Monitor:
    """Tells the callbacks of an estimator and a reporter of every trial.

    Parameters
    ----------
    estimator : BaseEstimator
        Whose callbacks to call.
    context : CallbackContext
        That of its fit; each trial becomes a task below it.
    X, y : array-like
        The data as the user gave them, for the callbacks.
    attributes : callable
        Returns the fitted attributes of the best kernel so far, None while there is none. Called
        only where a callback asks for a fitted estimator.
    report : callable of History, optional
        Writes a line.
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

    def begin(self) -> None:
        """Begin the task of a trial."""
        self._task = self._context.subcontext(task_name="kernel")
        self._task.call_on_fit_task_begin(**self._given)

    def end(self, history: History) -> bool:
        """End the task of the last trial; whether a callback wants the search to end."""
        if self._report is not None:
            self._report(history)
        ends = self._task.call_on_fit_task_end(
            **self._given, reconstruction_attributes=self._attributes
        )
        return bool(ends)

    def abandon(self) -> None:
        """End the task of a trial that there was no time for."""
        self._task.call_on_fit_task_end(**self._given)
