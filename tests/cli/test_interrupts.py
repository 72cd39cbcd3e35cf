"""Ctrl-C at any moment: the best so far, its test error, and never a traceback."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import autokernel
from autokernel.__main__ import main
from tests.cli.files import lines, wave


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


def run(monkeypatch, mark, arguments):
    """Run the command line with Ctrl-C at a mark; return its status and what it has printed."""
    terminal = Terminal(mark)
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", terminal)
        status = main(arguments)
    assert terminal.mark is None, "Ctrl-C was not pressed"
    return status, terminal.text


@pytest.fixture
def arguments(tmp_path):
    return [str(wave(tmp_path)), "--target", "level"]


pytestmark = pytest.mark.filterwarnings("default:max_time ended the search before any kernel")
SHORT = ["--max-time", "0.01"]  # so that the model is a rough fit


def test_ctrl_c_during_the_search_describes_and_tests_the_best_so_far(monkeypatch, arguments):
    status, output = run(monkeypatch, " * ", arguments)  # of the first kernel
    assert status == 0
    assert "; reason to stop: interrupted." in output
    assert "Best 1 of 1 kernels" in output
    assert re.search(r"\d  this model\n", output.partition("Test RMSE of level")[2])


def test_ctrl_c_before_there_is_a_model_ends_with_one_line_and_status_130(
    monkeypatch, arguments, capsys
):
    status, output = run(monkeypatch, "best kernel so far;", arguments)
    assert status == 130
    assert capsys.readouterr().err == "\nautokernel: interrupted\n"
    assert "Best kernel" not in output


@pytest.mark.parametrize(
    ("mark", "left_out"),
    [
        ("What it says", "the description"),
        ("this model", "the test"),
        ("an RBF kernel", "the RBF kernel"),
    ],
)
def test_ctrl_c_after_the_search_leaves_out_what_is_under_way(
    monkeypatch, arguments, mark, left_out
):
    status, output = run(monkeypatch, mark, [*arguments, *SHORT])
    assert status == 0
    assert f"Interrupted: {left_out} is left out." in output
    if mark != "an RBF kernel":
        assert "an RBF kernel\n" in output


def test_ctrl_c_in_the_fit_to_all_rows_writes_the_model_of_the_search(
    monkeypatch, arguments, tmp_path
):
    path = tmp_path / "model.joblib"
    status, output = run(monkeypatch, "Fitting the", [*arguments, *SHORT, "--output", str(path)])
    assert status == 0
    assert "Interrupted: the fit to all rows is left out." in output
    assert f"Model: {path}" in output
    assert path.exists()


def test_ctrl_c_while_files_are_written_says_which_ones_there_are(monkeypatch, arguments, tmp_path):
    paths = [str(tmp_path / name) for name in ("model.joblib", "report.html")]
    more = ["--output", paths[0], "--report", paths[1]]
    status, output = run(monkeypatch, f"Model: {paths[0]}", [*arguments, *SHORT, *more])
    assert status == 130
    assert "Report:" not in output
    assert "Interrupted: the rest of the files is left out." in output


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has other signals")
def test_a_process_on_5000_rows_ends_with_the_best_so_far_and_the_test_errors(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(5000, 3))
    y = np.sin(2 * X[:, 0]) + X[:, 1] + 0.2 * rng.normal(size=5000)
    path = tmp_path / "big.csv"
    np.savetxt(path, np.c_[X, y], delimiter=",", header="a,b,c,y", comments="", fmt="%.4f")
    process = subprocess.Popen(
        [sys.executable, "-m", "autokernel", str(path), "--n-iter", "1000"],
        cwd=Path(autokernel.__file__).parent.parent,  # where it finds the package under test
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    for line in process.stdout:
        if re.match(r" +1 +\d+\.\d s ", line):  # the first kernel has a score
            process.send_signal(signal.SIGINT)
            break
    output, errors = process.communicate()
    assert process.returncode == 0, errors
    assert "Traceback" not in errors
    assert "; reason to stop: interrupted." in output
    table = output.partition("Test RMSE of y")[2]
    names = re.findall(r"^ +[\d.e+-]+  (.*)$", table, flags=re.MULTILINE)
    assert names == ["this model", "the mean", "an RBF kernel on 200 of these rows"]
    assert "Intervals of 95 % hold" in lines(output)
