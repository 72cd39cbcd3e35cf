"""Columns of dates: they become days, in any form, and are described as dates."""

import re

import numpy as np
import pandas as pd
import polars as pl
import pytest

from autokernel.displays import EffectsDisplay, ForecastDisplay
from tests.fits import small, tiny

MONTHS = pd.date_range("1949-01-01", periods=36, freq="MS")
Y = np.sin(2 * np.pi * np.arange(36) / 12) + np.linspace(0, 1, 36)
DAYS = (MONTHS - pd.Timestamp("1970-01-01")).days.to_numpy(dtype=float)

FORMS = {
    "datetime64": pd.DataFrame({"month": MONTHS}),
    "with a zone": pd.DataFrame({"month": MONTHS.tz_localize("UTC")}),
    "period": pd.DataFrame({"month": MONTHS.to_period("M")}),
    "texts": pd.DataFrame({"month": MONTHS.strftime("%Y-%m-%d")}),
    "texts of months": pd.DataFrame({"month": MONTHS.strftime("%Y-%m")}),
    "texts with a zone": pd.DataFrame({"month": MONTHS.strftime("%Y-%m-%dT%H:%M:%SZ")}),
    "dates of Python": pd.DataFrame({"month": MONTHS.date}),
    "times of Python": pd.DataFrame({"month": MONTHS.to_pydatetime()}, dtype=object),
    "texts of several forms": [
        [one.strftime(("%Y-%m-%d", "%B %d, %Y", "%YM%m")[n % 3])] for n, one in enumerate(MONTHS)
    ],
    "nanoseconds": [[one] for one in MONTHS.to_numpy().astype("datetime64[ns]")],
    "polars dates": pl.DataFrame({"month": list(MONTHS.date)}),
    "polars texts": pl.DataFrame({"month": list(MONTHS.strftime("%Y-%m-%d"))}),
    "array": MONTHS.to_numpy()[:, None],
    "lists": [[text] for text in MONTHS.strftime("%Y-%m-%d")],
    "array of dates of Python": np.array(MONTHS.date)[:, None],
    # whose index becomes a column
    "index": MONTHS,
    "index of periods": MONTHS.to_period("M"),
    "index of a series": pd.Series(Y, MONTHS),
}


@pytest.fixture(scope="module")
def by_number():
    return small().refit(DAYS[:, None], Y, "LIN[0]")


@pytest.fixture(scope="module")
def by_date():
    return tiny().fit(FORMS["datetime64"], Y)


@pytest.mark.parametrize("form", FORMS)
def test_dates_in_any_form_are_the_same_days(form, by_number):
    model = small().refit(FORMS[form], Y, "LIN[0]")
    np.testing.assert_array_equal(model.X_train_[:, 0], DAYS)
    assert model.date_columns_ == [0]
    np.testing.assert_array_equal(model.predict(FORMS[form]), by_number.predict(DAYS[:, None]))


def test_a_zone_is_converted_to_utc():
    local = MONTHS.tz_localize("America/New_York")
    model = small().refit(pd.DataFrame({"month": local}), Y, "LIN[month]")
    hours = 24 * (model.X_train_[:, 0] - DAYS)
    assert set(np.round(hours, 9)) <= {4.0, 5.0}


def test_dates_are_described_as_dates_and_their_lengths_in_days():
    def said(y, kernel, **settings):
        frame = FORMS["datetime64"][: len(y)]
        return small(averaging=None, **settings).refit(frame, y, kernel).describe()

    assert "yearly season" in said(Y, "PER[month] + LIN[month]")
    steady = said(np.arange(36) / 4 + 0.01 * Y, "LIN[month]")
    rate = re.search(r"by ([\d.]+) per year", steady)
    assert float(rate[1]) == pytest.approx(3.0, rel=0.01)  # a quarter of a unit each month
    assert "per day" in said(np.arange(20) + 0.1 * Y[:20], "LIN[month]")
    step = np.repeat([0.0, 5.0], 18) + 0.1 * Y
    assert "1950-0" in said(step, "CP[month](LIN[month], LIN[month])", operators=("+", "cp"))


def test_pictures_have_axes_of_dates(by_date):
    forecast = ForecastDisplay.from_estimator(by_date, FORMS["texts"])
    assert forecast.x.astype("datetime64[D]").tolist() == MONTHS.date.tolist()
    forecast.figure_.canvas.draw()
    labels = [label.get_text() for label in forecast.ax_.get_xticklabels()]
    assert any("1950" in label for label in labels)
    display = EffectsDisplay.from_estimator(by_date)
    assert display.panels[0].axes[0].dtype.kind == "M"
    display.figure_.canvas.draw()


def test_a_unit_since_a_date_makes_axes_of_dates_too():
    model = small().refit(pd.DataFrame({"day": DAYS - DAYS[0]}), Y, "LIN[day]")
    units = {"day": "days since 1949-01-01"}
    forecast = ForecastDisplay.from_estimator(model, beyond=0, units=units)
    ends = forecast.x[[0, -1]].astype("datetime64[D]")
    np.testing.assert_array_equal(ends, MONTHS[[0, -1]].to_numpy().astype("datetime64[D]"))


def test_dates_are_no_values_of_a_column_that_held_numbers(by_number):
    with pytest.raises(ValueError, match=r"X must hold numbers, as in fit, in column 'x0'"):
        by_number.predict(FORMS["array"])


def with_numbers(values):
    return pd.DataFrame({"b": [1.0, 2.0], "a": values})


TWO_DIMENSIONS = r"two dimensions.*frame\[\['date'\]\]"
WRONG = [
    (with_numbers(["2020-01-01", "2020-02-30"]), "'2020-01-31' in column 'a', got .*'2020-02-30'"),
    (with_numbers(["2020-01-01", "0000-01-01"]), "'2020-01-31' in column 'a', got .*'0000-01-01'"),
    (with_numbers(["2020-01-01", "0001-01-01T00:00+05:00"]), r"'a', got .*'0001-01-01T00:00\+05"),
    (MONTHS[:2].to_numpy(), TWO_DIMENSIONS),
    (["2020-01-01", "2020-01-02"], TWO_DIMENSIONS),
    ([[b"a"], [b"b"]], "levels of column 'x0', got b'a' of type bytes"),
    ([[1.0], ["2020-01-02"]], "dates such as '2020-01-31' in column 'x0'"),
    ([[1], [2, 3]], "inhomogeneous shape"),
]


@pytest.mark.parametrize(("dates", "message"), WRONG)
def test_what_is_no_column_of_dates_is_refused_with_what_is_wrong(dates, message):
    with pytest.raises(ValueError, match=message):
        small().fit(dates, [1.0, 2.0])


DAILY = pd.date_range("2019-11-01", periods=40, freq="D")
ENDS = pd.date_range("2019-01-31", periods=40, freq="ME")
WORKING = pd.bdate_range("2019-11-01", periods=30)
SERIAL = pd.Timestamp("1899-12-30")  # of spreadsheets


@pytest.mark.parametrize(
    ("name", "numbers", "dates"),
    [
        ("x", ENDS.strftime("%Y%m"), ENDS.to_period("M").to_timestamp()),
        ("month", ENDS[:3].strftime("%Y%m"), ENDS[:3].to_period("M").to_timestamp()),
        ("x", DAILY.strftime("%Y%m%d"), DAILY),
        ("x", (ENDS - SERIAL).days, ENDS),
        ("x", (WORKING - SERIAL).days, WORKING),
        ("order_date", (DAILY - SERIAL).days, DAILY),
    ],
)
def test_whole_numbers_that_read_as_dates_are_said_with_how_to_read_them(name, numbers, dates):
    X = pd.DataFrame({name: np.asarray(numbers, dtype=float)})
    y = np.random.default_rng(0).normal(size=len(X))
    with pytest.warns(UserWarning, match=f"'{name}' of X has whole numbers that .* dates") as found:
        small().refit(X, y, "NOISE")
    how = re.search(r"pandas\.to_datetime\(.*\)", str(found[0].message))[0]
    X[name] = eval(how, {"pandas": pd, "x": X[name]})
    assert X[name].tolist() == dates.tolist()
    model = small().refit(X, y, "NOISE")
    assert model.date_columns_ == [0]


def test_ordinary_whole_numbers_are_no_dates(rng):
    columns = {
        "number": 201801 + np.arange(60),  # also beyond the twelfth
        "serial": 40000 + np.arange(60),
        "year": 1960 + np.arange(60),
        "month": np.arange(60) % 12 + 1,
        "price": rng.integers(150, 900, 60) * 1000,
        "population": rng.integers(10**7, 3 * 10**7, 60),
        "income": 36000 + 250 * rng.integers(4, 60, 60),
        "code": rng.choice([200103, 200104, 200211], 60),
        "votes_per_candidate": rng.choice([40000, 45000, 50123], 60),
    }
    small().refit(pd.DataFrame(columns), rng.normal(size=60), "NOISE")
