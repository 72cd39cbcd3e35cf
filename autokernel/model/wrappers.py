"""Scikit-learn kernels that wrap base kernels and operators that scikit-learn lacks."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.gaussian_process.kernels import Hyperparameter, Kernel

from autokernel.kernels import BaseKernel, BroadcastPairs
from autokernel.kernels.differences import log_derivatives
from autokernel.operators import Operands, Operator
from autokernel.typing import FloatArray

Bounds = tuple[float, float] | Sequence[tuple[float, float]]


class WrappedKernel(Kernel):
    """A base kernel of this package as a scikit-learn kernel on one column.

    Parameters
    ----------
    base_kernel : BaseKernel
        Base kernel to wrap.
    params : array-like of shape (n_params,)
        Parameters of the base kernel on inputs divided by ``scale``.
    scale : float, default=1.0
        Number by which inputs are divided.
    params_bounds : pair of float or array-like of shape (n_params, 2), default=(1e-5, 1e5)
        Bounds of the parameters.
    """

    def __init__(
        self,
        base_kernel: BaseKernel,
        params: Sequence[float],
        scale: float = 1.0,
        params_bounds: Bounds = (1e-5, 1e5),
    ) -> None:
        self.base_kernel = base_kernel
        self.params = params
        self.scale = scale
        self.params_bounds = params_bounds

    @property
    def hyperparameter_params(self) -> Hyperparameter:
        """The parameters, as one hyperparameter of several elements."""
        n_params = len(self.base_kernel.parameters)
        return Hyperparameter("params", "numeric", self.params_bounds, n_params)

    def __call__(
        self, X: FloatArray, Y: FloatArray | None = None, eval_gradient: bool = False
    ) -> Any:
        """Compute the kernel matrix (n, m), optionally its gradient (n, m, n_params) in theta."""
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
        """Compute the diagonal (n,) of the kernel matrix."""
        x = np.asarray(X)[:, 0] / self.scale
        return self.base_kernel.value(np.atleast_1d(self.params), BroadcastPairs(x, x))

    def is_stationary(self) -> bool:
        """Return False, because it is not known whether the kernel is stationary."""
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
        Operator to wrap.
    operands : sequence of Kernel
        Scikit-learn kernels on all columns.
    params : array-like of shape (n_params,)
        Parameters of the operator itself, on scaled inputs.
    feature : int or None
        Column on which the operator acts.
    shift, scale : float
        Scaling of the column: ``(x - shift) / scale``.
    params_bounds : pair of float or array-like of shape (n_params, 2), default=(1e-5, 1e5)
        Bounds of the operator's own parameters.
    name : str, optional
        Name of the column, for the text of the kernel.
    """

    def __init__(
        self,
        operator: Operator,
        operands: Sequence[Kernel],
        params: Sequence[float] = (),
        feature: int | None = None,
        shift: float = 0.0,
        scale: float = 1.0,
        params_bounds: Bounds = (1e-5, 1e5),
        name: str | None = None,
    ) -> None:
        self.operator = operator
        self.operands = operands
        self.params = params
        self.feature = feature
        self.shift = shift
        self.scale = scale
        self.params_bounds = params_bounds
        self.name = name

    @property
    def hyperparameters(self) -> list[Hyperparameter]:
        """Hyperparameters of the operator, followed by those of the operands."""
        n_own = len(self.operator.parameters)
        own = [Hyperparameter("params", "numeric", self.params_bounds, n_own)] if n_own else []
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
        own = np.log(np.broadcast_to(self.params_bounds, (len(self.params), 2)))
        return np.concatenate([own, *(operand.bounds for operand in self.operands)])

    @property
    def requires_vector_input(self) -> bool:
        """True, because only vectors have columns."""
        return True

    def __call__(
        self, X: FloatArray, Y: FloatArray | None = None, eval_gradient: bool = False
    ) -> Any:
        """Compute the kernel matrix (n, m), optionally its gradient (n, m, n_dims) in theta."""
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
        """Compute the diagonal (n,) of the kernel matrix."""
        x = self._scaled(X)
        values = [operand.diag(X) for operand in self.operands]
        params = np.asarray(self.params, dtype=float)
        return self.operator.value(Operands(values, params, BroadcastPairs(x, x)))

    def is_stationary(self) -> bool:
        """Return False, because it is not known whether the kernel is stationary."""
        return False

    def __eq__(self, other: object) -> bool:
        return isinstance(other, WrappedOperation) and (
            (self.operator, self.feature, self.shift, self.scale)
            == (other.operator, other.feature, other.shift, other.scale)
            and tuple(self.params) == tuple(other.params)
            and list(self.operands) == list(other.operands)
        )

    def __repr__(self) -> str:
        own = np.asarray(self.params, dtype=float)
        texts = self.operator.texts_of(own, scale=self.scale, shift=self.shift)
        values = [f"{name}={text}" for name, text in texts.items()]
        where = "" if self.feature is None else f"[{self.name or f'x{self.feature}'}]"
        inside = ", ".join([*map(repr, self.operands), *values])
        return f"{self.operator.symbol}{where}({inside})"

    def _scaled(self, X: FloatArray) -> FloatArray:
        """Return the scaled column (n,), or zeros if the operator acts on no column."""
        if self.feature is None:
            return np.zeros(len(X))
        return (np.asarray(X)[:, self.feature] - self.shift) / self.scale
