"""Change-points and windows: other kernels in other parts of a column."""

from collections.abc import Iterator, Sequence
from typing import ClassVar

import numpy as np

from autokernel.kernels import AFTER, BEFORE, INSIDE, OUTSIDE, Share
from autokernel.kernels.declared import place
from autokernel.operators.base import Operands, Operator
from autokernel.typing import FloatArray


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
