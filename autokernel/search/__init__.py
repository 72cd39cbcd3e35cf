"""The search: one loop, its history, designs, workers, and a file for each strategy."""

from collections.abc import Mapping
from types import MappingProxyType

from autokernel.search.acquisition import (
    ACQUISITIONS,
    Acquisition,
    ExpectedImprovement,
    ThompsonSampling,
    UpperConfidenceBound,
)
from autokernel.search.history import (
    CUT,
    EARLY,
    MEANINGS,
    History,
    Phase,
    StopReason,
    Trial,
    columns_of,
    words_of,
)
from autokernel.search.loop import Observer, Search
from autokernel.search.methods.arc import Arc
from autokernel.search.methods.boms import BOMS
from autokernel.search.methods.greedy import SKC, Greedy
from autokernel.search.methods.random_walks import RandomWalks
from autokernel.search.methods.series import SeriesKernels
from autokernel.search.methods.sot import SOT
from autokernel.search.methods.tree_gep import TreeGEP
from autokernel.search.store import Store
from autokernel.search.strategy import Strategy, Task
from autokernel.search.workers import evaluate_in_parallel

STRATEGIES: Mapping[str, type[Strategy]] = MappingProxyType(
    {
        "sot": SOT,
        "boms": BOMS,
        "greedy": Greedy,
        "skc": SKC,
        "tree_gep": TreeGEP,
        "random": RandomWalks,
        "arc": Arc,
        "series": SeriesKernels,
    }
)
