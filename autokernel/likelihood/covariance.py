"""The covariance of an expression, as a function of its parameters: the one way to compute it.

The expression becomes a tree of nodes over the pairs of a data set, in whatever storage these have:
packed for the likelihood, rectangular for predictions, the columns of many small matrices for
distances between priors. A forward sweep gives the values; a reverse sweep turns the derivative of
a scalar in these values into its gradient in the log parameters. Leaves keep their values until
their own parameters change, which a scan over one leaf uses. No array larger than the pairs exists,
and the number of arrays does not depend on the number of parameters.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence

import numpy as np

from autokernel.expression import Expression, Leaf, Operation, slots_of
from autokernel.kernels import BaseKernel, BroadcastPairs, Exponent, ExponentialKernel, Pairs
from autokernel.operators import ADD, MULTIPLY, Operands, Operator
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


class LeafNode(Node):
    """One leaf with a kernel that is given by its values."""

    def __init__(self, kernel: BaseKernel, pairs: Pairs, entries: slice) -> None:
        self.kernel, self.pairs, self.entries = kernel, pairs, entries
        self.params = np.empty(0)

    def forward(self, params: FloatArray) -> FloatArray:
        """Compute and keep the values at these parameters, unless they are kept already."""
        if not np.array_equal(self.params, params[self.entries]):
            self.params = params[self.entries].copy()
            self.value = self.kernel.value(self.params, self.pairs)
        return self.value

    def backward(self, adjoint: FloatArray, gradient: FloatArray) -> None:
        """Write the gradient of the leaf."""
        gradient[self.entries] = self.kernel.gradient(self.params, self.pairs, adjoint)


class ExponentialTerm:
    """One factor of an exponential node."""

    def __init__(self, kernel: ExponentialKernel, pairs: Pairs, entries: slice) -> None:
        self.kernel, self.pairs, self.entries = kernel, pairs, entries
        self.params = np.empty(0)

    def forward(self, params: FloatArray) -> FloatArray:
        """Compute and keep the exponent at these parameters, unless it is kept already."""
        if not np.array_equal(self.params, params[self.entries]):
            self.params = params[self.entries].copy()
            self.exponent = self.kernel.exponent(self.params, self.pairs)
        return self.exponent

    @property
    def variance(self) -> FloatArray:
        """The variance at the last parameters."""
        return self.params[self.kernel.variance_index]

    def backward(self, weights: FloatArray, total: float, gradient: FloatArray) -> None:
        """Write the gradient of the leaf; ``total`` is the sum of the weights."""
        at = Exponent(self.params, self.pairs, self.exponent)
        own = self.kernel.exponent_gradient(at, weights)
        own[self.kernel.variance_index] += total
        gradient[self.entries] = own


class ExponentialNode(Node):
    """Product of exponential leaves: one exponential of the sum of their exponents."""

    def __init__(self, terms: Sequence[ExponentialTerm]) -> None:
        self.terms = terms

    def forward(self, params: FloatArray) -> FloatArray:
        """Compute and keep the values at these parameters."""
        exponents = [term.forward(params) for term in self.terms]
        self.value = np.exp(ADD.value(Operands(exponents, np.empty(0), None)))
        self.value *= np.prod([term.variance for term in self.terms], axis=0)
        return self.value

    def backward(self, adjoint: FloatArray, gradient: FloatArray) -> None:
        """Write the gradients of the leaves: d value = value * d exponent."""
        weights = adjoint * self.value
        total = float(weights.sum())
        for term in self.terms:
            term.backward(weights, total, gradient)


class OperationNode(Node):
    """Nodes that are joined by an operator."""

    def __init__(
        self, operator: Operator, children: Sequence[Node], pairs: Pairs | None, entries: slice
    ) -> None:
        self.operator, self.children = operator, children
        self.pairs, self.entries = pairs, entries

    def forward(self, params: FloatArray) -> FloatArray:
        """Compute and keep the values at these parameters."""
        values = [child.forward(params) for child in self.children]
        self.operands = Operands(values, params[self.entries], self.pairs)
        self.value = self.operator.value(self.operands)
        return self.value

    def backward(self, adjoint: FloatArray, gradient: FloatArray) -> None:
        """Write the gradient of the operator's parameters and pass the derivative on."""
        if self.operator.parameters:
            gradient[self.entries] = self.operator.gradient(self.operands, adjoint)
        adjoints = self.operator.adjoints(self.operands, adjoint)
        for child, of_child in zip(self.children, adjoints, strict=True):
            child.backward(of_child, gradient)


class Covariance:
    """Covariance of an expression on pairs of points, as a function of the parameters.

    Parameters
    ----------
    expression : Expression
        The kernel.
    pairs : callable of int to Pairs
        The pairs of a column.
    """

    def __init__(self, expression: Expression, pairs: Callable[[int], Pairs]) -> None:
        self.parameters = tuple(p for node in expression.nodes for p in node.parameters)
        self._pairs = pairs
        self._entries = iter(slot.entries for slot in slots_of(expression))  # in their order
        self._root = self._compile(expression)

    def forward(self, params: FloatArray) -> FloatArray:
        """Values at the parameters (n_params,), elementwise; not to be overwritten."""
        return self._root.forward(params)

    def backward(self, adjoint: FloatArray) -> FloatArray:
        """Gradient (n_params,) in the log parameters of a scalar with this derivative."""
        gradient = np.empty(len(self.parameters))
        self._root.backward(adjoint, gradient)
        return gradient

    def _compile(self, expression: Expression) -> Node:
        """Build the node of an expression; operators that commute take all their terms."""
        if isinstance(expression, Leaf):
            return self._compile_product([expression])
        assert isinstance(expression, Operation)
        operator = expression.operator
        if operator == MULTIPLY:
            return self._compile_product(expression.terms(operator))
        entries = next(self._entries) if operator.parameters else slice(0, 0)
        pairs = None if expression.column is None else self._pairs(expression.column)
        terms = expression.terms(operator) if operator.commutes else expression.operands
        return OperationNode(operator, [self._compile(term) for term in terms], pairs, entries)

    def _compile_product(self, factors: Sequence[Expression]) -> Node:
        """Build the node of a product, all exponential leaves in one; one factor is a leaf."""
        nodes: list[Node] = []
        exponentials: list[ExponentialTerm] = []
        for factor in factors:
            if not isinstance(factor, Leaf):
                nodes.append(self._compile(factor))
                continue
            kernel, pairs, entries = factor.kernel, self._pairs(factor.column), next(self._entries)
            if isinstance(kernel, ExponentialKernel):
                exponentials.append(ExponentialTerm(kernel, pairs, entries))
            else:
                nodes.append(LeafNode(kernel, pairs, entries))
        if exponentials:
            nodes.append(ExponentialNode(exponentials))
        return nodes[0] if len(nodes) == 1 else OperationNode(MULTIPLY, nodes, None, slice(0, 0))


def cross_covariance(expression: Expression, X: FloatArray, Z: FloatArray) -> Covariance:
    """Covariance (n, m) of an expression between points X (n, n_features) and Z (m, n_features)."""
    return Covariance(
        expression, lambda column: BroadcastPairs(X[:, column, None], Z[None, :, column])
    )


def diagonal_covariance(expression: Expression, X: FloatArray) -> Covariance:
    """Variances (n,) of an expression at points X (n, n_features)."""
    return Covariance(expression, lambda column: BroadcastPairs(X[:, column], X[:, column]))
