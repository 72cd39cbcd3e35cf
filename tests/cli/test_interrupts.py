"""Ctrl-C at any moment: the best so far, its test error, and never a traceback."""

import signal
from contextlib import redirect_stdout

import pytest

from autokernel.cli import main
from tests.cli.files import QUICK, wave

pytestmark = pytest.mark.filterwarnings("default:max_time ended the search before any kernel")


class Terminal:
    """Standard output that presses Ctrl-C in the moment in which some text is printed."""

    def __init__(self, mark):
        self.text, self.mark = "", mark

    def write(self, text):
        self.text += text
        if self.mark and self.mark in self.text:
            self.mark = None
            signal.raise_signal(signal.SIGINT)

    def flush(self):
        """Do nothing."""


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Run the command line with Ctrl-C at a mark; return its status and what it has printed."""

    def run(mark, *more):
        terminal = Terminal(mark)
        with redirect_stdout(terminal):
            status = main([str(wave(tmp_path)), "--target", "level", "--drop", "junk", *more])
        assert terminal.mark is None, "Ctrl-C was not pressed"
        return status, terminal.text

    monkeypatch.chdir(tmp_path)
    # a shell that starts the tests in the background has the signal ignored
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield run
    signal.signal(signal.SIGINT, before)


def test_ctrl_c_during_the_search_describes_and_tests_the_best_so_far(run):
    status, output = run(" * SE[")  # of the first kernel
    assert status == 0
    assert output.count("the search ended: it was interrupted") == 1
    assert "Best 1 of 1 kernels" in output
    assert "  this model\n" in output.partition("Test RMSE of level")[2]


def test_ctrl_c_before_there_is_a_model_ends_with_one_line_and_status_130(run, capsys):
    status, output = run("best kernel so far,")
    assert status == 130
    assert capsys.readouterr().err == "\nautokernel: interrupted\n"
    assert "Best kernel" not in output


@pytest.mark.parametrize(
    ("mark", "left_out", "still_printed"),
    [
        ("What it says", "description", "an RBF kernel\n"),
        ("the mean", "test", "Forecast"),
        ("Fitting the", "fit to all rows", "Forecast"),
        ("Forecast", "rest of the files", "Forecast"),
    ],
)
def test_ctrl_c_after_the_search_leaves_out_what_is_under_way(
    run, tmp_path, mark, left_out, still_printed
):
    status, output = run(mark, *QUICK, "--horizon", "2", "--output", "model.joblib")
    is_last = left_out == "rest of the files"
    assert status == (130 if is_last else 0)
    assert f"Interrupted: the {left_out} is left out." in output
    assert still_printed in output
    assert (tmp_path / "model.joblib").exists() != is_last
