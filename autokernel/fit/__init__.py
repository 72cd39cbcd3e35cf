"""One run of ``fit``: the problem, the search, what it leaves, and who follows it."""

from autokernel.fit.arguments import CONSTRAINTS, Arguments, check_memory, check_nested
from autokernel.fit.callbacks import Monitor
from autokernel.fit.problem import Past, Problem
from autokernel.fit.run import Run

__all__ = [
    "CONSTRAINTS",
    "Arguments",
    "Monitor",
    "Past",
    "Problem",
    "Run",
    "check_memory",
    "check_nested",
]
