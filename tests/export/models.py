"""Fitted models of all built-in base kernels and operators."""

from functools import cache

import numpy as np

from autokernel.expression import n_kernel_params, parse_expression
from tests.explain.models import refitted, with_kernel

KERNELS = (
    "SE[0] * SE[1]",
    "LIN[0] + PER[0] * RQ[1]",
    "(MAT32[0] + MAT52[1]) * LIN[1]",
    "CP[0](SE[0] + LIN[1], PER[0])",
    "CW[1](SE[0], LIN[1]) + SE[0] * SE[1]",
    "NOISE",
)


def table():
    """Sixty rows of two columns that are far from zero, and twenty new ones."""
    rng = np.random.default_rng(0)
    X = rng.uniform(5, 9, (60, 2))
    y = 100 + np.sin(3 * X[:, 0]) * X[:, 1] + 0.1 * rng.normal(size=60)
    return X, y, rng.uniform(4, 10, (20, 2))


def given(kernel):
    """A model of the table with this kernel, at parameters that were drawn and not fitted."""
    X, y, _ = table()
    expression = parse_expression(kernel)
    theta = np.random.default_rng(0).uniform(-1, 1, size=n_kernel_params(expression))
    return with_kernel(X, y, expression, theta)


@cache
def fitted(kernel, averaging=None):
    """Fit a kernel to the table, once for all tests, which must not change it."""
    X, y, _ = table()
    return refitted(kernel, X, y, averaging=averaging)
