"""Kernel expressions: structure only, no numbers and no data."""

from autokernel.expression.canonical import arrange
from autokernel.expression.grammar import Grammar
from autokernel.expression.layout import Slot, leaf_slots, theta_order
from autokernel.expression.notation import parse_expression
from autokernel.expression.parts import Split, align, joining_operator, splits
from autokernel.expression.symmetry import leaf_swaps
from autokernel.expression.tree import (
    ADD,
    MULTIPLY,
    OPERATORS,
    Expression,
    Leaf,
    Operation,
    require_expressions,
)

__all__ = [
    "ADD",
    "MULTIPLY",
    "OPERATORS",
    "Expression",
    "Grammar",
    "Leaf",
    "Operation",
    "Slot",
    "Split",
    "align",
    "arrange",
    "joining_operator",
    "leaf_slots",
    "leaf_swaps",
    "parse_expression",
    "require_expressions",
    "splits",
    "theta_order",
]
