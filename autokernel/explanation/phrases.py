"""The words for the product of base kernels on one column.

The rules are those of Lloyd et al. (2014): a product has a noun, which is its periodic factor if it
has one, and each other factor changes the noun. Base kernels declare their nouns.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from autokernel.explanation.numbers import between, listing, with_unit
from autokernel.expression import Leaf
from autokernel.kernels import BaseKernel, Role
from autokernel.likelihood import diagonal_covariance
from autokernel.typing import FloatArray

POLYNOMIALS = ("constant", "straight line", "parabola", "cubic polynomial")
_CHANGES_AMPLITUDE = 1.25  # ratio of the amplitudes at the two ends from which it is told
_SHOWN_TWICE = 0.5  # longest period in extents of the column that is called one
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


@dataclass(frozen=True, slots=True)
class Phrase:
    """What is said of a product on one column."""

    noun: str  # such as "season", without an article
    clauses: tuple[str, ...] = ()  # what is said of it, such as "repeats every 1.00 years"
    fades: Scale | None = None  # distance beyond the data over which it is forgotten, None if never

    def along(self, name: str) -> str:
        """Write the noun with the column along which it runs."""
        return f"{self.noun} {'of' if 'function' in self.noun else 'in'} {name}"


def phrase_of(factors: Sequence[Factor], unit: str, ends: tuple[float, float]) -> Phrase:
    """Tell the product of the factors on one column, from one end to the other."""
    periodic = [one for one in factors if _is_period(one)]
    lines = [one for one in factors if one.kernel.is_linear]
    others = [one for one in factors if one not in periodic and one not in lines]
    lengths = [scale for one in others if (scale := _length(one)) is not None]
    fades = min(lengths, key=lambda scale: scale.value, default=None)
    if periodic:
        return _season(periodic, lines, others, unit, fades, ends)
    if not others:
        degree = len(lines)
        known = degree < len(POLYNOMIALS)
        return Phrase(POLYNOMIALS[degree] if known else f"polynomial of degree {degree}")
    noun = _noun(others)
    clauses = [_smoothness(fades, unit)] if fades is not None else []
    return Phrase(noun, (*clauses, *_amplitude(lines, ends)), fades)


def _noun(factors: Sequence[Factor]) -> str:
    """Name a product without a period: after the first factor that has a noun."""
    for one in factors:
        if Role.PERIOD in one.scales:
            return _UNSEEN_PERIOD
        if one.kernel.noun:
            return one.kernel.noun
    return f"function with the kernel {' * '.join(one.kernel.name for one in factors)}"


def _season(
    periodic: Sequence[Factor],
    lines: Sequence[Factor],
    others: Sequence[Factor],
    unit: str,
    fades: Scale | None,
    ends: tuple[float, float],
) -> Phrase:
    """Tell a product with a periodic factor."""
    periods = [one.scales[Role.PERIOD].text(unit) for one in periodic]
    clauses = [f"repeats every {listing(periods)}"]
    if others and fades is not None:
        clauses.append(f"changes its shape over {fades.text(unit)}")
    return Phrase(periodic[0].kernel.noun or _SEASON, (*clauses, *_amplitude(lines, ends)), fades)


def _is_period(factor: Factor) -> bool:
    """Whether a factor repeats itself within the data, at least twice."""
    period = factor.scales.get(Role.PERIOD)
    return period is not None and period.in_extents <= _SHOWN_TWICE


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
