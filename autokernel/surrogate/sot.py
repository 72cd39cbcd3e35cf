"""Symbolical optimal transport: distances between the trees of expressions."""

from collections.abc import Hashable, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from scipy.spatial.distance import cdist

from autokernel.expression import Expression, require_expressions
from autokernel.surrogate.features import Frequencies, tree_features
from autokernel.typing import FloatArray

_MOST = 8192  # number of trees whose features are cached


def sot_distances(
    expressions: Sequence[Expression],
    others: Sequence[Expression] | None = None,
    *,
    n_features: int,
) -> FloatArray:
    """Compute total-variation distances between the building blocks of expressions.

    Parameters
    ----------
    expressions : sequence of n Expression
        Expressions of the rows.
    others : sequence of m Expression, optional
        Expressions of the columns, by default those of the rows.
    n_features : int
        Number of input columns. A column that an expression does not use holds the symbol NULL.

    Returns
    -------
    ndarray of shape (3, n, m)
        Unweighted distances of the base kernels (summed over columns), paths and subtrees.

    Raises
    ------
    ValueError
        If an expression uses a column beyond ``n_features``.
    TypeError
        If one of the expressions is a text.

    Notes
    -----
    This is SOT eqs. 2 and 3, with the symmetries of appendix A.1. With the discrete ground metric,
    optimal transport is total variation: half the L1 distance of the frequencies. Two trees with
    the same canonical text may differ in their subtrees, as in the paper.
    """
    return SOTDistances(n_features=n_features)(expressions, others)


class SOTDistances:
    """Computes the distances of :func:`sot_distances`, and caches the features of each tree.

    Parameters
    ----------
    n_features : int
        Number of input columns.
    """

    def __init__(self, *, n_features: int) -> None:
        self._n_features = n_features
        self._features = lru_cache(_MOST)(tree_features)
        # A search compares many generations with the same evaluated expressions.
        self._tabulate = lru_cache(maxsize=4)(self._make_table)

    def __call__(
        self, expressions: Sequence[Expression], others: Sequence[Expression] | None = None
    ) -> FloatArray:
        """Compute the distances (3, n, m); ``others`` are by default the expressions.

        Raises
        ------
        ValueError
            If an expression uses a column beyond ``n_features``.
        TypeError
            If one of the expressions is a text.
        """
        require_expressions((*expressions, *(others or ())))
        known = self._tabulate(tuple(expressions if others is None else others))
        features = [self._features(expression) for expression in expressions]
        # A column that only one side uses adds NULL: half of the L1 distance in that column.
        used = _used(expressions, self._n_features)
        unused = 0.5 * cdist(used, known.used, metric="cityblock")
        return np.stack(
            [
                unused + _total_variation([f.base for f in features], known.base),
                _total_variation([f.paths for f in features], known.paths),
                _total_variation([f.subtrees for f in features], known.subtrees),
            ]
        )

    def _make_table(self, expressions: tuple[Expression, ...]) -> "_Table":
        """Collect the features of the expressions in the columns of the distance matrix."""
        features = [self._features(expression) for expression in expressions]
        return _Table(
            _used(expressions, self._n_features),
            _collect([f.base for f in features]),
            _collect([f.paths for f in features]),
            _collect([f.subtrees for f in features]),
        )


class _Frequencies(NamedTuple):
    """Frequencies of the elements of some expressions."""

    indices: Mapping[Hashable, int]  # element to column of ``dense``
    dense: FloatArray  # (n, n_elements)


class _Table(NamedTuple):
    """Features of the expressions in the columns of the distance matrix."""

    used: FloatArray  # (n, n_features), one where a column is used
    base: _Frequencies
    paths: _Frequencies
    subtrees: _Frequencies


def _used(expressions: Sequence[Expression], n_features: int) -> FloatArray:
    """Mark the columns that each expression uses; the others hold the symbol NULL."""
    used = np.zeros((len(expressions), n_features))
    for row, expression in enumerate(expressions):
        columns = [leaf.column for leaf in expression.leaves]
        if expression.last_column >= n_features:
            raise ValueError(
                f"n_features must exceed the columns in use, got {n_features} and {expression}"
            )
        used[row, columns] = 1.0
    return used


def _collect(lists: Sequence[Frequencies]) -> _Frequencies:
    """Give each element an index, and build the dense frequencies."""
    indices: dict[Hashable, int] = {}
    for frequencies in lists:
        for element in frequencies:
            indices.setdefault(element, len(indices))
    return _Frequencies(indices, _dense(lists, indices)[0])


def _total_variation(rows: Sequence[Frequencies], columns: _Frequencies) -> FloatArray:
    """Compute half the L1 distances (n, m) of two lists of frequencies.

    The dense arrays hold only elements that occur in ``columns``. The frequencies of all other
    elements add to the distance in full.
    """
    dense, foreign = _dense(rows, columns.indices)
    return 0.5 * (cdist(dense, columns.dense, metric="cityblock") + foreign[:, None])


def _dense(
    lists: Sequence[Frequencies], indices: Mapping[Hashable, int]
) -> tuple[FloatArray, FloatArray]:
    """Build the matrix of frequencies, and the sums (n,) of those without an index."""
    matrix, foreign = np.zeros((len(lists), len(indices))), np.zeros(len(lists))
    for row, frequencies in enumerate(lists):
        for element, value in frequencies.items():
            index = indices.get(element)
            if index is None:
                foreign[row] += value
            else:
                matrix[row, index] = value
    return matrix, foreign
