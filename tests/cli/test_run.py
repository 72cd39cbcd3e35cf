"""A search on a file: what is printed, and what is refused before it."""

import re

import numpy as np
import pytest

from autokernel.__main__ import main
from tests.cli.files import lines, wave


@pytest.fixture
def series(tmp_path):
    return wave(tmp_path)


def test_a_search_on_a_file_tells_kernel_words_table_and_test_errors(series, capsys):
    assert main([str(series), "--target", "level", "--n-iter", "0"]) == 0
    output = capsys.readouterr().out
    assert "wave.csv" in output
    assert "27 rows to train on, 3 drawn at random to predict: level." in output
    progress = [line.split(maxsplit=4) for line in output.splitlines() if " s   " in line]
    assert len(progress) > 1
    assert [float(line[3]) for line in progress] == sorted(float(line[3]) for line in progress)
    columns = {name for line in progress for name in re.findall(r"\[(.*?)\]", line[-1])}
    assert "time" in columns
    assert columns <= {"time", "junk"}
    for heading in (
        "Best kernel",
        "What it says about level",
        "Best 5 of ",
        "Test RMSE of level",
    ):
        assert heading in output
    table = output.partition("Test RMSE of level")[2].partition("Intervals")[0].split("\n")
    errors = {
        name.strip(): float(error)
        for error, name in (line.split(maxsplit=1) for line in table if line.strip())
    }
    assert set(errors) == {"this model", "an RBF kernel", "the mean"}
    assert errors["this model"] < 0.3 * errors["the mean"]


def test_a_series_is_extrapolated(series, capsys):
    table = np.loadtxt(series, delimiter=",", skiprows=1)[:, :2]
    np.savetxt(series, table, delimiter=",", header="time,level", comments="")
    assert main([str(series), "--n-iter", "0"]) == 0
    assert "the last 3 to predict: level." in capsys.readouterr().out


def test_a_file_that_is_not_there_is_refused(capsys):
    assert main(["nowhere.csv"]) == 2
    assert "nowhere.csv" in capsys.readouterr().err


def test_a_report_is_written_with_names_and_units(series, capsys, tmp_path):
    path = tmp_path / "report.html"
    arguments = [str(series), "--target", "level", "--n-iter", "0", "--report", str(path)]
    assert main([*arguments, "--unit", "time=years", "--unit", "level=metres"]) == 0
    output = capsys.readouterr().out
    assert f"Report: {path}" in output
    words = " ".join(output.partition("What it says about level")[2].split())
    assert re.search(r"The target is the sum of a constant, -?\d\S* metres", words)
    page = path.read_text()
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
