"""What `describe` says of fourteen real series and tables, as a page of the documentation.

Eight are those of the folder ``AUTOKERNEL_DATA``, two come with scikit-learn and four with
statsmodels, which has to be installed. Tables have 150 rows drawn at random, long series every
second to fifth row, so that each fit takes seconds. Writes docs/descriptions.md.

    AUTOKERNEL_DATA=folder python benchmarks/descriptions.py    # three minutes of CPU time
"""

import importlib
import re
import textwrap
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from data import path_of  # isort: skip
from sklearn.datasets import load_diabetes, load_iris

from autokernel import AutoKernelGPRegressor

PAGE = Path(__file__).parent.parent / "docs" / "descriptions.md"
N_ROWS = 150  # of a table
HEAD = """\
# Real data in words

`AutoKernelGPRegressor(random_state=0).fit(X, y).describe(units)` of fourteen series and tables.
A reader who had the data and the models tried to refute each sentence about a series. What was
refuted has been mended, or is noted below a text. Sentences about tables are checked by a program
that has only the predictions, `tests/stories/reading.py`. `python benchmarks/descriptions.py`
writes this page.
"""


@dataclass(frozen=True, slots=True)
class Case:
    """A data set, and how it is called."""

    title: str
    load: Callable[[], pd.DataFrame]  # the target is the last column
    units: Mapping[str, str]
    note: str = ""


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
    frame = case.load().reset_index(drop=True)
    X, y = frame.iloc[:, :-1], frame.iloc[:, -1]
    units = {name: unit for name, unit in case.units.items() if name in frame}
    print(case.title, flush=True)
    model = AutoKernelGPRegressor(random_state=0).fit(X, y)
    yield f"## {case.title}"
    rows = f"{len(y)} rows; `{y.name}` by {', '.join(f'`{name}`' for name in X)}."
    yield "\n".join(textwrap.wrap(rows, 119))
    for paragraph in model.describe(units).split("\n\n"):
        escaped = re.sub(r"^(\d+)\. ", r"\1\\. ", paragraph)
        wrapped = textwrap.wrap(escaped.replace("_", r"\_"), 117, break_on_hyphens=False)
        yield "\n".join(f"> {line}" for line in wrapped)
    if case.note:
        yield "\n".join(textwrap.wrap(case.note, 119))


def main() -> None:
    blocks = [HEAD.strip()]
    for case in CASES:
        for block in described(case):
            quoted = block.startswith(">") and blocks[-1].startswith(">")
            blocks.append(f">\n{block}" if quoted else f"\n{block}")
    PAGE.write_text("\n".join(blocks) + "\n")


if __name__ == "__main__":
    main()
