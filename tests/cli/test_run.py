"""A search on a file: what is printed, and what is refused before it."""

import re

import numpy as np
import pytest
from autokernel.cli.run import main

from tests.cli.files import SHORT, lines, wave, write


def errors_of(output):
    """The test errors that are printed, by the name of the model."""
    return {
        name: float(error)
        for error, name in re.findall(r"^ {4,}([\d.e+-]+)  (.*)$", output, flags=re.MULTILINE)
    }


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
    assert output.count("the search ended") == 1
    assert "reason to stop" not in output
    for heading in ("Best kernel", "What it says about level", "Best 5 of ", "Test RMSE of level"):
        assert heading in output
    errors = errors_of(output)
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
        "1 row of 25 left out, for missing values.",
        "day: dates such as 2020-01-01 (ISO8601).",
        "22 rows to train on, the last 2 to predict: level.",
        "Ctrl-C ends the search with the best kernel so far.",
    ]
    places = [lines(before).index(one) for one in said]
    assert places == sorted(places)
    assert "weekly season" in " ".join(after.split())
    assert max(len(line) for line in output.splitlines()) <= 100


@pytest.mark.filterwarnings("default")
def test_warnings_are_sentences_without_the_code_that_they_come_from(tmp_path, capsys):
    path = write(tmp_path, "x,y\n" + "".join(f"1,{i % 5}\n" for i in range(20)))
    assert main([str(path), "--n-iter", "0"]) == 0
    errors = capsys.readouterr().err
    assert "Note: every column of X is constant" in lines(errors)
    assert ".py" not in errors
    assert "UserWarning" not in errors


SMOOTHING = "exponential smoothing, as a kernel"
ROUGH = pytest.mark.filterwarnings("default:max_time ended the search before any kernel")


@ROUGH
@pytest.mark.parametrize(
    ("days", "n", "season", "name"),
    [
        (np.arange(60) / 24, 60, 24, "the last day repeated (seasonal-naive)"),
        (np.arange(40), 40, 7, "the last week repeated (seasonal-naive)"),
        (np.r_[:40] + 2 * (np.r_[:40] // 5), 40, 5, "the last week repeated (seasonal-naive)"),
        ("M", 60, 12, "the last year repeated (seasonal-naive)"),
        ("3M", 40, 4, "the last year repeated (seasonal-naive)"),
        (365 * np.arange(40), 40, None, None),
        (np.arange(5), 5, None, None),
        (np.arange(40) // 4, 40, None, None),
    ],
)
def test_rows_with_dates_are_tested_by_time_against_naive_forecasts(
    tmp_path, capsys, days, n, season, name
):
    if isinstance(days, str):
        months = int(days.rstrip("M") or 1) * np.arange(n)
        dates = np.datetime64("2015-01") + months.astype("m8[M]")
    else:
        dates = np.datetime64("2015-01-05T00:00") + (1440 * days).astype(int).astype("m8[m]")
    y = np.random.default_rng(0).normal(size=n)
    texts = [str(one).replace("T", " ") for one in dates]
    order = np.random.default_rng(1).permutation(n) if len(set(texts)) == n else range(n)
    path = write(tmp_path, "day,y\n" + "".join(f"{texts[i]},{y[i]}\n" for i in order))
    assert main([str(path), *SHORT, "--max-time", "0.01"]) == 0
    output = capsys.readouterr().out
    k = max(1, n // 10)
    assert f"{n - k} rows to train on, the last {k} to predict: y." in output
    found = errors_of(output)
    expected = {"the last value": y[n - k - 1], "the mean": y[:-k].mean()}
    if season:
        expected[name] = y[np.arange(n - k, n) - season]
    assert (SMOOTHING in found) == (len(set(texts)) == n)
    assert set(found) - {"this model", "an RBF kernel", SMOOTHING} == set(expected)
    for one, forecast in expected.items():
        # four digits are printed
        assert found[one] == pytest.approx(np.sqrt(np.mean((y[-k:] - forecast) ** 2)), rel=1e-3)


@ROUGH
def test_beyond_one_season_the_last_one_is_repeated(tmp_path, capsys):
    n = 80
    y = np.random.default_rng(0).normal(size=n)
    rows = "".join(f"{i % 3},{np.datetime64('2015-01-05') + i},{y[i]}\n" for i in range(n))
    path = write(tmp_path, f"shop,day,y\n{rows}")
    assert main([str(path), *SHORT, "--max-time", "0.01"]) == 0
    output = capsys.readouterr().out
    assert "72 rows to train on, the last 8 by day to predict: y." in output
    found = errors_of(output)["the last week repeated (seasonal-naive)"]
    expected = np.tile(y[65:72], 2)[:8]
    assert found == pytest.approx(np.sqrt(np.mean((y[72:] - expected) ** 2)), rel=1e-3)


@ROUGH
def test_rows_without_a_time_are_not_kept_back_for_the_test(tmp_path, capsys):
    y = np.random.default_rng(0).normal(size=44)
    rows = "".join(f"{np.datetime64('2015-01-05') + i},{y[i]}\n" for i in range(40))
    path = write(tmp_path, f"day,y\n,{y[40]}\nNA,{y[41]}\n{rows},{y[42]}\n?,{y[43]}\n")
    assert main([str(path), *SHORT, "--max-time", "0.01"]) == 0
    output = capsys.readouterr().out
    assert "40 rows to train on, the last 4 to predict: y." in output
    errors = errors_of(output)
    for name, forecast in (
        ("the last value", y[35]),
        ("the last week repeated (seasonal-naive)", y[29:33]),
    ):
        # four digits are printed
        expected = np.sqrt(np.mean((y[36:40] - forecast) ** 2))
        assert errors[name] == pytest.approx(expected, rel=1e-3)


@ROUGH
def test_the_rbf_kernel_has_categories_and_gaps_too_and_errors_are_weighted(tmp_path, capsys):
    rng = np.random.default_rng(0)
    y = 5 * (np.arange(60) % 4) + 0.1 * rng.normal(size=60)
    rows = "".join(
        f"{'ABCD'[i % 4]},{'' if i % 7 == 3 else i % 10},{i % 3 + 1},{y[i]}\n" for i in range(60)
    )
    path = write(tmp_path, f"shop,x,w,y\n{rows}")
    arguments = [str(path), *SHORT, "--weights", "w", "--max-time", "0.01"]
    assert main(arguments) == 0
    errors = errors_of(capsys.readouterr().out)
    assert errors["an RBF kernel"] < 0.2 * errors["the mean"]
    test = np.random.default_rng(0).permutation(60)[54:]
    train, weights = np.setdiff1d(np.arange(60), test), np.arange(60) % 3 + 1
    mean = np.average(y[train], weights=weights[train])
    expected = np.sqrt(np.average((y[test] - mean) ** 2, weights=weights[test]))
    assert errors["the mean"] == pytest.approx(expected, rel=1e-3)  # four digits are printed


@ROUGH
def test_the_bundled_series_is_called_by_its_name_and_compared_with_the_last_year(capsys):
    assert main(["--n-iter", "0", "--max-time", "0.01"]) == 0
    output = capsys.readouterr().out
    assert "[time]" in output
    assert not re.search(r"x0|\[0\]", output)
    errors = errors_of(output)
    assert errors[SMOOTHING] < 0.5 * errors["the last year repeated (seasonal-naive)"]
