"""Kernels between kernel expressions: the covariance functions of the surrogate."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import expit

from autokernel.deadline import NEVER, Deadline
from autokernel.expression import Expression
from autokernel.kernels import Priors
from autokernel.surrogate.arc import N_LEVELS, LevelDistances
from autokernel.surrogate.hellinger import HellingerDistances
from autokernel.surrogate.sot import SOTDistances
from autokernel.typing import FloatArray

_USUAL = (-4.0, 4.0)  # bounds of log squared lengthscales and of logits


class Weights(NamedTuple):
    """Weights of the distances, with their derivatives in the parameters of the kernel."""

    values: FloatArray  # (n_distances,)
    jacobian: FloatArray  # (n_distances, n_params)


class KernelKernel(ABC):
    """A kernel ``exp(-sum_i w_i d_i)`` between expressions.

    Each ``d_i`` is a distance for which ``exp(-w d_i)`` is positive semi-definite for any ``w``.
    """

    bounds: Sequence[tuple[float, float]]
    """Bounds of each parameter of the weights."""

    start_noise = 0.01
    """Starting value of the noise variance of standardised scores; parameters start at zero."""

    @abstractmethod
    def distances(
        self, expressions: Sequence[Expression], others: Sequence[Expression] | None = None
    ) -> FloatArray:
        """Compute distances (n_distances, n, m); ``others`` are by default the expressions."""

    @abstractmethod
    def weights(self, params: FloatArray) -> Weights:
        """Compute the weights at these parameters (n_params,)."""


class SOTKernel(KernelKernel):
    """The kernel ``exp(-d / l^2)``, d a weighted mean of the three SOT distances (SOT eq. 4, A.5).

    The parameters are the log of the squared lengthscale and the logits of the weights.
    """

    bounds = (_USUAL,) * 4

    def __init__(self, *, n_features: int) -> None:
        self._distances = SOTDistances(n_features=n_features)

    def distances(
        self, expressions: Sequence[Expression], others: Sequence[Expression] | None = None
    ) -> FloatArray:
        """Compute the distances (3, n, m) of base kernels, paths and subtrees."""
        return self._distances(expressions, others)

    def weights(self, params: FloatArray) -> Weights:
        """Divide the sigmoids by their sum and by the squared lengthscale."""
        sigmoid = expit(params[1:])
        shares = sigmoid / sigmoid.sum()
        values = shares * np.exp(-params[0])
        by_logit = values[:, None] * (np.eye(3) - shares) * (1 - sigmoid)
        return Weights(values, np.column_stack([-values, by_logit]))


class HellingerKernel(KernelKernel):
    """The kernel ``exp(-d / (2 l^2))``, d the expected squared Hellinger distance (BOMS eq. 8).

    The parameter is the log of the squared lengthscale. Distances are cached.
    """

    bounds = (_USUAL,)

    def __init__(
        self,
        X: FloatArray,
        *,
        priors: str | Priors = "default",
        deadline: Deadline = NEVER,
    ) -> None:
        self._distances = HellingerDistances(X, priors=priors, deadline=deadline)

    def distances(
        self, expressions: Sequence[Expression], others: Sequence[Expression] | None = None
    ) -> FloatArray:
        """Compute the distances (1, n, m)."""
        return self._distances(expressions, others)[None]

    def weights(self, params: FloatArray) -> Weights:
        """Halve the inverse of the squared lengthscale."""
        values = 0.5 * np.exp(-params)
        return Weights(values, -values[:, None])


class ArcKernel(KernelKernel):
    """The kernel ``exp(-sum_i omega_i^2 d_i / (2 l^2))`` over levels i of a tree.

    See Hutter and Osborne (2013). ``omega_i`` is the product of the ``gamma`` of all levels
    from the root down to level i. The parameters are the log of the squared lengthscale, which
    replaces the ``gamma`` of the root, and the logits of the other ``gamma``.
    """

    bounds = (
        (-4.0, 8.0),
        *(_USUAL,) * (N_LEVELS - 1),
    )  # large lengthscales, as some forty positions may differ
    start_noise = 0.3  # fits from less noise end at short lengthscales or at pure noise

    def __init__(self, *, n_features: int) -> None:
        self._distances = LevelDistances(n_features=n_features)

    def distances(
        self, expressions: Sequence[Expression], others: Sequence[Expression] | None = None
    ) -> FloatArray:
        """Compute the distances (n_levels, n, m)."""
        return self._distances(expressions, others)

    def weights(self, params: FloatArray) -> Weights:
        """Multiply the squared gammas from the root down to each level."""
        gamma = expit(params[1:])
        squared_omega = np.cumprod(np.append(1.0, gamma**2))
        values = 0.5 * np.exp(-params[0]) * squared_omega
        above = np.tri(N_LEVELS, N_LEVELS - 1, -1)  # 1 where a level depends on a gamma
        return Weights(
            values, np.column_stack([-values, 2 * values[:, None] * above * (1 - gamma)])
        )
