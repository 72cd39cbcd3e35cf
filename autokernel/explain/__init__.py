"""Components, sentences and tables about a fitted model."""

from autokernel.explain.beliefs import Inclusion, Intervals, Parameters, Posterior
from autokernel.explain.decomposition import Component, Decomposition
from autokernel.explain.description import Description
from autokernel.explain.summary import fill, summary
from autokernel.explain.tables import MARK, Leaderboard, SizeFront, Trials

__all__ = [
    "MARK",
    "Component",
    "Decomposition",
    "Description",
    "Inclusion",
    "Intervals",
    "Leaderboard",
    "Parameters",
    "Posterior",
    "SizeFront",
    "Trials",
    "fill",
    "summary",
]
