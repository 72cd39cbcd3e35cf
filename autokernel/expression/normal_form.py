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
from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from dataclasses import replace
from itertools import combinations, permutations
from operator import is_

from autokernel.expression.parts import arrange
from autokernel.expression.tree import IDENTITY, Expression, Leaf, Operation
from autokernel.kernels import ADD, MULTIPLY, Operator

MAX_SPLIT = 6  # terms of a sum or product that is split into two of them and the others


def reduced(expression: Expression) -> Expression:
    """Remove all leaves that are redundant.

    The result is the same object if there are none, and otherwise grouped from the left where terms
    were removed. Its canonical text does not depend on the order or grouping of the operands.
    """
    closed = (
        leaf.canonical
        for leaf in expression.leaves
        if leaf.kernel.closed_under_products or leaf.kernel.closed_under_sums
    )
    recurring = {text for text, n in Counter(closed).items() if n > 1}  # a rule may remove these
    if not recurring or not isinstance(expression, Operation):
        return expression
    terms = expression.children
    parts = [reduced(term) for term in terms]
    if not all(map(is_, parts, terms)):
        # a product that is reduced to a sum, or a sum to a product, joins the terms of its parent
        parts = [part for term in parts for part in term.terms(expression.operator)]
    kept = _without_redundant(parts, expression.operator, recurring)
    if len(kept) == len(terms) and all(map(is_, kept, terms)):
        return expression
    return expression.join(kept)


def normal_form(expression: Expression) -> Expression:
    """Reduce an expression, sort its terms, and group them from the left.

    The result is the same for all expressions that reduce to one canonical text.
    """
    return arrange(reduced(expression))[0]


def simplifications(expression: Expression) -> list[Expression]:
    """List the normal forms that are one step simpler than the normal form of an expression.

    A step removes a term of an operation that commutes, be it a leaf or a group, or puts an operand
    of any other operation in its place, or takes a common factor out of two terms of a sum, or
    replaces a leaf by a limit of its base kernel. If several leaves have limits, one more step
    replaces all of them, each by its first limit.

    The canonical texts differ, and none is that of the expression. Removals come first, in the
    order of the subtrees of the normal form, then common factors, then limits.
    """
    whole = normal_form(expression)
    found: dict[str, Expression] = {}
    for simpler in (*_removals(whole), *factorings(whole), *_limits(whole)):
        form = normal_form(simpler)
        found.setdefault(form.canonical, form)
    found.pop(whole.canonical, None)
    return list(found.values())


def factorings(expression: Expression) -> Iterator[Expression]:
    """Yield expressions in which two terms of a sum share a leaf that both have as a factor.

    Each of the two equal leaves is kept once: ``A * B + A * C`` becomes ``A * (B + C)`` twice.
    """
    if not isinstance(expression, Operation):
        return
    terms = expression.children
    if expression.operator == ADD:
        for (place, one), (place_of_other, other) in permutations(enumerate(terms), 2):
            others = [t for n, t in enumerate(terms) if n not in (place, place_of_other)]
            for leaf, rest in _leaf_factors(one):
                for twin, rest_of_other in _leaf_factors(other):
                    if leaf.canonical == twin.canonical:
                        yield expression.join([*others, leaf * (rest + rest_of_other)])
    for number, term in enumerate(terms):
        for shared in factorings(term):
            yield expression.join([*terms[:number], shared, *terms[number + 1 :]])


def moves(expression: Expression) -> Iterator[Expression]:
    """Yield expressions in which one part has left its place and is joined to another part.

    ``(A + B) * C`` becomes ``A * C + B``, and ``A * B * C`` becomes ``A * B + C``, and back. A part
    is a term of an operation that commutes. A sum or product of up to six terms is also split into
    two of them and the others.
    """
    for rest, part in _parts_taken(expression):
        for joined in _with_part(rest.on(IDENTITY), part):
            yield joined.on(expression.target)
    if isinstance(expression, Operation) and expression.operator.commutes:
        terms = expression.children
        for pair in combinations(range(len(terms)), 2) if 3 < len(terms) <= MAX_SPLIT else ():
            others = [term for number, term in enumerate(terms) if number not in pair]
            one = expression.join([terms[n] for n in pair]).on(IDENTITY)
            rest = expression.join(others).on(IDENTITY)
            yield from (split.on(expression.target) for split in (one + rest, one * rest))


def _parts_taken(expression: Expression) -> Iterator[tuple[Expression, Expression]]:
    """Yield an expression without one of its parts, and this part."""
    if not isinstance(expression, Operation):
        return
    terms = expression.children
    for number, term in enumerate(terms):
        before, after = terms[:number], terms[number + 1 :]
        if expression.operator.commutes:
            yield expression.join([*before, *after]), term
        for rest, part in _parts_taken(term):
            yield expression.join([*before, rest, *after]), part


def _with_part(expression: Expression, part: Expression) -> Iterator[Expression]:
    """Yield the sums and products of each part of an expression and another one."""
    yield expression + part
    yield expression * part
    if isinstance(expression, Operation):
        terms = expression.children
        for number, term in enumerate(terms):
            for joined in _with_part(term, part):
                yield expression.join([*terms[:number], joined, *terms[number + 1 :]])


def _leaf_factors(expression: Expression) -> Iterator[tuple[Leaf, Expression]]:
    """Yield each leaf among the factors of a product, with the product of the others."""
    if isinstance(expression, Operation) and expression.operator == MULTIPLY:
        for number, factor in enumerate(factors := expression.children):
            if isinstance(factor, Leaf):
                yield factor, expression.join([*factors[:number], *factors[number + 1 :]])


def without_leaves(expression: Expression, texts: AbstractSet[str]) -> Expression | None:
    """Return an expression without the leaves of these canonical texts, None if none is left."""
    if not isinstance(expression, Operation):
        return None if expression.canonical in texts else expression
    terms = [without_leaves(term, texts) for term in expression.children]
    left = [term for term in terms if term is not None]
    if len(left) == len(terms) or (left and expression.operator.commutes):
        return expression.join(left)
    return left[0].on(expression.target) if left else None


def _without_redundant(
    terms: list[Expression], operator: Operator, recurring: set[str]
) -> list[Expression]:
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


def _absorbs(expression: Expression, leaf: Leaf) -> bool:
    """Return whether the product with a leaf, closed under products, is the same family."""
    if not isinstance(expression, Operation):
        return expression == leaf
    if expression.operator == MULTIPLY:
        return any(_absorbs(factor, leaf) for factor in expression.operands)
    return expression.operator == ADD and all(_absorbs(e, leaf) for e in expression.operands)


def _removals(expression: Expression) -> Iterator[Expression]:
    """Yield expressions without one term, or with one operand in place of an operation."""
    if not isinstance(expression, Operation):
        return
    terms = expression.children
    for number, term in enumerate(terms):
        if expression.operator.commutes:
            yield expression.join(terms[:number] + terms[number + 1 :])
        else:
            yield term.on(expression.target)
    for number, term in enumerate(terms):
        for simpler in _removals(term):
            yield expression.join([*terms[:number], simpler, *terms[number + 1 :]])


def _limits(expression: Expression) -> Iterator[Expression]:
    """Yield expressions with a leaf replaced by a limit of it, then with all such leaves."""
    places = [
        (place, tree)
        for place, tree in enumerate(expression.subtrees())
        if isinstance(tree, Leaf) and tree.kernel.limits
    ]
    for place, leaf in places:
        for limit in leaf.kernel.limits:
            yield expression.replace(place, replace(leaf, kernel=limit))
    if len(places) > 1:
        for place, leaf in places:
            expression = expression.replace(place, replace(leaf, kernel=leaf.kernel.limits[0]))
        yield expression
