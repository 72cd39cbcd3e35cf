"""Files as tables of texts: separators, encodings, and lines that are wrong."""

import gzip

import pytest

from autokernel.cli.sheet import read_sheet
from tests.cli.files import write

ROWS = [["1", "2"], ["3", "4"]]


@pytest.mark.parametrize(
    ("text", "separator"),
    [
        ("a,b\n1,2\n3,4\n", ","),
        ("a;b\n1;2\n3;4\n", ";"),
        ("a\tb\r\n1\t2\r\n3\t4\r\n", "\t"),
        ('"a", "b"\n1, 2\n 3 ,4', ","),
        ("\n\na;b\n1;2\n\n3;4\n;\n", ";"),
        ("a;b;\n1;2;\n3;4;\n", ";"),
        ("a;b;\n1;2\n3;4\n", ";"),
    ],
)
def test_the_separator_is_detected_and_cells_are_stripped(tmp_path, text, separator):
    sheet = read_sheet(write(tmp_path, text), "auto")
    assert sheet.separator == separator
    assert sheet.header == ["a", "b"]
    assert sheet.rows == ROWS


def test_a_semicolon_wins_over_the_commas_in_numbers_and_names(tmp_path):
    sheet = read_sheet(write(tmp_path, "time;level, in m\n1,5;2,5\n2;3,5\n"), "auto")
    assert sheet.separator == ";"
    assert sheet.rows == [["1,5", "2,5"], ["2", "3,5"]]


def test_a_separator_that_is_given_is_used(tmp_path):
    assert read_sheet(write(tmp_path, "a|b\n1|2\n3|4\n"), "|").rows == ROWS
    assert read_sheet(write(tmp_path, "a,b;c\n1,2;3\n"), ",").header == ["a", "b;c"]


def test_quoted_cells_may_hold_separators_and_lines_keep_their_numbers(tmp_path):
    sheet = read_sheet(write(tmp_path, 'a,"b, in\nm"\n1,"2"\n\n3,4\n'), "auto")
    assert sheet.header == ["a", "b, in\nm"]
    assert sheet.rows == ROWS
    assert sheet.lines == [3, 5]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_unicode_files_are_read_without_a_note(tmp_path, encoding):
    sheet = read_sheet(write(tmp_path, "Höhe,b\n1,2\n", encoding=encoding), "auto")
    assert sheet.header == ["Höhe", "b"]
    assert sheet.notes == []


def test_a_file_in_latin_1_is_read_and_noted(tmp_path):
    sheet = read_sheet(write(tmp_path, "a,b\n1,2\n", encoding="latin-1"), "auto")
    assert sheet.notes == []
    sheet = read_sheet(write(tmp_path, "a,Höhe\n1,2\n", encoding="latin-1"), "auto")
    assert sheet.header == ["a", "Höhe"]
    (note,) = sheet.notes
    assert "Line 1 is not in UTF-8: the file was read as Latin-1" in note


def test_a_compressed_file_is_read(tmp_path):
    path = tmp_path / "data.csv.gz"
    path.write_bytes(gzip.compress(b"a,b\n1,2\n3,4\n"))
    assert read_sheet(path, "auto").rows == ROWS


@pytest.mark.parametrize(
    ("text", "line"),
    [("# from a buoy\n#\na,b\n1,2\n3,4\n", 4), ("# from a buoy\n#a,b\n1,2\n3,4\n", 3)],
)
def test_comments_before_the_column_names_are_left_out_with_a_note(tmp_path, text, line):
    sheet = read_sheet(write(tmp_path, text), "auto")
    assert sheet.header == ["a", "b"]
    assert sheet.rows == ROWS
    assert sheet.lines[0] == line
    assert sheet.notes == ["Lines that begin with # before the column names are left out."]


def test_column_names_behind_a_hash_are_read_without_a_note(tmp_path):
    sheet = read_sheet(write(tmp_path, "#a b\n1 2\n3 4\n"), " ")
    assert sheet.header == ["a", "b"]
    assert sheet.notes == []


def test_a_column_that_numbers_the_rows_is_left_out_with_a_note(tmp_path):
    sheet = read_sheet(write(tmp_path, ",a,b\n0,1,2\n1,3,4\n"), "auto")
    assert sheet.header == ["a", "b"]
    assert sheet.rows == ROWS
    assert "Column 1 has no name and numbers the rows" in sheet.notes[0]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "data.csv is empty: it must have a line of column names"),
        (" \n\n", "data.csv is empty"),
        ("a,b\n", "a line of column names and no row below it"),
        ("a\n1\n2\n", "found one column, 'a': the file must have the column to predict"),
        ("a|b\n1|2\n", r"found one column, 'a|b'; is the separator '|'? give it by --sep '|'"),
        ("a b\n1 2\n", "is the separator 'space'? give it by --sep 'space'"),
        ("1,2\n3,4\n", "line 1 must be a line of column names, got 1, 2"),
        ("2020-01-01,2\n2020-01-02,4\n", "line 1 must be a line of column names"),
        ("a,,b\n1,2,3\n", "line 1: column 2 has no name"),
        ("\na,b,a\n1,2,3\n", "line 2: columns 1 and 3 are both called 'a'"),
        (
            "a,b\n1,2\n3\n4,5,6\n\n7\n8\n9,9\n",
            "must have 2 cells, as many as there are column names, but line 3 has 1, "
            "line 4 has 3, line 6 has 1 and 1 more; cells are separated by ','",
        ),
        ('a,b\n1,2\n3,"4\n5,6\n', "line 3: unexpected end of data; is a quotation mark missing"),
        ("a,b\n1\0,2\n", "is not a text file"),
        ("PK\x03\x04...", "is an Excel or zip file, and not a text: save the table as CSV"),
    ],
)
def test_a_file_that_is_no_table_is_refused_with_the_line(tmp_path, text, message):
    with pytest.raises(ValueError) as info:  # noqa: PT011 - the message is compared below
        read_sheet(write(tmp_path, text), "auto")
    assert message in str(info.value)


def test_a_wrong_separator_is_told_with_the_right_one(tmp_path):
    with pytest.raises(ValueError, match="found one column, 'a;b'; is the separator ';'"):
        read_sheet(write(tmp_path, "a;b\n1;2\n"), ",")


def test_a_broken_gzip_file_is_refused(tmp_path):
    path = tmp_path / "data.csv.gz"
    path.write_bytes(gzip.compress(b"a,b\n1,2\n" * 99)[:-12])
    with pytest.raises(ValueError, match=r"data\.csv\.gz cannot be decompressed"):
        read_sheet(path, "auto")
