"""Acquisition functions: the value of evaluating an expression, larger is better."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np
from scipy.special import ndtr
from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import Interval

from autokernel.expression import Expression, n_kernel_params
from autokernel.search.surrogate import Prediction, SurrogateGP
from autokernel.typing import FloatArray

Values = Callable[[Sequence[Expression]], FloatArray]
"""Function that returns the acquisition values (n,) of n expressions."""


@dataclass(frozen=True, slots=True, eq=False)  # eq=False: the field is an array
class Cost:
    """Predicts how long evaluations take: log seconds are linear in the number of parameters.

    The model is that of BOMS, section 3.
    """

    coefficients: FloatArray  # (2,), log seconds at no parameters, slope per parameter

    @classmethod
    def of(cls, expressions: Sequence[Expression], seconds: FloatArray) -> "Cost":
        """Fit the seconds of past evaluations by least squares."""
        n_params, logs = _n_params(expressions), np.log(np.maximum(seconds, 1e-6))
        away = n_params - n_params.mean()
        slope = away @ logs / max(float(away @ away), 1e-9)  # zero if all numbers are equal
        return cls(np.array([logs.mean() - slope * n_params.mean(), slope]))

    def __call__(self, expressions: Sequence[Expression]) -> FloatArray:
        """Predict the seconds (n,) of evaluations."""
        intercept, slope = self.coefficients
        return np.exp(intercept + slope * _n_params(expressions))


@dataclass(frozen=True, slots=True, eq=False)  # eq=False: the fields hold arrays
class Belief:
    """What an acquisition function may use: surrogate, best score, cost and random numbers."""

    surrogate: SurrogateGP  # predicts scores
    best: float  # highest score so far, in the unit of the surrogate
    cost: Cost  # predicts seconds of evaluations
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
        """Build the function to maximise."""
        return lambda expressions: expected_improvement(
            belief.surrogate.predict(expressions), best=belief.best
        )


class ExpectedImprovementPerSecond(Acquisition):
    """Expected improvement divided by the predicted seconds of the evaluation (BOMS, section 3).

    The proposals depend on measured times, so that a search cannot be reproduced exactly.
    """

    def values(self, belief: Belief) -> Values:
        """Build the function to maximise."""
        improvement = ExpectedImprovement().values(belief)
        return lambda expressions: improvement(expressions) / belief.cost(expressions)


class UpperConfidenceBound(Acquisition):
    """The predicted score plus ``kappa`` standard deviations.

    Parameters
    ----------
    kappa : float, default=2.0
        Number of standard deviations to add, not negative.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "kappa": [Interval(Real, 0, None, closed="left")],
    }

    def __init__(self, *, kappa: float = 2.0) -> None:
        self.kappa = kappa

    def values(self, belief: Belief) -> Values:
        """Build the function to maximise."""

        def bound(expressions: Sequence[Expression]) -> FloatArray:
            prediction = belief.surrogate.predict(expressions)
            return prediction.mean + self.kappa * prediction.std

        return bound


class ThompsonSampling(Acquisition):
    """A function drawn from the posterior over scores."""

    def values(self, belief: Belief) -> Values:
        """Build the function to maximise."""
        return belief.surrogate.draw(belief.rng)


ACQUISITIONS: Mapping[str, type[Acquisition]] = MappingProxyType(
    {
        "ei": ExpectedImprovement,
        "ei_per_second": ExpectedImprovementPerSecond,
        "ucb": UpperConfidenceBound,
        "thompson": ThompsonSampling,
    }
)


def expected_improvement(prediction: Prediction, *, best: float) -> FloatArray:
    """Compute the expected improvements (n,) over ``best``, in the unit of the scores."""
    std = np.maximum(prediction.std, 1e-12)
    z = (prediction.mean - best) / std
    density = np.exp(-0.5 * z**2) / np.sqrt(2 * np.pi)
    return std * (z * ndtr(z) + density)


def _n_params(expressions: Sequence[Expression]) -> FloatArray:
    """Count the parameters (n,) of each kernel, noise variance included."""
    return np.array([n_kernel_params(expression) + 1.0 for expression in expressions])
