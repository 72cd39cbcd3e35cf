"""Warm starts of a kernel from the fits of the known kernels that share most nodes with it."""

from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np

from autokernel.evaluation.record import Evaluation
from autokernel.expression import Expression, align, slots_of
from autokernel.map.warm_start import WarmStart

_N_ALIKE, _N_SIMILAR = 12, 3


def warm_starts_from_similar(
    expression: Expression, known: Iterable[Evaluation]
) -> list[list[WarmStart]]:
    """Find the known fits that share most nodes with a kernel, the most similar first.

    Nodes that a fit lacks are also taken from fits of single leaves, where all of them are known.
    A fit that has less than a quarter of the kernel's nodes gives no warm start.
    """
    ours = Counter(expression.leaves)

    def dissimilarity(other: Evaluation) -> tuple[int, int, float, str]:
        shared = (ours & Counter(other.expression.leaves)).total()
        text = other.expression.canonical
        return (-shared, other.expression.n_leaves, -other.score, text)

    fitted = [other for other in known if np.isfinite(other.score)]
    found = []
    for other in sorted(fitted, key=dissimilarity)[:_N_ALIKE]:
        pairs = align(expression, other.expression)
        if pairs and 4 * len(pairs) >= len(expression.nodes):
            found.append((pairs, other))
    found.sort(key=lambda one: (-len(one[0]), -one[1].score))
    alone = {other.expression: other for other in fitted if other.expression.n_leaves == 1}
    nodes = expression.nodes
    starts = []
    for pairs, other in found[:_N_SIMILAR]:
        start = _take(pairs, other)
        starts.append([start])
        missing = [node for node in range(len(nodes)) if node not in start.nodes]
        if missing and all(nodes[node] in alone for node in missing):
            others = ((node, alone[nodes[node]]) for node in missing)
            of_leaves = [WarmStart([node], fit.theta, fit.hessian) for node, fit in others]
            starts.append([start, *of_leaves])
    return starts


def _take(pairs: Sequence[tuple[int, int]], other: Evaluation) -> WarmStart:
    """Make a warm start from the parameters of paired nodes."""
    slots = slots_of(other.expression)
    numbers = np.arange(len(other.theta))
    taken = np.concatenate([*(numbers[slots[theirs].entries] for _, theirs in pairs), numbers[-1:]])
    hessian = other.hessian[np.ix_(taken, taken)]
    return WarmStart([ours for ours, _ in pairs], other.theta[taken], hessian)
