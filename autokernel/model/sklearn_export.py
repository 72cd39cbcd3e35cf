"""From a fitted expression to a scikit-learn kernel in the units of the user."""

from collections.abc import Iterator

import numpy as np
from sklearn.gaussian_process.kernels import Kernel, WhiteKernel

from autokernel.data import Scaling
from autokernel.expression import Expression, Leaf, Operation, slots_of
from autokernel.kernels.export_bounds import around
from autokernel.model.feature_kernel import FeatureKernel
from autokernel.model.wrappers import WrappedKernel, WrappedOperation
from autokernel.operators import ADD, MULTIPLY
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
        kernels, plus a ``WhiteKernel``. What scikit-learn does not have is wrapped.
    """
    params = np.exp(theta)
    own = iter([params[entries] for _, entries in slots_of(expression)])
    noise = float(params[-1]) + jitter
    return _export(expression, own, scaling) + WhiteKernel(noise, around(noise))


def _export(expression: Expression, params: Iterator[FloatArray], scaling: Scaling) -> Kernel:
    """Export an expression, given the parameters of its nodes in their order."""
    if isinstance(expression, Leaf):
        return _export_leaf(expression, next(params), scaling)
    assert isinstance(expression, Operation)  # there are these two kinds
    operator, column = expression.operator, expression.column
    own = next(params) if operator.parameters else np.empty(0)
    operands = [_export(operand, params, scaling) for operand in expression.operands]
    if operator == ADD:
        return operands[0] + operands[1]
    if operator == MULTIPLY:
        return operands[0] * operands[1]
    shift, scale = (0.0, 1.0) if column is None else scaling.of_column(column)
    return WrappedOperation(operator, operands, tuple(own.tolist()), column, shift, scale)


def _export_leaf(leaf: Leaf, params: FloatArray, scaling: Scaling) -> Kernel:
    """Export a base kernel on its column."""
    shift, scale = scaling.of_column(leaf.column)
    kernel = leaf.kernel.to_sklearn(params, scale=scale)
    if kernel is None:
        kernel = WrappedKernel(leaf.kernel, tuple(params.tolist()), scale)
    return FeatureKernel(kernel, leaf.column, shift)
