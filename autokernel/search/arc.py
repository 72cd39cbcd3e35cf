"""Bayesian optimisation with a kernel for hierarchical spaces."""

from autokernel.search.bayesian import EvolvingStrategy
from autokernel.search.distances import ArcKernel, KernelKernel
from autokernel.search.strategy import Task


class Arc(EvolvingStrategy):
    """Bayesian optimisation over expressions with the kernel for hierarchical spaces.

    Each position of a tree is a categorical variable whose value is an operator, or a base kernel
    with its column. A position is active where the position above holds an operator.

    Parameters
    ----------
    acquisition : {"ei", "ei_per_second", "ucb", "thompson"} or Acquisition, default="ei"
        What to maximise, as for :class:`SOT`.
    population_size : int, default=100
        Number of expressions in a generation of the evolution that maximises the acquisition
        function.
    n_offspring : int, default=4
        Number of offspring of each survivor; ``population_size / (n_offspring + 1)`` survive.
    n_generations : int or "auto", default="auto"
        Number of generations; ``"auto"`` is 6 for one column and 10 for more.
    local_steps : bool or "auto", default="auto"
        Whether every second proposal is a neighbour of the best kernel: of eight that are drawn,
        that with the highest acquisition value; ``"auto"`` is True unless the estimator has
        ``structure_prior=None``.
    initial_design : {"default", "paper"}, default="default"
        Initial design, as for :class:`SOT`.

    Notes
    -----
    Hutter and Osborne (2013), *A kernel for hierarchical parameter spaces*, section 3, with one
    weight for each level of the tree. All but the kernel between expressions is as in
    :class:`SOT`.
    """

    def kernel_kernel(self, task: Task) -> KernelKernel:
        """Build the kernel that compares expressions position by position."""
        return ArcKernel(n_features=task.n_features)
