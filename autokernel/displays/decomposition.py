"""The components of a fitted function, one panel for each."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from autokernel.displays._style import (
    BLUE,
    WIDE,
    clear_frame,
    figure_of,
    literal,
    new_axes,
    round_ticks,
    wrapped,
)
from autokernel.estimator import AutoKernelGPRegressor
from autokernel.explain import Description
from autokernel.typing import FloatArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_N_POINTS, _N_SURFACE = 600, 40
_WIDTH, _HEIGHT = 7.0, 2.8  # inches of a panel
_TWO_SIDED = 1.96


@dataclass(frozen=True, slots=True, eq=False)  # eq=False: the fields hold arrays
class Panel:
    """A component along one column, or along two.

    Attributes
    ----------
    title : str
        The component in words.
    names : sequence of str
        Names of the columns, one or two.
    axes : sequence of ndarray
        Values along each column, in its units, or datetime64.
    mean, std : ndarray of shape (n_points,) or (n_first, n_second)
        Mean of the component, all other columns at their medians, and standard deviation of its
        difference from the average along the curve: components can exchange a constant.
    """

    title: str
    names: Sequence[str]
    axes: Sequence[npt.NDArray[Any]]
    mean: FloatArray
    std: FloatArray


class DecompositionDisplay:
    """One panel for each component, with its sentence as the title.

    A component of one column is a curve with a band of 95 %. One of several columns is shown as a
    surface over the two along which it changes the most, with the others at their medians. Use
    :meth:`from_estimator` to make one.

    Parameters
    ----------
    panels : sequence of Panel
        What to draw.
    y_name : str
        Label of the target.

    Attributes
    ----------
    axes_ : ndarray of matplotlib.axes.Axes
        Axes of the panels of the last plot.
    figure_ : matplotlib.figure.Figure
        Figure of the last plot.
    """

    def __init__(self, panels: Sequence[Panel], *, y_name: str = "y") -> None:
        self.panels, self.y_name = list(panels), y_name

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
        panels = [
            _panel(description, number, text)
            for number, (share, text) in enumerate(description.texts())
            if abs(share) >= least_share
        ]
        if not panels:
            raise ValueError(
                "there is no component to show: the best kernel is noise alone, or least_share is "
                "too high"
            )
        return cls(panels, y_name=y_name or literal(estimator.target_name_ or "y")).plot(axes)

    @classmethod
    def of_component(cls, description: Description, number: int, *, y_name: str) -> Self:
        """Plot one component without a title, for a page that shows its text."""
        return cls([_panel(description, number, "")], y_name=y_name).plot()

    def plot(self, axes: "Sequence[Axes] | None" = None) -> Self:
        """Draw on axes, or on a new figure, and return the display."""
        n = len(self.panels)
        axes = axes if axes is not None else new_axes(n, size=(_WIDTH, _HEIGHT * n))
        if len(axes) != len(self.panels):
            raise ValueError(f"axes must be {len(self.panels)}, one a component, got {len(axes)}")
        for panel, ax in zip(self.panels, axes, strict=True):
            draw = self._curve if len(panel.axes) == 1 else self._surface
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
        ax.fill_between(
            x, panel.mean - half, panel.mean + half, color=BLUE, alpha=WIDE, linewidth=0
        )
        ax.plot(x, panel.mean, color=BLUE, linewidth=1.5)
        ax.margins(x=0.01)
        round_ticks(ax, x)
        ax.set(xlabel=literal(panel.names[0]), ylabel=self.y_name)

    def _surface(self, panel: Panel, ax: "Axes") -> None:
        first, second = panel.axes
        image = ax.pcolormesh(
            first, second, panel.mean.T, cmap="cividis", shading="gouraud", rasterized=True
        )
        figure_of(ax).colorbar(image, ax=ax, label=self.y_name)
        ax.contour(first, second, panel.mean.T, colors="white", linewidths=0.6, alpha=0.7)
        ax.set(xlabel=literal(panel.names[0]), ylabel=literal(panel.names[1]))


def _panel(description: Description, number: int, title: str) -> Panel:
    """Compute a component along its column, or along the two that change it the most."""
    columns = description.columns_of(number)
    if len(columns) > 1:
        what, colon, _ = title.partition(":")  # without the effects of each column
        title = f"{what}." if colon else title
    if len(columns) > 2:
        ranges = [np.ptp(description.along(number, [c], _N_SURFACE)[1]) for c in columns]
        columns = sorted(columns[i] for i in np.argsort(ranges)[-2:])
    n_points = _N_POINTS if len(columns) == 1 else _N_SURFACE
    axes, mean, std = description.along(number, columns, n_points)
    shown = [
        description.axes[column].shown(values) for column, values in zip(columns, axes, strict=True)
    ]
    return Panel(title, [description.names[column] for column in columns], shown, mean, std)
