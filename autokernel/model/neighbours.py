"""Predictions of each row from the training rows with which it is most correlated."""

import numpy as np

from autokernel.expression import Expression
from autokernel.likelihood import TrainingData, diagonal_covariance
from autokernel.likelihood.blocks import BLOCK_PAIRS, Blocks
from autokernel.likelihood.covariance import paired_covariance
from autokernel.likelihood.nearest import NearestRows
from autokernel.model.blockwise import BlockwisePredictor, Term
from autokernel.model.exact import ExactPredictor
from autokernel.typing import FloatArray

_MOST_JOINT = 2048  # training rows, for the joint distribution of several rows
_SEED = 0  # of the candidates that are drawn, so that equal rows have equal predictions


class NeighbourPredictor(BlockwisePredictor):
    """The predictive distribution of each row given its nearest training rows alone.

    Parameters
    ----------
    expression : Expression
        Expression of the kernel.
    theta : ndarray of shape (n_params,)
        Logs of the parameters, the noise variance last.
    data : TrainingData
        Inputs and targets to condition on.
    n_neighbours : int
        Number of training rows that predict a row.

    Notes
    -----
    The prediction is that of Vecchia's approximation. Construction takes O(n_samples log
    n_samples), and each new row O(n_neighbours^3). Correlations between new rows are those given
    the union of their nearest rows, with fewer for each where there would be too many.
    """

    jitter = 0.0

    def __init__(
        self, expression: Expression, theta: FloatArray, data: TrainingData, n_neighbours: int
    ) -> None:
        self._n_neighbours = min(n_neighbours, len(data.X))
        n_pairs = (self._n_neighbours + 1) * (self._n_neighbours + 2) // 2
        super().__init__(block=BLOCK_PAIRS // n_pairs)
        self._expression, self._theta, self._data = expression, theta, data
        self._nearest = NearestRows(expression, theta, data.X, np.random.default_rng(_SEED))
        self.noise_variance = float(np.exp(theta[-1]))

    @property
    def text(self) -> str:
        """The number of neighbours."""
        return f"{self._n_neighbours} neighbours"

    @property
    def n_bytes(self) -> int:
        """Memory in bytes of the scaled inputs, without those of the tree."""
        return int(self._data.X.nbytes)

    def mean_and_covariance(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Compute the predictive mean (n,) and covariance (n, n), noise included."""
        n_each = max(1, min(self._n_neighbours, _MOST_JOINT // max(1, len(X))))
        rows = np.unique(self._nearest.of(X, n_each))
        joint = ExactPredictor(self._expression, self._theta, self._data.take(rows))
        _, covariance = joint.mean_and_covariance(X)
        mean, variance = self.mean_and_variance(X)
        factor = np.sqrt(variance / np.diag(covariance))
        return mean, covariance * np.outer(factor, factor)

    def _mean_of_block(self, X: FloatArray) -> FloatArray:
        """Compute the predictive mean of one block of rows."""
        return self._moments_of_block(X)[0]

    def _part_of_block(self, term: Term, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Compute mean and variance of a term of the function for one block of rows.

        Rows far away are not known to each other, so that the variance is never that of the
        difference from an average.
        """
        rows = self._nearest.of(X, self._n_neighbours)
        neighbours = self._data.X[rows]
        cross = paired_covariance(
            term.expression, lambda column: (X[:, None, column], neighbours[..., column])
        ).forward(term.params)
        right = np.stack([self._data.y[rows], cross], axis=-1)
        solved = Blocks(self._expression, neighbours).solve(np.exp(self._theta), right)
        mean, explained = np.einsum("ij,ijk->ki", cross, solved)
        prior = diagonal_covariance(term.expression, X).forward(term.params)
        return mean, np.maximum(prior - explained, 0.0)

    def _moments_of_block(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Compute the predictive mean and variance of one block of rows, noise included."""
        rows = self._nearest.of(X, self._n_neighbours)
        inputs = np.concatenate([self._data.X[rows], X[:, None]], axis=1)
        w = Blocks(self._expression, inputs).last_columns(np.exp(self._theta))
        weighted = np.einsum("ij,ij->i", w[:, :-1], self._data.y[rows])
        return -weighted / w[:, -1], 1 / w[:, -1]
