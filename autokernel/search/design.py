"""Initial designs: the kernels that are evaluated before a strategy has anything to learn from."""

from collections.abc import Iterable, Sequence
from functools import reduce

import numpy as np

from autokernel.expression import Expression, Grammar, Leaf, Operation
from autokernel.inference import Evaluation

MAX_DESIGN = 60
"""Largest number of kernels in the default design."""

DESIGNS = ("default", "paper")

_TRIES = 20  # at an operation whose result is not in the design yet


def classic_kernels(grammar: Grammar, base_kernels: Sequence[str]) -> list[Expression]:
    """List what a person would try first.

    The product and the sum of SE over all columns, the sum of LIN, and for one column trend +
    locally periodic + smooth; as far as base kernels, operators and the number of leaves allow.
    """
    columns = grammar.columns
    classics = [
        _over_columns("*", "SE", columns),
        _over_columns("+", "SE", columns),
        _over_columns("+", "LIN", columns),
    ]
    if len(columns) == 1:
        LIN, PER, SE = (Leaf(name, columns[0]) for name in ("LIN", "PER", "SE"))
        classics.append(LIN + PER * SE + SE)
    return [e for e in _distinct(classics) if _is_allowed(e, grammar, base_kernels)]


def relevant_columns(grammar: Grammar, evaluations: Iterable[Evaluation]) -> tuple[int, ...]:
    """Order the columns by lengthscale in the fit of the product of SE, the shortest first."""
    ard = _over_columns("*", "SE", grammar.columns).canonical
    for evaluation in evaluations:
        if evaluation.expression.canonical == ard and np.isfinite(evaluation.score):
            lengthscales = {
                evaluation.expression.leaves[p.leaf].column: p.value
                for p in evaluation.parameters
                if p.name == "lengthscale" and p.leaf is not None
            }
            return tuple(sorted(grammar.columns, key=lambda column: lengthscales[column]))
    return grammar.columns


def grown_kernels(
    grammar: Grammar, columns: Sequence[int], *, rng: np.random.Generator
) -> list[Expression]:
    """List every base kernel on every column, then two random operations from each."""
    bases = [Leaf(name, column) for column in columns for name in grammar.base_kernels]
    design: dict[str, Expression] = {base.canonical: base for base in bases}
    for base in bases:
        for _ in range(2):
            for _ in range(_TRIES):
                grown = grammar.random_neighbour(base, rng)
                if grown.canonical not in design:
                    design[grown.canonical] = grown
                    break
    return list(design.values())


def _over_columns(operator: str, name: str, columns: Sequence[int]) -> Expression:
    """Join one base kernel over all columns."""
    leaves: list[Expression] = [Leaf(name, column) for column in columns]
    return reduce(lambda left, right: Operation(operator, left, right), leaves)


def _distinct(expressions: Iterable[Expression]) -> list[Expression]:
    """Keep the first expression of each canonical text."""
    first: dict[str, Expression] = {}
    for expression in expressions:
        first.setdefault(expression.canonical, expression)
    return list(first.values())


def _is_allowed(expression: Expression, grammar: Grammar, base_kernels: Sequence[str]) -> bool:
    """Whether an expression keeps to the base kernels, the operators and the size."""
    operators = {e.operator for e in expression.subtrees() if isinstance(e, Operation)}
    return (
        expression.n_leaves <= grammar.max_leaves
        and operators <= set(grammar.operators)
        and all(leaf.kernel in base_kernels for leaf in expression.leaves)
    )
