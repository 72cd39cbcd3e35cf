"""Genetic search over expression trees."""

import math
from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval

from autokernel.expression import Expression
from autokernel.search.history import History, Phase
from autokernel.search.strategies.base import DesignedStrategy, Task, draw_unknown

_MUTANT_LEAVES = 4  # most leaves of a subtree that mutation plants


class TreeGEP(DesignedStrategy):
    """Genetic search: tournaments, crossover of subtrees, mutation.

    Parameters
    ----------
    population_size : int, default=200
        Kernels in a generation. The first one is the initial design, the others are offspring of
        the generation before, and the best of it.
    reproduction : float, default=0.1
        Part of a generation that is taken over unchanged, the best kernels of the one before.
    mutation : float, default=0.5
        Probability that an offspring is a mutant, whose random subtree is replaced by a random one
        of up to four leaves; otherwise two parents cross over a random subtree each.
    tournament : float, default=0.1
        Part of the generation that is drawn for a tournament, whose best is a parent; rounded up.
    max_depth : int, default=10
        Largest number of operators from the root to a leaf.
    initial_design : {"default", "paper"}, default="default"
        As for :class:`SOT`.

    Notes
    -----
    Jin (2020), *Compositional kernel learning using tree-based genetic programming for Gaussian
    process regression*, with the settings of SOT, appendix D, but for the subtrees of mutants: they
    have one to four leaves. Kernels that have been evaluated are not evaluated again. With fewer
    iterations than a generation takes, 180 by default, all kernels are offspring of the initial
    design.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **DesignedStrategy._parameter_constraints,
        "population_size": [Interval(Integral, 2, None, closed="left")],
        "reproduction": [Interval(Real, 0, 1, closed="left")],
        "mutation": [Interval(Real, 0, 1, closed="both")],
        "tournament": [Interval(Real, 0, 1, closed="right")],
        "max_depth": [Interval(Integral, 1, None, closed="left")],
    }

    def __init__(
        self,
        *,
        population_size: int = 200,
        reproduction: float = 0.1,
        mutation: float = 0.5,
        tournament: float = 0.1,
        max_depth: int = 10,
        initial_design: str = "default",
    ) -> None:
        self.population_size = population_size
        self.reproduction = reproduction
        self.mutation = mutation
        self.tournament = tournament
        self.max_depth = max_depth
        self.initial_design = initial_design

    def propose(
        self, task: Task, history: History, *, n_proposals: int, rng: np.random.Generator
    ) -> list[Expression]:
        """Breed from the last whole generation, fewer kernels where no more are left."""
        parents = [e for e in self._generation(history) if task.allows(e)]
        parents = parents or list(task.grammar.leaves)

        def breed() -> Expression:
            return self._child(task, parents, rng)

        return draw_unknown(breed, task, history, n_proposals=n_proposals, max_depth=self.max_depth)

    def _generation(self, history: History) -> list[Expression]:
        """Return the last whole generation, the best first."""
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
        """Mutate one winner of a tournament, or cross two."""
        mother = self._winner(parents, rng)
        if rng.uniform() < self.mutation:
            planted = task.grammar.random_tree(int(rng.integers(1, _MUTANT_LEAVES + 1)), rng)
        else:
            planted = _random_subtree(self._winner(parents, rng), rng)
        return mother.replace(int(rng.integers(mother.n_subtrees)), planted)

    def _winner(self, parents: Sequence[Expression], rng: np.random.Generator) -> Expression:
        """Return the best of some that are drawn; they are sorted, the best first."""
        n_drawn = math.ceil(self.tournament * len(parents))
        return parents[int(rng.choice(len(parents), size=n_drawn, replace=False).min())]


def _random_subtree(expression: Expression, rng: np.random.Generator) -> Expression:
    """Draw one of all subtrees."""
    subtrees = list(expression.subtrees())
    return subtrees[int(rng.integers(len(subtrees)))]
