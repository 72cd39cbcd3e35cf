"""A fitted expression in words, in the units of the user."""

from collections.abc import Iterator, Sequence

import numpy as np

from autokernel.expression import ADD, MULTIPLY, Expression, leaf_slots
from autokernel.kernels import BASE_KERNELS
from autokernel.typing import FloatArray


def describe(
    expression: Expression,
    theta: FloatArray,
    *,
    scale: FloatArray,
    feature_names: Sequence[str] | None = None,
) -> list[str]:
    """Say what each addend of a kernel stands for.

    Parameters
    ----------
    expression : Expression
        The structure.
    theta : ndarray of shape (n_params,)
        Logs of its parameters on scaled inputs.
    scale : ndarray of shape (n_features,)
        What the inputs were divided by.
    feature_names : sequence of str, optional
        Names of the columns.

    Returns
    -------
    list of str
        One phrase for each addend, such as ``"repeating every 1 x smooth over 9"``; with the name
        of the column at each factor where there is more than one column.
    """
    params = np.exp(theta)
    phrases: list[str] = []
    for leaf, place in leaf_slots(expression):
        kernel = BASE_KERNELS[leaf.kernel]
        words = kernel.describe(params[place], scale=float(scale[leaf.column]))
        name = f"x{leaf.column}" if feature_names is None else feature_names[leaf.column]
        phrases.append(f"{words} in {name}" if len(scale) > 1 else words)
    leaves = iter(phrases)
    return [_phrase(addend, leaves) for addend in expression.operands(ADD)]


def _phrase(expression: Expression, leaves: Iterator[str]) -> str:
    """Join the phrases of the leaves, taken from left to right."""
    if expression.n_leaves == 1:
        return next(leaves)
    factors = expression.operands(MULTIPLY)
    if len(factors) > 1:
        return " x ".join(_phrase(factor, leaves) for factor in factors)
    return "(" + " + ".join(_phrase(term, leaves) for term in expression.operands(ADD)) + ")"
