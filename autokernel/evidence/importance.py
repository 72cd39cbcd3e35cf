"""The log evidence by importance sampling."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import gammaincinv, gammaln, logsumexp, ndtri, softmax
from scipy.stats import qmc

from autokernel.evidence.laplace import boundary_log_mass
from autokernel.evidence.maximise import Maximum
from autokernel.evidence.posterior import LogPosterior
from autokernel.exceptions import NotAMaximumError
from autokernel.typing import BoolArray, FloatArray

MAX_DRAWS = 2000  # for one kernel
STANDARD_ERROR = 0.05  # nats, below which no more draws are made
FIRST_DRAWS = 256  # in the first batch

Uniforms = Callable[[tuple[int, int]], FloatArray]
"""Function that returns points of a shape in the unit cube, such as ``rng.random``."""


def sobol_points(n_points: int, n_axes: int, rng: np.random.Generator) -> FloatArray:
    """Draw scrambled Sobol points (n_points, n_axes) in the open unit cube.

    They fill it evenly, and so do their projections on single axes.
    """
    points = qmc.Sobol(n_axes, rng=rng).random_base2(max(n_points - 1, 0).bit_length())[:n_points]
    return np.clip(points, 1e-6, 1 - 1e-6)


def pareto_smoothed(log_weights: FloatArray) -> FloatArray:
    """Replace the largest weights by quantiles of their Pareto distribution, and normalise.

    The log weights (n_draws,) are known up to a constant. Before normalisation no weight is larger
    than the largest one was.

    Vehtari et al. (2024, JMLR 25), section 2. A single draw then dominates less often.
    """
    weights = np.exp(log_weights - log_weights.max())
    order = np.argsort(weights)
    shape, spread, n = fit_tail(weights)
    if n and np.isfinite(shape):
        probabilities = (np.arange(n) + 0.5) / n
        k = shape if abs(shape) > 1e-9 else 1e-9
        quantiles = weights[order[-n - 1]] + spread * np.expm1(-k * np.log1p(-probabilities)) / k
        weights[order[-n:]] = np.minimum(quantiles, 1.0)
    return weights / weights.sum()


def fit_tail(weights: FloatArray) -> tuple[float, float, int]:
    """Fit a generalised Pareto distribution to the largest weights (n_draws,).

    Returns its shape k, its scale, and the number of weights fitted. Moments of the weights below
    the order ``1 / k`` exist. The shape is ``-inf`` for equal weights, and ``inf`` if fewer than
    five weights lie above the start of the tail.

    This is the estimate of Zhang & Stephens (2009, Technometrics 51) on the tail that Vehtari et
    al. (2024, JMLR 25) use, with the latter's prior, worth ten draws at 0.5.
    """
    ordered, n_tail = np.sort(weights), int(min(0.2 * len(weights), 3 * np.sqrt(len(weights))))
    if ordered[-1] - ordered[0] <= 1e-10 * ordered[-1]:  # they differ by rounding only
        return -np.inf, 0.0, 0
    excess = ordered[-n_tail:] - ordered[-n_tail - 1]
    excess = excess[excess > 0]
    if (n := len(excess)) < 5:
        return np.inf, 0.0, 0
    n_grid = 30 + int(np.sqrt(n))
    quartile = excess[int(n / 4 + 0.5) - 1]
    grid = 1 - np.sqrt(n_grid / (np.arange(n_grid) + 0.5))
    grid = 1 / excess[-1] + grid / (3 * quartile)  # values of -k / sigma
    shapes = np.log1p(-grid[:, None] * excess).mean(axis=1)
    rate = softmax(n * (np.log(-grid / shapes) - shapes - 1)) @ grid  # by the profile likelihood
    k = np.log1p(-rate * excess).mean()
    return float((n * k + 10 * 0.5) / (n + 10)), float(-k / rate), n


_DEGREES = 5.0  # degrees of freedom, for heavier tails than the posterior's
_MIN_CURVATURE = 0.1  # nats per squared log parameter; the priors have one or more


@dataclass(frozen=True, slots=True, eq=False)  # eq=False: the fields are arrays
class FoldedT:
    """The distribution of ``centre + factor @ z``, z spherical t, ``|z|`` where a bound holds.

    A held parameter has its centre on the bound and is uncorrelated with all others.
    """

    centre: FloatArray  # (n_params,)
    factor: FloatArray  # (n_params, n_params)
    held: BoolArray  # (n_params,), whether a bound holds the parameter

    @classmethod
    def around(cls, maximum: Maximum, *, lower: FloatArray, upper: FloatArray) -> "FoldedT":
        """Build the distribution from Laplace's approximation at a maximum.

        The absolute value of the curvature is used in a direction that curves upwards, and the
        least curvature in a direction that hardly curves.
        """
        mode, hessian, held = maximum.mode, maximum.hessian, ~maximum.free
        if not all(np.isfinite(part).all() for part in (mode.theta, mode.log_posterior, hessian)):
            raise NotAMaximumError(f"a maximum must be finite, got {maximum}")
        nearest = np.where(mode.theta - lower < upper - mode.theta, lower, upper)
        factor = np.zeros_like(hessian)
        values, vectors = np.linalg.eigh(hessian[np.ix_(~held, ~held)])
        scales = 1 / np.sqrt(np.maximum(np.abs(values), _MIN_CURVATURE))
        factor[np.ix_(~held, ~held)] = vectors * scales @ vectors.T
        for index in np.flatnonzero(held):
            curvature = max(hessian[index, index], _MIN_CURVATURE)
            size = np.exp(boundary_log_mass(maximum.outward[index], curvature))
            factor[index, index] = size if nearest[index] == lower[index] else -size
        return cls(np.where(held, nearest, mode.theta), factor, held)

    @property
    def log_volume(self) -> float:
        """Log integral of the Gaussian with this centre and factor and the maximum one."""
        return self._log_scale + np.count_nonzero(~self.held) / 2 * float(np.log(2 * np.pi))

    def log_density(self, theta: FloatArray) -> FloatArray:
        """Compute the log density (n,) at points (n, n_params) inside the bounds that hold."""
        n_params, n_held = len(self.centre), np.count_nonzero(self.held)
        half = (_DEGREES + n_params) / 2
        return (
            gammaln(half)
            - gammaln(_DEGREES / 2)
            - n_params / 2 * np.log(np.pi * _DEGREES)
            - self._log_scale
            + n_held * np.log(2.0)  # both signs of z give the same theta
            - half * np.log1p((self._standardise(theta) ** 2).sum(axis=1) / _DEGREES)
        )

    def draw(self, uniforms: FloatArray) -> FloatArray:
        """Map points (n_draws, n_params + 1) of the unit cube to draws (n_draws, n_params).

        Axes of the cube belong to parameters in the order of their spread. As the factor is a
        symmetric root, another order of the parameters leads to the same points in this order.
        The rounding errors of equal spreads do not order them.
        """
        spreads = np.log(np.linalg.norm(self.factor, axis=1))
        order, groups = np.argsort(spreads), np.empty(len(spreads))
        groups[order] = np.cumsum(np.diff(spreads[order], prepend=-np.inf) > 1e-4)
        ranks = np.argsort(np.argsort(groups, kind="stable"))
        uniforms = np.maximum(uniforms, np.finfo(float).tiny)
        z = ndtri(uniforms[:, 1:])[:, ranks]
        z /= np.sqrt(2 * gammaincinv(_DEGREES / 2, uniforms[:, :1]) / _DEGREES)  # chi-square
        return self.centre + np.where(self.held, np.abs(z), z) @ self.factor.T

    def refit(self, theta: FloatArray, weights: FloatArray) -> "FoldedT":
        """Fit the distribution to weighted points by one EM step of a t distribution.

        The present centre and factor count as much as one point for each of their free numbers.
        """
        total, n_params = weights.sum(), len(self.centre)
        if total < 1e-12:  # all points are too far away
            return self
        n_effective = total**2 / (weights**2).sum()
        trust = n_effective / (n_effective + n_params * (n_params + 3) / 2)
        z = self._standardise(theta)
        inner = weights / total * (_DEGREES + n_params) / (_DEGREES + (z**2).sum(axis=1))
        centre = np.where(self.held, 0.0, inner @ z / inner.sum())
        C = ((z - centre).T * inner) @ (z - centre)
        C[self.held, :] = C[:, self.held] = 0.0
        C[self.held, self.held] = inner @ z[:, self.held] ** 2
        values, vectors = np.linalg.eigh(trust * C + (1 - trust) * np.eye(n_params))
        step = vectors * np.sqrt(np.maximum(values, 1e-6)) @ vectors.T
        return FoldedT(self.centre + self.factor @ (trust * centre), self.factor @ step, self.held)

    @property
    def _log_scale(self) -> float:
        return float(np.linalg.slogdet(self.factor).logabsdet)

    def _standardise(self, theta: FloatArray) -> FloatArray:
        z = np.linalg.solve(self.factor, (theta - self.centre).T)
        return z.T.astype(np.float64, copy=False)  # the static type is lost in solve


Mixture = Sequence[tuple[float, FoldedT]]
"""A mixture of folded t distributions, one for each mode, with shares that sum to one."""


def _mixture_around(maxima: Sequence[Maximum], *, lower: FloatArray, upper: FloatArray) -> Mixture:
    """Build a component for each maximum, with a share by its Laplace mass."""
    components = [FoldedT.around(maximum, lower=lower, upper=upper) for maximum in maxima]
    heights = np.array([maximum.mode.log_posterior for maximum in maxima])
    log_masses = heights + [component.log_volume for component in components]
    return [*zip(_shares(softmax(log_masses)), components, strict=True)]


def _draws_of(mixture: Mixture, n_draws: int, uniforms: Uniforms) -> FloatArray:
    """Draw points (n_draws, n_params), each from the component that its first uniform takes."""
    shares, components = zip(*mixture, strict=True)
    n_params = len(components[0].centre)
    which, cube = np.split(uniforms((n_draws, n_params + 2)), [1], axis=1)
    numbers = np.searchsorted(np.cumsum(shares[:-1]), which[:, 0], side="right")
    theta = np.empty((n_draws, n_params))
    for number, component in enumerate(components):
        own = numbers == number
        theta[own] = component.draw(cube[own])
    return theta


def _log_parts(mixture: Mixture, theta: FloatArray) -> FloatArray:
    """Compute the log of each component's term of the density (n_components, n) at points."""
    return np.array([np.log(share) + one.log_density(theta) for share, one in mixture])


def _refitted(mixture: Mixture, theta: FloatArray, weights: FloatArray) -> Mixture:
    """Fit a mixture by an EM step with weights (Cappe et al. 2008, Statistics and Computing 18)."""
    by_component = softmax(_log_parts(mixture, theta), axis=0) * weights
    fitted = [one.refit(theta, w) for (_, one), w in zip(mixture, by_component, strict=True)]
    return [*zip(_shares(by_component.sum(axis=1)), fitted, strict=True)]


def _shares(masses: FloatArray) -> FloatArray:
    """Raise each mass to 0.05, or 0.2 / n of many, as Laplace's may be far too small; normalise."""
    raised = np.maximum(masses, min(0.05, 0.2 / len(masses)))
    return raised / raised.sum()


@dataclass(frozen=True, slots=True, eq=False)  # eq=False: the fields are arrays
class ImportanceSample:
    """Weighted draws from a density, and the estimate of its integral."""

    theta: FloatArray  # (n_draws, n_params), draws within the bounds
    weights: FloatArray  # (n_draws,), smoothed and normalised
    log_evidence: float  # nats
    standard_error: float  # nats
    pareto_k: float  # above 0.7 the standard error cannot be trusted


def importance_sample(
    posterior: LogPosterior,
    maxima: Sequence[Maximum],
    *,
    uniforms: Uniforms,
    max_draws: int = MAX_DRAWS,
    standard_error: float = STANDARD_ERROR,
) -> ImportanceSample:
    """Draw from a posterior within its bounds, and estimate the log of its integral.

    The first ``FIRST_DRAWS`` draws come from a mixture of Student t distributions, one around each
    maximum. Each later batch doubles the number of draws, and comes from a mixture fitted to all
    earlier ones. Sampling stops when both the standard error, in nats, and the Pareto k are small
    enough, or after ``max_draws`` draws, at least two.

    The standard error assumes independent ``uniforms``, and is too large for :func:`sobol_points`.
    The mass of a mode far from all ``maxima`` is missed. A draw beyond the bounds has the weight
    zero and costs no call.

    A ``NotAMaximumError`` is raised if a maximum is not finite, no draw has a finite density, or a
    draw has the density nan or plus infinity.

    The weight of a draw is its density divided by the density of its batch's proposal. Given the
    earlier batches, the mean weight of a batch is unbiased. So is an average over batches whose
    coefficients are fixed beforehand (Owen & Zhou 2019, arXiv:1901.02976); here they are
    proportional to the batch number times the batch size. Stopping once the standard error is small
    leaves a bias of up to half that error for a skewed density. The deterministic mixture of
    Cornuet et al. (2012, Scandinavian J. Statistics 39) is not used, because it divides old draws
    by proposals that were fitted to them. With so few draws, this lowered the log evidence of
    kernels with 11 to 15 parameters by 0.2 to 0.3 nats.
    """
    lower, upper = posterior.lower, posterior.upper
    first = fitted = _mixture_around(maxima, lower=lower, upper=upper)
    thetas: list[FloatArray] = []  # of each batch
    log_weights: list[FloatArray] = []  # of each batch, -inf outside the bounds
    n_draws = 0
    while True:
        # a tenth of later ones is the first one, whose tails bound the weights
        parts = ((0.9, fitted), (0.1, first)) if thetas else ((1.0, first),)
        proposal = [(times * share, one) for times, own in parts for share, one in own]
        n_more = max(FIRST_DRAWS, n_draws)
        if max_draws - n_draws - n_more < 20:  # too few for another batch
            n_more = max_draws - n_draws
        theta = _draws_of(proposal, n_more, uniforms)
        inside = np.all((lower <= theta) & (theta <= upper), axis=1)
        logs = np.full(n_more, -np.inf)
        logs[inside] = [posterior.value(point) for point in theta[inside]]
        logs[inside] -= logsumexp(_log_parts(proposal, theta[inside]), axis=0)
        thetas.append(theta)
        log_weights.append(logs)
        n_draws += n_more
        # so that all weights sum to the evidence; later proposals fit better, and count more
        numbers = np.arange(1.0, len(log_weights) + 1)
        factors = numbers / (numbers @ [len(logs) for logs in log_weights])
        pooled = [logs + np.log(f) for logs, f in zip(log_weights, factors, strict=True)]
        log_evidence, error = _estimate(pooled)
        together = np.concatenate(pooled)
        shape, *_ = fit_tail(np.exp(together - together.max()))
        # below 0.5 the weights have the finite variance of the standard error
        if (shape < 0.5 and error < standard_error) or n_draws >= max_draws:
            break
        fitted = _refitted(fitted, np.concatenate(thetas), softmax(together))
    possible = np.isfinite(together)
    return ImportanceSample(
        theta=np.concatenate(thetas)[possible],
        weights=pareto_smoothed(together[possible]),
        log_evidence=log_evidence,
        standard_error=error,
        pareto_k=shape,
    )


def _estimate(pooled: list[FloatArray]) -> tuple[float, float]:
    """Estimate the log evidence from all batches, with its error by the delta method."""
    if not np.isfinite(highest := np.concatenate(pooled).max()):
        raise NotAMaximumError(
            "the density must be positive and finite around its modes, "
            f"got {highest} as the largest log weight"
        )
    weights = [np.exp(logs - highest) for logs in pooled]
    total = sum(part.sum() for part in weights)
    variance = sum(len(part) * part.var(ddof=1) for part in weights)
    return float(highest + np.log(total)), float(np.sqrt(variance) / total)
