"""What all displays share: axes, colours and the import of matplotlib."""

import textwrap
from typing import TYPE_CHECKING, Any

import numpy.typing as npt

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# of Okabe and Ito (2008), which colour-blind readers can distinguish
BLUE, ORANGE, GREY = "#0072B2", "#D55E00", "#666666"
LEVEL_COLOURS = (BLUE, ORANGE, "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
DATA: dict[str, Any] = {"color": "#222222", "marker": ".", "linestyle": "none", "markersize": 4}
WIDE, NARROW = 0.18, 0.35  # opacity of the bands of 95 % and 50 %
_TITLE_WIDTH = 13.0  # characters of a title for each inch
_LABEL_WIDTH = 0.8  # inches next to axes for their labels
_WIDE_RATIO, _WIDEST_RATIO = 5.0, 1e4  # of a logarithmic axis, for ticks at 1, 2, 5 and at 1, 3


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


def round_ticks(ax: "Axes", x: npt.NDArray[Any]) -> None:
    """Put ticks at round numbers along x, such as whole years; dates have ticks of their own."""
    if x.dtype.kind != "M":
        ax.locator_params(axis="x", steps=[1, 2, 5, 10])


def log_axis(ax: "Axes", which: str, values: npt.NDArray[Any]) -> None:
    """Make an axis logarithmic, with ticks at round numbers that are written as such."""
    from matplotlib.ticker import LogLocator, MaxNLocator, NullLocator, StrMethodFormatter

    is_wide = values.max() > _WIDE_RATIO * values.min()
    ax.set(**{f"{which}scale": "log"})
    axis = ax.xaxis if which == "x" else ax.yaxis
    steps = (1.0, 3.0) if values.max() > _WIDEST_RATIO * values.min() else (1.0, 2.0, 5.0)
    major = LogLocator(subs=steps) if is_wide else MaxNLocator(5, steps=[1, 2, 2.5, 5, 10])
    axis.set_major_locator(major)
    axis.set_major_formatter(StrMethodFormatter("{x:.12g}"))
    axis.set_minor_locator(NullLocator())


def figure_of(ax: "Axes") -> "Figure":
    """Return the figure of axes."""
    figure = ax.get_figure(root=True)
    assert figure is not None  # axes that draw have one
    return figure


def literal(text: str) -> str:
    """Escape the sign with which mathematical text begins: names of columns may hold it."""
    return text.replace("$", r"\$")


def wrapped(text: str, width: float) -> str:
    """Break a title into lines for axes that have, with their labels, this width in inches."""
    return literal(textwrap.fill(text, max(20, int((width - _LABEL_WIDTH) * _TITLE_WIDTH))))


def close(figure: "Figure") -> None:
    """Close a figure that was written to a file."""
    _import_pyplot().close(figure)
