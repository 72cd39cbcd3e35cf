"""Where the parameters of each node of an expression stand in theta: the one place that says so."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from autokernel.expression.tree import Expression
from autokernel.typing import IntArray


class Slot(NamedTuple):
    """A node of an expression and the entries of theta that are its own."""

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
    """Count the parameters of an expression, that of the noise not included."""
    return sum(len(node.parameters) for node in expression.nodes)


def theta_order(expression: Expression, nodes: Sequence[int]) -> IntArray:
    """Order of the entries of theta for an order of the nodes; the noise variance stays last."""
    entries = [np.arange(one.start, one.stop) for _, one in slots_of(expression)]
    noise = [n_kernel_params(expression)]
    return np.concatenate([*(entries[node] for node in nodes), noise])
