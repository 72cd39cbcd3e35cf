"""Series: dates in an index, the strategy "series", and forecasts of the next rows."""

import datetime
import json
import re

import numpy as np
import pandas as pd
import pytest
from scipy.special import softmax
from sklearn.base import clone

from autokernel import AutoKernelGPRegressor
from autokernel.data.dates import days_since_1970
from autokernel.data.steps import rows_ahead, seasons_of
from autokernel.datasets import load_airline
from autokernel.export import from_dict, to_dict
from tests.fits import small

N_AHEAD = 4


def airline(n=120):
    """The passengers of the airline, and those of the two years after the first ``n`` months."""
    y = load_airline().target
    dates = pd.date_range("1949-01", periods=len(y), freq="MS")
    series = pd.Series(y, dates, name="passengers")
    return series[:n], series[n : n + 24]


def monthly(n=40, *, freq="MS", seed=0):
    """A random walk with dates."""
    rng = np.random.default_rng(seed)
    return pd.Series(
        10 + rng.normal(size=n).cumsum(), pd.date_range("2020-01-01", periods=n, freq=freq)
    )


def forecasts(**settings):
    return AutoKernelGPRegressor(strategy="series", random_state=0, **settings)


FREQUENCIES = ["MS", "ME", "2MS", "QS", "QE", "YS", "YE", "D", "W", "h", "B"]


def moments(year=2019, *, n=130, months=1, days=(1,), hour=0):
    """Days of every few months, clipped to the end of the month."""
    first = pd.date_range(f"{year}-01-01", periods=n, freq=f"{months}MS")
    found = [t + pd.Timedelta(days=min(d, t.days_in_month) - 1) for t in first for d in days]
    return pd.DatetimeIndex(found) + pd.Timedelta(hours=hour)


def dates(freq, start="2019-01-01", **settings):
    return pd.date_range(start, periods=130, freq=freq, **settings)


def days_of_week(*names):
    return dates(pd.offsets.CustomBusinessDay(weekmask=" ".join(names)))


def steps(*days, start="2018-01-28"):
    return pd.Timestamp(start) + pd.to_timedelta(np.cumsum([0] + [*days] * 30), "D")


LEAP_DAY = pd.Timestamp(1980, 2, 29)
CALENDARS = {
    "the 28th": moments(days=[28]),
    "the 29th": moments(days=[29]),
    "the 30th, at six in the evening": moments(days=[30], hour=18),
    "29 February": pd.DatetimeIndex([LEAP_DAY + pd.DateOffset(years=k) for k in range(60)]),
    "the 15th and the last": dates("SME"),
    "the 1st and the 15th": dates("SMS"),
    "decades of days": moments(days=[1, 11, 21]),
    "days of taxes": pd.DatetimeIndex([t for t in moments(days=[15]) if t.month in (1, 4, 6, 9)]),
    "every tenth year": moments(1700, n=40, months=120),
    "second Wednesdays": dates("WOM-2WED"),
    "fourth Mondays": dates("WOM-4MON"),
    "last Fridays": dates(pd.offsets.LastWeekOfMonth(weekday=4)),
    "fifth Fridays": pd.DatetimeIndex(
        [t for t in steps(*[7] * 30, start="2010-01-01") if t.day > 28]
    ),
    "last working days": dates("BME"),
    "first working days": dates("BMS"),
    "last working days of quarters": dates("BQE"),
    "Monday to Saturday": days_of_week("Mon", "Tue", "Wed", "Thu", "Fri", "Sat"),
    "Sunday to Thursday": days_of_week("Sun", "Mon", "Tue", "Wed", "Thu"),
    "three days of the week": days_of_week("Mon", "Wed", "Fri"),
    "4, 4 and 5 weeks": steps(28, 28, 35),
    "5, 4 and 4 weeks": steps(35, 28, 28),
    "3, 3 and 4 days": steps(3, 3, 4),
    "weeks of 1700": steps(7, start="1700-01-04"),
    "quarters of 2200": moments(2200, months=3),
    "twice a day": dates("D")[:60].repeat(2) + pd.to_timedelta([8, 17] * 60, "h"),
    "hours of offices": dates("bh", "2019-01-07 09:00"),
    "seconds": dates("7s"),
    "days in Berlin": dates("D", "2019-03-01", tz="Europe/Berlin"),
    "months in Berlin": dates("MS", tz="Europe/Berlin"),
    "ends of months in New York": dates("ME", tz="America/New_York"),
    "weeks in Sydney": dates("W", tz="Australia/Sydney"),
    "half months five hours east": dates("SME", tz="UTC+05:00"),
    "hours in Berlin": dates("h", "2019-03-28", tz="Europe/Berlin"),
    "halves of days in Berlin": dates("12h", "2019-03-01", tz="Europe/Berlin"),
}


@pytest.mark.parametrize("name", CALENDARS)
def test_dates_go_on_in_their_calendar_also_if_rows_are_missing(name):
    found = CALENDARS[name]
    zone = str(found.tz or "")
    days = days_since_1970(found.tz_convert(None).to_numpy() if zone else found.to_numpy())
    n = len(days) - N_AHEAD
    for n_rows in (n, 3 * n // 4):
        for known in (days[:n_rows], np.delete(days[:n_rows], [4, 9, 10])):
            ahead = rows_ahead(known, N_AHEAD, are_dates=True, zone=zone)
            np.testing.assert_allclose(ahead, days[n_rows : n_rows + N_AHEAD], rtol=0, atol=1e-9)


@pytest.mark.parametrize("freq", FREQUENCIES)
@pytest.mark.parametrize("start", ["2019-03-01", "2020-01-31"])
def test_dates_of_frequencies_go_on(freq, start):
    days = days_since_1970(pd.date_range(start, periods=30 + N_AHEAD, freq=freq).to_numpy())
    for known in (days[:30], np.delete(days[:30], [7, 15, 16]), days[20:30]):
        found = rows_ahead(known, N_AHEAD, are_dates=True)
        np.testing.assert_allclose(found, days[30:], rtol=0, atol=1e-9)


def test_gaps_at_random_make_no_calendar():
    rng, n_odd = np.random.default_rng(0), 0
    for n in (60, 100, 300):
        for _ in range(20):
            days = 18000 + np.flatnonzero(rng.random(n) < 0.8)
            ahead = rows_ahead(days.astype(float), 3, are_dates=True)
            n_odd += not np.array_equal(ahead, days[-1] + np.arange(1, 4))
    assert n_odd == 0
    with pytest.raises(ValueError, match="forecast needs rows at equal steps"):
        rows_ahead(18000 + np.cumsum(rng.exponential(size=60)), 2, are_dates=True)


def test_rows_go_on_by_the_most_frequent_step():
    x = np.delete(np.arange(30) / 12 + 1949, [3, 4, 17])  # with gaps, in any order
    found = rows_ahead(np.random.default_rng(0).permutation(x), 2, are_dates=False)
    np.testing.assert_allclose(found, 1949 + np.array([30, 31]) / 12, rtol=1e-12)
    x = 1949 + np.arange(72) / 12
    for n_digits in (2, 3):  # rounded numbers do not drift
        found = rows_ahead(np.round(x[:48], n_digits), 24, are_dates=False)
        np.testing.assert_allclose(found, x[48:], rtol=0, atol=1.5 * 10.0**-n_digits)
    with pytest.raises(ValueError, match=r"rows at equal steps, .*: give the rows to predict_"):
        rows_ahead(np.sqrt(np.arange(20.0)), 2, are_dates=False)
    with pytest.raises(ValueError, match="rows at different values, got one value in all rows"):
        rows_ahead(np.ones(5), 2, are_dates=True)


@pytest.mark.parametrize("first", ["1500", "1677", "2230"])
def test_periods_of_any_year_and_dates_in_zones_are_forecast(first):
    years = pd.Series(monthly(20).to_numpy(), pd.period_range(first, periods=20, freq="Y"))
    found = small().refit(years, kernel="LIN[time]").forecast(2)["time"]
    assert found.tolist() == [datetime.date(int(first) + k, 1, 1) for k in (20, 21)]
    for zone in ("Europe/Berlin", "America/Sao_Paulo", "Asia/Kathmandu"):
        local = dates("MS", tz=zone)[:22]
        model = small().refit(pd.Series(years.to_numpy(), local[:20]), kernel="LIN[time]")
        for one in (model, from_dict(json.loads(json.dumps(to_dict(model))))):
            found = pd.to_datetime(one.forecast(2)["time"], utc=True)
            assert found.tolist() == local[20:].tz_convert("UTC").tolist()


@pytest.mark.parametrize(
    ("freq", "n", "seasons"),
    [
        ("MS", 30, [365.2425]),
        ("MS", 20, []),
        ("QS", 12, [365.2425]),
        ("YS", 40, []),
        ("W", 110, [91.310625, 365.2425]),
        ("D", 40, [7.0]),
        ("h", 24 * 15, [1.0, 7.0]),
        ("h", 30, []),
    ],
)
def test_dates_have_the_seasons_that_their_spacing_and_extent_can_show(freq, n, seasons):
    dates = pd.date_range("2019-03-01", periods=n, freq=freq)
    assert list(seasons_of(days_since_1970(dates.to_numpy()))) == seasons


def test_a_series_is_one_call():
    series, later = airline()
    model = forecasts().fit(series)
    assert list(model.feature_names_in_) == ["time"]
    assert model.target_name_ == "passengers"
    table = model.forecast(24, quantiles=(0.025, 0.5, 0.975))
    assert list(table) == ["time", "mean", "0.025", "0.5", "0.975"]
    np.testing.assert_array_equal(table["time"].astype("datetime64[ns]"), later.index.to_numpy())
    np.testing.assert_allclose(table["mean"], model.predict(later.index))
    np.testing.assert_allclose(table["0.5"], model.predict_quantiles(later.index, [0.5])[:, 0])
    assert np.mean((later > table["0.025"]) & (later < table["0.975"])) >= 0.9
    assert len(pd.DataFrame(table)) == 24
    assert "yearly season" in model.describe()
    # it repeats the last year without the trend, and is 1.5 times as far off as the model
    repeated = np.resize(series.to_numpy()[-12:], 24)
    errors = np.array([table["mean"], repeated]) - later.to_numpy()
    ours, theirs = np.sqrt((errors**2).mean(axis=1))
    assert ours < theirs / 1.5


def test_every_form_of_a_series_is_the_same_fit():
    series = monthly()
    model = forecasts(averaging=None, outliers=None)
    expected = model.refit(series, kernel="RW[time]").forecast(3)
    frame = series.rename("y").to_frame()
    forms = {
        "index": (series.index, series),
        "periods": (series.set_axis(series.index.to_period("M")), None),
        "an index alone": (frame[[]], series),
        "a column": (series.index.to_frame(name="time"), series.to_numpy()),
        "a frame": (pd.DataFrame({"time": series.index}), series.to_numpy()),
    }
    for X, y in forms.values():
        found = clone(model).refit(X, y, "RW[0]").forecast(3)
        assert list(found) == list(expected)
        for name, values in expected.items():
            np.testing.assert_array_equal(found[name], values)


def test_the_dates_of_an_index_are_a_column_beside_others():
    series = monthly()
    frame = pd.DataFrame({"price": np.arange(40.0) % 7}, index=series.index.rename("month"))
    model = small().refit(frame, series, "LIN[month] + LIN[price]")
    assert list(model.feature_names_in_) == ["price", "month"]
    assert model.date_columns_ == [1]
    with pytest.raises(ValueError, match="month"):
        model.predict(frame.reset_index(drop=True))
    # but not where the frame has a column of dates, or of texts of dates
    dates = series.index
    for day in (dates, dates.strftime("%Y-%m-%d")):
        with_dates = frame.set_index(dates).assign(day=day)
        assert list(small().refit(with_dates, series, "NOISE").feature_names_in_) == [
            "price",
            "day",
        ]


SEASON = "PER365_2425[time]"
WALKS = {"IOU[time] + RW[time]", "LIN[time] + RW[time]", "LIN[time] + MAT12[time]", "NOISE"}
SEASONAL = {
    f"IOU[time] + {SEASON} + RW[time]",
    f"LIN[time] + {SEASON} + RW[time]",
    f"LIN[time] + MAT12[time] + {SEASON}",
}


@pytest.mark.parametrize(
    ("periods", "expected"),
    [
        (None, WALKS | SEASONAL),
        ({"time": []}, WALKS),  # no season, as the user says so
        ({"time": 182.6}, WALKS | {text.replace("365_2425", "182_6") for text in SEASONAL}),
    ],
)
def test_it_fits_few_kernels_which_are_equally_probable(periods, expected):
    series = monthly(36)
    model = forecasts(target_scale=None, outliers=None, periods=periods).fit(series)
    assert set(model.search_history_["kernel"]) == expected
    assert model.stop_reason_ == "exhausted"
    assert model._fitted.mixture.tail_share == 0.1
    again, levels = from_dict(json.loads(json.dumps(to_dict(model)))), [0.005, 0.995]
    np.testing.assert_array_equal(
        model.predict_quantiles(series.index, levels), again.predict_quantiles(series.index, levels)
    )
    model.refit(series, kernel="RW[time]")
    assert model._fitted.mixture.tail_share == 0.1
    assert set(model.posterior_["log_prior"]) == {0.0}
    assert set(model.search_history_["phase"]) == {"initial"}


def test_half_of_the_weights_is_equal_for_walks_and_returning_levels_on_each_scale():
    series = np.exp(0.3 * monthly(30) - 3)
    model = forecasts(outliers=None, periods={"time": []}).fit(series)
    table = model.posterior_
    scales = [text.rpartition("(y)")[0] for text in table["kernel"]]
    groups = np.array(
        [f"{s} {'RW' in text}" for s, text in zip(scales, table["kernel"], strict=True)]
    )
    assert len(set(groups)) == 6
    expected = 0.5 * softmax(table["log_evidence"])
    for group in set(groups):
        own = groups == group
        expected[own] += 0.5 / 6 * softmax(table["log_evidence"][own])
    # kernels with a weight below 1e-3 are not in the table
    np.testing.assert_allclose(table["probability"], expected, atol=0.01)
    used = {one.expression.target for one in model._fitted.mixture.components}
    assert used == {"identity", "sqrt", "log"}


def test_what_it_cannot_fit_is_refused():
    x, y = np.arange(20.0)[:, None], np.arange(20.0) % 3
    with pytest.raises(ValueError, match="strategy='series' forecasts along one column, got 2"):
        forecasts().fit(np.c_[x, x], y)
    with pytest.raises(ValueError, match="needs sums of the base kernels RW"):
        forecasts(base_kernels=("SE",)).fit(x, y)
    with pytest.raises(ValueError, match="requires y to be passed"):
        forecasts().fit(x)
    with pytest.raises(ValueError, match=r"got a series: leave y out .* or give X\.to_frame\(\)"):
        forecasts().fit(monthly(), y)
    message = r"must have a DatetimeIndex or a PeriodIndex, got one with a RangeIndex: give it"
    for call in (forecasts().fit, forecasts().refit):
        with pytest.raises(ValueError, match=message):
            call(monthly().reset_index(drop=True))


def test_wrong_horizons_and_levels_are_refused():
    model = small().refit(monthly(), kernel="LIN[time]")
    with pytest.raises(ValueError, match="horizon"):
        model.forecast(0)
    with pytest.raises(ValueError, match="quantiles must be probabilities"):
        model.forecast(2, quantiles=[5])
    table = np.random.default_rng(0).uniform(size=(20, 2))
    model = small().refit(table, table[:, 0], "LIN[0]")
    with pytest.raises(ValueError, match=r"got 2 columns: give the rows to predict_quantiles"):
        model.forecast(3)


def test_a_forecast_begins_after_the_last_row_even_if_it_is_excluded():
    y = pd.Series(np.arange(30.0), pd.date_range("2020-01-01", periods=30))
    y += 0.5 * np.random.default_rng(0).normal(size=30)
    y.iloc[-1] += 30
    model = small(outliers="auto").refit(y, kernel="LIN[time]")
    np.testing.assert_array_equal(model.outliers_, [29])
    read = from_dict(json.loads(json.dumps(to_dict(model))))
    for one in (model, read):
        assert one.forecast(1)["time"][0] == np.datetime64("2020-01-31")


def test_kernels_of_series_know_of_gaps_and_constant_columns():
    quick = {"averaging": None, "outliers": None}
    series = monthly(30)
    x = np.arange(30.0)
    x[[5, 20]] = np.nan
    model = forecasts(**quick, target_scale=None, periods={0: []}).fit(
        x[:, None], series.to_numpy()
    )
    assert {"IOU[0] + RW[0]", "LIN[0] + MAT12[0]"} < set(model.search_history_["kernel"])
    assert model._fitted.columns[0].n_gaps > 0
    with pytest.warns(UserWarning, match="every column of X is constant"):
        constant = forecasts(target_scale=None).fit(np.ones((30, 1)), series.to_numpy())
    assert constant.best_expression_ == "NOISE"
    # on each scale of a positive target, and a start kernel besides
    started = forecasts(**quick, start_kernel="log(y) ~ RW[time]").fit(100 + series)
    kernels = {f"{scale}(y) ~ IOU[time] + RW[time]" for scale in ("log", "sqrt")}
    assert {"log(y) ~ RW[time]", *kernels} <= set(started.search_history_["kernel"])


@pytest.mark.parametrize("seed", [5, 8])
def test_series_are_fitted_again_if_the_best_kernel_has_other_outliers(seed):
    rng = np.random.default_rng(seed)
    y = 20 + rng.normal(size=60).cumsum()
    y[[20, 41]] += rng.choice([-1, 1], 2) * rng.uniform(6, 12, 2)
    model = forecasts(target_scale=None).fit(np.arange(60)[:, None], y)
    assert set(model.outliers_) <= {20, 41}


def test_a_peak_of_every_season_is_no_outlier():
    y = monthly(60).to_numpy().copy()
    y[11::12] += 10
    model = forecasts(periods={0: 12}).fit(np.arange(60)[:, None], y)
    assert len(model.outliers_) == 0
    peak = model.forecast(12)["mean"]
    assert np.argmax(peak) == 11


@pytest.mark.parametrize(
    "kernel", ["RW[0] + IOU[0]", "LIN[0] + MAT12[0] + PER12[0]", "RW[0] + IOU[0] + PER12[0]"]
)
def test_few_runs_from_nearly_all_draws_find_the_same_mode(kernel):
    y = airline()[0].to_numpy()
    settings = {"periods": {0: 12.0}, "averaging": None, "outliers": None}
    scores = [
        AutoKernelGPRegressor(random_state=seed, **settings)
        .refit(np.arange(len(y))[:, None], y, f"log(y) ~ {kernel}")
        .best_score_
        for seed in range(4)
    ]
    # of 150 seeds, 3 end 2.5 nats lower with the season, in this and in earlier versions
    assert np.ptp(np.sort(scores)[1:]) < 0.05


def test_words_say_how_far_a_level_wanders():
    steps = np.random.default_rng(0).normal(size=100)
    y = pd.Series(3 * steps.cumsum(), pd.date_range("2020-01-01", periods=100), name="level")
    text = small(averaging=None).refit(y, kernel="RW[time]").describe()
    drift = float(re.search(r"Its level drifts by about (\S+) from one row to the next\.", text)[1])
    assert drift == pytest.approx(3, rel=0.21)  # of 99 steps: three standard errors
    assert "drifts" not in small(averaging=None).refit(y[:30], kernel="IOU[time]").describe()


@pytest.mark.parametrize("name", ["mean", "0.5", "0.1000001"])
def test_a_column_with_the_name_of_a_forecast_is_told_from_it(name):
    X = pd.DataFrame({name: np.arange(20.0)})
    model = small().refit(X, X[name], f'LIN["{name}"]')
    table = model.forecast(2, [0.1000001, 0.1000002, 0.5])
    assert list(table) == [f"{name} of X", "mean", "0.1000001", "0.1000002", "0.5"]
    np.testing.assert_array_equal(table[f"{name} of X"], [20, 21])
    np.testing.assert_allclose(table["mean"], [20, 21], rtol=1e-3)
    with pytest.raises(ValueError, match=r"quantiles must differ, got \['0.5', '0.5'\]"):
        model.forecast(2, [0.5, 0.5])
