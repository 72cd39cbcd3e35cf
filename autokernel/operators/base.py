"""What an operator is: a way to make one kernel of several, elementwise, maybe with parameters."""

import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import ClassVar, NamedTuple

from autokernel.kernels.differences import difference_gradient
from autokernel.kernels.pairs import Pairs
from autokernel.kernels.parameters import KernelParameter
from autokernel.typing import FloatArray

_WORD = re.compile(r"[A-Za-z_]\w*", re.ASCII)


class Operands(NamedTuple):
    """What an operation is computed from."""

    values: Sequence[FloatArray]  # of each operand, elementwise over the pairs
    params: FloatArray  # (n_params,), those of the operator itself
    pairs: Pairs | None  # of the column that it acts on, None if it acts on none


class Operator(ABC):
    """An elementwise operation on the values of kernels.

    Attributes
    ----------
    symbol : str
        A sign between the operands, such as ``+``; or a word before them, such as ``CP`` in
        ``CP[0](SE[0], LIN[0])``.
    n_operands : int
        Number of operands, at least two.
    commutes : bool
        Whether operands may change places and be regrouped. Such an operator is a sign between two
        operands, without parameters.
    is_additive : bool
        Whether the operation is a sum, whose terms can be taken away one by one.
    precedence : int
        Of a sign between operands: the higher one binds tighter.
    acts_on_column : bool
        Whether it depends on the inputs themselves, in one column.
    parameters : tuple of KernelParameter
        Its own parameters; in theta they stand before those of the operands.
    has_many_modes : bool
        Whether one mode of the posterior may hide many others.
    broadcasts : bool
        Whether :meth:`value` accepts parameters that are arrays, and broadcasts them.
    """

    symbol: ClassVar[str]
    n_operands: ClassVar[int] = 2
    commutes: ClassVar[bool] = False
    is_additive: ClassVar[bool] = False
    precedence: ClassVar[int] = 0
    acts_on_column: ClassVar[bool] = False
    parameters: ClassVar[tuple[KernelParameter, ...]] = ()
    has_many_modes: ClassVar[bool] = False
    broadcasts: ClassVar[bool] = False

    @property
    def is_word(self) -> bool:
        """Whether the symbol is a word before the operands."""
        return _WORD.fullmatch(self.symbol) is not None

    @abstractmethod
    def value(self, at: Operands) -> FloatArray:
        """Values of the operation; those of an only operand are not copied."""

    @abstractmethod
    def adjoints(self, at: Operands, adjoint: FloatArray) -> Iterator[FloatArray]:
        """Yield the derivative in the values of each operand, given that in its own values."""

    def gradient(self, at: Operands, adjoint: FloatArray) -> FloatArray:
        """Gradient (n_params,) of ``sum(adjoint * value)`` in the logs of its own parameters."""
        return difference_gradient(
            lambda params: self.value(at._replace(params=params)), at.params, adjoint
        )

    def check(self) -> None:
        """Raise a ``ValueError`` where the declaration is not valid."""
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

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other)

    def __hash__(self) -> int:
        return hash(self.symbol)

    def __repr__(self) -> str:
        return f"<Operator {self.symbol}>"
