"""One run of ``fit``: its arguments, problem, search, result and callbacks."""

from autokernel.fit.arguments import Arguments
from autokernel.fit.callbacks import Monitor
from autokernel.fit.problem import Past, Problem
from autokernel.fit.run import Run

__all__ = [
    "Arguments",
    "Monitor",
    "Past",
    "Problem",
    "Run",
]
