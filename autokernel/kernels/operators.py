"""Operators that join kernels: sum, product, change point and change window."""

import re
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial, reduce
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple, SupportsIndex

import numpy as np
from scipy.special import expit

from autokernel.kernels.base import BaseKernel, Declared, check_not_reserved, check_parameters
from autokernel.kernels.pairs import Pairs, difference_gradient
from autokernel.kernels.parameters import KernelParameter, Role, Unit
from autokernel.typing import FloatArray


class Operands(NamedTuple):
    """The arguments from which the values of an operation are computed."""

    values: Sequence[FloatArray]  #: values of each operand, elementwise over the pairs
    params: FloatArray  #: (n_params,), parameters of the operator itself
    pairs: Pairs | None  #: pairs of the column on which it acts, None if it acts on none


class Operator(Declared, ABC):
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

    symbol: str
    n_operands: ClassVar[int] = 2
    commutes: ClassVar[bool] = False
    is_additive: ClassVar[bool] = False
    precedence: ClassVar[int] = 0
    acts_on_column: ClassVar[bool] = False
    has_many_modes: ClassVar[bool] = False
    broadcasts: ClassVar[bool] = False
    shares: tuple[BaseKernel, ...] = ()

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

    def __reduce_ex__(self, protocol: SupportsIndex) -> str | tuple[Any, ...]:
        names = {"+": "ADD", "*": "MULTIPLY", "CP": "CHANGE_POINT", "CW": "CHANGE_WINDOW"}
        if OPERATORS.get(self.symbol) is self:  # of this module: trees compare operators often
            return names[self.symbol]
        return super().__reduce_ex__(protocol)

    def __repr__(self) -> str:
        return f"<Operator {self.symbol}>"


def check_operator(operator: Operator) -> None:
    """Raise a ``ValueError`` if the declaration of an operator is not valid."""
    check_parameters(operator)
    if not isinstance(getattr(operator, "symbol", None), str):
        raise ValueError(f"{type(operator).__name__}.symbol must be a str, got none")
    if not operator.is_word and not re.fullmatch(r"[^\w\s()\[\],\"]+", operator.symbol):
        raise ValueError(f"symbol must be a word or a sign such as '+', got {operator.symbol!r}")
    if operator.n_operands < 2:
        raise ValueError(f"{operator.symbol} must have n_operands >= 2, got {operator.n_operands}")
    if operator.commutes and (operator.parameters or operator.is_word):
        raise ValueError(
            f"{operator.symbol} commutes, and so must have no parameters and a sign as its symbol: "
            "any grouping of its operands is the same kernel"
        )
    if not operator.is_word and (operator.acts_on_column or operator.n_operands != 2):
        raise ValueError(
            f"{operator.symbol} acts on a column or has more than two operands, and so must have a "
            "word as its symbol"
        )


class Add(Operator):
    """The sum of kernels."""

    symbol = "+"
    commutes = True
    is_additive = True
    broadcasts = True
    precedence = 1

    def value(self, at: Operands) -> FloatArray:
        total = at.values[0] + at.values[1]
        for value in at.values[2:]:
            total += value
        return total

    def adjoints(self, at: Operands, adjoint: FloatArray) -> Iterator[FloatArray]:
        return (adjoint for _ in at.values)


class Multiply(Operator):
    """The product of kernels."""

    symbol = "*"
    commutes = True
    broadcasts = True
    precedence = 2

    def value(self, at: Operands) -> FloatArray:
        return reduce(np.multiply, at.values)

    def adjoints(self, at: Operands, adjoint: FloatArray) -> Iterator[FloatArray]:
        """Yield the derivative times the other factors, without division as these may be zero."""
        for number in range(len(at.values)):
            yield reduce(np.multiply, [*at.values[:number], *at.values[number + 1 :]], adjoint)


ADD, MULTIPLY = Add(), Multiply()


LOCATION = KernelParameter(
    "location",
    (2.0, 3.0),
    Unit.INPUT,
    Role.LOCATION,
    start=(0.05, 0.95),
    grid=tuple((np.arange(1, 20) / 20).tolist()),
)
CENTRE = replace(LOCATION, name="centre", grid=tuple((np.arange(1, 10) / 10).tolist()))
LENGTH = KernelParameter("length", (2.0, 6.0), Unit.INPUT, start=(0.05, 0.7), grid=(0.1, 0.2, 0.4))
WIDTH = KernelParameter("width", (1.0, 50.0), Unit.INPUT, start=(0.001, 0.1), grid=(0.002, 0.02))


Sigmoids = tuple[list[FloatArray], list[list[FloatArray]]]
"""Arguments of logistic functions, and the derivatives of each in the log of each parameter."""


class Share(BaseKernel):
    """``f(x) f(x')``, where ``f`` is about one in a part of a column and zero elsewhere."""

    broadcasts = True

    def __init__(self, name: str, function: str, *, is_rest: bool = False) -> None:
        super().__init__(name)
        self.formula = function + function.replace("<x>", "<x'>")  # f(x) f(x')
        self.is_rest = is_rest  # whether the part is all that a product of sigmoids leaves

    @abstractmethod
    def sigmoids(self, params: FloatArray, x: FloatArray) -> Sigmoids:
        """Compute the logistic functions whose product is ``f``, or one less it if ``is_rest``.

        Parameters of shape (n_params, ...) broadcast with the inputs.
        """

    def value(self, params: FloatArray, pairs: Pairs) -> FloatArray:
        return pairs.outer(lambda x: self._function_and_slopes(params, x)[0])

    def gradient(self, params: FloatArray, pairs: Pairs, adjoint: FloatArray) -> FloatArray:
        # with a slope g of f, f g' + g f' = ((f + g) (f + g)' - (f - g) (f - g)') / 2
        def moved(number: int, sign: int, x: FloatArray) -> FloatArray:
            value, slopes = self._function_and_slopes(params, x)
            return value + sign * slopes[number]

        gradient = np.empty(len(params))
        for number in range(len(params)):
            plus, minus = (pairs.outer(partial(moved, number, sign)) for sign in (1, -1))
            gradient[number] = 0.5 * (adjoint * (plus - minus)).sum()
        return gradient

    def _function_and_slopes(
        self, params: FloatArray, x: FloatArray
    ) -> tuple[FloatArray, list[FloatArray]]:
        """Compute ``f`` and its derivatives in the logs of the parameters."""
        logits, slopes_of_logits = self.sigmoids(params, x)
        values, others = [expit(z) for z in logits], [expit(-z) for z in logits]
        whole = np.prod(values, axis=0)
        slopes = [
            whole * sum(other * slope for other, slope in zip(others, of_parameter, strict=True))
            for of_parameter in zip(*slopes_of_logits, strict=True)
        ]
        if not self.is_rest:
            return whole, slopes
        # 1 - ab = (1 - a) + a (1 - b)
        rest = np.sum([np.prod(values[:n], axis=0) * one for n, one in enumerate(others)], axis=0)
        return rest, [-slope for slope in slopes]


class Side(Share):
    """The part of a column before a location, where a sigmoid falls, or the rest, after it."""

    parameters = (LOCATION, WIDTH)

    def sigmoids(self, params: FloatArray, x: FloatArray) -> Sigmoids:
        location, width = params
        logit = (location - x) / width
        return [logit], [[location / width, -logit]]


class Window(Share):
    """The part of a column around a centre, by a product of two sigmoids, or the rest."""

    parameters = (CENTRE, LENGTH, WIDTH)

    def sigmoids(self, params: FloatArray, x: FloatArray) -> Sigmoids:
        centre, length, width = params
        rising = (x - (centre - length / 2)) / width
        falling = (centre + length / 2 - x) / width
        by_length = length / 2 / width
        slopes = [[-centre / width, by_length, -rising], [centre / width, by_length, -falling]]
        return [rising, falling], slopes


_INSIDE = (
    r"\varsigma\left(\frac{<x> - <centre> + <length> / 2}{<width>}\right)"
    r"\varsigma\left(\frac{<centre> + <length> / 2 - <x>}{<width>}\right)"
)
BEFORE = Side("BEFORE", r"\varsigma\left(\frac{<location> - <x>}{<width>}\right)")
AFTER = Side("AFTER", r"\varsigma\left(\frac{<x> - <location>}{<width>}\right)", is_rest=True)
INSIDE = Window("INSIDE", _INSIDE)
OUTSIDE = Window("OUTSIDE", rf"\left(1 - {_INSIDE}\right)", is_rest=True)


class Change(Operator):
    """The sum of the operands, each multiplied by the kernel of its part of the column.

    ``CP[c](before, after)`` changes at a location of column c, ``CW[c](outside, inside)`` in a
    window. Functions in different parts are independent. A part is weighed by a product of logistic
    functions, and the weights of all parts add up to one (Lloyd et al. 2014, section 2).
    """

    acts_on_column = True
    has_many_modes = True
    broadcasts = True

    def __init__(self, symbol: str, shares: tuple[Share, ...]) -> None:
        self.symbol, self.shares = symbol, shares
        self.parameters = shares[0].parameters

    def value(self, at: Operands) -> FloatArray:
        return reduce(np.add, map(np.multiply, self._weights(at), at.values))

    def adjoints(self, at: Operands, adjoint: FloatArray) -> Iterator[FloatArray]:
        return (adjoint * weight for weight in self._weights(at))

    def _weights(self, at: Operands) -> Iterator[FloatArray]:
        assert at.pairs is not None  # it acts on a column
        return (share.value(at.params, at.pairs) for share in self.shares)

    def gradient(self, at: Operands, adjoint: FloatArray) -> FloatArray:
        assert at.pairs is not None
        gradients = [
            share.gradient(at.params, at.pairs, adjoint * operand)
            for operand, share in zip(at.values, self.shares, strict=True)
        ]
        return np.sum(gradients, axis=0)


CHANGE_POINT, CHANGE_WINDOW = Change("CP", (BEFORE, AFTER)), Change("CW", (OUTSIDE, INSIDE))


OPERATORS: Mapping[str, Operator] = MappingProxyType(
    {operator.symbol: operator for operator in (ADD, MULTIPLY, CHANGE_POINT, CHANGE_WINDOW)}
)
"""The built-in operators by symbol."""


def with_custom_operators(
    custom: Iterable[object], *, base_kernels: Collection[str]
) -> Mapping[str, Operator]:
    """Return the built-in operators, then custom ones, for base kernels of these names."""
    known = dict(OPERATORS)
    for symbol in known.keys() & set(base_kernels):
        raise ValueError(f"{symbol} is an operator and cannot be the name of a base kernel")
    for operator in custom:
        if isinstance(operator, type) and issubclass(operator, Operator):
            raise TypeError(f"operators must hold objects, got a class: call {operator.__name__}()")
        if not isinstance(operator, Operator):
            raise TypeError(f"operators must hold symbols or Operator objects, got {operator!r}")
        check_operator(operator)
        check_not_reserved("operators", operator.symbol)
        if operator.symbol in base_kernels:
            raise ValueError(f"operators must not have the name of a base kernel, got {operator!r}")
        if known.setdefault(operator.symbol, operator) != operator:
            raise ValueError(f"operators must have different symbols, got two for {operator!r}")
    return {**OPERATORS, **dict(sorted(known.items()))}  # the custom ones may be from a set
