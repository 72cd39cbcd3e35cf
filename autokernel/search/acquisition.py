"""Acquisition functions: the value of evaluating an expression, larger is better."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from numbers import Real
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy.special import ndtr
from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import Interval

from autokernel.expression import Expression
from autokernel.search.surrogate import SurrogateGP
from autokernel.typing import FloatArray

Values = Callable[[Sequence[Expression]], FloatArray]
"""Function that returns one number for each of n expressions (n,), such as acquisition values."""


class Belief(NamedTuple):
    """What an acquisition function may use: surrogate, best score and random numbers."""

    surrogate: SurrogateGP  # predicts scores
    best: float  # highest score so far, in the unit of the surrogate
    rng: np.random.Generator


class Acquisition(ABC, BaseEstimator):
    """An acquisition function, which has parameters and no state."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {}

    @abstractmethod
    def values(self, belief: Belief) -> Values:
        """Build the function to maximise."""


class ExpectedImprovement(Acquisition):
    """The expected amount by which a score exceeds the best one."""

    def values(self, belief: Belief) -> Values:
        predict, best = belief.surrogate.predict, belief.best
        return lambda expressions: expected_improvement(*predict(expressions), best=best)


class UpperConfidenceBound(Acquisition):
    """The predicted score plus ``kappa`` standard deviations.

    Parameters
    ----------
    kappa : float, default=2.0
        Number of standard deviations to add, not negative.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "kappa": [Interval(Real, 0, None, closed="left")]
    }

    def __init__(self, *, kappa: float = 2.0) -> None:
        self.kappa = kappa

    def values(self, belief: Belief) -> Values:

        def bound(expressions: Sequence[Expression]) -> FloatArray:
            mean, std = belief.surrogate.predict(expressions)
            return mean + self.kappa * std

        return bound


class ThompsonSampling(Acquisition):
    """A function drawn from the posterior over scores."""

    def values(self, belief: Belief) -> Values:
        return belief.surrogate.draw(belief.rng)


ACQUISITIONS: Mapping[str, type[Acquisition]] = MappingProxyType(
    {"ei": ExpectedImprovement, "ucb": UpperConfidenceBound, "thompson": ThompsonSampling}
)


def expected_improvement(mean: FloatArray, std: FloatArray, *, best: float) -> FloatArray:
    """Compute the expected improvements (n,) over ``best``, in the unit of the scores."""
    std = np.maximum(std, 1e-12)
    z = (mean - best) / std
    return std * (z * ndtr(z) + np.exp(-0.5 * z**2) / np.sqrt(2 * np.pi))
