"""The interface of an operator: a function, elementwise, of the values of several kernels."""

import re
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import ClassVar, NamedTuple

from autokernel.kernels.base import BaseKernel
from autokernel.kernels.declared import Declared
from autokernel.kernels.differences import difference_gradient
from autokernel.kernels.pairs import Pairs
from autokernel.kernels.parameters import KernelParameter
from autokernel.typing import FloatArray


class Operands(NamedTuple):
    """The arguments from which the values of an operation are computed."""

    values: Sequence[FloatArray]  #: values of each operand, elementwise over the pairs
    params: FloatArray  #: (n_params,), parameters of the operator itself
    pairs: Pairs | None  #: pairs of the column on which it acts, None if it acts on none


class Operator(Declared):
    """An elementwise operation on the values of kernels.

    Attributes
    ----------
    symbol : str
        A sign between the operands, such as ``+``, or a word before them, such as ``CP`` in
        ``CP[0](SE[0], LIN[0])``.
    n_operands : int
        Number of operands, at least two.
    commutes : bool
        Whether operands may be exchanged and regrouped. Such an operator has a sign as its symbol,
        two operands and no parameters.
    is_additive : bool
        Whether the operation is a sum, whose terms can be removed one by one.
    precedence : int
        Precedence of a sign between operands; a higher one binds more tightly.
    acts_on_column : bool
        Whether the operation also depends on the inputs themselves, in one column.
    parameters : tuple of KernelParameter
        Parameters of the operator itself; in theta they precede those of the operands.
    has_many_modes : bool
        Whether the posterior tends to have many modes along these parameters.
    broadcasts : bool
        Whether :meth:`value` accepts arrays as parameters and broadcasts them.
    shares : tuple of BaseKernel
        Kernels with the parameters of the operator, one for each operand, if the operation is the
        sum of the operands, each multiplied by its kernel on the column; empty for any other.
    """

    symbol: ClassVar[str]
    n_operands: ClassVar[int] = 2
    commutes: ClassVar[bool] = False
    is_additive: ClassVar[bool] = False
    precedence: ClassVar[int] = 0
    acts_on_column: ClassVar[bool] = False
    parameters: tuple[KernelParameter, ...] = ()
    has_many_modes: ClassVar[bool] = False
    broadcasts: ClassVar[bool] = False
    shares: ClassVar[tuple[BaseKernel, ...]] = ()

    @property
    def label(self) -> str:
        """The symbol."""
        return self.symbol

    @property
    def is_word(self) -> bool:
        """Whether the symbol is a word before the operands."""
        return self.symbol.isidentifier()

    @abstractmethod
    def value(self, at: Operands) -> FloatArray:
        """Compute the values of the operation; a single operand is returned without a copy."""

    @abstractmethod
    def adjoints(self, at: Operands, adjoint: FloatArray) -> Iterator[FloatArray]:
        """Yield the derivative of a scalar with respect to the values of each operand.

        ``adjoint`` is its derivative with respect to the values of the operation.
        """

    def gradient(self, at: Operands, adjoint: FloatArray) -> FloatArray:
        """Compute the gradient (n_params,) of ``sum(adjoint * value)`` in the log parameters."""
        return difference_gradient(
            lambda params: self.value(at._replace(params=params)), at.params, adjoint
        )

    def describe(
        self, params: FloatArray, phrases: Sequence[str], *, scale: float, shift: float
    ) -> str:
        """Describe the operation, given phrases for its operands, in a few words.

        In the column on which it acts, ``scale * x + shift`` is in the units of the user.
        """
        lengths = self.lengths_of(params, scale=scale, shift=shift)
        return f"{self.symbol}({', '.join(phrases)}{f'; {lengths}' if lengths else ''})"

    def check(self) -> None:
        """Raise a ``ValueError`` if the declaration is not valid."""
        self.check_parameters()
        if not isinstance(getattr(self, "symbol", None), str):
            raise ValueError(f"{type(self).__name__}.symbol must be a str, got none")
        if not self.is_word and not re.fullmatch(r"[^\w\s()\[\],\"]+", self.symbol):
            raise ValueError(f"symbol must be a word or a sign such as '+', got {self.symbol!r}")
        if self.n_operands < 2:
            raise ValueError(f"{self.symbol} must have n_operands >= 2, got {self.n_operands}")
        if self.commutes and (self.parameters or self.is_word):
            raise ValueError(
                f"{self.symbol} commutes, and so must have no parameters and a sign as its symbol: "
                "any grouping of its operands is the same kernel"
            )
        if not self.is_word and (self.acts_on_column or self.n_operands != 2):
            raise ValueError(
                f"{self.symbol} acts on a column or has more than two operands, and so must have a "
                "word as its symbol"
            )

    def __repr__(self) -> str:
        return f"<Operator {self.symbol}>"
