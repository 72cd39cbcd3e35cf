"""The base class of kernels on one column."""

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import astuple
from functools import reduce
from pickle import PicklingError
from typing import Any, ClassVar, NamedTuple
from uuid import uuid4
from weakref import WeakKeyDictionary

import joblib
import numpy as np
from sklearn.gaussian_process.kernels import ConstantKernel, Kernel

from autokernel.kernels.pairs import Pairs, difference_gradient
from autokernel.kernels.parameters import (
    LENGTHSCALE,
    NOISE_VARIANCE,
    VARIANCE,
    KernelParameter,
    Role,
    role_index,
)
from autokernel.typing import FloatArray

_TOKENS: WeakKeyDictionary[Any, str] = WeakKeyDictionary()

NOISE_NAME = "NOISE"
"""Name of the kernel that is zero, the model of noise only; no kernel or operator may have it."""


class Declared:
    """A base kernel or an operator: it declares parameters and is never modified.

    Two are equal if their classes and their attributes are equal. Attributes whose names begin with
    an underscore are ignored: they may hold cached results.
    """

    parameters: tuple[KernelParameter, ...] = ()

    def __eq__(self, other: object) -> bool:
        if self is other or type(self) is not type(other):
            return self is other
        ours, theirs = _attributes(self), _attributes(other)
        try:
            return ours == theirs
        except ValueError:  # the comparison of arrays is an array
            return joblib.hash(ours) == joblib.hash(theirs)

    def __hash__(self) -> int:
        return hash(type(self).__qualname__)


def _attributes(declared: object) -> dict[str, Any]:
    return {name: value for name, value in vars(declared).items() if not name.startswith("_")}


def definition(declared: Declared) -> tuple[str, ...]:
    """Return texts that identify a base kernel or an operator, except for the code of its class.

    One that :func:`has_lambda` is identified in this process only.
    """
    own = type(declared)
    texts = [list(map(str, astuple(one))) for one in declared.parameters]  # skops forgets enums
    attributes = hash_of({**_attributes(declared), "parameters": texts})
    attributes = attributes or _TOKENS.setdefault(declared, uuid4().hex)
    return (own.__module__, own.__qualname__, attributes)


def has_lambda(declared: Declared) -> bool:
    """Return whether an attribute of a base kernel or an operator has no name to identify it by."""
    return hash_of(_attributes(declared)) is None


def hash_of(part: object) -> str | None:
    """Return the hash of an object, None if a part of it has no name, such as a lambda."""
    try:
        return str(joblib.hash(part))
    except (PicklingError, AttributeError, TypeError):
        return None


def check_parameters(declared: Declared) -> None:
    """Raise a ``ValueError`` if the parameters of a base kernel or an operator are not valid."""
    own, parameters = type(declared).__name__, declared.parameters
    if not isinstance(parameters, tuple) or not all(
        isinstance(parameter, KernelParameter) for parameter in parameters
    ):
        raise ValueError(
            f"{own}.parameters must be a tuple of KernelParameter objects, got {parameters!r}"
        )
    names = [parameter.name for parameter in parameters]
    if len(set(names)) < len(names) or NOISE_VARIANCE.name in names:
        raise ValueError(
            f"{own}.parameters must have different names, none of them "
            f"{NOISE_VARIANCE.name!r}, got {names}"
        )
    try:
        hash(declared)
    except TypeError as error:
        raise ValueError(
            f"{own} objects must be hashable: a dataclass is with frozen=True"
        ) from error


class BaseKernel(Declared, ABC):
    """A kernel on one column, built in or defined by the user.

    A subclass declares ``name`` and ``parameters`` and defines :meth:`value`. It should also define
    :meth:`gradient`: the default takes central differences of the values, with four calls for each
    parameter. Everything else has a default.

    Parameters
    ----------
    name : str, optional
        Name in expressions, by default the name that the class declares.

    Attributes
    ----------
    name : str
        Name made of letters, digits and underscores; expressions contain the kernel as
        ``NAME[column]``.
    parameters : tuple of KernelParameter
        The parameters, in the order of their entries in theta.
    formula : str
        The kernel in LaTeX, with ``<x>`` and ``<x'>`` for the column in both rows, ``<x><from>``
        for its distance from its smallest value, ``<scale>`` for its extent, and
        ``<lengthscale>`` for the value of a parameter of that name; empty for its name with the
        values.
    broadcasts : bool
        Whether :meth:`value` accepts arrays as parameters and broadcasts them against the pairs.
        Hellinger distances are faster if it does.
    closed_under_products : bool
        Whether the product of two such kernels on one column, each with its own parameters, is
        again such a kernel, and any of it. Any several of these kernels must also have a common
        factor of the kind, so that the remaining factors are such kernels too. Redundant factors
        are then removed from expressions. A subclass with another function must reset it.
    closed_under_sums : bool
        Whether the sum of two such kernels on one column, each with its own parameters, is again
        such a kernel, and any of it. Redundant terms are then removed from expressions.
    has_few_modes : bool
        Whether a few runs find the highest mode of the posterior of sums and products of such
        kernels. Their fits take a quarter of the time.
    is_categorical : bool
        Whether its values depend only on whether the two inputs are equal. ``"auto"`` gives such
        kernels to columns of categories and to no others.
    is_linear : bool
        Whether its functions are straight lines.
    is_stationary : bool
        Whether its values depend only on the difference of the two inputs. They are then computed
        once for each distinct difference if there are few of them. A subclass with another
        function must reset it.
    limits : tuple of BaseKernel
        Base kernels with fewer parameters that this one approaches at an end of a parameter.
    """

    name: str
    formula: str = ""
    broadcasts: bool = False
    closed_under_products: bool = False
    closed_under_sums: bool = False
    has_few_modes: bool = False
    is_categorical: bool = False
    is_linear: bool = False
    is_stationary: bool = False
    limits: "tuple[BaseKernel, ...]" = ()

    def __init__(self, name: str | None = None) -> None:
        if name is not None:
            self.name = name

    @abstractmethod
    def value(self, params: FloatArray, pairs: Pairs) -> FloatArray:
        """Compute the values at parameters (n_params,), elementwise, as a new array."""

    def gradient(self, params: FloatArray, pairs: Pairs, adjoint: FloatArray) -> FloatArray:
        """Compute the gradient (n_params,) of ``sum(adjoint * value)`` in the *log* parameters."""
        return difference_gradient(lambda at: self.value(at, pairs), params, adjoint)

    def to_sklearn(self, params: FloatArray, *, scale: float) -> Kernel | None:  # noqa: ARG002 - used by subclasses
        """Build the equal scikit-learn kernel for inputs multiplied by ``scale``.

        The result is None if scikit-learn has no such kernel; the export then wraps this one.
        """
        return None

    def parameters_on(self, unit: float, *, is_of_dates: bool) -> tuple[KernelParameter, ...]:  # noqa: ARG002 - used by one
        """Return the parameters for a column that is searched in multiples of ``unit``."""
        return self.parameters

    @property
    def has_many_modes(self) -> bool:
        """Whether the posterior tends to have many modes, as it has along a period."""
        return role_index(self.parameters, Role.PERIOD) is not None

    def __repr__(self) -> str:
        own = ", ".join(f"{name}={value!r}" for name, value in _attributes(self).items())
        return f"{type(self).__name__}({own})"


_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)


def check_base_kernel(kernel: BaseKernel) -> None:
    """Raise a ``ValueError`` if the name or the parameters of a base kernel are not valid."""
    own, name = type(kernel).__name__, getattr(kernel, "name", None)
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise ValueError(
            f"{own}.name must be made of letters, digits and underscores and begin with no digit, "
            f"got {name!r}"
        )
    check_parameters(kernel)
    if not kernel.parameters:
        raise ValueError(f"{own}.parameters must hold a parameter, got none")


def require_base_kernels(argument: str, kernels: Any) -> tuple[BaseKernel, ...]:
    """Check base kernels given by the user and return them as a tuple."""
    for kernel in kernels:
        if isinstance(kernel, type) and issubclass(kernel, BaseKernel):
            raise TypeError(f"{argument} must hold objects, got a class: call {kernel.__name__}()")
        if not isinstance(kernel, BaseKernel):
            raise TypeError(f"{argument} must hold names or BaseKernel objects, got {kernel!r}")
        check_base_kernel(kernel)
    names = [kernel.name for kernel in kernels]
    if len(set(names)) < len(names):
        raise ValueError(f"{argument} must have different names, got {names}: give one a name=")
    return tuple(kernels)


def check_not_reserved(argument: str, name: str) -> None:
    """Raise a ``ValueError`` if a custom kernel or operator has the name of the null model."""
    if name == NOISE_NAME:
        raise ValueError(
            f"{argument} must not hold the name {name!r}, which means only noise: "
            "give it another name"
        )


def bounds_around(value: float) -> tuple[float, float]:
    """Return bounds five decades to either side, like scikit-learn's default bounds around 1."""
    return (value * 1e-5, value * 1e5)


def scaled_kernel(factor: float, kernel: Callable[..., Kernel], **values: float) -> Kernel:
    """Build ``factor * kernel(**values)`` with bounds around each value."""
    bounds = {f"{name}_bounds": bounds_around(value) for name, value in values.items()}
    return ConstantKernel(factor, bounds_around(factor)) * kernel(**values, **bounds)


class WeightedTerms(BaseKernel):
    """A kernel ``sum_i v_i t_i + c`` of terms of the inputs; the sum of two is one too."""

    broadcasts = True
    closed_under_sums = True

    @abstractmethod
    def terms(self, pairs: Pairs) -> Sequence[FloatArray]:
        """Compute the terms, elementwise, in the order of their variances, which precede c."""

    def value(self, params: FloatArray, pairs: Pairs) -> FloatArray:
        value = reduce(np.add, map(np.multiply, params[:-1], self.terms(pairs)))
        value += params[-1]
        return value

    def gradient(self, params: FloatArray, pairs: Pairs, adjoint: FloatArray) -> FloatArray:
        sums = [np.vdot(adjoint, term) for term in self.terms(pairs)]
        return params * np.array([*sums, adjoint.sum()])


class Exponent(NamedTuple):
    """The exponent of a kernel, and the arguments from which it was computed."""

    params: FloatArray  #: (n_params,)
    pairs: Pairs  #: pairs of entries of the column
    values: FloatArray  #: values of the exponent, elementwise over the pairs


class ExponentialKernel(BaseKernel):
    """A kernel of the form ``variance * exp(exponent)``.

    The exponents of the factors of a product add up, so a product needs only one exponential. This
    is why subclasses define the exponent and not the value.
    """

    variance_index: ClassVar[int] = 1

    @abstractmethod
    def exponent(self, params: FloatArray, pairs: Pairs) -> FloatArray:
        """Compute the logarithm of the kernel at unit variance, elementwise, as a new array."""

    @abstractmethod
    def exponent_gradient(self, at: Exponent, weights: FloatArray) -> FloatArray:
        """Compute the gradient (n_params,) of ``sum(weights * exponent)`` in the log parameters.

        The entry of the variance is zero, because the exponent does not depend on it.
        """

    def value(self, params: FloatArray, pairs: Pairs) -> FloatArray:
        return params[self.variance_index] * np.exp(self.exponent(params, pairs))

    def gradient(self, params: FloatArray, pairs: Pairs, adjoint: FloatArray) -> FloatArray:
        exponent = self.exponent(params, pairs)
        weights = adjoint * (params[self.variance_index] * np.exp(exponent))
        gradient = self.exponent_gradient(Exponent(params, pairs, exponent), weights)
        gradient[self.variance_index] += weights.sum()
        return gradient


class DistanceKernel(ExponentialKernel):
    """A kernel of the distance in multiples of a lengthscale, which scikit-learn has too."""

    parameters: tuple[KernelParameter, ...] = (LENGTHSCALE, VARIANCE)
    broadcasts = True
    is_stationary = True
    sklearn_kernel: Callable[..., Kernel]

    def to_sklearn(self, params: FloatArray, *, scale: float) -> Kernel:
        lengthscale, variance, *others = params  # others have the names of scikit-learn
        own = {one.name: value for one, value in zip(self.parameters[2:], others, strict=True)}
        return scaled_kernel(variance, self.sklearn_kernel, length_scale=lengthscale * scale, **own)


class CallableKernel(BaseKernel):
    """A base kernel defined by a function that is called like a kernel of scikit-learn.

    Its derivatives are central differences: each gradient takes four calls for each parameter.

    Parameters
    ----------
    name : str
        Name in expressions.
    function : callable
        ``function(X, Y, *params)`` returns the values (n, m) at columns X (n, 1) and Y (m, 1),
        symmetric and positive definite. It must be importable by worker processes.
    parameters : sequence of KernelParameter
        The parameters, in the order in which the function takes them.

    Examples
    --------
    >>> import numpy as np
    >>> from autokernel.kernels.parameters import LENGTHSCALE, VARIANCE
    >>> def exponential(X, Y, lengthscale, variance):
    ...     return variance * np.exp(-np.abs(X - Y.T) / lengthscale)
    >>> CallableKernel("EXP", exponential, (LENGTHSCALE, VARIANCE))
    CallableKernel(name='EXP')
    """

    name = "CALLABLE"

    def __init__(
        self, name: str, function: Callable[..., FloatArray], parameters: Sequence[KernelParameter]
    ) -> None:
        super().__init__(name)
        self.function = function
        self.parameters = tuple(parameters)

    def value(self, params: FloatArray, pairs: Pairs) -> FloatArray:
        return pairs.matrix(lambda X, Y: np.asarray(self.function(X, Y, *params), dtype=float))

    def __repr__(self) -> str:
        return f"{type(self).__name__}(name={self.name!r})"
