"""Maximise an acquisition function over expressions by evolution (SOT, algorithm 2)."""

from collections.abc import Iterable
from collections.abc import Set as AbstractSet

import numpy as np

from autokernel.expression import Expression, Grammar
from autokernel.search.acquisition import Values


def evolve(
    acquisition: Values,
    grammar: Grammar,
    population: Iterable[Expression],
    *,
    excluded: AbstractSet[str],
    n_survivors: int,
    n_offspring: int,
    n_generations: int,
    rng: np.random.Generator,
) -> Expression | None:
    """Search the expression with the highest acquisition value.

    Parameters
    ----------
    acquisition : callable
        Function that returns the values (n,) of n expressions.
    grammar : Grammar
        Grammar of the expressions. Offspring are one operation away from their parent.
    population : iterable of Expression
        The first generation.
    excluded : set of str
        Canonical texts of expressions that may be parents but not the result.
    n_survivors : int
        Number of expressions of a generation that have offspring.
    n_offspring : int
        Number of offspring of each survivor.
    n_generations : int
        Number of times that survivors are chosen.
    rng : numpy.random.Generator
        Source of the random operations.

    Returns
    -------
    Expression or None
        The best expression found, or None if all expressions found are excluded.
    """
    values: dict[str, float] = {}
    met: dict[str, Expression] = {}

    def judge(expressions: Iterable[Expression]) -> list[Expression]:
        """Compute the values of new expressions, one for each canonical text."""
        new = {e.canonical: e for e in expressions if e.canonical not in met}
        if new:
            met.update(new)
            values.update(zip(new, acquisition(list(new.values())).tolist(), strict=True))
        return list(new.values())

    generation = judge(population)
    for _ in range(n_generations):
        generation.sort(key=lambda e: (-values[e.canonical], e.canonical))
        survivors = generation[:n_survivors]
        offspring = [
            grammar.random_neighbour(parent, rng)
            for parent in survivors
            for _ in range(n_offspring)
        ]
        generation = survivors + judge(offspring)
    allowed = [e for e in met.values() if e.canonical not in excluded]
    return min(allowed, key=lambda e: (-values[e.canonical], e.canonical), default=None)
