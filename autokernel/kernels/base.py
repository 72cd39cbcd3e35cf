"""What a base kernel is: a positive definite function of two numbers with positive parameters.

A kernel sees the data through :class:`Pairs`, the quantities of pairs of entries of one column in
whatever storage the caller chose, and works elementwise on it. It holds no parameters: those come
in, in the order of ``parameters``. All that other layers know of a kernel, it declares here.
"""

import re
from abc import ABC, abstractmethod
from copy import copy
from typing import Any, ClassVar, NamedTuple

import joblib
import numpy as np
from sklearn.gaussian_process.kernels import Kernel

from autokernel.kernels.differences import difference_gradient
from autokernel.kernels.pairs import Pairs
from autokernel.kernels.parameters import KernelParameter, Role, Unit
from autokernel.typing import FloatArray

_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)


class BaseKernel(ABC):
    """A kernel on one column, for the package or from outside of it.

    A class of its own declares ``name`` and ``parameters`` and defines :meth:`value`. It should
    define :meth:`gradient`; otherwise derivatives are central differences of the values, at four
    calls for each parameter. Everything else has a default.

    Parameters
    ----------
    name : str, optional
        Name in expressions, by default that of the class. The fit of a kernel does not depend on
        the name that it goes by.

    Attributes
    ----------
    name : str
        Letters, digits and underscores; in expressions ``NAME[column]``.
    parameters : tuple of KernelParameter
        The parameters, in their order in theta.
    words : str
        What functions with this kernel look like, such as ``"smooth over {lengthscale}"``, with the
        values of parameters in the units of the user.
    broadcasts : bool
        Whether :meth:`value` accepts parameters that are arrays, and broadcasts them against the
        pairs. Where it does, Hellinger distances are faster.
    """

    name: str
    parameters: tuple[KernelParameter, ...]
    words: ClassVar[str] = ""
    broadcasts: ClassVar[bool] = False

    def __init__(self, name: str | None = None) -> None:
        if name is not None:
            self.name = name

    @abstractmethod
    def value(self, params: FloatArray, pairs: Pairs) -> FloatArray:
        """Kernel values at parameters (n_params,), elementwise over the pairs, as a new array."""

    def gradient(self, params: FloatArray, pairs: Pairs, adjoint: FloatArray) -> FloatArray:
        """Gradient (n_params,) of ``sum(adjoint * value)`` in the *logs* of the parameters."""
        return difference_gradient(lambda at: self.value(at, pairs), params, adjoint)

    def to_sklearn(
        self,
        params: FloatArray,  # noqa: ARG002 - of kernels that scikit-learn has too
        *,
        scale: float,  # noqa: ARG002 - of kernels that scikit-learn has too
    ) -> Kernel | None:
        """Build the kernel of scikit-learn that takes inputs multiplied by ``scale``.

        None where scikit-learn has no such kernel: then the export wraps this one.
        """
        return None

    @property
    def has_many_modes(self) -> bool:
        """Whether one mode of the posterior may hide many others, as those of a period do."""
        return self.index(Role.PERIOD) is not None

    def index(self, role: Role) -> int | None:
        """Index of the first parameter with a role, None where there is none."""
        roles = [parameter.role for parameter in self.parameters]
        return roles.index(role) if role in roles else None

    def describe(self, params: FloatArray, *, scale: float) -> str:
        """Say in a few words what functions look like whose inputs are multiplied by ``scale``."""
        units = [scale if p.unit == Unit.INPUT else 1.0 for p in self.parameters]
        values = {
            parameter.name: f"{value * unit:.3g}"
            for parameter, value, unit in zip(self.parameters, params, units, strict=True)
        }
        if self.words:
            return self.words.format(**values)
        lengths = [
            f"{parameter.name} {values[parameter.name]}"
            for parameter in self.parameters
            if parameter.unit == Unit.INPUT
        ]
        return " with ".join([self.name, *([" and ".join(lengths)] if lengths else [])])

    def check(self) -> None:
        """Raise a ``ValueError`` where the name or the parameters are not valid."""
        own = type(self).__name__
        name = getattr(self, "name", None)
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise ValueError(
                f"{own}.name must be made of letters, digits and underscores and begin with no "
                f"digit, got {name!r}"
            )
        parameters = getattr(self, "parameters", ())
        names = [getattr(parameter, "name", None) for parameter in parameters]
        if not parameters or not all(isinstance(p, KernelParameter) for p in parameters):
            raise ValueError(
                f"{own}.parameters must be a tuple of KernelParameter objects, got {parameters!r}"
            )
        if len(set(names)) < len(names):
            raise ValueError(f"{own}.parameters must have different names, got {names}")

    @property
    def default_name(self) -> str:
        """Name of the class: random numbers depend on it, and not on ``name``."""
        return getattr(type(self), "name", self.name)

    @property
    def definition(self) -> tuple[str, ...]:
        """Texts that tell this kernel from all others, beside the code of its class."""
        return (type(self).__module__, type(self).__qualname__, joblib.hash(vars(self)))

    def with_default_name(self) -> "BaseKernel":
        """Return the same kernel by the name of its class."""
        if self.name == self.default_name:
            return self
        other = copy(self)
        other.name = self.default_name
        return other

    def __eq__(self, other: object) -> bool:
        if self is other or not isinstance(other, BaseKernel) or type(self) is not type(other):
            return self is other
        ours, theirs = vars(self), vars(other)
        try:
            return ours == theirs
        except ValueError:  # arrays have no single answer
            return joblib.hash(ours) == joblib.hash(theirs)

    def __hash__(self) -> int:
        return hash(self.name)

    def __repr__(self) -> str:
        named = "" if self.name == self.default_name else f"name={self.name!r}"
        return f"{type(self).__name__}({named})"


class Exponent(NamedTuple):
    """An exponent, and what it was computed from."""

    params: FloatArray  # (n_params,)
    pairs: Pairs
    values: FloatArray  # elementwise


class ExponentialKernel(BaseKernel):
    """A kernel of the form ``variance * exp(exponent)``.

    Exponents of the factors of a product add up, so that a product needs one exponential for all
    of them: this is why the exponent, not the value, is the interface.
    """

    variance_index: ClassVar[int] = 1

    @abstractmethod
    def exponent(self, params: FloatArray, pairs: Pairs) -> FloatArray:
        """Logarithm of the kernel at unit variance, elementwise, as a new array."""

    @abstractmethod
    def exponent_gradient(self, at: Exponent, weights: FloatArray) -> FloatArray:
        """Gradient (n_params,) of ``sum(weights * exponent)`` in the log parameters.

        The entry of the variance is zero: the exponent does not depend on it.
        """

    def value(self, params: FloatArray, pairs: Pairs) -> FloatArray:
        """Kernel values, elementwise over the pairs."""
        return params[self.variance_index] * np.exp(self.exponent(params, pairs))

    def gradient(self, params: FloatArray, pairs: Pairs, adjoint: FloatArray) -> FloatArray:
        """Gradient (n_params,) of ``sum(adjoint * value)`` in the log parameters."""
        exponent = self.exponent(params, pairs)
        weights = adjoint * (params[self.variance_index] * np.exp(exponent))
        gradient = self.exponent_gradient(Exponent(params, pairs, exponent), weights)
        gradient[self.variance_index] += weights.sum()
        return gradient


def require_base_kernels(argument: str, kernels: Any) -> tuple[BaseKernel, ...]:
    """Check base kernels from outside.

    Raises
    ------
    TypeError
        If one is a class or no base kernel at all.
    ValueError
        If one is not valid, or two have one name.
    """
    for kernel in kernels:
        if isinstance(kernel, type) and issubclass(kernel, BaseKernel):
            raise TypeError(f"{argument} must hold objects, got a class: call {kernel.__name__}()")
        if not isinstance(kernel, BaseKernel):
            raise TypeError(f"{argument} must hold names or BaseKernel objects, got {kernel!r}")
        kernel.check()
    names = [kernel.name for kernel in kernels]
    if len(set(names)) < len(names):
        raise ValueError(f"{argument} must have different names, got {names}: give one a name=")
    return tuple(kernels)
