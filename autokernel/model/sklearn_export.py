"""From a fitted expression to a scikit-learn kernel in the units of the user."""

from collections.abc import Iterator

import numpy as np
from sklearn.gaussian_process.kernels import Kernel, WhiteKernel

from autokernel.data import Scaling
from autokernel.expression import ADD, Expression, Operation, leaf_slots
from autokernel.kernels import BASE_KERNELS
from autokernel.kernels.export_bounds import around
from autokernel.model.feature_kernel import FeatureKernel
from autokernel.typing import FloatArray


def to_sklearn(
    expression: Expression, theta: FloatArray, *, scaling: Scaling, jitter: float = 0.0
) -> Kernel:
    """Build the scikit-learn kernel that has the fitted values on inputs before scaling.

    Parameters
    ----------
    expression : Expression
        The structure.
    theta : ndarray of shape (n_params,)
        Logs of its parameters on scaled inputs, noise variance last.
    scaling : Scaling
        What was done to the inputs.
    jitter : float
        Added to the noise variance.

    Returns
    -------
    Kernel
        A composition of ``Sum``, ``Product``, :class:`FeatureKernel` and scikit-learn's own
        kernels, plus a ``WhiteKernel``.
    """
    params = np.exp(theta)
    leaves = iter(
        FeatureKernel(
            BASE_KERNELS[leaf.kernel].to_sklearn(
                params[place], scale=float(scaling.scale[leaf.column])
            ),
            leaf.column,
            float(scaling.shift[leaf.column]),
        )
        for leaf, place in leaf_slots(expression)
    )
    noise = float(params[-1]) + jitter
    return _join(expression, leaves) + WhiteKernel(noise, around(noise))


def _join(expression: Expression, leaves: Iterator[Kernel]) -> Kernel:
    """Join the kernels of the leaves, taken from left to right, as the expression does."""
    if not isinstance(expression, Operation):
        return next(leaves)
    left, right = _join(expression.left, leaves), _join(expression.right, leaves)
    return left + right if expression.operator == ADD else left * right
