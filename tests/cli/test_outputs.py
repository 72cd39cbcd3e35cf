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
from sklearn.base import clone

from autokernel import AutoKernelGPRegressor
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


def test_the_next_rows_of_a_series_are_printed_or_written(tmp_path, capsys):
    months = np.datetime64("2019-01") + np.arange(40)
    level = 20 + np.cumsum(np.random.default_rng(0).normal(size=40))
    rows = "".join(f"{m}-01,{v:.3f}\n" for m, v in zip(months, level, strict=True))
    path = write(tmp_path, "month,level\n" + rows)
    arguments = [str(path), "--strategy", "series", "--horizon", "3"]
    assert main(arguments) == 0
    *_, head, first, _, last = capsys.readouterr().out.splitlines()
    assert head.split() == ["month", "mean", "0.025", "0.5", "0.975"]
    assert (first.split()[0], last.split()[0]) == ("2022-05-01", "2022-07-01")
    made = tmp_path / "next.csv"
    assert main([*arguments, "--predictions", str(made)]) == 0
    assert f"Forecast: {made}" in capsys.readouterr().out
    table = pd.read_csv(made, parse_dates=["month"])
    assert table["month"].tolist() == list(pd.date_range("2022-05-01", periods=3, freq="MS"))
    assert np.all(np.diff(table["0.975"] - table["0.025"]) > 0)
    rows = pd.read_csv(path, parse_dates=["month"])  # the average of all kernels, given all rows
    model = AutoKernelGPRegressor(strategy="series", random_state=0)
    expected = model.fit(rows[["month"]], rows["level"]).forecast(3)
    np.testing.assert_allclose(table["mean"], expected["mean"], rtol=1e-7)


def test_next_rows_of_a_table_are_refused_before_the_search(tmp_path, capsys):
    path = write(tmp_path, "a,b,y\n" + "".join(f"{i},{i % 3},{i % 5}\n" for i in range(20)))
    assert main([str(path), "--horizon", "3"]) == 2
    assert "--horizon needs a single column of dates or numbers, got" in lines(
        capsys.readouterr().err
    )
    path = write(tmp_path, "a,y\n" + "".join(f"{i**0.5},{i % 5}\n" for i in range(20)))
    assert main([str(path), "--horizon", "3"]) == 2
    shown = capsys.readouterr()
    assert "forecast needs rows at equal steps" in lines(shown.err)
    assert "best kernel" not in shown.out


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


@pytest.mark.parametrize("missing", ["keep", "drop"])
def test_rows_with_gaps_are_predicted_whether_or_not_the_fit_had_such_rows(
    tmp_path, capsys, missing
):
    rows = wave(tmp_path).read_text().splitlines()
    rows[4] = rows[4].rpartition(",")[0] + ","  # of the column of no use
    rows[8] = "," + rows[8].partition(",")[2]
    rows[12] = re.sub(",.*,", ",NA,", rows[12])
    path = write(tmp_path, "\n".join(rows))
    new = write(tmp_path, "time,junk\n2001,1\n2001,\nNA,1\nNA,NA\n", name="new.csv")
    made, kept = tmp_path / "made.csv", tmp_path / "made.joblib"
    arguments = [str(path), "--target", "level", *SHORT, "--missing", missing]
    arguments += ["--predict", str(new), "--predictions", str(made), "--output", str(kept)]
    assert main(arguments) == 0
    n_rows = {"keep": 29, "drop": 27}[missing]
    output = lines(capsys.readouterr().out)
    assert "new.csv: Missing values are kept: 2 in time, 2 in junk." in output
    assert f"Fitting the kernel to all {n_rows} rows." in output
    assert len(joblib.load(kept).y_train_) == n_rows
    table = pd.read_csv(made, keep_default_na=False)
    assert table["time"].tolist() == ["2001", "2001", "NA", "NA"]
    assert (table["std"][2:] > 2 * table["std"][0]).all()  # the wave may be anywhere
    inside = table[["lower_95", "mean", "upper_95"]].to_numpy()
    assert (np.diff(inside, axis=1) > 0).all()


def shops(folder, n=60):
    """A CSV file of sales that depend on the shop; prices have gaps, and rows have weights."""
    rng = np.random.default_rng(0)
    prices, counts = rng.uniform(1, 3, n), rng.integers(1, 9, n)
    rows = "shop,price,n,sales\n"
    for i, (price, count) in enumerate(zip(prices, counts, strict=True)):
        shop = "NA" if i % 20 == 7 else "ABC"[i % 3]
        cell = "" if i % 9 == 4 else f"{price:.2f}"
        rows += f"{shop},{cell},{count},{10 * (i % 3) - price + 0.2 * rng.normal():.3f}\n"
    return write(folder, rows, name="shops.csv")


def test_categories_gaps_and_weights_reach_the_model_and_its_files(tmp_path, capsys):
    path = shops(tmp_path)
    new = write(tmp_path, "price,shop\n2,A\n2,C\n,C\n2,D\n2,\n", name="new.csv")
    made = {name: tmp_path / f"made.{name}" for name in ("csv", "joblib", "png", "html")}
    arguments = [str(path), "--weights", "n", "--n-iter", "4", "--predict", str(new)]
    arguments += ["--predictions", str(made["csv"]), "--output", str(made["joblib"])]
    arguments += ["--plot", str(made["png"]), "--report", str(made["html"])]
    assert main(arguments) == 0
    output = lines(capsys.readouterr().out)
    assert "CAT[shop]" in output
    assert "Test RMSE of sales, weighted" in output
    assert "levels of shop" in output
    assert made["png"].read_bytes().startswith(b"\x89PNG")
    assert "levels of shop" in made["html"].read_text()
    model = joblib.load(made["joblib"])
    assert model.feature_names_in_.tolist() == ["shop", "price"]
    assert model.categories_[0].values == ("A", "B", "C", None)
    assert np.isnan(model.X_train_).sum(axis=0).tolist() == [0, 7]
    predicted = pd.read_csv(made["csv"])
    X = pd.DataFrame({"shop": [*"ACCD", None], "price": [2.0, 2, np.nan, 2, 2]})
    mean, std = model.predict(X, return_std=True)
    # eight digits are written
    np.testing.assert_allclose(predicted[["mean", "std"]], np.c_[mean, std], rtol=1e-7)
    assert mean[1] - mean[0] == pytest.approx(20, abs=1)  # five standard errors
    assert std[2] > std[1]
    assert std[3] > 3 * std[1]
    table = pd.read_csv(path)
    weights = table["n"] / table["n"].mean()
    same = clone(model).refit(
        table[["shop", "price"]], table["sales"], model.best_expression_, sample_weight=weights
    )
    assert same.noise_variance_ == pytest.approx(model.noise_variance_, rel=1e-3)  # of optimisers


def test_only_ratios_of_weights_count_and_a_weight_of_zero_leaves_a_row_out(tmp_path, capsys):
    rows = wave(tmp_path).read_text().splitlines()
    texts = {
        "plain": rows,
        "threes": [f"{row},{'w' if i == 0 else 3}" for i, row in enumerate(rows)],
        "zero": [*(f"{row},{'w' if i == 0 else 3}" for i, row in enumerate(rows)), "2001,99,1,0"],
    }
    fits = {}
    for name, text in texts.items():
        path, made = write(tmp_path, "\n".join(text)), tmp_path / f"{name}.joblib"
        more = ["--weights", "w"] * (name != "plain")
        arguments = [str(path), "--target", "level", *SHORT, *more, "--output", str(made)]
        assert main(arguments) == 0
        output = capsys.readouterr().out
        assert ("1 row left out, for a weight of zero." in output) == (name == "zero")
        assert "Test RMSE of level\n" in output
        fits[name] = joblib.load(made)
    X = pd.DataFrame({"time": [2001.5, 2004], "junk": [0.5, 0.1]})
    for name in ("threes", "zero"):  # whose weights are one after their division
        np.testing.assert_allclose(fits[name].predict(X), fits["plain"].predict(X), rtol=1e-6)


def test_a_picture_of_a_single_category_shows_its_levels(tmp_path):
    path = write(
        tmp_path, "x,y\n" + "".join(f"{'abc'[i % 3]},{i % 3 + i / 99}\n" for i in range(20))
    )
    assert main([str(path), *SHORT, "--plot", str(tmp_path / "p.svg")]) == 0
    assert "levels of x" in (tmp_path / "p.svg").read_text()


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
