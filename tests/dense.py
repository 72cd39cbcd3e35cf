"""A second, dense implementation of the log posterior, straight from the definitions."""

from collections.abc import Callable, Iterator

import numpy as np
import pytest
from scipy.stats import gamma

from autokernel.expression import Expression, parse_expression
from autokernel.kernels import ADD
from autokernel.typing import FloatArray
from tests.model.cases import FORMULAS

DenseCovariance = Callable[[str, FloatArray, FloatArray], FloatArray]
DensePosterior = Callable[[FloatArray], FloatArray]

# SOT appendix A.4: shape and rate, in the order of theta
LENGTHSCALE, VARIANCE, PERIOD, ALPHA, OFFSET, NOISE = (
    (2.0, 2.0),
    (2.0, 3.0),
    (2.0, 2.0),
    (2.0, 2.0),
    (2.0, 3.0),
    (1.0, 100.0),
)
PRIORS = {
    "SE": (LENGTHSCALE, VARIANCE),
    "PER": (LENGTHSCALE, VARIANCE, PERIOD),
    "LIN": (VARIANCE, OFFSET),
    "RQ": (LENGTHSCALE, VARIANCE, ALPHA),
}


def _covariance(expression: Expression, X: FloatArray, params: Iterator[FloatArray]) -> FloatArray:
    if expression.n_leaves == 1:
        (leaf,) = expression.leaves
        mine = [next(params)[..., None, None] for _ in PRIORS[leaf.kernel.name]]
        x = X[:, leaf.column]
        return FORMULAS[leaf.kernel.name](x[:, None], x, *mine)
    left, right = (_covariance(operand, X, params) for operand in expression.operands)
    return left + right if expression.operator == ADD else left * right


@pytest.fixture(scope="session")
def dense_covariance() -> DenseCovariance:
    """Build the covariance of targets, noise included, of theta and X."""

    def build(text: str, theta: FloatArray, X: FloatArray) -> FloatArray:
        params = iter(np.exp(theta))
        K = _covariance(parse_expression(text), X, params)
        return K + next(params) * np.eye(len(X))

    return build


@pytest.fixture(scope="session")
def dense_log_posterior() -> Callable[[str, FloatArray, FloatArray], DensePosterior]:
    """Build the log posterior (...,) of theta (..., n_params), with the priors of the paper."""

    def build(text: str, X: FloatArray, y: FloatArray) -> DensePosterior:
        expression = parse_expression(text)
        priors = [p for leaf in expression.leaves for p in PRIORS[leaf.kernel.name]] + [NOISE]

        def log_posterior(theta: FloatArray) -> FloatArray:
            params = iter(np.moveaxis(np.exp(theta), -1, 0))
            K = _covariance(expression, X, params)
            K = K + next(params)[..., None, None] * np.eye(len(y))
            L = np.linalg.cholesky(K)
            z = np.linalg.solve(L, np.broadcast_to(y[:, None], (*L.shape[:-1], 1)))[..., 0]
            log_diagonal = np.log(np.diagonal(L, axis1=-2, axis2=-1))
            log_likelihood = (
                -0.5 * (z**2).sum(axis=-1)
                - log_diagonal.sum(axis=-1)
                - 0.5 * len(y) * np.log(2 * np.pi)
            )
            # theta is the log of a Gamma variable: its density has the Jacobian exp(theta)
            log_prior = sum(
                gamma.logpdf(np.exp(theta[..., i]), shape, scale=1 / rate) + theta[..., i]
                for i, (shape, rate) in enumerate(priors)
            )
            return log_likelihood + log_prior

        return log_posterior

    return build
