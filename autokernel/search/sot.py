"""Bayesian optimisation with symbolical optimal transport (SOT, algorithm 1)."""

from collections.abc import Sequence
from numbers import Integral

import numpy as np

from autokernel.expression import Expression, Grammar
from autokernel.search.design import (
    DESIGNS,
    MAX_DESIGN,
    classic_kernels,
    grown_kernels,
    relevant_columns,
)
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

    def check_parameters(self) -> None:
        """Raise a ``ValueError`` that names the first parameter that is not valid."""
        for name in ("population_size", "n_offspring"):
            _check_positive(name, getattr(self, name))
        if self.n_generations != "auto":
            _check_positive("n_generations", self.n_generations)
        if self.initial_design not in DESIGNS:
            raise ValueError(
                f"initial_design must be one of {list(DESIGNS)}, got {self.initial_design!r}"
            )

    def fixed_design(self, space: Space) -> list[Expression]:
        """Kernels to evaluate first, whatever the data are."""
        if self.initial_design == "paper":
            return []
        return classic_kernels(space.grammar, space.base_kernels)

    def random_design(
        self, space: Space, history: History, *, rng: np.random.Generator
    ) -> list[Expression]:
        """Kernels to evaluate next; those already in the history are skipped."""
        if self.initial_design == "paper":
            return grown_kernels(space.grammar, space.grammar.columns, rng=rng)
        columns = relevant_columns(space.grammar, history.evaluations)
        seen = history.canonical_texts()
        design = grown_kernels(space.grammar, columns, rng=rng)
        return [e for e in design if e.canonical not in seen][: MAX_DESIGN - len(history)]

    def propose(
        self, space: Space, history: History, *, rng: np.random.Generator
    ) -> Expression | None:
        """Choose the kernel of highest expected improvement, None where none is left."""
        evaluated = [evaluation.expression for evaluation in history.evaluations]
        scores = _finite_scores(history)
        n_features = space.n_features
        surrogate = SurrogateGP(sot_distances(evaluated, n_features=n_features), scores)

        def acquisition(expressions: Sequence[Expression]) -> FloatArray:
            distances = sot_distances(expressions, evaluated, n_features=n_features)
            return expected_improvement(surrogate.predict(distances), best=scores.max())

        order = np.argsort(-scores, kind="stable")
        excluded = history.canonical_texts()
        found = evolve(
            acquisition,
            space.grammar,
            self._first_generation(space.grammar, [evaluated[i] for i in order], rng),
            excluded=excluded,
            n_survivors=max(1, self.population_size // (self.n_offspring + 1)),
            n_offspring=self.n_offspring,
            n_generations=self._resolve_generations(space.grammar),
            rng=rng,
        )
        return found or _any_neighbour(space.grammar, evaluated, excluded)

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


def _check_positive(name: str, value: object) -> None:
    """Check that a parameter is a positive integer."""
    if not isinstance(value, Integral) or isinstance(value, bool) or value < 1:
        raise ValueError(f"{name} must be a positive integer, got {value!r}")
