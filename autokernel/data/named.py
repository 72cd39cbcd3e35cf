"""Columns with names, for callers without a library of data frames."""

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_array, check_X_y
from sklearn.utils.validation import validate_data

from autokernel.typing import FloatArray, IntArray


@dataclass(frozen=True, slots=True, eq=False)  # eq=False: the fields are arrays
class NamedColumns:
    """Numbers in columns with names, as inputs of the estimator."""

    names: list[str]
    values: FloatArray  # (n_samples, n_features)
    date_columns: list[int]  # indices of the columns that are days since 1970-01-01

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> FloatArray:
        """Return the numbers without the names."""
        return np.array(self.values, dtype=dtype, copy=copy)

    def rows(self, indices: IntArray) -> Self:
        """Return some of the rows."""
        return replace(self, values=self.values[indices])


def validated(estimator: BaseEstimator, X: Any, *y: Any, reset: bool, **options: Any) -> Any:
    """Check inputs by scikit-learn's ``validate_data``, also where they are named columns.

    Raises
    ------
    ValueError
        As for ``validate_data``, and if named columns are not those of ``fit``.
    """
    if not isinstance(X, NamedColumns):
        return validate_data(estimator, X, *y, reset=reset, **options)
    if reset:
        checked = validate_data(estimator, X.values, *y, reset=True, **options)
        estimator.feature_names_in_ = np.array(X.names, dtype=object)
        return checked
    names = list(estimator.feature_names_in_)
    if names != X.names:
        raise ValueError(f"X must have the columns {names}, as in fit, got {X.names}")
    check = check_X_y if y else check_array
    return check(X.values, *y, **options)
