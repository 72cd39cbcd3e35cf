"""The progress of a search, and its scores against the size of the kernels."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt

from autokernel.displays._style import BLUE, GREY, ORANGE, clear_frame, figure_of, literal, new_axes
from autokernel.estimator import AutoKernelGPRegressor
from autokernel.typing import FloatArray, IntArray
from autokernel.validation import check_has_searched

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_SHOWN = 60.0  # nats below the best score at which the picture ends
_MOST_NAMES = 6  # improvements that are named, the last ones
_NAME_WIDTH, _LEAST_NAME_WIDTH = 46, 16  # characters, most and least
_NUMBERS_WIDTH = 17  # characters before a name
_CHARACTER = 0.058  # inches, of the font of the names
_NAMES_SHARE = 0.72  # largest share of the width of the axes that the names cover
_SIZE = (11.0, 4.2)  # inches


class SearchDisplay:
    """Scores over evaluations, with the names of improvements, and scores over sizes.

    Use :meth:`from_estimator` to make one.

    Parameters
    ----------
    score : ndarray of shape (n_kernels,)
        Score of each kernel in the order of evaluation, in nats.
    elapsed : ndarray of shape (n_kernels,)
        Seconds from the start of the search.
    n_leaves : ndarray of shape (n_kernels,)
        Number of base kernels.
    kernel : ndarray of shape (n_kernels,)
        Texts of the kernels.

    Attributes
    ----------
    axes_ : ndarray of matplotlib.axes.Axes
        The two axes of the last plot.
    figure_ : matplotlib.figure.Figure
        Figure of the last plot.
    """

    def __init__(
        self,
        *,
        score: FloatArray,
        elapsed: FloatArray,
        n_leaves: IntArray,
        kernel: npt.NDArray[Any],
    ) -> None:
        self.score, self.elapsed, self.n_leaves, self.kernel = score, elapsed, n_leaves, kernel

    @classmethod
    def from_estimator(
        cls, estimator: AutoKernelGPRegressor, *, axes: "Sequence[Axes] | None" = None
    ) -> Self:
        """Plot the search of a fitted estimator, on two axes or on a new figure."""
        check_has_searched(estimator)
        history = estimator.search_history_
        if not np.isfinite(history["score"]).any():
            raise ValueError("no kernel of this search has a score to plot: allow more max_time")
        keys = ("score", "elapsed", "n_leaves", "kernel")
        return cls(**{key: history[key] for key in keys}).plot(axes)

    def plot(self, axes: "Sequence[Axes] | None" = None) -> Self:
        """Draw on two axes, or on a new figure, and return the display."""
        if axes is None:
            axes = new_axes(1, 2, size=_SIZE, sharey=True, width_ratios=[3, 2])
        progress, size = axes
        self._progress(progress)
        self._sizes(size)
        self.axes_ = np.array(axes, dtype=object)
        self.figure_ = figure_of(progress)
        return self

    def _progress(self, ax: "Axes") -> None:
        """Draw scores over evaluations, and name the improvements."""
        clear_frame(ax)
        number = np.arange(1, len(self.score) + 1)
        best = np.fmax.accumulate(np.where(np.isfinite(self.score), self.score, np.nan))
        ax.plot(number, self.score, ".", color=GREY, markersize=5, label="a kernel")
        ax.step(number, best, where="post", color=BLUE, linewidth=1.5, label="the best so far")
        top = np.nanmax(best)
        low = max(np.nanmin(self.score[np.isfinite(self.score)]), top - _SHOWN)
        reach = max(top - low, 1.0)
        ax.set_ylim(low - 0.05 * reach, top + 0.08 * reach)
        rises = np.flatnonzero(np.diff(best, prepend=-np.inf) > 0)
        shown = [place for place in rises if best[place] >= low][-_MOST_NAMES:]
        ax.plot(number[shown], best[shown], "o", color=ORANGE, markersize=6)
        width = _name_width(ax)
        if width >= _LEAST_NAME_WIDTH:
            lines = [
                f"{number[place]:3d}  {best[place]:9.2f}  {_short(self.kernel[place], width)}"
                for place in reversed(shown)
            ]
            ax.text(
                0.98, 0.03, literal("\n".join(lines)), transform=ax.transAxes, family="monospace",
                fontsize="x-small", ha="right", va="bottom", multialignment="left",
                bbox={"facecolor": "white", "edgecolor": "0.8"},
            )  # fmt: skip
        seconds = self.elapsed[-1]
        ax.set(xlabel=f"kernels evaluated ({seconds:.0f} seconds)", ylabel="score in nats")
        ax.legend(loc="center right", framealpha=0.9, edgecolor="0.8")

    def _sizes(self, ax: "Axes") -> None:
        """Draw scores over numbers of base kernels, with the best of each."""
        clear_frame(ax)
        ax.plot(self.n_leaves, self.score, ".", color=GREY, markersize=5)
        sizes = np.unique(self.n_leaves)
        best = np.array([self.score[self.n_leaves == size].max() for size in sizes])
        ax.plot(
            sizes, best, "o-", color=BLUE, linewidth=1.2, markersize=5, label="best of its size"
        )
        ax.set(xlabel="base kernels")
        ax.locator_params(axis="x", integer=True)
        ax.legend(frameon=False, loc="lower right")


def _name_width(ax: "Axes") -> int:
    """Count the characters of a name for which axes have room."""
    inches = ax.get_position().width * figure_of(ax).get_figwidth()
    return min(_NAME_WIDTH, int(_NAMES_SHARE * inches / _CHARACTER) - _NUMBERS_WIDTH)


def _short(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1] + "…"
