"""Lines that a verbose fit prints, the line of a long one, and the warning of a very long one."""

import io
import re
import sys
import threading
import time
import warnings
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from types import SimpleNamespace

import numpy as np
import pytest

from autokernel import Laplace
from autokernel.exceptions import NotAMaximumError
from autokernel.export import write_report
from autokernel.fit import progress
from tests.fits import At, interrupt, small, tiny, wave

LINE = re.compile(r"^ *(\d+) +(\d+\.\d) s +(-?\d+\.\d\d|-inf) ([* ]) (\S.*)$")


class Unfittable(Laplace):
    """A criterion that has no score for sums."""

    def __call__(self, fit):
        if "+" in str(fit.expression):
            raise NotAMaximumError("no factor")
        return super().__call__(fit)


def verbose_fit(capsys, verbose):
    """Fit, and return the model and the fields of each line that was printed before the last."""
    pandas = pytest.importorskip("pandas")
    x, y = wave()
    frame = pandas.DataFrame({"time": x[:, 0], "a_column_of_noise": np.cos(99 * x[:, 0])})
    model = small(verbose=verbose, n_iter=0, criterion=Unfittable()).fit(frame, y)
    captured = capsys.readouterr()
    assert captured.err == ""
    _, _, lines = captured.out.partition("best kernel so far, in nats; Ctrl-C ends the search\n\n")
    lines = lines.splitlines()
    if verbose:
        assert lines.pop() == "the search ended: as many kernels as n_iter allows were evaluated"
    return model, [LINE.match(line).groups() for line in lines]


@pytest.mark.parametrize("verbose", [0, True, 2])
def test_verbose_prints_nothing_or_improvements_or_all_kernels(verbose, capsys):
    model, lines = verbose_fit(capsys, verbose)
    history = model.search_history_
    is_better = np.diff(history["best_score"], prepend=-np.inf) > 0
    shown = {0: False, 1: is_better, 2: True}[int(verbose)] & np.full(len(is_better), True)
    reasons = [f"  ({s})" if s != "ok" else "" for s in history["status"]]
    marks = np.where(is_better, "*", " ")
    expected = [
        (str(n + 1), f"{elapsed:.1f}", f"{score:.2f}", marks[n], kernel + reasons[n])
        for n, (elapsed, score, kernel) in enumerate(
            zip(history["elapsed"], history["score"], history["kernel"], strict=True)
        )
        if shown[n]
    ]
    assert lines == expected
    assert verbose < 2 or any(reasons)


def test_long_kernels_are_wrapped_below_each_other(capsys):
    long = "a_column_whose_name_is_long_enough_to_fill_a_line"
    pandas = pytest.importorskip("pandas")
    x, y = wave()
    kernel = f"SE[{long}] + LIN[{long}]"
    model = small(start_kernel=kernel, n_iter=0, verbose=1)
    model.set_callbacks(At(interrupt, ended=1))
    with pytest.raises(KeyboardInterrupt):
        model.fit(pandas.DataFrame({long: x[:, 0]}), y)
    *_, first, second = capsys.readouterr().out.splitlines()
    assert second.lstrip().split()[-1] in kernel
    place = first.index("[") - first[: first.index("[")][::-1].index(" ")
    assert len(second) - len(second.lstrip()) == place


class Slow(Laplace):
    """A criterion that takes its time."""

    def __call__(self, fit):
        time.sleep(0.2)
        return super().__call__(fit)


def test_the_time_is_estimated_from_the_first_kernel(capsys):
    model = small(criterion=Slow(), n_iter=1000, verbose=1).set_callbacks(At(interrupt, ended=1))
    with pytest.raises(KeyboardInterrupt):
        model.fit(*wave())
    n, unit = re.search(
        r"the search takes about (\d+) (\w+) by one worker", capsys.readouterr().out
    ).groups()
    assert unit == "minutes"
    assert 3 <= int(n) < 30  # 200 seconds and the time of the fits


def test_a_very_long_search_without_a_limit_warns_once():
    model = small(criterion=Slow(), n_iter=100_000).set_callbacks(At(interrupt, ended=2))
    with pytest.raises(KeyboardInterrupt), pytest.warns(UserWarning, match="hours.*max_time") as w:
        model.fit(*wave())
    texts = [str(one.message) for one in w]
    assert len(texts) == 2
    assert texts[1].startswith("interrupted: the model is the best of 2 kernels so far, ")
    assert {one.filename for one in w} == {__file__}
    model.set_params(max_time=60.0, criterion=Slow(), random_state=1)
    with pytest.raises(KeyboardInterrupt):  # warnings are errors
        model.set_callbacks(At(interrupt, ended=2)).fit(*wave())


def test_a_search_that_ends_by_itself_says_what_is_left_to_gain(capsys, tmp_path):
    settings = {"verbose": 1, "base_kernels": ["LIN", "SE"]}
    model = small(**settings, n_iter=50).fit(*wave(16))
    left = model.expected_improvement_
    assert 0.0 <= left < model.tol
    near, far = capsys.readouterr().out.splitlines()[-2:]
    assert re.fullmatch(
        r"the search ended: of \d+ kernels one operation away from the best, none is expected to "
        "be better,",
        near,
    )
    assert far == f"and none further away to gain 0.05 nats (largest: {left:.2g})"
    write_report(model, tmp_path / "report.html")
    assert far in (tmp_path / "report.html").read_text()
    assert str(small(n_iter=1).fit(*wave(16)).expected_improvement_) == "nan"  # it was cut
    rng = np.random.default_rng(1)
    model = small(**settings).fit(rng.uniform(size=(20, 2)), rng.normal(size=20))
    assert (model.best_expression_, model.stop_reason_) == ("NOISE", "local_maximum")
    # noise has no kernels one operation away that could be counted
    assert "\nthe search ended: no kernel one operation away" in capsys.readouterr().out


class Terminal(io.StringIO):
    """A terminal, of which it is known what is left to see."""

    def isatty(self):
        return True

    @property
    def screen(self):
        """The lines that are not blank, after all that carriage returns wrote over others."""
        lines = []
        for written in self.getvalue().split("\n"):
            seen = ""
            for text in written.split("\r"):
                seen = text + seen[len(text) :]
            lines.append(seen.rstrip())
        return [line for line in lines if line]

    @property
    def progress(self):
        """The texts of the line, in order."""
        return re.findall(r"\r((?:no )?kernel [^\r]*)\r", self.getvalue())


class NotebookStream(Terminal):
    """The standard output of a notebook, which is no terminal."""

    __module__ = "ipykernel.iostream"

    def isatty(self):
        return False


def open_terminal(monkeypatch, *, name="stderr", kind=Terminal):
    """Replace a stream, of which fits are so long that each shows its line.

    It is no fixture, because pytest replaces the stream between these and the test.
    """
    monkeypatch.setattr(progress, "QUIET_SECONDS", 0.0)
    monkeypatch.setattr(progress, "UPDATE_SECONDS", 0.0)
    monkeypatch.setenv("COLUMNS", "80")
    terminal = kind()
    monkeypatch.setattr(sys, name, terminal)
    return terminal


@pytest.mark.parametrize(
    ("max_time", "when"), [(None, r"\d+ s so far"), (900.0, r"at most (900|8\d\d) s to go")]
)
def test_a_long_fit_shows_one_line_that_is_erased(max_time, when, monkeypatch, capsys):
    terminal = open_terminal(monkeypatch)
    model = tiny(max_time=max_time).fit(*wave())
    assert terminal.screen == []
    assert capsys.readouterr().out == ""
    line = rf"(no kernel yet|kernel \d+, best score -?\d+\.\d), {when} *"
    assert all(re.fullmatch(line, text) for text in terminal.progress)
    n_kernels = len(model.search_history_["kernel"])
    last = f"kernel {n_kernels}, best score {max(model.search_history_['score']):.1f}, "
    assert terminal.progress[-1].startswith(last)
    assert len(terminal.progress) > 2 * n_kernels  # also while a kernel is fitted


def test_the_line_is_narrower_than_the_terminal(monkeypatch):
    terminal = open_terminal(monkeypatch)
    monkeypatch.setenv("COLUMNS", "20")
    tiny().fit(*wave())
    assert max(map(len, terminal.progress)) == 19
    assert terminal.screen == []


def silent_in_a_worker():
    """Fit in a process with a terminal, and return what it shows."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        terminal = open_terminal(monkeypatch)
        tiny().fit(*wave())
        return terminal.getvalue()


@pytest.mark.parametrize(
    "case",
    [
        *("verbose=0", "short", "pipe", "no stream", "callback", "thread"),
        pytest.param("worker process", marks=pytest.mark.slow),
    ],
)
def test_there_is_no_line(case, monkeypatch, capsys):
    terminal = open_terminal(monkeypatch)
    if case == "worker process":
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
            assert pool.submit(silent_in_a_worker).result() == ""
        return
    model = tiny(verbose=0 if case == "verbose=0" else "auto")
    if case == "short":
        monkeypatch.setattr(progress, "QUIET_SECONDS", 600.0)
    elif case == "pipe":
        monkeypatch.setattr(terminal, "isatty", lambda: False)
    elif case == "no stream":
        monkeypatch.setattr(sys, "stderr", None)
    elif case == "callback":
        model.set_callbacks(At(lambda: None, begun=1))
    if case == "thread":
        thread = threading.Thread(target=model.fit, args=wave())
        thread.start()
        thread.join()
    else:
        model.fit(*wave())
    assert hasattr(model, "best_kernel_")
    assert (terminal.getvalue(), capsys.readouterr().out) == ("", "")


class Warns(Laplace):
    """A criterion that warns of the first kernel, and is interrupted at noise."""

    def __call__(self, fit):
        if str(fit.expression) == "SE[0]":
            warnings.warn("a warning of SE[0]", stacklevel=1)
        if not fit.expression.leaves:
            raise KeyboardInterrupt
        return super().__call__(fit)


def test_lines_and_warnings_are_printed_in_its_place_also_after_ctrl_c(monkeypatch):
    terminal = open_terminal(monkeypatch)
    monkeypatch.setattr(sys, "stdout", terminal)

    def show(message, *_, **__):
        terminal.write(f"Note: {message}\n")

    model = tiny(criterion=Warns(), verbose=2, start_kernel=["SE[0]", "LIN[0]"])
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = show
        with pytest.raises(KeyboardInterrupt):
            model.fit(*wave())
        assert warnings.showwarning is show
    assert len(terminal.progress) > 2
    warning, first, second, last = terminal.screen[terminal.screen.index(progress.HEADER) + 1 :]
    assert warning == "Note: a warning of SE[0]"
    assert [LINE.match(line)[5] for line in (first, second)] == ["SE[0]", "LIN[0]"]
    assert last.startswith("Note: interrupted: the model is the best of 2 kernels so far, ")


def test_a_terminal_that_is_closed_does_not_end_the_fit(monkeypatch, capsys):
    terminal = open_terminal(monkeypatch)

    def write(text):
        raise OSError("Input/output error")

    monkeypatch.setattr(terminal, "write", write)
    assert tiny().fit(*wave()).best_score_ > -np.inf
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("asks_for_input", [True, False])
def test_a_notebook_shows_the_line_unless_it_runs_into_a_file(asks_for_input, monkeypatch):
    shell = SimpleNamespace(kernel=SimpleNamespace(_allow_stdin=asks_for_input))
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    notebook = open_terminal(monkeypatch, name="stdout", kind=NotebookStream)
    tiny().fit(*wave())
    assert bool(notebook.progress) is asks_for_input
    assert notebook.screen == []
