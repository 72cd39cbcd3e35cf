"""Dates in columns: how they are recognised, told and counted."""

import numpy as np
import pytest

from tests.cli.files import table_of


def from_midnight(table):
    """The days of the only column from the beginning of the first one."""
    days = table.X.values[:, 0]
    return (days - np.floor(days.min())).tolist()


def read(folder, cells, *more):
    text = "date;y\n" + "\n".join(f"{cell};{i}" for i, cell in enumerate(cells))
    return table_of(folder, text, *more)


@pytest.mark.parametrize(
    ("cells", "words", "days"),
    [
        (
            ["1949-01-01", "1949-01-02", "1949-02-01", "1950-01-01"],
            "year-month-day",
            [0, 1, 31, 365],
        ),
        (["1949-01", "1949-02", "1949-03", "1950-01"], "year-month", [0, 31, 59, 365]),
        (["31.12.2020", "01.01.2021", "02.01.2021", "03.01.2021"], "day.month.year", [0, 1, 2, 3]),
        (["31/12/2020", "01/01/2021", "02/01/2021", "03/01/2021"], "day/month/year", [0, 1, 2, 3]),
        (["12/31/2020", "01/01/2021", "01/02/2021", "01/03/2021"], "month/day/year", [0, 1, 2, 3]),
        (["31.12.20", "01.01.21", "02.01.21", "03.01.21"], "day.month.year", [0, 1, 2, 3]),
        (["2020/02/28", "2020/02/29", "2020/03/01", "2020/03/02"], "year/month/day", [0, 1, 2, 3]),
        (["Jan 1949", "Feb 1949", "Mar 1949", "Apr 1949"], "month year", [0, 31, 59, 90]),
        (
            ["31.12.2020 06:00", "31.12.2020 12:00", "31.12.2020 18:00", "01.01.2021 00:00"],
            "day.month.year, time",
            [0.25, 0.5, 0.75, 1],
        ),
        (
            [
                "2020-01-01T00:00:00Z",
                "2020-01-01T12:00:00Z",
                "2020-01-02",
                "2020-01-03T01:00+01:00",
            ],
            "year-month-day, time, in UTC",
            [0, 0.5, 1, 2],
        ),
        (
            ["1/31/2020 1:00 AM", "1/31/2020 1:00 PM", "2/1/2020 1:00 AM", "2/1/2020 1:00 PM"],
            "month/day/year, time",
            [1 / 24, 13 / 24, 25 / 24, 37 / 24],
        ),
    ],
)
def test_dates_are_read_and_told(tmp_path, cells, words, days):
    table = read(tmp_path, cells)
    np.testing.assert_allclose(from_midnight(table), days, rtol=0, atol=1e-9)  # 0.1 milliseconds
    assert f"date: dates such as {cells[0]} ({words})." in table.notes


def test_dates_are_counted_as_the_estimator_counts_them(tmp_path):
    table = read(tmp_path, ["1970-01-03", "1969-12-31", "1970-01-01", "1970-01-02T12:00"])
    assert table.X.values[:, 0].tolist() == [2, -1, 0, 1.5]
    assert table.X.date_columns == [0]


def test_one_value_decides_between_day_and_month(tmp_path):
    table = read(tmp_path, ["01/02/2020", "01/03/2020", "01/04/2020", "13/04/2020"])
    assert from_midnight(table) == [0, 29, 60, 72]


def test_days_and_months_that_cannot_be_told_apart_ask_for_a_format(tmp_path):
    cells = ["01/01/2020", "01/02/2020", "01/03/2020", "01/04/2020"]
    with pytest.raises(ValueError, match="1 February 2020 or 2 January 2020") as info:
        read(tmp_path, cells)
    assert "line 3, column 'date': '01/02/2020'" in str(info.value)
    assert "--date-format '%d/%m/%Y' or --date-format '%m/%d/%Y'" in str(info.value)
    table = read(tmp_path, cells, "--date-format", "%d/%m/%Y")
    assert from_midnight(table) == [0, 31, 60, 91]
    table = read(tmp_path, cells, "--date-format", "%m/%d/%Y")
    assert from_midnight(table) == [0, 1, 2, 3]


def test_a_format_makes_dates_of_numbers(tmp_path):
    cells = ["20200228", "20200229", "20200301", "20200302"]
    table = read(tmp_path, cells)
    assert table.X.date_columns == []
    assert table.notes == [
        "date: read as numbers such as 20200228; where these are dates, say so by --date-format "
        "%Y%m%d."
    ]
    table = read(tmp_path, cells, "--date-format", "%Y%m%d")
    assert from_midnight(table) == [0, 1, 2, 3]
    assert "dates such as 20200228 (%Y%m%d)" in table.notes[0]


def test_a_format_that_no_column_has_is_refused(tmp_path):
    with pytest.raises(ValueError, match="--date-format must be that of a column"):
        read(tmp_path, ["1", "2", "3", "4"], "--date-format", "%d/%m/%Y")


def test_a_day_that_does_not_exist_is_named(tmp_path):
    cells = ["2020-02-27", "2020-02-28", "2020-02-29", "2020-02-30"]
    with pytest.raises(ValueError, match=r"no date \(year-month-day\) in line 5, column 'date'"):
        read(tmp_path, cells)


def test_numbers_are_no_dates(tmp_path):
    for cells in (["1949", "1950", "1951", "1952"], ["1.5", "2.5", "12.20", "1.1"]):
        assert read(tmp_path, cells).X.date_columns == []


def test_dates_cannot_be_predicted(tmp_path):
    text = "y,date\n" + "\n".join(f"{i},2020-01-0{i}" for i in range(1, 6))
    with pytest.raises(ValueError, match="'date', holds dates: choose another one by --target"):
        table_of(tmp_path, text)
    assert table_of(tmp_path, text, "--target", "y").feature_names == ["date"]
