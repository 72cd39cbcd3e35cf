"""Missing values of columns of numbers, as the search sees them.

In the scaled inputs of the search, a missing value is a number in a tiny window beyond the data,
another one for each. Kernels of columns with gaps know the window, see ``WithGaps``.
"""

import numpy as np

from autokernel.typing import BoolArray, FloatArray

_WINDOW = 4.618034005  # extents from the smallest value of a column; no number of few digits
_STEP = 2.0**-50  # the distance of two numbers there, between two missing values
_N_MISSING = 2**24  # numbers in the window
_END = _WINDOW + _N_MISSING * _STEP
FIRST_NEW = 2**23
"""Number of the first missing value of new rows: each is another draw than those of the fit."""


def mark_missing(X: FloatArray, first: int = 0) -> FloatArray:
    """Replace each NaN of scaled inputs (n_samples, n_features) by another number.

    Values that are within the window, which is 1.5e-8 wide, move to its edge.
    """
    marked = np.where(is_missing(X), _END, X)
    gaps = np.isnan(X)
    marked[gaps] = _WINDOW + (first + np.arange(np.count_nonzero(gaps))) % _N_MISSING * _STEP
    return marked


def is_missing(x: FloatArray) -> BoolArray:
    """Mark the numbers that stand for missing values."""
    return (x >= _WINDOW) & (x < _END)


def known_values(x: FloatArray) -> FloatArray:
    """Return the values of one column that are not missing."""
    return x[~is_missing(x)]


def fill_missing(X: FloatArray) -> FloatArray:
    """Replace missing values of scaled inputs (n_samples, n_features) by medians of the columns."""
    gaps = is_missing(X)
    if not gaps.any():
        return X
    return np.where(gaps, np.nanmedian(np.where(gaps, np.nan, X), axis=0), X)
