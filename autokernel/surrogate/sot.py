"""Symbolical optimal transport: distances between expressions, read off their trees."""

from collections.abc import Hashable, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from scipy.spatial.distance import cdist

from autokernel.expression import Expression, require_expressions
from autokernel.surrogate.features import FeatureReader, Frequencies
from autokernel.typing import FloatArray


def sot_distances(
    expressions: Sequence[Expression],
    others: Sequence[Expression] | None = None,
    *,
    n_features: int,
) -> FloatArray:
    """Total-variation distances between the building blocks of expressions.

    Parameters
    ----------
    expressions : sequence of n Expression
        Rows.
    others : sequence of m Expression, optional
        Columns, by default the rows again.
    n_features : int
        Number of input columns; those an expression does not use count as NULL.

    Returns
    -------
    ndarray of shape (3, n, m)
        Distances of the base kernels (summed over columns), paths and subtrees, unweighted.

    Raises
    ------
    ValueError
        If an expression uses a column beyond ``n_features``.
    TypeError
        If one is a text.

    Notes
    -----
    SOT eqs. 2 and 3, with the symmetries of appendix A.1. With the discrete ground metric, optimal
    transport is total variation: half the L1 distance of the frequencies. Two trees of one
    canonical text may differ in their subtrees, as in the paper.
    """
    return SOTDistances(n_features=n_features)(expressions, others)


class SOTDistances:
    """Computes the distances of :func:`sot_distances`, and keeps what it has read off trees.

    Parameters
    ----------
    n_features : int
        Number of input columns.
    """

    def __init__(self, *, n_features: int) -> None:
        self._n_features = n_features
        self._features = FeatureReader()
        # a search compares many generations with the same evaluated expressions
        self._tabulate = lru_cache(maxsize=4)(self._make_table)

    def __call__(
        self, expressions: Sequence[Expression], others: Sequence[Expression] | None = None
    ) -> FloatArray:
        """Compute the distances (3, n, m) between expressions and others, by default the same.

        Raises
        ------
        ValueError
            If an expression uses a column beyond ``n_features``.
        TypeError
            If one is a text.
        """
        require_expressions((*expressions, *(others or ())))
        known = self._tabulate(tuple(expressions if others is None else others))
        features = [self._features(expression) for expression in expressions]
        # half of the L1 distance of the frequencies in a column is already there
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
        """Read the features off expressions that others are compared with."""
        features = [self._features(expression) for expression in expressions]
        return _Table(
            _used(expressions, self._n_features),
            _collect([f.base for f in features]),
            _collect([f.paths for f in features]),
            _collect([f.subtrees for f in features]),
        )


class _Frequencies(NamedTuple):
    """Frequencies of the elements of some expressions."""

    indices: Mapping[Hashable, int]
    dense: FloatArray  # (n, n_elements)


class _Table(NamedTuple):
    """What is read off the expressions that others are compared with."""

    used: FloatArray  # (n, n_features), one where a column is used
    base: _Frequencies
    paths: _Frequencies
    subtrees: _Frequencies


def _used(expressions: Sequence[Expression], n_features: int) -> FloatArray:
    """Mark the columns that expressions use; the others hold the symbol NULL."""
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
    """Give every element that occurs an index."""
    indices: dict[Hashable, int] = {}
    for frequencies in lists:
        for element in frequencies:
            indices.setdefault(element, len(indices))
    return _Frequencies(indices, _dense(lists, indices)[0])


def _total_variation(rows: Sequence[Frequencies], columns: _Frequencies) -> FloatArray:
    """Half the L1 distances (n, m) of two lists of frequencies.

    Elements that no column has add their whole frequency, so that the dense arrays hold only the
    elements of the columns.
    """
    dense, foreign = _dense(rows, columns.indices)
    return 0.5 * (cdist(dense, columns.dense, metric="cityblock") + foreign[:, None])


def _dense(
    lists: Sequence[Frequencies], indices: Mapping[Hashable, int]
) -> tuple[FloatArray, FloatArray]:
    """Frequencies as rows of a matrix, and the sum of those (n,) that have no index in it."""
    matrix, foreign = np.zeros((len(lists), len(indices))), np.zeros(len(lists))
    for row, frequencies in enumerate(lists):
        for element, value in frequencies.items():
            index = indices.get(element)
            if index is None:
                foreign[row] += value
            else:
                matrix[row, index] = value
    return matrix, foreign
