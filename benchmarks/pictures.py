"""The pictures of docs/images: what fitted kernels say about four data sets.

airline and the CO2 of Mauna Loa are bundled; the irradiance of the sun and concrete are read from
the folder of the benchmarks. Prints the description of each.

    AUTOKERNEL_DATA=folder python benchmarks/pictures.py      # ten minutes
    AUTOKERNEL_DATA=folder python benchmarks/pictures.py --datasets airline
"""

import argparse
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from autokernel import AutoKernelGPRegressor
from autokernel.datasets import load_airline, load_mauna_loa
from autokernel.displays import EffectsDisplay, ForecastDisplay
from autokernel.export import write_report

from data import read_table  # isort: skip

FOLDER = Path(__file__).parent.parent / "docs" / "images"
DPI = 110
AGES = [1, 3, 7, 14, 28, 56, 90, 180, 365]  # days, at which concrete is tested
CONCRETE = ["cement", "slag", "fly ash", "water", "plasticizer", "coarse", "fine", "age"]


@dataclass(frozen=True)
class Picture:
    """A data set, and what is drawn of it."""

    read: Callable[[], tuple[pd.DataFrame, np.ndarray]]
    units: Mapping[str, str]
    y_name: str
    beyond: float | None = None  # of a forecast, None for no forecast
    least_share: float = 0.02
    settings: Mapping[str, object] = field(default_factory=dict)
    draw_curves: Callable[[AutoKernelGPRegressor, pd.DataFrame], Figure] | None = None


def read_solar() -> tuple[pd.DataFrame, np.ndarray]:
    table = read_table("solar")
    return pd.DataFrame({"year": table[:, 0]}), table[:, 1]


def read_concrete() -> tuple[pd.DataFrame, np.ndarray]:
    """Read the strength of concrete: 500 of the mixtures, drawn at random."""
    table = read_table("concrete")
    rows = np.random.default_rng(0).permutation(len(table))[:500]
    return pd.DataFrame(table[rows, :-1], columns=CONCRETE), table[rows, -1]


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
    "airline": Picture(
        lambda: load_airline(return_X_y=True, as_frame=True),
        {"time": "years", "y": "thousand passengers"},
        "thousand passengers",
        beyond=0.3,
    ),
    "mauna": Picture(
        lambda: load_mauna_loa(return_X_y=True, as_frame=True),
        {"time": "years", "y": "ppm"},
        "CO$_2$ in ppm",
        beyond=0.2,
        least_share=0.01,
    ),
    "solar": Picture(
        read_solar,
        {"year": "years", "y": "W/m²"},
        "irradiance in W/m²",
        beyond=0.1,
        settings={"operators": ("+", "*", "cw"), "max_leaves": 4},
    ),
    "concrete": Picture(
        read_concrete,
        dict.fromkeys(CONCRETE[:-1], "kg/m³") | {"age": "days", "y": "MPa"},
        "strength in MPa",
        least_share=0.05,
        draw_curves=draw_ages,
    ),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--datasets", nargs="+", default=list(PICTURES), choices=PICTURES)
    parser.add_argument("--reports", type=Path, help="folder to write reports to as well")
    arguments = parser.parse_args()
    mpl.use("Agg")
    for name in arguments.datasets:
        picture = PICTURES[name]
        X, y = picture.read()
        settings = {"random_state": 0, **picture.settings}
        model = AutoKernelGPRegressor(**settings).fit(X, y)
        print(f"{name}: {model.best_expression_}\n\n{model.describe(picture.units)}\n", flush=True)
        figures = {
            "components": EffectsDisplay.from_estimator(
                model,
                units=picture.units,
                y_name=picture.y_name,
                least_share=picture.least_share,
            ).figure_
        }
        if picture.beyond is not None:
            figures["forecast"] = ForecastDisplay.from_estimator(
                model, beyond=picture.beyond, y_name=picture.y_name
            ).figure_
        if picture.draw_curves is not None:
            figures["curves"] = picture.draw_curves(model, X)
        for what, figure in figures.items():
            path = FOLDER / f"{name}_{what}.png"
            figure.savefig(path, dpi=DPI)
            print(f"drawn: {path}")
        if arguments.reports is not None:
            write_report(model, arguments.reports / f"{name}.html", units=picture.units)


if __name__ == "__main__":
    main()
