"""What a kernel has in common with smaller and with similar ones."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from autokernel.expression.canonical import join, leaf_starts, outermost
from autokernel.expression.tree import ADD, OPERATORS, Expression


class Split(NamedTuple):
    """A kernel without one term of one of its sums, and that term."""

    rest: Expression
    rest_leaves: tuple[int, ...]  # where they stand among the leaves of the whole
    term: Expression
    term_leaves: tuple[int, ...]


def splits(expression: Expression) -> Iterator[Split]:
    """Take away each term of a sum, of a product each term of the sums in it."""
    if expression.n_leaves == 1:
        return
    operator, operands = outermost(expression)
    for place, (operand, start) in enumerate(zip(operands, leaf_starts(operands), strict=True)):
        before, after = operands[:place], operands[place + 1 :]
        ways: list[tuple[list[Expression], Expression, Sequence[int]]]
        if operator == ADD:
            ways = [([], operand, range(operand.n_leaves))]
        else:
            ways = [([split.rest], split.term, split.term_leaves) for split in splits(operand)]
        for left, term, leaves in ways:
            taken = tuple(start + leaf for leaf in leaves)
            kept = tuple(leaf for leaf in range(expression.n_leaves) if leaf not in taken)
            yield Split(join(operator, [*before, *left, *after]), kept, term, taken)


def joining_operator(expression: Expression, one: int, other: int) -> str:
    """Say what joins two different leaves, given by their places: the operator where they meet."""
    if not 0 <= min(one, other) < max(one, other) < expression.n_leaves:
        raise IndexError(f"two leaves must be in {expression}, got {one} and {other}")
    operator, operands = outermost(expression)
    for operand, start in zip(operands, leaf_starts(operands), strict=True):
        inside = range(start, start + operand.n_leaves)
        if one in inside and other in inside:
            return joining_operator(operand, one - start, other - start)
    return operator


def align(one: Expression, other: Expression) -> list[tuple[int, int]]:
    """Pair equal leaves of two kernels that play the same part in both.

    Terms of sums are matched with terms, factors of products with factors, those first that have
    the most leaves to pair.

    Returns
    -------
    list of (int, int)
        Places among the leaves of ``one`` and of ``other``.
    """
    for operator in OPERATORS:
        ours, theirs = one.operands(operator), other.operands(operator)
        if len(ours) > 1 or len(theirs) > 1:
            break
    else:
        return [(0, 0)] if one == other else []
    options = [
        ([(i + a, k + b) for a, b in align(mine, yours)], i, k, mine.n_leaves + yours.n_leaves)
        for mine, i in zip(ours, leaf_starts(ours), strict=True)
        for yours, k in zip(theirs, leaf_starts(theirs), strict=True)
    ]
    pairs: list[tuple[int, int]] = []
    matched: set[tuple[str, int]] = set()
    for found, i, k, _ in sorted(options, key=lambda option: (-len(option[0]), option[3])):
        if not matched & {("one", i), ("other", k)}:
            matched |= {("one", i), ("other", k)}
            pairs += found
    return sorted(pairs)
