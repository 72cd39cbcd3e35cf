"""The interface of a likelihood, and the data that all kernels share."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from autokernel.expression import Expression
from autokernel.inference.pairs import PackedPairs
from autokernel.kernels import KernelParameter
from autokernel.typing import FloatArray, IntArray


class TrainingData:
    """Inputs, targets and the pairs of each column, which are computed on demand.

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
        """Return the data of these rows."""
        return TrainingData(self.X[rows], self.y[rows])

    def pairs(self, column: int) -> PackedPairs:
        """Return the pairs of one column, which only an exact likelihood needs."""
        if column not in self._pairs:
            self._pairs[column] = PackedPairs(np.ascontiguousarray(self.X[:, column]))
        return self._pairs[column]


@dataclass(frozen=True, slots=True, eq=False)  # eq=False: gradient is an array
class ValueAndGradient:
    """A scalar and its gradient with respect to theta."""

    value: float
    gradient: FloatArray  # (n_params,)


class Likelihood(Protocol):
    """Log likelihood of one kernel on one data set, as a function of theta.

    ``theta`` (n_params,) holds the logs of the parameters in the order of ``parameters``: first the
    parameters of the expression, then the noise variance.

    Attributes
    ----------
    expression : Expression
        The kernel.
    data : TrainingData
        Inputs and targets.
    parameters : tuple of KernelParameter
        Parameters whose logs are the entries of theta.
    n_evaluations : int
        Number of calls so far, including failed ones and the calls of all likelihoods that
        :meth:`on_rows` has made from this one.
    """

    expression: Expression
    data: TrainingData
    parameters: tuple[KernelParameter, ...]

    @property
    def n_evaluations(self) -> int:
        """Number of calls so far, including failed ones."""

    def on_rows(self, rows: IntArray) -> "Likelihood":
        """Return the same kernel's likelihood on these rows; calls of both count together."""

    def value(self, theta: FloatArray) -> float:
        """Compute the log likelihood in nats, ``-inf`` if that is not possible."""

    def value_and_gradient(self, theta: FloatArray) -> ValueAndGradient:
        """Compute the log likelihood in nats and its gradient, ``-inf`` and zeros on failure."""

    def leave_one_out(self, theta: FloatArray) -> FloatArray:
        """Compute the log predictive density (n_samples,) of each target given all others."""

    def held_out(self, theta: FloatArray, n_given: int) -> FloatArray:
        """Compute log predictive densities of targets after the first ``n_given``, given these."""


class ApproximateLikelihood:
    """The part of a likelihood that approximations of it do not have."""

    def leave_one_out(self, theta: FloatArray) -> FloatArray:
        """Raise an error."""
        raise NotImplementedError("predictive criteria need approximation='exact'")

    def held_out(self, theta: FloatArray, n_given: int) -> FloatArray:
        """Raise an error."""
        raise NotImplementedError("predictive criteria need approximation='exact'")


MakeLikelihood = Callable[[Expression, TrainingData], Likelihood]
"""A function that makes the likelihood of a kernel on a data set."""
