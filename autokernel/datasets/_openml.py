"""Data sets that are read from the user's data folder or downloaded from OpenML."""

from urllib.error import URLError

import numpy as np
from sklearn.datasets import fetch_openml

from autokernel.datasets._base import (
    DATA_FOLDER_VARIABLE,
    Dataset,
    Description,
    Samples,
    StrPath,
    check_columns,
    data_folder,
    make_dataset,
    read_table,
    split_target,
)

_AIRFOIL = Description(
    feature_names=(
        "frequency",
        "angle_of_attack",
        "chord_length",
        "free_stream_velocity",
        "displacement_thickness",
    ),
    target_name="sound_pressure",
    text="""\
Airfoil self-noise

1503 wind tunnel measurements of the noise of NACA 0012 airfoil sections.

frequency               Hz
angle_of_attack         degrees
chord_length            m
free_stream_velocity    m/s
displacement_thickness  of the suction side, m
sound_pressure          scaled sound pressure level, dB (target)

Source: UCI Machine Learning Repository, id 291 (CC BY 4.0); OpenML, id 44957. T. F. Brooks, D. S.
Pope and M. A. Marcolini (1989), "Airfoil self-noise and prediction", NASA RP-1218.
""",
)

_CONCRETE = Description(
    feature_names=(
        "cement",
        "blast_furnace_slag",
        "fly_ash",
        "water",
        "superplasticizer",
        "coarse_aggregate",
        "fine_aggregate",
        "age",
    ),
    target_name="strength",
    text="""\
Concrete compressive strength

1030 laboratory measurements; 25 rows repeat an earlier one exactly.

age       days
strength  compressive strength, MPa (target)
the rest  kg in a cubic metre of the mixture

Source: UCI Machine Learning Repository, id 165 (CC BY 4.0); OpenML, id 44959. I.-C. Yeh (1998),
"Modeling of strength of high-performance concrete using artificial neural networks", Cement and
Concrete Research 28(12), 1797-1808.
""",
)


def fetch_airfoil(
    *, data_home: StrPath | None = None, return_X_y: bool = False, as_frame: bool = False
) -> Dataset:
    """Load the airfoil self-noise set from ``airfoil.csv`` or from OpenML (id 44957).

    Parameters
    ----------
    data_home : str or path-like, default=None
        Folder in which :func:`sklearn.datasets.fetch_openml` keeps its downloads. The environment
        variable ``AUTOKERNEL_DATA`` names the folder that is searched for ``airfoil.csv`` first.
    return_X_y, as_frame : bool, default=False
        Return ``(data, target)`` instead of a Bunch; pandas objects instead of arrays.

    Returns
    -------
    Bunch or tuple
        ``data`` of shape (1503, 5): frequency (Hz), angle of attack (degrees), chord length (m),
        velocity (m/s), displacement thickness (m). ``target`` of shape (1503,): sound pressure
        level (dB). The Bunch also has ``feature_names``, ``target_names``, ``DESCR`` and ``frame``.

    Raises
    ------
    ValueError
        If the file or the data from OpenML lack the columns of this set.
    URLError
        If OpenML cannot be reached.
    ImportError
        If ``as_frame`` is set and pandas is not installed.

    Notes
    -----
    Brooks, Pope & Marcolini (1989), NASA RP-1218; UCI id 291.
    """
    samples = _read_or_download("airfoil.csv", _AIRFOIL, data_id=44957, data_home=data_home)
    return make_dataset(
        _AIRFOIL, samples, caller="fetch_airfoil", return_X_y=return_X_y, as_frame=as_frame
    )


def fetch_concrete(
    *, data_home: StrPath | None = None, return_X_y: bool = False, as_frame: bool = False
) -> Dataset:
    """Load the concrete compressive strength set from ``concrete.csv`` or OpenML (id 44959).

    Parameters
    ----------
    data_home : str or path-like, default=None
        Folder in which :func:`sklearn.datasets.fetch_openml` keeps its downloads. The environment
        variable ``AUTOKERNEL_DATA`` names the folder that is searched for ``concrete.csv`` first.
    return_X_y, as_frame : bool, default=False
        Return ``(data, target)`` instead of a Bunch; pandas objects instead of arrays.

    Returns
    -------
    Bunch or tuple
        ``data`` of shape (1030, 8): seven components (kg per cubic metre) and the age (days).
        ``target`` of shape (1030,): compressive strength (MPa). The Bunch also has
        ``feature_names``, ``target_names``, ``DESCR`` and ``frame``.

    Raises
    ------
    ValueError
        If the file or the data from OpenML lack the columns of this set.
    URLError
        If OpenML cannot be reached.
    ImportError
        If ``as_frame`` is set and pandas is not installed.

    Notes
    -----
    Yeh (1998), Cement and Concrete Research 28; UCI id 165.
    """
    samples = _read_or_download("concrete.csv", _CONCRETE, data_id=44959, data_home=data_home)
    return make_dataset(
        _CONCRETE, samples, caller="fetch_concrete", return_X_y=return_X_y, as_frame=as_frame
    )


def _read_or_download(
    name: str, description: Description, *, data_id: int, data_home: StrPath | None
) -> Samples:
    """Read the file in the data folder, or download the data set from OpenML."""
    folder = data_folder()
    if folder is not None and (folder / name).is_file():
        file = folder / name
        return split_target(read_table(file, names=description.column_names, delimiter=","))
    try:
        # The other parser needs pandas.
        bunch = fetch_openml(
            data_id=data_id, data_home=data_home, as_frame=False, parser="liac-arff"
        )
    except URLError as error:
        error.add_note(
            f"Without OpenML, put {name} (columns {', '.join(description.column_names)}) into the "
            f"folder named by the environment variable {DATA_FOLDER_VARIABLE}."
        )
        raise
    got = [*bunch.feature_names, *bunch.target_names]
    check_columns(got, names=description.column_names, source=f"OpenML data set {data_id}")
    return Samples(np.ascontiguousarray(bunch.data, dtype=float), bunch.target.astype(float))
