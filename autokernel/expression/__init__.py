"""Kernel expressions: structure only, no numbers and no data."""

from autokernel.expression.grammar import Grammar
from autokernel.expression.normal_form import (
    factorings,
    normal_form,
    reduced,
    simplifications,
    without_leaves,
)
from autokernel.expression.notation import parse_expression
from autokernel.expression.parts import (
    Addend,
    Split,
    addends,
    align,
    arrange,
    meeting_operator,
    node_swaps,
    scales_of,
    seed_text,
    splits,
    with_leaves,
    with_scales,
)
from autokernel.expression.structure_prior import (
    StructurePrior,
    grammar_prior,
    uniform_prior,
    unit_prior,
)
from autokernel.expression.tree import (
    NOISE,
    Expression,
    Leaf,
    Operation,
    Slot,
    View,
    fold,
    n_kernel_params,
    slots_of,
    theta_order,
)

__all__ = [
    "NOISE",
    "Addend",
    "Expression",
    "Grammar",
    "Leaf",
    "Operation",
    "Slot",
    "Split",
    "StructurePrior",
    "View",
    "addends",
    "align",
    "arrange",
    "factorings",
    "fold",
    "grammar_prior",
    "meeting_operator",
    "n_kernel_params",
    "node_swaps",
    "normal_form",
    "parse_expression",
    "reduced",
    "scales_of",
    "seed_text",
    "simplifications",
    "slots_of",
    "splits",
    "theta_order",
    "uniform_prior",
    "unit_prior",
    "with_leaves",
    "with_scales",
    "without_leaves",
]
