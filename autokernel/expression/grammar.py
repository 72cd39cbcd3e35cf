"""The grammar that spans the search space (SOT, section 2.3)."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import NamedTuple
from zlib import crc32

import numpy as np

from autokernel.expression.normal_form import reduced
from autokernel.expression.tree import Expression, Leaf, Operation
from autokernel.kernels import BaseKernel, Operator, default_name

_ATTEMPTS = 10  # attempts to grow a random tree, for each of its leaves


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

    An operator that does not commute can take the subtree as any of its operands, and one that acts
    on a column can act on any of ``columns``. Expressions have at most ``max_leaves`` leaves.

    With ``reduces``, :func:`reduced` is applied to the result of every operation, so that an
    operation may lead back to the same expression. There is also deletion, ``S op T -> S``, as a
    search that removes what is redundant should remove what is useless, too.

    Where columns differ, ``by_column`` has the base kernels of each, and ``base_kernels`` all of
    them. The ``leaves`` are every base kernel on every column, column by column.
    """

    base_kernels: tuple[BaseKernel, ...]
    operators: tuple[Operator, ...]
    columns: tuple[int, ...]
    max_leaves: int
    reduces: bool = field(default=False, kw_only=True)
    by_column: tuple[tuple[BaseKernel, ...], ...] | None = field(default=None, kw_only=True)
    leaves: tuple[Leaf, ...] = field(init=False, compare=False, repr=False)
    _joints_by_room: tuple[tuple[_Joint, ...], ...] = field(init=False, compare=False, repr=False)
    _leaf_numbers: dict[str, int] = field(init=False, compare=False, repr=False)  # index by text

    def __post_init__(self) -> None:
        put = object.__setattr__
        by_column = self.by_column or (self.base_kernels,) * len(self.columns)
        leaves = tuple(
            Leaf(kernel, column)
            for column, kernels in zip(self.columns, by_column, strict=True)
            for kernel in kernels
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
        """Return the operations that join a new leaf without exceeding the number of leaves."""
        room = self.max_leaves - expression.n_leaves
        return self._joints_by_room[max(0, min(room, len(self._joints_by_room) - 1))]

    def n_operations(self, expression: Expression) -> int:
        """Count the operations that apply to an expression."""
        return sum(self._counts(expression))

    def tidy(self, expression: Expression) -> Expression:
        """Remove what is redundant if the grammar reduces; otherwise return the expression."""
        return reduced(expression) if self.reduces else expression

    def apply(self, expression: Expression, index: int) -> Expression:
        """Apply the operation at ``index`` among all that apply.

        Growing ones come first, then exchanges of a leaf, then deletions.

        Raises
        ------
        IndexError
            If ``index`` is not in ``range(n_operations(expression))``.
        """
        growing, exchanges, deletions = self._counts(expression)
        total = growing + exchanges + deletions
        if not 0 <= index < total:
            raise IndexError(f"index must be in [0, {total}) for {expression}, got {index}")
        if index < growing:
            return self.tidy(self._grow(expression, index))
        index -= growing
        if index < exchanges:
            return self.tidy(self._exchange(expression, index))
        return self.tidy(_delete(expression, index - exchanges))

    def _grow(self, expression: Expression, index: int) -> Expression:
        leaves, joints = self.leaves, self._joints(expression)
        subtree, index = divmod(index, len(joints) * len(leaves))
        joint, new = divmod(index, len(leaves))
        grown = joints[joint](expression.subtree(subtree), leaves[new])
        return expression.replace(subtree, grown)

    def _exchange(self, expression: Expression, index: int) -> Expression:
        leaves = self.leaves
        for place, tree in enumerate(expression.subtrees()):
            if isinstance(tree, Leaf):
                n_others = self._n_others(tree)
                if index < n_others:
                    own = self._leaf_numbers.get(tree.canonical, len(leaves))
                    return expression.replace(place, leaves[index + (index >= own)])
                index -= n_others
        raise IndexError(f"index must be that of an exchange in {expression}")

    def random_neighbour(self, expression: Expression, rng: np.random.Generator) -> Expression:
        """Apply one operation, drawn uniformly from all that apply.

        An expression that results from two operations is twice as likely. If no operation applies,
        the expression is returned unchanged.
        """
        total = self.n_operations(expression)
        return self.apply(expression, int(rng.integers(total))) if total else expression

    def neighbours(self, expression: Expression) -> tuple[Expression, ...]:
        """List all expressions one operation away, one tree per canonical text, in fixed order."""
        found: dict[str, Expression] = {}
        for result in self.changes(expression):
            found.setdefault(result.canonical, result)
        found.pop(expression.canonical, None)  # a reduction may undo what an operation did
        return tuple(found.values())

    def changes(self, expression: Expression, n_max: int | None = None) -> Iterator[Expression]:
        """Yield the result of every operation, also where several lead to the same kernel.

        If there are more than ``n_max``, they are all deletions and a choice of the others, which
        is the same for all trees of one kernel.
        """
        *growing_and_exchanges, n_deletions = self._counts(expression)
        n_others = sum(growing_and_exchanges)
        others = np.arange(n_others)
        if n_max is not None and n_others + n_deletions > n_max:
            rng = np.random.default_rng(crc32(expression.canonical.encode()))
            n_kept = max(1, n_max - n_deletions)
            others = np.sort(rng.choice(n_others, min(n_kept, n_others), replace=False))
        for index in (*others.tolist(), *range(n_others, n_others + n_deletions)):
            yield self.apply(expression, index)

    def random_walk(self, start: Expression, n_steps: int, rng: np.random.Generator) -> Expression:
        """Apply ``n_steps`` random operations."""
        for _ in range(n_steps):
            start = self.random_neighbour(start, rng)
        return start

    def random_tree(self, n_leaves: int, rng: np.random.Generator) -> Expression:
        """Grow a random leaf at random subtrees until the tree has ``n_leaves`` leaves.

        A number larger than ``max_leaves`` counts as ``max_leaves``. If the grammar reduces, there
        may be fewer leaves, as some kernels cannot grow: the number of attempts is bounded.
        """
        tree: Expression = self.leaves[int(rng.integers(len(self.leaves)))]
        n_leaves = min(n_leaves, self.max_leaves)
        for _ in range(_ATTEMPTS * n_leaves):
            if tree.n_leaves >= n_leaves or not self._joints(tree):
                break
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

    def _counts(self, expression: Expression) -> tuple[int, int, int]:
        """Count growing operations, exchanges and deletions, in the order of their indices."""
        n_joins = len(self._joints(expression)) * len(self.leaves)
        n_exchanges = sum(map(self._n_others, expression.leaves))
        n_deletions = expression.n_subtrees - 1 if self.reduces else 0  # all but the root
        return expression.n_subtrees * n_joins, n_exchanges, n_deletions

    def _n_others(self, leaf: Leaf) -> int:
        """Count the leaves that may replace this one, which another grammar may have made."""
        return len(self.leaves) - (leaf.canonical in self._leaf_numbers)

    def spans(self, expression: Expression) -> bool:
        """Return whether all parts of an expression are allowed."""
        allowed = {*self.base_kernels, *self.operators}
        return expression.n_leaves <= self.max_leaves and all(
            e.canonical in self._leaf_numbers
            if isinstance(e, Leaf) and self.by_column is not None
            else e.declared in allowed and (e.column is None or e.column in self.columns)
            for e in expression.subtrees()
        )

    def like(self, kernel: BaseKernel, column: int) -> tuple[Leaf, ...]:
        """Return the leaves on a column that stand for a base kernel.

        Where columns differ, these are all those of its kind that the column allows, or the first
        leaf of the column if there is none.
        """
        if self.by_column is None:
            return (Leaf(kernel, column),)
        own = [leaf for leaf in self.leaves if leaf.column == column]
        same = [leaf for leaf in own if default_name(leaf.kernel) == default_name(kernel)]
        return tuple(same or own[:1])


def _delete(expression: Expression, index: int) -> Expression:
    """Let an operand take the place of its operation, at an index among all operands."""
    places = (
        (place, operand)
        for place, tree in enumerate(expression.subtrees())
        for operand in tree.operands
    )
    place, operand = next(islice(places, index, None))
    return expression.replace(place, operand)
