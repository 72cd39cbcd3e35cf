"""Random models with their textbook predictions, and a kernel with one parameter."""

import numpy as np
from scipy.special import expit

from autokernel import BaseKernel
from autokernel.expression import Grammar, Leaf
from autokernel.inference import ExactLikelihood, TrainingData
from autokernel.kernels import ADD, BASE_KERNELS, MULTIPLY, VARIANCE
from tests.kernels.gate import fall

BUILT_IN = tuple(BASE_KERNELS.values())


class Constant(BaseKernel):
    """A kernel with one parameter."""

    name = "CONST"
    parameters = (VARIANCE,)

    def value(self, params, pairs):
        return np.full_like(pairs.difference, params[0])


def random_case(seed, *, n_features, kernels=BUILT_IN):
    """A random expression with random parameters and a data set on the unit interval."""
    rng = np.random.default_rng(seed)
    grammar = Grammar(kernels, (ADD, MULTIPLY), tuple(range(n_features)), 6)
    expression = grammar.random_walk(Leaf(kernels[0], 0), int(rng.integers(1, 6)), rng)
    X, y = rng.uniform(size=(25, n_features)), rng.normal(size=25)
    y = (y - y.mean()) / y.std()
    likelihood = ExactLikelihood(expression, TrainingData(X, y))
    theta = rng.normal(-0.5, 0.7, size=len(likelihood.parameters))
    theta[-1] = np.log(rng.uniform(0.01, 0.1))
    return expression, theta, X, y, likelihood


def dense_predictions(expression, theta, X, y, X_new):
    """Mean and covariance of new observations, noise included (R&W eqs. 2.22 to 2.24)."""
    params, noise = np.exp(theta[:-1]), np.exp(theta[-1])
    K, cross, prior = (
        dense_covariance(expression, params, rows, columns)
        for rows, columns in ((X, X), (X_new, X), (X_new, X_new))
    )
    inner = K + noise * np.eye(len(X))
    mean = cross @ np.linalg.solve(inner, y)
    return mean, prior - cross @ np.linalg.solve(inner, cross.T) + noise * np.eye(len(X_new))


def dense_covariance(expression, params, X, Z):
    """Covariance of an expression between points, straight from the definitions."""
    return _covariance(expression.tree, iter(params), X, Z)


def _covariance(expression, params, X, Z):
    """Covariance of an expression that takes its parameters, the first ones first."""
    if isinstance(expression, Leaf):
        own = [next(params) for _ in expression.parameters]
        x, z = X[:, expression.column, None], Z[None, :, expression.column]
        return FORMULAS[expression.kernel.name](x, z, *own)
    own = [next(params) for _ in expression.parameters]
    first, second = (_covariance(operand, params, X, Z) for operand in expression.operands)
    if expression.column is None:
        return first + second if expression.operator == ADD else first * second
    weight = WEIGHTS[expression.operator.symbol]
    a, b = (weight(rows[:, expression.column], *own) for rows in (X, Z))
    return np.outer(a, b) * first + np.outer(1 - a, 1 - b) * second


def _matern_32(x, z, lengthscale, variance):
    r = np.sqrt(3) * abs(x - z) / lengthscale
    return variance * (1 + r) * np.exp(-r)


def _matern_52(x, z, lengthscale, variance):
    r = np.sqrt(5) * abs(x - z) / lengthscale
    return variance * (1 + r + r**2 / 3) * np.exp(-r)


def _overlap(x, z):
    return np.where(x * z > 0, np.minimum(abs(x), abs(z)), 0.0)


def _integrated_walk(x, z, variance, slope_variance, offset):
    m = _overlap(x, z)
    far = np.maximum(abs(x), abs(z))
    return variance * m**2 * (3 * far - m) / 2 + slope_variance * x * z + offset


def _damped_trend(x, z, length, variance, offset):
    def squared_way(d):  # of a slope of unit variance
        return 2 * length**2 * (abs(d) / length - 1 + np.exp(-abs(d) / length))

    both = squared_way(x) + squared_way(z) - squared_way(x - z)
    return variance * both / (2 * squared_way(1.0)) + offset


def _growth(x, z, length, variance, offset):
    def level(d):
        return (1 - np.exp(-d / length)) / (1 - np.exp(-1 / length))

    return variance * level(x) * level(z) + offset


FORMULAS = {
    "SE": lambda x, z, length, variance: variance * np.exp(-((x - z) ** 2) / (2 * length**2)),
    "LIN": lambda x, z, variance, offset: variance * x * z + offset,
    "PER": lambda x, z, length, variance, period: (
        variance * np.exp(-(np.sin(np.pi * (x - z) / period) ** 2) / (2 * length**2))
    ),
    "RQ": lambda x, z, length, variance, alpha: (
        variance * (1 + (x - z) ** 2 / (2 * alpha * length**2)) ** -alpha
    ),
    "MAT32": _matern_32,
    "MAT52": _matern_52,
    "CAT": lambda x, z, variance, offset: variance * (x == z) + offset,
    "RW": lambda x, z, variance, offset: variance * _overlap(x, z) + offset,
    "IRW": _integrated_walk,
    "IOU": _damped_trend,
    "SAT": _growth,
    "MAT12": lambda x, z, length, variance: variance * np.exp(-abs(x - z) / length),
    "OU": lambda x, z, length, variance: variance * np.exp(-abs(x - z) / length),
}

# of the first operand of an operator that acts on a column
WEIGHTS = {
    "CP": lambda x, location, width: expit((location - x) / width),
    "CW": lambda x, centre, length, width: (
        1 - expit((x - centre + length / 2) / width) * expit((centre + length / 2 - x) / width)
    ),
    "GATE": fall,
}
