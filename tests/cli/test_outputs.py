"""Files that the command line writes: predictions, models, pictures, reports."""

import csv
import re
import sys

import joblib
import numpy as np
import pandas as pd
import pytest
import skops.io

from autokernel.cli.run import main
from tests.cli.files import SHORT, lines, wave, write


def test_all_files_are_written_by_the_kernel_fitted_to_all_rows(tmp_path, capsys):
    path = wave(tmp_path)
    new = write(tmp_path, "name;junk;time\na;0,5;2001,5\nb;0,1;2004\n", name="new.csv")
    made = {name: tmp_path / f"made.{name}" for name in ("csv", "joblib", "png", "html")}
    arguments = [str(path), "--target", "level", *SHORT, "--predict", str(new)]
    arguments += ["--predictions", str(made["csv"]), "--output", str(made["joblib"])]
    arguments += ["--plot", str(made["png"]), "--report", str(made["html"])]
    arguments += ["--unit", "time=years", "--unit", "level=metres"]
    assert main(arguments) == 0
    printed = capsys.readouterr().out
    words = lines(printed.partition("What it says about level")[2])
    assert re.search(r"The average of .* is -?\d\S* metres", words)
    _, _, last = printed.partition("Fitting the kernel to all 30 rows")
    for label, name in (
        ("Predictions", "csv"),
        ("Model", "joblib"),
        ("Picture", "png"),
        ("Report", "html"),
    ):
        assert f"{label}: {made[name]}" in last
    model = joblib.load(made["joblib"])
    assert len(model.y_train_) == 30
    assert model.feature_names_in_.tolist() == ["time", "junk"]
    assert all("[0]" not in kernel for kernel in model.search_history_["kernel"])
    header, *rows = csv.reader(made["csv"].read_text().splitlines(), delimiter=";")
    assert header == ["name", "junk", "time", "mean", "std", "lower_95", "upper_95"]
    assert [row[:3] for row in rows] == [["a", "0,5", "2001,5"], ["b", "0,1", "2004"]]
    values = np.array([[float(cell.replace(",", ".")) for cell in row[3:]] for row in rows])
    X = pd.DataFrame({"time": [2001.5, 2004], "junk": [0.5, 0.1]})
    mean, std = model.predict(X, return_std=True)
    interval = model.predict_interval(X, 0.95)
    # eight digits are written
    np.testing.assert_allclose(values, np.c_[mean, std, interval], rtol=1e-7, atol=1e-9)
    assert made["png"].read_bytes().startswith(b"\x89PNG")
    page = made["html"].read_text()
    assert "wave.csv: level" in page
    assert "metres" in page


def test_a_series_with_dates_is_predicted_printed_and_drawn_and_kept_by_skops(tmp_path, capsys):
    dates = np.datetime64("2020-01-01") + 7 * np.arange(30)
    rows = "".join(f"{d},{np.sin(i):.3f}\n" for i, d in enumerate(dates.astype(str)))
    path = write(tmp_path, "day,level\n" + rows)
    new = write(tmp_path, "day\n2020-08-05\n", name="new.csv")
    arguments = [str(path), *SHORT, "--predict", str(new)]
    made = tmp_path / "made.skops"
    assert main([*arguments, "--output", str(made), "--plot", str(tmp_path / "f.svg")]) == 0
    printed = capsys.readouterr().out.partition("\nPredictions\n\n")[2].splitlines()
    assert printed[0] == "day,mean,std,lower_95,upper_95"
    assert printed[1].startswith("2020-08-05,")
    model = skops.io.load(made, trusted=skops.io.get_untrusted_types(file=made))
    predicted = model.predict(pd.DataFrame({"day": pd.to_datetime(["2020-08-05"])}))
    assert float(printed[1].split(",")[1]) == pytest.approx(predicted[0], rel=1e-7)
    assert "2020-03" in (tmp_path / "f.svg").read_text()


def test_rows_with_gaps_are_predicted_if_the_kernel_does_not_use_the_column(tmp_path, capsys):
    lines_of_file = wave(tmp_path).read_text().splitlines()
    for number in (4, 8):  # gaps of the column of no use
        lines_of_file[number] = lines_of_file[number].rpartition(",")[0] + ","
    lines_of_file[12] = lines_of_file[12].partition(",")[2].join([",", ""])
    path = write(tmp_path, "\n".join(lines_of_file))
    rows = "time,junk\n2001,1\n2002,\n,1\nNA,NA\n2003,0.5\n"
    new, made = write(tmp_path, rows, name="new.csv"), tmp_path / "made.csv"
    arguments = [str(path), "--target", "level", *SHORT, "--missing", "drop"]
    assert main([*arguments, "--predict", str(new), "--predictions", str(made)]) == 0
    output = lines(capsys.readouterr().out)
    assert "junk" not in output.partition("Best kernel ")[2].partition("What it says")[0]
    assert "3 rows of 30 left out, for missing values." in output
    assert "all 29 rows, 2 of them with gaps only in columns that it does not use" in output
    places = "line 4, column 'time': ''; line 5, column 'time': 'NA'"
    assert f"No prediction, for gaps: {places}." in output
    table = pd.read_csv(made, keep_default_na=False)
    assert (table["mean"] != "").tolist() == [True, True, False, False, True]
    assert (table["upper_95"] != "").tolist() == [True, True, False, False, True]
    assert table["time"].tolist() == ["2001", "2002", "", "NA", "2003"]
    whole = write(tmp_path, "time,junk\n2002,3\n", name="whole.csv")
    assert main([*arguments, "--predict", str(whole), "--predictions", str(made)]) == 0
    assert float(table["mean"][1]) == pytest.approx(pd.read_csv(made)["mean"][0], rel=1e-6)


def test_rows_with_gaps_in_the_column_that_predicts_are_kept_without_predictions(tmp_path, capsys):
    path = write(tmp_path, "x,y\n" + "".join(f"{i},{2 * i + i % 2}\n" for i in range(20)))
    new = write(tmp_path, "name,x\na,\nb,?\n", name="new.csv")
    assert main([str(path), *SHORT, "--predict", str(new)]) == 0
    printed = capsys.readouterr().out
    assert "line 2, column 'x': ''; line 3, column 'x': '?': predicted only if" in lines(printed)
    expected = ["name,x,mean,std,lower_95,upper_95", "a,,,,,", "b,?,,,,"]
    assert printed.partition("\nPredictions\n\n")[2].split() == expected


def test_where_noise_alone_is_best_there_is_no_picture_of_several_columns(tmp_path, capsys):
    rng = np.random.default_rng(0)
    rows = "\n".join(",".join(f"{one:.3f}" for one in row) for row in rng.normal(size=(25, 3)))
    path = write(tmp_path, f"a,b,y\n{rows}\n")
    picture = tmp_path / "p.png"
    assert main([str(path), *SHORT, "--plot", str(picture)]) == 0
    output = capsys.readouterr().out
    assert "Best kernel\n\n    NOISE" in output
    assert "Picture: none, because there is no component to draw" in output
    assert not picture.exists()


CANNOT_BE_WRITTEN = "must be a file that can be written, that no other option names"


@pytest.mark.parametrize(
    ("more", "absent", "message"),
    [
        (["--report", "nowhere/r.html"], None, f"--report {CANNOT_BE_WRITTEN}"),
        (["--report", "."], None, f"--report {CANNOT_BE_WRITTEN}, got ."),
        (["--output", "nowhere/m.joblib"], None, f"--output {CANNOT_BE_WRITTEN}"),
        (["--output", "m.pkl"], None, "names, and that ends in .skops or .joblib, got m.pkl"),
        (
            ["--plot", "P.PNG", "--report", "P.PNG"],
            None,
            f"--report {CANNOT_BE_WRITTEN}, got P.PNG",
        ),
        (["--plot", "p.docx"], None, "and that ends in .png or .svg or .pdf, got p.docx"),
        (["--predict", "nowhere.csv"], None, "nowhere.csv: No such file or directory"),
        (
            ["--predict", "wave.csv", "--predictions", "wave.csv"],
            None,
            f"--predictions {CANNOT_BE_WRITTEN}",
        ),
        (
            ["--output", "m.skops"],
            "skops",
            "--output m.skops needs skops: install it by pip install 'autokernel-gp[skops]'",
        ),
        (
            ["--plot", "p.png"],
            "matplotlib",
            "--plot p.png needs matplotlib: install it by pip install 'autokernel-gp[plot]'",
        ),
        (["--report", "r.html"], "matplotlib", "--report r.html needs matplotlib"),
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
    assert message in lines(captured.err)
    assert captured.out == ""
