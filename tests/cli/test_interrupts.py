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
from autokernel import AutoKernelGPRegressor
from autokernel.cli import comparison
from autokernel.cli.run import main
from autokernel.evidence import Evaluator
from tests.cli.files import lines, wave


@pytest.fixture
def arguments(tmp_path):
    return [str(wave(tmp_path)), "--target", "level", "--n-iter", "0"]


def interrupt(monkeypatch, owner, name, *, after=0):
    """Press Ctrl-C in a call of a function, after so many calls that are left in peace."""
    original, left = getattr(owner, name), iter(range(after))

    def interrupted(*arguments, **keywords):
        if next(left, None) is None:
            raise KeyboardInterrupt
        return original(*arguments, **keywords)

    monkeypatch.setattr(owner, name, interrupted)


def many_rows(folder):
    """A file of 5000 rows, on which the first kernel alone takes a while."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(5000, 3))
    y = np.sin(2 * X[:, 0]) + X[:, 1] + 0.2 * rng.normal(size=5000)
    path = folder / "big.csv"
    np.savetxt(path, np.c_[X, y], delimiter=",", header="a,b,c,y", comments="", fmt="%.4f")
    return path


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has other signals")
def test_ctrl_c_on_5000_rows_ends_a_process_with_the_best_so_far_and_the_test_errors(tmp_path):
    process = subprocess.Popen(
        [sys.executable, "-m", "autokernel", str(many_rows(tmp_path)), "--n-iter", "0"],
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
    assert process.returncode == 0
    assert "Traceback" not in errors
    assert "interrupted: this is the best so far." in output
    table = output.partition("Test RMSE of y")[2]
    names = re.findall(r"^ +[\d.e+-]+  (.*)$", table, flags=re.MULTILINE)
    assert names == ["this model", "the mean", "an RBF kernel on 200 of these rows"]


def test_ctrl_c_before_any_kernel_has_a_score_tells_that_the_model_is_a_rough_fit(
    arguments, capsys, monkeypatch
):
    interrupt(monkeypatch, Evaluator, "run")
    assert main(arguments) == 0
    output = capsys.readouterr().out
    assert "0 kernels in " in output
    assert "interrupted, before any kernel had a score. This model is a rough fit" in lines(output)
    assert "Best 0" not in output
    assert "best so far." not in output
    assert "this model" in output.partition("Test RMSE of level")[2]


def test_ctrl_c_during_the_search_tells_the_best_so_far(arguments, capsys, monkeypatch):
    interrupt(monkeypatch, Evaluator, "run", after=2)
    assert main(arguments) == 0
    output = capsys.readouterr().out
    assert "interrupted: this is the best so far." in output
    table = output.partition("Best 2 of 2")[2].partition("Test RMSE")[0]
    assert len(re.findall(r"^ +-?\d+\.\d+ ", table, flags=re.MULTILINE)) == 2
    assert "this model" in output.partition("Test RMSE of level")[2]


def test_a_second_ctrl_c_skips_the_rbf_kernel_and_keeps_the_error_of_the_model(
    arguments, capsys, monkeypatch
):
    interrupt(monkeypatch, Evaluator, "run", after=1)
    interrupt(monkeypatch, comparison, "_rbf")
    assert main(arguments) == 0
    table = capsys.readouterr().out.partition("Test RMSE of level")[2]
    assert re.search(r"\d  this model\n +\S+  the mean\n +an RBF kernel: interrupted\n", table)
    assert "Intervals of 95 % hold" in table


def test_ctrl_c_in_the_description_leaves_it_out_and_tests_the_model(
    arguments, capsys, monkeypatch
):
    interrupt(monkeypatch, Evaluator, "run", after=1)
    interrupt(monkeypatch, AutoKernelGPRegressor, "describe")
    assert main(arguments) == 0
    output = capsys.readouterr().out
    assert "Interrupted: the description is left out." in output
    assert "this model" in output.partition("Test RMSE of level")[2]


def test_ctrl_c_before_there_is_a_model_ends_with_one_line_and_status_130(
    arguments, capsys, monkeypatch
):
    interrupt(monkeypatch, AutoKernelGPRegressor, "fit")
    assert main(arguments) == 130
    captured = capsys.readouterr()
    assert captured.err == "\nautokernel: interrupted before any kernel was fitted\n"
    assert "Best kernel" not in captured.out


def test_ctrl_c_in_the_fit_to_all_rows_writes_the_model_of_the_search(
    arguments, capsys, monkeypatch, tmp_path
):
    interrupt(monkeypatch, Evaluator, "run", after=1)
    interrupt(monkeypatch, AutoKernelGPRegressor, "refit")
    path = tmp_path / "model.joblib"
    assert main([*arguments, "--output", str(path)]) == 0
    output = capsys.readouterr().out
    assert "Interrupted: what follows is by the model of the rows to train on." in output
    assert f"Model: {path}" in output
    assert path.exists()


def test_ctrl_c_while_files_are_written_says_which_ones_there_are(
    arguments, capsys, monkeypatch, tmp_path
):
    interrupt(monkeypatch, Evaluator, "run", after=1)
    interrupt(monkeypatch, AutoKernelGPRegressor, "report")
    paths = [tmp_path / name for name in ("model.joblib", "report.html")]
    assert main([*arguments, "--output", str(paths[0]), "--report", str(paths[1])]) == 130
    output = capsys.readouterr().out
    assert f"Model: {paths[0]}" in output
    assert "Report:" not in output
    assert "Interrupted: what is not named above has not been written." in output
