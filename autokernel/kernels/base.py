"""What a base kernel is: a positive definite function of two numbers with parameters.

Kernels see the data through :class:`Pairs`, the quantities of all pairs of entries of one column in
whatever storage the caller chose, and they work elementwise on it. They hold no parameters: those
come in, in the order of ``parameter_names``.
"""

from abc import ABC, abstractmethod
from typing import ClassVar

from sklearn.gaussian_process.kernels import Kernel

from autokernel.typing import FloatArray


class Pairs(ABC):
    """Quantities of all pairs ``(x_i, x_j)`` of one input column, elementwise in one storage."""

    @property
    @abstractmethod
    def squared_distance(self) -> FloatArray:
        """``(x_i - x_j)^2``."""

    @property
    @abstractmethod
    def product(self) -> FloatArray:
        """``x_i x_j``."""

    @abstractmethod
    def periodic(self, period: float) -> FloatArray:
        """``sin^2(pi (x_i - x_j) / period)``."""

    @abstractmethod
    def periodic_slope(self, period: float, weights: FloatArray) -> float:
        """Differentiate the weighted sum of :meth:`periodic` in the log of the period."""


class BaseKernel(ABC):
    """A kernel on one column: an :class:`ExponentialKernel` or a :class:`PlainKernel`.

    ``parameter_names`` names its parameters in their order in theta; the names are the keys of the
    priors. Gradients are with respect to the *logarithms* of the parameters.
    """

    name: ClassVar[str]
    parameter_names: ClassVar[tuple[str, ...]]

    @abstractmethod
    def describe(self, params: FloatArray, *, scale: float) -> str:
        """Say in a few words what functions look like whose inputs are multiplied by ``scale``."""

    @abstractmethod
    def to_sklearn(self, params: FloatArray, *, scale: float) -> Kernel:
        """Build the scikit-learn kernel that takes inputs multiplied by ``scale``."""


class PlainKernel(BaseKernel):
    """A kernel given by its values; they may be negative."""

    @abstractmethod
    def value(self, params: FloatArray, pairs: Pairs) -> FloatArray:
        """Kernel values, elementwise over the pairs, as a new array."""

    @abstractmethod
    def gradient(self, params: FloatArray, pairs: Pairs, adjoint: FloatArray) -> FloatArray:
        """Gradient (n_params,) of ``sum(adjoint * value)`` in the log parameters."""


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
    def exponent_gradient(
        self, params: FloatArray, pairs: Pairs, exponent: FloatArray, weights: FloatArray
    ) -> FloatArray:
        """Gradient (n_params,) of ``sum(weights * exponent)`` in the log parameters.

        The entry of the variance is zero: the exponent does not depend on it.
        """
