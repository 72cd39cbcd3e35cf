"""One run of ``fit``: its arguments, space of kernels, search, result and progress."""

from autokernel.fit.arguments import Arguments
from autokernel.fit.progress import Monitor
from autokernel.fit.run import Run

__all__ = ["Arguments", "Monitor", "Run"]
