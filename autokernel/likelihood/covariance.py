"""Compile an expression and a data set into a program over the parameters.

The program is a tree of nodes. A forward sweep gives the packed covariance matrix; a reverse sweep
turns the derivative of a scalar in the entries of that matrix into its gradient in the log
parameters. Leaves keep their values until their own parameters change, which a scan over one leaf
uses. No array larger than the packed matrix exists, and its number does not depend on the
number of parameters.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence

import numpy as np

from autokernel.expression import ADD, MULTIPLY, Expression, Leaf, leaf_slots
from autokernel.kernels import BASE_KERNELS, ExponentialKernel, Pairs, PlainKernel
from autokernel.typing import FloatArray


class Node(ABC):
    """A part of the covariance; ``value`` keeps the result of the last forward sweep."""

    value: FloatArray

    @abstractmethod
    def forward(self, params: FloatArray) -> FloatArray:
        """Compute and keep the values at these parameters."""

    @abstractmethod
    def backward(self, adjoint: FloatArray, gradient: FloatArray) -> None:
        """Write this node's part of the gradient, given the derivative in its values."""


class PlainNode(Node):
    """One leaf with a kernel that is given by its values."""

    def __init__(self, kernel: PlainKernel, pairs: Pairs, place: slice) -> None:
        self.kernel, self.pairs, self.place = kernel, pairs, place
        self.params = np.empty(0)

    def forward(self, params: FloatArray) -> FloatArray:
        """Compute and keep the values at these parameters, unless they are kept already."""
        if not np.array_equal(self.params, params[self.place]):
            self.params = params[self.place].copy()
            self.value = self.kernel.value(self.params, self.pairs)
        return self.value

    def backward(self, adjoint: FloatArray, gradient: FloatArray) -> None:
        """Write the gradient of the leaf."""
        gradient[self.place] = self.kernel.gradient(self.params, self.pairs, adjoint)


class ExponentialTerm:
    """One factor of an exponential node."""

    def __init__(self, kernel: ExponentialKernel, pairs: Pairs, place: slice) -> None:
        self.kernel, self.pairs, self.place = kernel, pairs, place
        self.params = np.empty(0)

    def forward(self, params: FloatArray) -> FloatArray:
        """Compute and keep the exponent at these parameters, unless it is kept already."""
        if not np.array_equal(self.params, params[self.place]):
            self.params = params[self.place].copy()
            self.exponent = self.kernel.exponent(self.params, self.pairs)
        return self.exponent

    @property
    def variance(self) -> float:
        """The variance at the last parameters."""
        return float(self.params[self.kernel.variance_index])

    def backward(self, weights: FloatArray, total: float, gradient: FloatArray) -> None:
        """Write the gradient of the leaf; ``total`` is the sum of the weights."""
        part = self.kernel.exponent_gradient(self.params, self.pairs, self.exponent, weights)
        part[self.kernel.variance_index] += total
        gradient[self.place] = part


class ExponentialNode(Node):
    """Product of exponential leaves: one exponential of the sum of their exponents."""

    def __init__(self, terms: Sequence[ExponentialTerm]) -> None:
        self.terms = terms

    def forward(self, params: FloatArray) -> FloatArray:
        """Compute and keep the values at these parameters."""
        self.value = np.exp(_reduce(np.add, [term.forward(params) for term in self.terms]))
        self.value *= np.prod([term.variance for term in self.terms])
        return self.value

    def backward(self, adjoint: FloatArray, gradient: FloatArray) -> None:
        """Write the gradients of the leaves: d value = value * d exponent."""
        weights = adjoint * self.value
        total = float(weights.sum())
        for term in self.terms:
            term.backward(weights, total, gradient)


class SumNode(Node):
    """Sum of nodes."""

    def __init__(self, children: Sequence[Node]) -> None:
        self.children = children

    def forward(self, params: FloatArray) -> FloatArray:
        """Compute and keep the values at these parameters."""
        self.value = _reduce(np.add, [child.forward(params) for child in self.children])
        return self.value

    def backward(self, adjoint: FloatArray, gradient: FloatArray) -> None:
        """Pass the derivative on as it is."""
        for child in self.children:
            child.backward(adjoint, gradient)


class ProductNode(Node):
    """Product of nodes."""

    def __init__(self, children: Sequence[Node]) -> None:
        self.children = children

    def forward(self, params: FloatArray) -> FloatArray:
        """Compute and keep the values at these parameters."""
        self.value = _reduce(np.multiply, [child.forward(params) for child in self.children])
        return self.value

    def backward(self, adjoint: FloatArray, gradient: FloatArray) -> None:
        """Pass on the derivative times the other factors, which may be zero: no division."""
        for child in self.children:
            others = [other.value for other in self.children if other is not child]
            child.backward(_reduce(np.multiply, [adjoint, *others]), gradient)


class Covariance:
    """Covariance of an expression on a data set, as a function of the parameters.

    Parameters
    ----------
    expression : Expression
        The kernel; its leaves' parameters stand in theta from left to right.
    pairs : callable of int to Pairs
        The pairs of a column.
    """

    def __init__(self, expression: Expression, pairs: Callable[[int], Pairs]) -> None:
        self.parameter_names = tuple(
            name for leaf in expression.leaves for name in BASE_KERNELS[leaf.kernel].parameter_names
        )
        self._pairs = pairs
        self._slots = iter(leaf_slots(expression))  # taken from left to right
        self._root = self._compile(expression)

    def forward(self, params: FloatArray) -> FloatArray:
        """Packed covariance at the parameters (n_params,); not to be overwritten."""
        return self._root.forward(params)

    def backward(self, adjoint: FloatArray) -> FloatArray:
        """Gradient (n_params,) in the log parameters of a scalar with this derivative."""
        gradient = np.empty(len(self.parameter_names))
        self._root.backward(adjoint, gradient)
        return gradient

    def _compile(self, expression: Expression) -> Node:
        """Build the node of an expression; sums and products are flattened."""
        terms = expression.operands(ADD)
        if len(terms) > 1:
            return SumNode([self._compile(term) for term in terms])
        return self._compile_product(expression.operands(MULTIPLY))

    def _compile_product(self, factors: Sequence[Expression]) -> Node:
        """Build the node of a product, all exponential leaves in one; one factor is a leaf."""
        nodes: list[Node] = []
        exponentials: list[ExponentialTerm] = []
        for factor in factors:
            if not isinstance(factor, Leaf):
                nodes.append(self._compile(factor))
                continue
            kernel = BASE_KERNELS[factor.kernel]
            place = next(self._slots).place
            if isinstance(kernel, ExponentialKernel):
                exponentials.append(ExponentialTerm(kernel, self._pairs(factor.column), place))
            else:
                assert isinstance(kernel, PlainKernel)  # there are these two kinds
                nodes.append(PlainNode(kernel, self._pairs(factor.column), place))
        if exponentials:
            nodes.append(ExponentialNode(exponentials))
        return nodes[0] if len(nodes) == 1 else ProductNode(nodes)


def _reduce(ufunc: np.ufunc, arrays: Sequence[FloatArray]) -> FloatArray:
    """Combine arrays elementwise into a new one, or return the only one."""
    if len(arrays) == 1:
        return arrays[0]
    out = ufunc(arrays[0], arrays[1])
    for array in arrays[2:]:
        ufunc(out, array, out=out)
    return out
