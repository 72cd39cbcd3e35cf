"""The effects that a fitted function adds up, one panel for each."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from textwrap import fill
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt
from scipy.spatial import KDTree

from autokernel.displays import _style as style
from autokernel.displays._style import BLUE, DATA, literal
from autokernel.estimator import AutoKernelGPRegressor
from autokernel.explain import Description
from autokernel.explain.decomposition import Interaction
from autokernel.explain.effects import effect_of
from autokernel.explain.parts import Part
from autokernel.expression import IDENTITY
from autokernel.typing import BoolArray, FloatArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# values of a column of numbers that count as levels; levels, and steps, that are drawn
_LIMITS, _LIMITS_OF_PAIR = (2, 40, 600), (5, 10, 60)
QUANTILES = (0.1, 0.5, 0.9)  # of a column, at which curves along dates are drawn
N_CYCLES = 6  # of a season, of more of which two are drawn


@dataclass(frozen=True, slots=True, eq=False)  # eq=False: the fields hold arrays
class Panel:
    """The effect of one column, or the common effect of two, in units of the target or factors."""

    title: str  # the effect in words
    share: float  # of the variance
    names: Sequence[str]  # of the columns, one or two, those with levels first
    axes: Sequence[npt.NDArray[Any]]  # values along each: numbers, datetime64, or names of levels
    is_log: Sequence[bool]  # whether the axis of a column is logarithmic
    mean: FloatArray  # (n,) or (n, m), the difference from the average over the rows, or its factor
    band: FloatArray  # (2, n), ends of 95 % of this difference; (0, n, m) for two columns
    rows: Sequence[npt.NDArray[Any]]  # of some rows: the values of each column, or places of levels
    residuals: FloatArray  # (n_rows,), the effect plus the residual at each of them, or none
    is_excluded: BoolArray  # (n_rows,), whether a row is excluded as an outlier

    @property
    def n_with_levels(self) -> int:
        """How many of its columns have levels."""
        return sum(values.dtype == object for values in self.axes)


class EffectsDisplay:
    """One panel for each effect, with its share and what it does in the title.

    An effect of one column is a curve with a band of 95 %, on average over the rows; that of a
    category has a point for each level, the highest above, or as its type orders them; numbers are
    in their order. Of a season of many cycles the last two are drawn. The common effect of two
    columns that interact is a map, or has a curve for each level; along dates there are curves for
    three values of a column of numbers. All have a mean of zero over the rows, in units of the
    target; on the log scale of the target they are factors. A partial residual is the effect plus
    the residual of a row. Marks at the bottom are the rows. Use :meth:`from_estimator` to make one.

    Parameters
    ----------
    panels : sequence of Panel
        What to draw.
    y_name : str
        Label of the target.
    scale : str, default="identity"
        Scale of the target on which the effects add up.

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
        partial_residuals: bool = True,
        axes: "Sequence[Axes] | None" = None,
    ) -> Self:
        """Compute the effects of a fitted function and plot them.

        Parameters
        ----------
        estimator : AutoKernelGPRegressor
            A fitted estimator.
        units : mapping of str to str, default=None
            Units, as for ``estimator.describe``.
        y_name : str, default=None
            Label of the target; None for its name, or ``"y"`` if it has none.
        least_share : float, default=0.0
            Share of the variance, of either sign, below which an effect is omitted.
        partial_residuals : bool, default=True
            Whether to draw the partial residuals of at most 500 rows. Rows that are excluded as
            outliers are crosses, those far off at the edge.
        axes : sequence of matplotlib.axes.Axes, default=None
            Axes to draw on, one for each effect; None for those of a new figure.
        """
        description = estimator.explanation(units)
        panels = [one for one in panels_of(estimator, description) if abs(one.share) >= least_share]
        if not partial_residuals:
            panels = [replace(panel, residuals=np.empty(0)) for panel in panels]
        if not panels:
            what = "the best kernel is noise alone, or least_share is too high"
            raise ValueError(f"there is no effect to show: {what}")
        y_name = y_name or literal(estimator.target_name_ or "y")
        return cls(panels, y_name=y_name, scale=description.scale).plot(axes)

    def plot(self, axes: "Sequence[Axes] | None" = None) -> Self:
        """Draw on axes, or on a new figure, and return the display."""
        n = len(self.panels)
        if axes is None:
            n_columns = 1 if n <= 3 else 2  # up to three are one above the other
            shape = -(-n // n_columns), n_columns
            every = style.new_axes(*shape, size=(6.0 * n_columns, 2.8 * shape[0]))
            axes, others = every[:n], every[n:]
            for ax in others:
                ax.remove()
        if len(axes) != n:
            raise ValueError(f"axes must be {n}, one an effect, got {len(axes)}")
        kinds = {(1, 0): self._curve, (1, 1): self._levels, (2, 1): self._curves}
        first = next((panel for panel in self.panels if len(panel.band)), None)
        for panel, ax in zip(self.panels, axes, strict=True):
            style.clear_frame(ax)
            kinds.get((len(panel.axes), panel.n_with_levels), self._map)(panel, ax)
            style.set_title(ax, panel.title, pad=22 if panel is first else None)  # in points
            if panel is first:
                ax.legend(**style.ABOVE)
        self.axes_ = np.array(axes, dtype=object)
        self.figure_: Any = axes[0].get_figure(root=True)
        return self

    def _curve(self, panel: Panel, ax: "Axes") -> None:
        """Draw the effect of a column of numbers, with a mark for each row."""
        (x,), (rows,) = panel.axes, panel.rows
        ax.fill_between(x, *panel.band, color=BLUE, alpha=style.WIDE, linewidth=0, label="95 %")
        ax.plot(x, panel.mean, color=BLUE, linewidth=1.5, label="effect")
        bottom, marks = ax.get_xaxis_transform(), {**DATA, "marker": "|", "markersize": 6}
        ax.plot(rows, np.full(len(rows), 0.02), transform=bottom, alpha=0.3, **marks)
        _draw_residuals(panel, ax, rows, panel.residuals)
        self._label(panel, ax, x=0, y=None)

    def _levels(self, panel: Panel, ax: "Axes") -> None:
        """Draw a point for each level."""
        (rows,), half = panel.rows, np.abs(panel.band - panel.mean)
        jitter = np.random.default_rng(0).uniform(-0.25, 0.25, len(rows))  # in levels
        _draw_residuals(panel, ax, panel.residuals, rows + jitter)
        how: dict[str, Any] = {"fmt": "o", "color": BLUE, "capsize": 3, "label": "effect and 95 %"}
        ax.errorbar(panel.mean, np.arange(len(panel.mean)), xerr=half, **how)
        self._label(panel, ax, x=None, y=0)

    def _curves(self, panel: Panel, ax: "Axes") -> None:
        """Draw a curve along the second column for each level of the first, the highest first."""
        from matplotlib import color_sequences

        ax.set_prop_cycle(color=color_sequences["petroff10"])
        for name, mean in zip(panel.axes[0][::-1], panel.mean[::-1], strict=True):
            ax.plot(panel.axes[1], mean, label=style.short(name))
        ax.legend(title=literal(panel.names[0]), **style.BESIDE)
        self._label(panel, ax, x=1, y=None)

    def _map(self, panel: Panel, ax: "Axes") -> None:
        """Draw colours over two columns, both of numbers or both with levels."""
        y, x = (np.arange(len(one)) if one.dtype == object else one for one in panel.axes)
        norm = "log" if self.scale == "log" else "linear"
        image = ax.pcolormesh(x, y, panel.mean, cmap="cividis", norm=norm, rasterized=True)
        if not panel.n_with_levels:
            ax.plot(*panel.rows[::-1], **{**DATA, "color": "white", "markersize": 2, "alpha": 0.6})
        self._label(panel, ax, x=1, y=0)
        self._label(panel, ax.figure.colorbar(image, ax=ax).ax, y=None)

    def _label(self, panel: Panel, ax: "Axes", **columns: int | None) -> None:
        """Label axes: "x" or "y" is along a column by its number, or along the effect if None."""
        for which, column in columns.items():
            if column is None:
                is_log = self.scale == "log"
                style.set_ticks(ax, which, panel.mean, is_log=is_log)
                label = "factor" if is_log else fill(f"effect on {self.y_name}", 28)
            else:
                values = (panel.axes if panel.axes[column].dtype == object else panel.rows)[column]
                style.set_ticks(ax, which, values, is_log=panel.is_log[column])
                label = literal(panel.names[column])
            ax.set(**{f"{which}label": label})


def _draw_residuals(panel: Panel, ax: "Axes", x: npt.NDArray[Any], y: npt.NDArray[Any]) -> None:
    if len(panel.residuals):
        out, faint = panel.is_excluded, {**DATA, "alpha": 0.3, "zorder": 1.5}
        ax.plot(x[~out], y[~out], label="partial residuals", **faint)
        if out.any():
            ax.plot(x[out], y[out], **style.EXCLUDED)


def panels_of(estimator: AutoKernelGPRegressor, description: Description) -> list[Panel]:
    """Compute what is drawn of each effect that is described, with some rows and excluded ones."""
    model, out = description.model, description.model.outliers
    some = np.random.default_rng(0).permutation(len(estimator.y_train_))[:500]  # rows drawn
    X = np.concatenate([estimator.X_train_[some], out.X])
    y = np.concatenate([estimator.y_train_[some], out.y])
    residuals = model.residuals(X, y)
    is_beyond = np.isinf(np.append(np.zeros(len(some)), out.deviations))  # the scale of the target
    residuals = np.where(is_beyond, np.copysign(np.inf, y - model.mean(X)), residuals)
    rows = model.scaled(X), residuals, np.arange(len(y)) >= len(some)
    return [_panel(description, effect, *rows) for effect in description.shown]


class _Side:
    """A column along which an effect is drawn, with its most frequent levels or many steps."""

    def __init__(self, description: Description, part: Part, *, is_of_pair: bool) -> None:
        self.part, self.axis = part, description.axes[part.column]
        self.name, self.x = self.axis.name, description.explained.X[:, part.column]
        levels, counts = np.unique(self.x, return_counts=True)
        most, n, n_steps = _LIMITS_OF_PAIR if is_of_pair else _LIMITS
        self.has_levels = part.is_of_levels or bool(self.axis.levels) or len(levels) <= most
        if self.has_levels:
            self.steps = np.sort(levels[np.argsort(-counts, kind="stable")[:n]])
            self.name += f" ({n} of {len(levels)})" if n < len(levels) else ""
        else:
            low, high = description.explained.ends(part.column)
            if part.is_season and part.period < (high - low) / N_CYCLES and not is_of_pair:
                low = high - 2 * part.period  # it repeats
            self.steps = description.explained.steps(part, n_steps, (low, high))

    def places(self, x: FloatArray) -> FloatArray:
        """Return the numbers of levels, nan for those that are not drawn, or places from 0 to 1."""
        if not self.has_levels:
            return np.interp(x, self.steps, np.linspace(0, 1, len(self.steps)))
        is_level = np.isclose(x[:, None], self.steps)
        return np.where(is_level.any(axis=1), is_level.argmax(axis=1), np.nan)

    def shown(self, x: FloatArray) -> npt.NDArray[Any]:
        """Return names of levels, numbers or dates, from values in the unit interval."""
        values = self.axis.low + self.axis.extent * x
        if not self.has_levels:
            return self.axis.shown(values)
        names = list(map(self.axis.end, x.tolist()))
        names = names if len({*names}) == len(names) else self.axis.names_of(values)
        return np.array(names, dtype=object)


def _panel(
    description: Description,
    effect: Part | Interaction,
    inputs: FloatArray,
    residuals: FloatArray,
    is_excluded: BoolArray,
) -> Panel:
    """Compute what is drawn of an effect, with levels without an order by their means."""
    explained, sides = description.explained, _sides(description, effect)
    columns, is_pair = [side.part.column for side in sides], len(sides) == 2
    mean_at = partial(explained.mean, effect_of(columns) if is_pair else effect)

    def in_unit(changes: FloatArray) -> FloatArray:
        found = explained.in_unit(changes)
        return np.exp(found) if description.scale == "log" else found

    every, inputs = explained.X[:, columns], inputs[:, columns]
    if not (is_pair or sides[0].has_levels):  # of some cycles, if there are many
        begin = sides[0].steps[0]
        kept = (inputs[:, 0] >= begin) | (begin <= every.min())
        inputs, residuals, is_excluded = inputs[kept], residuals[kept], is_excluded[kept]
    centre = mean_at(every[:: 1 + len(every) // 5000]).mean()  # at most 5000 rows
    grid = np.stack(np.meshgrid(*(side.steps for side in sides), indexing="ij"), axis=-1)
    mean = mean_at(grid.reshape(-1, len(sides))).reshape(grid.shape[:-1]) - centre
    for n, side in enumerate(sides):
        if side.axis.levels and not side.axis.is_ordered:
            order = np.argsort(mean.mean(axis=1 - n) if is_pair else mean, kind="stable")
            mean, side.steps = np.take(mean, order, axis=n), side.steps[order]
    drawn, band = np.empty(0), mean[None][:0]
    if not is_pair:
        half = style.TWO_SIDED * explained.mean_and_std(sides[0].part, sides[0].steps[:, None])[1]
        band = np.array([mean - half, mean + half])
        drawn = mean_at(inputs) - centre + residuals
        around = np.concatenate([*band, drawn[~is_excluded]])
        drawn[is_excluded] = style.at_edge(drawn[is_excluded], around)
    else:
        mean = np.where(_is_near(sides), mean, np.nan)
    pairs = zip(sides, inputs.T, strict=True)
    return Panel(
        description.text(effect),
        effect.share,
        names=[side.name for side in sides],
        axes=[side.shown(side.steps) for side in sides],
        is_log=[side.part.scale == "log" and side.axis.low > 0 for side in sides],
        mean=in_unit(mean),
        band=in_unit(band),
        rows=[side.places(x) if side.has_levels else side.shown(x) for side, x in pairs],
        residuals=in_unit(drawn),
        is_excluded=is_excluded,
    )


def _sides(description: Description, effect: Part | Interaction) -> list[_Side]:
    """Return the columns of an effect, those with levels first."""
    if isinstance(effect, Part):
        return [_Side(description, effect, is_of_pair=False)]
    first = {part.column: part for part in reversed(description.explained.parts)}
    sides = [_Side(description, first[column], is_of_pair=True) for column in effect.columns]
    for side, other in (sides, sides[::-1]):
        if side.axis.origin is not None and other.axis.origin is None and not other.has_levels:
            # curves for three values of a column of numbers, as a map has stripes
            other.steps = np.unique(np.quantile(other.x, QUANTILES, method="nearest"))
            other.has_levels = True
    return sorted(sides, key=lambda side: (not side.has_levels, -len(side.steps)))


def _is_near(sides: Sequence[_Side]) -> BoolArray:
    """Return where rows are: not too far on a map, on both sides on the curve of a level."""
    first, second = sides
    if first.has_levels and not second.has_levels:
        near = np.abs(first.x[:, None] - first.steps).argmin(axis=1)  # the value that is nearest
        near = first.places(first.x) if first.axis.levels else near
        every = (second.x[near == step] for step in range(len(first.steps)))
        return np.array([(second.steps >= x.min()) & (second.steps <= x.max()) for x in every])
    rows = np.column_stack([side.places(side.x) for side in sides])
    grid = np.meshgrid(*(side.places(side.steps) for side in sides), indexing="ij")
    tree = KDTree(rows[~np.isnan(rows).any(axis=1)])
    return tree.query(np.stack(grid, axis=-1))[0] <= 0.15  # extents of the columns
