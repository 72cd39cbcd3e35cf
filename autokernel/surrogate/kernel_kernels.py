"""Kernels between kernel expressions: what a surrogate takes two expressions to have in common."""

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
    """Weights of distances, and how they change with the parameters that they depend on."""

    values: FloatArray  # (n_distances,)
    jacobian: FloatArray  # (n_distances, n_params)


class KernelKernel(ABC):
    """A kernel ``exp(-sum_i w_i d_i)`` between expressions.

    Each ``d_i`` is a distance for which ``exp(-w d_i)`` is positive semi-definite for any ``w``.
    """

    bounds: Sequence[tuple[float, float]]
    """Bounds of each of the parameters that the weights depend on."""

    start_noise = 0.01
    """Noise variance at which fits to standardised scores begin; the parameters begin at zero."""

    @abstractmethod
    def distances(
        self, expressions: Sequence[Expression], others: Sequence[Expression] | None = None
    ) -> FloatArray:
        """Compute the distances (n_distances, n, m); ``others`` are by default the same."""

    @abstractmethod
    def weights(self, params: FloatArray) -> Weights:
        """Compute the weights at parameters (n_params,)."""


class SOTKernel(KernelKernel):
    """``exp(-d / l^2)`` with a weighted mean of the three SOT distances (SOT eq. 4, A.5).

    Its parameters are the log of the squared lengthscale and the logits of the weights.
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
        """Divide sigmoids by their sum, and by the squared lengthscale."""
        sigmoid = expit(params[1:])
        shares = sigmoid / sigmoid.sum()
        values = shares * np.exp(-params[0])
        by_logit = values[:, None] * (np.eye(3) - shares) * (1 - sigmoid)
        return Weights(values, np.column_stack([-values, by_logit]))


class HellingerKernel(KernelKernel):
    """``exp(-d / (2 l^2))`` with the expected squared Hellinger distance (BOMS eq. 8).

    Its parameter is the log of the squared lengthscale. What has been computed is kept.
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
    """``exp(-sum_i omega_i^2 d_i / (2 l^2))`` over the levels of a tree (Hutter and Osborne, 2013).

    ``omega_i`` is the product of the ``gamma`` of all levels from the root down to this one. Its
    parameters are the log of the squared lengthscale, which plays the part of the root's
    ``gamma``, and the logits of the others.
    """

    bounds = ((-4.0, 8.0), *(_USUAL,) * (N_LEVELS - 1))  # some forty positions may differ
    start_noise = 0.3  # from little noise, fits go to short lengthscales and end at noise alone

    def __init__(self, *, n_features: int) -> None:
        self._distances = LevelDistances(n_features=n_features)

    def distances(
        self, expressions: Sequence[Expression], others: Sequence[Expression] | None = None
    ) -> FloatArray:
        """Compute the distances (n_levels, n, m)."""
        return self._distances(expressions, others)

    def weights(self, params: FloatArray) -> Weights:
        """Multiply squared gammas, from the root down."""
        gamma = expit(params[1:])
        squared_omega = np.cumprod(np.append(1.0, gamma**2))
        values = 0.5 * np.exp(-params[0]) * squared_omega
        above = np.tri(N_LEVELS, N_LEVELS - 1, -1)  # which gammas a level depends on
        return Weights(
            values, np.column_stack([-values, 2 * values[:, None] * above * (1 - gamma)])
        )
