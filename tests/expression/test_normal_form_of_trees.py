"""Random trees and their normal forms, which an implementation with numbers finds as well.

It removes one leaf at a time and lets another part of the kernel take in its parameters.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import reduce

import numpy as np

from autokernel.expression import (
    Expression,
    Grammar,
    Leaf,
    Operation,
    n_kernel_params,
    normal_form,
    reduced,
    simplifications,
)
from autokernel.kernels import ADD, BASE_KERNELS, MULTIPLY, SMOOTH, BaseKernel, Operator
from autokernel.typing import FloatArray
from tests.batteries import covariance, flat_terms, reshuffled
from tests.expression.test_normal_form import CONST, X, assert_equal, narrower

SE, LIN = SMOOTH, BASE_KERNELS["LIN"]
GRAMMAR = Grammar((SE, LIN, CONST), (ADD, MULTIPLY), columns=(0,), max_leaves=9)
TREES = [GRAMMAR.random_tree(2 + n % 8, np.random.default_rng(n)) for n in range(500)]


def test_the_order_and_the_grouping_of_operands_make_no_difference():
    for number, tree in enumerate(TREES):
        other = reshuffled(tree, np.random.default_rng(number))
        assert normal_form(other) == normal_form(tree)
        assert reduced(other).canonical == reduced(tree).canonical
        assert simplifications(other) == simplifications(tree)


def test_to_reduce_twice_is_to_reduce_once():
    for tree in TREES:
        once = reduced(tree)
        assert reduced(once) is once
        assert all(reduced(subtree) is subtree for subtree in once.subtrees())
        assert normal_form(normal_form(tree)) == normal_form(tree)
        assert (once is tree) == (once.canonical == tree.canonical)


@dataclass(frozen=True, eq=False)
class Numbered:
    """A kernel with numbers: a leaf, or terms of a sum or a product."""

    leaf: Leaf | None = None
    params: FloatArray | None = None
    origin: int = -1  # index among the leaves of the first tree
    operator: Operator | None = None
    parts: tuple["Numbered", ...] = ()

    @classmethod
    def joined(cls, operator: Operator, parts: list["Numbered"]) -> "Numbered":
        if len(parts) == 1:
            return parts[0]
        flat = [p for part in parts for p in (part.parts if part.operator == operator else [part])]
        return cls(operator=operator, parts=tuple(flat))

    @classmethod
    def of(cls, expression: Expression, params: list[FloatArray], start: int = 0) -> "Numbered":
        if isinstance(expression, Leaf):
            return cls(expression, params[start], start)
        parts = []
        for term in flat_terms(expression, expression.operator):
            parts.append(cls.of(term, params, start))
            start += term.n_leaves
        return cls.joined(expression.operator, parts)

    @property
    def leaves(self) -> list["Numbered"]:
        return [self] if self.leaf else [leaf for part in self.parts for leaf in part.leaves]

    @property
    def expression(self) -> Expression:
        if self.leaf:
            return self.leaf
        parts = [part.expression for part in self.parts]
        return reduce(lambda left, right: Operation(self.operator, left, right), parts)

    def covariance(self) -> FloatArray:
        return covariance(self.expression, np.concatenate([e.params for e in self.leaves]), X)


def product_of_se(one: FloatArray, other: FloatArray) -> FloatArray:
    return np.array([narrower(one[0], other[0]), one[1] * other[1]])


Join = Callable[[FloatArray, FloatArray], FloatArray]
JOIN: dict[Operator, dict[BaseKernel, Join]] = {
    MULTIPLY: {SE: product_of_se, CONST: np.multiply},
    ADD: {LIN: np.add, CONST: np.add},
}
NEUTRAL = {MULTIPLY: {SE: (1e9, 1.0), CONST: (1.0,)}, ADD: {LIN: (0.0, 0.0), CONST: (0.0,)}}


def taken_in(part: Numbered, new: Numbered, operator: Operator) -> Numbered | None:
    """The part with a leaf joined to it by its numbers alone, if the rules allow that."""
    if part.leaf:
        if part.leaf != new.leaf:
            return None
        return replace(part, params=JOIN[operator][new.leaf.kernel](part.params, new.params))
    if operator == ADD:
        return None
    if part.operator == ADD:
        terms = [taken_in(term, new, operator) for term in part.parts]
        return None if None in terms else Numbered.joined(ADD, terms)
    for number, factor in enumerate(part.parts):
        if (taken := taken_in(factor, new, operator)) is not None:
            before, after = part.parts[:number], part.parts[number + 1 :]
            return Numbered.joined(MULTIPLY, [*before, taken, *after])
    return None


@dataclass(frozen=True, eq=False)
class Step:
    """A kernel without one of its leaves, whose numbers another part has taken in."""

    result: Numbered
    removed: int  # origin of the leaf
    operator: Operator
    into_sum: bool


def steps(tree: Numbered) -> Iterator[Step]:
    """Every removal of one leaf that a rule allows, anywhere in the tree."""
    for i, part in enumerate(tree.parts):
        for step in steps(part):
            parts = [*tree.parts[:i], step.result, *tree.parts[i + 1 :]]
            yield replace(step, result=Numbered.joined(tree.operator, parts))
        if part.leaf is None or part.leaf.kernel not in JOIN[tree.operator]:
            continue
        for k, other in enumerate(tree.parts):
            taken = taken_in(other, part, tree.operator) if i != k else None
            if taken is not None:
                parts = [taken if n == k else p for n, p in enumerate(tree.parts) if n != i]
                into_sum = other.operator == ADD
                yield Step(
                    Numbered.joined(tree.operator, parts), part.origin, tree.operator, into_sum
                )


def random_params(expression: Expression, rng: np.random.Generator) -> list[FloatArray]:
    return [np.exp(rng.uniform(-1, 1, len(leaf.parameters))) for leaf in expression.leaves]


@dataclass(frozen=True, eq=False)
class Path:
    """Random steps, one after another, until there is no other."""

    start: Numbered
    end: Numbered
    steps: list[Step]

    @classmethod
    def of(cls, tree: Expression, rng: np.random.Generator) -> "Path":
        start = end = Numbered.of(tree, random_params(tree, rng))
        taken = []
        while possible := list(steps(end)):
            taken.append(possible[rng.integers(len(possible))])
            end = taken[-1].result
        return cls(start, end, taken)


PATHS = [Path.of(tree, np.random.default_rng(n)) for n, tree in enumerate(TREES)]


def test_the_rules_in_any_order_lead_to_the_normal_form():
    for tree, path in zip(TREES, PATHS, strict=True):
        assert path.end.expression.canonical == normal_form(tree).canonical
    # the trees show all rules, and many need none
    lengths = [len(path.steps) for path in PATHS]
    assert lengths.count(0) > 50
    assert max(lengths) > 4
    used = [(step.operator, step.into_sum) for path in PATHS for step in path.steps]
    assert min(used.count(way) for way in [(ADD, False), (MULTIPLY, False), (MULTIPLY, True)]) > 20


def test_every_kernel_is_one_of_the_family_of_its_reduced_expression():
    for path in PATHS:
        assert_equal(path.start.covariance(), path.end.covariance())


def test_every_kernel_of_a_reduced_expression_is_one_of_the_family_or_a_limit_of_it():
    for number, (tree, path) in enumerate(zip(TREES, PATHS, strict=True)):
        params = random_params(tree, np.random.default_rng(number))
        for step in path.steps:
            params[step.removed] = np.array(
                NEUTRAL[step.operator][tree.leaves[step.removed].kernel]
            )
        kept = np.concatenate([params[leaf.origin] for leaf in path.end.leaves])
        assert len(kept) == n_kernel_params(normal_form(tree))
        assert_equal(
            covariance(tree, np.concatenate(params), X), covariance(path.end.expression, kept, X)
        )


def test_simplifications_are_other_normal_forms_with_fewer_parameters():
    for tree in TREES:
        form, found = normal_form(tree), simplifications(tree)
        assert len({simpler.canonical for simpler in found}) == len(found)
        for simpler in found:
            assert normal_form(simpler) == simpler
            assert n_kernel_params(simpler) < n_kernel_params(form)
