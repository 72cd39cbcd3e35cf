"""Search strategies: each has its own file and one line in the registry."""

from collections.abc import Mapping
from types import MappingProxyType

from autokernel.search.strategies.arc import Arc
from autokernel.search.strategies.base import Strategy, Task
from autokernel.search.strategies.boms import BOMS
from autokernel.search.strategies.greedy import Greedy
from autokernel.search.strategies.random_walks import RandomWalks
from autokernel.search.strategies.skc import SKC
from autokernel.search.strategies.sot import SOT
from autokernel.search.strategies.tree_gep import TreeGEP

STRATEGIES: Mapping[str, type[Strategy]] = MappingProxyType(
    {
        "sot": SOT,
        "boms": BOMS,
        "greedy": Greedy,
        "skc": SKC,
        "tree_gep": TreeGEP,
        "random": RandomWalks,
        "arc": Arc,
    }
)

__all__ = [
    "BOMS",
    "SKC",
    "SOT",
    "STRATEGIES",
    "Arc",
    "Greedy",
    "RandomWalks",
    "Strategy",
    "Task",
    "TreeGEP",
]
