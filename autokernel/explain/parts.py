"""The parts of a kernel, each of which a reader takes for one thing."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np

from autokernel.expression import IDENTITY, Addend, Expression, Leaf, addends, arrange, slots_of
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


@dataclass(frozen=True, slots=True, eq=False)  # eq=False: the fields hold arrays
class Part:
    """A component of a kernel, before it is put into words.

    It holds the addends that a reader takes for one thing: all that have a column in common and no
    season, those with the same season, and what works against each other.
    """

    group: Sequence[Addend]
    theta_of_all: FloatArray  # logs of all parameters of the kernel that is explained
    period: float = np.nan  # with which it repeats, in the unit interval
    is_season: bool = False  # whether it repeats, and does little else
    is_whole: bool = False  # whether it has all that repeats along its column
    share: float = np.nan
    span: float = np.nan  # of its mean over the training rows, on the scale of the target

    @property
    def columns(self) -> tuple[int, ...]:
        """The columns on which it depends."""
        return tuple(sorted(frozenset.union(*(one.expression.columns for one in self.group))))

    @property
    def groups(self) -> tuple[int, ...]:
        """The columns of which it only matters whether two values are equal."""
        acting = {leaf.column for leaf in self.leaves if not leaf.kernel.is_categorical}
        return tuple(column for column in self.columns if column not in acting)

    @property
    def along(self) -> tuple[int, ...]:
        """The columns along which it is a curve, one for each level of its groups."""
        return tuple(column for column in self.columns if column not in self.groups)

    @property
    def leaves(self) -> list[Leaf]:
        """The base kernels of all addends."""
        return [leaf for one in self.group for leaf in one.expression.leaves]

    @property
    def expression(self) -> Expression:
        """The kernel, in which equal addends occur once."""
        first, *others = {one.expression.canonical: one.expression for one in self.group}.values()
        return arrange(sum(others, start=first))[0]

    @property
    def kernel(self) -> tuple[Expression, FloatArray]:
        """The sum of the addends, and its parameters (n_params,), not their logs."""
        first, *others = self.group
        kernel = sum((one.expression for one in others), start=first.expression)
        entries = np.concatenate([one.entries for one in self.group])
        return kernel, np.exp(self.theta_of_all[entries])

    @property
    def is_joint(self) -> bool:
        """Whether the effect of a column depends on another one, and is not only added to it."""
        return any(len(one.expression.columns) > 1 for one in self.group)

    @property
    def regions(self) -> list[str]:
        """The names of the shares that keep a part of a column."""
        return sorted(leaf.canonical for leaf in self.leaves if isinstance(leaf.kernel, Share))

    @property
    def is_free(self) -> bool:
        """Whether it may be joined with others that have a column in common."""
        is_periodic = any(has_period(leaf.kernel) for leaf in self.leaves)
        varies_with_season = len(self.along) > 1 and self.is_joint and is_periodic
        return not (self.is_season or self.regions or varies_with_season)

    def scale(self, column: int) -> str:
        """Return the scale of a column on which all its kernels without a period act."""
        scales = {
            leaf.scale
            for leaf in self.leaves
            if leaf.column == column
            and not (has_period(leaf.kernel) or isinstance(leaf.kernel, Share))
        }
        return scales.pop() if len(scales) == 1 else IDENTITY

    def repeats_like(self, period: float, accuracy: float = SAME_SEASON) -> bool:
        """Whether its period is this one, up to a relative difference."""
        return abs(self.period / period - 1) < accuracy  # never if it is nan

    def is_like(self, other: "Part") -> bool:
        """Whether it is a season that another part has too, or has the same columns and regions."""
        if self.columns != other.columns:
            return False
        if self.is_season:
            return other.repeats_like(self.period)
        return not other.is_free and self.regions == other.regions

    def stands_for(self, other: "Part", parts: Sequence["Part"]) -> bool:
        """Whether an addend of another kernel belongs to it, and to none of the other parts."""
        if not self.is_free:
            return self.is_like(other)
        rivals = [one for one in parts if not (one.is_free or self._has_cycle(one))]
        return self.meets(other) and not any(one.is_like(other) for one in rivals)

    def meets(self, other: "Part") -> bool:
        """Whether it has a column in common with another part."""
        return bool({*self.columns} & {*other.columns})

    def _has_cycle(self, other: "Part") -> bool:
        """Whether it has all that repeats along its column, with another part."""
        return self.is_whole and other.is_season and other.columns == self.columns

    def drift(self, step: float) -> float:
        """Compute the standard deviation of what its levels wander over a step, by their kernels.

        The step is in the unit interval of the column. It is zero without a level that wanders.
        """
        x = np.array([1 - step, 1.0])
        pairs, variance = BroadcastPairs(x[:, None], x[None]), 0.0
        for one in self.group:
            leaf = one.expression
            if isinstance(leaf, Leaf) and leaf.kernel in WANDERING and leaf.scale == IDENTITY:
                K = leaf.kernel.value(np.exp(self.theta_of_all[one.entries]), pairs)
                variance += K[0, 0] + K[1, 1] - 2 * K[0, 1]
        return float(np.sqrt(variance))


def parts_of(expression: Expression, theta: FloatArray) -> list[Part]:
    """Return the addends of a kernel, each as a part, with the period of those that repeat."""
    parts = [Part([addend], theta) for addend in addends(expression)]
    return [replace(part, period=period_of(part.group[0], theta)[0]) for part in parts]


def joined(parts: Sequence[Part]) -> list[Part]:
    """Join parts that have a column in common, and those of one column with the same period."""
    found: list[Part] = []
    for part in parts:
        same = [one for one in found if _are_one(part, one)]
        for one in same:
            period = max(part.period, one.period, key=lambda value: np.nan_to_num(value))
            is_season = one.is_season and part.is_season
            group = [*one.group, *part.group]
            part = replace(part, group=group, period=period, is_season=is_season)
        found = [one for one in found if not any(one is other for other in same)] + [part]
    return found


def _are_one(one: Part, other: Part) -> bool:
    if one.is_free and other.is_free:
        return one.meets(other)
    is_same = one.columns == other.columns and len(one.along) == 1
    is_somewhere = one.regions or other.regions
    return bool(is_same and not is_somewhere and one.repeats_like(other.period, SAME_PERIOD))


def period_of(addend: Addend, theta: FloatArray) -> tuple[float, bool]:
    """Return the longest period of a product along one column, and whether the user has given it.

    The product may have factors for the levels of categories. The period is nan without one that
    the data show twice before it is forgotten.
    """
    is_product = all(isinstance(one, Leaf) for one in addend.expression.terms(MULTIPLY))
    leaves = leaves_of(addend) if is_product else []
    factors = [(leaf, np.exp(theta[own])) for leaf, own in leaves if not leaf.kernel.is_categorical]
    if len({leaf.column for leaf, _ in factors}) != 1:
        return np.nan, False
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
        if leaf.kernel.is_stationary and leaf.scale == IDENTITY and not only_switches(leaf.kernel):
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


def leaves_of(addend: Addend) -> list[tuple[Leaf, IntArray]]:
    """List the leaves of an addend, with the entries of their parameters in those of the whole."""
    slots = slots_of(addend.expression)
    return [(node, addend.entries[own]) for node, own in slots if isinstance(node, Leaf)]


def has_period(kernel: BaseKernel) -> bool:
    """Whether a base kernel repeats."""
    return role_index(kernel.parameters, Role.PERIOD) is not None


def only_switches(kernel: BaseKernel) -> bool:
    """Whether a factor only says where, or for which levels, the others count."""
    return isinstance(kernel, Share) or kernel.is_categorical
