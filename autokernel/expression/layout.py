"""The entries of theta that belong to each node of an expression, defined only here."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from autokernel.expression.tree import Expression
from autokernel.typing import IntArray


class Slot(NamedTuple):
    """A node of an expression and the entries of theta that hold its parameters."""

    node: Expression
    entries: slice


def slots_of(expression: Expression) -> list[Slot]:
    """List the nodes with their entries of theta, in the order of ``Expression.nodes``."""
    slots: list[Slot] = []
    start = 0
    for node in expression.nodes:
        stop = start + len(node.parameters)
        slots.append(Slot(node, slice(start, stop)))
        start = stop
    return slots


def n_kernel_params(expression: Expression) -> int:
    """Count the parameters of an expression, without the noise variance."""
    return sum(len(node.parameters) for node in expression.nodes)


def theta_order(expression: Expression, nodes: Sequence[int]) -> IntArray:
    """Return the order of theta's entries for an order of the nodes, noise variance last."""
    entries = [np.arange(one.start, one.stop) for _, one in slots_of(expression)]
    noise = [n_kernel_params(expression)]
    return np.concatenate([*(entries[node] for node in nodes), noise])
