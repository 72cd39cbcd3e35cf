"""No search of a grammar: a few kernels that forecast series well."""

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial, reduce
from operator import add, mul
from typing import ClassVar, NamedTuple

import numpy as np

from autokernel.evidence import Estimate
from autokernel.expression import Expression, Leaf, Tree, arranged
from autokernel.kernels import ADD, RETURNING, Seasonal
from autokernel.search.design import kernels_of_series
from autokernel.search.history import History
from autokernel.search.strategy import Strategy, Task

MIN_GAIN = 0.5  # nats that another effect is expected to gain


class SeriesKernels(Strategy):
    """Fit the few kernels that forecast a series well, and average over them.

    They are a random walk with a damped or a straight trend, and a line with a level that returns
    to it, each without and with the known seasons, on each scale of the target. With several
    seasons, the shortest one may also change, in the best kernel. Nothing else is searched or
    pruned, because kernels that extrapolate well often have less evidence than simpler ones. For
    the same reason evidence decides on half of the weights only: the other half is equal for walks
    and returning levels on each scale that is near the best or straighter. Quantiles,
    densities and draws have heavy tails, for levels that break; means and deviations do not.

    Other columns next to time have effects, which are added: a straight line, or a constant for
    each level. From the best kernel, effects are dropped, bent, or taken on another scale, all
    together or one after the other, as long as the score is expected to rise; seasons may be
    dropped too. Then the effects of categories are joined, and the best effects are fitted with the
    other kernels along time. If levels of categories are groups with a series each, groups have
    levels, trends and seasons in common, and deviate from them.
    """

    is_of_series: ClassVar[bool] = True

    def design(self, task: Task, *, rng: np.random.Generator) -> tuple[Expression, ...]:
        found = kernels_of_series(task.grammar, *task.series)
        if task.series.time is None and task.grammar.columns:
            raise ValueError(
                "strategy='series' needs a column of time: one of dates, or one of numbers at "
                f"equal steps; {len(task.grammar.columns)} columns vary, and none is: convert it "
                "to dates, name columns of whole numbers that stand for groups in "
                "categorical_features, or choose another strategy"
            )
        if not found and not task.start:
            raise ValueError(
                "strategy='series' needs sums of the base kernels RW, IOU, LIN and MAT12: "
                "base_kernels='auto' has them, operators must have '+', max_leaves be 2 or more, "
                "and the column of time be on its own scale"
            )
        first = {one.target: one for one in reversed(found)}.values()
        return tuple(reversed(first)) if len(task.grammar.columns) > 1 else tuple(found)

    def propose(
        self, task: Task, history: History, *, n_proposals: int, rng: np.random.Generator
    ) -> Sequence[Estimate]:
        best, (time, groups) = history.best, task.series
        if best is None or not best.expression.leaves:
            return []
        known, target = history.canonical_texts(), best.expression.target
        of = partial(_Parts.of, time=time)
        parts = of(best.expression)

        def estimate(parts: _Parts) -> Estimate:
            terms = (*parts.along, *parts.seasons, *parts.effects)
            return Estimate(arranged(task.grammar.tidy(reduce(add, terms).on(target))))

        def new(found: Sequence[Estimate]) -> list[Estimate]:
            others = (one for one in found if one.expression.canonical not in known)
            return [one for one in others if task.grammar.spans(one.expression)][:n_proposals]

        if len(task.grammar.columns) < 2:
            return new([estimate(one) for one in parts.with_changing_season()])
        texts = {t for t, one in task.near(best.expression).items() if parts.may_become(of(one))}
        better = [one for one in task.neighbours(best, texts) if one.score > best.score + MIN_GAIN]
        found = [one for one in better if parts.may_become(of(one.expression))]
        if len(found) > 1:
            found.insert(0, estimate(parts.changed([of(one.expression) for one in found])))
        if not found:  # then categories together, and the best effects with other kernels of time
            every = kernels_of_series(task.grammar, time, groups)
            sums = [of(one).along for one in every if one.target == target]
            found = [estimate(parts._replace(effects=_with_joint_categories(parts.effects)))]
            found += [estimate(parts._replace(along=one)) for one in sums]
        return new(found)


class _Parts(NamedTuple):
    along: list[Tree]  # along time, without the seasons
    seasons: list[Tree]
    effects: list[Tree]  # of other columns

    @classmethod
    def of(cls, kernel: Expression, time: int | None) -> "_Parts":
        parts = cls([], [], [])
        for term in kernel.terms(ADD):
            is_season = any(isinstance(leaf.kernel, Seasonal) for leaf in term.leaves)
            parts[2 if time not in term.columns else 1 if is_season else 0].append(term)
        return parts

    def with_changing_season(self) -> Iterator["_Parts"]:
        """Yield the parts with returning deviations of the shortest of several steady seasons."""
        leaves = [one for term in self.seasons for one in term.leaves]
        periods = {one.kernel.period: one for one in leaves if isinstance(one.kernel, Seasonal)}
        if 1 < len(periods) == len(leaves):
            shortest = periods[min(periods)]
            seasons = [*self.seasons, shortest * Leaf(RETURNING, shortest.column)]
            yield self._replace(seasons=seasons)

    def may_become(self, other: "_Parts") -> bool:
        """Whether a kernel differs in effects and seasons only.

        Each column has one effect, besides that of several columns together, and neither seasons
        nor columns together become more.
        """
        single = [one.columns for one in other.effects if one.n_leaves == 1]
        known = [one.columns for one in self.effects if one.n_leaves > 1]
        joint = [one for one in other.effects if one.n_leaves > 1]
        return (
            Counter(self.along) == Counter(other.along)
            and Counter(other.seasons) <= Counter(self.seasons)
            and len(set(single)) == len(single)
            and len(joint) <= len(known)
            and all(len(one.columns) == one.n_leaves for one in joint)
            and all(any(one.columns <= old for old in known) for one in joint)
        )

    def changed(self, others: Sequence["_Parts"]) -> "_Parts":
        """Make all changes; the first one counts where several are of the same columns."""
        seasons = [one for one in self.seasons if all(one in other.seasons for other in others)]
        old = {one.columns: one for one in self.effects}
        found = dict(old)
        for other in reversed(others):
            new = {one.columns: one for one in other.effects}
            for columns in old.keys() | new.keys():
                if old.get(columns) != new.get(columns):
                    found.pop(columns, None)
                    found |= {columns: new[columns]} if columns in new else {}
        return _Parts(self.along, seasons, list(found.values()))


def _with_joint_categories(effects: Sequence[Tree]) -> list[Tree]:
    """List the effects, those of all categories together."""
    categories = [one for one in effects if all(leaf.kernel.is_categorical for leaf in one.leaves)]
    others = [one for one in effects if one not in categories]
    return [*([reduce(mul, categories)] if categories else []), *others]
