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
from autokernel.explain import Description, Interaction
from autokernel.expression import IDENTITY
from autokernel.typing import FloatArray, IntArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_N_POINTS, _N_SURFACE = 600, 40
_WIDTH, _HEIGHT = 7.0, 2.8  # inches of a panel
_TWO_SIDED = 1.96
MAX_LEVELS = 10  # of a category, for which there are curves


@dataclass(frozen=True, slots=True, eq=False)  # eq=False: the fields hold arrays
class Panel:
    """An effect of one column, or the common effect of two, or of the levels of a category."""

    title: str  # the component in words
    names: Sequence[str]  # of the columns, one or two
    axes: Sequence[npt.NDArray[Any]]  # values along each column, in its units, or datetime64
    mean: FloatArray  # on the scale of the target, the difference from the average over the rows
    std: FloatArray  # of this difference, zero for two columns
    is_log: Sequence[bool]  # whether the axis of a column is logarithmic
    levels: Sequence[str] = ()  # of the first column, if it is a category


class DecompositionDisplay:
    """One panel for each component, with its sentence as the title.

    An effect of one column is a curve with a band of 95 %, on average over the rows; one of a
    category has a point for each of its ten most frequent levels, the lowest first. The common
    effect of two columns that interact is a surface, or a curve for each level. Components of a
    target on the log scale are shown as factors. Use :meth:`from_estimator` to make
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
    axes_, figure_ : ndarray of matplotlib.axes.Axes, matplotlib.figure.Figure
        Axes of the panels, and the figure, of the last plot.
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
        numbers = [one for one in description.shown if description.share(one) >= least_share]
        panels = [_panel_of(description, number) for number in numbers]
        if not panels:
            what = "the best kernel is noise alone, or least_share is too high"
            raise ValueError(f"there is no component to show: {what}")
        y_name = y_name or literal(estimator.target_name_ or "y")
        return cls(panels, y_name=y_name, scale=description.scale).plot(axes)

    @classmethod
    def of_component(cls, description: Description, number: int, *, y_name: str) -> Self:
        """Plot one component without a title, for a page that shows its text."""
        panels = [_panel_of(description, number, is_titled=False)]
        return cls(panels, y_name=y_name, scale=description.scale).plot()

    def plot(self, axes: "Sequence[Axes] | None" = None) -> Self:
        """Draw on axes, or on a new figure, and return the display."""
        n = len(self.panels)
        axes = axes if axes is not None else new_axes(n, size=(_WIDTH, _HEIGHT * n))
        if len(axes) != n:
            raise ValueError(f"axes must be {n}, one a component, got {len(axes)}")
        for panel, ax in zip(self.panels, axes, strict=True):
            draws = (self._points, self._curves) if panel.levels else (self._curve, self._surface)
            if len(panel.axes) == 1 or panel.levels:
                clear_frame(ax)
            draws[len(panel.axes) - 1](panel, ax)
            spec, width = ax.get_subplotspec(), figure_of(ax).get_figwidth()
            if spec is not None:
                width /= spec.get_gridspec().ncols
            ax.set_title(wrapped(panel.title, width), loc="left", fontsize="medium")
        self.axes_ = np.array(axes, dtype=object)
        self.figure_ = figure_of(axes[0])
        return self

    def _curve(self, panel: Panel, ax: "Axes") -> None:
        (x,), half = panel.axes, _TWO_SIDED * panel.std
        low, high = self._shown(panel.mean - half), self._shown(panel.mean + half)
        ax.fill_between(x, low, high, color=BLUE, alpha=WIDE, linewidth=0)
        ax.plot(x, self._shown(panel.mean), color=BLUE, linewidth=1.5)
        ax.margins(x=0.01)
        self._finish(ax, "x", panel, 0)
        self._finish_target(ax, np.array([low.min(), high.max()]))

    def _points(self, panel: Panel, ax: "Axes") -> None:
        half, places = _TWO_SIDED * panel.std, np.arange(len(panel.levels))
        mean = self._shown(panel.mean)
        low, high = self._shown(panel.mean - half), self._shown(panel.mean + half)
        ax.errorbar(places, mean, [mean - low, high - mean], fmt="o", color=BLUE, capsize=3)
        ax.set_xticks(places, list(map(literal, panel.levels)))
        ax.margins(x=0.1)
        ax.set(xlabel=literal(panel.names[0]))
        self._finish_target(ax, np.array([low.min(), high.max()]))

    def _curves(self, panel: Panel, ax: "Axes") -> None:
        styles = product(("-", "--"), LEVEL_COLOURS)
        for level, mean, (line, colour) in zip(panel.levels, panel.mean, styles, strict=False):
            y = self._shown(mean)
            ax.plot(panel.axes[1], y, color=colour, linestyle=line, label=literal(level))
        ax.margins(x=0.01)
        self._finish(ax, "x", panel, 1)
        self._finish_target(ax, self._shown(panel.mean))
        where: dict[str, Any] = {"loc": "center left", "bbox_to_anchor": (1.0, 0.5)}
        ax.legend(title=literal(panel.names[0]), frameon=False, **where)

    def _surface(self, panel: Panel, ax: "Axes") -> None:
        (first, second), values = panel.axes, self._shown(panel.mean.T)
        norm = "log" if self.scale == "log" else "linear"
        image = ax.pcolormesh(
            first, second, values, cmap="cividis", norm=norm, shading="gouraud", rasterized=True
        )
        bar = figure_of(ax).colorbar(image, ax=ax)
        self._finish_target(bar.ax, values)
        ax.contour(first, second, panel.mean.T, colors="white", linewidths=0.6, alpha=0.7)
        for number, which in enumerate("xy"):
            self._finish(ax, which, panel, number)

    @staticmethod
    def _finish(ax: "Axes", which: str, panel: Panel, number: int) -> None:
        if panel.is_log[number] and panel.axes[number].dtype.kind != "M":
            log_axis(ax, which, panel.axes[number])
        elif which == "x":
            round_ticks(ax, panel.axes[number])
        ax.set(**{f"{which}label": literal(panel.names[number])})

    def _finish_target(self, ax: "Axes", values: FloatArray) -> None:
        """Label the axis along y for the target, with ticks on its scale."""
        if self.scale == "log":
            log_axis(ax, "y", values)
        labels = {IDENTITY: self.y_name, "log": "factor"}
        ax.set(ylabel=labels.get(self.scale, f"{self.scale} of {self.y_name}"))

    def _shown(self, values: FloatArray) -> FloatArray:
        """Return factors from their logs, and other values as they are."""
        return np.exp(values) if self.scale == "log" else values


def _panel_of(description: Description, number: int, *, is_titled: bool = True) -> Panel:
    """Compute a component, or the common effect of two columns that interact."""
    n, title = len(description.parts), description.text(number) if is_titled else ""
    if number < n:
        return _panel(description, number, title)
    return _panel_of_pair(description, description.interactions[number - n], title)


def _panel(description: Description, number: int, title: str) -> Panel:
    """Compute a component along its column, a category at its most frequent levels."""
    part = description.parts[number]
    axis = description.axes[part.column]
    values, mean, std = description.along(number, _N_POINTS)
    levels: list[str] = []
    if part.is_of_levels:
        kept = _frequent(description.explained.X[:, part.column])
        kept = kept[np.argsort(mean[kept], kind="stable")]
        mean, std, values = mean[kept] - mean.mean(), std[kept], values[kept]
        levels = list(map(axis.level, values))
    is_log = [part.scale == "log"]
    return Panel(title, [axis.name], [axis.shown(values)], mean, std, is_log, levels)


def _panel_of_pair(description: Description, pair: Interaction, title: str) -> Panel:
    """Compute the common effect of two columns, a category first, at its most frequent levels."""
    categories = [column for column in pair.columns if description.axes[column].levels]
    columns = sorted(pair.columns, key=lambda column: column not in categories)
    axes = [description.axes[column] for column in columns]
    parts = [next(p for p in description.parts if p.column == column) for column in columns]
    values = [description.explained.steps(part, _N_SURFACE) for part in parts]
    levels: list[str] = []
    for place, column in enumerate(columns):
        if column in categories:
            x = description.explained.X[:, column]
            values[place] = np.unique(x)[_frequent(x)]
    grid = np.meshgrid(*values, indexing="ij")
    points = np.column_stack([one.ravel() for one in grid])
    mean = description.explained.both(columns, points).reshape(grid[0].shape)
    units = [axis.low + axis.extent * one for axis, one in zip(axes, values, strict=True)]
    if categories:
        levels = list(map(axes[0].level, units[0]))
    shown = [axis.shown(one) for axis, one in zip(axes, units, strict=True)]
    names, is_log = [axis.name for axis in axes], [part.scale == "log" for part in parts]
    title = title and f"{title.split(':')[0].removesuffix('.')}."  # the picture shows the rest
    return Panel(title, names, shown, mean, np.zeros_like(mean), is_log, levels)


def _frequent(x: FloatArray) -> IntArray:
    _, counts = np.unique(x, return_counts=True)
    return np.sort(np.argsort(-counts, kind="stable")[:MAX_LEVELS])
