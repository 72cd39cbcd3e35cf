"""The normal form of a kernel: one expression for what is provably one family of functions.

Two rules remove leaves that add nothing, however the parameters are set:

- In a product, a factor whose kernel is closed under products is redundant if another factor
  absorbs it. It is absorbed by the same leaf, by a product of which a factor absorbs it, and by a
  sum of which *all* terms absorb it. The sum may have a factor taken into each of its terms; in the
  other direction, its terms have a common factor of that kind, which can be taken out.
- In a sum, a leaf whose kernel is closed under sums is redundant next to the same leaf.

The families are equal, while priors and so evidences are not: each parameter has its own prior.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from collections.abc import Set as AbstractSet
from dataclasses import replace
from functools import partial
from itertools import chain, combinations, permutations
from operator import is_

from autokernel.expression.parts import arrange, with_leaves
from autokernel.expression.tree import Expression, Leaf, Operation, Tree
from autokernel.kernels import ADD, MULTIPLY, Operator


def reduced(tree: Tree) -> Tree:
    """Remove all leaves that are redundant.

    The result is the same object if there are none, and otherwise grouped from the left where terms
    were removed. Its canonical text does not depend on the order or grouping of the operands.
    """
    closed = (
        leaf.canonical
        for leaf in tree.leaves
        if leaf.kernel.closed_under_products or leaf.kernel.closed_under_sums
    )
    recurring = {text for text, n in Counter(closed).items() if n > 1}  # a rule may remove these
    if not recurring or not isinstance(tree, Operation):
        return tree
    terms = tree.children
    # a product that is reduced to a sum, or a sum to a product, joins the terms of its parent
    parts = [part for term in terms for part in reduced(term).terms(tree.operator)]
    kept = _without_redundant(parts, tree.operator, recurring)
    return tree if len(kept) == len(terms) and all(map(is_, kept, terms)) else tree.join(kept)


def normal_form(expression: Expression) -> Expression:
    """Reduce an expression, sort its terms, and group them from the left.

    The result is the same for all expressions that reduce to one canonical text.
    """
    return expression.with_tree(arrange(reduced(expression.tree))[0])


def simplifications(expression: Expression) -> list[Expression]:
    """List the normal forms that are one step simpler than the normal form of an expression.

    A step removes a term of an operation that commutes, be it a leaf or a group, or puts an operand
    of any other operation in its place, or takes a common factor out of two terms of a sum, or
    replaces a leaf by a limit of its base kernel. One more step replaces all leaves that have
    limits, each by its first one.

    The canonical texts differ, and none is that of the expression. Removals come first, in the
    order of the subtrees of the normal form, then common factors, then limits.
    """
    whole = normal_form(expression)
    found: dict[str, Expression] = {}
    changes = (_everywhere(whole.tree, change) for change in (_removals, _factorings, _limits))
    of_all_leaves = with_leaves(whole, lambda leaf: next(_limits(leaf), leaf))
    for form in map(normal_form, (*map(whole.with_tree, chain(*changes)), of_all_leaves)):
        found.setdefault(form.canonical, form)
    found.pop(whole.canonical, None)
    return list(found.values())


def factorings(tree: Tree) -> Iterator[Tree]:
    """Yield expressions in which two terms of a sum share a leaf that both have as a factor.

    Each of the two equal leaves is kept once: ``A * B + A * C`` becomes ``A * (B + C)`` twice.
    """
    return _everywhere(tree, _factorings)


def _everywhere(tree: Tree, change: Callable[[Tree], Iterator[Tree]]) -> Iterator[Tree]:
    """Yield expressions in which one subtree is changed, parents first."""
    yield from change(tree)
    if isinstance(tree, Operation):
        for number, child in enumerate(tree.children):
            for changed in _everywhere(child, change):
                yield tree.with_child(number, changed)


def _factorings(tree: Tree) -> Iterator[Tree]:
    if not isinstance(tree, Operation) or tree.operator != ADD:
        return
    for (place, one), (place_of_other, other) in permutations(enumerate(tree.children), 2):
        others = [t for n, t in enumerate(tree.children) if n not in (place, place_of_other)]
        for leaf, rest in _leaf_factors(one):
            for twin, rest_of_other in _leaf_factors(other):
                if leaf.canonical == twin.canonical:
                    yield tree.join([*others, leaf * (rest + rest_of_other)])


def moves(tree: Tree) -> Iterator[Tree]:
    """Yield expressions in which one part has left its place and is joined to another part.

    ``(A + B) * C`` becomes ``A * C + B``, and ``A * B * C`` becomes ``A * B + C``, and back. A part
    is a term of an operation that commutes. A sum or product of up to six terms is also split into
    two of them and the others.
    """
    for rest, part in _parts_taken(tree):
        yield from _everywhere(rest, partial(_joined_with, part=part))
    if isinstance(tree, Operation) and tree.operator.commutes:
        terms = tree.children
        for pair in combinations(range(len(terms)), 2) if 4 <= len(terms) <= 6 else ():
            others = [term for number, term in enumerate(terms) if number not in pair]
            one, rest = tree.join([terms[n] for n in pair]), tree.join(others)
            yield from (one + rest, one * rest)


def _parts_taken(tree: Tree) -> Iterator[tuple[Tree, Tree]]:
    """Yield an expression without one of its parts, and this part."""
    if not isinstance(tree, Operation):
        return
    for number, term in enumerate(tree.children):
        if tree.operator.commutes:
            yield tree.with_child(number), term
        for rest, part in _parts_taken(term):
            yield tree.with_child(number, rest), part


def _joined_with(tree: Tree, part: Tree) -> Iterator[Tree]:
    yield from (tree + part, tree * part)


def _leaf_factors(tree: Tree) -> Iterator[tuple[Leaf, Tree]]:
    """Yield each leaf among the factors of a product, with the product of the others."""
    if isinstance(tree, Operation) and tree.operator == MULTIPLY:
        for number, factor in enumerate(tree.children):
            if isinstance(factor, Leaf):
                yield factor, tree.with_child(number)


def without_leaves(tree: Tree, texts: AbstractSet[str]) -> Tree | None:
    """Return a tree without the leaves of these canonical texts, None if none is left."""
    if not isinstance(tree, Operation):
        return None if tree.canonical in texts else tree
    terms = [without_leaves(term, texts) for term in tree.children]
    left = [term for term in terms if term is not None]
    if len(left) == len(terms) or (left and tree.operator.commutes):
        return tree.join(left)
    return left[0] if left else None


def _without_redundant(terms: list[Tree], operator: Operator, recurring: set[str]) -> list[Tree]:
    """Remove terms that add nothing to the others of their operation, from left to right."""
    for term in [*terms]:
        if term.canonical in recurring:
            others = [*terms]
            others.remove(term)  # the first of those that are equal
            [leaf] = term.leaves
            if leaf.kernel.closed_under_products and operator == MULTIPLY:
                is_redundant = any(_absorbs(other, leaf) for other in others)
            else:
                is_redundant = leaf.kernel.closed_under_sums and operator == ADD and leaf in others
            terms = others if is_redundant else terms
    return terms


def _absorbs(tree: Tree, leaf: Leaf) -> bool:
    """Return whether the product with a leaf, closed under products, is the same family."""
    if not isinstance(tree, Operation):
        return tree == leaf
    if tree.operator == MULTIPLY:
        return any(_absorbs(factor, leaf) for factor in tree.operands)
    return tree.operator == ADD and all(_absorbs(e, leaf) for e in tree.operands)


def _removals(tree: Tree) -> Iterator[Tree]:
    """Yield an operation without one term, or one operand in its place."""
    if isinstance(tree, Operation):
        for number, term in enumerate(tree.children):
            yield tree.with_child(number) if tree.operator.commutes else term


def _limits(tree: Tree) -> Iterator[Tree]:
    if isinstance(tree, Leaf):
        yield from (replace(tree, kernel=limit) for limit in tree.kernel.limits)
