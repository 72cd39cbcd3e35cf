"""The rows with which a point is most correlated, under a kernel with its parameters."""

from collections.abc import Iterator

import numpy as np
from scipy.spatial import KDTree

from autokernel.expression import Expression
from autokernel.likelihood.covariance import diagonal_covariance, paired_covariance
from autokernel.typing import FloatArray, IntArray

_FEW = 4096  # rows up to which every row is a candidate
_PER_NEIGHBOUR = 4  # candidates near a point for each neighbour that is chosen
_N_ANYWHERE = 500  # candidates in all places, of which those of the same phase may be chosen
_STEP = 1e-4  # step along a column, whose extent is one, for the derivatives of a kernel
_N_PROBES = 200  # rows at which the derivatives are averaged
_AT_ONCE = 2**18  # covariances computed at once


class NearestRows:
    """The rows of the highest correlation with a point, in absolute value.

    Candidates are all rows where there are few of them. Otherwise, they are the rows nearest in a
    metric in which the kernel falls equally fast along all columns, and some rows at random: those
    one period away are not near.

    Parameters
    ----------
    expression : Expression
        The kernel.
    theta : ndarray of shape (n_params,)
        Logs of its parameters, the noise variance last.
    X : ndarray of shape (n_samples, n_features)
        Rows to choose from.
    rng : numpy.random.Generator
        Source of random candidates.
    """

    def __init__(
        self, expression: Expression, theta: FloatArray, X: FloatArray, rng: np.random.Generator
    ) -> None:
        self._expression, self._params, self._X = expression, np.exp(theta[:-1]), X
        self._std = np.sqrt(diagonal_covariance(expression, X).forward(self._params))
        self._tree: KDTree | None = None
        if len(X) > _FEW:
            self._scales = self._column_scales(rng)
            self._tree = KDTree(X * self._scales)
            self._anywhere = rng.choice(len(X), _N_ANYWHERE, replace=False)

    def of(self, points: FloatArray, n_neighbours: int) -> IntArray:
        """Choose rows (n, n_neighbours) for points (n, n_features), in ascending order."""
        found = np.empty((len(points), n_neighbours), dtype=np.intp)
        for rows, candidates in self._candidates(points, n_neighbours):
            found[rows] = self._most_correlated(points[rows], candidates, n_neighbours)
        return found

    def _candidates(
        self, points: FloatArray, n_neighbours: int
    ) -> Iterator[tuple[slice, IntArray]]:
        """Yield blocks of points with their candidates (n_block, n_candidates), -1 for none."""
        n = len(self._X)
        n_near = min(n, _PER_NEIGHBOUR * n_neighbours)
        n_candidates = n if self._tree is None else n_near + _N_ANYWHERE
        size = max(1, _AT_ONCE // n_candidates)
        for first in range(0, len(points), size):
            rows = slice(first, first + size)
            n_points = len(points[rows])
            if self._tree is None:
                candidates = np.broadcast_to(np.arange(n), (n_points, n))
            else:
                _, near = self._tree.query(points[rows] * self._scales, k=n_near)
                anywhere = np.broadcast_to(self._anywhere, (n_points, _N_ANYWHERE))
                candidates = _without_repetitions(np.concatenate([near, anywhere], axis=1))
            yield rows, candidates

    def _most_correlated(
        self, points: FloatArray, candidates: IntArray, n_neighbours: int
    ) -> IntArray:
        """Choose the candidates of the highest absolute correlation."""
        X = self._X
        covariance = paired_covariance(
            self._expression, lambda column: (points[:, column, None], X[candidates, column])
        ).forward(self._params)
        correlation = np.abs(covariance) / np.maximum(self._std[candidates], 1e-300)
        correlation = np.where(candidates < 0, -1.0, correlation)
        chosen = np.argpartition(-correlation, n_neighbours - 1, axis=1)[:, :n_neighbours]
        return np.sort(np.take_along_axis(candidates, chosen, axis=1), axis=1)

    def _column_scales(self, rng: np.random.Generator) -> FloatArray:
        """Compute the scales (n_features,) of columns from the fall of the correlation nearby."""
        at = self._X[rng.choice(len(self._X), min(_N_PROBES, len(self._X)), replace=False)]
        here = diagonal_covariance(self._expression, at).forward(self._params)
        scales = np.zeros(at.shape[1])
        for column in {leaf.column for leaf in self._expression.leaves}:
            beside = at.copy()
            beside[:, column] += _STEP
            there = diagonal_covariance(self._expression, beside).forward(self._params)
            between = self._covariance_of_steps(at, beside)
            fall = here + there - 2 * between
            scales[column] = np.sqrt(max(0.0, float(fall.mean() / here.mean()))) / _STEP
        return scales

    def _covariance_of_steps(self, at: FloatArray, beside: FloatArray) -> FloatArray:
        """Compute the covariances (n,) of points with the points beside them."""
        pairs = paired_covariance(self._expression, lambda c: (at[:, c], beside[:, c]))
        return pairs.forward(self._params)


def _without_repetitions(candidates: IntArray) -> IntArray:
    """Sort each row of candidates, and replace repetitions by -1."""
    ordered = np.sort(candidates, axis=1)
    ordered[:, 1:][ordered[:, 1:] == ordered[:, :-1]] = -1
    return ordered
