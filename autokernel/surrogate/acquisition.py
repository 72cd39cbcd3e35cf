"""What makes an expression worth evaluating; one entry of the registry each, larger is better."""

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
from autokernel.surrogate.gp import Prediction, SurrogateGP
from autokernel.typing import FloatArray

Values = Callable[[Sequence[Expression]], FloatArray]
"""What it is worth (n,) to evaluate each of n expressions."""


@dataclass(frozen=True, slots=True, eq=False)  # eq=False: the field is an array
class Cost:
    """Predicts how long evaluations take: log seconds are linear in the number of parameters.

    BOMS, section 3.
    """

    coefficients: FloatArray  # (2,), at no parameters, and for each of them

    @classmethod
    def of(cls, expressions: Sequence[Expression], seconds: FloatArray) -> "Cost":
        """Fit evaluations that have been made, by least squares."""
        n_params, logs = _n_params(expressions), np.log(np.maximum(seconds, 1e-6))
        away = n_params - n_params.mean()
        slope = away @ logs / max(float(away @ away), 1e-9)  # none where nothing is known of it
        return cls(np.array([logs.mean() - slope * n_params.mean(), slope]))

    def __call__(self, expressions: Sequence[Expression]) -> FloatArray:
        """Predict seconds (n,)."""
        intercept, slope = self.coefficients
        return np.exp(intercept + slope * _n_params(expressions))


@dataclass(frozen=True, slots=True, eq=False)  # eq=False: the fields hold arrays
class Belief:
    """What is believed of expressions when one is to be chosen."""

    surrogate: SurrogateGP  # of their scores
    best: float  # highest score so far
    cost: Cost  # of evaluations
    rng: np.random.Generator


class Acquisition(ABC, BaseEstimator):
    """An acquisition function; holds parameters and no state."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {}

    @abstractmethod
    def values(self, belief: Belief) -> Values:
        """Build the function to maximise."""


class ExpectedImprovement(Acquisition):
    """By how much a score is expected to exceed the best one."""

    def values(self, belief: Belief) -> Values:
        """Build the function to maximise."""
        return lambda expressions: expected_improvement(
            belief.surrogate.predict(expressions), best=belief.best
        )


class ExpectedImprovementPerSecond(Acquisition):
    """Expected improvement over the predicted seconds of an evaluation (BOMS, section 3).

    What is proposed depends on measured times, and so cannot be reproduced exactly.
    """

    def values(self, belief: Belief) -> Values:
        """Build the function to maximise."""
        improvement = ExpectedImprovement().values(belief)
        return lambda expressions: improvement(expressions) / belief.cost(expressions)


class UpperConfidenceBound(Acquisition):
    """The predicted score, and ``kappa`` standard deviations more.

    Parameters
    ----------
    kappa : float, default=2.0
        How much uncertainty counts; not negative.
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
    """Compute by how much (n,) a score is expected to exceed ``best``, in its unit."""
    std = np.maximum(prediction.std, 1e-12)
    z = (prediction.mean - best) / std
    density = np.exp(-0.5 * z**2) / np.sqrt(2 * np.pi)
    return std * (z * ndtr(z) + density)


def _n_params(expressions: Sequence[Expression]) -> FloatArray:
    """Count the parameters (n,) of each kernel, that of the noise included."""
    return np.array([n_kernel_params(expression) + 1.0 for expression in expressions])
