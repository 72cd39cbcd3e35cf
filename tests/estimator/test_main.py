"""The command line."""

import re

import numpy as np
import pytest

from autokernel.__main__ import main
from autokernel.evaluation import Evaluator


@pytest.fixture
def series(tmp_path):
    """A short CSV file: a wave over time, and a column of no use."""
    time = np.linspace(2000, 2004, 30)
    path = tmp_path / "wave.csv"
    rows = np.c_[time, np.sin(6 * time), np.cos(np.arange(30.0) ** 2)]
    np.savetxt(path, rows, delimiter=",", header="time,level,junk", comments="")
    return path


def test_a_search_on_a_file_tells_kernel_words_table_and_test_errors(series, capsys):
    assert main([str(series), "--target", "level", "--n-iter", "0"]) == 0
    output = capsys.readouterr().out
    assert "wave.csv" in output
    assert "27 rows to train on, 3 drawn at random to predict: level." in output
    progress = [line.split(maxsplit=4) for line in output.splitlines() if " s  " in line]
    assert len(progress) > 1
    assert [float(line[3]) for line in progress] == sorted(float(line[3]) for line in progress)
    columns = {name for line in progress for name in re.findall(r"\[(.*?)\]", line[-1])}
    assert "time" in columns
    assert columns <= {"time", "junk"}
    for heading in (
        "Best kernel",
        "What it says about level",
        "Best five",
        "Test RMSE of level",
    ):
        assert heading in output
    errors = {
        name.strip(): float(error)
        for error, name in (line.split(maxsplit=1) for line in output.splitlines()[-3:])
    }
    assert set(errors) == {"this model", "an RBF kernel", "the mean"}
    assert errors["this model"] < 0.3 * errors["the mean"]


def test_a_series_is_extrapolated(series, capsys):
    table = np.loadtxt(series, delimiter=",", skiprows=1)[:, :2]
    np.savetxt(series, table, delimiter=",", header="time,level", comments="")
    assert main([str(series), "--n-iter", "0"]) == 0
    assert "the last 3 to predict: level." in capsys.readouterr().out


def interrupt_after(monkeypatch, n_kernels):
    """Press Ctrl-C in the evaluation that comes after so many."""
    run, left = Evaluator.run, iter(range(n_kernels))

    def interrupted(self, job, **keywords):
        if next(left, None) is None:
            raise KeyboardInterrupt
        return run(self, job, **keywords)

    monkeypatch.setattr(Evaluator, "run", interrupted)


def test_ctrl_c_during_the_search_tells_the_best_so_far(series, capsys, monkeypatch):
    interrupt_after(monkeypatch, 2)
    assert main([str(series), "--target", "level"]) == 0
    output = capsys.readouterr().out
    assert "Interrupted: this is the best so far." in output
    table = output.partition("Best five of 2 ")[2].partition("Test RMSE")[0]
    assert len(re.findall(r"^ +-?\d+\.\d+ ", table, flags=re.MULTILINE)) == 2
    assert "Test RMSE of level" in output


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "line of column names, two columns and four rows"),
        ("a,b\n1,2\n", "line of column names, two columns and four rows"),
        ("1,2\n1,2\n3,4\n5,6\n7,8\n", "must begin with a line of column names"),
        ("a,b\n1,2\n3,x\n5,6\n7,8\n", "'x'"),
        ("a,b\n1,2\n3\n5,6\n7,8\n", "a number for each of ['a', 'b']"),
        ("a,b\n1,2\n3,nan\n5,6\n7,8\n", "finite number"),
        ("a,a\n1,2\n3,4\n5,6\n7,8\n", "names that differ"),
        ('"x, y",b\n1,2\n3,4\n5,6\n7,8\n', "--target must be one of ['x, y', 'b'], got 'c'"),
    ],
)
def test_a_file_that_cannot_be_used_is_refused_with_the_reason(tmp_path, capsys, text, message):
    path = tmp_path / "bad.csv"
    path.write_text(text)
    assert main([str(path), "--target", "c"]) == 2
    error = capsys.readouterr().err
    assert error.startswith("autokernel: ")
    assert message in error


def test_a_file_that_is_not_there_is_refused(capsys):
    assert main(["nowhere.csv"]) == 2
    assert "nowhere.csv" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--n-iter", "-1"], "must not be negative, got -1"),
        (["--random-state", "-1"], "must not be negative"),
        (["--target", "y"], "--target needs a file"),
    ],
)
def test_bad_arguments_are_refused(capsys, arguments, message):
    with pytest.raises(SystemExit) as info:
        main(arguments)
    assert info.value.code == 2
    assert message in capsys.readouterr().err


def test_a_report_is_written_with_names_and_units(series, capsys, tmp_path):
    path = tmp_path / "report.html"
    arguments = [str(series), "--target", "level", "--n-iter", "0", "--report", str(path)]
    assert main([*arguments, "--unit", "time=years", "--unit", "level=metres"]) == 0
    output = capsys.readouterr().out
    assert f"Report: {path}" in output
    words = " ".join(output.partition("What it says about level")[2].split())
    assert re.search(r"The target is the sum of a constant, -?\d\S* metres", words)
    page = path.read_text(encoding="utf-8")
    assert "wave.csv: level" in page
    assert "metres" in page
    assert "of time" in page or "in time" in page


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--report", "nowhere/r.html"], "--report must be a file in a folder that exists"),
        (["--unit", "level"], "--unit must be NAME=TEXT with one of ['time', 'junk', 'level']"),
        (["--unit", "width=cm"], "got 'width=cm'"),
        (["--unit", "time=days since foo"], "units['time'] must be a text such as 'days since"),
        (["--report", "."], "--report must be a file in a folder that exists, got ."),
    ],
)
def test_reports_and_units_are_checked_before_the_search(series, capsys, more, message):
    assert main([str(series), "--target", "level", *more]) == 2
    captured = capsys.readouterr()
    assert message in captured.err
    assert captured.out == ""


def test_a_column_with_the_name_of_the_target_among_the_units_is_refused(tmp_path, capsys):
    path = tmp_path / "y.csv"
    path.write_text("y,z\n" + "\n".join(f"{i},{i * i}" for i in range(9)))
    assert main([str(path), "--unit", "z=kg"]) == 2
    captured = capsys.readouterr()
    assert "--unit cannot tell the column 'y' from the target" in captured.err
    assert captured.out == ""
