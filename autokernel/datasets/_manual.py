"""Data sets that the user must download by hand."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from autokernel.datasets._base import (
    DATA_FOLDER_VARIABLE,
    Dataset,
    Description,
    Samples,
    StrPath,
    data_folder,
    make_dataset,
    read_table,
    split_target,
)
from autokernel.typing import FloatArray


@dataclass(frozen=True, slots=True)
class _Request:
    """A file that the user must provide."""

    name: str
    content: str
    origin: str


_POWER_PLANT = Description(
    feature_names=("AT", "V", "AP", "RH"),
    target_name="PE",
    text="""\
Combined cycle power plant

9568 hourly averages at full load, 2006 to 2011; 41 rows repeat an earlier one exactly.

AT  ambient temperature, degrees Celsius
V   exhaust vacuum, cm Hg
AP  ambient pressure, mbar
RH  relative humidity, %
PE  net hourly electrical energy output, MW (target)

Source: UCI Machine Learning Repository, id 294 (CC BY 4.0). P. Tüfekci (2014), "Prediction of full
load electrical power output of a base load operated combined cycle power plant using machine
learning methods", International Journal of Electrical Power & Energy Systems 60, 126-140.
""",
)

_POWER_PLANT_FILE = _Request(
    name="power_plant.csv",
    content="comma separated, header AT,V,AP,RH,PE and 9568 rows of numbers",
    origin=(
        "download https://archive.ics.uci.edu/dataset/294/combined+cycle+power+plant and save the "
        "first sheet of Folds5x2_pp.xlsx as CSV"
    ),
)

_SOLAR = Description(
    feature_names=("time",),
    target_name="irradiance",
    text="""\
Total solar irradiance

402 yearly values, 1610 to 2011: a cycle of about eleven years, which is missing in the Maunder
minimum, about 1645 to 1715.

time        middle of the year, decimal years
irradiance  W/m2 at the mean distance of the Earth (target)

The values before 1978 are a reconstruction from sunspots; satellites have measured since.

Source: SORCE/TIM reconstruction, Laboratory for Atmospheric and Space Physics (LASP), University of
Colorado; free with acknowledgement. Y.-M. Wang, J. L. Lean and N. R. Sheeley (2005), "Modeling the
Sun's magnetic field and irradiance since 1713", The Astrophysical Journal 625, 522-538; G. Kopp
and J. L. Lean (2011), "A new, lower value of total solar irradiance: Evidence and climate
significance", Geophysical Research Letters 38, L01706.
""",
)

_SOLAR_FILE = _Request(
    name="solar.csv",
    content="comma separated, header time,value and 402 rows of numbers",
    origin=(
        "data/tsdlr-renamed/02-solar.mat of https://github.com/jamesrobertlloyd/gpss-research; "
        "save its X and y as the two columns of a CSV file"
    ),
)

_LGBB_COLUMNS = ("mach", "alpha", "beta", "lift", "drag", "pitch", "side", "yaw", "roll")

_LGBB = Description(
    feature_names=("mach", "alpha"),
    target_name="lift",
    text="""\
Langley Glide-Back Booster (LGBB)

Computer simulations of the aerodynamics of a NASA rocket booster that glides back to its base.
These are the runs without side-slip (beta = 0) whose lift is below its 99 % quantile over those
runs; 871 of the 3167 runs in the file. Nothing is scaled and no noise is added; the simulator is
deterministic and some inputs occur more than once.

mach   speed, Mach number
alpha  angle of attack, degrees
lift   lift as in the file (target)

Source: chapter 2.1 of R. B. Gramacy (2020), "Surrogates: Gaussian process modeling, design and
optimization for the applied sciences", CRC Press. Do not pass the file on without permission. The
selection is that of M. Bitzer, M. Meister and C. Zimmer (2022), "Structural kernel search via
Bayesian optimization and symbolical optimal transport", NeurIPS.
""",
)

_LGBB_FILE = _Request(
    name="lgbb_original.txt",
    content=(
        "21 comment lines that start with #, a header and 3167 rows of the 9 columns "
        f"{' '.join(_LGBB_COLUMNS)}, separated by white space"
    ),
    origin=(
        "NASA's Langley Glide-Back Booster, on the site of R. Gramacy's book Surrogates: "
        "https://bobby.gramacy.com/surrogates/lgbb.tar.gz; it may not be redistributed"
    ),
)


def fetch_power_plant(
    *, path: StrPath | None = None, return_X_y: bool = False, as_frame: bool = False
) -> Dataset:
    """Load the combined cycle power plant set from a file that the user downloaded.

    Parameters
    ----------
    path : str or path-like, default=None
        CSV file. None stands for ``power_plant.csv`` in the folder that the environment variable
        ``AUTOKERNEL_DATA`` names.
    return_X_y, as_frame : bool, default=False
        Return ``(data, target)`` instead of a Bunch; pandas objects instead of arrays.

    Returns
    -------
    Bunch or tuple
        ``data`` of shape (9568, 4): temperature (deg C), vacuum (cm Hg), pressure (mbar), humidity
        (%). ``target`` of shape (9568,): electrical output (MW). The Bunch also has
        ``feature_names``, ``target_names``, ``DESCR`` and ``frame``.

    Raises
    ------
    FileNotFoundError
        If there is no file; the message says where to get it.
    ValueError
        If the file does not have the columns of this set.
    ImportError
        If ``as_frame`` is set and pandas is not installed.

    Notes
    -----
    Tüfekci (2014), Int. J. Electrical Power & Energy Systems 60; UCI id 294.
    """
    file = _require(_POWER_PLANT_FILE, path, caller="fetch_power_plant")
    samples = split_target(read_table(file, names=_POWER_PLANT.column_names, delimiter=","))
    return make_dataset(
        _POWER_PLANT, samples, caller="fetch_power_plant", return_X_y=return_X_y, as_frame=as_frame
    )


def fetch_solar(
    *, path: StrPath | None = None, return_X_y: bool = False, as_frame: bool = False
) -> Dataset:
    """Load the yearly irradiance of the sun since 1610 from a file that the user downloaded.

    Parameters
    ----------
    path : str or path-like, default=None
        CSV file. None stands for ``solar.csv`` in the folder that the environment variable
        ``AUTOKERNEL_DATA`` names.
    return_X_y, as_frame : bool, default=False
        Return ``(data, target)`` instead of a Bunch; pandas objects instead of arrays.

    Returns
    -------
    Bunch or tuple
        ``data`` of shape (402, 1): ``time``, the middle of the year in decimal years. ``target`` of
        shape (402,): total irradiance (W/m2). The Bunch also has ``feature_names``,
        ``target_names``, ``DESCR`` and ``frame``.

    Raises
    ------
    FileNotFoundError
        If there is no file; the message says where to get it.
    ValueError
        If the file does not have the columns of this set.
    ImportError
        If ``as_frame`` is set and pandas is not installed.

    Notes
    -----
    LASP's reconstruction; Wang, Lean & Sheeley (2005), Kopp & Lean (2011).
    """
    file = _require(_SOLAR_FILE, path, caller="fetch_solar")
    samples = split_target(read_table(file, names=("time", "value"), delimiter=","))
    return make_dataset(
        _SOLAR, samples, caller="fetch_solar", return_X_y=return_X_y, as_frame=as_frame
    )


def fetch_lgbb(
    *, path: StrPath | None = None, return_X_y: bool = False, as_frame: bool = False
) -> Dataset:
    """Load the lift of the Langley Glide-Back Booster from a file that the user downloaded.

    Parameters
    ----------
    path : str or path-like, default=None
        Text file. None stands for ``lgbb_original.txt`` in the folder that the environment variable
        ``AUTOKERNEL_DATA`` names.
    return_X_y, as_frame : bool, default=False
        Return ``(data, target)`` instead of a Bunch; pandas objects instead of arrays.

    Returns
    -------
    Bunch or tuple
        ``data`` of shape (871, 2): Mach number and angle of attack (degrees) of the runs without
        side-slip, less the top 1 % in lift. ``target`` of shape (871,): lift. Nothing is scaled.
        The Bunch also has ``feature_names``, ``target_names``, ``DESCR`` and ``frame``.

    Raises
    ------
    FileNotFoundError
        If there is no file; the message says where to get it.
    ValueError
        If the file does not have the columns of this set.
    ImportError
        If ``as_frame`` is set and pandas is not installed.

    Notes
    -----
    Gramacy (2020), "Surrogates", chapter 2.1; the rows are those of SOT (Bitzer et al. 2022).
    """
    file = _require(_LGBB_FILE, path, caller="fetch_lgbb")
    samples = _select_lift(read_table(file, names=_LGBB_COLUMNS, delimiter=None))
    return make_dataset(
        _LGBB, samples, caller="fetch_lgbb", return_X_y=return_X_y, as_frame=as_frame
    )


def _select_lift(table: FloatArray) -> Samples:
    """Keep the runs with beta == 0 and lift below its 99 % quantile."""
    mach, alpha, beta, lift = table[:, :4].T
    level = beta == 0
    if not level.any():
        raise ValueError("lgbb_original.txt must have rows with beta == 0, got none")
    kept = level & (lift < np.quantile(lift[level], 0.99))
    return Samples(np.column_stack([mach, alpha])[kept], lift[kept])


def _require(request: _Request, path: StrPath | None, *, caller: str) -> Path:
    """Return the path of the file, or raise an error that says how to get it."""
    folder = data_folder()
    if path is not None:
        file, searched = Path(path).expanduser(), f"path={str(path)!r} is not a file"
    elif folder is not None:
        file = folder / request.name
        searched = f"{DATA_FOLDER_VARIABLE}={str(folder)!r} does not hold it"
    else:
        file, searched = None, f"{DATA_FOLDER_VARIABLE} is not set and no path was given"
    if file is None or not file.is_file():
        raise FileNotFoundError(
            f"{caller} needs the file {request.name}, but {searched}.\n"
            f"Content: {request.content}.\n"
            f"Where to get it: {request.origin}.\n"
            f"Then pass path=..., or put it into a folder and set the environment variable "
            f"{DATA_FOLDER_VARIABLE} to that folder."
        )
    return file
