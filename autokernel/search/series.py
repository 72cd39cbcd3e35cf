"""No search of a grammar: a few kernels that forecast series well."""

from collections.abc import Sequence
from functools import reduce
from operator import add
from typing import ClassVar

import numpy as np

from autokernel.evidence import Estimate
from autokernel.expression import IDENTITY, Expression, arrange
from autokernel.kernels import ADD
from autokernel.search.design import kernels_of_series
from autokernel.search.history import History
from autokernel.search.strategy import Preset, Strategy, Task

MIN_GAIN = 0.5  # nats that another effect is expected to gain


class SeriesKernels(Strategy):
    """Fit the few kernels that forecast a series well, and average over them.

    They are a random walk with a damped trend, and a line with a level that returns to it, each
    without and with the known seasons, on each scale of the target. Nothing is searched or pruned,
    because kernels that extrapolate well often have less evidence than simpler ones. Quantiles,
    densities and draws have heavy tails, for levels that break; means and deviations do not.

    Other columns next to that of time have effects, which are added: a straight line, or a constant
    for each level. From the best kernel, effects are left out, bent, or taken on another scale, all
    together or one after the other, as long as the score is expected to rise. The best effects are
    then fitted with the other kernels along time. Where levels of categories are groups with a
    series each, groups have levels, trends and seasons in common, and their own.
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
        has_effects = len(task.grammar.columns) > 1
        first = {one.target: one for one in reversed(found)}.values()
        return tuple(reversed(first)) if has_effects else tuple(found)

    def propose(
        self,
        task: Task,
        history: History,
        *,
        n_proposals: int,
        rng: np.random.Generator,  # noqa: ARG002 - nothing is drawn
    ) -> Sequence[Estimate]:
        best, time = history.best, task.series[0]
        if len(task.grammar.columns) < 2 or best is None or not best.expression.leaves:
            return []
        known, target = history.canonical_texts(), best.expression.target
        of_time, effects = _split(best.expression, time)

        def has_other_effects(kernel: Expression) -> bool:
            terms, others = _split(kernel, time)
            n_columns = len({column for one in others for column in one.columns})
            are_of_columns = n_columns == len(others) == sum(one.n_leaves for one in others)
            return are_of_columns and _texts(terms) == _texts(of_time)

        near = task.near(best.expression).items()
        changes = task.neighbours(best, {text for text, one in near if has_other_effects(one)})
        better = [
            one
            for one in changes
            if one.score > best.score + MIN_GAIN and has_other_effects(one.expression)
        ]
        together = [_split(one.expression, time)[1] for one in better]

        def estimate(*terms: Expression) -> Estimate:
            return Estimate(arrange(task.grammar.tidy(reduce(add, terms).on(target)))[0])

        joint = estimate(*of_time, *_all_changes(effects, together))
        found = [joint] * (len(better) > 1) + better
        if not found:  # then the best effects with the other kernels along time
            every = kernels_of_series(task.grammar, *task.series)
            sums = [_split(one, time)[0] for one in every if one.target == target]
            found = [estimate(*one, *effects) for one in sums]
        return [one for one in found if one.expression.canonical not in known][:n_proposals]


def _split(kernel: Expression, time: int | None) -> tuple[list[Expression], list[Expression]]:
    """Split the terms of a sum into those along the column of time and others."""
    terms = kernel.on(IDENTITY).terms(ADD)
    return [t for t in terms if time in t.columns], [t for t in terms if time not in t.columns]


def _all_changes(
    effects: Sequence[Expression], changed: Sequence[Sequence[Expression]]
) -> list[Expression]:
    """Change the effect of each column as the first of the changes that differ in it."""
    found = {one.columns: one for one in effects}
    old, done = dict(found), set[frozenset[int]]()
    for others in changed:
        new = {one.columns: one for one in others}
        for columns in old.keys() | new.keys():
            if old.get(columns) != new.get(columns) and columns not in done:
                done.add(columns)
                found.pop(columns, None)
                found |= {columns: new[columns]} if columns in new else {}
    return list(found.values())


def _texts(terms: Sequence[Expression]) -> list[str]:
    return sorted(one.canonical for one in terms)
