"""Series: dates in an index, the strategy "series", and forecasts of the next rows."""

import datetime
import re

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.special import softmax
from sklearn.base import clone

from autokernel import AutoKernelGPRegressor, parse_expression
from autokernel.data.calendars import rows_ahead
from autokernel.data.dates import days_since_1970
from autokernel.data.periodogram import seasons_of
from autokernel.datasets import load_airline
from autokernel.model.errors import SERIES_LAW
from tests.fits import small, through_json

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
    "decades of days": moments(days=[1, 11, 21]),
    "days of taxes": pd.DatetimeIndex([t for t in moments(days=[15]) if t.month in (1, 4, 6, 9)]),
    "every tenth year": moments(1700, n=40, months=120),
    "second Wednesdays": dates("WOM-2WED"),
    "last Fridays": dates(pd.offsets.LastWeekOfMonth(weekday=4)),
    "fifth Fridays": pd.DatetimeIndex(
        [t for t in steps(*[7] * 30, start="2010-01-01") if t.day > 28]
    ),
    "last working days": dates("BME"),
    "first working days": dates("BMS"),
    "Monday to Saturday": days_of_week("Mon", "Tue", "Wed", "Thu", "Fri", "Sat"),
    "three days of the week": days_of_week("Mon", "Wed", "Fri"),
    "4, 4 and 5 weeks": steps(28, 28, 35),
    "3, 3 and 4 days": steps(3, 3, 4),
    "weeks of 1700": steps(7, start="1700-01-04"),
    "quarters of 2200": moments(2200, months=3),
    "twice a day": dates("D")[:60].repeat(2) + pd.to_timedelta([8, 17] * 60, "h"),
    "hours of offices": dates("bh", "2019-01-07 09:00"),
    "seconds": dates("7s"),
    "days in Berlin": dates("D", "2019-03-01", tz="Europe/Berlin"),
    "months in Berlin": dates("MS", tz="Europe/Berlin"),
    "ends of months in New York": dates("ME", tz="America/New_York"),
    "half months five hours east": dates("SME", tz="UTC+05:00"),
    "hours in Berlin": dates("h", "2019-03-28", tz="Europe/Berlin"),
    "halves of days in Berlin": dates("12h", "2019-03-01", tz="Europe/Berlin"),
}
FREQUENCIES = ("MS", "ME", "2MS", "QS", "QE", "YS", "YE", "D", "W", "h", "B")
CALENDARS |= {freq: dates(freq, "2020-01-31")[:34] for freq in FREQUENCIES}


@pytest.mark.parametrize("name", CALENDARS)
def test_dates_go_on_in_their_calendar_also_if_rows_are_missing(name):
    found = CALENDARS[name]
    zone = str(found.tz or "")
    days = days_since_1970(found.tz_convert(None).to_numpy() if zone else found.to_numpy())
    n = len(days) - N_AHEAD
    for n_rows in (n, 3 * n // 4):
        few = days[n_rows - 10 : n_rows] if name in FREQUENCIES else days[:n_rows]
        for known in (days[:n_rows], np.delete(days[:n_rows], [4, 9, 10]), few):
            ahead = rows_ahead(known, N_AHEAD, are_dates=True, zone=zone)
            np.testing.assert_allclose(ahead, days[n_rows : n_rows + N_AHEAD], rtol=0, atol=1e-9)


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


@pytest.mark.parametrize(
    ("first", "zone"),
    [("1500", "Europe/Berlin"), ("1677", "America/Sao_Paulo"), ("2230", "Asia/Kathmandu")],
)
def test_periods_of_any_year_and_dates_in_zones_are_forecast(first, zone):
    years = pd.Series(monthly(20).to_numpy(), pd.period_range(first, periods=20, freq="Y"))
    found = small().refit(years, kernel="LIN[time]").forecast(2)["time"]
    assert found.tolist() == [datetime.date(int(first) + k, 1, 1) for k in (20, 21)]
    local = dates("MS", tz=zone)[:22]
    model = small().refit(pd.Series(years.to_numpy(), local[:20]), kernel="LIN[time]")
    for one in (model, through_json(model)):
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
    series, later = airline(72)
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
    assert model._fitted.mixture.law == SERIES_LAW
    again, levels = through_json(model), [0.005, 0.995]
    np.testing.assert_array_equal(
        model.predict_quantiles(series.index, levels), again.predict_quantiles(series.index, levels)
    )
    model.refit(series, kernel="RW[time]")
    assert model._fitted.mixture.law == SERIES_LAW
    assert set(model.posterior_["log_prior"]) == {0.0}
    assert set(model.search_history_["phase"]) == {"initial"}


@pytest.mark.parametrize("growth", [np.exp, np.abs])  # of which one is best on the log scale
def test_half_of_the_weights_is_equal_for_near_and_straighter_scales(growth):
    model = forecasts(outliers=None, periods={"time": []}).fit(growth(0.3 * monthly(30) - 3))
    table = model.posterior_
    scales = [text.rpartition("(y)")[0] for text in table["kernel"]]
    kinds = np.array(
        [f"{s} {'RW' in text}" for s, text in zip(scales, table["kernel"], strict=True)]
    )
    log_evidence = table["log_evidence"]
    least = log_evidence.max() - 5
    bends = ["", "sqrt", "log"]
    most = bends.index(scales[log_evidence.argmax()])
    near = {
        kind
        for kind in kinds
        if log_evidence[kinds == kind].max() > least or bends.index(kind.split(" ")[0]) <= most
    }
    assert len(near) > 1
    expected = 0.5 * softmax(log_evidence)
    for kind in near:
        own = kinds == kind
        expected[own] += 0.5 / len(near) * softmax(log_evidence[own])
    # kernels with a weight below 1e-3 are not in the table
    np.testing.assert_allclose(table["probability"], expected, atol=0.01)


@pytest.mark.parametrize("grows", [lambda t: t, lambda t: 60 - t])
def test_a_scale_that_the_evidence_rejects_has_no_share(grows):
    # on the log scale a line from zero has wild steps where it is small
    rng, time = np.random.default_rng(0), np.arange(72.0)
    y = np.maximum(grows(time) + rng.normal(size=72), 0.01)
    model = forecasts().fit(time[:60, None], y[:60])
    table = model.forecast(6)
    assert {one.expression.target for one in model._fitted.mixture.components} == {"identity"}
    width = table["0.975"] - table["0.025"]
    assert np.all(width < 2.5 * 2 * 1.96)  # of the noise, whose deviation is one
    assert np.abs(table["mean"] - grows(time[60:66])).max() < 3


def test_the_shortest_of_several_seasons_may_change():
    rng, t, memory = np.random.default_rng(0), np.arange(208), np.exp(-1 / 24)
    swings = np.empty((208, 2))
    for row in t:  # an Ornstein-Uhlenbeck process
        before = swings[row - 1] if row else rng.normal(size=2)
        swings[row] = memory * before + np.sqrt(1 - memory**2) * rng.normal(size=2)
    season = np.column_stack([np.cos(2 * np.pi * t / 8), np.sin(2 * np.pi * t / 8)])
    X, steady = t[:, None].astype(float), 1.5 * season[:, 0] + np.sin(2 * np.pi * t / 40)
    noise, densities = 0.2 * rng.normal(size=208), []
    settings = {"strategy": "series", "periods": {0: (8, 40)}, "target_scale": None}
    for n_iter, is_steady in ((0, False), (1, False), (1, True)):
        y = steady + noise + (0 if is_steady else 0.7 * (swings * season).sum(axis=1))
        model = AutoKernelGPRegressor(n_iter=n_iter, random_state=0, verbose=0, **settings)
        model.fit(X[:200], y[:200])
        changes = n_iter > 0 and not is_steady
        assert ("MAT12[0] * PER8[0]" in model.best_expression_) is changes
        densities.append(model.log_predictive_density(X[200:], y[200:]).mean())
    assert densities[1] > densities[0]


def test_groups_of_a_series_have_one_noise():
    rng, n = np.random.default_rng(0), 60
    X = pd.DataFrame({"shop": np.repeat(list("abcd"), n), "week": np.tile(np.arange(n), 4)})
    steps = np.repeat([0.1, 0.1, 1, 1], n) * rng.normal(size=4 * n)
    y = pd.Series(steps).groupby(X["shop"]).cumsum() + 0.1 * rng.normal(size=4 * n)
    model = AutoKernelGPRegressor(strategy="series", random_state=0, verbose=0).fit(X, y)
    noises = (terms.terms for terms in model._fitted.mixture.data.varying.values())
    assert not any(term.column == 0 for terms in noises for term in terms)


def test_what_it_cannot_fit_is_refused():
    x, y = np.arange(20.0)[:, None], np.arange(20.0) % 3
    squares = x**2
    with pytest.raises(ValueError, match=r"needs a column of time: .*; 2 columns vary, and none"):
        forecasts().fit(np.c_[squares, -squares], y)
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
    with pytest.raises(
        ValueError, match=r"numbers at equal steps, .*\['x0', 'x1'\]: give the rows"
    ):
        model.forecast(3)


def test_a_forecast_begins_after_the_last_row_even_if_it_is_excluded():
    y = pd.Series(np.arange(30.0), pd.date_range("2020-01-01", periods=30))
    y += 0.5 * np.random.default_rng(0).normal(size=30)
    y.iloc[-1] += 30
    model = small(outliers="auto").refit(y, kernel="LIN[time]")
    np.testing.assert_array_equal(model.outliers_, [29])
    read = through_json(model)
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
    model = forecasts(periods={0: 12}, target_scale=None).fit(np.arange(60)[:, None], y)
    assert len(model.outliers_) == 0
    peak = model.forecast(12)["mean"]
    assert np.argmax(peak) == 11


@pytest.mark.parametrize(
    "kernel", ["RW[0] + IOU[0]", "LIN[0] + MAT12[0] + PER12[0]", "RW[0] + IOU[0] + PER12[0]"]
)
def test_few_runs_from_nearly_all_draws_find_the_same_mode(kernel):
    y = airline(72)[0].to_numpy()
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


LEVELS = (0.1, 0.5, 0.9)


def priced(n=40, *, seed=0):
    """A level that wanders and depends on a price and a promotion, by month."""
    rng = np.random.default_rng(seed)
    dates = pd.date_range("2019-01-01", periods=n, freq="MS")
    frame = pd.DataFrame(
        {"price": rng.uniform(1, 3, n), "date": dates, "promoted": np.arange(n) % 3 > 1}
    )
    level = 20 + 0.2 * rng.normal(size=n).cumsum()
    return frame, (level - 4 * frame["price"] + 3 * frame["promoted"]).to_numpy()


def test_next_rows_of_other_columns_are_given_in_any_form():
    X, y = priced()
    kernel = "RW[date] + LIN[price] + CAT[promoted]"
    model = small(averaging=None).refit(X[:30], y[:30], kernel)
    future = X[30:34]
    expected = model.predict_quantiles(future, LEVELS)
    forms = {
        "with dates": future,
        "in another order": future[["promoted", "price"]],
        "dates in the index": future.set_index("date"),
        "polars": pl.from_pandas(future[["price", "promoted"]]),
    }
    for X_next in forms.values():
        table = model.forecast(4, LEVELS, X=X_next)
        assert list(table) == ["date", "mean", "0.1", "0.5", "0.9"]
        np.testing.assert_array_equal(table["date"].astype("M8[ns]"), future["date"].to_numpy())
        found = np.column_stack([table[f"{level}"] for level in LEVELS])
        np.testing.assert_allclose(found, expected, rtol=1e-9)
    numbers = X[["price"]].assign(row=np.arange(40)).to_numpy()
    model = small(averaging=None).refit(numbers[:30], y[:30], "LIN[0] + RW[1]")
    for X_next in (numbers[30:34], numbers[30:34, :1]):
        table = model.forecast(4, LEVELS, X=X_next)
        np.testing.assert_array_equal(table["x1"], [30, 31, 32, 33])
        np.testing.assert_allclose(table["mean"], model.predict(numbers[30:34]), rtol=1e-12)


def test_what_is_missing_of_the_next_rows_is_said_by_name():
    X, y = priced()
    model = small().refit(X[:30], y[:30], "RW[date] + LIN[price] + CAT[promoted]")
    with pytest.raises(ValueError, match=r"next rows of 'price', 'promoted', .* got no X: give"):
        model.forecast(2)
    with pytest.raises(ValueError, match=r"next rows of 'promoted', .* got X without it"):
        model.forecast(2, X=X[["price"]][30:32])
    with pytest.raises(ValueError, match=r"X must have columns of the fit.*'cost'"):
        model.forecast(2, X=X[30:32].assign(cost=1.0))
    with pytest.raises(ValueError, match="X must have horizon=2 rows, got 3"):
        model.forecast(2, X=X[30:33])
    unused = small().refit(X[:30], y[:30], "RW[date]")  # no other column matters
    np.testing.assert_array_equal(unused.forecast(2)["mean"], unused.predict(X[30:32]))


def panel(ends=(30, 30, 24), *, seed=0):
    """Levels of shops that wander, with effects of a price; one shop ends earlier."""
    rng = np.random.default_rng(seed)
    parts = []
    for name, level, n in zip("abc", (10.0, 30.0, 20.0), ends, strict=True):
        weeks = pd.date_range("2020-01-06", periods=n, freq="W-MON")
        walk = level + 0.3 * rng.normal(size=n).cumsum()
        price = rng.uniform(1, 2, n)
        parts.append(
            pd.DataFrame({"shop": name, "week": weeks, "price": price, "y": walk - 3 * price})
        )
    frame = pd.concat(parts).sample(frac=1, random_state=seed)  # rows in any order
    return frame[["shop", "week", "price"]], frame["y"]


def test_each_group_goes_on_from_its_own_last_row():
    X, y = panel()
    model = small(averaging=None).refit(X, y, "CAT[shop] * RW[week] + LIN[price]")
    future = pd.DataFrame({"shop": ["c", "c", "a", "a"], "price": [1.0, 2.0, 1.0, 2.0]})
    table = model.forecast(2, X=future)
    assert list(table)[:3] == ["shop", "week", "mean"]
    weeks = pd.date_range("2020-01-06", periods=32, freq="W-MON")
    rows = future.assign(week=weeks[[24, 25, 30, 31]])
    assert table["shop"].tolist() == ["c", "c", "a", "a"]
    np.testing.assert_array_equal(table["week"].astype("M8[ns]"), rows["week"].to_numpy())
    np.testing.assert_allclose(table["mean"], model.predict(rows[["shop", "week", "price"]]))
    # rows without the column of groups hold for every group
    common = model.forecast(2, X=future[["price"]][:2])
    assert common["shop"].tolist() == ["a", "a", "b", "b", "c", "c"]
    np.testing.assert_allclose(common["mean"][:2], table["mean"][2:])
    # a shop that is new begins after all others, and one of few rows goes on as these do
    new = model.forecast(1, X=pd.DataFrame({"shop": ["d"], "price": [1.0]}))
    assert new["week"][0] == weeks[30]
    few = (X["shop"] != "c") | (X["week"] < weeks[3])
    model = small(averaging=None, noise="constant")
    model.refit(X[few], y[few], "CAT[shop] * RW[week]")
    expected = weeks[[30, 31, 30, 31, 3, 4]].to_numpy()
    np.testing.assert_array_equal(model.forecast(2)["week"].astype("M8[ns]"), expected)
    with pytest.raises(ValueError, match="X must have horizon=2 rows for each group, got 1"):
        model.forecast(2, X=future[:3])


def test_one_group_whose_next_row_is_the_last_of_all_is_forecast():
    X, y = panel(ends=(30, 30, 29))
    model = small(averaging=None).refit(X, y, "CAT[shop] * RW[week] + LIN[price]")
    every = model.forecast(1, X=pd.DataFrame({"shop": [*"abc"], "price": 1.5}))
    only = model.forecast(1, X=pd.DataFrame({"shop": ["c"], "price": [1.5]}))
    assert only["week"].tolist() == [datetime.date(2020, 7, 27)]  # as the last row of a and b
    np.testing.assert_allclose(only["mean"], every["mean"][2:])
    # the texts of numbers differ where the numbers do
    x = pd.DataFrame({"k": [*range(1000, 1030), *range(1000, 1029)], "g": ["a"] * 30 + ["b"] * 29})
    model = small(averaging=None).refit(x, x["k"], "LIN[k] + CAT[g]")
    assert "1029" in str(model.forecast(1, X=pd.DataFrame({"g": ["b"]})))


@pytest.mark.parametrize(
    ("own", "others", "following"),
    [
        (["2020-01-01", 6, "W"], ["2020-01-01", 60, "D"], ["2020-02-16", "2020-02-23"]),
        (["2020-01-31", 7, "ME"], ["2020-01-01", 220, "D"], ["2020-08-31", "2020-09-30"]),
        (["2020-01-06", 4, "14D"], ["2020-01-06", 30, "W-MON"], ["2020-03-02", "2020-03-16"]),
        (["2000-01-01", 5, "YS"], ["2000-01-01", 70, "MS"], ["2005-01-01", "2006-01-01"]),
        # four days of a week, as the others have them, say nothing of its end
        (["2020-01-06", 4, "D"], ["2020-01-06", 60, "B"], ["2020-01-10", "2020-01-13"]),
        ([10, 6, 5], [0, 60, 1], [40.0, 45.0]),
        ([10, 6, 1], [0, 60, 1], [16.0, 17.0]),
    ],
)
def test_a_short_group_at_equal_steps_keeps_them(own, others, following):
    def times(start, n, step):
        if isinstance(start, int):
            return pd.Series(start + step * np.arange(n))
        return pd.Series(pd.date_range(start, periods=n, freq=step))

    t = pd.concat([times(*own), times(*others), times(*others)], ignore_index=True)
    X = pd.DataFrame({"t": t, "g": np.repeat(["own", "a", "b"], [own[1], others[1], others[1]])})
    model = small(averaging=None).refit(X, np.arange(len(X)) % 7, "CAT[g]")
    table = model.forecast(2, X=pd.DataFrame({"g": ["own"] * 2}))
    assert table["t"].astype(str).tolist() == [str(one) for one in following]


def shops(n=30, *, seed=0):
    """Shops with whole numbers as names, that wander by week."""
    rng = np.random.default_rng(seed)
    weeks = pd.date_range("2022-01-02", periods=n, freq="W")
    X = pd.concat([pd.DataFrame({"week": weeks, "shop": shop}) for shop in (1, 2, 3)])
    return X, np.concatenate([level + rng.normal(size=n).cumsum() for level in (5, 30, 10)])


def test_whole_numbers_that_name_groups_are_said_with_what_to_do():
    X, y = shops()
    model = small(averaging=None).refit(X, y, "LIN[week] + SE[shop]")
    remedy = r"same 'week', and the whole numbers of 'shop' .*categorical_features=\['shop'\]"
    for given in (None, pd.DataFrame({"shop": [1, 1, 2, 2, 3, 3]})):
        with pytest.raises(ValueError, match=remedy):
            model.forecast(2, X=given)
    with pytest.warns(UserWarning, match=remedy):
        model.forecast(2, X=pd.DataFrame({"shop": [2, 2]}))
    with pytest.warns(UserWarning, match=remedy):  # which would be one level for all
        small(averaging=None, noise="constant").refit(X, y, "LIN[week]").forecast(2)
    model = small(averaging=None, categorical_features=["shop"]).refit(X, y, "CAT[shop]")
    assert model.forecast(1)["shop"].tolist() == [1, 2, 3]
    # next to categories, without names of columns, and without dates
    both = pd.concat([X.assign(city=city) for city in "ab"])
    model = small(averaging=None).refit(both, np.r_[y, y], "SE[shop]")
    with pytest.raises(ValueError, match=r"of 'shop' .*features=\['shop', 'city'\]"):
        model.forecast(1)
    numbers = np.column_stack([np.tile(np.arange(30.0), 3), X["shop"]])
    with pytest.raises(ValueError, match=r"same 'x0', .* of 1 separate .*_features=\[1\]"):
        small(averaging=None).refit(numbers, y, "SE[1]").forecast(1)
    # numbers that do not separate rows, as prices, are not named
    priced = X[:30].assign(price=np.arange(30) % 4)
    with pytest.raises(ValueError, match=r"^forecast needs the next rows of 'price'"):
        small(averaging=None).refit(priced, y[:30], "LIN[price]").forecast(1)


@pytest.mark.parametrize("n_others", [0, 30])
def test_groups_of_two_columns_are_found_also_among_many_categories(n_others, rng):
    X, y = panel()
    both = pd.concat([X.assign(product=product) for product in "pq"]).drop(columns="price")
    for number in range(n_others):  # of which no three are groups
        both.insert(number % 3, f"c{number}", rng.choice([*"abcdefg"[: 2 + number % 6]], len(both)))
    model = small(averaging=None).refit(both, np.r_[y, y + 1], "CAT[shop] + CAT[product]")
    table = model.forecast(1)
    assert [*zip(table["shop"], table["product"], strict=True)] == [
        (shop, product) for shop in "abc" for product in "pq"
    ]
    with pytest.raises(ValueError, match=r"all columns that make up a group, .* only \['shop'\]"):
        model.forecast(1, X=pd.DataFrame({"shop": ["a"]}))


def test_a_constant_column_changes_no_series():
    x, y = np.cumsum(np.random.default_rng(0).uniform(0.5, 2, 30)), monthly(30).to_numpy()
    plain = forecasts(averaging=None, outliers=None, target_scale=None)
    alone = clone(plain).fit(x[:, None], y)
    model = clone(plain).fit(np.column_stack([np.ones(30), x]), y)
    assert model.best_score_ == pytest.approx(alone.best_score_, abs=1e-6)
    assert model.best_expression_ == alone.best_expression_.replace("[0]", "[1]")


def test_a_few_kernels_have_the_effects_of_other_columns():
    X, y = priced(60)
    X["nothing"] = np.random.default_rng(1).normal(size=60)
    y = y + 4 * np.sin(2 * X["price"])
    quick = {"target_scale": None, "averaging": None, "noise": "constant", "outliers": None}
    model = forecasts(**quick).fit(X[:50], y[:50])
    best = parse_expression(model.best_expression_, list(X))
    by_column = [leaf.column for leaf in best.leaves if leaf.column != 1]
    assert sorted(by_column) == [0, 2]  # each once, and what does not matter is left out
    assert any(text in model.best_expression_ for text in ("SE[price]", "SE[log(price)]"))
    assert len(model.search_history_["kernel"]) <= 20
    error = model.forecast(10, X=X[50:])["0.5"] - y[50:]
    alone = forecasts(**quick).fit(X[["date"]][:50], y[:50])
    of_time = alone.forecast(10)["0.5"] - y[50:]
    assert np.abs(error).mean() < np.abs(of_time).mean() / 3  # promotions alone are worth 3 units


def test_groups_share_levels_and_have_their_own():
    X, y = panel()
    model = forecasts(target_scale=None, averaging=None, outliers=None).fit(X[["shop", "week"]], y)
    assert "CAT[shop] * " in model.best_expression_
    table = model.forecast(1)
    assert table["shop"].tolist() == ["a", "b", "c"]
    latest = X.assign(y=y).sort_values("week").groupby("shop")["y"]
    # levels are 10 apart, prices move the target by at most 3, and walks by .3 a week
    np.testing.assert_allclose(table["mean"], latest.apply(lambda one: one.tail(10).mean()), atol=3)


def test_times_of_the_next_rows_follow_the_last_one_whatever_their_index_is_called():
    X, y = priced(48)
    X = X.set_index("date")
    model = small(averaging=None).refit(X[:40], y[:40], "RW[date] + LIN[price] + CAT[promoted]")
    expected = model.forecast(4, X=X[40:44].reset_index(drop=True))
    for name in (None, "when"):
        np.testing.assert_array_equal(
            model.forecast(4, X=X[40:44].rename_axis(name))["mean"], expected["mean"]
        )
    wrong = {"known": X[39:40], "early": X[3:5], "twice": X.iloc[[40, 40]]}
    no_time = X[40:42].reset_index()
    no_time.loc[1, "date"] = None
    for rows in (*wrong.values(), no_time):
        with pytest.raises(ValueError, match="times in column 'date' that follow the last row, in"):
            model.forecast(len(rows), X=rows)
    of_price = small(averaging=None).refit(X[["price"]][:40], y[:40], "RW[date] + LIN[price]")
    series = of_price.forecast(2, X=X["price"][40:42])  # a series is one of the columns
    np.testing.assert_array_equal(series["mean"], of_price.predict(X[["price"]][40:42]))


def test_groups_are_those_of_the_fit_also_if_rows_are_repeated_or_join():
    X, y = panel((20, 20, 20))
    kernel = "CAT[shop] * RW[week]"
    repeated = small(averaging=None, noise="constant")
    repeated.refit(pd.concat([X, X[:12]]), pd.concat([y, y[:12]]), kernel)
    assert repeated.forecast(1)["shop"].tolist() == ["a", "b", "c"]
    for _ in range(3):
        repeated.update(X[:6], y[:6])
    for one in (repeated, through_json(repeated)):
        assert one.forecast(1)["shop"].tolist() == ["a", "b", "c"]


@pytest.mark.parametrize("has_dates", [True, False])
def test_a_long_and_a_short_group_are_a_panel(has_dates):
    X, y = panel((90, 25, 3))
    X, y = X[X["shop"] != "c"], y[X["shop"] != "c"]
    if not has_dates:
        X = X.assign(week=(X["week"] - X["week"].min()).dt.days / 7.0)
    model = small(averaging=None, noise="constant").refit(X, y, "CAT[shop] * RW[week]")
    table = model.forecast(1)
    assert table["shop"].tolist() == ["a", "b"]
    assert np.argsort(table["week"]).tolist() == [1, 0]


def test_few_leaves_leave_out_effects():
    X, y = priced(40)
    model = forecasts(max_leaves=3, target_scale=None, averaging=None).fit(X, y)
    assert parse_expression(model.best_expression_, list(X)).n_leaves == 3
    with pytest.raises(ValueError, match="and the column of time be on its own scale"):
        forecasts(base_kernels={"date": ["SE"]}).fit(X, y)


def test_a_column_has_one_effect_also_if_it_bends_on_two_scales():
    rng, x = np.random.default_rng(0), np.linspace(0, 1, 120)
    X = pd.DataFrame({"t": np.arange(120.0), "x": rng.permutation(x)})
    y = 30 * np.sin(3 * X["x"]) + np.sin(50 * X["x"]) + 0.1 * rng.normal(size=120)
    quick = {"target_scale": None, "column_scales": None, "noise": "constant", "outliers": None}
    model = forecasts(**quick).fit(X, y)  # a second term would have 150 nats more
    assert model.best_expression_.count("[x]") == 1


def test_rows_without_a_time_or_a_group_follow_no_other():
    X, y = panel((12, 12, 12))
    X = X.assign(week=(X["week"] - X["week"].min()).dt.days / 7.0).reset_index(drop=True)
    X.loc[3, "week"] = np.nan
    model = small(averaging=None, noise="constant").refit(X, y, "CAT[shop] + LIN[week]")
    table = model.forecast(2, X=pd.DataFrame({"week": [12.0, 13.0]}))
    assert table["shop"].tolist() == ["a", "a", "b", "b", "c", "c"]
    np.testing.assert_array_equal(table["week"], [12, 13] * 3)
    np.testing.assert_array_equal(table["mean"], model.forecast(2)["mean"])
