"""What a likelihood of one kernel on one data set is, and the data that all kernels share."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from autokernel.expression import Expression
from autokernel.kernels import KernelParameter
from autokernel.likelihood.pairs import PackedPairs
from autokernel.typing import FloatArray, IntArray


class TrainingData:
    """Inputs, targets and what all kernels share: the pairs of each column, computed on demand.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        Inputs.
    y : ndarray of shape (n_samples,)
        Targets, of zero mean under the model.
    """

    def __init__(self, X: FloatArray, y: FloatArray) -> None:
        self.X, self.y = X, y
        self.mean_square = float(np.mean(y**2))
        self._pairs: dict[int, PackedPairs] = {}

    def take(self, rows: IntArray) -> "TrainingData":
        """Return these rows."""
        return TrainingData(self.X[rows], self.y[rows])

    def pairs(self, column: int) -> PackedPairs:
        """Return the pairs of one column; only an exact likelihood asks for them."""
        if column not in self._pairs:
            self._pairs[column] = PackedPairs(np.ascontiguousarray(self.X[:, column]))
        return self._pairs[column]


@dataclass(frozen=True, slots=True, eq=False)  # eq=False: gradient is an array
class ValueAndGradient:
    """A scalar and its gradient in theta."""

    value: float
    gradient: FloatArray  # (n_params,)


class Likelihood(Protocol):
    """Log likelihood of one kernel on one data set, as a function of theta.

    ``theta`` (n_params,) holds the logs of the parameters in the order of ``parameters``: those of
    the expression, then those of the likelihood itself, the noise variance last.

    Attributes
    ----------
    expression : Expression
        The kernel.
    data : TrainingData
        Inputs and targets.
    parameters : tuple of KernelParameter
        What theta holds.
    n_evaluations : int
        Calls so far, failed ones too, with those of all that :meth:`on_rows` has made of it.
    """

    expression: Expression
    data: TrainingData
    parameters: tuple[KernelParameter, ...]

    @property
    def n_evaluations(self) -> int:
        """Number of calls so far, failed ones too."""

    def on_rows(self, rows: IntArray) -> "Likelihood":
        """Return that of the same kernel on these rows; calls of both count together."""

    def value(self, theta: FloatArray) -> float:
        """Log likelihood in nats, ``-inf`` where it cannot be computed."""

    def value_and_gradient(self, theta: FloatArray) -> ValueAndGradient:
        """Log likelihood in nats and its gradient; ``-inf`` and zero where there is none."""

    def leave_one_out(self, theta: FloatArray) -> FloatArray:
        """Log predictive density (n_samples,) of each target given all others, in nats."""

    def held_out(self, theta: FloatArray, n_given: int) -> FloatArray:
        """Log predictive density of each target after the first ``n_given``, given those."""


MakeLikelihood = Callable[[Expression, TrainingData], Likelihood]
"""Makes the likelihood of a kernel on a data set."""
