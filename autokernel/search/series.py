"""No search: a few kernels that forecast series well."""

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from autokernel.expression import Expression
from autokernel.search.design import kernels_of_series
from autokernel.search.strategy import Preset, Strategy, Task


class SeriesKernels(Strategy):
    """Fit the few kernels that forecast a series well, and average over them.

    They are a random walk with a damped or a straight trend, and a line with a level that returns
    to it, each without and with the known seasons, on each scale of the target. Nothing is searched
    or pruned, because kernels that extrapolate well often have less evidence than simpler ones. For
    the same reason evidence decides on half of the weights only: the other half is equal for walks
    and returning levels on each scale. Quantiles, densities and draws have heavy tails, for levels
    that break; means and deviations do not.
    """

    preset: ClassVar[Preset] = Preset(
        explores=False,
        prices_structure=False,
        has_series_kernels=True,
        has_all_scales=True,
        judges_outliers_by_series=True,
        learns_tails=False,
        equal_share=0.5,
    )

    def design(self, task: Task, *, rng: np.random.Generator) -> tuple[Expression, ...]:  # noqa: ARG002 - nothing is drawn
        n_columns = len(task.grammar.columns)
        if n_columns > 1:
            raise ValueError(
                f"strategy='series' forecasts along one column, got {n_columns} that vary: choose "
                "one, or another strategy"
            )
        found = kernels_of_series(task.grammar)
        if not found and not task.start:
            raise ValueError(
                "strategy='series' needs sums of the base kernels RW, IOU, LIN and MAT12: "
                "base_kernels='auto' has them, operators must have '+', and max_leaves be 2 or more"
            )
        return tuple(found)

    def propose(self, *_: object, **_settings: object) -> Sequence[Expression]:
        return []
