"""A fitted kernel as text in another language, from texts of its leaves."""

from collections.abc import Callable, Iterator

import numpy as np

from autokernel.expression import Expression, Leaf, Operation, slots_of
from autokernel.kernels import BaseKernel
from autokernel.operators import ADD, MULTIPLY
from autokernel.typing import FloatArray

WriteLeaf = Callable[[BaseKernel, int, FloatArray], str]
"""Function of a kernel, its column and its parameters (n_params,), not their logs."""


def write(
    expression: Expression,
    theta: FloatArray,
    write_leaf: WriteLeaf,
    *,
    times: str = " * ",
    brackets: tuple[str, str] = ("(", ")"),
) -> str:
    """Write a kernel with sums and products; a change is the sum of its operands and shares.

    Raises
    ------
    ValueError
        If an operator is neither of these.
    """
    params = np.exp(theta)
    own = iter([params[entries] for _, entries in slots_of(expression)])
    return _Writer(own, write_leaf, times, brackets).write(expression)


class _Writer:
    """Writes the nodes, which take their parameters in order."""

    def __init__(
        self,
        params: Iterator[FloatArray],
        write_leaf: WriteLeaf,
        times: str,
        brackets: tuple[str, str],
    ) -> None:
        self._params, self._write_leaf = params, write_leaf
        self._times, self._brackets = times, brackets

    def write(self, expression: Expression) -> str:
        """Write a subtree."""
        if isinstance(expression, Leaf):
            return self._write_leaf(expression.kernel, expression.column, next(self._params))
        assert isinstance(expression, Operation)  # noise alone has no text here
        operator = expression.operator
        if operator in (ADD, MULTIPLY):
            terms = expression.terms(operator)
            if operator == ADD:
                return " + ".join(map(self.write, terms))
            return self._times.join(map(self._factor, terms))
        if not operator.shares or expression.column is None:
            raise ValueError(f"{operator.symbol} is an operator of yours, and has no text there")
        own = next(self._params)
        weighed = [
            self._write_leaf(share, expression.column, own) + self._times + self._factor(operand)
            for share, operand in zip(operator.shares, expression.operands, strict=True)
        ]
        return " + ".join(weighed)

    def _factor(self, expression: Expression) -> str:
        """Write a factor, in brackets if it is a sum."""
        text = self.write(expression)
        is_product = isinstance(expression, Leaf) or (
            isinstance(expression, Operation) and expression.operator == MULTIPLY
        )
        left, right = self._brackets
        return text if is_product else f"{left}{text}{right}"
