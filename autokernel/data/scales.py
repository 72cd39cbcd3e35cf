"""Scales on which a column or the target may be simple: its logarithm, square root or logit."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.polynomial.hermite_e import hermegauss, hermevander
from scipy.special import expit, gammaln, log_ndtr, logit, logsumexp, ndtr
from scipy.stats import norm

from autokernel.data.counts import FAMILIES, MAX_COUNT, Family, Local, Rates
from autokernel.expression import COLUMN_SCALES, IDENTITY
from autokernel.typing import BoolArray, FloatArray, IntArray

MIN_RATIO = 3.0  # of the largest to the smallest value of a column that has other scales
MIN_RATIO_OF_TARGET = 2.0  # the same of a target; below it all scales are nearly the same
MIN_DISTINCT = 10  # values of a target that has other scales
MIN_DISTINCT_OF_COLUMN = 5  # the same of a column
MIN_SHARE = 1e-9  # of the largest target, below which the smallest one is many decades away
MAX_GAP = 0.5  # of the range of the logs of such targets; a larger one parts two kinds of numbers
MAX_SHARE_OF_ZEROS = 0.05  # of a target that has a logarithm
MAX_VARIANCE = 1.0  # on the scale of the target, for means; that of all targets, standardised
LARGEST_LOG = 690.0  # so that its exponential does not overflow
LARGEST_RATE = 100.0  # of counts, its logarithm: squares of means do not overflow
_ROUNDING = 1e-12  # standard deviations of the target, within which a number is zero
MIN_CURVATURE = 1e-8  # of a log probability in a standardised function
MIN_DISPERSION = 1e-6  # below which digits are lost, and counts show none
MAX_SPREAD = 20.0  # of a function in deviations of counts, for sums over it
MIN_NODES, MAX_NODES, FARTHEST = 14, 400, 6.0  # of sums over functions, and their deviations
_N_NODES, _N_TERMS = 64, 32  # of a Gauss-Hermite rule, and of a Hermite series


class _Map(NamedTuple):
    """A rising function of numbers between ``low`` and ``high``, at which it may have a value."""

    function: Callable[[FloatArray], FloatArray]
    inverse: Callable[[FloatArray], FloatArray]
    log_slope: Callable[[FloatArray], FloatArray]
    low: float = 0.0
    high: float = np.inf
    has_low: bool = False

    def has(self, x: FloatArray) -> BoolArray:
        return ((x >= self.low) if self.has_low else (x > self.low)) & (x < self.high)

    def has_slope(self, x: FloatArray) -> BoolArray:
        """Return at which numbers its slope is finite, as it must be for targets."""
        return (x > self.low) & (x < self.high)


def _squared(root: FloatArray) -> FloatArray:
    return np.maximum(root, 0.0) ** 2  # the square root has no negative values


SCALES: Mapping[str, _Map] = {
    "log": _Map(np.log, lambda t: np.exp(np.minimum(t, LARGEST_LOG)), lambda x: -np.log(x)),
    "sqrt": _Map(np.sqrt, _squared, lambda x: -np.log(2.0) - 0.5 * np.log(x), has_low=True),
    IDENTITY: _Map(lambda x: x, lambda t: t, np.zeros_like, low=-np.inf),
    "logit": _Map(logit, expit, lambda x: -np.log(x) - np.log1p(-x), high=1.0),
}
"""The scales by name."""


@dataclass(frozen=True, slots=True)
class Scale:
    """The map ``t(u) = (f((u + origin) * unit) - shift) / width`` of a column or of the target.

    It takes the numbers ``u`` of the search to the scale on which a kernel acts, where a column has
    the unit interval and the target zero mean and unit variance. Without any numbers it is ``f``,
    for data that are not scaled.
    """

    is_linear: ClassVar[bool] = False  # so that the mean of ``u`` needs no variance
    name: str
    origin: float = 0.0  # what is added to ``u``, so that zero is that of the user
    unit: float = 1.0  # then in the units of the user
    shift: float = 0.0
    width: float = 1.0
    offset: float = 0.0  # in the units of the user, a part of the origin

    @staticmethod
    def of_fields(name: str, **numbers: float) -> "Scale":
        """Return the scale of this name with its numbers."""
        kind = CountScale if name in FAMILIES else Identity if name == IDENTITY else Scale
        return kind(name, **numbers)

    def of_rows(self, exposure: FloatArray | float, log_noise: float) -> "Scale":
        """Return the scale of targets with an exposure (n,), given the log of the noise."""
        return self

    @property
    def link(self) -> "Scale":
        """The scale on which effects add up, of counts that of their rates."""
        return self

    def has(self, x: FloatArray) -> BoolArray:
        """Return which numbers (n,) of the user the scale has."""
        return self._has_rounded(x + self.offset, SCALES[self.name].has)

    def forward(self, u: FloatArray) -> FloatArray:
        """Compute ``t(u)`` of a column; a number beyond the scale counts as the smallest one."""
        x = (u + self.origin) * self.unit
        return self._forward(x, self._has_rounded(x, SCALES[self.name].has))

    def _has_rounded(self, x: FloatArray, has: Callable[[FloatArray], BoolArray]) -> BoolArray:
        """Return which numbers, with the offset, are on the scale, as is the offset by itself."""
        return has(x) & (x >= self.offset - _ROUNDING * self.unit)

    def forward_and_log_slope(self, u: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Compute ``t(u)`` and ``log t'(u)`` of targets (n,).

        The slope is ``-inf`` in nats beyond the scale, as no such target is possible.
        """
        scale, x = SCALES[self.name], (u + self.origin) * self.unit
        has_slope = self._has_rounded(x, scale.has_slope)
        log_slope = scale.log_slope(np.where(has_slope, x, 0.5)) + np.log(self.unit / self.width)
        return self._forward(x, has_slope), np.where(has_slope, log_slope, -np.inf)

    def _forward(self, x: FloatArray, is_known: BoolArray) -> FloatArray:
        """Compute ``t`` of numbers in the units of the user; it is zero where they are unknown."""
        t = SCALES[self.name].function(np.where(is_known, x, 0.5))  # which every scale has
        return np.where(is_known, (t - self.shift) / self.width, 0.0)

    def end(self, u: FloatArray) -> FloatArray:
        """Compute ``t(u)`` of targets (n,), infinite beyond the scale."""
        (t, log_slope), scale = self.forward_and_log_slope(u), SCALES[self.name]
        beyond = np.where((u + self.origin) * self.unit < scale.high, -np.inf, np.inf)
        return np.where(np.isfinite(log_slope), t, beyond)

    def log_density(
        self, u: FloatArray, mean: FloatArray, variance: FloatArray, *, step: float = 0.0
    ) -> FloatArray:
        """Compute the log density (n,) of ``u`` where ``t`` is normal.

        With a ``step``, it is the mean density within half of it. The lowest number of the square
        root, zero, and that of a logarithm with an offset have a probability, whose log is
        returned, as in a Tobit model.
        """
        std, scale = np.sqrt(variance), SCALES[self.name]
        if step:
            a, b = ((self.end(u + half) - mean) / std for half in (-step / 2, step / 2))
            low, high = log_ndtr(np.where(a > 0, -b, a)), log_ndtr(np.where(a > 0, -a, b))
            with np.errstate(divide="ignore", invalid="ignore"):  # no mass, whose log is -inf
                found = high + np.log(-np.expm1(low - high)) - np.log(step)
            return np.where(np.isnan(found), -np.inf, found)
        t, log_slope = self.forward_and_log_slope(u)
        density = norm.logpdf(t, mean, std) + log_slope
        if not scale.has_low and not self.offset:
            return density
        low = max(scale.low, self.offset)
        lowest = (scale.function(np.asarray(low)) - self.shift) / self.width
        is_lowest = np.abs((u + self.origin) * self.unit - low) <= _ROUNDING * self.unit
        return np.where(is_lowest, log_ndtr((lowest - mean) / std), density)

    def below(self, u: FloatArray, mean: FloatArray, variance: FloatArray) -> FloatArray:
        """Compute the probabilities (n,) of targets up to ``u`` where ``t`` is normal."""
        return np.asarray(ndtr((self.end(u) - mean) / np.sqrt(variance)))

    def drawn(self, t: FloatArray, rng: np.random.RandomState) -> FloatArray:
        """Draw targets (n, n_draws) of given ``t``."""
        return self.inverse(t)

    def means(self, t: FloatArray, noise: FloatArray) -> FloatArray:
        """Compute the means (n_draws, n) of ``u`` given all of ``t`` but its noise (n,)."""
        found, _ = self.moments(t.ravel(), np.broadcast_to(noise, t.shape).ravel())
        return found.reshape(t.shape)

    def inverse(self, t: FloatArray) -> FloatArray:
        """Compute the ``u`` with ``t(u) = t``; none is below that of the offset by itself."""
        x = SCALES[self.name].inverse(self.shift + self.width * t)
        return (np.maximum(x, self.offset) if self.offset else x) / self.unit - self.origin

    @property
    def _is_exponential(self) -> bool:
        """Whether ``u`` is an exponential, of which all moments are known."""
        return self.name == "log" and not self.offset

    def moments(self, mean: FloatArray, variance: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Compute mean and variance (n,) of ``u`` where ``t`` is normal.

        A variance of ``t`` above that of all targets counts as :data:`MAX_VARIANCE`, since a mean
        of exponentials would be that of their tail. The moments are in closed form for the
        logarithm and the square root, and by a Gauss-Hermite rule for the others.
        """
        variance = np.minimum(variance, MAX_VARIANCE)
        a, b = self.shift + self.width * mean, self.width**2 * variance
        if self._is_exponential:
            centre = np.exp(np.minimum(a + b / 2, LARGEST_LOG))
            spread = _covariance_of_exponentials(2 * a + b, b)
        elif self.name == "sqrt":  # of max(z, 0)^2, where z is normal
            s = np.sqrt(np.maximum(b, 1e-300))
            z = np.clip(a / s, -1e6, 1e6)
            above, density = ndtr(z), norm.pdf(z)
            centre = (a**2 + b) * above + a * s * density
            fourth = (a**4 + 6 * a**2 * b + 3 * b**2) * above + (a**3 + 5 * a * b) * s * density
            spread = np.maximum(fourth - centre**2, 0.0)
        else:
            first, *others = self._hermite_coefficients(mean, variance).T * self.unit
            centre, spread = first + self.origin * self.unit, np.sum(np.square(others), axis=0)
        return centre / self.unit - self.origin, spread / self.unit**2

    def variance_of_function(
        self, mean: FloatArray, variance: FloatArray, noise: FloatArray
    ) -> FloatArray:
        """Compute the variance (n,) of the mean of ``u`` given all of ``t`` but its noise (n,)."""
        limit = np.minimum(1.0, MAX_VARIANCE / variance)
        kept, variance = np.maximum(variance - noise, 0.0) * limit, variance * limit
        a, b = self.shift + self.width * mean, self.width**2 * variance
        if self._is_exponential:
            return _covariance_of_exponentials(2 * a + b, self.width**2 * kept) / self.unit**2
        powers = np.vander(kept / variance, _N_TERMS, increasing=True)
        return np.sum((self._hermite_coefficients(mean, variance) ** 2 * powers)[:, 1:], axis=1)

    def covariance(self, mean: FloatArray, covariance: FloatArray) -> FloatArray:
        """Compute the covariance (n, n) of ``u`` where ``t`` (n,) is jointly normal.

        It is in closed form for the logarithm, and otherwise the series of Mehler's formula in the
        correlations, with the coefficients of ``u`` in Hermite polynomials.
        """
        limit = np.sqrt(np.minimum(1.0, MAX_VARIANCE / np.diag(covariance)))
        covariance = covariance * np.outer(limit, limit)
        variance = np.diag(covariance)
        if self._is_exponential:
            log_mean = self.shift + self.width * mean + self.width**2 * variance / 2
            pairs = np.add.outer(log_mean, log_mean), self.width**2 * covariance
            return _covariance_of_exponentials(*pairs) / self.unit**2
        std = np.sqrt(np.maximum(variance, 1e-300))
        correlation, power = covariance / np.outer(std, std), np.ones_like(covariance)
        found = np.zeros_like(covariance)
        for of_order in self._hermite_coefficients(mean, variance).T[1:]:
            power = power * correlation
            found += np.outer(of_order, of_order) * power
        return found

    def _hermite_coefficients(self, mean: FloatArray, variance: FloatArray) -> FloatArray:
        """Compute the coefficients (n, n_terms) of ``u`` in normalised Hermite polynomials."""
        nodes, weights = hermegauss(_N_NODES)
        values = self.inverse(mean[:, None] + np.sqrt(variance)[:, None] * nodes)
        basis = hermevander(nodes, _N_TERMS - 1) * np.exp(-0.5 * gammaln(np.arange(_N_TERMS) + 1.0))
        return (values * (weights / weights.sum())) @ basis


class Identity(Scale):
    """The scale of a column or a target as it is: ``t(u) = u``, or ``u + origin``."""

    is_linear = True

    def forward(self, u: FloatArray) -> FloatArray:
        """Return the numbers themselves, from the origin."""
        return u + self.origin

    def forward_and_log_slope(self, u: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the targets themselves, from the origin, and zeros."""
        return u + self.origin, np.zeros(np.shape(u))

    def inverse(self, t: FloatArray) -> FloatArray:
        """Return the numbers without the origin."""
        return t - self.origin

    def moments(self, mean: FloatArray, variance: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the mean and variance (n,), which have no limit."""
        return mean - self.origin, variance

    def variance_of_function(
        self, mean: FloatArray, variance: FloatArray, noise: FloatArray
    ) -> FloatArray:
        """Compute the variance (n,) without noise."""
        return np.maximum(variance - noise, 0.0)

    def covariance(self, mean: FloatArray, covariance: FloatArray) -> FloatArray:
        """Return the covariance (n, n)."""
        return covariance


@dataclass(frozen=True)
class CountScale(Scale):
    """The scale on which a kernel acts on the rates of counts, ``f = shift + width * t``.

    A target has a distribution given ``t``, one of :data:`FAMILIES`, with an exposure (n,) and the
    dispersion ``width**2 * s`` for the noise variance s. ``t`` has no noise.
    """

    rates: Rates = field(init=False, compare=False, default=Rates())

    def fitted(
        self, y: FloatArray, exposure: FloatArray | float, weights: FloatArray
    ) -> "CountScale":
        """Return the scale on which counts (n,) have the mean zero and about unit variance."""
        e, family = np.broadcast_to(exposure, y.shape), self.family
        total = float(weights @ e)
        most = 1 - 0.5 / total if family.is_share else None
        rate = np.clip(weights @ y / total, 0.5 / total, most)
        centre = logit(rate) if family.is_share else np.log(rate)
        variance = np.average((family.of_each(y, e)[0] - centre) ** 2, weights=weights)
        width = float(np.sqrt(variance))
        return replace(self, shift=float(centre), width=width if width > _ROUNDING else 1.0)

    def of_rows(self, exposure: FloatArray | float, log_noise: float) -> "CountScale":
        """Return the scale of targets with an exposure (n,), given the log of the noise."""
        dispersion = max(self.width**2 * float(np.exp(log_noise)), MIN_DISPERSION)
        return self._with_rates(Rates(exposure, dispersion))

    def _with_rates(self, rates: Rates) -> "CountScale":
        other = replace(self)
        object.__setattr__(other, "rates", rates)
        return other

    @property
    def family(self) -> Family:
        """The distribution."""
        return FAMILIES[self.name]

    @property
    def link(self) -> "Scale":
        """The log or the logit of rates, for an exposure or a trial of one."""
        name = "logit" if self.family.is_share else "log"
        return Scale(name, self.origin, self.unit, self.shift, self.width)

    def counts(self, u: FloatArray) -> tuple[FloatArray, BoolArray]:
        """Return the whole numbers (n,) that targets are, and which are possible."""
        y = (u + self.origin) * self.unit
        has = self.family.has(y, self.rates.e)
        return np.where(has, np.rint(y), 0.0), has

    def function(self, t: FloatArray) -> FloatArray:
        """Compute the function, of which a rate is a logarithm or a logit."""
        return np.minimum(self.shift + self.width * t, LARGEST_RATE)

    def local(self, y: Any, weights: FloatArray, t: FloatArray) -> Local:
        """Compute the log probabilities of counts (n,) with weights (n,), and what changes them."""
        f, width = self.function(t), self.width
        slope, second, third = self.family.slopes(y, f, self.rates)
        curvature = -second * weights * width**2
        is_flat = curvature < MIN_CURVATURE  # also far from a share, where it may be negative
        return Local(
            weights * self.family.log_density(y, f, self.rates),
            weights * width * slope,
            np.where(is_flat, MIN_CURVATURE, curvature),
            np.where(is_flat, 0.0, weights * width**3 * third),
        )

    def _means(self, t: FloatArray) -> tuple[FloatArray, Rates]:
        """Compute the mean counts at ``t`` (n, ...), and the rates in their shape."""
        e = np.reshape(self.rates.e, (-1, *[1] * (np.ndim(t) - 1)))
        return e * self.family.rate(self.function(t)), self.rates._replace(e=e)

    def _spread(self, mean: FloatArray, variance: FloatArray) -> FloatArray:
        """Compute the deviation (n,) of the function in those of the counts there."""
        return self.width * np.sqrt(variance * np.minimum(self._means(mean)[0], MAX_COUNT))

    def _nodes(self, mean: FloatArray, variance: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return values (n, n_nodes) of a normal ``t``, as dense as counts need, and weights."""
        spread = self._spread(mean, variance).max(initial=0.0)
        n = np.clip(3 * FARTHEST * spread, MIN_NODES, MAX_NODES)
        z = np.linspace(-FARTHEST, FARTHEST, int(n))
        weights = np.exp(-0.5 * z**2)
        return mean[:, None] + np.sqrt(variance)[:, None] * z, weights / weights.sum()

    def forward_and_log_slope(self, u: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Compute what ``t`` each target suggests by itself, and the log of the unit."""
        y, has = self.counts(u)
        f = self.family.of_each(y, self.rates.e)[0]
        log_unit = np.where(has, np.log(self.unit), -np.inf)
        return np.where(has, (f - self.shift) / self.width, 0.0), log_unit

    def log_density(
        self,
        u: FloatArray,
        mean: FloatArray,
        variance: FloatArray,
        *,
        step: float = 0.0,
        times: FloatArray | float = 1.0,
    ) -> FloatArray:
        """Compute the log probability (n,) of ``u``, for a unit of the target, in nats.

        It is that of as many equal targets as ``times`` (n,) says.
        """
        y, has = self.counts(u)
        nodes, weights = self._nodes(mean, variance)
        logs = self.family.log_density(y[:, None], self.function(nodes), self._means(nodes)[1])
        found = logsumexp(np.reshape(times, (-1, 1)) * logs, b=weights, axis=1)
        return np.where(has, found + times * np.log(self.unit), -np.inf)

    def below(self, u: FloatArray, mean: FloatArray, variance: FloatArray) -> FloatArray:
        """Compute the probabilities (n,) of targets up to ``u`` where ``t`` is normal."""
        y = np.floor((u + self.origin) * self.unit + 1e-6)
        m, by = self._means(mean)
        most = by.e if self.family.is_share else MAX_COUNT
        is_large = self._spread(mean, variance) > MAX_SPREAD
        found = np.ones(len(y))
        if (is_large & (y < most)).any():  # noise of f is normal
            slope = np.maximum(m * (1 - m / by.e) if self.family.is_share else m, MIN_CURVATURE)
            error = self.family.law(m, by).var() / slope**2
            away = self.family.of_each(np.clip(y, 0.0, most), by.e)[0] - self.function(mean)
            found = np.where(y < most, ndtr(away / np.sqrt(self.width**2 * variance + error)), 1.0)
        if len(rows := np.flatnonzero(~is_large)):
            own = self._with_rates(by._replace(e=np.broadcast_to(by.e, y.shape)[rows]))
            nodes, weights = own._nodes(mean[rows], variance[rows])
            counts = np.maximum(y[rows], 0.0)[:, None]
            found[rows] = self.family.below(counts, *own._means(nodes)) @ weights
        return np.where(y >= 0, found, 0.0)

    def drawn(self, t: FloatArray, rng: np.random.RandomState) -> FloatArray:
        """Draw targets (n, n_draws) of given ``t``."""
        m, by = self._means(t)
        drawn = self.family.law(m, by).rvs(size=m.shape, random_state=rng)
        return np.asarray(drawn / self.unit - self.origin)

    def means(self, t: FloatArray, noise: FloatArray) -> FloatArray:
        """Compute the means (n_draws, n) of ``u`` at ``t``."""
        return self.inverse(t.T).T

    def inverse(self, t: FloatArray) -> FloatArray:
        """Compute the mean of ``u`` at ``t`` (n, ...)."""
        return self._means(t)[0] / self.unit - self.origin

    def _noise(self, mean: FloatArray, variance: FloatArray) -> FloatArray:
        """Compute the variance (n,) of ``u`` given ``t``, on average."""
        nodes, weights = self._nodes(mean, np.minimum(variance, MAX_VARIANCE))
        return np.asarray(self.family.law(*self._means(nodes)).var() @ weights / self.unit**2)

    def moments(self, mean: FloatArray, variance: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Compute mean and variance (n,) of ``u`` where ``t`` is normal."""
        centre, spread = super().moments(mean, variance)
        return centre, spread + self._noise(mean, variance)

    def variance_of_function(
        self, mean: FloatArray, variance: FloatArray, noise: FloatArray
    ) -> FloatArray:
        """Compute the variance (n,) of the mean of ``u`` given ``t``."""
        return super().moments(mean, variance)[1]

    def covariance(self, mean: FloatArray, covariance: FloatArray) -> FloatArray:
        """Compute the covariance (n, n) of ``u`` where ``t`` (n,) is jointly normal."""
        found = super().covariance(mean, covariance)
        return found + np.diag(self._noise(mean, np.diag(covariance)))


def _covariance_of_exponentials(log_mean: FloatArray, c: FloatArray) -> FloatArray:
    """Compute the covariances of exponentials of normal numbers with covariances ``c``.

    They are ``exp(log_mean) (exp(c) - 1)``, where ``log_mean`` is the sum of both means and of
    half of both variances.
    """
    above = np.maximum(c, 0.0)  # in two cases, so that nothing overflows
    log_size = np.minimum(log_mean + above, LARGEST_LOG)
    return np.exp(log_size) * np.where(c > 0, -np.expm1(-above), np.expm1(c - above))


def log_offset(x: FloatArray) -> float:
    """Return what is added to a column (n,) before its logarithm is taken.

    It is half of the smallest positive number, to one digit, for a column with zeros and without
    negative numbers, and zero for any other.
    """
    if not len(positive := x[x > 0]) or np.nanmin(x) != 0:
        return 0.0
    return float(f"{positive.min() / 2:.0e}")


def target_offset(y: FloatArray, weights: FloatArray | None = None) -> float:
    """Return what is added to a target (n,) before its logarithm is taken, if few rows are zero."""
    share = float(np.average(y == 0, weights=weights))
    return log_offset(y) if share <= MAX_SHARE_OF_ZEROS else 0.0


def check_possible(
    name: str,
    values: FloatArray,
    rows: IntArray | None = None,
    *,
    argument: str,
    what: str,
    offset_of_target: float | None = None,
) -> None:
    """Raise a ``ValueError`` if the user wants a scale that does not have all numbers.

    Missing values are no numbers. The message counts the values by ``rows`` (n,) if they are given.
    For the target, ``offset_of_target`` is what is added before its logarithm is taken.
    """
    if name in FAMILIES:
        if FAMILIES[name].is_share or not FAMILIES[name].has(values, 1.0).all():
            raise ValueError(
                f"{argument} has {name!r} for {what}, which must hold counts of events"
            )
        return
    if name == IDENTITY:
        return
    scale, offset, is_target = SCALES[name], 0.0, offset_of_target is not None
    if name == "log":
        offset = log_offset(values) if offset_of_target is None else offset_of_target
    has = (scale.has_slope if is_target else scale.has)(values + offset)
    if len(beyond := np.flatnonzero(~has & ~np.isnan(values))):
        row = beyond[0] if rows is None else rows[beyond[0]]
        may_be_zero = not is_target and (scale.has_low or name == "log")
        least = "not be below" if may_be_zero else "be above"
        top = "" if np.isinf(scale.high) else f" and below {scale.high:g}"
        if name == "log" and is_target:
            top = f", or zero in at most {100 * MAX_SHARE_OF_ZEROS:g} % of the rows"
        raise ValueError(
            f"{argument} has {name!r} for {what}, whose numbers must {least} {scale.low:g}{top}, "
            f"got {values[beyond[0]]:g} in row {row}: choose another scale, or leave such rows out"
        )
    if np.ptp(scale.function(values[~np.isnan(values)] + offset)) == 0:
        raise ValueError(f"{argument} has {name!r} for {what}, which is constant")


def scales_of_column(x: FloatArray) -> list[str]:
    """Name the scales besides the identity on which a column may be simple."""
    low, high = x.min(initial=np.inf) + log_offset(x), x.max(initial=-np.inf) + log_offset(x)
    if len(np.unique(x)) < MIN_DISTINCT_OF_COLUMN or low <= 0 or high < MIN_RATIO * low:
        return []
    return list(COLUMN_SCALES)


def scales_of_target(
    y: FloatArray, min_ratio: float = MIN_RATIO_OF_TARGET, *, offset: float = 0.0
) -> list[str]:
    """Name the scales besides the identity on which a target may be simple.

    The log and the square root need numbers of which the largest is ``min_ratio`` times the
    smallest. Numbers over many decades need some in between: zeros that are rounded have none.
    With a few zeros, the log has an ``offset``, and there is no other scale.
    """
    low, high = float(y.min()) + offset, float(y.max()) + offset
    if len(np.unique(y)) < MIN_DISTINCT or low <= 0:
        return []
    logs = np.sort(np.log(y + offset))
    if low <= MIN_SHARE * high and np.diff(logs).max() > MAX_GAP * np.ptp(logs):
        return []
    if offset:
        return ["log"] if high >= min_ratio * low else []
    found = ["log", "sqrt"] if high >= min_ratio * low else []
    odds = low / (1 - low) if high < 1 else np.inf
    if high < 1 - MIN_SHARE and high / (1 - high) >= MIN_RATIO_OF_TARGET * odds:
        found.append("logit")
    return found


def fill_rows(y: FloatArray) -> IntArray:
    """Return the rows of numbers (n,) that stand for missing ones, such as 1e20 or -9999.

    They are at most half of the rows, and many times as large as all others: a thousand times if
    they are one number in several rows, and otherwise a million times and over most decades.
    """
    order = np.argsort(np.abs(y), kind="stable")
    logs = np.log(np.maximum(np.abs(y[order]), np.finfo(float).tiny))
    first = max((len(y) + 1) // 2, int(np.sum(y == 0)) + 1)  # that may be such a row
    large = max(np.log(1e6), MAX_GAP * (logs[-1] - logs[min(first, len(y)) - 1]))
    for cut in np.flatnonzero(np.diff(logs) >= np.log(1e3)) + 1:
        far = order[cut:]
        is_one_number = len(far) > 1 and np.ptp(y[far]) == 0
        is_far = is_one_number or logs[cut] - logs[cut - 1] >= large
        if cut >= first and is_far and len(np.unique(y)) >= MIN_DISTINCT:
            return np.sort(far)
    return np.empty(0, dtype=int)


def mean_and_variance(values: FloatArray, weights: FloatArray | None = None) -> tuple[float, float]:
    """Compute the weighted mean and variance of numbers (n,)."""
    mean = np.average(values, weights=weights)
    return float(mean), float(np.average((values - mean) ** 2, weights=weights))
