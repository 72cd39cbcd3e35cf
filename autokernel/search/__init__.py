"""The search over expressions."""

from collections.abc import Mapping
from types import MappingProxyType

from autokernel.search.arc import Arc
from autokernel.search.boms import BOMS
from autokernel.search.design import Design
from autokernel.search.greedy import Greedy
from autokernel.search.history import History, Phase, StopReason, Trial
from autokernel.search.loop import Observer, design_of, search
from autokernel.search.random_walks import RandomWalks
from autokernel.search.sot import SOT
from autokernel.search.strategy import Strategy, Task
from autokernel.search.tree_gep import TreeGEP
from autokernel.search.workers import Workers

STRATEGIES: Mapping[str, type[Strategy]] = MappingProxyType(
    {
        "sot": SOT,
        "boms": BOMS,
        "greedy": Greedy,
        "tree_gep": TreeGEP,
        "random": RandomWalks,
        "arc": Arc,
    }
)

__all__ = [
    "BOMS",
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
    "search",
]
