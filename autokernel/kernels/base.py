"""The base class of kernels on one column."""

import math
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping
from copy import copy
from typing import Any, ClassVar, NamedTuple

import joblib
import numpy as np
from sklearn.gaussian_process.kernels import Kernel

from autokernel.kernels.pairs import Pairs, difference_gradient
from autokernel.kernels.parameters import NOISE_VARIANCE, KernelParameter, Role, Unit
from autokernel.typing import FloatArray


class Declared(ABC):
    """An object that declares parameters, and does not change once it is made.

    Two such objects are equal if their classes and their attributes are. Attributes whose names
    begin with an underscore do not count: they may hold what has been computed.
    """

    parameters: tuple[KernelParameter, ...] = ()

    @property
    @abstractmethod
    def label(self) -> str:
        """What it is called in expressions."""

    def index(self, role: Role) -> int | None:
        """Return the index of the first parameter with a role, or None if there is none."""
        roles = [parameter.role for parameter in self.parameters]
        return roles.index(role) if role in roles else None

    def texts_of(
        self, params: FloatArray, *, scale: float, shift: float = 0.0
    ) -> Mapping[str, str]:
        """Write parameters (n_params,) by name, for inputs ``scale * x + shift``."""
        texts = {}
        for parameter, value in zip(self.parameters, params, strict=True):
            if parameter.role == Role.LOCATION:
                texts[parameter.name] = place(value, scale=scale, shift=shift)
            else:
                factor = scale if parameter.unit == Unit.INPUT else 1.0
                texts[parameter.name] = f"{value * factor:.3g}"
        return texts

    def lengths_of(self, params: FloatArray, *, scale: float, shift: float = 0.0) -> str:
        """Write the parameters in the unit of the column in one phrase, empty if there are none."""
        texts = self.texts_of(params, scale=scale, shift=shift)
        return " and ".join(
            f"{parameter.name} {texts[parameter.name]}"
            for parameter in self.parameters
            if parameter.unit == Unit.INPUT
        )

    @property
    def attributes(self) -> dict[str, Any]:
        """The attributes of the object itself that tell it from others of its class."""
        return {name: value for name, value in vars(self).items() if not name.startswith("_")}

    @property
    def definition(self) -> tuple[str, ...]:
        """Texts that tell this object from all others, beside the code of its class."""
        return (type(self).__module__, type(self).__qualname__, joblib.hash(self.attributes))

    def check_parameters(self) -> None:
        """Raise a ``ValueError`` where the parameters are not valid."""
        own, parameters = type(self).__name__, self.parameters
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
            hash(self)
        except TypeError as error:
            raise ValueError(
                f"{own} objects must be hashable: a dataclass is with frozen=True"
            ) from error

    def __eq__(self, other: object) -> bool:
        if self is other or not isinstance(other, Declared) or type(self) is not type(other):
            return self is other
        ours, theirs = self.attributes, other.attributes
        try:
            return ours == theirs
        except ValueError:  # arrays have no single answer
            return joblib.hash(ours) == joblib.hash(theirs)

    def __hash__(self) -> int:
        return hash(type(self).__qualname__)


def place(value: float, *, scale: float, shift: float) -> str:
    """Write the place ``scale * value + shift`` to about a hundredth of ``scale``."""
    decimals = max(0, -math.floor(math.log10(scale / 100)))
    return f"{scale * value + shift:.{decimals}f}"


_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)


class Sources(NamedTuple):
    """A kernel as a Python expression in the programs of other libraries, empty if unknown."""

    gpytorch: str = ""  #: for GPyTorch
    gpflow: str = ""  #: for GPflow


class BaseKernel(Declared):
    """A kernel on one column, built in or defined by the user.

    A subclass declares ``name`` and ``parameters`` and defines :meth:`value`. It should also define
    :meth:`gradient`: the default takes central differences of the values, with four calls for each
    parameter. Everything else has a default.

    Parameters
    ----------
    name : str, optional
        Name in expressions, by default the name that the class declares. The fit of a kernel does
        not depend on it.

    Attributes
    ----------
    name : str
        Name made of letters, digits and underscores; expressions contain the kernel as
        ``NAME[column]``.
    parameters : tuple of KernelParameter
        The parameters, in the order of their entries in theta.
    words : str
        Description of functions drawn with this kernel, such as ``"smooth over {lengthscale}"``,
        where the values of the parameters are filled in, in the units of the user.
    noun : str
        What such a function is called in a sentence, such as ``"smooth function"``; empty for "a
        function with the kernel NAME".
    formula : str
        The kernel in LaTeX, where ``<x>`` stands for the column, ``<x><from>`` for its distance
        from its smallest value, ``<scale>`` for its extent, and ``<lengthscale>`` for the value of
        a parameter of that name; empty for its name with the values.
    sources : Sources
        Python expressions for the kernel in the programs of other libraries, with ``{column}`` and
        the names of the parameters in braces.
    broadcasts : bool
        Whether :meth:`value` accepts arrays as parameters and broadcasts them against the pairs.
        Hellinger distances are faster if it does.
    closed_under_products : bool
        Whether the product of two such kernels on one column, each with parameters of its own, is
        again such a kernel, and any of it. Any several of these kernels must also have a common
        factor of the kind, so that what is left of each is such a kernel too. Redundant factors are
        then removed from expressions. A subclass with another function must set it anew.
    closed_under_sums : bool
        Whether the sum of two such kernels on one column, each with parameters of its own, is again
        such a kernel, and any of it. Redundant terms are then removed from expressions.
    is_linear : bool
        Whether its functions are straight lines.
    is_stationary : bool
        Whether its values depend on the two inputs by their difference alone. They are then
        computed once for each distinct difference, where there are few of them. A subclass with
        another function must set it anew.
    """

    name: str
    parameters: tuple[KernelParameter, ...] = ()
    words: ClassVar[str] = ""
    noun: ClassVar[str] = ""
    formula: ClassVar[str] = ""
    sources: ClassVar[Sources] = Sources()
    broadcasts: ClassVar[bool] = False
    closed_under_products: ClassVar[bool] = False
    closed_under_sums: ClassVar[bool] = False
    is_linear: ClassVar[bool] = False
    is_stationary: ClassVar[bool] = False

    def __init__(self, name: str | None = None) -> None:
        if name is not None:
            self.name = name

    @property
    def label(self) -> str:
        """The name in expressions."""
        return self.name

    @abstractmethod
    def value(self, params: FloatArray, pairs: Pairs) -> FloatArray:
        """Compute the values at parameters (n_params,), elementwise, as a new array."""

    def gradient(self, params: FloatArray, pairs: Pairs, adjoint: FloatArray) -> FloatArray:
        """Compute the gradient (n_params,) of ``sum(adjoint * value)`` in the *log* parameters."""
        return difference_gradient(lambda at: self.value(at, pairs), params, adjoint)

    def to_sklearn(
        self,
        params: FloatArray,  # noqa: ARG002 - used by subclasses
        *,
        scale: float,  # noqa: ARG002 - used by subclasses
    ) -> Kernel | None:
        """Build the equal scikit-learn kernel for inputs multiplied by ``scale``.

        The result is None if scikit-learn has no such kernel; the export then wraps this one.
        """
        return None

    @property
    def has_many_modes(self) -> bool:
        """Whether the posterior tends to have many modes, as it has along a period."""
        return self.index(Role.PERIOD) is not None

    @property
    def limits(self) -> "tuple[BaseKernel, ...]":
        """Base kernels with fewer parameters that this one approaches as a parameter grows."""
        return ()

    def describe(self, params: FloatArray, *, scale: float) -> str:
        """Describe functions with this kernel and inputs multiplied by ``scale`` in a few words."""
        if self.words:
            return self.words.format(**self.texts_of(params, scale=scale))
        lengths = self.lengths_of(params, scale=scale)
        return f"{self.name} with {lengths}" if lengths else self.name

    def check(self) -> None:
        """Raise a ``ValueError`` if the name or the parameters are not valid."""
        own = type(self).__name__
        name = getattr(self, "name", None)
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise ValueError(
                f"{own}.name must be made of letters, digits and underscores and begin with no "
                f"digit, got {name!r}"
            )
        self.check_parameters()
        if not self.parameters:
            raise ValueError(f"{own}.parameters must hold a parameter, got none")
        try:
            self.words.format(**{parameter.name: "" for parameter in self.parameters})
        except (KeyError, IndexError) as error:
            raise ValueError(
                f"{own}.words must name parameters of the kernel in braces, got {self.words!r}"
            ) from error

    @property
    def default_name(self) -> str:
        """Name that the class declares; random numbers depend on it and not on ``name``."""
        return getattr(type(self), "name", self.name)

    def with_default_name(self) -> "BaseKernel":
        """Return the same kernel under the name that its class declares."""
        if self.name == self.default_name:
            return self
        other = copy(self)
        other.name = self.default_name
        return other

    def __repr__(self) -> str:
        own = ", ".join(f"{name}={value!r}" for name, value in self.attributes.items())
        return f"{type(self).__name__}({own})"


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
        """Compute the kernel values, elementwise over the pairs."""
        return params[self.variance_index] * np.exp(self.exponent(params, pairs))

    def gradient(self, params: FloatArray, pairs: Pairs, adjoint: FloatArray) -> FloatArray:
        """Compute the gradient (n_params,) of ``sum(adjoint * value)`` in the log parameters."""
        exponent = self.exponent(params, pairs)
        weights = adjoint * (params[self.variance_index] * np.exp(exponent))
        gradient = self.exponent_gradient(Exponent(params, pairs, exponent), weights)
        gradient[self.variance_index] += weights.sum()
        return gradient


def require_base_kernels(argument: str, kernels: Any) -> tuple[BaseKernel, ...]:
    """Check base kernels given by the user and return them as a tuple.

    Raises
    ------
    TypeError
        If one is a class or is not a base kernel.
    ValueError
        If one is not valid, or two have the same name.
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
