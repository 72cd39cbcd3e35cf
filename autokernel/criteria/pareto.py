"""The tail of importance weights: its shape, and weights smoothed by a Pareto distribution."""

from typing import NamedTuple

import numpy as np
from scipy.special import softmax

from autokernel.typing import FloatArray


class _Tail(NamedTuple):
    """A generalised Pareto distribution fitted to the largest of some weights."""

    shape: float  # k, leaning towards a half
    scale: float
    start: float  # largest weight that does not belong to the tail
    n: int  # number of weights in the tail


def pareto_shape(weights: FloatArray) -> float:
    """Estimate the shape k of a generalised Pareto distribution of the largest weights.

    Parameters
    ----------
    weights : ndarray of shape (n_draws,)
        Weights, not negative and in any unit.

    Returns
    -------
    float
        The shape k: moments of the weights below the order ``1 / k`` exist. It is ``-inf`` for
        equal weights, and ``inf`` if fewer than five weights lie above the start of the tail.

    Notes
    -----
    This is the estimate of Zhang & Stephens (2009, Technometrics 51) on the tail that Vehtari et
    al. (2024, JMLR 25) use, with the latter's prior, worth ten draws at 0.5.
    """
    return _fit_tail(weights).shape


def pareto_smoothed(log_weights: FloatArray) -> FloatArray:
    """Replace the largest weights by quantiles of their Pareto distribution, and normalise.

    Parameters
    ----------
    log_weights : ndarray of shape (n_draws,)
        Logs of the weights up to a constant, ``-inf`` for zero.

    Returns
    -------
    ndarray of shape (n_draws,)
        Weights that sum to one. Before normalisation none is larger than the largest one was.

    Notes
    -----
    Vehtari et al. (2024, JMLR 25), section 2. A single draw then dominates less often.
    """
    weights = np.exp(log_weights - log_weights.max())
    tail = _fit_tail(weights)
    if np.isfinite(tail.shape) and tail.n >= 5:
        order = np.argsort(weights)[-tail.n :]
        levels = (np.arange(tail.n) + 0.5) / tail.n
        k = tail.shape if abs(tail.shape) > 1e-9 else 1e-9
        quantiles = tail.start + tail.scale * np.expm1(-k * np.log1p(-levels)) / k
        weights[order] = np.minimum(quantiles, 1.0)
    return weights / weights.sum()


def _fit_tail(weights: FloatArray) -> _Tail:
    """Fit a generalised Pareto distribution to the largest weights."""
    ordered = np.sort(weights)
    n_tail = int(min(0.2 * len(weights), 3 * np.sqrt(len(weights))))
    if ordered[-1] - ordered[0] <= 1e-10 * ordered[-1]:  # they differ by rounding alone
        return _Tail(-np.inf, 0.0, ordered[-1], 0)
    start = ordered[-n_tail - 1]
    excess = ordered[-n_tail:] - start
    excess = excess[excess > 0]
    n = len(excess)
    if n < 5:
        return _Tail(np.inf, 0.0, start, 0)
    n_grid = 30 + int(np.sqrt(n))
    quartile = excess[int(n / 4 + 0.5) - 1]
    grid = 1 - np.sqrt(n_grid / (np.arange(n_grid) + 0.5))
    grid = 1 / excess[-1] + grid / (3 * quartile)  # values of -k / sigma
    shapes = np.log1p(-grid[:, None] * excess).mean(axis=1)
    profile = n * (np.log(-grid / shapes) - shapes - 1)
    rate = softmax(profile) @ grid
    k = np.log1p(-rate * excess).mean()
    return _Tail(float((n * k + 10 * 0.5) / (n + 10)), float(-k / rate), float(start), n)
