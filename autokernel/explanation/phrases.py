"""The words for the product of base kernels on one column.

The rules are those of Lloyd et al. (2014): a product has a noun, which is its periodic factor if it
has one, and each other factor changes the noun. Base kernels declare their nouns.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from autokernel.explanation.numbers import between, listing, with_unit
from autokernel.expression import Leaf
from autokernel.kernels import BaseKernel, LagPairs, Role
from autokernel.likelihood import diagonal_covariance
from autokernel.typing import FloatArray

POLYNOMIALS = ("constant", "straight line", "parabola", "cubic polynomial")
_CHANGES_AMPLITUDE = 1.25  # ratio of the amplitudes at the two ends from which it is told
_SHOWN_TWICE = 0.5  # longest period in extents of the column that is called one
_REMEMBERED = 0.1  # least correlation after a period that is called one
_MOSTLY_WAVE = 0.5  # share of the variance from which a wave on a level is a season
_SEASON = "function that repeats itself"  # of a kernel that has no noun of its own
_UNSEEN_PERIOD = "smooth function"  # with a period that the data do not show
_LONG = 1.0  # lengthscale in extents of the column from which a function hardly bends


@dataclass(frozen=True, slots=True)
class Scale:
    """A lengthscale or a period in the units of the column, with a 90 % interval."""

    value: float
    low: float  # nan where nothing is known of it
    high: float
    in_extents: float  # in multiples of the extent of the column where the component plays a part

    def text(self, unit: str) -> str:
        """Write it with its interval."""
        return between(self.value, self.low, self.high, unit)


@dataclass(frozen=True, slots=True, eq=False)
class Factor:
    """One leaf of a product."""

    leaf: Leaf
    params: FloatArray  # (n_params,), with inputs in the unit interval
    scales: Mapping[Role, Scale]

    @property
    def kernel(self) -> BaseKernel:
        """The base kernel."""
        return self.leaf.kernel

    @property
    def is_known_season(self) -> bool:
        """Whether the user has given its period, so that the data need not show it."""
        index = self.kernel.index(Role.PERIOD)
        return index is not None and self.kernel.parameters[index].keeps_prior


@dataclass(frozen=True, slots=True)
class Phrase:
    """What is said of a product on one column."""

    noun: str  # such as "season", without an article
    clauses: tuple[str, ...] = ()  # what is said of it, such as "repeats every 1.00 years"
    fades: Scale | None = None  # distance beyond the data over which it is forgotten, None if never

    def along(self, name: str) -> str:
        """Write the noun with the column along which it runs."""
        return f"{self.noun} {'of' if 'function' in self.noun else 'in'} {name}"


def phrase_of(
    factors: Sequence[Factor],
    unit: str,
    ends: tuple[float, float],
    wave_share: Callable[[float], float],
) -> Phrase:
    """Tell the product of the factors on one column, from one end to the other.

    ``wave_share`` is the share of the variance of the fitted function that a period explains. A
    product of a periodic factor with others may be a drift with a small wave.
    """
    lines = [one for one in factors if one.kernel.is_linear]
    amplitude = _amplitude(lines, ends)
    stationary = [one for one in factors if one.kernel.is_stationary]
    decaying = [one for one in stationary if Role.PERIOD not in one.scales]
    periodic = [one for one in factors if _is_period(one, decaying)]
    others = [one for one in factors if one not in periodic and one not in lines]
    fades = _shortest(others)
    periods = [one.scales[Role.PERIOD].text(unit) for one in periodic]
    repeats = f"repeats every {listing(periods)}" if periods else ""
    is_alone = not (lines or others)
    is_given = any(one.scales[Role.PERIOD].in_extents > _SHOWN_TWICE for one in periodic)
    if periodic and (is_alone or is_given or wave_share(_longest_period(periodic)) > _MOSTLY_WAVE):
        clauses = [repeats, f"changes its shape over {fades.text(unit)}"] if fades else [repeats]
        return Phrase(periodic[0].kernel.noun or _SEASON, (*clauses, *amplitude), fades)
    in_part = [f"in part {repeats}"] if periodic else []
    if not others:
        degree = len(lines)
        known = degree < len(POLYNOMIALS)
        noun = POLYNOMIALS[degree] if known else f"polynomial of degree {degree}"
        return Phrase(noun, tuple(in_part))
    clauses = [_smoothness(fades, unit)] if fades is not None else []
    return Phrase(_noun(others), (*clauses, *amplitude, *in_part), fades)


def _noun(factors: Sequence[Factor]) -> str:
    """Name a product without a period: after the first factor that has a noun."""
    for one in factors:
        if Role.PERIOD in one.scales:
            return _UNSEEN_PERIOD
        if one.kernel.noun:
            return one.kernel.noun
    return f"function with the kernel {' * '.join(one.kernel.name for one in factors)}"


def _shortest(factors: Sequence[Factor]) -> Scale | None:
    """Return the shortest distance over which one of the factors decays."""
    lengths = [scale for one in factors if (scale := _length(one)) is not None]
    return min(lengths, key=lambda scale: scale.value, default=None)


def _longest_period(periodic: Sequence[Factor]) -> float:
    """Return the longest period in the unit interval."""
    return max(float(one.params[one.kernel.index(Role.PERIOD)]) for one in periodic)


def _is_period(factor: Factor, decaying: Sequence[Factor]) -> bool:
    """Whether a factor repeats itself before it is forgotten, at least twice in the data.

    A period that the user has given need not be shown by the data.
    """
    scale = factor.scales.get(Role.PERIOD)
    if scale is None or (scale.in_extents > _SHOWN_TWICE and not factor.is_known_season):
        return False
    lags = LagPairs(np.array([0.0, _longest_period([factor])]))
    kept = 1.0
    for one in decaying:
        now, later = one.kernel.value(one.params, lags)
        kept *= float(later / now)
    return kept > _REMEMBERED


def _length(factor: Factor) -> Scale | None:
    """Return the distance over which a factor decays, None if it declares none.

    A period that the data do not show twice is no period: within a cycle, the kernel decays over
    ``l p / pi``.
    """
    period = factor.scales.get(Role.PERIOD)
    if period is None:
        return factor.scales.get(Role.LENGTHSCALE)
    index = factor.kernel.index(Role.CYCLE_LENGTHSCALE)
    shorter = 1.0 if index is None else float(factor.params[index]) / np.pi
    return Scale(period.value * shorter, np.nan, np.nan, period.in_extents * shorter)


def _smoothness(scale: Scale, unit: str) -> str:
    """Tell over which distance a function varies."""
    if scale.in_extents > _LONG:
        return f"hardly bends (its lengthscale, {with_unit(scale.value, unit)}, exceeds the data)"
    return f"varies over {scale.text(unit)}"


def _amplitude(lines: Sequence[Factor], ends: tuple[float, float]) -> list[str]:
    """Tell how linear factors change the amplitude, which grows with the column."""
    if not lines:
        return []
    growth = 1.0
    for one in lines:
        variance = diagonal_covariance(Leaf(one.kernel, 0), np.array(ends)[:, None])
        at_begin, at_end = variance.forward(one.params)
        growth *= float(np.sqrt(at_end / at_begin))
    if growth < _CHANGES_AMPLITUDE:
        return []
    how = "linearly" if len(lines) == 1 else f"as a polynomial of degree {len(lines)}"
    return [f"grows {how} in amplitude"]
