"""Genetic search over expression trees."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval

from autokernel.expression import Expression
from autokernel.search.history import History, Phase
from autokernel.search.strategy import AT_LEAST_ONE, CHOICE_OF_DESIGN, Strategy, Task, draw_unknown


@dataclass(kw_only=True, eq=False, repr=False)  # for its __init__; the rest is of BaseEstimator
class TreeGEP(Strategy):
    """Genetic search: tournaments, crossover of subtrees, mutation.

    Parameters
    ----------
    population_size : int, default=200
        Number of kernels in a generation. The first generation is the initial design. Every other
        one consists of the best kernels of the generation before and of offspring.
    reproduction : float, default=0.1
        Fraction of a generation that is taken over unchanged from the one before, the best first.
    mutation : float, default=0.5
        Probability that an offspring is a mutant: a random subtree of its parent is replaced by a
        random tree of up to four leaves. Otherwise a random subtree of one parent is replaced by a
        random subtree of another.
    tournament : float, default=0.1
        Fraction of the generation drawn for a tournament, rounded up. The best of them is a parent.
    max_depth : int, default=10
        Largest number of operators from the root to a leaf.
    initial_design : {"default", "paper"}, default="default"
        Initial design, as for :class:`SOT`.

    Notes
    -----
    Jin (2020), *Compositional kernel learning using tree-based genetic programming for Gaussian
    process regression*. The settings are those of SOT, appendix D, except that the random subtrees
    of mutants have one to four leaves. No kernel is evaluated twice. A generation takes 180
    evaluations by default; with fewer iterations, all kernels are offspring of the initial design.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any] | str]] = {
        **CHOICE_OF_DESIGN,
        "population_size": [Interval(Integral, 2, None, closed="left")],
        "reproduction": [Interval(Real, 0, 1, closed="left")],
        "mutation": [Interval(Real, 0, 1, closed="both")],
        "tournament": [Interval(Real, 0, 1, closed="right")],
        "max_depth": AT_LEAST_ONE,
    }

    population_size: int = 200
    reproduction: float = 0.1
    mutation: float = 0.5
    tournament: float = 0.1
    max_depth: int = 10
    initial_design: str = "default"

    def propose(
        self, task: Task, history: History, *, n_proposals: int, rng: np.random.Generator
    ) -> list[Expression]:
        """Make offspring of the last complete generation, fewer where no more are left."""
        parents = [e for e in self._generation(history) if task.grammar.spans(e)]
        parents = parents or list(task.grammar.bases)
        breed = partial(self._child, task, parents, rng)
        return draw_unknown(breed, task, history, n_proposals=n_proposals, max_depth=self.max_depth)

    def _generation(self, history: History) -> list[Expression]:
        """Return the last complete generation, the best first."""
        n_kept = min(round(self.reproduction * self.population_size), self.population_size - 1)
        n_new = self.population_size - n_kept
        generation = [t.evaluation for t in history if t.phase == Phase.INITIAL]
        searched = [t.evaluation for t in history if t.phase == Phase.SEARCH]
        for start in range(0, len(searched) - n_new + 1, n_new):
            generation.sort(key=lambda evaluation: -evaluation.score)
            generation = [*generation[:n_kept], *searched[start : start + n_new]]
        generation.sort(key=lambda evaluation: -evaluation.score)
        return [evaluation.expression for evaluation in generation]

    def _child(
        self, task: Task, parents: Sequence[Expression], rng: np.random.Generator
    ) -> Expression:
        """Mutate the winner of a tournament, or cross those of two; a tenth change the target."""
        mother, targets = self._winner(parents, rng), task.grammar.targets
        target = mother.target
        if len(targets) > 1 and rng.uniform() < 0.1:
            target = targets[int(rng.integers(len(targets)))]
        if rng.uniform() < self.mutation:
            planted = task.grammar.random_tree(int(rng.integers(1, 5)), rng).tree
        else:
            father = self._winner(parents, rng)
            planted = father.subtree(int(rng.integers(father.n_subtrees)))
        child = mother.replace(int(rng.integers(mother.n_subtrees)), planted)
        return task.grammar.tidy(child.on(target))

    def _winner(self, parents: Sequence[Expression], rng: np.random.Generator) -> Expression:
        """Return the winner of a tournament among ``parents``, which are sorted, the best first."""
        n_drawn = math.ceil(self.tournament * len(parents))
        return parents[int(rng.choice(len(parents), size=n_drawn, replace=False).min())]
