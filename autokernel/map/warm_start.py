"""What a kernel takes over from fits of other kernels: its own parts, or known similar ones."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from autokernel.expression import Expression, align, leaf_slots
from autokernel.typing import FloatArray

_LESS_NOISE = np.log(4.0)  # what is added explains some of it
_N_ALIKE, _N_SIMILAR = 12, 3


class Known(NamedTuple):
    """A kernel with the best parameters known."""

    expression: Expression
    theta: FloatArray  # (n_params,)
    score: float  # -inf where the fit failed


class WarmStart(NamedTuple):
    """Parameters of some leaves of a kernel, from the fit of another."""

    leaves: Sequence[int]
    theta: FloatArray  # of these leaves in this order, the noise variance last


def inherit(expression: Expression, draws: FloatArray, fits: Iterable[WarmStart]) -> None:
    """Write the parameters of fits over draws of theta (n_draws, n_params).

    Where several fits have a leaf, the last one counts. The noise is the lowest of theirs, in every
    other draw less.
    """
    slots = leaf_slots(expression)
    noise = np.inf
    for leaves, theta in fits:
        start = 0
        for leaf in leaves:
            place = slots[leaf].place
            stop = start + place.stop - place.start
            draws[:, place] = theta[start:stop]
            start = stop
        noise = min(noise, theta[-1])
    draws[:, -1] = noise
    draws[1::2, -1] -= _LESS_NOISE


def warm_starts_from_similar(
    expression: Expression, known: Sequence[Known]
) -> list[list[WarmStart]]:
    """Find the known fits that share most leaves with a kernel, the most similar first.

    What a fit does not have is taken from the fits of single leaves as well, where they are known.
    A kernel that has less than a quarter of its leaves in any fit inherits nothing.
    """
    ours = Counter(expression.leaves)

    def likeness(other: Known) -> tuple[int, int, float, str]:
        shared = (ours & Counter(other.expression.leaves)).total()
        text = other.expression.canonical
        return (-shared, other.expression.n_leaves, -other.score, text)

    fitted = [other for other in known if np.isfinite(other.score)]
    found = []
    for other in sorted(fitted, key=likeness)[:_N_ALIKE]:
        pairs = align(expression, other.expression)
        if 4 * len(pairs) >= expression.n_leaves:
            found.append((pairs, other))
    found.sort(key=lambda one: (-len(one[0]), -one[1].score))
    alone = {other.expression: other for other in fitted if other.expression.n_leaves == 1}
    inherited = []
    for pairs, other in found[:_N_SIMILAR]:
        fit = _take(pairs, other)
        inherited.append([fit])
        missing = [leaf for leaf in range(expression.n_leaves) if leaf not in fit.leaves]
        if missing and all(expression.leaves[leaf] in alone for leaf in missing):
            of_leaves = [
                WarmStart([leaf], alone[expression.leaves[leaf]].theta) for leaf in missing
            ]
            inherited.append([fit, *of_leaves])
    return inherited


def _take(pairs: Sequence[tuple[int, int]], other: Known) -> WarmStart:
    """Take over the parameters of paired leaves."""
    slots = leaf_slots(other.expression)
    parts = [other.theta[slots[theirs].place] for _, theirs in pairs]
    return WarmStart([ours for ours, _ in pairs], np.concatenate([*parts, other.theta[-1:]]))
