"""Bayesian optimisation with a kernel for hierarchical spaces."""

from autokernel.search.strategies.base import Task
from autokernel.search.strategies.bayesian import EvolvingStrategy
from autokernel.surrogate.kernel_kernels import ArcKernel, KernelKernel


class Arc(EvolvingStrategy):
    """Bayesian optimisation over expressions with the kernel for hierarchical spaces.

    The positions of a tree are categorical variables, an operator or a base kernel with its column,
    and active where the position above holds an operator.

    Parameters
    ----------
    population_size : int, default=100
        Expressions in a generation of the evolution that maximises the acquisition function.
    n_offspring : int, default=4
        Offspring of each survivor; ``population_size / (n_offspring + 1)`` survive.
    n_generations : int or "auto", default="auto"
        Generations; ``"auto"`` is 6 for one column and 10 for more.
    initial_design : {"default", "paper"}, default="default"
        As for :class:`SOT`.

    Notes
    -----
    Hutter and Osborne (2013), *A kernel for hierarchical parameter spaces*, section 3, with one
    weight for each level of the tree. All but the kernel between expressions is as in :class:`SOT`.
    """

    def kernel_kernel(self, task: Task) -> KernelKernel:
        """Compare expressions position by position."""
        return ArcKernel(n_features=task.n_features)
