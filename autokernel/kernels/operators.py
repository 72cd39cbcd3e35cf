"""Operators that join kernels: sum, product, change point and change window."""

import re
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import ClassVar, NamedTuple

import numpy as np

from autokernel.kernels.base import BaseKernel, Declared, place
from autokernel.kernels.pairs import Pairs, difference_gradient
from autokernel.kernels.parameters import KernelParameter
from autokernel.kernels.shares import AFTER, BEFORE, INSIDE, OUTSIDE, Share
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


class Add(Operator):
    """The sum of kernels."""

    symbol = "+"
    commutes = True
    is_additive = True
    broadcasts = True
    precedence = 1

    def value(self, at: Operands) -> FloatArray:
        """Add the operands."""
        return _reduce(np.add, at.values)

    def adjoints(self, at: Operands, adjoint: FloatArray) -> Iterator[FloatArray]:
        """Yield the unchanged derivative for each operand."""
        for _ in at.values:
            yield adjoint

    def __reduce__(self) -> str:
        return "ADD"  # the object of this module: trees compare operators often


class Multiply(Operator):
    """The product of kernels."""

    symbol = "*"
    commutes = True
    broadcasts = True
    precedence = 2

    def value(self, at: Operands) -> FloatArray:
        """Multiply the operands."""
        return _reduce(np.multiply, at.values)

    def adjoints(self, at: Operands, adjoint: FloatArray) -> Iterator[FloatArray]:
        """Yield the derivative times the other factors, without division as these may be zero."""
        for number in range(len(at.values)):
            others = [*at.values[:number], *at.values[number + 1 :]]
            yield _reduce(np.multiply, [adjoint, *others])

    def __reduce__(self) -> str:
        return "MULTIPLY"


ADD, MULTIPLY = Add(), Multiply()


def _reduce(ufunc: np.ufunc, arrays: Sequence[FloatArray]) -> FloatArray:
    """Combine arrays elementwise into a new one, or return the only one."""
    if len(arrays) == 1:
        return arrays[0]
    out = ufunc(arrays[0], arrays[1])
    for array in arrays[2:]:
        ufunc(out, array, out=out)
    return out


class Change(Operator):
    """The sum of the operands, each multiplied by the kernel of its part of the column.

    Functions in different parts are independent. A part is weighed by a product of logistic
    functions, and the weights of all parts add up to one (Lloyd et al. 2014, section 2).
    """

    acts_on_column = True
    has_many_modes = True
    broadcasts = True
    shares: ClassVar[tuple[Share, ...]]

    def value(self, at: Operands) -> FloatArray:
        """Add up the operands, each multiplied by its share."""
        assert at.pairs is not None  # the operator acts on a column
        first, *others = (
            share.value(at.params, at.pairs) * operand
            for operand, share in zip(at.values, self.shares, strict=True)
        )
        return sum(others, start=first)

    def adjoints(self, at: Operands, adjoint: FloatArray) -> Iterator[FloatArray]:
        """Yield the derivative times the share of each operand."""
        assert at.pairs is not None
        for share in self.shares:
            yield adjoint * share.value(at.params, at.pairs)

    def gradient(self, at: Operands, adjoint: FloatArray) -> FloatArray:
        """Compute the gradient (n_params,) of ``sum(adjoint * value)`` in the log parameters."""
        assert at.pairs is not None
        gradients = [
            share.gradient(at.params, at.pairs, adjoint * operand)
            for operand, share in zip(at.values, self.shares, strict=True)
        ]
        return np.sum(gradients, axis=0)


class ChangePoint(Change):
    """``CP[c](before, after)``: the kernel changes at a location of column c."""

    symbol = "CP"
    parameters = BEFORE.parameters
    shares = (BEFORE, AFTER)

    def describe(
        self, params: FloatArray, phrases: Sequence[str], *, scale: float, shift: float
    ) -> str:
        """Name the location between the phrases."""
        before, after = phrases
        return f"({before} until {place(params[0], scale=scale, shift=shift)}, then {after})"

    def __reduce__(self) -> str:
        return "CHANGE_POINT"  # the object of this module: trees compare operators often


class ChangeWindow(Change):
    """``CW[c](outside, inside)``: the kernel is another one in a window of column c."""

    symbol = "CW"
    parameters = INSIDE.parameters
    shares = (OUTSIDE, INSIDE)

    def describe(
        self, params: FloatArray, phrases: Sequence[str], *, scale: float, shift: float
    ) -> str:
        """Name both ends of the window between the phrases."""
        outside, inside = phrases
        begin, end = (place(float(e), scale=scale, shift=shift) for e in INSIDE.edges(params))
        return f"({outside}, but from {begin} to {end} {inside})"

    def __reduce__(self) -> str:
        return "CHANGE_WINDOW"


CHANGE_POINT, CHANGE_WINDOW = ChangePoint(), ChangeWindow()
