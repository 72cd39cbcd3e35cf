"""Heavy-tailed proposals around the modes of a density: mixtures of folded Student t."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import gammaln, logsumexp, softmax

from autokernel.criteria.laplace import boundary_log_mass
from autokernel.exceptions import NotAMaximumError
from autokernel.map.maximum import Maximum
from autokernel.typing import BoolArray, FloatArray

_DEGREES = 5.0  # degrees of freedom, for heavier tails than the posterior's
_LEAST_SHARE = 0.05  # least share of the draws for a mode, whose Laplace mass may be far too small
_LEAST_SHARES = 0.2  # largest sum of these least shares, reached if there are many modes
_LEAST_CURVATURE = 0.1  # nats per squared log parameter; the priors alone have one or more


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
        factor[np.ix_(~held, ~held)] = vectors / np.sqrt(
            np.maximum(np.abs(values), _LEAST_CURVATURE)
        )
        for index in np.flatnonzero(held):
            curvature = max(hessian[index, index], _LEAST_CURVATURE)
            scale = np.exp(boundary_log_mass(maximum.outward[index], curvature))
            factor[index, index] = scale if nearest[index] == lower[index] else -scale
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

    def draw(self, n_draws: int, rng: np.random.Generator) -> FloatArray:
        """Draw points (n_draws, n_params)."""
        z = rng.normal(size=(n_draws, len(self.centre)))
        z /= np.sqrt(rng.chisquare(_DEGREES, size=(n_draws, 1)) / _DEGREES)
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
        step = np.linalg.cholesky(trust * C + (1 - trust) * np.eye(n_params))
        return FoldedT(self.centre + self.factor @ (trust * centre), self.factor @ step, self.held)

    @property
    def _log_scale(self) -> float:
        """Log of the absolute determinant of the factor."""
        return float(np.linalg.slogdet(self.factor).logabsdet)

    def _standardise(self, theta: FloatArray) -> FloatArray:
        """Compute z (n, n_params) for points (n, n_params)."""
        z = np.linalg.solve(self.factor, (theta - self.centre).T)
        return z.T.astype(np.float64, copy=False)  # the static type is lost in solve


@dataclass(frozen=True, slots=True, eq=False)  # eq=False: shares is an array
class Mixture:
    """A mixture of folded t distributions, one for each mode."""

    shares: FloatArray  # (n_components,), sum to one
    components: tuple[FoldedT, ...]

    @classmethod
    def around(
        cls, maxima: Sequence[Maximum], *, lower: FloatArray, upper: FloatArray
    ) -> "Mixture":
        """Build a component for each maximum, with a share by its Laplace mass.

        Raises
        ------
        NotAMaximumError
            If there is no maximum or one is not finite.
        """
        if not maxima:
            raise NotAMaximumError("maxima must hold a mode of the density, got none")
        components = tuple(FoldedT.around(maximum, lower=lower, upper=upper) for maximum in maxima)
        log_masses = [
            maximum.mode.log_posterior + component.log_volume
            for maximum, component in zip(maxima, components, strict=True)
        ]
        return cls(_shares(softmax(log_masses)), components)

    def draw(self, n_draws: int, rng: np.random.Generator) -> FloatArray:
        """Draw points (n_draws, n_params)."""
        sizes = rng.multinomial(n_draws, self.shares)
        return np.concatenate(
            [part.draw(size, rng) for part, size in zip(self.components, sizes, strict=True)]
        )

    def log_density(self, theta: FloatArray) -> FloatArray:
        """Compute the log density (n,) at points (n, n_params) within the bounds."""
        return logsumexp(self._log_parts(theta), axis=0)

    def refit(self, theta: FloatArray, weights: FloatArray) -> "Mixture":
        """Fit the mixture to points (n, n_params) with weights (n,) that sum to one.

        Notes
        -----
        This is one EM step with weighted points (Cappe et al. 2008, Statistics and Computing 18).
        """
        by_component = softmax(self._log_parts(theta), axis=0) * weights
        return Mixture(
            _shares(by_component.sum(axis=1)),
            tuple(p.refit(theta, w) for p, w in zip(self.components, by_component, strict=True)),
        )

    def with_part_of(self, other: "Mixture", *, share: float) -> "Mixture":
        """Mix with another mixture, which gets this share."""
        return Mixture(
            np.concatenate([(1 - share) * self.shares, share * other.shares]),
            self.components + other.components,
        )

    def _log_parts(self, theta: FloatArray) -> FloatArray:
        """Compute the log of each component's term of the density (n_components, n)."""
        log_densities = [component.log_density(theta) for component in self.components]
        return np.log(self.shares)[:, None] + np.array(log_densities)


def _shares(masses: FloatArray) -> FloatArray:
    """Raise small masses to the least share, then normalise them to sum to one."""
    raised = np.maximum(masses, min(_LEAST_SHARE, _LEAST_SHARES / len(masses)))
    return raised / raised.sum()
