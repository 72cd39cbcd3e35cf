"""Surrogates for the score of an expression."""

from autokernel.surrogate.acquisition import (
    ACQUISITIONS,
    Acquisition,
    ExpectedImprovement,
    ExpectedImprovementPerSecond,
    ThompsonSampling,
    UpperConfidenceBound,
)

__all__ = [
    "ACQUISITIONS",
    "Acquisition",
    "ExpectedImprovement",
    "ExpectedImprovementPerSecond",
    "ThompsonSampling",
    "UpperConfidenceBound",
]
