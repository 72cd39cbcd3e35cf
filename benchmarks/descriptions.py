"""What fitted kernels say about real data: a page of words, and pictures of the documentation.

``words`` is what `describe` says of fourteen series and tables, and writes docs/descriptions.md.
Eight are those of the folder ``AUTOKERNEL_DATA``, two come with scikit-learn and four with
statsmodels, which has to be installed. Tables have 150 rows drawn at random, long series every
second to fifth row, so that each fit takes seconds.

``pictures`` are those of docs/images, of four data sets: airline and the CO2 of Mauna Loa are
bundled; the irradiance of the sun and 500 of the mixtures of concrete, drawn at random, are in the
folder. Prints the description of each.

    AUTOKERNEL_DATA=folder python benchmarks/descriptions.py words      # three minutes of CPU time
    AUTOKERNEL_DATA=folder python benchmarks/descriptions.py pictures   # ten minutes
    AUTOKERNEL_DATA=folder python benchmarks/descriptions.py pictures --datasets airline
"""

import argparse
import importlib
import re
import textwrap
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

import common
import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from data import path_of
from matplotlib.figure import Figure
from sklearn.datasets import load_diabetes, load_iris

from autokernel import AutoKernelGPRegressor
from autokernel.datasets import load_airline, load_mauna_loa
from autokernel.displays import EffectsDisplay, ForecastDisplay

PAGE, FOLDER = common.TOP / "docs" / "descriptions.md", common.TOP / "docs" / "images"
AGES = [1, 3, 7, 14, 28, 56, 90, 180, 365]  # days, at which concrete is tested
CONCRETE = ["cement", "slag", "fly ash", "water", "plasticizer", "coarse", "fine", "age"]
N_ROWS = 150  # of a table
HEAD = """\
# Real data in words

`AutoKernelGPRegressor(random_state=0).fit(X, y).describe(units)` of fourteen series and tables.
A reader who had the data and the models tried to refute each sentence about a series. What was
refuted has been mended, or is noted below a text. Sentences about tables are checked by a program
that has only the predictions, `tests/stories/reading.py`. This page is
written by `python benchmarks/descriptions.py words`.
"""


@dataclass(frozen=True, slots=True)
class Case:
    """A data set, how it is called, and what is drawn of it."""

    title: str  # or the label of the target in pictures
    load: Callable[[], pd.DataFrame]  # the target is the last column
    units: Mapping[str, str]
    note: str = ""
    beyond: float | None = None  # of a forecast, None for no forecast
    least_share: float = 0.02
    settings: Mapping[str, object] = field(default_factory=dict)
    draw_curves: Callable[[AutoKernelGPRegressor, pd.DataFrame], Figure] | None = None

    def fitted(self) -> tuple[AutoKernelGPRegressor, pd.DataFrame, pd.Series]:
        frame = self.load().reset_index(drop=True)
        X, y = frame.iloc[:, :-1], frame.iloc[:, -1]
        return AutoKernelGPRegressor(**{"random_state": 0, **self.settings}).fit(X, y), X, y


def series(name: str, target: str, step: int = 1) -> Callable[[], pd.DataFrame]:
    """Return what reads a series of the folder, every ``step``-th row."""
    return lambda: (
        pd.read_csv(path_of(f"{name}.csv")).iloc[::step].set_axis(["time", target], axis=1)
    )


def table(name: str) -> Callable[[], pd.DataFrame]:
    """Return what reads some rows of a table of the folder."""
    return lambda: pd.read_csv(path_of(f"{name}.csv")).sample(N_ROWS, random_state=0)


def of_statsmodels(name: str, *columns: str) -> Callable[[], pd.DataFrame]:
    """Return what reads columns of a data set of statsmodels, the target last."""

    def load() -> pd.DataFrame:
        datasets = importlib.import_module("statsmodels.datasets")
        frame = getattr(datasets, name).load_pandas().data.rename(columns=str.lower)
        return frame[list(columns)]

    return load


def diabetes() -> pd.DataFrame:
    data = load_diabetes(as_frame=True, scaled=False).frame
    return data.rename(columns={"target": "progression"}).sample(N_ROWS, random_state=0)


def iris() -> pd.DataFrame:
    """Return three measures of flowers of irises, and the width of their petals."""
    frame = load_iris(as_frame=True).data
    return frame.set_axis(["sepal_length", "sepal_width", "petal_length", "petal_width"], axis=1)


YEARS = {"time": "years"}
CASES = (
    Case(
        "Airline passengers, monthly",
        series("airline", "passengers"),
        YEARS | {"passengers": "thousand passengers"},
    ),
    Case("CO₂ on Mauna Loa", series("mauna", "co2", 3), YEARS | {"co2": "ppm"}),
    Case(
        "Irradiance of the sun, yearly",
        series("solar", "irradiance", 2),
        YEARS | {"irradiance": "W/m2"},
    ),
    Case(
        "Calls to directory assistance in Cincinnati, monthly",
        series("call_centre", "calls"),
        YEARS | {"calls": "calls per day"},
        "In March 1974 a charge was introduced, and calls fell from 634 to 162 within four "
        "months, of which rows 146 and 147 are two. The base kernels have no break; with "
        "`operators=('+', '*', 'cp')` it is found.",
    ),
    Case(
        "Births in Quebec, days",
        series("births", "births", 5),
        YEARS | {"births": "births"},
        "Weekdays explain 63 % of the variance. Two hundred of five thousand days show them as a "
        "pattern of thirteen weeks.",
    ),
    Case(
        "Strength of concrete",
        table("concrete"),
        {"age": "days", "compressive_strength": "MPa"}
        | dict.fromkeys(("cement", "water", "blast_furnace_slag", "fly_ash"), "kg/m3"),
        "With all other columns at their medians the predicted strength is 15 MPa after three "
        "days, 35 MPa after four weeks and 52 MPa after a year.",
    ),
    Case(
        "Noise of airfoils",
        table("airfoil"),
        {"frequency_hz": "Hz", "sound_pressure_level_db": "dB"},
    ),
    Case(
        "Output of a power plant",
        lambda: table("power_plant")().set_axis(
            ["temperature", "vacuum", "pressure", "humidity", "output"], axis=1
        ),
        {"temperature": "°C", "vacuum": "cm Hg", "pressure": "mbar", "output": "MW"},
    ),
    Case("Progression of diabetes", diabetes, {"age": "years", "bmi": "kg/m2"}),
    Case("Width of petals of irises", iris, {"petal_width": "cm", "petal_length": "cm"}),
    Case(
        "Flow of the Nile, yearly",
        of_statsmodels("nile", "year", "volume"),
        {"year": "years"},
        "A step in 1899 fits better than a curve. The base kernels have no step.",
    ),
    Case(
        "Sunspots, yearly",
        lambda: of_statsmodels("sunspots", "year", "sunactivity")().tail(N_ROWS),
        {"year": "years"},
    ),
    Case(
        "Food of Belgian households (Engel)",
        of_statsmodels("engel", "income", "foodexp"),
        {"income": "francs", "foodexp": "francs"},
    ),
    Case(
        "Employment in the USA (Longley)",
        of_statsmodels("longley", "gnpdefl", "gnp", "unemp", "armed", "pop", "year", "totemp"),
        {"totemp": "thousand people"},
    ),
)


def described(case: Case) -> Iterator[str]:
    print(case.title, flush=True)
    model, X, y = case.fitted()
    units = {name: unit for name, unit in case.units.items() if name in {*X, y.name}}
    yield f"## {case.title}"
    rows = f"{len(y)} rows; `{y.name}` by {', '.join(f'`{name}`' for name in X)}."
    yield "\n".join(textwrap.wrap(rows, 119))
    for paragraph in model.describe(units).split("\n\n"):
        escaped = re.sub(r"^(\d+)\. ", r"\1\\. ", paragraph)
        wrapped = textwrap.wrap(escaped.replace("_", r"\_"), 117, break_on_hyphens=False)
        yield "\n".join(f"> {line}" for line in wrapped)
    if case.note:
        yield "\n".join(textwrap.wrap(case.note, 119))


def write_page() -> None:
    blocks = [HEAD.strip()]
    for case in CASES:
        for block in described(case):
            quoted = block.startswith(">") and blocks[-1].startswith(">")
            blocks.append(f">\n{block}" if quoted else f"\n{block}")
    PAGE.write_text("\n".join(blocks) + "\n")


def concrete() -> pd.DataFrame:
    """Read 500 of the mixtures, drawn at random; the target has no name."""
    table = pd.read_csv(path_of("concrete.csv")).astype(float)
    rows = np.random.default_rng(0).permutation(len(table))[:500]
    return table.iloc[rows].set_axis([*CONCRETE, ""], axis=1)


def draw_ages(model: AutoKernelGPRegressor, X: pd.DataFrame) -> Figure:
    """Draw the strength over the age for three amounts of cement, other columns at their medians.

    Bands contain the mean of the strength with a probability of 90 %.
    """
    figure, ax = plt.subplots(figsize=(7.0, 3.6), layout="constrained")
    ages = np.geomspace(AGES[0], AGES[-1], 200)
    rows = pd.concat([X.median().to_frame().T] * len(ages), ignore_index=True).assign(age=ages)
    for share, colour in ((0.9, "tab:red"), (0.5, "tab:blue"), (0.1, "tab:green")):
        cement = X["cement"].quantile(share)
        mean, std = model.predict(rows.assign(cement=cement), return_std="function")
        ax.fill_between(ages, mean - 1.64 * std, mean + 1.64 * std, color=colour, alpha=0.2, lw=0)
        ax.plot(ages, mean, color=colour, label=f"{cement:.0f} kg/m³ of cement")
    ax.set_xscale("log")
    ax.set_xticks(AGES, list(map(str, AGES)))
    ax.minorticks_off()
    ax.set(xlabel="age in days", ylabel="strength in MPa", ylim=(0, None))
    ax.grid(color="0.92")
    ax.legend(frameon=False, loc="upper left")
    return figure


PICTURES = {
    "airline": Case(
        "thousand passengers",
        lambda: load_airline(as_frame=True).frame,
        {"time": "years", "y": "thousand passengers"},
        beyond=0.3,
    ),
    "mauna": Case(
        "CO$_2$ in ppm",
        lambda: load_mauna_loa(as_frame=True).frame,
        {"time": "years", "y": "ppm"},
        beyond=0.2,
        least_share=0.01,
    ),
    "solar": Case(
        "irradiance in W/m²",
        lambda: series("solar", "")().rename(columns={"time": "year"}),
        {"year": "years", "y": "W/m²"},
        beyond=0.1,
        settings={"operators": ("+", "*", "cw"), "max_leaves": 4},
    ),
    "concrete": Case(
        "strength in MPa",
        concrete,
        dict.fromkeys(CONCRETE[:-1], "kg/m³") | {"age": "days", "y": "MPa"},
        least_share=0.05,
        draw_curves=draw_ages,
    ),
}


def draw(name: str) -> None:
    case = PICTURES[name]
    model, X, _ = case.fitted()
    print(f"{name}: {model.best_expression_}\n\n{model.describe(case.units)}\n", flush=True)
    effects = EffectsDisplay.from_estimator(
        model, units=case.units, y_name=case.title, least_share=case.least_share
    )
    figures = {"components": effects.figure_}
    if case.beyond is not None:
        forecast = ForecastDisplay.from_estimator(model, beyond=case.beyond, y_name=case.title)
        figures["forecast"] = forecast.figure_
    if case.draw_curves is not None:
        figures["curves"] = case.draw_curves(model, X)
    for what, figure in figures.items():
        path = FOLDER / f"{name}_{what}.png"
        figure.savefig(path, dpi=110)
        print(f"drawn: {path}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("what", choices=("words", "pictures"))
    parser.add_argument("--datasets", nargs="+", default=list(PICTURES), choices=PICTURES)
    arguments = parser.parse_args()
    mpl.use("Agg")
    if arguments.what == "words":
        write_page()
    else:
        for name in arguments.datasets:
            draw(name)


if __name__ == "__main__":
    main()
