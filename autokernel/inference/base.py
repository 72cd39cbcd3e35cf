"""The interface of a likelihood, and the data that all kernels share."""

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from autokernel.expression import Expression
from autokernel.inference.pairs import PackedPairs
from autokernel.kernels import NOISE_VARIANCE
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


class Likelihood(ABC):
    """Log likelihood of one kernel on one data set, as a function of theta.

    ``theta`` (n_params,) holds the logs of the parameters in the order of ``parameters``: first the
    parameters of the expression, then the noise variance.

    Parameters
    ----------
    expression : Expression
        The kernel.
    data : TrainingData
        Inputs and targets.

    Attributes
    ----------
    parameters : tuple of KernelParameter
        Parameters whose logs are the entries of theta.
    """

    def __init__(self, expression: Expression, data: TrainingData) -> None:
        self.expression, self.data = expression, data
        own = (parameter for node in expression.nodes for parameter in node.parameters)
        self.parameters = (*own, NOISE_VARIANCE)

    @abstractmethod
    def value(self, theta: FloatArray) -> float:
        """Compute the log likelihood in nats, ``-inf`` if that is not possible."""

    @abstractmethod
    def value_and_gradient(self, theta: FloatArray) -> ValueAndGradient:
        """Compute the log likelihood in nats and its gradient, ``-inf`` and zeros on failure."""

    def leave_one_out(self, theta: FloatArray) -> FloatArray:
        """Compute the log predictive density (n_samples,) of each target given all others."""
        raise NotImplementedError("predictive criteria need approximation='exact'")

    def held_out(self, theta: FloatArray, n_given: int) -> FloatArray:
        """Compute log predictive densities of targets after the first ``n_given``, given these."""
        raise NotImplementedError("predictive criteria need approximation='exact'")
