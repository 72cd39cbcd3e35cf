"""Bayesian optimisation with symbolical optimal transport."""

from autokernel.search.bayesian import EvolvingStrategy
from autokernel.search.distances import KernelKernel, SOTKernel
from autokernel.search.strategy import Task


class SOT(EvolvingStrategy):
    """Bayesian optimisation over expressions with the SOT kernel.

    Parameters
    ----------
    acquisition : {"ei", "ei_per_second", "ucb", "thompson"} or Acquisition, default="ei"
        What to maximise: the expected improvement, the same per second of evaluation, an upper
        confidence bound, or a draw from the posterior; or an object such as
        ``UpperConfidenceBound(kappa=3)``.
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
        Initial design. ``"paper"`` is every base kernel on every column, and two random operations
        from each.
        ``"default"`` adds the kernels that a person would try first and holds at most 60 kernels.

    Notes
    -----
    Bitzer, Meister and Zimmer (2022), *Structural kernel search via Bayesian optimization and
    symbolical optimal transport*, algorithms 1 and 2. The first generation holds random walks from
    the base kernels and neighbours of the best kernels so far.
    """

    def kernel_kernel(self, task: Task) -> KernelKernel:
        """Build the kernel that compares the building blocks of expressions."""
        return SOTKernel(n_features=task.n_features)
