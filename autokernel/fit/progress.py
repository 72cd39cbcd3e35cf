"""Progress lines of a search."""

import textwrap
from collections.abc import Callable, Sequence

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.callback import CallbackContext

from autokernel.search import History

_INDENT, _WIDTH = 27, 73  # characters before and in the kernel of a progress line


def print_now(line: str) -> None:
    """Print a line and flush, so that it appears at once even in a pipe."""
    print(line, flush=True)


def reporter(
    verbose: int,
    feature_names: Sequence[str] | None,
    *,
    write: Callable[[str], object] = print_now,
) -> Callable[[History], None] | None:
    """Build a function that writes a line per improvement (1) or per kernel (2), or None (0)."""
    if verbose < 1:
        return None

    def observe(history: History) -> None:
        latest = history.trials[-1].evaluation
        improved = history.best is latest and latest.status == "ok"
        if not improved and verbose < 2:
            return
        text = latest.expression.to_text(feature_names)
        reason = "" if latest.status == "ok" else f"  ({latest.status})"
        mark = "*" if improved else " "
        line = _line(len(history), history.trials[-1].elapsed, latest.score, f"{mark} {text}")
        write(line + reason)

    return observe


class Improvements:
    """A callback that prints a line for each kernel that is better than all earlier ones.

    Parameters
    ----------
    feature_names : sequence of str
        Names of the columns.
    """

    def __init__(self, feature_names: Sequence[str]) -> None:
        self._feature_names = feature_names
        self._best = -np.inf

    def setup(self, estimator: BaseEstimator, context: CallbackContext) -> None:
        """Do nothing before the fit."""

    def teardown(self, estimator: BaseEstimator, context: CallbackContext) -> None:
        """Do nothing after the fit."""

    def on_fit_task_begin(self, estimator: BaseEstimator, context: CallbackContext) -> None:
        """Do nothing before a kernel."""

    def on_fit_task_end(
        self,
        estimator: BaseEstimator,  # noqa: ARG002 - other callbacks use it
        context: CallbackContext,
        *,
        fitted_estimator: BaseEstimator | None = None,
    ) -> None:
        """Print the best kernel so far if it has improved."""
        model = fitted_estimator
        if context.parent is None or model is None or model.best_score_ <= self._best:
            return
        self._best = model.best_score_
        elapsed = model.search_history_["elapsed"]
        text = model._fitted.evaluation.expression.to_text(self._feature_names)
        print_now(_line(len(elapsed), elapsed[-1], self._best, _wrapped(text)))


def _wrapped(text: str) -> str:
    """Wrap a kernel into lines below each other, which fit beside the numbers."""
    lines = textwrap.wrap(text, _WIDTH, break_long_words=False)
    return ("\n" + " " * _INDENT).join(lines)


def _line(number: int, elapsed: float, score: float, text: str) -> str:
    """Format the number of kernels, the seconds, the score in nats and the kernel."""
    return f"{number:4d}  {elapsed:6.1f} s  {score:10.2f} {text}"
