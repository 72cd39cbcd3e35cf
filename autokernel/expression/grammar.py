"""The grammar that spans the search space (SOT, section 2.3)."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import product
from math import prod
from typing import Any
from zlib import crc32

import numpy as np

from autokernel.expression.normal_form import reduced
from autokernel.expression.parts import with_leaves
from autokernel.expression.tree import IDENTITY, Expression, Leaf, Operation, Tree, View
from autokernel.kernels import BaseKernel, Operator, definition

_Joint = tuple[Operator, int | None, int]
"""An operator, its column, and the operand that a subtree becomes; all others are a new leaf."""

_Change = tuple[Any, ...]
"""A function that returns the result of an operation on one expression, and its arguments."""


@dataclass(frozen=True)
class Grammar:
    """Expressions reachable from base kernels by ``S -> S op B`` and ``B -> B'``.

    An operator that does not commute can take the subtree as any of its operands, and one that acts
    on a column can act on any of ``columns`` but those of ``unchanging``, which have categories or
    missing values. Expressions have at most ``max_leaves`` leaves.

    With ``reduces``, :func:`reduced` is applied to the result of every operation, so that an
    operation may lead back to the same expression. There is also deletion, ``S op T -> S``, as a
    search that removes what is redundant should remove what is useless, too.

    Where columns differ, ``by_column`` has the base kernels of each, and ``base_kernels`` all of
    them. ``scales`` are the scales of each column, and ``targets`` those of the target, the first
    of which is that of new kernels. Leaves with a period are on the column as it is.

    A new leaf takes a scale that the expression has for its column, if it has any. Further
    operations exchange the scale of a column in all leaves, and the scale of the target.
    """

    base_kernels: tuple[BaseKernel, ...]
    operators: tuple[Operator, ...]
    columns: tuple[int, ...]
    max_leaves: int
    reduces: bool = field(default=False, kw_only=True)
    by_column: tuple[tuple[BaseKernel, ...], ...] | None = field(default=None, kw_only=True)
    scales: tuple[tuple[str, ...], ...] | None = field(default=None, kw_only=True)
    targets: tuple[str, ...] = field(default=(IDENTITY,), kw_only=True)
    unchanging: frozenset[int] = field(default=frozenset(), kw_only=True)
    _new_leaves: dict[frozenset[View], dict[str, Leaf]] = field(  # see _leaves_for
        default_factory=dict, init=False, repr=False, compare=False
    )

    @cached_property
    def leaves(self) -> tuple[Leaf, ...]:
        """Every base kernel on every column and scale, column by column."""
        by_column = self.by_column or (self.base_kernels,) * len(self.columns)
        distinct = dict.fromkeys(
            self._on_scale(Leaf(kernel, column), scale)
            for column, kernels in zip(self.columns, by_column, strict=True)
            for scale in self._scales_of[column]
            for kernel in kernels
        )
        return tuple(distinct)

    @cached_property
    def _scales_of(self) -> dict[int, tuple[str, ...]]:
        scales = self.scales or ((IDENTITY,),) * len(self.columns)
        return dict(zip(self.columns, scales, strict=True))

    @cached_property
    def _leaf_texts(self) -> frozenset[str]:
        return frozenset(leaf.canonical for leaf in self.leaves)

    @cached_property
    def _every_joint(self) -> list[_Joint]:
        on_columns = [column for column in self.columns if column not in self.unchanging]
        return [
            (operator, column, place)
            for operator in self.operators
            for column in (on_columns if operator.acts_on_column else (None,))
            for place in range(1 if operator.commutes else operator.n_operands)
        ]

    @property
    def bases(self) -> tuple[Expression, ...]:
        """The leaves on the first scale of their column, and of the target."""
        return tuple(
            self.placed(leaf)
            for leaf in self.leaves
            if leaf == self._on_scale(leaf, self._scales_of[leaf.column][0])
        )

    def placed(self, expression: Expression, target: str | None = None) -> Expression:
        """Put an expression without a scale of the target on that of new kernels, or on another."""
        has_none = expression.target == IDENTITY
        return expression.on(target or self.targets[0]) if has_none else expression

    @property
    def definition(self) -> tuple[object, ...]:
        """Texts and numbers that identify the grammar, except for ``unchanging``."""
        return (
            tuple(map(str, self.leaves)),
            tuple(definition(one) for one in (*self.base_kernels, *self.operators)),
            tuple(map(str, self.targets)),
            (self.max_leaves, self.reduces),
        )

    def on_columns(self, columns: Collection[int]) -> "Grammar":
        """Return the same grammar of fewer columns."""
        kept = [number for number, column in enumerate(self.columns) if column in columns]
        every, scales = self.by_column, self.scales
        return replace(
            self,
            columns=tuple(self.columns[number] for number in kept),
            by_column=every and tuple(every[number] for number in kept),
            scales=scales and tuple(scales[number] for number in kept),
        )

    def _on_scale(self, leaf: Leaf, scale: str) -> Leaf:
        return leaf if scale == leaf.scale or leaf.has_period else replace(leaf, scale=scale)

    def tidy(self, expression: Expression) -> Expression:
        """Remove what is redundant if the grammar reduces; otherwise return the expression."""
        return expression.with_tree(reduced(expression.tree)) if self.reduces else expression

    def _result(self, change: _Change) -> Expression:
        function, *arguments = change
        return self.tidy(function(*arguments))

    def _growing(self, expression: Expression) -> list[list[Any]]:
        """List what joins a new leaf to a subtree: the operations are the product of the lists."""

        def grown(at: tuple[int, Tree], joint: _Joint, leaf: Leaf) -> Expression:
            (place, tree), (operator, column, which) = at, joint
            operands: list[Tree] = [leaf] * operator.n_operands
            operands[which] = tree
            return expression.replace(place, Operation(operator, *operands, column=column))

        room, leaves = self.max_leaves - expression.n_leaves, self._leaves_for(expression).values()
        joints = [one for one in self._every_joint if one[0].n_operands - 1 <= room]
        return [[grown], [*enumerate(expression.subtrees())], joints, [*leaves]]

    def _exchanges(self, expression: Expression) -> list[_Change]:
        new, found = self._leaves_for(expression), list[_Change]()
        for place, tree in enumerate(expression.subtrees()):
            if isinstance(tree, Leaf):
                others = [leaf for text, leaf in new.items() if text != tree.canonical]
                found += product([expression.replace], [place], others)
        return found

    def _rescalings(self, expression: Expression) -> list[_Change]:
        """List the exchanges of the scale of the target, and of that of a column in all leaves."""

        def rescaled(column: int, scale: str) -> Expression:
            return with_leaves(
                expression, lambda one: self._on_scale(one, scale) if one.column == column else one
            )

        found: list[_Change] = [(expression.on, t) for t in self.targets if t != expression.target]
        first = {leaf.column: leaf for leaf in reversed(expression.leaves) if not leaf.has_period}
        return found + [
            (rescaled, column, scale)
            for column, leaf in sorted(first.items())
            for scale in self._scales_of.get(column, ())
            if scale != leaf.scale
        ]

    def _deletions(self, expression: Expression) -> list[_Change]:
        """List the operations that let an operand take the place of its operation."""
        return [
            (expression.replace, place, operand)
            for place, tree in enumerate(expression.subtrees() if self.reduces else ())
            for operand in tree.operands
        ]

    def rescalings(self, expression: Expression) -> list[Expression]:
        """List the expression with another scale of the target, or of a column."""
        return [function(*arguments) for function, *arguments in self._rescalings(expression)]

    def random_neighbour(self, expression: Expression, rng: np.random.Generator) -> Expression:
        """Apply one operation, drawn uniformly from all that apply.

        An expression that results from two operations is twice as likely. If no operation applies,
        the expression is returned unchanged.
        """
        others = self._exchanges(expression) + self._rescalings(expression)
        return self._drawn(expression, others + self._deletions(expression), rng)

    def _drawn(
        self, expression: Expression, others: list[_Change], rng: np.random.Generator
    ) -> Expression:
        """Let an expression grow, or change in one of the other ways, each with the same chance."""
        growing = self._growing(expression)  # of very many columns, too many to be listed
        sizes = [len(one) for one in growing]
        n_growing = prod(sizes)
        if not n_growing + len(others):
            return expression
        number = int(rng.integers(n_growing + len(others)))
        if number >= n_growing:
            return self._result(others[number - n_growing])
        chosen = np.unravel_index(number, sizes)
        return self._result(tuple(one[n] for one, n in zip(growing, chosen, strict=True)))

    def neighbours(self, expression: Expression) -> tuple[Expression, ...]:
        """List all expressions one operation away, one tree per canonical text, in fixed order."""
        found: dict[str, Expression] = {}
        for result in self.changes(expression):
            found.setdefault(result.canonical, result)
        found.pop(expression.canonical, None)  # a reduction may undo what an operation did
        return tuple(found.values())

    def changes(self, expression: Expression, n_max: int | None = None) -> Iterator[Expression]:
        """Yield the result of every operation, also where several lead to the same kernel.

        Growing ones come first, then exchanges of a leaf, then those of a scale, then deletions.
        If there are more than ``n_max``, they are all exchanges of a scale, all deletions, and a
        choice of the others, which is the same for all trees of one kernel.
        """
        others = [*product(*self._growing(expression)), *self._exchanges(expression)]
        always = self._rescalings(expression) + self._deletions(expression)
        if n_max is not None and len(others) + len(always) > n_max:
            rng = np.random.default_rng(crc32(expression.canonical.encode()))
            n_kept = min(max(1, n_max - len(always)), len(others))
            others = [others[n] for n in np.sort(rng.choice(len(others), n_kept, replace=False))]
        yield from map(self._result, others + always)

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
        bases = self.bases
        tree = bases[int(rng.integers(len(bases)))]
        n_leaves = min(n_leaves, self.max_leaves)
        for _ in range(10 * n_leaves):  # attempts
            if tree.n_leaves < n_leaves:
                tree = self._drawn(tree, [], rng)
        return tree

    def random_walks(self, n: int, rng: np.random.Generator) -> list[Expression]:
        """Make ``n`` random walks that start from the leaves of the grammar in turn.

        If there are more leaves than ``n``, a random choice of them is used. The numbers of steps
        are geometric, with mean three.
        """
        bases = self.bases
        if len(bases) > n:
            bases = tuple(bases[number] for number in rng.choice(len(bases), n, replace=False))
        return [
            self.random_walk(bases[number % len(bases)], int(n_steps), rng)
            for number, n_steps in enumerate(rng.geometric(1 / 3, size=n))
        ]

    def _leaves_for(self, expression: Expression) -> dict[str, Leaf]:
        """Return the leaves that may join an expression, on scales that its columns have in it."""
        views = frozenset(leaf.view for leaf in expression.leaves if not leaf.has_period)
        if views not in self._new_leaves:
            used = {view.column for view in views}
            self._new_leaves[views] = {
                leaf.canonical: leaf
                for leaf in self.leaves
                if leaf.has_period or leaf.view in views or leaf.column not in used
            }
        return self._new_leaves[views]

    def spans(self, expression: Expression) -> bool:
        """Return whether all parts of an expression are allowed."""
        allowed = {*self.base_kernels, *self.operators}
        return (
            expression.n_leaves <= self.max_leaves
            and expression.target in self.targets
            and all(
                e.canonical in self._leaf_texts
                if isinstance(e, Leaf)
                else e.declared in allowed and (e.column is None or e.column in self.columns)
                for e in expression.subtrees()
            )
        )

    def kernels_on(self, column: int) -> dict[BaseKernel, Leaf]:
        """Return the leaves on a column as it is, by their base kernels."""
        every = (leaf for leaf in self.leaves if leaf.column == column and leaf.scale == IDENTITY)
        return {leaf.kernel: leaf for leaf in every}

    def like(self, kernel: BaseKernel, column: int) -> tuple[Leaf, ...]:
        """Return the leaves on a column, on its first scale, that stand for a base kernel.

        Where columns differ, these are all those of its kind that the column allows, or the first
        leaf of the column if there is none.
        """
        if self.by_column is None:
            first = self._scales_of.get(column, (IDENTITY,))[0]
            return (self._on_scale(Leaf(kernel, column), first),)
        own = [leaf for base in self.bases for leaf in base.leaves if leaf.column == column]
        return tuple([leaf for leaf in own if isinstance(leaf.kernel, type(kernel))] or own[:1])
