"""Bayesian optimisation with symbolical optimal transport."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import cycle, islice
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import StrOptions

from autokernel.evidence import Estimate
from autokernel.expression import Expression
from autokernel.search.acquisition import Acquisition, Values
from autokernel.search.bayesian import BayesianStrategy, evolve, parents_of
from autokernel.search.climb import Climb
from autokernel.search.distances import SOTKernel
from autokernel.search.history import History
from autokernel.search.strategy import AT_LEAST_ONE, Task
from autokernel.search.surrogate import KernelKernel

N_PARENTS = 10  # best kernels with neighbours in the first generation


@dataclass(kw_only=True, eq=False, repr=False)  # for its __init__; the rest is of BaseEstimator
class SOT(BayesianStrategy):
    """A climb by estimates, or Bayesian optimisation over expressions with the SOT kernel.

    By default it climbs, and only ``local_steps`` and ``initial_design`` have an effect. All others
    are for Bayesian optimisation: without local steps, or where a climb with ``tol=0`` has ended.

    Parameters
    ----------
    acquisition : {"ei", "ucb", "thompson"} or Acquisition, default="ei"
        What to maximise: the expected improvement, an upper confidence bound, or a draw from the
        posterior; or an object such as ``UpperConfidenceBound(kappa=3)``.
    population_size : int, default=100
        Number of expressions in a generation of the evolution, which maximises ``acquisition``.
    n_offspring : int, default=4
        Number of offspring of each survivor; ``population_size / (n_offspring + 1)`` survive.
    n_generations : int or "auto", default="auto"
        Number of generations; ``"auto"`` is 6 for one column and 10 for more.
    local_steps : bool or "auto", default="auto"
        Whether the search climbs: the scores of kernels one operation away from the best ones are
        estimated, those with the highest expected improvement are proposed, and the search ends
        when there is none. The last gain of a change says whether it is estimated for the next
        kernel; in the end all changes of the best kernel are. A Gaussian process over changes of
        kernels learns the errors of estimates. ``"auto"`` is True unless the estimator has
        ``structure_prior=None``.
    initial_design : {"default", "paper"}, default="default"
        ``"default"`` is what a person would try first, about five kernels, and for one or two
        columns every base kernel. ``"paper"`` is every base kernel on every column, and two random
        operations from each.

    Notes
    -----
    Without local steps: Bitzer, Meister and Zimmer (2022), *Structural kernel search via Bayesian
    optimization and symbolical optimal transport*, algorithms 1 and 2. The first generation holds
    random walks from the base kernels and neighbours of the best kernels so far.
    """

    _kernel_kernel: ClassVar[type[KernelKernel]] = SOTKernel
    """The kernel between expressions."""

    _parameter_constraints: ClassVar[dict[str, list[Any] | str]] = {
        **BayesianStrategy._parameter_constraints,
        "population_size": AT_LEAST_ONE,
        "n_offspring": AT_LEAST_ONE,
        "n_generations": [StrOptions({"auto"}), *AT_LEAST_ONE],
        "local_steps": [StrOptions({"auto"}), "boolean"],
    }

    acquisition: str | Acquisition = "ei"
    population_size: int = 100
    n_offspring: int = 4
    n_generations: int | str = "auto"
    local_steps: bool | str = "auto"
    initial_design: str = "default"

    def climbs(self, *, reduces: bool) -> bool:
        """Whether it takes local steps; the algorithm of the paper has none."""
        return reduces if self.local_steps == "auto" else bool(self.local_steps)

    def propose(
        self, task: Task, history: History, *, n_proposals: int, rng: np.random.Generator
    ) -> Sequence[Expression | Estimate]:
        """Choose the kernels of highest acquisition value, fewer where no more are left."""
        parents, n_generations = parents_of(task, history)[:N_PARENTS], self.n_generations
        if self.climbs(reduces=task.grammar.reduces):
            steps = Climb(task, history).steps()
            if steps or (task.tol and history.best_first()):
                return steps[:n_proposals]
        if isinstance(n_generations, str):
            n_generations = 6 if len(task.grammar.columns) == 1 else 10  # SOT, appendix D

        def maximise(values: Values, known: Sequence[Expression]) -> Expression | None:
            n_walks = self.population_size // 2  # the others are neighbours of the best kernels
            some = islice(cycle(parents), self.population_size - n_walks)
            neighbours = [task.grammar.random_neighbour(parent, rng) for parent in some]
            return evolve(
                values,
                task.grammar,
                [*task.grammar.random_walks(n_walks, rng), *neighbours],
                excluded=frozenset(expression.canonical for expression in known),
                n_survivors=max(1, self.population_size // (self.n_offspring + 1)),
                n_offspring=self.n_offspring,
                n_generations=n_generations,
                rng=rng,
            )

        kernel_kernel = task.cached(self._kernel_kernel, self._kernel_kernel)
        return self.propose_by_surrogate(
            task, history, kernel_kernel, maximise, n_proposals=n_proposals, rng=rng
        )
