"""The covariance of an expression as a function of its parameters, computed only here.

The expression becomes a tree of nodes over the pairs of a data set. The pairs may be in any
storage: packed for the likelihood, rectangular for predictions, and the columns of many small
matrices for distances between priors. A forward sweep computes the values. A reverse sweep turns
the derivative of a scalar with respect to these values into its gradient with respect to the log
parameters. Leaves keep their values until their own parameters change, which saves time in a scan
over one leaf. No array is larger than the pairs, and the number of arrays does not depend on the
number of parameters.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence

import numpy as np

from autokernel.expression import Expression, Leaf, Null, Operation, slots_of
from autokernel.kernels import BaseKernel, BroadcastPairs, Exponent, ExponentialKernel, Pairs
from autokernel.operators import MULTIPLY, Operands, Operator
from autokernel.typing import FloatArray


class Node(ABC):
    """A node of the covariance; ``value`` holds the result of the last forward sweep."""

    value: FloatArray

    @abstractmethod
    def forward(self, params: FloatArray) -> FloatArray:
        """Compute and store the values at these parameters."""

    @abstractmethod
    def backward(self, adjoint: FloatArray, gradient: FloatArray) -> None:
        """Write this node's entries of the gradient, given the derivative in its values."""


class ZeroNode(Node):
    """The kernel of the null model, whose values are zero."""

    def __init__(self, pairs: Pairs) -> None:
        self.value = np.broadcast_to(0.0, pairs.shape)  # one number in memory

    def forward(self, params: FloatArray) -> FloatArray:  # noqa: ARG002 - there are none
        """Return the zeros."""
        return self.value

    def backward(self, adjoint: FloatArray, gradient: FloatArray) -> None:
        """Write nothing, as there are no parameters."""


class LeafNode(Node):
    """A leaf whose kernel is defined by its values, not by an exponent."""

    def __init__(self, kernel: BaseKernel, pairs: Pairs, entries: slice) -> None:
        self.kernel, self.pairs, self.entries = kernel, pairs, entries
        self.params = np.empty(0)

    def forward(self, params: FloatArray) -> FloatArray:
        """Compute and store the values at these parameters, unless they are stored already."""
        if not np.array_equal(self.params, params[self.entries]):
            self.params = params[self.entries].copy()
            self.value = self.kernel.value(self.params, self.pairs)
            if self.params.ndim == 1 and np.shape(self.value) != self.pairs.shape:
                raise ValueError(
                    f"{type(self.kernel).__name__}.value must return an array of the shape of the "
                    f"pairs {self.pairs.shape}, got {np.shape(self.value)}"
                )
        return self.value

    def backward(self, adjoint: FloatArray, gradient: FloatArray) -> None:
        """Write the gradient of the leaf."""
        own = self.kernel.gradient(self.params, self.pairs, adjoint)
        if np.shape(own) != self.params.shape:
            raise ValueError(
                f"{type(self.kernel).__name__}.gradient must return an array of the shape "
                f"{self.params.shape}, got {np.shape(own)}"
            )
        gradient[self.entries] = own


class ExponentialTerm:
    """An exponential leaf as a factor of an exponential node."""

    def __init__(self, kernel: ExponentialKernel, pairs: Pairs, entries: slice) -> None:
        self.kernel, self.pairs, self.entries = kernel, pairs, entries
        self.params = np.empty(0)

    def forward(self, params: FloatArray) -> FloatArray:
        """Compute and store the exponent at these parameters, unless it is stored already."""
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
    """A product of exponential leaves, computed as the exponential of a sum of exponents."""

    def __init__(self, terms: Sequence[ExponentialTerm]) -> None:
        self.terms = terms

    def forward(self, params: FloatArray) -> FloatArray:
        """Compute and store the values at these parameters."""
        first, *others = self.terms
        exponent, variance = first.forward(params), first.variance
        if others:
            exponent = exponent + others[0].forward(params)
            for term in others[1:]:
                exponent += term.forward(params)
            for term in others:
                variance = variance * term.variance
        self.value = np.exp(exponent)
        self.value *= variance
        return self.value

    def backward(self, adjoint: FloatArray, gradient: FloatArray) -> None:
        """Write the gradients of the leaves, by ``d value = value * d exponent``."""
        weights = adjoint * self.value
        total = float(weights.sum())
        for term in self.terms:
            term.backward(weights, total, gradient)


class OperationNode(Node):
    """Nodes that are joined by an operator."""

    def __init__(
        self, operator: Operator, children: Sequence[Node], pairs: Pairs | None, entries: slice
    ) -> None:
        self.operator, self.children, self.entries = operator, children, entries
        self.operands = Operands((), np.empty(0), pairs)

    def forward(self, params: FloatArray) -> FloatArray:
        """Compute and store the values at these parameters."""
        values = [child.forward(params) for child in self.children]
        own = params[self.entries] if self.operator.parameters else self.operands.params
        self.operands = Operands(values, own, self.operands.pairs)
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
        Function that returns the pairs of a column.
    """

    def __init__(self, expression: Expression, pairs: Callable[[int], Pairs]) -> None:
        self.parameters = tuple(p for node in expression.nodes for p in node.parameters)
        self._pairs = pairs
        self._entries = iter(slot.entries for slot in slots_of(expression))  # in node order
        self._root = self._compile(expression)

    def forward(self, params: FloatArray) -> FloatArray:
        """Compute the values at parameters (n_params,), elementwise; do not overwrite them."""
        return self._root.forward(params)

    def backward(self, adjoint: FloatArray) -> FloatArray:
        """Compute the gradient (n_params,) of a scalar with respect to the log parameters.

        ``adjoint`` is the derivative of the scalar with respect to the values.
        """
        gradient = np.empty(len(self.parameters))
        self._root.backward(adjoint, gradient)
        return gradient

    def _compile(self, expression: Expression) -> Node:
        """Build the node of an expression; an operator that commutes gets all its terms."""
        if isinstance(expression, Null):
            return ZeroNode(self._pairs(0))  # the pairs of any column have the shape of all
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
        """Build the node of a leaf or a product, with all exponential leaves in one node."""
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
    """Build the covariance (n, m) between points X (n, n_features) and Z (m, n_features)."""
    return Covariance(
        expression, lambda column: BroadcastPairs(X[:, column, None], Z[None, :, column])
    )


def diagonal_covariance(expression: Expression, X: FloatArray) -> Covariance:
    """Build the variances (n,) of an expression at points X (n, n_features)."""
    return Covariance(expression, lambda column: BroadcastPairs(X[:, column], X[:, column]))
