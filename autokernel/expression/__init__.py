"""Kernel expressions: structure only, no numbers and no data."""

from autokernel.expression.grammar import Grammar
from autokernel.expression.layout import Slot, n_kernel_params, slots_of, theta_order
from autokernel.expression.normal_form import normal_form, reduced, simplifications
from autokernel.expression.notation import parse_expression
from autokernel.expression.parts import (
    Addend,
    Arranged,
    Split,
    addends,
    align,
    arrange,
    meeting_operator,
    node_swaps,
    seed_text,
    splits,
)
from autokernel.expression.structure_prior import (
    GrammarPrior,
    StructurePrior,
    UniformPrior,
    UnitPrior,
    units_of,
)
from autokernel.expression.tree import NOISE, Expression, Leaf, Null, Operation, require_expressions

__all__ = [
    "NOISE",
    "Addend",
    "Arranged",
    "Expression",
    "Grammar",
    "GrammarPrior",
    "Leaf",
    "Null",
    "Operation",
    "Slot",
    "Split",
    "StructurePrior",
    "UniformPrior",
    "UnitPrior",
    "addends",
    "align",
    "arrange",
    "meeting_operator",
    "n_kernel_params",
    "node_swaps",
    "normal_form",
    "parse_expression",
    "reduced",
    "require_expressions",
    "seed_text",
    "simplifications",
    "slots_of",
    "splits",
    "theta_order",
    "units_of",
]
