"""The parts of an effect along one column, each of which a reader takes for one thing."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from autokernel.explain.axes import Axis
from autokernel.explain.effects import Effect, Factor, effect_of, products_of
from autokernel.explain.words import interval, listing
from autokernel.expression import IDENTITY, Expression, Leaf, Tree, arrange, slots_of
from autokernel.kernels import MULTIPLY, BroadcastPairs, KernelParameter, LagPairs, Role, Share
from autokernel.typing import FloatArray, IntArray

WHOLE_COLUMN = (0.0, 1.0)
HALF = 0.5  # size at the edges of a region

Edge = tuple[float, float, float]
"""Where a piece of a region begins or ends, in the unit interval, with a 90 % interval."""
Piece = tuple[Edge | None, Edge | None]


@dataclass(frozen=True, slots=True, eq=False)  # eq=False: the fields hold arrays
class Part:
    """A component of the effect of a column, before it is put into words.

    It holds the factors that a reader takes for one thing: all without a season, those with the
    same season, and what works against each other.
    """

    column: int
    group: Sequence[Factor]  # of different products
    theta_of_all: FloatArray  # logs of all parameters of the kernel that is explained
    period: float = np.nan  # with which it repeats, in the unit interval
    is_season: bool = False  # whether it repeats, and does little else
    is_whole: bool = False  # whether it has all that repeats along its column
    longer: Sequence[float] = ()  # periods of longer seasons that it has too
    share: float = np.nan
    span: float = np.nan  # of its mean over the training rows, on the scale of the target
    size: float = np.nan  # standard deviation of this mean

    @property
    def columns(self) -> tuple[int]:
        """Its column, as effects have several."""
        return (self.column,)

    @property
    def numbers(self) -> list[int]:
        """The numbers of its products."""
        return sorted({one.number for one in self.group})

    @property
    def effect(self) -> Effect:
        """Its function, as the difference from the average over the rows."""
        return effect_of(self.columns, self.numbers)

    @property
    def leaves(self) -> list[tuple[Leaf, IntArray]]:
        """The base kernels, with the entries of their parameters in those of the kernel."""
        return [
            (node, one.entries[own])
            for one in self.group
            for node, own in slots_of(one.expression)
            if isinstance(node, Leaf)
        ]

    @property
    def periods(self) -> list[tuple[KernelParameter, int]]:
        """The parameters that are periods, with their entries in those of the kernel."""
        return [
            (parameter, entry)
            for leaf, entries in self.leaves
            for parameter, entry in zip(leaf.kernel.parameters, entries.tolist(), strict=True)
            if parameter.role == Role.PERIOD
        ]

    @property
    def every_period(self) -> list[float]:
        """Its periods in the unit interval, also those that it only repeats with for a while."""
        return sorted({float(np.exp(self.theta_of_all[entry])) for _, entry in self.periods})

    @property
    def expression(self) -> Tree:
        """The kernel along the column, in which equal factors occur once."""
        first, *others = {one.expression.canonical: one.expression for one in self.group}.values()
        return arrange(sum(others, start=first))[0]

    @property
    def is_of_levels(self) -> bool:
        """Whether it only matters if two values of the column are equal."""
        return all(leaf.kernel.is_categorical for leaf, _ in self.leaves)

    @property
    def regions(self) -> list[str]:
        """The names of the shares that keep a part of the column, of a function along it.

        A factor of shares only says where functions of other columns count.
        """
        return sorted(
            leaf.canonical
            for one in self.group
            if not all(isinstance(leaf.kernel, Share) for leaf in one.expression.leaves)
            for leaf in one.expression.leaves
            if isinstance(leaf.kernel, Share)
        )

    def region(self, highest: float, draws: Iterable[FloatArray] = ()) -> "Region | None":
        """Return where it plays a part, up to the highest value, None if that is everywhere.

        The ``draws`` (n_draws, n_params) are of the logs of all parameters.
        """
        if len(self.group) > 1 or not self.regions:
            return None
        x = np.linspace(0, highest, 4001)
        return Region(x, self._size(x, self.theta_of_all), [self._size(x, one) for one in draws])

    def _size(self, x: FloatArray, theta: FloatArray) -> FloatArray:
        """Compute by what its shares multiply its function at values (n,) of the column."""
        shares = [
            leaf.kernel.value(np.exp(theta[entries]), BroadcastPairs(x, x))
            for leaf, entries in self.leaves
            if isinstance(leaf.kernel, Share)
        ]
        return np.sqrt(np.prod(shares, axis=0))

    @property
    def is_free(self) -> bool:
        """Whether it may be joined with others."""
        return not (self.is_season or self.regions)

    @property
    def scale(self) -> str:
        """The scale of the column on which all its kernels without a period act."""
        scales = {
            leaf.scale
            for leaf, _ in self.leaves
            if not (leaf.has_period or isinstance(leaf.kernel, Share))
        }
        return scales.pop() if len(scales) == 1 else IDENTITY

    def joined_with(self, *others: "Part") -> "Part":
        """Return the sum of this part and others along its column, as one part."""
        every = [self, *others]
        return replace(
            self,
            group=[own for one in every for own in one.group],
            period=max((one.period for one in every if one.period > 0), default=np.nan),
            is_season=all(one.is_season for one in every),
        )

    def repeats_like(self, other: "Part", accuracy: float) -> bool:
        """Whether both have one period, up to a relative difference."""
        return abs(self.period / other.period - 1) < accuracy  # never if one is nan

    def stands_for(self, other: "Part", parts: Sequence["Part"] = ()) -> bool:
        """Whether a factor of another kernel belongs to it, and to none of the other parts.

        A season has those with its period, of products with several the longest that a part has,
        and what is confined to regions those of the same ones.
        """
        if self.is_season:
            is_of_longest = any(one.repeats_like(other, 0.05) for one in parts)
            periods = [other.period] if is_of_longest else other.every_period
            own = [self.period, *self.longer]
            return any(abs(one / period - 1) < 0.05 for one in periods for period in own)
        if self.regions:
            return self.regions == other.regions
        rivals = [one for one in parts if not (one.is_free or (self.is_whole and one.is_season))]
        return not any(one.stands_for(other) for one in rivals)


def parts_of(expression: Expression, theta: FloatArray, column: int) -> list[Part]:
    """Return the factors of a kernel along a column, each as a part, with the period it may have.

    A part whose period is given by the user, or whose kernels all repeat, is a season.
    """
    found = []
    for factor in (one for product in products_of(expression) for one in product):
        if column in factor.expression.columns:
            part = Part(column, [factor], theta)
            period, is_known = _period_of(part)
            own = [leaf for leaf, _ in part.leaves if not isinstance(leaf.kernel, Share)]
            is_season = is_known or all(leaf.has_period for leaf in own)
            is_season = is_season and bool(period > 0)  # not if it is nan
            found.append(replace(part, period=period, is_season=is_season))
    return found


def joined(parts: Sequence[Part]) -> list[Part]:
    """Join parts along a column that are free, and those with the same period."""
    found: list[Part] = []
    for part in parts:
        for one in [one for one in found if _are_one(part, one)]:
            found.remove(one)
            part = one.joined_with(part)
        found.append(part)
    return found


def _are_one(one: Part, other: Part) -> bool:
    if one.is_free and other.is_free:
        return True
    return not (one.regions or other.regions) and one.repeats_like(other, 0.02)


def _period_of(part: Part) -> tuple[float, bool]:
    """Return the longest period of one factor, and whether the user has given it.

    The period is nan without one that repeats before it is forgotten.
    """
    factor, *_ = part.group
    is_product = all(isinstance(one, Leaf) for one in factor.expression.terms(MULTIPLY))
    every = [
        (float(np.exp(part.theta_of_all[entry])), parameter.keeps_prior)
        for parameter, entry in part.periods
        if is_product
    ]
    lasting = [one for one in every if _correlation(part, one[0]) > 0.1]  # after a period
    return max(lasting, default=(np.nan, False))


def _correlation(part: Part, lag: float) -> float:
    """Compute the correlation that the factors without a period leave after a lag."""
    lags, kept = LagPairs(np.array([0.0, lag])), 1.0
    for leaf, entries in part.leaves:
        kernel = leaf.kernel
        is_of_lags = kernel.is_stationary and leaf.scale == IDENTITY
        if is_of_lags and not (leaf.has_period or isinstance(kernel, Share)):
            now, later = kernel.value(np.exp(part.theta_of_all[entries]), lags)
            kept *= float(later / now)
    return kept


class Region:
    """The pieces of a column in which shares keep a component, from left to right.

    A piece has no begin or no end where it reaches the end of the data. They are found from the
    size (n,) of a function along x (n,), with draws of the size; ``inner`` has the ends of the only
    piece, without its edges.
    """

    def __init__(self, x: FloatArray, size: FloatArray, drawn: Sequence[FloatArray]) -> None:
        edges = _edges(size, x)
        similar = [one for one in (_edges(own, x) for own in drawn) if len(one) == len(edges)]
        ends = interval(np.array(similar or [edges])).T.tolist()
        first, last = ([None] * bool(one > HALF) for one in size[[0, -1]])
        bounds = [*first, *((e, *own) for e, own in zip(edges, ends, strict=True)), *last]
        self.pieces: list[Piece] = list(zip(bounds[::2], bounds[1::2], strict=True))
        full = x[size > 0.999].tolist() if len(self.pieces) == 1 else []
        self.inner = (full[0], full[-1]) if len(full) > 1 else None

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
