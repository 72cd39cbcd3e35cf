"""Canonical order, symmetries and the parts of an expression."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import reduce
from itertools import accumulate, chain, count, pairwise
from math import prod
from operator import mul

import numpy as np

from autokernel.expression.tree import (
    Expression,
    Leaf,
    Operation,
    Tree,
    fold,
    fold_nodes,
    n_kernel_params,
)
from autokernel.kernels import ADD, MULTIPLY, Operator
from autokernel.typing import IntArray


def arrange(tree: Tree) -> tuple[Tree, list[int]]:
    """Sort the terms of every operator that commutes by their texts.

    The result is the same for all trees with one canonical text. The list has, for each node of the
    result, the index among the nodes of the original tree.
    """
    if not isinstance(tree, Operation) or not tree.operands:
        return tree, list(range(len(tree.nodes)))
    numbered = _numbered(tree)
    if tree.operator.commutes:
        numbered.sort(key=lambda one: one[0].canonical)
    nodes = [0] if tree.operator.parameters else []
    terms = []
    for term, start in numbered:
        arranged, order = arrange(term)
        terms.append(arranged)
        nodes += [start + node for node in order]
    return tree.join(terms), nodes


def arranged(expression: Expression) -> Expression:
    """Return a kernel whose tree is arranged."""
    return expression.with_tree(arrange(expression.tree)[0])


def changes_along(expression: Expression) -> set[int]:
    """Return the columns along which the kernel changes, by an operator that acts on a column."""
    trees = expression.subtrees()
    return {one.column for one in trees if one.column is not None and not isinstance(one, Leaf)}


def with_leaves(expression: Expression, choose: Callable[[Leaf], Tree]) -> Expression:
    """Return an expression with its leaves exchanged, which leaves the numbers of subtrees."""
    tree: Tree = fold_nodes(
        expression,
        lambda leaf, _: choose(leaf),
        lambda tree, _, below: Operation(tree.operator, *below, column=tree.column),
    )
    return expression.with_tree(tree)


def with_numbers(expression: Expression) -> Expression:
    """Give numbers to the leaves, by which they are known in what is made of the expression."""
    numbers = count()
    return with_leaves(expression, lambda leaf: replace(leaf, number=next(numbers)))


def numbered_like(expression: Expression, other: Expression) -> Expression:
    """Give leaves the numbers of those at the same positions of another expression, if any."""
    pairs = ((one, other.nodes[place]) for one, place in align(expression, other))
    numbers = {one: leaf.number for one, leaf in pairs if isinstance(leaf, Leaf)}
    leaves = (n for n, node in enumerate(expression.nodes) if isinstance(node, Leaf))
    return with_leaves(expression, lambda leaf: replace(leaf, number=numbers.get(next(leaves))))


def _numbered(tree: Tree) -> list[tuple[Tree, int]]:
    """List the children, each with the index of its first node among those of the tree."""
    first = 1 if tree.parameters else 0
    starts = accumulate((len(term.nodes) for term in tree.children), initial=first)
    return list(zip(tree.children, starts, strict=False))  # after the last one nothing starts


def node_swaps(expression: Expression) -> list[tuple[int, ...]]:
    """List the exchanges of equal operands, as in ``SE[0] + SE[0]``, as permutations of the nodes.

    A permutation has, for each node in order, the index of the node that replaces it. Only
    exchanges of neighbours in canonical order are listed. Their compositions are all permutations
    that give the same kernel, of which there may be very many.
    """
    swaps = []
    for one, other in _equal_terms(expression.tree, 0):
        taken = dict(zip(one + other, other + one, strict=True))
        swaps.append(tuple(taken.get(node, node) for node in range(len(expression.nodes))))
    return swaps


def _equal_terms(tree: Tree, start: int) -> Iterator[tuple[list[int], list[int]]]:
    """Yield the nodes of each pair of equal, exchangeable terms that are neighbours in order."""
    commutes = isinstance(tree, Operation) and tree.operator.commutes
    read = []
    for term, offset in _numbered(tree):
        yield from _equal_terms(term, start + offset)
        read.append((term.canonical, [start + offset + node for node in arrange(term)[1]]))
    for (text, one), (other_text, other) in pairwise(sorted(read)):
        if commutes and text == other_text:
            yield one, other


Part = tuple[Tree, tuple[int, ...]]
"""A part of a kernel, with the indices of its nodes among those of the whole kernel."""


def splits(tree: Tree) -> Iterator[tuple[Part, Part]]:
    """Yield the splits of a kernel by each term of its sums: the rest, and the term.

    A sum is split by each of its terms, any other operation by the splits of its operands.
    """
    if not isinstance(tree, Operation):
        return
    for number, (term, start) in enumerate(_numbered(tree)):
        parts: list[tuple[list[Tree], Tree, Sequence[int]]]
        if tree.operator.is_additive:
            parts = [([], term, range(len(term.nodes)))]
        else:
            parts = [([left], *taken) for (left, _), taken in splits(term)]
        for left, taken, nodes in parts:
            taken_nodes = tuple(start + node for node in nodes)
            kept = tuple(n for n in range(len(tree.nodes)) if n not in taken_nodes)
            yield (tree.with_child(number, *left), kept), (taken, taken_nodes)


def meeting_operator(tree: Tree, one: int, other: int) -> Operator:
    """Return the operator at the lowest common ancestor of two different nodes."""
    is_valid = 0 <= min(one, other) < max(one, other) < len(tree.nodes)
    if not is_valid or not isinstance(tree, Operation):
        raise IndexError(f"two nodes must be in {tree}, got {one} and {other}")
    for term, start in _numbered(tree):
        inside = range(start, start + len(term.nodes))
        if one in inside and other in inside:
            return meeting_operator(term, one - start, other - start)
    return tree.operator


def align(one: Expression, other: Expression) -> list[tuple[int, int]]:
    """Pair equal nodes of two kernels, by their indices, that have the same position in both.

    Terms of sums are matched with terms and factors of products with factors, beginning with those
    that share the most nodes. Operands of an operator that does not commute are matched in order.
    The scales of the target may differ.
    """
    one, other = one.tree, other.tree
    own = [e.operator for e in (one, other) if isinstance(e, Operation) and e.operator.commutes]
    if own:
        operator = min(own, key=lambda operator: operator.precedence)
        every = (_numbered(e) if e.declared == operator else [(e, 0)] for e in (one, other))
        return _align_terms(*every)
    if isinstance(one, Leaf) == isinstance(other, Leaf):
        if (one.declared, one.view) != (other.declared, other.view):
            return []
        pairs = [(0, 0)] if isinstance(one, Leaf) or one.parameters else []
        for (mine, i), (yours, k) in zip(_numbered(one), _numbered(other), strict=True):
            pairs += [(i + a, k + b) for a, b in align(mine, yours)]
        return pairs
    if isinstance(one, Leaf):
        return [(a, b) for b, a in align(other, one)]
    # The leaf is matched with the operand that shares the most nodes with it.
    matches = [
        [(start + a, b) for a, b in align(operand, other)] for operand, start in _numbered(one)
    ]
    return max(matches, key=len)


def _align_terms(
    ours: Sequence[tuple[Tree, int]], theirs: Sequence[tuple[Tree, int]]
) -> list[tuple[int, int]]:
    """Match terms of a commuting operator, beginning with those that share the most nodes."""
    options = [
        ([(i + a, k + b) for a, b in align(mine, yours)], i, k, mine.n_leaves + yours.n_leaves)
        for mine, i in ours
        for yours, k in theirs
    ]
    pairs: list[tuple[int, int]] = []
    matched: set[tuple[str, int]] = set()
    for found, i, k, _ in sorted(options, key=lambda option: (-len(option[0]), option[3])):
        if not matched & {("one", i), ("other", k)}:
            matched |= {("one", i), ("other", k)}
            pairs += found
    return sorted(pairs)


MAX_ADDENDS = 2000


Addend = tuple[Tree, IntArray]
"""A term of a sum, and the entries (n_params,) of the sum's theta that hold its parameters."""


def addends(expression: Expression) -> list[Addend]:
    """Distribute the products of a kernel over its sums, on its scale of the target.

    The kernel is the sum of the addends. Each is a leaf, a product of leaves in the order of the
    kernel, or a product in which an operator is neither of the two and has no shares. An operand of
    a change-point is multiplied by its share, a leaf with the parameters of the operator. Several
    addends of one product over a sum, or of one change-point, have parameters in common. The null
    model is the sum of none. A ``ValueError`` is raised if there are more than
    :data:`MAX_ADDENDS`, whose number may grow exponentially.
    """
    if (n_addends := fold_nodes(expression, lambda *_: 1, _n_addends)) > MAX_ADDENDS:
        raise ValueError(
            f"a kernel must be a sum of at most {MAX_ADDENDS} products to be described, got "
            f"{float(n_addends):.3g} products of {expression.n_leaves} leaves: refit a simpler one"
        )
    entries = np.arange(n_kernel_params(expression))
    return fold(expression, entries, lambda leaf, own: [(leaf, own)], _expanded)


def _n_addends(operation: Operation, _: int | None, of_operands: list[int]) -> int:
    operator = operation.operator
    if operator == MULTIPLY:
        return prod(of_operands)
    is_sum = operator == ADD or (operator.shares and operation.column is not None)
    return sum(of_operands) if is_sum else 1


def _expanded(tree: Operation, own: IntArray, below: list[list[Addend]]) -> list[Addend]:
    """List the addends of an operation, whose own parameters are at some entries of theta."""
    if tree.operator == ADD:
        return list(chain.from_iterable(below))
    if tree.operator == MULTIPLY:
        return _products(*below)
    if not tree.operator.shares or tree.column is None:
        every = [own, *(entries for _, entries in chain.from_iterable(below))]
        return [(tree, np.unique(np.concatenate(every)))]
    column = tree.column
    weighed = (
        _products([(Leaf(share, column), own)], of_operand)
        for share, of_operand in zip(tree.operator.shares, below, strict=True)
    )
    return list(chain.from_iterable(weighed))


def _products(ours: list[Addend], theirs: list[Addend]) -> list[Addend]:
    """Multiply each of some addends, products grouped from the left, by each of others."""
    return [
        (reduce(mul, other.terms(MULTIPLY), one), np.append(entries, more))
        for one, entries in ours
        for other, more in theirs
    ]
