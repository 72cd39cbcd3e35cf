"""Regions of a column in which a component plays a part, and their words."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from autokernel.explain.axes import Axis
from autokernel.explain.words import interval, listing
from autokernel.kernels import BroadcastPairs, Share
from autokernel.typing import FloatArray

WHOLE_COLUMN = (0.0, 1.0)
N_PLACES = 4001  # along a column
HALF, FULL = 0.5, 0.999  # sizes within a region, and where its edges do not bend functions

Edge = tuple[float, float, float]
"""Where a piece begins or ends, in the unit interval, with a 90 % interval."""
Piece = tuple[Edge | None, Edge | None]


@dataclass(frozen=True, slots=True)
class Region:
    """The pieces of a column in which shares keep a component, from left to right.

    A piece has no begin or no end where it reaches the end of the data.
    """

    pieces: Sequence[Piece]
    inner: tuple[float, float] | None  # the ends of the only piece, without its edges

    @classmethod
    def of(cls, shares: Sequence[tuple[Share, FloatArray, FloatArray]], highest: float) -> "Region":
        """Find where the product of shares is large, along scaled values from zero to ``highest``.

        Each share comes with its parameters (n_params,), and draws (n_draws, n_params) of them.
        """
        x = np.linspace(0, highest, N_PLACES)
        size = _product([(share, params) for share, params, _ in shares], x)
        drawn = zip(*(draws for _, _, draws in shares), strict=True)
        kernels = [share for share, _, _ in shares]
        every = [_edges(_product(zip(kernels, one, strict=True), x), x) for one in drawn]
        pieces = _pieces(size, _edges(size, x), every)
        full = x[size > FULL].tolist() if len(pieces) == 1 else []
        return cls(pieces, (full[0], full[-1]) if len(full) > 1 else None)

    @property
    def longest(self) -> tuple[float, float]:
        """The ends of the longest piece within the unit interval."""
        ends = [(begin[0] if begin else 0.0, end[0] if end else 1.0) for begin, end in self.pieces]
        return max(ends, key=lambda one: one[1] - one[0], default=WHOLE_COLUMN)

    @property
    def has_ended(self) -> bool:
        """Whether the part ends before the data do."""
        return bool(self.pieces) and self.pieces[-1][1] is not None

    def text(self, axis: Axis, *, is_only: bool) -> str:
        """Describe the part; ``is_only`` if there is no other column."""
        if not self.pieces:
            return "nowhere within the data"
        texts = [_piece_text(*piece, axis, is_only=is_only) for piece in self.pieces]
        if not any(texts):
            return ""
        return listing(texts) if is_only else f"where {axis.name} is {' or '.join(texts)}"


def _pieces(size: FloatArray, edges: list[float], drawn: list[list[float]]) -> Sequence[Piece]:
    similar = [one for one in drawn if len(one) == len(edges)] or [edges]
    ends = interval(np.array(similar)).T.tolist()
    first, last = ([None] * bool(one > HALF) for one in size[[0, -1]])
    bounds = [*first, *((e, *own) for e, own in zip(edges, ends, strict=True)), *last]
    return list(zip(bounds[::2], bounds[1::2], strict=True))


def _product(shares: Iterable[tuple[Share, FloatArray]], x: FloatArray) -> FloatArray:
    squares = [share.value(params, BroadcastPairs(x, x)) for share, params in shares]
    return np.sqrt(np.prod(squares, axis=0))


def _edges(size: FloatArray, x: FloatArray) -> list[float]:
    """Return the places where a function crosses one half."""
    before = np.flatnonzero(np.diff(size > HALF))
    rise = size[before + 1] - size[before]
    return (x[before] + (HALF - size[before]) / rise * (x[1] - x[0])).tolist()


def _piece_text(begin: Edge | None, end: Edge | None, axis: Axis, *, is_only: bool) -> str:
    """Describe a piece, empty for the whole column."""
    if begin and end:
        words = ("between {} and {}", "from {} to {}")[is_only]
        return words.format(axis.place(*begin), axis.place(*end))
    if begin:
        return ("above {}", "from {} onwards")[is_only].format(axis.place(*begin))
    return ("below {}", "until {}")[is_only].format(axis.place(*end)) if end else ""
