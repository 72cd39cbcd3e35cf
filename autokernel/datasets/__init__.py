"""Data sets: two bundled time series and loaders for four larger sets.

``load_*`` reads a file that ships with the package. ``fetch_*`` reads a file from the folder named
by the environment variable ``AUTOKERNEL_DATA``; if it is not there, ``fetch_airfoil`` and
``fetch_concrete`` download it from OpenML, the others say where to get it. All answer like
scikit-learn's own loaders.
"""

from autokernel.datasets._bundled import load_airline, load_mauna_loa
from autokernel.datasets._manual import fetch_lgbb, fetch_power_plant
from autokernel.datasets._openml import fetch_airfoil, fetch_concrete

__all__ = [
    "fetch_airfoil",
    "fetch_concrete",
    "fetch_lgbb",
    "fetch_power_plant",
    "load_airline",
    "load_mauna_loa",
]
