"""The likelihood of rows given their nearest neighbours alone (Vecchia's approximation)."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from autokernel.expression import Expression
from autokernel.likelihood.base import ApproximateLikelihood, TrainingData, ValueAndGradient
from autokernel.likelihood.blocks import BLOCK_PAIRS, Blocks
from autokernel.likelihood.exact import ExactLikelihood
from autokernel.likelihood.nearest import NearestRows
from autokernel.typing import FloatArray, IntArray

_KEPT = 2**24  # largest number of covariances of base kernels that stay in memory between calls
_GROWTH = 1.5  # factor between the numbers of rows among which neighbours are looked for


@dataclass(frozen=True, slots=True, eq=False)  # eq=False: the fields are arrays
class Neighbourhoods:
    """The rows of a likelihood in which a row depends on few other ones."""

    head: IntArray  # (n_head,), rows whose joint density is exact
    blocks: IntArray  # (n_blocks, n_neighbours + 1), neighbours and, at the end, the row itself


def draw_neighbourhoods(
    expression: Expression,
    theta: FloatArray,
    X: FloatArray,
    *,
    n_head: int,
    n_blocks: int,
    n_neighbours: int,
    rng: np.random.Generator,
) -> Neighbourhoods:
    """Put the rows in random order, and choose neighbours for some of them among earlier rows.

    Parameters
    ----------
    expression : Expression
        The kernel.
    theta : ndarray of shape (n_params,)
        Logs of the parameters for which the neighbours are the most correlated rows.
    X : ndarray of shape (n_samples, n_features)
        Inputs.
    n_head : int
        Number of rows, the first ones, whose joint density is exact.
    n_blocks : int
        Most rows that have neighbours.
    n_neighbours : int
        Number of neighbours, at most ``n_head``; zero for noise alone, whose rows are independent.
    rng : numpy.random.Generator
        Source of the order and of the choice.
    """
    order = rng.permutation(len(X))
    n_blocks = min(n_blocks, len(X) - n_head)
    places = np.sort(n_head + rng.choice(len(X) - n_head, n_blocks, replace=False))
    neighbours = np.empty((n_blocks, n_neighbours), dtype=np.intp)
    n_earlier = n_head
    while n_earlier < len(X):
        up_to = int(_GROWTH * n_earlier)
        now = (places >= n_earlier) & (places < up_to)
        if now.any() and n_neighbours:
            earlier = order[:n_earlier]
            nearest = NearestRows(expression, theta, X[earlier], rng)
            neighbours[now] = earlier[nearest.of(X[order[places[now]]], n_neighbours)]
        n_earlier = up_to
    return Neighbourhoods(order[:n_head], np.column_stack([neighbours, order[places]]))


class NeighbourLikelihood(ApproximateLikelihood):
    """The log likelihood in which each row depends on a few earlier rows alone.

    ``log p(y) = log p(y_head) + sum_i log p(y_i | y_neighbours(i))``: the joint density of the
    head is exact, and the sum over all other rows is estimated from those that have neighbours.

    Parameters
    ----------
    expression : Expression
        The kernel.
    data : TrainingData
        Inputs and targets.
    neighbourhoods : Neighbourhoods
        The head, and the rows with neighbours.

    Attributes
    ----------
    rows_for_each : float
        Number of rows outside of the head for each one that has neighbours.

    Notes
    -----
    The approximation is that of Vecchia (1988, J. Royal Statistical Society B 50). One call takes
    O(n_head^3 + n_blocks n_neighbours^3). If a matrix is not positive definite, the value is
    ``-inf`` and the gradient is zero.
    """

    def __init__(
        self, expression: Expression, data: TrainingData, neighbourhoods: Neighbourhoods
    ) -> None:
        self.expression, self.data = expression, data
        head, rows = neighbourhoods.head, neighbourhoods.blocks
        self._head = ExactLikelihood(expression, data.take(head))
        self.parameters = self._head.parameters
        self.rows_for_each = (len(data.y) - len(head)) / max(1, len(rows))
        n_rows = rows.shape[1]
        step = max(1, BLOCK_PAIRS // (n_rows * (n_rows + 1) // 2))
        self._parts = [rows[first : first + step] for first in range(0, len(rows), step)]
        n_pairs = len(rows) * n_rows * (n_rows + 1) // 2
        self._kept: list[Blocks] | None = None
        if n_pairs * expression.n_leaves <= _KEPT:
            self._kept = [self._blocks(part) for part in self._parts]

    @property
    def n_evaluations(self) -> int:
        """Number of calls so far, including failed ones."""
        return self._head.n_evaluations

    def on_rows(self, rows: IntArray) -> ExactLikelihood:
        """Return the same kernel's exact likelihood on these rows."""
        return ExactLikelihood(self.expression, self.data.take(rows))

    def value(self, theta: FloatArray) -> float:
        """Compute the log likelihood in nats."""
        params, value = np.exp(theta), self._head.value(theta)
        for blocks, y in self._sweep():
            value += self.rows_for_each * float(blocks.log_densities(params, y).sum())
        return value

    def value_and_gradient(self, theta: FloatArray) -> ValueAndGradient:
        """Compute the log likelihood in nats and its gradient."""
        params, head = np.exp(theta), self._head.value_and_gradient(theta)
        value, gradient = head.value, head.gradient
        for blocks, y in self._sweep():
            found = blocks.value_and_gradient(params, y)
            value += self.rows_for_each * found.value
            gradient = gradient + self.rows_for_each * found.gradient
        if not np.isfinite(value):
            return ValueAndGradient(-np.inf, np.zeros(len(theta)))
        return ValueAndGradient(value, gradient)

    def _sweep(self) -> Iterator[tuple[Blocks, FloatArray]]:
        """Yield blocks with their targets (n_blocks, n_neighbours + 1)."""
        for number, part in enumerate(self._parts):
            blocks = self._blocks(part) if self._kept is None else self._kept[number]
            yield blocks, self.data.y[part]

    def _blocks(self, part: IntArray) -> Blocks:
        """Build the covariances of some rows with their neighbours."""
        return Blocks(self.expression, self.data.X[part])
