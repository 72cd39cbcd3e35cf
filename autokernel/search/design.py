"""Initial designs: the kernels that are evaluated before a strategy has anything to learn from."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce

import numpy as np

from autokernel.evidence import Evaluation
from autokernel.expression import Expression, Grammar, Leaf, Operation, slots_of
from autokernel.kernels import (
    ADD,
    LINEAR,
    MULTI_SCALE,
    MULTIPLY,
    PERIODIC,
    SMOOTH,
    BaseKernel,
    Operator,
    Role,
    role_index,
)

MAX_DESIGN = 60
"""Largest number of kernels in the default design."""

DESIGNS = ("default", "paper")

MAX_GROWTHS = 20  # operations tried for a result that is not yet in the design


@dataclass(frozen=True, slots=True)
class Design:
    """Kernels to evaluate before anything is learned from scores."""

    fixed: tuple[Expression, ...]  # kernels evaluated first
    grown: Mapping[Expression, int]  # kernels evaluated next, and the column they have grown on
    size: int  # number of kernels of both parts together
    ard: Expression | None = None  # product over all columns, whose lengthscales rank them

    def rest(self, evaluations: Iterable[Evaluation]) -> list[Expression]:
        """Choose the kernels after the fixed part, given its evaluations.

        If the design has no room for all, base kernels come before grown kernels, and among each
        the columns with the shortest lengthscales come first.
        """
        n_rest = self.size - len(self.fixed)
        if n_rest == len(self.grown):
            return list(self.grown)
        columns = list(dict.fromkeys(self.grown.values()))
        ranked = relevant_columns(columns, evaluations, self.ard)
        rank = {column: number for number, column in enumerate(ranked)}
        return sorted(self.grown, key=lambda e: (e.n_leaves > 1, rank[self.grown[e]]))[:n_rest]

    def beginning_with(self, start: Sequence[Expression]) -> "Design":
        """Return the design that evaluates these kernels first."""
        texts = {expression.canonical for expression in start}
        fixed = (*start, *(one for one in self.fixed if one.canonical not in texts))
        grown = {e: column for e, column in self.grown.items() if e.canonical not in texts}
        n_more = len(fixed) + len(grown) - len(self.fixed) - len(self.grown)
        return replace(self, fixed=fixed, grown=grown, size=self.size + n_more)


def initial_design(
    name: str, grammar: Grammar, base_kernels: tuple[BaseKernel, ...], *, rng: np.random.Generator
) -> Design:
    """Build the design with this name.

    ``"paper"`` is every base kernel on every column, and two random operations from each.
    ``"default"`` evaluates :func:`classic_kernels` made of ``base_kernels`` before these, and holds
    at most :data:`MAX_DESIGN` kernels.
    """
    fixed = classic_kernels(grammar, base_kernels) if name == "default" else []
    known = {expression.canonical for expression in fixed}
    kernels = grown_kernels(grammar, rng=rng).items()
    grown = {e: column for e, column in kernels if e.canonical not in known}
    size = len(fixed) + len(grown)
    if name == "default":
        size = min(size, max(MAX_DESIGN, len(fixed)))
    ard = _over_columns(MULTIPLY, SMOOTH, grammar) if grammar.columns else None
    return Design(tuple(fixed), grown, size, ard)


def classic_kernels(grammar: Grammar, base_kernels: tuple[BaseKernel, ...]) -> list[Expression]:
    """List the kernels that a person would try first.

    They are the product of SE over all columns, the sum of SE and the sum of LIN. For one column,
    trend + locally periodic + smooth follows. For more columns, the product of RQ follows, with
    nothing else, plus the sum of SE, and plus the product of SE. A kernel is left out if the base
    kernels, the operators or the largest number of leaves do not allow it.
    """
    ard, additive = (_over_columns(sign, SMOOTH, grammar) for sign in (MULTIPLY, ADD))
    classics = [ard, additive, _over_columns(ADD, LINEAR, grammar)]
    if len(grammar.columns) == 1:
        LIN, PER, SE = (
            _sum(grammar.like(kernel, grammar.columns[0])) for kernel in (LINEAR, PERIODIC, SMOOTH)
        )
        classics.append(LIN + PER * SE + SE)
    else:
        ard_rq = _over_columns(MULTIPLY, MULTI_SCALE, grammar)
        classics += [ard_rq, ard_rq + additive, ard + ard_rq]
    first: dict[str, Expression] = {}
    for expression in classics:
        first.setdefault(expression.canonical, expression)
    return [e for e in first.values() if grammar.spans(e, base_kernels)]


def relevant_columns(
    columns: Sequence[int], evaluations: Iterable[Evaluation], ard: Expression | None
) -> tuple[int, ...]:
    """Order columns by their lengthscale in the fitted product of SE, the shortest first.

    Columns whose base kernel in this product has no lengthscale come before all others.
    """
    for evaluation in evaluations:
        is_ard = ard is not None and evaluation.expression.canonical == ard.canonical
        if is_ard and np.isfinite(evaluation.score):
            lengthscales = {
                slot.node.column: evaluation.theta[slot.entries.start + index]
                for slot in slots_of(evaluation.expression)
                if (index := role_index(slot.node.parameters, Role.LENGTHSCALE)) is not None
            }
            return tuple(sorted(columns, key=lambda column: lengthscales.get(column, -np.inf)))
    return tuple(columns)


def grown_kernels(grammar: Grammar, *, rng: np.random.Generator) -> dict[Expression, int]:
    """Return every base kernel, then two random operations from each, and their columns."""
    grown: dict[Expression, int] = {base: base.column for base in grammar.leaves}
    texts = {base.canonical for base in grammar.leaves}
    for base in grammar.leaves:
        for _ in range(2):
            for _ in range(MAX_GROWTHS):
                kernel = grammar.random_neighbour(base, rng)
                if kernel.canonical not in texts:
                    grown[kernel] = base.column
                    texts.add(kernel.canonical)
                    break
    return grown


def _over_columns(operator: Operator, kernel: BaseKernel, grammar: Grammar) -> Expression:
    """Join one base kernel over all columns, or what stands for it where columns differ."""
    terms = [_sum(grammar.like(kernel, column)) for column in grammar.columns]
    return reduce(lambda left, right: Operation(operator, left, right), terms)


def _sum(leaves: Sequence[Leaf]) -> Expression:
    """Add up leaves."""
    terms: Sequence[Expression] = leaves
    return reduce(lambda left, right: Operation(ADD, left, right), terms)
