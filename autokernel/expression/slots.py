"""Where the parameters of each leaf stand in theta."""

from typing import NamedTuple

from autokernel.expression.tree import Expression, Leaf
from autokernel.kernels import BASE_KERNELS


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
