"""Counts of events, and successes among trials: their distributions given a function."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy.special import betainc, betaln, expit, gammaln, log_expit, pdtr, polygamma
from scipy.stats import betabinom, binom, nbinom, poisson

from autokernel.typing import BoolArray, FloatArray

MAX_COUNT = 2.0**53
MAX_TRIALS = 200  # of which probabilities are added up one by one
SHARE_OF_SMALL, MAX_SMALL = 0.1, 20.0  # of a target: with larger ones, noise is nearly normal


class Rates(NamedTuple):
    """What the distribution of a number depends on besides a function."""

    e: FloatArray | float = 1.0  #: exposure, such as an area or a time, or the number of trials
    a: float = 0.0  #: dispersion


Slopes = tuple[FloatArray, FloatArray, FloatArray]
"""The first three derivatives (n,) of log probabilities."""


class Local(NamedTuple):
    """Log probabilities at a function, in nats, with derivatives in it; all are (n,)."""

    value: FloatArray
    slope: FloatArray
    curvature: FloatArray  #: the negative second derivative, positive
    third: FloatArray  #: the third derivative


class Family(ABC):
    """The distribution of numbers y given a function f, whose means are ``m = e rate(f)``.

    The dispersion is the variance of rates that differ for no known reason, relative to the square
    of their mean, or for shares the inverse of the sum of the parameters of a beta distribution.
    """

    has_dispersion: ClassVar[bool] = False
    is_share: ClassVar[bool] = False  # of trials, whose logit is the function, and not the log

    def rate(self, f: FloatArray) -> FloatArray:
        """Compute the means of an exposure of one."""
        return np.asarray(expit(f) if self.is_share else np.exp(f))

    def has(self, y: FloatArray, e: FloatArray | float) -> BoolArray:
        """Return which numbers are possible."""
        is_whole = np.abs(y - np.rint(y)) <= 1e-6 * np.maximum(1.0, np.abs(y))
        return is_whole & (y > -0.5) & (y < (e + 0.5 if self.is_share else MAX_COUNT))

    def of_each(self, y: FloatArray, e: FloatArray | float) -> tuple[FloatArray, FloatArray]:
        """Return the function that each number shows by itself, and the variance of its error."""
        if self.is_share:
            return np.log((y + 0.5) / (e - y + 0.5)), 1 / (y + 0.5) + 1 / (e - y + 0.5)
        return np.log((y + 0.5) / e), 1 / (y + 0.5)

    @abstractmethod
    def law(self, m: FloatArray, by: Rates) -> Any:
        """Return the distribution, of :mod:`scipy.stats`, of numbers with the means m."""

    @abstractmethod
    def log_density(self, y: FloatArray, f: FloatArray, by: Rates) -> FloatArray:
        """Compute the logs of the probabilities of numbers, in nats."""

    @abstractmethod
    def slopes(self, y: FloatArray, f: FloatArray, by: Rates) -> Slopes:
        """Compute the first three derivatives of the log probabilities in the function."""

    @abstractmethod
    def below(self, k: FloatArray, m: FloatArray, by: Rates) -> FloatArray:
        """Compute the probabilities of numbers that are at most k, faster than :meth:`law`."""


class Poisson(Family):
    """Numbers of independent events."""

    def law(self, m: FloatArray, by: Rates) -> Any:
        return poisson(np.minimum(m, MAX_COUNT))

    def log_density(self, y: FloatArray, f: FloatArray, by: Rates) -> FloatArray:
        return np.asarray(y * (f + np.log(by.e)) - by.e * self.rate(f) - gammaln(y + 1))

    def slopes(self, y: FloatArray, f: FloatArray, by: Rates) -> Slopes:
        m = by.e * self.rate(f)
        return y - m, -m, -m

    def below(self, k: FloatArray, m: FloatArray, by: Rates) -> FloatArray:
        return np.asarray(pdtr(k, m))


class NegativeBinomial(Family):
    """Poisson counts whose rates have a gamma distribution of the shape 1 / a."""

    has_dispersion = True

    def law(self, m: FloatArray, by: Rates) -> Any:
        return nbinom(1 / by.a, 1 / (1 + by.a * np.minimum(m, MAX_COUNT)))

    def log_density(self, y: FloatArray, f: FloatArray, by: Rates) -> FloatArray:
        am, r = by.a * by.e * self.rate(f), 1 / by.a
        chosen = gammaln(y + r) - gammaln(r) - gammaln(y + 1)
        return np.asarray(chosen + y * log_expit(f + np.log(by.e * by.a)) - r * np.log1p(am))

    def slopes(self, y: FloatArray, f: FloatArray, by: Rates) -> Slopes:
        m = by.e * self.rate(f)
        p = 1 / (1 + by.a * m)
        second = -(1 + by.a * y) * m * p * p
        return (y - m) * p, second, second * (2 * p - 1)

    def below(self, k: FloatArray, m: FloatArray, by: Rates) -> FloatArray:
        return np.asarray(betainc(1 / by.a, k + 1, 1 / (1 + by.a * m)))


class Binomial(Family):
    """Successes in e independent trials."""

    is_share = True

    def law(self, m: FloatArray, by: Rates) -> Any:
        return binom(np.rint(by.e).astype(int), m / by.e)

    def log_density(self, y: FloatArray, f: FloatArray, by: Rates) -> FloatArray:
        return np.asarray(_log_choose(y, by.e) + y * log_expit(f) + (by.e - y) * log_expit(-f))

    def slopes(self, y: FloatArray, f: FloatArray, by: Rates) -> Slopes:
        p = expit(f)
        second = -by.e * p * (1 - p)
        return y - by.e * p, second, second * (1 - 2 * p)

    def below(self, k: FloatArray, m: FloatArray, by: Rates) -> FloatArray:
        found = betainc(np.maximum(by.e - k, 0.5), k + 1, 1 - m / by.e)
        return np.where(k >= by.e, 1.0, found)


class BetaBinomial(Family):
    """Successes in e trials, the chance of which has a beta distribution."""

    has_dispersion, is_share = True, True

    def law(self, m: FloatArray, by: Rates) -> Any:
        p = np.clip(m / by.e, 1e-12, 1 - 1e-12)
        return betabinom(np.rint(by.e).astype(int), p / by.a, (1 - p) / by.a)

    def log_density(self, y: FloatArray, f: FloatArray, by: Rates) -> FloatArray:
        b, c = expit(f) / by.a, expit(-f) / by.a
        return np.asarray(_log_choose(y, by.e) + betaln(y + b, by.e - y + c) - betaln(b, c))

    def slopes(self, y: FloatArray, f: FloatArray, by: Rates) -> Slopes:
        p, q = expit(f), expit(-f)
        b, c, w = p / by.a, q / by.a, p * q  # w is the derivative of p
        w1, w2 = w * (q - p), w * (1 - 6 * w)  # and these are its derivatives
        rises = (
            (polygamma(n, y + b) - polygamma(n, b), polygamma(n, by.e - y + c) - polygamma(n, c))
            for n in range(3)
        )
        d1, d2, d3 = ((s - (-1) ** n * t) / by.a ** (n + 1) for n, (s, t) in enumerate(rises))
        return d1 * w, d2 * w**2 + d1 * w1, d3 * w**3 + 3 * d2 * w * w1 + d1 * w2

    def below(self, k: FloatArray, m: FloatArray, by: Rates) -> FloatArray:
        e, p, is_most = by.e, np.clip(m / by.e, 1e-12, 1 - 1e-12), m > by.e / 2
        if np.max(e) > MAX_TRIALS:  # the share has nearly a beta distribution
            size = e * (1 + by.a) / (1 + e * by.a) - 1
            return np.asarray(betainc(p * size, (1 - p) * size, np.minimum((k + 0.5) / e, 1.0)))
        # from the rarer end, so that the first terms do not vanish
        k, p = np.where(is_most, e - k - 1, k), np.where(is_most, 1 - p, p)
        b, c, found = p / by.a, (1 - p) / by.a, np.zeros(np.shape(k))
        mass = np.exp(betaln(b, e + c) - betaln(b, c))  # of zero, and then of each number in turn
        for number in range(int(np.max(k, initial=-1)) + 1):
            found = found + np.where(number <= k, mass, 0.0)
            left = np.maximum(e - number - 1, 0.0) + c
            mass = mass * np.maximum(e - number, 0.0) * (number + b) / ((number + 1) * left)
        return np.where(is_most, 1 - found, found)


def _log_choose(y: FloatArray, n: FloatArray | float) -> FloatArray:
    return np.asarray(gammaln(n + 1) - gammaln(y + 1) - gammaln(n - y + 1))


FAMILIES: Mapping[str, Family] = {
    "poisson": Poisson(),
    "negative_binomial": NegativeBinomial(),
    "binomial": Binomial(),
    "beta_binomial": BetaBinomial(),
}
"""The families by name."""
