"""A second, dense implementation of the log posterior, straight from the definitions."""

import numpy as np
import pytest
from scipy.stats import gamma

from autokernel.expression import parse_expression
from tests.high_precision import PRIORS
from tests.model.cases import dense_covariance as covariance_of

PAPER = {**PRIORS, "noise_variance": (1, 100)}  # SOT appendix A.4: shape and rate


@pytest.fixture(scope="session")
def dense_covariance():
    """Build the covariances (..., n, n) of targets, noise included, of theta (..., n_params)."""

    def build(text, theta, X):
        params = np.moveaxis(np.exp(theta), -1, 0)[..., None, None]
        K = covariance_of(parse_expression(text), params[:-1], X, X)
        return K + params[-1] * np.eye(len(X))

    return build


@pytest.fixture(scope="session")
def dense_log_posterior(dense_covariance):
    """Build the log posterior (...,) of theta (..., n_params), with the priors of the paper."""

    def build(text, X, y):
        leaves = parse_expression(text).leaves
        names = [parameter.name for leaf in leaves for parameter in leaf.parameters]
        priors = [PAPER[name] for name in [*names, "noise_variance"]]

        def log_posterior(theta):
            L = np.linalg.cholesky(dense_covariance(text, theta, X))
            z = np.linalg.solve(L, np.broadcast_to(y[:, None], (*L.shape[:-1], 1)))[..., 0]
            log_diagonal = np.log(2 * np.pi) / 2 + np.log(np.diagonal(L, axis1=-2, axis2=-1))
            # theta is the log of a Gamma variable: its density has the Jacobian exp(theta)
            return (
                -0.5 * (z**2).sum(axis=-1)
                - log_diagonal.sum(axis=-1)
                + sum(
                    gamma.logpdf(np.exp(theta[..., i]), shape, scale=1 / rate) + theta[..., i]
                    for i, (shape, rate) in enumerate(priors)
                )
            )

        return log_posterior

    return build
