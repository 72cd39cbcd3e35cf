"""Bayesian optimisation with symbolical optimal transport (SOT, algorithm 1)."""

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from autokernel.expression import Expression, Grammar
from autokernel.search.design import DESIGNS, Design, initial_design
from autokernel.search.evolution import evolve
from autokernel.search.history import History
from autokernel.search.strategy import Space, Strategy
from autokernel.surrogate.acquisition import expected_improvement
from autokernel.surrogate.gp import SurrogateGP
from autokernel.surrogate.sot import sot_distances
from autokernel.typing import FloatArray

_N_PARENTS = 10  # best kernels so far that put neighbours into the first generation


class SOT(Strategy):
    """Bayesian optimisation over expressions with the SOT kernel.

    Parameters
    ----------
    population_size : int, default=100
        Expressions in a generation of the evolution that maximises the acquisition function.
    n_offspring : int, default=4
        Offspring of each survivor; ``population_size / (n_offspring + 1)`` survive.
    n_generations : int or "auto", default="auto"
        Generations; ``"auto"`` is 6 for one column and 10 for more.
    initial_design : {"default", "paper"}, default="default"
        ``"paper"`` is every base kernel on every column and two random operations from each.
        ``"default"`` adds the kernels that a person would try first and holds at most 60 kernels.

    Notes
    -----
    Bitzer, Meister and Zimmer (2022), *Structural kernel search via Bayesian optimization and
    symbolical optimal transport*, algorithms 1 and 2. The first generation holds random walks from
    the base kernels and neighbours of the best kernels so far.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "population_size": [Interval(Integral, 1, None, closed="left")],
        "n_offspring": [Interval(Integral, 1, None, closed="left")],
        "n_generations": [StrOptions({"auto"}), Interval(Integral, 1, None, closed="left")],
        "initial_design": [StrOptions(set(DESIGNS))],
    }

    def __init__(
        self,
        *,
        population_size: int = 100,
        n_offspring: int = 4,
        n_generations: int | str = "auto",
        initial_design: str = "default",
    ) -> None:
        self.population_size = population_size
        self.n_offspring = n_offspring
        self.n_generations = n_generations
        self.initial_design = initial_design

    def design(self, space: Space, *, rng: np.random.Generator) -> Design:
        """Choose what is evaluated first, whatever the data are."""
        return initial_design(self.initial_design, space.grammar, space.base_kernels, rng=rng)

    def propose(
        self, space: Space, history: History, *, n_proposals: int, rng: np.random.Generator
    ) -> list[Expression]:
        """Choose the kernels of highest expected improvement, fewer where no more are left.

        Of several, each is chosen as if those before it had met the expectation of the surrogate
        (kriging believer): next to them little is left to gain, so that the next one is another
        idea.
        """
        known = [evaluation.expression for evaluation in history.evaluations]
        scores = _finite_scores(history)
        by_score = [known[place] for place in np.argsort(-scores, kind="stable")]
        best_first = [e for e in by_score if space.allows(e)] or list(space.grammar.leaves)
        n_features, best = space.n_features, float(scores.max())
        surrogate = SurrogateGP(sot_distances(known, n_features=n_features), scores)
        proposals: list[Expression] = []
        while True:
            improvement = _Improvement(surrogate, known, best, n_features)
            generation = self._first_generation(space.grammar, best_first, rng)
            proposal = self._maximise(improvement, space, generation, rng)
            if proposal is not None:
                proposals.append(proposal)
            if proposal is None or len(proposals) == n_proposals:
                return proposals
            known = [*known, proposal]
            distances = sot_distances(known, n_features=n_features)
            best = max(best, float(surrogate.predict(distances[:, -1:, :-1]).mean[0]))
            surrogate = surrogate.believing(distances)

    def _maximise(
        self,
        improvement: "_Improvement",
        space: Space,
        generation: Sequence[Expression],
        rng: np.random.Generator,
    ) -> Expression | None:
        """Search the unknown kernel of highest expected improvement, None where none is left."""
        excluded = frozenset(expression.canonical for expression in improvement.known)
        found = evolve(
            improvement,
            space.grammar,
            generation,
            excluded=excluded,
            n_survivors=max(1, self.population_size // (self.n_offspring + 1)),
            n_offspring=self.n_offspring,
            n_generations=self._resolve_generations(space.grammar),
            rng=rng,
        )
        inside = [expression for expression in improvement.known if space.allows(expression)]
        return found or _any_neighbour(space.grammar, inside, excluded)

    def _first_generation(
        self, grammar: Grammar, best_first: Sequence[Expression], rng: np.random.Generator
    ) -> list[Expression]:
        """Half walks from the base kernels, half neighbours of the best kernels so far."""
        bases = grammar.leaves
        parents = best_first[:_N_PARENTS]
        n_walks = self.population_size // 2
        walks = [
            grammar.random_walk(bases[place % len(bases)], int(steps), rng)
            for place, steps in enumerate(rng.geometric(1 / 3, size=n_walks))
        ]
        neighbours = [
            grammar.random_neighbour(parents[place % len(parents)], rng)
            for place in range(self.population_size - n_walks)
        ]
        return walks + neighbours

    def _resolve_generations(self, grammar: Grammar) -> int:
        """Turn ``"auto"`` into a number (SOT, appendix D)."""
        if isinstance(self.n_generations, Integral):
            return int(self.n_generations)
        return 6 if len(grammar.columns) == 1 else 10


@dataclass(frozen=True, slots=True, eq=False)  # eq=False: the surrogate holds arrays
class _Improvement:
    """Expected improvement of expressions over the best score."""

    surrogate: SurrogateGP
    known: Sequence[Expression]
    best: float
    n_features: int

    def __call__(self, expressions: Sequence[Expression]) -> FloatArray:
        """Compute it (n,) for n expressions."""
        distances = sot_distances(expressions, self.known, n_features=self.n_features)
        return expected_improvement(self.surrogate.predict(distances), best=self.best)


def _finite_scores(history: History) -> FloatArray:
    """Scores per sample; a kernel that could not be fitted counts as the worst that could."""
    scores = history.scores / history.n_samples
    finite = np.isfinite(scores)
    return np.where(finite, scores, scores[finite].min() if finite.any() else 0.0)


def _any_neighbour(
    grammar: Grammar, evaluated: Sequence[Expression], excluded: frozenset[str]
) -> Expression | None:
    """First expression next to an evaluated one, or base kernel, that is not excluded."""
    for base in grammar.leaves:
        if base.canonical not in excluded:
            return base
    for expression in evaluated:
        for neighbour in grammar.neighbours(expression):
            if neighbour.canonical not in excluded:
                return neighbour
    return None
