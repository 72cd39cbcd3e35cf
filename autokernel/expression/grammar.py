"""The grammar that spans the search space (SOT, section 2.3)."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from autokernel.expression.tree import Expression, Leaf, Operation


@dataclass(frozen=True, slots=True)
class Grammar:
    """Expressions reachable from base kernels by ``S -> S op B`` and ``B -> B'``.

    Parameters
    ----------
    base_kernels : tuple of str
        Names of base kernels.
    operators : tuple of str
        Out of ``+`` and ``*``.
    columns : tuple of int
        Columns that base kernels may act on.
    max_leaves : int
        Largest number of leaves of an expression.
    """

    base_kernels: tuple[str, ...]
    operators: tuple[str, ...]
    columns: tuple[int, ...]
    max_leaves: int

    @property
    def leaves(self) -> tuple[Leaf, ...]:
        """Every base kernel on every column, column by column."""
        return tuple(Leaf(name, column) for column in self.columns for name in self.base_kernels)

    def n_operations(self, expression: Expression) -> int:
        """Count the operations that apply to an expression."""
        n_growing, n_exchanges = self._counts(expression)
        return n_growing + n_exchanges

    def apply(self, expression: Expression, index: int) -> Expression:
        """Apply the operation at ``index`` of all that apply, growing ones first."""
        n_growing, _ = self._counts(expression)
        leaves = self.leaves
        subtrees = tuple(expression.subtrees())
        if index < n_growing:
            place, index = divmod(index, len(self.operators) * len(leaves))
            which, new = divmod(index, len(leaves))
            subtree = subtrees[place]
            return expression.replace(place, Operation(self.operators[which], subtree, leaves[new]))
        index -= n_growing
        for place, leaf in enumerate(subtrees):
            if leaf.n_leaves > 1:
                continue
            others = [other for other in leaves if other != leaf]
            if index < len(others):
                return expression.replace(place, others[index])
            index -= len(others)
        raise IndexError("index must be below n_operations(expression)")

    def random_neighbour(self, expression: Expression, rng: np.random.Generator) -> Expression:
        """Apply one operation, drawn uniformly from all that apply.

        An expression that two operations lead to is twice as likely. If none applies, the
        expression comes back unchanged.
        """
        n_operations = self.n_operations(expression)
        if n_operations == 0:
            return expression
        return self.apply(expression, int(rng.integers(n_operations)))

    def neighbours(self, expression: Expression) -> tuple[Expression, ...]:
        """List all expressions one operation away, one tree per canonical text, in fixed order."""
        distinct = {e.canonical: e for e in self._all_results(expression)}
        distinct.pop(expression.canonical, None)
        return tuple(distinct.values())

    def random_walk(self, start: Expression, n_steps: int, rng: np.random.Generator) -> Expression:
        """Apply ``n_steps`` random operations."""
        for _ in range(n_steps):
            start = self.random_neighbour(start, rng)
        return start

    def _counts(self, expression: Expression) -> tuple[int, int]:
        """Count the growing and the exchanging operations."""
        n_bases = len(self.base_kernels) * len(self.columns)
        n_subtrees = 2 * expression.n_leaves - 1
        may_grow = expression.n_leaves < self.max_leaves
        n_growing = n_subtrees * len(self.operators) * n_bases if may_grow else 0
        n_exchanges = sum(n_bases - self._holds(leaf) for leaf in expression.leaves)
        return n_growing, n_exchanges

    def _holds(self, leaf: Leaf) -> bool:
        """Whether a leaf is one of this grammar's own."""
        return leaf.kernel in self.base_kernels and leaf.column in self.columns

    def _all_results(self, expression: Expression) -> Iterator[Expression]:
        """Yield the result of every operation."""
        for index in range(self.n_operations(expression)):
            yield self.apply(expression, index)
