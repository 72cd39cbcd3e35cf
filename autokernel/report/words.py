"""A fitted expression in words, in the units of the user."""

import textwrap
from collections.abc import Iterator, Sequence

import numpy as np

from autokernel.expression import Expression, Leaf, Operation, slots_of
from autokernel.model import FittedModel
from autokernel.operators import ADD, MULTIPLY
from autokernel.typing import FloatArray

_CAPTION_WIDTH = 160  # characters


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
    for leaf, entries in slots_of(expression):
        if isinstance(leaf, Leaf):
            words = leaf.kernel.describe(params[entries], scale=float(scale[leaf.column]))
            name = f"x{leaf.column}" if feature_names is None else feature_names[leaf.column]
            phrases.append(f"{words} in {name}" if len(scale) > 1 else words)
    leaves = iter(phrases)
    return [_phrase(addend, leaves) for addend in expression.terms(ADD)]


def _phrase(expression: Expression, leaves: Iterator[str]) -> str:
    """Join the phrases of the leaves, taken from left to right."""
    if not isinstance(expression, Operation):
        return next(leaves)
    factors, terms = expression.terms(MULTIPLY), expression.terms(ADD)
    if len(factors) > 1:
        return " x ".join(_phrase(factor, leaves) for factor in factors)
    if len(terms) > 1:
        return "(" + " + ".join(_phrase(term, leaves) for term in terms) + ")"
    operands = [_phrase(operand, leaves) for operand in expression.operands]
    return f"{expression.operator.symbol}({', '.join(operands)})"


def describe_model(fitted: FittedModel, feature_names: Sequence[str] | None = None) -> list[str]:
    """Say what each addend of a fitted kernel stands for, the noise last.

    Columns go by ``feature_names``, or by the names that the model knows.
    """
    phrases = describe(
        fitted.evaluation.expression,
        fitted.evaluation.theta,
        scale=fitted.scaling.scale,
        feature_names=feature_names or fitted.feature_names,
    )
    deviation = np.sqrt(fitted.noise_variance)
    return [*phrases, f"noise with standard deviation {deviation:.3g}"]


def caption(fitted: FittedModel) -> str:
    """Say it in one line that fits below the name of an estimator."""
    return textwrap.shorten(" + ".join(describe_model(fitted)), _CAPTION_WIDTH, placeholder=" …")
