"""Scikit-learn kernels around base kernels and operators that scikit-learn does not have."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.gaussian_process.kernels import Hyperparameter, Kernel

from autokernel.kernels import BaseKernel, BroadcastPairs
from autokernel.kernels.differences import log_derivatives
from autokernel.kernels.export_bounds import around
from autokernel.operators import Operands, Operator
from autokernel.typing import FloatArray


class WrappedKernel(Kernel):
    """A base kernel of this package as a scikit-learn kernel on one column.

    Parameters
    ----------
    base_kernel : BaseKernel
        The kernel.
    params : array-like of shape (n_params,)
        Its parameters, on inputs divided by ``scale``.
    scale : float, default=1.0
        What inputs are divided by.
    params_bounds : "auto" or array-like of shape (n_params, 2), default="auto"
        Bounds of the parameters; ``"auto"`` is five decades to either side.
    """

    def __init__(
        self,
        base_kernel: BaseKernel,
        params: Sequence[float],
        scale: float = 1.0,
        params_bounds: Any = "auto",
    ) -> None:
        self.base_kernel = base_kernel
        self.params = params
        self.scale = scale
        self.params_bounds = params_bounds

    @property
    def hyperparameter_params(self) -> Hyperparameter:
        """The parameters, as one hyperparameter of several elements."""
        bounds = self.params_bounds
        if isinstance(bounds, str):
            bounds = [around(value) for value in np.atleast_1d(self.params)]
        return Hyperparameter("params", "numeric", bounds, len(np.atleast_1d(self.params)))

    def __call__(
        self, X: FloatArray, Y: FloatArray | None = None, eval_gradient: bool = False
    ) -> Any:
        """Kernel matrix (n, m), and its gradient (n, m, n_params) in theta if asked for."""
        rows = np.asarray(X)[:, :1] / self.scale
        columns = rows if Y is None else np.asarray(Y)[:, :1] / self.scale
        pairs = BroadcastPairs(rows, columns.T)
        params = np.atleast_1d(self.params)
        K = self.base_kernel.value(params, pairs)
        if not eval_gradient:
            return K
        slopes = log_derivatives(lambda at: self.base_kernel.value(at, pairs), params)
        return K, np.stack(slopes, axis=2)

    def diag(self, X: FloatArray) -> FloatArray:
        """Diagonal (n,) of the kernel matrix."""
        x = np.asarray(X)[:, 0] / self.scale
        return self.base_kernel.value(np.atleast_1d(self.params), BroadcastPairs(x, x))

    def is_stationary(self) -> bool:
        """Nothing is known of that."""
        return False

    def __repr__(self) -> str:
        named = zip(self.base_kernel.parameters, np.atleast_1d(self.params), strict=True)
        values = ", ".join(f"{parameter.name}={value:.3g}" for parameter, value in named)
        return f"{self.base_kernel.name}({values})"


class WrappedOperation(Kernel):
    """An operator of this package between scikit-learn kernels.

    Parameters
    ----------
    operator : Operator
        The operator.
    operands : sequence of Kernel
        Kernels on all columns.
    params : array-like of shape (n_params,)
        The parameters of the operator itself, on inputs that are scaled.
    feature : int or None
        The column that it acts on.
    shift, scale : float
        How that column is scaled: ``(x - shift) / scale``.
    """

    def __init__(
        self,
        operator: Operator,
        operands: Sequence[Kernel],
        params: Sequence[float] = (),
        feature: int | None = None,
        shift: float = 0.0,
        scale: float = 1.0,
    ) -> None:
        self.operator = operator
        self.operands = operands
        self.params = params
        self.feature = feature
        self.shift = shift
        self.scale = scale

    @property
    def hyperparameters(self) -> list[Hyperparameter]:
        """Hyperparameters of the operator, then those of the operands."""
        own = [
            Hyperparameter(parameter.name, "numeric", around(value))
            for parameter, value in zip(self.operator.parameters, self.params, strict=True)
        ]
        return own + [
            Hyperparameter(f"operands__{number}__{h.name}", h.value_type, h.bounds, h.n_elements)
            for number, operand in enumerate(self.operands)
            for h in operand.hyperparameters
        ]

    @property
    def theta(self) -> FloatArray:
        """Logs of the hyperparameters."""
        own = np.log(np.asarray(self.params, dtype=float))
        return np.concatenate([own, *(operand.theta for operand in self.operands)])

    @theta.setter
    def theta(self, theta: FloatArray) -> None:
        start = len(self.params)
        self.params = tuple(np.exp(theta[:start]))
        for operand in self.operands:
            stop = start + operand.n_dims
            operand.theta = theta[start:stop]
            start = stop

    @property
    def bounds(self) -> FloatArray:
        """Bounds of theta."""
        own = np.log([around(value) for value in self.params]).reshape(-1, 2)
        return np.concatenate([own, *(operand.bounds for operand in self.operands)])

    @property
    def requires_vector_input(self) -> bool:
        """A column can be taken of vectors only."""
        return True

    def __call__(
        self, X: FloatArray, Y: FloatArray | None = None, eval_gradient: bool = False
    ) -> Any:
        """Kernel matrix (n, m), and its gradient (n, m, n_dims) in theta if asked for."""
        params = np.asarray(self.params, dtype=float)
        rows = self._scaled(X)
        pairs = BroadcastPairs(rows[:, None], (rows if Y is None else self._scaled(Y))[None])
        if not eval_gradient:
            values = [operand(X, Y) for operand in self.operands]
            return self.operator.value(Operands(values, params, pairs))
        found = [operand(X, eval_gradient=True) for operand in self.operands]
        at = Operands([value for value, _ in found], params, pairs)
        own = log_derivatives(lambda p: self.operator.value(at._replace(params=p)), params)
        by_operand = self.operator.adjoints(at, np.ones_like(found[0][0]))
        slopes = [
            slope[:, :, None] * gradient
            for slope, (_, gradient) in zip(by_operand, found, strict=True)
        ]
        return self.operator.value(at), np.concatenate(
            [*(slope[:, :, None] for slope in own), *slopes], axis=2
        )

    def diag(self, X: FloatArray) -> FloatArray:
        """Diagonal (n,) of the kernel matrix."""
        x = self._scaled(X)
        values = [operand.diag(X) for operand in self.operands]
        params = np.asarray(self.params, dtype=float)
        return self.operator.value(Operands(values, params, BroadcastPairs(x, x)))

    def is_stationary(self) -> bool:
        """Nothing is known of that."""
        return False

    def __eq__(self, other: object) -> bool:
        return isinstance(other, WrappedOperation) and (
            (self.operator, self.feature, self.shift, self.scale)
            == (other.operator, other.feature, other.shift, other.scale)
            and tuple(self.params) == tuple(other.params)
            and list(self.operands) == list(other.operands)
        )

    def __repr__(self) -> str:
        named = zip(self.operator.parameters, self.params, strict=True)
        values = [f"{parameter.name}={value:.3g}" for parameter, value in named]
        where = "" if self.feature is None else f"[x{self.feature}]"
        inside = ", ".join([*map(repr, self.operands), *values])
        return f"{self.operator.symbol}{where}({inside})"

    def _scaled(self, X: FloatArray) -> FloatArray:
        """Return the scaled column (n,), zeros where the operator acts on none."""
        if self.feature is None:
            return np.zeros(len(X))
        return (np.asarray(X)[:, self.feature] - self.shift) / self.scale
