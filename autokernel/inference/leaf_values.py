"""Likelihoods of kernels that differ by one leaf, from values of leaves that are kept."""

from copy import copy
from functools import cache, lru_cache

import numpy as np
from scipy.linalg import LinAlgError

from autokernel.expression import Expression, Leaf, Operation, fold_nodes, slots_of
from autokernel.inference.covariance import Covariance
from autokernel.inference.data import TrainingData
from autokernel.inference.exact import ExactLikelihood
from autokernel.kernels import ADD, MULTIPLY, Unit
from autokernel.typing import FloatArray

MAX_LEAF_BYTES = 2**26  # of values of leaves

Affine = tuple[FloatArray | float, FloatArray | float | None]
"""The packed A and B of ``A + B * C`` for the values C of one leaf; B is None without that leaf."""


class LeafValues:
    """The values of leaves on the pairs of one data set, and likelihoods that follow from them."""

    def __init__(self, data: TrainingData) -> None:
        self.data = data
        covariance_of = cache(lambda leaf: Covariance(leaf, data.pairs))
        self._likelihoods: dict[str, ExactLikelihood] = {}  # on each scale of the target
        n_bytes = 8 * len(data.y) * (len(data.y) + 1) // 2  # of each leaf
        self._kept = lru_cache(max(1, MAX_LEAF_BYTES // n_bytes))(
            lambda leaf, params: covariance_of(leaf).forward(np.frombuffer(params))
        )

    def __call__(self, leaf: Leaf, params: FloatArray) -> FloatArray:
        """Compute the packed values of a leaf; do not overwrite them."""
        return self._kept(leaf, params.tobytes())

    def without_leaf(self, expression: Expression, node: int, theta: FloatArray) -> Affine | None:
        """Compute how sums and products depend on the values of a leaf; None for other kernels."""
        params, slots = np.exp(theta), slots_of(expression)

        def leaf(tree: Leaf, number: int) -> Affine:
            return (0.0, 1.0) if number == node else (self(tree, params[slots[number][1]]), None)

        def join(tree: Operation, _: int | None, below: list[Affine]) -> Affine:
            (value, slope), (other, of_other) = below
            if tree.operator == ADD:
                return value + other, of_other if slope is None else slope
            if of_other is not None:
                value, slope, other = other, of_other, value
            return value * other, None if slope is None else slope * other

        trees = expression.subtrees()
        if all(tree.operator in (ADD, MULTIPLY) for tree in trees if isinstance(tree, Operation)):
            return fold_nodes(expression, leaf, join)
        return None

    def log_likelihoods(self, expression: Expression, node: int, thetas: FloatArray) -> FloatArray:
        """Compute log likelihoods at points that differ by a leaf and the noise, O(n^3) each."""
        if (affine := self.without_leaf(expression, node, thetas[0])) is None:
            whole = ExactLikelihood(expression, self.data)
            return np.array([whole.value(theta) for theta in thetas])
        (constant, slope), (leaf, entries) = affine, slots_of(expression)[node]
        assert isinstance(leaf, Leaf)
        if (scale := expression.prefix) not in self._likelihoods:  # one serves for any covariance
            self._likelihoods[scale] = ExactLikelihood(expression.with_tree(leaf), self.data)
        likelihood = copy(self._likelihoods[scale])  # modes of counts do not depend on other calls
        (scaled,) = np.nonzero([one.unit == Unit.SQUARED_TARGET for one in leaf.parameters])
        found = np.empty(len(thetas))
        for number, theta in enumerate(thetas):
            params, factor = np.exp(theta[entries]), 1.0
            if len(scaled) == 1:  # so that leaves that differ only by their variance share values
                factor, params[scaled] = params[scaled[0]], 1.0
            K = factor * self(leaf, params)
            if isinstance(slope, np.ndarray):
                K *= slope
            K += constant
            try:
                found[number], *_ = likelihood.value_of(K, theta[-1])
            except LinAlgError:
                found[number] = -np.inf
        return found
