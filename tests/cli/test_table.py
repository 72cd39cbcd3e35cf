"""Columns as numbers: decimal commas, missing values, texts, units."""

import numpy as np
import pytest

from autokernel.cli.options import parse
from autokernel.cli.table import read_new_rows, with_units
from tests.cli.files import table_of, write

PLAIN = "a,b,c\n1,2,3\n4,5,6\n7,8,9\n10,11,12\n"


def test_the_last_column_is_the_target_unless_another_one_is_named(tmp_path):
    table = table_of(tmp_path, PLAIN)
    assert table.feature_names == ["a", "b"]
    assert table.target_name == "c"
    assert table.y.tolist() == [3, 6, 9, 12]
    table = table_of(tmp_path, PLAIN, "--target", "a")
    assert table.feature_names == ["b", "c"]
    assert table.X.values.tolist() == [[2, 3], [5, 6], [8, 9], [11, 12]]
    assert table.notes == []


def test_columns_can_be_left_out_also_the_last_one(tmp_path):
    table = table_of(tmp_path, PLAIN.replace("3\n", "three\n"), "--drop", "c")
    assert table.feature_names == ["a"]
    assert table.target_name == "b"


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--target", "d"], "--target must be one of ['a', 'b', 'c'], got 'd'"),
        (["--drop", "d"], "--drop must be one of ['a', 'b', 'c'], got 'd'"),
        (["--drop", "b", "--target", "b"], "--target must be one of ['a', 'c'], got 'b'"),
        (["--drop", "a", "--drop", "b"], "--drop must leave the column to predict and another one"),
        (
            ["--drop", "a", "--drop", "b", "--drop", "c"],
            "got ['a', 'b', 'c'] out of ['a', 'b', 'c']",
        ),
    ],
)
def test_columns_that_cannot_be_chosen_are_refused(tmp_path, more, message):
    with pytest.raises(ValueError) as info:  # noqa: PT011 - the message is compared below
        table_of(tmp_path, PLAIN, *more)
    assert message in str(info.value)


@pytest.mark.parametrize("separator", [";", "\t"])
def test_decimal_commas_are_read_and_told(tmp_path, separator):
    text = "a b c\n1,5 2 -,5\n2 3 1,5e2\n3,25 4 0\n4,5 5 7\n".replace(" ", separator)
    table = table_of(tmp_path, text)
    np.testing.assert_array_equal(table.X.values, [[1.5, 2], [2, 3], [3.25, 4], [4.5, 5]])
    np.testing.assert_array_equal(table.y, [-0.5, 150, 0, 7])
    assert table.notes == ["Numbers have decimal commas."]


def test_decimal_points_are_read_from_a_file_with_semicolons(tmp_path):
    table = table_of(tmp_path, "a;b\n1.5;2\n2;3\n\u22123;4\n+4;.5\n")
    assert table.X.values[:, 0].tolist() == [1.5, 2, -3, 4]
    assert table.notes == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "a;b\n1,5;1\n2;2.5\n3;3\n4;4\n",
            "must have decimal points or decimal commas, and has both: line 3, column 'b': '2.5'; "
            "line 2, column 'a': '1,5'",
        ),
        (
            "a;b\n1;1.234,5\n2;1.235,5\n3;1.236,5\n4;1.237,5\n",
            "no number in line 2, column 'b': '1.234,5'; line 3, column 'b': '1.235,5'; line 4, "
            "column 'b': '1.236,5'; and 1 more: write numbers without separators of thousands",
        ),
        (
            'a,b\n1,"1,234"\n2,"1,235"\n3,"1,236"\n4,"1,237"\n',
            "'1,234'; line 3, column 'b': '1,235'; line 4, column 'b': '1,236'; and 1 more",
        ),
        (
            "x,weight\n1,2\n2,3\n3,12 kg\n4,5\n",
            "no number in line 4, column 'weight': '12 kg': write the number without 'kg'",
        ),
        (
            "a,b\n1,2 kg\n2,3 kg\n3,4 kg\n4,5 kg\n",
            "no number in line 2, column 'b': '2 kg'; line 3, column 'b': '3 kg'; line 4, column "
            "'b': '4 kg'; and 1 more: write the number without 'kg'",
        ),
        ("a,b\n1,$2\n2,$3\n3,$4\n4,$5\n", "and 1 more: write the number without '$'"),
        ("a,b\n1,2\n2,7:30\n3,8:00\n4,9:15\n", "write times as numbers, such as 12.5"),
        (
            "a,b\n1,2x\n2,3y\n3,4z\n4,2x\n",
            "1 column of text: line 2, column 'b': '2x'. Choose another column to predict by "
            "--target",
        ),
        (
            "a,b\nS1,1\nS2,2\nS3,3\nS4,4\n",
            "1 column of text: line 2, column 'a': 'S1'. Leave text out by --drop a, or encode",
        ),
        (
            "a,b\nu,good\nv,bad\nv,bad\nu,good\n",
            "Choose another column to predict by --target. Leave text out by --drop a, or encode",
        ),
        ("a,b\n1,2\n2,1e200\n3,4\n4,5\n", "y must not hold numbers above 1e+100"),
        ("a,b\n1,2\n2,inf\n3,4\n4,5\n", "line 3, column 'b': 'inf': numbers must be finite"),
        ("a,b\n1,2\n2,1e999\n3,4\n4,5\n", "'1e999': numbers must be finite"),
        ("a,b\n1,2\n2,1_0\n3,4\n4,5\n", "'1_0': write a number, or nothing where the value"),
        (
            "city,full name,y\nBern,A B,1\n,C D,2\nRome,E F,3\nOslo,G H,4\n",
            "2 columns of text: line 2, column 'city': 'Bern'; line 2, column 'full name': 'A B'. "
            "Leave text out by --drop city --drop 'full name', or encode categories in Python by a "
            "Pipeline with OneHotEncoder",
        ),
        ("a,b,y\n1,,1\n2,NA,2\n3,,3\n4,,4\n", "column 'b' has no values: leave it out by --drop b"),
        ("a,b\n1,2\n2,3\n3,4\n", "has 3 rows of values: at least 4 are needed"),
    ],
)
def test_cells_that_are_no_numbers_are_named_with_what_to_do(tmp_path, text, message):
    with pytest.raises(ValueError) as info:  # noqa: PT011 - the message is compared below
        table_of(tmp_path, text)
    assert message in str(info.value)


MISSING = "a,b,y\n1,,1\n2,NA,2\n3,3,?\n4,4,-\n5,5,5\n6,NaN,6\n7,7,null\n8,8,8\n9,9,9\n10,10,10\n"


def test_missing_values_are_named_by_line_and_column(tmp_path):
    with pytest.raises(ValueError, match="6 missing values in 6 rows") as info:
        table_of(tmp_path, MISSING)
    assert (
        "line 2, column 'b': empty; line 3, column 'b': 'NA'; line 4, column 'y': '?'; and 3 more. "
        "Fill them in, or leave their rows out by --missing drop"
    ) in str(info.value)


def test_rows_with_missing_values_are_dropped_on_request_and_counted(tmp_path):
    table = table_of(tmp_path, MISSING, "--missing", "drop")
    assert table.y.tolist() == [5, 8, 9, 10]
    assert table.notes == ["6 rows of 10 left out, for missing values."]


def test_missing_values_in_a_column_that_is_left_out_do_no_harm(tmp_path):
    text = MISSING.replace("?", "3").replace("-", "4").replace("null", "7")
    assert len(table_of(tmp_path, text, "--drop", "b").y) == 10


def test_a_file_of_too_many_missing_values_is_refused(tmp_path):
    with pytest.raises(ValueError, match="has 2 rows of values: at least 4"):
        table_of(tmp_path, MISSING.partition("9,9")[0], "--missing", "drop")


def test_units_are_those_of_columns_and_target(tmp_path):
    table = with_units(table_of(tmp_path, PLAIN), ["a=kg", "c=m", "b=weeks since 2020-01-01"])
    assert table.units == {"a": "kg", "y": "m", "b": "weeks since 2020-01-01"}


def test_the_unit_of_dates_is_not_to_be_given(tmp_path):
    table = table_of(tmp_path, "date,y\n" + "".join(f"2020-01-0{i},{i}\n" for i in range(1, 8)))
    with pytest.raises(ValueError, match="which holds dates: they are told as dates"):
        with_units(table, ["date=years"])


def new_rows(folder, text, table, *more):
    path = write(folder, text, name="new.csv")
    return read_new_rows(path, table, parse(["data.csv", "--predict", str(path), *more]))


def test_rows_to_predict_are_read_by_name_and_dates_with_them(tmp_path):
    dates = "".join(f"{i},{i:02d}/01/2020,{i},{i}\n" for i in range(1, 13))
    table = table_of(tmp_path, "id,date,b,y\n" + dates + "13,13/01/2020,1,1\n", "--drop", "id")
    # neither the order of the columns, nor the separator, nor the decimal mark must be the same
    new = new_rows(tmp_path, "b;note;date\n1,5;;05/02/2020\n2;x y;01/01/2020\n", table)
    start = table.X.values[:, 0].min()
    assert (new.X.values - [start, 0]).tolist() == [[35, 1.5], [0, 2]]
    assert new.X.names == ["date", "b"]
    assert new.sheet.rows[1] == ["2", "x y", "01/01/2020"]
    assert new.decimal_mark == ","


def test_dates_to_predict_in_another_form_are_named_with_the_form(tmp_path):
    table = table_of(tmp_path, "d;y\n" + "".join(f"{i}.01.2020;{i}\n" for i in range(11, 19)))
    with pytest.raises(ValueError, match=r"no date \(day\.month\.year\) in line 2, column 'd': '2"):
        new_rows(tmp_path, "d\n2020-01-20\n", table)


def test_rows_to_predict_may_have_a_single_column_also_with_decimal_commas(tmp_path):
    table = table_of(tmp_path, "a;b\n1,5;3\n4;6\n7;9\n10;12\n")
    for text, mark in (("a\n1,5\n2\n", ","), ("a\n1.5\n2\n", "."), ("a;b\n1,5;\n2;\n", ",")):
        new = new_rows(tmp_path, text, table)
        assert new.X.values.tolist() == [[1.5], [2]]
        assert new.decimal_mark == mark


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("b,d\n1,2\n", "--predict new.csv must have the columns ['a', 'b'], and has no a; its"),
        ("a,b\n1,x\n", "new.csv: 1 column of text: line 2, column 'b': 'x'"),
        ("a,b\n1,2\n3,\n", "1 missing value in 1 row: line 3, column 'b': empty"),
        ("a,b\n", "no row below it"),
    ],
)
def test_rows_that_cannot_be_predicted_are_refused(tmp_path, text, message):
    with pytest.raises(ValueError) as info:  # noqa: PT011 - the message is compared below
        new_rows(tmp_path, text, table_of(tmp_path, PLAIN))
    assert message in str(info.value)
