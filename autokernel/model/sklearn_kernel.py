"""A fitted kernel as a scikit-learn kernel in the units of X."""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.gaussian_process.kernels import Hyperparameter, Kernel, WhiteKernel

from autokernel.data import Columns
from autokernel.data.scales import Scale
from autokernel.expression import IDENTITY, Expression, Leaf, Operation, fold
from autokernel.kernels import (
    ADD,
    MULTIPLY,
    BaseKernel,
    BroadcastPairs,
    Operands,
    Operator,
    Role,
    bounds_around,
    log_derivatives,
)
from autokernel.typing import FloatArray


class _OuterKernel(Kernel):
    """A kernel of other kernels, whose parameters have the place of their kernel as a prefix."""

    def _inner(self) -> dict[str, Kernel]:
        """Return the inner kernels by their prefixes."""
        raise NotImplementedError

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters of this kernel and, with a prefix, of the inner kernels."""
        inner = self._inner() if deep else {}
        return super().get_params() | {
            prefix + name: value
            for prefix, kernel in inner.items()
            for name, value in kernel.get_params().items()
        }

    def set_params(self, **params: Any) -> Self:
        """Set parameters of this kernel and, with a prefix, of the inner kernels."""
        inner = self._inner()
        super().set_params(**{k: v for k, v in params.items() if not k.startswith(tuple(inner))})
        for prefix, kernel in self._inner().items():
            own = {k.removeprefix(prefix): v for k, v in params.items() if k.startswith(prefix)}
            kernel.set_params(**own)
        return self

    @property
    def hyperparameters(self) -> list[Hyperparameter]:
        """Hyperparameters of the inner kernels."""
        return [
            Hyperparameter(prefix + h.name, h.value_type, h.bounds, h.n_elements)
            for prefix, kernel in self._inner().items()
            for h in kernel.hyperparameters
        ]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, type(self)):
            return False
        own, others = self.get_params(deep=False), other.get_params(deep=False)
        return all(  # a number and an array of it are one
            np.array_equal(np.atleast_1d(own[key]), np.atleast_1d(others[key]))
            for key in own
            if key != "name"
        )


class FeatureKernel(_OuterKernel):
    """Apply a kernel to one shifted column: ``k(X[:, feature] - shift, Y[:, feature] - shift)``.

    With a transform, the shift is subtracted from the transformed column.

    Parameters
    ----------
    kernel : Kernel
        Scikit-learn kernel on vectors.
    feature : int
        Zero-based index of the column.
    shift : float, default=0.0
        Number subtracted from the column first. It changes the values of kernels that are not
        stationary, and reduces rounding errors of stationary ones if the column is far from zero.
    name : str, optional
        Name of the column, for the text of the kernel.
    transform : {"log", "sqrt"}, optional
        Scale of the column. A number that it does not have counts as the shift.
    offset : float, default=0.0
        Number added to the column before it is transformed.

    Examples
    --------
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> FeatureKernel(RBF(2.0), feature=1)([[0.0, 1.0], [5.0, 1.0]])
    array([[1., 1.],
           [1., 1.]])
    """

    def __init__(
        self,
        kernel: Kernel,
        feature: int,
        shift: float = 0.0,
        name: str | None = None,
        transform: str | None = None,
        offset: float = 0.0,
    ) -> None:
        self.kernel, self.feature, self.shift, self.name = kernel, feature, shift, name
        self.transform, self.offset = transform, offset

    def _inner(self) -> dict[str, Kernel]:
        return {"kernel__": self.kernel}

    def __call__(
        self, X: FloatArray, Y: FloatArray | None = None, eval_gradient: bool = False
    ) -> Any:
        """Compute the kernel matrix (n, m), optionally its gradient (n, m, n_dims) in theta."""
        right = None if Y is None else self._column(Y)
        return self.kernel(self._column(X), right, eval_gradient=eval_gradient)

    def diag(self, X: FloatArray) -> FloatArray:
        """Compute the diagonal (n_samples_X,) of the kernel matrix."""
        return self.kernel.diag(self._column(X))

    def is_stationary(self) -> bool:
        """Whether the inner kernel is stationary, and the column is not transformed."""
        return self.transform is None and bool(self.kernel.is_stationary())

    def __repr__(self) -> str:
        shift = f" {'-' if self.shift > 0 else '+'} {abs(self.shift):.6g}" if self.shift else ""
        name = self.name or f"x{self.feature}"
        offset = f" + {self.offset:g}" if self.offset else ""
        column = name if self.transform is None else f"{self.transform}({name}{offset})"
        return f"[{self.kernel!r}]({column}{shift})"

    def _column(self, X: FloatArray) -> FloatArray:
        x = np.asarray(X, dtype=float)[:, [self.feature]]
        if self.transform is None:
            return x - self.shift
        return Scale(self.transform, self.offset, shift=self.shift).forward(x)


class WrappedKernel(_OuterKernel):
    """A base kernel or an operator of this package as a scikit-learn kernel.

    The parameters, within ``params_bounds``, are those on the scaled column ``(x - shift) / scale``
    of the index ``feature``, None for an operator that acts on no column. With the bounds
    ``"fixed"``, they are none of theta. The operands of an operator are kernels on all columns.
    """

    def __init__(
        self,
        part: BaseKernel | Operator,
        params: npt.ArrayLike = (),
        scale: float = 1.0,
        params_bounds: npt.ArrayLike = (1e-5, 1e5),
        operands: Sequence[Kernel] = (),
        feature: int | None = 0,
        shift: float = 0.0,
        name: str | None = None,
    ) -> None:
        self.part, self.params, self.params_bounds = part, params, params_bounds
        self.operands, self.feature, self.name = operands, feature, name
        self.shift, self.scale = shift, scale

    @property
    def hyperparameters(self) -> list[Hyperparameter]:
        """Hyperparameters of the kernel or operator, followed by those of the operands."""
        n_own = len(self.part.parameters)
        own = [Hyperparameter("params", "numeric", self.params_bounds, n_own)] if n_own else []
        return own + super().hyperparameters

    def _inner(self) -> dict[str, Kernel]:
        return {f"operands__{number}__": one for number, one in enumerate(self.operands)}

    @property
    def _values(self) -> FloatArray:
        """The parameters as an array (n_params,), also if there is one, which may be a number."""
        return np.atleast_1d(np.asarray(self.params, dtype=float))

    def __call__(
        self, X: FloatArray, Y: FloatArray | None = None, eval_gradient: bool = False
    ) -> Any:
        """Compute the kernel matrix (n, m), optionally its gradient (n, m, n_dims) in theta."""
        params, rows = self._values, self._scaled(X)
        pairs = BroadcastPairs(rows[:, None], (rows if Y is None else self._scaled(Y))[None])
        if not eval_gradient:
            return self._value([one(X, Y) for one in self.operands], params, pairs)
        found = [operand(X, eval_gradient=True) for operand in self.operands]
        values = [value for value, _ in found]
        K = self._value(values, params, pairs)
        is_fixed = isinstance(self.params_bounds, str)
        own = () if is_fixed else log_derivatives(lambda at: self._value(values, at, pairs), params)
        every = [np.empty((*K.shape, 0)), *(slope[:, :, None] for slope in own)]
        if isinstance(self.part, Operator):
            slopes = self.part.adjoints(Operands(values, params, pairs), np.ones_like(K))
            every += [slope[:, :, None] * dK for slope, (_, dK) in zip(slopes, found, strict=True)]
        return K, np.concatenate(every, axis=2)

    def diag(self, X: FloatArray) -> FloatArray:
        """Compute the diagonal (n,) of the kernel matrix."""
        x, values = self._scaled(X), [operand.diag(X) for operand in self.operands]
        return self._value(values, self._values, BroadcastPairs(x, x))

    def _value(
        self, values: Sequence[FloatArray], params: FloatArray, pairs: BroadcastPairs
    ) -> FloatArray:
        if isinstance(self.part, Operator):
            return self.part.value(Operands(values, params, pairs))
        return self.part.value(params, pairs)

    def is_stationary(self) -> bool:
        """Return False, because it is not known whether the kernel is stationary."""
        return False

    def __repr__(self) -> str:
        own = self._values
        if isinstance(self.part, BaseKernel):
            named = zip(self.part.parameters, own, strict=True)
            return f"{self.part.name}({', '.join(f'{one.name}={v:.3g}' for one, v in named)})"
        values = [
            f"{one.name}={number:.{7 if one.role == Role.LOCATION else 3}g}"
            for one, value in zip(self.part.parameters, own, strict=True)
            for number in [one.in_units(value, self.shift, self.scale)]
        ]
        where = "" if self.feature is None else f"[{self.name or f'x{self.feature}'}]"
        return f"{self.part.symbol}{where}({', '.join([*map(repr, self.operands), *values])})"

    def _scaled(self, X: FloatArray) -> FloatArray:
        """Return the scaled column (n,), or zeros if the operator acts on no column."""
        if self.feature is None:
            return np.zeros(len(X))
        return (np.asarray(X)[:, self.feature] - self.shift) / self.scale


def to_sklearn(
    expression: Expression, params: FloatArray, *, columns: Columns, noise_variance: float
) -> Kernel:
    """Build the scikit-learn kernel that has the same values on inputs before scaling.

    ``params`` are those on scaled inputs, and the ``noise_variance`` includes the jitter of the
    factorisation. Base kernels and operators that scikit-learn lacks are wrapped. The kernel is
    that of the target on the scale of the expression; for noise alone, it is a ``WhiteKernel``.
    """
    white = WhiteKernel(noise_variance, bounds_around(noise_variance))
    if not expression.leaves:
        return white

    def name(column: int | None) -> str | None:
        return columns.names[column] if columns.has_names and column is not None else None

    def leaf(leaf: Leaf, own: FloatArray) -> Kernel:
        view = columns.scale(leaf.view)
        shift, scale = view.shift, view.width
        kernel = leaf.kernel.to_sklearn(own, scale=scale)
        if kernel is None:
            values = tuple(own.tolist())
            kernel = WrappedKernel(leaf.kernel, values, scale, tuple(map(bounds_around, values)))
        transform = None if leaf.scale == IDENTITY else leaf.scale
        return FeatureKernel(kernel, leaf.column, shift, name(leaf.column), transform, view.offset)

    def join(operation: Operation, own: FloatArray, operands: list[Kernel]) -> Kernel:
        operator, column = operation.operator, operation.column
        if operator == ADD:
            return operands[0] + operands[1]
        if operator == MULTIPLY:
            return operands[0] * operands[1]
        shift, scale = 0.0, 1.0
        if column is not None:
            shift, scale = columns[column].low, columns[column].extent
        values = tuple(own.tolist())
        bounds = tuple(map(bounds_around, values))
        return WrappedKernel(operator, values, scale, bounds, operands, column, shift, name(column))

    return fold(expression, params, leaf, join) + white
