"""Base kernels from outside of the package, and data drawn from one of them."""

import numpy as np

from autokernel import AutoKernelGPRegressor, BaseKernel, CallableKernel
from autokernel.kernels import LENGTHSCALE, VARIANCE
from tests.fits import PLAIN


class OrnsteinUhlenbeck(BaseKernel):
    """With a derivative of its own."""

    name = "OU"
    parameters = (LENGTHSCALE, VARIANCE)

    def value(self, params, pairs):
        lengthscale, variance = params
        return variance * np.exp(-pairs.difference / lengthscale)

    def gradient(self, params, pairs, adjoint):
        weights = adjoint * self.value(params, pairs)
        return np.array([weights @ pairs.difference / params[0], weights.sum()])


class ByDifferences(OrnsteinUhlenbeck):
    """With derivatives by differences."""

    name = "DIFF"
    gradient = BaseKernel.gradient


def exponential(X, Y, lengthscale, variance):
    return variance * np.exp(-np.abs(X - Y.T) / lengthscale)


OU = OrnsteinUhlenbeck()
BY_CALL = CallableKernel("CALL", exponential, (LENGTHSCALE, VARIANCE))


def rough(n_samples=25, seed=0):
    """A draw from an Ornstein-Uhlenbeck process."""
    rng = np.random.default_rng(seed)
    X = np.sort(rng.uniform(size=(n_samples, 1)), axis=0)
    K = np.exp(-np.abs(X - X.T) / 0.3) + 1e-4 * np.eye(n_samples)
    return X, rng.multivariate_normal(np.zeros(n_samples), K)


def fitted(**parameters):
    settings = {"base_kernels": ("SE", OU), "n_iter": 2, "max_leaves": 2, **PLAIN}
    return AutoKernelGPRegressor(**{**settings, **parameters}).fit(*rough())
