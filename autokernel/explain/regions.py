"""Regions of a column in which a component plays a part."""

from dataclasses import dataclass
from typing import NamedTuple

from autokernel.explain.axes import Axis
from autokernel.explain.words import interval, listing
from autokernel.kernels import Share
from autokernel.typing import FloatArray

WHOLE_COLUMN = (0.0, 1.0)
_EDGE = 8.0  # widths from an edge at which a sigmoid is 0.9997


class Edge(NamedTuple):
    """Where a part of a column begins or ends, in the unit interval, with a 90 % interval."""

    value: float
    low: float
    high: float


Piece = tuple[Edge | None, Edge | None]
"""Begin and end of a piece of a column; None where the piece reaches the end of the data."""


@dataclass(frozen=True, slots=True)
class Region:
    """A part of a column, in pieces from left to right."""

    pieces: tuple[Piece, ...]
    width: float  # of the sigmoids at the edges, in the unit interval

    @classmethod
    def of(
        cls, share: Share, params: FloatArray, draws: FloatArray, highest: float = 1.0
    ) -> "Region":
        """Build the part that a share keeps, given its parameters (n_params,) and draws of them.

        Edges beyond the data, whose scaled values are zero to ``highest``, are left out.
        """
        begin, end = (
            None if value is None or drawn is None else Edge(float(value), *interval(drawn))
            for value, drawn in zip(share.edges(params), share.edges(draws.T), strict=True)
        )
        pieces: list[Piece] = [(begin, end)]
        if share.is_rest:  # an edge that is missing leaves nothing on its side
            pieces = [(None, begin)] if begin else []
            pieces += [(end, None)] if end else []
        seen = (_within(piece, highest) for piece in pieces)
        return cls(tuple(one for one in seen if one is not None), float(params[-1]))

    def intersect(self, other: "Region") -> "Region":
        """Return what two parts of one column have in common."""
        both = [
            (
                max(filter(None, (begin, other_begin)), default=None),
                min(filter(None, (end, other_end)), default=None),
            )
            for begin, end in self.pieces  # disjoint, so that the result is in order too
            for other_begin, other_end in other.pieces
        ]
        kept = [(begin, end) for begin, end in both if not (begin and end) or begin < end]
        return Region(tuple(kept), max(self.width, other.width))

    @property
    def longest(self) -> tuple[float, float]:
        """The ends of the longest piece within the unit interval."""
        ends = [
            (begin.value if begin else 0.0, end.value if end else 1.0) for begin, end in self.pieces
        ]
        return max(ends, key=lambda one: one[1] - one[0], default=WHOLE_COLUMN)

    @property
    def inner(self) -> tuple[float, float] | None:
        """The ends of the only piece without its edges, at which sigmoids bend the functions.

        None if there are several pieces, or the edges meet.
        """
        if len(self.pieces) != 1:
            return None
        ((begin, end),) = self.pieces
        low = begin.value + _EDGE * self.width if begin else 0.0
        high = end.value - _EDGE * self.width if end else 1.0
        return (low, high) if low < high else None

    @property
    def has_ended(self) -> bool:
        """Whether the part ends before the data do."""
        return bool(self.pieces) and self.pieces[-1][1] is not None

    def text(self, axis: Axis, *, is_only: bool) -> str:
        """Describe the part; ``is_only`` if there is no other column."""
        if not self.pieces:
            return "nowhere within the data"
        texts = [_piece_text(piece, axis, is_only=is_only) for piece in self.pieces]
        texts = [text for text in texts if text]
        if not texts:
            return ""
        return listing(texts) if is_only else f"where {axis.name} is {' or '.join(texts)}"


def _within(piece: Piece, highest: float) -> Piece | None:
    """Leave out edges beyond data from zero on; None if the whole piece lies beyond them."""
    begin, end = piece
    if (begin and begin.value >= highest) or (end and end.value <= 0):
        return None
    return (
        begin if begin and begin.value > 0 else None,
        end if end and end.value < highest else None,
    )


def _piece_text(piece: Piece, axis: Axis, *, is_only: bool) -> str:
    """Describe a piece, empty for the whole column."""
    begin, end = (None if edge is None else axis.place(*edge) for edge in piece)
    if begin is None:
        words = ("until {}", "below {}")
        return "" if end is None else words[not is_only].format(end)
    if end is None:
        return ("from {} onwards", "above {}")[not is_only].format(begin)
    return ("from {} to {}", "between {} and {}")[not is_only].format(begin, end)
