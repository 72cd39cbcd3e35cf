"""Two bundled time series; ``bundled/README.md`` gives their sources."""

from importlib.resources import files
from typing import Any, TypeAlias

import numpy as np
from sklearn.utils import Bunch

__all__ = ["load_airline", "load_mauna_loa"]

# Any stands for (data, target) if return_X_y; the type of a bool argument cannot express this.
Dataset: TypeAlias = Bunch | Any


def load_airline(*, return_X_y: bool = False, as_frame: bool = False) -> Dataset:
    """Load the monthly totals of international airline passengers, 1949 to 1960.

    Parameters
    ----------
    return_X_y : bool, default=False
        Return ``(data, target)`` instead of a Bunch.
    as_frame : bool, default=False
        Return pandas objects instead of arrays.

    Returns
    -------
    Bunch or tuple
        ``data`` of shape (144, 1): ``time``, the middle of the month in decimal years. ``target``
        of shape (144,): thousands of passengers per month. The Bunch also has
        ``feature_names``, ``target_names``, ``DESCR`` and ``frame`` (None unless ``as_frame``).

    Raises
    ------
    ImportError
        If ``as_frame`` is set and pandas is not installed.

    Notes
    -----
    Box, Jenkins & Reinsel, "Time Series Analysis: Forecasting and Control", series G.
    """
    return _load("airline", return_X_y=return_X_y, as_frame=as_frame)


def load_mauna_loa(*, return_X_y: bool = False, as_frame: bool = False) -> Dataset:
    """Load the monthly means of atmospheric CO2 at Mauna Loa, March 1958 to December 2001.

    Parameters and results are as those of :func:`load_airline`, with ``data`` of shape (521, 1) and
    ``target`` of shape (521,): CO2 in ppm. Five months have no value and are left out.

    Notes
    -----
    Keeling & Whorf (2004), CDIAC; means of the weekly averages in statsmodels.
    """
    return _load("mauna_loa", return_X_y=return_X_y, as_frame=as_frame)


def _load(name: str, *, return_X_y: bool, as_frame: bool) -> Dataset:
    folder = files("autokernel") / "bundled"
    with (folder / f"{name}.csv").open(encoding="utf-8") as file:
        names = file.readline().strip().split(",")
        table = np.loadtxt(file, delimiter=",")
    data, target, frame = table[:, :1].copy(), table[:, 1].copy(), None
    if as_frame:
        try:
            import pandas
        except ImportError as error:
            raise ImportError("as_frame=True needs pandas: pip install pandas") from error
        frame = pandas.DataFrame(table, columns=names)
        data, target = frame[names[:1]], frame[names[1]]
    if return_X_y:
        return data, target
    text = (folder / f"{name}.txt").read_text(encoding="utf-8")
    columns = {"feature_names": names[:1], "target_names": names[1:]}
    return Bunch(data=data, target=target, frame=frame, DESCR=text, **columns)
