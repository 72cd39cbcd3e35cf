"""The grammar that spans the search space (SOT, section 2.3)."""

from collections.abc import Collection
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

import numpy as np

from autokernel.expression.tree import Expression, Leaf, Operation
from autokernel.kernels import BaseKernel
from autokernel.operators import Operator


class _Joint(NamedTuple):
    """A way to join a subtree with a new leaf."""

    operator: Operator
    column: int | None  # of the operator
    operand: int  # number of the operand that the subtree becomes; all others are the leaf

    def __call__(self, subtree: Expression, leaf: Leaf) -> Operation:
        operands: list[Expression] = [leaf] * self.operator.n_operands
        operands[self.operand] = subtree
        return Operation(self.operator, *operands, column=self.column)


@dataclass(frozen=True, slots=True)
class Grammar:
    """Expressions reachable from base kernels by ``S -> S op B`` and ``B -> B'``.

    Parameters
    ----------
    base_kernels : tuple of BaseKernel
        Base kernels.
    operators : tuple of Operator
        Operators. One that does not commute joins a subtree in each place, one that acts on a
        column joins it on each of them.
    columns : tuple of int
        Columns that base kernels and operators may act on.
    max_leaves : int
        Largest number of leaves of an expression.

    Attributes
    ----------
    leaves : tuple of Leaf
        Every base kernel on every column, column by column.
    """

    base_kernels: tuple[BaseKernel, ...]
    operators: tuple[Operator, ...]
    columns: tuple[int, ...]
    max_leaves: int
    leaves: tuple[Leaf, ...] = field(init=False, compare=False, repr=False)
    _joints: tuple[_Joint, ...] = field(init=False, compare=False, repr=False)
    _leaf_numbers: dict[str, int] = field(init=False, compare=False, repr=False)  # by text

    def __post_init__(self) -> None:
        put = object.__setattr__
        leaves = tuple(
            Leaf(kernel, column) for column in self.columns for kernel in self.base_kernels
        )
        put(self, "leaves", leaves)
        put(self, "_leaf_numbers", {leaf.canonical: number for number, leaf in enumerate(leaves)})
        joints = (
            _Joint(operator, column, operand)
            for operator in self.operators
            for column in (self.columns if operator.acts_on_column else (None,))
            for operand in range(1 if operator.commutes else operator.n_operands)
        )
        put(self, "_joints", tuple(joints))

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
        return self._apply(expression, index, n_growing)

    def _apply(self, expression: Expression, index: int, n_growing: int) -> Expression:
        """Apply an operation that is there."""
        leaves = self.leaves
        if index < n_growing:
            subtree, index = divmod(index, len(self._joints) * len(leaves))
            joint, new = divmod(index, len(leaves))
            grown = self._joints[joint](expression.subtree(subtree), leaves[new])
            return expression.replace(subtree, grown)
        leaf, index = 0, index - n_growing
        while index >= (n_others := self._n_others(expression.leaves[leaf])):
            leaf, index = leaf + 1, index - n_others
        own = self._leaf_numbers.get(expression.leaves[leaf].canonical, len(leaves))
        return expression.replace(expression.leaf_index(leaf), leaves[index + (index >= own)])

    def random_neighbour(self, expression: Expression, rng: np.random.Generator) -> Expression:
        """Apply one operation, drawn uniformly from all that apply.

        An expression that two operations lead to is twice as likely. If none applies, the
        expression comes back unchanged.
        """
        n_growing, n_exchanges = self._counts(expression)
        if n_growing + n_exchanges == 0:
            return expression
        index = int(rng.integers(n_growing + n_exchanges))
        return self._apply(expression, index, n_growing)

    def neighbours(self, expression: Expression) -> tuple[Expression, ...]:
        """List all expressions one operation away, one tree per canonical text, in fixed order."""
        results = map(partial(self.apply, expression), range(self.n_operations(expression)))
        return tuple({result.canonical: result for result in results}.values())

    def random_walk(self, start: Expression, n_steps: int, rng: np.random.Generator) -> Expression:
        """Apply ``n_steps`` random operations."""
        for _ in range(n_steps):
            start = self.random_neighbour(start, rng)
        return start

    def random_tree(self, n_leaves: int, rng: np.random.Generator) -> Expression:
        """Grow a random base kernel at random places, up to ``n_leaves`` or as far as allowed."""
        tree: Expression = self.leaves[int(rng.integers(len(self.leaves)))]
        while tree.n_leaves < min(n_leaves, self.max_leaves):
            tree = self.apply(tree, int(rng.integers(self._counts(tree)[0])))
        return tree

    def random_walks(self, n: int, rng: np.random.Generator) -> list[Expression]:
        """Walk from the base kernels in turn, from some of them where they are more than ``n``.

        The lengths are geometric, three on average.
        """
        bases = self.leaves
        if len(bases) > n:
            bases = tuple(bases[number] for number in rng.choice(len(bases), n, replace=False))
        return [
            self.random_walk(bases[number % len(bases)], int(n_steps), rng)
            for number, n_steps in enumerate(rng.geometric(1 / 3, size=n))
        ]

    def _counts(self, expression: Expression) -> tuple[int, int]:
        """Count the growing and the exchanging operations."""
        may_grow = expression.n_leaves < self.max_leaves
        n_ways = len(self._joints) * len(self.leaves)
        n_growing = expression.n_subtrees * n_ways if may_grow else 0
        return n_growing, sum(map(self._n_others, expression.leaves))

    def _n_others(self, leaf: Leaf) -> int:
        """Count the leaves that may take the place of this one, which may be another grammar's."""
        return len(self.leaves) - (leaf.canonical in self._leaf_numbers)

    def spans(self, expression: Expression, base_kernels: Collection[BaseKernel]) -> bool:
        """Whether an expression keeps to columns, operators, size and the given base kernels."""
        operations = [e for e in expression.subtrees() if isinstance(e, Operation)]
        return (
            expression.n_leaves <= self.max_leaves
            and all(operation.operator in self.operators for operation in operations)
            and all(e.column is None or e.column in self.columns for e in operations)
            and all(
                leaf.kernel in base_kernels and leaf.column in self.columns
                for leaf in expression.leaves
            )
        )
