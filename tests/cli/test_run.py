"""Arguments, a search on a file, what is printed, and the files that are written."""

import html
import re
import sys

import joblib
import numpy as np
import pandas as pd
import pytest

from autokernel import AutoKernelGPRegressor, __version__
from autokernel.cli import PREDICTED, main
from tests.cli.files import QUICK, lines, wave, write
from tests.fits import PATIENCE, running

pytestmark = pytest.mark.filterwarnings("default:max_time ended the search before")


def errors_of(output):
    """The test errors that are printed, by the name of the model."""
    return {
        name: float(error)
        for error, name in re.findall(r"^ {4,}([\d.e+-]+)  (.*)$", output, flags=re.MULTILINE)
    }


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        ("--version", 0, f"autokernel {__version__}"),
        ("--help", 0, "usage: autokernel [FILE] [options]"),
        ("--n-iter abc", 2, "argument --n-iter: invalid int value: 'abc'"),
        ("--missing mean", 2, "--missing: invalid choice: 'mean'"),
        ("--target y", 2, "--target needs a file"),
        ("--date-format %Y", 2, "--date-format needs a file"),
        ("--predictions p.csv", 2, "--predictions needs --predict FILE"),
    ],
)
def test_help_and_bad_arguments_end_the_program(capsys, monkeypatch, arguments, status, message):
    monkeypatch.setattr(sys, "argv", ["/usr/bin/autokernel"])
    with pytest.raises(SystemExit) as info:
        main(arguments.split())
    shown = capsys.readouterr()
    assert info.value.code == status
    assert message in shown.out + shown.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("--n-iter -3", r": --n-iter must be an int in the range \[0, inf\)\. Got -3 instead"),
        ("--max-time nan", ": --max-time must be a float in the range .* Got nan"),
        ("--n-jobs 0", ": --n-jobs must be an int in the range .* Got 0"),
        ("--strategy best", ": strategy must be one of .* got 'best'"),
        ("--operators +,x", r"operators must be a selection of .* got \['\+', 'x'\]"),
        ("--unit x=m", r"units must map names out of \['time', 'y'\] .* got 'x': 'm'"),
        ("--horizon -1", "horizon == -1, must be >= 1"),
        ("--explain 144", "--explain must be a row of the table, 0 to 143, got 144"),
    ],
)
def test_values_out_of_range_are_refused_before_the_search(capsys, arguments, message):
    assert main(arguments.split()) == 2
    captured = capsys.readouterr()
    assert re.search(message, lines(captured.err))
    assert captured.out == ""


def test_a_search_on_a_file_prints_kernel_words_table_and_test_errors(tmp_path, capsys):
    arguments = [str(wave(tmp_path)), "--target=level", "--strategy=greedy", "--n-iter=0"]
    arguments += ["--explain", "3"]
    assert main([*arguments, "--unit", "time=years", "--unit", "level=metres"]) == 0
    output = capsys.readouterr().out
    assert output.startswith(f"autokernel {__version__}: wave.csv\n20 of 20 rows are used")
    assert re.search(r"\n    time +20 +2000 +2003\n", output)
    assert "18 rows to train on, 2, drawn at random, to predict: level." in output
    progress = re.findall(r"^ +\d+ +\d+\.\d s +(\S+) +(.*)$", output, flags=re.MULTILINE)
    assert progress == sorted(progress, key=lambda row: float(row[0]))
    columns = {name for _, kernel in progress for name in re.findall(r"\[(.*?)\]", kernel)}
    assert {"time"} <= columns <= {"time", "junk"}
    assert output.count("the search ended") == 1
    for heading in ("Best kernel", "What it says about level", "Best 5 of ", "Test RMSE of level"):
        assert heading in output
    assert "metres" in output.partition("What it says about level")[2]
    _, _, contributions = output.partition("What makes up the prediction of row 3\n")
    rows = [line.split() for line in contributions.partition("\n\nBest")[0].split("\n") if line]
    assert (rows[0][0], rows[1][0], rows[-1][0]) == ("effect", "constant", "prediction")
    parts, whole = [float(row[1]) for row in rows[1:-1] if row[0] != "rest"], float(rows[-1][1])
    assert sum(parts) == pytest.approx(whole, rel=0.02)  # but for the rest and rounding
    assert max(len(line) for line in output.splitlines()) <= 100
    errors = errors_of(output)
    assert set(errors) == {"this model", "the mean", "straight lines", "an RBF kernel"}
    assert errors["this model"] < 0.3 * errors["the mean"]


@pytest.mark.parametrize(("row", "prediction"), [(0, 100.0), (3, 106.0)])
def test_a_row_is_explained_as_the_file_counts_it(tmp_path, capsys, row, prediction):
    rows = "".join(f"{x},{'' if x < 3 else 100 + 2 * x + 0.1 * (-1) ** x}\n" for x in range(24))
    path = write(tmp_path, f"x,y\n{rows}")  # the first three rows have no target
    assert main([str(path), *QUICK, "--explain", str(row)]) == 0
    _, _, parts = capsys.readouterr().out.partition(f"the prediction of row {row}\n")
    (found,) = re.findall(r"^ +prediction +(\S+)", parts, flags=re.MULTILINE)
    # row 3 of the used ones is six larger; the first row is three steps before the others
    assert float(found) == pytest.approx(prediction, abs=1)
    assert main([str(path), *QUICK, "--explain", "24"]) == 2
    assert "row of the table, 0 to 23, got 24" in lines(capsys.readouterr().err)


@pytest.mark.parametrize(
    ("spacing", "n", "season", "name"),
    [("h", 60, 24, "day"), ("B", 20, 5, "week"), ("MS", 30, 12, "year"), ("D", 6, None, None)],
)
def test_rows_with_dates_are_tested_by_time_against_naive_forecasts(
    tmp_path, capsys, spacing, n, season, name
):
    days = pd.date_range("2015-01-05", periods=n, freq=spacing)
    y = np.random.default_rng(0).normal(size=n)
    order = np.random.default_rng(1).permutation(n)
    rows = "".join(f"{days[i]},{y[i]}\n" for i in order)
    path = write(tmp_path, f"day,y\n,{y[0]}\n{rows}")  # a row without a time is not tested
    assert main([str(path), *QUICK]) == 0
    output, k = capsys.readouterr().out, max(1, n // 10)
    assert f"{n + 1 - k} rows to train on, {k}, the last, to predict: y." in output
    found = errors_of(output)
    expected = {"the last value": y[n - k - 1]}
    if season:
        expected[f"the last {name} repeated (seasonal-naive)"] = y[np.arange(n - k, n) - season]
    assert {one for one in found if "last" in one} == set(expected)
    for one, forecast in expected.items():
        # four digits are printed
        assert found[one] == pytest.approx(np.sqrt(np.mean((y[-k:] - forecast) ** 2)), rel=1e-3)


def test_the_next_rows_of_a_series_are_those_of_a_fit_to_all_rows(tmp_path, capsys):
    days = np.datetime64("2019-01-31") + np.arange(8)
    level = 20 + np.cumsum(np.random.default_rng(0).normal(size=8))
    text = "".join(f"{d},{v:.3f}\n" for d, v in zip(days, level, strict=True))
    path, made = write(tmp_path, f"day,level\n{text}"), tmp_path / "next.csv"
    arguments = ["--strategy", "series", "--horizon", "3", "--predictions", str(made)]
    assert main([str(path), *arguments, "--output", str(tmp_path / "made.joblib")]) == 0
    assert f"Forecast: {made}" in capsys.readouterr().out
    table = pd.read_csv(made, parse_dates=["day"])
    assert table["day"].tolist() == list(pd.date_range("2019-02-08", periods=3))
    kept = joblib.load(tmp_path / "made.joblib")
    np.testing.assert_allclose(table["mean"], kept.forecast(3)["mean"], rtol=1e-7)
    rows = pd.read_csv(path, parse_dates=["day"])  # the average of all kernels, given all rows
    direct = AutoKernelGPRegressor(strategy="series", random_state=0)
    expected = direct.fit(rows[["day"]], rows["level"]).forecast(3)
    np.testing.assert_allclose(table["mean"], expected["mean"], rtol=1e-7)


def test_next_rows_of_shops_take_the_next_prices_of_a_file(tmp_path, capsys):
    rng, shop = np.random.default_rng(0), ["A", "B"]
    frame = pd.DataFrame({"shop": np.repeat(shop, 15), "week": [*range(15)] * 2})
    frame["price"] = rng.uniform(1, 2, 30).round(3)
    frame["sales"] = 20 - 5 * frame["price"] + 4 * (frame["shop"] == "B") + rng.normal(size=30) / 9
    path = write(tmp_path, frame.to_csv(index=False))
    future = write(tmp_path, "price,shop\n1.2,B\n1.8,B\n1.5,A\n1.5,A\n", name="future.csv")
    made = tmp_path / "next.csv"
    more = ["--horizon", "2", "--future", str(future), "--predictions", str(made)]
    assert main([str(path), "--strategy", "series", *more]) == 0
    table = pd.read_csv(made)
    assert list(table)[:3] == ["shop", "week", "mean"]
    assert table[["shop", "week"]].to_numpy().tolist() == [
        ["B", 15],
        ["B", 16],
        ["A", 15],
        ["A", 16],
    ]
    np.testing.assert_allclose(table["mean"], [18, 15, 12.5, 12.5], atol=0.5)
    output = capsys.readouterr().out
    assert "future.csv has the inputs" in output
    write(tmp_path, "cost\n1.2\n", name="future.csv")
    assert main([str(path), *QUICK, *more[:4]]) == 2
    message = "--future needs columns out of ['shop', 'week', 'price'], got ['cost']"
    assert message in lines(capsys.readouterr().err)
    with pytest.raises(SystemExit):
        main([str(path), "--future", str(future)])
    assert "--future needs --horizon N" in capsys.readouterr().err


def test_the_console_and_the_report_speak_of_one_fit(tmp_path, capsys):
    days = pd.date_range("2020-01-31", periods=40, freq="ME")
    y = np.arange(40.0) + np.random.default_rng(0).normal(size=40)
    path = write(tmp_path, pd.Series(y, days, name="sales").to_csv())
    new = write(tmp_path, "time,shop\n2023-07-15,A\n2023-08-15,B\n", name="new.csv")
    more = ["--horizon", "2", "--predict", str(new), "--report", str(tmp_path / "r.html")]
    assert main([str(path), *QUICK, *more, "--explain", "0"]) == 0
    output = lines(capsys.readouterr().out)
    page = lines(re.sub("<[^>]*>", " ", html.unescape((tmp_path / "r.html").read_text())))
    sentences = output.partition("What it says about sales ")[2].partition(" What makes")[0]
    for sentence in re.split(r"(?<=\D)\. ", sentences):
        assert sentence in page
    held = re.search(r"Intervals of 95 % hold \d of 4 test values\.", output)[0]
    assert f"Fitted to 36 of 40 rows, the kernel predicts the others. {held}" in page
    for name, error in errors_of(output.replace("  ", " ")).items():
        assert f"{name} {error:.4g}" in page
    for name in ("Test RMSE of sales", "an RBF kernel", "2023-05-31", "2023-06-30", "lower_95"):
        assert name in page
    assert "2023-07-15 A" in page


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "a,b,y\n1,2,3\n2,3,5\n3,4,2\n4,3,1\n",
            "--horizon needs --future FILE with the next rows of b",
        ),
        ("a,y\nx1,3\nx2,5\nx3,2\nx4,1\n", "got {'a': 'category'}"),
        ("a,b,y\n1,.2,3\n1,.3,5\n3,.7,2\n9,.9,1\n", "--horizon needs a column of dates (name"),
        ("a,y\n1,3\n2,5\n7,2\n9,1\n", "forecast needs rows at equal steps"),
    ],
)
def test_next_rows_of_a_table_are_refused_before_the_search(tmp_path, capsys, text, message):
    assert main([str(write(tmp_path, text)), "--horizon", "3"]) == 2
    shown = capsys.readouterr()
    assert message in lines(shown.err)
    assert shown.out == ""


def shops(folder):
    """A file of sales that depend on the shop; prices have gaps, and a quarter has no weight."""
    rng, rows = np.random.default_rng(0), "shop;price;n;sales\n"
    for i in range(40):
        price, shop = rng.uniform(1, 3), "NA" if i % 20 == 7 else "ABC"[i % 3]
        sales = 10 * (i % 3) - price + 0.2 * rng.normal()
        rows += f"{shop};{'' if i % 9 == 4 else f'{price:.2f}'};{i % 4};{sales:.3f}\n"
    return write(folder, rows.replace(".", ","))


@pytest.mark.filterwarnings("ignore:.* rows have levels of column")
def test_categories_gaps_and_weights_reach_the_model_and_its_files(tmp_path, capsys):
    new = write(tmp_path, "price;shop\n2;A\n2;C\n;C\n2;D\n2;\n", name="new.csv")
    made = {name: tmp_path / f"made.{name}" for name in ("csv", "joblib", "png")}
    arguments = [str(shops(tmp_path)), "--weights", "n", "--decimal", ",", "--predict", str(new)]
    options = ("--predictions", "--output", "--plot")
    arguments += [f"{name}={path}" for name, path in zip(options, made.values(), strict=True)]
    assert main([*arguments, "--n-iter", "0", "--max-time", "3"]) == 0
    output = capsys.readouterr().out
    assert "Test RMSE of sales, weighted" in output
    errors = errors_of(output)
    assert errors["straight lines"] < 0.2 * errors["the mean"]  # they know the shops
    for line in ("Predictions", "Model", "Picture"):
        assert f"\n{line}: {tmp_path / 'made'}" in output.partition("kernel to all 30 rows")[2]
    assert made["png"].read_bytes().startswith(b"\x89PNG")
    model = joblib.load(made["joblib"])
    assert model.feature_names_in_.tolist() == ["shop", "price"]
    assert model.categories_[0].values == ("A", "B", "C", None)
    assert np.isnan(model.X_train_).sum(axis=0).tolist() == [0, 3]
    written = pd.read_csv(made["csv"], sep=";", decimal=",")[[*PREDICTED]].to_numpy()
    X = pd.DataFrame({"shop": [*"ACCD", None], "price": [2.0, 2, np.nan, 2, 2]})
    mean, std = model.predict(X, return_std=True)
    # eight digits are written
    np.testing.assert_allclose(written, np.c_[mean, std, model.predict_interval(X)], rtol=1e-7)
    assert mean[1] - mean[0] == pytest.approx(20, abs=1)  # five standard errors
    assert std[2] > std[1]
    assert std[3] > 3 * std[1]


@pytest.mark.filterwarnings("default")
def test_warnings_are_sentences_and_noise_alone_has_no_picture(tmp_path, capsys):
    path = write(tmp_path, "x,z,y\n" + "".join(f"1,2,{i % 5 / 2}\n" for i in range(20)))
    made = ["--plot", str(tmp_path / "p.png"), "--report", str(tmp_path / "r.html")]
    assert main([str(path), "--n-iter", "0", *made]) == 0
    shown = capsys.readouterr()
    assert "Note: every column of X is constant" in lines(shown.err)
    assert ".py" not in shown.err
    assert "UserWarning" not in shown.err
    assert "Best kernel\n\n    NOISE" in shown.out
    assert "Picture: none, because noise alone is best" in shown.out
    assert not (tmp_path / "p.png").exists()
    assert f"Report: {tmp_path / 'r.html'}" in shown.out
    assert "No structure was found" in (tmp_path / "r.html").read_text()


@pytest.mark.parametrize(
    ("more", "absent", "message"),
    [
        (["--report", "nowhere/r.html"], None, "--report must be a new file that can be written"),
        (["--report", "."], None, "--report must be a new file that can be written, got ."),
        (["--output", "m.pkl"], None, "must be a .skops or .joblib file that can be written"),
        (["--plot", "P.PNG", "--report", "P.PNG"], None, "--report must be a new file"),
        (["--predict", "wave.csv", "--predictions", "wave.csv"], None, "--predictions must be a"),
        (["--predict", "nowhere.csv"], None, "No such file or directory: 'nowhere.csv'"),
        (["--output", "m.skops"], "skops", "m.skops needs skops: pip install skops"),
        (["--plot", "p.png"], "matplotlib", "p.png needs matplotlib: pip install matplotlib"),
    ],
)
def test_files_and_their_packages_are_checked_before_the_search(
    tmp_path, capsys, monkeypatch, more, absent, message
):
    monkeypatch.chdir(tmp_path)
    if absent:
        monkeypatch.setitem(sys.modules, absent, None)  # as if it were not installed
    assert main([str(wave(tmp_path)), "--target", "level", *more]) == 2
    captured = capsys.readouterr()
    assert (
        lines(captured.err).removesuffix(" ").endswith(message)
        if absent
        else message in lines(captured.err)
    )
    assert captured.out == ""


WITHOUT_EXTRAS = """
import sys, sklearn.gaussian_process, sklearn.datasets  # which import pandas if they can
EXTRAS, asked = ("matplotlib", "pandas", "rich", "skops"), []
class Absent:
    def find_spec(name, *_):
        if name in EXTRAS:
            asked.append(name)
            raise ImportError(name)
for extra in EXTRAS:
    sys.modules.pop(extra, None)
sys.meta_path.insert(0, Absent)
import autokernel, autokernel.displays, autokernel.export
from autokernel.__main__ import main
assert asked == [], asked
"""


def test_a_bare_install_loads_no_extra_runs_airline_and_names_the_extra_that_reads_files(tmp_path):
    path = write(tmp_path, "a,b\n1,2\n")
    program = WITHOUT_EXTRAS + (
        f"assert main([{str(path)!r}]) == 2\n"
        "assert main(['--n-iter', '0', '--max-time', '0.01', '--horizon', '2']) == 0"
    )
    with running(program) as process:
        output, errors = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, errors
    assert "pip install 'autokernel-gp[cli]'" in lines(errors)
    assert "x0, or [0], is the time: years." in output
    assert "Test RMSE of passengers" in output
    assert "the last year repeated (seasonal-naive)" in errors_of(output)
    assert "Forecast" in output


@pytest.mark.parametrize("form", ["{y} Q{q}", "{q} March {y}"])
def test_dates_of_any_form_are_forecast(tmp_path, capsys, form):
    dates = [form.format(y=1990 + i // 4, q=1 + i % 4) for i in range(24)]
    y = np.arange(24) + np.random.default_rng(0).normal(size=24).round(3)
    path = write(tmp_path, pd.Series(y, dates, name="sales").to_csv())
    assert main([str(path), *QUICK, "--horizon", "2"]) == 0
    first, second = re.findall(r"^(\d{4}-\d\d-\d\d)  ", capsys.readouterr().out, flags=re.MULTILINE)
    if "Q" in form:
        assert (first, second) == ("1996-01-01", "1996-04-01")
    else:
        assert first[:4] == second[:4] == "1996"
