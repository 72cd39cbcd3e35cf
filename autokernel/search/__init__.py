"""The search over kernel expressions."""

from autokernel.search.design import Design
from autokernel.search.history import History, Phase, StopReason, Trial
from autokernel.search.loop import Observer, design_of, run_search
from autokernel.search.strategies import (
    BOMS,
    SKC,
    SOT,
    STRATEGIES,
    Arc,
    Greedy,
    RandomWalks,
    Strategy,
    Task,
    TreeGEP,
)
from autokernel.search.workers import Workers

__all__ = [
    "BOMS",
    "SKC",
    "SOT",
    "STRATEGIES",
    "Arc",
    "Design",
    "Greedy",
    "History",
    "Observer",
    "Phase",
    "RandomWalks",
    "StopReason",
    "Strategy",
    "Task",
    "TreeGEP",
    "Trial",
    "Workers",
    "design_of",
    "run_search",
]
