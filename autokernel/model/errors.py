"""How far new observations are from their predictions, in predicted deviations."""

from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import brentq, minimize
from scipy.special import log_softmax, logsumexp, ndtr, ndtri, softmax
from scipy.stats import norm

from autokernel.typing import FloatArray

FACTORS = np.array([1.0, 3.0, 10.0])  # of the deviation, in shares of all observations
# The prior shares, and how many rows they and a width of one are worth. They maximise the
# density of new rows of ten tables (TAUGHT in benchmarks/tables.py).
SHARES, N_OF_SHARES, N_OF_WIDTH = (0.92, 0.075, 0.005), 40.0, 160.0
WILD_SHARE = 3e-4  # of observations that no prediction describes
WILD = 3.0  # their deviation from predictions, in deviations of all targets
STEP = 0.02  # by which a new error moves the logarithm of the width, in its slope in nats
STEEPEST = 5.0  # slope that counts, as a normal law has no bound
FARTHEST = 8.0  # deviations; beyond, the rounding of probabilities near one hides differences


@dataclass(frozen=True)
class ErrorLaw:
    """The distribution of the errors of new observations, in predicted deviations.

    It is a mixture of normal ones, by default a standard one. Those with the ``shares`` deviate by
    the ``width`` times :data:`FACTORS`, a share ``wild`` by :data:`WILD`, whatever is predicted.
    """

    width: float = 1.0
    shares: tuple[float, ...] = (1.0,)
    wild: float = 0.0
    deviation: float = 1.0  # factor of a deviation, of which 1.96 hold 95 % of the observations

    @classmethod
    def of(cls, width: float, shares: tuple[float, ...], *, wild: float = WILD_SHARE) -> "ErrorLaw":
        """Make a law whose deviation is that of a normal one with the same central 95 %."""
        tail, factors = 0.025, width * FACTORS[: len(shares)]
        of_normal = float(norm.isf(tail))
        ends = 0.0, factors[-1] * of_normal
        end = float(brentq(lambda z: np.dot(shares, ndtr(-z / factors)) - tail, *ends))
        return cls(width, shares, wild, end / of_normal)

    @classmethod
    def learned(
        cls, errors: FloatArray, weights: FloatArray, *, has_width: bool = True
    ) -> "ErrorLaw":
        """Learn from errors (n,) in predicted deviations, each of which counts by its weight.

        Unless the law ``has_width``, its width is one.
        """
        errors = np.clip(errors, -FARTHEST, FARTHEST)[:, None]

        def parts(point: FloatArray) -> tuple[float, FloatArray]:
            return float(np.exp(point[2:].sum())), log_softmax([0.0, *point[:2]])

        def loss(point: FloatArray) -> float:
            width, log_shares = parts(point)
            densities = log_shares + norm.logpdf(errors, scale=width * FACTORS)
            of_prior = N_OF_SHARES * np.dot(SHARES, log_shares)
            of_prior -= N_OF_WIDTH * (np.log(width) + 0.5 / width**2)
            return -float(weights @ logsumexp(densities, axis=1) + of_prior)

        start = np.append(np.log(SHARES[1:]) - np.log(SHARES[0]), np.zeros(int(has_width)))
        width, log_shares = parts(minimize(loss, start, method="BFGS").x)
        return cls.of(width, tuple(np.exp(log_shares).tolist()))

    def after(self, errors: FloatArray) -> "ErrorLaw":
        """Return the law after independent errors (n,) in predicted deviations, in their order.

        The width climbs the log density of each in turn. With a deviation of one, the law stays.
        """
        if self.deviation == 1:
            return self
        (shares, factors), growth = np.array(self.normals).T, 1.0
        for error in np.clip(errors, -FARTHEST, FARTHEST):
            scales = growth * factors
            squares = (error / scales) ** 2
            slope = softmax(np.log(shares) + norm.logpdf(error, scale=scales)) @ squares - 1
            growth *= float(np.exp(STEP * min(slope, STEEPEST)))
        return replace(self, width=growth * self.width, deviation=growth * self.deviation)

    @property
    def normals(self) -> list[tuple[float, float]]:
        """Shares of observations, and factors of their deviation."""
        scales = (self.width * FACTORS).tolist()
        shares = ((1 - self.wild) * share for share in self.shares)
        return list(zip(shares, scales, strict=False))

    def probabilities(self, of_normal: FloatArray) -> FloatArray:
        """Compute the probabilities (n,) of smaller targets from those by normal predictions."""
        shares, factors = np.array(self.normals).T
        return ndtr(ndtri(of_normal)[:, None] / factors) @ shares / shares.sum()


NORMAL = ErrorLaw()
"""The law of normal errors, as components of a mixture have them."""
PRIOR_LAW = ErrorLaw.of(1.0, SHARES)
"""The law of the errors if no rows were held out."""
SERIES_LAW = ErrorLaw.of(1.0, (0.9, 0.1), wild=0.0)
"""The law of the errors of forecasts, close to a t distribution with 5 degrees of freedom."""
