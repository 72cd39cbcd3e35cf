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
    """An operation that joins a subtree with a new leaf."""

    operator: Operator
    column: int | None  # column of the operator, None if it acts on none
    operand: int  # index of the operand that the subtree becomes; all others are the leaf

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
        Operators. One that does not commute can take the subtree as any of its operands, and one
        that acts on a column can act on any of ``columns``.
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
    _joints_by_room: tuple[tuple[_Joint, ...], ...] = field(init=False, compare=False, repr=False)
    _leaf_numbers: dict[str, int] = field(init=False, compare=False, repr=False)  # index by text

    def __post_init__(self) -> None:
        put = object.__setattr__
        leaves = tuple(
            Leaf(kernel, column) for column in self.columns for kernel in self.base_kernels
        )
        put(self, "leaves", leaves)
        put(self, "_leaf_numbers", {leaf.canonical: number for number, leaf in enumerate(leaves)})
        joints = [
            _Joint(operator, column, operand)
            for operator in self.operators
            for column in (self.columns if operator.acts_on_column else (None,))
            for operand in range(1 if operator.commutes else operator.n_operands)
        ]
        widest = max((operator.n_operands for operator in self.operators), default=2)
        by_room = (
            tuple(joint for joint in joints if joint.operator.n_operands - 1 <= room)
            for room in range(widest)
        )
        put(self, "_joints_by_room", tuple(by_room))

    def _joints(self, expression: Expression) -> tuple[_Joint, ...]:
        """Return the ways to join a new leaf that the largest number of leaves leaves room for."""
        room = self.max_leaves - expression.n_leaves
        return self._joints_by_room[max(0, min(room, len(self._joints_by_room) - 1))]

    def n_operations(self, expression: Expression) -> int:
        """Count the operations that apply to an expression."""
        n_growing, n_exchanges = self._counts(expression)
        return n_growing + n_exchanges

    def apply(self, expression: Expression, index: int) -> Expression:
        """Apply the operation at ``index`` among all that apply, growing ones first.

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
        """Apply an operation whose index has been checked."""
        leaves = self.leaves
        if index < n_growing:
            joints = self._joints(expression)
            subtree, index = divmod(index, len(joints) * len(leaves))
            joint, new = divmod(index, len(leaves))
            grown = joints[joint](expression.subtree(subtree), leaves[new])
            return expression.replace(subtree, grown)
        leaf, index = 0, index - n_growing
        while index >= (n_others := self._n_others(expression.leaves[leaf])):
            leaf, index = leaf + 1, index - n_others
        own = self._leaf_numbers.get(expression.leaves[leaf].canonical, len(leaves))
        return expression.replace(expression.leaf_index(leaf), leaves[index + (index >= own)])

    def random_neighbour(self, expression: Expression, rng: np.random.Generator) -> Expression:
        """Apply one operation, drawn uniformly from all that apply.

        An expression that results from two operations is twice as likely. If no operation applies,
        the expression is returned unchanged.
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
        """Grow a random leaf at random subtrees until the tree has ``n_leaves`` leaves.

        A number larger than ``max_leaves`` counts as ``max_leaves``.
        """
        tree: Expression = self.leaves[int(rng.integers(len(self.leaves)))]
        while tree.n_leaves < min(n_leaves, self.max_leaves) and self._joints(tree):
            tree = self.apply(tree, int(rng.integers(self._counts(tree)[0])))
        return tree

    def random_walks(self, n: int, rng: np.random.Generator) -> list[Expression]:
        """Make ``n`` random walks that start from the leaves of the grammar in turn.

        If there are more leaves than ``n``, a random choice of them is used. The numbers of steps
        are geometric, with mean three.
        """
        bases = self.leaves
        if len(bases) > n:
            bases = tuple(bases[number] for number in rng.choice(len(bases), n, replace=False))
        return [
            self.random_walk(bases[number % len(bases)], int(n_steps), rng)
            for number, n_steps in enumerate(rng.geometric(1 / 3, size=n))
        ]

    def _counts(self, expression: Expression) -> tuple[int, int]:
        """Count the operations that grow an expression and those that exchange a leaf."""
        n_joins = len(self._joints(expression)) * len(self.leaves)
        n_growing = expression.n_subtrees * n_joins
        return n_growing, sum(map(self._n_others, expression.leaves))

    def _n_others(self, leaf: Leaf) -> int:
        """Count the leaves that may replace this one, which another grammar may have made."""
        return len(self.leaves) - (leaf.canonical in self._leaf_numbers)

    def spans(self, expression: Expression, base_kernels: Collection[BaseKernel]) -> bool:
        """Return whether all parts of an expression are allowed, with these base kernels."""
        allowed = {*base_kernels, *self.operators}
        return expression.n_leaves <= self.max_leaves and all(
            e.declared in allowed and (e.column is None or e.column in self.columns)
            for e in expression.subtrees()
        )
