"""Checks of the arguments from which expressions are made."""

from collections.abc import Sequence
from numbers import Integral

from autokernel.kernels import NULL_KERNEL
from autokernel.operators import ADD, MULTIPLY, Operator

STANDS_ALONE = f"{NULL_KERNEL.name} stands alone, as every kernel has noise"
"""The reason for which the null model is refused as an operand."""


def checked_operation(
    operator: Operator, n_leaves: Sequence[int], column: int | None
) -> int | None:
    """Check an operator and the numbers of leaves of its operands, and return its column."""
    # isinstance takes long with an abstract class
    if operator is not ADD and operator is not MULTIPLY and not isinstance(operator, Operator):
        raise TypeError(f"operator must be an Operator object, got {operator!r}")
    if len(n_leaves) != operator.n_operands:
        raise ValueError(
            f"{operator.symbol} must have {operator.n_operands} operands, got {len(n_leaves)}"
        )
    if 0 in n_leaves:
        raise ValueError(f"{operator.symbol} must join kernels that have leaves: {STANDS_ALONE}")
    if operator.acts_on_column:
        return checked_column(column)
    if column is not None:
        raise ValueError(f"{operator.symbol} acts on no column, got column={column!r}")
    return None


def checked_column(column: object) -> int:
    """Check a zero-based column and return it as an int."""
    if isinstance(column, bool) or not isinstance(column, Integral):
        raise ValueError(f"column must be a zero-based index, got {column!r}")
    if column < 0:
        raise ValueError(f"column must not be negative, got {column}")
    return int(column)
