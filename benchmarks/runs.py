"""Splits of the data sets, draws from known kernels, and errors of predictions.

A split is that of the SOT paper (section 4, appendix D): inputs scaled to the unit interval and
target standardised over the whole set, a random part to train on, the rest to test.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from data import load  # isort: skip

import numpy as np
from scipy.stats import norm

from autokernel import AutoKernelGPRegressor, Expression, parse_expression
from autokernel.expression import fold, normal_form, slots_of

KERNELS: Mapping[str, Callable[..., np.ndarray]] = {
    "SE": lambda x, z, lengthscale, variance: (
        variance * np.exp(-((x - z) ** 2) / (2 * lengthscale**2))
    ),
    "LIN": lambda x, z, variance, offset: variance * x * z + offset,
    "CAT": lambda x, z, variance, offset: variance * (x == z) + offset,
    "PER": lambda x, z, lengthscale, variance, period: (
        variance * np.exp(-(np.sin(np.pi * (x - z) / period) ** 2) / (2 * lengthscale**2))
    ),
    "RQ": lambda x, z, lengthscale, variance, alpha: (
        variance * (1 + (x - z) ** 2 / (2 * alpha * lengthscale**2)) ** -alpha
    ),
}


@dataclass(frozen=True, slots=True, eq=False)  # eq=False: the fields are arrays
class Split:
    """A data set, scaled, and parted at random."""

    X_train: np.ndarray
    y_train: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray


def draw_split(dataset: str, seed: int, *, n_train: int) -> Split:
    """Scale a data set and draw the rows to train on."""
    X, y = load(dataset)
    X = (X - X.min(axis=0)) / np.ptp(X, axis=0)
    y = (y - y.mean()) / y.std()
    order = np.random.default_rng(seed).permutation(len(y))
    train, test = np.split(order, [n_train])
    return Split(X[train], y[train], X[test], y[test])


def rmse(mean: np.ndarray, y: np.ndarray) -> float:
    """Compute the root of the mean square error."""
    return float(np.sqrt(np.mean((mean - y) ** 2)))


def normal_nll(mean: np.ndarray, std: np.ndarray, y: np.ndarray) -> float:
    """Compute the mean negative log density of normal distributions, in nats per target."""
    return -float(norm.logpdf(y, mean, std).mean())


def names_of_parameters(expression: Expression) -> list[list[str]]:
    """List the names of the parameters of each node, in the order of the parameters."""
    return [[parameter.name for parameter in node.parameters] for node, _ in slots_of(expression)]


def covariance(expression: Expression, params: np.ndarray, X: np.ndarray) -> np.ndarray:
    """Compute the covariance of sums and products of these kernels, without noise."""
    if not expression.leaves:
        return np.zeros((len(X), len(X)))

    def leaf(tree: Any, own: np.ndarray) -> np.ndarray:
        x = X[:, tree.column]
        return KERNELS[tree.kernel.name](x[:, None], x[None], *own)

    def join(tree: Any, _: np.ndarray, operands: list[np.ndarray]) -> np.ndarray:
        combine = np.add if tree.operator.symbol == "+" else np.multiply
        return combine.reduce(operands)

    return fold(expression, params, leaf, join)


def score_of(kernel: str, X: np.ndarray, y: np.ndarray, *, seed: int = 0) -> float:
    """Fit a known kernel, and return its score in nats, with the prior over structures."""
    return float(AutoKernelGPRegressor(random_state=seed).refit(X, y, kernel=kernel).best_score_)


def same_kernel(one: str, other: str) -> bool:
    """Whether two kernels have the same normal form."""
    forms = [normal_form(parse_expression(text)).canonical for text in (one, other)]
    return forms[0] == forms[1]
