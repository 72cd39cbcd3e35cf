"""Inference from nearest neighbours: Vecchia's likelihood, and predictions."""

from collections.abc import Iterator

import numpy as np
from scipy.spatial import KDTree
from sklearn.utils import gen_batches

from autokernel.data import Inputs
from autokernel.data.noise import LOG_2PI
from autokernel.expression import Expression, View
from autokernel.inference.base import Likelihood, Predictor, finite
from autokernel.inference.covariance import (
    MAX_KEPT_LEAF_VALUES,
    cross_covariance,
    diagonal_covariance,
    paired_covariance,
)
from autokernel.inference.data import TrainingData
from autokernel.inference.exact import ExactLikelihood, ExactPredictor
from autokernel.typing import FloatArray, IntArray

_MAX_ROWS_ALL_CANDIDATES = 4096  # with more rows, candidates are near rows and some at random
_RANDOM_CANDIDATES = 500  # of which those of the same phase may be chosen
_PAIRS_PER_BLOCK = 2**17  # so that the arrays of the covariances stay in the cache


class NearestRows:
    """The rows of the highest correlation with a point, in absolute value.

    Candidates are all rows where there are few of them. Otherwise, they are the rows nearest in a
    metric in which the kernel falls equally fast along all columns, and some rows at random: those
    one period away are not near.
    """

    def __init__(
        self, expression: Expression, theta: FloatArray, X: Inputs, rng: np.random.Generator
    ) -> None:
        self._expression, self._params, self._X = expression, np.exp(theta[:-1]), X
        self._std = np.sqrt(diagonal_covariance(expression, X).forward(self._params))
        self._tree: KDTree | None = None
        if len(X) > _MAX_ROWS_ALL_CANDIDATES:
            views = {leaf.view for leaf in expression.leaves}
            self._views = sorted(views, key=lambda view: view.to_text(None, ""))
            self._falls = self._falls_along_views(rng)
            self._tree = KDTree(self._places(X))
            self._random = rng.choice(len(X), _RANDOM_CANDIDATES, replace=False)

    def of(self, points: Inputs, n_neighbours: int) -> IntArray:
        """Choose rows (n, n_neighbours) for n points, in ascending order."""
        n_near = min(len(self._X), 4 * n_neighbours)
        n_candidates = len(self._X) if self._tree is None else n_near + _RANDOM_CANDIDATES
        found = np.empty((len(points), n_neighbours), dtype=np.intp)
        for batch in gen_batches(len(points), max(1, 2 * _PAIRS_PER_BLOCK // n_candidates)):
            some = points[batch]
            candidates = self._candidates(some, n_near)
            between = paired_covariance(self._expression, some, self._X, np.s_[:, None], candidates)
            covariance = np.abs(between.forward(self._params))
            correlation = covariance / np.maximum(self._std[candidates], 1e-300)
            correlation = np.where(candidates < 0, -1.0, correlation)
            chosen = np.argpartition(-correlation, n_neighbours - 1, axis=1)[:, :n_neighbours]
            found[batch] = np.sort(np.take_along_axis(candidates, chosen, axis=1), axis=1)
        return found

    def _candidates(self, points: Inputs, n_near: int) -> IntArray:
        """List the candidates (n, n_candidates) for some points in ascending order, -1 for none."""
        if self._tree is None:
            return np.broadcast_to(np.arange(len(self._X)), (len(points), len(self._X)))
        _, near = self._tree.query(self._places(points), k=n_near)
        at_random = np.broadcast_to(self._random, (len(points), _RANDOM_CANDIDATES))
        ordered = np.sort(np.concatenate([near, at_random], axis=1), axis=1)
        ordered[:, 1:][ordered[:, 1:] == ordered[:, :-1]] = -1  # no row stands twice
        return ordered

    def _places(self, X: Inputs) -> FloatArray:
        """Return places (n, n_views) in which distances are falls of the correlation."""
        known = X.columns.scaled(X.filled)
        return np.column_stack([known.view(view) for view in self._views]) * self._falls

    def _falls_along_views(self, rng: np.random.Generator) -> FloatArray:
        """Compute how fast (n_views,) the correlation falls along the views nearby."""
        rows = rng.choice(len(self._X), min(200, len(self._X)), replace=False)  # for an average
        columns = self._X.columns
        at = columns.scaled(self._X[rows].filled)
        here = diagonal_covariance(self._expression, at).forward(self._params)
        of_categories = {one.view for one in self._expression.leaves if one.kernel.is_categorical}
        falls = np.zeros(len(self._views))
        for number, view in enumerate(self._views):
            step = 1e-4  # of a finite difference along a column, whose extent is one
            if view in of_categories:  # from a level to the next
                step = float(np.diff(np.unique(self._X.known(View(view.column)))).min(initial=1.0))
            values = at.values.copy()
            values[:, view.column] = columns.scale(view).inverse(at.view(view) + step)
            shifted = columns.scaled(values)
            there = diagonal_covariance(self._expression, shifted).forward(self._params)
            between = cross_covariance(self._expression, at, shifted).forward(self._params)
            fall = here + there - 2 * between.diagonal()
            falls[number] = np.sqrt(max(0.0, float(fall.mean() / here.mean()))) / step
        return falls


class Blocks:
    """Covariance matrices of blocks of ``rows`` (n_blocks, n_rows), stored as lower triangles.

    The last row of each block may be one of n_blocks rows that are ``new``. With ``w`` the
    last column of the inverse of a matrix with its noise, the last target given the others is
    normal with the variance ``1 / w_last``, noise included, and has the residual
    ``w^T y / w_last`` (R&W eq. 5.12).
    """

    def __init__(
        self, expression: Expression, data: TrainingData, rows: IntArray, new: Inputs | None = None
    ) -> None:
        X, self._noise = data.inputs[rows], data.noise.take(rows)
        if new is not None:
            X, self._noise = X.with_last(new), self._noise.with_new()
        self.shape = X.rows.shape
        self._i, self._j = i, j = np.tril_indices(X.rows.shape[1])
        self._last = np.zeros(self.shape)  # the last unit vector for each block
        self._last[:, -1] = 1.0
        begins = X.rows.shape[1] * np.arange(len(X))[:, None]  # of the blocks, in one dimension
        pairs = (begins + i).ravel(), (begins + j).ravel()
        self._covariance = paired_covariance(expression, X.flat, X.flat, *pairs)

    def last_columns(self, params: FloatArray) -> FloatArray:
        """Compute the last columns ``w`` (n_blocks, n_rows) of the inverses. O(n_rows^3) each."""
        return self.solve(params, self._last[..., None])[..., 0]

    def value(self, params: FloatArray, y: FloatArray) -> float:
        """Sum the log densities of the last targets given the others, for all (n_blocks, n_rows).

        A ``LinAlgError`` is raised if a matrix is not positive definite.
        """
        w = self.last_columns(params)
        return _log_density(w[:, -1], np.einsum("ij,ij->i", w, y))

    def value_and_gradient(self, params: FloatArray, y: FloatArray) -> tuple[float, FloatArray]:
        """Compute :meth:`value` and its gradient in the log parameters.

        With ``u = K^-1 y`` and the residual ``r = u_last / w_last``, the derivative of the log
        density along a symmetric change D of the matrix is ``w^T D v``, where
        ``v = r u - (1 / w_last + r^2) w / 2``.
        """
        solved = self.solve(params, np.stack([self._last, y], axis=-1))
        w, u = solved[..., 0], solved[..., 1]
        precision, weighted = w[:, -1], u[:, -1]
        value = _log_density(precision, weighted)
        residual = (weighted / precision)[:, None]
        v = residual * u - 0.5 * (1 / precision[:, None] + residual**2) * w
        adjoint = w[:, self._i] * v[:, self._j]
        adjoint += v[:, self._i] * w[:, self._j]
        adjoint[:, self._i == self._j] *= 0.5
        noise_gradient = params[-1] * np.vdot(w, v * self._noise.slope)
        return value, np.append(self._covariance.backward(adjoint.ravel()), noise_gradient)

    def solve(self, params: FloatArray, right: FloatArray) -> FloatArray:
        """Solve each matrix for its right-hand sides (n_blocks, n_rows, n_sides)."""
        n_blocks, n_rows = self.shape
        values = self._covariance.forward(params[:-1]).reshape(n_blocks, -1)
        K = np.empty((n_blocks, n_rows, n_rows))
        K[:, self._i, self._j] = K[:, self._j, self._i] = values
        numbers = np.arange(n_rows)
        K[:, numbers, numbers] += self._noise.variance(params[-1])
        # the static type of solve allows for less than double precision
        return np.linalg.solve(K, right).astype(float, copy=False)


def _log_density(precision: FloatArray, weighted: FloatArray) -> float:
    """Compute the log density of residuals ``weighted / precision``, in nats."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        return finite(0.5 * (np.log(precision) - weighted**2 / precision - LOG_2PI).sum())


def draw_neighbourhoods(
    expression: Expression,
    theta: FloatArray,
    X: Inputs,
    *,
    n_head: int,
    n_blocks: int,
    n_neighbours: int,
    rng: np.random.Generator,
) -> tuple[IntArray, IntArray]:
    """Put the rows in random order, and choose neighbours for some of them among earlier rows.

    At most ``n_blocks`` rows have neighbours: the ``n_neighbours`` <= ``n_head`` earlier rows that
    are most correlated with them at ``theta``. Noise alone needs none.

    Returns the rows (n_head,) whose joint density is exact, and blocks (n_blocks, n_neighbours + 1)
    of neighbours with, at the end, the row itself.
    """
    order = rng.permutation(len(X))
    n_blocks = min(n_blocks, len(X) - n_head)
    positions = np.sort(n_head + rng.choice(len(X) - n_head, n_blocks, replace=False))
    neighbours = np.empty((n_blocks, n_neighbours), dtype=np.intp)
    n_earlier = n_head
    while n_earlier < len(X):
        up_to = int(1.5 * n_earlier)  # so that there are few sets of rows to choose among
        now = (positions >= n_earlier) & (positions < up_to)
        if now.any() and n_neighbours:
            earlier = order[:n_earlier]
            nearest = NearestRows(expression, theta, X[earlier], rng)
            neighbours[now] = earlier[nearest.of(X[order[positions[now]]], n_neighbours)]
        n_earlier = up_to
    return order[:n_head], np.column_stack([neighbours, order[positions]])


class NeighbourLikelihood(Likelihood):
    """The log likelihood in which each row depends only on a few earlier rows.

    ``log p(y) = log p(y_head) + sum_i log p(y_i | y_neighbours(i))``: the joint density of the
    head is exact, and the sum over all other rows is estimated from those that have neighbours. See
    :func:`draw_neighbourhoods`.

    The approximation is that of Vecchia (1988, J. Royal Statistical Society B 50). One call takes
    O(n_head^3 + n_blocks n_neighbours^3).
    """

    def __init__(
        self, expression: Expression, data: TrainingData, head: IntArray, blocks: IntArray
    ) -> None:
        super().__init__(expression, data)
        self.head, self._blocks = head, blocks
        self._head = ExactLikelihood(expression, data.take(head))
        # rows outside of the head for each one that has neighbours
        self.rows_for_each = max(1.0, (len(data.y) - len(head)) / max(1, len(blocks)))
        self._tail = self.data.take(blocks[:, -1])
        n_pairs = blocks.shape[1] * (blocks.shape[1] + 1) // 2
        step = max(1, _PAIRS_PER_BLOCK // n_pairs)
        self._parts = [blocks[first : first + step] for first in range(0, len(blocks), step)]
        keeps = len(blocks) * n_pairs * expression.n_leaves <= MAX_KEPT_LEAF_VALUES
        self._kept = [Blocks(expression, self.data, one) if keeps else None for one in self._parts]

    @property
    def work(self) -> float:
        return float((len(self._head.data.y) + len(self._blocks)) * (1 + self.expression.n_leaves))

    def with_fewer_blocks(self, n_blocks: int) -> "NeighbourLikelihood":
        """Return the likelihood by some of the blocks, which stand for more rows each."""
        if (step := -(-len(self._blocks) // n_blocks)) <= 1:
            return self
        return NeighbourLikelihood(self.expression, self.data, self.head, self._blocks[::step])

    def _value(self, theta: FloatArray) -> float:
        params, value = np.exp(theta), self._head.value(theta)
        value += self.rows_for_each * self._tail.noise.correction(theta[-1])
        for blocks, y in self._sweep():
            value += self.rows_for_each * blocks.value(params, y)
        return finite(value)

    def _value_and_gradient(self, theta: FloatArray) -> tuple[float, FloatArray]:
        value, gradient = self._head.value_and_gradient(theta)
        for blocks, y in self._sweep():
            of_blocks, slopes = blocks.value_and_gradient(np.exp(theta), y)
            value += self.rows_for_each * of_blocks
            gradient = gradient + self.rows_for_each * slopes
        value += self.rows_for_each * self._tail.noise.correction(theta[-1])
        gradient[-1] += self.rows_for_each * self._tail.noise.slope_of_correction(theta[-1])
        return finite(value), gradient

    def _sweep(self) -> Iterator[tuple[Blocks, FloatArray]]:
        """Yield blocks with their targets (n_blocks, n_neighbours + 1)."""
        for part, kept in zip(self._parts, self._kept, strict=True):
            yield kept or Blocks(self.expression, self.data, part), self.data.y[part]


class NeighbourPredictor(Predictor):
    """The predictive distribution of each row given only its nearest training rows.

    The prediction is that of Vecchia's approximation. Construction takes O(n_samples log
    n_samples), and each new row O(n_neighbours^3). Correlations between new rows are those given
    the union of their nearest rows, with fewer for each if they would be too many.
    """

    def __init__(
        self, expression: Expression, theta: FloatArray, data: TrainingData, n_neighbours: int
    ) -> None:
        self._n_neighbours = min(n_neighbours, len(data.X))
        self.text = f"{self._n_neighbours} neighbours"
        n_pairs = (self._n_neighbours + 1) * (self._n_neighbours + 2) // 2
        super().__init__(expression, theta, data, block=_PAIRS_PER_BLOCK // n_pairs)
        self._expression, self._theta = expression, theta
        rng = np.random.default_rng(0)  # so that equal rows have equal predictions
        self._nearest = NearestRows(expression, theta, data.inputs, rng)

    def mean_and_covariance(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        # at most 2048 training rows by convention, unless there are more new rows
        n_each = max(1, min(self._n_neighbours, 2048 // max(1, len(X))))
        rows = np.unique(self._nearest.of(self._columns.scaled(X), n_each))
        joint = ExactPredictor(self._expression, self._theta, self._data.take(rows))
        _, covariance = joint.mean_and_covariance(X)
        mean, variance = self.mean_and_variance(X)
        factor = np.sqrt(variance / np.diag(covariance))
        return mean, covariance * np.outer(factor, factor)

    def _moments_of_block(self, X: Inputs) -> tuple[FloatArray, FloatArray]:
        rows = self._nearest.of(X, self._n_neighbours)
        w = Blocks(self._expression, self._data, rows, X).last_columns(np.exp(self._theta))
        mean = -np.einsum("ij,ij->i", w[:, :-1], self._data.y[rows]) / w[:, -1]
        return mean, 1 / w[:, -1] + (self.noise_at(X.values, mean) - self.noise_variance)
