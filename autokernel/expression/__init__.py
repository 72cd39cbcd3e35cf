"""Kernel expressions: structure only; columns and scales by name, no numbers and no data."""

from autokernel.expression.grammar import Grammar
from autokernel.expression.normal_form import (
    factorings,
    moves,
    normal_form,
    reduced,
    simplifications,
    without_leaves,
)
from autokernel.expression.notation import custom_parts, parse_expression, parse_with_parts
from autokernel.expression.parts import (
    addends,
    align,
    arrange,
    arranged,
    changes_along,
    meeting_operator,
    node_swaps,
    numbered_like,
    splits,
    with_leaves,
    with_numbers,
)
from autokernel.expression.structure_prior import (
    StructurePrior,
    grammar_prior,
    uniform_prior,
    unit_prior,
)
from autokernel.expression.tree import (
    COLUMN_SCALES,
    COUNT_SCALES,
    IDENTITY,
    NOISE,
    TARGET_SCALES,
    Expression,
    Leaf,
    Operation,
    Slot,
    Tree,
    View,
    fold,
    fold_nodes,
    n_kernel_params,
    slots_of,
    theta_order,
)
