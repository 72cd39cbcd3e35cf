"""From a fitted expression to a model that predicts, in the units of the user."""

from dataclasses import dataclass

import numpy as np
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import Kernel

from autokernel.data import Scaling, target_scale
from autokernel.expression import Expression
from autokernel.likelihood import smallest_jitter
from autokernel.model.sklearn_export import to_sklearn
from autokernel.typing import FloatArray


@dataclass(frozen=True, slots=True, eq=False)  # eq=False: the regressor holds arrays
class Conditioned:
    """A fitted kernel conditioned on data."""

    kernel: Kernel  # noise and, where a factorisation asks for it, jitter included
    regressor: GaussianProcessRegressor
    noise_variance: float  # units of y squared


def condition(
    expression: Expression, theta: FloatArray, X: FloatArray, y: FloatArray, *, scaling: Scaling
) -> Conditioned:
    """Condition a fitted kernel on data.

    Parameters
    ----------
    expression : Expression
        The structure.
    theta : ndarray of shape (n_params,)
        Logs of its parameters on scaled inputs and a standardised target, noise variance last.
    X : ndarray of shape (n_samples, n_features)
        Inputs before scaling.
    y : ndarray of shape (n_samples,)
        Target before it was standardised.
    scaling : Scaling
        What was done to the inputs.

    Notes
    -----
    O(n_samples^3), two factorisations.
    """
    bare = to_sklearn(expression, theta, scaling=scaling)
    jitter = smallest_jitter(bare(X))
    kernel = to_sklearn(expression, theta, scaling=scaling, jitter=jitter)
    regressor = GaussianProcessRegressor(kernel, optimizer=None, normalize_y=True, alpha=0.0)
    noise_variance = (np.exp(theta[-1]) + jitter) * target_scale(y) ** 2
    return Conditioned(kernel, regressor.fit(X, y), float(noise_variance))
