"""Distances between expressions by symbolical optimal transport, and keys of changes."""

from collections import Counter
from collections.abc import Iterator, Mapping
from functools import lru_cache
from itertools import chain
from zlib import crc32

import numpy as np
from scipy.special import expit

from autokernel.expression import Expression, Operation, Tree
from autokernel.search.surrogate import LOG_BOUNDS, Frequencies, FrequencyKernel
from autokernel.typing import FloatArray


class SOTKernel(FrequencyKernel):
    """The kernel ``exp(-d / l^2)``, d a weighted mean of the three SOT distances (SOT eq. 4, A.5).

    The parameters are the log of the squared lengthscale and the logits of the weights.

    The distances are SOT eqs. 2 and 3, with the symmetries of appendix A.1. With the discrete
    ground metric, optimal transport is total variation. Two trees with the same canonical text may
    differ in their subtrees, as in the paper. The scale of the target counts as one more column,
    with one base kernel for each scale.
    """

    bounds = (LOG_BOUNDS,) * 4

    def frequencies(self, expression: Expression) -> tuple[Frequencies, Frequencies, Frequencies]:
        """Compute the frequencies of the base kernels by column, the paths and the subtrees."""
        of_paths, of_subtrees = (
            {one: n / len(elements) for one, n in Counter(elements).items()}
            for elements in (list(_paths(expression.tree)), _subtrees(expression.tree))
        )
        return _base_frequencies(expression), of_paths, of_subtrees

    def weights(self, params: FloatArray) -> tuple[FloatArray, FloatArray]:
        sigmoid = expit(params[1:])
        shares = sigmoid / sigmoid.sum()
        values = shares * np.exp(-params[0])
        by_logit = values[:, None] * (np.eye(3) - shares) * (1 - sigmoid)
        return values, np.column_stack([-values, by_logit])


def _paths(tree: Tree, above: str = "") -> Iterator[str]:
    """Yield the paths to the leaves (SOT, appendix A.1); a run of one operator counts once."""
    if not isinstance(tree, Operation):
        yield above + tree.canonical
        return
    label, commutes = operator_text(tree), tree.operator.commutes
    here = above if commutes and above.endswith(label) else above + label
    for number, operand in enumerate(tree.operands):
        yield from _paths(operand, here if commutes else f"{here}{number}:")


def _subtrees(tree: Tree) -> list[str]:
    """List texts of all subtrees, the whole tree last, with sorted operands where they commute."""
    if not isinstance(tree, Operation):
        return [tree.canonical]
    below = [_subtrees(operand) for operand in tree.operands]
    operands = [texts[-1] for texts in below]
    if tree.operator.commutes:
        operands.sort()
    return [*chain(*below), f"({operator_text(tree).join(operands)})"]


def operator_text(operation: Operation) -> str:
    """Return the symbol of an operator, with its column if it has one."""
    column = operation.column
    return operation.operator.symbol + ("" if column is None else f"[{column}]")


def _base_frequencies(expression: Expression) -> Frequencies:
    """Compute the shares of the base kernels on each column, and mark the columns in use.

    A column that is not in use holds the symbol NULL in the paper. If only one of two expressions
    uses a column, its mark counts as much as that symbol.
    """
    per_column = Counter(leaf.column for leaf in expression.leaves)
    counts = Counter((leaf.canonical, leaf.column) for leaf in expression.leaves)
    shares = {element: count / per_column[element[1]] for element, count in counts.items()}
    scale = {expression.prefix: 1.0} if expression.prefix else {}
    return {**shares, **dict.fromkeys(per_column, 1.0), **scale}


def keys_of(before: Expression, after: Expression) -> tuple[int, int]:
    """Return numbers that changes have in common if the same paths, or leaves, come and go.

    Both are counted: a leaf that joins two sums as a term is the same change of both.
    """
    (leaves_before, paths_before), (leaves, paths) = _counts(before), _counts(after)
    return _key(paths, paths_before), _key(leaves, leaves_before)


def _key(now: Mapping[str, int], before: Mapping[str, int]) -> int:
    changes = ((one, now[one] - before[one]) for one in {**now, **before})
    return crc32(repr(sorted(item for item in changes if item[1])).encode())


@lru_cache(8192)
def _counts(expression: Expression) -> tuple[Counter[str], Counter[str]]:
    """Count leaves and paths; the scale of the target counts as a leaf."""
    leaves = Counter(leaf.canonical for leaf in expression.leaves)
    if expression.prefix:
        leaves[expression.prefix] += 1
    return leaves, Counter(_paths(expression.tree))
