"""Files as numbers, dates and categories: what is understood, what is refused, and advice."""

import gzip
import re

import numpy as np
import pandas as pd
import pytest
from autokernel.cli.options import parse
from autokernel.cli.reading import read_new_rows, read_table

from autokernel.__main__ import main
from tests.cli.files import lines, write
from tests.fits import PATIENCE, running

PLAIN = "a,b,c\n1,2,3\n4,5,6\n7,8,9\n10,11,12\n"


def table_of(folder, text, *more, encoding="utf-8"):
    """The table that the command line reads from a text."""
    path = write(folder, text, encoding=encoding)
    return read_table(path, parse([str(path), *more]))


def refusal(folder, capsys, text, *more):
    """What the command line says about a file that it refuses."""
    assert main([str(write(folder, text)), *more]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    return lines(captured.err)


@pytest.mark.parametrize(
    ("text", "more"),
    [
        ("a,b\n1,2\n3,4\n5,6\n7,8\n", ()),
        ("a;b\n1;2\n3;4\n5;6\n7;8\n", ()),
        ("a\tb\r\n1\t2\r\n3\t4\r\n5\t6\r\n7\t8\r\n", ()),
        ('"a", "b"\n1, 2\n 3 ,4\n5,6\n7,8', ()),
        ("\n\na;b\n1;2\n\n3;4\n;\n5;6\n7;8\n", ()),
        ("a;b;\n1;2;\n3;4;\n5;6\n7;8\n", ()),
        ("a|b\n1|2\n3|4\n5|6\n7|8\n", ("--sep", "|")),
        ("a b\n1 2\n3  4\n5 6\n7 8\n", ("--sep", "space")),
        ("# of a buoy\n#\na,b\n1,2\n3,4\n# calm\n5,6\n7,8\n", ()),
        (",a,b\n0,1,2\n1,3,4\n2,5,6\n3,7,8\n", ()),
        ("a;b\n1.0;2\n3;4.0\n5;6\n7e0;8\n", ()),
        ("a;b\n1,0;2\n3;4,0\n5;6\n7,;+8\n", ()),
    ],
)
def test_separators_comments_and_decimal_marks_are_understood(tmp_path, text, more):
    table = table_of(tmp_path, text, *more)
    assert list(table.X) == ["a"]
    assert table.target == "b"
    assert table.X["a"].tolist() == [1, 3, 5, 7]
    assert table.y.tolist() == [2, 4, 6, 8]
    expected = []
    if "#" in text:
        expected = ["Lines that begin with # are left out."]
    elif text.startswith(","):
        expected = ["Column 1 has no name and numbers the rows: it is left out."]
    elif "1,0" in text:
        expected = ["Numbers have decimal commas."]
    assert table.notes == expected


@pytest.mark.parametrize(
    ("cells", "values", "note"),
    [
        (
            ["1,605.84", "12", "1,234", "-3.5"],
            [1605.84, 12, 1234, -3.5],
            "1,605.84 is read as 1605.84",
        ),
        (["1.100,00", "2.200", "0,5", "7"], [1100, 2200, 0.5, 7], "1.100,00 is read as 1100"),
        (["1,234,567", "1,234", "5", "6"], [1234567, 1234, 5, 6], "1,234,567 is read as 1234567"),
        (["1'234.5", "2", "3", "4"], [1234.5, 2, 3, 4], "1'234.5 is read as 1234.5"),
        (["1 234,5", "2", "3", "4"], [1234.5, 2, 3, 4], "1 234,5 is read as 1234.5"),
        (["9%", "10 %", "0.5%", "-1%"], [9, 10, 0.5, -1], "9% is read as 9, in per cent"),
        (["9,5 %", "NA", "1 %", "2 %"], [9.5, 1, 2], "9,5 % is read as 9.5, in per cent"),
    ],
)
@pytest.mark.parametrize("sep", ",;")
def test_thousands_and_per_cent_are_read_as_the_whole_column_decides(
    tmp_path, sep, cells, values, note
):
    rows = "".join(f'{i}.5{sep}"{cell}"{sep}{i}\n' for i, cell in enumerate(cells))
    rows += f'8{sep}"{cells[0]}"{sep}8\n'
    table = table_of(tmp_path, f"a{sep}b{sep}y\n{rows}", "--missing", "drop")
    assert table.X["b"].dropna().tolist() == [*values, values[0]]
    assert f"b: {note}." in table.notes
    assert table.X["a"].iloc[0] == 0.5  # which another column does not change


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("a,b\n1,1.234\n2,2.345\n3,3.456\n4,4.567\n", [1.234, 2.345, 3.456, 4.567]),
        ("a;b\n1,5;1,234\n2;2,345\n3;3,456\n4;4,567\n", [1.234, 2.345, 3.456, 4.567]),
        ("a;b\n1.5;1.234\n2;2.345\n3;3.456\n4;4.567\n", [1.234, 2.345, 3.456, 4.567]),
    ],
)
def test_three_decimals_are_those_of_the_file_and_no_thousands(tmp_path, text, values):
    assert table_of(tmp_path, text).y.tolist() == values


@pytest.mark.parametrize(
    "text",
    [
        'a,b\n1,"1,234"\n2,"2,345"\n3,345\n4,4\n',
        'a,b\n1.5,"1,234"\n2,"2,345"\n3,345\n4,4\n',
        "a;b\n1;1,234\n2;2,345\n3;345\n4;4\n",
        "a;b\n1.5;1,234\n2;2,345\n3;345\n4;4\n",
    ],
)
def test_thousands_that_may_be_decimals_need_a_decimal_mark(tmp_path, capsys, text):
    assert "'1,234' may be 1234 or 1.234, and no" in refusal(tmp_path, capsys, text)
    assert table_of(tmp_path, text, "--decimal", ".").y.tolist() == [1234, 2345, 345, 4]
    table = table_of(tmp_path, text, "--decimal", ",")
    assert table.y.tolist() == [1.234, 2.345, 345, 4]
    assert table.X["a"].iloc[0] == (1.5 if "1.5" in text else 1)


@pytest.mark.parametrize(
    ("given", "meant"),
    [("umsatz", "Umsatz (€), total"), ("Temperature", "Temperatur"), ("nothing", None)],
)
def test_a_column_with_a_similar_or_longer_name_is_suggested(tmp_path, capsys, given, meant):
    text = '"Temperatur","Umsatz (€), total",c\n1,2,3\n'
    for option in ("--target", "--drop"):
        said = refusal(tmp_path, capsys, text, option, given)
        suggestion = f"; did you mean {meant!r}?" if meant else ""
        assert f"got {given!r}{suggestion}" in said
        assert ("did you mean" in said) == bool(meant)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "latin-1"])
def test_encodings_are_understood_and_a_guess_is_noted(tmp_path, encoding):
    table = table_of(tmp_path, "Höhe,y\n1,2\n3,4\n5,6\n7,8\n", encoding=encoding)
    assert list(table.X) == ["Höhe"]
    assert ["Latin-1" in note for note in table.notes] == [True] * (encoding == "latin-1")


def test_a_compressed_file_is_read_and_a_broken_one_refused(tmp_path, capsys):
    path = tmp_path / "data.csv.gz"
    path.write_bytes(gzip.compress(PLAIN.encode()))
    assert read_table(path, parse([str(path)])).y.tolist() == [3, 6, 9, 12]
    path.write_bytes(gzip.compress(99 * PLAIN.encode())[:-12])
    assert main([str(path)]) == 2
    errors = lines(capsys.readouterr().err)
    assert "data.csv.gz: Compressed file ended before the end-of-stream marker" in errors


def test_columns_are_chosen_by_target_and_drop(tmp_path):
    table = table_of(tmp_path, PLAIN, "--target", "a")
    assert list(table.X) == ["b", "c"]
    assert table.y.tolist() == [1, 4, 7, 10]
    table = table_of(tmp_path, PLAIN.replace("3\n", "three\n"), "--drop", "c")
    assert list(table.X) == ["a"]
    assert table.target == "b"


@pytest.mark.parametrize(
    ("cells", "form", "days"),
    [
        (["1949-01-01", "1949-01-02", "1949-02-01", "1950-01-01"], "ISO8601", [1, 30, 334]),
        (["1949-01", "1949-02", "1949-03", "1950-01"], "ISO8601", [31, 28, 306]),
        (["31.12.2020", "01.01.2021", "02.01.2021", "03.01.2021"], "%d.%m.%Y", [1, 1, 1]),
        (["31.12.20", "01.01.21", "02.01.21", "03.01.21"], "%d.%m.%y", [1, 1, 1]),
        (["01/02/2020", "01/03/2020", "01/04/2020", "13/4/2020"], "%d/%m/%Y", [29, 31, 12]),
        (["01/02/2020", "01/03/2020", "01/04/2020", "1/13/2020"], "%m/%d/%Y", [1, 1, 9]),
        (["2020/02/28", "2020/02/29", "2020/03/01", "2020/03/02"], "%Y/%m/%d", [1, 1, 1]),
        (["Jan 1949", "Feb 1949", "May 1949", "Jun 1949"], "%b %Y", [31, 89, 31]),
        (
            ["31.12.2020 06:00", "31.12.2020 12:00", "31.12.2020 18:00", "01.01.2021 00:00"],
            "%d.%m.%Y %H:%M",
            [0.25, 0.25, 0.25],
        ),
        (
            [
                "2020-01-01T00:00:00Z",
                "2020-01-01T12:00:00Z",
                "2020-01-02",
                "2020-01-03T01:00+01:00",
            ],
            "ISO8601",
            [0.5, 0.5, 1],
        ),
        (
            ["1/31/2020 1:00 AM", "1/31/2020 1:00 PM", "2/1/2020 1:00 AM", "2/1/2020 1:00 PM"],
            "%m/%d/%Y %I:%M %p",
            [0.5, 0.5, 0.5],
        ),
    ],
)
def test_dates_are_read_as_the_whole_column_writes_them(tmp_path, cells, form, days):
    text = "date;y\n" + "\n".join(f"{cell};{i}" for i, cell in enumerate(cells))
    table = table_of(tmp_path, text)
    steps = np.diff(table.X["date"].to_numpy()) / np.timedelta64(1, "D")
    np.testing.assert_allclose(steps, days, rtol=0, atol=1e-9)  # 0.1 milliseconds
    assert table.notes == [f"date: dates such as {cells[0]} ({form})."]


def test_dates_that_the_column_does_not_decide_need_a_format(tmp_path, capsys):
    text = "date,y\n01/01/2020,1\n01/02/2020,2\n01/03/2020,3\n01/04/2020,4\n"
    message = refusal(tmp_path, capsys, text)
    assert "line 3, column 'date': '01/02/2020' may be 2020-02-01 or 2020-01-02" in message
    assert "--date-format '%d/%m/%Y' or --date-format '%m/%d/%Y'" in message
    table = table_of(tmp_path, text, "--date-format", "%d/%m/%Y")
    assert table.X["date"].iloc[1] == pd.Timestamp(2020, 2, 1)
    table = table_of(tmp_path, text, "--date-format", "%m/%d/%Y")
    assert table.X["date"].iloc[1] == pd.Timestamp(2020, 1, 2)


def test_a_format_makes_dates_of_numbers(tmp_path, capsys):
    text = "date,y\n20200228,1\n20200229,2\n20200301,3\n20200302,4\n"
    assert table_of(tmp_path, text).dates == []
    table = table_of(tmp_path, text, "--date-format", "%Y%m%d")
    assert table.X["date"].iloc[1] == pd.Timestamp(2020, 2, 29)
    message = refusal(tmp_path, capsys, text, "--date-format", "%d/%m/%Y")
    assert "--date-format must be that of a column" in message


MISSING = "a,b,y\n1,,1\n2,NA,2\n3,3,?\n4,4,-\n5,5,5\n6,NaN,6\n7,7,null\n8,8,8\n9,9,9\n10,10,10\n"


@pytest.mark.parametrize(
    ("more", "y", "gaps", "notes"),
    [
        (
            (),
            [1, 2, 5, 6, 8, 9, 10],
            [True, True, False, True, False, False, False],
            [
                "3 rows of 10 left out, for missing values of y.",
                "Missing values are kept: 3 in b.",
            ],
        ),
        (
            ("--missing", "drop"),
            [5, 8, 9, 10],
            [False] * 4,
            ["6 rows of 10 left out, for missing values."],
        ),
    ],
)
def test_rows_with_gaps_are_kept_or_dropped_and_counted(tmp_path, more, y, gaps, notes):
    table = table_of(tmp_path, MISSING, *more)
    assert table.y.tolist() == y
    assert table.X["b"].isna().tolist() == gaps
    assert table.notes == notes
    text = MISSING.replace("?", "3").replace("-", "4").replace("null", "7")
    assert len(table_of(tmp_path, text, "--drop", "b", *more).y) == 10


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "a,b,y\n1,,1\n2,NA,2\n3,,3\n4,,4\n",
            "line 3, column 'b': 'NA'; line 4, column 'b': ''; and 1 more. Fill them in, keep them "
            "by --missing keep, or leave out their rows by --missing drop or their columns by "
            "--drop b",
        ),
        (
            MISSING,
            "missing values in 6 rows: line 2, column 'b': ''; line 3, column 'b': 'NA'; lin",
        ),
        ("a,b\nx,1\n,2\ny,3\nx,4\n", "missing values in 1 row: line 3, column 'a': ''"),
    ],
)
def test_gaps_are_named_on_request(tmp_path, capsys, text, message):
    assert message in refusal(tmp_path, capsys, text, "--missing", "error")


def test_a_column_without_values_is_left_out(tmp_path, capsys):
    table = table_of(tmp_path, "a,b,y\n1,,1\n2,NA,2\n3,,3\n4,,4\n,x,\n")
    assert list(table.X) == table.names == ["a"]
    assert "b: left out, without a value." in table.notes
    message = refusal(tmp_path, capsys, "a,y\n?,1\nNA,2\n,3\n,4\n")
    assert "no column has values to predict from" in message


SHOPS = "shop,nr,n,y\nA,3,2,1\nB b,3,1,2\nNA,7,4,3\nA,,2,4\nB b,10,1,5\nA,7,2,6\n"


def test_a_column_of_text_is_a_category_whose_gaps_stay(tmp_path):
    table = table_of(tmp_path, SHOPS)
    assert table.categories == ["shop"]
    assert table.X["shop"].dropna().tolist() == ["A", "B b", "A", "B b", "A"]
    assert table.X["shop"].isna().tolist() == [False, False, True, False, False, False]
    assert table.notes == [
        "shop: a category with 2 levels, such as A.",
        "Missing values are kept: 1 in shop, 1 in nr.",
    ]


def test_a_column_of_numbers_is_a_category_on_request(tmp_path):
    table = table_of(tmp_path, SHOPS, "--category", "nr", "--category", "shop")
    assert table.categories == ["shop", "nr"]
    assert table.X["nr"].dropna().tolist() == ["3", "3", "7", "10", "7"]
    assert "nr: a category with 3 levels in 5 rows, such as 3; --drop nr leaves it out." in (
        table.notes
    )


def test_numbers_and_dates_are_seen_behind_a_few_texts(tmp_path, capsys):
    texts = "".join(f"{cell},{i}\n" for i, cell in enumerate([*"abcdef", *["2020-01-20"] * 9]))
    said = refusal(tmp_path, capsys, f"day,y\n{texts}")
    assert "no number or date in line 2, column 'day': 'a'" in said
    assert "take columns as categories by --category day, or leave columns out by --drop day" in (
        said
    )
    table = table_of(tmp_path, f"day,y\n{texts}", "--category", "day")
    assert table.X["day"].nunique() == 7


def test_the_target_and_weights_are_never_categories(tmp_path, capsys):
    for more in (["--target", "shop"], ["--weights", "shop"]):
        said = refusal(tmp_path, capsys, SHOPS, *more)
        assert "no number or date in line 2, column 'shop': 'A'" in said
        assert "--category" not in said


def test_weights_are_a_column_that_is_no_input(tmp_path):
    table = table_of(tmp_path, SHOPS, "--weights", "n", "--drop", "nr")
    assert table.names == ["shop"]
    np.testing.assert_allclose(table.weights, np.array([2, 1, 4, 2, 1, 2]) / 2, rtol=1e-15)
    assert "n: weights of the rows, from 1 to 4, used over their mean." in table.notes
    last = table_of(tmp_path, "a,y,w\n1,2,1\n2,3,0\n3,,\n4,5,1\n5,6,1\n6,7,1\n", "--weights", "w")
    assert last.target == "y"
    assert last.y.tolist() == [2, 5, 6, 7]
    assert last.notes[:2] == [
        "1 row of 6 left out, for missing values of y.",
        "1 row left out, for a weight of zero.",
    ]


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--weights", "N"], "--weights must be one of ['shop', 'nr', 'n'], got 'N'; did you mean"),
        (
            ["--weights", "y", "--target", "y"],
            "--weights must be one of ['shop', 'nr', 'n'], got 'y', which is the target",
        ),
        (
            ["--weights", "nr"],
            "--weights must hold numbers from zero, got line 5, column 'nr': ''. A weight of 0",
        ),
        (["--category", "Shop"], "--category must be one of ['shop', 'nr', 'n'], got 'Shop'; did"),
        (["--category", "y"], "['shop', 'nr', 'n'], got 'y', which is the target"),
        (["--category", "n", "--weights", "n"], "--category must be one of ['shop', 'nr'], got"),
    ],
)
def test_names_of_categories_and_weights_are_checked(tmp_path, capsys, more, message):
    assert message in refusal(tmp_path, capsys, SHOPS, *more)


def test_weights_below_zero_are_refused_with_their_places(tmp_path, capsys):
    said = refusal(tmp_path, capsys, PLAIN.replace("5", "-5"), "--weights", "b")
    assert "--weights must hold numbers from zero, got line 3, column 'b': '-5'" in said


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the file is empty: it must have a line of column names"),
        (" \n\n", "the file is empty"),
        ("a,b\n", "there is a line of column names, and no row below it"),
        ("a\n1\n2\n", "found one column, 'a': there must be another one to predict it from"),
        ("a|b\n1|2\n", "found one column, 'a|b'"),
        ("1,2\n3,4\n", "line 1 must have the names of the columns, such as x,y, got ['1', '2']"),
        ("2020-01-01,2\n2020-01-02,4\n", "line 1 must have the names of the columns"),
        ("a,,b\n1,2,3\n", "line 2, column 2 has no name; the separator is ','"),
        ("\na,b,a\n1,2,3\n", "line 2: two columns are called 'a': rename one of them"),
        ("a,b\n1,2\n\n4,5,6\n9,9\n", "line 4, column 3 has no name; the separator is ','"),
        ('a,b\n1,2\n\n3,"4\n5,6\n', "EOF inside string starting at line 4; is a quotation"),
        ("a,b\n1\0,2\n", "an Excel file, or no text: save the table as CSV"),
        ("PK\x03\x04...", "an Excel file, or no text: save the table as CSV"),
        ("a,b\n1,2\n2,3\n3,4\n", "3 rows to fit, at least 4 are needed"),
        ("y,date\n1,2020-01-01\n2,2020-01-02\n3,2020-01-03\n4,2020-01-04\n", "(--target names"),
        ("d,y\n2020-02-27,1\n2020-02-28,2\n2020-02-29,3\n2020-02-30,4\n", "'2020-02-30'. Write"),
        (
            "a;b\n1,5;1,5\n2,5;2.5\n3;3\n4;4,5\n",
            "line 3, column 'b': '2.5'. Write numbers such as 1234,5",
        ),
        ("a;b\n1;2.5\n2;1.234,5\n", "line 3, column 'b': '1.234,5'. Write numbers such as 1234.5"),
        (
            "a;b\n1;9 %\n2;0.09\n3;8%\n",
            "'0.09'. Write numbers such as 1234.5, without units, with % in",
        ),
        (
            "a;b\n1;$2\n2;$3\n3;$4\n4;$5\n",
            "'$4'; and 1 more. Write numbers such as 1234.5, without un",
        ),
        ("a,b\n1,S1\n2,S2\n3,S3\n4,S4\n", "no number or date in line 2, column 'b': 'S1'"),
        (
            "city,full name,y\nBern,1,1\n2,C D,2\n1,E F,3\nOslo,2,4\n",
            "line 4, column 'full name': 'E F'; and 1 more. Write numbers such as 1234.5, without "
            "units, take columns as categories by --category city --category 'full name', or leave "
            "columns out by --drop city --drop 'full name'",
        ),
    ],
)
def test_a_file_that_cannot_be_used_is_refused_with_the_place_and_advice(
    tmp_path, capsys, text, message
):
    said = refusal(tmp_path, capsys, text)
    assert said.startswith("autokernel: data.csv: ")
    assert message in said


def test_all_troubles_of_a_file_are_reported_in_one_run(tmp_path, capsys):
    rows = "".join(f'0{i}/0{i}/2020,{"A" * (i % 2)}{i},"{i},234",{i},5\n' for i in range(1, 9))
    rows += "01/02/2020,B,,x,\n"
    more = ["--target", "Y2", "--drop", "z", "--category", "v", "--weights", "w"]
    said = refusal(tmp_path, capsys, f"day,shop,sales,rate,y\n{rows}", *more, "--missing", "error")
    assert said.count("autokernel: data.csv: ") == 8
    for trouble in (
        "--drop must be one of ['day', 'shop', 'sales', 'rate', 'y'], got 'z'",
        "--target must be one of ['day', 'shop', 'sales', 'rate', 'y'], got 'Y2'",
        "line 10, column 'day': '01/02/2020' may be 2020-02-01 or 2020-01-02, and no other value",
        "line 2, column 'sales': '1,234' may be 1234 or 1.234, and no other value of the column "
        "decides: choose by --decimal '.' or --decimal ','",
        "line 2, column 'shop': 'A1'; line 4, column 'shop': 'A3'; line 10, column 'rate': 'x'",
        "as categories by --category shop --category rate, or leave columns out by --drop shop "
        "--drop rate",
        "--category must be one of ['day', 'shop', 'sales', 'rate', 'y'], got 'v'",
        "--weights must be one of ['day', 'shop', 'sales', 'rate', 'y'], got 'w'",
        "missing values in 1 row: line 10, column 'sales': ''; line 10, column 'y': ''. Fill",
    ):
        assert trouble in said


@pytest.mark.parametrize("cell", ["12 kg", "7:30", "inf", "1e999", "1_0", "bad", "2020-01-20"])
def test_a_cell_that_is_no_finite_number_is_named(tmp_path, capsys, cell):
    said = refusal(tmp_path, capsys, PLAIN.replace("8", cell))
    assert f"no number or date in line 4, column 'b': {cell!r}. Write numbers such as" in said
    assert "--drop b" in said


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--target", "d"], "--target must be one of ['a', 'b', 'c'], got 'd'"),
        (["--drop", "d"], "--drop must be one of ['a', 'b', 'c'], got 'd'"),
        (["--drop", "b", "--target", "b"], "--target must be one of ['a', 'c'], got 'b'"),
        (["--drop", "a", "--drop", "b"], "found one column, 'c': there must be"),
        (["--sep", ";"], "found one column, 'a,b,c'"),
    ],
)
def test_columns_are_checked_before_the_search(tmp_path, capsys, more, message):
    assert message in refusal(tmp_path, capsys, PLAIN, *more)


@pytest.mark.parametrize(
    ("names", "unit", "message"),
    [
        ("a,b,c", "c", "--unit must be NAME=TEXT with one of ['a', 'b', 'c'], got 'c'"),
        ("a,b,c", "width=cm", "got 'width=cm'"),
        ("a,b,c", "a=days since foo", "units['a'] must be a text such as 'days since"),
        ("a,y,c", "c=kg", "give the column another name"),
        ("a,date,c", "date=years", "--unit must be NAME=TEXT with one of ['a', 'c'], got 'date"),
        ("a,shop,c", "shop=m", "--unit must be NAME=TEXT with one of ['a', 'c'], got 'shop"),
    ],
)
def test_units_are_those_of_columns_of_numbers(tmp_path, capsys, names, unit, message):
    second = ["2020-01-01"] * 4 if "date" in names else "abcd" if "shop" in names else range(4)
    text = f"{names}\n" + "".join(f"{i},{cell},3\n" for i, cell in enumerate(second))
    assert message in refusal(tmp_path, capsys, text, "--unit", unit)


def new_rows(folder, text, table, *more):
    path = write(folder, text, name="new.csv")
    return read_new_rows(path, table, parse(["data.csv", "--predict", str(path), *more]))


def test_rows_to_predict_are_read_by_name_and_dates_with_them(tmp_path):
    dates = "".join(f"{i},{i:02d}/01/2020,{i},{i}\n" for i in range(1, 14))
    table = table_of(tmp_path, "id,date,b,y\n" + dates, "--drop", "id")
    # neither the order of the columns, nor the separator, nor the decimal mark must be the same
    X, cells, how = new_rows(tmp_path, "b;note;date\n1,5;;05/02/2020\n2;x y;01/01/2020\n", table)
    assert X["date"].tolist() == [pd.Timestamp(2020, 2, 5), pd.Timestamp(2020, 1, 1)]
    assert X["b"].tolist() == [1.5, 2]
    assert cells.iloc[1].tolist() == ["2", "x y", "01/01/2020"]
    assert table.notes[-1] == "new.csv: Numbers have decimal commas."
    assert how == {"sep": ";", "decimal": ","}


def test_rows_to_predict_may_have_a_single_column_also_with_decimal_commas(tmp_path):
    table = table_of(tmp_path, "a;b\n1,5;3\n4;6\n7;9\n10;12\n")
    for text, mark in (("a\n1,5\n2\n", ","), ("a\n1.5\n2\n", "."), ("a;b\n1,5;\n2;\n", ",")):
        X, _, how = new_rows(tmp_path, text, table)
        assert X["a"].tolist() == [1.5, 2]
        assert how["decimal"] == mark


def test_numbers_to_predict_for_are_read_as_those_of_the_file_if_they_do_not_decide(tmp_path):
    text = "a;b\n1.234,5;3\n2.345;6\n7;9\n10;12\n"
    X, _, _ = new_rows(tmp_path, "a\n1.234\n", table_of(tmp_path, text))
    assert X["a"].tolist() == [1234]


def test_categories_of_rows_to_predict_are_those_of_the_file_with_any_levels(tmp_path):
    table = table_of(tmp_path, SHOPS, "--category", "nr", "--weights", "n")
    X, _, _ = new_rows(tmp_path, "nr,shop\n3,7\n,A\n8,B\n9,C\n10,D\n", table)
    assert X["shop"].tolist() == [*"7ABCD"]
    assert X["nr"].dropna().tolist() == ["3", "8", "9", "10"]
    assert X["nr"].isna().tolist() == [False, True, False, False, False]
    assert table.notes[-3:] == [
        "new.csv: shop has the new levels 7, B, C and others.",
        "new.csv: nr has the new levels 8, 9.",
        "new.csv: Missing values are kept: 1 in nr.",
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("b,d\n1,2\n", "--predict must have the columns ['a', 'b'], got ['b', 'd']"),
        ("a,b\n1,x\n", "no number or date in line 2, column 'b': 'x'"),
        ("a,b\n", "no row below it"),
        ("a,b,mean\n1,2,3\n", "must not have a column 'mean'"),
        ("a,b\n1,2020-01-20\n", "'2020-01-20'"),
    ],
)
def test_rows_that_cannot_be_predicted_are_refused_before_the_search(
    tmp_path, capsys, text, message
):
    new = write(tmp_path, text, name="new.csv")
    said = refusal(tmp_path, capsys, PLAIN, "--predict", str(new))
    assert said.startswith("autokernel: new.csv: ")
    assert message in said


WITHOUT_PANDAS = """
import sys
class Absent:
    def find_spec(name, *_):
        if name == "pandas":
            raise ImportError(name)
sys.meta_path.insert(0, Absent)
from autokernel.__main__ import main
"""


def test_a_bare_install_runs_airline_and_names_the_extra_that_reads_files(tmp_path):
    path = write(tmp_path, PLAIN)
    program = WITHOUT_PANDAS + (
        f"assert main([{str(path)!r}]) == 2\n"
        "assert main(['--n-iter', '0', '--max-time', '0.01', '--unit', 'time=years']) == 0"
    )
    with running(program) as process:
        output, errors = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, errors
    assert "pip install 'autokernel-gp[cli]'" in lines(errors)
    assert "Test RMSE of passengers" in output
    assert "[time]" in output
    assert "in time" in lines(output) or "of time" in lines(output)
    assert not re.search(r"x0|\[0\]", output)
    assert "the last year repeated (seasonal-naive)" in output
