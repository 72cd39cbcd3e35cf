"""From a fitted expression to a scikit-learn kernel in the units of the user."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from sklearn.gaussian_process.kernels import Kernel, WhiteKernel

from autokernel.export.feature_kernel import FeatureKernel
from autokernel.expression import ADD, Expression, Leaf, Operation
from autokernel.kernels import BASE_KERNELS
from autokernel.kernels.export_bounds import around
from autokernel.typing import FloatArray


class Scaling(NamedTuple):
    """How columns were scaled before the fit: ``(X - shift) / scale``."""

    shift: FloatArray  # (n_features,)
    scale: FloatArray  # (n_features,), positive


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
    position = 0

    def leaf(leaf: Leaf) -> Kernel:
        nonlocal position
        base = BASE_KERNELS[leaf.kernel]
        stop = position + len(base.parameter_names)
        own = params[position:stop]
        position = stop
        kernel = base.to_sklearn(own, scale=float(scaling.scale[leaf.column]))
        return FeatureKernel(kernel, leaf.column, float(scaling.shift[leaf.column]))

    noise = float(params[-1]) + jitter
    return _fold(expression, leaf) + WhiteKernel(noise, around(noise))


def _fold(expression: Expression, leaf: Callable[[Leaf], Kernel]) -> Kernel:
    """Turn operations into scikit-learn's, from left to right."""
    if isinstance(expression, Leaf):
        return leaf(expression)
    assert isinstance(expression, Operation)
    left, right = _fold(expression.left, leaf), _fold(expression.right, leaf)
    return left + right if expression.operator == ADD else left * right
