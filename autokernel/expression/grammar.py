"""The grammar that spans the search space (SOT, section 2.3)."""

from dataclasses import dataclass, field
from functools import partial
from itertools import islice

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

    Attributes
    ----------
    leaves : tuple of Leaf
        Every base kernel on every column, column by column.
    """

    base_kernels: tuple[str, ...]
    operators: tuple[str, ...]
    columns: tuple[int, ...]
    max_leaves: int
    leaves: tuple[Leaf, ...] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        leaves = tuple(Leaf(name, column) for column in self.columns for name in self.base_kernels)
        object.__setattr__(self, "leaves", leaves)

    def n_operations(self, expression: Expression) -> int:
        """Count the operations that apply to an expression."""
        n_growing, n_exchanges = self._counts(expression)
        return n_growing + n_exchanges

    def apply(self, expression: Expression, index: int) -> Expression:
        """Apply the operation at ``index`` of all that apply, growing ones first.

        Raises
        ------
        IndexError
            If ``index`` is not in ``range(n_operations(expression))``.
        """
        n_growing, n_exchanges = self._counts(expression)
        if not 0 <= index < n_growing + n_exchanges:
            raise IndexError(
                f"index must be in [0, {n_growing + n_exchanges}) for {expression}, got {index}"
            )
        leaves = self.leaves
        subtrees = tuple(expression.subtrees())
        if index < n_growing:
            place, index = divmod(index, len(self.operators) * len(leaves))
            which, new = divmod(index, len(leaves))
            subtree = subtrees[place]
            return expression.replace(place, Operation(self.operators[which], subtree, leaves[new]))
        exchanges = (
            (place, other)
            for place, leaf in enumerate(subtrees)
            if leaf.n_leaves == 1
            for other in leaves
            if other != leaf
        )
        place, other = next(islice(exchanges, index - n_growing, None))
        return expression.replace(place, other)

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
        results = map(partial(self.apply, expression), range(self.n_operations(expression)))
        return tuple({result.canonical: result for result in results}.values())

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

    def spans(self, expression: Expression, base_kernels: tuple[str, ...]) -> bool:
        """Whether an expression keeps to columns, operators, size and the given base kernels."""
        operators = {e.operator for e in expression.subtrees() if isinstance(e, Operation)}
        return (
            expression.n_leaves <= self.max_leaves
            and operators <= set(self.operators)
            and all(
                leaf.kernel in base_kernels and leaf.column in self.columns
                for leaf in expression.leaves
            )
        )
