"""Kernel expressions: structure only, no numbers and no data."""

from autokernel.expression.canonical import Arranged, arrange, seed_text
from autokernel.expression.grammar import Grammar
from autokernel.expression.layout import Slot, n_kernel_params, slots_of, theta_order
from autokernel.expression.notation import parse_expression
from autokernel.expression.parts import Split, align, meeting_operator, splits
from autokernel.expression.symmetry import node_swaps
from autokernel.expression.tree import Expression, Leaf, Operation, require_expressions

__all__ = [
    "Arranged",
    "Expression",
    "Grammar",
    "Leaf",
    "Operation",
    "Slot",
    "Split",
    "align",
    "arrange",
    "meeting_operator",
    "n_kernel_params",
    "node_swaps",
    "parse_expression",
    "require_expressions",
    "seed_text",
    "slots_of",
    "splits",
    "theta_order",
]
