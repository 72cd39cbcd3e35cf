"""Data, predictions and their bands along the only column, or along that of time."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.utils import check_scalar

from autokernel.data.checks import check_inputs
from autokernel.displays import _style as style
from autokernel.displays._style import BLUE, ORANGE, literal
from autokernel.estimator import AutoKernelGPRegressor
from autokernel.explain.parts import parts_of
from autokernel.model import FittedModel
from autokernel.typing import FloatArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes

N_CYCLES = 3  # of a season, that are shown before a short forecast


class ForecastDisplay:
    """Data along one column, the predictive mean, and bands of 50 and 95 % of new observations.

    Use :meth:`from_estimator` to make one.

    Parameters
    ----------
    x : ndarray of shape (n_points,)
        Inputs of the prediction, in ascending order; datetime64 for dates.
    mean : ndarray of shape (n_points,)
        Predictive mean.
    quantiles : ndarray of shape (n_points, 4)
        Quantiles of 2.5, 25, 75 and 97.5 %.
    X_train, y_train : ndarray of shape (n_samples,)
        Training inputs and targets.
    X_excluded, y_excluded : array-like of shape (n_excluded,), default=()
        Inputs and targets of outliers, which are excluded. Those far off are drawn at the edge.
    x_name, y_name : str
        Labels of the axes.

    Attributes
    ----------
    ax_, figure_ : matplotlib.axes.Axes, matplotlib.figure.Figure
        Axes and figure of the last plot.
    """

    def __init__(
        self,
        *,
        x: npt.NDArray[Any],
        mean: FloatArray,
        quantiles: FloatArray,
        X_train: npt.NDArray[Any],
        y_train: FloatArray,
        X_excluded: npt.ArrayLike = (),
        y_excluded: npt.ArrayLike = (),
        x_name: str = "x",
        y_name: str = "y",
    ) -> None:
        self.x, self.mean, self.quantiles = x, mean, quantiles
        self.X_train, self.y_train = X_train, y_train
        self.X_excluded, self.y_excluded = np.asarray(X_excluded), np.asarray(y_excluded)
        self.x_name, self.y_name = x_name, y_name

    @classmethod
    def from_estimator(
        cls,
        estimator: AutoKernelGPRegressor,
        X: npt.ArrayLike | None = None,
        *,
        beyond: float = 0.25,
        units: Mapping[str, str] | None = None,
        y_name: str | None = None,
        ax: "Axes | None" = None,
    ) -> Self:
        """Predict along the only column, or along the column of time, and plot.

        Before a short forecast, the last cycles are shown, and four times its extent of the past.

        Parameters
        ----------
        estimator : AutoKernelGPRegressor
            A fitted estimator with one column, or with one of dates or equal steps.
        X : array-like of shape (n_points, n_features), default=None
            Inputs to predict at, those of one group if there are several; None for the range of the
            data and some beyond it, with several columns for the rows of the fit.
        beyond : float, default=0.25
            Extent that is added after the data, as a fraction of theirs, where ``X`` is None.
        units : mapping of str to str, default=None
            Units, as for ``estimator.describe``: ``"days since 1949-01-01"`` shows dates.
        y_name : str, default=None
            Label of the target; None for its name, or ``"y"`` if it has none.
        ax : matplotlib.axes.Axes, default=None
            Axes to draw on; None for those of a new figure.

        Raises
        ------
        ValueError
            If none of several columns is one of time, or if rows are those of several groups.
        """
        explanation = estimator.explanation(units)
        model, axes = explanation.model, explanation.axes
        time, *groups = [0] if len(axes) == 1 else model.series.columns or [-1]
        if time < 0 or axes[time].levels:
            kind = "categories" if axes[time].levels else "several columns without one of time"
            what = "ForecastDisplay shows one column of numbers or dates"
            raise ValueError(f"{what}, got {kind}: EffectsDisplay shows several columns and levels")
        check_scalar(beyond, "beyond", (int, float), min_val=0)
        past, y, rows = estimator.X_train_, estimator.y_train_, estimator.X_train_
        begin, end = (float(f(past[:, time])) for f in (np.nanmin, np.nanmax))
        if X is not None:
            rows = check_inputs(estimator, X, model.columns)
            model.warn_beyond_scales(rows)
        elif len(axes) == 1:
            n_points = min(max(500, 2 * len(past)), 4000)
            rows = np.linspace(begin, end + beyond * (end - begin), n_points)[:, None]
        if len(names := np.unique(rows[:, groups], axis=0)) > 1:
            by = ", ".join(axes[one].name for one in groups)
            raise ValueError(f"X must have rows of one group, got {len(names)} groups by {by}")
        of_group = np.all(past[:, groups] == names[0], axis=1)
        last = float(np.max(rows[:, time]))
        if X is not None and last > end:
            begin = max(begin, end - max(4 * (last - end), N_CYCLES * _longest_period(model, time)))
        kept = of_group & (past[:, time] >= begin)
        if X is not None and len(axes) > 1:  # the fit to the past, which has its own other columns
            rows = np.concatenate([past[kept & (past[:, time] < rows[:, time].min())], rows])
        rows = rows[np.argsort(rows[:, time], kind="stable")]
        out = model.outliers
        is_shown = np.all(out.X[:, groups] == names[0], axis=1) & (out.X[:, time] >= begin)
        return cls(
            x=axes[time].shown(rows[:, time]),
            mean=model.mean(rows),
            quantiles=model.quantiles(rows, np.array([0.025, 0.25, 0.75, 0.975])),
            X_train=axes[time].shown(past[kept, time]),
            y_train=y[kept],
            X_excluded=axes[time].shown(out.X[is_shown, time]),
            y_excluded=out.y[is_shown],
            x_name=axes[time].name if hasattr(estimator, "feature_names_in_") else "x",
            y_name=y_name or literal(estimator.target_name_ or "y"),
        ).plot(ax=ax)

    def plot(self, ax: "Axes | None" = None) -> Self:
        """Draw on axes, or on a new figure, and return the display."""
        if ax is None:
            (ax,) = style.new_axes(size=(8.0, 3.8))
        style.clear_frame(ax)
        low, lower, upper, high = self.quantiles.T
        bands: dict[str, Any] = {"color": BLUE, "linewidth": 0}
        ax.fill_between(self.x, low, high, alpha=style.WIDE, label="95 %", **bands)
        ax.fill_between(self.x, lower, upper, alpha=style.NARROW, label="50 %", **bands)
        ax.plot(self.x, self.mean, color=BLUE, linewidth=1.5, label="mean")
        ax.plot(self.X_train, self.y_train, label="data", **style.DATA)
        if len(self.y_excluded):
            around = np.append(self.quantiles, self.y_train)
            ax.plot(self.X_excluded, style.at_edge(self.y_excluded, around), **style.EXCLUDED)
        if (end := np.nanmax(self.X_train)) < self.x[-1]:
            ax.axvline(end, color=ORANGE, linestyle="--", linewidth=1, label="end of the data")
        ax.margins(x=0.01)
        style.set_ticks(ax, "x", self.X_train)
        ax.set(xlabel=literal(self.x_name), ylabel=self.y_name)
        ax.legend(**style.BESIDE)
        self.ax_ = ax
        self.figure_: Any = ax.get_figure(root=True)
        return self


def _longest_period(model: FittedModel, time: int) -> float:
    """Return the longest period that repeats in the data, in the unit of the column, or zero."""
    best, column = model.evaluation, model.columns[time]
    parts = parts_of(best.expression, best.theta, time)
    periods = (one.period for one in parts if one.is_season and one.period <= 1 / N_CYCLES)
    return column.extent * max(periods, default=0.0)
