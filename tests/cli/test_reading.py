"""Files as numbers, dates and categories: what is understood, and what is refused with advice."""

import gzip

import numpy as np
import pandas as pd
import pytest

from autokernel.cli import main, parse, read_fit_rows
from tests.cli.files import QUICK, lines, write

PLAIN = "a,b,c\n1,2,3\n4,5,6\n7,8,9\n10,11,12\n"
SHOPS = "shop,nr,n,y\nA,3,2,1\nB b,3,1,2\nNA,7,4,3\nA,,2,4\nB b,10,1,5\nA,7,2,6\n"


def rows_of(folder, text, *more, encoding="utf-8"):
    """The rows that the command line reads from a text."""
    path = write(folder, text, encoding=encoding)
    return read_fit_rows(path, parse([str(path), *more]))


def refusal(folder, capsys, text, *more):
    """What the command line says about a file that it refuses."""
    assert main([str(write(folder, text)), *more]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    return lines(captured.err)


@pytest.mark.parametrize(
    ("text", "more"),
    [
        ("a;b\n1;2\n3;4\n5;6\n7;8\n", ()),
        ("a\tb\r\n1\t2\r\n3\t4\r\n5\t6\r\n7\t8\r\n", ()),
        ('"a", "b"\n1, 2\n 3 ,4\n5,6\n\n7e0,+8', ()),
        ("a;b;\n1;2;\n3;4;\n5;6\n7;8\n", ()),
        (",a,b\n0,1,2\n1,3,4\n2,5,6\n3,7,8\n", ()),
        ("a|b\n1|2\n3|4\n5|6\n7|8\n", ("--sep", "|")),
        ("a b\n1 2\n3  4\n5 6\n7 8\n", ("--sep", "space")),
        ("# of a buoy\na,b\n1,2 # calm\n3,4\n5,6\n7,8\n", ("--comment", "#")),
        ("a;b\n1,0;2\n3;4,0\n5;6\n7,;+8\n", ("--decimal", ",")),
        ('"a" ,b \n1,2\n3,4\n5,6\n7,8\n', ()),
        ('"a; in m",b\n1,2\n3,4\n5,6\n7,8\n', ()),
    ],
)
def test_separators_comments_and_decimal_marks_are_those_of_pandas(tmp_path, text, more):
    rows = rows_of(tmp_path, text, *more)
    [name] = rows.X
    assert name in ("a", "a; in m")
    assert rows.X[name].tolist() == [1, 3, 5, 7]
    assert rows.y.name == rows.target == "b"
    assert rows.y.tolist() == [2, 4, 6, 8]


@pytest.mark.parametrize(
    ("decimal", "thousands", "cells", "values"),
    [
        (".", ",", ["1,605.84", "12", "\u22121,234,567"], [1605.84, 12, -1234567]),
        (",", ".", ["1.100,00", "2.200", "0,5"], [1100, 2200, 0.5]),
        (".", "'", ["1'234.5", "2", "3"], [1234.5, 2, 3]),
        (",", "space", ["1 234,5", "2\u00a0000", "3"], [1234.5, 2000, 3]),
    ],
)
def test_thousands_have_a_mark_that_does_not_harm_dates(
    tmp_path, decimal, thousands, cells, values
):
    more = ["--decimal", decimal, "--thousands", thousands]
    text = "".join(f'"{cell}";{i}.12.2020;1\n' for i, cell in enumerate([*cells, "8"], start=20))
    rows = rows_of(tmp_path, f"b;day;y\n{text}", *more)
    assert rows.X["b"].tolist() == [*values, 8]
    assert rows.time.tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("cells", "form", "days"),
    [
        ("1949-01-01 1949-01-02 1949-02-01 1950-01-01", None, [1, 30, 334]),
        ("Jan_1949 Feb_1949 May_1949 Jun_1949", None, [31, 89, 31]),
        ("January_31,_2020 February_1,_2020 2_Feb_2020 2020-02-03", None, [1, 1, 1]),
        ("2020Q1 2020Q2 2020Q3 2020Q4", None, [91, 91, 92]),
        ("2023-W01 2023W02 2023_W3 2023-W04-2", None, [7, 7, 8]),
        ("2020M01 2020-M02 2020_M3 2020-04", None, [31, 29, 31]),
        ("2020H1 2020-H2 2021_S1 2021-S2", None, [182, 184, 181]),
        ("May_1,_2020_3:00_PM 2020/5/1_21:00 2_May_2020_3:00 5/5/2020", None, [0.25, 0.25, 2.875]),
        ("2022-12-26/2023-01-01 2023-01-02/2023-01-08 2023-01-09 2023-01-16", None, [7, 7, 7]),
        ("Jan-96 Feb-96 Mar-96 Apr-96", "%b-%y", [31, 29, 31]),
        ("31.12.2020 30.12.2020 29.12.2020 NA", None, [-1, -1, np.nan]),
        ("2020-01-01T00:00Z 2020-01-01T12:00Z 2020-01-02 2020-01-02T13:00+01:00", None, [0.5] * 3),
        ("01/02/2020 02/02/2020 03/02/2020 01/04/2020", "%d/%m/%Y", [1, 1, 58]),
        ("01/02/2020 01/03/2020 01/04/2020 01/13/2020", "%m/%d/%Y", [1, 1, 9]),
    ],
)  # fmt: skip
def test_dates_are_read_unless_day_and_month_may_be_swapped(tmp_path, cells, form, days):
    text = "".join(f"{cell.replace('_', ' ')};{i}\n" for i, cell in enumerate(cells.split()))
    rows = rows_of(tmp_path, f"date;y\n{text}", *(["--date-format", form] if form else []))
    assert rows.X["date"].dtype.kind == "M"
    np.testing.assert_allclose(np.diff(rows.time), days, rtol=0, atol=1e-9)  # 0.1 milliseconds


@pytest.mark.parametrize(
    ("index", "name", "kind"),
    [
        (pd.date_range("2020", periods=6, freq="MS"), "time", "date"),
        (pd.date_range("2020", periods=6, freq="h", tz="Asia/Tokyo"), "time", "date"),
        (pd.period_range("2020", periods=6, freq="Q"), "time", "date"),
        (1949 + np.arange(6) / 12, "index", "number"),
        (np.arange(6), "index", "number"),
    ],
)
@pytest.mark.parametrize("target", ["0", "sales"])
def test_the_index_of_a_series_is_its_input(tmp_path, index, name, kind, target):
    series = pd.Series(np.arange(6.0), index, name=None if target == "0" else target)
    rows = rows_of(tmp_path, series.to_csv())
    assert rows.kinds == {name: kind}
    assert rows.target == target
    assert rows.is_series


@pytest.mark.parametrize(
    ("index", "kinds"),
    [
        (pd.date_range("2020", periods=6), {"time": "date", "x": "number"}),
        (np.linspace(0, 1, 6), {"index": "number", "x": "number"}),
        (np.arange(6), {"x": "number"}),
        ([7, 3, 5, 20, 21, 30], {"x": "number"}),  # rows of a longer table
    ],
)
def test_an_index_without_a_name_is_an_input_unless_it_numbers_or_names_the_rows(
    tmp_path, index, kinds
):
    frame = pd.DataFrame({"x": np.arange(6.0), "y": 1.0}, index=index)
    assert rows_of(tmp_path, frame.to_csv(sep=";")).kinds == kinds
    with_time = frame.rename(columns={"x": "time"})
    kinds = {{"time": "index", "x": "time"}.get(name, name): kind for name, kind in kinds.items()}
    assert rows_of(tmp_path, with_time.to_csv()).kinds == kinds


@pytest.mark.parametrize(
    "cells",
    [["2020Q1", "2020Q5"], ["Jan 2020", "soon"], ["2023-W01", "2023-W54"], ["May 2020", "?"]],
)
def test_a_column_that_holds_a_date_is_no_category(tmp_path, capsys, cells):
    text = "".join(f"{cell},{i}\n" for i, cell in enumerate([cells[0]] * 4 + cells))
    assert f"row 6: {cells[1]!r}" in refusal(tmp_path, capsys, f"when,y\n{text}")


def test_rows_with_gaps_are_kept_or_dropped_and_counted(tmp_path):
    text = "a,b,c,y\n1,,,1\n2,NA,,2\n3,3,,?\n4,4,,4\n5,n/a,,5\n6,6,,6\n7,7,,7\n8,8,,8\n"
    rows = rows_of(tmp_path, text, "--na-values", "?")
    assert rows.y.tolist() == [1, 2, 4, 5, 6, 7, 8]
    assert list(rows.X) == ["a", "b"]  # c has no value
    assert rows.X["b"].isna().tolist() == [True, True, False, True, False, False, False]
    assert rows.notes[0].startswith("7 of 8 rows are used")
    rows = rows_of(tmp_path, text, "--na-values", "?", "--missing", "drop", "--drop", "c")
    assert rows.y.tolist() == [4, 6, 7, 8]


def test_texts_are_categories_and_numbers_are_on_request(tmp_path):
    rows = rows_of(tmp_path, SHOPS)
    assert rows.kinds == {"shop": "category", "nr": "number", "n": "number"}
    assert rows.X["shop"].fillna("none").tolist() == ["A", "B b", "none", "A", "B b", "A"]
    rows = rows_of(tmp_path, SHOPS, "--category", "nr", "--missing", "drop")
    assert rows.X["nr"].tolist() == ["3", "3", "10", "7"]


def test_weights_are_a_column_that_is_no_input_and_zero_leaves_a_row_out(tmp_path, capsys):
    rows = rows_of(tmp_path, SHOPS, "--weights", "n", "--drop", "nr")
    assert list(rows.X) == ["shop"]
    np.testing.assert_allclose(rows.weights, np.array([2, 1, 4, 2, 1, 2]) / 2, rtol=1e-15)
    text = "a,y,w\n1,2,1\n2,3,0\n3,,1\n4,5,\n5,6,1\n6,7,1\n7,8,1\n"
    assert rows_of(tmp_path, text, "--weights", "w").y.tolist() == [2, 6, 7, 8]
    message = refusal(tmp_path, capsys, PLAIN.replace("5", "-5"), "--weights", "b")
    assert "sample_weight must hold numbers from zero" in message


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "latin-1"])
def test_encodings_are_understood_or_need_a_name(tmp_path, capsys, encoding):
    path = write(tmp_path, "Höhe,y\n1,2\n3,4\n5,6\n7,8\n", encoding=encoding)
    more = ["--encoding", encoding] if encoding != "utf-8-sig" else []
    assert list(read_fit_rows(path, parse([str(path), *more])).X) == ["Höhe"]
    if more:
        assert main([str(path)]) == 2
        assert "quotation marks, --sep, --comment and --encoding" in lines(capsys.readouterr().err)


def test_a_compressed_file_is_read_and_a_broken_one_refused(tmp_path, capsys):
    path = tmp_path / "data.csv.gz"
    path.write_bytes(gzip.compress(PLAIN.encode()))
    assert read_fit_rows(path, parse([str(path)])).y.tolist() == [3, 6, 9, 12]
    path.write_bytes(gzip.compress(99 * PLAIN.encode())[:-12])
    assert main([str(path)]) == 2
    assert "data.csv.gz: Compressed file ended before the" in lines(capsys.readouterr().err)


@pytest.mark.parametrize(
    ("text", "more", "message"),
    [
        ("", "", "No columns to parse from file; check the line of names"),
        ("1,2\n3,4\n", "", "rows below a line of names such as x,y are expected, got ['1', '2']"),
        ("a|b\n1|2\n", "", "need a target and another column, got ['a|b']; see --sep and --drop"),
        (PLAIN, "--drop=a --drop=b", "need a target and another column, got ['c']"),
        (PLAIN, "--drop=b --target=b", "need a target and another column"),
        ("a,b\n1,2\n4,5,6\n", "", "Expected 2 fields in line 3, saw 3 ; check"),
        ("a,b\n1,5,2,5\n2,5,3,5\n", "", "does not match length of data"),
        ('a,b\n1,2\n3,"4\n5,6\n', "", "EOF inside string starting at row 2; check the line of"),
        ("a,b\n1,2\n2,3\n3,4\n", "", "4 rows with an input are needed, got 3"),
        ("a,y\n?,1\nNA,2\n,3\n,4\n", "--na-values=?", "4 rows with an input are needed"),
        (PLAIN, "--target=C1", "--target must be one of ['a', 'b', 'c'], got 'C1'; did you"),
        (PLAIN, "--drop=x", "--drop must be one of ['a', 'b', 'c'], got 'x'"),
        (SHOPS, "--weights=N", "['shop', 'nr', 'n', 'y'], got 'N'; did you mean 'n'?"),
        (SHOPS, "--target=shop", "date: 5, such as column 'shop', row 1: 'A'"),
        ("day,y\n2.1.2020,1\n3.1.2020,2\n", "", "column 'day', row 1: '2.1.2020'. Name the marks"),
        ("day,y\n2020-02-28,1\n", "--date-format=%d.%m.%Y", "--date-format %d.%m.%Y fits no col"),
        ("a;b\n1,5;1,5\n2,5;2.5\n", "--decimal=,", "date: 1, such as column 'b', row 2: '2.5'"),
        ("a;b;c\n1;2;3\n1,5;x;3\n", "", "column 'a', row 2: '1,5'; column 'b', row 2: 'x'."),
    ],
)
def test_a_file_that_cannot_be_used_is_refused_with_the_place_and_advice(
    tmp_path, capsys, text, more, message
):
    said = refusal(tmp_path, capsys, text, *more.split())
    assert said.startswith("autokernel: data.csv: ")
    assert message in said


@pytest.mark.parametrize("cell", ["12 kg", "7:30", "inf", "1e999", "1_0", "9%", "45,3", "sold out"])
def test_a_cell_that_is_no_finite_number_is_named(tmp_path, capsys, cell):
    said = refusal(tmp_path, capsys, PLAIN.replace("8", f'"{cell}"'))
    assert f"date: 1, such as column 'b', row 3: {cell!r}. Name the marks of numbers" in said
    assert "--category NAME, or leave them out by --drop NAME" in said
    if cell[0].isdigit():  # other texts are categories
        column = "".join(f'"{cell}",{i}\n' for i in range(5))
        assert "date: 5, such" in refusal(tmp_path, capsys, f"a,b\n{column}")


@pytest.mark.filterwarnings("default:max_time ended the search before any kernel")
def test_rows_to_predict_are_read_by_name_and_keep_their_cells(tmp_path, capsys):
    rows = "".join(f"{i};{i:02d}/01/2020;{'AB'[i % 2]};{i},5;{i}\n" for i in range(1, 10))
    path = write(tmp_path, f"id;date;shop;b;y\n{rows}")
    arguments = [str(path), "--drop", "id", "--decimal", ",", "--date-format", "%d/%m/%Y", *QUICK]
    for text, message in (
        ("b;date\n1;2\n", "new.csv: --predict needs ['date', 'shop', 'b'], not ('mean',"),
        ("b;date;shop;mean\n1;05/02/2020;A;3\n", "new.csv: --predict needs"),
        ("b;date;shop\n1.5;05/02/2020;A\n", "new.csv: cells without a number or date: 1, such"),
    ):
        new = write(tmp_path, text, name="new.csv")
        assert message in refusal(
            tmp_path, capsys, path.read_text(), *arguments[1:], "--predict", str(new)
        )
    text = "b;note;date;shop\n1,5;07;05/02/2020;A\n;x y;01/01/2020;C\n"
    assert main([*arguments, "--predict", str(write(tmp_path, text, name="new.csv"))]) == 0
    before, _, printed = capsys.readouterr().out.partition("Predictions\n\n")
    assert "New levels of shop: C." in before
    header, first, second = printed.splitlines()[:3]
    assert header == "b;note;date;shop;mean;std;lower_95;upper_95"
    assert first.startswith("1,5;07;05/02/2020;A;")
    assert second.startswith(";x y;01/01/2020;C;")
    new, made = (
        write(tmp_path, text.replace("x y", "é"), name="new.csv", encoding="cp1252"),
        tmp_path / "p.csv",
    )
    more = ["--predict", str(new), "--predictions", str(made), "--encoding", "cp1252"]
    assert main([*arguments, *more]) == 0
    assert ";é;01/01/2020;C;" in made.read_text(encoding="cp1252")
