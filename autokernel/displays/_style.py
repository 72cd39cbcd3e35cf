"""What all displays share: axes, colours and the import of matplotlib."""

import re
import textwrap
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from autokernel.typing import FloatArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# of Okabe and Ito (2008), which colour-blind readers can distinguish
BLUE, ORANGE, GREY = "#0072B2", "#D55E00", "#666666"
LEVEL_COLOURS = (BLUE, ORANGE, "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
DATA: dict[str, Any] = {"color": "#222222", "marker": ".", "linestyle": "none", "markersize": 4}
RESIDUALS = {**DATA, "alpha": 0.3, "zorder": 1.5, "label": "partial residuals"}
EXCLUDED = {**DATA, "color": ORANGE, "marker": "x", "label": "excluded"}
_LEGEND: dict[str, Any] = {"frameon": False, "fontsize": "small", "borderaxespad": 0.2}
WIDE, NARROW = 0.18, 0.35  # opacity of the bands of 95 % and 50 %
_TITLE_WIDTH = 12.0  # characters of a title for each inch
_LABEL_WIDTH = 0.8  # inches next to axes for their labels
_ENTRY_WIDTH = 1.15  # inches of an entry of a legend
_MAX_LINES = 2  # of a title
_MAX_NAME = 24  # characters of a level
_WIDE_RATIO, _WIDEST_RATIO = 5.0, 1e4  # of a logarithmic axis, for ticks at 1, 2, 5 and at 1, 3
_MAX_DATES = 6  # ticks
_BEYOND = 0.3  # ranges of what is drawn, beyond which an excluded row is at the edge


def _import_pyplot() -> Any:
    """Import ``matplotlib.pyplot``.

    Raises
    ------
    ImportError
        If matplotlib is not installed; the message says how to install it.
    """
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError(
            "displays need matplotlib: install it by pip install 'autokernel-gp[plot]'"
        ) from error
    return plt


def new_axes(*shape: int, size: tuple[float, float]) -> "list[Axes]":
    """Return the axes of a new figure of this size in inches, row by row."""
    plt = _import_pyplot()
    _, made = plt.subplots(*shape, figsize=size, layout="constrained", squeeze=False)
    return [ax for row in made for ax in row]


def clear_frame(ax: "Axes") -> None:
    """Remove the frame above and on the right, and draw a light grid."""
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(visible=True, color="0.92", linewidth=0.8)
    ax.set_axisbelow(True)


def round_ticks(ax: "Axes", which: str, values: npt.NDArray[Any]) -> None:
    """Put ticks along an axis at whole numbers if all values are, at round ones, or at dates."""
    from matplotlib import dates

    axis: Any = getattr(ax, f"{which}axis")
    if values.dtype.kind != "M":
        is_whole = bool(np.all(values == np.round(values)))
        axis.get_major_locator().set_params(steps=[1, 2, 5, 10], integer=is_whole)
        return
    locator = dates.AutoDateLocator(maxticks=_MAX_DATES)  # type: ignore[no-untyped-call]
    axis.set_major_locator(locator)
    axis.set_major_formatter(dates.ConciseDateFormatter(locator))  # type: ignore[no-untyped-call]


def log_axis(ax: "Axes", which: str, values: npt.NDArray[Any]) -> None:
    """Make an axis logarithmic, with ticks at round numbers that are written as such."""
    from matplotlib.ticker import LogLocator, MaxNLocator, NullLocator, StrMethodFormatter

    is_wide = values.max() > _WIDE_RATIO * values.min()
    ax.set(**{f"{which}scale": "log"})
    axis = getattr(ax, f"{which}axis")
    steps = (1.0, 3.0) if values.max() > _WIDEST_RATIO * values.min() else (1.0, 2.0, 5.0)
    major = LogLocator(subs=steps) if is_wide else MaxNLocator(5, steps=[1, 2, 2.5, 5, 10])
    axis.set_major_locator(major)
    axis.set_major_formatter(StrMethodFormatter("{x:.12g}"))
    axis.set_minor_locator(NullLocator())


def legend_above(ax: "Axes") -> int:
    """Name what is drawn between the axes and their title, and return the number of lines."""
    named = _named(ax)
    n_columns = min(len(named), max(1, int(width_of(ax) / _ENTRY_WIDTH)))
    ax.legend(
        named.values(), named, loc="lower left", bbox_to_anchor=(0, 1), ncols=n_columns, **_LEGEND
    )
    return -(-len(named) // n_columns)


def legend_beside(ax: "Axes", title: str = "") -> None:
    """Name what is drawn on the right of the axes, where a title of the user leaves room."""
    named = _named(ax)
    where: dict[str, Any] = {"loc": "center left", "bbox_to_anchor": (1, 0.5)}
    ax.legend(named.values(), named, title=literal(title), **where, **_LEGEND)


def _named(ax: "Axes") -> dict[str, Any]:
    handles, labels = ax.get_legend_handles_labels()
    return dict(zip(labels, handles, strict=True))


def at_edge(values: FloatArray, around: FloatArray) -> FloatArray:
    """Move values that are far beyond others to the edge, so that all can be seen."""
    low, high = around.min(), around.max()
    room = _BEYOND * (high - low)
    return np.clip(values, low - room, high + room)


def figure_of(ax: "Axes") -> "Figure":
    """Return the figure of axes."""
    figure = ax.get_figure(root=True)
    assert figure is not None  # axes that draw have one
    return figure


def literal(text: str) -> str:
    """Escape the sign with which mathematical text begins: names of columns may hold it."""
    return text.replace("$", r"\$")


def width_of(ax: "Axes") -> float:
    """Return the width in inches of axes with their labels."""
    spec, width = ax.get_subplotspec(), figure_of(ax).get_figwidth()
    return width / (spec.get_gridspec().ncols if spec else 1)


def title_of(text: str, ax: "Axes") -> str:
    """Break a text into a title for axes.

    Of a long text, the first sentences are left, or what stands before a colon.
    """
    n_characters = max(20, int((width_of(ax) - _LABEL_WIDTH) * _TITLE_WIDTH))
    sentences = re.split(r"(?<=[^0-9]\.) (?=[A-Z])", text)
    shorter = [" ".join(sentences[:n]) for n in range(len(sentences), 0, -1)]
    head = sentences[0].partition(": ")[0]
    for one in (*shorter, f"{head}."):
        lines = textwrap.wrap(one, n_characters)
        if len(lines) <= _MAX_LINES:
            break
    return literal("\n".join(lines))


def short(name: str) -> str:
    """Shorten the name of a level in its middle, as names may differ at both ends."""
    half = _MAX_NAME // 2
    return literal(name if len(name) <= _MAX_NAME else f"{name[:half]}…{name[1 - half :]}")


def close(figure: "Figure") -> None:
    """Close a figure that was written to a file."""
    _import_pyplot().close(figure)
