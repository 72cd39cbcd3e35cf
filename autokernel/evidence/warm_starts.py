"""Parameters of similar kernels, at which the search for those of a kernel starts."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from autokernel.evidence.evaluation import Evaluation
from autokernel.expression import Expression, Slot, align, slots_of
from autokernel.typing import FloatArray, IntArray

_MAX_COMPARED = 12  # known fits whose structure is compared with that of a kernel
_MAX_SIMILAR = 3  # known fits that give warm starts
_LESS_NOISE = np.log(4.0)  # log factor, as new terms explain some of the noise


class WarmStart(NamedTuple):
    """Parameters of some nodes of a kernel, taken from the fit of another kernel."""

    nodes: Sequence[int]  # indices among the nodes of the kernel
    theta: FloatArray  # log parameters of these nodes in this order, the noise variance last
    hessian: FloatArray | None = None  # of the negative log posterior of the other kernel, in theta

    @property
    def definition(self) -> tuple[tuple[int, ...], bytes, bytes]:
        """Nodes, theta and Hessian to the last bit, which determine the warm start."""
        hessian = b"" if self.hessian is None else self.hessian.tobytes()
        return tuple(map(int, self.nodes)), self.theta.tobytes(), hessian


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
    for other in sorted(fitted, key=dissimilarity)[:_MAX_COMPARED]:
        pairs = align(expression, other.expression)
        if pairs and 4 * len(pairs) >= len(expression.nodes):
            found.append((pairs, other))
    found.sort(key=lambda one: (-len(one[0]), -one[1].score))
    alone = {other.expression: other for other in fitted if other.expression.n_leaves == 1}
    nodes = expression.nodes
    starts = []
    for pairs, other in found[:_MAX_SIMILAR]:
        taken = _entries(slots_of(other.expression), [theirs for _, theirs in pairs])
        hessian = other.hessian[np.ix_(taken, taken)]
        start = WarmStart([ours for ours, _ in pairs], other.theta[taken], hessian)
        starts.append([start])
        missing = [node for node in range(len(nodes)) if node not in start.nodes]
        if missing and all(nodes[node] in alone for node in missing):
            others = ((node, alone[nodes[node]]) for node in missing)
            of_leaves = [WarmStart([node], fit.theta, fit.hessian) for node, fit in others]
            starts.append([start, *of_leaves])
    return starts


def with_warm_starts(
    expression: Expression, draws: FloatArray, fits: Iterable[WarmStart]
) -> FloatArray:
    """Return draws of theta (n_draws, n_params) with parameters replaced by those of fits.

    If several fits have a node, the last one counts. The noise variance is the lowest one of the
    fits, and is reduced further in every other draw.
    """
    draws = draws.copy()
    slots = slots_of(expression)
    noise = np.inf
    for fit in fits:
        draws[:, _entries(slots, fit.nodes)] = fit.theta
        noise = min(noise, fit.theta[-1])
    draws[:, -1] = noise
    draws[1::2, -1] -= _LESS_NOISE
    return draws


def curvature_from(
    expression: Expression, fits: Iterable[WarmStart], scales: FloatArray
) -> FloatArray | None:
    """Join the Hessians of fits to that (n_params, n_params) of a kernel, None if none is known.

    The parameters that no fit has are taken as independent, with the standard deviations
    ``scales`` (n_params,).
    """
    curvature = np.diag(scales**-2)
    slots, is_known = slots_of(expression), False
    for fit in fits:
        if fit.hessian is None or not np.all(np.isfinite(fit.hessian)):
            continue
        entries, is_known = _entries(slots, fit.nodes), True
        curvature[entries] = curvature[:, entries] = 0.0
        curvature[np.ix_(entries, entries)] = fit.hessian
    return curvature if is_known else None


def _entries(slots: Sequence[Slot], nodes: Iterable[int]) -> IntArray:
    """Return the entries of theta of some nodes, the noise variance last."""
    numbers = np.arange(slots[-1].entries.stop + 1)
    return np.concatenate([*(numbers[slots[node].entries] for node in nodes), numbers[-1:]])
