"""The observer of a search: callbacks of scikit-learn, progress lines, and how long it may take."""

import math
import shutil
import sys
import textwrap
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing import parent_process
from threading import current_thread, main_thread
from typing import Any, TextIO

from sklearn.callback import CallbackContext
from sklearn.callback._callback_context import get_context_path

from autokernel.exceptions import warn_user
from autokernel.fit.run import Run
from autokernel.search import History, Observer, Phase

HEADER = " no.      time       score   best kernel so far, in nats; Ctrl-C ends the search"
QUIET_SECONDS, UPDATE_SECONDS = 5.0, 1.0  # before a fit shows its line, and until it is updated


class Monitor(Observer):
    """Passes trials on to the callbacks of the estimator, and prints progress lines.

    A long fit without callbacks also shows one line, which is updated at checks of the deadline and
    where trials begin and end, in the main thread: no thread writes between the lines of another.

    Each trial is a task below the context of the fit, and gets what is ``given`` to it: estimator,
    X and y. If a callback requests a fitted estimator, ``attributes`` returns those of the best
    kernel so far, or None while there is none.
    """

    def __init__(
        self,
        context: CallbackContext,
        run: Run,
        given: dict[str, Any],
        attributes: Callable[[], dict[str, Any] | None],
    ) -> None:
        self._context, self._run, self._given = context, run, given
        verbose = given["estimator"].verbose
        self.verbose = 0 if verbose == "auto" else verbose
        self._at_end = {**given, "reconstruction_attributes": attributes}
        self._task: CallbackContext = context
        self._pruning: CallbackContext | None = None
        self._n_tasks, self._has_estimate = 0, False
        has_callbacks = any(one._callbacks for one in get_context_path(context))
        self._stream = None if has_callbacks or verbose == 0 else live_stream()
        self._deadline, self._due, self._width = run.deadline, run.deadline.began + QUIET_SECONDS, 0

    def begin(self, phase: Phase) -> None:
        """Begin the task of a trial, below that of a pruning if such trials were not planned."""
        self._update_line()
        parent = self._context
        is_full = self._n_tasks + 1 >= (parent.max_subtasks or math.inf)
        if phase == Phase.PRUNING or len(self._run.stages) > 1 or is_full:
            if self._pruning is None:
                self._n_tasks += 1
                self._pruning = parent.subcontext(task_name="pruning", max_subtasks=None)
                self._pruning.call_on_fit_task_begin(**self._given)
            parent = self._pruning
        else:
            self.finish()
            self._n_tasks += 1
        self._task = parent.subcontext(task_name="kernel")
        self._task.call_on_fit_task_begin(**self._given)

    def end(self, history: History) -> bool:
        """End the task of the last trial; return whether a callback ends the search."""
        self._estimate_time(history)
        self._print_line(history)
        self._update_line()
        return bool(self._task.call_on_fit_task_end(**self._at_end))

    def finish(self) -> None:
        """End the task of the pruning, if one is under way."""
        if self._pruning is not None:
            self._pruning.call_on_fit_task_end(**self._at_end)
            self._pruning = None

    def abandon(self) -> None:
        """End the task of a trial for which there was not enough time."""
        self._task.call_on_fit_task_end(**self._given)

    def say(self, line: str) -> None:
        """Print a line at once, even in a pipe, unless the estimator is silent."""
        if self.verbose and line:
            self._erase_line()
            print(line, flush=True)

    @contextmanager
    def line(self) -> Iterator[None]:
        """Show the line of a long fit; it is erased before each warning and in the end."""
        if self._stream is None:
            yield
            return
        show_warning = warnings.showwarning

        def show_in_its_place(*args: Any, **kwargs: Any) -> None:
            self._erase_line()
            show_warning(*args, **kwargs)

        self._deadline.on_check = self._update_line
        warnings.showwarning = show_in_its_place
        try:
            yield
        finally:
            warnings.showwarning = show_warning
            self._erase_line()
            self._stream = None

    def _update_line(self) -> None:
        now = time.monotonic()
        if self._stream is None or now < self._due or current_thread() is not main_thread():
            return
        self._due = now + UPDATE_SECONDS
        n, best = self._n_kernels, self._run.stage.history.best
        kernel = f"kernel {n}" if n else "no kernel yet"
        if best is not None and best.score > -math.inf:
            kernel += f", best score {best.score:.1f}"
        time_left, passed = self._deadline.seconds_left, now - self._deadline.began
        is_known = 0 < time_left < math.inf
        when = f"at most {math.ceil(time_left)} s to go" if is_known else f"{passed:.0f} s so far"
        self._write_line(f"{kernel}, {when}"[: shutil.get_terminal_size().columns - 1])

    @property
    def _n_kernels(self) -> int:
        return sum(len(stage.history) for stage in self._run.stages)

    def _erase_line(self) -> None:
        if self._width:
            self._write_line("")
            self._width = 0

    def _write_line(self, text: str) -> None:
        """Write over the last line, and go back to where it begins: Ctrl-C may be printed there."""
        self._width = max(self._width, len(text))
        try:
            print(f"\r{text:{self._width}}\r", end="", file=self._stream, flush=True)
        except OSError:  # the terminal was closed, and the fit goes on
            self._stream, self._width = None, 0

    def _print_line(self, history: History) -> None:
        latest, seconds = history.trials[-1].evaluation, history.trials[-1].elapsed
        improved = history.best is latest and latest.status == "ok"
        if not improved and self.verbose < 2:
            return
        text = self._run.stage.columns.text_of(latest.expression)
        reason = "" if latest.status == "ok" else f"  ({latest.status})"
        kernel = textwrap.wrap(text, 71, break_long_words=False)  # a line has 100 characters
        lines = ("\n" + " " * 29).join(kernel)  # below each other
        mark = "*" if improved else " "
        self.say(
            f"{self._n_kernels:4d}  {seconds:6.1f} s  {latest.score:10.2f} {mark} {lines}{reason}"
        )

    def _estimate_time(self, history: History) -> None:
        """Estimate the time of the search from its first kernel that is not from the store."""
        *_, began, ended = 0.0, *(trial.elapsed for trial in history)
        seconds = history.trials[-1].evaluation.seconds
        if self._has_estimate or ended - began < seconds:
            return
        self._has_estimate = True
        expected = seconds * (self._context.max_subtasks or 0)
        takes = f"about {span_of(expected)} by one worker"
        arguments, stage = self._run.arguments, self._run.stages[-1]
        if expected > 1800 and self._deadline.seconds_left == math.inf:  # half an hour
            fewer = ", and approximation='auto' searches on fewer rows"
            warn_user(
                f"the search on {stage.n_searched} rows will take {takes}: max_time ends it "
                f"early{fewer * (arguments.approximation == 'exact')}"
            )
        elif expected > 60:
            self.say(f"the search takes {takes}")


def live_stream() -> TextIO | None:
    """Return where a line can be overwritten, None in a file, a pipe or a worker process.

    It is the standard error of a terminal, and the standard output of a notebook, whose blocks of
    both are apart, unless nobody is asked for input: such a notebook is run into a file.
    """
    if parent_process() is not None:
        return None
    if type(sys.stdout).__module__ == "ipykernel.iostream":
        kernel = getattr(sys.modules["IPython"].get_ipython(), "kernel", None)
        return sys.stdout if getattr(kernel, "_allow_stdin", True) else None
    return sys.stderr if sys.stderr is not None and sys.stderr.isatty() else None


def span_of(seconds: float) -> str:
    """Write a time in the unit in which it is readable."""
    for unit, size in (("hours", 3600.0), ("minutes", 60.0)):
        if seconds >= 1.5 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} seconds"
