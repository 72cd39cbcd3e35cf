"""The parts of an effect along one column, each of which a reader takes for one thing."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import NamedTuple

import numpy as np

from autokernel.explain.effects import Effect, effect_of, products_of
from autokernel.explain.regions import Region
from autokernel.expression import IDENTITY, Expression, Leaf, arrange, slots_of
from autokernel.kernels import (
    MULTIPLY,
    WANDERING,
    BaseKernel,
    BroadcastPairs,
    LagPairs,
    Role,
    Share,
    role_index,
)
from autokernel.typing import FloatArray, IntArray

SAME_PERIOD = 0.02  # relative difference up to which two seasons of a kernel are one
SAME_SEASON = 0.05  # the same of two kernels
MAX_PERIOD = 0.5  # extents of the column; the data show a longer one less than twice
MIN_CORRELATION = 0.1  # after one period, for a function that is said to repeat


class Slice(NamedTuple):
    """What a product of a kernel has along one column."""

    number: int  #: of the product in the kernel
    expression: Expression  #: the factor that depends on the column
    entries: IntArray  #: of its parameters among those of the kernel


@dataclass(frozen=True, slots=True, eq=False)  # eq=False: the fields hold arrays
class Part:
    """A component of the effect of a column, before it is put into words.

    It holds the slices that a reader takes for one thing: all without a season, those with the
    same season, and what works against each other.
    """

    column: int
    group: Sequence[Slice]
    theta_of_all: FloatArray  # logs of all parameters of the kernel that is explained
    period: float = np.nan  # with which it repeats, in the unit interval
    is_season: bool = False  # whether it repeats, and does little else
    is_whole: bool = False  # whether it has all that repeats along its column
    share: float = np.nan
    span: float = np.nan  # of its mean over the training rows, on the scale of the target

    @property
    def numbers(self) -> set[int]:
        """The numbers of its products."""
        return {one.number for one in self.group}

    @property
    def effect(self) -> Effect:
        """Its function, as the difference from the average over the rows."""
        return effect_of([self.column], self.numbers)

    @property
    def leaves(self) -> list[Leaf]:
        """The base kernels of all slices."""
        return [leaf for one in self.group for leaf in one.expression.leaves]

    @property
    def expression(self) -> Expression:
        """The kernel along the column, in which equal slices occur once."""
        first, *others = {one.expression.canonical: one.expression for one in self.group}.values()
        return arrange(sum(others, start=first))[0]

    @property
    def is_of_levels(self) -> bool:
        """Whether it only matters if two values of the column are equal."""
        return all(leaf.kernel.is_categorical for leaf in self.leaves)

    @property
    def regions(self) -> list[str]:
        """The names of the shares that keep a part of the column, of a function along it."""
        return sorted(
            leaf.canonical
            for one in self.group
            for leaf in one.expression.leaves
            if isinstance(leaf.kernel, Share) and not _is_switch(one)
        )

    def region(self, highest: float, draws: FloatArray | None = None) -> Region | None:
        """Return where it plays a part, up to the highest value, None if that is everywhere.

        The ``draws`` (n_draws, n_params) are of the logs of all parameters.
        """
        if len(self.group) > 1 or not self.regions:
            return None
        theta = self.theta_of_all
        drawn = theta[None] if draws is None else draws
        shares = [
            (leaf.kernel, np.exp(theta[entries]), np.exp(drawn[:, entries]))
            for leaf, entries in leaves_of(self.group[0])
            if isinstance(leaf.kernel, Share)
        ]
        return Region.of(shares, highest)

    @property
    def is_free(self) -> bool:
        """Whether it may be joined with others."""
        return not (self.is_season or self.regions)

    @property
    def scale(self) -> str:
        """The scale of the column on which all its kernels without a period act."""
        scales = {
            leaf.scale
            for leaf in self.leaves
            if not (has_period(leaf.kernel) or isinstance(leaf.kernel, Share))
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
        """Whether a slice of another kernel belongs to it, and to none of the other parts.

        A season has those with its period, and what is confined to regions those of the same ones.
        """
        if self.is_season:
            return other.repeats_like(self, SAME_SEASON)
        if self.regions:
            return self.regions == other.regions
        rivals = [one for one in parts if not (one.is_free or (self.is_whole and one.is_season))]
        return not any(one.stands_for(other) for one in rivals)

    def drift(self, step: float, totals: Mapping[int, float]) -> float:
        """Compute the standard deviation of what its levels wander over a step, by their kernels.

        The step is in the unit interval of the column, and ``totals`` are by what each product is
        multiplied on average. It is zero without a level that wanders.
        """
        x = np.array([1 - step, 1.0])
        pairs, variance = BroadcastPairs(x[:, None], x[None]), 0.0
        for one in self.group:
            leaf = one.expression
            if isinstance(leaf, Leaf) and leaf.kernel in WANDERING and leaf.scale == IDENTITY:
                K = leaf.kernel.value(np.exp(self.theta_of_all[one.entries]), pairs)
                variance += totals[one.number] * (K[0, 0] + K[1, 1] - 2 * K[0, 1])
        return float(np.sqrt(variance))


def parts_of(expression: Expression, theta: FloatArray, column: int) -> list[Part]:
    """Return the slices of a kernel along a column, each as a part, with the period it may have."""
    slices = [
        Slice(number, factor.expression, factor.entries)
        for number, product in enumerate(products_of(expression))
        for factor in product
        if column in factor.columns
    ]
    return [Part(column, [one], theta, period_of(one, theta)[0]) for one in slices]


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
    return not (one.regions or other.regions) and one.repeats_like(other, SAME_PERIOD)


def period_of(own: Slice, theta: FloatArray) -> tuple[float, bool]:
    """Return the longest period of a product along one column, and whether the user has given it.

    The period is nan without one that the data show twice before it is forgotten.
    """
    is_product = all(isinstance(one, Leaf) for one in own.expression.terms(MULTIPLY))
    factors = [(leaf, np.exp(theta[at])) for leaf, at in leaves_of(own)] if is_product else []
    lasting = [
        (period, is_known)
        for period, is_known in chain.from_iterable(_periods(*one) for one in factors)
        if _correlation(factors, period) > MIN_CORRELATION
    ]
    return max(lasting, default=(np.nan, False))


def _periods(leaf: Leaf, params: FloatArray) -> Iterator[tuple[float, bool]]:
    for parameter, value in zip(leaf.kernel.parameters, params.tolist(), strict=True):
        is_known = parameter.keeps_prior
        if parameter.role == Role.PERIOD and (is_known or value <= MAX_PERIOD):
            yield value, is_known


def _correlation(factors: Sequence[tuple[Leaf, FloatArray]], lag: float) -> float:
    """Compute the correlation that the factors without a period leave after a lag."""
    lags, kept = LagPairs(np.array([0.0, lag])), 1.0
    for leaf, params in factors:
        if (
            leaf.kernel.is_stationary
            and leaf.scale == IDENTITY
            and not isinstance(leaf.kernel, Share)
        ):
            now, later = leaf.kernel.value(params, lags)
            kept *= 1.0 if has_period(leaf.kernel) else float(later / now)
    return kept


def unseen_period(part: Part, longest: float) -> bool:
    """Whether a part repeats with a period below ``longest`` that the data do not show twice."""
    return any(
        parameter.role == Role.PERIOD
        and not parameter.keeps_prior
        and MAX_PERIOD < np.exp(part.theta_of_all[entry]) < longest
        for leaf, entries in chain.from_iterable(map(leaves_of, part.group))
        for parameter, entry in zip(leaf.kernel.parameters, entries, strict=True)
    )


def leaves_of(own: Slice) -> list[tuple[Leaf, IntArray]]:
    """List the leaves of a slice, with the entries of their parameters in those of the whole."""
    slots = slots_of(own.expression)
    return [(node, own.entries[entries]) for node, entries in slots if isinstance(node, Leaf)]


def has_period(kernel: BaseKernel) -> bool:
    """Whether a base kernel repeats."""
    return role_index(kernel.parameters, Role.PERIOD) is not None


def _is_switch(own: Slice) -> bool:
    """Whether a slice only says where functions of other columns count."""
    return all(isinstance(leaf.kernel, Share) for leaf in own.expression.leaves)
