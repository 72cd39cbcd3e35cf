"""Initial designs: the kernels that are evaluated before a strategy has anything to learn from."""

from collections.abc import Sequence
from functools import partial, reduce
from itertools import islice
from operator import add, mul

import numpy as np

from autokernel.expression import Expression, Grammar, Operation
from autokernel.kernels import (
    ADD,
    CATEGORICAL,
    DAMPED_TREND,
    GROWTH,
    LINEAR,
    MULTI_SCALE,
    MULTIPLY,
    PERIODIC,
    RANDOM_WALK,
    RETURNING,
    SMOOTH,
    BaseKernel,
    Operator,
    Seasonal,
)

MAX_COLUMNS_WITH_BASES = 2  # with which the default design has every base kernel


def default_design(grammar: Grammar) -> tuple[Expression, ...]:
    """List kernels of series, classic ones, those of groups and, of few columns, base kernels."""
    time = grammar.columns[0] if len(grammar.columns) == 1 else None
    design = [*kernels_of_series(grammar, time, ()), *classic_kernels(grammar)]
    design += kernels_of_groups(grammar)
    if len(grammar.columns) <= MAX_COLUMNS_WITH_BASES or not design:
        design += grammar.bases
    return tuple({expression.canonical: expression for expression in design}.values())


def classic_kernels(grammar: Grammar) -> list[Expression]:
    """List the kernels that a person would try first.

    They are the product of SE over all columns, the sum of SE and the sum of LIN. For one column,
    trend + locally periodic + smooth follows. For more columns, the product of RQ follows, with
    nothing else and plus the sum of SE. A kernel is left out if the base kernels, the operators or
    the largest number of leaves do not allow it.
    """
    ard, smooth = (_over_columns(sign, SMOOTH, grammar) for sign in (MULTIPLY, ADD))
    lines = _over_columns(ADD, LINEAR, grammar)
    classics = [ard, smooth, lines]
    if len(grammar.columns) == 1:
        classics.append(lines + _over_columns(ADD, PERIODIC, grammar) * smooth + smooth)
    else:
        ard_rq = _over_columns(MULTIPLY, MULTI_SCALE, grammar)
        classics += [ard_rq, ard_rq + smooth]
    distinct = {one.canonical: one for one in classics}.values()
    return [one for one in distinct if grammar.spans(grammar.placed(one))]


def kernels_of_series(
    grammar: Grammar, time: int | None, groups: Sequence[int]
) -> list[Expression]:
    """List the kernels that forecast a series well, on each scale of the target.

    They are a walk with a damped or a straight trend, and a line with a level that returns to it,
    without and with the seasons of known periods. With other columns, they have the seasons, if
    there are any, and the effects of these columns: straight lines, and a constant for each level,
    as far as the largest number of leaves allows. With groups, each of them has a walk and seasons
    that it shares with the others, and its own; the trend is common, and may level off, or its own.
    """
    by_kernel = {} if time is None else grammar.kernels_on(time)
    kernels = (RANDOM_WALK, DAMPED_TREND, LINEAR, RETURNING)
    if not by_kernel.keys() >= {*kernels}:
        return []
    walk, trend, line, returning = (by_kernel[kernel] for kernel in kernels)
    seasons = [leaf for kernel, leaf in by_kernel.items() if isinstance(kernel, Seasonal)]
    every = (grammar.kernels_on(group).get(CATEGORICAL) for group in groups)
    levels = [leaf for leaf in every if leaf is not None]
    others = [column for column in grammar.columns if column not in (time, *groups)]
    effects = [grammar.like(LINEAR, column)[0] for column in others]

    def own(leaf: Expression) -> Expression:
        return reduce(mul, levels, leaf)

    sums: list[list[Expression]] = [[walk, trend], [walk, line], [line, returning]]
    if levels:
        sums = [[own(walk), trend], [own(walk), own(trend)], [own(line), own(returning)]]
        sums += [[own(walk), by_kernel[GROWTH]]] if GROWTH in by_kernel else []
    found: list[Expression] = []
    for target in grammar.targets:
        for terms in sums:
            with_seasons = [*terms, *map(own, seasons)]
            choices = [[*with_seasons, *effects], with_seasons, terms]
            possible = [one for c in choices if grammar.spans(one := reduce(add, c).on(target))]
            found += possible[::-1] if len(grammar.columns) == 1 else possible[:1]
    return list(dict.fromkeys(found))


def kernels_of_groups(grammar: Grammar) -> list[Expression]:
    """List sums of a line and of a season that differ between the levels of each category.

    A search that begins with a curve for each level does not come to them. The list is empty unless
    there is one other column, which may have a season.
    """
    by_kernel = [grammar.kernels_on(column) for column in grammar.columns]
    levels = [one[CATEGORICAL] for one in by_kernel if set(one) == {CATEGORICAL}]
    seasons = [one for one in by_kernel if {LINEAR, PERIODIC} <= set(one)]
    if len(seasons) != 1 or len(levels) + 1 != len(by_kernel):
        return []
    [x] = seasons
    found = [level * x[LINEAR] + level * x[PERIODIC] for level in levels]
    return [one for one in found if grammar.spans(grammar.placed(one))]


def grown_kernels(grammar: Grammar, *, rng: np.random.Generator) -> tuple[Expression, ...]:
    """Return every base kernel on every column, then two random operations from each."""
    grown = {base.canonical: base for base in grammar.bases}
    for base in [base for base in grammar.bases for _ in range(2)]:
        draws = (grammar.random_neighbour(base, rng) for _ in range(20))  # some may be known
        new = (kernel for kernel in draws if kernel.canonical not in grown)
        grown |= {kernel.canonical: kernel for kernel in islice(new, 1)}
    return tuple(grown.values())


def _over_columns(operator: Operator, kernel: BaseKernel, grammar: Grammar) -> Expression:
    """Join one base kernel over all columns, or what stands for it where columns differ."""
    terms: list[Expression] = [reduce(add, grammar.like(kernel, c)) for c in grammar.columns]
    return reduce(partial(Operation, operator), terms)
