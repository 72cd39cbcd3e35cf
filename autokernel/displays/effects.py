"""The effects that a fitted function adds up, one panel for each."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt
from scipy.spatial import KDTree
from sklearn.utils.validation import check_is_fitted

from autokernel.displays import _style as style
from autokernel.displays._style import BLUE, DATA, literal
from autokernel.estimator import AutoKernelGPRegressor
from autokernel.explain import Description
from autokernel.expression import IDENTITY
from autokernel.typing import BoolArray, FloatArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_N_POINTS, _N_SURFACE = 600, 60
_WIDTH, _NARROW, _HEIGHT = 7.0, 5.6, 2.8  # inches of a panel, and of one next to another one
_MAX_STACKED = 3  # panels in one column; more of them are in two
_PAD = 11.0  # points between axes and title, and for each line of a legend
_TWO_SIDED = 1.96
_MAX_ROWS, _MAX_CENTRED = 500, 5000  # that are drawn, and over which the mean of an effect is zero
_MAX_POINTS, _MAX_NAMED = 40, 10  # levels of a category that are drawn, and that are named
_MAX_FEW = 5  # numbers that are levels of a column in the effect of two
_TOO_FAR = 0.15  # from the next row, in extents: a map is empty there
_MAX_LABEL = 14  # characters next to the words before it
_JITTER = 0.25  # of the distance between two levels, on each side


@dataclass(frozen=True, slots=True, eq=False)  # eq=False: the fields hold arrays
class Panel:
    """The effect of one column, or the common effect of two, in units of the target or factors."""

    title: str  # the effect in words
    names: Sequence[str]  # of the columns, one or two, those with levels first
    axes: Sequence[npt.NDArray[Any]]  # values along each: numbers, datetime64, or names of levels
    is_log: Sequence[bool]  # whether the axis of a column is logarithmic
    mean: FloatArray  # (n,) or (n, m), the difference from the average over the rows, or its factor
    band: FloatArray  # (2, n), ends of 95 % of this difference; (0, n) for two columns
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
    category has a point for each level, the highest above. The common effect of two columns that
    interact is a map, or has a curve or points for each level. All have a mean of zero over the
    rows, in units of the target; on the log scale of the target they are factors. A partial
    residual is the effect plus the residual of a row. Marks at the bottom are the rows. Use
    :meth:`from_estimator` to make a display.

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
        check_is_fitted(estimator, "best_kernel_")
        description = estimator._description(units)
        panels = panels_of(estimator, description, least_share, residuals=partial_residuals)
        if not panels:
            what = "the best kernel is noise alone, or least_share is too high"
            raise ValueError(f"there is no effect to show: {what}")
        y_name = y_name or literal(estimator.target_name_ or "y")
        return cls(panels, y_name=y_name, scale=description.scale).plot(axes)

    def plot(self, axes: "Sequence[Axes] | None" = None) -> Self:
        """Draw on axes, or on a new figure, and return the display."""
        n = len(self.panels)
        if axes is None:
            n_columns, width = (1, _WIDTH) if n <= _MAX_STACKED else (2, 2 * _NARROW)
            n_rows = -(-n // n_columns)
            axes = style.new_axes(n_rows, n_columns, size=(width, _HEIGHT * n_rows))
            for ax in axes[n:]:
                ax.remove()
            axes = axes[:n]
        if len(axes) != n:
            raise ValueError(f"axes must be {n}, one an effect, got {len(axes)}")
        draws = {(1, 0): self._curve, (1, 1): self._levels, (2, 0): self._surface}
        draws |= dict.fromkeys(((2, 1), (2, 2)), self._by_level)
        first = next((one for one in self.panels if len(one.residuals)), None)
        for panel, ax in zip(self.panels, axes, strict=True):
            style.clear_frame(ax)
            draws[len(panel.axes), panel.n_with_levels](panel, ax)
            pad = _PAD * (1 + style.legend_above(ax)) if panel is first else None
            title = style.title_of(panel.title, ax)
            ax.set_title(title, loc="left", fontsize="medium", pad=pad)
        self.axes_ = np.array(axes, dtype=object)
        self.figure_ = style.figure_of(axes[0])
        return self

    def _curve(self, panel: Panel, ax: "Axes") -> None:
        (x,), (rows,) = panel.axes, panel.rows
        ax.fill_between(x, *panel.band, color=BLUE, alpha=style.WIDE, linewidth=0, label="95 %")
        ax.plot(x, panel.mean, color=BLUE, linewidth=1.5, label="effect")
        bottom, marks = ax.get_xaxis_transform(), {**DATA, "marker": "|", "markersize": 6}
        ax.plot(rows, np.full(len(rows), 0.02), transform=bottom, alpha=0.3, **marks)
        _draw_residuals(panel, ax, rows, panel.residuals)
        self._finish(ax, "x", panel, 0)
        self._finish_target(ax, "y", panel)

    def _levels(self, panel: Panel, ax: "Axes") -> None:
        places, half = np.arange(len(panel.mean)), np.abs(panel.band - panel.mean)
        jitter = np.random.default_rng(0).uniform(-_JITTER, _JITTER, len(panel.rows[0]))
        _draw_residuals(panel, ax, panel.residuals, panel.rows[0] + jitter)
        how: dict[str, Any] = {"fmt": "o", "color": BLUE, "capsize": 3, "label": "effect and 95 %"}
        ax.errorbar(panel.mean, places, xerr=half, **how)
        self._finish_levels(ax, panel)

    def _by_level(self, panel: Panel, ax: "Axes") -> None:
        """Draw a curve along the second column for each level of the first, or points for pairs."""
        are_pairs = panel.n_with_levels == 2
        names, means = panel.axes[are_pairs], panel.mean.T if are_pairs else panel.mean
        styles = product("os" if are_pairs else ("-", "--"), style.LEVEL_COLOURS)
        apart = np.linspace(_JITTER, -_JITTER, len(names))
        every = zip(names[::-1], means[::-1], apart, styles, strict=False)  # the highest one first
        for name, mean, by, (form, colour) in every:
            x, y = (mean, np.arange(len(mean)) + by) if are_pairs else (panel.axes[1], mean)
            ax.plot(x, y, form, color=colour, label=style.short(name))
        if are_pairs:
            self._finish_levels(ax, panel)
        else:
            self._finish(ax, "x", panel, 1)
            self._finish_target(ax, "y", panel)
        style.legend_beside(ax, panel.names[are_pairs])

    def _surface(self, panel: Panel, ax: "Axes") -> None:
        norm = "log" if self.scale == "log" else "linear"
        image = ax.pcolormesh(*panel.axes, panel.mean.T, cmap="cividis", norm=norm, rasterized=True)
        self._finish_target(style.figure_of(ax).colorbar(image, ax=ax).ax, "y", panel)
        ax.plot(*panel.rows, **{**DATA, "color": "white", "markersize": 2, "alpha": 0.6})
        for number, which in enumerate("xy"):
            self._finish(ax, which, panel, number)

    def _finish(self, ax: "Axes", which: str, panel: Panel, number: int) -> None:
        """Label the axis of a column, with its ticks."""
        if panel.is_log[number] and panel.axes[number].dtype.kind != "M":
            style.log_axis(ax, which, panel.axes[number])
        else:
            style.round_ticks(ax, which, panel.rows[number])
        ax.set(**{f"{which}label": literal(panel.names[number])})
        ax.margins(x=0.01)

    def _finish_levels(self, ax: "Axes", panel: Panel) -> None:
        """Name at most ten levels, evenly spaced in their order."""
        names, n = panel.axes[0], len(panel.axes[0])
        named = np.linspace(0, n - 1, min(n, _MAX_NAMED)).round().astype(int)
        ax.set_yticks(named, list(map(style.short, names[named])))
        ax.set(ylabel=literal(panel.names[0]), ylim=(-0.6, n - 0.4))
        self._finish_target(ax, "x", panel)

    def _finish_target(self, ax: "Axes", which: str, panel: Panel) -> None:
        """Label the axis of the effect, with logarithmic ticks for factors."""
        if self.scale == "log":
            drawn = np.concatenate([panel.mean.ravel(), panel.band.ravel(), panel.residuals])
            style.log_axis(ax, which, drawn[np.isfinite(drawn)])
        gap = "\n" if which == "y" and len(self.y_name) > _MAX_LABEL else " "
        label = "factor" if self.scale == "log" else f"effect on{gap}{self.y_name}"
        ax.set(**{f"{which}label": label})


def _draw_residuals(panel: Panel, ax: "Axes", x: npt.NDArray[Any], y: npt.NDArray[Any]) -> None:
    out = panel.is_excluded
    if len(panel.residuals):
        ax.plot(x[~out], y[~out], **style.RESIDUALS)
        if out.any():
            ax.plot(x[out], y[out], **style.EXCLUDED)


def panels_of(
    estimator: AutoKernelGPRegressor,
    description: Description,
    least_share: float = 0.0,
    *,
    residuals: bool = True,
) -> list[Panel]:
    """Compute what is drawn of each effect that is described."""
    rows, texts = _rows_of(estimator), description.paragraphs()
    return [
        _DrawnEffect(description, number).panel(text, rows, residuals=residuals)
        for number, text in zip(description.shown, texts, strict=True)
        if abs(description.share(number)) >= least_share
    ]


class _DrawnRows(NamedTuple):
    """Rows that are drawn: those that are excluded, and some of the others."""

    X: FloatArray
    inputs: FloatArray  #: the same in the unit interval
    residuals: FloatArray  #: on the scale of the target
    is_excluded: BoolArray


def _rows_of(estimator: AutoKernelGPRegressor) -> _DrawnRows:
    model, outliers = estimator._fitted, estimator._fitted.outliers
    out, some = slice(_MAX_ROWS), np.random.default_rng(0).permutation(len(estimator.y_train_))
    some = some[: _MAX_ROWS - len(outliers.y[out])]
    X = np.concatenate([estimator.X_train_[some], outliers.X[out]])
    y = np.concatenate([estimator.y_train_[some], outliers.y[out]])
    fit = model.mean(X) if model.scale.is_linear else model.quantiles(X, np.array([0.5]))[:, 0]
    of_y, of_fit = (model.scale.forward(model.target.forward(one)) for one in (y, fit))
    deviations = np.append(np.zeros(len(some)), outliers.deviations[out])
    far = np.copysign(np.inf, y - fit)  # beyond the scale of the target
    residuals = np.where(np.isinf(deviations), far, model.scale.width * (of_y - of_fit))
    return _DrawnRows(X, model.scaled(X), residuals, np.arange(len(y)) >= len(some))


class _DrawnEffect:
    """An effect as a function of one column or two, of which those with levels come first."""

    def __init__(self, description: Description, number: int) -> None:
        self.explained, self.scale = description.explained, description.scale
        parts = description.parts[number : number + 1]
        if not parts:
            pair = description.interactions[number - len(description.parts)].columns
            parts = [next(one for one in description.parts if one.column == own) for own in pair]
        n_values = {part: len(np.unique(self.explained.X[:, part.column])) for part in parts}
        are_names = {p for p in parts if p.is_of_levels or description.axes[p.column].levels}
        most = _MAX_FEW if len(parts) > 1 else 2
        have_levels = are_names | {part for part in parts if n_values[part] <= most}
        self.parts = sorted(parts, key=lambda part: (part not in have_levels, -n_values[part]))
        self.are_names = [part in are_names for part in self.parts]
        self.n_with_levels = len(have_levels)
        self.columns = [part.column for part in self.parts]
        self.axes = [description.axes[column] for column in self.columns]
        self.every = self.explained.X[:, self.columns]
        self.centre = 0.0
        self.centre = float(self.mean(self.every[:: 1 + len(self.every) // _MAX_CENTRED]).mean())

    def mean(self, points: FloatArray) -> FloatArray:
        """Compute the mean of the effect at points (..., n_columns), less that over the rows."""
        flat = points.reshape(-1, len(self.parts))
        if len(self.parts) == 1:
            found = self.explained.mean(self.parts[0], flat[:, 0])
        else:
            found = self.explained.both(self.columns, flat)
        return found.reshape(points.shape[:-1]) - self.centre

    def panel(self, title: str, rows: _DrawnRows, *, residuals: bool) -> Panel:
        """Compute what is drawn, at values in the order of the effect for names of levels."""
        is_single, inputs = len(self.parts) == 1, rows.inputs[:, self.columns]
        n_points, n_levels = (_N_POINTS, _MAX_POINTS) if is_single else (_N_SURFACE, _MAX_NAMED)
        steps = [_frequent(x, n_levels) for x in self.every.T[: self.n_with_levels]]
        numbers = self.parts[self.n_with_levels :]
        steps += [self.explained.steps(part, n_points) for part in numbers]
        mean = self.mean(np.stack(np.meshgrid(*steps, indexing="ij"), axis=-1))
        for n in np.flatnonzero(self.are_names):
            order = np.argsort(mean if is_single else mean.mean(axis=1 - n), kind="stable")
            mean, steps[n] = np.take(mean, order, axis=n), steps[n][order]
        known, places = self._places(rows, inputs, steps)
        drawn, is_excluded, band = np.empty(0), rows.is_excluded[known], mean[None][:0]
        if is_single:
            half = _TWO_SIDED * self.explained.mean_and_std(self.parts[0], steps[0])[1]
            band = np.array([mean - half, mean + half])
            if residuals:
                drawn = self.mean(inputs[known]) + rows.residuals[known]
                around = np.concatenate([*band, drawn[~is_excluded]])
                drawn[is_excluded] = style.at_edge(drawn[is_excluded], around)
        else:
            mean = np.where(self._is_near(steps), mean, np.nan)
        return Panel(
            title if is_single else f"{title.split(':')[0].removesuffix('.')}.",  # we see the rest
            names=[self._name(n, len(one)) for n, one in enumerate(steps)],
            axes=[self._shown(n, one) for n, one in enumerate(steps)],
            is_log=[part.scale == "log" for part in self.parts],
            mean=self._in_unit(mean),
            band=self._in_unit(band),
            rows=places,
            residuals=self._in_unit(drawn),
            is_excluded=is_excluded,
        )

    def _places(
        self, rows: _DrawnRows, inputs: FloatArray, steps: Sequence[FloatArray]
    ) -> tuple[BoolArray, list[npt.NDArray[Any]]]:
        """Find which rows (n,) have a place along all axes, and where."""
        known, places = np.ones(len(inputs), dtype=bool), []
        for n, axis in enumerate(self.axes):
            if n < self.n_with_levels:
                is_level = np.isclose(inputs[:, n, None], steps[n])
                known &= is_level.any(axis=1)
                places.append(is_level.argmax(axis=1))
            else:
                known &= ~np.isnan(inputs[:, n])
                places.append(axis.shown(np.nan_to_num(rows.X[:, self.columns[n]])))
        return known, [one[known] for one in places]

    def _is_near(self, steps: Sequence[FloatArray]) -> BoolArray:
        """Return where on a grid there are rows: of the same levels, or not too far in a map."""
        if self.n_with_levels:
            own = [self.every[self.every[:, 0] == level, 1] for level in steps[0]]
            if self.n_with_levels == 2:
                return np.array([np.isin(steps[1], one) for one in own])
            return np.array([(one.min() <= steps[1]) & (steps[1] <= one.max()) for one in own])
        n = np.linspace(0, 1, len(steps[0]))
        at = [np.interp(x, one, n) for x, one in zip(self.every.T, steps, strict=True)]
        grid = np.stack(np.meshgrid(n, n, indexing="ij"), axis=-1).reshape(-1, 2)
        distance, _ = KDTree(np.column_stack(at)).query(grid)
        return (distance <= _TOO_FAR).reshape(len(n), -1)

    def _name(self, n: int, n_drawn: int) -> str:
        """Return the name of a column, with the number of levels if not all are drawn."""
        name, n_all = self.axes[n].name, len(np.unique(self.every[:, n]))
        return (
            f"{name} ({n_drawn} of {n_all})" if n_drawn < n_all and n < self.n_with_levels else name
        )

    def _shown(self, n: int, steps: FloatArray) -> npt.NDArray[Any]:
        """Return values along an axis from those in the unit interval."""
        axis, values = self.axes[n], self.axes[n].low + self.axes[n].extent * steps
        if n < self.n_with_levels:
            return np.array(list(map(axis.level, values)), dtype=object)
        return axis.shown(values)

    def _in_unit(self, changes: FloatArray) -> FloatArray:
        found = self.explained.in_unit(changes)
        return np.exp(found) if self.scale == "log" else found


def _frequent(x: FloatArray, n: int) -> FloatArray:
    """Return the most frequent values, sorted."""
    values, counts = np.unique(x, return_counts=True)
    return values[np.sort(np.argsort(-counts, kind="stable")[:n])]
