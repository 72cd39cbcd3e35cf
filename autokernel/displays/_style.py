"""What all displays share: axes, colours and the import of matplotlib."""

import textwrap
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from autokernel.explain.words import at_colon
from autokernel.typing import FloatArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# of Okabe and Ito (2008), which colour-blind readers can distinguish
BLUE, ORANGE, GREY = "#0072B2", "#D55E00", "#666666"
DATA: dict[str, Any] = {"color": "#222222", "marker": ".", "linestyle": "none", "markersize": 4}
EXCLUDED = {**DATA, "color": ORANGE, "marker": "x", "label": "excluded"}
WIDE, NARROW = 0.18, 0.35  # opacity of the bands of 95 % and 50 %
TWO_SIDED = 1.96  # standard deviations of a band of 95 %
_DATES = {"minticks": 3, "maxticks": dict.fromkeys(range(7), 6) | {1: 7}}  # 1 for months
_MAX_NAME = 24  # characters of a level
_LEGEND: dict[str, Any] = {"frameon": False, "fontsize": "small", "borderaxespad": 0.2}
_LEGEND |= {"columnspacing": 1, "handlelength": 1.2}
ABOVE = {**_LEGEND, "loc": "lower left", "bbox_to_anchor": (0, 1), "ncols": 4}
BESIDE = {**_LEGEND, "loc": "center left", "bbox_to_anchor": (1, 0.5)}


def new_axes(*shape: int, size: tuple[float, float]) -> "list[Axes]":
    """Return the axes of a new figure of this size in inches, row by row."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError("displays need matplotlib: pip install 'autokernel-gp[plot]'") from error
    _, axes = plt.subplots(*shape, figsize=size, layout="constrained", squeeze=False)
    return list(axes.flat)


def clear_frame(ax: "Axes") -> None:
    """Remove the frame above and on the right, and draw a light grid."""
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(visible=True, color="0.92", linewidth=0.8)
    ax.set_axisbelow(True)


def set_ticks(ax: "Axes", which: str, values: npt.NDArray[Any], *, is_log: bool = False) -> None:
    """Put ticks at names, dates or round numbers, at whole numbers if all values are whole."""
    from matplotlib import dates, ticker

    axis: Any = getattr(ax, f"{which}axis")
    if values.dtype == object:
        n = len(values)
        named = np.linspace(0, n - 1, min(n, 10)).round().astype(int)
        axis.set_ticks(named, list(map(short, values[named])))
        axis.set_tick_params(rotation=20 if which == "x" else 0)  # degrees
    elif values.dtype.kind == "M":
        # the dates of matplotlib have no types
        by_date = dates.AutoDateLocator(**_DATES)  # type: ignore[no-untyped-call]
        axis.set_major_locator(by_date)
        axis.set_major_formatter(dates.ConciseDateFormatter(by_date))  # type: ignore[no-untyped-call]
    elif is_log:
        low, high = axis.get_view_interval()
        ax.set(**{f"{which}scale": "log"})
        within = ticker.MaxNLocator(6, steps=[1, 2, 2.5, 5, 10])
        axis.set_major_locator(ticker.LogLocator(subs=(1, 3)) if high > 10 * low else within)
        axis.set_major_formatter("{x:.12g}")
        axis.set_minor_locator(ticker.NullLocator())
    else:
        axis.get_major_locator().set_params(steps=[1, 2, 5, 10], integer=not np.any(values % 1 > 0))


def set_title(ax: "Axes", text: str, pad: float | None = None) -> None:
    """Write a sentence above axes, in one or two lines; of a longer one what precedes a colon."""
    n_characters = max(20, int(14 * ax.bbox.width / ax.figure.dpi))  # 14 an inch
    lines = textwrap.wrap(text, n_characters)
    if len(lines) > 2:
        lines = textwrap.wrap(at_colon(text)[0], n_characters, max_lines=2, placeholder=" …")
    title = literal("\n".join(lines)).removesuffix(".")
    ax.set_title(title, loc="left", fontsize="medium", pad=pad)


def at_edge(values: FloatArray, around: FloatArray) -> FloatArray:
    """Move values that are far beyond others to the edge, so that all can be seen."""
    low, high = around.min(), around.max()
    room = 0.3 * (high - low)
    return np.clip(values, low - room, high + room)


def literal(text: str) -> str:
    """Escape the sign with which mathematical text begins: names of columns may hold it."""
    return text.replace("$", r"\$")


def short(name: str) -> str:
    """Shorten the name of a level in its middle, as names may differ at both ends."""
    half = _MAX_NAME // 2
    return literal(name if len(name) <= _MAX_NAME else f"{name[:half]}…{name[1 - half :]}")
