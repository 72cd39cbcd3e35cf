"""Common parts of all data sets: the description, the Bunch, the file reader, the data folder."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.resources.abc import Traversable
from os import PathLike
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from sklearn.utils import Bunch

from autokernel.typing import FloatArray

DATA_FOLDER_VARIABLE = "AUTOKERNEL_DATA"

StrPath: TypeAlias = str | PathLike[str]
# Any stands for (data, target) if return_X_y; the type of a bool argument cannot express this.
Dataset: TypeAlias = Bunch | Any


@dataclass(frozen=True, slots=True)
class Description:
    """The names and the text that describe a data set."""

    feature_names: tuple[str, ...]
    target_name: str
    text: str  # source, units, citation

    @property
    def column_names(self) -> tuple[str, ...]:
        """Names of the features, followed by the target."""
        return (*self.feature_names, self.target_name)


@dataclass(frozen=True, slots=True, eq=False)  # eq=False: both are arrays
class Samples:
    """The numbers of a data set."""

    data: FloatArray  # (n_samples, n_features)
    target: FloatArray  # (n_samples,)


def make_dataset(
    description: Description, samples: Samples, *, caller: str, return_X_y: bool, as_frame: bool
) -> Dataset:
    """Build a Bunch or ``(data, target)`` as scikit-learn's loaders do, of arrays or pandas."""
    data, target, frame = samples.data, samples.target, None
    feature_names = list(description.feature_names)
    if as_frame:
        pandas = _import_pandas(f"{caller} with as_frame=True")
        columns = list(description.column_names)
        frame = pandas.DataFrame(np.column_stack([data, target]), columns=columns)
        data, target = frame[feature_names], frame[description.target_name]
    if return_X_y:
        return data, target
    return Bunch(
        data=data,
        target=target,
        frame=frame,
        DESCR=description.text,
        feature_names=feature_names,
        target_names=[description.target_name],
    )


def read_table(file: Traversable, *, names: Sequence[str], delimiter: str | None) -> FloatArray:
    """Read a text table with one header row into an array of shape (n_rows, n_columns).

    Parameters
    ----------
    file : Path or Traversable
        File to read. Empty lines and lines that start with ``#`` are skipped.
    names : sequence of str
        Columns that the header must have, see :func:`check_columns`.
    delimiter : str or None
        Separator of the columns; None means any white space.

    Raises
    ------
    ValueError
        If the columns differ from ``names``, if a value is not a number or if there are no rows.
    """
    text = file.read_text(encoding="utf-8-sig")  # -sig: spreadsheets write a byte order mark
    stripped = (line.strip() for line in text.splitlines())
    lines = [line for line in stripped if line and not line.startswith("#")]
    header = lines[0].replace('"', "").split(delimiter) if lines else []
    check_columns([name.strip() for name in header], names=names, source=str(file))
    rows = lines[1:]
    if not rows:
        raise ValueError(f"{file} must have rows of numbers below its header, got none")
    try:
        table = np.loadtxt(rows, delimiter=delimiter, ndmin=2)
    except ValueError as error:
        raise ValueError(f"{file} must hold only numbers below its header: {error}") from error
    if table.shape[1] != len(names):
        raise ValueError(f"{file} must hold {len(names)} numbers in each row, got {table.shape[1]}")
    return table


def check_columns(got: Sequence[str], *, names: Sequence[str], source: str) -> None:
    """Raise ValueError unless each column name contains its expected name, perhaps with a unit."""
    if len(got) != len(names) or any(n not in g for n, g in zip(names, got, strict=True)):
        raise ValueError(
            f"{source} must have the {len(names)} columns {', '.join(names)}, in this order, "
            f"got {len(got)}: {', '.join(got)}"
        )


def split_target(table: FloatArray) -> Samples:
    """Take the last column as the target."""
    return Samples(table[:, :-1].copy(), table[:, -1].copy())


def data_folder() -> Path | None:
    """Return the folder named by the environment variable, or None."""
    folder = os.environ.get(DATA_FOLDER_VARIABLE)
    return Path(folder).expanduser() if folder else None


def _import_pandas(caller: str) -> Any:
    """Import pandas, which is not a run-time dependency, or fail as scikit-learn does."""
    try:
        return import_module("pandas")
    except ImportError as error:
        raise ImportError(
            f"{caller} requires pandas. You can install pandas with `pip install pandas`"
        ) from error
