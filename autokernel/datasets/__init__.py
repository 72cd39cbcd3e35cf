"""Data sets: two bundled time series and loaders for five other sets.

``load_*`` reads a file that ships with the package. ``fetch_*`` reads a file from the folder named
by the environment variable ``AUTOKERNEL_DATA``. If the file is not there, ``fetch_airfoil`` and
``fetch_concrete`` download it from OpenML, and the others raise an error that says where to get it.
All loaders return the same kinds of objects as scikit-learn's loaders.
"""

from autokernel.datasets._bundled import load_airline, load_mauna_loa
from autokernel.datasets._manual import fetch_lgbb, fetch_power_plant, fetch_solar
from autokernel.datasets._openml import fetch_airfoil, fetch_concrete

__all__ = [
    "fetch_airfoil",
    "fetch_concrete",
    "fetch_lgbb",
    "fetch_power_plant",
    "fetch_solar",
    "load_airline",
    "load_mauna_loa",
]
