"""Where the parameters of each leaf stand in theta."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from autokernel.expression.tree import Expression, Leaf
from autokernel.kernels import BASE_KERNELS
from autokernel.typing import IntArray


class Slot(NamedTuple):
    """A leaf and the place of its parameters in theta."""

    leaf: Leaf
    place: slice


def leaf_slots(expression: Expression) -> list[Slot]:
    """List the leaves with their places in theta, from left to right."""
    slots: list[Slot] = []
    start = 0
    for leaf in expression.leaves:
        stop = start + len(BASE_KERNELS[leaf.kernel].parameter_names)
        slots.append(Slot(leaf, slice(start, stop)))
        start = stop
    return slots


def theta_order(expression: Expression, leaves: Sequence[int]) -> IntArray:
    """Order of the parameters for an order of the leaves; the noise variance stays the last."""
    places = [np.arange(place.start, place.stop) for _, place in leaf_slots(expression)]
    return np.concatenate([*(places[leaf] for leaf in leaves), places[-1][-1:] + 1])
