"""Starting points from fits of other kernels."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from autokernel.expression import Expression, slots_of
from autokernel.typing import FloatArray

_LESS_NOISE = np.log(4.0)  # log factor, as terms added to a kernel explain some of the noise


class WarmStart(NamedTuple):
    """Parameters of some nodes of a kernel, taken from the fit of another kernel."""

    nodes: Sequence[int]  # indices among the nodes of the kernel
    theta: FloatArray  # log parameters of these nodes in this order, the noise variance last


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
    for nodes, theta in fits:
        start = 0
        for node in nodes:
            entries = slots[node].entries
            stop = start + entries.stop - entries.start
            draws[:, entries] = theta[start:stop]
            start = stop
        noise = min(noise, theta[-1])
    draws[:, -1] = noise
    draws[1::2, -1] -= _LESS_NOISE
    return draws
