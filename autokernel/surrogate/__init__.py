"""Surrogate models that predict the score of an expression."""

from autokernel.surrogate.acquisition import (
    ACQUISITIONS,
    Acquisition,
    Belief,
    ExpectedImprovement,
    ExpectedImprovementPerSecond,
    ThompsonSampling,
    UpperConfidenceBound,
)

__all__ = [
    "ACQUISITIONS",
    "Acquisition",
    "Belief",
    "ExpectedImprovement",
    "ExpectedImprovementPerSecond",
    "ThompsonSampling",
    "UpperConfidenceBound",
]
