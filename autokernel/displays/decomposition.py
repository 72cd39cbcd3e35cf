"""The components of a fitted function, one panel for each."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from autokernel.displays._style import (
    BLUE,
    LEVEL_COLOURS,
    WIDE,
    clear_frame,
    figure_of,
    literal,
    log_axis,
    new_axes,
    round_ticks,
    wrapped,
)
from autokernel.estimator import AutoKernelGPRegressor
from autokernel.explain import Description
from autokernel.expression import IDENTITY
from autokernel.typing import FloatArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_N_POINTS, _N_SURFACE = 600, 40
_WIDTH, _HEIGHT = 7.0, 2.8  # inches of a panel
_TWO_SIDED = 1.96
MAX_LEVELS = 10  # of a category, for which there are curves


@dataclass(frozen=True, slots=True, eq=False)  # eq=False: the fields hold arrays
class Panel:
    """A component along one column, or along two, or at each level of a category.

    Attributes
    ----------
    title : str
        The component in words.
    names : sequence of str
        Names of the columns, one or two.
    axes : sequence of ndarray
        Values along each column, in its units, or datetime64.
    mean, std : ndarray of shape (n_points,) or (n_first, n_second)
        Mean of the component on the scale of the target, all other columns at their medians, and
        standard deviation of its difference from the average along the curve: components can
        exchange a constant.
    is_log : sequence of bool
        For each column, whether its axis is logarithmic.
    levels : sequence of str
        Levels of the first column, of which there is a point or a curve for each; empty for a
        column of numbers.
    """

    title: str
    names: Sequence[str]
    axes: Sequence[npt.NDArray[Any]]
    mean: FloatArray
    std: FloatArray
    is_log: Sequence[bool]
    levels: Sequence[str] = ()


class DecompositionDisplay:
    """One panel for each component, with its sentence as the title.

    A component of one column is a curve with a band of 95 %. One of several columns is shown as a
    surface over the two along which it changes the most, with the others at their medians. One of
    a category has a point for each of its levels, or a curve for each of the ten most frequent
    ones.
    Components of a target on the log scale are shown as factors. Use :meth:`from_estimator` to make
    a display.

    Parameters
    ----------
    panels : sequence of Panel
        What to draw.
    y_name : str
        Label of the target.
    scale : str, default="identity"
        Scale of the target on which the components are.

    Attributes
    ----------
    axes_ : ndarray of matplotlib.axes.Axes
        Axes of the panels of the last plot.
    figure_ : matplotlib.figure.Figure
        Figure of the last plot.
    """

    def __init__(
        self, panels: Sequence[Panel], *, y_name: str = "y", scale: str = IDENTITY
    ) -> None:
        self.panels, self.y_name, self.scale = list(panels), y_name, scale

    @classmethod
    def from_estimator(
        cls,
        estimator: AutoKernelGPRegressor,
        *,
        units: Mapping[str, str] | None = None,
        y_name: str | None = None,
        least_share: float = 0.0,
        axes: "Sequence[Axes] | None" = None,
    ) -> Self:
        """Decompose the fitted function and plot its components.

        Parameters
        ----------
        estimator : AutoKernelGPRegressor
            A fitted estimator.
        units : mapping of str to str, default=None
            Units, as for ``estimator.describe``.
        y_name : str, default=None
            Label of the target; None for its name, or ``"y"`` if it has none.
        least_share : float, default=0.0
            Share of the variance below which a component is left out.
        axes : sequence of matplotlib.axes.Axes, default=None
            Axes to draw on, one for each component; None for those of a new figure.
        """
        check_is_fitted(estimator, "best_kernel_")
        description = estimator._description(units)
        shares = description.explained.shares()[:-1]
        panels = [
            _panel(description, number, description.text(number))
            for number, share in enumerate(shares)
            if abs(share) >= least_share
        ]
        if not panels:
            raise ValueError(
                "there is no component to show: the best kernel is noise alone, or least_share is "
                "too high"
            )
        y_name = y_name or literal(estimator.target_name_ or "y")
        return cls(panels, y_name=y_name, scale=description.scale).plot(axes)

    @classmethod
    def of_component(cls, description: Description, number: int, *, y_name: str) -> Self:
        """Plot one component without a title, for a page that shows its text."""
        panels = [_panel(description, number, "")]
        return cls(panels, y_name=y_name, scale=description.scale).plot()

    def plot(self, axes: "Sequence[Axes] | None" = None) -> Self:
        """Draw on axes, or on a new figure, and return the display."""
        n = len(self.panels)
        axes = axes if axes is not None else new_axes(n, size=(_WIDTH, _HEIGHT * n))
        if len(axes) != len(self.panels):
            raise ValueError(f"axes must be {len(self.panels)}, one a component, got {len(axes)}")
        for panel, ax in zip(self.panels, axes, strict=True):
            draw = self._curve if len(panel.axes) == 1 else self._surface
            if panel.levels:
                draw = self._points if len(panel.axes) == 1 else self._curves
            draw(panel, ax)
            spec, width = ax.get_subplotspec(), figure_of(ax).get_figwidth()
            if spec is not None:
                width /= spec.get_gridspec().ncols
            ax.set_title(wrapped(panel.title, width), loc="left", fontsize="medium")
        self.axes_ = np.array(axes, dtype=object)
        self.figure_ = figure_of(axes[0])
        return self

    def _curve(self, panel: Panel, ax: "Axes") -> None:
        clear_frame(ax)
        (x,), half = panel.axes, _TWO_SIDED * panel.std
        low, high = self._shown(panel.mean - half), self._shown(panel.mean + half)
        ax.fill_between(x, low, high, color=BLUE, alpha=WIDE, linewidth=0)
        ax.plot(x, self._shown(panel.mean), color=BLUE, linewidth=1.5)
        ax.margins(x=0.01)
        self._scale_columns(panel, ax)
        if not panel.is_log[0]:
            round_ticks(ax, x)
        if self.scale == "log":
            log_axis(ax, "y", np.array([low.min(), high.max()]))
        ax.set(xlabel=literal(panel.names[0]), ylabel=self._label)

    def _points(self, panel: Panel, ax: "Axes") -> None:
        clear_frame(ax)
        half, places = _TWO_SIDED * panel.std, np.arange(len(panel.levels))
        mean = self._shown(panel.mean)
        low, high = self._shown(panel.mean - half), self._shown(panel.mean + half)
        ax.errorbar(places, mean, [mean - low, high - mean], fmt="o", color=BLUE, capsize=3)
        ax.set_xticks(places, [literal(level) for level in panel.levels])
        ax.margins(x=0.1)
        if self.scale == "log":
            log_axis(ax, "y", np.array([low.min(), high.max()]))
        ax.set(xlabel=literal(panel.names[0]), ylabel=self._label)

    def _curves(self, panel: Panel, ax: "Axes") -> None:
        clear_frame(ax)
        _, x = panel.axes
        styles = product(("-", "--"), LEVEL_COLOURS)
        for level, mean, (line, colour) in zip(panel.levels, panel.mean, styles, strict=False):
            ax.plot(x, self._shown(mean), color=colour, linestyle=line, label=literal(level))
        ax.margins(x=0.01)
        if panel.is_log[1]:
            log_axis(ax, "x", x)
        else:
            round_ticks(ax, x)
        if self.scale == "log":
            log_axis(ax, "y", self._shown(panel.mean))
        ax.set(xlabel=literal(panel.names[1]), ylabel=self._label)
        ax.legend(
            title=literal(panel.names[0]),
            frameon=False,
            loc="center left",
            bbox_to_anchor=(1.0, 0.5),
        )

    def _surface(self, panel: Panel, ax: "Axes") -> None:
        (first, second), values = panel.axes, self._shown(panel.mean.T)
        norm = "log" if self.scale == "log" else "linear"
        image = ax.pcolormesh(
            first, second, values, cmap="cividis", norm=norm, shading="gouraud", rasterized=True
        )
        bar = figure_of(ax).colorbar(image, ax=ax, label=self._label)
        if self.scale == "log":
            log_axis(bar.ax, "y", values)
        ax.contour(first, second, panel.mean.T, colors="white", linewidths=0.6, alpha=0.7)
        self._scale_columns(panel, ax)
        ax.set(xlabel=literal(panel.names[0]), ylabel=literal(panel.names[1]))

    def _shown(self, values: FloatArray) -> FloatArray:
        """Return factors from their logs, and other values as they are."""
        return np.exp(values) if self.scale == "log" else values

    @property
    def _label(self) -> str:
        """The label of what is shown."""
        labels = {IDENTITY: self.y_name, "log": "factor"}
        return labels.get(self.scale, f"{self.scale} of {self.y_name}")

    @staticmethod
    def _scale_columns(panel: Panel, ax: "Axes") -> None:
        for which, is_log, values in zip("xy", panel.is_log, panel.axes, strict=False):
            if is_log:
                log_axis(ax, which, values)


def _panel(description: Description, number: int, title: str) -> Panel:
    """Compute a component along its column, or along the two that change it the most.

    A component of categories is computed at their levels, the most frequent ones.
    """
    part, axes = description.parts[number], description.axes
    if len(part.along) > 1 and not part.groups:
        title = f"{title.split(':')[0].removesuffix('.')}." if title else ""  # not each effect
    columns = _shown_columns(description, number)
    n_points = _N_SURFACE if len(columns) == 2 and not part.groups else _N_POINTS
    values, mean, std = description.along(number, columns, n_points)
    levels: list[str] = []
    if part.groups:
        mean = mean - mean.mean() if len(columns) == 1 else mean  # levels are around their average
        _, counts = np.unique(description.explained.X[:, columns[0]], return_counts=True)
        kept = np.sort(np.argsort(-counts, kind="stable")[:MAX_LEVELS])
        mean, std, values[0] = mean[kept], std[kept], values[0][kept]
        known = axes[columns[0]].levels
        levels = [known[round(one)] if known else f"{one:.6g}" for one in values[0]]
    return Panel(
        title,
        [axes[column].name for column in columns],
        [axes[column].shown(one) for column, one in zip(columns, values, strict=True)],
        mean,
        std,
        [part.scale(c) == "log" and axes[c].origin is None for c in columns],
        levels,
    )


def _shown_columns(description: Description, number: int) -> list[int]:
    """Choose the columns along which a component is shown: a category first, if it has one."""
    part = description.parts[number]
    ranges = {c: np.ptp(description.along(number, [c], _N_SURFACE)[1]) for c in part.columns}
    by_range = sorted(ranges, key=lambda column: -ranges[column])
    if not part.groups:
        return sorted(by_range[:2])
    group = next(column for column in by_range if column in part.groups)
    return [group, *(column for column in by_range if column in part.along)][:2]
