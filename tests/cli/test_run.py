"""A search on a file: what is printed, and what is refused before it."""

import re

import pytest

from autokernel.cli.run import main
from tests.cli.files import SHORT, lines, wave, write


def test_a_search_on_a_file_prints_kernel_words_table_and_test_errors(tmp_path, capsys):
    assert main([str(wave(tmp_path)), "--target", "level", *SHORT]) == 0
    output = capsys.readouterr().out
    assert "wave.csv" in output
    assert "27 rows to train on, 3 drawn at random to predict: level." in output
    progress = [
        line.split(maxsplit=4)
        for line in output.splitlines()
        if re.match(r" +\d+ +\d+\.\d s ", line)
    ]
    assert len(progress) > 1
    assert [float(line[3]) for line in progress] == sorted(float(line[3]) for line in progress)
    columns = {name for line in progress for name in re.findall(r"\[(.*?)\]", line[-1])}
    assert "time" in columns
    assert columns <= {"time", "junk"}
    for heading in ("Best kernel", "What it says about level", "Best 5 of ", "Test RMSE of level"):
        assert heading in output
    table = output.partition("Test RMSE of level")[2].partition("Intervals")[0].split("\n")
    errors = {
        name.strip(): float(error)
        for error, name in (line.split(maxsplit=1) for line in table if line.strip())
    }
    assert set(errors) == {"this model", "an RBF kernel", "the mean"}
    assert errors["this model"] < 0.3 * errors["the mean"]


def test_it_is_said_first_how_the_file_was_read(tmp_path, capsys):
    dates = "".join(f"2020-01-{i:02d};{i % 7},5\n" for i in range(1, 25))
    path = write(tmp_path, f"day;level\n{dates}25;\n".replace("25;", "2020-01-25;"))
    arguments = [str(path), "--n-iter", "0", "--missing", "drop", "--max-time", "9"]
    assert main(arguments) == 0
    output = capsys.readouterr().out
    before, _, after = output.partition("best kernel so far; scores")
    said = [
        "Numbers have decimal commas.",
        "day: dates such as 2020-01-01 (ISO8601).",
        "1 row of 25 left out, for missing values.",
        "22 rows to train on, the last 2 to predict: level.",
        "Ctrl-C ends the search with the best kernel so far.",
    ]
    places = [lines(before).index(one) for one in said]
    assert places == sorted(places)
    assert re.search(r"\d days", after)
    assert max(len(line) for line in output.splitlines()) <= 100


@pytest.mark.filterwarnings("default")
def test_warnings_are_sentences_without_the_code_that_they_come_from(tmp_path, capsys):
    path = write(tmp_path, "x,y\n" + "".join(f"1,{i % 5}\n" for i in range(20)))
    assert main([str(path), "--n-iter", "0"]) == 0
    errors = capsys.readouterr().err
    assert "Note: every column of X is constant" in lines(errors)
    assert ".py" not in errors
    assert "UserWarning" not in errors
