"""The log posterior to sixty digits, straight from its definition, and its Hessian."""

from collections.abc import Mapping

import numpy as np
from mpmath import MPContext

from autokernel.expression import parse_expression
from autokernel.kernels import ADD

mp = MPContext()
mp.dps = 60
STEP = mp.mpf(10) ** -20  # a forward difference is off by it, and by 1e-60 / STEP^2 of rounding

exp, log, sin, number = (np.frompyfunc(f, 1, 1) for f in (mp.exp, mp.log, mp.sin, mp.mpf))

Priors = Mapping[str, tuple[float, float]]
NAMES = {
    "SE": ("lengthscale", "variance"),
    "PER": ("lengthscale", "variance", "period"),
    "LIN": ("variance", "offset"),
    "RQ": ("lengthscale", "variance", "alpha"),
}


PRIORS: Priors = {
    "lengthscale": (2, 2),
    "variance": (2, 3),
    "period": (2, 2),
    "offset": (2, 3),
    "alpha": (2, 2),
    "noise_variance": (1, 2),
}


class PreciseLogPosterior:
    """``log N(y; 0, K + s I) + log p(theta)`` as a number of sixty digits.

    ``priors`` says what differs from ``PRIORS``.
    """

    def __init__(self, text, X, y, *, priors):
        self._expression = parse_expression(text)
        self._rows, self._columns = np.tril_indices(len(y))
        self._X, self._y = number(X), number(y)
        names = [name for leaf in self._expression.leaves for name in NAMES[leaf.kernel.name]]
        own = {**PRIORS, **priors}
        self._priors = [own[name] for name in [*names, "noise_variance"]]

    def __call__(self, theta):
        """Log posterior in nats, priors as densities of the logarithms."""
        params = iter([mp.exp(t) for t in theta])
        K = np.empty((len(self._y), len(self._y)), dtype=object)
        K[self._rows, self._columns] = self._covariance(self._expression, params)
        K[np.diag_indices(len(K))] += next(params)
        L = _cholesky(K)
        z = _solve_lower(L, self._y)
        log_likelihood = -(z @ z) / 2 - log(L.diagonal()).sum() - len(z) * mp.log(2 * mp.pi) / 2
        return log_likelihood + sum(
            shape * mp.log(rate) - mp.loggamma(shape) + (shape - 1) * t - rate * mp.exp(t) + t
            for t, (shape, rate) in zip(theta, self._priors, strict=True)
        )

    def negative_hessian(self, theta):
        """Hessian (n_params, n_params) of the negative log posterior, each entry of 15 digits."""
        here = [mp.mpf(t) for t in theta.tolist()]

        def value(*moved):
            return self([t + STEP * moved.count(place) for place, t in enumerate(here)])

        middle, forward = value(), [value(i) for i in range(len(here))]
        hessian = np.empty((len(here), len(here)))
        for i in range(len(here)):
            for j in range(i + 1):
                second = value(i, j) - forward[i] - forward[j] + middle
                hessian[i, j] = hessian[j, i] = -second / STEP**2
        return hessian

    def _covariance(self, expression, params):
        """Covariance of the pairs of the lower triangle."""
        if expression.n_leaves > 1:
            left, right = (self._covariance(operand, params) for operand in expression.operands)
            return left + right if expression.operator == ADD else left * right
        (leaf,) = expression.leaves
        one, other = (self._X[rows, leaf.column] for rows in (self._rows, self._columns))
        match leaf.kernel.name, [next(params) for _ in NAMES[leaf.kernel.name]]:
            case "SE", [lengthscale, variance]:
                return variance * exp(-((one - other) ** 2) / (2 * lengthscale**2))
            case "PER", [lengthscale, variance, period]:
                sine = sin(mp.pi * (one - other) / period)
                return variance * exp(-(sine**2) / (2 * lengthscale**2))
            case "LIN", [variance, offset]:
                return variance * one * other + offset
            case "RQ", [lengthscale, variance, alpha]:
                base = 1 + (one - other) ** 2 / (2 * alpha * lengthscale**2)
                return variance * exp(-alpha * log(base))
        raise AssertionError(leaf.kernel.name)


def _cholesky(K):
    """Lower factor, row by row; the upper triangle is not read."""
    L = K.copy()
    for i in range(len(L)):
        for j in range(i):
            L[i, j] = (L[i, j] - L[i, :j] @ L[j, :j]) / L[j, j] if j else L[i, j] / L[j, j]
        L[i, i] = mp.sqrt(L[i, i] - L[i, :i] @ L[i, :i]) if i else mp.sqrt(L[i, i])
    return L


def _solve_lower(L, y):
    """Forward substitution."""
    z = y.copy()
    for i in range(len(z)):
        z[i] = (z[i] - (L[i, :i] @ z[:i] if i else 0)) / L[i, i]
    return z
