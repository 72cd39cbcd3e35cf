"""Symbolical optimal transport: distances between expressions, read off their trees."""

from collections.abc import Hashable, Mapping, Sequence

import numpy as np
from scipy.spatial.distance import cdist

from autokernel.expression import Expression
from autokernel.surrogate.features import Frequencies, null_element, tree_features
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

    Notes
    -----
    SOT eqs. 2 and 3, with the symmetries of appendix A.1. With the discrete ground metric, optimal
    transport is total variation: half the L1 distance of the frequencies. Two trees of one
    canonical text may differ in their subtrees, as in the paper.
    """
    others = expressions if others is None else others
    for expression in (*expressions, *others):
        highest = max(leaf.column for leaf in expression.leaves)
        if highest >= n_features:
            raise ValueError(
                f"n_features must exceed the columns in use, got {n_features} and {expression}"
            )
    rows = [tree_features(e) for e in expressions]
    columns = [tree_features(e) for e in others]
    return np.stack(
        [
            _total_variation(
                [_with_nulls(e, n_features) for e in expressions],
                [_with_nulls(e, n_features) for e in others],
            ),
            _total_variation([f.paths for f in rows], [f.paths for f in columns]),
            _total_variation([f.subtrees for f in rows], [f.subtrees for f in columns]),
        ]
    )


def sot_kernel(distances: FloatArray, weights: FloatArray, *, lengthscale: float) -> FloatArray:
    """``exp(-d / l^2)`` with ``d`` the weighted sum of the three distances (SOT eq. 4)."""
    return np.exp(np.tensordot(weights, distances, axes=1) / -(lengthscale**2))


def _with_nulls(expression: Expression, n_features: int) -> Frequencies:
    """Frequencies of the base kernels, with the NULL symbol for every unused column."""
    used = {leaf.column for leaf in expression.leaves}
    nulls = {null_element(column): 1.0 for column in range(n_features) if column not in used}
    return {**tree_features(expression).base, **nulls}


def _total_variation(rows: Sequence[Frequencies], columns: Sequence[Frequencies]) -> FloatArray:
    """Half the L1 distances (n, m) of two lists of frequencies.

    Elements that no column has add their whole frequency, so that the dense arrays hold only the
    elements of the columns.
    """
    places: dict[Hashable, int] = {}
    for frequencies in columns:
        for element in frequencies:
            places.setdefault(element, len(places))
    shared = cdist(_dense(rows, places), _dense(columns, places), metric="cityblock")
    foreign = [
        sum(value for element, value in frequencies.items() if element not in places)
        for frequencies in rows
    ]
    return 0.5 * (shared + np.array(foreign)[:, None])


def _dense(lists: Sequence[Frequencies], places: Mapping[Hashable, int]) -> FloatArray:
    """Frequencies as rows of a matrix; elements without a place are left out."""
    matrix = np.zeros((len(lists), len(places)))
    for row, frequencies in enumerate(lists):
        for element, value in frequencies.items():
            place = places.get(element)
            if place is not None:
                matrix[row, place] = value
    return matrix
