"""Kernel expressions: structure only, no numbers and no data."""

from autokernel.expression.grammar import Grammar
from autokernel.expression.notation import parse_expression
from autokernel.expression.slots import Slot, leaf_slots
from autokernel.expression.symmetry import leaf_swaps
from autokernel.expression.tree import ADD, MULTIPLY, OPERATORS, Expression, Leaf, Operation

__all__ = [
    "ADD",
    "MULTIPLY",
    "OPERATORS",
    "Expression",
    "Grammar",
    "Leaf",
    "Operation",
    "Slot",
    "leaf_slots",
    "leaf_swaps",
    "parse_expression",
]
