"""No search of a grammar: a few kernels that forecast series well."""

from collections.abc import Sequence
from functools import reduce
from operator import add
from typing import ClassVar

import numpy as np

from autokernel.evidence import Estimate
from autokernel.expression import IDENTITY, Expression
from autokernel.kernels import ADD
from autokernel.search.design import kernels_of_series
from autokernel.search.history import History
from autokernel.search.strategy import Preset, Strategy, Task


class SeriesKernels(Strategy):
    """Fit the few kernels that forecast a series well, and average over them.

    They are a random walk with a damped trend, and a line with a level that returns to it, each
    without and with the known seasons, on each scale of the target. Nothing is searched or pruned,
    because kernels that extrapolate well often have less evidence than simpler ones. Quantiles,
    densities and draws have heavy tails, for levels that break; means and deviations do not.

    Other columns next to that of time have effects, which are added: a straight line, or a constant
    for each level. From the best kernel, effects are left out, bent, or taken on another scale, one
    after the other, as long as the score is expected to rise. Where levels of categories are groups
    with a series each, groups have levels, trends and seasons in common, and their own.
    """

    preset: ClassVar[Preset] = Preset(
        explores=False,
        prices_structure=False,
        has_series_kernels=True,
        has_all_scales=True,
        judges_outliers_by_series=True,
        learns_tails=False,
    )

    def design(self, task: Task, *, rng: np.random.Generator) -> tuple[Expression, ...]:  # noqa: ARG002 - nothing is drawn
        found = kernels_of_series(task.grammar, *task.series)
        if task.series[0] is None and task.grammar.columns:
            raise ValueError(
                "strategy='series' needs a column of time: one of dates, or one of numbers at "
                f"equal steps; {len(task.grammar.columns)} columns vary, and none is: convert it "
                "to dates, or choose another strategy"
            )
        if not found and not task.start:
            raise ValueError(
                "strategy='series' needs sums of the base kernels RW, IOU, LIN and MAT12: "
                "base_kernels='auto' has them, operators must have '+', and max_leaves be 2 or more"
            )
        return tuple(found)

    def propose(
        self,
        task: Task,
        history: History,
        *,
        n_proposals: int,
        rng: np.random.Generator,  # noqa: ARG002 - nothing is drawn
    ) -> Sequence[Expression | Estimate]:
        best, time = history.best, task.series[0]
        if len(task.grammar.columns) < 2 or best is None or not best.expression.leaves:
            return []
        known = history.canonical_texts()
        of_time, effects = _split(best.expression, time)

        def has_other_effects(kernel: Expression) -> bool:
            terms, others = _split(kernel, time)
            n_columns = len({column for one in others for column in one.columns})
            are_of_columns = n_columns == len(others) == sum(one.n_leaves for one in others)
            return are_of_columns and _texts(terms) == _texts(of_time)

        near = task.near(best.expression).items()
        changes = task.neighbours(best, {text for text, one in near if has_other_effects(one)})
        found: list[Expression | Estimate] = [
            one
            for one in changes
            if one.score > best.score + task.tol
            and one.expression.canonical not in known
            and has_other_effects(one.expression)
        ]
        if not found:  # then the best effects with the other kernels along time
            target = best.expression.target
            sums = kernels_of_series(task.grammar, *task.series)
            others = [
                reduce(add, [*_split(one, time)[0], *effects]).on(target)
                for one in sums
                if one.target == target
            ]
            found = [one for one in others if one.canonical not in known]
        return found[:n_proposals]


def _split(kernel: Expression, time: int | None) -> tuple[list[Expression], list[Expression]]:
    """Split the terms of a sum into those along the column of time and others."""
    terms = kernel.on(IDENTITY).terms(ADD)
    return [t for t in terms if time in t.columns], [t for t in terms if time not in t.columns]


def _texts(terms: Sequence[Expression]) -> list[str]:
    return sorted(one.canonical for one in terms)
