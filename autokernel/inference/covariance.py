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
from collections.abc import Callable, Iterator, Sequence
from functools import cache

import numpy as np

from autokernel.expression import Expression, Leaf, Operation, slots_of
from autokernel.kernels import (
    MULTIPLY,
    BaseKernel,
    BroadcastPairs,
    DistinctLags,
    Exponent,
    ExponentialKernel,
    LagPairs,
    Operands,
    Operator,
    Pairs,
)
from autokernel.typing import FloatArray, IntArray


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


class ExpandedNode(Node):
    """A node over distinct lags, expanded to all pairs."""

    def __init__(self, child: Node, indices: IntArray) -> None:
        self.child, self.indices = child, indices

    def forward(self, params: FloatArray) -> FloatArray:
        """Compute the values at the distinct lags, and look up those of all pairs."""
        self.value = self.child.forward(params).take(self.indices, mode="clip")  # the fastest mode
        return self.value

    def backward(self, adjoint: FloatArray, gradient: FloatArray) -> None:
        """Add up the derivative over the pairs of each lag, and pass it on."""
        n_lags = len(self.child.value)
        # the static type of bincount is that without weights
        of_lags: FloatArray = np.bincount(self.indices, adjoint, n_lags).astype(float, copy=False)
        self.child.backward(of_lags, gradient)


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
        entries = iter(slot.entries for slot in slots_of(expression))
        self._root = _Compiler(pairs, entries).compile(expression)

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


class _Compiler:
    """Builds the nodes of expressions on some pairs.

    What depends only on the lags of one column is computed once for each distinct lag, if the
    pairs have few of them. The exponential factors of a product share one exponential, which is
    computed for distinct lags only if all these factors are on one column.
    """

    def __init__(self, pairs: Callable[[int], Pairs], entries: Iterator[slice]) -> None:
        self._pairs, self._entries = pairs, entries  # the entries of theta, in node order

    def compile(self, expression: Expression) -> Node:
        """Build the node of an expression; an operator that commutes gets all its terms."""
        if not expression.leaves:
            return ZeroNode(self._pairs(0))  # the pairs of any column have the shape of all
        distinct = self._distinct(expression)
        if distinct is not None:
            return ExpandedNode(self._on_lags(distinct).compile(expression), distinct.indices)
        if isinstance(expression, Leaf):
            return self._compile_product([expression])
        assert isinstance(expression, Operation)
        operator = expression.operator
        if operator == MULTIPLY:
            return self._compile_product(expression.terms(operator))
        entries = next(self._entries) if operator.parameters else slice(0, 0)
        pairs = None if expression.column is None else self._pairs(expression.column)
        terms = expression.terms(operator) if operator.commutes else expression.operands
        return OperationNode(operator, [self.compile(term) for term in terms], pairs, entries)

    def _compile_product(self, factors: Sequence[Expression]) -> Node:
        """Build the node of a leaf or a product, with all exponential leaves in one node."""
        nodes: list[Node] = []
        terms: list[ExponentialTerm] = []
        leaves = [factor for factor in factors if isinstance(factor, Leaf)]
        exponentials = [leaf for leaf in leaves if isinstance(leaf.kernel, ExponentialKernel)]
        distinct = self._distinct(*exponentials)
        of_leaves = self if distinct is None else self._on_lags(distinct)
        for factor in factors:
            if not isinstance(factor, Leaf):
                nodes.append(self.compile(factor))
            elif isinstance(factor.kernel, ExponentialKernel):
                pairs = of_leaves._pairs(factor.column)
                terms.append(ExponentialTerm(factor.kernel, pairs, next(self._entries)))
            else:
                nodes.append(self._compile_leaf(factor))
        if terms:
            node = ExponentialNode(terms)
            nodes.append(node if distinct is None else ExpandedNode(node, distinct.indices))
        return nodes[0] if len(nodes) == 1 else OperationNode(MULTIPLY, nodes, None, slice(0, 0))

    def _compile_leaf(self, leaf: Leaf) -> Node:
        """Build the node of a leaf that is defined by its values."""
        distinct = self._distinct(leaf)
        if distinct is not None:
            return ExpandedNode(self._on_lags(distinct)._compile_leaf(leaf), distinct.indices)
        return LeafNode(leaf.kernel, self._pairs(leaf.column), next(self._entries))

    def _on_lags(self, distinct: DistinctLags) -> "_Compiler":
        """Return a compiler on the distinct lags, which goes on with the same entries."""
        lags = LagPairs(distinct.lags)
        return _Compiler(lambda _: lags, self._entries)

    def _distinct(self, *expressions: Expression) -> DistinctLags | None:
        """Return the distinct lags if expressions depend on nothing else, otherwise None."""
        trees = [tree for expression in expressions for tree in expression.subtrees()]
        leaves = [tree for tree in trees if isinstance(tree, Leaf)]
        columns = {leaf.column for leaf in leaves}
        if (
            len(columns) != 1
            or not all(leaf.kernel.is_stationary for leaf in leaves)
            or any(tree.column is not None for tree in trees if isinstance(tree, Operation))
        ):
            return None
        return self._pairs(columns.pop()).distinct


def paired_covariance(
    expression: Expression, columns: Callable[[int], tuple[FloatArray, FloatArray]]
) -> Covariance:
    """Build the covariance between the entries of two arrays that broadcast.

    ``columns`` returns the two arrays of a column. It is called once for each column.
    """

    @cache
    def pairs(column: int) -> BroadcastPairs:
        return BroadcastPairs(*columns(column))

    return Covariance(expression, pairs)


def cross_covariance(expression: Expression, X: FloatArray, Z: FloatArray) -> Covariance:
    """Build the covariance (n, m) between points X (n, n_features) and Z (m, n_features)."""
    return paired_covariance(expression, lambda column: (X[:, column, None], Z[None, :, column]))


def diagonal_covariance(expression: Expression, X: FloatArray) -> Covariance:
    """Build the variances (n,) of an expression at points X (n, n_features)."""
    return paired_covariance(expression, lambda column: (X[:, column], X[:, column]))
