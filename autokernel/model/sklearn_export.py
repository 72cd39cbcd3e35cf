"""Export of a fitted expression as a scikit-learn kernel in the units of the user."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from sklearn.gaussian_process.kernels import Kernel, WhiteKernel

from autokernel.data import Scaling
from autokernel.expression import NOISE, Expression, Leaf, Operation, slots_of
from autokernel.kernels.export_bounds import around
from autokernel.model.feature_kernel import FeatureKernel
from autokernel.model.wrappers import WrappedKernel, WrappedOperation
from autokernel.operators import ADD, MULTIPLY
from autokernel.typing import FloatArray


def to_sklearn(
    expression: Expression,
    theta: FloatArray,
    *,
    scaling: Scaling,
    noise_variance: float | None = None,
    feature_names: Sequence[str] | None = None,
) -> Kernel:
    """Build the scikit-learn kernel that has the same values on inputs before scaling.

    Parameters
    ----------
    expression : Expression
        Expression of the kernel.
    theta : ndarray of shape (n_params,)
        Logs of the parameters on scaled inputs, noise variance last.
    scaling : Scaling
        Scaling of the inputs before the fit.
    noise_variance : float, optional
        Variance of the noise with the jitter that the factorisation needed, by default that in
        ``theta``.
    feature_names : sequence of str, optional
        Names of the columns, for the text of the kernel.

    Returns
    -------
    Kernel
        A composition of ``Sum``, ``Product``, :class:`FeatureKernel` and scikit-learn's own
        kernels, plus a ``WhiteKernel``, which is all of the null model. Base kernels and operators
        that scikit-learn lacks are wrapped.
    """
    params = np.exp(theta)
    own = iter([params[entries] for _, entries in slots_of(expression)])
    noise = float(params[-1]) if noise_variance is None else noise_variance
    white = WhiteKernel(noise, around(noise))
    if expression == NOISE:
        return white
    return _export(expression, own, _Columns(scaling, feature_names)) + white


class _Columns(NamedTuple):
    """The columns of the inputs."""

    scaling: Scaling
    names: Sequence[str] | None

    def name(self, column: int | None) -> str | None:
        """Return the name of a column, None if it is not known."""
        return None if self.names is None or column is None else self.names[column]


def _export(expression: Expression, params: Iterator[FloatArray], columns: _Columns) -> Kernel:
    """Export an expression, given the parameters of its nodes in order."""
    if isinstance(expression, Leaf):
        return _export_leaf(expression, next(params), columns)
    assert isinstance(expression, Operation)  # the only other kind of node
    operator, column = expression.operator, expression.column
    own = next(params) if operator.parameters else np.empty(0)
    operands = [_export(operand, params, columns) for operand in expression.operands]
    if operator == ADD:
        return operands[0] + operands[1]
    if operator == MULTIPLY:
        return operands[0] * operands[1]
    shift, scale = (0.0, 1.0) if column is None else columns.scaling.of_column(column)
    values = tuple(own.tolist())
    bounds = tuple(map(around, values))
    name = columns.name(column)
    return WrappedOperation(operator, operands, values, column, shift, scale, bounds, name)


def _export_leaf(leaf: Leaf, params: FloatArray, columns: _Columns) -> Kernel:
    """Export a base kernel on its column."""
    shift, scale = columns.scaling.of_column(leaf.column)
    kernel = leaf.kernel.to_sklearn(params, scale=scale)
    if kernel is None:
        values = tuple(params.tolist())
        kernel = WrappedKernel(leaf.kernel, values, scale, tuple(map(around, values)))
    return FeatureKernel(kernel, leaf.column, shift, columns.name(leaf.column))
