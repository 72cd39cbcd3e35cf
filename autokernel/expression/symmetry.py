"""Which leaves of an expression may change places without changing the kernel."""

from itertools import pairwise

from autokernel.expression.tree import ADD, MULTIPLY, Expression


def leaf_swaps(expression: Expression) -> list[tuple[int, ...]]:
    """List exchanges of equal operands, as orders of the leaves.

    Parameters
    ----------
    expression : Expression
        Such as ``SE[0] + SE[0]``, whose leaves may change places.

    Returns
    -------
    list of tuple of int
        For each leaf, from left to right, the number of the leaf that takes its place. One after
        another they make all orders that give the same kernel; as there may be very many, only the
        exchanges of neighbours in canonical order are listed.
    """
    found: list[tuple[int, ...]] = []
    _read(expression, 0, expression.n_leaves, found)
    return found


def _read(
    expression: Expression, start: int, n_leaves: int, found: list[tuple[int, ...]]
) -> tuple[int, ...]:
    """Return the leaves in the order of the canonical text, and note the exchanges on the way."""
    if expression.n_leaves == 1:
        return (start,)
    operands: list[tuple[str, tuple[int, ...]]] = []
    for operand in max(expression.operands(ADD), expression.operands(MULTIPLY), key=len):
        operands.append((operand.canonical, _read(operand, start, n_leaves, found)))
        start += operand.n_leaves
    operands.sort()
    for (text, one), (other_text, other) in pairwise(operands):
        if text == other_text:
            places = dict(zip(one + other, other + one, strict=True))
            found.append(tuple(places.get(leaf, leaf) for leaf in range(n_leaves)))
    return tuple(leaf for _, leaves in operands for leaf in leaves)
