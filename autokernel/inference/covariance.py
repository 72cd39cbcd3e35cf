"""The covariance of an expression as a function of its parameters, computed only here.

The expression becomes a tree of nodes over the pairs of a data set. The pairs may be in any
storage: packed for the likelihood, rectangular for predictions, and the columns of many small
matrices for distances between priors. A forward sweep computes the values. A reverse sweep turns
the derivative of a scalar with respect to these values into its gradient with respect to the log
parameters. Leaves keep their values until their own parameters change, which saves time in a scan
over one leaf. No array is larger than the pairs.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from typing import Any, TypeGuard

import numpy as np

from autokernel.data import Inputs
from autokernel.exceptions import custom_part, is_custom
from autokernel.expression import Expression, Leaf, Operation, Tree, View, changes_along, slots_of
from autokernel.inference.pairs import with_gaps
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

MAX_KEPT_LEAF_VALUES = 2**24  # values of base kernels that stay in memory for blocks of rows


class _Node(ABC):
    """A node of the covariance; ``value`` holds the result of the last forward sweep."""

    value: FloatArray

    @abstractmethod
    def forward(self, params: FloatArray) -> FloatArray:
        """Compute and store the values at these parameters."""

    @abstractmethod
    def backward(self, adjoint: FloatArray, gradient: FloatArray) -> None:
        """Write this node's entries of the gradient, given the derivative in its values."""


class _ZeroNode(_Node):
    """The kernel of the null model, whose values are zero."""

    def __init__(self, pairs: Pairs) -> None:
        self.value = np.broadcast_to(0.0, pairs.shape)  # one number in memory

    def forward(self, params: FloatArray) -> FloatArray:  # noqa: ARG002 - there are none
        return self.value

    def backward(self, adjoint: FloatArray, gradient: FloatArray) -> None:
        pass


class _Custom:
    """A custom base kernel or operator; errors name it, and so do those of what it returns."""

    def __init__(self, part: BaseKernel | Operator) -> None:
        self._part = part
        self._name = part.name if isinstance(part, BaseKernel) else part.symbol

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._part, name)
        return partial(self._called, name, found) if callable(found) else found

    def _called(self, name: str, method: Callable[..., Any], first: Any, *others: Any) -> Any:
        with custom_part(self._part, self._name):
            found, params = method(first, *others), getattr(first, "params", first)
            found = np.asarray(list(found) if name == "adjoints" else found, dtype=float)
            shape = params.shape
            if not name.endswith("gradient"):
                shape = (others or first.values)[0].shape  # of pairs, an adjoint or an operand
                shape = (len(first.values), *shape) if name == "adjoints" else shape
            if params.ndim == 1 and found.shape != shape:  # others broadcast
                raise ValueError(f"{name} must return an array of shape {shape}, got {found.shape}")
        return found


def _guarded(part: Any) -> Any:
    return _Custom(part) if is_custom(part) else part


class _LeafNode(_Node):
    """A leaf whose kernel is defined by its values, not by an exponent."""

    def __init__(self, kernel: BaseKernel, pairs: Pairs, entries: slice) -> None:
        self.kernel, self.pairs, self.entries = _guarded(kernel), pairs, entries
        self.params = np.empty(0)

    def forward(self, params: FloatArray) -> FloatArray:
        if not _are_equal(self.params, params[self.entries]):
            own = params[self.entries].copy()
            value = self.kernel.value(own, self.pairs)
            if self.pairs.gaps is not None:
                self.pairs.gaps.average(value, partial(self.kernel.value, own))
            self.params, self.value = own, value  # only now, as a custom kernel may fail
        return self.value

    def backward(self, adjoint: FloatArray, gradient: FloatArray) -> None:
        gaps = self.pairs.gaps
        of_known = adjoint if gaps is None else gaps.of_known(adjoint)
        own = self.kernel.gradient(self.params, self.pairs, of_known)
        if gaps is not None:
            own = own + gaps.gradient(adjoint, partial(self.kernel.gradient, self.params))
        gradient[self.entries] = own


class _ExponentialNode(_Node):
    """A product of exponential leaves, computed as the exponential of a sum of exponents."""

    def __init__(self, leaves: Sequence[tuple[ExponentialKernel, Pairs, slice]]) -> None:
        self.leaves = leaves
        self.exponents = [Exponent(np.empty(0), pairs, np.empty(0)) for _, pairs, _ in leaves]

    def forward(self, params: FloatArray) -> FloatArray:
        variance: float | FloatArray = 1.0
        for number, (kernel, pairs, entries) in enumerate(self.leaves):
            own = params[entries]
            if not _are_equal(self.exponents[number].params, own):
                own = own.copy()
                self.exponents[number] = Exponent(own, pairs, kernel.exponent(own, pairs))
            variance = variance * own[kernel.variance_index]
        first, *others = (at.values for at in self.exponents)
        exponent = first + others[0] if others else first
        for other in others[1:]:
            exponent += other
        self.value = np.exp(exponent)
        self.value *= variance
        return self.value

    def backward(self, adjoint: FloatArray, gradient: FloatArray) -> None:
        weights = adjoint * self.value  # d value = value * d exponent
        total = float(weights.sum())
        for (kernel, _, entries), at in zip(self.leaves, self.exponents, strict=True):
            own = kernel.exponent_gradient(at, weights)
            own[kernel.variance_index] += total
            gradient[entries] = own


def _are_equal(params: FloatArray, others: FloatArray) -> bool:
    """Return whether parameters are equal to the last bit, faster than numpy for a few of them."""
    return params.shape == others.shape and params.tobytes() == others.tobytes()


class _OperationNode(_Node):
    def __init__(
        self, operator: Operator, children: Sequence[_Node], pairs: Pairs | None, entries: slice
    ) -> None:
        self.operator, self.children, self.entries = _guarded(operator), children, entries
        self.operands = Operands((), np.empty(0), pairs)

    def forward(self, params: FloatArray) -> FloatArray:
        values = [child.forward(params) for child in self.children]
        own = params[self.entries] if self.operator.parameters else self.operands.params
        self.operands = Operands(values, own, self.operands.pairs)
        self.value = self.operator.value(self.operands)
        return self.value

    def backward(self, adjoint: FloatArray, gradient: FloatArray) -> None:
        if self.operator.parameters:
            gradient[self.entries] = self.operator.gradient(self.operands, adjoint)
        adjoints = self.operator.adjoints(self.operands, adjoint)
        for child, of_child in zip(self.children, adjoints, strict=True):
            child.backward(of_child, gradient)


class _ExpandedNode(_Node):
    """A node over distinct lags, expanded to all pairs."""

    def __init__(self, child: _Node, indices: IntArray) -> None:
        self.child, self.indices = child, indices

    def forward(self, params: FloatArray) -> FloatArray:
        self.value = self.child.forward(params).take(self.indices, mode="clip")  # the fastest mode
        return self.value

    def backward(self, adjoint: FloatArray, gradient: FloatArray) -> None:
        n_lags = len(self.child.value)
        # the static type of bincount is that without weights
        of_lags: FloatArray = np.bincount(self.indices, adjoint, n_lags).astype(float, copy=False)
        self.child.backward(of_lags, gradient)


class Covariance:
    """Covariance of an expression on the pairs of each view, as a function of the parameters."""

    def __init__(self, expression: Expression, pairs: Callable[[View], Pairs]) -> None:
        self.parameters = tuple(p for node in expression.nodes for p in node.parameters)
        entries = iter(slot.entries for slot in slots_of(expression))  # in node order
        self._root = _node_of(expression.tree, pairs, entries)

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


PairsOf = Callable[[View], Pairs]


def _node_of(tree: Tree, pairs: PairsOf, entries: Iterator[slice]) -> _Node:
    """Build the node of a tree; what depends on few distinct lags is computed once for each."""
    if not tree.leaves:
        return _ZeroNode(pairs(View(0)))  # the pairs of any column have the shape of all
    if (distinct := _distinct_lags([tree], pairs)) is not None:
        lags = LagPairs(distinct.lags)
        return _ExpandedNode(_node_of(tree, lambda _: lags, entries), distinct.indices)
    if isinstance(tree, Leaf) and not _is_exponential(tree, pairs):
        return _LeafNode(tree.kernel, pairs(tree.view), next(entries))
    if not isinstance(tree, Operation) or tree.operator == MULTIPLY:
        return _node_of_product(tree.terms(MULTIPLY), pairs, entries)
    operator = tree.operator
    own = next(entries) if operator.parameters else slice(0, 0)
    nodes = [_node_of(child, pairs, entries) for child in tree.children]
    return _OperationNode(operator, nodes, None if tree.view is None else pairs(tree.view), own)


def _node_of_product(factors: Sequence[Tree], pairs: PairsOf, entries: Iterator[slice]) -> _Node:
    """Build the node of a leaf or a product, whose exponential leaves share one exponential."""
    nodes: list[_Node] = []
    terms: list[tuple[ExponentialKernel, Pairs, slice]] = []
    distinct = _distinct_lags([one for one in factors if _is_exponential(one, pairs)], pairs)
    lags = None if distinct is None else LagPairs(distinct.lags)
    for factor in factors:
        if _is_exponential(factor, pairs):
            terms.append((_guarded(factor.kernel), lags or pairs(factor.view), next(entries)))
        else:
            nodes.append(_node_of(factor, pairs, entries))
    if terms:
        node = _ExponentialNode(terms)
        nodes.append(node if distinct is None else _ExpandedNode(node, distinct.indices))
    return nodes[0] if len(nodes) == 1 else _OperationNode(MULTIPLY, nodes, None, slice(0, 0))


def _is_exponential(factor: Tree, pairs: PairsOf) -> TypeGuard[Leaf]:
    """Return whether a factor can share an exponential with others."""
    if not (isinstance(factor, Leaf) and isinstance(factor.kernel, ExponentialKernel)):
        return False
    return pairs(factor.view).gaps is None


def _distinct_lags(trees: Sequence[Tree], pairs: PairsOf) -> DistinctLags | None:
    """Return the distinct lags if trees depend on nothing else, otherwise None."""
    leaves = [leaf for tree in trees for leaf in tree.leaves]
    views = {leaf.view for leaf in leaves}
    are_stationary = all(leaf.kernel.is_stationary for leaf in leaves)
    if len(views) != 1 or not are_stationary or any(map(changes_along, trees)):
        return None
    of_view = pairs(views.pop())
    return of_view.distinct if of_view.gaps is None else None


def paired_covariance(
    expression: Expression, X: Inputs, Z: Inputs, of_x: Any = ..., of_z: Any = ...
) -> Covariance:
    """Build the covariance between rows of X and rows of Z.

    ``of_x`` and ``of_z`` are indices of rows whose shapes broadcast. They pick values of one view
    after the other, so that no array holds all columns of all pairs. Gradients need pairs of one
    dimension.
    """

    @cache
    def pairs(view: View) -> BroadcastPairs:
        x, z = X.view(view)[of_x], Z.view(view)[of_z]
        if not (np.isnan(x).any() or np.isnan(z).any()):
            return BroadcastPairs(x, z)
        places, is_one_row = X.columns.places(view), X.rows[of_x] == Z.rows[of_z]
        return with_gaps(BroadcastPairs, x, z, is_one_row=is_one_row, places=places)

    return Covariance(expression, pairs)


def cross_covariance(expression: Expression, X: Inputs, Z: Inputs) -> Covariance:
    """Build the covariance (n, m) between n rows and m rows."""
    return paired_covariance(expression, X, Z, np.s_[:, None], np.s_[None])


def diagonal_covariance(expression: Expression, X: Inputs) -> Covariance:
    """Build the variances (n,) of an expression at n rows."""
    return paired_covariance(expression, X, X)
