"""Ctrl-C at any moment: the best so far, its test error, and never a traceback."""

import re
import signal
import sys
from contextlib import redirect_stdout

import numpy as np
import pytest

from autokernel.__main__ import main
from tests.cli.files import lines, wave
from tests.fits import PATIENCE, running


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


def run(mark, arguments):
    """Run the command line with Ctrl-C at a mark; return its status and what it has printed."""
    terminal = Terminal(mark)
    with redirect_stdout(terminal):
        status = main(arguments)
    assert terminal.mark is None, "Ctrl-C was not pressed"
    return status, terminal.text


@pytest.fixture(autouse=True)
def raises_at_ctrl_c():
    """A shell that starts the tests in the background has the signal ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def arguments(tmp_path):
    return [str(wave(tmp_path)), "--target", "level"]


pytestmark = pytest.mark.filterwarnings("default:max_time ended the search before any kernel")
PROGRAM = "import sys; from autokernel.__main__ import main; sys.exit(main(sys.argv[1:]))"
SHORT = ["--max-time", "0.01"]  # so that the model is a rough fit


def test_ctrl_c_during_the_search_describes_and_tests_the_best_so_far(arguments):
    status, output = run(" * ", arguments)  # of the first kernel
    assert status == 0
    assert output.count("the search ended: it was interrupted") == 1
    assert "Best 1 of 1 kernels" in output
    assert re.search(r"\d  this model\n", output.partition("Test RMSE of level")[2])


def test_ctrl_c_before_there_is_a_model_ends_with_one_line_and_status_130(arguments, capsys):
    status, output = run("best kernel so far;", arguments)
    assert status == 130
    assert capsys.readouterr().err == "\nautokernel: interrupted\n"
    assert "Best kernel" not in output


@pytest.mark.parametrize(
    ("mark", "left_out", "still_printed"),
    [
        ("What it says", "description", "an RBF kernel\n"),
        ("this model", "test", "an RBF kernel\n"),
        ("an RBF kernel", "RBF kernel", "Report: report.html"),
        ("Fitting the", "fit to all rows", "Model: model.joblib"),
        ("Model: model.joblib", "rest of the files", "Model: model.joblib"),
    ],
)
def test_ctrl_c_after_the_search_leaves_out_what_is_under_way(
    monkeypatch, tmp_path, arguments, mark, left_out, still_printed
):
    monkeypatch.chdir(tmp_path)
    files = ["--output", "model.joblib", "--report", "report.html"]
    status, output = run(mark, [*arguments, *SHORT, *files])
    is_last = left_out == "rest of the files"
    assert status == (130 if is_last else 0)
    assert f"Interrupted: the {left_out} is left out." in output
    assert still_printed in output
    assert ("Report:" in output) != is_last
    assert (tmp_path / "model.joblib").exists()


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has other signals")
def test_a_process_on_5000_rows_ends_with_the_best_so_far_and_the_test_errors(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(5000, 3))
    y = np.sin(2 * X[:, 0]) + X[:, 1] + 0.2 * rng.normal(size=5000)
    path = tmp_path / "big.csv"
    np.savetxt(path, np.c_[X, y], delimiter=",", header="a,b,c,y", comments="", fmt="%.4f")
    with running(PROGRAM, path, "--n-iter", "1000") as process:
        for line in process.stdout:
            if re.match(r" +1 +\d+\.\d s ", line):  # the first kernel has a score
                process.send_signal(signal.SIGINT)
                break
        output, errors = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, errors
    assert "Traceback" not in errors
    assert output.count("the search ended: it was interrupted") == 1
    table = output.partition("Test RMSE of y")[2]
    names = re.findall(r"^ +[\d.e+-]+  (.*)$", table, flags=re.MULTILINE)
    assert names == ["this model", "the mean", "an RBF kernel on 200 of these rows"]
    assert "Intervals of 95 % hold" in lines(output)
